//! Evidence of a sample beyond its instruction: the address of the data and the contents of registers.

use super::catalog::Catalog;
use super::globals::Globals;
use super::lookup::modulo;
use super::outcome::{Choice, Outcome, Reason, Typed};
use super::table::{Part, TypeTable};
use crate::code::{Memory, Register, SegmentBase};
use tallyline_debuginfo::DebugInfo;
use tallyline_debuginfo::abi;
use tallyline_debuginfo::model::TypeId;
use tallyline_debuginfo::program::Fixed;
use tallyline_debuginfo::program::UnitCache;

/// Computes the data address of a memory operand from a sample's registers; `None` if one of the needed registers
/// was not recorded, or if the address has a segment base.
pub fn effective_address(memory: &Memory, registers: impl Fn(Register) -> Option<u64>) -> Option<u64> {
    if memory.segment != SegmentBase::Flat {
        return None;
    }
    let of = |register: Option<Register>| register.map_or(Some(0), &registers);
    let index = of(memory.index)?.wrapping_mul(memory.scale.into());
    Some(of(memory.base)?.wrapping_add(index).wrapping_add(memory.displacement as u64))
}

impl TypeTable {
    /// Returns the type of the variable at a data address, and the address's offset in the variable. `None` if no
    /// variable is known there, and for all addresses that were not in the query from which the table was made.
    pub fn variable_at(&self, address: u64) -> Option<(TypeId, u32)> {
        let data = self.data();
        let index = data.binary_search_by_key(&address, |(address, ..)| *address).ok()?;
        let (_, ty, offset) = data[index];
        Some((ty, offset))
    }

    /// Returns `true` if the code alone leaves several types or fields possible for the instruction at an address,
    /// and a sample's registers can choose between them ([`refine_by_registers`](Self::refine_by_registers)).
    pub fn needs_registers(&self, instruction: u64) -> bool {
        matches!(
            self.outcome(instruction),
            Some(
                Outcome::Untyped(Reason::Index { start: Some(_), .. })
                    | Outcome::Typed(Typed { or: Some(Choice { start: Some(_), .. }), .. })
            )
        )
    }

    /// Determines the type and field that the instruction at an address accessed in one sample, from the sample's
    /// registers and data address, where the code alone leaves several possible. `None` if these do not decide it.
    pub fn refine_by_registers(
        &self,
        instruction: u64,
        memory: &Memory,
        address: Option<u64>,
        registers: impl Fn(Register) -> Option<u64>,
    ) -> Option<Typed> {
        let (ty, start, either) = match self.outcome(instruction)? {
            Outcome::Untyped(Reason::Index { ty, start: Some(start), .. }) => (ty, start, None),
            Outcome::Typed(Typed {
                ty,
                offset,
                or: Some(Choice { offset: other, start: Some(start), .. }),
                ..
            }) => (ty, start, Some([offset, other])),
            _ => return None,
        };
        let base = memory.base.and_then(&registers)?;
        let address = address.or_else(|| effective_address(memory, &registers))?;
        let inside = i64::from(start).checked_add(address.wrapping_sub(base) as i64)?;
        let size = abi::size_of(self.types(), ty);
        let offset = u32::try_from(modulo(inside, size)).ok().filter(|_| size > 0)?;
        let is_one_of_them = either.is_none_or(|either| either.contains(&offset));
        is_one_of_them.then(|| Typed::by_size(self.types(), ty, offset, memory.size, memory.access))
    }
}

/// Finds the variables at addresses; `None` without addresses.
pub(super) fn variables(info: &DebugInfo<'_, '_>, globals: &Globals<'_>, addresses: &[u64]) -> Option<Part> {
    if addresses.is_empty() {
        return None;
    }
    let mut part = Part::of_unit(Part::VARIABLES);
    let mut catalog = Catalog::new(UnitCache::new(info));
    for address in addresses {
        let at = Fixed::Address(*address);
        let found = globals.find(at, &[], &[]).and_then(|found| typed(&mut catalog, found));
        let found = found.or_else(|| globals.find_static(at).and_then(|found| typed(&mut catalog, found)));
        part.data.extend(found.map(|(ty, offset)| (*address, ty, offset)));
    }
    part.finish(catalog);
    Some(part)
}

fn typed(catalog: &mut Catalog<'_, '_, '_>, (entry, offset): (u64, u32)) -> Option<(TypeId, u32)> {
    let ty = catalog.units.as_mut()?.type_of(entry)?;
    let ty = catalog.type_at(ty)?;
    let ty = catalog.object(ty);
    (u64::from(offset) < catalog.size(ty)).then_some((ty, offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Access;

    const OPERAND: Memory = Memory {
        base: Some(Register(5)),
        index: Some(Register(0)),
        scale: 8,
        displacement: -16,
        segment: SegmentBase::Flat,
        size: 4,
        access: Access::Read,
        implicit: false,
        is_pair: false,
    };

    #[test]
    fn an_address_is_the_sum_of_what_registers_hold() {
        let held = |register: Register| match register.0 {
            5 => Some(0x7000),
            0 => Some(3),
            _ => None,
        };
        assert_eq!(effective_address(&OPERAND, held), Some(0x7008));
        assert_eq!(effective_address(&Memory { index: Some(Register(9)), ..OPERAND }, held), None);
        assert_eq!(effective_address(&Memory { segment: SegmentBase::Fs, ..OPERAND }, held), None);
        let absolute = Memory { base: None, index: None, displacement: 0x4060, ..OPERAND };
        assert_eq!(effective_address(&absolute, held), Some(0x4060));
    }
}
