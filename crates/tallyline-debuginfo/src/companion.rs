//! Other files that the types of a file may be in. This crate opens none: it asks for them.

use std::fs::File;
use std::path::PathBuf;

/// A further file that a debug file refers to for types or names: split units, a package of them, or an
/// alternate file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Companion<'a> {
    /// The part that the compiler split off from one unit (`.dwo`).
    Split {
        /// Its name, as the unit has it: absolute, or relative to the folder.
        name: &'a [u8],
        /// The folder in which the unit was compiled; empty if the unit does not say.
        folder: &'a [u8],
    },
    /// The parts that were split off from all units of a program, in one file (`.dwp`).
    Package,
    /// The supplementary file into which dwz moved what several files share.
    Alternate {
        /// Its name: absolute, or relative to the file that names it.
        name: &'a [u8],
        /// The identifier of its build.
        build_id: &'a [u8],
    },
}

/// The contents of a companion file: bytes in memory, or an open file.
#[derive(Debug)]
pub enum Contents {
    /// An open file, of which only the needed parts are read.
    File(File),
    /// All of its bytes.
    Bytes(Vec<u8>),
}

/// Finder of the further files that a debug file refers to, which the caller implements.
///
/// The reader checks that a file belongs to the one that names it, where the format has
/// something to check it by.
pub trait Companions: Sync {
    /// Opens a companion. If there is none: the places where it was looked for, for the message.
    fn open(&self, wanted: Companion<'_>) -> Result<Contents, Vec<PathBuf>>;
}

/// A finder that finds none of the further files of a debug file: their types are reported as missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCompanions;

impl Companions for NoCompanions {
    fn open(&self, _wanted: Companion<'_>) -> Result<Contents, Vec<PathBuf>> {
        Err(Vec::new())
    }
}

/// Formats the places where a further file was searched as `(looked for in a, b)`; empty if nobody looked.
pub(crate) fn looked_in(places: &[PathBuf]) -> String {
    if places.is_empty() {
        return String::new();
    }
    let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
    format!(" (looked for in {})", places.join(", "))
}
