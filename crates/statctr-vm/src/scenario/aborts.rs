//! The library's test of the kernel: this one aborts preempted sections; where one does not (by a
//! section that it is not told of), counters are atomic, and exact.

use super::Settings;
use super::load::Load;
use crate::report::{ScenarioResult, say};
use statctr::raw::request_kernel_test;
use statctr::{FallbackReason, Mode, Placement, Pool, fallback_reason, thread_mode};
use std::process::{Command, ExitStatus};
use std::time::Instant;

/// Set in the program that this scenario starts: the sections are not armed.
const VARIABLE: &str = "STATCTR_VM_UNARMED";

/// Number of times that the kernel is given two seconds to preempt a thread: a busy machine may need several.
const TRIES: u32 = 20;

pub(super) fn run(settings: &Settings) -> ScenarioResult {
    if thread_mode() != Mode::Rseq {
        return ScenarioResult::Skipped("this machine has no rseq");
    }
    match std::env::var(VARIABLE) {
        Ok(how) => one(how == "yes", settings).into(),
        Err(_) => both(settings).into(),
    }
}

fn both(settings: &Settings) -> Result<(), String> {
    for unarmed in ["no", "yes"] {
        let mut command = Command::new("/proc/self/exe");
        command.arg("aborts").args(settings.arguments()).env(VARIABLE, unarmed);
        let status = status_once_proven(&mut command)?;
        if !status.success() {
            return Err(format!("sections not armed: {unarmed}: {status}"));
        }
    }
    Ok(())
}

/// The exit status of a program in which the kernel was not proven in time to abort sections.
pub(super) const NOT_PROVEN: i32 = 2;

/// Runs a program, and again where nothing was proven in time, and returns its status.
pub(super) fn status_once_proven(command: &mut Command) -> Result<ExitStatus, String> {
    for _ in 0..TRIES {
        let status = command.status().map_err(|error| error.to_string())?;
        if status.code() != Some(NOT_PROVEN) {
            return Ok(status);
        }
    }
    Err(format!("nothing was proven in {TRIES} processes"))
}

fn one(unarmed: bool, settings: &Settings) -> Result<(), String> {
    request_kernel_test(!unarmed);
    let start = Instant::now();
    let pool = Pool::builder().placement(Placement::Fixed).build().map_err(|error| error.to_string())?;
    let milliseconds = start.elapsed().as_millis();
    let reason = fallback_reason();
    let kind = if unarmed { "sections that the kernel is not told of" } else { "sections" };
    let found = reason.map_or("they are aborted".to_owned(), |reason| reason.to_string());
    say!("aborts", "{kind}: {found}; mode {}, after {milliseconds} ms", pool.mode());
    let expected =
        if unarmed { (Mode::Striped, Some(FallbackReason::SectionsNotAborted)) } else { (Mode::Rseq, None) };
    if reason == Some(FallbackReason::AbortsNotProven) && pool.mode() == Mode::Striped {
        std::process::exit(NOT_PROVEN);
    }
    if (pool.mode(), reason) != expected {
        return Err(format!("{kind}: {found}; mode {}", pool.mode()));
    }
    let account = Load { pool: &pool, writers: 4, readers: 1 }.run(|_| std::thread::sleep(settings.time / 2));
    say!("aborts", "{kind}: {account}");
    account.verdict()
}
