//! The time of a cache line between two CPUs of this machine.
//!
//! Two threads pass a line to and fro, each a store and a load that waits for it; half of that is what a core waits for a
//! line that another one has modified. In a virtual machine CPUs are near or far for a while, so that it is measured in
//! many short parts, and a range is the result.

use crate::cpus;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Parts of the measurement, and times that the line goes to and fro in each.
const PARTS: usize = 40;
const ROUNDS: u64 = 300;

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

/// The measured time in cycles in which a modified cache line passes from one CPU to another: the 10th and 90th
/// percentile of many short measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineTransfer {
    /// The tenth percentile.
    pub least: u32,
    /// The ninetieth percentile.
    pub most: u32,
}

/// A word on lines of its own, with what else both threads use.
#[repr(align(256))]
#[derive(Default)]
struct Apart<T>(T);

/// Measures, in cycles, how long a modified cache line takes to pass between the first two CPUs that this process may
/// run on. Returns `None` if there is only one CPU or the results are implausible. Takes 0.2 seconds, up to 1.5 on busy
/// CPUs; the calling thread's affinity stays as it is.
///
/// # Errors
/// If the kernel does not say which CPUs there are.
pub fn measure() -> io::Result<Option<LineTransfer>> {
    let all = cpus::allowed_cpus()?;
    let [first, second, ..] = all[..] else { return Ok(None) };
    let (ball, ends) = (Apart(AtomicU64::new(0)), Apart(AtomicBool::new(false)));
    let parts = std::thread::scope(|scope| {
        let answers = scope.spawn(|| {
            cpus::pin(second)?;
            answer(&ball.0, &ends.0);
            Ok(())
        });
        let asks = scope.spawn(|| {
            let parts = cpus::pin(first).map(|()| ask(&ball.0));
            ends.0.store(true, Ordering::Relaxed);
            parts
        });
        let answered: io::Result<()> = answers.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        let parts = asks.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        answered.and(parts)
    })?;
    Ok(range(parts))
}

fn range(mut parts: Vec<f64>) -> Option<LineTransfer> {
    parts.retain(|cycles| SENSIBLE.contains(cycles));
    parts.sort_by(f64::total_cmp);
    let at = |part: f64| parts.get(((parts.len().max(1) - 1) as f64 * part).round() as usize).copied();
    Some(LineTransfer { least: at(0.1)?.round() as u32, most: at(0.9)?.round() as u32 })
}

/// Answers each odd number with the next one.
fn answer(ball: &AtomicU64, ends: &AtomicBool) {
    let mut spins = 0_u32;
    loop {
        let number = ball.load(Ordering::Acquire);
        if number % 2 == 1 {
            ball.store(number + 1, Ordering::Release);
        } else {
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(4096) && ends.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}

/// Returns the cycles of one way, part by part.
fn ask(ball: &AtomicU64) -> Vec<f64> {
    let begun = Instant::now();
    let mut parts = Vec::new();
    let mut number = 0;
    for _ in 0..PARTS {
        let cycle = cycle();
        // the first ways of a part wake the other side's line
        let mut started = Instant::now();
        for round in 0..ROUNDS + 20 {
            if round == 20 {
                started = Instant::now();
            }
            ball.store(number + 1, Ordering::Release);
            let mut spins = 0_u32;
            while ball.load(Ordering::Acquire) != number + 2 {
                spins = spins.wrapping_add(1);
                if spins.is_multiple_of(4096) && begun.elapsed() > LIMIT {
                    return parts;
                }
            }
            number += 2;
        }
        parts.push(started.elapsed().as_secs_f64() / (2 * ROUNDS) as f64 / cycle);
        if begun.elapsed() > LIMIT {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    parts
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
    fn a_range_has_the_outer_tenths_and_nothing_absurd() {
        let parts = (0..=100).map(|at| 100.0 + f64::from(at)).chain([0.0, 1e9, f64::NAN]).collect();
        assert_eq!(range(parts), Some(LineTransfer { least: 110, most: 190 }));
        assert_eq!(range(vec![0.0]), None);
    }

    #[test]
    fn lines_are_timed_where_there_are_two_cpus() {
        let measured = measure().expect("CPUs");
        assert!(measured.is_none_or(|range| range.least <= range.most && range.least > 0), "{measured:?}");
    }
}
