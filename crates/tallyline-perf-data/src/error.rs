//! Errors of this crate.

use thiserror::Error;

/// Error of reading or writing a perf.data file: damage at an offset, an exceeded limit, an unknown format.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes do not start with perf's magic number.
    #[error("not a perf.data file: it does not start with PERFILE2")]
    NotPerfData,

    /// The file is empty.
    #[error("the file is empty: nothing was recorded, or the recorder could not write it")]
    Empty,

    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),

    /// The recording is damaged.
    #[error("damaged perf.data at offset {offset:#x}: {reason}")]
    Damaged {
        /// The offset in the file, or in the inflated records where the reason says so.
        offset: u64,
        /// The description of the damage.
        reason: String,
    },

    /// A stated limit was reached; such a file is taken for a hostile one.
    #[error("{what}: more than {limit}")]
    Limit {
        /// The items of which there are too many.
        what: &'static str,
        /// The largest number of items that is allowed.
        limit: u64,
    },
}

impl Error {
    /// Creates the error for a perf.data file that is damaged at an offset.
    pub(crate) fn damaged(offset: u64, reason: impl Into<String>) -> Self {
        Self::Damaged { offset, reason: reason.into() }
    }
}

/// Result of reading or writing a perf.data file, with the crate's [`enum@Error`].
pub(crate) type Result<T> = std::result::Result<T, Error>;
