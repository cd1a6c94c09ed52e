//! From a recording to [`LoadedSamples`]: addresses become places in files, as of the time of each sample.

use super::ahead::{EagerAnalysis, First};
use super::data_locations::DataCollector;
use super::evidence::has_registers;
use super::group_reads::GroupReads;
use super::index::PlaceId;
use super::info::{EventInfo, RecordingInfo};
use super::keys::Needs;
use super::last_branches::{LastBranch, LastBranches};
use super::names::{NameId, Names};
use super::places::{Place, PlaceCollector, place_of};
use super::profile::Profile;
use super::programs::Programs;
use super::registers::SampleRegisters;
use super::returns::ReturnAddresses;
use super::samples::{LoadedSamples, MergeGranularity, SampleGroup, Samples};
use super::shared_memory::SharedMemory;
use super::unwind::{Unwinder, has_stacks, of_sample};
use rustc_hash::FxHashMap;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU32;
use tallyline_perf_data::abi::{read_format, sample as bit};
use tallyline_perf_data::file::{
    ChunkedRecording, Event, Record, RecordBody, RecordSource, Recording, VisitedRecord,
};
use tallyline_perf_data::names::{BREAKPOINT, SOFTWARE, TRACEPOINT};
use tallyline_perf_data::sample::{CpuMode, DataSource, Sample, Weight};
use tallyline_perf_data::spaces::{AddressSpaces, DsoId};
use tallyline_perf_data::{Attr, Error};

/// The name of the event of accesses in hardware traces, as in perf.
const MEMORY: &str = "memory";

/// The line size where the recording does not say one.
const LINE_SIZE: u32 = 64;

/// The number of samples above which their indices would not fit.
const SAMPLES_LIMIT: usize = u32::MAX as usize;

/// The number of samples that room is reserved for at the start.
const SAMPLES_EXPECTED: usize = 1 << 16;

impl LoadedSamples {
    /// Reads all samples of a recording in memory and merges equal ones, except for what `apart` keeps apart.
    ///
    /// # Errors
    /// Damaged records.
    pub fn load(recording: &Recording<'_>, apart: MergeGranularity) -> Result<LoadedSamples, Error> {
        Ok(read(recording, apart, None, None)?.unwrap_or_default())
    }

    /// Reads all samples of a recording from its file in chunks and merges equal ones, except for what `apart`
    /// keeps apart. `None` if the file has to be read as a whole with [`load`](Self::load).
    ///
    /// # Errors
    /// Damaged records.
    pub fn load_pieces(
        pieces: &ChunkedRecording<'_>,
        apart: MergeGranularity,
    ) -> Result<Option<LoadedSamples>, Error> {
        read(pieces, apart, None, None)
    }

    /// Returns the sampled events (such as `cycles`), the machine and the defects of the recording.
    pub fn info(&self) -> &RecordingInfo {
        &self.samples.info
    }

    /// Returns the recording's samples in groups of those that are equal in all that reports distinguish; in time order
    /// if each sample is a group of its own.
    pub fn groups(&self) -> &[SampleGroup] {
        &self.samples.groups
    }

    /// Returns the code place (mapped file and offset) with an id.
    pub fn place(&self, id: PlaceId) -> &Place {
        self.samples.places.get(id)
    }

    /// Returns the string with an id that the samples refer to, such as a thread's name.
    pub fn text(&self, name: NameId) -> &str {
        self.samples.names.get(name)
    }

    /// Returns the base name of a file in the recording, as perf shows it; `[unknown]` without one.
    pub fn dso_name(&self, id: Option<DsoId>) -> &str {
        self.samples.dso_name(id)
    }
}

