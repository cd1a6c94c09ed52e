//! Errors of this crate.

use thiserror::Error;

/// Error of recording, reading or replaying a trace of memory accesses.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes do not start with a trace's magic number.
    #[error("not a trace: it does not start with TLT1; `tallyline record --trace` makes traces")]
    NotTrace,

    /// The trace is damaged.
    #[error("damaged trace at offset {offset:#x}: {reason}")]
    Damaged {
        /// The offset in the file.
        offset: u64,
        /// The description of the damage.
        reason: String,
    },

    /// A replay of a sampled trace; it needs all accesses.
    #[error("the trace holds one access of {0}: a replay needs all of them; record it without --every")]
    Sampled(u64),

    /// A program or compiler that tracing needs is missing.
    #[error("{0}")]
    Missing(String),

    /// The samples of a trace cannot be written or read.
    #[error(transparent)]
    Recording(tallyline_perf_data::Error),

    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),

    /// A stated limit was reached; such a file is taken for a hostile one.
    #[error("{what}: more than {limit}")]
    Limit {
        /// The items of which there are too many.
        what: &'static str,
        /// The largest accepted number of the items.
        limit: u64,
    },
}

impl From<tallyline_perf_data::Error> for Error {
    /// Keeps the offset of damage that the cursor of `tallyline-perf-data` found in a trace.
    fn from(error: tallyline_perf_data::Error) -> Self {
        match error {
            tallyline_perf_data::Error::Damaged { offset, reason } => Self::Damaged { offset, reason },
            other => Self::Recording(other),
        }
    }
}

/// Result of recording, reading or replaying a trace, with the crate's [`enum@Error`].
pub(crate) type Result<T> = std::result::Result<T, Error>;
