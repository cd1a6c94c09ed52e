//! The alternate file, into which dwz moves what several files share.

use super::sections::{Reading, Sections};
use crate::companion::{Companion, Companions, Contents, looked_in};
use crate::elf::{self, File, Naming};
use crate::error::Result;
use crate::model::{Type, TypeId, Types};
use object::ReadRef;

/// A debug file's alternate file, opened.
pub(super) struct OpenedAlternate {
    contents: Contents,
    wanted: elf::Alternate,
}

/// Opens the file that a file's types are in too; none if there is none. One that is missing is a
/// warning.
pub(super) fn open<'a, R: ReadRef<'a>>(
    file: &File<'a, R>,
    companions: &dyn Companions,
    warnings: &mut Vec<String>,
) -> Result<Option<OpenedAlternate>> {
    let Some(wanted) = file.alternate()? else { return Ok(None) };
    let companion = Companion::Alternate { name: &wanted.name, build_id: &wanted.build_id };
    match companions.open(companion) {
        Ok(contents) => Ok(Some(OpenedAlternate { contents, wanted })),
        Err(places) => {
            warnings.push(format!("what dwz took out is missing: {}{}", wanted.name(), looked_in(&places)));
            Ok(None)
        }
    }
}

impl OpenedAlternate {
    /// Reads the sections; none, and a warning, if the file is not the one that is wanted.
    pub(super) fn load(&self, reading: &Reading, warnings: &mut Vec<String>) -> Option<Sections<'_>> {
        let name = self.wanted.name();
        let problem = match Sections::of(&self.contents, Naming::Plain, reading) {
            Ok(sections) if sections.id.as_deref() == Some(&self.wanted.build_id[..]) => {
                return Some(sections);
            }
            Ok(_) => "it is of another build".to_string(),
            Err(error) => error.to_string(),
        };
        warnings.push(format!("what dwz took out is missing: {name}: {problem}"));
        None
    }

    /// Returns the name of the file.
    pub(super) fn name(&self) -> String {
        self.wanted.name()
    }
}

/// The depth to which anonymous records are searched.
const DEPTH: usize = 16;

/// Takes from the list what has members whose types are in the missing file: their sizes would be
/// 0, and the layout a wrong one. How many those are.
pub(super) fn leave_out_incomplete(types: &mut Types) -> usize {
    let keep: Vec<bool> = types.listed.iter().map(|id| is_complete(types, *id, DEPTH)).collect();
    let mut kept = keep.iter();
    types.listed.retain(|_| kept.next() == Some(&true));
    let mut kept = keep.iter();
    types.sources.retain(|_| kept.next() == Some(&true));
    keep.iter().filter(|kept| !**kept).count()
}

fn is_complete(types: &Types, id: TypeId, depth: usize) -> bool {
    let id = types.strip(id);
    match types.get(id) {
        Type::Missing => false,
        Type::Array(array) if depth != 0 => is_complete(types, types.array(array).of, depth - 1),
        Type::Record(record) if depth != 0 && (depth == DEPTH || !types.type_name(id).is_some()) => {
            types.members(types.record(record)).iter().all(|member| is_complete(types, member.ty, depth - 1))
        }
        _ => true,
    }
}
