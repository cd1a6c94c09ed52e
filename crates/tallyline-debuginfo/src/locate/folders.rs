//! The folders of debug files, and the names of builds in them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The folder of distributions' debug files.
const DEBUG: &str = "/usr/lib/debug";

/// The folders that were set for the whole program.
static FOLDERS: OnceLock<Vec<PathBuf>> = OnceLock::new();

/// Sets the folders in which separate debug files are searched (default `/usr/lib/debug`), in this order, for the whole
/// process. Only the first call has an effect.
pub fn set_debug_folders(folders: Vec<PathBuf>) {
    let _ = FOLDERS.set(folders);
}

/// Returns the folders that debug files are in: those that were set, those that the environment names with colons between, or
/// the system's.
pub(super) fn folders() -> &'static [PathBuf] {
    FOLDERS.get_or_init(|| {
        let named = std::env::var_os("TALLYLINE_DEBUG_FOLDER").filter(|value| !value.is_empty());
        named.map_or_else(|| vec![DEBUG.into()], |named| std::env::split_paths(&named).collect())
    })
}

/// Returns a path as a file has it.
pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}

/// Returns the candidate paths of the debug file of a build.
pub(super) fn by_build_id(build_id: &[u8]) -> impl Iterator<Item = PathBuf> {
    within(build_id).into_iter().flat_map(|within| folders().iter().map(move |folder| folder.join(&within)))
}

/// Returns the name of a build's debug file in a folder of them.
pub(super) fn within(build_id: &[u8]) -> Option<String> {
    let [first, rest @ ..] = build_id else { return None };
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!(".build-id/{first:02x}/{rest}.debug"))
}
