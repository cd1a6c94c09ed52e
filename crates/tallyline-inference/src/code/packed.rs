//! Decoded instructions as bytes, for those who keep them between runs: reading them takes a fraction of the time of
//! decoding code.
//!
//! Of an instruction there are two bytes of flags, then its parts that the flags announce, then its effects.

use super::fusion::{FlagOperation, FlagProducer, FusionRole, JumpCondition, OperandForm};
use super::instruction::{
    Access, ComparisonOperand, Condition, Effect, Flow, Instruction, Memory, Register, SegmentBase,
};
use rustc_hash::FxHashMap;
use tallyline_debuginfo::model::{Packer, Unpacker};

/// The decoded code of a function without its control-flow graph, which follows from it.
#[derive(Clone, Debug, Default)]
pub(super) struct Code {
    pub(super) instructions: Vec<Instruction>,
    pub(super) effects: Vec<Effect>,
    /// Second operands in memory, by position.
    pub(super) second_operands: Vec<(u32, Memory)>,
    /// The targets of indirect jumps through known jump tables, by position.
    pub(super) tables: FxHashMap<usize, Vec<u64>>,
}

// the first byte of an instruction: its length, and these
const LENGTH: u8 = 0xf;
const HAS_MEMORY: u8 = 0x10;
const HAS_SECOND: u8 = 0x20;
const IS_REPEATED: u8 = 0x40;
const IS_APART: u8 = 0x80;

// the second byte: the flow, the condition above it, and this
const FLOW: u8 = 7;
const CONDITION: u8 = 0xf;
const HAS_FUSION: u8 = 0x80;

// the first byte of an operand
const IS_IMPLICIT: u8 = 0x10;
const IS_PAIR: u8 = 0x20;
const HAS_BASE: u8 = 0x40;
const HAS_INDEX: u8 = 0x80;

// numbers of kinds, by their positions
const ACCESSES: [Access; 3] = [Access::Read, Access::Write, Access::ReadWrite];
const SEGMENTS: [SegmentBase; 3] = [SegmentBase::Flat, SegmentBase::Fs, SegmentBase::Gs];
const CONDITIONS: [Condition; 14] = [
    Condition::Equal,
    Condition::Below,
    Condition::BelowOrEqual,
    Condition::Less,
    Condition::LessOrEqual,
    Condition::Negative,
    Condition::Overflow,
    Condition::NotEqual,
    Condition::NotBelow,
    Condition::NotBelowOrEqual,
    Condition::NotLess,
    Condition::NotLessOrEqual,
    Condition::NotNegative,
    Condition::NotOverflow,
];
const OPERATIONS: [FlagOperation; 9] = [
    FlagOperation::Cmp,
    FlagOperation::Test,
    FlagOperation::Add,
    FlagOperation::Sub,
    FlagOperation::And,
    FlagOperation::Or,
    FlagOperation::Xor,
    FlagOperation::Inc,
    FlagOperation::Dec,
];
const FORMS: [OperandForm; 6] = [
    OperandForm::Registers,
    OperandForm::Immediate,
    OperandForm::Memory,
    OperandForm::RelativeMemory,
    OperandForm::MemoryImmediate,
    OperandForm::MemoryWritten,
];
const JUMPS: [JumpCondition; 4] =
    [JumpCondition::Zero, JumpCondition::Carry, JumpCondition::Signed, JumpCondition::Other];

fn position<T: PartialEq>(kinds: &[T], kind: &T) -> u8 {
    kinds.iter().position(|one| one == kind).unwrap_or(kinds.len()) as u8
}

impl Code {
    /// Returns the effects of one of the instructions.
    pub(super) fn effects(&self, instruction: &Instruction) -> &[Effect] {
        let (start, end) = instruction.effects;
        self.effects.get(start as usize..end as usize).unwrap_or(&[])
    }

