//! Reads a trace. What is kept in memory is the index of blocks, the instructions and the mappings;
//! accesses are decoded as they are asked for.

use super::format::{
    Access, BLOCK_LIMIT, Event, MAGIC, Mapping, ProcessEnd, ProcessExec, SyncPoint, TraceHeader,
};
use super::instructions::{Instruction, Instructions};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use tallyline_perf_data::{ByteOrder, Cursor};

/// The bytes of a trace: a file, which is read as it is asked for, or a slice.
///
/// One type for both, so that decoding is compiled once, in this crate, and not by each caller in its profile.
#[derive(Clone, Copy, Debug)]
enum Source<'s> {
    File(&'s File),
    Bytes(&'s [u8]),
}

impl Source<'_> {
    fn size(self) -> io::Result<u64> {
        match self {
            Self::File(file) => Ok(file.metadata()?.len()),
            Self::Bytes(bytes) => Ok(bytes.len() as u64),
        }
    }

    /// Fills a buffer with the bytes at an offset; `UnexpectedEof` if the trace ends before the buffer is full.
    fn read_at(self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        match self {
            Self::File(file) => std::os::unix::fs::FileExt::read_exact_at(file, into, offset),
            Self::Bytes(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let from = bytes.get(start..).and_then(|rest| rest.get(..into.len()));
                into.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }
}

/// The location in the trace file of a run of one thread's consecutive events (memory accesses, synchronisations), with
/// their number and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventBlock {
    /// The accesses in it.
    pub(crate) accesses: u32,
    /// The points of synchronisation in it.
    pub(crate) points: u32,
    /// Nanoseconds of the machine's monotonic clock: of the first event, and when it was written.
    pub(crate) times: (u64, u64),
    offset: u64,
    length: u32,
    now: u64,
    instruction: u64,
    address: u64,
}

impl EventBlock {
    /// Returns the number of memory accesses in this block of the trace file.
    #[inline]
    pub fn accesses(&self) -> u32 {
        self.accesses
    }
}

/// A traced thread, or a CPU of a whole traced machine, with the locations of its events (memory accesses,
/// synchronisations) in the trace file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The id of the process that the thread belongs to.
    pub(crate) process: u32,
    /// The id of the thread; in the trace of a whole machine, the number of the CPU.
    pub(crate) thread: u32,
    /// The blocks of the thread's events, oldest first.
    pub(crate) blocks: Vec<EventBlock>,
}

impl Thread {
    /// Returns the id of the process that the thread belongs to.
    #[inline]
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Returns the id of the thread; in the trace of a whole machine, the number of the CPU.
    #[inline]
    pub fn thread(&self) -> u32 {
        self.thread
    }

    /// Returns the locations of the trace file's blocks with the thread's events (memory accesses, synchronisations),
    /// oldest first.
    #[inline]
    pub fn blocks(&self) -> &[EventBlock] {
        &self.blocks
    }

    /// Returns the time of the thread's first event and that when its last events were written, in nanoseconds of the
    /// machine's monotonic clock; `None` of a thread without events.
    pub fn times(&self) -> Option<Range<u64>> {
        let (first, last) = (self.blocks.first()?, self.blocks.last()?);
        Some(first.times.0..last.times.1)
    }

    /// Returns the number of the thread's memory accesses that are in the trace.
    pub fn accesses(&self) -> u64 {
        self.blocks.iter().map(|block| u64::from(block.accesses)).sum()
    }
}

/// An opened trace: the recorded memory accesses of a program with the instructions that made them.
#[derive(Debug)]
pub struct Trace<'s> {
    source: Source<'s>,
    header: TraceHeader,
    instructions: Instructions,
    mappings: Vec<Mapping>,
    threads: Vec<Thread>,
    ends: Vec<ProcessEnd>,
    executions: Vec<ProcessExec>,
    names: BTreeMap<(u32, u32), String>,
    cut: u64,
}

/// The fixed part of a block of accesses.
const ACCESSES_HEAD: usize = 56;

impl<'s> Trace<'s> {
    /// Opens a trace in a file: reads the tables of blocks, instructions and mappings, and leaves the events (memory
    /// accesses, synchronisations) in the file until [`events`](Self::events) reads them.
    ///
    /// # Errors
    /// [`Error::NotTrace`]; [`Error::Damaged`] with the offset; errors of the file. A last block that the end of
    /// the file cuts off is no error, see [`is_complete`](Self::is_complete).
    pub fn open(file: &'s File) -> Result<Self> {
        Self::read(Source::File(file))
    }

