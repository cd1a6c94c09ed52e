//! Advice on a process that runs: samples of the clock find candidate lines, hardware breakpoints prove who shares them.

use super::args::AdviseArgs;
use super::observed_run::{ObservedRun, WatchedRun};
use super::recording::{SampledProcess, advice, findings, path_of};
use super::{Advice, Basis};
use crate::interrupt;
use anyhow::{Result, anyhow, bail};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};
use tallyline_advice::{Confidence, ObservedAccess};
use tallyline_inference::code::{Image, Machine, instructions};
use tallyline_perf_data::Recording;
use tallyline_perf_data::file::{RecordSource, VisitedRecord};
use tallyline_perf_data::recorder::{
    self, CallChains, Output, RecordError, RecordOptions, SampledCode, SamplingRate, Target, WORD_SIZE,
    WORDS_LIMIT,
};

/// Seconds that a process is looked at, if nothing else is said.
const SECONDS: u64 = 10;

/// Samples a second on each CPU.
const FREQUENCY: u64 = 4000;

/// Bytes of samples at most.
const RECORDING_LIMIT: u64 = 1 << 28;

/// Candidate lines, those with the most samples.
const LINES_LIMIT: usize = 24;

/// Part of the samples that a line has to have to be a candidate: one of so many.
const RARE: u64 = 200;

/// The time that all words of a line are watched to find those that are accessed: up to the first, and up to the second
/// if threads that samples are of have not been seen yet.
const DISCOVERY: [Duration; 2] = [Duration::from_millis(60), Duration::from_millis(400)];

/// The time that words of a line are watched together, the longest.
const PROOF: Duration = Duration::from_secs(2);

/// Accesses behind those of another thread that are proof enough.
const PROVEN: usize = 100;

/// The time between grants of hits.
const ROUND: Duration = Duration::from_millis(10);

/// Hits of each word in each thread in a round.
const HITS: u32 = 4;

/// Samples a process, and watches the words of its hot lines.
pub(super) fn advise(args: &AdviseArgs, pid: i32, folder: &Path) -> Result<Advice> {
    interrupt::listen()?;
    let whole = Duration::from_secs(args.seconds.unwrap_or(SECONDS));
    let recording = folder.join("samples.data");
    let started = Instant::now();
    sample(pid, &recording, &|| interrupt::asked() || started.elapsed() >= whole / 2)?;
    let symfs = args.model.symfs.as_deref();
    if !has_samples(&recording, pid) {
        bail!(
            "process {pid}: no samples in {:.1} s: it waits; try again while it works",
            started.elapsed().as_secs_f64()
        );
    }
    let mut sampled = SampledProcess::read(&recording, symfs, Some(pid.unsigned_abs()))?;
    let mut notes = Vec::new();
    let mut watcher = Watcher::new(pid, args.model.cacheline_size.into(), started + whole);
    let watched = watcher.run(&sampled, &mut notes);
    // what Ctrl-C was to end has ended
    interrupt::forget();
    let accesses = watched.as_ref().map(|_| watcher.accesses(&mut sampled));
    // hits alone prove; without them samples remain
    let most = if accesses.is_some() { Confidence::High } else { Confidence::Medium };
    let (evidence, mut warnings) = sampled.evidence(accesses, args.model.cacheline_size.into(), symfs);
    warnings.append(&mut watcher.warnings);
    let findings = findings(args, &evidence, most);
    let children = children(pid);
    if !children.is_empty() {
        let list: Vec<String> = children.iter().take(8).map(i32::to_string).collect();
        notes.push(format!(
            "{} child processes are not looked at: {}{}",
            children.len(),
            list.join(", "),
            if children.len() > list.len() { ", …" } else { "" }
        ));
    }
    notes.push(
        "what breakpoints see is who accesses which word, not how often without them; nothing is predicted: \
         `tallyline advise -- COMMAND` models the changes, --apply --measure COMMAND measures them"
            .to_owned(),
    );
    let run = ObservedRun { samples: sampled.total, addressed: sampled.addressed(), watched };
    Ok(advice(sampled, evidence, findings, Basis::Observed(run), notes, warnings))
}

