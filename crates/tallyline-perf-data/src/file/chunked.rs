//! A recording in a file that is read a piece at a time, so that it takes no more memory than a piece. More
//! files may have further records: `perf record --threads` writes one for each of its threads.

use super::header::{Header, OuterBytes};
use super::inflate::is_compressed;
use super::record::{Decoder, Record};
use super::records::{RecordSource, RecordVisitor, visit_damage, visit_record, visit_traces};
use super::stream::{RawRecord, RawRecords};
use super::{Recording, event};
use crate::abi::record as kind;
use crate::bytes::Cursor;
use crate::sample::Sample;
use crate::spe::{TraceBytes, Traces};
use crate::{Error, Result};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// The number of bytes read at once: they stay in the second-level cache.
const CHUNK: usize = if cfg!(any(test, fuzzing)) { 256 } else { 1 << 18 };

/// The number of bytes read for a record that is asked for alone; others near it mostly follow.
const NEAR: usize = if cfg!(any(test, fuzzing)) { 64 } else { 1 << 14 };

/// The most bytes before the records, and behind them, that are kept.
const AROUND_LIMIT: u64 = 64 << 20;

/// The bits of a position that are the offset in a file; those above are the file's number.
const OFFSET: u64 = (1 << 48) - 1;

/// The most files: their numbers leave out the bits that mark positions elsewhere.
const FILES_LIMIT: usize = 1 << 14;

/// A perf.data file of which only the header and the descriptions of the sampled events (such as `cycles`) are in
/// memory; records are read in chunks.
#[derive(Debug)]
pub struct ChunkedRecording<'f> {
    files: Vec<RecordFile<'f>>,
    /// The header and the events of the recording, without records.
    recording: Recording<'static>,
    /// `true` if the last record of the recording must be whole.
    is_whole: bool,
}

/// A file, and the positions of its records.
#[derive(Debug)]
struct RecordFile<'f> {
    file: &'f File,
    data: Range<usize>,
    /// The file's name, for messages where there are several.
    name: String,
}

impl RecordFile<'_> {
    /// Says of an error which file it is in, and where in that.
    fn locate(&self, error: Error) -> Error {
        match error {
            Error::Damaged { offset, reason } if !self.name.is_empty() => {
                Error::damaged(offset & OFFSET, format!("{reason} (in {})", self.name))
            }
            other => other,
        }
    }
}

impl<'f> ChunkedRecording<'f> {
    /// Opens a perf.data file for reading in chunks. Returns `None` where [`Recording::parse`] has to read it as a
    /// whole: a pipe's format, compressed records, damage, or no perf.data at all.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(file: &'f File) -> Result<Option<ChunkedRecording<'f>>> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(None);
        }
        let Some(range) = data_range(file, metadata.len())? else { return Ok(None) };
        let (mut head, mut tail) = (vec![0; range.start], vec![0; metadata.len() as usize - range.end]);
        file.read_exact_at(&mut head, 0)?;
        file.read_exact_at(&mut tail, range.end as u64)?;
        let around = OuterBytes { head: &head, tail: &tail, tail_start: range.end };
        let Ok(header) = Header::parse(around) else { return Ok(None) };
        // a header that says nothing of the records' end, or a wrong one
        if header.is_stream || header.data != range {
            return Ok(None);
        }
        let mut recording = Recording::described_by(&header);
        if recording.read_sections(around, &header).is_err() || recording.finish().is_err() {
            return Ok(None);
        }
        let is_whole = !tail.is_empty() || recording.warnings.is_empty();
        let part = RecordFile { file, data: range, name: String::new() };
        Ok(Some(ChunkedRecording { files: vec![part], recording, is_whole }))
    }

    /// Appends files that hold only further records of this perf recording (`perf record --threads` writes one for each
    /// of its threads), each with its name for errors.
    ///
    /// # Errors
    /// A file that cannot be read or is impossibly large; too many files.
    pub fn with_more(
        mut self,
        files: impl IntoIterator<Item = (&'f File, String)>,
    ) -> Result<ChunkedRecording<'f>> {
        for (file, name) in files {
            let len = file.metadata()?.len();
            if self.files.len() >= FILES_LIMIT {
                return Err(Error::Limit { what: "files of a recording", limit: FILES_LIMIT as u64 });
            }
            if len > OFFSET {
                return Err(Error::Limit { what: "bytes of a recording's file", limit: OFFSET });
            }
            let start = self.files.len() << OFFSET.count_ones();
            self.files.push(RecordFile { file, data: start..start + len as usize, name });
        }
        Ok(self)
    }

    /// Hands on the records; false as soon as there is one that says how to read others.
    fn visit_all(&self, each: &mut RecordVisitor<'_>) -> Result<bool> {
        let mut traces = Traces::default();
        for part in &self.files {
            if !self.visit_file(part, &mut traces, each).map_err(|error| part.locate(error))? {
                return Ok(false);
            }
        }
        visit_traces(&self.recording, traces, self, each)?;
        Ok(true)
    }

    fn visit_file(
        &self,
        part: &RecordFile<'_>,
        traces: &mut Traces,
        each: &mut RecordVisitor<'_>,
    ) -> Result<bool> {
        let decoder = Decoder { events: &self.recording.events };
        let mut buffer = Vec::new();
        let (mut start, mut size) = (part.data.start, CHUNK);
        while start < part.data.end {
            let end = start.saturating_add(size).min(part.data.end);
            let is_last = end == part.data.end;
            let mut records = self.read_chunk(part, &mut buffer, start..end, self.is_whole || !is_last)?;
            let (mut sample, mut failure) = (Sample::default(), None);
            for raw in records.by_ref() {
                match raw {
                    Ok(raw) if describes(&raw) => return Ok(false),
                    Ok(raw) => visit_record(&decoder, &raw, &mut sample, traces, each)?,
                    // mostly the next piece starts with it
                    Err(error) => failure = Some(error),
                }
            }
            match failure {
                Some(error) if is_last || records.is_beyond() && self.is_whole => {
                    // who reads one file as a whole warns of it
                    if self.files.len() == 1 {
                        return Ok(false);
                    }
                    visit_damage(0, part.locate(error), each)?;
                    break;
                }
                // a trace that was cut off need not be looked for in memory
                Some(_) if records.is_beyond() => break,
                _ if is_last => break,
                _ => {}
            }
            let next = records.end();
            // a record that is longer than a piece
            size = if next == start { size.saturating_mul(2) } else { CHUNK };
            start = next;
        }
        Ok(true)
    }

    /// Returns the file that a position is in.
    fn file_at(&self, position: u64) -> Option<&RecordFile<'f>> {
        self.files.get(usize::try_from(position >> OFFSET.count_ones()).ok()?)
    }

    fn read_chunk<'b>(
        &self,
        part: &RecordFile<'_>,
        buffer: &'b mut Vec<u8>,
        range: Range<usize>,
        is_whole: bool,
    ) -> Result<RawRecords<'b>> {
        buffer.resize(range.len(), 0);
        part.file.read_exact_at(buffer, range.start as u64 & OFFSET)?;
        let records =
            RawRecords::new(Cursor::new(buffer, self.recording.order, range.start as u64), is_whole);
        Ok(records.with_more(part.data.end.saturating_sub(range.end) as u64))
    }

    fn decode<'b>(&self, raw: &RawRecord<'b>) -> Result<Record<'b>> {
        Decoder { events: &self.recording.events }.decode(raw)
    }
}

