//! x86-64: what instructions do.

use super::fusion::{FlagOperation, FlagProducer, FusionRole, JumpCondition, OperandForm};
use super::instruction::{Access, ComparisonOperand, Condition, Effect, Flow, Instruction, Memory, Register};
use super::x86_operands::{self, STACK, is_stack_operation, register};
use iced_x86::{
    Code, ConditionCode, Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register as Native,
};

/// The frame pointer's number in DWARF.
const FRAME: Register = Register(6);

/// Decodes code at an address, one instruction after the other.
pub(super) fn decode(
    bytes: &[u8],
    address: u64,
    instructions: &mut Vec<Instruction>,
    effects: &mut Vec<Effect>,
    second_operands: &mut Vec<(u32, Memory)>,
) {
    // an instruction has about four bytes, and an effect or two
    instructions.reserve(bytes.len() / 4);
    effects.reserve(bytes.len() / 4);
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let mut factory = InstructionInfoFactory::new();
    let mut native = iced_x86::Instruction::default();
    // whether the flags are those of a comparison
    let mut is_compared = false;
    while decoder.can_decode() {
        decoder.decode_out(&mut native);
        let start = effects.len() as u32;
        let mut reader = EffectReader { native: &native, factory: &mut factory, effects };
        let (memory, second) = reader.read();
        second_operands.extend(second.map(|second| (instructions.len() as u32, second)));
        is_compared = reader.flags(start as usize, memory.as_ref(), is_compared);
        instructions.push(Instruction {
            address: native.ip(),
            length: native.len() as u8,
            flow: flow(&native),
            condition: condition(&native),
            memory,
            fusion: fusion(&native, memory.as_ref()),
            is_repeated: native.is_string_instruction()
                && (native.has_rep_prefix() || native.has_repne_prefix()),
            effects: (start, effects.len() as u32),
        });
    }
}

fn condition(native: &iced_x86::Instruction) -> Option<Condition> {
    Some(match native.condition_code() {
        ConditionCode::e => Condition::Equal,
        ConditionCode::ne => Condition::NotEqual,
        ConditionCode::b => Condition::Below,
        ConditionCode::ae => Condition::NotBelow,
        ConditionCode::be => Condition::BelowOrEqual,
        ConditionCode::a => Condition::NotBelowOrEqual,
        ConditionCode::l => Condition::Less,
        ConditionCode::ge => Condition::NotLess,
        ConditionCode::le => Condition::LessOrEqual,
        ConditionCode::g => Condition::NotLessOrEqual,
        ConditionCode::s => Condition::Negative,
        ConditionCode::ns => Condition::NotNegative,
        ConditionCode::o => Condition::Overflow,
        ConditionCode::no => Condition::NotOverflow,
        _ => return None,
    })
}

pub(super) fn flow(native: &iced_x86::Instruction) -> Flow {
    let target = || match native.op0_kind() {
        OpKind::NearBranch64 => Some(native.near_branch64()),
        _ => None,
    };
    if native.is_invalid() {
        return Flow::Stop;
    }
    match native.flow_control() {
        FlowControl::Next | FlowControl::XbeginXabortXend => Flow::Next,
        FlowControl::UnconditionalBranch => Flow::Jump(target()),
        FlowControl::IndirectBranch => Flow::Jump(None),
        FlowControl::ConditionalBranch => target().map_or(Flow::Stop, Flow::Branch),
        FlowControl::Return => Flow::Return,
        FlowControl::Call => Flow::Call(target()),
        FlowControl::IndirectCall => Flow::Call(None),
        // a kernel call comes back like any instruction
        FlowControl::Interrupt if native.code() != Code::Int3 => Flow::Next,
        FlowControl::Interrupt | FlowControl::Exception => Flow::Stop,
    }
}

/// A reader of the effects and the memory operands of one instruction.
struct EffectReader<'r> {
    native: &'r iced_x86::Instruction,
    factory: &'r mut InstructionInfoFactory,
    effects: &'r mut Vec<Effect>,
}

