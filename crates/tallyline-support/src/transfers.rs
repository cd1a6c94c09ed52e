//! The time of a cache line between two CPUs of this machine.
//!
//! One thread writes lines that the other then loads, one behind the other: that is the time of a line that nobody else
//! wants. Then both add to one word. From the numbers that they get they see whenever the other one had the line in
//! between: that tells how often it goes to and fro, and how long each keeps it. In a virtual machine CPUs are near or
//! far for a while, so that all is measured in many short parts.

use crate::cpus;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Parts of the measurement.
const PARTS: usize = 40;

/// Lines that are loaded one behind the other: a full round of [`next`].
const LINES: usize = 64;

/// Rounds of loads in each part.
const ROUNDS: u64 = 6;

/// Additions of a thread in each part.
const ADDITIONS: u64 = 1500;

/// Pause between two parts.
const PAUSE: Duration = Duration::from_millis(4);

/// The longest measurement, on a machine whose CPUs are busy.
const LIMIT: Duration = Duration::from_millis(1500);

/// Multiplications with an addition behind each, four cycles together, that a cycle is told by.
const STEPS: u32 = 20_000;

/// Cycles of a step on all present x86-64 cores.
const STEP_CYCLES: f64 = 4.0;

/// Cycles that are believed.
const SENSIBLE: std::ops::RangeInclusive<f64> = 20.0..=3000.0;

/// The cycles that a modified cache line takes between two CPUs, by one short measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineTransfer {
    /// From a load of the line to its data, if nobody else wants it.
    pub latency: u32,
    /// From one CPU's possession to the other's, if both want it all the time.
    pub interval: u32,
    /// The part of that time for which a CPU keeps it.
    pub hold: u32,
}

/// The words that both threads use, each on lines of its own.
struct Shared {
    // a request, or its answer: see [`REQUESTS`]
    ball: Apart<AtomicU64>,
    ends: Apart<AtomicBool>,
    word: Apart<AtomicU64>,
    lines: [Apart<AtomicUsize>; LINES],
}

impl Shared {
    fn new() -> Self {
        Self {
            ball: Apart::default(),
            ends: Apart::default(),
            word: Apart::default(),
            lines: std::array::from_fn(|_| Apart::default()),
        }
    }
}

/// A word with nothing beside it.
#[repr(align(256))]
#[derive(Default)]
struct Apart<T>(T);

/// The bits of the ball's number that hold the request; an answer has none of them set.
const REQUESTS: u64 = 3;
/// The request to write the lines.
const WRITE: u64 = 1;
/// The request to add to the word until the next number.
const ADD: u64 = 2;

/// Measures the cycles that a modified cache line takes from one CPU to another, in short parts that take 0.2 seconds
/// in all; returns the results of the parts in the order of their latencies, as [`measure_parts`] does.
///
/// # Errors
/// If the kernel does not say which CPUs there are.
pub fn measure() -> io::Result<Vec<LineTransfer>> {
    measure_parts(PARTS)
}

/// Measures the cycles that a modified cache line takes from one CPU to another, the first two that this process may run
/// on, in so many parts of 5 ms. Returns the parts in the order of their latencies; none where there is only one CPU, or
/// nothing sensible comes of it. Takes at most 1.5 seconds, where CPUs are busy; the calling thread keeps its CPUs.
///
/// # Errors
/// If the kernel does not say which CPUs there are.
pub fn measure_parts(count: usize) -> io::Result<Vec<LineTransfer>> {
    let all = cpus::allowed_cpus()?;
    let [first, second, ..] = all[..] else { return Ok(Vec::new()) };
    let shared = Shared::new();
    let parts = std::thread::scope(|scope| {
        let answers = scope.spawn(|| {
            cpus::pin(second)?;
            answer(&shared);
            Ok(())
        });
        let asks = scope.spawn(|| {
            let parts = cpus::pin(first).map(|()| ask(&shared, count));
            shared.ends.0.store(true, Ordering::Relaxed);
            parts
        });
        let answered: io::Result<()> = answers.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        let parts = asks.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        answered.and(parts)
    })?;
    let mut sensible: Vec<LineTransfer> = parts.into_iter().filter_map(Part::transfer).collect();
    sensible.sort_unstable();
    Ok(sensible)
}