    /// Opens a trace of memory accesses whose whole file is in memory, as [`open`](Self::open) does with a file.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn from_bytes(bytes: &'s [u8]) -> Result<Self> {
        Self::read(Source::Bytes(bytes))
    }

    fn read(source: Source<'s>) -> Result<Self> {
        let size = source.size()?;
        let mut trace = Self {
            source,
            header: read_header(source, size)?,
            instructions: Instructions::default(),
            mappings: Vec::new(),
            threads: Vec::new(),
            ends: Vec::new(),
            executions: Vec::new(),
            names: BTreeMap::new(),
            cut: 0,
        };
        let mut places = BTreeMap::new();
        let mut body = Vec::new();
        let mut offset = 0;
        while offset < size {
            let Some(block) = BlockHeader::read(source, offset, size)? else {
                trace.cut = size - offset;
                break;
            };
            let kept = if &block.kind == b"ACCS" { ACCESSES_HEAD as u32 } else { block.length };
            body.resize(block.length.min(kept) as usize, 0);
            source.read_at(offset + 8, &mut body)?;
            let cursor = Cursor::new(&body, ByteOrder::Little, offset + 8);
            trace.add(&block, cursor, &mut places)?;
            offset = block.end;
        }
        trace.instructions.sort();
        Ok(trace)
    }

    fn add(
        &mut self,
        block: &BlockHeader,
        mut cursor: Cursor<'_>,
        places: &mut BTreeMap<(u32, u32), usize>,
    ) -> Result<()> {
        match &block.kind {
            b"INSN" => read_instructions(&mut cursor, &mut self.instructions)?,
            b"MAPS" => self.mappings.push(read_mapping(&mut cursor)?),
            b"DONE" => self.ends.push(read_end(&mut cursor)?),
            b"EXEC" => {
                let process = cursor.u32("process")?;
                self.executions.push(ProcessExec { process, path: read_text(&mut cursor, "path")? });
            }
            b"NAME" => {
                let thread = (cursor.u32("process")?, cursor.u32("thread")?);
                self.names.insert(thread, read_text(&mut cursor, "name")?);
            }
            b"BACK" => {
                let process = cursor.u32("process")?;
                let last = self.executions.iter().rposition(|execution| execution.process == process);
                last.map(|last| self.executions.remove(last));
            }
            b"ACCS" => {
                let (process, thread, read) = read_block(&mut cursor, block.length)?;
                let place = *places.entry((process, thread)).or_insert_with(|| {
                    self.threads.push(Thread { process, thread, blocks: Vec::new() });
                    self.threads.len() - 1
                });
                self.threads[place].blocks.push(read);
            }
            kind if *kind == MAGIC => {}
            other => {
                let name = String::from_utf8_lossy(other).escape_debug().to_string();
                let reason = format!("there are no blocks '{name}'");
                return Err(Error::Damaged { offset: block.offset, reason });
            }
        }
        Ok(())
    }

    /// Returns the trace's header: how, when and on which emulated machine it was recorded.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// Returns the table of the traced program's instructions; a recorded memory access holds the index of the one that
    /// made it.
    pub fn instructions(&self) -> &Instructions {
        &self.instructions
    }

    /// Returns the files that the traced processes mapped into memory, oldest mapping first.
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// Returns the latest mapping that covers an address of a traced process, and the address's offset in the
    /// mapped file; `None` if there is none. A forked process also has the mappings of the first one.
    pub fn mapping_at(&self, process: u32, address: u64) -> Option<(&Mapping, u64)> {
        // a forked process has its parent's mappings, written before it was there
        let of = |process| {
            let mappings = self.mappings.iter().rev().filter(move |mapping| mapping.process == process);
            mappings.filter_map(|mapping| Some((mapping, mapping.offset_of(address)?))).next()
        };
        of(process).or_else(|| of(self.header.process))
    }

    /// Returns the traced threads, ordered by their first blocks in the file.
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// Returns the name that a thread had when it ended (its `comm`); `None` if the trace does not have it.
    pub fn thread_name(&self, process: u32, thread: u32) -> Option<&str> {
        self.names.get(&(process, thread)).map(String::as_str)
    }

    /// Returns the totals (instructions, accesses) of each traced process that ended by itself; a killed process has
    /// none.
    pub fn ends(&self) -> &[ProcessEnd] {
        &self.ends
    }

    /// Returns the paths of the programs that traced processes executed in their place (`exec`), oldest first.
    /// Those programs are not traced.
    pub fn executed_programs(&self) -> impl Iterator<Item = &str> {
        self.executions.iter().map(|execution| execution.path.as_str())
    }

    /// Returns `true` if the trace is complete: the file holds the end of the first traced process (or its `exec`), is
    /// not cut off, and no write to it failed. A trace that stopped at its size limit counts as complete, see
    /// [`ProcessEnd::full`].
    pub fn is_complete(&self) -> bool {
        let first = self.header.process;
        let has_ended = self.ends.iter().any(|end| end.process == first)
            || self.executions.iter().any(|execution| execution.process == first);
        has_ended && self.cut == 0 && !self.ends.iter().any(|end| end.broken)
    }

    /// Reads a block of a traced thread from the trace and returns an iterator over its events (memory accesses,
    /// synchronisations). `buffer` is reused for the block's bytes; `Events::into_buffer` gives it back.
    ///
    /// # Errors
    /// Errors of the source. Damage is reported by the iterator.
    pub fn events(&self, block: &EventBlock, mut buffer: Vec<u8>) -> Result<Events<'_>> {
        buffer.resize(block.length as usize, 0);
        self.source.read_at(block.offset, &mut buffer)?;
        Ok(Events::new(&self.instructions, block, buffer))
    }
}

