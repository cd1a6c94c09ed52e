//! Read-modify-writes of memory: which of them count, and which exchange.

use super::body::Body;
use super::image::{Image, Machine};
use super::instruction::{Effect, Flow, Instruction, Memory};
use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, OpKind};

/// The longest two instructions of x86-64.
const LONGEST: usize = 30;

/// Bytes of code from a load on in which the store of an update is looked for: it is a few instructions behind.
const UPDATE_LIMIT: u64 = 64;

/// The kind of read-modify-write that an instruction does on memory: addition, exchange (as for a lock), or another
/// one. Atomic and plain instructions are not distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryUpdate {
    /// An addition or subtraction whose result is not used.
    Add,
    /// An addition whose old value goes into a register.
    AddReturning,
    /// An addition whose result decides the jump behind it, as of reference counts.
    AddTested,
    /// An exchange or a compare-and-exchange.
    Exchange,
    /// Another read-modify-write: a bitwise operation.
    Other,
}

/// Returns the kind of read-modify-write of the instruction at an address (as linked) of an x86-64 program; `None`
/// for instructions of other kinds, addresses without code, and other machines.
pub fn memory_update_at(image: &Image, address: u64) -> Option<MemoryUpdate> {
    if image.machine() != Machine::X86_64 {
        return None;
    }
    let (region, bytes) = image.bytes(address, LONGEST)?;
    region.code.then(|| memory_update(&bytes, address)).flatten()
}

/// Describes the first of some bytes' instructions.
fn memory_update(bytes: &[u8], address: u64) -> Option<MemoryUpdate> {
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let native = decoder.decode();
    if native.is_invalid() || native.op_count() == 0 || native.op0_kind() != OpKind::Memory {
        return None;
    }
    Some(match native.mnemonic() {
        Mnemonic::Add | Mnemonic::Sub | Mnemonic::Inc | Mnemonic::Dec => {
            match native.has_lock_prefix() && tests_flags(&mut decoder) {
                true => MemoryUpdate::AddTested,
                false => MemoryUpdate::Add,
            }
        }
        Mnemonic::Xadd => MemoryUpdate::AddReturning,
        Mnemonic::Xchg | Mnemonic::Cmpxchg | Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b => {
            MemoryUpdate::Exchange
        }
        Mnemonic::And | Mnemonic::Or | Mnemonic::Xor | Mnemonic::Btr | Mnemonic::Bts | Mnemonic::Btc => {
            MemoryUpdate::Other
        }
        _ => return None,
    })
}

/// Returns `true` if the memory that the instruction at an address (as linked) accesses is written as often as the
/// instruction is executed: by itself, or by a store behind it in its basic block to the same operand, as compilers make
/// of `x->n++`. `false` for instructions without an operand in memory, and addresses without code.
pub fn is_stored_back(image: &Image, address: u64) -> bool {
    let Some(end) = address.checked_add(UPDATE_LIMIT) else { return false };
    let body = Body::decode(image, std::slice::from_ref(&(address..end)), address);
    is_stored_within(body.instructions(), |instruction| body.effects(instruction))
}

/// Returns `true` if the first of some instructions, or one that always follows it, writes what the first accesses.
fn is_stored_within<'c>(
    instructions: &[Instruction],
    effects: impl Fn(&Instruction) -> &'c [Effect],
) -> bool {
    let Some(accessed) = instructions.first().and_then(Instruction::memory) else { return false };
    let is_same = |memory: &Memory| {
        let place = |of: &Memory| (of.base, of.index, of.scale, of.displacement, of.segment);
        place(memory) == place(accessed) && memory.access.writes()
    };
    let moves = |effect: &Effect| {
        effect.written().any(|register| [accessed.base, accessed.index].contains(&Some(register)))
    };
    for instruction in instructions {
        if instruction.memory().is_some_and(is_same) {
            return true;
        }
        if instruction.flow() != Flow::Next || effects(instruction).iter().any(moves) {
            return false;
        }
    }
    false
}

/// Returns `true` if the next instruction tests the flags.
fn tests_flags(decoder: &mut Decoder<'_>) -> bool {
    if !decoder.can_decode() {
        return false;
    }
    let next = decoder.decode();
    let mut factory = InstructionInfoFactory::new();
    let is_conditional = next.flow_control() == FlowControl::ConditionalBranch
        || next.condition_code() != iced_x86::ConditionCode::None;
    !next.is_invalid() && is_conditional && factory.info(&next).used_registers().len() < 8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_stored(bytes: &[u8]) -> bool {
        let (mut instructions, mut effects, mut seconds) = (Vec::new(), Vec::new(), Default::default());
        super::super::x86::decode(bytes, 0, &mut instructions, &mut effects, &mut seconds);
        let of = |instruction: &Instruction| {
            let (from, to) = instruction.effects;
            &effects[from as usize..to as usize]
        };
        is_stored_within(&instructions, of)
    }

    #[test]
    fn a_load_whose_word_is_stored_behind_it_is_an_update() {
        // mov 8(%rdi),%rdx; add $1,%rdx; mov %rdx,8(%rdi)
        let update = [0x48, 0x8b, 0x57, 0x08, 0x48, 0x83, 0xc2, 0x01, 0x48, 0x89, 0x57, 0x08];
        assert!(is_stored(&update));
        // add $1,8(%rdi)
        assert!(is_stored(&[0x48, 0x83, 0x47, 0x08, 0x01]));
        // another word
        let mut other = update;
        other[11] = 0x10;
        assert!(!is_stored(&other));
        // mov 8(%rdi),%rdi; add $1,%rdx; mov %rdx,8(%rdi): the next object
        let mut next = update;
        next[2] = 0x7f;
        assert!(!is_stored(&next));
        // a branch between: not as often
        assert!(!is_stored(&[0x48, 0x8b, 0x57, 0x08, 0x74, 0x04, 0x48, 0x89, 0x57, 0x08]));
    }

    #[test]
    fn additions_are_told_by_the_use_of_their_result() {
        // lock addq $1,(%rdi); ret
        assert_eq!(memory_update(&[0xf0, 0x48, 0x83, 0x07, 0x01, 0xc3], 0), Some(MemoryUpdate::Add));
        // lock decl (%rdi); je +2
        assert_eq!(memory_update(&[0xf0, 0xff, 0x0f, 0x74, 0x02], 0), Some(MemoryUpdate::AddTested));
        // lock xadd %rax,(%rdi)
        assert_eq!(memory_update(&[0xf0, 0x48, 0x0f, 0xc1, 0x07], 0), Some(MemoryUpdate::AddReturning));
        // addq $1,8(%rdi); jne: a loop's counter that is not atomic
        assert_eq!(memory_update(&[0x48, 0x83, 0x47, 0x08, 0x01, 0x75, 0xfe], 0), Some(MemoryUpdate::Add));
    }

    #[test]
    fn exchanges_are_no_additions() {
        // lock cmpxchg %rcx,(%rdi); xchg %eax,(%rdi)
        assert_eq!(memory_update(&[0xf0, 0x48, 0x0f, 0xb1, 0x0f], 0), Some(MemoryUpdate::Exchange));
        assert_eq!(memory_update(&[0x87, 0x07], 0), Some(MemoryUpdate::Exchange));
        // mov %rax,(%rdi); add (%rdi),%rax
        assert_eq!(memory_update(&[0x48, 0x89, 0x07], 0), None);
        assert_eq!(memory_update(&[0x48, 0x03, 0x07], 0), None);
        assert_eq!(memory_update(&[], 0), None);
    }
}