impl EffectReader<'_> {
    fn read(&mut self) -> (Option<Memory>, Option<Memory>) {
        let (memory, second) = x86_operands::memory(self.native, self.factory);
        if !self.known(memory.as_ref()) {
            self.modify_written();
        }
        (memory, second)
    }

    /// Says what sets the flags, as far as it matters: a comparison, or what overwrites those of one. True
    /// while they are a comparison's.
    fn flags(&mut self, start: usize, memory: Option<&Memory>, is_compared: bool) -> bool {
        let native = self.native;
        let operand = |operand: u32| match native.op_kind(operand) {
            OpKind::Register if is_high(native.op_register(operand)) => None,
            OpKind::Register => register(native.op_register(operand)).map(ComparisonOperand::Register),
            OpKind::Memory => Some(ComparisonOperand::Memory),
            _ => Some(ComparisonOperand::Number(native.immediate(operand) as i64)),
        };
        let operands = match native.mnemonic() {
            Mnemonic::Cmp | Mnemonic::Test => operand(0).zip(operand(1)),
            // flags are those of what it takes the register from
            Mnemonic::Neg => Some(ComparisonOperand::Number(0)).zip(operand(0)),
            // as if the result was tested
            Mnemonic::And if is_register(native, 0) && is_register(native, 1) => operand(0).zip(operand(0)),
            _ => None,
        };
        let size = match native.op0_kind() {
            OpKind::Register => size_of(native.op0_register()) as u8,
            _ => memory.map_or(0, |memory| memory.size as u8),
        };
        if let Some((one, other)) = operands
            && size != 0
        {
            let is_test = matches!(native.mnemonic(), Mnemonic::Test | Mnemonic::And);
            let compare = Effect::Compare { one, other, size, is_test };
            // by what is there before the register is written
            let at = if native.mnemonic() == Mnemonic::Neg { start } else { self.effects.len() };
            self.effects.insert(at, compare);
            return true;
        }
        if is_compared && native.rflags_modified() != 0 {
            self.effects.push(Effect::ClobberFlags);
            return false;
        }
        is_compared
    }

    /// Decodes the effects of an instruction that pointers pass through; returns false for another one.
    fn known(&mut self, memory: Option<&Memory>) -> bool {
        let native = self.native;
        match native.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movq | Mnemonic::Movd => self.mov(),
            Mnemonic::Movsxd | Mnemonic::Movsx => self.extend(true),
            Mnemonic::Movzx => self.extend(false),
            Mnemonic::Cdqe => self.narrow(Register(0), 4, true),
            Mnemonic::Lea => self.lea(),
            Mnemonic::Shl | Mnemonic::Sal => self.shift(),
            Mnemonic::Imul => self.multiply(),
            Mnemonic::Neg => self.scaled(-1),
            Mnemonic::Not => self.scaled(-1) && self.step(-1),
            Mnemonic::Sar
                if is_register(native, 0) && size_of(native.op0_register()) == 8 && is_sign(native) =>
            {
                self.write(0, |to| Effect::SignMask { to })
            }
            Mnemonic::Shr | Mnemonic::Sar | Mnemonic::Popcnt | Mnemonic::Bsf | Mnemonic::Tzcnt => {
                self.counted()
            }
            Mnemonic::Add => self.sum(false, memory),
            Mnemonic::Sub => self.sum(true, memory),
            Mnemonic::Inc => self.step(1),
            Mnemonic::Dec => self.step(-1),
            Mnemonic::Xor if is_register(native, 0) && native.op0_register() == native.op1_register() => {
                self.write(0, |to| Effect::Constant { to, value: 0 })
            }
            Mnemonic::And => self.and(),
            Mnemonic::Or | Mnemonic::Xor => self.mix(),
            Mnemonic::Push => {
                let from = (is_register(native, 0)).then(|| register(native.op0_register())).flatten();
                self.effects.push(Effect::Push { from });
                true
            }
            Mnemonic::Pop if is_register(native, 0) => self.write(0, |to| Effect::Pop { to }),
            Mnemonic::Leave => {
                self.effects.push(Effect::Copy { to: STACK, from: FRAME });
                self.effects.push(Effect::Pop { to: FRAME });
                true
            }
            Mnemonic::Xchg => self.exchange(),
            Mnemonic::Call => {
                let through = is_register(native, 0).then(|| register(native.op0_register())).flatten();
                self.effects.extend(through.map(|from| Effect::IndirectCall { from }));
                true
            }
            // a borrow, as a mask
            Mnemonic::Sbb if is_register(native, 0) && native.op0_register() == native.op1_register() => {
                self.write(0, |to| Effect::SelectConstant { to, numbers: [0, -1] })
                    && self.half(native.op0_register())
            }
            _ if native.condition_code() != ConditionCode::None && native.op_count() == 2 => self.choose(),
            _ if is_set(native) => self.write(0, |to| Effect::SelectConstant { to, numbers: [0, 1] }),
            _ => false,
        }
    }

    fn mov(&mut self) -> bool {
        let native = self.native;
        match (native.op0_kind(), native.op1_kind()) {
            (OpKind::Register, OpKind::Register) => {
                let (to, from) = (native.op0_register(), native.op1_register());
                match (register(to), register(from)) {
                    (Some(to), Some(from)) if size_of(native.op0_register()) >= 4 => {
                        self.effects.push(Effect::Copy { to, from });
                        self.half(native.op0_register())
                    }
                    _ => false,
                }
            }
            (OpKind::Register, OpKind::Memory) => {
                let size = native.memory_size().size() as u8;
                self.write(0, |to| Effect::Load { to, size, at: 0 })
            }
            (OpKind::Memory, OpKind::Register) => {
                let size = native.memory_size().size() as u8;
                self.effects.push(Effect::Store { from: register(native.op1_register()), size, at: 0 });
                true
            }
            (OpKind::Memory, _) => {
                let size = native.memory_size().size() as u8;
                self.effects.push(Effect::Store { from: None, size, at: 0 });
                true
            }
            (OpKind::Register, _) if size_of(native.op0_register()) >= 4 => {
                let value = native.immediate(1) as i64;
                self.write(0, |to| Effect::Constant { to, value })
            }
            _ => false,
        }
    }

    fn lea(&mut self) -> bool {
        let native = self.native;
        let is_relative = native.is_ip_rel_memory_operand();
        let (base, index) = (register(native.memory_base()), register(native.memory_index()));
        if size_of(native.op0_register()) < 4 {
            return false;
        }
        let displacement = native.memory_displacement64() as i64;
        let scale = native.memory_index_scale() as u8;
        let base = base.filter(|_| !is_relative);
        self.write(0, |to| Effect::Address { to, base, index, scale, displacement })
            && self.half(native.op0_register())
    }

    fn sum(&mut self, subtract: bool, memory: Option<&Memory>) -> bool {
        let native = self.native;
        if !is_register(native, 0) || size_of(native.op0_register()) < 4 {
            return !is_register(native, 0);
        }
        let is_known = match native.op1_kind() {
            OpKind::Register => {
                let Some(by) = register(native.op1_register()) else { return false };
                self.write(0, |to| Effect::Add { to, by, subtract })
            }
            OpKind::Memory if memory.is_some() && !subtract => self.write(0, |to| Effect::AddMemory { to }),
            OpKind::Memory => false,
            _ => {
                let value = native.immediate(1) as i64;
                return self.step(if subtract { value.wrapping_neg() } else { value });
            }
        };
        is_known && self.half(native.op0_register())
    }

    fn step(&mut self, by: i64) -> bool {
        if !is_register(self.native, 0) || size_of(self.native.op0_register()) < 4 {
            return !is_register(self.native, 0);
        }
        self.write(0, |to| Effect::Address { to, base: Some(to), index: None, scale: 1, displacement: by })
            && self.half(self.native.op0_register())
    }

    /// Truncates the register behind an instruction on its lower half: the upper half is cleared.
    fn half(&mut self, native: Native) -> bool {
        match register(native) {
            Some(to) if size_of(native) == 4 => self.narrow(to, 4, false),
            _ => true,
        }
    }

    fn narrow(&mut self, to: Register, size: u8, signed: bool) -> bool {
        self.effects.push(Effect::Truncate { to, size, signed });
        true
    }

    /// Decodes a sign or zero extension of a register or of a load.
    fn extend(&mut self, signed: bool) -> bool {
        let native = self.native;
        let is_wide = size_of(native.op0_register()) >= 4;
        let Some(to) = register(native.op0_register()).filter(|_| is_wide) else { return false };
        match native.op1_kind() {
            OpKind::Register => {
                let Some(from) = register(native.op1_register()) else { return false };
                self.effects.push(Effect::Copy { to, from });
                self.narrow(to, size_of(native.op1_register()) as u8, signed)
            }
            OpKind::Memory => {
                let size = native.memory_size().size() as u8;
                self.effects.push(Effect::Load { to, size, at: 0 });
                true
            }
            _ => false,
        }
    }

    fn shift(&mut self) -> bool {
        let native = self.native;
        match native.op1_kind() {
            OpKind::Immediate8 if native.immediate8() < 48 => self.scaled(1 << native.immediate8()),
            _ => self.counted(),
        }
    }

    /// Decodes a register times a constant.
    fn scaled(&mut self, by: i64) -> bool {
        let native = self.native;
        if !is_register(native, 0) || size_of(native.op0_register()) < 4 {
            return !is_register(native, 0);
        }
        self.write(0, |to| Effect::Multiply { to, from: to, by }) && self.half(native.op0_register())
    }

    fn multiply(&mut self) -> bool {
        let native = self.native;
        if native.op_count() < 2 || size_of(native.op0_register()) < 4 {
            return false;
        }
        let from = is_register(native, 1).then(|| register(native.op1_register())).flatten();
        let is_known = match (from, native.op_count()) {
            (Some(from), 3) => {
                let by = native.immediate(2) as i64;
                self.write(0, |to| Effect::Multiply { to, from, by })
            }
            (Some(other), _) => self.write(0, |to| Effect::Product { to, one: to, other, plus: None }),
            (None, 3) => {
                let (size, by) = (native.memory_size().size() as u8, native.immediate(2) as i64);
                self.write(0, |to| Effect::Load { to, size, at: 0 })
                    && self.write(0, |to| Effect::Multiply { to, from: to, by })
            }
            (None, _) => self.write(0, |to| Effect::UnknownNumber { to }),
        };
        is_known && self.half(native.op0_register())
    }

    /// Decodes an instruction whose result cannot be an address.
    fn counted(&mut self) -> bool {
        if !is_register(self.native, 0) || size_of(self.native.op0_register()) < 4 {
            return !is_register(self.native, 0);
        }
        self.write(0, |to| Effect::UnknownNumber { to })
    }

    fn mix(&mut self) -> bool {
        let native = self.native;
        if !is_register(native, 0) || size_of(native.op0_register()) < 4 {
            return !is_register(native, 0);
        }
        match (native.op1_kind(), size_of(native.op0_register())) {
            (_, 4) => self.write(0, |to| Effect::UnknownNumber { to }),
            (OpKind::Register, _) => {
                let Some(by) = register(native.op1_register()) else { return false };
                self.write(0, |to| Effect::Combine { to, by })
            }
            _ => false,
        }
    }

    fn and(&mut self) -> bool {
        let native = self.native;
        let by_number = matches!(
            native.op1_kind(),
            OpKind::Immediate8to64 | OpKind::Immediate32to64 | OpKind::Immediate8to32 | OpKind::Immediate32
        );
        if is_register(native, 0) && is_register(native, 1) && size_of(native.op0_register()) == 8 {
            let Some(by) = register(native.op1_register()) else { return false };
            return self.write(0, |to| Effect::And { to, by });
        }
        if !is_register(native, 0) || !by_number {
            return self.mix();
        }
        let mask = match native.op1_kind() {
            // the other half is cleared anyway
            OpKind::Immediate8to32 => i64::from(native.immediate8to32()),
            OpKind::Immediate32 => i64::from(native.immediate32() as i32),
            _ => native.immediate(1) as i64,
        };
        self.write(0, |to| Effect::Mask { to, mask }) && self.half(native.op0_register())
    }

    fn exchange(&mut self) -> bool {
        let native = self.native;
        if !is_register(native, 0) || !is_register(native, 1) || size_of(native.op0_register()) < 8 {
            return false;
        }
        let (Some(a), Some(b)) = (register(native.op0_register()), register(native.op1_register())) else {
            return false;
        };
        self.effects.push(Effect::Swap { a, b });
        true
    }

    fn choose(&mut self) -> bool {
        let native = self.native;
        if native.op_count() != 2 || !is_register(native, 1) || !is_wide(native) {
            return false;
        }
        let Some(from) = register(native.op1_register()) else { return false };
        self.write(0, |to| Effect::ConditionalMove { to, from }) && self.half(native.op0_register())
    }

    fn write(&mut self, operand: u32, effect: impl FnOnce(Register) -> Effect) -> bool {
        match register(self.native.op_register(operand)) {
            Some(to) => {
                self.effects.push(effect(to));
                true
            }
            None => false,
        }
    }

    /// Marks every register that the instruction writes as unknown.
    fn modify_written(&mut self) {
        let info = self.factory.info(self.native);
        for used in info.used_registers() {
            let writes = matches!(
                used.access(),
                OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            );
            let Some(to) = register(used.register()).filter(|_| writes) else { continue };
            if to == STACK && is_stack_operation(self.native) {
                continue;
            }
            // a half, or a part of it, is no address
            let own = is_register(self.native, 0).then(|| self.native.op0_register());
            let own = own.filter(|own| register(*own) == Some(to)).unwrap_or(used.register());
            let is_part = own.is_gpr() && size_of(own) < 8;
            self.effects.push(if is_part { Effect::UnknownNumber { to } } else { Effect::Clobber { to } });
        }
    }
}

