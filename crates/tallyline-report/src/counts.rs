//! The totals that reports show: samples, periods and weights.

/// The totals of some samples, such as those of a report's row: their number, their periods, and the amount for
/// percentages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub(crate) samples: u64,
    pub(crate) period: u64,
    pub(crate) total: u64,
}

impl Counts {
    /// Returns the number of samples that these totals are of, such as those of a report's row.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns the sum of the samples' periods: the number of events (such as `cycles`) that they stand for.
    pub fn period(&self) -> u64 {
        self.period
    }

    /// Returns the amount that percentages are computed from, by the report's [`Weighing`](crate::Weighing): the
    /// sum of the periods, or that of the weights.
    pub fn total(&self) -> u64 {
        self.total
    }
}

impl Counts {
    /// Adds the totals (number, period, weight) of other samples to these.
    pub fn add(&mut self, other: Counts) {
        self.samples += other.samples;
        self.period = self.period.saturating_add(other.period);
        self.total = self.total.saturating_add(other.total);
    }

    /// Returns the share of these samples' [`total`](Self::total) (periods or weights) in that of `whole`, in percent;
    /// 0 if that is 0.
    pub fn percent(&self, whole: &Counts) -> f64 {
        if whole.total == 0 { 0.0 } else { self.total as f64 * 100.0 / whole.total as f64 }
    }
}
