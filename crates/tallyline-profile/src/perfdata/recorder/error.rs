//! Why something could not be recorded, and what to do about it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why something could not be recorded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The command could not be started.
    #[error("cannot run {command}: {source}")]
    Command {
        /// Its first word.
        command: String,
        /// Why.
        source: io::Error,
    },

    /// The file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },

    /// The process is not there.
    #[error("no process {0}")]
    NoProcess(i32),

    /// The kernel forbids it.
    #[error("the kernel does not permit to sample {what}{setting}: {advice}")]
    Forbidden {
        /// What was to be sampled.
        what: &'static str,
        /// The setting that forbids it.
        setting: String,
        /// What to do.
        advice: &'static str,
    },

    /// This kernel, or what it runs in, has no such system call.
    #[error(
        "this system has no perf_event_open: an emulator or a container's seccomp profile may keep it away; run it \
         on the host, or give the container the capability PERFMON"
    )]
    Missing,

    /// The event cannot be sampled here.
    #[error("event {name}: {reason}")]
    Event {
        /// The event.
        name: String,
        /// Why.
        reason: String,
    },

    /// Another failure of the system.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl RecordError {
    pub(super) fn command(command: &[OsString], source: io::Error) -> Self {
        let command = command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        Self::Command { command, source }
    }

    pub(super) fn file(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.to_owned(), source }
    }
}
