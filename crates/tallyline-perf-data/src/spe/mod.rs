//! Traces of Arm's Statistical Profiling Extension: samples that the hardware writes itself, as packets, into a
//! buffer that records of the type `PERF_RECORD_AUXTRACE` carry.
//!
//! `packet` reads bytes, `record` puts packets together, `source` says where data came from, `info` what the CPUs
//! and their clock are, `threads` who ran. `Traces` keeps what the other records say until all are read; then the
//! traces are decoded a piece at a time, one buffer of the hardware after the other.
//!
//! A record that is a memory access becomes a sample. Others are counted ([`AuxtraceStats`]).

mod info;
mod packet;
mod record;
mod source;
mod threads;

pub use info::{CpuMetadata, TimeConversion, auxtrace_info};

use super::abi::{auxtrace, misc, record as kind};
use super::bytes::Cursor;
use super::sample::{Sample, Weight};
use crate::Result;
use info::SpeMetadata;
use record::{Decoder, Operation, Record};
use std::collections::HashMap;
use threads::Threads;

/// The number of bytes of a trace that are read at once.
const PIECE: usize = if cfg!(any(test, fuzzing)) { 64 } else { 1 << 16 };

/// Statistics of decoding a recording's hardware traces (Arm SPE): accesses found, other operations, damage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuxtraceStats {
    /// The number of bytes of traces that were decoded.
    pub(crate) bytes: u64,
    /// The number of memory accesses; each is a sample.
    pub(crate) accesses: u64,
    /// The number of accesses whose thread is not known.
    pub(crate) unknown_threads: u64,
    /// The number of sampled branches, which are left out.
    pub(crate) branches: u64,
    /// The number of other operations that access no memory, which are left out.
    pub(crate) others: u64,
    /// The number of records that do not say which operation was sampled, or at which address.
    pub(crate) incomplete: u64,
    /// The number of records with bytes that are no packets.
    pub(crate) damaged: u64,
    /// The number of bytes in the traces that are no packets.
    pub(crate) damaged_bytes: u64,
    /// The number of records whose end is missing.
    pub(crate) cut: u64,
    /// The number of times that the buffer was full, and the hardware stopped for a while.
    pub(crate) truncated: u64,
    /// The number of times that the hardware found the last record unfinished when the next one was due.
    pub(crate) collisions: u64,
    /// The number of times that, by the kernel, a piece of the trace ends with a damaged record.
    pub(crate) partial: u64,
    /// The number of bytes of traces of other hardware, which are skipped.
    pub(crate) foreign: u64,
}

impl AuxtraceStats {
    /// Returns the number of bytes of hardware traces that were decoded.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of memory accesses in the hardware traces; each becomes a sample.
    #[inline]
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Returns the number of memory accesses in the hardware traces whose thread is not known.
    #[inline]
    pub fn unknown_threads(&self) -> u64 {
        self.unknown_threads
    }

    /// Returns the number of branches in the hardware traces; they are skipped.
    #[inline]
    pub fn branches(&self) -> u64 {
        self.branches
    }

    /// Returns the number of other operations without a memory access in the hardware traces; they are skipped.
    #[inline]
    pub fn others(&self) -> u64 {
        self.others
    }

    /// Returns the number of SPE records that lack the operation's type or address; they are skipped.
    #[inline]
    pub fn incomplete(&self) -> u64 {
        self.incomplete
    }

    /// Returns the number of SPE records that contain bytes which are no valid packet.
    #[inline]
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Returns the number of bytes in the hardware traces that are no valid packet.
    #[inline]
    pub fn damaged_bytes(&self) -> u64 {
        self.damaged_bytes
    }

    /// Returns the number of SPE records that are cut off, so that their end is missing.
    #[inline]
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// Returns the number of times that tracing paused because the kernel's trace buffer was full (flag
    /// `PERF_AUX_FLAG_TRUNCATED`).
    #[inline]
    pub fn truncated(&self) -> u64 {
        self.truncated
    }

    /// Returns the number of pieces of trace in which the hardware dropped samples, because the one before was not
    /// finished (flag `PERF_AUX_FLAG_COLLISION`).
    #[inline]
    pub fn collisions(&self) -> u64 {
        self.collisions
    }

    /// Returns the number of pieces of trace that the kernel reports as having gaps (flag `PERF_AUX_FLAG_PARTIAL`):
    /// the last record may be damaged.
    #[inline]
    pub fn partial(&self) -> u64 {
        self.partial
    }

