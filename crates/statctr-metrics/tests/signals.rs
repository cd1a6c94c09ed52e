//! Updates in a signal handler, of what the interrupted thread is updating.
#![cfg(unix)]
#![allow(unsafe_code)] // sends signals, and handles them

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram, with_local_recorder};
use statctr_metrics::Recorder;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The largest value that the counter was raised to.
static LARGEST: AtomicU64 = AtomicU64::new(0);
/// Calls of the handler that have ended.
static CALLS: AtomicU64 = AtomicU64::new(0);
static HANDLES: OnceLock<(Counter, Gauge, Histogram)> = OnceLock::new();

/// Sets a flag when it is dropped, also by a failed assertion: threads that wait for the flag end then, too.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn update((raised, load, wait): &(Counter, Gauge, Histogram)) {
    let value = LARGEST.fetch_add(1, Ordering::Relaxed) + 1;
    raised.absolute(value);
    counter!("looked_up").increment(1);
    load.increment(1.0);
    wait.record(1.0);
}

extern "C" fn on_signal(_: libc::c_int) {
    if let Some(handles) = HANDLES.get() {
        update(handles);
    }
    CALLS.fetch_add(1, Ordering::Release);
}

#[test]
fn a_handler_updates_what_the_interrupted_thread_is_updating() {
    const SIGNALS: u64 = 2000;
    let recorder = Recorder::new();
    let done = AtomicBool::new(false);
    let mut updates = 0;
    with_local_recorder(&recorder, || {
        let handles = HANDLES.get_or_init(|| (counter!("raised"), gauge!("load"), histogram!("wait")));
        // from then on the look-up in the handler makes nothing
        counter!("looked_up").increment(0);
        // SAFETY: the handler updates metrics alone. Whoever waits for ever is ended by the alarm.
        let this = unsafe {
            libc::alarm(60);
            libc::signal(libc::SIGUSR1, on_signal as *const () as libc::sighandler_t);
            libc::pthread_self()
        } as usize;
        std::thread::scope(|scope| {
            let _done_at_end = SetOnDrop(&done);
            scope.spawn(|| {
                (0..SIGNALS).take_while(|_| !done.load(Ordering::Acquire)).for_each(|signal| {
                    // SAFETY: the thread waits for this one.
                    unsafe { libc::pthread_kill(this as libc::pthread_t, libc::SIGUSR1) };
                    while CALLS.load(Ordering::Acquire) == signal && !done.load(Ordering::Acquire) {
                        std::thread::yield_now();
                    }
                });
            });
            while CALLS.load(Ordering::Acquire) < SIGNALS {
                update(handles);
                updates += 1;
            }
        });
        // SAFETY: ends the alarm.
        unsafe { libc::alarm(0) };
    });
    let all = updates + SIGNALS;
    let seen = recorder.snapshot();
    // nothing is added to the counter but by `absolute`
    assert_eq!(seen.counter("raised", &[]), Some(all));
    assert_eq!(seen.counter("looked_up", &[]), Some(all));
    assert_eq!(seen.gauge("load", &[]), Some(all as f64));
    assert_eq!(seen.histogram("wait", &[]).map(statctr_metrics::FloatHistogramSnapshot::count), Some(all));
}
