//! Cache lines that CPUs pass between them: who reads and writes which bytes of them, by type and field.

use super::annotate::is_store;
use super::filter::Filter;
use super::index::{PlaceId, SymbolId};
use super::operand::Outcome;
use super::profile::Profile;
use super::samples::SampleGroup;
use super::shared_memory::{FileId, SharedAddresses};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use tallyline_inference::code::is_stored_back;
use tallyline_perf_data::sample::{DataSource, level, level_number};

/// A report on cache lines that several CPUs or threads access, as `perf c2c` makes it: lines with their fields and
/// accesses.
#[derive(Clone, Debug, Default)]
pub struct Sharing {
    pub(crate) lines: Vec<Line>,
    pub(crate) samples: u64,
    pub(crate) addressed: u64,
    pub(crate) all_lines: u64,
    pub(crate) counts: Counts,
    pub(crate) is_measured: bool,
    pub(crate) by_cpu: bool,
    pub(crate) is_computed: bool,
}

impl Sharing {
    /// Returns the cache lines that several CPUs or threads accessed and at least one wrote, the most contended
    /// first.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Returns the number of samples in the recording that pass the filter.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns the number of samples in the recording that pass the filter and have a data address.
    pub fn addressed(&self) -> u64 {
        self.addressed
    }

    /// Returns the number of distinct cache lines that samples accessed, shared or not.
    pub fn all_lines(&self) -> u64 {
        self.all_lines
    }

    /// Returns the numbers of loads, stores and HITM (hits in another cache's modified line) over all samples with a
    /// data address.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns `true` if the hardware recorded where accesses found their cache lines (data sources); `false` if
    /// transfers of lines between caches are only estimated from the order of accesses.
    pub fn is_measured(&self) -> bool {
        self.is_measured
    }

    /// Returns `true` if the sharing of cache lines was determined between CPUs, `false` if between threads.
    pub fn by_cpu(&self) -> bool {
        self.by_cpu
    }

    /// Returns `true` if addresses of data were computed from registers, as samples of cycles or a clock have none.
    pub fn is_computed(&self) -> bool {
        self.is_computed
    }
}

/// Numbers of sampled memory accesses by kind and by where they found their cache line, as `perf c2c` counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub(crate) records: u64,
    pub(crate) loads: u64,
    pub(crate) stores: u64,
    pub(crate) local_hitm: u64,
    pub(crate) remote_hitm: u64,
    pub(crate) locked: u64,
    pub(crate) weight: u64,
    pub(crate) levels: Levels,
}

impl Counts {
    /// Returns the number of sampled memory accesses.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns the number of sampled memory accesses that read only.
    pub fn loads(&self) -> u64 {
        self.loads
    }

    /// Returns the number of sampled memory accesses that write.
    pub fn stores(&self) -> u64 {
        self.stores
    }

    /// Returns the number of sampled loads that another cache of the same NUMA node served from a modified line
    /// (local HITM).
    pub fn local_hitm(&self) -> u64 {
        self.local_hitm
    }

    /// Returns the number of sampled loads that a cache of another NUMA node served from a modified line (remote
    /// HITM).
    pub fn remote_hitm(&self) -> u64 {
        self.remote_hitm
    }

    /// Returns the number of sampled accesses that were locked (atomic).
    pub fn locked(&self) -> u64 {
        self.locked
    }

    /// Returns the sum of the sampled accesses' weights: latencies in cycles where the hardware measures them.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// Returns the numbers of sampled accesses by the cache level or memory in which they found their line.
    pub fn levels(&self) -> Levels {
        self.levels
    }
}

/// Numbers of sampled loads and stores by the cache level or memory in which they found their line, as `perf c2c`
/// counts them. Loads of lines modified elsewhere (HITM) are not among the hits of last-level and remote caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    pub(crate) fill_buffer: u64,
    pub(crate) l1: u64,
    pub(crate) l2: u64,
    pub(crate) last: u64,
    pub(crate) remote_cache: u64,
    pub(crate) local_memory: u64,
    pub(crate) remote_memory: u64,
    pub(crate) store_hit: u64,
    pub(crate) store_miss: u64,
}

