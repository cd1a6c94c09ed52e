//! Units that a worker has open, and single entries of any of them.

use super::dies::{Entry, Go, string, walk};
use super::unit::{Enclosing, Unit};
use crate::dwarf::{DebugInfo, UnitEntries};
use gimli::constants::{self, DwAt};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// `DW_AT_go_elem`: what a Go map, channel or slice holds.
const GO_ELEMENT: DwAt = DwAt(0x2902);

/// The longest chain from a concrete DIE to its abstract origin.
const ORIGINS_LIMIT: usize = 16;

/// Template arguments: names and global offsets of the types that they stand for.
type Templates = Rc<[(String, u64)]>;

/// A cache of opened compilation units that also reads single DIEs by their global offsets (across all unit sections):
/// names, types, scopes.
pub struct UnitCache<'i, 'u, 'a> {
    /// The debug information that the units and DIEs are read from.
    pub info: &'i DebugInfo<'u, 'a>,
    units: FxHashMap<usize, Option<Rc<Unit<'u, 'a>>>>,
    entries: FxHashMap<usize, Option<UnitEntries>>,
    templates: FxHashMap<u64, Templates>,
}

impl<'i, 'u, 'a> UnitCache<'i, 'u, 'a> {
    /// Creates an empty cache of the compilation units of `info`.
    pub fn new(info: &'i DebugInfo<'u, 'a>) -> Self {
        UnitCache {
            info,
            units: FxHashMap::default(),
            entries: FxHashMap::default(),
            templates: FxHashMap::default(),
        }
    }

    /// Returns a compilation unit by its index, opened on first use; `None` if it is damaged.
    pub fn unit(&mut self, index: usize) -> Option<Rc<Unit<'u, 'a>>> {
        self.units.entry(index).or_insert_with(|| Unit::open(self.info, index).map(Rc::new)).clone()
    }

    fn entries(&mut self, unit: usize) -> Option<UnitEntries> {
        self.entries.entry(unit).or_insert_with(|| self.info.entries(unit).ok()).clone()
    }