    /// Writes the code as bytes.
    pub(super) fn pack(&self) -> Vec<u8> {
        let mut out = Packer::default();
        out.number(self.instructions.len() as u64);
        out.number(self.effects.len() as u64);
        let (mut end, mut seconds) = (0, self.second_operands.iter().peekable());
        for (position, instruction) in (0..).zip(&self.instructions) {
            let second = seconds.next_if(|(of, _)| *of == position).map(|(_, memory)| memory);
            pack_instruction(&mut out, instruction, second, end);
            let effects = self.effects(instruction);
            out.number(effects.len() as u64);
            effects.iter().for_each(|effect| pack_effect(&mut out, effect));
            end = instruction.end();
        }
        let mut tables: Vec<_> = self.tables.iter().collect();
        tables.sort_unstable();
        out.number(tables.len() as u64);
        for (position, targets) in tables {
            out.number(*position as u64);
            out.number(targets.len() as u64);
            targets.iter().for_each(|target| out.number(*target));
        }
        out.into_bytes()
    }

    /// Reads code again, of a function of so many bytes; `None` where it is damaged.
    pub(super) fn unpack(bytes: &[u8], size: u64) -> Option<Code> {
        let from = &mut Unpacker::new(bytes);
        let (count, effects): (usize, usize) = (from.small()?, from.small()?);
        // each takes two bytes here, and one in the function; an effect at least one
        if count > bytes.len() / 2 || count as u64 > size || effects > bytes.len() {
            return None;
        }
        let mut code = Code {
            instructions: Vec::with_capacity(count),
            effects: Vec::with_capacity(effects),
            ..Code::default()
        };
        let mut end = 0;
        for position in 0..u32::try_from(count).ok()? {
            let instruction = code.instruction(from, position, end)?;
            end = instruction.end();
            code.instructions.push(instruction);
        }
        let tables = from.table(|from| {
            let position: usize = from.small()?;
            Some((position, from.table(Unpacker::number)?)).filter(|_| position < count)
        });
        code.tables.extend(tables?);
        from.is_empty().then_some(code)
    }

    /// Reads an instruction, with its second operand and its effects; the one before it ends at `end`.
    fn instruction(&mut self, from: &mut Unpacker<'_>, position: u32, end: u64) -> Option<Instruction> {
        let [first, second] = [from.byte()?, from.byte()?];
        let fusion = match second & HAS_FUSION {
            0 => FusionRole::None,
            _ => unpack_fusion(from.byte()?)?,
        };
        let address = match first & IS_APART {
            0 => end,
            _ => end.checked_add(from.number()?)?,
        };
        let length = first & LENGTH;
        let behind = address.checked_add(length.into()).filter(|_| length > 0)?;
        let flow = unpack_flow(from, second & FLOW, behind)?;
        let condition = match second >> 3 & CONDITION {
            0 => None,
            number => Some(*CONDITIONS.get(usize::from(number) - 1)?),
        };
        let memory = match first & HAS_MEMORY {
            0 => None,
            _ => Some(unpack_memory(from)?),
        };
        if first & HAS_SECOND != 0 {
            self.second_operands.push((position, unpack_memory(from)?));
        }
        let start = self.effects.len();
        for _ in 0..from.number()? {
            self.effects.push(unpack_effect(from)?);
        }
        let effects = (u32::try_from(start).ok()?, u32::try_from(self.effects.len()).ok()?);
        let is_repeated = first & IS_REPEATED != 0;
        Some(Instruction { address, length, flow, condition, memory, fusion, is_repeated, effects })
    }
}

fn pack_instruction(out: &mut Packer, instruction: &Instruction, second: Option<&Memory>, end: u64) {
    let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    let Instruction { address, length, flow, condition, memory, fusion, is_repeated, effects: _ } =
        instruction;
    out.byte(
        length & LENGTH
            | bit(memory.is_some(), HAS_MEMORY)
            | bit(second.is_some(), HAS_SECOND)
            | bit(*is_repeated, IS_REPEATED)
            | bit(*address != end, IS_APART),
    );
    let (kind, target) = match *flow {
        Flow::Next => (0, None),
        Flow::Jump(None) => (1, None),
        Flow::Jump(target) => (2, target),
        Flow::Branch(target) => (3, Some(target)),
        Flow::Call(None) => (4, None),
        Flow::Call(target) => (5, target),
        Flow::Return => (6, None),
        Flow::Stop => (7, None),
    };
    let condition = condition.map_or(0, |condition| position(&CONDITIONS, &condition) + 1);
    out.byte(kind | condition << 3 | bit(*fusion != FusionRole::None, HAS_FUSION));
    match fusion {
        FusionRole::None => {}
        FusionRole::Producer(FlagProducer { operation, operands }) => {
            out.byte(position(&OPERATIONS, operation) * FORMS.len() as u8 + position(&FORMS, operands));
        }
        FusionRole::Jump(jump) => {
            out.byte((OPERATIONS.len() * FORMS.len()) as u8 + position(&JUMPS, jump));
        }
    }
    if *address != end {
        out.number(address.wrapping_sub(end));
    }
    if let Some(target) = target {
        out.signed(target.wrapping_sub(instruction.end()).cast_signed());
    }
    memory.iter().chain(second).for_each(|memory| pack_memory(out, memory));
}