impl Levels {
    /// Returns the number of sampled loads that hit a line already being fetched (line fill buffer).
    pub fn fill_buffer(&self) -> u64 {
        self.fill_buffer
    }

    /// Returns the number of sampled loads that hit the first-level cache.
    pub fn l1(&self) -> u64 {
        self.l1
    }

    /// Returns the number of sampled loads that hit the second-level cache.
    pub fn l2(&self) -> u64 {
        self.l2
    }

    /// Returns the number of sampled loads that hit the last-level cache.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns the number of sampled loads that were served by a cache of another NUMA node.
    pub fn remote_cache(&self) -> u64 {
        self.remote_cache
    }

    /// Returns the number of sampled loads that were served by the memory of the CPU's own NUMA node.
    pub fn local_memory(&self) -> u64 {
        self.local_memory
    }

    /// Returns the number of sampled loads that were served by the memory of another NUMA node.
    pub fn remote_memory(&self) -> u64 {
        self.remote_memory
    }

    /// Returns the number of sampled stores that hit the first-level cache.
    pub fn store_hit(&self) -> u64 {
        self.store_hit
    }

    /// Returns the number of sampled stores that missed the first-level cache.
    pub fn store_miss(&self) -> u64 {
        self.store_miss
    }

    fn count(&mut self, source: DataSource) {
        let level = place(source);
        let is_hit = level & level::HIT != 0;
        if source.is_store() {
            if level & level::L1 != 0 {
                *(if is_hit { &mut self.store_hit } else { &mut self.store_miss }) += 1;
            }
            return;
        }
        if !source.is_load() || !is_hit {
            return;
        }
        const REMOTE_CACHE: u16 = level::REMOTE_CACHE_1 | level::REMOTE_CACHE_2;
        const REMOTE_RAM: u16 = level::REMOTE_RAM_1 | level::REMOTE_RAM_2;
        let hitm = source.is_hitm();
        let found = match () {
            () if level & level::LFB != 0 => &mut self.fill_buffer,
            () if level & level::L1 != 0 => &mut self.l1,
            () if level & level::L2 != 0 => &mut self.l2,
            () if level & level::L3 != 0 && !hitm => &mut self.last,
            () if level & REMOTE_CACHE != 0 && !hitm => &mut self.remote_cache,
            () if level & level::LOCAL_RAM != 0 => &mut self.local_memory,
            () if level & REMOTE_RAM != 0 => &mut self.remote_memory,
            () => return,
        };
        *found += 1;
    }
}

/// Returns the memory level in the older bits: what only the newer number says is put into them.
fn place(source: DataSource) -> u16 {
    let level = source.level();
    if level & !(level::NA | level::HIT | level::MISS) != 0 {
        return level;
    }
    let remote = source.is_remote();
    let place = match source.level_number() {
        level_number::L1 => level::L1,
        level_number::L2 => level::L2,
        level_number::LFB => level::LFB,
        level_number::L3 | level_number::L4 | level_number::ANY_CACHE if remote => level::REMOTE_CACHE_1,
        level_number::L3 | level_number::L4 => level::L3,
        level_number::RAM | level_number::PMEM if remote => level::REMOTE_RAM_1,
        level_number::RAM | level_number::PMEM => level::LOCAL_RAM,
        _ => return level,
    };
    let missed = level & level::MISS;
    place | if missed == 0 { level::HIT } else { missed }
}

impl Counts {
    fn count(&mut self, group: &SampleGroup, store: bool) {
        self.records += 1;
        self.loads += u64::from(!store);
        self.stores += u64::from(store);
        self.weight = self.weight.saturating_add(group.weight.weight());
        if let Some(source) = group.source {
            self.levels.count(source);
            self.locked += u64::from(source.lock() & 2 != 0);
            if source.is_hitm() {
                let sum = if is_remote(source) { &mut self.remote_hitm } else { &mut self.local_hitm };
                *sum += 1;
            }
        }
    }

    /// Returns the number of sampled loads that another cache served from a modified line: local plus remote HITM.
    pub fn hitm(&self) -> u64 {
        self.local_hitm + self.remote_hitm
    }
}

