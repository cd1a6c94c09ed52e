//! The demo's results: the numbers behind the table, the page and the JSON.

use super::figures::{count, plural, ratio, short};
use serde::Serialize;
use statctr::{FallbackReason, Mode};
use tallyline_counting::checks::{Exactness, Watched};
use tallyline_counting::memory::Footprint;
use tallyline_counting::race::MethodResult;
use tallyline_counting::reading::{Cost, WalkRatio, What};
use tallyline_counting::{Family, LABELS, Label, ONE_COMMIT};
use tallyline_support::{Machine, Summary};

/// All results of `tallyline demo counters`, which compares methods of counting packets: times, exactness, memory. Its
/// fields are the JSON of `--json`.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    /// The version of the JSON structure.
    pub(crate) schema: u32,
    /// The objects that the demo counts: `packets`.
    pub(crate) demo: &'static str,
    /// `true` if the rounds were few and short, so that figures mean little.
    pub(crate) quick: bool,
    /// The end of the run, in seconds since 1970.
    pub(crate) unix_time: u64,
    /// The duration of the run in seconds.
    pub(crate) seconds: f64,
    /// The machine on which the demo ran.
    pub(crate) machine: Machine,
    /// The update method of our counters: `rseq`, or the fallback on this machine.
    pub(crate) mode: String,
    /// The size in bytes of the widest store that commits an event on this machine.
    pub(crate) vector_bytes: usize,
    /// The number of network interfaces that the packets visit in turn.
    pub(crate) interfaces: usize,
    /// The number of counters that a packet increments.
    pub(crate) counters_per_packet: usize,
    /// The measured numbers of threads.
    pub(crate) threads: Vec<usize>,
    /// The measurements of every counting method at every number of threads.
    pub(crate) cases: Vec<Case>,
    /// The cost of each other method relative to one commit.
    pub(crate) ratios: Vec<Ratio>,
    /// `true` if every method's counts were read back exactly.
    pub(crate) exact: bool,
    /// The exactness of each method.
    pub(crate) exactness: Vec<Exactness>,
    /// A reader's observations during the run.
    pub(crate) watched: Vec<Watched>,
    /// The cost of reading the counters.
    pub(crate) reads: Vec<Cost>,
    /// The cost of walking all possible CPUs relative to those present, on a synthetic machine.
    pub(crate) read_ratios: Vec<WalkRatio>,
    /// The memory of the demo's counters.
    pub(crate) memory: Footprint,
    /// The memory of a million counters on a synthetic machine.
    pub(crate) memory_of_many: Footprint,
    /// Remarks on the figures.
    pub(crate) notes: Vec<String>,
    /// The results summarised in one sentence.
    pub(crate) headline: String,
    /// The path of the HTML page, if one was written.
    pub(crate) page: Option<String>,
}

/// Formats the number of CPUs that counted in a pool of per-CPU counters, of all possible CPUs: `2 of 192 CPUs`, or
/// `one word each` if CPUs have no memory of their own.
pub(crate) fn counted(footprint: &Footprint) -> String {
    if footprint.is_apart() {
        format!("{} of {}", footprint.counting_cpus, plural(footprint.possible_cpus, "CPU"))
    } else {
        "one word each".into()
    }
}

/// The measured time to count one packet by one counting method (such as shared atomics) at one number of threads.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Case {
    pub(crate) case: &'static str,
    pub(crate) threads: usize,
    /// Always `ns/packet`: the time of one thread for one packet.
    pub(crate) unit: &'static str,
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) rounds: usize,
    /// Packets per second, all threads together: the middle round.
    pub(crate) packets_per_second: f64,
    /// Round by round, for plots.
    #[serde(skip)]
    pub(crate) series: Vec<f64>,
    #[serde(skip)]
    pub(crate) label: &'static Label,
}