fn unpack_fusion(number: u8) -> Option<FusionRole> {
    let number = usize::from(number);
    if let Some(operation) = OPERATIONS.get(number / FORMS.len()) {
        let producer = FlagProducer { operation: *operation, operands: FORMS[number % FORMS.len()] };
        return Some(FusionRole::Producer(producer));
    }
    JUMPS.get(number - OPERATIONS.len() * FORMS.len()).map(|jump| FusionRole::Jump(*jump))
}

fn unpack_flow(from: &mut Unpacker<'_>, kind: u8, end: u64) -> Option<Flow> {
    let target = |from: &mut Unpacker<'_>| Some(end.wrapping_add_signed(from.signed()?));
    Some(match kind {
        0 => Flow::Next,
        1 => Flow::Jump(None),
        2 => Flow::Jump(Some(target(from)?)),
        3 => Flow::Branch(target(from)?),
        4 => Flow::Call(None),
        5 => Flow::Call(Some(target(from)?)),
        6 => Flow::Return,
        _ => Flow::Stop,
    })
}

fn pack_memory(out: &mut Packer, memory: &Memory) {
    let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    let Memory { base, index, scale, displacement, segment, size, access, implicit, is_pair } = memory;
    out.byte(
        position(&ACCESSES, access)
            | position(&SEGMENTS, segment) << 2
            | bit(*implicit, IS_IMPLICIT)
            | bit(*is_pair, IS_PAIR)
            | bit(base.is_some(), HAS_BASE)
            | bit(index.is_some(), HAS_INDEX),
    );
    base.iter().chain(index).for_each(|register| out.byte(register.0));
    out.byte(*scale);
    out.number((*size).into());
    out.signed(*displacement);
}

fn unpack_memory(from: &mut Unpacker<'_>) -> Option<Memory> {
    let flags = from.byte()?;
    let register = |from: &mut Unpacker<'_>, flag: u8| match flags & flag {
        0 => Some(None),
        _ => Some(Some(Register(from.byte()?))),
    };
    Some(Memory {
        base: register(from, HAS_BASE)?,
        index: register(from, HAS_INDEX)?,
        scale: from.byte()?,
        size: from.small()?,
        displacement: from.signed()?,
        segment: *SEGMENTS.get(usize::from(flags >> 2 & 3))?,
        access: *ACCESSES.get(usize::from(flags & 3))?,
        implicit: flags & IS_IMPLICIT != 0,
        is_pair: flags & IS_PAIR != 0,
    })
}

fn pack_register(out: &mut Packer, register: Option<Register>) {
    out.flag(register.is_some());
    register.into_iter().for_each(|register| out.byte(register.0));
}

fn unpack_register(from: &mut Unpacker<'_>) -> Option<Option<Register>> {
    match from.flag()? {
        true => Some(Some(Register(from.byte()?))),
        false => Some(None),
    }
}

fn pack_comparison_operand(out: &mut Packer, operand: ComparisonOperand) {
    match operand {
        ComparisonOperand::Memory => out.byte(0),
        ComparisonOperand::Register(register) => {
            out.byte(1);
            out.byte(register.0);
        }
        ComparisonOperand::Number(number) => {
            out.byte(2);
            out.signed(number);
        }
    }
}

