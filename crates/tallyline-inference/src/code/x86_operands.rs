//! x86-64: operands in memory.

use super::instruction::{Access, Memory, Register, SegmentBase};
use iced_x86::{
    Code, InstructionInfoFactory, InstructionInfoOptions, Mnemonic, OpAccess, OpKind, Register as Native,
};

/// The stack pointer's number in DWARF.
pub(super) const STACK: Register = Register(7);

/// The number in DWARF of the first of the vector registers that are not followed, `%xmm16`.
const NOT_FOLLOWED: u8 = 67;

/// Returns the operands in memory: of two, first the one that is read. The implicit stack operand is
/// returned only if there is no other.
pub(super) fn memory(
    native: &iced_x86::Instruction,
    factory: &mut InstructionInfoFactory,
) -> (Option<Memory>, Option<Memory>) {
    match common_memory(native) {
        CommonMemory::Known(memory) => (memory, None),
        CommonMemory::Other => any_memory(native, factory),
    }
}

/// Returns the operands in memory of any instruction.
fn any_memory(
    native: &iced_x86::Instruction,
    factory: &mut InstructionInfoFactory,
) -> (Option<Memory>, Option<Memory>) {
    let info = factory.info_options(native, InstructionInfoOptions::NO_REGISTER_USAGE);
    let (mut found, mut second): (Option<Memory>, Option<Memory>) = (None, None);
    let explicit = (0..native.op_count()).any(|index| native.op_kind(index) == OpKind::Memory);
    for used in info.used_memory() {
        let Some(access) = access(used.access()) else { continue };
        // `push 8(%rax)` has the stack and an operand of its own
        let own = explicit
            && used.base() == native.memory_base()
            && used.displacement() == native.memory_displacement64();
        let implicit = is_stack_operation(native) && !own;
        let base = used.base();
        let displacement = used.displacement() as i64;
        let memory = Memory {
            base: register(base),
            index: index_register(used.index()),
            scale: used.scale() as u8,
            displacement,
            segment: match used.segment() {
                Native::FS => SegmentBase::Fs,
                Native::GS => SegmentBase::Gs,
                _ => SegmentBase::Flat,
            },
            size: u16::try_from(used.memory_size().size()).unwrap_or(0),
            access,
            implicit,
            is_pair: false,
        };
        match &found {
            None => found = Some(memory),
            Some(before) if before.implicit != implicit => {
                found = if implicit { found } else { Some(memory) };
            }
            Some(_) if implicit => {}
            // of a string's move the operand that is written comes first
            Some(before) if access.reads() && !before.access.reads() => second = found.replace(memory),
            Some(before) => second = (!is_at_same_place(before, &memory)).then_some(memory).or(second),
        }
    }
    // prefetches and the like say that they access nothing
    if found.is_none() && explicit && is_prefetch(native.mnemonic()) {
        let prefetched = Memory {
            base: register(native.memory_base()),
            index: index_register(native.memory_index()),
            scale: native.memory_index_scale() as u8,
            displacement: native.memory_displacement64() as i64,
            segment: SegmentBase::Flat,
            size: 1,
            access: Access::Read,
            implicit: false,
            is_pair: false,
        };
        return (Some(prefetched), None);
    }
    (found, second)
}

/// The operand in memory of an instruction as far as it follows from the mnemonic and the kinds of operands.
enum CommonMemory {
    Known(Option<Memory>),
    /// The operand of a less common instruction, for which [`InstructionInfoFactory`] is asked.
    Other,
}

