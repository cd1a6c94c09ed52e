//! From a recording to a [`Profile`]: addresses become places in files, as of the time of each sample.

use super::names::NameId;
use super::operand::Outcome;
use super::profile::{EventInfo, NONE, Place, Point, Profile, Resolved};
use crate::perfdata::Attr;
use crate::perfdata::abi::{read_format, sample as bit};
use crate::perfdata::file::{Body, Events, Pieces, Read, Record, Recording, Records, Seen};
use crate::perfdata::sample::{CpuMode, Sample};
use crate::perfdata::spaces::{AddressSpaces, DsoKind, Location};
use crate::{Error, Result};
use rustc_hash::FxHashMap;

/// The line size where the recording does not say one.
const LINE_SIZE: u32 = 64;

impl Profile {
    /// Reads all samples.
    ///
    /// # Errors
    /// Damaged records.
    pub fn load(recording: &Recording<'_>) -> Result<Profile> {
        Ok(read(recording)?.unwrap_or_default())
    }

    /// Reads all samples of a file a piece at a time. None if it has to be read as a whole.
    ///
    /// # Errors
    /// Damaged records.
    pub fn load_pieces(pieces: &Pieces<'_>) -> Result<Option<Profile>> {
        read(pieces)
    }
}

/// Reads records once, in the order of the file, and puts samples in that of time: address spaces are
/// those of the time of each.
fn read(records: &dyn Records) -> Result<Option<Profile>> {
    let about = records.about();
    let mut samples = Samples { profile: described(about), ..Samples::default() };
    samples.registers = super::evidence::needed(&samples.profile.arch);
    let through = records.each(&mut |position, seen| match seen {
        Seen::Sample(event, sample) => samples.add(position, event, sample, &about.events),
        Seen::Other(record) => {
            samples.note(position, record);
            Ok(())
        }
    })?;
    if through == Read::NeedsWhole {
        return Ok(None);
    }
    let counts = |attr: &Attr| attr.read_format & read_format::LOST != 0;
    samples.profile.lost = samples.lost.total(about.events.iter().any(|event| counts(&event.attr)));
    samples.place(records).map(Some)
}

/// What was lost, as two kinds of records say it.
#[derive(Debug, Default)]
struct Losses {
    /// In between, where a ring was full.
    records: u64,
    /// By the hardware; and in all, at the end, where events count what they lost.
    samples: u64,
}

impl Losses {
    /// Each lost sample once: events that count what they lost count those of full rings, too.
    fn total(&self, is_counted: bool) -> u64 {
        // the end is missing where the recorder was killed
        if is_counted { self.samples.max(self.records) } else { self.samples.saturating_add(self.records) }
    }
}

/// Everything but samples.
fn described(recording: &Recording<'_>) -> Profile {
    let features = &recording.features;
    let model = features.cpu_description.as_deref().unwrap_or_default();
    let events = recording.events.iter().map(|event| {
        let has = |field: u64| event.attr.sample_type & field != 0;
        EventInfo {
            name: event.name.clone(),
            is_precise: event.attr.precise() > 0,
            has_weight: has(bit::WEIGHT) || has(bit::WEIGHT_STRUCT),
            has_source: has(bit::DATA_SRC),
            has_address: has(bit::ADDR),
        }
    });
    Profile {
        events: events.collect(),
        sockets: features.topology.iter().map(|(_, socket)| *socket).collect(),
        nodes: features.nodes.clone(),
        line_size: features.line_size().filter(|size| size.is_power_of_two()).unwrap_or(LINE_SIZE),
        arch: features.arch.clone().unwrap_or_default(),
        is_emulated: model.contains("QEMU") || model.contains("TCG"),
        warnings: recording.warnings.clone(),
        ..Profile::default()
    }
}

/// Samples in the order of the file, of which it is not known yet where they were.
#[derive(Default)]
struct Samples {
    profile: Profile,
    // when each was taken, and which one it is
    order: Vec<(u64, u32)>,
    // whether that is the order of time already
    is_disordered: bool,
    // what changes address spaces: when, how many samples come before it in the file, its position
    changes: Vec<(u64, usize, u64)>,
    // which registers have to be there
    registers: Option<u64>,
    // addresses that functions return to
    callers: Vec<(CpuMode, u64)>,
    lost: Losses,
}

/// What was found before, and holds until something is mapped or gets another name: samples of one
/// loop come by the thousand.
#[derive(Default)]
struct Known {
    generation: u32,
    // places of code by process and address
    places: FxHashMap<(i32, CpuMode, u64), (u32, u32)>,
    // names by thread
    comms: FxHashMap<i32, (u32, NameId)>,
}

impl Known {
    fn may_have_changed(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }
}

