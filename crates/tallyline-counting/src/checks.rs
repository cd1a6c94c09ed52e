//! The checks: packets that the sums lost or count twice, and a reader's observations while threads count.

use crate::workload::{COUNTERS, CountingMethod, INTERFACES, Label, Ring, Values, values_after};
use crate::{Result, Tick, report};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tallyline_support::cpus;

/// The result of comparing one counting method's counters with the number of packets that threads really counted:
/// lost and doubled counts.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Exactness {
    /// The key of the counting method.
    pub case: String,
    /// Packets that the threads say they counted.
    pub packets: u64,
    /// Counters that were compared.
    pub counters: usize,
    /// The number of counters with a wrong value.
    pub wrong: usize,
    /// The sum of the amounts by which counters were too small.
    pub lost: u64,
    /// The sum of the amounts by which counters were too large.
    pub doubled: u64,
}

impl Exactness {
    /// Compares the counters of a counting method with the values that they must have after threads counted a ring of
    /// packets, one of each network interface, `ring_rounds` times in all. Counting threads must have ended.
    pub fn check(label: &Label, method: &dyn CountingMethod, ring_rounds: u64) -> Exactness {
        let mut result = Exactness {
            case: label.key.into(),
            packets: ring_rounds * INTERFACES as u64,
            counters: INTERFACES * COUNTERS,
            ..Exactness::default()
        };
        for interface in 0..INTERFACES {
            let due = values_after(interface, ring_rounds);
            for (due, read) in due.into_iter().zip(method.read(interface)) {
                result.wrong += usize::from(due != read);
                result.lost = result.lost.saturating_add(due.saturating_sub(read));
                result.doubled = result.doubled.saturating_add(read.saturating_sub(due));
            }
        }
        result
    }

    /// Returns `true` if the counting method lost and doubled nothing: no counter differs from its expected value.
    pub fn holds(&self) -> bool {
        self.wrong == 0
    }
}

/// The observations of a reader while threads count with one method: counters that went down, and values that do
/// not match each other.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Watched {
    /// The key of the counting method.
    pub case: String,
    /// The number of threads that counted.
    pub writers: usize,
    /// The number of migrations of the threads to another CPU.
    pub moves: u64,
    /// The number of reads of all four counters of an interface.
    pub reads: u64,
    /// Counters that were smaller than the time before.
    pub went_down: u64,
    /// Reads in which packets and bytes did not fit together, received or sent.
    pub misfits: u64,
    /// `true` if this method guarantees that pairs always match.
    pub pairs_promised: bool,
    /// Reads in which what was received was not what was sent. Nobody promises that it is: the
    /// figure is measured.
    pub split_events: u64,
    /// The number of turns of the threads' rings.
    #[serde(skip)]
    pub ring_rounds: u64,
}

/// The number of turns of a thread's ring before the thread migrates to the next CPU.
const STAY: u64 = 2000;

/// Reads one method's counters for some time while `writers` threads count and migrate between `cpus`; `tick` is
/// called with the time passed.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) if `tick` wants the end.
pub fn watch(
    label: &Label,
    method: &dyn CountingMethod,
    cpus: &[usize],
    writers: usize,
    time: Duration,
    tick: Tick<'_>,
) -> Result<Watched> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = End(&stop);
        let threads: Vec<_> = (0..writers)
            .filter_map(|thread| {
                let wanderer = Wanderer { method, stop: &stop, cpus, thread, threads: writers };
                // fewer threads are not as good a check, but one
                std::thread::Builder::new().spawn_scoped(scope, move || wanderer.wander()).ok()
            })
            .collect();
        let mut reader = Reader::new(method);
        let start = Instant::now();
        let mut ticked = Duration::ZERO;
        let mut outcome = Ok(());
        loop {
            // once at least: with many writers the time may be over before this thread has a CPU
            reader.read_all();
            let now = start.elapsed().min(time);
            if now > ticked + Duration::from_millis(20) {
                outcome = report(tick, now - ticked);
                ticked = now;
            }
            if now >= time || outcome.is_err() {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        let mut seen = Watched { case: label.key.into(), writers: threads.len(), ..reader.seen };
        for thread in threads {
            let (ring_rounds, moves) = thread.join().unwrap_or_default();
            seen.ring_rounds += ring_rounds;
            seen.moves += moves;
        }
        outcome?;
        report(tick, time.saturating_sub(ticked))?;
        Ok(seen)
    })
}