/// Returns the operand in memory of the instructions that most code consists of. The factory says the same of them
/// and takes longer than their decoding: it collects all registers of all operands.
fn common_memory(native: &iced_x86::Instruction) -> CommonMemory {
    let kind = |operand: u32| match native.op_count() > operand {
        true => Some(native.op_kind(operand)),
        false => None,
    };
    let is_register = |kind: Option<OpKind>| matches!(kind, None | Some(OpKind::Register));
    let of_stack = |displacement: i64, access: Access| {
        let size = 8;
        let (base, scale, segment) = (Some(STACK), 1, SegmentBase::Flat);
        let memory = Memory {
            base,
            index: None,
            scale,
            displacement,
            segment,
            size,
            access,
            implicit: true,
            is_pair: false,
        };
        CommonMemory::Known(Some(memory))
    };
    let first = match native.mnemonic() {
        Mnemonic::Lea | Mnemonic::Nop => return CommonMemory::Known(None),
        Mnemonic::Call if kind(0) == Some(OpKind::NearBranch64) => return of_stack(-8, Access::Write),
        Mnemonic::Jmp if kind(0) == Some(OpKind::NearBranch64) => return CommonMemory::Known(None),
        _ if native.is_jcc_short_or_near() => return CommonMemory::Known(None),
        Mnemonic::Push if native.code() == Code::Push_r64 => return of_stack(-8, Access::Write),
        Mnemonic::Pop if native.code() == Code::Pop_r64 => return of_stack(0, Access::Read),
        Mnemonic::Ret if native.code() == Code::Retnq => return of_stack(0, Access::Read),
        Mnemonic::Mov
        | Mnemonic::Movaps
        | Mnemonic::Movups
        | Mnemonic::Movdqa
        | Mnemonic::Movdqu
        | Mnemonic::Movq
        | Mnemonic::Movd
        | Mnemonic::Movss
        | Mnemonic::Movsd => Access::Write,
        Mnemonic::Add
        | Mnemonic::Sub
        | Mnemonic::And
        | Mnemonic::Or
        | Mnemonic::Xor
        | Mnemonic::Inc
        | Mnemonic::Dec
        | Mnemonic::Not
        | Mnemonic::Neg
        | Mnemonic::Shl
        | Mnemonic::Shr
        | Mnemonic::Sar => Access::ReadWrite,
        Mnemonic::Cmp
        | Mnemonic::Test
        | Mnemonic::Movzx
        | Mnemonic::Movsx
        | Mnemonic::Movsxd
        | Mnemonic::Imul
        | Mnemonic::Cdqe => Access::Read,
        _ => return CommonMemory::Other,
    };
    let is_immediate = |kind: Option<OpKind>| {
        use OpKind::{
            Immediate8, Immediate8to16, Immediate8to32, Immediate8to64, Immediate16, Immediate32,
            Immediate32to64, Immediate64,
        };
        matches!(
            kind,
            Some(
                Immediate8
                    | Immediate8to16
                    | Immediate8to32
                    | Immediate8to64
                    | Immediate16
                    | Immediate32
                    | Immediate32to64
                    | Immediate64
            )
        )
    };
    let is_simple = |kind: Option<OpKind>| is_register(kind) || is_immediate(kind);
    let access = match (kind(0), kind(1)) {
        (one, other) if is_simple(one) && is_simple(other) => return CommonMemory::Known(None),
        (Some(OpKind::Memory), other) if is_simple(other) => first,
        (one, Some(OpKind::Memory)) if is_register(one) => Access::Read,
        _ => return CommonMemory::Other,
    };
    let (base, index) = (native.memory_base(), native.memory_index());
    let is_whole = |register: Native| matches!(register, Native::None | Native::RIP) || register.is_gpr64();
    // what is exchanged or added with a prefix, and addresses of 32 bits
    if native.has_lock_prefix() || !is_whole(base) || !is_whole(index) {
        return CommonMemory::Other;
    }
    CommonMemory::Known(Some(Memory {
        base: register(base),
        index: index_register(index),
        scale: native.memory_index_scale() as u8,
        displacement: native.memory_displacement64() as i64,
        segment: match native.memory_segment() {
            Native::FS => SegmentBase::Fs,
            Native::GS => SegmentBase::Gs,
            _ => SegmentBase::Flat,
        },
        size: u16::try_from(native.memory_size().size()).unwrap_or(0),
        access,
        implicit: false,
        is_pair: false,
    }))
}

/// Returns `true` if an instruction accesses the stack without naming it.
pub(super) fn is_stack_operation(native: &iced_x86::Instruction) -> bool {
    native.is_stack_instruction() || native.mnemonic() == Mnemonic::Leave
}