/// Places, each once.
#[derive(Default)]
struct Places {
    list: Vec<Place>,
    ids: FxHashMap<Place, u32>,
}

impl Places {
    fn intern(&mut self, place: Place) -> u32 {
        *self.ids.entry(place).or_insert_with(|| {
            self.list.push(place);
            (self.list.len() - 1) as u32
        })
    }
}

/// The time that counts: all ones is perf's mark for none, and what has none comes first.
fn time_of(time: Option<u64>) -> u64 {
    time.filter(|time| *time != u64::MAX).unwrap_or(0)
}

impl Samples {
    fn add(&mut self, position: u64, event: usize, sample: &Sample<'_>, events: &Events) -> Result<()> {
        let period = sample.period.unwrap_or_else(|| match events.get(event).map(|event| &event.attr) {
            Some(attr) if !attr.is_frequency() => attr.period,
            _ => 1,
        });
        let time = time_of(sample.time);
        self.is_disordered |= self.order.last().is_some_and(|(last, _)| *last > time);
        let number = u32::try_from(self.order.len()).ok().filter(|number| *number != NONE);
        self.order.push((time, number.ok_or(Error::Limit { what: "samples", limit: NONE.into() })?));
        let point = self.point(event, sample, period, position);
        self.profile.points.push(point);
        Ok(())
    }

    fn note(&mut self, position: u64, record: &Record<'_>) {
        match &record.body {
            Body::Mapping(_) | Body::Comm(_) | Body::Fork(_) | Body::KernelSymbol(_) => {
                self.changes.push((time_of(record.time), self.order.len(), position));
            }
            Body::UnknownEvent(_) => self.profile.unknown_events += 1,
            Body::Lost(found) => self.lost.records = self.lost.records.saturating_add(found.count),
            Body::LostSamples(found) => self.lost.samples = self.lost.samples.saturating_add(found.count),
            _ => {}
        }
    }

    /// A sample whose places are not known yet: `caller` is an index into `callers`, and `data_place` only
    /// says whether there is one.
    fn point(&mut self, event: usize, sample: &Sample<'_>, period: u64, position: u64) -> Point {
        // the first entry is the address of the sample itself
        let caller = match sample.callers().nth(1) {
            Some((mode, address)) => {
                self.callers.push((mode, address.saturating_sub(1)));
                (self.callers.len() - 1) as u32
            }
            None => NONE,
        };
        Point {
            event: event as u32,
            pid: sample.pid.unwrap_or(-1),
            tid: sample.tid.unwrap_or(-1),
            comm: NameId::default(),
            cpu: sample.cpu.unwrap_or(NONE),
            exact: sample.exact,
            mode: sample.mode,
            ip: sample.ip.unwrap_or(0),
            place: NONE,
            charged: NONE,
            caller,
            time: sample.time.unwrap_or(0),
            period,
            address: sample.addr.unwrap_or(0),
            data_place: if sample.addr.is_some() { 0 } else { NONE },
            held: self.profile.held.note(sample, self.registers, position),
            physical_address: sample.physical_address.unwrap_or(0),
            weight: sample.weight.unwrap_or_default(),
            source: sample.data_source,
            data_page_size: sample.data_page_size.unwrap_or(0),
            code_page_size: sample.code_page_size.unwrap_or(0),
        }
    }

    /// Finds the places of all samples, and puts them in order.
    fn place(self, records: &dyn Records) -> Result<Profile> {
        let Samples { mut profile, mut order, is_disordered, mut changes, callers, .. } = self;
        if is_disordered {
            // a stable sort: what was written first stays first
            order.sort_by_key(|(time, _)| *time);
        }
        changes.sort_by_key(|(time, ..)| *time);
        let points = std::mem::take(&mut profile.points);
        let mut loader = Loader {
            profile,
            points,
            callers,
            places: Places::default(),
            data: Places::default(),
            known: Known::default(),
        };
        let mut spaces = AddressSpaces::new(records.about());
        let (mut samples, mut next) = (order.iter().peekable(), changes.iter());
        let mut positions = changes.iter().map(|(.., position)| *position);
        records.at(&mut positions, &mut |record| {
            let Some((time, before, _)) = next.next() else { return Ok(()) };
            let is_earlier = |(own, index): &&(u64, u32)| (*own, *index as usize) < (*time, *before);
            while let Some((_, index)) = samples.next_if(is_earlier) {
                loader.place_sample(*index as usize, &spaces);
            }
            spaces.apply(&record.body)?;
            loader.known.may_have_changed();
            Ok(())
        })?;
        samples.for_each(|(_, index)| loader.place_sample(*index as usize, &spaces));
        let Loader { mut profile, mut points, places, data, .. } = loader;
        if is_disordered {
            put_in_order(&mut points, order.iter().map(|(_, index)| *index));
        }
        profile.points = points;
        profile.places = places.list;
        profile.data_places = data.list;
        profile.resolved = vec![Resolved::default(); profile.places.len()];
        profile.outcomes = vec![Outcome::NOT_LOOKED; profile.places.len()];
        profile.dsos = spaces.dsos().map(|(_, dso)| dso.clone()).collect();
        Ok(profile)
    }
}