fn unpack_comparison_operand(from: &mut Unpacker<'_>) -> Option<ComparisonOperand> {
    Some(match from.byte()? {
        0 => ComparisonOperand::Memory,
        1 => ComparisonOperand::Register(Register(from.byte()?)),
        2 => ComparisonOperand::Number(from.signed()?),
        _ => return None,
    })
}

fn pack_effect(out: &mut Packer, effect: &Effect) {
    let tag = |out: &mut Packer, tag: u8, registers: &[Register]| {
        out.byte(tag);
        registers.iter().for_each(|register| out.byte(register.0));
    };
    match *effect {
        Effect::Copy { to, from } => tag(out, 0, &[to, from]),
        Effect::Constant { to, value } => {
            tag(out, 1, &[to]);
            out.signed(value);
        }
        Effect::SelectConstant { to, numbers } => {
            tag(out, 2, &[to]);
            numbers.iter().for_each(|number| out.signed(*number));
        }
        Effect::Address { to, base, index, scale, displacement } => {
            tag(out, 3, &[to]);
            pack_register(out, base);
            pack_register(out, index);
            out.byte(scale);
            out.signed(displacement);
        }
        Effect::Add { to, by, subtract } => {
            tag(out, 4, &[to, by]);
            out.flag(subtract);
        }
        Effect::Multiply { to, from, by } => {
            tag(out, 5, &[to, from]);
            out.signed(by);
        }
        Effect::Product { to, one, other, plus } => {
            tag(out, 6, &[to, one, other]);
            pack_register(out, plus);
        }
        Effect::Truncate { to, size, signed } => {
            tag(out, 7, &[to]);
            out.byte(size);
            out.flag(signed);
        }
        Effect::UnknownNumber { to } => tag(out, 8, &[to]),
        Effect::Combine { to, by } => tag(out, 9, &[to, by]),
        Effect::And { to, by } => tag(out, 10, &[to, by]),
        Effect::SignMask { to } => tag(out, 11, &[to]),
        Effect::Mask { to, mask } => {
            tag(out, 12, &[to]);
            out.signed(mask);
        }
        Effect::ConditionalMove { to, from } => tag(out, 13, &[to, from]),
        Effect::Swap { a, b } => tag(out, 14, &[a, b]),
        Effect::Load { to, size, at } => {
            tag(out, 15, &[to]);
            out.byte(size);
            out.byte(at);
        }
        Effect::Store { from, size, at } => {
            tag(out, 16, &[]);
            pack_register(out, from);
            out.byte(size);
            out.byte(at);
        }
        Effect::AddMemory { to } => tag(out, 17, &[to]),
        Effect::Push { from } => {
            tag(out, 18, &[]);
            pack_register(out, from);
        }
        Effect::Pop { to } => tag(out, 19, &[to]),
        Effect::IndirectCall { from } => tag(out, 20, &[from]),
        Effect::ThreadPointer { to } => tag(out, 21, &[to]),
        Effect::Clobber { to } => tag(out, 22, &[to]),
        Effect::Compare { one, other, size, is_test } => {
            tag(out, 23, &[]);
            pack_comparison_operand(out, one);
            pack_comparison_operand(out, other);
            out.byte(size);
            out.flag(is_test);
        }
        Effect::ClobberFlags => tag(out, 24, &[]),
    }
}