/// Returns the measurement of cache-line transfers between two CPUs at the quantile `part` (0.5: the median) of
/// `parts`, which must be sorted; `None` if there are none.
pub fn quantile(parts: &[LineTransfer], part: f64) -> Option<LineTransfer> {
    let last = parts.len().checked_sub(1)?;
    parts.get((last as f64 * part.clamp(0.0, 1.0)).round() as usize).copied()
}

/// The measured values of one short part of the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Part {
    /// The cycles of a load of a line that the other thread wrote.
    latency: f64,
    /// The cycles for which both threads added to the word.
    cycles: f64,
    /// The number of a thread's additions, and of those among them that followed one of the other thread.
    additions: (f64, f64),
    /// The cycles of an addition that no other thread competes with.
    alone: f64,
}

impl Part {
    /// Returns the line's times, if they are sensible.
    fn transfer(self) -> Option<LineTransfer> {
        let (all, taken) = self.additions;
        // the line goes to and fro
        let interval = self.cycles / taken / 2.0;
        let hold = (all / taken * self.alone).min(interval);
        let is_sensible = SENSIBLE.contains(&self.latency) && SENSIBLE.contains(&interval) && hold >= 0.0;
        is_sensible.then(|| LineTransfer {
            latency: self.latency.round() as u32,
            interval: interval.round() as u32,
            hold: hold.round() as u32,
        })
    }
}

/// The line behind another one: all of them in an order that no prefetcher expects.
fn next(line: usize) -> usize {
    (line * 29 + 27) % LINES
}

/// Does what each number asks for.
fn answer(shared: &Shared) {
    let mut spins = 0_u32;
    loop {
        let number = shared.ball.0.load(Ordering::Acquire);
        match number & REQUESTS {
            WRITE => {
                for (at, line) in shared.lines.iter().enumerate() {
                    line.0.store(next(at), Ordering::Relaxed);
                }
                shared.ball.0.store(number & !REQUESTS, Ordering::SeqCst);
            }
            ADD => {
                while shared.ball.0.load(Ordering::Relaxed) == number {
                    for _ in 0..50 {
                        shared.word.0.fetch_add(1, Ordering::Relaxed);
                    }
                    if shared.ends.0.load(Ordering::Relaxed) {
                        return;
                    }
                }
            }
            _ => {
                spins = spins.wrapping_add(1);
                if spins.is_multiple_of(4096) && shared.ends.0.load(Ordering::Relaxed) {
                    return;
                }
            }
        }
    }
}

/// Sends the requests to the answering thread, and returns the results of up to `count` parts.
fn ask(shared: &Shared, count: usize) -> Vec<Part> {
    let begun = Instant::now();
    let mut parts = Vec::new();
    let mut number = 0;
    while parts.len() < count && begun.elapsed() < LIMIT {
        let cycle = cycle();
        let Some(latency) = latency(shared, &mut number, begun) else { break };
        let (seconds, additions) = additions(shared, &mut number);
        let started = Instant::now();
        for _ in 0..ADDITIONS {
            shared.word.0.fetch_add(1, Ordering::Relaxed);
        }
        parts.push(Part {
            latency: latency / cycle,
            cycles: seconds / cycle,
            additions,
            alone: started.elapsed().as_secs_f64() / ADDITIONS as f64 / cycle,
        });
        std::thread::sleep(PAUSE);
    }
    parts
}