struct End<'s>(&'s AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A thread that counts and does not stay on its CPU.
struct Wanderer<'s> {
    method: &'s dyn CountingMethod,
    stop: &'s AtomicBool,
    cpus: &'s [usize],
    thread: usize,
    threads: usize,
}

impl Wanderer<'_> {
    fn wander(&self) -> (u64, u64) {
        let ring = Ring::new(self.thread, self.threads);
        let (mut ring_rounds, mut moves) = (0, 0);
        while !self.stop.load(Ordering::Relaxed) {
            // threads set out from different CPUs and take different routes
            let next = self.thread + moves as usize * (1 + self.thread / self.cpus.len());
            let moved = self.cpus.len() > 1 && cpus::pin(self.cpus[next % self.cpus.len()]).is_ok();
            moves += u64::from(moved);
            // the moves fall into all places of the ring
            let stay = STAY + ring_rounds % 97;
            for _ in 0..stay.div_ceil(50) {
                self.method.carry(&ring, 50);
                ring_rounds += 50;
                if self.stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        }
        (ring_rounds, moves)
    }
}

/// Reads all interfaces again and again, and compares with the time before.
struct Reader<'s> {
    method: &'s dyn CountingMethod,
    before: [Values; INTERFACES],
    seen: Watched,
}

impl<'s> Reader<'s> {
    fn new(method: &'s dyn CountingMethod) -> Self {
        let before = std::array::from_fn(|interface| method.read(interface));
        Reader { method, before, seen: Watched::default() }
    }

    fn read_all(&mut self) {
        for interface in 0..INTERFACES {
            let values = self.method.read(interface);
            self.note(interface, values);
        }
    }

    fn note(&mut self, interface: usize, values: Values) {
        let before = std::mem::replace(&mut self.before[interface], values);
        let [rx_packets, rx_bytes, tx_packets, tx_bytes] = values;
        let fit = |packets: u64, bytes: u64| values_after(interface, packets)[1] == bytes;
        self.seen.reads += 1;
        self.seen.went_down += before.iter().zip(&values).filter(|(before, now)| now < before).count() as u64;
        self.seen.misfits += u64::from(!fit(rx_packets, rx_bytes) || !fit(tx_packets, tx_bytes));
        self.seen.split_events += u64::from((rx_packets, rx_bytes) != (tx_packets, tx_bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{LABELS, LENGTHS};
    use std::ops::ControlFlow;
    use std::sync::Mutex;

    /// Counters that hold what a test wants.
    struct Told(Mutex<Vec<Values>>);

    impl CountingMethod for Told {
        fn carry(&self, _ring: &Ring, _rounds: u64) {}

        fn read(&self, interface: usize) -> Values {
            self.0.lock().expect("not poisoned")[interface]
        }
    }

    fn told(packets: u64) -> Told {
        Told(Mutex::new((0..INTERFACES).map(|interface| values_after(interface, packets)).collect()))
    }

    #[test]
    fn lost_and_doubled_counts_are_found() {
        let method = told(10);
        assert!(Exactness::check(&LABELS[0], &method, 10).holds());
        {
            let mut values = method.0.lock().expect("not poisoned");
            values[3][0] -= 2;
            values[5][1] += 7;
        }
        let found = Exactness::check(&LABELS[0], &method, 10);
        assert!(!found.holds());
        assert_eq!((found.packets, found.wrong, found.lost, found.doubled), (160, 2, 2, 7));
    }

    #[test]
    fn a_reader_without_time_reads_every_interface_once() {
        let seen = watch(&LABELS[0], &told(10), &[0], 1, Duration::ZERO, &mut |_| ControlFlow::Continue(()))
            .expect("nobody asks it to stop");
        assert_eq!(seen.reads, INTERFACES as u64);
    }

    #[test]
    fn a_reader_notices_what_does_not_fit() {
        let method = told(10);
        let mut reader = Reader::new(&method);
        reader.read_all();
        assert_eq!((reader.seen.reads, reader.seen.went_down, reader.seen.misfits), (16, 0, 0));
        let bytes = 11 * LENGTHS[2];
        reader.note(2, [11, bytes, 10, 10 * LENGTHS[2]]); // between the halves of an event
        assert_eq!((reader.seen.misfits, reader.seen.split_events), (0, 1));
        reader.note(2, [12, bytes, 11, bytes]); // between a packet and its bytes
        assert_eq!((reader.seen.misfits, reader.seen.went_down), (1, 0));
        reader.note(2, [11, bytes, 11, bytes]);
        assert_eq!((reader.seen.misfits, reader.seen.went_down), (1, 1));
    }
}