/// Returns the part that an instruction can take in a macro-fused pair.
fn fusion(native: &iced_x86::Instruction, memory: Option<&Memory>) -> FusionRole {
    use ConditionCode as Condition;
    if native.is_jcc_short_or_near() {
        return FusionRole::Jump(match native.condition_code() {
            Condition::e | Condition::ne => JumpCondition::Zero,
            Condition::b | Condition::ae | Condition::be | Condition::a => JumpCondition::Carry,
            Condition::l | Condition::ge | Condition::le | Condition::g => JumpCondition::Signed,
            _ => JumpCondition::Other,
        });
    }
    let operation = match native.mnemonic() {
        Mnemonic::Cmp => FlagOperation::Cmp,
        Mnemonic::Test => FlagOperation::Test,
        Mnemonic::Add => FlagOperation::Add,
        Mnemonic::Sub => FlagOperation::Sub,
        Mnemonic::And => FlagOperation::And,
        Mnemonic::Or => FlagOperation::Or,
        Mnemonic::Xor => FlagOperation::Xor,
        Mnemonic::Inc => FlagOperation::Inc,
        Mnemonic::Dec => FlagOperation::Dec,
        _ => return FusionRole::None,
    };
    let has_immediate = (0..native.op_count())
        .any(|operand| !matches!(native.op_kind(operand), OpKind::Register | OpKind::Memory));
    let operands = match memory {
        Some(memory) => operand_form(memory.access, has_immediate, native.is_ip_rel_memory_operand()),
        None if has_immediate || native.op_count() == 1 => OperandForm::Immediate,
        None => OperandForm::Registers,
    };
    FusionRole::Producer(FlagProducer { operation, operands })
}

