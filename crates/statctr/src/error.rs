//! The one error type of the crate.

use crate::errno;
use std::fmt;
use std::path::PathBuf;

/// A `Result` with this crate's [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The error of a fallible operation of this crate: no memory, a topology that cannot be read, an invalid setting or
/// name, a refused system call.
///
/// Only setup can fail: an update never does, and neither does a read of one counter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The kernel refused memory for a reservation, or the heap has no room for the reservation's description.
    OutOfMemory {
        /// Bytes of address space, or of the heap, that were requested.
        bytes: usize,
        /// The system's error number.
        errno: i32,
    },
    /// A uniprocessor counter was asked for on a machine that may have more than one CPU.
    NotUniprocessor {
        /// Number of CPUs that the source knows of.
        possible: usize,
        /// The source that knows of more than one; see
        /// [`Placement::Uniprocessor`](crate::Placement::Uniprocessor).
        source: &'static str,
    },
    /// A file that describes the CPUs could not be read.
    TopologyUnreadable {
        /// The path of the file.
        path: PathBuf,
        /// The system's error number.
        errno: i32,
    },
    /// A list of CPUs or nodes is not of the form `0-3,8`.
    BadCpuList {
        /// The text as found, shortened to 64 characters.
        text: String,
        /// Offset of the first byte that is not part of a list.
        offset: usize,
    },
    /// The parts of a topology contradict each other.
    BadTopology(&'static str),
    /// More counters in one piece than a unit of the pool can hold.
    TooMany {
        /// The number of counters that were requested in one piece.
        asked: usize,
        /// The largest number of counters that fits.
        limit: usize,
    },
    /// A schema cannot be laid out.
    BadSchema(String),
    /// The caller's buffer is too small.
    BufferTooSmall {
        /// Length needed: items for a slice of numbers, bytes for a slice of bytes.
        needed: usize,
        /// Length given, in the same unit.
        given: usize,
    },
    /// An index lies outside the array.
    OutOfRange {
        /// The requested index.
        index: usize,
        /// The length of the array.
        len: usize,
    },
    /// Groups that are to be folded together do not share one schema.
    SchemaMismatch,
    /// A CPU cannot be impersonated: the kernel could run us on it, or the topology has no such CPU.
    CannotImpersonate {
        /// The number of the CPU that cannot be impersonated.
        cpu: u32,
    },
    /// A setting of the pool is out of its range.
    BadSetting(&'static str),
    /// A name or label is not of the form that exporters accept.
    BadName(String),
    /// The name is taken, with these labels, or with another kind, unit or help text.
    NameTaken(String),
    /// The kernel refused an operation.
    System {
        /// The operation that the kernel refused.
        operation: &'static str,
        /// The system's error number.
        errno: i32,
    },
}

impl Error {
    /// Returns the positive `errno` that corresponds to the error; the C API returns it negated.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self {
            Error::OutOfMemory { errno, .. }
            | Error::TopologyUnreadable { errno, .. }
            | Error::System { errno, .. } => *errno,
            Error::NotUniprocessor { .. } => errno::ENOTSUP,
            Error::TooMany { .. } => errno::E2BIG,
            Error::BufferTooSmall { .. } => errno::ENOSPC,
            Error::OutOfRange { .. } => errno::ERANGE,
            Error::CannotImpersonate { .. } => errno::EPERM,
            Error::NameTaken(_) => errno::EEXIST,
            Error::BadCpuList { .. }
            | Error::BadTopology(_)
            | Error::BadSchema(_)
            | Error::SchemaMismatch
            | Error::BadSetting(_)
            | Error::BadName(_) => errno::EINVAL,
        }
    }

    /// Returns the calling thread's `errno`, right after a system call failed.
    pub(crate) fn last_errno() -> i32 {
        std::io::Error::last_os_error().raw_os_error().unwrap_or(errno::EIO)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let system = |errno: &i32| std::io::Error::from_raw_os_error(*errno);
        match self {
            Error::OutOfMemory { bytes, errno } => {
                write!(f, "cannot reserve {bytes} bytes of address space: {}", system(errno))
            }
            Error::NotUniprocessor { possible, source } => write!(
                f,
                "built or asked for one CPU, but {possible} are possible here, by {source}: use another placement"
            ),
            Error::TopologyUnreadable { path, errno } => {
                write!(f, "cannot read {}: {}", path.display(), system(errno))
            }
            Error::BadCpuList { text, offset } => {
                write!(f, "not a list of CPUs like 0-3,8: {text:?}, at byte {offset}")
            }
            Error::BadTopology(why) => write!(f, "contradictory topology: {why}"),
            Error::TooMany { asked, limit } => {
                write!(f, "{asked} counters in one piece, but a unit of this pool holds {limit}")
            }
            Error::BadSchema(why) => write!(f, "schema cannot be laid out: {why}"),
            Error::BufferTooSmall { needed, given } => {
                write!(f, "buffer too small: {needed} needed, {given} given")
            }
            Error::OutOfRange { index, len } => write!(f, "index {index} of {len}"),
            Error::SchemaMismatch => write!(f, "groups folded together must share one schema"),
            Error::CannotImpersonate { cpu } => write!(
                f,
                "CPU {cpu} cannot be impersonated: it may be real, or the topology does not have it"
            ),
            Error::BadSetting(why) => write!(f, "bad setting: {why}"),
            Error::BadName(name) => write!(f, "not a metric name or label: {name:?}"),
            Error::NameTaken(name) => write!(f, "already registered: {name}"),
            Error::System { operation, errno } => write!(f, "{operation}: {}", system(errno)),
        }
    }
}

impl std::error::Error for Error {}