impl Profile {
    /// Builds a profile from a recording: reads the samples, opens the programs, and looks up what `needs` says
    /// (symbols, lines, types, …). With `correct_skid`, samples of imprecise events are charged to the instruction that
    /// caused them. `None` if the recording has to be read as a whole.
    ///
    /// # Errors
    /// Damaged records.
    pub fn load(
        records: &dyn RecordSource,
        programs: &dyn Programs,
        needs: Needs,
        correct_skid: bool,
    ) -> Result<Option<Profile>, Error> {
        let has_stacks = records.recording().events().iter().any(|event| has_stacks(event.attr()));
        let (unwind, needs) = match needs.callers && has_stacks {
            // those of one instruction have different callers
            true => (Some(programs), needs.and(Needs::SAMPLES)),
            false => (None, needs),
        };
        if !needs.types {
            let Some(loaded) = read(records, needs.apart, None, unwind)? else { return Ok(None) };
            return Ok(Some(loaded.resolve(records, programs, needs, correct_skid, None)));
        }
        std::thread::scope(|scope| {
            let mut ahead = EagerAnalysis::new(scope, programs);
            let Some(loaded) = read(records, needs.apart, Some(&mut ahead), unwind)? else {
                return Ok(None);
            };
            Ok(Some(loaded.resolve(records, programs, needs, correct_skid, Some(&mut ahead))))
        })
    }
}

/// Reads records once, in the order of the file, and puts samples in that of time: address spaces are
/// those of the time of each.
fn read(
    records: &dyn RecordSource,
    apart: MergeGranularity,
    mut ahead: Option<&mut EagerAnalysis<'_, '_>>,
    unwind: Option<&dyn Programs>,
) -> Result<Option<LoadedSamples>, Error> {
    let about = records.recording();
    // room that is not used takes no memory; growing would
    let list = Vec::with_capacity(SAMPLES_EXPECTED);
    let mut samples = SampleReader { info: described(about), apart, list, ..SampleReader::default() };
    samples.registers = super::evidence::needed(&samples.info.arch);
    let mut first = ahead.is_some().then(|| First::new(AddressSpaces::new(about)));
    let mut reads = GroupReads::new(about.events());
    let (mut damage, mut branch_stacks) = (Damage::default(), 0_u64);
    let is_complete = records.visit(&mut |position, seen| match seen {
        VisitedRecord::Sample(event, sample) => {
            branch_stacks += u64::from(sample.branches.is_some_and(|branches| !branches.is_empty()));
            if let Some(first) = first.take_if(|first| first.add(sample))
                && let Some(ahead) = &mut ahead
            {
                ahead.begin(&first);
            }
            let counted = about.events().get(event).and_then(|event| reads.split(event, sample));
            let Some(counted) = counted else { return samples.add(position, event, sample, about.events()) };
            counted.iter().try_for_each(|(event, period)| {
                let sample = Sample { period: Some(*period), ..sample.clone() };
                samples.add(position, *event, &sample, about.events())
            })
        }
        VisitedRecord::Access(sample) => {
            let event = samples.memory_event(about.events().len());
            samples.add(position, event, sample, about.events())
        }
        VisitedRecord::Traces(tally) => {
            samples.info.warnings.extend(tally.notes());
            samples.info.traces = *tally;
            Ok(())
        }
        VisitedRecord::Other(record) => {
            // where that fails it is said in its place
            let _ = first.take_if(|first| first.spaces().apply(record.body()).is_err());
            samples.note(position, record);
            Ok(())
        }
        VisitedRecord::Damaged(error) => {
            damage.note(error);
            Ok(())
        }
    })?;
    if !is_complete {
        return Ok(None);
    }
    samples.info.is_damaged |= damage.records > 0;
    samples.info.warnings.extend(damage.warning());
    if branch_stacks > 0 {
        samples.info.warnings.push(format!(
            "{branch_stacks} samples have branch stacks, which say which way samples at joins came, and are not \
             shown: rows are of the sampled instructions; `perf report -b` and `perf script -F brstack` show the branches"
        ));
    }
    let counts = |attr: &Attr| attr.read_format & read_format::LOST != 0;
    samples.info.lost = samples.lost.total(about.events().iter().any(|event| counts(event.attr())));
    samples.place(records, unwind).map(Some)
}

/// Damaged records, which are left out.
#[derive(Debug, Default)]
struct Damage {
    records: u64,
    first: String,
}

impl Damage {
    fn note(&mut self, error: &Error) {
        if self.records == 0 {
            self.first = error.to_string();
        }
        self.records += 1;
    }

    fn warning(&self) -> Option<String> {
        match self.records {
            0 => None,
            1 => Some(format!("{}; this record is left out", self.first)),
            count => {
                Some(format!("{}; this and {} other damaged records are left out", self.first, count - 1))
            }
        }
    }
}

