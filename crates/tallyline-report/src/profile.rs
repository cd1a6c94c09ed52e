//! The samples of a recording, and the code and data addresses that they were at, each once.

use super::data_locations::DataLocations;
pub use super::index::NONE;
use super::index::{DataId, RegistersId};
use super::names::{NameId, Names};
use super::operand::{Joined, Outcome};
pub use super::places::Place;
use super::registers::SampleRegisters;
use super::skid::{CallCounts, EventShift, FusionRules, Rule};
use rustc_hash::FxHashMap;
use std::fmt;
use tallyline_perf_data::sample::{CpuMode, DataSource, Weight};
use tallyline_perf_data::spaces::Dso;
use tallyline_perf_data::spe::AuxtraceStats;

/// The granularity at which equal samples merge into one [`SampleGroup`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum MergeGranularity {
    /// All equal samples merge.
    #[default]
    None,
    /// Samples of one CPU merge.
    Cpus,
    /// Each sample is a group of its own, in the order of time.
    Samples,
}

/// One sample, or several that are equal but for what [`MergeGranularity`] ignores.
#[derive(Clone, Copy, Debug)]
pub struct SampleGroup {
    /// The event, by index.
    pub event: u32,
    /// The number of samples.
    pub samples: u64,
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// The thread's name at the time.
    pub comm: NameId,
    /// The CPU; [`NONE`] where it is not known, or not kept apart.
    pub cpu: u32,
    /// `true` if the address is exactly that of the sampled instruction.
    pub exact: bool,
    /// The mode that the CPU ran in.
    pub mode: CpuMode,
    /// The instruction pointer as recorded.
    pub ip: u64,
    /// The code address of `ip`, as an index into [`Profile::places`].
    pub place: u32,
    /// The place whose instruction the sample is charged to: `place`, or the one that retired before it.
    pub charged: u32,
    /// The return address of the function; [`NONE`] without call chains.
    pub(crate) caller: u32,
    /// The time of the first sample, in nanoseconds of the recording's clock; 0 where it is not known.
    pub time: u64,
    /// The number of events that all its samples together stand for.
    pub period: u64,
    /// The address of the data.
    pub address: u64,
    /// The data's location, if the sample has an address.
    pub(crate) data: Option<DataId>,
    /// The recorded registers of its first sample that has some.
    pub(crate) registers: Option<RegistersId>,
    /// The physical address of the data.
    pub physical_address: u64,
    /// Latencies.
    pub weight: Weight,
    /// The data source: the level or memory that the access was served from.
    pub source: Option<DataSource>,
    /// The size of the data's page.
    pub data_page_size: u64,
    /// The size of the code's page.
    pub code_page_size: u64,
}

/// The function and source line of a place.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resolved {
    /// The address in the file as the linker gave it; the offset where the file is not there.
    pub address: u64,
    /// The function, as an index into [`Profile::symbols`].
    pub symbol: u32,
    /// Source file, and file with line: `file.c`, `file.c:12`.
    pub(crate) source_file: NameId,
    /// The line.
    pub source_line: NameId,
}

/// A function or a variable, or an address without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// The file; [`NONE`] where nothing was mapped.
    pub dso: u32,
    /// The address of its first byte, as the linker assigned it; the address itself where there is no symbol.
    pub start: u64,
    /// The mode that the CPU ran in.
    pub mode: CpuMode,
    /// Its name; the address in hexadecimal digits where there is none.
    pub name: NameId,
    /// `true` if the file has such a symbol.
    pub is_known: bool,
}

/// An event of the recording.
#[derive(Clone, Debug)]
pub struct EventInfo {
    /// Its name.
    pub name: String,
    /// `true` if its samples are exact enough to be charged to the instruction that they are at.
    pub is_precise: bool,
    /// `true` if it is a hardware counter, whose samples are taken on overflow.
    pub(crate) is_counter: bool,
    /// `true` if samples have weights.
    pub has_weight: bool,
    /// `true` if samples have data sources.
    pub has_source: bool,
}

/// The instruction that samples of imprecise events are charged to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Skid {
    /// The one that they were taken at.
    #[default]
    None,
    /// The one that retired before it.
    Corrected {
        /// The number of samples that are charged elsewhere.
        samples: u64,
        /// The number of those at places whose samples are divided among several instructions.
        divided: u64,
    },
}

impl fmt::Display for Skid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Skid::None => f.write_str("not corrected"),
            Skid::Corrected { samples: 0, .. } => f.write_str("nothing to correct"),
            Skid::Corrected { samples, divided } => {
                write!(f, "corrected, {samples} samples are charged to the instruction before")?;
                match divided {
                    0 => Ok(()),
                    _ => write!(f, ", {divided} of them divided among several"),
                }
            }
        }
    }
}

