//! The recorder: samples of a command, a process or the machine, by `perf_event_open`.
//!
//! One ring of memory for each CPU, which all events there share; they are emptied into the file as
//! they fill, and the packets of hardware that samples by itself (Arm's SPE) behind them. `events`
//! understands what to record, `open` opens it as far as the kernel permits, `synthesize` writes what
//! was there before, `machine` describes the machine, `spe` has what is special there, `os` has the
//! system calls.

mod build_id;
mod build_id_cache;
mod error;
mod events;
mod machine;
mod open;
mod os;
mod request;
mod rings;
mod spe;
mod synthesize;
mod sysfs;
mod tracepoints;
mod vdso;
mod watch;

pub use build_id::build_id_of_file;
pub use error::RecordError;
pub use events::{groups, parse};
pub use machine::describe;
pub use os::ask_to_end;
pub use request::EventRequest;
pub use sysfs::Pmus;
pub use vdso::Vdso;
pub use watch::{WORD_SIZE, WORDS_LIMIT, hit_cost, watch_words};

use super::abi::read_format;
use super::writer::{Encoder, Event, MachineDescription, Writer};
use build_id_cache::{BuildIdCache, CachedFiles};
use open::OpenedEvents;
use rings::{RecordingStats, Rings};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The processes or CPUs to sample: a command to start, running processes, threads, or all CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The command to start, with all its children.
    Command,
    /// Running processes by id: their threads, and those to come; their children, too, where events are inherited.
    Processes(Vec<i32>),
    /// Running threads, by id.
    Threads(Vec<i32>),
    /// All CPUs, with everything that runs on them.
    System,
}

/// The code that events without a modifier of their own (such as `:u`) sample: user space's, the kernel's, or both
/// where permitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampledCode {
    /// Code of user space, and of the kernel where it permits that.
    #[default]
    Permitted,
    /// Code of user space only.
    User,
    /// Code of the kernel only.
    Kernel,
}

/// The rate at which events sample: a number of samples a second, or a number of events between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplingRate {
    /// The number of samples a second on each CPU.
    Frequency(u64),
    /// The number of events from one sample to the next.
    Period(u64),
}

/// The method of recording call chains: none, by frame pointers, by copies of the stack (DWARF), or by branch
/// records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallChains {
    /// No call chains.
    #[default]
    None,
    /// Call chains by frame pointers, which the kernel follows.
    FramePointers,
    /// Call chains by copies of this many bytes of the user stack, which perf unwinds by DWARF's frame tables.
    UserStack(u32),
    /// Call chains by the CPU's last branch records.
    LastBranches,
}

/// The destination of a perf.data file: a path, or standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A file, by its path.
    File(PathBuf),
    /// Standard output, as a stream: what `perf report -i -` reads. The command's own output goes to standard error.
    Stream,
}

impl Output {
    fn path(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Stream => Path::new("the standard output"),
        }
    }
}

/// The options of [`record`]: target, events, sampling rate, call chains, output and so on.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// The processes, threads or CPUs to sample.
    pub target: Target,
    /// A command to start, at whose end the recording ends; empty where that is up to the caller.
    pub command: Vec<OsString>,
    /// The events to sample; if empty, the CPUs' cycles where the machine counts them, else the clock.
    pub events: Vec<EventRequest>,
    /// The sampling rate: a frequency or a period.
    pub rate: SamplingRate,
    /// The method of recording call chains.
    pub call_chains: CallChains,
    /// `true` if samples of the clock without call chains have the word on top of the stack: at a function's first
    /// instruction the return address.
    pub return_addresses: bool,
    /// `true` if mappings of data are recorded, by which reports know the object that an address is in. Memory
    /// events record them anyway.
    pub data_mappings: bool,
    /// `true` if threads and processes to come are recorded, too.
    pub inherit: bool,
    /// The time to wait from the start until samples are taken.
    pub delay: Duration,
    /// The code to sample: user space, the kernel, or both.
    pub scope: SampledCode,
    /// The destination of the recording: a file or standard output.
    pub output: Output,
    /// The size of the file in bytes at which the recording stops.
    pub max_size: Option<u64>,
    /// The size of each CPU's ring buffer in pages, a power of two.
    pub ring_pages: usize,
    /// perf's folder of builds, where programs are kept that a report could not open later; none: they are not kept.
    pub build_id_cache: Option<PathBuf>,
    /// The command line to write into the file.
    pub command_line: Vec<String>,
}

