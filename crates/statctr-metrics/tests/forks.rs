//! A recorder goes on in a child of `fork`, whatever other threads of the parent were doing with it.
#![cfg(unix)]
#![allow(unsafe_code)] // forks, and ends children without their handlers

use metrics::{counter, describe_histogram, histogram, with_local_recorder};
use statctr_metrics::Recorder;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Forks of each test: without the protection one of some fifty children waits for ever.
const FORKS: usize = 200;

/// Sets a flag when it is dropped, also by a failed assertion: threads that wait for the flag end then, too.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Forks a child that runs `work` with the recorder, and returns `true` if `work` came to its end there and returned
/// `true`.
fn child(recorder: &Recorder, work: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child uses the recorder and memory alone, and ends here, by itself or by the signal.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe { libc::alarm(10) };
        let right = with_local_recorder(recorder, work);
        // SAFETY: as above.
        unsafe { libc::_exit(i32::from(!right)) };
    }
    let mut status = -1;
    // SAFETY: there is room for the status.
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    ended == child && status == 0
}

/// Forks children that run `in_child` while another thread of the parent runs `in_parent` again and again, with the
/// number of the round. Both threads have the same one of a series' handles.
fn fork_while(recorder: &Recorder, in_parent: impl Fn(u64) + Sync, in_child: impl Fn() -> bool) {
    // one test at a time: handles are dealt out to threads in the order in which these use the first one
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let first = || with_local_recorder(recorder, || counter!("first").increment(1));
    first();
    // of sixteen handles, so that the next thread has that of this one
    (0..15).for_each(|_| std::thread::scope(|scope| scope.spawn(first).join().expect("counts")));
    let (started, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let failed = std::thread::scope(|scope| {
        let _done_at_end = SetOnDrop(&done);
        scope.spawn(|| {
            with_local_recorder(recorder, || {
                let rounds = (0..).take_while(|_| !done.load(Ordering::Acquire));
                rounds.for_each(|round| {
                    in_parent(round);
                    started.store(true, Ordering::Release);
                });
            });
        });
        while !started.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        (0..FORKS).find(|_| !child(recorder, &in_child))
    });
    assert_eq!(failed, None, "a child waited for ever, or counted wrongly");
}

#[test]
fn a_child_makes_the_handle_that_a_thread_of_its_parent_was_making() {
    let recorder = Recorder::builder().limit(usize::MAX).build();
    let current = AtomicU64::new(0);
    let count = |series: u64| counter!("series", "number" => series.to_string()).increment(1);
    let in_parent = |round| {
        current.store(round, Ordering::Relaxed);
        count(round);
    };
    fork_while(&recorder, in_parent, || {
        count(current.load(Ordering::Relaxed));
        true
    });
}

#[test]
fn a_child_describes_and_makes_histograms_that_a_thread_of_its_parent_was_describing() {
    let recorder = Recorder::new();
    let in_parent = |_| describe_histogram!("wait", metrics::Unit::Seconds, "time in the queue");
    fork_while(&recorder, in_parent, || {
        histogram!("wait").record(1.5);
        describe_histogram!("size", metrics::Unit::Bytes, "size of a body");
        let seen = recorder.snapshot();
        let wait = seen.metrics().iter().find(|metric| metric.name == "wait").expect("recorded");
        let sum = seen.histogram("wait", &[]).map(statctr_metrics::FloatHistogramSnapshot::sum);
        (wait.unit.as_str(), wait.help.as_str(), sum) == ("seconds", "time in the queue", Some(1.5))
    });
}

#[test]
fn a_child_raises_the_counter_that_a_thread_of_its_parent_was_raising() {
    let recorder = Recorder::new();
    let raised = with_local_recorder(&recorder, || counter!("raised"));
    fork_while(
        &recorder,
        |round| raised.absolute(round),
        || {
            let before = recorder.snapshot().counter("raised", &[]).expect("raised");
            raised.absolute(before + 5);
            raised.absolute(before + 3);
            recorder.snapshot().counter("raised", &[]) == Some(before + 5)
        },
    );
}
