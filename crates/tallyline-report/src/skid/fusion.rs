//! Learning from a recording which pairs its CPU retires as one instruction.
//!
//! A sample between the two halves of a pair says that they retire one after the other; many samples behind the
//! pair and none between its halves, that they retire as one. Where a recording has too few samples of a kind of
//! pair, the rules of the CPU's vendor are assumed.

use super::vendors::Generation;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fmt;
use tallyline_inference::code::FusiblePair;

/// The fewest samples behind pairs of a kind, with none between their halves, by which they are taken for fused.
const ENOUGH_BEHIND: u64 = 48;

/// The fewest samples between halves by which pairs of a kind are taken for two instructions.
const ENOUGH_BETWEEN: u64 = 8;

/// Samples behind pairs for each sample between their halves at which pairs of a kind are taken for fused.
///
/// A jump that is mispredicted leaves some twenty cycles behind it, its own retirement half a cycle in front of it:
/// in pairs that retire one after the other this is 1 in 40 or more.
const BEHIND_PER_BETWEEN: u64 = 150;

/// Numbers of samples between the two instructions of compare-and-jump pairs, and behind the pairs, by kind of
/// pair: they show if the CPU fuses them.
#[derive(Debug, Default)]
pub(crate) struct PairCounts {
    // between the halves, behind the jump
    counts: FxHashMap<FusiblePair, (u64, u64)>,
}

impl PairCounts {
    /// Counts samples at the jump of a compare-and-jump pair, that is, between its two instructions.
    pub(crate) fn between(&mut self, pair: FusiblePair, samples: u64) {
        self.counts.entry(pair).or_default().0 += samples;
    }

    /// Counts samples at the instruction after a compare-and-jump pair.
    pub(crate) fn behind(&mut self, pair: FusiblePair, samples: u64) {
        self.counts.entry(pair).or_default().1 += samples;
    }

    /// Adds the numbers of samples at compare-and-jump pairs that were counted in another function.
    pub(crate) fn add(&mut self, other: &PairCounts) {
        for (pair, (between, behind)) in &other.counts {
            let own = self.counts.entry(*pair).or_default();
            own.0 += between;
            own.1 += behind;
        }
    }
}

/// The basis of the decision if a CPU fuses a kind of compare-and-jump pair: the recording's samples, or the
/// vendor's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleSource {
    /// The recording's own samples.
    Learnt {
        /// Samples between the halves.
        between: u64,
        /// Samples behind the jump.
        behind: u64,
    },
    /// The vendor's rules for the CPU, as the recording has too few samples.
    Assumed,
}

/// The decision if the recorded CPU fuses a kind of compare-and-jump pair into one instruction, with its basis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairRule {
    /// `true` if the pair retires as one instruction.
    pub is_fused: bool,
    /// The basis of the decision: the recording's samples, or the vendor's rules.
    pub source: RuleSource,
}

/// The decisions, for all kinds of compare-and-jump pairs near a recording's samples, if its CPU fuses them.
#[derive(Clone, Debug, Default)]
pub(crate) struct FusionRules {
    rules: BTreeMap<FusiblePair, PairRule>,
    // what is assumed; none of a CPU of which nothing is known
    assumed: Option<&'static Generation>,
}

impl FusionRules {
    /// Decides for each counted kind of compare-and-jump pair if the CPU fuses it, by the samples or else by the
    /// vendor's rules. `cpu_id` is perf's identifier of the CPU model: vendor, family, model, stepping.
    pub(crate) fn new(cpu_id: Option<&str>, counts: &PairCounts) -> FusionRules {
        let generation = cpu_id.and_then(Generation::of);
        let assumed = |pair: &FusiblePair| generation.is_some_and(|rules| rules.is_fused(pair));
        let rule = |(pair, (between, behind)): (&FusiblePair, &(u64, u64))| {
            let (between, behind) = (*between, *behind);
            let learnt = RuleSource::Learnt { between, behind };
            let rule = if behind >= ENOUGH_BEHIND && between.saturating_mul(BEHIND_PER_BETWEEN) <= behind {
                PairRule { is_fused: true, source: learnt }
            } else if between >= ENOUGH_BETWEEN {
                PairRule { is_fused: false, source: learnt }
            } else {
                PairRule { is_fused: assumed(pair), source: RuleSource::Assumed }
            };
            (*pair, rule)
        };
        FusionRules { rules: counts.counts.iter().map(rule).collect(), assumed: generation }
    }

    /// Returns `true` if the CPU fuses a kind of compare-and-jump pair into one instruction.
    pub(crate) fn is_fused(&self, pair: &FusiblePair) -> bool {
        let assumed = || self.assumed.is_some_and(|rules| rules.is_fused(pair));
        self.rules.get(pair).map_or_else(assumed, |rule| rule.is_fused)
    }

    /// Returns the kinds of compare-and-jump pairs near samples, each with the decision if the CPU fuses it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&FusiblePair, &PairRule)> {
        self.rules.iter()
    }
}

impl fmt::Display for FusionRules {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_learnt = |rule: &&PairRule| matches!(rule.source, RuleSource::Learnt { .. });
        let fused = |is_fused: bool| self.rules.values().filter(move |rule| rule.is_fused == is_fused);
        for (is_fused, title, separator) in [(true, "retired as one", "; "), (false, "as two", "")] {
            let (all, learnt) = (fused(is_fused).count(), fused(is_fused).filter(is_learnt).count());
            let kinds = if all == 1 { "kind of pair" } else { "kinds of pairs" };
            write!(out, "{all} {kinds} {title} ({learnt} learnt, {} assumed){separator}", all - learnt)?;
        }
        if self.rules.values().all(|rule| is_learnt(&rule)) {
            return Ok(());
        }
        match self.assumed {
            Some(rules) => write!(out, "; {}", rules.source()),
            None => write!(out, "; no rules are known for this CPU"),
        }
    }
}