/// Sampling events that interrupt the calling thread and record nothing, to measure what the interrupts of a recording
/// cost by themselves. Dropping it stops them.
#[derive(Debug)]
pub struct SamplingInterrupts {
    _events: Vec<OwnedFd>,
}

impl SamplingInterrupts {
    /// Starts interrupting the calling thread by these events (the default events of [`record`] if there are none)
    /// `frequency` times a second.
    ///
    /// # Errors
    /// The kernel's error if it does not permit or know an event.
    pub fn start(events: &[EventRequest], frequency: u64) -> std::io::Result<SamplingInterrupts> {
        Ok(SamplingInterrupts { _events: open::without_records(events, frequency)? })
    }
}

/// The result of a finished recording: numbers of samples, bytes and losses, the command's status, and notes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordSummary {
    /// The number of samples in the file.
    pub(crate) samples: u64,
    /// The number of bytes of packets in the file, which hardware wrote instead of samples.
    pub(crate) packets: u64,
    /// The number of times that the hardware found no room for its packets.
    pub(crate) packets_full: u64,
    /// The number of samples that were lost because the file could not be written fast enough.
    pub(crate) lost: u64,
    /// The size of the perf.data file in bytes.
    pub(crate) bytes: u64,
    /// The status of the command, as a shell would show it.
    pub(crate) status: Option<i32>,
    /// The name of each event, and the code that it sampled, in words.
    pub(crate) events: Vec<(String, &'static str)>,
    /// The requests that could not be met and their substitutes, a line each.
    pub(crate) notes: Vec<String>,
    /// The numbers of files and bytes that were copied into perf's build-id cache, and the failures.
    cached: CachedFiles,
    /// `true` if the recording ended because the file reached its size limit.
    pub(crate) reached_limit: bool,
}

impl RecordSummary {
    /// Returns the number of samples that were recorded.
    #[inline]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns the number of bytes of hardware traces (Arm SPE) that were recorded.
    #[inline]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the number of times that the buffer of the hardware trace (Arm SPE) was full and data was dropped.
    #[inline]
    pub fn packets_full(&self) -> u64 {
        self.packets_full
    }

    /// Returns the number of samples that the kernel dropped because the recorder did not keep up.
    #[inline]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the size of the perf.data file in bytes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the exit status of the recorded command as a shell shows it (128 plus the signal's number if one
    /// killed it); `None` if no command was recorded.
    #[inline]
    pub fn status(&self) -> Option<i32> {
        self.status
    }

