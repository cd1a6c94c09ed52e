//! The threads that ran on each CPU over time, and their processes.

use std::collections::HashMap;

/// Values since times, in the order of time.
#[derive(Clone, Debug, Default)]
struct Timeline(Vec<(u64, i32)>);

impl Timeline {
    /// Returns the value at a time; before the first one that, if `begins_early`.
    fn at(&self, time: u64, begins_early: bool) -> Option<i32> {
        let behind = self.0.partition_point(|(since, _)| *since <= time);
        match behind.checked_sub(1) {
            Some(index) => self.0.get(index),
            None => self.0.first().filter(|_| begins_early),
        }
        .map(|(_, value)| *value)
    }
}

/// The id that stands for an unknown thread on a CPU.
const NONE: i32 = -1;

/// The threads that records name.
#[derive(Clone, Debug, Default)]
pub(super) struct Threads {
    /// The process of each thread, over time.
    processes: HashMap<i32, Timeline>,
    /// The thread that runs on each CPU, over time.
    running: HashMap<u32, Timeline>,
}

impl Threads {
    /// Notes that a thread belongs to a process since this time.
    pub(super) fn belongs(&mut self, tid: i32, pid: i32, time: u64) {
        let known = &mut self.processes.entry(tid).or_default().0;
        if known.last().is_none_or(|(_, last)| *last != pid) {
            known.push((time, pid));
        }
    }

    /// Notes that a CPU runs a thread since this time, or an unknown one.
    pub(super) fn runs(&mut self, cpu: u32, tid: Option<i32>, time: u64) {
        self.running.entry(cpu).or_default().0.push((time, tid.unwrap_or(NONE)));
    }

    /// Sorts by time, once all records are read: they are in no order of time.
    pub(super) fn sort(&mut self) {
        for since in self.processes.values_mut().chain(self.running.values_mut()) {
            since.0.sort_by_key(|(time, _)| *time);
        }
    }

    /// Returns the process of a thread.
    pub(super) fn process(&self, tid: i32, time: u64) -> Option<i32> {
        match tid {
            // the idle thread of each CPU
            0 => Some(0),
            tid => self.processes.get(&tid)?.at(time, true),
        }
    }

    /// Returns the thread that runs on a CPU.
    pub(super) fn running(&self, cpu: u32, time: u64) -> Option<i32> {
        self.running.get(&cpu)?.at(time, false).filter(|tid| *tid != NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_a_thread_may_be_given_twice() {
        let mut threads = Threads::default();
        threads.belongs(7, 7, 200);
        threads.belongs(7, 5, 100);
        threads.sort();
        assert_eq!(threads.process(7, 150), Some(5));
        assert_eq!(threads.process(7, 250), Some(7));
        assert_eq!(threads.process(7, 10), Some(5), "before that is said");
        assert_eq!((threads.process(0, 10), threads.process(8, 10)), (Some(0), None));
    }

    #[test]
    fn switches_say_who_runs() {
        let mut threads = Threads::default();
        for (tid, time) in [(Some(7), 100), (None, 300), (Some(8), 200)] {
            threads.runs(2, tid, time);
        }
        threads.sort();
        let running = [50, 100, 250, 300].map(|time| threads.running(2, time));
        assert_eq!(running, [None, Some(7), Some(8), None]);
        assert_eq!(threads.running(0, 100), None);
    }
}
