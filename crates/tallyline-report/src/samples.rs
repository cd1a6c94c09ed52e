//! The samples of a recording: with their places, where those are in files, and which types they access.
//!
//! Each stage consumes the one before it: [`LoadedSamples`] have code places and data locations as the recording has
//! them, `LocatedSamples` linked addresses and open programs, `TypedSamples` the types of operands; a
//! [`Profile`](super::Profile) has functions and lines, too. No list is filled outside its stage; places, whose lists
//! later stages add to, add to all of them at once.

use super::binaries::Binaries;
use super::data_locations::DataLocations;
use super::index::{DataId, PlaceId, RegistersId};
use super::info::RecordingInfo;
use super::last_branches::LastBranchCounts;
use super::names::{NameId, Names};
use super::operand::{Joined, NOT_LOOKED, Outcome};
use super::places::{CodePlaces, Resolved};
use super::registers::SampleRegisters;
use super::shared_memory::SharedMemory;
use super::skid::{CallCounts, EventShift, FusionRules, Rule, Skid};
use rustc_hash::FxHashMap;
use tallyline_perf_data::sample::{CpuMode, DataSource, Weight};
use tallyline_perf_data::spaces::{Dso, DsoId};

/// The granularity at which equal samples are merged into one [`SampleGroup`]: all of them, those of one CPU, or none.
/// The order is from coarse to fine: the greater of two granularities serves both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum MergeGranularity {
    /// One group of all equal samples, from whatever CPUs: nothing is kept apart.
    #[default]
    None,
    /// One group of the equal samples of each CPU.
    Cpus,
    /// A group for each sample, in the order of time.
    Samples,
    /// A group for each sample, in the order of time, with data addresses computed from registers where none was
    /// recorded.
    Addresses,
}

/// One or more samples that are equal in all that reports distinguish, merged and counted.
#[derive(Clone, Copy, Debug)]
pub struct SampleGroup {
    /// The index of the event.
    pub event: u32,
    /// The number of samples.
    pub samples: u64,
    /// The process of the samples, by id.
    pub pid: i32,
    /// The thread of the samples, by id.
    pub tid: i32,
    /// The thread's name at the time.
    pub comm: NameId,
    /// The CPU; none where it is not known, or not kept apart.
    pub cpu: Option<u32>,
    /// `true` if the address is exactly that of the sampled instruction.
    pub exact: bool,
    /// The mode that the CPU ran in.
    pub mode: CpuMode,
    /// The instruction pointer as recorded.
    pub ip: u64,
    /// The code address of `ip`, see [`Profile::place`](super::Profile::place).
    pub place: PlaceId,
    /// The place whose instruction the sample is charged to: `place`, or the one that retired before it.
    pub charged: PlaceId,
    /// The return address of the function; none without call chains.
    pub(crate) caller: Option<PlaceId>,
    /// The time of the first sample, in nanoseconds of the recording's clock; 0 where it is not known.
    pub time: u64,
    /// The number of events that all its samples together stand for.
    pub period: u64,
    /// The address of the accessed data.
    pub address: u64,
    /// The data's location, if the sample has an address.
    pub(crate) data: Option<DataId>,
    /// The recorded registers of its first sample that has some.
    pub(crate) registers: Option<RegistersId>,
    /// The physical address of the data.
    pub(crate) physical_address: u64,
    /// The latencies of each of the samples, in cycles.
    pub weight: Weight,
    /// The data source: the level or memory that the access was served from.
    pub source: Option<DataSource>,
    /// The size of the data's page.
    pub(crate) data_page_size: u64,
    /// The size of the code's page.
    pub(crate) code_page_size: u64,
}

/// The samples of a recording with the tables of code places (file and offset), data locations, strings and files that
/// they refer to by id.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    pub(crate) info: RecordingInfo,
    // in the order of time, where they are kept apart
    pub(crate) groups: Vec<SampleGroup>,
    pub(crate) places: CodePlaces,
    pub(crate) data: DataLocations,
    pub(crate) registers: SampleRegisters,
    pub(crate) shared: SharedMemory,
    pub(crate) dsos: Vec<Dso>,
    pub(crate) names: Names,
}

impl Samples {
    /// Returns the mapped object (program, library, the kernel) with an id; `None` for an unknown id.
    pub(crate) fn dso(&self, id: DsoId) -> Option<&Dso> {
        self.dsos.get(id.position())
    }

