//! The functions of one unit as bytes: their names, what their instructions touch, the types of that.

use super::super::outcome::{Choice, Outcome, Pseudo, Reason, Typed, Within};
use super::super::table::Part;
use crate::code::{Access, Register};
use std::ops::Range;
use tallyline_debuginfo::model::{Packer, Types, Unpacker};

const ACCESSES: [Access; 3] = [Access::Read, Access::Write, Access::ReadWrite];

/// Writes a part; where its functions lie is for the index to say.
pub(super) fn pack(part: &Part) -> Vec<u8> {
    let mut out = Packer::default();
    part.types.pack(&mut out);
    out.number(part.functions.len() as u64);
    for (function, rows) in part.by_function() {
        out.bytes(function.name.as_bytes());
        out.number(rows.len() as u64);
        let mut before = 0_u64;
        for (address, outcome) in rows {
            out.signed(address.wrapping_sub(before).cast_signed());
            before = *address;
            pack_outcome(&mut out, outcome);
        }
    }
    out.number(part.seconds.len() as u64);
    for (address, outcome) in &part.seconds {
        out.number(*address);
        pack_outcome(&mut out, outcome);
    }
    out.number(part.data.len() as u64);
    for (address, ty, offset) in &part.data {
        out.number(*address);
        out.type_id(*ty);
        out.number((*offset).into());
    }
    out.into_bytes()
}

/// Reads a part again: of its functions, which lie in these ranges, only those that are wanted.
pub(super) fn unpack(
    unit: usize,
    bytes: &[u8],
    ranges: &[Vec<Range<u64>>],
    is_wanted: impl Fn(usize) -> bool,
) -> Option<Part> {
    let mut from = Unpacker::new(bytes);
    let mut part = Part::of_unit(unit);
    part.types = Types::unpack(&mut from)?;
    if from.small::<usize>()? != ranges.len() {
        return None;
    }
    for (index, ranges) in ranges.iter().enumerate() {
        let name = from.bytes()?;
        let mut before = 0_u64;
        let rows = from.table(|from| {
            before = before.wrapping_add(from.signed()?.cast_unsigned());
            Some((before, unpack_outcome(from)?))
        })?;
        if is_wanted(index) {
            part.add(std::str::from_utf8(name).ok()?, ranges, &rows);
        }
    }
    part.seconds = from.table(|from| Some((from.number()?, unpack_outcome(from)?)))?;
    let wanted: Vec<&Range<u64>> = part.functions.iter().flat_map(|function| &function.ranges).collect();
    part.seconds.retain(|(address, _)| wanted.iter().any(|range| range.contains(address)));
    part.data = from.table(|from| Some((from.number()?, from.type_id()?, from.small()?)))?;
    from.is_empty().then_some(part)
}

fn pack_outcome(out: &mut Packer, outcome: &Outcome) {
    match outcome {
        Outcome::Typed(typed) => {
            let access = ACCESSES.iter().position(|access| *access == typed.access);
            out.number(access.unwrap_or_default() as u64);
            out.type_id(typed.ty);
            out.number(typed.offset.into());
            out.number(typed.size.into());
            // most are the only field there
            out.number(!typed.candidates);
            out.flag(typed.within.is_some());
            if let Some(within) = typed.within {
                out.type_id(within.ty);
                out.number(within.start.into());
            }
            out.flag(typed.or.is_some());
            if let Some(or) = typed.or {
                out.number(or.offset.into());
                out.flag(or.start.is_some());
                or.start.into_iter().for_each(|start| out.signed(start.into()));
                out.flag(or.both);
            }
        }
        Outcome::Pseudo(pseudo) => {
            let pseudo = Pseudo::ALL.iter().position(|one| one == pseudo).unwrap_or_default();
            out.number(3 + pseudo as u64);
        }
        Outcome::Untyped(reason) => pack_reason(out, reason),
    }
}

fn pack_reason(out: &mut Packer, reason: &Reason) {
    match *reason {
        Reason::NoDebugInformation => out.number(16),
        Reason::NoInstruction => out.number(17),
        Reason::NoVariable(register) => {
            out.number(18);
            out.number(register.0.into());
        }
        Reason::Lost { register, at } => {
            out.number(19);
            out.number(register.0.into());
            out.number(at);
        }
        Reason::NoVariableAt(address) => {
            out.number(20);
            out.number(address);
        }
        Reason::Opaque(ty) => {
            out.number(21);
            out.type_id(ty);
        }
        Reason::Outside { ty, offset } => {
            out.number(22);
            out.type_id(ty);
            out.signed(offset.into());
        }
        Reason::Index { ty, step, start } => {
            out.number(if start.is_some() { 24 } else { 23 });
            out.type_id(ty);
            out.number(step.into());
            if let Some(start) = start {
                out.signed(start.into());
            }
        }
        Reason::Segment => out.number(25),
        Reason::Unreached => out.number(26),
    }
}

fn signed(from: &mut Unpacker<'_>) -> Option<i32> {
    from.signed()?.try_into().ok()
}

fn unpack_choice(from: &mut Unpacker<'_>) -> Option<Choice> {
    let offset = from.small()?;
    let start = match from.flag()? {
        true => Some(signed(from)?),
        false => None,
    };
    Some(Choice { offset, start, both: from.flag()? })
}

fn unpack_outcome(from: &mut Unpacker<'_>) -> Option<Outcome> {
    let kind: usize = from.small()?;
    if let Some(access) = ACCESSES.get(kind) {
        let (ty, offset, size) = (from.type_id()?, from.small()?, from.small()?);
        let candidates = !from.number()?;
        let within = match from.flag()? {
            true => Some(Within { ty: from.type_id()?, start: from.small()? }),
            false => None,
        };
        let or = match from.flag()? {
            true => Some(unpack_choice(from)?),
            false => None,
        };
        return Some(Outcome::Typed(Typed { ty, offset, or, size, access: *access, candidates, within }));
    }
    if let Some(pseudo) = Pseudo::ALL.get(kind - ACCESSES.len()) {
        return Some(Outcome::Pseudo(*pseudo));
    }
    Some(Outcome::Untyped(match kind {
        16 => Reason::NoDebugInformation,
        17 => Reason::NoInstruction,
        18 => Reason::NoVariable(Register(from.small()?)),
        19 => Reason::Lost { register: Register(from.small()?), at: from.number()? },
        20 => Reason::NoVariableAt(from.number()?),
        21 => Reason::Opaque(from.type_id()?),
        22 => Reason::Outside { ty: from.type_id()?, offset: signed(from)? },
        23 => Reason::Index { ty: from.type_id()?, step: from.small()?, start: None },
        24 => Reason::Index { ty: from.type_id()?, step: from.small()?, start: Some(signed(from)?) },
        25 => Reason::Segment,
        26 => Reason::Unreached,
        _ => return None,
    }))
}
