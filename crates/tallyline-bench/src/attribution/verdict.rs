//! Holding the blame of a shape against its truth.

use super::sides::Blame;
use super::truth::Truth;
use serde::Serialize;

/// The fewest samples of a shape that are judged.
pub(super) const ENOUGH: u64 = 100;

/// The standard deviations of a share that chance is given.
const DEVIATIONS: f64 = 3.0;

/// Shares of a shape's samples, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Shares {
    /// The share of samples that name a field of the truth.
    pub(super) right: f64,
    /// The share of samples that name another field.
    pub(super) other: f64,
    /// The share of samples that name no field: no memory, the stack, variables.
    pub(super) none: f64,
}

/// The verdict on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// The bars are met.
    Met,
    /// A bar is missed by less than chance explains with so many samples.
    WithinError,
    /// A bar is missed.
    Missed,
    /// Too few samples to judge by.
    TooFew,
}

impl Shares {
    /// Returns the shares of some samples; zeros where there are none.
    pub(super) fn of(blame: &Blame, truth: &Truth) -> Shares {
        let percent = |samples: u64| 100.0 * samples as f64 / blame.samples.max(1) as f64;
        let is_right = |name: &str| match truth {
            Truth::Stall { field, .. } => Truth::is_field(name, field),
            Truth::Shares { fields, .. } => fields.iter().any(|(field, _)| Truth::is_field(name, field)),
        };
        let named: u64 = blame.fields.values().sum();
        let right = blame.fields.iter().filter(|(name, _)| is_right(name)).map(|(_, samples)| samples).sum();
        Shares {
            right: percent(right),
            other: percent(named - right),
            none: percent(blame.samples.saturating_sub(named)),
        }
    }
}

/// Returns the share of one field, in percent.
pub(super) fn share(blame: &Blame, field: &str) -> f64 {
    let named = blame.fields.iter().filter(|(name, _)| Truth::is_field(name, field));
    100.0 * named.map(|(_, samples)| *samples).sum::<u64>() as f64 / blame.samples.max(1) as f64
}

impl Verdict {
    /// Judges samples by the bars of a truth.
    pub(super) fn of(blame: &Blame, truth: &Truth) -> Verdict {
        if blame.samples < ENOUGH {
            return Verdict::TooFew;
        }
        let shares = Shares::of(blame, truth);
        // how far a share is on the wrong side of a bar, and what chance explains of that
        let excesses: Vec<(f64, f64)> = match truth {
            Truth::Stall { right, other, .. } => vec![
                (right - shares.right, error(*right, blame.samples)),
                (shares.other - other, error(*other, blame.samples)),
            ],
            Truth::Shares { fields, tolerance } => fields
                .iter()
                .map(|(field, truth)| {
                    let difference = (share(blame, field) - truth).abs();
                    (difference - tolerance, error(*truth, blame.samples))
                })
                .collect(),
        };
        match excesses {
            all if all.iter().all(|(excess, _)| *excess <= 0.0) => Verdict::Met,
            all if all.iter().all(|(excess, error)| excess <= error) => Verdict::WithinError,
            _ => Verdict::Missed,
        }
    }

    /// Returns the verdict in a word or two.
    pub(super) fn text(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::WithinError => "within error",
            Verdict::Missed => "not met",
            Verdict::TooFew => "too few samples",
        }
    }
}

/// Returns the error of a share among so many samples, in percent: of the binomial distribution.
fn error(share: f64, samples: u64) -> f64 {
    let part = share / 100.0;
    100.0 * DEVIATIONS * (part * (1.0 - part) / samples.max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALL: Truth = Truth::Stall { field: "cold", right: 85.0, other: 5.0 };

    fn blame(samples: u64, fields: &[(&str, u64)]) -> Blame {
        let fields = fields.iter().map(|(field, samples)| ((*field).to_owned(), *samples)).collect();
        Blame { samples, fields }
    }

    fn verdict(samples: u64, fields: &[(&str, u64)]) -> Verdict {
        Verdict::of(&blame(samples, fields), &STALL)
    }

    #[test]
    fn a_bar_is_missed_by_the_right_field_or_by_others() {
        assert_eq!(verdict(1000, &[("cold", 850), ("warm", 50)]), Verdict::Met);
        assert_eq!(verdict(1000, &[("cold", 600)]), Verdict::Missed);
        assert_eq!(verdict(1000, &[("cold", 880), ("warm", 60), ("hot", 60)]), Verdict::Missed);
    }

    #[test]
    fn what_chance_explains_is_no_miss_and_few_samples_are_not_judged() {
        // 85 % of 200 has a deviation of 2.5 points
        assert_eq!(verdict(200, &[("cold", 160)]), Verdict::WithinError);
        assert_eq!(verdict(20_000, &[("cold", 16_000)]), Verdict::Missed);
        assert_eq!(verdict(ENOUGH - 1, &[("warm", ENOUGH - 1)]), Verdict::TooFew);
    }

    #[test]
    fn shares_are_held_field_by_field() {
        let truth = Truth::Shares { fields: &[("one", 50.0), ("two", 50.0)], tolerance: 7.0 };
        let of = |one, two| Verdict::of(&blame(10_000, &[("one", one), ("two", two)]), &truth);
        assert_eq!(of(5500, 4400), Verdict::Met);
        assert_eq!(of(6500, 3500), Verdict::Missed);
        assert_eq!(of(5000, 3000), Verdict::Missed);
    }

    #[test]
    fn parts_of_a_field_are_the_field() {
        let truth = Truth::Stall { field: "_vptr", right: 85.0, other: 5.0 };
        for name in ["_vptr.Node", "_vptr$Node", "_vptr"] {
            assert_eq!(Shares::of(&blame(100, &[(name, 90)]), &truth).right, 90.0);
        }
        let shares = Shares::of(&blame(100, &[("_vptrs", 90)]), &truth);
        assert_eq!((shares.right, shares.other, shares.none), (0.0, 90.0, 10.0));
    }
}