/// Returns the seconds of a load of a line that the other thread wrote; none if that does not answer.
fn latency(shared: &Shared, number: &mut u64, begun: Instant) -> Option<f64> {
    let mut least = f64::MAX;
    for _ in 0..ROUNDS {
        *number += REQUESTS + 1;
        shared.ball.0.store(*number | WRITE, Ordering::SeqCst);
        let mut spins = 0_u32;
        while shared.ball.0.load(Ordering::Acquire) != *number {
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(4096) && begun.elapsed() > LIMIT {
                return None;
            }
        }
        let started = Instant::now();
        let mut at = 0;
        for _ in 0..LINES {
            at = shared.lines[at % LINES].0.load(Ordering::Relaxed);
        }
        std::hint::black_box(at);
        least = least.min(started.elapsed().as_secs_f64() / LINES as f64);
    }
    Some(least)
}

/// Adds together with the other thread: the seconds, the additions, and how many of them followed one of the other's.
fn additions(shared: &Shared, number: &mut u64) -> (f64, (f64, f64)) {
    *number += REQUESTS + 1;
    let word = &shared.word.0;
    let mut last = word.load(Ordering::Relaxed);
    shared.ball.0.store(*number | ADD, Ordering::SeqCst);
    // until the other one is there
    for _ in 0..100 * ADDITIONS {
        let before = last;
        last = word.fetch_add(1, Ordering::Relaxed);
        if last > before + 1 {
            break;
        }
    }
    let (started, mut taken) = (Instant::now(), 0);
    for _ in 0..ADDITIONS {
        let seen = word.fetch_add(1, Ordering::Relaxed);
        taken += u64::from(seen != last + 1);
        last = seen;
    }
    let seconds = started.elapsed().as_secs_f64();
    *number += REQUESTS + 1;
    shared.ball.0.store(*number, Ordering::SeqCst);
    (seconds, (ADDITIONS as f64, taken as f64))
}

/// Returns the seconds of a cycle.
fn cycle() -> f64 {
    let started = Instant::now();
    // a factor that the compiler knows would let it fold several steps into one
    let factor = std::hint::black_box(0x9e37_79b9_7f4a_7c15_u64);
    let mut value = std::hint::black_box(1_u64);
    for _ in 0..std::hint::black_box(STEPS) {
        value = value.wrapping_mul(factor).wrapping_add(1);
    }
    std::hint::black_box(value);
    started.elapsed().as_secs_f64() / f64::from(STEPS) / STEP_CYCLES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_tells_how_long_a_line_stays_and_how_long_it_is_under_way() {
        let part = Part { latency: 120.0, cycles: 90_000.0, additions: (1000.0, 500.0), alone: 8.0 };
        assert_eq!(part.transfer(), Some(LineTransfer { latency: 120, interval: 90, hold: 16 }));
        for absurd in [
            Part { additions: (1000.0, 0.0), ..part },
            Part { latency: f64::NAN, ..part },
            Part { cycles: 1e12, ..part },
        ] {
            assert_eq!(absurd.transfer(), None, "{absurd:?}");
        }
    }

    #[test]
    fn quantiles_are_measurements() {
        let parts: Vec<LineTransfer> =
            (0..=10).map(|at| LineTransfer { latency: 100 + at, interval: 90, hold: 16 }).collect();
        let latency = |part| quantile(&parts, part).map(|transfer| transfer.latency);
        assert_eq!([0.1, 0.5, 0.9].map(latency), [Some(101), Some(105), Some(109)]);
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn the_round_of_lines_is_a_full_one() {
        let mut seen = std::collections::BTreeSet::new();
        let mut at = 0;
        while seen.insert(at) {
            at = next(at);
        }
        assert_eq!(seen.len(), LINES);
    }

    #[test]
    fn lines_are_timed_where_there_are_two_cpus() {
        let measured = measure().expect("CPUs");
        assert!(measured.iter().all(|part| part.hold <= part.interval && part.latency > 0), "{measured:?}");
        assert!(measured.is_sorted(), "{measured:?}");
    }
}
