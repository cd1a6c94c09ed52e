//! Ways through a kernel's code that no instruction shows, by the tables that the kernel itself goes by.
//!
//! A static key is a `nop` that is made a jump while the kernel runs, a warning is a trap that comes back, and
//! what faults goes on at a fixup. Without them the code behind looks as if nothing led there.

use super::image::{Image, Machine};

/// Where control can go from an instruction, besides where the instruction says.
pub(super) type Way = (u64, u64);

/// An entry of a table: from which instruction, and whereto unless the code there says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) from: u64,
    to: u64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Key,
    Warning,
    Fixup,
}

/// Reads an entry that is at an address.
type Read = fn(u64, &[u8]) -> Option<Entry>;

/// The tables: the section, the size of an entry, and how one is read.
const TABLES: [(&str, usize, Read); 3] =
    [("__jump_table", 16, key), ("__bug_table", 12, warning), ("__ex_table", 12, fixup)];

/// Reads the tables; `section` finds where a section is, and its bytes. Of the code nothing is read yet.
pub(super) fn read(image: &Image, section: impl Fn(&str) -> Option<(u64, Vec<u8>)>) -> Vec<Entry> {
    let mut ways = Vec::new();
    for (name, size, way) in TABLES {
        let Some((start, bytes)) = section(name) else { continue };
        let entries = (start..).step_by(size).zip(bytes.chunks_exact(size));
        ways.extend(entries.filter_map(|(at, entry)| way(at, entry)));
    }
    ways.retain(|way| image.is_code(way.from));
    ways.sort_unstable();
    ways
}

impl Entry {
    /// The way that the entry and the code tell of; none where that leads nowhere.
    pub(super) fn find(&self, image: &Image) -> Option<Way> {
        let to = match self.kind {
            // where it jumps from the start it goes on behind the jump once it is turned
            Kind::Key => {
                let (_, bytes) = image.bytes(self.from, 4)?;
                let jump = match (image.machine(), &bytes[..]) {
                    (Machine::X86_64, [0xeb, ..]) => Some(2),
                    (Machine::X86_64, [0xe9, ..]) => Some(5),
                    (Machine::Aarch64, [_, _, _, 0x14..=0x17, ..]) => Some(4),
                    _ => None,
                };
                jump.map_or(self.to, |length| self.from.wrapping_add(length))
            }
            Kind::Warning => {
                let known: &[u8] = match image.machine() {
                    Machine::X86_64 => &[0x0f, 0x0b],
                    // brk #0x800
                    Machine::Aarch64 => &[0x00, 0x00, 0x21, 0xd4],
                };
                let (_, code) = image.bytes(self.from, known.len())?;
                code.starts_with(known).then(|| self.from.wrapping_add(known.len() as u64))?
            }
            Kind::Fixup => self.to,
        };
        // what is not linked yet has zeros, which lead nowhere
        (self.from != to && image.is_code(to)).then_some((self.from, to))
    }
}

/// An address that is stored as its distance from where it is stored.
fn relative(at: u64, entry: &[u8], offset: usize) -> Option<u64> {
    let bytes = entry.get(offset..offset.checked_add(4)?)?.try_into().ok()?;
    Some(at.wrapping_add(offset as u64).wrapping_add_signed(i32::from_le_bytes(bytes).into()))
}

/// `struct jump_entry`: the code, and where it jumps to once the key is turned.
fn key(at: u64, entry: &[u8]) -> Option<Entry> {
    Some(Entry { from: relative(at, entry, 0)?, to: relative(at, entry, 4)?, kind: Kind::Key })
}

/// `struct exception_table_entry`: the instruction that may fault, and where it goes on then.
fn fixup(at: u64, entry: &[u8]) -> Option<Entry> {
    Some(Entry { from: relative(at, entry, 0)?, to: relative(at, entry, 4)?, kind: Kind::Fixup })
}

/// `struct bug_entry`, with file and line: a trap, and by a flag whether it only warns.
fn warning(at: u64, entry: &[u8]) -> Option<Entry> {
    const FLAGS: usize = 10;
    const WARNS: u8 = 1;
    let from = relative(at, entry, 0)?;
    let warns = entry.get(FLAGS).is_some_and(|flags| flags & WARNS != 0);
    warns.then_some(Entry { from, to: from, kind: Kind::Warning })
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
    fn a_kernel_s_tables_tell_where_keys_warnings_and_faults_lead() {
        let folder = std::env::temp_dir();
        let name = |suffix: &str| folder.join(format!("ways-{}.{suffix}", std::process::id()));
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
