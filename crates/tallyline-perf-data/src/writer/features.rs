//! The sections that describe the machine and the run.

use super::{Event, attr_size};
use crate::abi::{misc, record as kind};
use crate::file::{BuildId, CacheLevel, EventGroup, Feature};
use std::collections::BTreeMap;

/// The facts about a machine to write into a perf.data header; empty ones are left out.
#[derive(Clone, Debug, Default)]
pub struct MachineDescription {
    /// The name of the machine.
    pub hostname: String,
    /// The release of the kernel, as `uname -r` prints it.
    pub os_release: String,
    /// The architecture of the machine, as `uname -m` prints it.
    pub arch: String,
    /// The name of the CPU's model.
    pub cpu_description: String,
    /// perf's identifier of the CPU's model, such as `GenuineIntel,6,85,4`.
    pub cpu_id: String,
    /// The numbers of configured and of online CPUs.
    pub cpus: (u32, u32),
    /// The size of the machine's memory in kilobytes.
    pub total_memory: u64,
    /// The command line of the recording.
    pub command_line: Vec<String>,
    /// Core and socket of each configured CPU.
    pub topology: Vec<(u32, u32)>,
    /// The NUMA nodes of the machine.
    pub nodes: Vec<NumaNode>,
    /// The size in bytes of a block of memory that can be plugged in.
    pub memory_block: u64,
    /// Number and name of each PMU.
    pub pmus: Vec<(u32, String)>,
    /// The caches of the machine's CPUs.
    pub caches: Vec<CacheLevel>,
    /// The formats of tracepoints, as perf stores them.
    pub tracing_data: Vec<u8>,
}

/// A NUMA node, as a perf.data header describes it: memory and CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaNode {
    /// The number of the node.
    pub(crate) number: u32,
    /// The memory of the node in kilobytes, in all and free.
    pub(crate) memory: (u64, u64),
    /// The CPUs of the node, a list such as `0-3`.
    pub(crate) cpus: String,
    /// The numbers of the node's blocks of memory.
    pub blocks: Vec<u32>,
}

impl NumaNode {
    /// Describes a NUMA node: its number, its total and free memory in kilobytes, its CPUs as a list such as `0-3`,
    /// and the numbers of its memory blocks.
    pub fn new(number: u32, memory: (u64, u64), cpus: impl Into<String>, blocks: Vec<u32>) -> Self {
        Self { number, memory, cpus: cpus.into(), blocks }
    }
}

/// Returns the sections by their numbers, which is their order in the file.
pub(super) fn sections(
    machine: &MachineDescription,
    groups: &[EventGroup],
    events: &[Event],
    build_ids: &BTreeMap<(bool, Vec<u8>), BuildId>,
    times: Option<(u64, u64)>,
) -> Vec<(u64, Vec<u8>)> {
    let mut sections = BTreeMap::new();
    let mut add = |feature: Feature, is_known: bool, fill: &dyn Fn(&mut Section)| {
        if is_known {
            let mut section = Section(Vec::new());
            fill(&mut section);
            sections.insert(feature.0, section.0);
        }
    };
    add(Feature::TRACING_DATA, !machine.tracing_data.is_empty(), &|section| {
        section.0.extend(&machine.tracing_data);
    });
    add(Feature::BUILD_ID, !build_ids.is_empty(), &|section| {
        for ((is_kernel, path), id) in build_ids {
            section.build_id(*is_kernel, path, id);
        }
    });
    let version = concat!("tallyline ", env!("CARGO_PKG_VERSION"));
    for (feature, text) in [
        (Feature::HOSTNAME, machine.hostname.as_str()),
        (Feature::OS_RELEASE, &machine.os_release),
        (Feature::VERSION, version),
        (Feature::ARCH, &machine.arch),
        (Feature::CPU_DESCRIPTION, &machine.cpu_description),
        (Feature::CPU_ID, &machine.cpu_id),
    ] {
        add(feature, !text.is_empty(), &|section| section.text(text));
    }
    add(Feature::CPUS, machine.cpus.0 > 0, &|section| section.halves(&[machine.cpus.0, machine.cpus.1]));
    add(Feature::TOTAL_MEMORY, machine.total_memory > 0, &|section| section.word(machine.total_memory));
    add(Feature::COMMAND_LINE, !machine.command_line.is_empty(), &|section| {
        section.texts(&machine.command_line)
    });
    add(Feature::EVENT_DESC, true, &|section| section.events(events));
    add(Feature::CPU_TOPOLOGY, !machine.topology.is_empty(), &|section| section.topology(&machine.topology));
    add(Feature::NODES, !machine.nodes.is_empty(), &|section| {
        section.count(machine.nodes.len());
        for node in &machine.nodes {
            section.halves(&[node.number]);
            section.word(node.memory.0);
            section.word(node.memory.1);
            section.text(&node.cpus);
        }
    });
    add(Feature::PMU_MAPPINGS, !machine.pmus.is_empty(), &|section| {
        section.count(machine.pmus.len());
        for (number, name) in &machine.pmus {
            section.halves(&[*number]);
            section.text(name);
        }
    });
    add(Feature::GROUP_DESC, !groups.is_empty(), &|section| {
        section.count(groups.len());
        for group in groups {
            section.text(&group.name);
            section.count(group.leader);
            section.count(group.members);
        }
    });
    add(Feature::CACHE, !machine.caches.is_empty(), &|section| {
        section.halves(&[1]);
        section.count(machine.caches.len());
        for cache in &machine.caches {
            section.halves(&[cache.level, cache.line_size, 0, 0]);
            section.text(&cache.kind);
            section.text(&cache.size);
            section.text(&cache.cpus);
        }
    });
    add(Feature::MEMORY_TOPOLOGY, machine.memory_block > 0, &|section| section.memory(machine));
    add(Feature::SAMPLE_TIME, times.is_some(), &|section| {
        let (first, last) = times.unwrap_or_default();
        section.word(first);
        section.word(last);
    });
    sections.into_iter().collect()
}

