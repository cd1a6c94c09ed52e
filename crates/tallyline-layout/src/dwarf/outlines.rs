//! What sizes need of classes that other units define: how large they are. It is kept of every class
//! of a program, so that its units need not be at hand together.

use super::definitions::{Key, is_template_argument, key};
use super::entry::{Entries, Entry, Step};
use super::hierarchy::all_bases;
use super::load::Loader;
use super::scan_scoped::{Scoped, Which, scoped_types};
use super::units::{Context, Place, Units};
use crate::error::Result;
use crate::model::{Language, Member, MemberKind, NameId, Record, RecordId, RecordKind, Type, TypeId};
use gimli::constants;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// How deep classes derive from each other; real programs stay below thirty.
const DEPTH_LIMIT: usize = 64;

/// A class, as far as others need it that are laid out around it.
#[derive(Clone, Debug)]
pub(super) struct Outline {
    pub(super) size: u64,
    has_data: bool,
    // a base that is virtual, or whose name says nothing
    is_open: bool,
    bases: Box<[Key]>,
}

/// The classes of a program by name.
#[derive(Default)]
pub(super) struct Outlines(FxHashMap<Key, Outline>);

impl Outlines {
    /// Adds the classes of more units.
    pub(super) fn add(&mut self, units: &Units<'_>) -> Result<()> {
        let parts = units.order().par_iter().map(|unit| self.of_unit(units, *unit));
        for (key, outline) in parts.collect::<Result<Vec<_>>>()?.into_iter().flatten() {
            self.0.entry(key).or_insert(outline);
        }
        Ok(())
    }

    /// The classes that a unit defines and that are not known yet.
    fn of_unit(&self, units: &Units<'_>, unit: usize) -> Result<Vec<(Key, Outline)>> {
        let context = units.context(unit)?;
        let mut found = Vec::new();
        if !context.is_cpp() {
            return Ok(found);
        }
        let mut names: FxHashMap<Place, Key> = FxHashMap::default();
        let mut defined = Vec::new();
        scoped_types(units, unit, &context, Which::Records, |ty: Scoped<'_>| {
            if let Some(key) = key(&ty) {
                names.insert(ty.place, key);
                // most are the same in many units
                if !ty.is_declaration && self.get(key).is_none() {
                    defined.push((key, ty.place, ty.name.contains(&b'<')));
                }
            }
        })?;
        for (key, place, is_instance) in defined {
            found.extend(outline(units, unit, &context, place, is_instance, &names)?.map(|one| (key, one)));
        }
        Ok(found)
    }

    /// A class by its name.
    pub(super) fn get(&self, key: Key) -> Option<&Outline> {
        self.0.get(&key)
    }

    /// Whether a class has no data of its own or of its bases.
    pub(super) fn is_empty(&self, outline: &Outline, depth: usize) -> bool {
        outline.size == 1
            && !outline.has_data
            && !outline.is_open
            && depth < DEPTH_LIMIT
            && outline
                .bases
                .iter()
                .all(|base| self.get(*base).is_some_and(|base| self.is_empty(base, depth + 1)))
    }

    /// Whether a class has virtual bases, or may have.
    fn is_open(&self, outline: &Outline, depth: usize) -> bool {
        outline.is_open
            || depth > DEPTH_LIMIT
            || outline
                .bases
                .iter()
                .any(|base| self.get(*base).is_none_or(|base| self.is_open(base, depth + 1)))
    }
}

/// What there is to know about one; none for a template whose arguments are not in its name.
fn outline(
    units: &Units<'_>,
    unit: usize,
    context: &Context,
    place: Place,
    is_instance: bool,
    names: &FxHashMap<Place, Key>,
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
    let is_part = |tag| matches!(tag, constants::DW_TAG_member | constants::DW_TAG_inheritance);
    while has_children && !entries.is_empty() && entries.depth() > 0 {
        match entries.read_if(&mut entry, is_part)? {
            Step::End => {}
            Step::Other if !is_instance && is_template_argument(entry.tag) => {
                return Ok(None);
            }
            Step::Other => entries.skip_children(&mut entry, context)?,
            Step::Wanted if entry.tag == constants::DW_TAG_member => {
                outline.has_data |= entry.has(constants::DW_AT_data_member_location)
                    || entry.has(constants::DW_AT_data_bit_offset);
            }
            Step::Wanted => {
                let base = entry.target(units, unit, constants::DW_AT_type);
                let base = base.and_then(|place| names.get(&place));
                outline.is_open |= base.is_none() || entry.flag(constants::DW_AT_virtuality);
                bases.extend(base);
            }
        }
    }
    outline.bases = bases.into();
    Ok(Some(outline))
}

impl Loader<'_, '_> {
    /// Makes a type of a class of which the outline is known; none if it is not.
    pub(super) fn outlined(&mut self, unit: usize, place: Place) -> Result<Option<Type>> {
        let (Some(outlines), Some(key)) = (self.outlines, self.key_of(unit, place)?) else { return Ok(None) };
        let Some(outline) = outlines.get(key) else { return Ok(None) };
        let mut record = Record::new(RecordKind::Class, NameId::NONE, outline.size);
        record.language = Language(constants::DW_LANG_C_plus_plus.0);
        record.declaration = true;
        if !outlines.is_empty(outline, 0) {
            // so that nobody takes it for one without data
            let data = Member::new(NameId::NONE, TypeId::VOID, 0);
            record.members = self.types.push_members(&[data])?;
        }
        let id = self.types.push_record(record)?;
        self.outlined.insert(id, outlines.is_open(outline, 0));
        Ok(Some(Type::Record(id)))
    }

    /// Whether a class has virtual bases, and one of which only the outline is known: where they lie
    /// cannot be told then.
    pub(super) fn needs_more_than_outlines(&self, records: &[usize]) -> bool {
        if self.outlined.is_empty() {
            return false;
        }
        records.iter().any(|index| {
            let id = RecordId(*index as u32);
            let Some(bases) = all_bases(&self.types, id) else { return true };
            let is_virtual = |id: &RecordId| {
                let members = self.types.members(self.types.record(*id));
                members.iter().any(|member| member.kind == MemberKind::VirtualBase)
            };
            let outlined = || bases.iter().filter_map(|base| self.outlined.get(base));
            outlined().any(|is_open| *is_open)
                || outlined().next().is_some() && (is_virtual(&id) || bases.iter().any(is_virtual))
        })
    }
}
