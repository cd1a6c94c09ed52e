//! Files that hold types of another one: what the compiler split off, and what dwz took out.

use super::folders::{self, path_of};
use crate::{Companion, Companions, Contents, debug_file_ref};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Finder of a debug file's companions (`.dwo`, `.dwp`, dwz's alternate file) on disk: beside the file, and at the
/// paths that its build recorded.
pub struct CompanionFinder {
    // the file, and the program that it is the debug file of, if it is one
    files: Vec<PathBuf>,
}

impl CompanionFinder {
    /// Creates a finder of the companion files (`.dwo`, `.dwp`, dwz's alternate file) of the debug file at this path.
    pub fn new(file: &Path) -> CompanionFinder {
        CompanionFinder { files: vec![file.to_path_buf()] }
    }

    /// Creates a finder of the companion files (`.dwo`, `.dwp`, dwz's alternate file) of a program's separate debug
    /// file; it looks beside the debug file and beside the program.
    pub fn of_debug_file(debug: &Path, program: &Path) -> CompanionFinder {
        CompanionFinder { files: vec![debug.to_path_buf(), program.to_path_buf()] }
    }

    /// Returns the folders that the files are in, as they are named and where they really are.
    fn folders(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = Vec::new();
        for file in &self.files {
            let real = file.canonicalize().ok();
            for folder in
                [Some(file.as_path()), real.as_deref()].into_iter().flatten().filter_map(Path::parent)
            {
                if !folders.iter().any(|known| known == folder) {
                    folders.push(folder.to_path_buf());
                }
            }
        }
        folders
    }

    fn split(&self, name: &Path, folder: &Path) -> Vec<PathBuf> {
        // where it was compiled, then beside the program: trees are moved as a whole, or only files
        let mut paths = vec![folder.join(name)];
        for beside in self.folders() {
            if name.is_relative() {
                paths.push(beside.join(name));
            }
            paths.extend(name.file_name().map(|name| beside.join(name)));
        }
        paths
    }

    fn package(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for file in &self.files {
            let mut name = file.clone().into_os_string();
            name.push(".dwp");
            paths.push(name.into());
            // program.debug was made of program
            if file.extension().is_some_and(|extension| extension == "debug") {
                paths.push(file.with_extension("dwp"));
            }
        }
        paths
    }

    fn alternate(&self, name: &Path, build_id: &[u8]) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = self.folders().iter().map(|folder| folder.join(name)).collect();
        paths.extend(folders::by_build_id(build_id));
        let shared = name.file_name().into_iter();
        paths
            .extend(shared.flat_map(|name| {
                folders::folders().iter().map(move |folder| folder.join(".dwz").join(name))
            }));
        paths
    }
}

impl Companions for CompanionFinder {
    fn open(&self, wanted: Companion<'_>) -> Result<Contents, Vec<PathBuf>> {
        let mut paths = match wanted {
            Companion::Split { name, folder } => self.split(&path_of(name), &path_of(folder)),
            Companion::Package => self.package(),
            Companion::Alternate { name, build_id } => self.alternate(&path_of(name), build_id),
        };
        let mut seen = std::collections::HashSet::new();
        paths.retain(|path| seen.insert(path.clone()));
        // one of another build may be in the way of the right one; if it is all there is, the
        // reader says so
        let mut foreign = None;
        for path in &paths {
            // the name is the file's own: it may be a pipe's, which would never open
            if !path.metadata().is_ok_and(|metadata| metadata.is_file()) {
                continue;
            }
            let Ok(file) = File::open(path) else { continue };
            match wanted {
                Companion::Alternate { build_id, .. }
                    if debug_file_ref(&file)
                        .is_ok_and(|said| said.build_id.is_some_and(|own| own != build_id)) =>
                {
                    foreign.get_or_insert(file);
                }
                _ => return Ok(Contents::File(file)),
            }
        }
        foreign.map(Contents::File).ok_or(paths)
    }
}
