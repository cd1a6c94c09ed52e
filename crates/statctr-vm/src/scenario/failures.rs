//! Every system call by which the library asks for memory fails once, each in a run of its own: it is
//! said by an error, or by the pool's mode where updates went to a fallback cell, and no count is lost.

use super::Settings;
use crate::kit::Kit;
use crate::os::seccomp::{self, NotifiedCall, SyscallNotifications};
use crate::os::thread;
use crate::report::{ScenarioResult, say};
use statctr::topology::CpuId;
use statctr::{Combine, LazyPool, Mode, PerCpu, Placement, Pool, Result};
use std::sync::mpsc;

/// The calls that are watched, and what they fail with.
const CALLS: [(libc::c_long, i32, &str); 6] = [
    (libc::SYS_mmap, libc::ENOMEM, "mmap"),
    (libc::SYS_mprotect, libc::ENOMEM, "mprotect"),
    (libc::SYS_madvise, libc::ENOMEM, "madvise"),
    (libc::SYS_mbind, libc::ENOMEM, "mbind"),
    (libc::SYS_set_mempolicy, libc::ENOMEM, "set_mempolicy"),
    (libc::SYS_membarrier, libc::EPERM, "membarrier"),
];

/// Observations of one run.
#[derive(Default)]
struct Observations {
    /// Names of the watched calls, in order.
    calls: Vec<&'static str>,
    /// Reports of the library.
    errors: Vec<String>,
    /// Updates that are missing or too many, by kit.
    wrong: usize,
    kits: usize,
    /// Updates that found no memory and went to a fallback cell.
    shortfalls: u64,
    /// Pools that said so when they were asked how they count, and such as did not.
    said: usize,
    silent: usize,
}

/// The number of cycles from which on every call fails. A shorter run takes one call of three, another on each
/// architecture: emulated, 138 calls are a minute.
const CYCLES_FOR_ALL: u32 = 20;

pub(super) fn run(settings: &Settings) -> ScenarioResult {
    let (first, step) = match settings.cycles {
        CYCLES_FOR_ALL.. => (0, 1),
        _ => (usize::from(cfg!(target_arch = "aarch64")), 3),
    };
    sites(first, step).into()
}

fn sites(first: usize, step: usize) -> std::result::Result<(), String> {
    let calm = attempt(usize::MAX)?;
    if calm.calls.is_empty() || !calm.errors.is_empty() || calm.wrong > 0 {
        let Observations { calls, errors, wrong, .. } = calm;
        return Err(format!("without a failure: calls {calls:?}, errors {errors:?}, {wrong} sums wrong"));
    }
    let (mut reported, mut by_mode, mut survived, mut shortfalls) = (0, 0, 0, 0);
    let sites = (first..calm.calls.len()).step_by(step);
    for site in sites.clone() {
        let seen = attempt(site)?;
        if seen.wrong > 0 {
            return Err(format!("call {site} ({}) failed: {} sums wrong", calm.calls[site], seen.wrong));
        }
        if seen.silent > 0 {
            return Err(format!(
                "call {site} ({}) failed: short of memory, and the mode says nothing",
                calm.calls[site]
            ));
        }
        if seen.errors.is_empty() && seen.kits < calm.kits {
            return Err(format!("call {site} ({}) failed: nobody said so", calm.calls[site]));
        }
        shortfalls += seen.shortfalls;
        match (seen.errors.is_empty(), seen.said > 0) {
            (false, _) => reported += 1,
            (true, true) => by_mode += 1,
            (true, false) => survived += 1,
        }
    }
    let of = |name: &str| sites.clone().filter(|site| calm.calls[*site] == name).count();
    let kinds: Vec<String> = CALLS
        .iter()
        .filter(|(.., name)| of(name) > 0)
        .map(|(.., name)| format!("{} {name}", of(name)))
        .collect();
    say!(
        "failures",
        "{} of {} calls failed once each ({}): {reported} reported as errors, {by_mode} by the mode ({shortfalls} updates in the fallback), {survived} made good, sums exact",
        sites.len(),
        calm.calls.len(),
        kinds.join(", ")
    );
    Ok(())
}

/// Runs the work on a thread whose watched call number `site` fails.
fn attempt(site: usize) -> std::result::Result<Observations, String> {
    let (send, receive) = mpsc::channel::<std::io::Result<SyscallNotifications>>();
    let watcher = std::thread::spawn(move || match receive.recv() {
        Ok(Ok(questions)) => watch(&questions, site),
        _ => Vec::new(),
    });
    let worker = std::thread::spawn(move || {
        // the thread's own heap first
        drop(std::hint::black_box(vec![0u8; 1 << 16]));
        let questions = seccomp::ask(&CALLS.map(|(number, ..)| number));
        let refused = questions.as_ref().err().map(ToString::to_string);
        if send.send(questions).is_err() || refused.is_some() {
            return Err(format!("seccomp: {}", refused.unwrap_or_default()));
        }
        Ok(work())
    });
    let seen = worker.join().map_err(|_| format!("call {site} failed: the work panicked"))?;
    let calls = watcher.join().map_err(|_| "the watcher panicked".to_owned())?;
    Ok(Observations { calls, ..seen? })
}