/// The time to count one packet by one counting method (such as shared atomics) divided by that of another, at the same
/// number of threads.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Ratio {
    pub(crate) over: &'static str,
    pub(crate) under: &'static str,
    pub(crate) threads: usize,
    /// The middle of the ratios that the rounds came to.
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// Summarises the measured times per packet of all counting methods (shared atomics, `statctr`, …) at one number of
/// threads; `outcomes` has the methods in the order of [`LABELS`].
pub(crate) fn cases(threads: usize, outcomes: &[MethodResult]) -> Vec<Case> {
    let case = |(label, outcome): (&'static Label, &MethodResult)| {
        let all = Summary::of(&outcome.nanoseconds)?;
        Some(Case {
            case: label.key,
            threads,
            unit: "ns/packet",
            median: all.median,
            min: all.min,
            max: all.max,
            rounds: all.rounds,
            packets_per_second: Summary::of(&outcome.rates)?.median,
            series: outcome.nanoseconds.clone(),
            label,
        })
    };
    LABELS.iter().zip(outcomes).filter_map(case).collect()
}

/// Returns the time per packet of each other counting method divided by that of `statctr` with one commit (a single
/// store to all four counters) per packet.
pub(crate) fn ratios(cases: &[Case]) -> Vec<Ratio> {
    let under = |over: &Case| {
        cases.iter().find(|case| case.threads == over.threads && *case.label == LABELS[ONE_COMMIT])
    };
    let ratio = |over: &Case| {
        let under = under(over)?;
        let all = Summary::of_ratio(&over.series, &under.series)?;
        let (over, under, threads) = (over.case, under.case, over.threads);
        Some(Ratio { over, under, threads, median: all.median, min: all.min, max: all.max })
    };
    let others =
        cases.iter().filter(|case| case.label.family != Family::Nobody && *case.label != LABELS[ONE_COMMIT]);
    others.filter_map(ratio).collect()
}

impl Results {
    /// Returns the measured time per packet of a counting method at a number of threads; `None` if it was not
    /// measured.
    pub(crate) fn case(&self, label: &Label, threads: usize) -> Option<&Case> {
        self.cases.iter().find(|case| case.threads == threads && case.label == label)
    }

    /// Returns the time of a counting method divided by that of `statctr` with one commit (a single store) per packet,
    /// at a number of threads; `None` if it was not measured.
    pub(crate) fn ratio(&self, label: &Label, threads: usize) -> Option<&Ratio> {
        self.ratios.iter().find(|ratio| ratio.threads == threads && ratio.over == label.key)
    }

    /// Returns the largest number of threads that the demo measured with.
    pub(crate) fn most_threads(&self) -> usize {
        self.threads.last().copied().unwrap_or(1)
    }

    /// Returns the fastest counting method that uses shared atomics, at a number of threads, with which `statctr` is
    /// compared; `None` if none was measured.
    pub(crate) fn best_atomics(&self, threads: usize) -> Option<&Case> {
        let atomics =
            self.cases.iter().filter(|case| case.threads == threads && case.label.family == Family::Atomics);
        atomics.min_by(|a, b| a.median.total_cmp(&b.median))
    }

    /// Returns the measured times of reads of one extent (one counter, one group, all) by one counting method (`case`),
    /// on this machine or on the synthetic one (`made_up`).
    pub(crate) fn reads_of(
        &self,
        what: What,
        case: &'static str,
        made_up: bool,
    ) -> impl Iterator<Item = &Cost> {
        self.reads
            .iter()
            .filter(move |cost| cost.what == what && cost.case == case && cost.made_up == made_up)
    }

    /// Returns the number of packets that were counted with `statctr` in the demo.
    pub(crate) fn packets(&self) -> u64 {
        let ours = self.exactness.iter().filter(|check| check.case.starts_with("statctr"));
        ours.map(|check| check.packets).sum()
    }

