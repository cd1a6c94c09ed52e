//! One instruction as a processor's back end sees it: registers read and written, latency, next address.

use super::image::{Image, Machine};
use super::instruction::Flow;
use super::x86::{flow, is_register};
use super::x86_operands::{access, is_stack_operation};
use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, Mnemonic, OpAccess, Register as Native};

/// The longest instruction of x86-64.
const LONGEST: usize = 15;

/// A set of x86-64 registers that an instruction reads or writes, as a bit mask; the flags count as a register. The
/// numbering is private to this module.
pub(crate) type RegisterSet = u64;

/// An x86-64 instruction as a simulation of a CPU core needs it: registers read and written, memory access, latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The address of the first byte after the instruction.
    pub end: u64,
    /// The control flow after the instruction.
    pub flow: Flow,
    /// Registers that the address of a memory operand is computed from.
    pub address: RegisterSet,
    /// Registers that are read, those of addresses included, and the flags.
    pub reads: RegisterSet,
    /// Registers that are written, and the flags.
    pub writes: RegisterSet,
    /// Cycles from the operands to the result, the memory operand's own latency aside; typical of present cores.
    pub latency: u8,
    /// `true` if each execution of the instruction accesses memory.
    pub memory: bool,
}

/// Decodes the instruction at an address (as linked) of an x86-64 program for the simulation of a CPU core: registers
/// read and written, memory access, latency. `None` if there is no code, the instruction is unknown, or the program is
/// for another machine.
pub fn operation_at(image: &Image, address: u64) -> Option<Operation> {
    if image.machine() != Machine::X86_64 {
        return None;
    }
    let (region, bytes) = image.bytes(address, LONGEST)?;
    region.code.then(|| operation(&bytes, address)).flatten()
}

/// Describes the first of some bytes' instructions; none if it is no instruction.
fn operation(bytes: &[u8], address: u64) -> Option<Operation> {
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let native = decoder.decode();
    if native.is_invalid() {
        return None;
    }
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(&native);
    let (mut reads, mut writes) = (0, 0);
    for used in info.used_registers() {
        let bit = register_bit(used.register());
        let (read, written) = match used.access() {
            OpAccess::Read | OpAccess::CondRead => (true, false),
            OpAccess::Write => (false, true),
            // what may be written keeps its old value else
            OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
            _ => (false, false),
        };
        reads |= if read { bit } else { 0 };
        writes |= if written { bit } else { 0 };
    }
    let touches = |used: &iced_x86::UsedMemory| access(used.access()).is_some();
    let mut of_address = 0;
    for used in info.used_memory().iter().filter(|used| touches(used)) {
        of_address |= register_bit(used.base()) | register_bit(used.index());
    }
    let is_repeated =
        native.is_string_instruction() && (native.has_rep_prefix() || native.has_repne_prefix());
    let memory = !is_repeated && info.used_memory().iter().any(touches);
    let is_cleared = matches!(
        native.mnemonic(),
        Mnemonic::Xor | Mnemonic::Sub | Mnemonic::Pxor | Mnemonic::Xorps | Mnemonic::Xorpd
    ) && native.op_count() == 2
        && is_register(&native, 1)
        && native.op0_register() == native.op1_register();
    if is_cleared {
        reads = 0;
    }
    // the stack pointer of pushes and calls is known ahead to the processor: it waits for nothing
    if is_stack_operation(&native) {
        let stack = register_bit(Native::RSP);
        reads &= !stack;
        writes &= !stack;
        of_address &= !stack;
    }
    if native.rflags_read() != 0 {
        reads |= FLAGS;
    }
    if native.rflags_modified() != 0 {
        writes |= FLAGS;
    }
    let flow = match native.mnemonic() {
        Mnemonic::Syscall | Mnemonic::Sysenter => Flow::Next,
        _ => flow(&native),
    };
    Some(Operation {
        end: native.next_ip(),
        flow,
        address: of_address,
        reads: reads | of_address,
        writes,
        latency: latency(&native),
        memory,
    })
}

