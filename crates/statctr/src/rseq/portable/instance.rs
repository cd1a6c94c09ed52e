//! `join` where no section does it: lazy objects count in their atomic words there.

use super::super::{ITEMS, JoinSettings};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Four words of a lazy object's instance, which are only used as atomics on this machine.
#[derive(Debug)]
#[repr(C, align(32))]
pub(crate) struct Instance([AtomicU64; ITEMS]);

impl Instance {
    /// Returns the four words of a lazy object's instance, as atomics.
    pub(crate) fn words(&self) -> &[AtomicU64; ITEMS] {
        &self.0
    }

    /// Returns every word of an instance that has to be zero while it is unused.
    pub(crate) fn all_words(&self) -> impl Iterator<Item = &AtomicU64> {
        self.0.iter()
    }
}

/// Returns `false`: no critical sections that update lazy objects are written for this machine.
pub(crate) const fn can_join(_width: usize) -> bool {
    false
}

/// Never joins values to a lazy object's instance, and returns `false`: no critical sections are written for
/// this machine.
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

/// Returns the values of a lazy object's instance, each as of some moment.
///
/// # Safety
/// The instance lives.
pub(crate) unsafe fn load(instance: NonNull<Instance>) -> Option<[u64; ITEMS]> {
    // SAFETY: by the caller's promise.
    let words = unsafe { instance.as_ref() }.words();
    Some(std::array::from_fn(|index| words[index].load(Ordering::Relaxed)))
}

/// Returns no field of the calling thread's rseq area: there is none that sections compare with on this
/// machine.
///
/// # Safety
/// None needed here.
pub(crate) unsafe fn area_field(_area: isize, _field: usize) -> u32 {
    u32::MAX
}
