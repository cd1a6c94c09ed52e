//! The totals that reports show: samples, periods and weights.

/// The totals of a row, or of all samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Samples.
    pub samples: u64,
    /// The sum of the weights that percentages are computed from: periods, or weights where each counts at least 1.
    pub period: u64,
    /// The sum of what percentages weigh: periods, or weights where each counts at least 1.
    pub total: u64,
}

impl Counts {
    /// Adds the counts of another row.
    pub fn add(&mut self, other: Counts) {
        self.samples += other.samples;
        self.period = self.period.saturating_add(other.period);
        self.total = self.total.saturating_add(other.total);
    }

    /// The share in percent of a whole.
    pub fn percent(&self, whole: &Counts) -> f64 {
        if whole.total == 0 { 0.0 } else { self.total as f64 * 100.0 / whole.total as f64 }
    }
}