/// The flags, in a set of registers.
pub(super) const FLAGS: RegisterSet = 1 << 63;

/// Returns the bit of a register, whole: general ones, vectors, and one for all others.
fn register_bit(native: Native) -> RegisterSet {
    let whole = native.full_register();
    if whole.is_gpr64() {
        1 << whole.number()
    } else if whole.is_vector_register() {
        1 << (16 + whole.number())
    } else if matches!(whole, Native::None | Native::RIP) || whole.is_segment_register() {
        0
    } else {
        1 << 62
    }
}

/// Cycles to the result, by the published tables of current AMD and Intel cores, rounded.
fn latency(native: &iced_x86::Instruction) -> u8 {
    match native.mnemonic() {
        Mnemonic::Imul | Mnemonic::Mul | Mnemonic::Mulx => 3,
        Mnemonic::Div | Mnemonic::Idiv => 14,
        Mnemonic::Divsd | Mnemonic::Divpd | Mnemonic::Vdivsd | Mnemonic::Vdivpd | Mnemonic::Divss => 13,
        Mnemonic::Sqrtsd | Mnemonic::Vsqrtsd | Mnemonic::Sqrtpd => 20,
        Mnemonic::Addsd | Mnemonic::Subsd | Mnemonic::Mulsd | Mnemonic::Addss | Mnemonic::Mulss => 3,
        Mnemonic::Vaddsd | Mnemonic::Vsubsd | Mnemonic::Vmulsd | Mnemonic::Addpd | Mnemonic::Mulpd => 3,
        Mnemonic::Cvtsi2sd | Mnemonic::Cvttsd2si | Mnemonic::Comisd | Mnemonic::Ucomisd => 4,
        Mnemonic::Crc32 | Mnemonic::Pclmulqdq => 3,
        // copies and loads: the copy is a renaming, the load's time is that of the memory
        Mnemonic::Mov
        | Mnemonic::Movzx
        | Mnemonic::Movsx
        | Mnemonic::Movsxd
        | Mnemonic::Pop
        | Mnemonic::Ret => 0,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Operation {
        operation(bytes, 0x1000).expect("an instruction")
    }

    #[test]
    fn a_load_waits_for_its_address_and_writes_its_register() {
        // mov 8(%rdi),%rax; mov (%rax),%rcx
        let (first, second) = (decoded(&[0x48, 0x8b, 0x47, 0x08]), decoded(&[0x48, 0x8b, 0x08]));
        assert!(first.memory && second.memory);
        assert_eq!(second.address, first.writes);
        assert_eq!(first.address & second.address, 0);
        assert_eq!((first.end, first.flow), (0x1004, Flow::Next));
    }

    #[test]
    fn a_branch_waits_for_the_flags_of_a_compare() {
        // cmp %rsi,%rdi; je +2
        let (compare, branch) = (decoded(&[0x48, 0x39, 0xf7]), decoded(&[0x74, 0x02]));
        assert_ne!(compare.writes & branch.reads, 0);
        assert_eq!(branch.flow, Flow::Branch(0x1004));
        assert!(!compare.memory);
    }

    #[test]
    fn a_register_that_is_cleared_waits_for_nothing() {
        // xor %eax,%eax
        let clear = decoded(&[0x31, 0xc0]);
        assert_eq!(clear.reads, 0);
        assert_ne!(clear.writes, 0);
    }

    #[test]
    fn a_kernel_call_goes_on_behind_itself_and_lea_touches_no_memory() {
        assert_eq!(decoded(&[0x0f, 0x05]).flow, Flow::Next);
        assert!(!decoded(&[0x48, 0x8d, 0x47, 0x08]).memory);
        // push %rbx, ret
        assert!(decoded(&[0x53]).memory && decoded(&[0xc3]).memory);
    }

    #[test]
    fn a_division_takes_longer_than_a_sum() {
        assert!(decoded(&[0x48, 0xf7, 0xf1]).latency > decoded(&[0x48, 0x01, 0xf7]).latency);
    }
}