    /// Returns each recorded event's name, and whose code it sampled in words: user, kernel, or both.
    #[inline]
    pub fn events(&self) -> &[(String, &'static str)] {
        &self.events
    }

    /// Returns one line for each option of the recording that could not be met, such as an event replaced by another.
    #[inline]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the number of sampled programs and libraries that were copied into perf's build-id cache.
    pub fn cached_files(&self) -> u64 {
        self.cached.files
    }

    /// Returns the number of bytes that were copied into perf's build-id cache.
    pub fn cached_bytes(&self) -> u64 {
        self.cached.bytes
    }

    /// Returns one line for each program that could not be copied into perf's build-id cache, with the reason.
    pub fn cache_failures(&self) -> &[String] {
        &self.cached.failures
    }

    /// Returns `true` if the recording stopped because the file reached its size limit.
    #[inline]
    pub fn reached_limit(&self) -> bool {
        self.reached_limit
    }
}

/// Converts the wanted size of a perf ring buffer to a number of data pages: the next power of two that holds
/// `bytes`, at most 2²⁰.
pub fn ring_pages(bytes: u64) -> usize {
    let pages = usize::try_from(bytes).unwrap_or(usize::MAX).div_ceil(os::page_size());
    pages.clamp(1, 1 << 20).next_power_of_two()
}

/// The time to wait for a ring to fill before it is emptied anyway: as long as a program of a container has to run
/// so that it can be kept.
const POLL_TIMEOUT_MS: i32 = 100;

/// The number of rounds in a row that a command is found without events before that is taken for more than its
/// end.
const ROUNDS_WITHOUT_EVENTS: u32 = 2;

/// Records a perf.data file until the command or process ends, `stop` returns `true`, or the file reaches its size
/// limit. Whatever ends the recording, the samples taken so far are in the file.
///
/// # Errors
/// Events that the kernel does not permit, with what to do about it; a command that cannot be started; a file that
/// cannot be written.
pub fn record(options: &RecordOptions, stop: &dyn Fn() -> bool) -> Result<RecordSummary, RecordError> {
    // what the command prints must not get into the recording
    let error_stream = std::io::stderr();
    let stdout = (options.output == Output::Stream).then(|| error_stream.as_fd());
    record_to(options, stdout, stop)
}

/// Records samples of a command as [`record`] does, with the command's standard output redirected to `stdout`.
///
/// # Errors
/// Those of [`record`].
pub fn record_redirected(
    options: &RecordOptions,
    stdout: &File,
    stop: &dyn Fn() -> bool,
) -> Result<RecordSummary, RecordError> {
    record_to(options, Some(stdout.as_fd()), stop)
}

fn record_to(
    options: &RecordOptions,
    stdout: Option<BorrowedFd<'_>>,
    stop: &dyn Fn() -> bool,
) -> Result<RecordSummary, RecordError> {
    let command_error = |error| RecordError::command(&options.command, error);
    let mut child = match options.command.as_slice() {
        [] => None,
        command => Some(os::Child::prepare(command, stdout).map_err(command_error)?),
    };
    let write_error = |error| RecordError::file(options.output.path(), error);
    // first the events: where they are forbidden, an older recording stays what it is
    let OpenedEvents { events, rings, notes } = open::open(options, child.as_ref().map(os::Child::pid))?;
    let descriptions: Vec<_> = events.iter().map(open::OpenEvent::description).collect();
    let mut older = None;
    let writer = match &options.output {
        Output::File(path) => create(path).and_then(|(file, renamed)| {
            older = renamed;
            Writer::new(file, descriptions)
        }),
        Output::Stream => stream(options, &events, descriptions),
    };
    let writer = writer.map_err(write_error)?;
    let tally = RecordingStats {
        keeper: BuildIdCache::new(options.build_id_cache.is_some()),
        ..RecordingStats::default()
    };
    let mut session = Session { options, events, rings, writer, tally };
    let mut summary = RecordSummary { notes, ..RecordSummary::default() };

    let result = session.run(child.as_mut(), stop, &mut summary);
    if let Some(child) = &mut child {
        if child.try_wait(false).is_none() {
            child.terminate();
        }
        if result.is_ok() {
            summary.status = child.try_wait(true);
        }
    }
    if result.is_err() {
        if session.tally.samples == 0 && session.tally.packets == 0 {
            match (&options.output, older) {
                (_, Some(older)) => older.restore(),
                (Output::File(path), None) if path.is_file() => drop(std::fs::remove_file(path)),
                _ => {}
            }
        } else {
            // the error is said, and what came before it is kept as far as that goes
            let _ = session.writer.cut_short();
        }
    }
    result?;
    session.finish(summary)
}

/// Starts a stream to standard output, begun with what describes the events and the machine.
fn stream(
    options: &RecordOptions,
    events: &[open::OpenEvent],
    descriptions: Vec<Event>,
) -> std::io::Result<Writer<File>> {
    let out = std::io::stdout().as_fd().try_clone_to_owned()?;
    let requests: Vec<_> = events.iter().map(|event| event.request.clone()).collect();
    Writer::stream(File::from(out), descriptions, &described(options, &requests), &groups(&requests))
}

/// Returns the machine, and the tracepoints that are recorded.
fn described(options: &RecordOptions, requests: &[EventRequest]) -> MachineDescription {
    MachineDescription {
        tracing_data: tracepoints::tracing_data(requests),
        ..describe(&options.command_line)
    }
}

/// Creates a new file that only its owner can read, as samples may hold what others must not see. One of this
/// name that has something in it gets the name with `.old` behind, as with perf: then that is the other
/// result.
fn create(path: &Path) -> std::io::Result<(File, Option<OlderRecording>)> {
    let mut older = None;
    if path.metadata().is_ok_and(|found| found.is_file() && found.len() > 0) {
        older = Some(OlderRecording::set_aside(path)?);
    }
    let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    Ok((file, older))
}

/// A recording that had the name of the new one. Until that has begun, the one before it is kept, too.
struct OlderRecording {
    path: PathBuf,
    renamed: PathBuf,
    /// The name of the recording that had the name with `.old`.
    oldest: Option<PathBuf>,
}

impl OlderRecording {
    fn set_aside(path: &Path) -> std::io::Result<OlderRecording> {
        let with = |suffix: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        let (renamed, oldest) = (with(".old"), with(&format!(".old.{}", std::process::id())));
        let had_older = renamed.is_file();
        if had_older {
            std::fs::rename(&renamed, &oldest)?;
        }
        let mut older =
            OlderRecording { path: path.to_owned(), renamed, oldest: had_older.then_some(oldest) };
        if let Err(error) = std::fs::rename(path, &older.renamed) {
            older.restore_oldest();
            return Err(error);
        }
        Ok(older)
    }

