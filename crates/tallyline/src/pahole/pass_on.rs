//! Options without an implementation here are passed on to the next `pahole` on the PATH.

use std::convert::Infallible;
use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// Set for a program that this one runs, so that two of them never run each other.
const PASSED_ON: &str = "TALLYLINE_PAHOLE_PASSED_ON";

/// Becomes the next `pahole`; one line about why that cannot be.
pub(super) fn pass_on(option: &str, does: &str, words: &[OsString]) -> Result<Infallible, String> {
    let advice = "install the package dwarves, and leave its pahole on the PATH";
    let Some(next) = next() else {
        return Err(format!("--{option} {does}, which tallyline does not: {advice}"));
    };
    let error = Command::new(&next).args(words).env(PASSED_ON, "1").exec();
    Err(format!("--{option} {does}, which tallyline does not, and {} cannot be run: {error}", next.display()))
}

/// Returns the first `pahole` on the PATH that is not this program.
fn next() -> Option<PathBuf> {
    if env::var_os(PASSED_ON).is_some() {
        return None;
    }
    let own = env::current_exe().and_then(|path| path.canonicalize()).ok()?;
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join("pahole")).find(|file| {
        use std::os::unix::fs::PermissionsExt;
        let runs = file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0);
        runs && file.canonicalize().is_ok_and(|real| real != own)
    })
}