/// The lost samples, as two kinds of records count them.
#[derive(Debug, Default)]
struct Losses {
    /// In between, where a ring was full.
    records: u64,
    /// By the hardware; and in all, at the end, where events count what they lost.
    samples: u64,
}

impl Losses {
    /// Returns each lost sample once: events that count what they lost count those of full rings, too.
    fn total(&self, is_counted: bool) -> u64 {
        // the end is missing where the recorder was killed
        if is_counted { self.samples.max(self.records) } else { self.samples.saturating_add(self.records) }
    }
}

/// Returns what a recording says besides samples.
fn described(recording: &Recording<'_>) -> RecordingInfo {
    let features = recording.features();
    let events = recording.events().iter().map(|event| {
        let has = |field: u64| event.attr().sample_type & field != 0;
        EventInfo {
            name: event.name().to_owned(),
            is_precise: is_precise(event.attr(), features.arch(), features.pmus()),
            is_counter: is_counter(event.attr()),
            has_weight: has(bit::WEIGHT) || has(bit::WEIGHT_STRUCT),
            has_source: has(bit::DATA_SRC),
        }
    });
    RecordingInfo {
        events: events.collect(),
        sockets: features.topology().iter().map(|(_, socket)| *socket).collect(),
        nodes: features.nodes().to_vec(),
        line_size: features.line_size().filter(|size| size.is_power_of_two()).unwrap_or(LINE_SIZE),
        arch: features.arch().unwrap_or_default().to_owned(),
        cpu_id: features.cpu_id().map(str::to_owned),
        is_emulated: is_emulated(recording),
        warnings: recording.warnings().to_vec(),
        is_damaged: !recording.warnings().is_empty(),
        ..RecordingInfo::default()
    }
}

/// Returns `true` if samples of an event have the address of the instruction that caused it, or no instruction did.
fn is_precise(attr: &Attr, arch: Option<&str>, pmus: &[(u32, String)]) -> bool {
    let pmu = pmus.iter().find(|(kind, _)| *kind == attr.kind);
    let arch = arch.unwrap_or_default();
    attr.has_exact_ip(arch, pmu.map_or("", |(_, name)| name))
}

/// Returns `true` if an event is a counter of the hardware.
fn is_counter(attr: &Attr) -> bool {
    !matches!(attr.kind, SOFTWARE | TRACEPOINT | BREAKPOINT)
}

/// Returns `true` if the recorded machine was emulated, by the name of its CPU's model.
fn is_emulated(recording: &Recording<'_>) -> bool {
    let model = recording.features().cpu_description().unwrap_or_default();
    model.contains("QEMU") || model.contains("TCG")
}

/// Samples in the order of the file, of which it is not known yet where they were.
#[derive(Default)]
struct SampleReader {
    info: RecordingInfo,
    apart: MergeGranularity,
    list: Vec<PackedSample>,
    // the return address of each sample that may have one; empty where none has
    returns: Vec<u64>,
    branches: LastBranches,
    same: Vec<SampleKey>,
    same_ids: FxHashMap<SampleKey, u32>,
    // whether that is not the order of time
    is_disordered: bool,
    extras: Vec<MemoryInfo>,
    // whether the last of them is of a sample with nothing but an address
    is_last_plain: bool,
    // what changes address spaces: when, how many samples come before it in the file, its position
    changes: Vec<(u64, usize, u64)>,
    // which registers have to be there
    registers: Option<u64>,
    // addresses that functions return to
    callers: Vec<(CpuMode, u64)>,
    caller_ids: FxHashMap<(CpuMode, u64), NonZeroU32>,
    lost: Losses,
}

/// The part of a sample that it shares with no other.
#[derive(Clone, Copy)]
struct PackedSample {
    time: u64,
    period: u64,
    // of the record with its registers
    position: u64,
    // an index, as what samples have in common is mostly there already
    same: u32,
}

/// The part that is equal in samples that merge, as long as nothing is mapped.
#[derive(Clone, Copy, PartialEq, Eq)]
struct SampleKey {
    ip: u64,
    pid: i32,
    tid: i32,
    cpu: Option<u32>,
    event: u32,
    // these are indices
    caller: Option<NonZeroU32>,
    extra: u32,
    mode: CpuMode,
    exact: bool,
    has_registers: bool,
    has_stack: bool,
}

