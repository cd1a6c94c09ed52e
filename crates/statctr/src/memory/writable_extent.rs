//! The writable extent of a reservation's units.
//!
//! A mapping that is writable is populated, whole, by `mlockall(MCL_CURRENT)`: 50 MB for one counter
//! made before, on a machine with 192 possible CPUs. So units are only readable at first (what is not
//! there reads as zero, and populating that takes the one zero page), and become writable as far as
//! slots are taken, each CPU's when it is announced:
//! ```text
//! open(cpu), in an update:  opened[cpu] := 1; do e := extent; make unit[..e] writable until e = extent
//! extend(e), under the lock:  extent := e; make unit[..e] writable for the common units and each opened
//! ```
//! Movable units become so when they are assigned, which extending excludes by their lock. Of others,
//! whichever of the two comes second sees the other's store (both are sequentially consistent), so a
//! CPU that is announced can write every slot there is.

use super::active_cpu_mask::ActiveCpuMask;
use super::atomics::Room;
use super::mapping::Mapping;
use crate::errno;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The binary logarithm of the most requests that go by after a refusal.
const MAX_BACKOFF_SHIFT: u32 = 10;

#[derive(Debug)]
pub(super) struct WritableExtent {
    /// Bytes from the start of each unit in use that may be written.
    extent: AtomicUsize,
    /// CPUs whose own unit is writable, or is being made so.
    opened: ActiveCpuMask,
    /// Refusals in a row, and requests that still go by before the next attempt.
    refusals: AtomicU32,
    backoff: AtomicU32,
}

impl WritableExtent {
    /// Creates an extent for CPU numbers 0 to `cpus` − 1; nothing may be written.
    pub(super) fn new(cpus: usize) -> WritableExtent {
        WritableExtent::with(ActiveCpuMask::new(cpus))
    }

    /// Creates an extent for CPU numbers 0 to `cpus` − 1 in a room, in as many words as a mask takes.
    /// Async-signal-safe.
    pub(super) fn within(room: &mut Room, cpus: usize) -> Option<WritableExtent> {
        ActiveCpuMask::within(room, cpus).map(WritableExtent::with)
    }

    fn with(opened: ActiveCpuMask) -> WritableExtent {
        WritableExtent {
            extent: AtomicUsize::new(0),
            opened,
            refusals: AtomicU32::new(0),
            backoff: AtomicU32::new(0),
        }
    }

    /// Makes the unit of `cpu`, which starts at `offset`, writable as far as there are slots. Returns
    /// `false` where the kernel refuses, or did so too recently. Async-signal-safe.
    pub(super) fn open(&self, cpu: usize, mapping: &Mapping, offset: usize) -> bool {
        if mapping.is_writable() {
            return true;
        }
        self.opened.insert(cpu);
        self.attempt(|| {
            loop {
                let extent = self.extent.load(Ordering::SeqCst);
                if !mapping.make_writable(offset, extent) {
                    return false;
                }
                if self.extent.load(Ordering::SeqCst) == extent {
                    return true;
                }
            }
        })
    }

    /// Runs `make`, unless it failed too recently: in a sandbox that allows none, each update would
    /// cost a system call. Async-signal-safe where `make` is.
    pub(super) fn attempt(&self, make: impl FnOnce() -> bool) -> bool {
        let backoff = self.backoff.load(Ordering::Relaxed);
        if backoff > 0 {
            self.backoff.store(backoff - 1, Ordering::Relaxed);
            return false;
        }
        let done = make();
        let refusals = self.refusals.load(Ordering::Relaxed).min(MAX_BACKOFF_SHIFT);
        if !done {
            self.backoff.store((1 << refusals) - 1, Ordering::Relaxed);
        }
        self.refusals.store(if done { 0 } else { refusals + 1 }, Ordering::Relaxed);
        done
    }

    /// Returns how much of each unit in use may be written. Of movable units the lock is held.
    pub(super) fn extent(&self) -> usize {
        self.extent.load(Ordering::SeqCst)
    }

    /// Returns the CPUs whose own unit may be written.
    pub(super) fn opened(&self) -> &ActiveCpuMask {
        &self.opened
    }

    /// Makes the first `bytes` of each unit in use writable: `make` does so with as much as it is
    /// told. The arena's lock is held, and of movable units the lock.
    pub(super) fn extend(
        &self,
        bytes: usize,
        unit_bytes: usize,
        make: impl FnOnce(usize) -> bool,
    ) -> Result<()> {
        let before = self.extent.load(Ordering::Relaxed);
        if bytes <= before {
            return Ok(());
        }
        // pages, and then twice as many each time
        let extent = bytes.next_multiple_of(4096).max(2 * before).min(unit_bytes);
        self.extent.store(extent, Ordering::SeqCst);
        if make(extent) {
            return Ok(());
        }
        self.extent.store(before, Ordering::SeqCst);
        Err(Error::OutOfMemory { bytes: extent, errno: errno::ENOMEM })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::mapping::PAGE;
    use std::sync::atomic::AtomicU64;

    const UNIT: usize = 16 * PAGE;

    /// Writes the last word of the first `extent` bytes of a unit.
    fn write(mapping: &Mapping, unit: usize, extent: usize) {
        // SAFETY: a word of the mapping.
        let word = unsafe { mapping.start().add(unit * UNIT + extent - 8).cast::<AtomicU64>().as_ref() };
        word.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn units_that_are_opened_while_there_come_more_slots_can_be_written_whole() {
        for _ in 0..50 {
            let mapping = Mapping::read_only(64 * UNIT, 64).expect("memory");
            let access = WritableExtent::new(64);
            std::thread::scope(|scope| {
                for first in [0, 32] {
                    let (access, mapping) = (&access, &mapping);
                    scope.spawn(move || {
                        for cpu in first..first + 32 {
                            assert!(access.open(cpu, mapping, cpu * UNIT));
                        }
                    });
                }
                for pages in 1..=16 {
                    let extended = access.extend(pages * PAGE, UNIT, |extent| {
                        let mut done = true;
                        access.opened().for_each(|cpu| done &= mapping.make_writable(cpu * UNIT, extent));
                        done
                    });
                    assert_eq!(extended, Ok(()));
                }
            });
            // a word that is not writable ends the test
            (0..64).for_each(|cpu| write(&mapping, cpu, UNIT));
        }
    }

    #[test]
    fn a_refusal_is_an_error_once_and_leaves_the_extent() {
        let access = WritableExtent::new(1);
        assert!(access.extend(1, 8192, |_| false).is_err());
        assert_eq!(access.extent(), 0);
        assert_eq!(access.extend(1, 8192, |extent| extent == 4096), Ok(()));
        assert_eq!(access.extend(4096, 8192, |_| panic!("there already")), Ok(()));
        assert_eq!(access.extend(4097, 8192, |extent| extent == 8192), Ok(()));
        let asked = (0..100).filter(|_| access.attempt(|| false)).count();
        assert_eq!(asked, 0);
        let mut asked = 0;
        (0..1 << MAX_BACKOFF_SHIFT).for_each(|_| {
            access.attempt(|| {
                asked += 1;
                true
            });
        });
        assert!(asked > 0, "tried again");
    }
}
