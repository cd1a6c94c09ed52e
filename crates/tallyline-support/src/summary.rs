//! Medians and spreads: what a series of rounds comes to.

use serde::Serialize;

/// Median, quartiles, minimum and maximum of a benchmark's results over its rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// The median of the rounds' results; the mean of the middle two if their number is even.
    pub median: f64,
    /// The lower quartile: a quarter of the results are smaller. Between it and `q3` lies the middle half, which
    /// a few interrupted rounds do not move.
    pub q1: f64,
    /// The upper quartile: three quarters of the results are smaller.
    pub q3: f64,
    /// The smallest result of a round.
    pub min: f64,
    /// The largest result of a round.
    pub max: f64,
    /// The number of rounds.
    pub rounds: usize,
}

impl Summary {
    /// Computes the median and spread of a benchmark's results, one for each round; `None` if there are none or one is
    /// infinite or NaN.
    pub fn of(series: &[f64]) -> Option<Self> {
        let mut sorted = series.to_vec();
        if sorted.iter().any(|value| !value.is_finite()) {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let part = |part: f64| {
            // between the two rounds that it falls between
            let place = part * (sorted.len() - 1) as f64;
            let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
            below + (above - below) * place.fract()
        };
        let (q1, median, q3) = (part(0.25), part(0.5), part(0.75));
        Some(Summary { median, q1, q3, min, max, rounds: sorted.len() })
    }

    /// Computes the median and spread of the round-by-round ratios `over[i] / under[i]` of the results of two sides
    /// that a benchmark compares; `None` if there are none or one is not finite.
    ///
    /// The two sides of a round ran one after the other, so what disturbed both cancels out; a
    /// ratio of two medians would keep it.
    pub fn of_ratio(over: &[f64], under: &[f64]) -> Option<Self> {
        Self::of(&ratios(over, under))
    }
}

/// Returns the ratios `over[i] / under[i]` of the results of two sides that a benchmark compares, round by round.
#[must_use]
pub fn ratios(over: &[f64], under: &[f64]) -> Vec<f64> {
    over.iter().zip(under).map(|(over, under)| over / under).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_series() {
        let odd = Summary::of(&[3.0, 1.0, 2.0]).expect("series");
        assert_eq!((odd.median, odd.min, odd.max, odd.rounds), (2.0, 1.0, 3.0, 3));
        let even = Summary::of(&[4.0, 1.0, 2.0, 3.0]).expect("series");
        assert_eq!(even.median, 2.5);
        assert_eq!((even.q1, even.q3), (1.75, 3.25));
        let one = Summary::of(&[7.0]).expect("series");
        assert_eq!((one.q1, one.median, one.q3), (7.0, 7.0, 7.0));
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn a_ratio_is_taken_round_by_round() {
        // both sides three times as slow in the second round: the ratio does not move
        let ratio = Summary::of_ratio(&[10.0, 30.0, 10.0], &[2.0, 6.0, 2.0]).expect("series");
        assert_eq!((ratio.median, ratio.min, ratio.max), (5.0, 5.0, 5.0));
        assert_eq!(Summary::of_ratio(&[1.0], &[0.0]), None);
    }
}
