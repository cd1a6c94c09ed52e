//! From a recording to a [`Profile`]: addresses become places in files, as of the time of each sample.

use super::names::NameId;
use super::operand::Outcome;
use super::profile::{EventInfo, NONE, Place, Point, Profile, Resolved};
use crate::Result;
use crate::perfdata::Attr;
use crate::perfdata::abi::{read_format, sample as bit};
use crate::perfdata::file::{Body, Recording};
use crate::perfdata::sample::{CpuMode, Sample};
use crate::perfdata::spaces::{AddressSpaces, DsoKind, Location};
use rustc_hash::FxHashMap;

/// The line size where the recording does not say one.
const LINE_SIZE: u32 = 64;

impl Profile {
    /// Reads all samples.
    ///
    /// # Errors
    /// Damaged records.
    pub fn load(recording: &Recording<'_>) -> Result<Profile> {
        let mut loader = Loader {
            profile: described(recording),
            places: Places::default(),
            data: Places::default(),
            known: Known::default(),
        };
        let mut spaces = AddressSpaces::new(recording);
        let mut lost = Losses::default();
        for record in recording.in_time_order()? {
            let record = record?;
            if !matches!(record.body, Body::Sample(..)) {
                spaces.apply(&record.body)?;
                loader.known.may_have_changed();
            }
            match record.body {
                Body::Sample(event, sample) => {
                    let period = recording.events.get(event).map_or(1, |event| match &event.attr {
                        attr if attr.is_frequency() => 1,
                        attr => attr.period,
                    });
                    loader.add(event, &sample, period, &spaces);
                }
                Body::UnknownEvent(_) => loader.profile.unknown_events += 1,
                Body::Lost(found) => lost.records = lost.records.saturating_add(found.count),
                Body::LostSamples(found) => lost.samples = lost.samples.saturating_add(found.count),
                _ => {}
            }
        }
        let mut profile = loader.profile;
        let counts = |attr: &Attr| attr.read_format & read_format::LOST != 0;
        profile.lost = lost.total(recording.events.iter().any(|event| counts(&event.attr)));
        profile.places = loader.places.list;
        profile.data_places = loader.data.list;
        profile.resolved = vec![Resolved::default(); profile.places.len()];
        profile.outcomes = vec![Outcome::NOT_LOOKED; profile.places.len()];
        profile.dsos = spaces.dsos().map(|(_, dso)| dso.clone()).collect();
        Ok(profile)
    }
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

struct Loader {
    profile: Profile,
    places: Places,
    data: Places,
    known: Known,
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

impl Loader {
    fn add(&mut self, event: usize, sample: &Sample<'_>, period: u64, spaces: &AddressSpaces) {
        let pid = sample.pid.unwrap_or(-1);
        let tid = sample.tid.unwrap_or(-1);
        let ip = sample.ip.unwrap_or(0);
        let place = self.place(spaces, pid, sample.mode, ip);
        // the first entry is the address of the sample itself
        let caller = match sample.callers().nth(1) {
            Some((mode, address)) => self.place(spaces, pid, mode, address.saturating_sub(1)),
            None => NONE,
        };
        let data_place = match sample.addr {
            Some(address) => {
                let location = spaces.resolve_data(pid, sample.mode, address);
                // who accessed it makes no other place of it
                let place = place_of(spaces, location, pid, sample.mode, address);
                let index = self.data.intern(Place { pid: 0, ..place });
                if index as usize == self.profile.data_raw.len() {
                    self.profile.data_raw.push(address);
                }
                index
            }
            None => NONE,
        };
        let comm = self.comm(spaces, tid);
        let held = self.profile.held.keep(sample, &self.profile.arch);
        self.profile.points.push(Point {
            event: event as u32,
            pid,
            tid,
            comm,
            cpu: sample.cpu.unwrap_or(NONE),
            exact: sample.exact,
            ip,
            place,
            charged: place,
            caller,
            time: sample.time.unwrap_or(0),
            period: sample.period.unwrap_or(period),
            address: sample.addr.unwrap_or(0),
            data_place,
            held,
            physical_address: sample.physical_address.unwrap_or(0),
            weight: sample.weight.unwrap_or_default(),
            source: sample.data_source,
            data_page_size: sample.data_page_size.unwrap_or(0),
            code_page_size: sample.code_page_size.unwrap_or(0),
        });
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
    fn what_was_lost_is_counted_once() {
        // perf and tallyline record say it twice: in between, and of each event at the end
        assert_eq!(Losses { records: 90, samples: 100 }.total(true), 100);
        assert_eq!(Losses { records: 90, samples: 0 }.total(true), 90);
        assert_eq!(Losses { records: 90, samples: 10 }.total(false), 100);
    }
}
