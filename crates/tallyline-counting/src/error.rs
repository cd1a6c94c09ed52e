//! Errors of this crate.

use thiserror::Error;

/// Error of a measurement that compares methods of counting packets.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller's [`Tick`](crate::Tick) asked for the end.
    #[error("stopped before its end")]
    Stopped,

    /// A thread could not be started.
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),

    /// A counting thread ended before it was told to.
    #[error("a thread ended early")]
    ThreadEnded,

    /// The kernel's possible CPUs take so many numbers that a synthetic machine has none left.
    #[error("no numbers left for made-up CPUs")]
    NoCpuNumbers,

    /// Counters could not be created or described.
    #[error(transparent)]
    Counters(#[from] statctr::Error),

    /// The memory of the counters could not be measured.
    #[error("cannot find out what the counters take")]
    Memory(#[source] statctr::Error),
}

/// Result of a measurement that compares methods of counting packets, with the crate's [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;
