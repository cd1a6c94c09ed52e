//! The instructions of a trace. A translation gives new numbers to instructions that were translated
//! before; here those of one address are one.

use rustc_hash::FxHashMap;

/// A machine instruction of a traced program: its address, its length, and whether it is atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The address of the instruction.
    pub(crate) address: u64,
    /// The length of the instruction in bytes.
    pub(crate) length: u8,
    /// `true` if the instruction is atomic.
    pub(crate) atomic: bool,
}

impl Instruction {
    /// Creates the entry for an instruction of a traced program: `length` bytes at `address`; `atomic` is `true` for an
    /// atomic one, such as one with a lock prefix.
    pub fn new(address: u64, length: u8, atomic: bool) -> Self {
        Self { address, length, atomic }
    }

    /// Returns the address of the traced instruction.
    #[inline]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns `true` if the traced instruction is atomic, such as one with a lock prefix.
    #[inline]
    pub fn atomic(&self) -> bool {
        self.atomic
    }
}

/// The table of the machine instructions of a traced program, with and without memory accesses. Recorded accesses name
/// an instruction by its index here.
#[derive(Clone, Debug, Default)]
pub struct Instructions {
    runs: Vec<NumberRange>,
    indices: Vec<u32>,
    all: Vec<Instruction>,
    by_address: FxHashMap<u64, u32>,
}

/// A range of consecutive numbers of instructions in the trace file, with its place in the list of indices.
#[derive(Clone, Copy, Debug)]
struct NumberRange {
    first: u64,
    /// The position in `indices` of the entry for the first number.
    start: usize,
    count: usize,
}

impl Instructions {
    /// Returns the number of instructions in a trace's table of instructions.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns `true` if a trace's table of instructions is empty.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the instruction with the index that a recorded memory access carries; `None` if the table is shorter.
    pub fn get(&self, index: u32) -> Option<&Instruction> {
        self.all.get(index as usize)
    }

    /// Returns an iterator over all instructions of a trace's table in the order of their indices.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Instruction> {
        self.all.iter()
    }

    /// Adds an instruction to a trace's table, with the number that it has in the trace file. Instructions at one
    /// address share an entry of the table, so that its index can differ from the number.
    pub fn add(&mut self, number: u64, instruction: Instruction) {
        let index = *self.by_address.entry(instruction.address).or_insert_with(|| {
            self.all.push(instruction);
            (self.all.len() - 1) as u32
        });
        match self.runs.last_mut() {
            Some(run) if number.checked_sub(run.first) == Some(run.count as u64) => run.count += 1,
            _ => self.runs.push(NumberRange { first: number, start: self.indices.len(), count: 1 }),
        }
        self.indices.push(index);
    }

    /// Sorts the numbers that instructions have in the trace file for their look-up, once all were added. The numbers
    /// of several processes are not in order in the file.
    pub fn sort(&mut self) {
        self.runs.sort_by_key(|run| run.first);
    }

    /// Returns the index of the instruction with a number.
    #[inline]
    pub(super) fn index(&self, number: u64) -> Option<u32> {
        let run = match self.runs.as_slice() {
            [only] => only,
            runs => &runs[runs.partition_point(|run| run.first <= number).checked_sub(1)?],
        };
        let at = usize::try_from(number.checked_sub(run.first)?).ok().filter(|at| *at < run.count)?;
        self.indices.get(run.start + at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: u64) -> Instruction {
        Instruction { address, length: 4, atomic: false }
    }

    #[test]
    fn an_instruction_that_is_translated_twice_is_one() {
        let mut instructions = Instructions::default();
        for (number, address) in [(5, 0x10), (6, 0x14), (7, 0x10), (20, 0x14), (2, 0x18)] {
            instructions.add(number, at(address));
        }
        instructions.sort();
        assert_eq!(instructions.len(), 3);
        let address = |number| instructions.index(number).and_then(|index| instructions.get(index));
        assert_eq!(address(5), address(7));
        assert_eq!(address(6), Some(&at(0x14)));
        assert_eq!(address(20), Some(&at(0x14)));
        assert_eq!(address(2), Some(&at(0x18)));
        for missing in [0, 1, 3, 4, 8, 19, 21, u64::MAX] {
            assert_eq!(address(missing), None, "{missing}");
        }
    }
}