/// Returns a stream's record of a file's build-id.
pub(super) fn build_id_record(is_kernel: bool, path: &[u8], id: &BuildId) -> Vec<u8> {
    let mut section = Section(Vec::new());
    // so that the record ends at a multiple of 8
    let path_len = (path.len() + 1).next_multiple_of(64) + 4;
    section.build_id_of_kind(kind::HEADER_BUILD_ID, path_len, is_kernel, path, id);
    section.0
}

struct Section(Vec<u8>);

impl Section {
    fn word(&mut self, word: u64) {
        self.0.extend(word.to_ne_bytes());
    }

    fn halves(&mut self, halves: &[u32]) {
        halves.iter().for_each(|half| self.0.extend(half.to_ne_bytes()));
    }

    fn count(&mut self, count: usize) {
        self.halves(&[count as u32]);
    }

    /// Writes the length with the padding to 64 bytes, the text, and zeroes, as perf does.
    fn text(&mut self, text: &str) {
        let len = (text.len() + 1).next_multiple_of(64);
        self.count(len);
        self.0.extend(text.as_bytes());
        self.0.resize(self.0.len() + len - text.len(), 0);
    }

    fn texts(&mut self, texts: &[String]) {
        self.count(texts.len());
        texts.iter().for_each(|text| self.text(text));
    }

    fn build_id(&mut self, is_kernel: bool, path: &[u8], id: &BuildId) {
        self.build_id_of_kind(0, (path.len() + 1).next_multiple_of(64), is_kernel, path, id);
    }

    /// Writes an entry of the table, which has no type, or a stream's record, which has one.
    fn build_id_of_kind(&mut self, kind: u32, path_len: usize, is_kernel: bool, path: &[u8], id: &BuildId) {
        const ID: usize = 24;
        let header_misc = misc::BUILD_ID_SIZE | if is_kernel { misc::KERNEL } else { misc::USER };
        self.halves(&[kind]);
        self.0.extend(header_misc.to_ne_bytes());
        self.0.extend(((8 + 4 + ID + path_len) as u16).to_ne_bytes());
        self.0.extend((-1_i32).to_ne_bytes());
        let bytes = id.as_bytes();
        let mut field = [0; ID];
        field[..bytes.len()].copy_from_slice(bytes);
        field[20] = bytes.len() as u8;
        self.0.extend(field);
        self.0.extend(path);
        self.0.resize(self.0.len() + path_len - path.len(), 0);
    }

    fn events(&mut self, events: &[Event]) {
        self.count(events.len());
        let size = attr_size(events);
        self.halves(&[size]);
        for event in events {
            self.0.extend(event.attr.to_bytes_of(size));
            self.count(event.ids.len());
            self.text(&event.name);
            event.ids.iter().for_each(|id| self.word(*id));
        }
    }

    /// Writes the blocks of memory of each node: a bit for each block.
    fn memory(&mut self, machine: &MachineDescription) {
        const VERSION: u64 = 1;
        let nodes = machine.nodes.iter().filter(|node| !node.blocks.is_empty());
        [VERSION, machine.memory_block, nodes.clone().count() as u64]
            .iter()
            .for_each(|word| self.word(*word));
        for node in nodes {
            let bits = node.blocks.iter().max().map_or(0, |last| *last as usize + 1);
            let mut words = vec![0_u64; bits.div_ceil(64)];
            for block in &node.blocks {
                words[*block as usize / 64] |= 1 << (block % 64);
            }
            // the length twice: of the node, and of the bits
            [node.number.into(), bits as u64, bits as u64].iter().for_each(|word| self.word(*word));
            words.iter().for_each(|word| self.word(*word));
        }
    }

    /// Lists of cores and of threads that are siblings, then core and socket of each CPU, then dies.
    fn topology(&mut self, places: &[(u32, u32)]) {
        self.texts(&siblings(places.iter().map(|(_, socket)| (0, *socket))));
        self.texts(&siblings(places.iter().copied()));
        places.iter().for_each(|(core, socket)| self.halves(&[*core, *socket]));
    }
}

/// Lists of the CPUs that are at the same place.
fn siblings(places: impl Iterator<Item = (u32, u32)>) -> Vec<String> {
    let mut lists: BTreeMap<(u32, u32), Vec<String>> = BTreeMap::new();
    for (cpu, (core, socket)) in places.enumerate() {
        lists.entry((socket, core)).or_default().push(cpu.to_string());
    }
    lists.into_values().map(|cpus| cpus.join(",")).collect()
}