    /// Returns the number of bytes of traces from other hardware than Arm SPE; they are skipped.
    #[inline]
    pub fn foreign(&self) -> u64 {
        self.foreign
    }

    /// Returns `true` if the recording has no hardware traces.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns one line for the user about each kind of loss or damage in the hardware traces.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let counted =
            |count: u64, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        if self.foreign > 0 {
            notes.push(format!(
                "{} of traces by hardware that is not Arm's SPE are skipped",
                counted(self.foreign, "byte", "bytes")
            ));
        }
        let left_out = self.branches + self.others;
        if left_out > 0 {
            notes.push(format!(
                "SPE: {} memory accesses; {} not, and left out ({}, {})",
                counted(self.accesses, "record is", "records are"),
                counted(left_out, "is", "are"),
                counted(self.branches, "branch", "branches"),
                counted(self.others, "other operation", "other operations"),
            ));
        }
        let lost = [
            (self.damaged, "are damaged"),
            (self.cut, "have no end"),
            (self.incomplete, "do not say what was sampled, or where"),
        ];
        let lost: Vec<_> = lost
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, why)| format!("{count} {why}"))
            .collect();
        if !lost.is_empty() {
            notes.push(format!("SPE: of the records {}; they are lost", lost.join(", ")));
        }
        if self.truncated > 0 {
            notes.push(format!(
                "SPE: the buffer was full {}, and accesses were missed: record with a larger one, or a longer period",
                counted(self.truncated, "time", "times")
            ));
        }
        if self.partial > 0 {
            notes.push(format!(
                "SPE: {} with a damaged record",
                counted(self.partial, "piece ends", "pieces end")
            ));
        }
        if self.collisions > 0 {
            notes.push(format!(
                "SPE: samples collided {}: the period is short, and what takes long is sampled less than its share",
                counted(self.collisions, "time", "times")
            ));
        }
        if self.unknown_threads > 0 {
            notes.push(format!(
                "SPE: of {} the thread is not known",
                counted(self.unknown_threads, "access", "accesses")
            ));
        }
        notes
    }
}

/// The trailer of a record other than a sample, the kernel's `struct sample_id`: thread, CPU and time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleId {
    /// The process of the record, by id.
    pub(crate) pid: Option<i32>,
    /// The thread of the record, by id.
    pub(crate) tid: Option<i32>,
    /// The time of the record, in nanoseconds of the recording's clock.
    pub(crate) time: Option<u64>,
    /// The CPU that the record was written on.
    pub(crate) cpu: Option<u32>,
}

impl SampleId {
    /// Creates the trailer of a record with its thread, CPU and time.
    pub fn new(pid: i32, tid: i32, time: u64, cpu: u32) -> Self {
        Self { pid: Some(pid), tid: Some(tid), time: Some(time), cpu: Some(cpu) }
    }

    /// Creates the trailer (`sample_id`) of a record that has a CPU number and nothing else.
    pub fn of_cpu(cpu: u32) -> Self {
        Self { cpu: Some(cpu), ..Self::default() }
    }

    /// Returns the time in nanoseconds that the record's trailer (`sample_id`) has; `None` if times are not recorded.
    #[inline]
    pub fn time(&self) -> Option<u64> {
        self.time
    }
}

/// Random access to the bytes of hardware traces in a perf.data file, implemented by whoever holds the file.
pub(crate) trait TraceBytes {
    /// Fills a buffer with the bytes at a position of the recording.
    fn read(&self, position: u64, buffer: &mut [u8]) -> Result<()>;
}

/// The location of a piece of a hardware trace, as a record `PERF_RECORD_AUXTRACE` describes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuxtraceBuffer {
    /// The size of the piece in bytes.
    pub(crate) size: u64,
    /// The offset of the piece in the hardware's buffer, counted from the recording's beginning.
    pub(crate) offset: u64,
    /// The index of the hardware's buffer that the piece is from.
    pub(crate) index: u32,
    /// The thread whose buffer it is, if it is one's.
    pub(crate) tid: Option<i32>,
    /// The CPU whose buffer it is, if it is one's.
    pub(crate) cpu: Option<u32>,
}

impl AuxtraceBuffer {
    /// Describes a piece of a CPU's hardware trace that starts at `offset` of the CPU's whole trace; its size is
    /// set when it is written.
    pub const fn of_cpu(cpu: u32, offset: u64) -> Self {
        Self { size: 0, offset, index: cpu, tid: None, cpu: Some(cpu) }
    }

