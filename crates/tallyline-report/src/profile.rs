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
use tallyline_debuginfo::model::TypeId;
use tallyline_inference::TypeTable;
use tallyline_inference::code::FusiblePair;
use tallyline_perf_data::sample::CpuMode;
use tallyline_perf_data::spaces::{Dso, DsoId};

/// The function or variable at an address of a program, or the address itself if no name is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// The file; none where nothing was mapped.
    pub dso: Option<DsoId>,
    /// The address of the symbol's first byte, as the linker assigned it; the address itself where there is no symbol.
    pub start: u64,
    /// The mode that the CPU ran in.
    pub mode: CpuMode,
    /// The name of the symbol; the address in hexadecimal digits where there is none.
    pub name: NameId,
    /// `true` if the file has such a symbol.
    pub is_known: bool,
}

/// A recording's samples with the functions, source lines and accessed types that were looked up for them: the
/// input of all reports.
#[derive(Default)]
pub struct Profile {
    pub(crate) samples: Samples,
    pub(crate) charges: Charges,
    pub(crate) operands: Operands,
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) binaries: Binaries,
}

impl Profile {
    /// Returns the sampled events (such as `cycles`), the machine and the defects of the recording.
    pub fn info(&self) -> &RecordingInfo {
        &self.samples.info
    }

    /// Sets the cache line size in bytes that sort keys use, to report for another machine than the recorded one.
    pub fn set_line_size(&mut self, size: u32) {
        self.samples.info.line_size = size;
    }

    /// Returns the recording's samples in groups of those that are equal in all that reports distinguish; in time order
    /// if each sample is a group of its own.
    pub fn groups(&self) -> &[SampleGroup] {
        &self.samples.groups
    }

    /// Returns the opened program of a file in the recording; `None` if it could not be opened, or was not needed.
    pub fn program(&self, dso: DsoId) -> Option<&Arc<Program>> {
        self.binaries.get(dso)
    }

    /// Returns the reason why a file of the recording could not be opened; `None` if it was, or was not needed.
    pub fn why_not(&self, dso: DsoId) -> Option<&str> {
        self.binaries.why_not(dso)
    }

    /// Returns all mapped objects of the recording (programs, libraries, the kernel), indexed by [`DsoId`].
    pub fn dsos(&self) -> &[Dso] {
        &self.samples.dsos
    }

    /// Returns the mapped object (program, library, the kernel) with an id; `None` for an unknown id.
    pub fn dso(&self, id: DsoId) -> Option<&Dso> {
        self.samples.dso(id)
    }

    /// Returns the base name of a mapped object, as perf shows it; `[unknown]` without one.
    pub fn dso_name(&self, id: Option<DsoId>) -> &str {
        self.samples.dso_name(id)
    }

    /// Returns the number of distinct code places (files and offsets of code) of samples, which is also the upper bound
    /// of their ids.
    pub fn places_count(&self) -> usize {
        self.samples.places.len()
    }

    /// Returns the code place (mapped file and offset) with an id.
    pub fn place(&self, id: PlaceId) -> &Place {
        self.samples.places.get(id)
    }

    /// Returns the function, source line and linked address of a code place (file and offset of code).
    pub fn at(&self, place: PlaceId) -> Resolved {
        self.samples.at(place)
    }

    /// Returns the type and field that samples access, by the instruction that they are charged to, or the reason
    /// why they are unknown.
    pub fn outcome(&self, group: &SampleGroup) -> &Outcome {
        self.operands.outcome(group.charged)
    }

    /// Returns the type and field that the instruction at a code place (file and offset of code) accesses, or the
    /// reason why they are unknown.
    pub fn outcome_at(&self, place: PlaceId) -> &Outcome {
        self.operands.outcome(place)
    }

    /// Returns the text for the vtable slot (class and number) that the instruction at a code place (file and offset of
    /// code) reads; `None` for other instructions.
    pub fn slot(&self, place: PlaceId) -> Option<NameId> {
        self.operands.slots.get(&place).copied()
    }

    /// Returns the inferred types of the instructions of all programs, with ids for these types that are unique over
    /// all programs.
    pub(crate) fn joined(&self) -> &Joined {
        &self.operands.joined
    }

    /// Returns the table of the types that a file's instructions access; `None` if none were inferred, as without debug
    /// information.
    pub fn type_table(&self, dso: DsoId) -> Option<&TypeTable> {
        self.operands.joined.table(dso)
    }

    /// Returns the name of a type of a file's table, as the profile's rows have it: with its scopes if another type of the
    /// profile has the same name without. Empty for a file without a table.
    pub fn type_name(&self, dso: DsoId, ty: TypeId) -> String {
        self.joined().name_in(dso, ty)
    }

    /// Returns the number of samples whose accessed type is known from their registers or data address, as the code
    /// alone left it open.
    pub fn by_evidence(&self) -> u64 {
        self.operands.joined.by_evidence
    }

    /// Returns the warnings about the programs of the profile: one line for each part of their debug information that
    /// was missing.
    pub fn warnings(&self) -> &[String] {
        &self.operands.joined.warnings
    }

    /// Returns the function or variable with an id; `None` for an unknown id.
    pub fn symbol(&self, id: SymbolId) -> Option<&Symbol> {
        self.symbols.get(id.position())
    }

    /// Returns the function that contains a code place (file and offset of code); `None` if functions were not looked
    /// up.
    pub fn function(&self, place: PlaceId) -> Option<&Symbol> {
        self.symbol(self.at(place).symbol?)
    }

    /// Returns the string with an id that the profile refers to, such as a type's name.
    pub fn text(&self, name: NameId) -> &str {
        self.samples.names.get(name)
    }

    /// Returns how samples were corrected for skid, with the number of samples that were charged to other
    /// instructions.
    pub fn skid(&self) -> Skid {
        self.charges.skid
    }

    /// Returns the kinds of compare-and-jump pairs near samples, each with the decision if the recorded CPU fuses
    /// it into one instruction.
    pub fn fusion(&self) -> impl Iterator<Item = (&FusiblePair, &PairRule)> {
        self.charges.fusion.iter()
    }

    /// Returns a line of text that sums up which kinds of compare-and-jump pairs the recorded CPU fuses.
    pub fn fusion_summary(&self) -> String {
        self.charges.fusion.to_string()
    }

    /// Returns, for each imprecise hardware counter, the number of instructions by which its samples lie behind the
    /// instruction that caused them.
    pub fn shifts(&self) -> &[EventShift] {
        &self.charges.shifts
    }

    /// Returns the numbers of samples at functions' first instructions, by whether the call that led there was
    /// found.
    pub fn calls(&self) -> CallCounts {
        self.charges.calls
    }

    /// Returns the rule by which samples were charged to another instruction than the one at their address; `None`
    /// if they were not.
    pub fn rule(&self, group: &SampleGroup) -> Option<Rule> {
        let of_call = self.charges.call_rules.get(&(group.place, group.charged));
        of_call.or_else(|| self.charges.rules.get(&group.place)).copied()
    }

    /// Returns the rule by which samples at a code place (file and offset of code) were charged to other instructions;
    /// `None` if they were not. Charges to calls by return addresses are left out.
    pub fn rule_at(&self, place: PlaceId) -> Option<Rule> {
        self.charges.rules.get(&place).copied()
    }
}