pub(super) fn is_register(native: &iced_x86::Instruction, operand: u32) -> bool {
    native.op_count() > operand && native.op_kind(operand) == OpKind::Register
}

/// Returns `true` if an arithmetic right shift of an 8-byte register leaves only copies of its sign.
fn is_sign(native: &iced_x86::Instruction) -> bool {
    native.op1_kind() == OpKind::Immediate8 && native.immediate8() & 63 == 63
}

/// Returns the form of operands with memory.
fn operand_form(access: Access, has_immediate: bool, is_relative: bool) -> OperandForm {
    match (access, has_immediate, is_relative) {
        (Access::Write | Access::ReadWrite, ..) => OperandForm::MemoryWritten,
        (Access::Read, true, _) => OperandForm::MemoryImmediate,
        (Access::Read, false, true) => OperandForm::RelativeMemory,
        (Access::Read, false, false) => OperandForm::Memory,
    }
}

/// Returns true for `setcc` of a register's lowest byte.
fn is_set(native: &iced_x86::Instruction) -> bool {
    let is_conditional = native.condition_code() != ConditionCode::None && native.op_count() == 1;
    let is_low = !is_high(native.op0_register());
    is_conditional && is_register(native, 0) && is_low && !native.is_jcc_short_or_near()
}

/// Returns true for a register's second byte (`ah` to `dh`).
fn is_high(register: Native) -> bool {
    matches!(register, Native::AH | Native::BH | Native::CH | Native::DH)
}

