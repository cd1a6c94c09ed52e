//! 64-bit Arm: what instructions do.

use super::fusion::FusionRole;
use super::instruction::{
    Access, ComparisonOperand, Condition, Effect, Flow, Instruction, Memory, Register, SegmentBase,
};
use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{
    InstDecoder, Instruction as Native, Opcode, Operand, SIMDSizeCode, ShiftStyle, SizeCode,
};

/// Every instruction has four bytes.
const LENGTH: usize = 4;

/// `tpidr_el0`: the bits that tell it from other system registers.
const THREAD_POINTER: u16 = 0x5e82;

/// Decodes code at an address, one instruction after the other.
pub(super) fn decode(
    bytes: &[u8],
    address: u64,
    instructions: &mut Vec<Instruction>,
    effects: &mut Vec<Effect>,
) {
    let decoder = InstDecoder::default();
    for (index, word) in bytes.chunks_exact(LENGTH).enumerate() {
        let address = address.wrapping_add((index * LENGTH) as u64);
        let start = effects.len() as u32;
        let (flow, memory, condition) = match decoder.decode(&mut U8Reader::new(word)) {
            Ok(native) => {
                let mut reader = EffectReader { native: &native, address, effects };
                let condition = reader.flags();
                let (flow, memory) = reader.read();
                (flow, memory, condition)
            }
            Err(_) => (Flow::Stop, None, None),
        };
        let effects = (start, effects.len() as u32);
        instructions.push(Instruction {
            address,
            length: LENGTH as u8,
            flow,
            condition,
            memory,
            fusion: FusionRole::None,
            is_repeated: false,
            effects,
        });
    }
}

/// A reader of the effects and the memory operand of one instruction.
struct EffectReader<'r> {
    native: &'r Native,
    address: u64,
    effects: &'r mut Vec<Effect>,
}

