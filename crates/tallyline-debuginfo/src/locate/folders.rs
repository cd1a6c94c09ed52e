//! The folders of debug files, and the names of builds in them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The folder of distributions' debug files.
const DEBUG: &str = "/usr/lib/debug";

/// Returns the folder that debug files are in: the system's, or the one that the environment names.
pub(super) fn folder() -> PathBuf {
    std::env::var_os("TALLYLINE_DEBUG_FOLDER").map_or_else(|| DEBUG.into(), PathBuf::from)
}

/// Returns a path as a file has it.
pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}

/// Returns the path of the debug file of a build.
pub(super) fn by_build_id(build_id: &[u8]) -> Option<PathBuf> {
    Some(folder().join(within(build_id)?))
}

/// Returns the name of a build's debug file in a folder of them.
pub(super) fn within(build_id: &[u8]) -> Option<String> {
    let [first, rest @ ..] = build_id else { return None };
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!(".build-id/{first:02x}/{rest}.debug"))
}