    /// Reads the DIE at a global offset with `read`; `None` if there is none or it cannot be read.
    fn entry<T>(&mut self, place: u64, read: impl FnOnce(&Entry<'a>, usize, &UnitEntries) -> T) -> Option<T> {
        let (unit, offset) = self.info.locate(place)?;
        let entries = self.entries(unit)?;
        let mut read = Some(read);
        let mut result = None;
        walk(self.info, unit, &entries, Some(offset), |entry| {
            result = read.take().map(|read| read(entry, unit, &entries));
            Go::Stop
        });
        result
    }

    /// Returns the target of a DIE's attribute, which the DIE may have from its abstract origin.
    pub(super) fn target(&mut self, place: u64, name: DwAt) -> Option<u64> {
        let info = self.info;
        self.inherited(place, |entry, unit, _| info.target(unit, &entry.raw(name)?))
    }

    /// Returns the global offset (across all unit sections) of the type's DIE of a variable, parameter or function (its
    /// result), given by its own; `None` if it has none (`void`).
    pub fn type_of(&mut self, place: u64) -> Option<u64> {
        self.target(place, constants::DW_AT_type)
    }

    /// Returns the global offset (across all unit sections) of the element type's DIE of a Go map, channel or slice,
    /// given by its own; `None` for other types.
    pub fn go_element(&mut self, place: u64) -> Option<u64> {
        self.target(place, GO_ELEMENT)
    }

    /// Returns `true` if the function whose DIE is at this global offset (across all unit sections) is declared
    /// `noreturn`.
    pub fn is_noreturn(&mut self, place: u64) -> bool {
        self.entry(place, |entry, _, _| entry.has(constants::DW_AT_noreturn)).unwrap_or(false)
    }

    /// Returns the name of the function, variable or type whose DIE is at this global offset (across all unit
    /// sections), taken from its abstract origin or declaration if need be; `None` if it is anonymous.
    pub fn name(&mut self, place: u64) -> Option<String> {
        let info = self.info;
        self.inherited(place, |entry, unit, entries| {
            let name = string(info, unit, entries, entry, constants::DW_AT_name)?;
            Some(String::from_utf8_lossy(name).into_owned())
        })
    }

    fn inherited<T>(
        &mut self,
        mut place: u64,
        read: impl Fn(&Entry<'a>, usize, &UnitEntries) -> Option<T>,
    ) -> Option<T> {
        let info = self.info;
        for _ in 0..ORIGINS_LIMIT {
            let (found, origin) = self.entry(place, |entry, unit, entries| {
                let origin = [constants::DW_AT_abstract_origin, constants::DW_AT_specification]
                    .into_iter()
                    .find_map(|name| info.target(unit, &entry.raw(name)?));
                (read(entry, unit, entries), origin)
            })?;
            if found.is_some() {
                return found;
            }
            place = origin?;
        }
        None
    }

    /// Follows `DW_AT_abstract_origin` and `DW_AT_specification` from a function's or variable's DIE to its first
    /// declaration; returns that DIE's global offset (across all unit sections).
    pub fn declared(&mut self, mut place: u64) -> u64 {
        let info = self.info;
        for _ in 0..ORIGINS_LIMIT {
            let origin = self.entry(place, |entry, unit, _| {
                [constants::DW_AT_abstract_origin, constants::DW_AT_specification]
                    .into_iter()
                    .find_map(|name| info.target(unit, &entry.raw(name)?))
            });
            match origin.flatten() {
                Some(origin) => place = origin,
                None => break,
            }
        }
        place
    }

    /// Returns the template type arguments of the type or function whose DIE is at this global offset (across all unit
    /// sections): each parameter's name and its type's DIE.
    pub fn templates(&mut self, place: u64) -> Rc<[(String, u64)]> {
        if let Some(known) = self.templates.get(&place) {
            return known.clone();
        }
        let templates: Templates = self.read_templates(place).unwrap_or_default().into();
        self.templates.insert(place, templates.clone());
        templates
    }

    fn read_templates(&mut self, place: u64) -> Option<Vec<(String, u64)>> {
        let (unit, offset) = self.info.locate(place)?;
        let entries = self.entries(unit)?;
        let info = self.info;
        let mut found = Vec::new();
        walk(info, unit, &entries, Some(offset), |entry| {
            if entry.depth == 0 {
                return Go::Inside;
            }
            if entry.tag == constants::DW_TAG_template_type_parameter
                && let Some(target) =
                    entry.raw(constants::DW_AT_type).and_then(|value| info.target(unit, &value))
            {
                let name = string(info, unit, &entries, entry, constants::DW_AT_name).unwrap_or_default();
                found.push((String::from_utf8_lossy(name).into_owned(), target));
            }
            Go::Past
        });
        Some(found)
    }

    /// Returns the namespaces and classes that the DIE at a global offset (across all unit sections) is declared in,
    /// joined by `::`; `None` at the top level. A definition is where its declaration is: g++ has those of types with a
    /// unit of their own outside of its namespaces.
    pub fn path(&mut self, place: u64) -> Option<Vec<u8>> {
        let declared = self.declared(place);
        let (unit, offset) = self.info.locate(declared)?;
        let unit = self.unit(unit)?;
        let mut path = unit.path_of(offset);
        // what is in an anonymous struct
        path.retain(|scope| !scope.is_empty());
        (!path.is_empty()).then(|| path.join(&b"::"[..]))
    }

    /// Returns the global offset (across all unit sections) of the class or namespace DIE that directly encloses the
    /// DIE of a member function or type; `None` at the top level.
    pub fn class_of(&mut self, place: u64) -> Option<u64> {
        let (unit, offset) = self.info.locate(place)?;
        let unit = self.unit(unit)?;
        let class = unit.scope_of(offset)?;
        Some(self.info.place(unit.index, class))
    }

    /// Returns the records that contain a type (given by its DIE's global offset across all unit sections), each with
    /// the type's offset in it and how it contains it.
    pub fn parts_of(&mut self, part: u64) -> Vec<Enclosing> {
        let Some((unit, _)) = self.info.locate(part) else { return Vec::new() };
        let info = self.info;
        self.unit(unit).map_or(Vec::new(), |unit| unit.enclosing(info, part).to_vec())
    }

    /// Returns the records that contain a type (given by its DIE's global offset across all unit sections), as pairs
    /// of the record's DIE and the type's offset in it.
    pub fn enclosing(&mut self, part: u64) -> Vec<(u64, u64)> {
        self.parts_of(part).into_iter().map(|outer| (outer.record, outer.at)).collect()
    }

    /// Returns the structs and classes that contain another one (`base`) at offset 0, as a derived class contains its
    /// first base. All are given by their DIEs' global offsets (across all unit sections).
    pub fn derived(&mut self, base: u64) -> Vec<u64> {
        let starts = |(outer, at): (u64, u64)| (at == 0).then_some(outer);
        self.enclosing(base).into_iter().filter_map(starts).collect()
    }
}
