//! `join` where no section does it: lazy objects count in their atomic words there.

use super::super::{ITEMS, JoinIndex, JoinSettings};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// One CPU's or node's copy of the four items (64-bit statistics) of a lazy object, which gets such copies when CPUs
/// first write; on architectures without rseq critical sections, only updated atomically.
#[derive(Debug)]
#[repr(C, align(32))]
pub(crate) struct Instance([AtomicU64; ITEMS]);

impl Instance {
    /// Returns the four words of the instance (a CPU's copy of a lazy object's four statistics) as atomics.
    pub(crate) fn words(&self) -> &[AtomicU64; ITEMS] {
        &self.0
    }

    /// Returns all words of the instance (a CPU's copy of a lazy object's four statistics), which have to be zero while
    /// it is unused.
    pub(crate) fn all_words(&self) -> impl Iterator<Item = &AtomicU64> {
        self.0.iter()
    }
}

/// Returns `false`: this architecture has no rseq critical sections to update lazy objects (four statistics each).
pub(crate) const fn can_join(_width: usize) -> bool {
    false
}

/// Changes nothing and returns `false`, as [`join`] does: a stub for architectures without rseq critical sections,
/// which elsewhere combine values with an instance (a CPU's copy of a lazy object's four statistics).
///
/// # Safety
/// The contract is that of [`join`].
#[inline(always)]
pub(crate) unsafe fn join_at(
    _at: JoinIndex,
    settings: &JoinSettings,
    index: u32,
    instance: NonNull<Instance>,
    values: [u64; ITEMS],
) -> bool {
    // SAFETY: passed on.
    unsafe { join(settings, index, instance, values) }
}

/// Changes nothing and returns `false`: a stub for architectures without rseq critical sections, which elsewhere
/// combine values with an instance (a CPU's copy of a lazy object's four statistics).
///
/// # Safety
/// None needed here.
pub(crate) unsafe fn join(
    _settings: &JoinSettings,
    _index: u32,
    _instance: NonNull<Instance>,
    _values: [u64; ITEMS],
) -> bool {
    false
}

/// Reads the four values of an instance (a CPU's copy of a lazy object's four statistics), each atomically, but not all
/// as of one moment; never `None`.
///
/// # Safety
/// The instance lives.
pub(crate) unsafe fn load(instance: NonNull<Instance>) -> Option<[u64; ITEMS]> {
    // SAFETY: by the caller's promise.
    let words = unsafe { instance.as_ref() }.words();
    Some(std::array::from_fn(|index| words[index].load(Ordering::Relaxed)))
}

/// Returns 2³² − 1, no valid number, in place of a field of a thread's rseq area: a stub for architectures without rseq
/// critical sections.
///
/// # Safety
/// None needed here.
pub(crate) unsafe fn area_field(_area: isize, _field: usize) -> u32 {
    u32::MAX
}