fn is_remote(source: DataSource) -> bool {
    const REMOTE: u16 =
        level::REMOTE_CACHE_1 | level::REMOTE_CACHE_2 | level::REMOTE_RAM_1 | level::REMOTE_RAM_2;
    source.is_remote() || source.level() & REMOTE != 0
}

/// A cache line that several CPUs or threads access in the samples, with numbers of these accesses and the fields on
/// it.
#[derive(Clone, Debug, Default)]
pub struct Line {
    pub(crate) address: u64,
    pub(crate) pid: i32,
    pub(crate) counts: Counts,
    pub(crate) transfers: u64,
    pub(crate) is_true: bool,
    pub(crate) is_false: bool,
    pub(crate) actors: BTreeSet<i64>,
    pub(crate) nodes: BTreeSet<u32>,
    pub(crate) parts: Vec<Part>,
}

impl Line {
    /// Returns the address of the cache line's first byte: physical if samples have physical addresses, else
    /// virtual.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the id of the process in whose address space the cache line's address is; 0 for a physical or a kernel
    /// address. Of memory that processes share (`MAP_SHARED`), it is the first one that accessed the line.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns the numbers of sampled loads, stores and HITM (hits in another cache's modified line) on the cache line.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns an estimate of how often the cache line moved between caches: the number of consecutive sampled accesses
    /// by different CPUs or threads of which at least one writes. Where addresses were computed, a thread's first
    /// access does not count.
    pub fn transfers(&self) -> u64 {
        self.transfers
    }

    /// Returns `true` if a byte of the cache line that one CPU or thread wrote was accessed by another (true sharing).
    pub fn is_true(&self) -> bool {
        self.is_true
    }

    /// Returns `true` if one CPU or thread wrote bytes of the cache line and another accessed other bytes (false
    /// sharing).
    pub fn is_false(&self) -> bool {
        self.is_false
    }

    /// Returns the CPUs (or threads, see [`Sharing::by_cpu`]) that accessed the cache line in a sample.
    pub fn actors(&self) -> &BTreeSet<i64> {
        &self.actors
    }

    /// Returns the NUMA nodes whose CPUs accessed the cache line in a sample; empty if the recording has no nodes.
    pub fn nodes(&self) -> &BTreeSet<u32> {
        &self.nodes
    }

    /// Returns the accessed fields on the cache line, by offset in the line.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
}

/// A field (or other accessed bytes) on a shared cache line, with numbers of its sampled accesses and who made them.
#[derive(Clone, Debug, Default)]
pub struct Part {
    pub(crate) offset: u32,
    pub(crate) what: String,
    pub(crate) functions: BTreeSet<SymbolId>,
    pub(crate) counts: Counts,
    pub(crate) readers: BTreeSet<i64>,
    pub(crate) writers: BTreeSet<i64>,
    pub(crate) cpus: BTreeSet<u32>,
    pub(crate) nodes: BTreeSet<u32>,
}

impl Part {
    /// Returns the offset, in bytes, of the field in the shared cache line.
    pub fn offset(&self) -> u32 {
        self.offset
    }

    /// Returns the type and field to which these bytes of a shared cache line belong, as text, or the reason why they
    /// are unknown.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns the functions whose code accessed the field on the cache line in a sample.
    pub fn functions(&self) -> &BTreeSet<SymbolId> {
        &self.functions
    }

    /// Returns the numbers of sampled loads, stores and HITM (hits in another cache's modified line) on the field.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the CPUs (or threads, see [`Sharing::by_cpu`]) that read the field on the cache line in a sample.
    pub fn readers(&self) -> &BTreeSet<i64> {
        &self.readers
    }

    /// Returns the CPUs (or threads, see [`Sharing::by_cpu`]) that wrote the field on the cache line in a sample.
    pub fn writers(&self) -> &BTreeSet<i64> {
        &self.writers
    }

    /// Returns the CPUs that accessed the field on the cache line in a sample.
    pub fn cpus(&self) -> &BTreeSet<u32> {
        &self.cpus
    }

    /// Returns the NUMA nodes of the CPUs that accessed the field on the cache line in a sample.
    pub fn nodes(&self) -> &BTreeSet<u32> {
        &self.nodes
    }
}

/// The bytes of a line that one CPU or thread read and wrote, a bit for each, or for several in lines over 128.
#[derive(Clone, Copy, Default)]
struct Bytes {
    read: u128,
    written: u128,
}

