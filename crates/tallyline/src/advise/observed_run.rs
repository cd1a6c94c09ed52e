//! The basis of advice that nothing is modelled for: samples, and hits of breakpoints.

use std::time::Duration;

/// The numbers of perf samples and of hardware breakpoint hits that advice without a simulation is based on.
pub(crate) struct ObservedRun {
    /// The number of samples of the process.
    pub(super) samples: u64,
    /// The number of samples with the address of the data.
    pub(super) addressed: u64,
    /// The counts of the breakpoints; none if none were set.
    pub(super) watched: Option<WatchedRun>,
}

/// The numbers of cache lines with hardware breakpoints, of their words that were accessed, of hits, and of threads
/// that accessed such a word, in a run observed by breakpoints.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchedRun {
    /// Lines on which breakpoints were.
    pub(super) lines: usize,
    /// Words that were accessed.
    pub(super) words: usize,
    /// Hits, those included that the rings had no room for.
    pub(super) hits: u64,
    /// Threads that accessed one of the words.
    pub(super) threads: usize,
    /// The time with breakpoints.
    pub(super) time: Duration,
    /// The time of one hit, as measured in this process.
    pub(super) cost: Duration,
}

impl WatchedRun {
    /// Returns the part of their time that hits took from the threads that had some, on average over the time with
    /// breakpoints.
    pub(super) fn slowdown(&self) -> f64 {
        let stolen = self.cost.as_secs_f64() * self.hits as f64;
        stolen / (self.time.as_secs_f64() * self.threads.max(1) as f64).max(f64::MIN_POSITIVE)
    }
}