/// Answers until the thread is gone; the names of the calls.
fn watch(questions: &SyscallNotifications, site: usize) -> Vec<&'static str> {
    let mut calls = Vec::new();
    while let Some(call) = questions.next() {
        let kind = CALLS.iter().find(|(number, ..)| *number == call.number);
        let Some((_, errno, name)) = kind.filter(|_| is_from_library(&call)) else {
            questions.answer(&call, None);
            continue;
        };
        questions.answer(&call, (calls.len() == site).then_some(*errno));
        calls.push(*name);
    }
    calls
}

/// Returns `true` for a call of the library. The heap of the C library asks for memory too:
/// readable at once, or not to be reserved for, as ours, but then for a whole heap of 64 MiB.
fn is_from_library(call: &NotifiedCall) -> bool {
    let not_reserved = call.arguments[3] & libc::MAP_NORESERVE as u64 != 0;
    call.number != libc::SYS_mmap || not_reserved && !call.arguments[1].is_multiple_of(64 << 20)
}

impl Observations {
    fn note(&mut self, result: Result<()>) {
        if let Err(error) = result {
            self.errors.push(error.to_string());
        }
    }

    /// Notes the state that a pool reports right after updates.
    fn ask(&mut self, shortfalls: u64, mode: Mode) {
        self.shortfalls += shortfalls;
        match mode {
            Mode::ShortOfMemory => self.said += 1,
            Mode::Rseq if shortfalls > 0 => self.silent += 1,
            _ => {}
        }
    }
}

/// Pools of each kind that are made, counted in, prefaulted, trimmed and dropped.
fn work() -> Observations {
    let mut seen = Observations::default();
    let flexible = Pool::builder().placement(Placement::Flexible);
    let builders = [Pool::builder().placement(Placement::Fixed).unit_bytes(4096), flexible];
    let mut ends = super::cpus::online();
    // one CPU of each end, and so of each node
    if let [_, others @ .., _] = ends.as_slice() {
        let others = others.len();
        ends.drain(1..=others);
    }
    for builder in builders {
        let pool = match builder.build() {
            Ok(pool) => pool,
            Err(error) => {
                seen.note(Err(error));
                continue;
            }
        };
        for round in 0..2 {
            match Kit::try_new(&pool) {
                Ok(kit) => {
                    seen.kits += 1;
                    let before = kit.values();
                    let mut turns = 0;
                    if round == 1 {
                        seen.note(pool.prefault(&ends.iter().map(|&cpu| CpuId::new(cpu)).collect()));
                    }
                    let shortfalls = pool.shortfalls();
                    for &cpu in &ends {
                        if thread::pin(0, &[cpu]).is_ok() {
                            (0..50).for_each(|_| kit.turn());
                            turns += 50;
                        }
                    }
                    seen.ask(pool.shortfalls() - shortfalls, pool.mode());
                    if let Some(&cpu) = ends.last() {
                        seen.note(pool.drain(CpuId::new(cpu)).map(drop));
                    }
                    seen.wrong += usize::from(!kit.has_grown(&before, turns));
                }
                Err(error) => seen.note(Err(error)),
            }
            seen.note(pool.trim().map(drop));
        }
    }
    flows(&mut seen, &ends);
    seen
}

/// Makes lazy objects, and writes to them from CPUs of each end.
fn flows(seen: &mut Observations, ends: &[u32]) {
    let items = [Combine::Sum, Combine::Sum, Combine::Max, Combine::Or];
    let made = LazyPool::<PerCpu>::new(items).and_then(|pool| Ok((pool.create()?, pool)));
    let (flow, pool) = match made {
        Ok(made) => made,
        Err(error) => return seen.note(Err(error)),
    };
    seen.kits += 1;
    let mut turns = 0;
    for &cpu in ends {
        if thread::pin(0, &[cpu]).is_ok() {
            (0..50).for_each(|time| flow.update([1, 1500, time, 1]));
            turns += 50;
        }
    }
    seen.ask(pool.shortfalls(), pool.mode());
    seen.wrong += usize::from(flow.read()[..2] != [turns, 1500 * turns]);
    // and what is ready is ready again
    seen.note(pool.keep_ready());
}
