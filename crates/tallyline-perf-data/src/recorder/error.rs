//! Errors of the recorder, each with what to do about it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Error of a recording that could not be started or finished.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The command could not be started.
    #[error("cannot run {command}: {reason}")]
    Command {
        /// Its first word.
        command: String,
        /// Why.
        reason: io::Error,
    },

    /// The file could not be written.
    #[error("cannot write {}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },

    /// The process is not there.
    #[error("no process {0}")]
    NoProcess(i32),

    /// The thread is not there.
    #[error("no thread {0}")]
    NoThread(i32),

    /// The kernel forbids it.
    #[error("the kernel does not permit to sample {what}{setting}: {advice}")]
    Forbidden {
        /// The thing that was to be sampled.
        what: &'static str,
        /// The setting that forbids it.
        setting: String,
        /// The advice on what to do next.
        advice: &'static str,
    },

    /// This kernel, or what it runs in, has no such system call.
    #[error(
        "this system has no perf_event_open: an emulator or a container's seccomp profile may keep it away; run it \
         on the host, or give the container the capability PERFMON; `record --trace` needs neither"
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
    #[error("cannot {what}: {reason}")]
    System {
        /// The operation that failed.
        what: &'static str,
        /// Why it failed.
        reason: io::Error,
    },
}

impl RecordError {
    pub(super) fn command(command: &[OsString], reason: io::Error) -> Self {
        let command = command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        Self::Command { command, reason }
    }

    pub(super) fn file(path: &Path, reason: io::Error) -> Self {
        Self::File { path: path.to_owned(), reason }
    }
}
