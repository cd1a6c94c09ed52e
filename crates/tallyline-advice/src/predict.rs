//! The effect of a change by the model: the trace replayed as it was and as it would be, on many schedules.

use super::address_map::AddressMap;
use rayon::prelude::*;
use std::ops::Range;
use tallyline_timing::{Code, Processor, SharingCosts, TimedCores, TraceCosts};
use tallyline_trace::Error;
use tallyline_trace::coherence::{CoreModel, Excerpt, TimedModel, TimedOptions, replay_by_time};
use tallyline_trace::format::Access;

/// The simulated machine, and the number of thread schedules, on which the speed-up of a proposed change is
/// predicted.
#[derive(Clone, Debug)]
pub struct Model {
    /// The cores and their caches.
    pub processor: Processor,
    /// The number of cores.
    pub cores: u16,
    /// The least and the most that a line from another core costs, and what is usual.
    pub costs: [SharingCosts; 3],
    /// The number of schedules.
    pub seeds: u64,
}

/// Cycles of a thread's slice where threads share a core.
const SLICE: u64 = 3_000_000;

/// Cycles from a wake-up to the thread that runs.
const WAKE: u64 = 4_000;

/// The most cycles by which the start of a thread deviates.
const SKEW: u64 = 20_000;

impl Model {
    /// Simulates a traced process and returns what its instructions cost. `map` changes the addresses of its data
    /// (`None`: as recorded); `seed` selects the thread schedule and the costs within the machine's range.
    ///
    /// # Errors
    /// A sentence that says why the machine cannot be simulated.
    pub fn run(
        &self,
        excerpt: &Excerpt<'_>,
        code: &dyn Code,
        map: Option<&AddressMap>,
        seed: u64,
    ) -> Result<TraceCosts, String> {
        // every second one beside a busy thread
        let busy = self.processor.beside_busy_thread();
        let processor = if seed.is_multiple_of(2) { &self.processor } else { &busy };
        let costs = self.costs[(seed % 3) as usize].with_seed(seed);
        let mut cores =
            TimedCores::new(processor, self.cores, excerpt.instructions(), code)?.with_sharing(costs);
        map.into_iter().flat_map(AddressMap::plain).for_each(|instruction| cores.make_plain(instruction));
        let parts = TraceCosts::PARTS;
        let options = TimedOptions::new(SLICE * parts, WAKE * parts).with_skew(SKEW * parts, seed);
        let mut moved = Moved { cores, map };
        replay_by_time(excerpt, &mut moved, options).map_err(|error| error.to_string())?;
        Ok(moved.cores.finish())
    }

    /// Simulates a traced process as [`run`](Self::run) does on several schedules, as many at a time as there are CPUs,
    /// and returns the costs in the order of the seeds.
    ///
    /// # Errors
    /// Those of [`run`](Self::run).
    pub fn run_all(
        &self,
        excerpt: &Excerpt<'_>,
        code: &dyn Code,
        map: Option<&AddressMap>,
        seeds: Range<u64>,
    ) -> Result<Vec<TraceCosts>, String> {
        seeds.into_par_iter().map(|seed| self.run(excerpt, code, map, seed)).collect()
    }
}

/// Cores that see addresses as a map has them.
struct Moved<'m> {
    cores: TimedCores,
    map: Option<&'m AddressMap>,
}

impl CoreModel for Moved<'_> {
    fn cores(&self) -> u16 {
        self.cores.cores()
    }

    fn access(&mut self, core: u16, place: usize, access: &Access) -> Result<(), Error> {
        match self.map {
            None => self.cores.access(core, place, access),
            Some(map) => {
                let address = map.map(place, access.instruction(), access.address());
                let moved =
                    Access::new(access.instruction(), address, access.size(), access.store(), access.now());
                self.cores.access(core, place, &moved)
            }
        }
    }
}

impl TimedModel for Moved<'_> {
    fn time(&self, place: usize) -> u64 {
        self.cores.time(place)
    }

    fn wait_until(&mut self, place: usize, time: u64) {
        self.cores.wait_until(place, time);
    }

    fn leave_out(&mut self, place: usize) {
        self.cores.leave_out(place);
    }
}

/// The factor by which the modelled time of shared lines is taken to be off, either way, in a range that measurements are
/// held against. On Zen 5 (AMD EPYC, family 26) such ranges overlap the measured ones of 11 to 14 of 14 small programs,
/// in five runs with CPUs near and far; those over the schedules alone, which know the chance in a schedule and nothing
/// of what the model leaves out, did of 7 to 10.
const MODEL_ERROR: f64 = 1.5;

