//! No section to test the kernel with: rseq is never used here.

use super::WatchOutcome;
use std::sync::atomic::AtomicU64;

/// Returns [`WatchOutcome::Quiet`] without running a section: this target has none.
pub(super) fn watch(_offset: isize, _armed: bool, _word: &AtomicU64, _looks: u64) -> WatchOutcome {
    WatchOutcome::Quiet
}