impl TraceBytes for ChunkedRecording<'_> {
    fn read(&self, position: u64, buffer: &mut [u8]) -> Result<()> {
        let gone = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let part = self.file_at(position).ok_or_else(gone)?;
        Ok(part.file.read_exact_at(buffer, position & OFFSET)?)
    }
}

impl RecordSource for ChunkedRecording<'_> {
    fn recording(&self) -> &Recording<'_> {
        &self.recording
    }

    fn visit(&self, each: &mut RecordVisitor<'_>) -> Result<bool> {
        self.visit_all(each)
    }

    fn visit_at(
        &self,
        positions: &mut dyn Iterator<Item = u64>,
        each: &mut dyn FnMut(&Record<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut buffer = Vec::new();
        let mut there = 0..0;
        for position in positions {
            let Some(part) = self.file_at(position) else { continue };
            let start = usize::try_from(position).unwrap_or(usize::MAX);
            let mut size = NEAR;
            loop {
                if there.contains(&start) {
                    let near = buffer.get(start - there.start..).unwrap_or_default();
                    let raw = RawRecords::at(Cursor::new(near, self.recording.order, position), false);
                    match raw {
                        Ok(raw) => break each(&self.decode(&raw)?)?,
                        Err(error) if there.end >= part.data.end => return Err(error),
                        Err(_) => {}
                    }
                }
                let end = start.saturating_add(size).min(part.data.end);
                let _ = self.read_chunk(part, &mut buffer, start.min(end)..end, true)?;
                there = start..end;
                if there.is_empty() {
                    break;
                }
                size = size.saturating_mul(2);
            }
        }
        Ok(())
    }
}

/// Returns the range of the records by the file's first bytes; none where these do not tell or make no sense.
fn data_range(file: &File, len: u64) -> Result<Option<Range<usize>>> {
    let mut first = [0; super::header::FILE_HEADER as usize];
    if len < first.len() as u64 {
        return Ok(None);
    }
    file.read_exact_at(&mut first, 0)?;
    let Some(range) = super::header::data_range(&first) else { return Ok(None) };
    let is_there = range.start >= first.len() as u64 && range.start < range.end && range.end <= len;
    if !is_there || range.start > AROUND_LIMIT || len - range.end > AROUND_LIMIT {
        return Ok(None);
    }
    let (start, end) = (usize::try_from(range.start), usize::try_from(range.end));
    Ok(start.ok().zip(end.ok()).map(|(start, end)| start..end))
}

/// Returns `true` if a record tells how others are to be read: it describes events or files, or is compressed.
fn describes(raw: &RawRecord<'_>) -> bool {
    match raw.kind {
        kind::HEADER_ATTR | kind::HEADER_BUILD_ID | kind::HEADER_FEATURE => true,
        kind::EVENT_UPDATE => event::is_name(raw.body),
        other => is_compressed(other),
    }
}