/// Samples a process by the clock until it ends or it is over, without its children.
fn sample(pid: i32, recording: &Path, is_over: &dyn Fn() -> bool) -> Result<()> {
    let clock = recorder::parse(&["cpu-clock:u".to_owned()], &recorder::Pmus::default());
    let options = RecordOptions {
        target: Target::Processes(vec![pid]),
        command: Vec::new(),
        events: clock.map_err(|error| anyhow!(error))?,
        rate: SamplingRate::Frequency(FREQUENCY),
        call_chains: CallChains::None,
        return_addresses: true,
        data_mappings: false,
        inherit: true,
        delay: Duration::ZERO,
        scope: SampledCode::User,
        output: Output::File(recording.to_path_buf()),
        max_size: Some(RECORDING_LIMIT),
        ring_pages: 128,
        build_id_cache: None,
        command_line: Vec::new(),
    };
    match recorder::record(&options, is_over) {
        Ok(_) => Ok(()),
        Err(RecordError::NoProcess(_)) => {
            bail!("no process {pid}: it has ended, or another PID namespace has it")
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns `true` if a recording has a sample of a process; `false` also for a recording that cannot be read.
fn has_samples(recording: &Path, pid: i32) -> bool {
    let bytes = fs::read(recording).unwrap_or_default();
    let Ok(recording) = Recording::parse(&bytes) else { return false };
    let mut found = false;
    let _ = recording.visit(&mut |_, seen| {
        if let VisitedRecord::Sample(_, sample) = seen {
            found |= sample.pid == Some(pid);
        }
        Ok(())
    });
    found
}

/// Returns the processes that a process started and that run.
fn children(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// A mapping of a process.
struct Mapping {
    range: Range<u64>,
    offset: u64,
    path: String,
    is_code: bool,
    is_writable: bool,
}

/// Returns the mappings of a process; none if it has ended.
fn mappings(pid: i32) -> Vec<Mapping> {
    let text = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let parse = |line: &str| {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
        let permissions = words.next()?;
        let offset = hexadecimal(words.next()?)?;
        let path = words.nth(2).unwrap_or_default().trim_start();
        Some(Mapping {
            range: hexadecimal(start)?..hexadecimal(end)?,
            offset,
            path: path.trim_end_matches(" (deleted)").to_owned(),
            is_code: permissions.contains('x'),
            is_writable: permissions.contains('w'),
        })
    };
    text.lines().filter_map(parse).collect()
}

/// A hit, as the kernel has it.
#[derive(Clone, Copy)]
struct RawHit {
    thread: u32,
    time: u64,
    ip: u64,
    word: u64,
}

/// A cache line with samples, on which breakpoints may be set.
struct Candidate {
    /// The number of the line: its address divided by its size.
    line: u64,
    /// The addresses of the line's sampled words, the most frequent first.
    words: Vec<u64>,
    /// The number of threads with samples on the line.
    threads: usize,
}

/// The samples on a line.
#[derive(Default)]
struct LineSamples {
    samples: u64,
    threads: BTreeSet<u32>,
    /// Samples of each word.
    words: BTreeMap<u64, u64>,
}

/// Returns the number of hits behind one of another thread.
fn changes(hits: &[RawHit]) -> usize {
    let mut ordered: Vec<(u64, u32)> = hits.iter().map(|hit| (hit.time, hit.thread)).collect();
    ordered.sort_unstable();
    ordered.windows(2).filter(|pair| pair[0].1 != pair[1].1).count()
}

/// A file of the process, with the instructions of the functions that were looked at.
struct CodeFile {
    image: Image,
    // by the start of the function: the start of each instruction by its end
    ends: FxHashMap<u64, FxHashMap<u64, u64>>,
}

impl CodeFile {
    /// Returns the instruction that a breakpoint's trap is behind; on aarch64 it is in front.
    fn trapped(&mut self, linked: u64) -> Option<u64> {
        if self.image.machine() == Machine::Aarch64 {
            return Some(linked);
        }
        let function = self.image.function_range_at(linked.checked_sub(1)?)?;
        let image = &self.image;
        let ends = self.ends.entry(function.start).or_insert_with(|| {
            instructions(image, &function).into_iter().map(|(start, end)| (end, start)).collect()
        });
        ends.get(&linked).copied()
    }
}

/// Breakpoints on the hot lines of a process.
struct Watcher {
    pid: i32,
    line_size: u64,
    deadline: Instant,
    mappings: Vec<Mapping>,
    files: FxHashMap<String, Option<CodeFile>>,
    hits: Vec<RawHit>,
    run: WatchedRun,
    left_out: usize,
    has_ended: bool,
    warnings: Vec<String>,
}

impl Watcher {
    fn new(pid: i32, line_size: u64, deadline: Instant) -> Watcher {
        Watcher {
            pid,
            line_size,
            deadline,
            mappings: mappings(pid),
            files: FxHashMap::default(),
            hits: Vec::new(),
            run: WatchedRun::default(),
            left_out: 0,
            has_ended: false,
            warnings: Vec::new(),
        }
    }

    /// Watches the candidate lines of a process; none, with a note, where that cannot be done or nothing is to be
    /// watched.
    fn run(&mut self, sampled: &SampledProcess, notes: &mut Vec<String>) -> Option<WatchedRun> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid)).map_or(0, Iterator::count);
        let candidates = self.candidates(sampled);
        match threads {
            // one that ended and was not waited for has no memory
            _ if self.mappings.is_empty() => {
                notes.push("the process ended before breakpoints could be set: samples only".to_owned())
            }
            1 if sampled.threads.len() < 2 => {
                notes.push(
                    "the process has one thread: nothing of it is shared, no breakpoint was set".to_owned(),
                );
            }
            _ if candidates.is_empty() => {
                notes.push("no hot line of data was found to watch: samples only".to_owned());
            }
            _ => match recorder::hit_cost().and_then(|cost| self.watch(cost, &candidates)) {
                Ok(()) => {
                    self.add_notes(notes);
                    return Some(self.run.clone());
                }
                Err(error) => notes.push(format!("samples only: {error}")),
            },
        }
        None
    }

    fn add_notes(&self, notes: &mut Vec<String>) {
        if self.has_ended {
            notes.push("the process ended meanwhile: what was seen until then counts".to_owned());
        }
        if self.left_out > 0 {
            notes.push(format!("{} of its threads were not watched: too many at once", self.left_out));
        }
    }

    /// Returns the lines of writable memory with the most samples.
    fn candidates(&self, sampled: &SampledProcess) -> Vec<Candidate> {
        let mut lines: BTreeMap<u64, LineSamples> = BTreeMap::new();
        let is_writable = |address: u64| {
            self.mappings.iter().any(|mapping| mapping.is_writable && mapping.range.contains(&address))
        };
        for sample in sampled.samples.iter().filter(|sample| sample.address != 0) {
            let line = lines.entry(sample.address / self.line_size).or_default();
            line.samples += 1;
            line.threads.insert(sample.thread);
            *line.words.entry(sample.address / WORD_SIZE * WORD_SIZE).or_default() += 1;
        }
        lines.retain(|line, found| {
            found.samples * RARE >= sampled.total && is_writable(line * self.line_size)
        });
        // lines that samples of several threads are on come first
        let mut all: Vec<(u64, LineSamples)> = lines.into_iter().collect();
        all.sort_by_key(|(line, found)| (std::cmp::Reverse((found.threads.len() > 1, found.samples)), *line));
        all.truncate(LINES_LIMIT);
        let candidate = |(line, found): (u64, LineSamples)| {
            let mut words: Vec<(u64, u64)> = found.words.into_iter().collect();
            words.sort_by_key(|(word, samples)| (std::cmp::Reverse(*samples), *word));
            let words = words.into_iter().map(|(word, _)| word).collect();
            Candidate { line, words, threads: found.threads.len() }
        };
        all.into_iter().map(candidate).collect()
    }

    /// Watches all words of the lines in turn, and then those together that different threads access.
    fn watch(&mut self, cost: Duration, candidates: &[Candidate]) -> Result<(), RecordError> {
        self.run.cost = cost;
        self.run.lines = candidates.len();
        for Candidate { line, words: sampled, threads } in candidates {
            // what samples are on is watched together, the rest of the line behind it
            let mut words = sampled.clone();
            let all = (0..self.line_size / WORD_SIZE).map(|index| line * self.line_size + index * WORD_SIZE);
            words.extend(all.filter(|word| !sampled.contains(word)));
            for (index, part) in words.chunks(WORDS_LIMIT).enumerate() {
                let expected = if index == 0 { *threads } else { 0 };
                let started = Instant::now();
                let from = self.hits.len();
                self.look(part, &|hits| {
                    let threads: BTreeSet<u32> = hits[from..].iter().map(|hit| hit.thread).collect();
                    let is_complete = threads.len() >= expected;
                    started.elapsed() >= DISCOVERY[usize::from(!is_complete)]
                })?;
            }
        }
        let shared: Vec<Vec<u64>> =
            candidates.iter().filter_map(|candidate| self.shared_words(candidate.line)).collect();
        for (index, words) in shared.iter().enumerate() {
            let left = self.deadline.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(shared.len() - index).unwrap_or(u32::MAX);
            let until = Instant::now() + share.clamp(DISCOVERY[1], PROOF);
            let from = self.hits.len();
            // where threads hardly run, as long again
            self.look(words, &|hits| {
                let now = Instant::now();
                let changes = changes(&hits[from..]);
                changes >= PROVEN || now >= until && (changes >= PROVEN / 4 || now >= until + PROOF)
            })?;
        }
        let words: BTreeSet<u64> = self.hits.iter().map(|hit| hit.word).collect();
        self.run.words = words.len();
        let threads: BTreeSet<u32> = self.hits.iter().map(|hit| hit.thread).collect();
        self.run.threads = threads.len();
        Ok(())
    }

    /// Watches words until hits are enough, or the process ends.
    fn look(&mut self, words: &[u64], is_enough: &dyn Fn(&[RawHit]) -> bool) -> Result<(), RecordError> {
        if self.has_ended || interrupt::asked() {
            return Ok(());
        }
        let (started, before) = (Instant::now(), self.hits.len());
        let result = self.look_until(words, is_enough);
        self.run.time += started.elapsed();
        match result {
            Ok(all) => self.run.hits += all,
            Err(RecordError::NoProcess(_)) => {
                self.has_ended = true;
                self.run.hits += (self.hits.len() - before) as u64;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn look_until(
        &mut self,
        words: &[u64],
        is_enough: &dyn Fn(&[RawHit]) -> bool,
    ) -> Result<u64, RecordError> {
        let Watcher { hits, left_out, .. } = self;
        recorder::watch_words(self.pid, words, HITS, ROUND, &mut |new, unwatched| {
            hits.extend(new.iter().filter_map(|hit| {
                let thread = hit.tid?.unsigned_abs();
                Some(RawHit { thread, time: hit.time?, ip: hit.ip?, word: hit.addr? })
            }));
            *left_out = unwatched.max(*left_out);
            !interrupt::asked() && !is_enough(hits)
        })
    }

    /// Returns the words of a line to watch together: those with the most hits of each thread; none if one thread alone
    /// hit it.
    fn shared_words(&self, line: u64) -> Option<Vec<u64>> {
        let mut by_thread: BTreeMap<u32, BTreeMap<u64, u64>> = BTreeMap::new();
        for hit in self.hits.iter().filter(|hit| hit.word / self.line_size == line) {
            *by_thread.entry(hit.thread).or_default().entry(hit.word).or_default() += 1;
        }
        if by_thread.len() < 2 {
            return None;
        }
        let mut words: Vec<u64> = Vec::new();
        for rank in 0..WORDS_LIMIT {
            for of_thread in by_thread.values() {
                let mut own: Vec<(u64, u64)> = of_thread.iter().map(|(word, hits)| (*word, *hits)).collect();
                own.sort_by_key(|(word, hits)| (std::cmp::Reverse(*hits), *word));
                if let Some((word, _)) = own.get(rank)
                    && words.len() < WORDS_LIMIT
                    && !words.contains(word)
                {
                    words.push(*word);
                }
            }
        }
        Some(words)
    }

    /// Returns the hits as accesses, with the instructions that made them.
    fn accesses(&mut self, sampled: &mut SampledProcess) -> Vec<ObservedAccess> {
        let later = mappings(self.pid);
        // a library may have been loaded meanwhile; of a process that has ended the former are known
        if !later.is_empty() {
            self.mappings = later;
        }
        let hits = std::mem::take(&mut self.hits);
        let mut names: BTreeSet<u32> = BTreeSet::new();
        let accesses = hits.iter().filter_map(|hit| {
            names.insert(hit.thread);
            self.access(hit, sampled)
        });
        let accesses: Vec<ObservedAccess> = accesses.collect();
        for thread in names {
            sampled.threads.entry(thread).or_insert_with(|| {
                let name = fs::read_to_string(format!("/proc/{}/task/{thread}/comm", self.pid));
                name.unwrap_or_default().trim_end().to_owned()
            });
        }
        accesses
    }

    fn access(&mut self, hit: &RawHit, sampled: &mut SampledProcess) -> Option<ObservedAccess> {
        let mapping =
            self.mappings.iter().find(|mapping| mapping.is_code && mapping.range.contains(&hit.ip))?;
        if !mapping.path.starts_with('/') {
            return None;
        }
        let path = path_of(&mapping.path, self.pid, None);
        let offset = hit.ip - mapping.range.start + mapping.offset;
        let file = self.files.entry(path.clone()).or_insert_with(|| {
            let image = File::open(&path).ok().and_then(|file| Image::read(&file).ok())?;
            Some(CodeFile { image, ends: FxHashMap::default() })
        });
        let file = file.as_mut()?;
        let linked = file.image.address_of(offset)?;
        let start = file.trapped(linked)?;
        let back = linked - start;
        let instruction = sampled.code.add(hit.ip - back, &path, offset - back, &file.image, start)?;
        Some(ObservedAccess {
            instruction: instruction.index,
            thread: hit.thread,
            time: hit.time,
            address: hit.word,
            grain: WORD_SIZE,
            size: instruction.size,
            reads: instruction.reads,
            writes: instruction.writes,
        })
    }
}
