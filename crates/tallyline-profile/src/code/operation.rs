//! One instruction as a processor's back end sees it: registers read and written, latency, next address.

use super::image::{Image, Machine};
use super::instruction::Flow;
use super::x86;

/// The longest instruction of x86-64.
const LONGEST: usize = 15;

/// A set of registers, one bit each; numbers are private to this description.
pub type RegisterSet = u64;

/// An instruction, with what decides when it can run and when its result is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The address behind it.
    pub end: u64,
    /// Where control goes.
    pub flow: Flow,
    /// Registers that the address of a memory operand is made of.
    pub address: RegisterSet,
    /// Registers that are read, those of addresses included, and the flags.
    pub reads: RegisterSet,
    /// Registers that are written, and the flags.
    pub writes: RegisterSet,
    /// Cycles from the operands to the result, the memory operand's own latency aside; typical of present cores.
    pub latency: u8,
    /// Whether each execution accesses memory.
    pub memory: bool,
}

/// Decodes one instruction of a program, by its address in the file's own terms. None for code that is not there,
/// is not understood, or is not for x86-64.
pub fn operation_at(image: &Image, address: u64) -> Option<Operation> {
    if image.machine() != Machine::X86_64 {
        return None;
    }
    let (region, bytes) = image.bytes(address, LONGEST)?;
    region.code.then(|| x86::operation(&bytes, address)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Operation {
        x86::operation(bytes, 0x1000).expect("an instruction")
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
