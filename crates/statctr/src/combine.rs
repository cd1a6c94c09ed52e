//! The operations that join values of an item: [`Combine`].

use std::sync::atomic::{AtomicU64, Ordering};

/// The operation (sum, maximum or bitwise or) that combines the values of one item of a lazy object (four statistics
/// whose per-CPU copies are created when a CPU first writes). It applies an update's value to a CPU's copy, and
/// combines the copies in a read. Zero is its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Combine {
    /// The sum, modulo 2⁶⁴.
    Sum,
    /// The maximum, for times and peaks.
    Max,
    /// The bitwise or, for flags.
    Or,
}

impl Combine {
    #[inline(always)]
    pub(crate) fn join(self, one: u64, other: u64) -> u64 {
        match self {
            Combine::Sum => one.wrapping_add(other),
            Combine::Max => one.max(other),
            Combine::Or => one | other,
        }
    }

    #[inline]
    pub(crate) fn join_atomically(self, word: &AtomicU64, value: u64) {
        match self {
            Combine::Sum => word.fetch_add(value, Ordering::Relaxed),
            Combine::Max => word.fetch_max(value, Ordering::Relaxed),
            Combine::Or => word.fetch_or(value, Ordering::Relaxed),
        };
    }
}
