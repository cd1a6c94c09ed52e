//! Hardware breakpoints on words of a process that runs: the threads that access them, and the instructions.
//!
//! Each thread has a breakpoint of its own on each word, four at most. Each hit is a sample; behind its quota of hits
//! the kernel stops a breakpoint until the next round, so that a hot word cannot stop its program. Breakpoints go with
//! their descriptors: whatever ends the watcher, the program runs on as it was.

use super::os::{self, Ring};
use super::{RecordError, Target, synthesize};
use crate::abi::{attr_flag, record as kind, sample as bit};
use crate::attr::Attr;
use crate::bytes::{ByteOrder, Cursor};
use crate::names::{BREAKPOINT, SOFTWARE};
use crate::sample::Sample;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The most words of a process's memory that [`watch_words`] watches at once by hardware breakpoints: the number of
/// debug registers of x86-64 and of most AArch64 cores.
pub const WORDS_LIMIT: usize = 4;

/// The size in bytes, and alignment, of a word of a process's memory that [`watch_words`] watches by a hardware
/// breakpoint.
pub const WORD_SIZE: u64 = 8;

/// The most threads that are watched.
const THREADS_LIMIT: usize = 256;

/// The kernel's `HW_BREAKPOINT_RW`. x86 has none for reads alone.
const READ_OR_WRITE: u32 = 3;

/// The pages of each thread's ring: 60 hits of 64 bytes each.
const RING_PAGES: usize = 1;

/// The fields of a hit: instruction, process and thread, time, address, CPU.
const FIELDS: u64 = bit::IP | bit::TID | bit::TIME | bit::ADDR | bit::CPU;

/// The number of stores by which the cost of a hit is measured, in each of several rounds.
const MEASURED_HITS: u32 = 100;

/// The number of rounds; the median is the cost: other programs interrupt some of them.
const ROUNDS: usize = 9;

