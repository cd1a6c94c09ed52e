//! What functions that are called leave as it is.
//!
//! Compilers that see a function use that it does not change a register which the calling convention
//! lets it change (gcc's `-fipa-ra`), so what the convention says is not enough to follow them.

use crate::code::{Body, Flow, Image};
use rustc_hash::FxHashMap;
use std::ops::Range;
use tallyline_debuginfo::program::Unit;

/// How deep calls of calls are looked at.
const DEPTH_LIMIT: usize = 6;

/// The most instructions of a function that is looked at.
const LENGTH_LIMIT: u64 = 4096;

/// Registers, one bit each.
pub(super) type Set = u64;

/// Every register.
pub(super) const ALL: Set = u64::MAX;

/// What has been found about functions that are called.
#[derive(Debug, Default)]
pub(super) struct Callees {
    changed: FxHashMap<u64, Set>,
}

impl Callees {
    /// The registers that a function, of a unit if one is given, may change; all where that is not known.
    pub(super) fn changed(&mut self, image: &Image, unit: Option<&Unit<'_, '_>>, target: u64) -> Set {
        self.look(image, unit, target, 0)
    }

    fn look(&mut self, image: &Image, unit: Option<&Unit<'_, '_>>, target: u64, depth: usize) -> Set {
        if let Some(known) = self.changed.get(&target) {
            return *known;
        }
        let Some(ranges) = code_of(image, unit, target) else { return ALL };
        let length: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        if length > LENGTH_LIMIT || depth > DEPTH_LIMIT {
            return ALL;
        }
        // a function that calls itself adds nothing that the rest of it does not add
        self.changed.insert(target, 0);
        let body = Body::decode(image, &ranges, target);
        let mut changed = body.written();
        for instruction in body.instructions() {
            let leaves = |to: u64| !ranges.iter().any(|range| range.contains(&to));
            changed |= match instruction.flow {
                Flow::Call(Some(to)) => self.look(image, unit, to, depth + 1),
                Flow::Jump(Some(to)) | Flow::Branch(to) if leaves(to) => {
                    self.look(image, unit, to, depth + 1)
                }
                Flow::Call(None) | Flow::Jump(None) => ALL,
                _ => 0,
            };
        }
        self.changed.insert(target, changed);
        changed
    }
}

/// The code of the function that starts at an address; none for a function of another unit, which the
/// compiler may not have seen.
fn code_of(image: &Image, unit: Option<&Unit<'_, '_>>, target: u64) -> Option<Vec<Range<u64>>> {
    if let Some(unit) = unit {
        let function = &unit.functions[unit.function_at(target)?];
        return (function.entry() == target).then(|| function.ranges.clone());
    }
    let symbol = image.function_at(target)?;
    let range = symbol.address..symbol.address.saturating_add(symbol.size);
    (symbol.address == target && symbol.size != 0).then(|| vec![range])
}
