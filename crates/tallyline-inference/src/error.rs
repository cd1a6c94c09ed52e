//! Errors of this crate.

use thiserror::Error;

/// Error of type inference: a program or debug information that cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The program cannot be read.
    #[error("program cannot be read: {0}")]
    Program(String),

    /// The types of a program cannot be read.
    #[error(transparent)]
    Types(#[from] tallyline_debuginfo::Error),

    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),

    /// A stated limit was reached; such a file is taken for a hostile one.
    #[error("{what}: more than {limit}")]
    Limit {
        /// The items that exceed the limit.
        what: &'static str,
        /// The limit that was exceeded.
        limit: u64,
    },
}

/// Result of type inference, with the crate's error by default.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;