impl EffectReader<'_> {
    fn read(mut self) -> (Flow, Option<Memory>) {
        let flow = self.flow();
        if let Some(access) = self.access() {
            return (flow, self.transfer(access));
        }
        if flow == Flow::Next {
            self.compute();
        }
        (flow, None)
    }

    /// Says what sets the flags, and which condition of them a branch depends on.
    fn flags(&mut self) -> Option<Condition> {
        let operands = &self.native.operands;
        let size = if wide(&operands[0]) || wide(&operands[1]) { 8 } else { 4 };
        let zero = ComparisonOperand::Number(0);
        let compare = |one, other, is_test| Effect::Compare {
            one: ComparisonOperand::Register(one),
            other,
            size,
            is_test,
        };
        match self.native.opcode {
            Opcode::Bcc(code) | Opcode::BCcc(code) => return condition(code),
            opcode @ (Opcode::CBZ | Opcode::CBNZ) => {
                let one = register(&operands[0])?;
                self.effects.push(compare(one, zero, false));
                return Some(if opcode == Opcode::CBZ { Condition::Equal } else { Condition::NotEqual });
            }
            opcode @ (Opcode::TBZ | Opcode::TBNZ) => {
                let (one, bit) = (register(&operands[0])?, number(&operands[1])?);
                let mask = 1_i64.checked_shl(u32::try_from(bit).ok()?)?;
                self.effects.push(Effect::Compare {
                    one: ComparisonOperand::Register(one),
                    other: ComparisonOperand::Number(mask),
                    size: 8,
                    is_test: true,
                });
                return Some(if opcode == Opcode::TBZ { Condition::Equal } else { Condition::NotEqual });
            }
            opcode @ (Opcode::SUBS | Opcode::ANDS) if general(&operands[0]).is_none() => {
                let other = match (number(&operands[2]), operands[2]) {
                    (Some(number), _) => Some(ComparisonOperand::Number(number)),
                    (None, Operand::RegShift(ShiftStyle::LSL, 0, _, other)) => {
                        general(&Operand::Register(SizeCode::X, other)).map(ComparisonOperand::Register)
                    }
                    _ => None,
                };
                let effect = match (register(&operands[1]), other) {
                    (Some(one), Some(other)) => compare(one, other, opcode == Opcode::ANDS),
                    _ => Effect::ClobberFlags,
                };
                self.effects.push(effect);
            }
            Opcode::ADDS
            | Opcode::SUBS
            | Opcode::ANDS
            | Opcode::BICS
            | Opcode::ADCS
            | Opcode::SBCS
            | Opcode::CCMP
            | Opcode::CCMN
            | Opcode::FCMP
            | Opcode::FCMPE
            | Opcode::FCCMP
            | Opcode::FCCMPE => self.effects.push(Effect::ClobberFlags),
            _ => {}
        }
        None
    }

    fn flow(&mut self) -> Flow {
        let target = self.native.operands.iter().find_map(|operand| match operand {
            Operand::PCOffset(offset) => Some(self.address.wrapping_add_signed(*offset)),
            _ => None,
        });
        match self.native.opcode {
            Opcode::B => Flow::Jump(target),
            Opcode::Bcc(_) | Opcode::BCcc(_) | Opcode::CBZ | Opcode::CBNZ | Opcode::TBZ | Opcode::TBNZ => {
                target.map_or(Flow::Stop, Flow::Branch)
            }
            Opcode::BL => Flow::Call(target),
            Opcode::BLR | Opcode::BLRAA | Opcode::BLRAAZ | Opcode::BLRAB | Opcode::BLRABZ => {
                let from = register(&self.native.operands[0]);
                self.effects.extend(from.map(|from| Effect::IndirectCall { from }));
                Flow::Call(None)
            }
            Opcode::BR | Opcode::BRAA | Opcode::BRAAZ | Opcode::BRAB | Opcode::BRABZ => Flow::Jump(None),
            Opcode::RET | Opcode::RETAA | Opcode::RETAB | Opcode::ERET => Flow::Return,
            Opcode::BRK | Opcode::HLT | Opcode::UDF | Opcode::Invalid => Flow::Stop,
            _ => Flow::Next,
        }
    }

    /// Returns the memory access of the instruction; `None` if there is none.
    fn access(&self) -> Option<Access> {
        use Opcode as O;
        let in_memory = self.native.operands.iter().any(|operand| place(operand).is_some());
        let literal = matches!(self.native.opcode, O::LDR | O::LDRSW)
            && matches!(self.native.operands[1], Operand::PCOffset(_));
        if !in_memory && !literal {
            return None;
        }
        Some(match self.native.opcode {
            O::STR
            | O::STRB
            | O::STRH
            | O::STRW
            | O::STUR
            | O::STURB
            | O::STURH
            | O::STP
            | O::STNP
            | O::STTR
            | O::STTRB
            | O::STTRH
            | O::STLR
            | O::STLRB
            | O::STLRH
            | O::STLLR
            | O::STLLRB
            | O::STLLRH
            | O::STXR
            | O::STXRB
            | O::STXRH
            | O::STXP
            | O::STLXR
            | O::STLXRB
            | O::STLXRH
            | O::STLXP
            | O::STLUR
            | O::STLURB
            | O::STLURH
            | O::ST1
            | O::ST2
            | O::ST3
            | O::ST4 => Access::Write,
            O::SWP(_)
            | O::SWPB(_)
            | O::SWPH(_)
            | O::CAS(_)
            | O::CASB(_)
            | O::CASH(_)
            | O::CASP(_)
            | O::LDADD(_)
            | O::LDADDB(_)
            | O::LDADDH(_)
            | O::LDCLR(_)
            | O::LDCLRB(_)
            | O::LDCLRH(_)
            | O::LDEOR(_)
            | O::LDEORB(_)
            | O::LDEORH(_)
            | O::LDSET(_)
            | O::LDSETB(_)
            | O::LDSETH(_)
            | O::LDSMAX(_)
            | O::LDSMIN(_)
            | O::LDUMAX(_)
            | O::LDUMIN(_) => Access::ReadWrite,
            _ => Access::Read,
        })
    }

    /// Decodes a load or a store.
    fn transfer(&mut self, access: Access) -> Option<Memory> {
        let operands = &self.native.operands;
        let (at, found) = operands
            .iter()
            .enumerate()
            .find_map(|(at, operand)| Some((at, place(operand)?)))
            .or_else(|| match operands[1] {
            Operand::PCOffset(offset) => {
                let address = self.address.wrapping_add_signed(offset) as i64;
                Some((
                    1,
                    AddressingMode { base: None, index: None, scale: 1, displacement: address, back: 0 },
                ))
            }
            _ => None,
        })?;
        let each = self.size();
        let pair = matches!(
            self.native.opcode,
            Opcode::LDP | Opcode::STP | Opcode::LDNP | Opcode::STNP | Opcode::LDPSW
        );
        let memory = Memory {
            base: found.base,
            index: found.index,
            scale: found.scale,
            displacement: found.displacement,
            segment: SegmentBase::Flat,
            size: u16::from(each) * if pair { 2 } else { 1 },
            access,
            implicit: false,
            is_pair: pair,
        };
        // what a load writes must not change the base before what comes back to it is added
        for (index, operand) in operands[..at].iter().enumerate().take(if pair { 2 } else { at }) {
            let offset = if pair { each * index as u8 } else { 0 };
            let own = general(operand);
            match access {
                Access::Read => self.effects.extend(own.map(|to| match wide(operand) && each == 8 {
                    true => Effect::Load { to, size: each, at: offset },
                    false => Effect::Load { to, size: each.min(4), at: offset },
                })),
                Access::Write if is_exclusive(self.native.opcode) && index == 0 => {
                    self.effects.extend(own.map(|to| Effect::Clobber { to }));
                }
                Access::Write => self.effects.push(Effect::Store { from: own, size: each, at: offset }),
                Access::ReadWrite => self.effects.extend(own.map(|to| Effect::Clobber { to })),
            }
        }
        if let (Some(base), true) = (found.base, found.back != 0) {
            let displacement = found.back;
            self.effects.push(Effect::Address {
                to: base,
                base: Some(base),
                index: None,
                scale: 1,
                displacement,
            });
        }
        Some(memory)
    }

    /// Returns the size in memory of one register of a load or store.
    fn size(&self) -> u8 {
        use Opcode as O;
        match self.native.opcode {
            O::LDRB
            | O::LDRSB
            | O::LDURB
            | O::LDURSB
            | O::LDARB
            | O::LDXRB
            | O::LDAXRB
            | O::LDAPRB
            | O::STRB
            | O::STURB
            | O::STLRB
            | O::STXRB
            | O::STLXRB
            | O::LDTRB
            | O::STTRB => return 1,
            O::LDRH
            | O::LDRSH
            | O::LDURH
            | O::LDURSH
            | O::LDARH
            | O::LDXRH
            | O::LDAXRH
            | O::LDAPRH
            | O::STRH
            | O::STURH
            | O::STLRH
            | O::STXRH
            | O::STLXRH
            | O::LDTRH
            | O::STTRH => return 2,
            O::LDRSW | O::LDURSW | O::LDPSW | O::LDTRSW => return 4,
            O::PRFM | O::PRFUM => return 1,
            _ => {}
        }
        let exclusive = usize::from(is_exclusive(self.native.opcode));
        match self.native.operands[exclusive] {
            Operand::Register(SizeCode::X, _) | Operand::RegisterPair(SizeCode::X, _) => 8,
            Operand::Register(SizeCode::W, _) | Operand::RegisterPair(SizeCode::W, _) => 4,
            Operand::SIMDRegister(size, _)
            | Operand::SIMDRegisterElements(size, ..)
            | Operand::SIMDRegisterGroup(size, ..) => match size {
                SIMDSizeCode::B => 1,
                SIMDSizeCode::H => 2,
                SIMDSizeCode::S => 4,
                SIMDSizeCode::D => 8,
                SIMDSizeCode::Q => 16,
            },
            _ => 8,
        }
    }

    /// Emits the effects of an instruction on registers alone.
    fn compute(&mut self) {
        let Some(to) = register(&self.native.operands[0]) else { return };
        if matches!(self.native.opcode, Opcode::MSR | Opcode::CCMP | Opcode::CCMN) {
            return;
        }
        let is_wide = wide(&self.native.operands[0]);
        if self.extension(to) || self.insertion(to) {
            return;
        }
        match (self.known(to), is_wide) {
            (Some(effect), true) => self.effects.push(effect),
            (Some(effect), false) => {
                self.effects.extend([effect, Effect::Truncate { to, size: 4, signed: false }])
            }
            (None, true) => self.effects.push(Effect::Clobber { to }),
            (None, false) => self.effects.push(Effect::UnknownNumber { to }),
        }
    }

    /// Decodes a sign or zero extension of a register; returns false for another instruction.
    fn extension(&mut self, to: Register) -> bool {
        let signed = self.native.opcode == Opcode::SBFM;
        if !signed && self.native.opcode != Opcode::UBFM {
            return false;
        }
        let operands = &self.native.operands;
        let (from, low, high) = (register(&operands[1]), number(&operands[2]), number(&operands[3]));
        let (Some(from), Some(0), Some(size @ (7 | 15 | 31))) = (from, low, high) else { return false };
        self.effects.push(Effect::Copy { to, from });
        self.effects.push(Effect::Truncate { to, size: ((size + 1) / 8) as u8, signed });
        true
    }

    /// Decodes the replacement of 16 bits of a register by an immediate; returns false for another instruction.
    fn insertion(&mut self, to: Register) -> bool {
        let operand = &self.native.operands[1];
        let (Opcode::MOVK, Some(displacement)) = (self.native.opcode, number(operand)) else { return false };
        let shift = if let Operand::ImmShift(_, shift) = *operand { shift } else { 0 };
        let Some(bits) = 0xffff_i64.checked_shl(shift.into()) else { return false };
        self.effects.push(Effect::Mask { to, mask: !bits });
        self.effects.push(Effect::Address { to, base: Some(to), index: None, scale: 1, displacement });
        true
    }

    fn known(&self, to: Register) -> Option<Effect> {
        let operands = &self.native.operands;
        let sum = |base, displacement| Effect::Address { to, base, index: None, scale: 1, displacement };
        match self.native.opcode {
            Opcode::ADRP => {
                let Operand::PCOffset(offset) = operands[1] else { return None };
                let value = (self.address & !0xfff).wrapping_add_signed(offset) as i64;
                Some(Effect::Constant { to, value })
            }
            Opcode::ADR => {
                let Operand::PCOffset(offset) = operands[1] else { return None };
                Some(Effect::Constant { to, value: self.address.wrapping_add_signed(offset) as i64 })
            }
            Opcode::MRS if matches!(operands[1], Operand::SystemReg(register) if register & 0x7fff == THREAD_POINTER) => {
                Some(Effect::ThreadPointer { to })
            }
            Opcode::MOVZ => Some(Effect::Constant { to, value: number(&operands[1])? }),
            Opcode::MOVN => Some(Effect::Constant { to, value: !number(&operands[1])? }),
            Opcode::ORR => match (operands[1], operands[2]) {
                (Operand::Register(_, 31), Operand::RegShift(ShiftStyle::LSL, 0, _, from)) => {
                    Some(match general(&Operand::Register(SizeCode::X, from)) {
                        Some(from) => Effect::Copy { to, from },
                        None => Effect::Constant { to, value: 0 },
                    })
                }
                _ => None,
            },
            Opcode::ADD | Opcode::SUB | Opcode::ADDS | Opcode::SUBS => {
                let subtract = matches!(self.native.opcode, Opcode::SUB | Opcode::SUBS);
                let base = register(&operands[1])?;
                if let Some(value) = number(&operands[2]) {
                    let value = if subtract { value.wrapping_neg() } else { value };
                    return Some(sum(Some(base), value));
                }
                let (index, scale) = match operands[2] {
                    Operand::RegShift(ShiftStyle::LSL, shift, _, index) if shift < 8 => {
                        (index, 1_u32 << shift)
                    }
                    // an index of half a register
                    Operand::RegShift(_, shift, _, index) if shift < 5 => (index, 1 << shift),
                    Operand::Register(_, index) | Operand::RegisterOrSP(_, index) => (index, 1),
                    _ => return None,
                };
                let index = Some(Register(u8::try_from(index).ok()?)).filter(|index| index.0 < 31)?;
                if subtract {
                    return (base == to).then_some(Effect::Add { to, by: index, subtract });
                }
                Some(Effect::Address {
                    to,
                    base: Some(base),
                    index: Some(index),
                    scale: u8::try_from(scale).unwrap_or(u8::MAX),
                    displacement: 0,
                })
            }
            Opcode::MADD | Opcode::SMADDL | Opcode::UMADDL => {
                let (one, other) = (register(&operands[1])?, register(&operands[2])?);
                Some(Effect::Product { to, one, other, plus: register(&operands[3]) })
            }
            // to the left; to the right, and parts
            Opcode::SBFM | Opcode::UBFM => {
                let (rotated, last) = (number(&operands[2])?, number(&operands[3])?);
                let bits = if wide(&operands[0]) { 64 } else { 32 };
                let left = (rotated > last).then(|| bits - rotated).filter(|left| (0..48).contains(left));
                match (left, register(&operands[1])) {
                    (Some(left), Some(from)) => Some(Effect::Multiply { to, from, by: 1 << left }),
                    _ => Some(Effect::UnknownNumber { to }),
                }
            }
            Opcode::LSLV | Opcode::LSRV | Opcode::ASRV | Opcode::UDIV | Opcode::SDIV | Opcode::CLZ => {
                Some(Effect::UnknownNumber { to })
            }
            Opcode::AND => {
                let mask = number(&operands[2])?;
                (register(&operands[1])? == to).then_some(Effect::Mask { to, mask })
            }
            _ => None,
        }
    }
}