impl Hash for SampleKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let pair = |one: u32, other: u32| u64::from(one) << 32 | u64::from(other);
        // what differs among samples, in few words: there is one of these for each sample
        state.write_u64(self.ip);
        state.write_u64(pair(self.pid.cast_unsigned(), self.tid.cast_unsigned()));
        state.write_u64(pair(self.event, self.extra));
        state.write_u64(pair(self.cpu.unwrap_or(0), self.caller.map_or(0, NonZeroU32::get)));
    }
}

/// The memory access of a sample, for events that record it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct MemoryInfo {
    address: Option<u64>,
    physical_address: u64,
    weight: Weight,
    source: Option<DataSource>,
    data_page_size: u64,
    code_page_size: u64,
}

impl MemoryInfo {
    fn of(sample: &Sample<'_>) -> MemoryInfo {
        MemoryInfo {
            address: sample.addr,
            physical_address: sample.physical_address.unwrap_or(0),
            weight: sample.weight.unwrap_or_default(),
            source: sample.data_source,
            data_page_size: sample.data_page_size.unwrap_or(0),
            code_page_size: sample.code_page_size.unwrap_or(0),
        }
    }

    /// Returns `true` if a sample has no field of a [`MemoryInfo`] but, perhaps, an address.
    fn is_address_alone(sample: &Sample<'_>) -> bool {
        sample.physical_address.is_none()
            && sample.weight.is_none()
            && sample.data_source.is_none()
            && sample.data_page_size.is_none()
            && sample.code_page_size.is_none()
    }
}

/// The lookups that hold until something is mapped or renamed: samples of one loop come by the thousand.
#[derive(Default)]
struct Known {
    generation: u32,
    // places of code by process and address
    places: FxHashMap<(i32, CpuMode, u64), (u32, PlaceId)>,
    // names by thread
    comms: FxHashMap<i32, (u32, NameId)>,
    // groups that more samples may be part of, by what those have in common
    groups: Vec<Option<(u32, u32)>>,
}

impl Known {
    fn may_have_changed(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }
}

/// Returns the time that counts: all ones is perf's mark for none, and what has none comes first.
fn time_of(time: Option<u64>) -> u64 {
    time.filter(|time| *time != u64::MAX).unwrap_or(0)
}

impl SampleReader {
    /// Returns the event of the accesses in hardware traces, which follows those of the recording.
    fn memory_event(&mut self, index: usize) -> usize {
        if self.info.events.len() == index {
            self.info.events.push(EventInfo {
                name: MEMORY.to_owned(),
                is_precise: true,
                is_counter: false,
                has_weight: true,
                has_source: true,
            });
        }
        index
    }

    fn add(
        &mut self,
        position: u64,
        event: usize,
        sample: &Sample<'_>,
        events: &[Event],
    ) -> Result<(), Error> {
        let period = sample.period.unwrap_or_else(|| match events.get(event).map(|event| event.attr()) {
            Some(attr) if !attr.is_frequency() => attr.sample_period,
            _ => 1,
        });
        if self.list.len() >= SAMPLES_LIMIT {
            return Err(Error::Limit { what: "samples", limit: SAMPLES_LIMIT as u64 });
        }
        let time = time_of(sample.time);
        let known = self.extras.len();
        let same = self.same(event, sample);
        // what comes with an address or a latency of its own is found nowhere else
        let is_new = known > 0 && self.extras.len() > known;
        let next = self.same.len() as u32;
        let same_id = if is_new { next } else { *self.same_ids.entry(same).or_insert(next) };
        if same_id == next {
            self.same.push(same);
        }
        self.is_disordered |= self.list.last().is_some_and(|last| last.time > time);
        if let Some(address) = self.return_address(event, sample) {
            self.returns.resize(self.list.len(), 0);
            self.returns.push(address);
        }
        if sample.branches.is_some()
            && !self.is_precise(event, sample)
            && let Some(last) = events.get(event).and_then(|event| LastBranch::of(sample, event.attr()))
        {
            self.branches.push(self.list.len(), last);
        }
        self.list.push(PackedSample { time, period, position, same: same_id });
        Ok(())
    }

    /// Returns the return address, if the sample is at a function's first instruction and not precise.
    fn return_address(&self, event: usize, sample: &Sample<'_>) -> Option<u64> {
        if self.is_precise(event, sample) { None } else { sample.return_address(&self.info.arch) }
    }

