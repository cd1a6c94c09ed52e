//! Call-clobbered registers of individual functions.
//!
//! A compiler that sees a callee's body uses that it leaves a call-clobbered register unchanged (gcc's `-fipa-ra`),
//! so the calling convention alone does not tell which values survive a call.

use crate::code::{Body, Flow, Image};
use rustc_hash::FxHashMap;
use std::ops::Range;
use tallyline_debuginfo::program::Unit;

/// The maximum depth of nested calls.
const DEPTH_LIMIT: usize = 6;

/// The maximum size of a callee in bytes.
const LENGTH_LIMIT: u64 = 4096;

/// A set of registers, one bit each.
pub(super) type DwarfRegisterSet = u64;

/// The set of all registers.
pub(super) const ALL: DwarfRegisterSet = u64::MAX;

/// The clobbered registers of the callees analysed so far.
#[derive(Debug, Default)]
pub(super) struct Callees {
    clobbered: FxHashMap<u64, DwarfRegisterSet>,
}

impl Callees {
    /// Returns the registers that a function may change; all of them if that is unknown. With a unit, only functions
    /// of that unit are analysed.
    pub(super) fn clobbered(
        &mut self,
        image: &Image,
        unit: Option<&Unit<'_, '_>>,
        target: u64,
    ) -> DwarfRegisterSet {
        self.analyse(image, unit, target, 0)
    }

    fn analyse(
        &mut self,
        image: &Image,
        unit: Option<&Unit<'_, '_>>,
        target: u64,
        depth: usize,
    ) -> DwarfRegisterSet {
        if let Some(known) = self.clobbered.get(&target) {
            return *known;
        }
        let Some(ranges) = code_of(image, unit, target) else { return ALL };
        let length: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        if length > LENGTH_LIMIT || depth > DEPTH_LIMIT {
            return ALL;
        }
        // recursion adds no register that the rest of the function does not
        self.clobbered.insert(target, 0);
        let body = Body::decode(image, &ranges, target);
        let mut clobbered = body.written();
        for instruction in body.instructions() {
            let leaves = |to: u64| !ranges.iter().any(|range| range.contains(&to));
            clobbered |= match instruction.flow {
                Flow::Call(Some(to)) => self.analyse(image, unit, to, depth + 1),
                Flow::Jump(Some(to)) | Flow::Branch(to) if leaves(to) => {
                    self.analyse(image, unit, to, depth + 1)
                }
                Flow::Call(None) | Flow::Jump(None) => ALL,
                _ => 0,
            };
        }
        self.clobbered.insert(target, clobbered);
        clobbered
    }
}

/// Returns the code of the function that starts at an address; `None` for a function of another unit, which the
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
