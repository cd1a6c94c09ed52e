//! The totals that reports show: samples, periods and weights.

/// The number of samples of a table's row, or of all samples, and the sum of their weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub(crate) samples: u64,
    pub(crate) period: u64,
    pub(crate) total: u64,
}

impl Counts {
    /// Returns the number of samples that are counted.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns the sum of the weights that percentages are computed from: periods, or weights where each counts at
    /// least 1.
    pub fn period(&self) -> u64 {
        self.period
    }

    /// Returns the sum of the weights that percentages are computed from: periods, or weights where each counts at least 1.
    pub fn total(&self) -> u64 {
        self.total
    }
}

impl Counts {
    /// Adds the numbers of another row of the table.
    pub fn add(&mut self, other: Counts) {
        self.samples += other.samples;
        self.period = self.period.saturating_add(other.period);
        self.total = self.total.saturating_add(other.total);
    }

    /// Returns the share, in percent, of these samples' weight in a whole.
    pub fn percent(&self, whole: &Counts) -> f64 {
        if whole.total == 0 { 0.0 } else { self.total as f64 * 100.0 / whole.total as f64 }
    }
}