/// A recording, read.
#[derive(Debug, Default)]
pub struct Profile {
    /// The events.
    pub events: Vec<EventInfo>,
    /// The samples in the order of time, where they are kept apart.
    pub points: Vec<SampleGroup>,
    /// The code addresses of samples, each once.
    pub places: Vec<Place>,
    /// The function and source line of each place. As long as `places`.
    pub resolved: Vec<Resolved>,
    /// The operand's type of the instruction at each place. As long as `places`.
    pub outcomes: Vec<Outcome>,
    /// The slot of a class's table of functions that the instruction at a place reads, by the place's index.
    pub slots: FxHashMap<u32, NameId>,
    /// The data locations of samples, each once.
    pub(crate) data: DataLocations,
    /// The registers of samples.
    pub(crate) registers: SampleRegisters,
    /// The return addresses of samples at a function's first instruction, read from the word at the stack
    /// pointer: a sample group, and an index into `places`, for each sample whose word is an address of code.
    pub returns: Vec<(u32, u32)>,
    /// Functions and variables.
    pub symbols: Vec<Symbol>,
    /// Files.
    pub dsos: Vec<Dso>,
    /// Texts.
    pub names: Names,
    /// The socket of each CPU.
    pub sockets: Vec<u32>,
    /// The nodes of memory: number, and ranges of CPUs.
    pub nodes: Vec<(u32, Vec<(u32, u32)>)>,
    /// The size of a cache line of the machine recorded, in bytes.
    pub line_size: u32,
    /// The machine's architecture, as `uname -m` says it.
    pub arch: String,
    /// perf's name of the CPU: vendor, family, model, stepping.
    pub cpu_id: Option<String>,
    /// The types of all programs.
    pub joined: Joined,
    /// The correction of skid that was made.
    pub skid: Skid,
    /// The pairs of instructions that the machine retires as one.
    pub fusion: FusionRules,
    /// The distance of imprecise counters' samples behind the instructions that they count.
    pub shifts: Vec<EventShift>,
    /// The rule by which samples at a place are charged elsewhere, by the place's index.
    pub rules: FxHashMap<u32, Rule>,
    /// The rule by which samples at one place are charged to a call, by the indices of both places.
    pub call_rules: FxHashMap<(u32, u32), Rule>,
    /// Samples at functions' first instructions, and the calls that they are charged to.
    pub calls: CallCounts,
    /// Samples that were lost.
    pub lost: u64,
    /// The numbers of hardware trace records that were read and skipped.
    pub traces: AuxtraceStats,
    /// Samples whose copy of the stack does not say who called.
    pub not_unwound: u64,
    /// Samples of events that the recording does not describe.
    pub unknown_events: u64,
    /// `true` if the machine was emulated: clock samples fall on the starts of blocks there.
    pub is_emulated: bool,
    /// The recording's defects that leave it usable.
    pub warnings: Vec<String>,
    /// `true` if parts of the recording are damaged or missing.
    pub is_damaged: bool,
}

impl Profile {
    /// The file with an index.
    pub fn dso(&self, index: u32) -> Option<&Dso> {
        self.dsos.get(index as usize)
    }

    /// A file's name without its folders, as perf shows it.
    pub fn dso_name(&self, index: u32) -> &str {
        match self.dso(index) {
            None => "[unknown]",
            Some(dso) => dso.path().rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(dso.path()),
        }
    }

    /// The node of memory of a CPU.
    pub(crate) fn node(&self, cpu: u32) -> Option<u32> {
        let has = |ranges: &[(u32, u32)]| ranges.iter().any(|(first, last)| (*first..=*last).contains(&cpu));
        self.nodes.iter().find(|(_, ranges)| has(ranges)).map(|(node, _)| *node)
    }

    /// Returns the operand's type of the instruction that a sample is charged to.
    pub fn outcome(&self, point: &SampleGroup) -> &Outcome {
        self.outcomes.get(point.charged as usize).unwrap_or(&Outcome::NOT_LOOKED)
    }

    /// Returns the function and source line of a place.
    pub fn at(&self, place: u32) -> Resolved {
        self.resolved.get(place as usize).copied().unwrap_or_default()
    }

    /// A function or variable.
    pub fn symbol(&self, index: u32) -> Option<&Symbol> {
        self.symbols.get(index as usize)
    }

    /// The text of a name.
    pub fn text(&self, name: NameId) -> &str {
        self.names.get(name)
    }
}
