//! The outlines of classes: the sizes that other units need to know. They are kept for every class of a
//! program, so that its units need not be in memory together.

use super::entry::{Entries, Entry, Interest, Step};
use super::hierarchy::all_bases;
use super::load::Loaded;
use super::offset::GlobalDieOffset;
use super::scopes::{Class, Key};
use super::tags::is_template_argument;
use super::units::{Context, Units};
use super::{finish, variant};
use crate::error::Result;
use crate::model::{Language, Member, MemberKind, NameId, Record, RecordId, RecordKind, Type, TypeId, Types};
use gimli::constants;
use rustc_hash::{FxHashMap, FxHashSet};

/// The limit to the depth of inheritance; real programs stay below thirty.
const DEPTH_LIMIT: usize = 64;

/// A class, as far as others need it that are laid out around it.
#[derive(Clone, Debug)]
pub(super) struct Outline {
    size: u64,
    has_data: bool,
    // a base that is virtual, or whose name says nothing
    is_open: bool,
    bases: Box<[Key]>,
}

/// The classes of a program by name.
#[derive(Default)]
pub(super) struct Outlines(FxHashMap<Key, Outline>);

/// The classes that some units declare or define.
#[derive(Default)]
pub(super) struct UnitClasses {
    /// The DIEs that declare them, and their keys, sorted by offset.
    declared: Vec<(GlobalDieOffset, Key)>,
    outlines: Vec<(Key, Outline)>,
    known: FxHashSet<Key>,
}

impl UnitClasses {
    /// Adds the classes of a unit, those defined only if they are not known from units before.
    pub(super) fn add(
        &mut self,
        before: &Outlines,
        units: &Units<'_>,
        unit: usize,
        context: &Context,
        classes: &[Class],
    ) -> Result<()> {
        for Class { place, key, is_declaration } in classes {
            if *is_declaration {
                self.declared.push((*place, *key));
            } else if before.get(*key).is_none() && self.known.insert(*key) {
                let outline = outline(units, unit, context, *place, classes)?;
                self.outlines.extend(outline.map(|outline| (*key, outline)));
            }
        }
        Ok(())
    }

    /// Adds those of later units.
    pub(super) fn append(&mut self, later: UnitClasses) {
        self.declared.extend(later.declared);
        self.outlines.extend(later.outlines);
    }

    /// Returns the key of the class that a DIE declares.
    pub(super) fn key_at(&self, place: GlobalDieOffset) -> Option<Key> {
        let index = self.declared.binary_search_by_key(&place, |(place, _)| *place).ok()?;
        Some(self.declared[index].1)
    }
}

impl Outlines {
    /// Adds the classes of more units.
    pub(super) fn add(&mut self, seen: &UnitClasses) {
        for (key, outline) in &seen.outlines {
            self.0.entry(*key).or_insert_with(|| outline.clone());
        }
    }

    /// Returns a class by its name.
    fn get(&self, key: Key) -> Option<&Outline> {
        self.0.get(&key)
    }

    /// Returns `true` if a class has no data of its own or of its bases.
    fn is_empty(&self, outline: &Outline, depth: usize) -> bool {
        outline.size == 1
            && !outline.has_data
            && !outline.is_open
            && depth < DEPTH_LIMIT
            && outline
                .bases
                .iter()
                .all(|base| self.get(*base).is_some_and(|base| self.is_empty(base, depth + 1)))
    }

    /// Returns `true` if a class has virtual bases, or may have.
    fn is_open(&self, outline: &Outline, depth: usize) -> bool {
        outline.is_open
            || depth > DEPTH_LIMIT
            || outline
                .bases
                .iter()
                .any(|base| self.get(*base).is_none_or(|base| self.is_open(base, depth + 1)))
    }
}

