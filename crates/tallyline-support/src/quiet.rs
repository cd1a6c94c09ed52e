//! Detection of rounds of a benchmark during which something else slowed the CPU.
//!
//! A core's other hardware thread takes a share of its execution units; in a virtual machine it may belong to a
//! stranger, who is seen in no file of `/proc` and no clock. On a Zen 3 whose neighbours were busy three quarters of the
//! time a loop of simple instructions took 0.35 ns or 0.7, for seconds at a time, and an update of a lazy object 5.7 or
//! 8. So each run of a round is enclosed by a probe of known work, and rounds whose probes were slow are told from the
//! others.

use crate::Summary;
use std::hint::black_box;
use std::time::Instant;

/// Steps of a probe's loop: 5 to 10 microseconds.
const STEPS: u64 = 4096;

/// The largest quotient of a probe's time and the fastest one's that counts as quiet: an idle core's probes differ by a
/// few per cent, and a busy neighbour takes a third of the units and more.
const TOLERANCE: f64 = 1.1;

/// The smallest number of quiet rounds that are reported on their own.
pub const MIN_QUIET_ROUNDS: usize = 9;

/// Times a loop whose eight independent chains of operations fill the core's execution units, in nanoseconds. The
/// result has no meaning but in comparison with others of the same CPU.
pub fn probe() -> f64 {
    let start = Instant::now();
    let mut chains = [1_u64, 2, 3, 4, 5, 6, 7, 8];
    for step in 0..black_box(STEPS) {
        chains = chains.map(|chain| chain.wrapping_add(step).rotate_left(7));
    }
    black_box(chains);
    start.elapsed().as_nanos() as f64
}

/// The fastest probes of a process's benchmarks: of each thread, for each number of threads that ran at once. Threads of
/// one number run on the same CPUs in each benchmark: what one of them never saw another one may have. With more cores
/// busy their clocks may be lower.
#[derive(Debug, Clone, Default)]
pub struct FastestProbes(Vec<Vec<f64>>);

impl FastestProbes {
    /// Creates the state before the first probe.
    pub const fn new() -> FastestProbes {
        FastestProbes(Vec::new())
    }

    /// Takes note of the probes of a run, one for each thread.
    pub fn observe(&mut self, probes: &[f64]) {
        let threads = probes.len();
        for threads in self.0.len()..=threads {
            self.0.push(vec![f64::INFINITY; threads]);
        }
        for (fastest, probe) in self.0[threads].iter_mut().zip(probes) {
            *fastest = fastest.min(*probe);
        }
    }

    /// Returns `true` if a run was quiet by its probes: each is near the fastest that was observed of its thread among as
    /// many. Where a CPU was disturbed all the time, or never, all runs are.
    pub fn is_quiet(&self, probes: &[f64]) -> bool {
        let fastest = self.0.get(probes.len()).map_or(&[][..], Vec::as_slice);
        probes.iter().zip(fastest).all(|(probe, fastest)| *probe <= fastest * TOLERANCE)
    }
}

/// Summarises the figures of the quiet rounds among a benchmark's; `None` where they are fewer than
/// [`MIN_QUIET_ROUNDS`], or all: then the figure of all rounds is theirs, or no probe tells them from the others.
pub fn summarize(figures: &[f64], is_quiet: impl Fn(usize) -> bool) -> Option<Summary> {
    let quiet: Vec<f64> =
        figures.iter().enumerate().filter(|(round, _)| is_quiet(*round)).map(|(_, figure)| *figure).collect();
    Summary::of(&quiet).filter(|quiet| (MIN_QUIET_ROUNDS..figures.len()).contains(&quiet.rounds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_quiet_if_each_thread_is_near_its_own_fastest() {
        let runs = [[5.0, 8.0], [5.4, 8.1], [9.0, 8.0], [5.1, 16.0], [6.1, 8.0]];
        let mut fastest = FastestProbes::default();
        runs.iter().for_each(|probes| fastest.observe(probes));
        assert_eq!(runs.map(|probes| fastest.is_quiet(&probes)), [true, true, false, false, false]);
    }

    #[test]
    fn runs_of_more_threads_are_compared_with_runs_of_as_many() {
        let mut fastest = FastestProbes::new();
        fastest.observe(&[5.0]);
        fastest.observe(&[6.0, 6.1]);
        assert!(fastest.is_quiet(&[6.1, 6.2]) && fastest.is_quiet(&[5.1]));
        assert!(!fastest.is_quiet(&[6.0]) && !fastest.is_quiet(&[6.0, 7.0]));
    }

    #[test]
    fn quiet_rounds_have_a_summary_if_they_are_enough_and_not_all() {
        let figures: Vec<f64> = (0..20).map(f64::from).collect();
        let of = |first: usize| {
            summarize(&figures, |round| round >= first).map(|quiet| (quiet.rounds, quiet.median))
        };
        assert_eq!(of(20 - MIN_QUIET_ROUNDS), Some((9, 15.0)));
        assert_eq!((of(0), of(21 - MIN_QUIET_ROUNDS)), (None, None));
    }

    #[test]
    fn a_probe_is_work_that_is_not_optimised_away() {
        // eight chains of two dependent operations a step, at no more than 6 GHz
        let least = (0..32).map(|_| probe()).fold(f64::INFINITY, f64::min);
        assert!(least > STEPS as f64 * 2.0 / 6.0, "{least} ns");
    }
}
