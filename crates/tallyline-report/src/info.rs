//! The facts about a recording that do not depend on its samples.

use tallyline_perf_data::spe::AuxtraceStats;

/// A sampled event of a recording (such as `cycles`), with what reports need to know of its samples: are their
/// addresses exact, and do they have weights and data sources.
#[derive(Clone, Debug)]
pub struct EventInfo {
    /// The name of the event.
    pub name: String,
    /// `true` if the event's samples are exact enough to be charged to the instruction that they are at.
    pub is_precise: bool,
    /// `true` if the event is a hardware counter, whose samples are taken on overflow.
    pub(crate) is_counter: bool,
    /// `true` if the event's samples have weights.
    pub has_weight: bool,
    /// `true` if the event's samples have data sources.
    pub has_source: bool,
}

/// The sampled events (such as `cycles`), the machine and the defects of a recording.
#[derive(Clone, Debug, Default)]
pub struct RecordingInfo {
    /// The sampled events of the recording.
    pub events: Vec<EventInfo>,
    // the socket of each CPU
    pub(crate) sockets: Vec<u32>,
    // the nodes of memory: number, and ranges of CPUs
    pub(crate) nodes: Vec<(u32, Vec<(u32, u32)>)>,
    /// The size of a cache line of the machine recorded, in bytes.
    pub line_size: u32,
    /// The machine's architecture, as `uname -m` says it.
    pub arch: String,
    // perf's name of the CPU: vendor, family, model, stepping
    pub(crate) cpu_id: Option<String>,
    /// The number of samples that were lost.
    pub lost: u64,
    /// The numbers of hardware trace records that were read and skipped.
    pub traces: AuxtraceStats,
    /// The number of samples whose copy of the stack does not say who called.
    pub not_unwound: u64,
    /// The number of samples of events that the recording does not describe.
    pub unknown_events: u64,
    pub(crate) is_emulated: bool,
    /// The recording's defects that leave it usable.
    pub warnings: Vec<String>,
    /// `true` if parts of the recording are damaged or missing.
    pub is_damaged: bool,
}

impl RecordingInfo {
    /// Returns `true` if the recording machine was emulated (QEMU without KVM): there, clock samples fall on the
    /// starts of basic blocks.
    pub fn is_emulated(&self) -> bool {
        self.is_emulated
    }

    /// Returns the NUMA node of a CPU of the recording machine; `None` if the recording does not say it.
    pub(crate) fn node(&self, cpu: u32) -> Option<u32> {
        let has = |ranges: &[(u32, u32)]| ranges.iter().any(|(first, last)| (*first..=*last).contains(&cpu));
        self.nodes.iter().find(|(_, ranges)| has(ranges)).map(|(node, _)| *node)
    }
}
