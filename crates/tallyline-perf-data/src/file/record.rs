//! Records and their bodies.

use super::build_id::BuildId;
use super::event::Events;
use super::stream::RawRecord;
use crate::abi::{misc, record as kind, sample as bit};
use crate::attr::Attr;
use crate::bytes::{Cursor, until_nul};
use crate::sample::{CpuMode, Sample};
use crate::spe::{SampleId, Traces};
use crate::{Error, Result};

/// A decoded record of a perf.data file, such as a sample or a mapping, with its offset and time.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// The record's offset in the file, or in the inflated records.
    pub(crate) offset: u64,
    /// The time, if the recording has it.
    pub(crate) time: Option<u64>,
    /// The fields of its type.
    pub(crate) body: RecordBody<'a>,
}

impl<'a> Record<'a> {
    /// Returns the record's type-specific contents and drops its offset and time.
    pub fn into_body(self) -> RecordBody<'a> {
        self.body
    }

    /// Returns the record's offset in the file; of a compressed record, its offset in the decompressed bytes.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the record's time in nanoseconds; `None` if times were not recorded.
    #[inline]
    pub fn time(&self) -> Option<u64> {
        self.time
    }

    /// Returns the record's type-specific contents.
    #[inline]
    pub fn body(&self) -> &RecordBody<'a> {
        &self.body
    }
}

/// The type-specific contents of a record: a sample, a mapping, a thread's name and so on.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "nearly all records are samples, and none is kept")]
pub enum RecordBody<'a> {
    /// A sample of the event with this index.
    Sample(usize, Sample<'a>),
    /// A sample of an event that the recording does not describe, by the id in the sample.
    UnknownEvent(u64),
    /// A mapping of a file or memory.
    Mmap(Mmap<'a>),
    /// The naming of a thread.
    Comm(Comm<'a>),
    /// The start of a thread.
    Fork(Task),
    /// The end of a thread.
    Exit(Task),
    /// The number of records that were lost because the ring was not emptied in time.
    Lost(u64),
    /// The number of samples that were lost.
    LostSamples(u64),
    /// The registration or removal of code in the kernel, such as a BPF program.
    KernelSymbol(KernelSymbol<'a>),
    /// A record that is not decoded, by its type: a constant of `abi::record`.
    Other(u32),
}

/// A record that a process mapped a file or memory: `PERF_RECORD_MMAP` or `PERF_RECORD_MMAP2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mmap<'a> {
    /// The process whose address space the mapping is in; −1 for the kernel's.
    pub pid: i32,
    /// The thread that made the mapping.
    pub tid: i32,
    /// The CPU mode of the code in the mapping.
    pub mode: CpuMode,
    /// The first address of the mapping.
    pub start: u64,
    /// The length of the mapping in bytes.
    pub len: u64,
    /// The offset in the file of the first address; for the kernel's own code the address of the symbol that
    /// the path names, such as `_text`.
    pub file_offset: u64,
    /// The path of the file, or a name of the kernel's or perf's: `[vdso]`, `//anon`, `[kernel.kallsyms]_text`.
    pub path: &'a [u8],
    /// `true` if code can run there; in old recordings, if it is not marked as data.
    pub is_executable: bool,
    /// The build-id of the mapped file.
    pub build_id: Option<BuildId>,
    /// The file whose memory the mapping shares with all others of it (`MAP_SHARED`), by the major and minor number of
    /// its device and its inode; `None` for a private mapping, or if the record does not say which file it is.
    pub shared_file: Option<(u32, u32, u64)>,
}

/// Identifies a file by the major and minor number of its device and its inode; `None` for inode 0, which no file has.
pub(crate) fn shared_file_of(major: u32, minor: u32, inode: u64) -> Option<(u32, u32, u64)> {
    (inode != 0).then_some((major, minor, inode))
}

/// A record that a thread got a name: `PERF_RECORD_COMM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comm<'a> {
    /// The id of the process that the thread belongs to.
    pub(crate) pid: i32,
    /// The id of the thread that got the name.
    pub(crate) tid: i32,
    /// The name that the thread got.
    pub(crate) name: &'a [u8],
    /// `true` if the process began another program.
    pub(crate) is_exec: bool,
}

impl<'a> Comm<'a> {
    /// Returns the id of the process that the thread belongs to.
    #[inline]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns the thread's name.
    #[inline]
    pub fn name(&self) -> &'a [u8] {
        self.name
    }

    /// Returns `true` if the name comes from an `exec` of the process, `false` if the thread was renamed.
    #[inline]
    pub fn is_exec(&self) -> bool {
        self.is_exec
    }

    /// Creates a record of a thread's name; `is_exec` says that the name comes from an `exec` of the process.
    pub fn new(pid: i32, tid: i32, name: &'a [u8], is_exec: bool) -> Self {
        Self { pid, tid, name, is_exec }
    }
}

