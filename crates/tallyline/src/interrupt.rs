//! Ctrl-C, SIGTERM, which is what services and scripts send, and SIGHUP of a terminal that is gone: asks the
//! measurement to stop, so that it leaves no thread, no half a page and no progress bar behind; a second Ctrl-C ends
//! the program at once.

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::fmt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// The last signal received.
static WHICH: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// Catches SIGINT (Ctrl-C), SIGTERM and SIGHUP from now on: they only set the flag that [`asked`] returns, and a second
/// SIGINT ends the program. Further calls change nothing.
pub(crate) fn listen() -> Result<()> {
    static LISTENS: AtomicBool = AtomicBool::new(false);
    // registered twice, the first signal would find the flag up that it has just put up
    if LISTENS.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    // `nohup` has it ignored, and that stays
    let hang_up = Some(SIGHUP).filter(|signal| !is_ignored(*signal));
    for signal in [SIGINT, SIGTERM].into_iter().chain(hang_up) {
        let cannot = "cannot listen for Ctrl-C";
        // in this order: the first Ctrl-C finds the flag down and puts it up, the second finds it up; `timeout` sends
        // SIGTERM twice
        if signal == SIGINT {
            flag::register_conditional_default(signal, Arc::clone(&ASKED)).context(cannot)?;
        }
        flag::register_usize(signal, Arc::clone(&WHICH), signal.unsigned_abs() as usize)
            .and_then(|_| flag::register(signal, Arc::clone(&ASKED)))
            .context(cannot)?;
    }
    Ok(())
}

/// Returns `true` if this process ignores a signal, as its parent left it; `false` where the kernel does not say.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Returns `true` if SIGINT (Ctrl-C), SIGTERM or SIGHUP has been received since [`listen`] was called.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// The time that a command has to end after it was asked to.
const PATIENCE: Duration = Duration::from_secs(3);

/// The error of what did not come to its end because a signal was received.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Checks that no signal was received since [`listen`].
///
/// # Errors
/// One was.
pub(crate) fn check() -> Result<(), Interrupted> {
    if asked() { Err(Interrupted) } else { Ok(()) }
}

/// Runs a command to its end as a process group of its own, and returns its output. The group is asked to end when this
/// process is, so that a build's compilers end with it: a terminal's Ctrl-C reaches no other group than ours.
///
/// # Errors
/// The command cannot be started, or was interrupted.
pub(crate) fn output(command: &mut Command) -> Result<Output> {
    listen()?;
    check()?;
    let child = command.process_group(0).spawn()?;
    let group = Pid::from_child(&child);
    let is_over = AtomicBool::new(false);
    // times of commands are measured, so that an end is waited for, and not looked for now and then
    let output = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut asked_at = None;
            while !is_over.load(Ordering::Relaxed) {
                match asked_at {
                    None if asked() => {
                        asked_at = Some(Instant::now());
                        // one that is stopped would not end
                        let _ = kill_process_group(group, Signal::TERM);
                        let _ = kill_process_group(group, Signal::CONT);
                    }
                    Some(at) if at.elapsed() >= PATIENCE => {
                        let _ = kill_process_group(group, Signal::KILL);
                        break;
                    }
                    _ => {}
                }
                std::thread::park_timeout(Duration::from_millis(20));
            }
        });
        let output = child.wait_with_output();
        is_over.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        output
    })?;
    check()?;
    Ok(output)
}

/// Takes a signal that was received for dealt with, as what it asked to end has ended: the next one is again the first.
pub(crate) fn forget() {
    ASKED.store(false, Ordering::Relaxed);
}

/// Ends the program by the default action of the signal that was received, so that a shell sees
/// the cause.
pub(crate) fn end() -> ! {
    let signal = match WHICH.load(Ordering::Relaxed) as i32 {
        signal @ (SIGTERM | SIGHUP) => signal,
        _ => SIGINT,
    };
    // does not come back, unless something blocks the signal
    let _ = low_level::emulate_default_handler(signal);
    // the status that shells give it
    low_level::exit(128 + signal)
}