/// A line under construction.
#[derive(Default)]
struct Building {
    /// `true` if the first access of each CPU or thread is no transfer.
    needs_return: bool,
    line: Line,
    bytes: BTreeMap<i64, Bytes>,
    parts: FxHashMap<(u32, String), Part>,
    last: Option<(i64, bool)>,
}

/// Finds the cache lines that several CPUs or threads access in the samples that pass the filter. The profile's
/// samples must be single ones in time order ([`Needs::SAMPLES`](crate::keys::Needs::SAMPLES)).
pub fn sharing(profile: &Profile, filter: &Filter) -> Sharing {
    find(profile, filter, false)
}

/// Finds the cache lines that several threads access in samples of cycles or a clock that pass the filter. Addresses
/// are those that registers tell ([`Needs::ADDRESSES`](crate::keys::Needs::ADDRESSES)); a sample on the load of an
/// update, which waits for the line, counts as a write. Threads that use memory one after the other, as stacks of
/// threads that ended are used, share nothing.
pub fn sharing_by_registers(profile: &Profile, filter: &Filter) -> Sharing {
    find(profile, filter, true)
}

fn find(profile: &Profile, filter: &Filter, is_computed: bool) -> Sharing {
    let groups = || profile.groups().iter().filter(|group| filter.accepts(profile, group));
    let mut updates: FxHashMap<PlaceId, bool> = FxHashMap::default();
    let mut found = Sharing {
        is_measured: groups().any(|group| group.source.is_some_and(|source| source.snoop() & !1 != 0)),
        // a thread that moved to another CPU, as many do in a second of samples, shares nothing with itself
        by_cpu: !is_computed && groups().all(|group| group.cpu.is_some()),
        is_computed,
        ..Sharing::default()
    };
    let size = u64::from(profile.info().line_size);
    let mut shared = profile.samples.shared.resolver();
    let mut lines: FxHashMap<(Space, u64), Building> = FxHashMap::default();
    for group in groups() {
        found.samples += 1;
        if group.address == 0 {
            continue;
        }
        found.addressed += 1;
        let outcome = profile.outcome(group);
        let (mut store, width) = access(group, outcome);
        if is_computed && !store {
            store = *updates.entry(group.charged).or_insert_with(|| is_update(profile, group));
        }
        found.counts.count(group, store);
        let (space, address) = space(group, &mut shared);
        let offset = (address % size) as u32;
        let building = lines.entry((space, address - u64::from(offset))).or_insert_with(|| {
            // pages are aligned in files, too: the address in one process stands for those in all
            let (pid, address) = match space {
                Space::Machine => (0, address),
                Space::Process(_) | Space::File(_) => (group.pid, group.address),
            };
            let line = Line { pid, address: address - u64::from(offset), ..Line::default() };
            Building { needs_return: is_computed, line, ..Building::default() }
        });
        let cpu = group.cpu.filter(|_| found.by_cpu);
        let actor = cpu.map_or(i64::from(group.tid), i64::from);
        building.count(profile, group, outcome, actor, store, (offset, width));
    }
    found.all_lines = lines.len() as u64;
    found.lines = lines.into_values().filter_map(Building::finish).collect();
    let rank = |line: &Line| (line.counts.hitm(), line.transfers, line.counts.records);
    found.lines.sort_by(|a, b| rank(b).cmp(&rank(a)).then(a.address.cmp(&b.address)));
    found
}

/// Returns `true` if a sampled access writes, and its size in bytes, 1 where that is not known.
fn access(group: &SampleGroup, outcome: &Outcome) -> (bool, u32) {
    match outcome.operand() {
        Some(operand) => (is_store(group, operand), u32::from(operand.size).max(1)),
        None => (group.source.is_some_and(DataSource::is_store), 1),
    }
}

/// Returns `true` if the memory that a sample's instruction accesses is also written: by the instruction itself, or by
/// a store behind it that updates the operand.
fn is_update(profile: &Profile, group: &SampleGroup) -> bool {
    let program = profile.place(group.charged).dso.and_then(|dso| profile.program(dso));
    program.is_some_and(|program| is_stored_back(program.image(), profile.at(group.charged).address))
}

