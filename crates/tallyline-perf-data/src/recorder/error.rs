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
        /// The first word of the command.
        command: String,
        /// The error of the operating system.
        reason: io::Error,
    },

    /// The file could not be written.
    #[error("cannot write {}: {reason}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        reason: io::Error,
    },

    /// The process that was to be sampled does not exist.
    #[error("no process {0}")]
    NoProcess(i32),

    /// The thread that was to be sampled does not exist.
    #[error("no thread {0}")]
    NoThread(i32),

    /// The kernel does not permit the recording.
    #[error("the kernel does not permit to sample {what}{setting}: {advice}")]
    Forbidden {
        /// The thing that was to be sampled.
        what: &'static str,
        /// The setting that forbids it.
        setting: String,
        /// The advice on what to do next.
        advice: &'static str,
    },

    /// The system has no `perf_event_open`: the kernel, or an emulator or container that it runs in, lacks the call.
    #[error(
        "this system has no perf_event_open: an emulator or a container's seccomp profile may keep it away; run it \
         on the host, or give the container the capability PERFMON; `record --trace` needs neither"
    )]
    Missing,

    /// The event cannot be sampled here.
    #[error("event {name}: {reason}")]
    Event {
        /// The name of the event.
        name: String,
        /// The reason why the event cannot be sampled.
        reason: String,
    },

    /// An operation of the system failed in a way that no other variant describes.
    #[error("cannot {what}: {reason}")]
    System {
        /// The operation that failed.
        what: &'static str,
        /// The error of the operation.
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
