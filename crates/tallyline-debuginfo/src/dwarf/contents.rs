//! The contents of types, down to base types: they decide whether two types of one name in different units
//! are the same.

use super::Slice;
use super::entry::{Entries, Entry, Interest, Step};
use super::hash::{Hash, hash_member};
use super::offset::GlobalDieOffset;
use super::tags::is_record;
use super::units::{Context, Units};
use crate::error::{Error, Result};
use crate::lookup::naming::canonical;
use gimli::AttributeValue;
use gimli::constants::{self, DwTag};
use rustc_hash::FxHashMap;
use std::hash::Hasher;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The nesting depth of types at which the answer is cut short; real programs stay below thirty.
const DEPTH_LIMIT: usize = 64;

/// The number of steps that are taken from a pointer to a name.
const POINTER_LIMIT: usize = 16;

/// Of how many units what is needed to read them is kept: entries of one mostly refer to each other.
const CONTEXTS: usize = 4;

/// Equal for types that are made of the same, whatever the unit.
type Key = (u64, u64);

/// Contents of types, each computed once. What is pointed to counts by its name, and so does what is
/// only declared.
pub(super) struct Contents<'u, 'a> {
    units: &'u Units<'a>,
    known: FxHashMap<GlobalDieOffset, Key>,
    contexts: Vec<(usize, Context)>,
    /// Entries that may still be read, by all workers: a damaged file can have the same ones read again
    /// and again.
    budget: &'u AtomicUsize,
}

impl<'u, 'a> Contents<'u, 'a> {
    /// Creates a comparer of types in these units.
    pub(super) fn new(units: &'u Units<'a>, budget: &'u AtomicUsize) -> Contents<'u, 'a> {
        Contents { units, known: FxHashMap::default(), contexts: Vec::new(), budget }
    }

    /// Returns the number of DIEs that all workers together may read.
    pub(super) fn budget_of(units: &Units<'_>) -> AtomicUsize {
        AtomicUsize::new(units.total_bytes().saturating_mul(2).saturating_add(1000))
    }

    /// Returns the content of the type at a place.
    pub(super) fn of(&mut self, place: GlobalDieOffset) -> Result<Key> {
        self.nested(Some(place), 0)
    }

    /// Returns `true` if a record without a name is defined at a place.
    pub(super) fn is_untagged(&mut self, place: GlobalDieOffset) -> Result<bool> {
        let Some((unit, context)) = self.context(place)? else { return Ok(false) };
        let mut entry = Entry::default();
        let mut entries = Entries::at(self.units, unit, &context, place)?;
        self.spend()?;
        let is_found = !entries.is_empty()
            && entries
                .read_as(&mut entry, |tag| if is_record(tag) { Interest::Read } else { Interest::Leave })?
                == Step::Wanted;
        let others = [
            constants::DW_AT_name,
            constants::DW_AT_declaration,
            constants::DW_AT_signature,
            constants::DW_AT_specification,
        ];
        Ok(is_found && !others.into_iter().any(|attribute| entry.has(attribute)))
    }

    fn nested(&mut self, place: Option<GlobalDieOffset>, depth: usize) -> Result<Key> {
        let Some(place) = place.filter(|_| depth < DEPTH_LIMIT) else { return Ok(Key::default()) };
        if let Some(key) = self.known.get(&place) {
            return Ok(*key);
        }
        // a type that holds itself is damaged: it counts nothing to itself
        self.known.insert(place, Key::default());
        let Some((unit, context)) = self.context(place)? else { return Ok(Key::default()) };
        let mut hash = Hash::default();
        let mut entry = Entry::default();
        let mut entries = Entries::at(self.units, unit, &context, place)?;
        if !self.read(&mut entries, &mut entry)? {
            return Ok(Key::default());
        }
        self.write(unit, &context, &mut entries, &mut entry, depth, &mut hash)?;
        let key = hash.key();
        self.known.insert(place, key);
        Ok(key)
    }