    /// Returns a sentence with the demo's main result: the cost of counting, and if counts were lost.
    pub(crate) fn sentence(&self) -> String {
        let threads = self.most_threads();
        let costs = match (self.best_atomics(threads), self.case(&LABELS[ONE_COMMIT], threads), self.factor())
        {
            (Some(shared), Some(ours), Some(factor)) => format!(
                "On this machine, counting a packet costs {} ns with shared atomics and {} ns with statctr at {}: {} (median of {} rounds)",
                short(shared.median),
                short(ours.median),
                plural(threads, "thread"),
                compare(factor),
                ours.rounds,
            ),
            _ => "Nothing could be measured".into(),
        };
        format!("{costs}; {}.", self.verdict())
    }

    /// Returns the cost of the better atomics relative to ours, with all threads.
    fn factor(&self) -> Option<f64> {
        let threads = self.most_threads();
        Some(self.ratio(self.best_atomics(threads)?.label, threads)?.median)
    }

    /// Formats how much less `statctr` costs than shared atomics: `32 times less at 2 threads`; `None` if it was
    /// not measured.
    pub(crate) fn comparison(&self) -> Option<String> {
        Some(format!("{} at {}", compare(self.factor()?), plural(self.most_threads(), "thread")))
    }

    /// Returns a sentence that says if any count was lost or doubled.
    pub(crate) fn verdict(&self) -> String {
        if self.exact {
            format!("no count was lost in {} packets", count(self.packets()))
        } else {
            "COUNTS WERE LOST OR DOUBLED, see the checks".into()
        }
    }
}

/// Returns a factor in words.
fn compare(factor: f64) -> String {
    if factor >= 1.05 {
        format!("{} times less", ratio(factor))
    } else if factor <= 0.95 {
        format!("{} times more", ratio(1.0 / factor))
    } else {
        "about the same".into()
    }
}

