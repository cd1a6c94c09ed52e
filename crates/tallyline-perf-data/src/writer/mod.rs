//! Recordings written so that perf reads them, and this crate.
//!
//! The header goes to the file first and is completed last: what a run that was killed leaves is
//! still read, with a warning.

mod features;
mod records;

pub use super::file::Event;
pub use features::{MachineDescription, NumaNode};
pub use records::Encoder;

use super::abi::record as kind;
use super::file::{BuildId, EventGroup, Feature};
use super::spe::AuxtraceBuffer;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Result, Seek, SeekFrom, Write};

/// Magic, sizes, three sections, 256 bits of features.
const HEADER_SIZE: u64 = 104;

/// "PERFILE2" as a number of this machine's order.
const MAGIC: u64 = u64::from_le_bytes(*b"PERFILE2");

/// Returns the bytes of each event's attributes: of the one that needs most.
fn attr_size(events: &[Event]) -> u32 {
    events.iter().map(|event| event.attr.size()).max().unwrap_or_default()
}

/// Returns an entry of the table of events: the attributes, and where the ids are.
fn entry_size(events: &[Event]) -> u64 {
    u64::from(attr_size(events)) + 16
}

/// Writer of a perf.data file. It makes small writes, so pass it a `BufWriter`.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    events: Vec<Event>,
    attrs: u64,
    data: u64,
    written: u64,
    build_ids: BTreeMap<(bool, Vec<u8>), BuildId>,
    times: Option<(u64, u64)>,
    /// `true` if descriptions of records precede them, and nothing is completed later.
    is_stream: bool,
}

impl<W: Write + Seek> Writer<W> {
    /// Starts a perf.data file with these sampled events (such as `cycles`) in a seekable output.
    ///
    /// # Errors
    /// I/O errors of `out`.
    pub fn new(out: W, events: Vec<Event>) -> Result<Self> {
        let ids: usize = events.iter().map(|event| event.ids.len()).sum();
        let attrs = HEADER_SIZE + 8 * ids as u64;
        let data = attrs + entry_size(&events) * events.len() as u64;
        let mut writer = Self {
            out,
            events,
            attrs,
            data,
            written: 0,
            build_ids: BTreeMap::new(),
            times: None,
            is_stream: false,
        };
        writer.write_header(&[])?;
        writer.write_events()?;
        Ok(writer)
    }

    /// Starts a perf.data stream, the format of `perf record -o -`, in an output that need not be seekable.
    ///
    /// # Errors
    /// I/O errors of `out`; an event with more ids than fit into a record.
    pub(crate) fn stream(
        out: W,
        events: Vec<Event>,
        machine: &MachineDescription,
        groups: &[EventGroup],
    ) -> Result<Self> {
        const STREAM_HEADER: u64 = 16;
        let sections = features::sections(machine, groups, &events, &BTreeMap::new(), None);
        let mut writer = Self {
            out,
            events,
            attrs: 0,
            data: 0,
            written: 0,
            build_ids: BTreeMap::new(),
            times: None,
            is_stream: true,
        };
        writer.records(&MAGIC.to_ne_bytes())?;
        writer.records(&STREAM_HEADER.to_ne_bytes())?;
        for event in std::mem::take(&mut writer.events) {
            let ids: Vec<u8> = event.ids.iter().flat_map(|id| id.to_ne_bytes()).collect();
            let size = attr_size(std::slice::from_ref(&event));
            writer.described(kind::HEADER_ATTR, &[&event.attr.to_bytes_of(size), &ids])?;
            // the number of an update that is a name
            const NAME: u64 = 2;
            if let Some(id) = event.ids.first() {
                let words = [NAME.to_ne_bytes(), id.to_ne_bytes()].concat();
                let mut name = event.name.clone().into_bytes();
                name.resize((name.len() + 1).next_multiple_of(8), 0);
                writer.described(kind::EVENT_UPDATE, &[&words, &name])?;
            }
            writer.events.push(event);
        }
        for (feature, section) in sections {
            if feature == Feature::TRACING_DATA.0 {
                let padded = section.len().next_multiple_of(8);
                let size = u32::try_from(padded).map_err(std::io::Error::other)?;
                let filled = vec![0; padded - section.len()];
                writer.described(kind::HEADER_TRACING_DATA, &[&size.to_ne_bytes()])?;
                writer.records(&section)?;
                writer.records(&filled)?;
                continue;
            }
            let filled = vec![0; section.len().next_multiple_of(8) - section.len()];
            // perf would read padding behind the topology as numbers of dies
            if feature == Feature::CPU_TOPOLOGY.0 && !filled.is_empty() {
                continue;
            }
            // of a machine that is too large for a record perf leaves it out, too
            if section.len() + 64 < usize::from(u16::MAX) {
                writer.described(kind::HEADER_FEATURE, &[&feature.to_ne_bytes(), &section, &filled])?;
            }
        }
        Ok(writer)
    }