    /// Describes a piece of a thread's hardware trace that starts at `offset` of the thread's whole trace; its size
    /// is set when it is written.
    pub const fn of_thread(tid: i32, offset: u64) -> Self {
        Self { size: 0, offset, index: 0, tid: Some(tid), cpu: None }
    }

    /// Returns the length of the piece of the hardware trace in bytes.
    #[inline]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the offset in bytes of the piece in the whole hardware trace of its CPU or thread, counted since the
    /// recording began.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the index of the trace buffer (the CPU's or thread's) that the piece of the hardware trace comes from.
    #[inline]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Returns its bytes without what fills it up to a multiple of 8, as far as the next one of the buffer
    /// says it.
    fn size_before(&self, next: Option<&AuxtraceBuffer>) -> u64 {
        const FILL: u64 = 8;
        let until = next
            .filter(|next| next.index == self.index)
            .and_then(|next| next.offset.checked_sub(self.offset));
        until.filter(|until| *until <= self.size && self.size - until < FILL).unwrap_or(self.size)
    }
}

/// The kernel's description of a part of a buffer.
#[derive(Clone, Copy, Debug)]
struct AuxRecord {
    offset: u64,
    size: u64,
    sample_id: SampleId,
    /// `true` if the last SPE record of the part is damaged.
    is_partial: bool,
}

/// The owner of a trace buffer: a CPU or a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum BufferOwner {
    Cpu(u32),
    Thread(i32),
}

/// The records of a perf.data file that describe hardware traces (Arm SPE), collected so that the traces can be
/// decoded after all other records.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    info: Option<SpeMetadata>,
    clock: Option<TimeConversion>,
    /// The pieces of traces, each with the position of its bytes in the recording.
    parts: Vec<(u64, AuxtraceBuffer)>,
    written: HashMap<BufferOwner, Vec<AuxRecord>>,
    threads: Threads,
    tally: AuxtraceStats,
}

/// Returns `true` for the record types (`PERF_RECORD_*`) that decoding hardware traces (Arm SPE) needs: those of the
/// traces, and those that tell which thread of which process ran (`COMM`, `FORK`, `SWITCH`).
pub(crate) fn is_auxtrace_record(kind: u32) -> bool {
    matches!(
        kind,
        kind::COMM
            | kind::FORK
            | kind::AUX
            | kind::ITRACE_START
            | kind::SWITCH
            | kind::SWITCH_CPU_WIDE
            | kind::AUXTRACE_INFO
            | kind::AUXTRACE
            | kind::TIME_CONV
    )
}

impl Traces {
    /// Collects a record that decoding hardware traces needs ([`is_auxtrace_record`]): its body and its trailer. `end`
    /// is the file position after the record, where the trace of a `PERF_RECORD_AUXTRACE` begins.
    pub(crate) fn add_record(
        &mut self,
        kind: u32,
        header_misc: u16,
        body: Cursor<'_>,
        sample_id: SampleId,
        end: u64,
    ) -> Result<()> {
        match kind {
            kind::AUXTRACE_INFO => self.info = SpeMetadata::parse(body)?.or(self.info.take()),
            kind::TIME_CONV => self.clock = TimeConversion::parse(body)?,
            kind::AUXTRACE => self.add_auxtrace(body, end)?,
            // the description comes first: without one nobody asks
            _ if self.info.is_some() => self.thread(kind, header_misc, body, sample_id)?,
            _ => {}
        }
        Ok(())
    }

    fn add_auxtrace(&mut self, mut at: Cursor<'_>, position: u64) -> Result<()> {
        const WHAT: &str = "a trace";
        let (size, offset) = (at.u64(WHAT)?, at.u64(WHAT)?);
        if offset.checked_add(size).is_none() {
            return Err(at.error(format!("a trace of {size} bytes at {offset:#x} of its buffer")));
        }
        at.u64(WHAT)?;
        let (index, tid, cpu) = (at.u32(WHAT)?, at.u32(WHAT)?.cast_signed(), at.u32(WHAT)?);
        let tid = Some(tid).filter(|tid| *tid != -1);
        let cpu = Some(cpu).filter(|cpu| *cpu != u32::MAX);
        self.parts.push((position, AuxtraceBuffer { size, offset, index, tid, cpu }));
        Ok(())
    }