/// Sets hardware breakpoints on up to four words of a running process, in all of its threads, and reports each
/// access to them; returns the number of all hits.
///
/// Time is divided into rounds. In each, every thread may hit each word `hits` times, after which its breakpoint is
/// off until the next round. At the end of a round `show` gets the recorded hits, thread by thread, and the number
/// of threads that are not watched for lack of room; watching ends when it returns `false`. A hit's instruction
/// pointer is, on x86-64, that of the next instruction after the access, on AArch64 that of the access; its data
/// address is the word's.
///
/// # Errors
/// A process that does not exist, ends, or may not be traced; a machine without free debug registers.
pub fn watch_words(
    pid: i32,
    words: &[u64],
    hits: u32,
    round: Duration,
    show: &mut dyn FnMut(&[Sample<'_>], usize) -> bool,
) -> Result<u64, RecordError> {
    let mut watch = Watch::start(pid, words)?;
    let mut all = 0;
    loop {
        let started = Instant::now();
        watch.grant(hits)?;
        // setting breakpoints anew takes time of its own: of many threads it is a part of a round at most
        std::thread::sleep(round.max(started.elapsed() * 4));
        all += watch.take_hits();
        let records: Vec<Sample<'_>> = hits_in(&watch.buffer);
        if !show(&records, watch.left_out) {
            return Ok(all);
        }
    }
}

/// Breakpoints in all threads of a process.
#[derive(Debug)]
struct Watch {
    pid: i32,
    words: Vec<u64>,
    threads: BTreeMap<i32, ThreadWatch>,
    left_out: usize,
    buffer: Vec<u8>,
}

/// The breakpoints of one thread, with the ring of their hits.
#[derive(Debug)]
struct ThreadWatch {
    breakpoints: Vec<Breakpoint>,
    ring: Ring,
    /// The event that the ring is of: breakpoints come and go.
    owner: OwnedFd,
}

#[derive(Debug)]
struct Breakpoint {
    word: u64,
    event: OwnedFd,
    /// Hits of the event, also those that found no room in the ring.
    hits: u64,
    /// Hits at which the kernel stops the event.
    granted: u64,
}

impl Breakpoint {
    /// Lets it be hit so many times from now on.
    fn grant(&mut self, thread: i32, owner: &OwnedFd, hits: u64) -> io::Result<()> {
        if self.granted > 0 && self.hits >= self.granted {
            // Linux 6.18 leaves a breakpoint that reached its limit stopped when it is enabled again: it traps, and
            // counts nothing
            self.event = open(thread, self.word)?;
            os::set_output(&self.event, owner)?;
            (self.hits, self.granted) = (0, 0);
        }
        let missing = hits.saturating_sub(self.granted - self.hits);
        if missing > 0 {
            os::refresh(&self.event, u32::try_from(missing).unwrap_or(u32::MAX))?;
            self.granted += missing;
        }
        Ok(())
    }
}

impl Watch {
    /// Sets breakpoints, which are not hit before the first grant.
    fn start(pid: i32, words: &[u64]) -> Result<Watch, RecordError> {
        os::raise_file_limit();
        let words = words.iter().copied().take(WORDS_LIMIT).collect();
        let mut watch = Watch { pid, words, threads: BTreeMap::new(), left_out: 0, buffer: Vec::new() };
        watch.follow()?;
        Ok(watch)
    }

    /// Lets each breakpoint be hit so many times from now on, also those of threads that began since.
    ///
    /// # Errors
    /// A process that has ended.
    fn grant(&mut self, hits: u32) -> Result<(), RecordError> {
        self.follow()?;
        for (thread, watch) in &mut self.threads {
            let ThreadWatch { breakpoints, owner, .. } = watch;
            for breakpoint in breakpoints {
                // a thread that has ended has no more hits
                let _ = breakpoint.grant(*thread, owner, hits.into());
            }
        }
        Ok(())
    }

    /// Takes the records of the hits since the last time into the buffer, thread by thread, and returns the number of
    /// all hits, also of those that the rings had no room for.
    fn take_hits(&mut self) -> u64 {
        let mut all = 0;
        self.buffer.clear();
        for thread in self.threads.values_mut() {
            let buffer = &mut self.buffer;
            // nothing in it fails
            let _ = thread.ring.drain(|first, second| {
                buffer.extend_from_slice(first);
                buffer.extend_from_slice(second);
                Ok(())
            });
            for breakpoint in &mut thread.breakpoints {
                if let Ok([count]) = os::read_words(&breakpoint.event) {
                    all += count.saturating_sub(breakpoint.hits);
                    breakpoint.hits = count;
                }
            }
        }
        all
    }

    /// Sets breakpoints in threads that began, and forgets those that ended.
    fn follow(&mut self) -> Result<(), RecordError> {
        let running = match synthesize::have_ended(&Target::Processes(vec![self.pid])) {
            true => Vec::new(),
            false => synthesize::threads(self.pid),
        };
        self.threads.retain(|thread, _| running.contains(thread));
        self.left_out = 0;
        for thread in running {
            if self.threads.contains_key(&thread) {
                continue;
            }
            if self.threads.len() >= THREADS_LIMIT {
                self.left_out += 1;
                continue;
            }
            match ThreadWatch::open(thread, &self.words) {
                Ok(watch) => _ = self.threads.insert(thread, watch),
                // it ended meanwhile
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                // no memory for one more ring, or no descriptor: those there are stay
                Err(_) if !self.threads.is_empty() => self.left_out += 1,
                Err(error) => return Err(refusal(error)),
            }
        }
        if self.threads.is_empty() { Err(RecordError::NoProcess(self.pid)) } else { Ok(()) }
    }
}

impl ThreadWatch {
    fn open(thread: i32, words: &[u64]) -> io::Result<ThreadWatch> {
        let owner = os::open_event(&ring_owner(), thread, -1, None)?;
        let ring = Ring::map(&owner, RING_PAGES)?;
        let set = |word: &u64| -> io::Result<Breakpoint> {
            let event = open(thread, *word)?;
            os::set_output(&event, &owner)?;
            Ok(Breakpoint { word: *word, event, hits: 0, granted: 0 })
        };
        let breakpoints = words.iter().map(set).collect::<io::Result<_>>()?;
        Ok(ThreadWatch { breakpoints, ring, owner })
    }
}

/// Returns the attributes of an event without hits of its own.
fn ring_owner() -> Attr {
    const DUMMY: u64 = 9;
    Attr {
        kind: SOFTWARE,
        config: DUMMY,
        sample_period: 1,
        sample_type: FIELDS,
        flags: attr_flag::DISABLED | attr_flag::EXCLUDE_KERNEL | attr_flag::EXCLUDE_HV,
        ..Attr::default()
    }
}

/// Returns the attributes of a breakpoint's event.
fn breakpoint(word: u64) -> Attr {
    Attr {
        kind: BREAKPOINT,
        bp_type: READ_OR_WRITE,
        config1: word,
        config2: WORD_SIZE,
        sample_period: 1,
        sample_type: FIELDS,
        // a kernel that copies from or to the word is not shown to users
        flags: attr_flag::DISABLED | attr_flag::EXCLUDE_KERNEL | attr_flag::EXCLUDE_HV,
        ..Attr::default()
    }
}

fn open(thread: i32, word: u64) -> io::Result<OwnedFd> {
    os::open_event(&breakpoint(word), thread, -1, None)
}

/// Returns the hits among records.
fn hits_in(mut bytes: &[u8]) -> Vec<Sample<'_>> {
    let attr = breakpoint(0);
    let mut hits = Vec::new();
    while let Some((header, _)) = bytes.split_first_chunk::<8>() {
        let [k0, k1, k2, k3, m0, m1, s0, s1] = *header;
        let size = usize::from(u16::from_ne_bytes([s0, s1]));
        let Some((record, rest)) = bytes.split_at_checked(size).filter(|_| size >= 8) else { break };
        bytes = rest;
        if u32::from_ne_bytes([k0, k1, k2, k3]) != kind::SAMPLE {
            continue;
        }
        let body = Cursor::new(&record[8..], ByteOrder::NATIVE, 8);
        hits.extend(Sample::decode(u16::from_ne_bytes([m0, m1]), body, &attr));
    }
    hits
}

/// Describes the kernel's refusal of a breakpoint.
fn refusal(error: io::Error) -> RecordError {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => RecordError::Forbidden {
            what: "breakpoints in this process",
            setting: String::new(),
            advice: "it must be yours, and kernel.perf_event_paranoid 2 or less; else run as root",
        },
        Some(libc::ENOSYS) => RecordError::Missing,
        Some(libc::ENOSPC) => RecordError::Event {
            name: "mem".to_owned(),
            reason: "all debug registers are taken: a debugger or another recording has them".to_owned(),
        },
        _ => RecordError::Event {
            name: "mem".to_owned(),
            reason: format!("hardware breakpoints cannot be had here: {error}"),
        },
    }
}

