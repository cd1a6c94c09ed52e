//! Recordings in perf's format: `perf.data` files are read, written, and recorded.
//!
//! # Guarantees
//! - Every `PERF_SAMPLE_*` field is decoded, in either byte order; nothing is skipped.
//! - The packets of Arm's SPE are decoded in bounded memory; lost, damaged and filtered packets are counted.
//! - Files may be truncated, corrupt or malicious: no panic, no endless loop, memory bounded by the size of the file
//!   plus [`INFLATED_LIMIT`] for compressed records, and one error with its offset.
//!
//! # Limits
//! Hardware traces other than Arm's SPE (Intel PT, CoreSight) are skipped and their sizes are reported; samples that the
//! kernel or perf synthesised from them are read. Of SPE's records, memory accesses become samples; branches and other
//! operations are counted.
//!
//! # Modules
//! `bytes` is the cursor under all readers; [`abi`] holds the kernel's constants, [`attr`] the attributes of an event,
//! [`sample`] its samples, [`mod@file`] the container and its records, [`spe`] the packets of Arm's SPE, [`spaces`] the
//! files behind addresses, [`jit`] the names of code without a file. [`writer`] makes such files, [`recorder`] fills them.

pub mod abi;
pub mod attr;
mod bytes;
mod error;
pub mod file;
pub mod jit;
pub mod names;
pub mod recorder;
pub mod sample;
mod skid;
pub mod spaces;
pub mod spe;
pub mod writer;

pub use attr::Attr;
pub use bytes::{ByteOrder, Cursor, Words};
pub use error::Error;
pub(crate) use error::Result;
pub use file::Recording;
pub use sample::Sample;
pub use spaces::AddressSpaces;
pub use writer::Writer;

/// The most bytes to which all compressed records of one perf.data file together may decompress; a file that
/// exceeds it is refused.
pub const INFLATED_LIMIT: u64 = 4 << 30;
