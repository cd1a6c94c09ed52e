//! Debug information in a file of its own, as distributions ship it.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tallyline_layout::model::Types;
use tallyline_layout::{Elsewhere, Request, Result, elsewhere, read_file};

/// Where distributions put debug files.
const DEBUG: &str = "/usr/lib/debug";

/// Reads the debug file of a stripped program; none if it has none.
///
/// A debug file has to be of the same build: it is found by the build's id, or by the link's name if
/// the ids agree.
pub(super) fn read(program: &Path, request: &Request) -> Option<Result<Types>> {
    let said = elsewhere(&File::open(program).ok()?).ok()?;
    let program = program.canonicalize().ok()?;
    let file = candidates(&program, &said).into_iter().filter(|path| *path != program).find_map(|path| {
        let file = File::open(path).ok()?;
        let other = elsewhere(&file).ok()?;
        (other.build_id == said.build_id).then_some(file)
    })?;
    // looked at from its start again: the ids were read from elsewhere in it
    std::io::Seek::rewind(&mut &file).ok()?;
    Some(read_file(&file, request))
}

fn candidates(program: &Path, said: &Elsewhere) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    if let Some([first, rest @ ..]) = said.build_id.as_deref() {
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        paths.push(Path::new(DEBUG).join(format!(".build-id/{first:02x}/{rest}.debug")));
    }
    if let (Some(link), Some(folder)) = (&said.link, program.parent()) {
        // a name, and not a path to anywhere
        if let Some(name) = Path::new(OsStr::from_bytes(link)).file_name() {
            paths.push(folder.join(name));
            paths.push(folder.join(".debug").join(name));
            if let Ok(inside) = folder.strip_prefix("/") {
                paths.push(Path::new(DEBUG).join(inside).join(name));
            }
        }
    }
    paths
}