/// Four letters and a length.
struct BlockHeader {
    kind: [u8; 4],
    length: u32,
    offset: u64,
    end: u64,
}

impl BlockHeader {
    /// Reads a block; `None` if the file ends within it.
    fn read(source: Source<'_>, offset: u64, size: u64) -> Result<Option<Self>> {
        let mut head = [0; 8];
        if size - offset < head.len() as u64 {
            return Ok(None);
        }
        source.read_at(offset, &mut head)?;
        let [a, b, c, d, length @ ..] = head;
        let length = u32::from_le_bytes(length);
        if length > BLOCK_LIMIT {
            let reason = format!("a block of {length} bytes: at most {BLOCK_LIMIT} are written");
            return Err(Error::Damaged { offset, reason });
        }
        let end = offset + 8 + u64::from(length);
        Ok((end <= size).then_some(Self { kind: [a, b, c, d], length, offset, end }))
    }
}

fn read_header(source: Source<'_>, size: u64) -> Result<TraceHeader> {
    let block = BlockHeader::read(source, 0, size).unwrap_or(None).filter(|block| block.kind == MAGIC);
    let block = block.ok_or(Error::NotTrace)?;
    let mut body = vec![0; block.length as usize];
    source.read_at(8, &mut body)?;
    let mut cursor = Cursor::new(&body, ByteOrder::Little, 8);
    let mut read = || -> Result<TraceHeader> {
        let flags = cursor.u32("flags")?;
        Ok(TraceHeader {
            whole_machine: flags & 1 != 0,
            windowed: flags & 2 != 0,
            interface: cursor.u32("interface")?,
            every: cursor.u64("every")?,
            process: cursor.u32("process")?,
            time: cursor.u64("time")?,
            machine: read_text(&mut cursor, "machine")?,
        })
    };
    read()
}

fn read_text(cursor: &mut Cursor<'_>, what: &str) -> Result<String> {
    let length = cursor.u16(what)?;
    Ok(String::from_utf8_lossy(cursor.take(u64::from(length), what)?).into_owned())
}

fn read_mapping(cursor: &mut Cursor<'_>) -> Result<Mapping> {
    Ok(Mapping {
        process: cursor.u32("process")?,
        protection: cursor.u32("protection")?,
        start: cursor.u64("address")?,
        length: cursor.u64("length")?,
        offset: cursor.u64("offset")?,
        path: read_text(cursor, "path")?,
    })
}

fn read_end(cursor: &mut Cursor<'_>) -> Result<ProcessEnd> {
    let process = cursor.u32("process")?;
    let flags = cursor.u32("flags")?;
    Ok(ProcessEnd {
        process,
        full: flags & 1 != 0,
        broken: flags & 2 != 0,
        instructions: cursor.u64("instructions")?,
        accesses: cursor.u64("accesses")?,
    })
}

fn read_instructions(cursor: &mut Cursor<'_>, into: &mut Instructions) -> Result<()> {
    let first = cursor.u64("instructions")?;
    let count = cursor.u32("instructions")?;
    let mut bytes = Varints(cursor.rest());
    let mut end = 0_u64;
    for at in 0..u64::from(count) {
        let (Some(distance), Some(length)) = (bytes.next(), bytes.byte()) else {
            return Err(cursor.error(format!("{count} instructions, of which {at} are there")).into());
        };
        let address = end.wrapping_add(signed(distance >> 1));
        end = address.wrapping_add(u64::from(length));
        into.add(first.wrapping_add(at), Instruction { address, length, atomic: distance & 1 != 0 });
    }
    Ok(())
}