/// Moves each to where an order, by index, has it: in place, as there are many and they are large.
fn put_in_order<T: Copy>(list: &mut [T], order: impl Iterator<Item = u32>) {
    let mut from: Vec<u32> = order.collect();
    for start in 0..from.len() {
        let (mut at, first) = (start, list[start]);
        // around the ring of those that take each other's places
        loop {
            let source = std::mem::replace(&mut from[at], at as u32) as usize;
            if source == start || source == at {
                list[at] = first;
                break;
            }
            list[at] = list[source];
            at = source;
        }
    }
}

/// Finds where samples were, in the order of time.
struct Loader {
    profile: Profile,
    points: Vec<Point>,
    callers: Vec<(CpuMode, u64)>,
    places: Places,
    data: Places,
    known: Known,
}

impl Loader {
    fn place_sample(&mut self, index: usize, spaces: &AddressSpaces) {
        let Point { pid, tid, mode, ip, address, caller, data_place, .. } = self.points[index];
        let place = self.place(spaces, pid, mode, ip);
        let caller = match self.callers.get(caller as usize) {
            Some((mode, address)) => self.place(spaces, pid, *mode, *address),
            None => NONE,
        };
        let data_place = match data_place {
            NONE => NONE,
            _ => {
                let location = spaces.resolve_data(pid, mode, address);
                // who accessed it makes no other place of it
                let place = place_of(spaces, location, pid, mode, address);
                let index = self.data.intern(Place { pid: 0, ..place });
                if index as usize == self.profile.data_raw.len() {
                    self.profile.data_raw.push(address);
                }
                index
            }
        };
        let comm = self.comm(spaces, tid);
        let point = &mut self.points[index];
        (point.place, point.charged, point.caller) = (place, place, caller);
        (point.data_place, point.comm) = (data_place, comm);
    }

    fn place(&mut self, spaces: &AddressSpaces, pid: i32, mode: CpuMode, address: u64) -> u32 {
        let generation = self.known.generation;
        let known = self.known.places.entry((pid, mode, address)).or_insert((generation.wrapping_sub(1), 0));
        if known.0 != generation {
            let location = spaces.resolve(pid, mode, address);
            *known = (generation, self.places.intern(place_of(spaces, location, pid, mode, address)));
        }
        known.1
    }

    fn comm(&mut self, spaces: &AddressSpaces, tid: i32) -> NameId {
        let generation = self.known.generation;
        if let Some((found, comm)) = self.known.comms.get(&tid)
            && *found == generation
        {
            return *comm;
        }
        let comm = match spaces.comm(tid) {
            Some(comm) => self.profile.names.intern(comm),
            None if tid == 0 => self.profile.names.intern("swapper"),
            None => self.profile.names.intern(&format!(":{tid}")),
        };
        self.known.comms.insert(tid, (generation, comm));
        comm
    }
}

fn place_of(
    spaces: &AddressSpaces,
    location: Option<Location>,
    pid: i32,
    mode: CpuMode,
    address: u64,
) -> Place {
    match location {
        Some(found) => {
            let has_file = spaces.dso(found.dso).kind != DsoKind::Anonymous;
            Place { dso: found.dso.index(), offset: found.offset, mode, pid: if has_file { 0 } else { pid } }
        }
        None => Place { dso: NONE, offset: address, mode, pid: 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_order_is_where_the_order_has_it() {
        let orders: [&[u32]; 5] = [&[], &[0], &[0, 1, 2], &[2, 0, 1, 3], &[5, 3, 0, 4, 1, 2]];
        for order in orders {
            let mut list: Vec<u32> = (100..).take(order.len()).collect();
            put_in_order(&mut list, order.iter().copied());
            let expected: Vec<u32> = order.iter().map(|index| 100 + index).collect();
            assert_eq!(list, expected);
        }
    }

    #[test]
    fn what_was_lost_is_counted_once() {
        // perf and tallyline record say it twice: in between, and of each event at the end
        assert_eq!(Losses { records: 90, samples: 100 }.total(true), 100);
        assert_eq!(Losses { records: 90, samples: 0 }.total(true), 90);
        assert_eq!(Losses { records: 90, samples: 10 }.total(false), 100);
    }
}