    fn write(
        &mut self,
        unit: usize,
        context: &Context,
        entries: &mut Entries<'_, 'a>,
        entry: &mut Entry<'a>,
        depth: usize,
        hash: &mut Hash,
    ) -> Result<()> {
        use constants as c;
        let tag = entry.tag;
        // one unit may say class where another one says struct
        let kind = if is_record(tag) && tag != c::DW_TAG_union_type { c::DW_TAG_structure_type } else { tag };
        hash.write_u64(kind.0.into());
        self.write_name(unit, context, entry, hash);
        let target = |entry: &Entry<'a>| entry.target(self.units, unit, c::DW_AT_type);
        match tag {
            c::DW_TAG_pointer_type | c::DW_TAG_reference_type | c::DW_TAG_rvalue_reference_type => {
                let target = target(entry);
                self.write_pointee(target, hash)
            }
            c::DW_TAG_ptr_to_member_type => {
                let (class, target) =
                    (entry.target(self.units, unit, c::DW_AT_containing_type), target(entry));
                self.write_pointee(class, hash)?;
                self.write_pointee(target, hash)
            }
            c::DW_TAG_subroutine_type | c::DW_TAG_subprogram => Ok(()),
            _ if is_record(tag) => self.write_record(unit, context, entries, entry, depth, hash),
            c::DW_TAG_enumeration_type => {
                entry.hash_numbers(&[c::DW_AT_byte_size], hash);
                match depth {
                    0 => self.write_enumerators(unit, context, entries, entry, hash),
                    _ => Ok(()),
                }
            }
            _ => {
                let numbers = [
                    c::DW_AT_byte_size,
                    c::DW_AT_bit_size,
                    c::DW_AT_encoding,
                    c::DW_AT_alignment,
                    c::DW_AT_lower_bound,
                    c::DW_AT_upper_bound,
                    c::DW_AT_count,
                ];
                entry.hash_numbers(&numbers, hash);
                let target = target(entry);
                if tag == c::DW_TAG_array_type {
                    self.write_dimensions(entries, entry, hash)?;
                }
                self.write_content(target, depth, hash)
            }
        }
    }

    /// Hashes the members of a record and of its variants.
    fn write_record(
        &mut self,
        unit: usize,
        context: &Context,
        entries: &mut Entries<'_, 'a>,
        entry: &mut Entry<'a>,
        depth: usize,
        hash: &mut Hash,
    ) -> Result<()> {
        use constants as c;
        if entry.flag(c::DW_AT_declaration) || entry.has(c::DW_AT_signature) {
            return Ok(());
        }
        entry.hash_numbers(&[c::DW_AT_byte_size, c::DW_AT_alignment], hash);
        let level = entries.depth();
        let has_children = entry.has_children;
        while has_children && !entries.is_empty() && entries.depth() >= level {
            self.spend()?;
            let interest = |tag| match tag {
                c::DW_TAG_member | c::DW_TAG_inheritance => Interest::Read,
                c::DW_TAG_variant_part | c::DW_TAG_variant => Interest::Read,
                _ => Interest::Leave,
            };
            if entries.read_as(entry, interest)? != Step::Wanted {
                continue;
            }
            hash.write_u64(entry.tag.0.into());
            if matches!(entry.tag, c::DW_TAG_variant_part | c::DW_TAG_variant) {
                entry.hash_numbers(&[c::DW_AT_discr_value], hash);
                continue;
            }
            entry.note_traits();
            hash_member(self.units, unit, context, &entry.traits, hash);
            // a static member, which may be of the class itself
            if !entry.flag(c::DW_AT_external) && !entry.flag(c::DW_AT_declaration) {
                entry.hash_numbers(&[c::DW_AT_alignment], hash);
                let target = entry.target(self.units, unit, c::DW_AT_type);
                self.write_content(target, depth, hash)?;
            }
        }
        Ok(())
    }

    fn write_enumerators(
        &mut self,
        unit: usize,
        context: &Context,
        entries: &mut Entries<'_, 'a>,
        entry: &mut Entry<'a>,
        hash: &mut Hash,
    ) -> Result<()> {
        let level = entries.depth();
        let has_children = entry.has_children;
        while has_children && !entries.is_empty() && entries.depth() >= level {
            self.spend()?;
            if entries.read(entry)? {
                self.write_name(unit, context, entry, hash);
                entry.hash_numbers(&[constants::DW_AT_const_value], hash);
            }
        }
        Ok(())
    }