/// Reads the fixed part of a block of accesses that has so many bytes.
fn read_block(cursor: &mut Cursor<'_>, length: u32) -> Result<(u32, u32, EventBlock)> {
    let (process, thread) = (cursor.u32("process")?, cursor.u32("thread")?);
    let (accesses, points) = (cursor.u32("accesses")?, cursor.u32("points")?);
    let (now, instruction, address) =
        (cursor.u64("instructions run")?, cursor.u64("instruction")?, cursor.u64("address")?);
    let times = (cursor.u64("time")?, cursor.u64("time")?);
    let offset = cursor.offset();
    let length = length - ACCESSES_HEAD as u32;
    // an access has at least two bytes, a point three
    if u64::from(accesses) * 2 + u64::from(points) * 3 > u64::from(length) {
        return Err(cursor
            .error(format!("{accesses} accesses and {points} points in {length} bytes"))
            .into());
    }
    Ok((process, thread, EventBlock { accesses, points, times, offset, length, now, instruction, address }))
}

/// Numbers of seven bits a byte.
struct Varints<'a>(&'a [u8]);

impl Varints<'_> {
    #[inline]
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    /// Reads the next number; `None` at the end, or if it has more than 64 bits.
    #[inline]
    fn next(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        for shift in (7..70).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

/// Returns a zigzag as what is added.
#[inline]
fn signed(zigzag: u64) -> u64 {
    (zigzag >> 1) ^ (zigzag & 1).wrapping_neg()
}

/// The number of instructions whose last addresses are remembered.
const REMEMBERED: usize = 256;

/// Iterator over the decoded events (memory accesses, synchronisations) of one block of a traced thread.
#[derive(Debug)]
pub struct Events<'a> {
    instructions: &'a Instructions,
    bytes: Vec<u8>,
    at: usize,
    offset: u64,
    now: u64,
    instruction: u64,
    address: u64,
    point: u64,
    remembered: [u64; REMEMBERED],
}

impl<'a> Events<'a> {
    fn new(instructions: &'a Instructions, block: &EventBlock, bytes: Vec<u8>) -> Self {
        Self {
            instructions,
            bytes,
            at: 0,
            offset: block.offset,
            now: block.now,
            instruction: block.instruction,
            address: block.address,
            point: 0,
            remembered: [0; REMEMBERED],
        }
    }

    /// Returns the byte buffer that the block of the trace was read into, to be reused for the next block.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.bytes
    }

    #[inline]
    fn number(&mut self) -> Option<u64> {
        let mut numbers = Varints(self.bytes.get(self.at..)?);
        let number = numbers.next();
        self.at = self.bytes.len() - numbers.0.len();
        number
    }

    #[inline]
    fn access(&mut self, head: u64) -> Option<Event> {
        let distance = signed(head >> 5);
        let advance = if head & 1 << 4 != 0 { distance } else { self.number()? };
        self.instruction = self.instruction.wrapping_add(distance);
        self.now = self.now.wrapping_add(advance);
        let place = self.instruction as usize % REMEMBERED;
        let from = if self.remembered[place] != 0 { self.remembered[place] } else { self.address };
        self.address = from.wrapping_add(signed(self.number()?));
        self.remembered[place] = self.address;
        let instruction = self.instructions.index(self.instruction)?;
        let (size, store) = (1 << (head & 7), head & 1 << 3 != 0);
        Some(Event::Access(Access { instruction, address: self.address, size, store, now: self.now }))
    }

    #[cold]
    fn point(&mut self, head: u64) -> Option<Event> {
        let kind = SyncPoint::from_number(head >> 3)?;
        self.point = self.point.wrapping_add(self.number()?);
        self.now = self.now.wrapping_add(self.number()?);
        Some(Event::Sync { kind, number: self.point, now: self.now })
    }
}

impl Iterator for Events<'_> {
    type Item = Result<Event>;

    #[inline]
    fn next(&mut self) -> Option<Result<Event>> {
        let start = self.at;
        if start >= self.bytes.len() {
            return None;
        }
        let event = match self.number() {
            Some(head) if head & 7 == 7 => self.point(head),
            Some(head) => self.access(head),
            None => None,
        };
        if event.is_none() {
            self.at = self.bytes.len();
            let reason = "this is no event".into();
            return Some(Err(Error::Damaged { offset: self.offset + start as u64, reason }));
        }
        event.map(Ok)
    }
}

#[cfg(test)]
mod tests;
