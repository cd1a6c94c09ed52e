//! Files by their build-id from a server, through debuginfod's own client, where it is installed and told
//! of a server.

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The kind of file that a debuginfod server has of a build: executable or debug file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Artifact {
    /// The program or library.
    Executable,
    /// Its debug information.
    DebugInfo,
}

/// Returns the path of a build's file in the debuginfod cache, after fetching it from a server if it is not
/// there.
///
/// Nothing without `DEBUGINFOD_URLS`, as for the client itself. How long it may take is the client's
/// `DEBUGINFOD_TIMEOUT`; files that no server has are remembered by it, too.
pub fn find(artifact: Artifact, build_id: &[u8]) -> Option<PathBuf> {
    if build_id.is_empty() || std::env::var_os("DEBUGINFOD_URLS").is_none_or(|urls| urls.is_empty()) {
        return None;
    }
    let id: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = match artifact {
        Artifact::Executable => "executable",
        Artifact::DebugInfo => "debuginfo",
    };
    let mut client = Command::new("debuginfod-find");
    client.args([name, &id]).stdin(Stdio::null());
    if std::io::stderr().is_terminal() {
        // it says what it fetches
        client.env("DEBUGINFOD_PROGRESS", "1").stderr(Stdio::inherit());
    } else {
        client.stderr(Stdio::null());
    }
    let output = client.output().ok()?;
    let path = output.stdout.strip_suffix(b"\n").unwrap_or(&output.stdout);
    let path = PathBuf::from(OsStr::from_bytes(path));
    (output.status.success() && path.is_file()).then_some(path)
}