    /// Writes a record that describes others.
    fn described(&mut self, kind: u32, parts: &[&[u8]]) -> Result<()> {
        let size = 8 + parts.iter().map(|part| part.len()).sum::<usize>();
        let size = u16::try_from(size).map_err(|_| {
            std::io::Error::other(
                "an event on so many CPUs and threads does not fit into a stream: write to a file",
            )
        })?;
        let header = [&kind.to_ne_bytes()[..], &[0; 2], &size.to_ne_bytes()].concat();
        self.piece(&header)?;
        parts.iter().try_for_each(|part| self.piece(part))
    }

    /// Returns the sampled events (such as `cycles`) of the perf.data file that is being written.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns the number of bytes of records written so far.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Appends complete records, as the kernel or an [`Encoder`] produced them. If the file has no room for all, it
    /// may end after some of them, never within one.
    ///
    /// # Errors
    /// I/O errors of the output.
    pub fn records(&mut self, bytes: &[u8]) -> Result<()> {
        let (mut done, mut result) = (0, Ok(()));
        while done < bytes.len() && result.is_ok() {
            match self.out.write(&bytes[done..]) {
                Ok(0) => result = Err(ErrorKind::WriteZero.into()),
                Ok(more) => done += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => result = Err(error),
            }
        }
        let whole = if result.is_ok() { done } else { whole_records(&bytes[..done]) };
        self.written += whole as u64;
        result
    }

