//! Threads that update what is tested.

pub(crate) const THREADS: u64 = 4;
pub(crate) const UPDATES: u64 = 100_000;

/// Runs `work` on each of the threads, with the thread's number, and waits for all.
pub(crate) fn on_threads(work: impl Fn(u64) + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let work = &work;
            scope.spawn(move || work(thread));
        }
    });
}
