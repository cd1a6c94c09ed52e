//! Recordings in perf's format.
//!
//! `bytes` is the cursor that everything reads through; [`abi`] the kernel's numbers, [`attr`] what
//! an event was asked for, [`sample`] what it then recorded.

pub mod abi;
pub mod attr;
mod bytes;
pub mod sample;

pub use attr::Attr;
pub use bytes::{ByteOrder, Words};
pub use sample::Sample;

/// The most bytes that the compressed records of one file may inflate to.
pub const INFLATED_LIMIT: u64 = 4 << 30;