    fn thread(&mut self, kind: u32, header_misc: u16, mut at: Cursor<'_>, sample_id: SampleId) -> Result<()> {
        const WHAT: &str = "a thread";
        let time = sample_id.time.filter(|time| *time != u64::MAX).unwrap_or(0);
        if let (Some(pid), Some(tid)) = (sample_id.pid, sample_id.tid)
            && !matches!(kind, kind::COMM | kind::FORK)
        {
            self.threads.belongs(tid, pid, time);
        }
        match kind {
            kind::AUX => self.written(at, sample_id)?,
            kind::COMM => {
                let (pid, tid) = (at.u32(WHAT)?.cast_signed(), at.u32(WHAT)?.cast_signed());
                self.threads.belongs(tid, pid, time);
            }
            kind::FORK => {
                let pid = at.u32(WHAT)?.cast_signed();
                at.u32(WHAT)?;
                self.threads.belongs(at.u32(WHAT)?.cast_signed(), pid, time);
            }
            kind::ITRACE_START => {
                let (pid, tid) = (at.u32(WHAT)?.cast_signed(), at.u32(WHAT)?.cast_signed());
                self.threads.belongs(tid, pid, time);
                if let Some(cpu) = sample_id.cpu {
                    self.threads.runs(cpu, Some(tid), time);
                }
            }
            kind::SWITCH | kind::SWITCH_CPU_WIDE => {
                let Some(cpu) = sample_id.cpu else { return Ok(()) };
                let leaves = header_misc & misc::SWITCH_OUT != 0;
                let mut runs = if leaves { None } else { sample_id.tid };
                if kind == kind::SWITCH_CPU_WIDE {
                    // the one before, or the next one
                    let (pid, tid) = (at.u32(WHAT)?.cast_signed(), at.u32(WHAT)?.cast_signed());
                    self.threads.belongs(tid, pid, time);
                    runs = if leaves { Some(tid) } else { runs };
                }
                self.threads.runs(cpu, runs, time);
            }
            _ => {}
        }
        Ok(())
    }

    fn written(&mut self, mut at: Cursor<'_>, sample_id: SampleId) -> Result<()> {
        const WHAT: &str = "a written trace";
        let (offset, size, flags) = (at.u64(WHAT)?, at.u64(WHAT)?, at.u64(WHAT)?);
        let has = |flag: u64| u64::from(flags & flag != 0);
        self.tally.truncated += has(auxtrace::TRUNCATED);
        self.tally.partial += has(auxtrace::PARTIAL);
        self.tally.collisions += has(auxtrace::COLLISION);
        for owner in [sample_id.cpu.map(BufferOwner::Cpu), sample_id.tid.map(BufferOwner::Thread)]
            .into_iter()
            .flatten()
        {
            let is_partial = flags & auxtrace::PARTIAL != 0;
            self.written.entry(owner).or_default().push(AuxRecord { offset, size, sample_id, is_partial });
        }
        Ok(())
    }

    /// Decodes all hardware traces and passes each memory access to `each` as a sample; returns the numbers of
    /// accesses, skipped operations and damaged records. `cpu_id` is the header's identifier of the CPU model,
    /// `has_time` says if the recording has times.
    pub(crate) fn each(
        mut self,
        source: &dyn TraceBytes,
        cpu_id: Option<&str>,
        has_time: bool,
        each: &mut dyn FnMut(&Sample<'_>) -> Result<()>,
    ) -> Result<AuxtraceStats> {
        let Some(mut info) = self.info.take() else {
            let foreign = self.parts.iter().map(|(_, part)| part.size);
            return Ok(AuxtraceStats { foreign: foreign.fold(0, u64::saturating_add), ..self.tally });
        };
        info.set_model(cpu_id);
        self.threads.sort();
        self.written.values_mut().for_each(|written| written.sort_by_key(|one| one.offset));
        // stable: parts of one buffer stay in the order that they were written in
        self.parts.sort_by_key(|(_, part)| part.index);
        let parts = std::mem::take(&mut self.parts);
        let (mut decoder, mut buffer, mut tally) = (Decoder::default(), Vec::new(), self.tally);
        let mut before: Option<u32> = None;
        let mut context = None;
        for (number, (position, part)) in parts.iter().enumerate() {
            let size = part.size_before(parts.get(number + 1).map(|(_, next)| next));
            if before.replace(part.index) != Some(part.index) {
                decoder.stop(&mut tally);
                context = None;
            }
            decoder.start(part.offset, &mut tally);
            let mut run = BufferRun { traces: &self, info: &info, part, context, has_time };
            let mut start = 0;
            while start < size {
                // what follows a damaged record is none of its packets
                let broken = run.next_break(part.offset.wrapping_add(start));
                let until = broken.map_or(size, |offset| offset.wrapping_sub(part.offset).min(size));
                buffer.resize(usize::try_from(until - start).map_or(PIECE, |left| left.min(PIECE)), 0);
                source.read(position.saturating_add(start), &mut buffer)?;
                decoder.feed(&buffer, &mut tally, &mut |record, offset, tally| {
                    run.sample(record, offset, tally).map_or(Ok(()), |sample| each(&sample))
                })?;
                start += buffer.len() as u64;
                if broken == Some(part.offset.wrapping_add(start)) {
                    decoder.stop(&mut tally);
                }
            }
            tally.bytes = tally.bytes.saturating_add(size);
            context = run.context;
        }
        decoder.stop(&mut tally);
        Ok(tally)
    }
}

/// The decoding of a part.
struct BufferRun<'t> {
    traces: &'t Traces,
    info: &'t SpeMetadata,
    part: &'t AuxtraceBuffer,
    /// The thread that a record of this buffer named last.
    context: Option<i32>,
    has_time: bool,
}

