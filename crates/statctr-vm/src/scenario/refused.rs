//! Kernels and sandboxes that refuse rseq: the program starts, and counts atomically. Where only libc
//! registers no threads, the library does.

use super::Settings;
use super::aborts::{NOT_PROVEN, status_once_proven};
use super::load::Load;
use crate::os::seccomp;
use crate::report::{ScenarioResult, say};
use statctr::{FallbackReason, Mode, Placement, Pool, Registration};
use statctr::{fallback_reason, registration, thread_mode};
use std::process::Command;

/// Set in the programs that this scenario starts, to what has been done to them.
const VARIABLE: &str = "STATCTR_VM_REFUSED";

/// Value of it where nothing but libc's registration was turned off.
const BY_US: &str = "not by libc";

pub(super) fn run(settings: &Settings) -> ScenarioResult {
    match std::env::var(VARIABLE) {
        Ok(how) if how == BY_US => by_us(settings).into(),
        Ok(how) => without(&how, settings).into(),
        Err(_) => all(settings).into(),
    }
}

fn all(settings: &Settings) -> Result<(), String> {
    if thread_mode() != Mode::Rseq {
        return without("this machine has none", settings);
    }
    again(BY_US, settings, |command| {
        command.env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
    })?;
    again("by settings", settings, |command| {
        command.env("GLIBC_TUNABLES", "glibc.pthread.rseq=0").env("STATCTR_REGISTER", "0");
    })?;
    // glibc ends a program whose first thread had rseq and a later one has not, so: a new program
    seccomp::refuse(&[libc::SYS_rseq], libc::ENOSYS).map_err(|error| format!("seccomp: {error}"))?;
    again("by a sandbox", settings, |_| ())
}

/// Runs this scenario again, in a process of its own.
fn again(how: &str, settings: &Settings, change: impl FnOnce(&mut Command)) -> Result<(), String> {
    let mut command = Command::new("/proc/self/exe");
    command.arg("refused").args(settings.arguments()).env(VARIABLE, how);
    change(&mut command);
    let status = status_once_proven(&mut command)?;
    if status.success() { Ok(()) } else { Err(format!("{how}: {status}")) }
}

/// Counts in threads that the library registers.
fn by_us(settings: &Settings) -> Result<(), String> {
    if registration() != Some(Registration::Own) {
        return Err(format!("{BY_US}: threads are registered by {:?}", registration()));
    }
    let pool = Pool::builder().placement(Placement::Fixed).build().map_err(|error| error.to_string())?;
    if fallback_reason() == Some(FallbackReason::AbortsNotProven) {
        std::process::exit(NOT_PROVEN);
    }
    if pool.mode() != Mode::Rseq {
        return Err(format!("{BY_US}: the pool's mode is {}", pool.mode()));
    }
    let account = Load { pool: &pool, writers: 4, readers: 1 }.run(|_| std::thread::sleep(settings.time / 2));
    say!("refused", "{BY_US}: {}, {account}", pool.mode());
    account.verdict()
}

/// Runs the program as it is without rseq: every count is on a stripe.
fn without(how: &str, settings: &Settings) -> Result<(), String> {
    if thread_mode() != Mode::Striped {
        return Err(format!("{how}: the mode is {}", thread_mode()));
    }
    let pool = Pool::builder().placement(Placement::Fixed).build().map_err(|error| error.to_string())?;
    if pool.mode() != Mode::Striped {
        return Err(format!("{how}: the pool's mode is {}", pool.mode()));
    }
    let account = Load { pool: &pool, writers: 4, readers: 1 }.run(|_| std::thread::sleep(settings.time / 2));
    say!("refused", "{how}: {}, {account}", pool.mode());
    account.verdict()
}