/// Returns a remark about the mechanism by which `statctr` updates counters on this machine; `None` if it is the
/// usual one.
pub(crate) fn note_about(mode: Mode) -> Option<String> {
    let reason = statctr::fallback_reason().filter(|reason| *reason != FallbackReason::NotRegistered);
    if let (Mode::Striped, Some(reason)) = (mode, reason) {
        return Some(format!(
            "statctr updates a word per CPU atomically here, which takes a locked instruction: {reason}."
        ));
    }
    let note = match mode {
        Mode::Rseq => return None,
        Mode::Striped => {
            "statctr updates a word per CPU atomically here, which takes a locked instruction: restartable \
             sequences (rseq) are not registered. They need Linux on x86-64 or aarch64, no STATCTR_REGISTER=0 where libc registers no threads, and no \
             valgrind or sandbox that refuses them."
        }
        Mode::Uniprocessor => {
            "This machine has one possible CPU: statctr counts with one unlocked instruction, and there \
             is nobody to share a cache line with."
        }
        _ => "statctr was asked to share its words.",
    };
    Some(note.into())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tallyline_counting::reading::{self, POSSIBLE, PRESENT, SHARED, STATCTR};

    /// Returns costs of reads as another machine could have them.
    fn reads() -> Vec<Cost> {
        let cost = |case, what: What, made_up, cpus: usize| {
            let (first, each) = [(5.0, 0.6), (25.0, 1.4), (80.0, 8.6)][what as usize];
            let median = if case == SHARED { 0.3 * first } else { first + each * cpus as f64 };
            Cost::of_rounds(case, what, made_up, cpus, vec![median, median * 1.1, median * 0.9])
        };
        let of = |what| {
            let here = [cost(SHARED, what, false, 0), cost(STATCTR, what, false, 2)];
            let there = [1, 2, 4, 8, 16, PRESENT, 64, 96, 128, POSSIBLE];
            let there = there.into_iter().map(move |cpus| cost(STATCTR, what, true, cpus as usize));
            here.into_iter().chain(there)
        };
        What::ALL.into_iter().flat_map(of).collect()
    }

    /// Results as another machine could have them.
    pub(crate) fn sample(threads: &[usize]) -> Results {
        let cases: Vec<Case> = threads
            .iter()
            .flat_map(|&n| {
                let more = n as f64 - 1.0;
                let costs = [18.0 + 31.3 * more, 18.1 + 24.9 * more, 4.4, 1.6 + 0.01 * more, 0.14];
                let outcomes = costs.map(|cost| MethodResult {
                    nanoseconds: vec![cost * 1.2, cost, cost * 0.97],
                    rates: vec![n as f64 * 1e9 / cost],
                    ring_rounds: 1000,
                });
                super::cases(n, &outcomes)
            })
            .collect();
        let ways = || LABELS.iter().filter(|label| label.family != Family::Nobody);
        let exactness = ways().map(|label| Exactness {
            case: label.key.into(),
            packets: 12_345_678_901,
            counters: 64,
            ..Exactness::default()
        });
        let watched = ways().map(|label| Watched {
            case: label.key.into(),
            writers: 2 * threads.len(),
            moves: 47_545,
            reads: 15_305_216,
            misfits: if *label == LABELS[ONE_COMMIT] { 0 } else { 765_173 },
            pairs_promised: *label == LABELS[ONE_COMMIT],
            ..Watched::default()
        });
        let footprint = Footprint {
            counters: 1_000_000,
            slots: 1_000_000,
            possible_cpus: 192,
            counting_cpus: 2,
            bytes_per_counter_per_cpu: 8,
            resident_bytes: 16_400_000,
            reserved_bytes: 1_600_000_000,
            bytes_if_all_cpus_had_memory: 1_536_000_000,
        };
        let reads = reads();
        let mut results = Results {
            schema: 1,
            demo: "packets",
            quick: false,
            unix_time: 1_792_550_000,
            seconds: 19.5,
            machine: Machine::describe("none, as nothing is compiled"),
            mode: "rseq".into(),
            vector_bytes: 64,
            interfaces: 16,
            counters_per_packet: 4,
            threads: threads.into(),
            ratios: ratios(&cases),
            cases,
            exact: true,
            exactness: exactness.collect(),
            watched: watched.collect(),
            read_ratios: reading::ratios(&reads),
            reads,
            memory: footprint.clone(),
            memory_of_many: footprint,
            notes: vec!["<odd> & busy".into()],
            headline: String::new(),
            page: Some("/home/someone/tallyline-demo.html".into()),
        };
        results.headline = results.sentence();
        results
    }

    #[test]
    fn the_sentence_names_the_better_atomics_and_what_was_lost() {
        let mut results = sample(&[1, 2]);
        assert_eq!(
            results.sentence(),
            "On this machine, counting a packet costs 43.0 ns with shared atomics and 1.61 ns with statctr at \
             2 threads: 27 times less (median of 3 rounds); no count was lost in 24,691,357,802 packets."
        );
        results.exact = false;
        assert!(results.sentence().ends_with("COUNTS WERE LOST OR DOUBLED, see the checks."));
    }

    #[test]
    fn factors_are_told_in_the_right_direction() {
        assert_eq!(compare(34.4), "34 times less");
        assert_eq!(compare(1.01), "about the same");
        assert_eq!(compare(0.5), "2.0 times more");
    }

    #[test]
    fn ratios_are_over_one_commit_round_by_round() {
        let outcome = |nanoseconds: [f64; 3]| MethodResult {
            nanoseconds: nanoseconds.into(),
            rates: vec![1.0],
            ring_rounds: 0,
        };
        let outcomes = [[40.0, 80.0, 42.0], [60.0; 3], [4.0; 3], [2.0, 4.0, 2.0], [0.1; 3]].map(outcome);
        let cases = cases(2, &outcomes);
        assert_eq!(cases.len(), LABELS.len());
        let ratios = ratios(&cases);
        assert_eq!(ratios.len(), 3);
        assert_eq!((ratios[0].over, ratios[0].median), ("shared-atomic/packed", 20.0));
    }

    #[test]
    fn only_the_full_speed_goes_without_a_note() {
        assert_eq!(note_about(Mode::Rseq), None);
        for mode in [Mode::Striped, Mode::Uniprocessor, Mode::Shared] {
            assert!(note_about(mode).is_some());
        }
    }
}
