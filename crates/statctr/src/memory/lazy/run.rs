//! Cells in a row that nobody ever had: [`Run`].

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// The alignment of cells, and the unit of their sizes.
const CELL_ALIGN: usize = 16;
/// Bits of a run's word for the number of cells that are left. Above are bits 4 to 47 of the first one's address.
const LEFT_BITS: u32 = 20;

/// A run of cells that nobody ever had. Zero is an empty one.
///
/// One word: whoever holds the lock of its cache may be interrupted by a signal whose handler forks, and in the child
/// counts as holding it no longer for other threads, so that each store has to leave a whole state.
#[derive(Debug)]
pub(super) struct Run(AtomicU64);

impl Run {
    /// Takes the next cell, of a size; `None` if no cell is left. Async-signal-safe.
    pub(super) fn pop(&self, bytes: usize) -> Option<NonNull<u8>> {
        let step = (((bytes / CELL_ALIGN) as u64) << LEFT_BITS) - 1;
        let take = |run: u64| (run & ((1 << LEFT_BITS) - 1) > 0).then(|| run + step);
        let run = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        NonNull::new(std::ptr::with_exposed_provenance_mut((run >> LEFT_BITS) as usize * CELL_ALIGN))
    }

    /// Takes cells of a size from a row of them from now on. What was left of the last one is lost: nothing, but after
    /// such a fork.
    pub(super) fn begin(&self, row: &Range<usize>, bytes: usize) {
        let (start, left) = ((row.start / CELL_ALIGN) as u64, (row.len() / bytes) as u64);
        // the kernel gives addresses of 47 bits, or 48, to who does not ask for more
        if start >> (u64::BITS - LEFT_BITS) == 0 && left >> LEFT_BITS == 0 {
            self.0.store(start << LEFT_BITS | left, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_gives_each_of_its_cells_once() {
        let run = Run(AtomicU64::new(0));
        assert_eq!(run.pop(64), None);
        let last_page = (usize::MAX >> 17) / 4096 * 4096;
        for (start, bytes, count) in [(last_page + 64, 64, 63), (0x8000_0010, 16, 1), (4096, 1 << 17, 15)] {
            run.begin(&(start..start + bytes * count + bytes / 2), bytes);
            for cell in 0..count {
                assert_eq!(run.pop(bytes).map(|cell| cell.addr().get()), Some(start + cell * bytes));
            }
            assert_eq!((run.pop(bytes), run.pop(bytes)), (None, None));
        }
    }
}