    fn is_precise(&self, event: usize, sample: &Sample<'_>) -> bool {
        sample.exact || self.info.events.get(event).is_none_or(|event| event.is_precise)
    }

    fn note(&mut self, position: u64, record: &Record<'_>) {
        match record.body() {
            RecordBody::Mmap(_) | RecordBody::Comm(_) | RecordBody::Fork(_) | RecordBody::KernelSymbol(_) => {
                self.changes.push((time_of(record.time()), self.list.len(), position));
            }
            RecordBody::UnknownEvent(_) => self.info.unknown_events += 1,
            RecordBody::Lost(count) => self.lost.records = self.lost.records.saturating_add(*count),
            RecordBody::LostSamples(count) => self.lost.samples = self.lost.samples.saturating_add(*count),
            _ => {}
        }
    }

    fn same(&mut self, event: usize, sample: &Sample<'_>) -> SampleKey {
        // most recordings have nothing of it, or an address alone that is the same in all
        let is_plain = MemoryInfo::is_address_alone(sample);
        let is_same_address = || self.extras.last().is_some_and(|last| last.address == sample.addr);
        if !(is_plain && self.is_last_plain && is_same_address()) {
            let extra = MemoryInfo::of(sample);
            if self.extras.last() != Some(&extra) {
                self.extras.push(extra);
            }
            self.is_last_plain = is_plain;
        }
        // the first entry is the address of the sample itself
        let caller = sample.callers().nth(1).map(|(mode, address)| {
            let caller = (mode, address.saturating_sub(1));
            *self.caller_ids.entry(caller).or_insert_with(|| {
                self.callers.push(caller);
                // there are at most as many as samples
                NonZeroU32::new(self.callers.len() as u32).unwrap_or(NonZeroU32::MAX)
            })
        });
        SampleKey {
            ip: sample.ip.unwrap_or(0),
            pid: sample.pid.unwrap_or(-1),
            tid: sample.tid.unwrap_or(-1),
            cpu: sample.cpu.filter(|_| self.apart != MergeGranularity::None),
            event: event as u32,
            caller,
            extra: (self.extras.len() - 1) as u32,
            mode: sample.mode,
            exact: sample.exact,
            has_registers: has_registers(sample, self.registers),
            has_stack: of_sample(sample).is_some(),
        }
    }

