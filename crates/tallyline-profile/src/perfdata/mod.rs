//! Recordings in perf's format.
//!
//! `bytes` is the cursor that everything reads through; [`abi`] the kernel's numbers, [`attr`] what
//! an event was asked for, [`sample`] what it then recorded; [`mod@file`] the container and its records,
//! [`spe`] what Arm's hardware writes instead of samples,
//! [`spaces`] which file an address belonged to, [`jit`] the names of code that has no file;
//! [`writer`] makes such files, [`recorder`] fills them.

pub mod abi;
pub mod attr;
mod bytes;
pub mod file;
pub mod jit;
pub(crate) mod names;
pub mod recorder;
pub mod sample;
pub mod spaces;
pub mod spe;
pub mod writer;

pub use attr::Attr;
pub(crate) use bytes::Cursor;
pub use bytes::{ByteOrder, Words};
pub use file::Recording;
pub use sample::Sample;
pub use spaces::AddressSpaces;
pub use writer::Writer;

/// The most bytes that the compressed records of one file may inflate to.
pub const INFLATED_LIMIT: u64 = 4 << 30;
