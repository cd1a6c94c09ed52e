//! Registers of samples, and the records that have them.

use super::index::RegistersId;
use rustc_hash::FxHashMap;
use tallyline_inference::code::Register;

/// The recorded general-purpose registers of those samples whose accessed types may depend on them, by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampleRegisters {
    // of each sample that says it: the point, and the position of the record
    points: Vec<u32>,
    positions: Vec<u64>,
    pub(super) values: FxHashMap<RegistersId, Box<[u64]>>,
}

impl SampleRegisters {
    /// Notes where a sample of a point has its registers.
    pub(super) fn note(&mut self, point: u32, position: u64) -> Option<RegistersId> {
        let id = RegistersId::from_position(self.points.len())?;
        self.points.push(point);
        self.positions.push(position);
        Some(id)
    }

    /// Returns each record: its index, its point, and its position in the recording.
    pub(super) fn records(&self) -> impl Iterator<Item = (RegistersId, u32, u64)> {
        let records = self.points.iter().zip(&self.positions).enumerate();
        records.filter_map(|(index, (point, position))| {
            Some((RegistersId::from_position(index)?, *point, *position))
        })
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

    /// Returns `true` if registers are kept for no sample of the recording.
    pub(crate) fn is_empty(&self) -> bool {
        self.points.is_empty() && self.values.is_empty()
    }

    /// Returns the value of a register (DWARF number) in a sample; `None` if it was not recorded.
    pub(crate) fn get(&self, sample: RegistersId, register: Register) -> Option<u64> {
        self.values.get(&sample)?.get(usize::from(register.0)).copied()
    }
}