/// Returns the condition that a number stands for, of those that say something about a comparison.
fn condition(code: u8) -> Option<Condition> {
    Some(match code {
        0 => Condition::Equal,
        1 => Condition::NotEqual,
        2 => Condition::NotBelow,
        3 => Condition::Below,
        4 => Condition::Negative,
        5 => Condition::NotNegative,
        6 => Condition::Overflow,
        7 => Condition::NotOverflow,
        8 => Condition::NotBelowOrEqual,
        9 => Condition::BelowOrEqual,
        10 => Condition::NotLess,
        11 => Condition::Less,
        12 => Condition::NotLessOrEqual,
        13 => Condition::LessOrEqual,
        _ => return None,
    })
}

/// A place in memory.
struct AddressingMode {
    base: Option<Register>,
    index: Option<Register>,
    scale: u8,
    displacement: i64,
    // what is added to the base behind the access
    back: i64,
}

fn place(operand: &Operand) -> Option<AddressingMode> {
    let base = |number: u16| u8::try_from(number).ok().map(Register);
    Some(match *operand {
        Operand::RegPreIndex(register, offset, back) => {
            let offset = i64::from(offset);
            let back = if back { offset } else { 0 };
            AddressingMode { base: base(register), index: None, scale: 1, displacement: offset, back }
        }
        Operand::RegPostIndex(register, offset) => AddressingMode {
            base: base(register),
            index: None,
            scale: 1,
            displacement: 0,
            back: offset.into(),
        },
        Operand::RegPostIndexReg(register, _) => {
            AddressingMode { base: base(register), index: None, scale: 1, displacement: 0, back: 0 }
        }
        Operand::RegRegOffset(register, index, _, _, shift) => AddressingMode {
            base: base(register),
            index: base(index).filter(|index| index.0 < 31),
            scale: 1_u8.checked_shl(shift.into()).unwrap_or(1),
            displacement: 0,
            back: 0,
        },
        _ => return None,
    })
}