impl BufferRun<'_> {
    /// Returns the sample of a record that ends there in the hardware's buffer, if it is a memory access.
    fn sample(&mut self, record: &Record, offset: u64, tally: &mut AuxtraceStats) -> Option<Sample<'static>> {
        if let Some(context) = record.context {
            // the register has 32 bits of it
            self.context = Some(context as u32 as i32);
        }
        let (Some((ip, mode)), Some(operation)) = (record.code, record.operation) else {
            tally.incomplete += 1;
            return None;
        };
        match operation {
            Operation::Branch => tally.branches += 1,
            Operation::Other => tally.others += 1,
            Operation::Access { .. } => tally.accesses += 1,
        }
        if !matches!(operation, Operation::Access { .. }) {
            return None;
        }
        let written = self.written(offset);
        let cpu = self.part.cpu.or(written.and_then(|sample_id| sample_id.cpu));
        let (threads, clock) = (&self.traces.threads, self.traces.clock.filter(|_| self.has_time));
        let converted = clock.zip(record.timestamp).map(|(clock, timestamp)| clock.time(timestamp));
        let time = converted.or(written.and_then(|sample_id| sample_id.time));
        let at = time.unwrap_or(u64::MAX);
        let tid = (self.context)
            .or_else(|| threads.running(cpu?, at))
            .or(self.part.tid)
            // of a CPU's buffer that is only who was interrupted when it filled
            .or(written.filter(|_| self.part.cpu.is_none()).and_then(|sample_id| sample_id.tid));
        let pid = tid.and_then(|tid| threads.process(tid, at));
        tally.unknown_threads += u64::from(tid.is_none());
        Some(Sample {
            mode,
            exact: true,
            ip: Some(ip),
            pid: pid.or(Some(-1)),
            tid: tid.or(Some(-1)),
            time,
            addr: record.data,
            cpu,
            period: Some(1),
            weight: Some(Weight { weight: record.latency, ..Weight::default() }),
            data_source: source::of(record, self.info.cpu(cpu)),
            physical_address: record.physical,
            ..Sample::default()
        })
    }

    /// Returns the kernel's descriptions of this buffer, by offset, and the number of them that begin up to an
    /// offset.
    fn said(&self, offset: u64) -> Option<(&[AuxRecord], usize)> {
        let owner = match (self.part.cpu, self.part.tid) {
            (Some(cpu), _) => BufferOwner::Cpu(cpu),
            (None, tid) => BufferOwner::Thread(tid?),
        };
        let written = self.traces.written.get(&owner)?;
        Some((written, written.partition_point(|one| one.offset <= offset)))
    }

    /// Returns who wrote that part of the buffer, and when.
    fn written(&self, offset: u64) -> Option<SampleId> {
        let (written, behind) = self.said(offset)?;
        let one = written.get(behind.checked_sub(1)?)?;
        (offset - one.offset < one.size).then_some(one.sample_id)
    }

    /// Returns the end of the next damaged record behind an offset.
    fn next_break(&self, offset: u64) -> Option<u64> {
        let (written, behind) = self.said(offset)?;
        let next = written.get(behind.saturating_sub(1)..)?.iter();
        // no farther than a piece goes
        let mut next = next.take_while(|one| one.offset.saturating_sub(offset) < PIECE as u64);
        next.find_map(|one| one.offset.checked_add(one.size).filter(|end| one.is_partial && *end > offset))
    }
}
