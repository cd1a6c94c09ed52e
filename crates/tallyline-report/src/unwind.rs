//! The caller of a function by a copy of the stack, where the kernel recorded no chain of the program's own
//! (perf's `--call-graph dwarf`): one frame is unwound by `.eh_frame`.

use super::programs::{Program, Programs};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameOffset, EndianSlice, LittleEndian, RegisterRule, UnwindContext,
    UnwindSection,
};
use rustc_hash::FxHashMap;
use tallyline_inference::code::Machine;
use tallyline_perf_data::abi::sample as bit;
use tallyline_perf_data::attr::Attr;
use tallyline_perf_data::file::{Body, Records};
use tallyline_perf_data::sample::{Registers, Sample, UserStack, aarch64, x86_64};
use tallyline_perf_data::spaces::{Dso, DsoKind};

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// The most frame descriptions of one file that are looked at.
const FRAMES_LIMIT: usize = 1 << 22;

/// Finds callers; programs are opened when a sample is in them.
pub(super) struct Unwinder<'p> {
    programs: &'p dyn Programs,
    records: &'p dyn Records,
    // by the file's index
    files: FxHashMap<u32, Option<Frames>>,
    rules: FxHashMap<(u32, u64), Option<Rule>>,
}

/// The frame descriptions of a file.
struct Frames {
    program: Program,
    address: u64,
    bytes: Vec<u8>,
    // first address, the one behind the last, place of the description
    list: Vec<(u64, u64, usize)>,
}

/// Where the caller's address is, at one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    /// The register, as DWARF numbers it, and what is added: the canonical frame address.
    frame: (u16, i64),
    /// Where the return address is, counted from that; none where it is in its register still.
    at: Option<i64>,
}

impl<'p> Unwinder<'p> {
    /// Unwinds samples of some records.
    pub(super) fn new(programs: &'p dyn Programs, records: &'p dyn Records) -> Self {
        Unwinder { programs, records, files: FxHashMap::default(), rules: FxHashMap::default() }
    }

    /// Returns the address that the function at an offset of a file returns to, for the sample whose record is
    /// at a position; none where the file does not describe its frames, or the copy of the stack ends before.
    pub(super) fn caller(&mut self, dso: (u32, &Dso), offset: u64, position: u64) -> Option<u64> {
        let (index, about) = dso;
        let programs = self.programs;
        let frames = self.files.entry(index).or_insert_with(|| {
            let is_file = matches!(about.kind, DsoKind::File | DsoKind::Vdso);
            Frames::read(programs.open(about).ok().filter(|_| is_file)?)
        });
        let frames = frames.as_ref()?;
        let address = frames.program.image.address_of(offset)?;
        let rule = *self.rules.entry((index, address)).or_insert_with(|| frames.rule(address));
        let (rule, machine) = (rule?, frames.program.image.machine());
        let mut found = None;
        let read = self.records.at(&mut std::iter::once(position), &mut |record| {
            if let Body::Sample(_, sample) = &record.body {
                found =
                    of_sample(sample).and_then(|(registers, stack)| rule.apply(machine, &registers, &stack));
            }
            Ok(())
        });
        read.ok().and(found)
    }
}

/// The bytes of a stack that has nothing but the word on top: it is there for calls, and callers are not asked of it.
const WORD: u32 = 8;

/// Returns whether an event samples copies of the stack that callers are found in.
pub(super) fn has_stacks(attr: &Attr) -> bool {
    attr.sample_type & bit::STACK_USER != 0 && attr.user_stack > WORD
}

/// What a sample has to have to be unwound: registers and a copy of the stack.
pub(super) fn of_sample<'a>(sample: &Sample<'a>) -> Option<(Registers<'a>, UserStack<'a>)> {
    let stack = sample.user_stack.filter(|stack| stack.bytes.len() > WORD as usize)?;
    Some((sample.user_registers?, stack))
}

impl Frames {
    fn read(program: Program) -> Option<Frames> {
        let (address, bytes) = program.image.frames()?;
        let bytes = bytes.into_owned();
        let (section, bases) = section(&bytes, address);
        let mut list = Vec::new();
        let mut entries = section.entries(&bases);
        // what is damaged ends the list
        while let Ok(Some(entry)) = entries.next() {
            if list.len() >= FRAMES_LIMIT {
                break;
            }
            if let gimli::CieOrFde::Fde(partial) = entry
                && let Ok(frame) = partial.parse(EhFrame::cie_from_offset)
            {
                let start = frame.initial_address();
                list.push((start, start.saturating_add(frame.len()), frame.offset()));
            }
        }
        list.sort_unstable();
        Some(Frames { program, address, bytes, list })
    }

