//! Detection of rounds of a benchmark during which something else slowed the CPU.
//!
//! A core's other hardware thread takes a share of its execution units; in a virtual machine it may belong to a
//! stranger, who is seen in no file of `/proc` and no clock. On a Zen 3 whose neighbours were busy three quarters of the
//! time a loop of simple instructions took 0.35 ns or 0.7, for seconds at a time, and an update of a lazy object 5.7 or
//! 8. So each run of a round is enclosed by a probe of known work, and rounds whose probes were slow are told from the
//! others.

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

/// The fastest probe of each thread of a benchmark, each on a CPU of its own.
#[derive(Debug, Clone, Default)]
pub struct FastestProbes(Vec<f64>);

impl FastestProbes {
    /// Creates the state before the first probe.
    pub const fn new() -> FastestProbes {
        FastestProbes(Vec::new())
    }

    /// Takes note of the probes of a run, one for each thread.
    pub fn observe(&mut self, probes: &[f64]) {
        self.0.resize(self.0.len().max(probes.len()), f64::INFINITY);
        for (fastest, probe) in self.0.iter_mut().zip(probes) {
            *fastest = fastest.min(*probe);
        }
    }

    /// Returns `true` if a run was quiet by its probes: each is near the fastest that was observed of its thread. Where
    /// a CPU was disturbed all the time, or never, all runs are.
    pub fn is_quiet(&self, probes: &[f64]) -> bool {
        probes.iter().zip(&self.0).all(|(probe, fastest)| *probe <= fastest * TOLERANCE)
    }
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
    fn a_probe_is_work_that_is_not_optimised_away() {
        // eight chains of two dependent operations a step, at no more than 6 GHz
        let least = (0..32).map(|_| probe()).fold(f64::INFINITY, f64::min);
        assert!(least > STEPS as f64 * 2.0 / 6.0, "{least} ns");
    }
}
