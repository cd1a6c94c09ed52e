//! The events of a recording, and which of them a record belongs to.

use super::features::{EventGroup, Feature, Features};
use super::tracing;
use crate::Result;
use crate::abi::sample as bit;
use crate::attr::Attr;
use crate::bytes::{ByteOrder, Cursor, Words, until_nul};
use crate::names;
use std::collections::HashMap;

/// A sampled event of a recording, such as `cycles`: its name, its attributes, and the ids that its samples carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The name of the event as the user gave it, such as `cpu_core/mem-loads,ldlat=30/P`, or as perf names it.
    pub(crate) name: String,
    /// The attributes that the event was opened with.
    pub(crate) attr: Attr,
    /// The ids that the kernel gave the event: one for each CPU or thread.
    pub(crate) ids: Vec<u64>,
    /// The group of events that the event is in, if any.
    pub(crate) group: Option<EventGroup>,
}

impl Event {
    /// Creates a sampled event that is in no event group (`{a,b}`). `name` is as the user gave it; `ids` are those that
    /// its samples carry.
    pub fn new(name: impl Into<String>, attr: Attr, ids: Vec<u64>) -> Self {
        Self { name: name.into(), attr, ids, group: None }
    }

    /// Returns the event's name as the user gave it, such as `cpu_core/mem-loads,ldlat=30/P`; without one, perf's
    /// name for its attributes.
    #[inline]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the attributes (the kernel's `perf_event_attr`) that the event was opened with.
    #[inline]
    pub fn attr(&self) -> &Attr {
        &self.attr
    }

    /// Returns the ids that the kernel gave the event, one for each CPU or thread: samples and counts carry them.
    #[inline]
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// Returns the group of events that this one was scheduled and counted with; `None` if it was alone.
    #[inline]
    pub fn group(&self) -> Option<&EventGroup> {
        self.group.as_ref()
    }
}

/// The kind of update that is a name.
const NAME: u64 = 2;

/// Returns `true` if an event update, by its body, gives an event's name.
pub(super) fn is_name(mut body: Cursor<'_>) -> bool {
    body.u64("kind of an update").is_ok_and(|kind| kind == NAME)
}

/// The list of sampled events of a recording, in the order of the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    list: Vec<Event>,
    by_id: HashMap<u64, usize>,
    position: Position,
}

/// The position of the event's id in records.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    /// In a sample, in words from its start.
    in_sample: Option<usize>,
    /// In other records, in words from their end.
    from_end: Option<usize>,
}

impl Position {
    /// Returns the positions of the ids in samples. perf makes them equal in all events of a recording; so
    /// one is looked at.
    fn of(attr: &Attr) -> Self {
        let kind = attr.sample_type;
        let has = |field: u64| kind & field != 0;
        if has(bit::IDENTIFIER) {
            return Self { in_sample: Some(0), from_end: attr.has_trailer().then_some(1) };
        }
        if !has(bit::ID) {
            return Self::default();
        }
        let before = kind & (bit::IP | bit::TID | bit::TIME | bit::ADDR);
        let behind = kind & (bit::CPU | bit::STREAM_ID);
        Self {
            in_sample: Some(before.count_ones() as usize),
            from_end: attr.has_trailer().then_some(1 + behind.count_ones() as usize),
        }
    }
}

impl Events {
    /// Returns all sampled events (such as `cycles`), in the order of the command line.
    pub(super) fn as_slice(&self) -> &[Event] {
        &self.list
    }

    /// Returns `true` if the recording has no sampled events (such as `cycles`).
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the sampled event (such as `cycles`, with its attributes and ids) at an index of the recording's list;
    /// `None` past its end.
    pub(crate) fn get(&self, index: usize) -> Option<&Event> {
        self.list.get(index)
    }

