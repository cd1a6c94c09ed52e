//! The samples of a recording with their types, functions and source lines: what reports count.

use super::binaries::Binaries;
use super::index::{PlaceId, SymbolId};
use super::info::RecordingInfo;
use super::names::NameId;
use super::operand::{Joined, Outcome};
use super::places::{Place, Resolved};
use super::programs::Program;
use super::samples::{Charges, Operands, SampleGroup, Samples};
use super::skid::{CallCounts, EventShift, FusionRules, Rule, Skid};
use std::sync::Arc;
use tallyline_inference::TypeTable;
use tallyline_perf_data::sample::CpuMode;
use tallyline_perf_data::spaces::{Dso, DsoId};

/// A function or a variable, or an address without one.
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
    /// Returns the description of the events and the machine.
    pub fn info(&self) -> &RecordingInfo {
        &self.samples.info
    }

    /// Sets the size of a cache line, in bytes, where another machine's is asked for.
    pub fn set_line_size(&mut self, size: u32) {
        self.samples.info.line_size = size;
    }

    /// Returns the samples, in the order of time where they are kept apart.
    pub fn groups(&self) -> &[SampleGroup] {
        &self.samples.groups
    }

    /// Returns the open program of a file.
    pub fn program(&self, dso: DsoId) -> Option<&Arc<Program>> {
        self.binaries.get(dso)
    }

    /// Returns the reason why a file's program could not be opened.
    pub fn why_not(&self, dso: DsoId) -> Option<&str> {
        self.binaries.why_not(dso)
    }

    /// Returns the files, in the order of their ids.
    pub fn dsos(&self) -> &[Dso] {
        &self.samples.dsos
    }

    /// Returns a file.
    pub fn dso(&self, id: DsoId) -> Option<&Dso> {
        self.samples.dso(id)
    }

    /// Returns a file's name without its folders, as perf shows it.
    pub fn dso_name(&self, id: Option<DsoId>) -> &str {
        self.samples.dso_name(id)
    }

    /// Returns the number of code places, which is above the position of each id.
    pub fn places_count(&self) -> usize {
        self.samples.places.len()
    }

    /// Returns a code place.
    pub fn place(&self, id: PlaceId) -> &Place {
        self.samples.places.get(id)
    }

    /// Returns the function, source line and linked address of a place.
    pub fn at(&self, place: PlaceId) -> Resolved {
        self.samples.at(place)
    }

    /// Returns the operand's type of the instruction that a sample is charged to.
    pub fn outcome(&self, group: &SampleGroup) -> &Outcome {
        self.operands.outcome(group.charged)
    }

    /// Returns the operand's type of the instruction at a place.
    pub fn outcome_at(&self, place: PlaceId) -> &Outcome {
        self.operands.outcome(place)
    }

    /// Returns the slot of a class's table of functions that the instruction at a place reads.
    pub fn slot(&self, place: PlaceId) -> Option<NameId> {
        self.operands.slots.get(&place).copied()
    }

    /// Returns the types of all programs.
    pub(crate) fn joined(&self) -> &Joined {
        &self.operands.joined
    }

    /// Returns the types of a file that has debug information.
    pub fn type_table(&self, dso: DsoId) -> Option<&TypeTable> {
        self.operands.joined.table(dso)
    }

    /// Returns the number of samples that have a type by the address of their data, or by registers.
    pub fn by_evidence(&self) -> u64 {
        self.operands.joined.by_evidence
    }

    /// Returns notes about missing debug information, one line each.
    pub fn warnings(&self) -> &[String] {
        &self.operands.joined.warnings
    }

    /// Returns a function or variable.
    pub fn symbol(&self, id: SymbolId) -> Option<&Symbol> {
        self.symbols.get(id.position())
    }

    /// Returns the function that a place is in.
    pub fn function(&self, place: PlaceId) -> Option<&Symbol> {
        self.symbol(self.at(place).symbol?)
    }

    /// Returns the text of a name.
    pub fn text(&self, name: NameId) -> &str {
        self.samples.names.get(name)
    }

    /// Returns the correction of skid that was made.
    pub fn skid(&self) -> Skid {
        self.charges.skid
    }

    /// Returns the pairs of instructions that the machine retires as one.
    pub fn fusion(&self) -> &FusionRules {
        &self.charges.fusion
    }

    /// Returns the distance of imprecise counters' samples behind the instructions that they count.
    pub fn shifts(&self) -> &[EventShift] {
        &self.charges.shifts
    }

    /// Returns the counts of samples at functions' first instructions, by the calls that they are charged to.
    pub fn calls(&self) -> CallCounts {
        self.charges.calls
    }

    /// Returns the rule by which a sample is charged elsewhere.
    pub fn rule(&self, group: &SampleGroup) -> Option<Rule> {
        let of_call = self.charges.call_rules.get(&(group.place, group.charged));
        of_call.or_else(|| self.charges.rules.get(&group.place)).copied()
    }

    /// Returns the rule by which samples at a place are charged elsewhere, those at calls left out.
    pub fn rule_at(&self, place: PlaceId) -> Option<Rule> {
        self.charges.rules.get(&place).copied()
    }
}