/// A record that a thread or process started or ended: `PERF_RECORD_FORK` or `PERF_RECORD_EXIT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The id of the process that the thread belongs to.
    pub(crate) pid: i32,
    /// The id of the process of the parent thread.
    pub(crate) parent_pid: i32,
    /// The id of the thread that started or ended.
    pub(crate) tid: i32,
    /// The id of the parent thread.
    pub(crate) parent_tid: i32,
}

impl Task {
    /// Returns the id of the process that the thread belongs to.
    #[inline]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns the id of the process of the parent thread.
    #[inline]
    pub fn parent_pid(&self) -> i32 {
        self.parent_pid
    }
}

/// A record that a range of kernel code, such as a BPF program, was registered or removed: `PERF_RECORD_KSYMBOL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSymbol<'a> {
    /// The first address of the code.
    pub(crate) start: u64,
    /// The length of the code in bytes.
    pub(crate) len: u32,
    /// The name of the symbol.
    pub(crate) name: &'a [u8],
    /// `true` if the symbol was unregistered.
    pub(crate) is_unregistered: bool,
}

/// Decodes records of known events.
pub(super) struct Decoder<'e> {
    pub(super) events: &'e Events,
}

impl Decoder<'_> {
    pub(super) fn decode<'a>(&self, raw: &RawRecord<'a>) -> Result<Record<'a>> {
        self.decode_body(raw).map_err(|error| with_location(raw, error))
    }

    /// Decodes a sample in the place of another one, and says which event's it is. None for what is no
    /// sample, or one of an unknown event.
    pub(super) fn decode_sample<'a>(
        &self,
        raw: &RawRecord<'a>,
        sample: &mut Sample<'a>,
    ) -> Result<Option<usize>> {
        let index = (raw.kind == kind::SAMPLE).then(|| self.events.of_record(true, raw.body));
        let Some(Ok(index)) = index else { return Ok(None) };
        let Some(event) = self.events.get(index) else { return Ok(None) };
        sample.decode_over(raw.misc, raw.body, &event.attr).map_err(|error| with_location(raw, error))?;
        Ok(Some(index))
    }

    /// Has traces take a record into account.
    pub(super) fn add_to_traces(&self, raw: &RawRecord<'_>, traces: &mut Traces) -> Result<()> {
        let (mut body, mut sample_id) = (raw.body, SampleId::default());
        if raw.kind < kind::USER_TYPES {
            let index = self.events.of_record(false, raw.body).unwrap_or(0);
            let event = self.events.get(index);
            (body, sample_id) =
                event.map_or(Ok((body, sample_id)), |event| split_trailer(body, &event.attr))?;
        }
        let noted = traces.add_record(raw.kind, raw.misc, body, sample_id, raw.end());
        noted.map_err(|error| with_location(raw, error))
    }

    fn decode_body<'a>(&self, raw: &RawRecord<'a>) -> Result<Record<'a>> {
        let other = |body| Record { offset: raw.offset, time: None, body };
        if raw.kind >= kind::USER_TYPES {
            return Ok(other(RecordBody::Other(raw.kind)));
        }
        let is_sample = raw.kind == kind::SAMPLE;
        let index = match self.events.of_record(is_sample, raw.body) {
            Ok(index) => index,
            Err(id) if is_sample => return Ok(other(RecordBody::UnknownEvent(id))),
            Err(_) => 0,
        };
        let Some(event) = self.events.get(index) else {
            return Err(Error::damaged(raw.offset, "a record before the first event"));
        };
        if is_sample {
            let sample = Sample::decode(raw.misc, raw.body, &event.attr)?;
            return Ok(Record {
                offset: raw.offset,
                time: sample.time,
                body: RecordBody::Sample(index, sample),
            });
        }
        let (body, trailer) = split_trailer(raw.body, &event.attr)?;
        let body = decode_other(raw, body)?;
        Ok(Record { offset: raw.offset, time: trailer.time, body })
    }
}

/// Returns an error with where its offset counts.
fn with_location(raw: &RawRecord<'_>, error: Error) -> Error {
    match error {
        Error::Damaged { offset, reason } if raw.is_inflated => {
            Error::Damaged { offset, reason: format!("in the inflated records: {reason}") }
        }
        error => error,
    }
}