    /// The rule at an instruction.
    fn rule(&self, address: u64) -> Option<Rule> {
        let index = self.list.partition_point(|(start, ..)| *start <= address).checked_sub(1)?;
        let (_, end, place) = self.list[index];
        if address >= end {
            return None;
        }
        let (section, bases) = section(&self.bytes, self.address);
        let frame = section.fde_from_offset(&bases, EhFrameOffset(place), EhFrame::cie_from_offset).ok()?;
        let mut context = UnwindContext::new();
        let row = frame.unwind_info_for_address(&section, &bases, &mut context, address).ok()?;
        let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { return None };
        let at = match row.register(frame.cie().return_address_register()) {
            Some(RegisterRule::Offset(at)) => Some(at),
            Some(RegisterRule::SameValue) | None => None,
            // the outermost frame, or one that nobody describes
            _ => return None,
        };
        Some(Rule { frame: (register.0, *offset), at })
    }
}

fn section(bytes: &[u8], address: u64) -> (EhFrame<Reader<'_>>, BaseAddresses) {
    let mut section = EhFrame::new(bytes, LittleEndian);
    section.set_address_size(8);
    (section, BaseAddresses::default().set_eh_frame(address))
}

impl Rule {
    fn apply(self, machine: Machine, registers: &Registers<'_>, stack: &UserStack<'_>) -> Option<u64> {
        let pointer = match machine {
            Machine::X86_64 => registers.get(x86_64::SP)?,
            Machine::Aarch64 => registers.get(aarch64::SP)?,
        };
        let Some(at) = self.at else {
            // x86 has no register for it
            return (machine == Machine::Aarch64).then(|| registers.get(LINK)).flatten();
        };
        let base = registers.get(kernels(machine, self.frame.0)?)?;
        let address = base.wrapping_add_signed(self.frame.1).wrapping_add_signed(at);
        let start = usize::try_from(address.checked_sub(pointer)?).ok()?;
        let used = stack.bytes.get(..usize::try_from(stack.used).ok()?)?;
        let word = used.get(start..start.checked_add(8)?)?;
        let caller = u64::from_le_bytes(word.try_into().ok()?);
        (caller != 0).then_some(caller)
    }
}

/// aarch64's register with the return address.
const LINK: u32 = 30;

/// The kernel's number of a register that DWARF numbers.
fn kernels(machine: Machine, register: u16) -> Option<u32> {
    const X86_64: [u32; 16] = [0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23];
    match machine {
        Machine::X86_64 => X86_64.get(usize::from(register)).copied(),
        Machine::Aarch64 => (register <= 31).then_some(register.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tallyline_inference::code::Image;

    fn own() -> Program {
        let file = std::fs::File::open(std::env::current_exe().expect("a path")).expect("it runs");
        Program { image: Image::read(&file).expect("a program"), debug: None, btf: None, store: None }
    }

    #[test]
    fn rules_are_found_and_damaged_descriptions_give_none_or_another() {
        let frames = Frames::read(own()).expect("compilers write them");
        assert!(!frames.list.is_empty() && frames.list.is_sorted());
        let (start, end, _) = frames.list[frames.list.len() / 2];
        let rule = frames.rule(start).expect("a function's start");
        if frames.program.image.machine() == Machine::X86_64 {
            // behind a call the stack pointer is at the return address
            assert_eq!(rule, Rule { frame: (7, 8), at: Some(-8) });
        }
        assert_eq!(frames.rule(u64::MAX), None);
        let mut damaged =
            Frames { bytes: frames.bytes.clone(), list: frames.list.clone(), program: own(), ..frames };
        for (index, step) in (0..damaged.bytes.len()).step_by(97).zip([1_u8, 0x40, 0x80, 0xff].iter().cycle())
        {
            damaged.bytes[index] ^= step;
        }
        let places: Vec<u64> = damaged.list.iter().step_by(31).map(|(start, ..)| *start).collect();
        places.iter().for_each(|address| _ = damaged.rule(*address));
        damaged.bytes.truncate(damaged.bytes.len() / 2);
        places.iter().chain([&end]).for_each(|address| _ = damaged.rule(*address));
    }

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
