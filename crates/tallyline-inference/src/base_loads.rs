//! The loads that the address of a memory operand comes from.

use crate::code::{Body, Effect, Flow, Image, Register, SegmentBase};
use crate::transfer::saved_by_caller;
use rustc_hash::FxHashSet;

/// The most pairs of a basic block and a register that are searched for one operand.
const SEARCH_LIMIT: usize = 256;

/// Bytes of a pointer.
const POINTER: u8 = 8;

/// The origin of a register's value.
enum Origin {
    /// A load of a pointer, at an address.
    Load(u64),
    /// A register at the start of the basic block.
    Start(Register),
    /// An origin that is no load.
    Other,
}

/// Returns the addresses, sorted, of the loads in a function whose loaded pointer is the base register of the memory
/// operand of the instruction at `address`: `p->field` behind the load of `p`. `None` if the operand has no base
/// register or an index register, or if the base may come from anything but loads of whole pointers, as from an
/// argument, arithmetic or a call.
///
/// Searches the function backwards from the instruction, at most 256 basic blocks.
pub fn base_loads(image: &Image, body: &Body, address: u64) -> Option<Vec<u64>> {
    let position = body.position(address)?;
    let memory = body.instructions().get(position)?.memory()?;
    let is_plain = memory.index().is_none() && memory.segment() == SegmentBase::Flat && !memory.implicit();
    let base = memory.base().filter(|_| is_plain)?;
    let clobbered = saved_by_caller(image.machine(), image.runtime_types().is_some());
    let (mut loads, mut seen) = (Vec::new(), FxHashSet::default());
    let mut pending = vec![(body.block_of(position)?, position, base)];
    while let Some((block, end, register)) = pending.pop() {
        let start = body.blocks().get(block)?.instructions().start as usize;
        match origin(body, start..end, register, &clobbered) {
            Origin::Load(at) => loads.push(at),
            Origin::Other => return None,
            Origin::Start(register) => {
                let before = body.blocks()[block].predecessors();
                if block == body.entry() || before.is_empty() || seen.len() > SEARCH_LIMIT {
                    return None;
                }
                for block in before.iter().map(|block| *block as usize) {
                    if seen.insert((block, register)) {
                        let end = body.blocks().get(block)?.instructions().end as usize;
                        pending.push((block, end, register));
                    }
                }
            }
        }
    }
    loads.sort_unstable();
    loads.dedup();
    Some(loads)
}

/// Returns the origin of a register's value behind some instructions of a basic block.
fn origin(
    body: &Body,
    instructions: std::ops::Range<usize>,
    mut register: Register,
    clobbered: &[Register],
) -> Origin {
    for instruction in body.instructions()[instructions].iter().rev() {
        if matches!(instruction.flow(), Flow::Call(_)) && clobbered.contains(&register) {
            return Origin::Other;
        }
        for effect in body.effects(instruction).iter().rev() {
            if !effect.written().any(|written| written == register) {
                continue;
            }
            match *effect {
                Effect::Copy { from, .. } => register = from,
                Effect::Load { size: POINTER, at: 0, .. } => return Origin::Load(instruction.address()),
                _ => return Origin::Other,
            }
        }
    }
    Origin::Start(register)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const SOURCE: &str = r"
        .macro function name
        .globl \name
        .type \name, @function
\name:
        .endm
        .text
        function behind
        mov 8(%rdi), %rax
        mov %rax, %rdx
        cmp $5, %rsi
        je 1f
        mov (%rdx), %rcx
1:      mov 16(%rax), %rcx
        ret
        .size behind, .-behind
        function either
        mov 8(%rdi), %rax
        cmp $5, %rsi
        je 1f
        mov 16(%rdi), %rax
1:      addq $1, (%rax)
        ret
        .size either, .-either
        function others
        mov 8(%rdi), %rax
        mov (%rax,%rsi,8), %rcx
        add $8, %rax
        mov (%rax), %rcx
        mov (%rdi), %rcx
        mov 8(%rdi), %eax
        mov (%rax), %rcx
        ret
        .size others, .-others
        function calls
        mov 8(%rdi), %rax
        mov 8(%rdi), %rbx
        call behind
        mov (%rax), %rcx
        mov (%rbx), %rcx
        ret
        .size calls, .-calls
        function loops
        mov 8(%rdi), %rax
1:      mov (%rax), %rcx
        sub $1, %rsi
        jne 1b
        ret
        .size loops, .-loops
";

    /// Returns the assembled functions; none where there is no assembler for x86-64.
    fn image() -> Option<Image> {
        let folder = std::env::temp_dir().join(format!("tallyline-base-loads-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (source, object) = (folder.join("loads.S"), folder.join("loads.so"));
        std::fs::write(&source, SOURCE).expect("written");
        let built =
            Command::new("cc").args(["-shared", "-nostdlib", "-o"]).arg(&object).arg(&source).status();
        let is_built = cfg!(target_arch = "x86_64") && built.is_ok_and(|status| status.success());
        let image =
            is_built.then(|| Image::parse(&std::fs::read(&object).expect("there")).expect("an image"));
        std::fs::remove_dir_all(folder).expect("removed");
        if image.is_none() {
            println!("skipped: needs a C compiler for x86-64");
        }
        image
    }

    #[test]
    fn addresses_come_from_loads_of_whole_pointers_alone() {
        let Some(image) = image() else { return };
        // by function and instruction: the instructions that load its base
        let loads = |name: &str, at: usize| -> Option<Vec<usize>> {
            let start = image.address_of_symbol(name).expect("a function");
            let size = image.function_at(start).expect("a function").size();
            let body = Body::decode(&image, std::slice::from_ref(&(start..start + size)), start);
            let all = base_loads(&image, &body, body.instructions()[at].address())?;
            Some(all.into_iter().map(|address| body.position(address).expect("its own")).collect())
        };
        assert_eq!(loads("behind", 4), Some(vec![0]), "by a copy, in another block");
        assert_eq!(loads("behind", 5), Some(vec![0]));
        assert_eq!(loads("behind", 0), None, "an argument");
        assert_eq!(loads("either", 4), Some(vec![0, 3]));
        assert_eq!(loads("others", 1), None, "an element");
        assert_eq!(loads("others", 3), None, "arithmetic");
        assert_eq!(loads("others", 6), None, "half of a pointer");
        assert_eq!(loads("calls", 3), None, "the callee's");
        assert_eq!(loads("calls", 4), Some(vec![1]), "kept by the callee");
        assert_eq!(loads("loops", 1), Some(vec![0]));
    }
}