/// A predicted speed-up, as the lowest, median and highest ratio of times over several thread schedules; 1.5 means
/// 1.5 times as fast.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Effect {
    /// The lowest speed-up over the schedules.
    pub low: f64,
    /// The median of the speed-ups over the schedules.
    pub median: f64,
    /// The highest speed-up over the schedules.
    pub high: f64,
    /// The arithmetic mean of the speed-ups over the schedules.
    pub mean: f64,
}

impl Effect {
    /// Returns the lowest, median, highest and mean of some speed-up ratios; all 0 if there are none.
    pub fn of(mut ratios: Vec<f64>) -> Self {
        ratios.sort_by(f64::total_cmp);
        let (Some(low), Some(high)) = (ratios.first(), ratios.last()) else { return Self::default() };
        let middle = ratios.len() / 2;
        let median = match ratios.len() % 2 {
            0 => (ratios[middle - 1] + ratios[middle]) / 2.0,
            _ => ratios[middle],
        };
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        Self { low: *low, median, high: *high, mean }
    }

    /// Returns the lowest and highest speed-up that is to be expected of a measurement: those over the schedules, for
    /// the case that the saved (or lost) time is 1.5 times less or more than the model has it, as validated on small
    /// programs. No effect stays no effect.
    pub fn expected(self) -> (f64, f64) {
        let scaled = |ratio: f64, factor: f64| match ratio {
            faster if faster >= 1.0 => 1.0 + (faster - 1.0) * factor,
            slower if slower > 0.0 => 1.0 / (1.0 + (1.0 / slower - 1.0) / factor),
            none => none,
        };
        (scaled(self.low, 1.0 / MODEL_ERROR), scaled(self.high, MODEL_ERROR))
    }
}

/// The predicted speed-up of a proposed change: of the run's elapsed time, and of the time of all cores together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outlook {
    /// The speed-up of the traced run from the start of its second thread on; of one thread's from its start. What the
    /// first thread prepares takes the same time in a run of any length, and traced runs are short.
    pub run: Effect,
    /// The speed-up of the time of all cores together.
    pub cores: Effect,
}

/// Returns the two times by which predictions compare simulated runs of a program, in the model's parts of a cycle:
/// from the start of the run's second thread to its end, and of all cores together.
pub fn run_times(run: &TraceCosts) -> (u64, u64) {
    (run.parallel_time(), run.time())
}

/// Predicts the speed-up of a traced process by the change of addresses in `map`, over as many thread schedules as
/// `before` has entries: the [times](run_times) of each schedule without the change.
///
/// # Errors
/// A sentence that says why the machine cannot be simulated.
pub fn predict(
    model: &Model,
    excerpt: &Excerpt<'_>,
    code: &dyn Code,
    map: &AddressMap,
    before: &[(u64, u64)],
) -> Result<Outlook, String> {
    let (mut run, mut cores) = (Vec::new(), Vec::new());
    let after = model.run_all(excerpt, code, Some(map), 0..before.len() as u64)?;
    for ((end, time), after) in before.iter().zip(&after) {
        let (end_after, time_after) = run_times(after);
        run.push(*end as f64 / end_after.max(1) as f64);
        cores.push(*time as f64 / time_after.max(1) as f64);
    }
    Ok(Outlook { run: Effect::of(run), cores: Effect::of(cores) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_is_a_range_with_its_median() {
        assert_eq!(Effect::of(vec![3.0, 1.0, 2.0]), Effect { low: 1.0, median: 2.0, high: 3.0, mean: 2.0 });
        assert_eq!(Effect::of(vec![1.0, 2.0]).median, 1.5);
        assert_eq!(Effect::of(Vec::new()), Effect::default());
        assert_eq!(Effect::default().expected(), (0.0, 0.0));
    }

    #[test]
    fn an_expected_range_allows_for_the_models_error_either_way() {
        assert_eq!(Effect::of(vec![2.5, 3.0]).expected(), (2.0, 4.0));
        assert_eq!(Effect::of(vec![1.0, 1.0]).expected(), (1.0, 1.0));
        // a third or two thirds of the time more, of which 1.5 times as much or as little may be
        let (low, high) = Effect::of(vec![0.6, 0.75]).expected();
        assert!((low - 0.5).abs() < 1e-9 && (high - 1.0 / (1.0 + 1.0 / 4.5)).abs() < 1e-9, "{low} to {high}");
    }
}
