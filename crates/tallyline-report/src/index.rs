//! Indices and numbers that may be absent.

/// The index or number that stands for a CPU, place or time that the recording does not have.
pub const NONE: u32 = u32::MAX;
