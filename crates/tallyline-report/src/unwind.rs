//! The caller of a function by a copy of the stack, where the kernel recorded no chain of the program's own
//! (perf's `--call-graph dwarf`): one frame is unwound by `.eh_frame`.

use super::programs::{Program, Programs};
use rustc_hash::FxHashMap;
use tallyline_debuginfo::program::{FrameTable, UnwindRule};
use tallyline_inference::code::Machine;
use tallyline_perf_data::abi::sample as bit;
use tallyline_perf_data::attr::Attr;
use tallyline_perf_data::file::{RecordBody, RecordSource};
use tallyline_perf_data::sample::{Registers, Sample, UserStack, aarch64, x86_64};
use tallyline_perf_data::spaces::{Dso, DsoId, DsoKind};

/// Finds callers; programs are opened when a sample is in them.
pub(super) struct Unwinder<'p> {
    programs: &'p dyn Programs,
    records: &'p dyn RecordSource,
    // by the file's index
    files: FxHashMap<DsoId, Option<Frames>>,
    rules: FxHashMap<(DsoId, u64), Option<UnwindRule>>,
}

/// The frame descriptions of a program.
struct Frames {
    program: Program,
    table: FrameTable,
}

impl<'p> Unwinder<'p> {
    /// Unwinds samples of some records.
    pub(super) fn new(programs: &'p dyn Programs, records: &'p dyn RecordSource) -> Self {
        Unwinder { programs, records, files: FxHashMap::default(), rules: FxHashMap::default() }
    }

    /// Returns the address that the function at an offset of a file returns to, for the sample whose record is
    /// at a position; none where the file does not describe its frames, or the copy of the stack ends before.
    pub(super) fn caller(&mut self, dso: (DsoId, &Dso), offset: u64, position: u64) -> Option<u64> {
        let (index, about) = dso;
        let programs = self.programs;
        let frames = self.files.entry(index).or_insert_with(|| {
            let is_file = matches!(about.kind(), DsoKind::File | DsoKind::Vdso);
            Frames::read(programs.open(about).ok().filter(|_| is_file)?)
        });
        let frames = frames.as_ref()?;
        let address = frames.program.image.address_of(offset)?;
        let rule = *self.rules.entry((index, address)).or_insert_with(|| frames.table.rule(address));
        let (rule, machine) = (rule?, frames.program.image.machine());
        let mut found = None;
        let read = self.records.visit_at(&mut std::iter::once(position), &mut |record| {
            if let RecordBody::Sample(_, sample) = record.body() {
                found =
                    of_sample(sample).and_then(|(registers, stack)| apply(rule, machine, &registers, &stack));
            }
            Ok(())
        });
        read.ok().and(found)
    }
}

/// The bytes of a stack that has nothing but the word on top: it is there for calls, and callers are not asked of it.
const WORD: u32 = 8;

/// Returns `true` if an event samples copies of the user stack that are large enough to find callers in.
pub(super) fn has_stacks(attr: &Attr) -> bool {
    attr.sample_type & bit::STACK_USER != 0 && attr.sample_stack_user > WORD
}

/// Returns what unwinding a sample needs: its registers and its copy of the stack.
pub(super) fn of_sample<'a>(sample: &Sample<'a>) -> Option<(Registers<'a>, UserStack<'a>)> {
    let stack = sample.user_stack.filter(|stack| stack.bytes().len() > WORD as usize)?;
    Some((sample.user_registers?, stack))
}

impl Frames {
    fn read(program: Program) -> Option<Frames> {
        let (address, bytes) = program.image.frames()?;
        let table = FrameTable::parse(bytes.into_owned(), address);
        Some(Frames { program, table })
    }
}

/// Returns the return address by a rule, from the registers and the copied stack of a sample.
fn apply(
    rule: UnwindRule,
    machine: Machine,
    registers: &Registers<'_>,
    stack: &UserStack<'_>,
) -> Option<u64> {
    let pointer = match machine {
        Machine::X86_64 => registers.get(x86_64::SP)?,
        Machine::Aarch64 => registers.get(aarch64::SP)?,
        Machine::Other => return None,
    };
    let Some(at) = rule.return_address else {
        // x86 has no register for it
        return (machine == Machine::Aarch64).then(|| registers.get(LINK)).flatten();
    };
    let base = registers.get(kernels(machine, rule.cfa.0)?)?;
    let address = base.wrapping_add_signed(rule.cfa.1).wrapping_add_signed(at);
    let start = usize::try_from(address.checked_sub(pointer)?).ok()?;
    let used = stack.bytes().get(..usize::try_from(stack.used()).ok()?)?;
    let word = used.get(start..start.checked_add(8)?)?;
    let caller = u64::from_le_bytes(word.try_into().ok()?);
    (caller != 0).then_some(caller)
}

/// aarch64's register with the return address.
const LINK: u32 = 30;

/// Returns the kernel's number of a register that DWARF numbers.
fn kernels(machine: Machine, register: u16) -> Option<u32> {
    const X86_64: [u32; 16] = [0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23];
    match machine {
        Machine::X86_64 => X86_64.get(usize::from(register)).copied(),
        Machine::Aarch64 => (register <= 31).then_some(register.into()),
        Machine::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn registers_have_the_numbers_of_the_kernel() {
        for (dwarf, name) in
            [(0, "AX"), (1, "DX"), (2, "CX"), (3, "BX"), (6, "BP"), (7, "SP"), (8, "R8"), (15, "R15")]
        {
            let number = kernels(Machine::X86_64, dwarf).expect("a register");
            assert_eq!(x86_64::NAMES[number as usize], name);
        }
        assert_eq!(kernels(Machine::X86_64, 16), None);
        assert_eq!(kernels(Machine::Aarch64, 31), Some(aarch64::SP));
    }
}