/// Returns the outline of one of a unit's classes; none for a template whose arguments are not in its name.
fn outline(
    units: &Units<'_>,
    unit: usize,
    context: &Context,
    place: GlobalDieOffset,
    classes: &[Class],
) -> Result<Option<Outline>> {
    let mut entry = Entry::default();
    let mut entries = Entries::at(units, unit, context, place)?;
    if entries.is_empty() || !entries.read(&mut entry)? {
        return Ok(None);
    }
    let size = entry.number(constants::DW_AT_byte_size).unwrap_or(0);
    let mut outline = Outline { size, has_data: false, is_open: false, bases: Box::default() };
    let mut bases = Vec::new();
    let has_children = entry.has_children;
    let name = entry.value(constants::DW_AT_name);
    let interest = |tag| match tag {
        constants::DW_TAG_member | constants::DW_TAG_inheritance => Interest::Read,
        _ => Interest::Leave,
    };
    while has_children && !entries.is_empty() && entries.depth() > 0 {
        match entries.read_as(&mut entry, interest)? {
            Step::Other if is_template_argument(entry.tag) => {
                let name = name.and_then(|name| units.string(unit, context, &name));
                if !name.unwrap_or_default().contains(&b'<') {
                    return Ok(None);
                }
            }
            Step::End | Step::Other => {}
            Step::Wanted if entry.tag == constants::DW_TAG_member => {
                outline.has_data |= entry.has(constants::DW_AT_data_member_location)
                    || entry.has(constants::DW_AT_data_bit_offset);
            }
            Step::Wanted => {
                let base = entry.target(units, unit, constants::DW_AT_type);
                let find = |place| classes.binary_search_by_key(&place, |class| class.place).ok();
                let base = base.and_then(find).map(|index| classes[index].key);
                outline.is_open |= base.is_none() || entry.flag(constants::DW_AT_virtuality);
                bases.extend(base);
            }
        }
    }
    outline.bases = bases.into();
    Ok(Some(outline))
}

/// Types that cannot be completed before all classes of the file are known.
pub(super) struct DeferredTypes {
    types: Types,
    records: Vec<usize>,
    // what is only declared, and what stands for it; none if the types are complete
    wanted: Option<Vec<(TypeId, Option<Key>)>>,
    little_endian: bool,
}

impl DeferredTypes {
    /// Keeps types, with the names of what they want.
    pub(super) fn new(loaded: Loaded, seen: &UnitClasses, little_endian: bool) -> DeferredTypes {
        let Loaded { mut types, records, wanted } = loaded;
        types.shrink();
        let key = |(id, place)| (id, seen.key_at(place));
        let wanted = (!wanted.is_empty()).then(|| wanted.into_iter().map(key).collect());
        DeferredTypes { types, records, wanted, little_endian }
    }

    /// Completes the types with what is known of classes that other units define; none where that is
    /// not enough.
    pub(super) fn complete(mut self, outlines: &Outlines) -> Result<Option<Types>> {
        let Some(wanted) = self.wanted else { return Ok(Some(self.types)) };
        let mut outlined = FxHashMap::default();
        for (id, key) in wanted {
            let Some(outline) = key.and_then(|key| outlines.get(key)) else { continue };
            let record = outlines.record(outline, &mut self.types)?;
            self.types.types[id.index()] = Type::Record(record);
            outlined.insert(record, outlines.is_open(outline, 0));
        }
        finish::finish(&mut self.types, 0, &self.records, self.little_endian);
        variant::finish(&mut self.types, &self.records);
        let is_enough = !needs_more(&self.types, &self.records, &outlined);
        Ok(is_enough.then_some(self.types))
    }
}

impl Outlines {
    /// Adds a record that is laid out as an outline says.
    fn record(&self, outline: &Outline, types: &mut Types) -> Result<RecordId> {
        let mut record = Record::new(RecordKind::Class, NameId::NONE, outline.size);
        record.language = Language(constants::DW_LANG_C_plus_plus.0);
        record.declaration = true;
        if !self.is_empty(outline, 0) {
            // so that nobody takes it for one without data
            let data = Member::new(NameId::NONE, TypeId::VOID, 0);
            record.members = types.push_members(&[data])?;
        }
        types.push_record(record)
    }
}

/// Returns `true` if one of the records has virtual bases, and one of which only the outline is known: their offsets
/// are unknown then.
fn needs_more(types: &Types, records: &[usize], outlined: &FxHashMap<RecordId, bool>) -> bool {
    if outlined.is_empty() {
        return false;
    }
    records.iter().any(|index| {
        let id = RecordId(*index as u32);
        let Some(bases) = all_bases(types, id) else { return true };
        let is_virtual = |id: &RecordId| {
            let members = types.members(types.record(*id));
            members.iter().any(|member| member.kind == MemberKind::VirtualBase)
        };
        let of_these = || bases.iter().filter_map(|base| outlined.get(base));
        of_these().any(|is_open| *is_open)
            || of_these().next().is_some() && (is_virtual(&id) || bases.iter().any(is_virtual))
    })
}