    /// Appends a part of a record.
    fn piece(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Appends a piece of a hardware trace, whose bytes are given in two parts for a ring buffer that wraps around.
    ///
    /// # Errors
    /// I/O errors of the output.
    pub fn trace(&mut self, part: &AuxtraceBuffer, pieces: [&[u8]; 2]) -> Result<()> {
        const FILL: usize = 8;
        let size: usize = pieces.iter().map(|piece| piece.len()).sum();
        // records begin at multiples of 8; zeroes are no packets
        let filled = size.next_multiple_of(FILL);
        let before = self.written;
        let [first, second] = pieces;
        let mut header = Encoder::auxtrace(&AuxtraceBuffer { size: filled as u64, ..*part });
        let all = [header.finish(), first, second, &[0; FILL][..filled - size]];
        let result = all.into_iter().try_for_each(|piece| self.piece(piece));
        if result.is_err() {
            // without its bytes the record says nothing
            self.written = before;
        }
        result
    }

    /// Writes the marker `PERF_RECORD_FINISHED_ROUND`: no later record is older than those before the previous
    /// marker.
    ///
    /// # Errors
    /// I/O errors of the output.
    pub fn finish_round(&mut self) -> Result<()> {
        let mut record = Encoder::new(kind::FINISHED_ROUND, 0);
        self.records(record.finish())
    }

    /// Adds a build-id to the file's table: of the file at `path`, or of the kernel if `is_kernel`.
    pub fn build_id(&mut self, is_kernel: bool, path: &[u8], id: BuildId) {
        self.build_ids.insert((is_kernel, path.to_vec()), id);
    }

    /// Notes the time of a sample, in nanoseconds; the first and the last go into the header.
    pub fn sample_time(&mut self, time: u64) {
        let (first, last) = self.times.unwrap_or((time, time));
        self.times = Some((first.min(time), last.max(time)));
    }

    /// Completes the perf.data file and returns the output: writes the descriptions of the machine and of event groups,
    /// the build-ids, and the header; of a stream, which began with the others, only the build-ids.
    ///
    /// # Errors
    /// I/O errors of the output.
    pub fn finish(mut self, machine: &MachineDescription, groups: &[EventGroup]) -> Result<W> {
        if self.is_stream {
            for ((is_kernel, path), id) in std::mem::take(&mut self.build_ids) {
                self.records(&features::build_id_record(is_kernel, &path, &id))?;
            }
            self.out.flush()?;
            return Ok(self.out);
        }
        if let Err(error) = self.describe(machine, groups) {
            // the records are there, at least; the error is the first one
            let _ = self.cut_short();
            return Err(error);
        }
        Ok(self.out)
    }

    fn describe(&mut self, machine: &MachineDescription, groups: &[EventGroup]) -> Result<()> {
        let sections = features::sections(machine, groups, &self.events, &self.build_ids, self.times);
        let mut offset = self.data + self.written + 16 * sections.len() as u64;
        for (_, section) in &sections {
            self.out.write_all(&offset.to_ne_bytes())?;
            self.out.write_all(&(section.len() as u64).to_ne_bytes())?;
            offset += section.len() as u64;
        }
        for (_, section) in &sections {
            self.out.write_all(section)?;
        }
        self.out.seek(SeekFrom::Start(0))?;
        let present: Vec<u64> = sections.iter().map(|(feature, _)| *feature).collect();
        self.write_header(&present)?;
        self.out.seek(SeekFrom::End(0))?;
        self.out.flush()
    }

    /// Completes the header of the perf.data file after a failed write, as on a full disk, so that perf can read the
    /// complete records. The description of the machine is missing then.
    ///
    /// # Errors
    /// I/O errors of the output.
    pub(crate) fn cut_short(&mut self) -> Result<()> {
        if self.is_stream {
            return self.out.flush();
        }
        self.out.seek(SeekFrom::Start(0))?;
        self.write_header(&[])?;
        self.out.flush()
    }

    fn write_header(&mut self, features: &[u64]) -> Result<()> {
        let mut bits = [0_u64; 4];
        for feature in features {
            bits[(feature / 64) as usize & 3] |= 1 << (feature % 64);
        }
        let attrs_size = self.data - self.attrs;
        let words =
            [HEADER_SIZE, entry_size(&self.events), self.attrs, attrs_size, self.data, self.written, 0, 0];
        for word in std::iter::once(MAGIC).chain(words).chain(bits) {
            self.out.write_all(&word.to_ne_bytes())?;
        }
        Ok(())
    }

    fn write_events(&mut self) -> Result<()> {
        for id in self.events.iter().flat_map(|event| &event.ids) {
            self.out.write_all(&id.to_ne_bytes())?;
        }
        let (mut offset, attrs) = (HEADER_SIZE, attr_size(&self.events));
        for event in &self.events {
            let size = 8 * event.ids.len() as u64;
            self.out.write_all(&event.attr.to_bytes_of(attrs))?;
            self.out.write_all(&offset.to_ne_bytes())?;
            self.out.write_all(&size.to_ne_bytes())?;
            offset += size;
        }
        Ok(())
    }
}

/// Returns the number of bytes that the whole records at the start of some bytes take.
fn whole_records(bytes: &[u8]) -> usize {
    let mut whole = 0;
    while let Some(size) = bytes.get(whole + 6..whole + 8) {
        let size = usize::from(u16::from_ne_bytes([size[0], size[1]]));
        if size < 8 || bytes.len() - whole < size {
            break;
        }
        whole += size;
    }
    whole
}
