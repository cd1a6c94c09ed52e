//! Recordings in perf's format.
//!
//! `bytes` is the cursor that everything reads through.

mod bytes;

pub use bytes::{ByteOrder, Words};

/// The most bytes that the compressed records of one file may inflate to.
pub const INFLATED_LIMIT: u64 = 4 << 30;