fn decode_other<'a>(raw: &RawRecord<'a>, mut at: Cursor<'a>) -> Result<RecordBody<'a>> {
    Ok(match raw.kind {
        kind::MMAP | kind::MMAP2 => RecordBody::Mmap(mapping(raw, at)?),
        kind::COMM => RecordBody::Comm(Comm {
            pid: at.u32("process of a name")?.cast_signed(),
            tid: at.u32("thread of a name")?.cast_signed(),
            name: until_nul(at.rest()),
            is_exec: raw.misc & misc::COMM_EXEC != 0,
        }),
        kind::FORK => RecordBody::Fork(task(at)?),
        kind::EXIT => RecordBody::Exit(task(at)?),
        kind::LOST => {
            at.u64("id of lost records")?;
            RecordBody::Lost(at.u64("lost records")?)
        }
        kind::LOST_SAMPLES => RecordBody::LostSamples(at.u64("lost samples")?),
        kind::KSYMBOL => {
            let start = at.u64("address of a kernel symbol")?;
            let len = at.u32("length of a kernel symbol")?;
            at.u16("kind of a kernel symbol")?;
            let flags = at.u16("flags of a kernel symbol")?;
            RecordBody::KernelSymbol(KernelSymbol {
                start,
                len,
                name: until_nul(at.rest()),
                is_unregistered: flags & 1 != 0,
            })
        }
        kind => RecordBody::Other(kind),
    })
}

fn mapping<'a>(raw: &RawRecord<'a>, mut at: Cursor<'a>) -> Result<Mmap<'a>> {
    const WHAT: &str = "a mapping";
    const EXECUTABLE: u32 = 4;
    const SHARED: u32 = 1;
    let pid = at.u32(WHAT)?.cast_signed();
    let tid = at.u32(WHAT)?.cast_signed();
    let (start, len, file_offset) = (at.u64(WHAT)?, at.u64(WHAT)?, at.u64(WHAT)?);
    let (mut build_id, mut shared_file) = (None, None);
    let mut is_executable = raw.misc & misc::MMAP_DATA == 0;
    if raw.kind == kind::MMAP2 {
        // a build-id with its length in front, or device, inode and generation
        let (offset, order) = (at.offset(), at.order());
        let file = at.take(24, WHAT)?;
        is_executable = at.u32(WHAT)? & EXECUTABLE != 0;
        let is_shared = at.u32(WHAT)? & SHARED != 0;
        if raw.misc & misc::MMAP_BUILD_ID != 0 {
            build_id = BuildId::new(&file[4..4 + usize::from(file[0]).min(20)]);
        } else if is_shared {
            // without the generation, which recorders do not know of mappings that were there before
            let mut file = Cursor::new(file, order, offset);
            shared_file = shared_file_of(file.u32(WHAT)?, file.u32(WHAT)?, file.u64(WHAT)?);
        }
    }
    Ok(Mmap {
        pid,
        tid,
        mode: CpuMode::of(raw.misc),
        start,
        len,
        file_offset,
        path: until_nul(at.rest()),
        is_executable,
        build_id,
        shared_file,
    })
}

fn task(mut at: Cursor<'_>) -> Result<Task> {
    const WHAT: &str = "a thread that began or ended";
    Ok(Task {
        pid: at.u32(WHAT)?.cast_signed(),
        parent_pid: at.u32(WHAT)?.cast_signed(),
        tid: at.u32(WHAT)?.cast_signed(),
        parent_tid: at.u32(WHAT)?.cast_signed(),
    })
}

/// Splits a record's body into what is before the trailer, and the trailer's task and time. Records that perf
/// synthesizes may lack it.
pub(super) fn split_trailer<'a>(mut body: Cursor<'a>, attr: &Attr) -> Result<(Cursor<'a>, SampleId)> {
    let len = attr.trailer_len();
    let Some(before) = body.rest().len().checked_sub(len).filter(|_| len > 0) else {
        return Ok((body, SampleId::default()));
    };
    let (offset, order) = (body.offset(), body.order());
    let before = Cursor::new(body.take(before as u64, "a record")?, order, offset);
    let has = |field: u64| attr.sample_type & field != 0;
    let mut trailer = SampleId::default();
    if has(bit::TID) {
        trailer.pid = Some(body.u32("pid")?.cast_signed());
        trailer.tid = Some(body.u32("tid")?.cast_signed());
    }
    if has(bit::TIME) {
        trailer.time = Some(body.u64("time")?);
    }
    // the CPU comes behind these
    body.words([bit::ID, bit::STREAM_ID].iter().filter(|field| has(**field)).count() as u64, "ids")?;
    if has(bit::CPU) {
        trailer.cpu = Some(body.u32("cpu")?);
    }
    Ok((before, trailer))
}
