//! What can go wrong, said once and with the place in the file.

use thiserror::Error;

/// Why a recording or a program could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes do not start with perf's magic number.
    #[error("not a perf.data file: it does not start with PERFILE2")]
    NotPerfData,

    /// There are no bytes.
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
        /// What is wrong there.
        reason: String,
    },

    /// The program cannot be read.
    #[error("program cannot be read: {0}")]
    Program(String),

    /// The types of a program cannot be read.
    #[error(transparent)]
    Types(#[from] tallyline_layout::Error),

    /// The bytes do not start with a trace's magic number.
    #[error("not a trace: it does not start with TLT1; `tallyline record --trace` makes traces")]
    NotTrace,

    /// The trace is damaged.
    #[error("damaged trace at offset {offset:#x}: {reason}")]
    DamagedTrace {
        /// The offset in the file.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },

    /// A replay needs all accesses.
    #[error("the trace holds one access of {0}: a replay needs all of them; record it without --every")]
    Sampled(u64),

    /// What a trace needs is not on this machine.
    #[error("{0}")]
    Missing(String),

    /// A stated limit was reached; such a file is taken for a hostile one.
    #[error("{what}: more than {limit}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
}

impl Error {
    /// A recording that is damaged at an offset.
    pub(crate) fn damaged(offset: u64, reason: impl Into<String>) -> Self {
        Self::Damaged { offset, reason: reason.into() }
    }
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
