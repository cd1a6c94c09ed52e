//! Samples with the counts of a group's events (`PERF_SAMPLE_READ`, perf's `{a,b}:S`): the leader alone samples, and the
//! others count.

use rustc_hash::FxHashMap;
use tallyline_perf_data::abi::{attr_flag, sample as bit};
use tallyline_perf_data::file::Event;
use tallyline_perf_data::sample::Sample;

/// Turns the counts in samples into samples of each event that was counted, as perf does: the period of each is what its
/// count has grown by since the sample before.
#[derive(Default)]
pub(crate) struct GroupReads {
    // the index of each event by the ids that the kernel gave it; empty if no sample has counts
    events: FxHashMap<u64, usize>,
    // the last count by id; of events that threads inherit, which share an id, by thread, too
    counts: FxHashMap<(u64, i32), u64>,
    found: Vec<(usize, u64)>,
}

impl GroupReads {
    pub(crate) fn new(events: &[Event]) -> GroupReads {
        let has_counts = |event: &Event| event.attr().sample_type & bit::READ != 0;
        if !events.iter().any(has_counts) {
            return GroupReads::default();
        }
        let ids = events
            .iter()
            .enumerate()
            .flat_map(|(index, event)| event.ids().iter().map(move |id| (*id, index)));
        GroupReads { events: ids.collect(), ..GroupReads::default() }
    }

    /// Returns the events, by index, that a sample stands for, each with its period; `None` if that is the sample's own
    /// event and period, as where none of the counts is of a known event or has grown: no sample is lost. A member whose
    /// count is what it was has none.
    pub(crate) fn split(&mut self, event: &Event, sample: &Sample<'_>) -> Option<&[(usize, u64)]> {
        let read = sample.read.filter(|_| !self.events.is_empty())?;
        let is_inherited = event.attr().flags & attr_flag::INHERIT != 0;
        let thread = sample.tid.filter(|_| is_inherited).unwrap_or(0);
        self.found.clear();
        for counter in read.iter() {
            let id = counter.id().or(sample.id)?;
            let Some(event) = self.events.get(&id) else { continue };
            let before = self.counts.insert((id, thread), counter.value()).unwrap_or(0);
            // a count that was reset starts again
            let period = counter.value().checked_sub(before).unwrap_or(counter.value());
            if period > 0 {
                self.found.push((*event, period));
            }
        }
        (!self.found.is_empty()).then_some(self.found.as_slice())
    }
}
