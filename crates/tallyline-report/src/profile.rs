//! What is kept of a recording: its samples, and the places that they were at, each place once.

use super::attribution::{CallCounts, EventShift, FusionRules, Rule};
use super::evidence::Held;
use super::join::Joined;
use super::names::{NameId, Names};
use super::operand::Outcome;
use rustc_hash::FxHashMap;
use std::fmt;
use tallyline_perf_data::sample::{CpuMode, DataSource, Weight};
use tallyline_perf_data::spaces::Dso;
use tallyline_perf_data::spe::Tally;

/// What stands for a CPU, a place or a time that the recording does not have.
pub const NONE: u32 = u32::MAX;

/// One sample, or several that are the same in all that is kept apart ([`Apart`](super::Apart)).
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The event, by index.
    pub event: u32,
    /// How many samples.
    pub samples: u64,
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// The thread's name at the time.
    pub comm: NameId,
    /// The CPU; [`NONE`] where it is not known, or not kept apart.
    pub cpu: u32,
    /// Whether the address is that of the very instruction.
    pub exact: bool,
    /// In whose code.
    pub mode: CpuMode,
    /// Where the program was, as recorded.
    pub ip: u64,
    /// The same as an index into [`Profile::places`].
    pub place: u32,
    /// The place whose instruction the sample is charged to: `place`, or the one that retired before it.
    pub charged: u32,
    /// Where the function returns to; [`NONE`] without call chains.
    pub caller: u32,
    /// When the first was, in nanoseconds of the recording's clock; 0 where it is not known.
    pub time: u64,
    /// How many events it stands for: all samples together.
    pub period: u64,
    /// The address of the data.
    pub address: u64,
    /// Where it was, as an index into [`Profile::data_places`]; [`NONE`] without addresses.
    pub data_place: u32,
    /// What says in [`Profile::held`] what registers held, or of several samples that something does;
    /// [`NONE`] where it is not recorded.
    pub held: u32,
    /// The physical address of the data.
    pub physical_address: u64,
    /// Latencies.
    pub weight: Weight,
    /// Where the data came from.
    pub source: Option<DataSource>,
    /// The size of the data's page.
    pub data_page_size: u64,
    /// The size of the code's page.
    pub code_page_size: u64,
}

/// A place in a program's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file, as an index into [`Profile::dsos`]; [`NONE`] where nothing was mapped.
    pub dso: u32,
    /// Where in it: see [`DsoKind`](tallyline_perf_data::spaces::DsoKind). Without a file the address.
    pub offset: u64,
    /// In whose code.
    pub mode: CpuMode,
    /// The process, where the code has no file; else 0.
    pub pid: i32,
}

/// What is known about a place.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resolved {
    /// The address in the file as the linker gave it; the offset where the file is not there.
    pub address: u64,
    /// The function, as an index into [`Profile::symbols`].
    pub symbol: u32,
    /// Source file, and file with line: `file.c`, `file.c:12`.
    pub source_file: NameId,
    /// The line.
    pub source_line: NameId,
}

/// A function or a variable, or an address without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// The file; [`NONE`] where nothing was mapped.
    pub dso: u32,
    /// Where it starts, as the linker gave it; the address itself where there is no symbol.
    pub start: u64,
    /// In whose code.
    pub mode: CpuMode,
    /// Its name; the address in hexadecimal digits where there is none.
    pub name: NameId,
    /// Whether there is one.
    pub is_known: bool,
}

/// An event of the recording.
#[derive(Clone, Debug)]
pub struct EventInfo {
    /// Its name.
    pub name: String,
    /// Whether its samples are exact enough to be charged to the instruction that they are at.
    pub is_precise: bool,
    /// Whether it is a counter of the hardware, whose samples come when it has overflowed.
    pub is_counter: bool,
    /// Whether samples have weights.
    pub has_weight: bool,
    /// Whether samples say where data came from.
    pub has_source: bool,
    /// Whether samples have addresses of data.
    pub has_address: bool,
}

/// Which instruction samples of imprecise events are charged to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Skid {
    /// The one that they were taken at.
    #[default]
    None,
    /// The one that retired before it.
    Corrected {
        /// How many samples that changed.
        samples: u64,
        /// How many of them are at places whose samples are divided among several instructions.
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
    pub points: Vec<Point>,
    /// Where they were, each once.
    pub places: Vec<Place>,
    /// What is known about each place. As long as `places`.
    pub resolved: Vec<Resolved>,
    /// What the instruction at each place accesses. As long as `places`.
    pub outcomes: Vec<Outcome>,
    /// The slot of a class's table of functions that the instruction at a place reads, by the place's index.
    pub slots: FxHashMap<u32, NameId>,
    /// Where data was, each place once.
    pub data_places: Vec<Place>,
    /// The address in memory of each of `data_places`, as a sample has it.
    pub data_raw: Vec<u64>,
    /// The variable at each of `data_places`: an index into `symbols`.
    pub data_symbols: Vec<u32>,
    /// The address of each of `data_places` in its file, as the linker gave it.
    pub data_addresses: Vec<u64>,
    /// What registers held.
    pub held: Held,
    /// The places that samples return to, if they are at a function's first instruction: a point, and an index into
    /// `places`, for each sample whose word there is an address of code.
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
    /// What programs say about their types.
    pub joined: Joined,
    /// What was done about skid.
    pub skid: Skid,
    /// The pairs of instructions that the machine retires as one.
    pub fusion: FusionRules,
    /// How far behind what they count the samples of counters without precision are.
    pub shifts: Vec<EventShift>,
    /// The rule by which samples at a place are charged elsewhere, by the place's index.
    pub rules: FxHashMap<u32, Rule>,
    /// The rule by which samples at one place are charged to a call, by the indices of the place and of the call.
    pub call_rules: FxHashMap<(u32, u32), Rule>,
    /// Samples at functions' first instructions, and the calls that they are charged to.
    pub calls: CallCounts,
    /// Samples that were lost.
    pub lost: u64,
    /// What became of traces by the hardware.
    pub traces: Tally,
    /// Samples whose copy of the stack does not say who called.
    pub not_unwound: u64,
    /// Samples of events that the recording does not describe.
    pub unknown_events: u64,
    /// Whether the machine was emulated: clock samples fall on starts of blocks there.
    pub is_emulated: bool,
    /// What is wrong with the recording without making it useless.
    pub warnings: Vec<String>,
    /// Whether parts of the recording are damaged or missing.
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
            Some(dso) => {
                dso.path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(dso.path.as_str())
            }
        }
    }

    /// The node of memory of a CPU.
    pub fn node(&self, cpu: u32) -> Option<u32> {
        let has = |ranges: &[(u32, u32)]| ranges.iter().any(|(first, last)| (*first..=*last).contains(&cpu));
        self.nodes.iter().find(|(_, ranges)| has(ranges)).map(|(node, _)| *node)
    }

    /// What the instruction that a sample is charged to accesses.
    pub fn outcome(&self, point: &Point) -> &Outcome {
        self.outcomes.get(point.charged as usize).unwrap_or(&Outcome::NOT_LOOKED)
    }

    /// What is known about the place of a sample.
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