    fn write_dimensions(
        &mut self,
        entries: &mut Entries<'_, 'a>,
        entry: &mut Entry<'a>,
        hash: &mut Hash,
    ) -> Result<()> {
        let level = entries.depth();
        let has_children = entry.has_children;
        while has_children && !entries.is_empty() && entries.depth() >= level {
            self.spend()?;
            if entries.read(entry)? {
                let bounds =
                    [constants::DW_AT_lower_bound, constants::DW_AT_upper_bound, constants::DW_AT_count];
                entry.hash_numbers(&bounds, hash);
            }
        }
        Ok(())
    }

    fn write_content(&mut self, place: Option<GlobalDieOffset>, depth: usize, hash: &mut Hash) -> Result<()> {
        let (one, other) = self.nested(place, depth + 1)?;
        hash.write_u64(one);
        hash.write_u64(other);
        Ok(())
    }

    /// Hashes the target of a pointer, up to the first name.
    fn write_pointee(&mut self, mut place: Option<GlobalDieOffset>, hash: &mut Hash) -> Result<()> {
        let mut entry = Entry::default();
        for _ in 0..POINTER_LIMIT {
            let Some(there) = place else { return Ok(()) };
            let Some((unit, context)) = self.context(there)? else { return Ok(()) };
            let mut entries = Entries::at(self.units, unit, &context, there)?;
            if !self.read(&mut entries, &mut entry)? {
                return Ok(());
            }
            if !is_record(entry.tag) {
                hash.write_u64(entry.tag.0.into());
            }
            if self.write_name(unit, &context, &entry, hash) || !leads_on(entry.tag) {
                return Ok(());
            }
            place = entry.target(self.units, unit, constants::DW_AT_type);
        }
        Ok(())
    }

    /// Hashes the name of a DIE; returns false if it has none.
    fn write_name(&self, unit: usize, context: &Context, entry: &Entry<'a>, hash: &mut Hash) -> bool {
        let stored: Option<AttributeValue<Slice<'a>>> = entry.value(constants::DW_AT_name);
        let Some(stored) = stored else {
            hash.write_u8(0);
            return false;
        };
        if entry.tag != constants::DW_TAG_base_type {
            hash.write_u8(1);
            return self.units.hash_string(unit, context, &stored, hash);
        }
        // compilers spell numbers in several ways
        let name = canonical(self.units.string(unit, context, &stored).unwrap_or_default());
        hash.write(if *name == b"_Bool"[..] { b"bool" } else { &name });
        hash.write_u8(2);
        true
    }

    fn read(&self, entries: &mut Entries<'_, 'a>, entry: &mut Entry<'a>) -> Result<bool> {
        self.spend()?;
        Ok(!entries.is_empty() && entries.read(entry)?)
    }

    fn spend(&self) -> Result<()> {
        let less = |left: usize| left.checked_sub(1);
        let spent = self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        let limit = self.units.total_bytes() as u64 * 2;
        spent.map_err(|_| Error::Limit { what: "entries read again and again", limit })?;
        Ok(())
    }

    /// Returns the unit of a DIE with the context to read it; `None` if the DIE is in a missing file or
    /// beyond every unit, which its loader reports.
    fn context(&mut self, place: GlobalDieOffset) -> Result<Option<(usize, Context)>> {
        let Some(unit) = self.units.index_of(place) else { return Ok(None) };
        if let Some((_, context)) = self.contexts.iter().find(|(index, _)| *index == unit) {
            return Ok(Some((unit, context.clone())));
        }
        let context = self.units.context(unit)?;
        self.contexts.truncate(CONTEXTS - 1);
        self.contexts.insert(0, (unit, context.clone()));
        Ok(Some((unit, context)))
    }
}

/// Returns `true` if an unnamed type with this tag is identified by the type that it refers to.
fn leads_on(tag: DwTag) -> bool {
    use constants as c;
    matches!(
        tag,
        c::DW_TAG_pointer_type
            | c::DW_TAG_reference_type
            | c::DW_TAG_rvalue_reference_type
            | c::DW_TAG_const_type
            | c::DW_TAG_volatile_type
            | c::DW_TAG_restrict_type
            | c::DW_TAG_atomic_type
            | c::DW_TAG_array_type
    )
}
