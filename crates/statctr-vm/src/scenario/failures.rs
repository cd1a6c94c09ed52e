//! Every system call by which the library asks for memory fails once, each in a run of its own.

use super::Settings;
use crate::kit::Kit;
use crate::os::seccomp::{self, Call, Questions};
use crate::os::thread;
use crate::report::{Outcome, say};
use statctr::topology::CpuId;
use statctr::{Placement, Pool, Result};
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

/// What one run saw.
struct Seen {
    /// Names of the watched calls, in order.
    calls: Vec<&'static str>,
    /// What the library reported.
    errors: Vec<String>,
    /// Updates that are missing or too many, by kit.
    wrong: usize,
    kits: usize,
}

pub(super) fn run(_settings: &Settings) -> Outcome {
    sites().into()
}

fn sites() -> std::result::Result<(), String> {
    let calm = attempt(usize::MAX)?;
    if calm.calls.is_empty() || !calm.errors.is_empty() || calm.wrong > 0 {
        let Seen { calls, errors, wrong, .. } = calm;
        return Err(format!("without a failure: calls {calls:?}, errors {errors:?}, {wrong} sums wrong"));
    }
    let (mut reported, mut survived) = (0, 0);
    for site in 0..calm.calls.len() {
        let seen = attempt(site)?;
        if seen.wrong > 0 {
            return Err(format!("call {site} ({}) failed: {} sums wrong", calm.calls[site], seen.wrong));
        }
        if seen.errors.is_empty() && seen.kits < calm.kits {
            return Err(format!("call {site} ({}) failed: nobody said so", calm.calls[site]));
        }
        if seen.errors.is_empty() { survived += 1 } else { reported += 1 }
    }
    let of = |name: &str| calm.calls.iter().filter(|call| **call == name).count();
    let kinds: Vec<String> = CALLS
        .iter()
        .filter(|(.., name)| of(name) > 0)
        .map(|(.., name)| format!("{} {name}", of(name)))
        .collect();
    say!(
        "failures",
        "{} calls failed once each ({}): {reported} reported as errors, {survived} made good, sums exact",
        calm.calls.len(),
        kinds.join(", ")
    );
    Ok(())
}

/// Runs the work on a thread whose watched call number `site` fails.
fn attempt(site: usize) -> std::result::Result<Seen, String> {
    let (send, receive) = mpsc::channel::<std::io::Result<Questions>>();
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
        let (mut errors, mut wrong, mut kits) = (Vec::new(), 0, 0);
        work(&mut errors, &mut wrong, &mut kits);
        Ok(Seen { calls: Vec::new(), errors, wrong, kits })
    });
    let seen = worker.join().map_err(|_| format!("call {site} failed: the work panicked"))?;
    let calls = watcher.join().map_err(|_| "the watcher panicked".to_owned())?;
    Ok(Seen { calls, ..seen? })
}

/// Answers until the thread is gone; the names of the calls.
fn watch(questions: &Questions, site: usize) -> Vec<&'static str> {
    let mut calls = Vec::new();
    while let Some(call) = questions.next() {
        let kind = CALLS.iter().find(|(number, ..)| *number == call.number);
        let Some((_, errno, name)) = kind.filter(|_| is_the_librarys(&call)) else {
            questions.answer(&call, None);
            continue;
        };
        questions.answer(&call, (calls.len() == site).then_some(*errno));
        calls.push(*name);
    }
    calls
}

/// The heap of the C library asks for memory too: readable at once, or not to be reserved for, as
/// ours, but then for a whole heap of 64 MiB.
fn is_the_librarys(call: &Call) -> bool {
    let not_reserved = call.arguments[3] & libc::MAP_NORESERVE as u64 != 0;
    call.number != libc::SYS_mmap || not_reserved && !call.arguments[1].is_multiple_of(64 << 20)
}

/// Pools of each kind that are made, counted in, prefaulted, trimmed and dropped.
fn work(errors: &mut Vec<String>, wrong: &mut usize, kits: &mut usize) {
    let mut note = |result: Result<()>| {
        if let Err(error) = result {
            errors.push(error.to_string());
        }
    };
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
                note(Err(error));
                continue;
            }
        };
        for round in 0..2 {
            match Kit::try_new(&pool) {
                Ok(kit) => {
                    *kits += 1;
                    let before = kit.values();
                    let mut turns = 0;
                    if round == 1 {
                        note(pool.prefault(&ends.iter().map(|&cpu| CpuId::new(cpu)).collect()));
                    }
                    for &cpu in &ends {
                        if thread::pin(0, &[cpu]).is_ok() {
                            (0..50).for_each(|_| kit.turn());
                            turns += 50;
                        }
                    }
                    if let Some(&cpu) = ends.last() {
                        note(pool.drain(CpuId::new(cpu)).map(drop));
                    }
                    *wrong += usize::from(!kit.has_grown(&before, turns));
                }
                Err(error) => note(Err(error)),
            }
            note(pool.trim().map(drop));
        }
    }
}