/// Returns true if the first operand is a register of at least 32 bits.
fn is_wide(native: &iced_x86::Instruction) -> bool {
    is_register(native, 0) && size_of(native.op0_register()) >= 4
}

fn size_of(register: Native) -> usize {
    register.size()
}

#[cfg(test)]
mod tests {
    use super::super::REGISTERS;
    use super::*;

    fn decoded(bytes: &[u8]) -> (Instruction, Vec<Effect>) {
        let (mut instructions, mut effects) = (Vec::new(), Vec::new());
        decode(bytes, 0x1000, &mut instructions, &mut effects, &mut Vec::new());
        assert_eq!(instructions.len(), 1, "{instructions:?}");
        (instructions[0], effects)
    }

    fn operands(bytes: &[u8]) -> (Option<Memory>, Vec<(u32, Memory)>) {
        let (mut instructions, mut seconds) = (Vec::new(), Vec::new());
        decode(bytes, 0x1000, &mut instructions, &mut Vec::new(), &mut seconds);
        (instructions[0].memory, seconds)
    }

    #[test]
    fn of_two_operands_the_one_that_is_read_comes_first() {
        // rep movsb; movsq; repe cmpsb: %rsi is 4, %rdi 5
        for (bytes, access) in [
            (&[0xf3, 0xa4][..], Access::Write),
            (&[0x48, 0xa5], Access::Write),
            (&[0xf3, 0xa6], Access::Read),
        ] {
            let (first, second) = operands(bytes);
            let first = first.expect("an operand");
            assert_eq!((first.base, first.access), (Some(Register(4)), Access::Read), "{bytes:x?}");
            let [(0, second)] = second[..] else { panic!("{bytes:x?}: {second:?}") };
            assert_eq!((second.base, second.access), (Some(Register(5)), access), "{bytes:x?}");
        }
        // push 8(%rax), pop 8(%rax), call *8(%rax), stosb, lock cmpxchg %rcx,(%rax): the stack is no operand
        for bytes in [
            &[0xff, 0x70, 0x08][..],
            &[0x8f, 0x40, 0x08],
            &[0xff, 0x50, 0x08],
            &[0xaa],
            &[0xf0, 0x48, 0x0f, 0xb1, 0x08],
        ] {
            let (first, second) = operands(bytes);
            assert!(first.is_some_and(|memory| !memory.implicit), "{bytes:x?}");
            assert!(second.is_empty(), "{bytes:x?}: {second:?}");
        }
    }

