//! The container: a file with a table of sections, or the stream that `perf record -o -` writes.
//!
//! `header` finds the sections, `features` reads those that describe the machine and the run,
//! `inflate` the compressed records, `record` says what a record is. A crate for this exists
//! (`linux-perf-data`); it allocates what a header says, inflates without a limit, refuses files
//! with several events that perf reads, and cannot say where an error is.

mod build_id;
mod chunked;
mod event;
mod features;
mod header;
mod inflate;
mod order;
mod record;
mod records;
mod stream;
#[cfg(test)]
mod tests;
mod tracing;

pub use build_id::BuildId;
pub(crate) use build_id::BuildIds;
pub use chunked::ChunkedRecording;
pub use event::Event;
pub(crate) use event::Events;
pub(crate) use features::Feature;
pub use features::{CacheLevel, EventGroup, Features};
pub(crate) use record::shared_file_of;
pub use record::{Comm, KernelSymbol, Mmap, Record, RecordBody, Task};
pub use records::{RecordSource, RecordVisitor, VisitedRecord};

use super::abi::record as kind;
use super::bytes::{ByteOrder, Cursor};
use super::spe::TraceBytes;
use crate::{Error, Result};
use header::{Header, OuterBytes};
use record::Decoder;
use std::ops::Range;
use stream::{INFLATED, RawRecord, RawRecords};

/// More parts than a recording falls into that is not damaged on purpose.
const PARTS_LIMIT: usize = 64;

/// An opened perf.data file: its sampled events (such as `cycles`), the description of the machine, and its records.
///
/// Parsing walks all records once, decoding those that describe the others; cost and memory are
/// proportional to the file, and to what its compressed records inflate to.
#[derive(Debug)]
pub struct Recording<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
    /// The range of the records in `bytes`.
    data: Range<usize>,
    /// The parts of `data` that can be read: one, if nothing is damaged.
    readable: Vec<Range<usize>>,
    inflated: Vec<u8>,
    is_stream: bool,
    /// The events that were sampled.
    pub(crate) events: Events,
    /// The machine and the run.
    pub(crate) features: Features,
    /// The build-ids of files.
    pub(crate) build_ids: BuildIds,
    /// The defects of the file that do not make it useless, a line each.
    pub(crate) warnings: Vec<String>,
}

impl Recording<'_> {
    /// Returns the sampled events (such as `cycles`, each with name, attributes and ids), in the order of the command
    /// line.
    #[inline]
    pub fn events(&self) -> &[Event] {
        self.events.as_slice()
    }

    /// Returns the description that the perf.data file has of the machine that recorded (host name, kernel, CPUs, …)
    /// and of the run, such as its command line.
    #[inline]
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Returns all pairs of a mapped file's path and its build-id that the perf.data file has, in no particular order.
    pub fn build_ids(&self) -> impl Iterator<Item = (&[u8], BuildId)> {
        self.build_ids.iter()
    }

    /// Returns one line for each defect of the file that did not prevent it from being read.
    #[inline]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

