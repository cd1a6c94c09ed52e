//! Call frame information: the rule by which a function's caller is found, from `.eh_frame`.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameOffset, EndianSlice, LittleEndian, RegisterRule, UnwindContext,
    UnwindSection,
};

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// The most frame descriptions of one file that are read.
const FRAMES_LIMIT: usize = 1 << 22;

/// The call frame information of a program (`.eh_frame`), indexed by code address.
#[derive(Clone, Debug)]
pub struct FrameTable {
    address: u64,
    bytes: Vec<u8>,
    // first address, the one behind the last, offset of the FDE
    list: Vec<(u64, u64, usize)>,
}

/// The unwind rule at one instruction: how to compute the canonical frame address (CFA) and where the return address
/// is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnwindRule {
    /// The canonical frame address: a register, by DWARF's number, and the offset from it.
    pub cfa: (u16, i64),
    /// The offset of the return address from the canonical frame address; none where it is in its register still.
    pub return_address: Option<i64>,
}

impl FrameTable {
    /// Parses the contents of a program's `.eh_frame` section that is loaded at `address`; stops at damaged entries.
    pub fn parse(bytes: Vec<u8>, address: u64) -> FrameTable {
        let (section, bases) = section(&bytes, address);
        let mut list = Vec::new();
        let mut entries = section.entries(&bases);
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
        FrameTable { address, bytes, list }
    }

    /// Returns the unwind rule at a code address; `None` if no frame description covers it or the rule is not of a
    /// supported form.
    pub fn rule(&self, address: u64) -> Option<UnwindRule> {
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
        let return_address = match row.register(frame.cie().return_address_register()) {
            Some(RegisterRule::Offset(at)) => Some(at),
            Some(RegisterRule::SameValue) | None => None,
            // the outermost frame, or one that nobody describes
            _ => return None,
        };
        Some(UnwindRule { cfa: (register.0, *offset), return_address })
    }
}

fn section(bytes: &[u8], address: u64) -> (EhFrame<Reader<'_>>, BaseAddresses) {
    let mut section = EhFrame::new(bytes, LittleEndian);
    section.set_address_size(8);
    (section, BaseAddresses::default().set_eh_frame(address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Object, ObjectSection};

    fn own() -> FrameTable {
        let bytes = std::fs::read(std::env::current_exe().expect("a path")).expect("readable");
        let file = object::File::parse(&*bytes).expect("a program");
        let section = file.section_by_name(".eh_frame").expect("compilers write it");
        FrameTable::parse(section.data().expect("bytes").to_vec(), section.address())
    }

    #[test]
    fn rules_are_found_and_damaged_descriptions_give_none_or_another() {
        let frames = own();
        assert!(!frames.list.is_empty() && frames.list.is_sorted());
        let (start, end, _) = frames.list[frames.list.len() / 2];
        let rule = frames.rule(start).expect("a function's start");
        if cfg!(target_arch = "x86_64") {
            // behind a call the stack pointer is at the return address
            assert_eq!(rule, UnwindRule { cfa: (7, 8), return_address: Some(-8) });
        }
        assert_eq!(frames.rule(u64::MAX), None);
        let mut damaged = frames.clone();
        for (index, step) in (0..damaged.bytes.len()).step_by(97).zip([1_u8, 0x40, 0x80, 0xff].iter().cycle())
        {
            damaged.bytes[index] ^= step;
        }
        let places: Vec<u64> = damaged.list.iter().step_by(31).map(|(start, ..)| *start).collect();
        places.iter().for_each(|address| _ = damaged.rule(*address));
        damaged.bytes.truncate(damaged.bytes.len() / 2);
        places.iter().chain([&end]).for_each(|address| _ = damaged.rule(*address));
    }
}