    #[test]
    fn a_vector_index_is_an_index_in_any_register() {
        // vpgatherqq 8(%rdx,%ymm2,8),%ymm0{%ymm3}; vpgatherqq (%rax,%ymm18,8),%ymm16{%k1}
        let memory = |bytes| operands(bytes).0.expect("an operand");
        let followed = memory(&[0xc4, 0xe2, 0xe5, 0x91, 0x44, 0xd2, 0x08]);
        assert_eq!((followed.base, followed.index), (Some(Register(1)), Some(Register(19))));
        assert_eq!((followed.scale, followed.displacement, followed.size), (8, 8, 8));
        let other = memory(&[0x62, 0xe2, 0xfd, 0x21, 0x91, 0x04, 0xd0]);
        assert!(other.index.is_some_and(|index| usize::from(index.0) >= REGISTERS), "{other:?}");
    }

    #[test]
    fn loads_and_stores_name_their_operand() {
        // mov 0x3c(%rdi),%eax
        let (load, effects) = decoded(&[0x8b, 0x47, 0x3c]);
        let memory = load.memory.expect("an operand");
        assert_eq!((memory.base, memory.displacement, memory.size), (Some(Register(5)), 0x3c, 4));
        assert_eq!(memory.access, Access::Read);
        assert_eq!(effects, [Effect::Load { to: Register(0), size: 4, at: 0 }]);
        // lock xadd %rax,(%rbx,%rcx,8)
        let (add, _) = decoded(&[0xf0, 0x48, 0x0f, 0xc1, 0x04, 0xcb]);
        let memory = add.memory.expect("an operand");
        assert_eq!((memory.base, memory.index, memory.scale), (Some(Register(3)), Some(Register(2)), 8));
        assert_eq!(memory.access, Access::ReadWrite);
    }