    /// Returns the samples in an order in which each comes after what has changed before it: of time, if they
    /// are kept apart; or else those between two changes as they are in the file. `changes` are in the order
    /// of time.
    fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..).take(self.list.len()).collect();
        if !self.is_disordered {
            return order;
        }
        if self.apart >= MergeGranularity::Samples {
            // a stable sort: what was written first stays first
            order.sort_by_key(|index| self.list[*index as usize].time);
            return order;
        }
        // how many changes come before a sample: mostly as many as before the last one
        let mut last = 0;
        let mut changes_before = |(index, sample): (usize, &PackedSample)| {
            let is_before = |change: &(u64, usize, u64)| (change.0, change.1) <= (sample.time, index);
            let is_same = self.changes.get(last).is_none_or(|next| !is_before(next))
                && last.checked_sub(1).is_none_or(|known| is_before(&self.changes[known]));
            if !is_same {
                last = self.changes.partition_point(is_before);
            }
            last
        };
        // where in the order those start that come after so many
        let mut starts = vec![0_u32; self.changes.len() + 1];
        self.list.iter().enumerate().for_each(|sample| starts[changes_before(sample)] += 1);
        let mut next = 0;
        for start in &mut starts {
            next += std::mem::replace(start, next);
        }
        for (index, sample) in self.list.iter().enumerate() {
            let start = &mut starts[changes_before((index, sample))];
            order[*start as usize] = index as u32;
            *start += 1;
        }
        order
    }

    /// Finds the places of all samples in the order of time.
    fn place(
        mut self,
        records: &dyn RecordSource,
        unwind: Option<&dyn Programs>,
    ) -> Result<LoadedSamples, Error> {
        self.changes.sort_by_key(|(time, ..)| *time);
        let order = self.order();
        let SampleReader { info, apart, list, returns, branches, same, extras, changes, callers, .. } = self;
        let known = Known { groups: vec![None; same.len()], ..Known::default() };
        let same_has_registers = same.iter().any(|same| same.has_registers);
        let mut loader = Loader {
            groups: Vec::new(),
            places: PlaceCollector::default(),
            data: DataCollector::default(),
            registers: SampleRegisters::default(),
            names: Names::default(),
            not_unwound: 0,
            apart,
            same,
            extras,
            callers,
            known,
            unwinder: unwind.map(|programs| Unwinder::new(programs, records)),
            returns: ReturnAddresses::new(returns),
            branches,
        };
        loader.registers.reserve(if same_has_registers { list.len() } else { 0 });
        let mut spaces = AddressSpaces::new(records.recording());
        let mut shared = SharedMemory::default();
        let (mut samples, mut next) = (order.iter().peekable(), changes.iter());
        let mut positions = changes.iter().map(|(.., position)| *position);
        records.visit_at(&mut positions, &mut |record| {
            let Some((time, before, _)) = next.next() else { return Ok(()) };
            let is_earlier =
                |index: &&u32| (list[**index as usize].time, **index as usize) < (*time, *before);
            while let Some(index) = samples.next_if(is_earlier) {
                loader.add(*index, &list[*index as usize], &spaces);
            }
            spaces.apply(record.body())?;
            shared.note(*time, record.body());
            loader.known.may_have_changed();
            Ok(())
        })?;
        samples.for_each(|index| loader.add(*index, &list[*index as usize], &spaces));
        let Loader { groups, places, data, registers, names, not_unwound, returns, branches, .. } = loader;
        let samples = Samples {
            info: RecordingInfo { not_unwound, ..info },
            groups,
            places: places.finish(),
            data: data.finish(),
            registers,
            shared,
            dsos: spaces.dsos().map(|(_, dso)| dso.clone()).collect(),
            names,
        };
        Ok(LoadedSamples { samples, returns: returns.finish(), branches: branches.finish() })
    }
}

/// Merges samples into groups, in the order of time.
struct Loader<'u> {
    groups: Vec<SampleGroup>,
    places: PlaceCollector,
    data: DataCollector,
    registers: SampleRegisters,
    names: Names,
    not_unwound: u64,
    apart: MergeGranularity,
    same: Vec<SampleKey>,
    extras: Vec<MemoryInfo>,
    callers: Vec<(CpuMode, u64)>,
    known: Known,
    // where copies of the stack say who called
    unwinder: Option<Unwinder<'u>>,
    returns: ReturnAddresses,
    branches: LastBranches,
}