/// Returns a general register; `None` for the one that is always 0.
fn general(operand: &Operand) -> Option<Register> {
    match *operand {
        Operand::Register(_, number) | Operand::RegisterPair(_, number) => {
            u8::try_from(number).ok().filter(|number| *number < 31).map(Register)
        }
        _ => None,
    }
}

/// Returns a general register, or the stack pointer.
fn register(operand: &Operand) -> Option<Register> {
    match *operand {
        Operand::RegisterOrSP(_, number) => u8::try_from(number).ok().map(Register),
        ref other => general(other),
    }
}

fn wide(operand: &Operand) -> bool {
    matches!(operand, Operand::Register(SizeCode::X, _) | Operand::RegisterOrSP(SizeCode::X, _))
}

fn number(operand: &Operand) -> Option<i64> {
    Some(match *operand {
        Operand::Immediate(number) => i64::from(number),
        Operand::Imm64(number) => number as i64,
        Operand::Imm16(number) => i64::from(number),
        Operand::ImmShift(number, shift) => i64::from(number).checked_shl(shift.into())?,
        _ => return None,
    })
}

/// Returns true for a store-exclusive, whose first register receives the status.
fn is_exclusive(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::STXR
            | Opcode::STXRB
            | Opcode::STXRH
            | Opcode::STLXR
            | Opcode::STLXRB
            | Opcode::STLXRH
            | Opcode::STXP
            | Opcode::STLXP
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(word: u32) -> (Instruction, Vec<Effect>) {
        let (mut instructions, mut effects) = (Vec::new(), Vec::new());
        decode(&word.to_le_bytes(), 0x1000, &mut instructions, &mut effects);
        (instructions[0], effects)
    }

    #[test]
    fn loads_stores_and_pairs_name_their_operand() {
        // ldr w0, [x19, #60]
        let (load, effects) = decoded(0xb940_3e60);
        let memory = load.memory.expect("an operand");
        assert_eq!((memory.base, memory.displacement, memory.size), (Some(Register(19)), 60, 4));
        assert!(!memory.is_pair);
        assert_eq!(effects, [Effect::Load { to: Register(0), size: 4, at: 0 }]);
        // stp x29, x30, [sp, #-32]!
        let (store, effects) = decoded(0xa9be_7bfd);
        let memory = store.memory.expect("an operand");
        assert_eq!((memory.base, memory.displacement, memory.size), (Some(Register(31)), -32, 16));
        assert_eq!((memory.access, memory.is_pair), (Access::Write, true));
        assert_eq!(effects.len(), 3, "{effects:?}");
        // ldr x1, [x0, x2, lsl #3]
        let memory = decoded(0xf862_7801).0.memory.expect("an operand");
        assert_eq!((memory.index, memory.scale), (Some(Register(2)), 8));
        // ldadd x1, x2, [x3]
        let memory = decoded(0xf821_0062).0.memory.expect("an operand");
        assert_eq!((memory.base, memory.access), (Some(Register(3)), Access::ReadWrite));
    }

    #[test]
    fn copies_sums_and_calls_are_understood() {
        // mov x19, x0
        assert_eq!(decoded(0xaa00_03f3).1, [Effect::Copy { to: Register(19), from: Register(0) }]);
        // add x0, x1, #0x10
        let sum = Effect::Address {
            to: Register(0),
            base: Some(Register(1)),
            index: None,
            scale: 1,
            displacement: 16,
        };
        assert_eq!(decoded(0x9100_4020).1, [sum]);
        // movk x0, #0x20, lsl #16
        let (to, base) = (Register(0), Some(Register(0)));
        let insertion = [
            Effect::Mask { to, mask: !0xffff_0000 },
            Effect::Address { to, base, index: None, scale: 1, displacement: 0x20_0000 },
        ];
        assert_eq!(decoded(0xf2a0_0400).1, insertion);
        // bl .+8
        assert_eq!(decoded(0x9400_0002).0.flow, Flow::Call(Some(0x1008)));
        // ret
        assert_eq!(decoded(0xd65f_03c0).0.flow, Flow::Return);
    }
}