    #[test]
    fn an_address_relative_to_the_program_counter_is_absolute() {
        // mov 0x10(%rip),%rax
        let (load, _) = decoded(&[0x48, 0x8b, 0x05, 0x10, 0, 0, 0]);
        let memory = load.memory.expect("an operand");
        assert_eq!((memory.base, memory.displacement), (None, 0x1017));
    }

    #[test]
    fn what_a_condition_makes_is_one_of_two_numbers() {
        // setbe %cl; sbb %eax,%eax; sete (%rax)
        let (_, effects) = decoded(&[0x0f, 0x96, 0xc1]);
        assert_eq!(effects, [Effect::SelectConstant { to: Register(2), numbers: [0, 1] }]);
        let (_, effects) = decoded(&[0x19, 0xc0]);
        assert_eq!(effects[0], Effect::SelectConstant { to: Register(0), numbers: [0, -1] });
        assert!(decoded(&[0x0f, 0x94, 0x00]).1.is_empty());
        // sete %ah
        assert_eq!(decoded(&[0x0f, 0x94, 0xc4]).1, [Effect::UnknownNumber { to: Register(0) }]);
    }

    #[test]
    fn the_stack_of_a_push_gives_way_to_an_operand() {
        let (push, _) = decoded(&[0x55]);
        assert!(push.memory.expect("the stack").implicit);
        // push 0x8(%rax)
        let (push, _) = decoded(&[0xff, 0x70, 0x08]);
        let memory = push.memory.expect("an operand");
        assert_eq!((memory.base, memory.implicit), (Some(Register(0)), false));
        // call *0x18(%rax)
        let (call, _) = decoded(&[0xff, 0x50, 0x18]);
        assert_eq!(call.memory.expect("an operand").displacement, 0x18);
        assert_eq!(call.flow, Flow::Call(None));
    }

    #[test]
    fn no_operation_and_lea_touch_no_memory() {
        for bytes in [&[0x48, 0x8d, 0x47, 0x10][..], &[0x0f, 0x1f, 0x44, 0, 0]] {
            assert_eq!(decoded(bytes).0.memory, None, "{bytes:?}");
        }
    }
}