impl<'a> Recording<'a> {
    /// Parses a perf.data file in memory: its header, its sampled events (such as `cycles`), and those records that
    /// describe other records.
    ///
    /// # Errors
    /// Bytes that are not perf.data, or damaged descriptions of events. Other damage becomes a
    /// [warning](Self::warnings), and what precedes it is kept.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let around = OuterBytes::whole(bytes);
        let header = Header::parse(around)?;
        let mut recording = Self { bytes, data: header.data.clone(), ..Recording::described_by(&header) };
        if !header.is_stream {
            recording.read_sections(around, &header)?;
        }
        recording.read_descriptions()?;
        recording.finish()?;
        Ok(recording)
    }

    /// Returns a recording without records, described by a header.
    fn described_by(header: &Header) -> Self {
        Self {
            bytes: &[],
            order: header.order,
            data: 0..0,
            readable: Vec::new(),
            inflated: Vec::new(),
            is_stream: header.is_stream,
            events: Events::default(),
            features: Features::default(),
            build_ids: BuildIds::default(),
            warnings: header.warnings.clone(),
        }
    }

    /// Completes the tables, once everything that describes the records is read.
    fn finish(&mut self) -> Result<()> {
        self.events.finish();
        if self.events.is_empty() {
            return Err(Error::damaged(0, "a recording without events"));
        }
        self.build_ids.add_table(&self.features, self.order, &mut self.warnings);
        Ok(())
    }

    /// Returns `true` if the perf.data file has the stream format that `perf record -o -` writes to a pipe, `false` if
    /// it is a seekable file with sections.
    pub fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// Returns an iterator over all records in file order, which is not time order.
    pub fn records(&self) -> impl Iterator<Item = Result<Record<'_>>> {
        self.raw().map(|raw| raw.and_then(|raw| self.decode(&raw)))
    }

    /// Returns an iterator over all records in time order; those without a time come first.
    ///
    /// # Errors
    /// Damaged records.
    pub fn in_time_order(&self) -> Result<impl Iterator<Item = Result<Record<'_>>>> {
        order::TimeOrdered::new(self)
    }

    fn decode<'r>(&'r self, raw: &RawRecord<'r>) -> Result<Record<'r>> {
        Decoder { events: &self.events }.decode(raw)
    }

    /// Returns the records of the file, then those that were inflated.
    fn raw(&self) -> impl Iterator<Item = Result<RawRecord<'_>>> {
        let plain = self.readable.iter().flat_map(|part| {
            let data = self.bytes.get(part.clone()).unwrap_or_default();
            RawRecords::new(Cursor::new(data, self.order, part.start as u64), true)
        });
        let inflated = RawRecords::new(Cursor::new(&self.inflated, self.order, 0), false).inflated();
        plain.filter(|raw| raw.as_ref().map_or(true, |raw| !inflate::is_compressed(raw.kind))).chain(inflated)
    }

    /// Returns the bytes from a position of a record on.
    fn bytes_at(&self, position: u64) -> &[u8] {
        let bytes = if position & INFLATED != 0 { &self.inflated[..] } else { self.bytes };
        let start = usize::try_from(position & !INFLATED);
        start.ok().and_then(|start| bytes.get(start..)).unwrap_or_default()
    }

    /// Returns the record at a position that one of [`raw`](Self::raw) has.
    fn raw_at(&self, position: u64) -> Result<RawRecord<'_>> {
        let (offset, is_inflated) = (position & !INFLATED, position & INFLATED != 0);
        RawRecords::at(Cursor::new(self.bytes_at(position), self.order, offset), is_inflated)
    }

    fn read_sections(&mut self, bytes: OuterBytes<'_>, header: &Header) -> Result<()> {
        for (feature, range) in &header.features {
            self.features.add(*feature, bytes.get(range)?, range.start as u64);
        }
        header.read_attrs(bytes, &mut self.events)?;
        self.features.parse(self.order, &mut self.warnings);
        self.events.take_names(&self.features, self.order, &mut self.warnings);
        Ok(())
    }

    /// Reads the records that describe others, and inflates the compressed ones.
    fn read_descriptions(&mut self) -> Result<()> {
        // of a file that ends early it is said already
        let is_whole = self.is_stream || self.warnings.is_empty();
        let mut compressed = Vec::new();
        let mut start = Some(self.data.start);
        while let Some(part) = start {
            start = self.read_part(part, is_whole, &mut compressed)?;
        }
        if !compressed.is_empty() {
            let (inflated, error) = inflate::inflate(&compressed, self.data.start as u64);
            self.warnings.extend(damage(error.map_or(Ok(()), Err))?);
            self.inflated = inflated;
            let mut records = RawRecords::new(Cursor::new(&self.inflated, self.order, 0), false).inflated();
            for raw in records.by_ref() {
                let described = raw.and_then(|raw| {
                    describe(&raw, &mut self.events, &mut self.features, &mut self.build_ids)
                });
                self.warnings.extend(damage(described)?);
            }
            self.inflated.truncate(records.end());
        }
        if self.is_stream {
            self.features.parse(self.order, &mut self.warnings);
            self.events.take_names(&self.features, self.order, &mut self.warnings);
        }
        Ok(())
    }

    /// Reads the records from there on, as far as they follow each other. Returns the position of further
    /// ones behind damage.
    fn read_part(
        &mut self,
        start: usize,
        is_whole: bool,
        compressed: &mut Vec<&'a [u8]>,
    ) -> Result<Option<usize>> {
        let bytes = self.bytes;
        let data = &bytes[start..self.data.end];
        // a stream, and a file that ends early, may end within a record
        let must_be_whole = is_whole && !self.is_stream;
        let mut records = RawRecords::new(Cursor::new(data, self.order, start as u64), must_be_whole);
        for raw in records.by_ref() {
            let described = raw.and_then(|raw| {
                if inflate::is_compressed(raw.kind) {
                    compressed.push(inflate::payload(&raw)?);
                    return Ok(());
                }
                if raw.kind == kind::HEADER_TRACING_DATA {
                    // it follows its record
                    let (mut body, end) = (raw.body, raw.end() as usize);
                    let size = body.u32("size of tracing data")? as usize;
                    let content = bytes.get(end..end.saturating_add(size)).unwrap_or_default();
                    self.features.add(Feature::TRACING_DATA, content, end as u64);
                    return Ok(());
                }
                describe(&raw, &mut self.events, &mut self.features, &mut self.build_ids)
            });
            self.warnings.extend(damage(described)?);
        }
        let end = records.end();
        self.readable.push(start..end);
        let left = self.data.end.saturating_sub(end);
        // compressed records have to be whole
        let is_last = left == 0 || self.readable.len() >= PARTS_LIMIT || !compressed.is_empty();
        let next =
            if is_last { None } else { stream::next_records(&bytes[..self.data.end], end, self.order) };
        if left > 0 && (is_whole || next.is_some()) {
            let (which, bytes) = next.map_or(("the last ", left), |next| ("", next - end));
            self.warnings
                .push(format!("{which}{bytes} bytes of the records, at offset {end:#x}, cannot be read"));
        }
        Ok(next)
    }
}

impl TraceBytes for Recording<'_> {
    fn read(&self, position: u64, buffer: &mut [u8]) -> Result<()> {
        let bytes = self.bytes_at(position).get(..buffer.len());
        let ends_early = || Error::damaged(position & !INFLATED, "a trace that ends early");
        buffer.copy_from_slice(bytes.ok_or_else(ends_early)?);
        Ok(())
    }
}

/// Returns the warning that damage is; other errors end reading.
fn damage(result: Result<()>) -> Result<Option<String>> {
    match result {
        Ok(()) => Ok(None),
        Err(error @ Error::Damaged { .. }) => Ok(Some(error.to_string())),
        Err(error) => Err(error),
    }
}

fn describe(
    raw: &RawRecord<'_>,
    events: &mut Events,
    features: &mut Features,
    build_ids: &mut BuildIds,
) -> Result<()> {
    match raw.kind {
        kind::HEADER_ATTR => events.add_record(raw.body),
        kind::EVENT_UPDATE => events.update(raw.body),
        kind::HEADER_BUILD_ID => build_ids.add_record(raw.misc, raw.body),
        kind::HEADER_FEATURE => {
            let mut body = raw.body;
            let feature = body.u64("number of a feature")?;
            features.add(Feature(feature), body.rest(), body.offset());
            Ok(())
        }
        _ => Ok(()),
    }
}
