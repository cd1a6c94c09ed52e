//! Debug information in a file of its own, as distributions ship it.

use super::companions::CompanionFinder;
use super::debuginfod::{self, Artifact};
use super::folders::{folders, path_of, within};
use crate::{Companions, DebugFileRef, Error, Result, debug_file_ref};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

/// Finds the separate debug file of a stripped program and calls `read` with it; `None` if the program refers to none.
pub fn read<T>(
    program: &Path,
    open: &File,
    read: &mut dyn FnMut(&File, &dyn Companions) -> Result<T>,
) -> Option<Result<T>> {
    match find(program, open, None)? {
        Ok((path, file)) => {
            let real = program.canonicalize().ok()?;
            Some(read(&file, &CompanionFinder::of_debug_file(&path, &real)))
        }
        Err(looked) => Some(Err(Error::NoDebugFile(looked))),
    }
}

/// Finds and opens the separate debug file of a stripped program. `None` if the program refers to none; an error text
/// that names the searched places if it is not found.
///
/// Searched are the system's debug folders, then those below `root` (the file system root that the program is from),
/// then debuginfod. A debug file must have the program's build-id or, if one of them has none, the checksum that the
/// program records.
pub fn find(
    program: &Path,
    open: &File,
    root: Option<&Path>,
) -> Option<std::result::Result<(PathBuf, File), String>> {
    let said = debug_file_ref(open).ok()?;
    let real = program.canonicalize().ok()?;
    let mut paths = candidates(&real, &said, root);
    paths.retain(|path| *path != real);
    if paths.is_empty() {
        return None;
    }
    let fetched = || debuginfod::find(Artifact::DebugInfo, said.build_id.as_deref()?);
    for path in paths.iter().cloned().chain(std::iter::once_with(fetched).flatten()) {
        // the name is the program's own: it may be a pipe's, which would never open
        if path.metadata().is_ok_and(|metadata| metadata.is_file())
            && let Ok(file) = File::open(&path)
            && is_of(&file, &said)
        {
            return Some(Ok((path, file)));
        }
    }
    let looked: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    Some(Err(looked.join(", ")))
}

fn candidates(program: &Path, said: &DebugFileRef, root: Option<&Path>) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let within = said.build_id.as_deref().and_then(within);
    paths.extend(within.iter().flat_map(|within| folders().iter().map(move |folder| folder.join(within))));
    if let (Some(root), Some(within)) = (root, &within) {
        paths.push(root.join("usr/lib/debug").join(within));
        // as perf's archives have it
        paths.push(root.join(within.trim_end_matches(".debug")).join("debug"));
    }
    if let (Some(link), Some(beside)) = (&said.link, program.parent()) {
        // a name, and not a path to anywhere
        if let Some(name) = path_of(link).file_name() {
            paths.push(beside.join(name));
            paths.push(beside.join(".debug").join(name));
            if let Ok(inside) = beside.strip_prefix("/") {
                paths.extend(folders().iter().map(|folder| folder.join(inside).join(name)));
            }
            if let Some(root) = root
                && let Ok(inside) = beside.strip_prefix(root.canonicalize().unwrap_or_else(|_| root.into()))
            {
                paths.push(root.join("usr/lib/debug").join(inside).join(name));
            }
        }
    }
    paths
}

/// Returns `true` if a debug file is of the build that a program names, by its build-id or checksum.
fn is_of(mut file: &File, said: &DebugFileRef) -> bool {
    let Ok(own) = debug_file_ref(file) else { return false };
    let same = match (&own.build_id, &said.build_id) {
        (Some(own), Some(said)) => own == said,
        _ => said.checksum.is_some_and(|said| file.rewind().is_ok() && checksum(file).ok() == Some(said)),
    };
    // it is read from its start
    same && file.rewind().is_ok()
}

/// Returns the checksum of a whole file.
fn checksum(mut file: &File) -> io::Result<u32> {
    let mut hasher = crc32fast::Hasher::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finalize()),
            read => hasher.update(&piece[..read]),
        }
    }
}
