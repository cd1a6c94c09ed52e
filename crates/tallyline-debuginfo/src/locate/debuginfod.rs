//! Files by their build-id from a server, through debuginfod's own client, where it is installed and told
//! of a server.

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The kind of file to request from debuginfod for a build-id: the executable or its debug information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Artifact {
    /// The program or library.
    Executable,
    /// The debug information of the program or library.
    DebugInfo,
}

/// Fetches a file from debuginfod by build-id, unless it is cached, and returns its path in the client's cache. `None`
/// if no server has it, or without `DEBUGINFOD_URLS`.
///
/// Runs `debuginfod-find`, which also caches negative answers and takes its time limit from `DEBUGINFOD_TIMEOUT`.
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