/// Measures, in the calling thread, the time that one hit of a hardware breakpoint costs the thread that has it.
///
/// # Errors
/// A machine without free debug registers, or a kernel that does not permit breakpoints.
pub fn hit_cost() -> Result<Duration, RecordError> {
    let mut costs = [Duration::ZERO; ROUNDS];
    for cost in &mut costs {
        *cost = hit_cost_once()?;
    }
    costs.sort_unstable();
    Ok(costs[ROUNDS / 2])
}

fn hit_cost_once() -> Result<Duration, RecordError> {
    let word = AtomicU64::new(0);
    let address = (&raw const word).addr() as u64;
    let run = || {
        let started = Instant::now();
        (0..MEASURED_HITS).for_each(|number| black_box(&word).store(number.into(), Ordering::Relaxed));
        started.elapsed()
    };
    // 0 is the calling thread
    let event = open(0, address).map_err(refusal)?;
    let _ring = Ring::map(&event, RING_PAGES).map_err(refusal)?;
    let plain = run();
    os::refresh(&event, MEASURED_HITS).map_err(refusal)?;
    let watched = run();
    let [hits] = os::read_words(&event).map_err(refusal)?;
    match u32::try_from(hits) {
        Ok(hits) if hits > 0 => Ok(watched.saturating_sub(plain) / hits),
        // an emulator may take them and never hit
        _ => Err(refusal(io::Error::other("they are never hit"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, words: &[u64]) -> Vec<u8> {
        let size = 8 + words.len() * 8;
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(0_u16.to_ne_bytes());
        bytes.extend((size as u16).to_ne_bytes());
        words.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes
    }

    #[test]
    fn hits_are_found_between_other_records_and_damage_ends_them() {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let mut bytes = record(kind::LOST, &[1, 2]);
        bytes.extend(record(kind::SAMPLE, &[0x1000, pair(7, 8), 99, 0x2000, pair(3, 0)]));
        bytes.extend(record(kind::SAMPLE, &[0x1000]));
        bytes.extend([9, 0, 0, 0, 0, 0, 4, 0]);
        let hits: Vec<_> =
            hits_in(&bytes).iter().map(|hit| (hit.tid, hit.cpu, hit.time, hit.ip, hit.addr)).collect();
        assert_eq!(hits, [(Some(8), Some(3), Some(99), Some(0x1000), Some(0x2000))]);
    }

    /// Long enough for any machine; only a failure waits so long.
    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn a_thread_of_ours_is_watched_up_to_its_quota() {
        let word = Box::leak(Box::new(AtomicU64::new(0)));
        let address = (&raw const *word).addr() as u64;
        let stop = Box::leak(Box::new(AtomicU64::new(0)));
        let (counted, stopped): (&AtomicU64, &AtomicU64) = (word, stop);
        let writer = std::thread::spawn(move || {
            while stopped.load(Ordering::Relaxed) == 0 {
                counted.fetch_add(1, Ordering::Relaxed);
                std::thread::yield_now();
            }
        });
        let own = std::process::id().cast_signed();
        let mut hits = Vec::new();
        let mut rounds = 0;
        let started = Instant::now();
        let result = watch_words(own, &[address], 5, Duration::from_millis(1), &mut |new, _| {
            assert!(new.len() <= 16, "a quota of 5, and {} hits", new.len());
            hits.extend(new.iter().map(|hit| (hit.addr, hit.ip)));
            rounds += 1;
            // a round without hits is one in which the thread had no CPU
            hits.len() < 20 && started.elapsed() < PATIENCE
        });
        stop.store(1, Ordering::Relaxed);
        writer.join().expect("no panic");
        match result {
            Ok(all) => assert!(
                all >= hits.len() as u64 && hits.len() >= 20,
                "{} of {all} hits were recorded in {rounds} rounds",
                hits.len()
            ),
            Err(error) => return eprintln!("skipped: {error}"),
        }
        let is_word =
            |(at, ip): &(Option<u64>, Option<u64>)| *at == Some(address) && ip.is_some_and(|ip| ip != 0);
        assert!(hits.iter().all(is_word), "{hits:?}");
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        let result = watch_words(i32::MAX, &[0x1000], 1, Duration::ZERO, &mut |_, _| false);
        assert!(matches!(result, Err(RecordError::NoProcess(i32::MAX))));
    }
}
