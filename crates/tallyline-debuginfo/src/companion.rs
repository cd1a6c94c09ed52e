//! Other files that the types of a file may be in. This crate opens none: it asks for them.

use std::fs::File;
use std::path::PathBuf;

/// A reference from a debug file to another file with parts of its debug information: a `.dwo` file of split DWARF, a
/// `.dwp` package, or the alternate file that dwz made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Companion<'a> {
    /// The part that the compiler split off from one unit (`.dwo`).
    Split {
        /// The name of the `.dwo` file, as the unit has it: absolute, or relative to the folder.
        name: &'a [u8],
        /// The folder in which the unit was compiled; empty if the unit does not say.
        folder: &'a [u8],
    },
    /// The parts that were split off from all units of a program, in one file (`.dwp`).
    Package,
    /// The supplementary file into which dwz moved what several files share.
    Alternate {
        /// The name of the alternate file: absolute, or relative to the file that names it.
        name: &'a [u8],
        /// The identifier of the alternate file's build.
        build_id: &'a [u8],
    },
}

/// The contents of a companion file (`.dwo`, `.dwp`, dwz's alternate file): bytes in memory, or an open file.
#[derive(Debug)]
pub enum Contents {
    /// An open file, of which only the needed parts are read.
    File(File),
    /// All bytes of the file.
    Bytes(Vec<u8>),
}

/// Finder of a debug file's companions (`.dwo`, `.dwp`, dwz's alternate file), implemented by the caller, as the reader
/// itself opens no files.
///
/// The reader checks that a companion belongs to the file that refers to it, where the format has an identifier to
/// check.
pub trait Companions: Sync {
    /// Opens a companion. If there is none: the places where it was looked for, for the message.
    fn open(&self, wanted: Companion<'_>) -> Result<Contents, Vec<PathBuf>>;
}

/// A [`Companions`] that finds nothing: types in companion files (`.dwo`, `.dwp`, dwz's alternate file) are left out,
/// with a warning.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCompanions;

impl Companions for NoCompanions {
    fn open(&self, _wanted: Companion<'_>) -> Result<Contents, Vec<PathBuf>> {
        Err(Vec::new())
    }
}

/// Formats, for an error message, the paths at which a companion file (`.dwo`, `.dwp`, dwz's alternate file) was
/// searched: ` (looked for in a, b)`; empty if there are none.
pub(crate) fn looked_in(places: &[PathBuf]) -> String {
    if places.is_empty() {
        return String::new();
    }
    let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
    format!(" (looked for in {})", places.join(", "))
}