    /// Gives both their names back.
    fn restore(mut self) {
        // what cannot be put back is still there under the other name
        let _ = std::fs::rename(&self.renamed, &self.path);
        self.restore_oldest();
    }

    fn restore_oldest(&mut self) {
        if let Some(oldest) = self.oldest.take() {
            let _ = std::fs::rename(oldest, &self.renamed);
        }
    }
}

impl Drop for OlderRecording {
    fn drop(&mut self) {
        if let Some(oldest) = &self.oldest {
            let _ = std::fs::remove_file(oldest);
        }
    }
}

struct Session<'o> {
    options: &'o RecordOptions,
    events: Vec<open::OpenEvent>,
    rings: Rings,
    writer: Writer<File>,
    tally: RecordingStats,
}

impl Session<'_> {
    fn run(
        &mut self,
        mut child: Option<&mut os::Child>,
        stop: &dyn Fn() -> bool,
        summary: &mut RecordSummary,
    ) -> Result<(), RecordError> {
        let file_error = |error| RecordError::file(self.options.output.path(), error);
        let is_delayed = !self.options.delay.is_zero();
        let tracking = &self.events[open::tracking(&self.events)].attr;
        if let Some(event) = self.events.iter().find(|event| event.request.writes_packets) {
            synthesize::packets(&mut self.writer, event.attr.kind, self.rings.clock()).map_err(file_error)?;
        }
        synthesize::kernel(&mut self.writer, tracking).map_err(file_error)?;
        if let Some(vdso) = Vdso::own() {
            self.writer.build_id(false, b"[vdso]", vdso.build_id);
        }
        if self.options.target != Target::Command {
            // of a delayed recording only what tells of threads and mappings
            self.enable(|event| !is_delayed || event.is_dummy)?;
            // after the events began, so that nothing is missed between
            let mut build_ids = HashMap::new();
            // they take time, and the rings fill meanwhile
            for pid in synthesize::pids(&self.options.target, self.options.inherit) {
                let keeper = &mut self.tally.keeper;
                synthesize::process(&mut self.writer, tracking, pid, &mut build_ids, keeper)
                    .map_err(file_error)?;
                self.rings.drain(&mut self.writer, &mut self.tally).map_err(file_error)?;
            }
        }
        if let Some(child) = &mut child {
            child.start().map_err(|error| RecordError::command(&self.options.command, error))?;
        }
        let ending = child.as_ref().and_then(|child| child.ending());
        // without a descriptor that says it: look often
        let patience = if child.is_some() && ending.is_none() { 10 } else { POLL_TIMEOUT_MS };
        let mut waited: Vec<_> = self.rings.descriptors();
        waited.extend(ending.as_ref().map(AsRawFd::as_raw_fd));
        let mut rounds_without_events = 0;
        let mut begins = is_delayed.then(|| Instant::now() + self.options.delay);
        loop {
            let left = begins.map(|begins| begins.saturating_duration_since(Instant::now()).as_millis() + 1);
            let patience =
                left.map_or(patience, |left| patience.min(i32::try_from(left).unwrap_or(patience)));
            let mut ended = os::wait(&waited, patience).into_iter();
            if begins.take_if(|begins| *begins <= Instant::now()).is_some() {
                self.enable(|event| !event.is_dummy)?;
            }
            self.drain()?;
            waited.retain(|_| !ended.next().unwrap_or(false));
            // a program that is ending has none for a moment, too
            let has_events = waited.len() > usize::from(ending.is_some());
            rounds_without_events = if has_events { 0 } else { rounds_without_events + 1 };
            if rounds_without_events == ROUNDS_WITHOUT_EVENTS {
                summary.notes.extend(self.lost_events(child.as_deref_mut()));
            }
            let is_full = self.options.max_size.is_some_and(|limit| self.writer.written() >= limit);
            summary.reached_limit |= is_full;
            self.rings.resume(&mut self.tally);
            let has_ended = match &mut child {
                Some(child) => child.try_wait(false).is_some(),
                // a ring belongs to one of the threads; others may go on
                None => waited.is_empty() && synthesize::have_ended(&self.options.target),
            };
            if has_ended || is_full || stop() {
                break;
            }
        }
        for event in self.events.iter().flat_map(|event| &event.leaders) {
            // it may have ended with its thread
            let _ = os::disable(event);
        }
        self.drain()
    }

    /// Says why a command that goes on has no events any more.
    fn lost_events(&self, child: Option<&mut os::Child>) -> Option<String> {
        let is_command = self.options.target == Target::Command;
        let goes_on =
            child.is_some_and(|child| child.try_wait(false).is_none() && !synthesize::is_ending(child.pid()));
        (is_command && goes_on).then(|| {
            "the kernel ended the recording before the command: it does so where a program that others must not read, as \
             one with the set-user-ID bit, is executed; record it with -a, or with -p when it runs"
                .to_owned()
        })
    }

    /// Starts events that do not start by themselves.
    fn enable(&self, which: impl Fn(&open::OpenEvent) -> bool) -> Result<(), RecordError> {
        for event in self.events.iter().filter(|event| which(event)).flat_map(|event| &event.leaders) {
            os::enable(event).map_err(|reason| RecordError::System { what: "start an event", reason })?;
        }
        Ok(())
    }

    fn drain(&mut self) -> Result<(), RecordError> {
        self.rings
            .drain_round(&mut self.writer, &mut self.tally)
            .map_err(|error| RecordError::file(self.options.output.path(), error))
    }

    fn finish(mut self, mut summary: RecordSummary) -> Result<RecordSummary, RecordError> {
        let file_error = |error| RecordError::file(self.options.output.path(), error);
        let mut lost = 0;
        for event in self.events.iter().filter(|event| event.attr.read_format & read_format::LOST != 0) {
            // value, id, lost
            let counts = event.descriptors().filter_map(|fd| os::read_words::<3>(fd).ok());
            let count = counts.map(|[_, _, count]| count).sum();
            lost += count;
            if count > 0 {
                let mut record = Encoder::lost_samples(count, &event.attr, self.tally.last_time);
                self.writer.records(record.finish()).map_err(file_error)?;
            }
        }
        if let Some(vdso) = self.tally.keeper.vdso32() {
            self.writer.build_id(false, b"[vdso32]", vdso);
        }
        if let Some(folder) = &self.options.build_id_cache {
            summary.cached = std::mem::take(&mut self.tally.keeper).keep(folder);
        }
        summary.samples = self.tally.samples;
        (summary.packets, summary.packets_full) = (self.tally.packets, self.tally.full);
        summary.lost = lost.max(self.tally.lost);
        summary.events =
            self.events.iter().filter(|event| !event.is_dummy).map(open::OpenEvent::summary).collect();
        let requests: Vec<_> = self.events.iter().map(|event| event.request.clone()).collect();
        let machine = described(self.options, &requests);
        let is_stream = self.options.output == Output::Stream;
        let written = self.writer.written();
        let mut file = self.writer.finish(&machine, &groups(&requests)).map_err(file_error)?;
        // a pipe has no position
        summary.bytes = if is_stream {
            written
        } else {
            std::io::Seek::stream_position(&mut file).map_err(file_error)?
        };
        Ok(summary)
    }
}

impl open::OpenEvent {
    fn description(&self) -> Event {
        Event::new(self.request.name.clone(), self.attr.clone(), self.ids.clone())
    }
}
