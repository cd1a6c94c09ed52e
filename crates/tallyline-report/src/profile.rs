//! The samples of a recording with their types, functions and source lines: what reports count.

use super::binaries::Binaries;
use super::index::{PlaceId, SymbolId};
use super::info::RecordingInfo;
use super::names::NameId;
use super::operand::{Joined, Outcome};
use super::places::{Place, Resolved};
use super::programs::Program;
use super::samples::{Charges, Operands, SampleGroup, Samples};
use super::skid::{CallCounts, EventShift, PairRule, Rule, Skid};
use std::sync::Arc;
use tallyline_inference::TypeTable;
use tallyline_inference::code::FusiblePair;
use tallyline_perf_data::sample::CpuMode;
use tallyline_perf_data::spaces::{Dso, DsoId};

/// The function or variable at an address of a program; the address itself where none is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// The file; none where nothing was mapped.
    pub dso: Option<DsoId>,
    /// The address of its first byte, as the linker assigned it; the address itself where there is no symbol.
    pub start: u64,
    /// The mode that the CPU ran in.
    pub mode: CpuMode,
    /// Its name; the address in hexadecimal digits where there is none.
    pub name: NameId,
    /// `true` if the file has such a symbol.
    pub is_known: bool,
}

/// A recording whose samples have types, functions and lines, as far as those were asked for.
#[derive(Default)]
pub struct Profile {
    pub(crate) samples: Samples,
    pub(crate) charges: Charges,
    pub(crate) operands: Operands,
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) binaries: Binaries,
}

impl Profile {
    /// Returns the description of the recording's events and machine.
    pub fn info(&self) -> &RecordingInfo {
        &self.samples.info
    }

    /// Sets the size of a cache line in bytes for the profile's sort keys, where another machine's is asked
    /// for.
    pub fn set_line_size(&mut self, size: u32) {
        self.samples.info.line_size = size;
    }

    /// Returns the profile's samples, equal ones merged, in the order of time where they are kept apart.
    pub fn groups(&self) -> &[SampleGroup] {
        &self.samples.groups
    }

    /// Returns the open program of a recorded file, if it could be opened.
    pub fn program(&self, dso: DsoId) -> Option<&Arc<Program>> {
        self.binaries.get(dso)
    }

    /// Returns the reason why the program of a recorded file could not be opened.
    pub fn why_not(&self, dso: DsoId) -> Option<&str> {
        self.binaries.why_not(dso)
    }

    /// Returns the recorded files (programs, libraries, the kernel), in the order of their ids.
    pub fn dsos(&self) -> &[Dso] {
        &self.samples.dsos
    }

    /// Returns the recorded file (program, library, the kernel) with an id.
    pub fn dso(&self, id: DsoId) -> Option<&Dso> {
        self.samples.dso(id)
    }

    /// Returns the name of a recorded file without its folders, as perf shows it.
    pub fn dso_name(&self, id: Option<DsoId>) -> &str {
        self.samples.dso_name(id)
    }

    /// Returns the number of distinct code places of samples; their ids are below it.
    pub fn places_count(&self) -> usize {
        self.samples.places.len()
    }

    /// Returns the code place (file and offset) with an id.
    pub fn place(&self, id: PlaceId) -> &Place {
        self.samples.places.get(id)
    }

    /// Returns the function, source line and linked address of a code place.
    pub fn at(&self, place: PlaceId) -> Resolved {
        self.samples.at(place)
    }

    /// Returns the type that the instruction a sample is charged to accesses, or the reason for none.
    pub fn outcome(&self, group: &SampleGroup) -> &Outcome {
        self.operands.outcome(group.charged)
    }

    /// Returns the type that the instruction at a code place accesses, or the reason for none.
    pub fn outcome_at(&self, place: PlaceId) -> &Outcome {
        self.operands.outcome(place)
    }

    /// Returns the slot of a C++ class's vtable that the instruction at a code place reads.
    pub fn slot(&self, place: PlaceId) -> Option<NameId> {
        self.operands.slots.get(&place).copied()
    }

    /// Returns the types that the sampled instructions of all programs access.
    pub(crate) fn joined(&self) -> &Joined {
        &self.operands.joined
    }

    /// Returns the types of the operands in a recorded file that has debug information.
    pub fn type_table(&self, dso: DsoId) -> Option<&TypeTable> {
        self.operands.joined.table(dso)
    }

    /// Returns the number of samples whose type was decided by the address of their data, or by registers.
    pub fn by_evidence(&self) -> u64 {
        self.operands.joined.by_evidence
    }

    /// Returns what debug information was missing for the profile, one line each.
    pub fn warnings(&self) -> &[String] {
        &self.operands.joined.warnings
    }

    /// Returns the function or variable with an id.
    pub fn symbol(&self, id: SymbolId) -> Option<&Symbol> {
        self.symbols.get(id.position())
    }

    /// Returns the function that a code place is in.
    pub fn function(&self, place: PlaceId) -> Option<&Symbol> {
        self.symbol(self.at(place).symbol?)
    }

    /// Returns the text of a name's id, such as a type's name.
    pub fn text(&self, name: NameId) -> &str {
        self.samples.names.get(name)
    }

    /// Returns the correction of skid that the profile's samples were charged by.
    pub fn skid(&self) -> Skid {
        self.charges.skid
    }

    /// Returns the kinds of compare-and-jump pairs that samples lie around, each with the decision if the recorded
    /// machine executes it as one instruction.
    pub fn fusion(&self) -> impl Iterator<Item = (&FusiblePair, &PairRule)> {
        self.charges.fusion.iter()
    }

    /// Returns a summary of the decisions which compare-and-jump pairs are executed as one instruction.
    pub fn fusion_summary(&self) -> String {
        self.charges.fusion.to_string()
    }

    /// Returns, for imprecise counters, by how many instructions samples are behind those that they count.
    pub fn shifts(&self) -> &[EventShift] {
        &self.charges.shifts
    }

    /// Returns the numbers of samples at functions' first instructions, by what is known of the calls.
    pub fn calls(&self) -> CallCounts {
        self.charges.calls
    }

    /// Returns the rule by which a sample is charged to another instruction than that at its address, if one
    /// is.
    pub fn rule(&self, group: &SampleGroup) -> Option<Rule> {
        let of_call = self.charges.call_rules.get(&(group.place, group.charged));
        of_call.or_else(|| self.charges.rules.get(&group.place)).copied()
    }

    /// Returns the rule by which samples at a code place are charged to other instructions, those at calls
    /// left out.
    pub fn rule_at(&self, place: PlaceId) -> Option<Rule> {
        self.charges.rules.get(&place).copied()
    }
}