/// The space that an address of data is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Space {
    /// The machine: physical addresses, and those of the kernel.
    Machine,
    /// The private memory of a process.
    Process(i32),
    /// A file that processes share the memory of: addresses are offsets in it.
    File(FileId),
}

/// Returns the space of a sample's address of data, and the address there.
fn space(group: &SampleGroup, shared: &mut SharedAddresses<'_>) -> (Space, u64) {
    let is_kernels = group.address >> 63 != 0;
    match group.physical_address {
        0 if is_kernels => (Space::Machine, group.address),
        0 => match shared.resolve(group.time, group.pid, group.address) {
            Some((file, offset)) => (Space::File(file), offset),
            None => (Space::Process(group.pid), group.address),
        },
        physical => (Space::Machine, physical),
    }
}

impl Building {
    fn count(
        &mut self,
        profile: &Profile,
        group: &SampleGroup,
        outcome: &Outcome,
        actor: i64,
        store: bool,
        (offset, width): (u32, u32),
    ) {
        self.line.counts.count(group, store);
        self.line.actors.insert(actor);
        let node = group.cpu.and_then(|cpu| profile.info().node(cpu));
        self.line.nodes.extend(node);
        let counts = !self.needs_return || self.bytes.contains_key(&actor);
        if let Some((before, stored)) = self.last.replace((actor, store)) {
            self.line.transfers += u64::from(counts && before != actor && (stored || store));
        }
        let bytes = self.bytes.entry(actor).or_default();
        let touched = mask(offset, width, profile.info().line_size);
        *(if store { &mut bytes.written } else { &mut bytes.read }) |= touched;
        let what = match outcome {
            Outcome::Typed(operand) => profile.text(operand.text).to_owned(),
            Outcome::Pseudo(pseudo) => pseudo.name().to_owned(),
            Outcome::Untyped(reason) => format!("(unknown: {})", reason.text(|name| profile.text(name))),
        };
        let part = self.parts.entry((offset, what)).or_default();
        part.counts.count(group, store);
        part.cpus.extend(group.cpu);
        part.nodes.extend(node);
        part.functions.extend(profile.at(group.charged).symbol);
        (if store { &mut part.writers } else { &mut part.readers }).insert(actor);
    }

    /// Returns the line, if it is shared.
    fn finish(mut self) -> Option<Line> {
        self.classify();
        let is_used_in_turn = self.needs_return && self.line.transfers == 0;
        let is_read = self.line.counts.stores == 0 && self.line.counts.hitm() == 0;
        if self.line.actors.len() < 2 || is_read || is_used_in_turn {
            return None;
        }
        let parts = self.parts.into_iter().map(|((offset, what), part)| Part { offset, what, ..part });
        let mut parts: Vec<Part> = parts.collect();
        parts.sort_by(|a, b| a.offset.cmp(&b.offset).then_with(|| a.what.cmp(&b.what)));
        Some(Line { parts, ..self.line })
    }

    fn classify(&mut self) {
        // what each byte's others do: pairs are few, as a machine has few CPUs
        for (writer, own) in &self.bytes {
            for (_, other) in self.bytes.iter().filter(|(actor, _)| *actor != writer) {
                let touched = other.read | other.written;
                self.line.is_true |= own.written & touched != 0;
                self.line.is_false |= own.written != 0 && touched & !own.written != 0;
            }
        }
    }
}

/// Returns the bytes of an access that are on the line that it starts on.
fn mask(offset: u32, width: u32, line_size: u32) -> u128 {
    let grain = (line_size / 128).max(1);
    let (first, last) = (offset / grain, offset.saturating_add(width - 1).min(line_size - 1) / grain);
    let upto = |bit: u32| if bit >= 127 { u128::MAX } else { (1 << (bit + 1)) - 1 };
    upto(last) & !(upto(first) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_covers_its_bytes_and_ends_with_the_line() {
        assert_eq!(mask(0, 1, 64), 1);
        assert_eq!(mask(8, 4, 64), 0xf00);
        assert_eq!(mask(60, 8, 64), 0xf << 60);
        assert_eq!(mask(127, 1, 128), 1 << 127);
        assert_eq!(mask(254, 2, 256), 1 << 127);
    }
}
