//! Split DWARF: units whose types the compiler has put into other files.

use super::sections::{Reading, Sections};
use super::source::{Role, UnitSections};
use super::units::Units;
use crate::companion::{Companion, Companions, Contents, looked_in};
use crate::elf::Naming;
use crate::error::Result;
use gimli::{AttributeValue, UnitType, constants};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::path::PathBuf;

/// A unit that only says where its types are.
pub(super) struct Skeleton {
    unit: usize,
    id: u64,
    name: Vec<u8>,
    folder: Vec<u8>,
}

/// Finds the units whose types are in other files.
pub(super) fn skeletons(units: &Units<'_>) -> Result<Vec<Skeleton>> {
    let mut skeletons = Vec::new();
    for unit in units.order().iter().copied() {
        let header = &units.head(unit).header;
        let may_be = match header.type_() {
            UnitType::Skeleton(_) => true,
            UnitType::Compilation => header.version() < 5 && names_a_file(units, unit),
            _ => false,
        };
        if may_be && let Some(skeleton) = skeleton(units, unit)? {
            skeletons.push(skeleton);
        }
    }
    Ok(skeletons)
}

/// Returns `true` if the first DIE of a unit names a split file (`.dwo`).
fn names_a_file(units: &Units<'_>, unit: usize) -> bool {
    let names = [constants::DW_AT_GNU_dwo_name, constants::DW_AT_dwo_name];
    units
        .root_abbreviation(unit)
        .is_ok_and(|root| root.attributes.iter().any(|attribute| names.contains(attribute)))
}

fn skeleton(units: &Units<'_>, unit: usize) -> Result<Option<Skeleton>> {
    let context = units.context(unit)?;
    let (mut name, mut folder, mut id) = (None, None, header_id(units, unit));
    for (attribute, value) in units.root(unit, &context)?.attributes() {
        match *attribute {
            constants::DW_AT_dwo_name | constants::DW_AT_GNU_dwo_name => {
                name = units.string(unit, &context, value);
            }
            constants::DW_AT_comp_dir => folder = units.string(unit, &context, value),
            constants::DW_AT_GNU_dwo_id => id = number(value).or(id),
            _ => {}
        }
    }
    let (Some(name), Some(id)) = (name, id) else { return Ok(None) };
    Ok(Some(Skeleton { unit, id, name: name.to_vec(), folder: folder.unwrap_or_default().to_vec() }))
}

fn number(value: &AttributeValue<super::Slice<'_>>) -> Option<u64> {
    match *value {
        AttributeValue::Data8(number) | AttributeValue::Udata(number) => Some(number),
        _ => None,
    }
}

/// Returns the identifier that connects a skeleton and its split unit, where the header has it.
fn header_id(units: &Units<'_>, unit: usize) -> Option<u64> {
    match units.get(unit).header.type_() {
        UnitType::Skeleton(id) | UnitType::SplitCompilation(id) => Some(id.0),
        _ => None,
    }
}

/// A file with what was split off.
pub(super) struct OpenedSplitFile {
    contents: Contents,
    name: String,
}

/// A part of a file with what was split off.
pub(super) struct LoadedPart<'a> {
    sections: Sections<'a>,
    name: String,
}

/// The split units that are missing.
#[derive(Default)]
pub(super) struct Missing {
    files: Vec<(String, Vec<PathBuf>)>,
    foreign: Vec<String>,
}

/// Opens the package, or else each of the files.
pub(super) fn open(
    skeletons: &[Skeleton],
    companions: &dyn Companions,
    missing: &mut Missing,
) -> Vec<OpenedSplitFile> {
    if skeletons.is_empty() {
        return Vec::new();
    }
    let package = match companions.open(Companion::Package) {
        Ok(contents) => return vec![OpenedSplitFile { contents, name: "the package of split units".into() }],
        Err(places) => places,
    };
    let mut names: Vec<_> = skeletons.iter().map(|skeleton| (&skeleton.name, &skeleton.folder)).collect();
    // compilers that optimise at link time put several units into one file
    let mut seen = rustc_hash::FxHashSet::default();
    names.retain(|name| seen.insert(*name));
    let open = |(name, folder): &(&Vec<u8>, &Vec<u8>)| {
        let text = String::from_utf8_lossy(name).into_owned();
        match companions.open(Companion::Split { name, folder }) {
            Ok(contents) => Ok(OpenedSplitFile { contents, name: text }),
            Err(places) => Err((text, places)),
        }
    };
    let mut opened = Vec::new();
    for result in names.par_iter().map(open).collect::<Vec<_>>() {
        match result {
            Ok(file) => opened.push(file),
            Err((name, mut places)) => {
                places.extend(package.iter().cloned());
                missing.files.push((name, places));
            }
        }
    }
    opened
}