fn unpack_effect(from: &mut Unpacker<'_>) -> Option<Effect> {
    let register = |from: &mut Unpacker<'_>| from.byte().map(Register);
    let tag = from.byte()?;
    // of those that write a register it comes first
    Some(match tag {
        16 => Effect::Store { from: unpack_register(from)?, size: from.byte()?, at: from.byte()? },
        18 => Effect::Push { from: unpack_register(from)? },
        20 => Effect::IndirectCall { from: register(from)? },
        23 => Effect::Compare {
            one: unpack_comparison_operand(from)?,
            other: unpack_comparison_operand(from)?,
            size: from.byte()?,
            is_test: from.flag()?,
        },
        24 => Effect::ClobberFlags,
        _ => {
            let to = register(from)?;
            match tag {
                0 => Effect::Copy { to, from: register(from)? },
                1 => Effect::Constant { to, value: from.signed()? },
                2 => Effect::SelectConstant { to, numbers: [from.signed()?, from.signed()?] },
                3 => Effect::Address {
                    to,
                    base: unpack_register(from)?,
                    index: unpack_register(from)?,
                    scale: from.byte()?,
                    displacement: from.signed()?,
                },
                4 => Effect::Add { to, by: register(from)?, subtract: from.flag()? },
                5 => Effect::Multiply { to, from: register(from)?, by: from.signed()? },
                6 => Effect::Product {
                    to,
                    one: register(from)?,
                    other: register(from)?,
                    plus: unpack_register(from)?,
                },
                7 => Effect::Truncate { to, size: from.byte()?, signed: from.flag()? },
                8 => Effect::UnknownNumber { to },
                9 => Effect::Combine { to, by: register(from)? },
                10 => Effect::And { to, by: register(from)? },
                11 => Effect::SignMask { to },
                12 => Effect::Mask { to, mask: from.signed()? },
                13 => Effect::ConditionalMove { to, from: register(from)? },
                14 => Effect::Swap { a: to, b: register(from)? },
                15 => Effect::Load { to, size: from.byte()?, at: from.byte()? },
                17 => Effect::AddMemory { to },
                19 => Effect::Pop { to },
                21 => Effect::ThreadPointer { to },
                22 => Effect::Clobber { to },
                _ => return None,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{Body, Image, Machine};

    /// Returns an instruction of each kind of flow, operand and effect.
    fn all_kinds() -> Code {
        let [a, b, c] = [Register(0), Register(12), Register(70)];
        let memory = Memory {
            base: Some(a),
            index: None,
            scale: 1,
            displacement: -8,
            segment: SegmentBase::Flat,
            size: 8,
            access: Access::Read,
            implicit: false,
            is_pair: false,
        };
        let other = Memory {
            base: None,
            index: Some(c),
            scale: 8,
            displacement: i64::MIN,
            segment: SegmentBase::Gs,
            size: u16::MAX,
            access: Access::ReadWrite,
            implicit: true,
            is_pair: true,
        };
        let effects = vec![
            Effect::Copy { to: a, from: b },
            Effect::Constant { to: a, value: i64::MIN },
            Effect::SelectConstant { to: a, numbers: [0, -1] },
            Effect::Address { to: a, base: Some(b), index: None, scale: 4, displacement: 1 << 40 },
            Effect::Add { to: a, by: b, subtract: true },
            Effect::Multiply { to: a, from: b, by: -3 },
            Effect::Product { to: a, one: b, other: c, plus: Some(a) },
            Effect::Truncate { to: a, size: 4, signed: true },
            Effect::UnknownNumber { to: a },
            Effect::Combine { to: a, by: b },
            Effect::And { to: a, by: b },
            Effect::SignMask { to: a },
            Effect::Mask { to: a, mask: 0xff },
            Effect::ConditionalMove { to: a, from: b },
            Effect::Swap { a, b },
            Effect::Load { to: a, size: 8, at: 16 },
            Effect::Store { from: None, size: 2, at: 1 },
            Effect::Store { from: Some(c), size: 2, at: 0 },
            Effect::AddMemory { to: a },
            Effect::Push { from: Some(a) },
            Effect::Pop { to: a },
            Effect::IndirectCall { from: b },
            Effect::ThreadPointer { to: a },
            Effect::Clobber { to: a },
            Effect::Compare {
                one: ComparisonOperand::Memory,
                other: ComparisonOperand::Number(-7),
                size: 4,
                is_test: false,
            },
            Effect::Compare {
                one: ComparisonOperand::Register(b),
                other: ComparisonOperand::Register(c),
                size: 1,
                is_test: true,
            },
            Effect::ClobberFlags,
        ];
        let flows = [
            Flow::Next,
            Flow::Jump(None),
            Flow::Jump(Some(0)),
            Flow::Branch(u64::MAX),
            Flow::Call(None),
            Flow::Call(Some(0x2000)),
            Flow::Return,
            Flow::Stop,
        ];
        let fusions = OPERATIONS
            .iter()
            .flat_map(|operation| {
                FORMS.iter().map(|operands| {
                    FusionRole::Producer(FlagProducer { operation: *operation, operands: *operands })
                })
            })
            .chain(JUMPS.iter().map(|jump| FusionRole::Jump(*jump)))
            .chain([FusionRole::None]);
        let conditions: Vec<Option<Condition>> = CONDITIONS.iter().copied().map(Some).chain([None]).collect();
        let mut code = Code { effects, ..Code::default() };
        let count = code.effects.len() as u32;
        for (position, fusion) in (0..).zip(fusions) {
            let index = position as usize;
            code.instructions.push(Instruction {
                // some are apart
                address: 0x1000 + u64::from(position) * 16 + u64::from(position / 20),
                length: 1 + (position % 16).min(14) as u8,
                flow: flows[index % flows.len()],
                condition: conditions[index % conditions.len()],
                memory: [None, Some(memory), Some(other)][index % 3],
                fusion,
                is_repeated: index.is_multiple_of(5),
                effects: (position.min(count), (position + 1).min(count)),
            });
            if index.is_multiple_of(4) {
                code.second_operands.push((position, if index.is_multiple_of(8) { memory } else { other }));
            }
        }
        code.tables.insert(7, vec![0x1000, u64::MAX, 0]);
        code.tables.insert(9, Vec::new());
        code
    }

    fn text(code: &Code) -> String {
        let mut tables: Vec<_> = code.tables.iter().collect();
        tables.sort_unstable();
        format!("{:?}\n{:?}\n{:?}\n{tables:?}", code.instructions, code.effects, code.second_operands)
    }

    #[test]
    fn every_kind_of_instruction_comes_back() {
        let code = all_kinds();
        let bytes = code.pack();
        let again = Code::unpack(&bytes, u64::MAX).expect("packed");
        assert_eq!(text(&again), text(&code));
        // more instructions than a function has bytes
        assert!(Code::unpack(&bytes, code.instructions.len() as u64 - 1).is_none());
    }

    #[test]
    fn functions_come_back_with_their_blocks() {
        // this very program
        let bytes = std::fs::read(std::env::current_exe().expect("a program")).expect("the program");
        let image = Image::parse(&bytes).expect("an ELF file");
        let (mut instructions, mut packed) = (0, 0);
        for function in image.functions().iter().filter(|function| function.size() > 0).take(2000) {
            let range = function.address()..function.address() + function.size();
            let body = Body::decode(&image, std::slice::from_ref(&range), range.start);
            let bytes = body.packed();
            let again = Body::unpacked(std::slice::from_ref(&range), &[], &bytes).expect("packed");
            assert_eq!(again.instructions().len(), body.instructions().len());
            let all = |body: &Body| {
                let of_each = |position: usize| {
                    let instruction = &body.instructions()[position];
                    let operands = body.operands(position).collect::<Vec<_>>();
                    format!(
                        "{instruction:?} {:?} {operands:?} {:?}",
                        body.effects(instruction),
                        body.table(position)
                    )
                };
                let each: Vec<String> = (0..body.instructions().len()).map(of_each).collect();
                format!("{each:?} {:?} {}", body.blocks(), body.entry())
            };
            assert_eq!(all(&again), all(&body), "{}", function.name());
            instructions += body.instructions().len();
            packed += bytes.len();
        }
        assert!(instructions > 10_000, "{instructions}");
        if image.machine() == Machine::X86_64 {
            assert!(packed < instructions * 20, "{packed} bytes, {instructions} instructions");
        }
    }

    #[test]
    fn damaged_code_is_refused_or_sound() {
        let bytes = all_kinds().pack();
        for end in 0..bytes.len() {
            assert!(Code::unpack(&bytes[..end], 1 << 20).is_none(), "{end}");
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                crate::code::read_functions(&changed);
                if let Some(code) = Code::unpack(&changed, 1 << 20) {
                    assert!(code.instructions.is_sorted_by_key(|instruction| instruction.address));
                    let effects = code.instructions.iter().map(|instruction| code.effects(instruction).len());
                    assert_eq!(effects.sum::<usize>(), code.effects.len());
                }
            }
        }
    }
}