fn is_prefetch(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Prefetcht0
            | Mnemonic::Prefetcht1
            | Mnemonic::Prefetcht2
            | Mnemonic::Prefetchnta
            | Mnemonic::Prefetchw
    )
}

pub(super) fn access(access: OpAccess) -> Option<Access> {
    match access {
        OpAccess::Read | OpAccess::CondRead => Some(Access::Read),
        OpAccess::Write | OpAccess::CondWrite => Some(Access::Write),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => Some(Access::ReadWrite),
        _ => None,
    }
}

/// Returns the register of an index. Vector registers that are not followed are there too: where one is an
/// index it is not known what is accessed.
fn index_register(native: Native) -> Option<Register> {
    let not_followed = || native.is_vector_register().then(|| native.full_register().number() as u8);
    register(native).or_else(|| not_followed().map(|number| Register(NOT_FOLLOWED + (number & 15))))
}

/// Returns true if two operands of one instruction have the same address.
fn is_at_same_place(one: &Memory, other: &Memory) -> bool {
    (one.base, one.index, one.scale, one.displacement, one.segment)
        == (other.base, other.index, other.scale, other.displacement, other.segment)
}

/// Returns a register's number in DWARF, whatever part of it is meant; `None` for those that are not
/// followed.
pub(super) fn register(native: Native) -> Option<Register> {
    Some(Register(match native.full_register() {
        Native::RAX => 0,
        Native::RDX => 1,
        Native::RCX => 2,
        Native::RBX => 3,
        Native::RSI => 4,
        Native::RDI => 5,
        Native::RBP => 6,
        Native::RSP => 7,
        Native::R8 => 8,
        Native::R9 => 9,
        Native::R10 => 10,
        Native::R11 => 11,
        Native::R12 => 12,
        Native::R13 => 13,
        Native::R14 => 14,
        Native::R15 => 15,
        other if other.is_zmm() => u8::try_from(other.number()).ok().filter(|n| *n < 16)? + 17,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    /// Asserts of code that short cuts find the operands that the factory finds; returns how many took one.
    fn assert_common(bytes: &[u8], address: u64) -> usize {
        let mut factory = InstructionInfoFactory::new();
        let decoded = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).into_iter();
        let is_common = |native: iced_x86::Instruction| {
            let CommonMemory::Known(memory) = common_memory(&native) else { return false };
            assert_eq!((memory, None), any_memory(&native, &mut factory), "{native} at {:#x}", native.ip());
            true
        };
        decoded.map(is_common).filter(|is_common| *is_common).count()
    }

    #[test]
    fn the_operands_of_common_instructions_are_those_that_the_factory_finds() {
        // the text of this very program
        let bytes = std::fs::read(std::env::current_exe().expect("a program")).expect("the program");
        let image = crate::code::Image::parse(&bytes).expect("an ELF file");
        if image.machine() == crate::code::Machine::X86_64 {
            let (mut code, mut common) = (0, 0);
            for function in image.functions().iter().take(4000) {
                let size = usize::try_from(function.size()).expect("a size");
                let Some((_, bytes)) = image.bytes(function.address(), size) else { continue };
                code += bytes.len();
                common += assert_common(&bytes, function.address());
            }
            assert!(common > code / 10, "{common} of {code} bytes");
        }
        // what compilers rarely emit: each with prefixes, with forms of operands
        for opcode in 0..=0xff_u8 {
            for prefix in
                [&[][..], &[0x48], &[0x66], &[0xf2], &[0xf3], &[0xf0], &[0x67], &[0x64], &[0x65, 0x48]]
            {
                for form in [0x00, 0x05, 0x0c, 0x40, 0x84, 0xc1, 0x38, 0xff] {
                    let tail = [form, 0x8b, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0x01, 0x02];
                    assert_common(&[prefix, &[opcode], &tail].concat(), 0x1000);
                    assert_common(&[prefix, &[0x0f, opcode], &tail].concat(), 0x1000);
                }
            }
        }
    }
}