/// Reads the sections of what was opened. What is no ELF file with such sections counts as missing.
pub(super) fn load<'a>(
    opened: &'a [OpenedSplitFile],
    reading: &Reading,
    missing: &mut Missing,
) -> Vec<LoadedPart<'a>> {
    let load = |file: &'a OpenedSplitFile| (file, Sections::of(&file.contents, Naming::Split, reading));
    let mut loaded = Vec::new();
    for (file, sections) in opened.par_iter().map(load).collect::<Vec<_>>() {
        match sections {
            Ok(sections) => loaded.push(LoadedPart { sections, name: file.name.clone() }),
            Err(error) => missing.foreign.push(format!("{}: {error}", file.name)),
        }
    }
    loaded
}

/// Adds the units that were split off, each in the place of its skeleton.
pub(super) fn add<'a>(
    units: &mut Units<'a>,
    skeletons: &[Skeleton],
    loaded: &'a [LoadedPart<'a>],
    missing: &mut Missing,
) -> Result<()> {
    let mut by_id: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
    // type units that came with a unit, and those of files in which no unit was found
    let mut types: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
    for file in loaded {
        if file.sections.is_little_endian() != units.little_endian {
            missing.foreign.push(format!("{}: of another byte order", file.name));
            continue;
        }
        let source = UnitSections::new(&file.sections, Role::Split, file.name.clone(), units.end())?;
        let added = units.add(source)?;
        let mut first = None;
        for unit in added.clone() {
            if let Some(id) = split_id(units, unit)? {
                by_id.entry(id).or_default().push(unit);
                first = first.or(Some(unit));
            }
        }
        let is_type = |unit: &usize| {
            matches!(units.get(*unit).header.type_(), UnitType::Type { .. } | UnitType::SplitType { .. })
                && !units.repeats(*unit)
        };
        types.entry(first.unwrap_or(usize::MAX)).or_default().extend(added.filter(is_type));
    }
    let mut of_skeleton: FxHashMap<usize, &Skeleton> = FxHashMap::default();
    of_skeleton.extend(skeletons.iter().map(|skeleton| (skeleton.unit, skeleton)));
    let mut order = Vec::with_capacity(units.order().len());
    let mut absent = Vec::new();
    for unit in units.order().to_vec() {
        let Some(skeleton) = of_skeleton.get(&unit) else {
            order.push(unit);
            continue;
        };
        match by_id.remove(&skeleton.id) {
            Some(split) => {
                for split in split {
                    units.set_skeleton(split, unit);
                    order.push(split);
                    order.append(&mut types.remove(&split).unwrap_or_default());
                }
            }
            None => absent.push(*skeleton),
        }
    }
    units.set_order(order);
    missing.note_absent(&absent, loaded);
    Ok(())
}

/// Returns the identifier that connects a split unit and its skeleton.
fn split_id(units: &Units<'_>, unit: usize) -> Result<Option<u64>> {
    let header = &units.get(unit).header;
    if header.version() >= 5 || header.type_() != UnitType::Compilation {
        return Ok(header_id(units, unit));
    }
    let context = units.context(unit)?;
    let root = units.root(unit, &context)?;
    Ok(root.value(constants::DW_AT_GNU_dwo_id).as_ref().and_then(number))
}

impl Missing {
    /// Skeletons for which nothing was found, though files were.
    fn note_absent(&mut self, absent: &[&Skeleton], loaded: &[LoadedPart<'_>]) {
        for skeleton in absent {
            let name = String::from_utf8_lossy(&skeleton.name);
            let known = self.files.iter().any(|(file, _)| *file == name)
                || self.foreign.iter().any(|text| text.starts_with(&*name));
            if !known {
                let of = loaded.iter().map(|file| file.name.as_str()).find(|file| *file == name);
                let of = of.or(loaded.first().map(|file| file.name.as_str())).unwrap_or("nowhere");
                self.foreign.push(format!("{name}: no unit of this build in {of}"));
            }
        }
    }

    /// Returns one line about missing split units; `None` if nothing is missing.
    pub(super) fn warning(&self, skeletons: usize) -> Option<String> {
        let (first, rest) = match (self.files.first(), self.foreign.first()) {
            (Some((name, places)), _) => (format!("{name}{}", looked_in(places)), self.files.len() - 1),
            (None, Some(text)) => (text.clone(), self.foreign.len() - 1),
            (None, None) => return None,
        };
        let more = if rest == 0 { String::new() } else { format!(", and {rest} more like it") };
        Some(format!("split DWARF: the types of some of {skeletons} units are missing: {first}{more}"))
    }
}