    /// Returns the base name of a mapped object, as perf shows it; `[unknown]` without one.
    pub(crate) fn dso_name(&self, id: Option<DsoId>) -> &str {
        match id.and_then(|id| self.dso(id)) {
            None => "[unknown]",
            Some(dso) => dso.path().rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(dso.path()),
        }
    }

    /// Returns the file that a code place is in (`None` for code without a file) and the place's linked address.
    pub(crate) fn linked(&self, place: PlaceId) -> (Option<DsoId>, u64) {
        (self.places.get(place).dso, self.places.address(place))
    }

    /// Returns the function, source line and linked address of a code place (file and offset of code), as far as they
    /// have been looked up.
    pub(crate) fn at(&self, place: PlaceId) -> Resolved {
        self.places.resolved(place)
    }

    /// Returns `true` if the address of these samples is that of the instruction which caused them, by the sample's
    /// own flag or by its event.
    pub(crate) fn is_precise(&self, group: &SampleGroup) -> bool {
        group.exact || self.info.events.get(group.event as usize).is_some_and(|event| event.is_precise)
    }
}

/// The samples of a recording as recorded, before programs are opened: the first stage of building a [`Profile`].
///
/// [`Profile`]: crate::Profile
#[derive(Debug, Default)]
pub struct LoadedSamples {
    pub(crate) samples: Samples,
    // the return addresses of samples that are at a function's first instruction, read from the word at the stack
    // pointer: a group and a place for each sample whose word is an address of code
    pub(crate) returns: Vec<(u32, PlaceId)>,
    // the newest entries of branch stacks
    pub(crate) branches: LastBranchCounts,
}

/// Samples whose programs have been opened and whose code places (file and offset) have linked addresses: the second
/// stage of building a profile.
pub(crate) struct LocatedSamples {
    pub(crate) samples: Samples,
    pub(crate) returns: Vec<(u32, PlaceId)>,
    pub(crate) branches: LastBranchCounts,
    pub(crate) binaries: Binaries,
}

/// Samples that have been charged to the instructions which caused them, with the types that these access: the
/// third stage of building a profile.
pub(crate) struct TypedSamples {
    pub(crate) samples: Samples,
    pub(crate) binaries: Binaries,
    pub(crate) charges: Charges,
    pub(crate) operands: Operands,
}

/// The result of skid correction: the rules by which samples were charged to other instructions than those at their
/// addresses.
#[derive(Debug, Default)]
pub(crate) struct Charges {
    pub(crate) skid: Skid,
    pub(crate) fusion: FusionRules,
    pub(crate) shifts: Vec<EventShift>,
    // by the place of the sample
    pub(crate) rules: FxHashMap<PlaceId, Rule>,
    // by the place of the sample and that of the call
    pub(crate) call_rules: FxHashMap<(PlaceId, PlaceId), Rule>,
    pub(crate) calls: CallCounts,
}

/// The types that the instructions at all code places (files and offsets) access, as inferred, by id of the place.
#[derive(Debug, Default)]
pub(crate) struct Operands {
    // as long as the places, or empty where types were not asked for
    pub(crate) outcomes: Vec<Outcome>,
    // the slot of a class's table of functions that the instruction at a place reads
    pub(crate) slots: FxHashMap<PlaceId, NameId>,
    pub(crate) joined: Joined,
}

impl Operands {
    /// Stores the types that the instructions at all code places (files and offsets) access, as inferred, by id of the
    /// place.
    pub(crate) fn new(outcomes: Vec<Outcome>) -> Operands {
        Operands { outcomes, ..Operands::default() }
    }

    /// Returns the type and field that the instruction at a code place (file and offset of code) accesses, or the
    /// reason why they are unknown.
    pub(crate) fn outcome(&self, place: PlaceId) -> &Outcome {
        self.outcomes.get(place.position()).unwrap_or(&NOT_LOOKED)
    }

    /// Appends the type that the instruction at the most recently added code place (file and offset of code) accesses,
    /// as inferred, or the reason why it is unknown.
    pub(crate) fn push(&mut self, outcome: Outcome) {
        self.outcomes.push(outcome);
    }
}

impl LocatedSamples {
    /// Skips type inference: converts the samples to the next stage of building a profile, each charged to the
    /// instruction at its own address.
    pub(crate) fn untyped(self) -> TypedSamples {
        let LocatedSamples { samples, binaries, .. } = self;
        TypedSamples { samples, binaries, charges: Charges::default(), operands: Operands::default() }
    }
}
