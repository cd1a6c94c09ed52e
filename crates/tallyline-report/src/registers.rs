//! Registers of samples, and the records that have them.

use super::index::NONE;
use rustc_hash::FxHashMap;
use tallyline_inference::code::Register;

/// The general registers of samples, for those samples whose types may depend on them.
#[derive(Clone, Debug, Default)]
pub struct SampleRegisters {
    // of each sample that says it: the point, and the position of the record
    pub(super) points: Vec<u32>,
    pub(super) positions: Vec<u64>,
    pub(super) values: FxHashMap<u32, Box<[u64]>>,
}

impl SampleRegisters {
    /// Notes where a sample of a point has its registers.
    pub(super) fn note(&mut self, point: u32, position: u64) -> u32 {
        self.points.push(point);
        self.positions.push(position);
        u32::try_from(self.points.len() - 1).unwrap_or(NONE)
    }

    /// Makes room for more samples.
    pub(super) fn reserve(&mut self, samples: usize) {
        self.points.reserve(samples);
        self.positions.reserve(samples);
    }

    /// Gives the records of points that became several to those: of each so many as it has samples.
    pub(super) fn divide(&mut self, heirs: &mut FxHashMap<u32, Vec<(u32, u64)>>) {
        if heirs.is_empty() {
            return;
        }
        for point in &mut self.points {
            let Some(own) = heirs.get_mut(point) else { continue };
            while own.len() > 1 && own.last().is_some_and(|(_, left)| *left == 0) {
                own.pop();
            }
            if let Some((heir, left)) = own.last_mut() {
                *left = left.saturating_sub(1);
                *point = *heir;
            }
        }
    }

    /// Returns whether no sample has registers.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty() && self.values.is_empty()
    }

    /// Returns the value of a register in a sample.
    pub fn get(&self, sample: u32, register: Register) -> Option<u64> {
        self.values.get(&sample)?.get(usize::from(register.0)).copied()
    }
}