    /// Returns all sampled events (such as `cycles`) of the recording, in the order of the command line.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Event> {
        self.list.iter()
    }

    /// Returns the event of a record: `Err` with a number that no event has.
    pub(super) fn of_record(&self, is_sample: bool, body: Cursor<'_>) -> std::result::Result<usize, u64> {
        if self.list.len() == 1 {
            return Ok(0);
        }
        let bytes = body.rest();
        let start = if is_sample {
            self.position.in_sample.map(|words| words * 8)
        } else {
            self.position.from_end.and_then(|words| bytes.len().checked_sub(words * 8))
        };
        let Some(word) = start.and_then(|start| bytes.get(start..)).and_then(|bytes| bytes.first_chunk())
        else {
            return Ok(0);
        };
        match body.order().u64(*word) {
            // what perf made up has none
            0 => Ok(0),
            id => self.by_id.get(&id).copied().ok_or(id),
        }
    }

    pub(super) fn add(&mut self, attr: Attr, ids: Words<'_>) {
        let name = names::of_attr(&attr);
        self.list.push(Event { name, attr, ids: ids.iter().collect(), group: None });
    }

    /// Adds a stream's event: the attributes, then ids to the end.
    pub(super) fn add_record(&mut self, mut body: Cursor<'_>) -> Result<()> {
        let attr = Attr::read(&mut body)?;
        let count = body.rest().len() as u64 / 8;
        let ids = body.words(count, "ids of an event")?;
        self.add(attr, ids);
        Ok(())
    }

    /// Applies a stream's update of an event that was described before, such as its name.
    pub(super) fn update(&mut self, mut body: Cursor<'_>) -> Result<()> {
        let kind = body.u64("kind of an update")?;
        let id = body.u64("id of an update")?;
        if kind == NAME && !until_nul(body.rest()).is_empty() {
            let name = String::from_utf8_lossy(until_nul(body.rest())).into_owned();
            if let Some(event) = self.list.iter_mut().find(|event| event.ids.contains(&id)) {
                event.name = name;
            }
        }
        Ok(())
    }

    /// Reads names, ids and groups from the features. Damage there is a warning.
    pub(super) fn take_names(&mut self, features: &Features, order: ByteOrder, warnings: &mut Vec<String>) {
        for (bytes, offset) in features.sections(Feature::EVENT_DESC) {
            if let Err(error) = self.take_descriptions(Cursor::new(bytes, order, offset)) {
                warnings.push(error.to_string());
            }
        }
        self.name_tracepoints(features, warnings);
        for group in &features.groups {
            let end = group.leader.saturating_add(group.members).min(self.list.len());
            for event in self.list.get_mut(group.leader..end).unwrap_or_default() {
                event.group = Some(group.clone());
            }
        }
    }

    /// Names tracepoints and probes that the recording itself does not name, as streams do not.
    fn name_tracepoints(&mut self, features: &Features, warnings: &mut Vec<String>) {
        let is_nameless =
            |event: &Event| event.attr.kind == names::TRACEPOINT && event.name == names::of_attr(&event.attr);
        if !self.list.iter().any(is_nameless) {
            return;
        }
        for (bytes, offset) in features.sections(Feature::TRACING_DATA) {
            let (names, result) = tracing::names(bytes, offset);
            warnings.extend(result.err().map(|error| error.to_string()));
            for event in self.list.iter_mut().filter(|event| is_nameless(event)) {
                if let Some(name) = names.get(&event.attr.config) {
                    event.name = format!("{name}{}", names::modifiers(&event.attr));
                }
            }
        }
    }

    fn take_descriptions(&mut self, mut at: Cursor<'_>) -> Result<()> {
        let count = at.u32("number of events")?;
        let size = at.u32("size of an event's attributes")?;
        for index in 0..count as usize {
            at.take(size.into(), "an event's attributes")?;
            let ids = at.u32("number of ids")?;
            let name = super::features::text(&mut at)?;
            let ids = at.words(ids.into(), "ids of an event")?;
            // in the order of the events, as perf writes them
            let by_id = self.list.iter().position(|event| ids.iter().any(|id| event.ids.contains(&id)));
            if let Some(event) = self.list.get_mut(by_id.unwrap_or(index))
                && !name.is_empty()
            {
                event.name = name;
            }
        }
        Ok(())
    }

    /// Indexes the events by id, once all are known.
    pub(super) fn finish(&mut self) {
        self.position = self.list.first().map(|event| Position::of(&event.attr)).unwrap_or_default();
        self.by_id = (self.list.iter().enumerate())
            .flat_map(|(index, event)| event.ids.iter().map(move |id| (*id, index)))
            .collect();
    }
}
