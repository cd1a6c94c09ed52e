//! The instructions that samples and hits of breakpoints are charged to, each once.

use super::names::ProcessInstructions;
use rustc_hash::FxHashMap;
use tallyline_inference::code::{Body, Image, Machine, is_stored_back};

/// The longest instruction, in bytes.
const LENGTH_LIMIT: u64 = 16;

/// An instruction that accesses memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoggedInstruction {
    /// The index of the instruction in the log.
    pub(super) index: u32,
    /// The size of the access in bytes; 0 if it is not known.
    pub(super) size: u8,
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// `true` if what it accesses is written as often, by it or behind it in its basic block.
    pub(super) updates: bool,
    /// `true` if it goes through the stack or frame pointer: a variable of its function.
    pub(super) is_local: bool,
    address: u64,
    atomic: bool,
    file: usize,
    offset: u64,
}

/// The instructions of a process that accessed memory, by their addresses.
#[derive(Default)]
pub(super) struct CodeLog {
    files: Vec<String>,
    instructions: Vec<LoggedInstruction>,
    /// The indices of instructions by their addresses; none for an instruction that accesses no memory.
    by_address: FxHashMap<u64, Option<u32>>,
}

impl CodeLog {
    /// Adds the instruction at an address of a process, which is this one of a file; none if it accesses no memory.
    pub(super) fn add(
        &mut self,
        address: u64,
        path: &str,
        offset: u64,
        image: &Image,
        linked: u64,
    ) -> Option<LoggedInstruction> {
        if let Some(known) = self.by_address.get(&address) {
            return known.map(|index| self.instructions[index as usize]);
        }
        let index = u32::try_from(self.instructions.len()).ok()?;
        let decoded = decode(image, linked).map(|decoded| LoggedInstruction {
            index,
            address,
            offset,
            file: self.file(path),
            ..decoded
        });
        self.by_address.insert(address, decoded.map(|_| index));
        self.instructions.extend(decoded);
        decoded
    }

    fn file(&mut self, path: &str) -> usize {
        self.files.iter().position(|known| known == path).unwrap_or_else(|| {
            self.files.push(path.to_owned());
            self.files.len() - 1
        })
    }
}

impl ProcessInstructions for CodeLog {
    fn instruction(&self, index: u32) -> Option<(u64, bool)> {
        self.instructions.get(index as usize).map(|found| (found.address, found.atomic))
    }

    fn file_at(&self, address: u64) -> Option<(&str, u64)> {
        let index = (*self.by_address.get(&address)?)?;
        let found = self.instructions.get(index as usize)?;
        Some((self.files.get(found.file)?.as_str(), found.offset))
    }
}

/// Describes the access of an instruction of a file; none if it accesses no memory, or the stack by itself.
fn decode(image: &Image, linked: u64) -> Option<LoggedInstruction> {
    let range = linked..linked.checked_add(LENGTH_LIMIT)?;
    let body = Body::decode(image, std::slice::from_ref(&range), linked);
    let instruction = body.instructions().first().filter(|found| found.address() == linked)?;
    let memory = instruction.memory().filter(|memory| !memory.implicit())?;
    // DWARF's numbers
    let frame: [u8; 2] = match image.machine() {
        Machine::X86_64 => [6, 7],
        Machine::Aarch64 | Machine::Other => [29, 31],
    };
    let access = memory.access();
    let atomic = match image.machine() {
        Machine::X86_64 => {
            let text = image.text(instruction);
            text.starts_with("lock") || text.starts_with("xchg")
        }
        Machine::Aarch64 | Machine::Other => access.reads() && access.writes(),
    };
    Some(LoggedInstruction {
        index: 0,
        size: u8::try_from(memory.size()).unwrap_or(0),
        reads: access.reads(),
        writes: access.writes(),
        updates: is_stored_back(image, linked),
        is_local: memory.base().is_some_and(|base| frame.contains(&base.0)),
        address: 0,
        atomic,
        file: 0,
        offset: 0,
    })
}