impl Loader<'_> {
    fn add(&mut self, index: u32, sample: &PackedSample, spaces: &AddressSpaces) {
        let same = self.same[sample.same as usize];
        let point = match self.known.groups[sample.same as usize] {
            Some((generation, point)) if generation == self.known.generation => {
                let known = &mut self.groups[point as usize];
                known.samples += 1;
                known.period = known.period.saturating_add(sample.period);
                point
            }
            _ => {
                let point = self.point(sample, &same, spaces);
                self.groups.push(point);
                let index = (self.groups.len() - 1) as u32;
                if self.apart < MergeGranularity::Samples {
                    self.known.groups[sample.same as usize] = Some((self.known.generation, index));
                }
                index
            }
        };
        let process = (same.pid, self.known.generation);
        self.returns.note(index, point, process, spaces, &mut self.places);
        self.branches.count(index, self.groups[point as usize].place);
        if same.has_registers {
            let registers = self.registers.note(point, sample.position);
            let known = &mut self.groups[point as usize];
            known.registers = known.registers.or(registers);
        }
    }

    fn point(&mut self, sample: &PackedSample, same: &SampleKey, spaces: &AddressSpaces) -> SampleGroup {
        let SampleKey { ip, pid, tid, mode, cpu, event, exact, .. } = *same;
        let extra = self.extras.get(same.extra as usize).copied().unwrap_or_default();
        let place = self.place(spaces, pid, mode, ip);
        let caller = same.caller.and_then(|caller| self.callers.get(caller.get() as usize - 1).copied());
        let caller = match caller {
            Some((mode, address)) => Some(self.place(spaces, pid, mode, address)),
            None if same.has_stack => self.unwind(sample, same, spaces),
            None => None,
        };
        let data = extra.address.and_then(|address| {
            let location = spaces.resolve_data(pid, mode, address);
            // who accessed it makes no other place of it
            let place = place_of(spaces, location, pid, mode, address);
            self.data.intern(Place { pid: None, ..place }, address)
        });
        SampleGroup {
            event,
            samples: 1,
            pid,
            tid,
            comm: self.comm(spaces, tid),
            cpu,
            exact,
            mode,
            ip,
            place,
            charged: place,
            caller,
            time: sample.time,
            period: sample.period,
            address: extra.address.unwrap_or(0),
            data,
            registers: None,
            physical_address: extra.physical_address,
            weight: extra.weight,
            source: extra.source,
            data_page_size: extra.data_page_size,
            code_page_size: extra.code_page_size,
        }
    }

    fn place(&mut self, spaces: &AddressSpaces, pid: i32, mode: CpuMode, address: u64) -> PlaceId {
        let generation = self.known.generation;
        if let Some((found, place)) = self.known.places.get(&(pid, mode, address))
            && *found == generation
        {
            return *place;
        }
        let location = spaces.resolve(pid, mode, address);
        let place = self.places.intern(place_of(spaces, location, pid, mode, address));
        self.known.places.insert((pid, mode, address), (generation, place));
        place
    }

    /// Returns the place that a function returns to, by the copy of the stack.
    fn unwind(&mut self, sample: &PackedSample, same: &SampleKey, spaces: &AddressSpaces) -> Option<PlaceId> {
        let unwinder = self.unwinder.as_mut().filter(|_| same.mode == CpuMode::User)?;
        let caller = spaces.resolve(same.pid, same.mode, same.ip).and_then(|location| {
            let dso = (location.dso(), spaces.dso(location.dso()));
            unwinder.caller(dso, location.offset(), sample.position)
        });
        let place = caller.map(|caller| self.place(spaces, same.pid, same.mode, caller.saturating_sub(1)));
        self.not_unwound += u64::from(place.is_none());
        place
    }

    fn comm(&mut self, spaces: &AddressSpaces, tid: i32) -> NameId {
        let generation = self.known.generation;
        if let Some((found, comm)) = self.known.comms.get(&tid)
            && *found == generation
        {
            return *comm;
        }
        let comm = match spaces.comm(tid) {
            Some(comm) => self.names.intern(comm),
            None if tid == 0 => self.names.intern("swapper"),
            None => self.names.intern(&format!(":{tid}")),
        };
        self.known.comms.insert(tid, (generation, comm));
        comm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_is_counted_once() {
        // perf and tallyline record say it twice: in between, and of each event at the end
        assert_eq!(Losses { records: 90, samples: 100 }.total(true), 100);
        assert_eq!(Losses { records: 90, samples: 0 }.total(true), 90);
        assert_eq!(Losses { records: 90, samples: 10 }.total(false), 100);
    }

    #[test]
    fn faults_and_tracepoints_are_precise_and_watchpoints_where_they_trap_in_front() {
        let event = |kind: u32, config: u64| Attr { kind, config, ..Attr::default() };
        let pmus = [(9, "uprobe".to_owned()), (10, "ibs_op".to_owned())];
        let on_x86 = |attr: &Attr| is_precise(attr, Some("x86_64"), &pmus);
        let on_arm = |attr: &Attr| is_precise(attr, Some("aarch64"), &pmus);
        // faults; context switches, migrations, output of BPF programs
        for config in [2, 5, 6, 3, 4, 10] {
            assert!(on_x86(&event(SOFTWARE, config)), "{config}");
        }
        // a tracepoint and a probe report their own place, the clock where its interrupt came
        assert!(on_x86(&event(TRACEPOINT, 2)) && on_x86(&event(9, 0)));
        assert!(!on_x86(&event(SOFTWARE, 0)) && !on_x86(&event(10, 0)));
        let watchpoint = event(BREAKPOINT, 0);
        assert_eq!((on_x86(&watchpoint), on_arm(&watchpoint)), (false, true));
        assert!(is_counter(&event(0, 0)) && is_counter(&event(4, 0x1d3)));
        assert!(!is_counter(&event(SOFTWARE, 0)) && !is_counter(&watchpoint));
    }
}
