//! Control-flow edges of kernel code that no instruction shows, from the tables that the kernel patches and recovers by.
//!
//! A static key is a `nop` that is patched into a jump at run time, a warning is a trap that returns, and a faulting
//! access resumes at its fixup. Without these edges the blocks behind them have no predecessor.

use super::image::{Image, Machine};
use super::kernel_tables::{EntryKind, KernelTableEntry};
use std::ops::Range;

/// An edge from the instruction at one address to the instruction at another, beside those that instructions state.
pub(super) type CfgEdge = (u64, u64);

/// Returns the edges from instructions in a range, sorted by source address.
pub(super) fn within(image: &Image, range: &Range<u64>) -> Vec<CfgEdge> {
    let entries = image.kernel_table_entries(range);
    let mut edges: Vec<_> = entries.iter().filter_map(|entry| resolve(entry, image)).collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// Returns the edge that an entry and the code at its address imply; `None` if the target is not code.
fn resolve(entry: &KernelTableEntry, image: &Image) -> Option<CfgEdge> {
    let to = match entry.kind {
        // where it jumps from the start it goes on behind the jump once it is turned
        EntryKind::StaticKey => {
            let (_, bytes) = image.bytes(entry.from, 4)?;
            let jump = match (image.machine(), &bytes[..]) {
                (Machine::X86_64, [0xeb, ..]) => Some(2),
                (Machine::X86_64, [0xe9, ..]) => Some(5),
                (Machine::Aarch64, [_, _, _, 0x14..=0x17, ..]) => Some(4),
                _ => None,
            };
            jump.map_or(entry.to, |length| entry.from.wrapping_add(length))
        }
        EntryKind::Warning => {
            let known: &[u8] = match image.machine() {
                Machine::X86_64 => &[0x0f, 0x0b],
                // brk #0x800
                Machine::Aarch64 => &[0x00, 0x00, 0x21, 0xd4],
                Machine::Other => return None,
            };
            let (_, code) = image.bytes(entry.from, known.len())?;
            code.starts_with(known).then(|| entry.from.wrapping_add(known.len() as u64))?
        }
        EntryKind::Fixup => entry.to,
    };
    // what is not linked yet has zeros, which lead nowhere
    (entry.from != to && image.is_code(to)).then_some((entry.from, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{Body, Flow};
    use std::process::Command;

    /// A function that warns, has a key that is off and one that is on, and may fault, as kernels write them.
    const SOURCE: &str = r#"
        .globl function
        .type function, @function
function:
1:      nopl 0x0(%rax,%rax,1)
2:      jmp 5f
        mov 1(%rdi), %eax
5:      mov 2(%rdi), %eax
6:      mov 3(%rdi), %eax
        ret
3:      mov 4(%rdi), %eax
        ret
4:      mov 5(%rdi), %eax
        ret
7:      ud2
        mov 6(%rdi), %eax
        ret
8:      ud2
        mov 7(%rdi), %eax
        ret
        .size function, . - function
        .section __jump_table, "a"
        .long 1b - ., 3b - .
        .quad 0
        .long 2b - ., 5b - .
        .quad 0
        .section __ex_table, "a"
        .long 6b - ., 4b - ., 0
        .section __bug_table, "a"
        .long 7b - ., 0
        .short 0, 1
        .long 8b - ., 0
        .short 0, 0
"#;

    #[test]
    fn tables_of_a_kernel_add_edges_of_static_keys_warnings_and_fixups() {
        let folder = std::env::temp_dir();
        let name = |suffix: &str| folder.join(format!("edges-{}.{suffix}", std::process::id()));
        std::fs::write(name("s"), SOURCE).expect("written");
        let arguments = ["-nostdlib", "-static", "-Wl,-e,function", "-o"];
        let made = Command::new("gcc").args(arguments).arg(name("elf")).arg(name("s")).output();
        if cfg!(not(target_arch = "x86_64")) || !made.is_ok_and(|made| made.status.success()) {
            eprintln!("skipped: no gcc for x86-64");
            return;
        }
        let image = Image::parse(&std::fs::read(name("elf")).expect("the program")).expect("an image");
        let function = image.functions().iter().find(|symbol| symbol.name == "function").expect("it").clone();
        let range = function.address..function.address + function.size;
        let body = Body::decode(&image, std::slice::from_ref(&range), function.address);
        let leads_there = |displacement: i64| {
            let at = body.instructions().iter().position(|instruction| {
                instruction.memory.is_some_and(|memory| memory.displacement == displacement)
            });
            let block = &body.blocks()[body.block_of(at.expect("a load")).expect("a block")];
            let from =
                block.predecessors.iter().map(|from| body.blocks()[*from as usize].instructions.end - 1);
            from.map(|last| body.instructions()[last as usize].flow).collect::<Vec<Flow>>()
        };
        // behind the key that is on, where the other one leads, behind a fault, behind a warning
        assert!(matches!(leads_there(1)[..], [Flow::Jump(_)]), "{:?}", leads_there(1));
        assert_eq!((leads_there(4), leads_there(5)), (vec![Flow::Next], vec![Flow::Next]));
        assert_eq!(leads_there(6), [Flow::Stop]);
        // what is no warning does not come back
        assert_eq!(leads_there(7), []);
        std::fs::remove_file(name("s")).and(std::fs::remove_file(name("elf"))).expect("removed");
    }
}
