//! One run of the command that is advised on: its end, and the load that runs beside it.

mod listening;

use crate::interrupt;
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The time after which the load is started if nothing listens: it may wait for a server itself, or need none.
const PATIENCE: Duration = Duration::from_secs(10);

/// The interval between looks for a listening socket.
const INTERVAL: Duration = Duration::from_millis(100);

/// A run of the command, from its start to the end of its load or of its time.
pub(super) struct CommandRun<'c> {
    load: Option<&'c str>,
    /// The file in which a traced command is told that its load starts.
    signal: Option<&'c Path>,
    limit: Option<Duration>,
    started: Instant,
    state: RefCell<LoadState>,
}

/// The state of the load beside a command.
enum LoadState {
    /// A load that is not started yet, with the time of the last look for a listening socket.
    Waiting(Instant),
    Running(Child, Instant),
    Ended(ExitStatus, Duration),
    /// A load that could not be started or waited for, with the error.
    Broken(std::io::Error),
}

/// The run time in seconds of the program that `tallyline advise` examines, or of its load (a command that gives it
/// work), with a flag that says if a time limit cut the run off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RunTime {
    /// Seconds of the load, or of the command where there is none.
    pub(super) seconds: f64,
    /// The time was up before the work was done.
    pub(super) is_cut: bool,
}

impl<'c> CommandRun<'c> {
    /// Begins a run, just before the command is started. The limit is counted from the load's start, if there is a load.
    pub(super) fn begin(load: Option<&'c str>, seconds: Option<u64>) -> Self {
        let started = Instant::now();
        Self {
            load,
            signal: None,
            limit: seconds.map(Duration::from_secs),
            started,
            state: RefCell::new(LoadState::Waiting(started)),
        }
    }

    /// Says in a file when the load starts: its first byte becomes 1.
    pub(super) fn with_signal(self, path: Option<&'c Path>) -> Self {
        Self { signal: path, ..self }
    }

    /// Returns the time since the load was started, or the command where there is no load; 0 before the load.
    pub(super) fn elapsed(&self) -> Duration {
        match &*self.state.borrow() {
            _ if self.load.is_none() => self.started.elapsed(),
            LoadState::Running(_, since) => since.elapsed(),
            LoadState::Ended(_, taken) => *taken,
            LoadState::Waiting(_) | LoadState::Broken(_) => Duration::ZERO,
        }
    }

    /// Starts the load once it is due, and returns `true` if the command is to be asked to end.
    pub(super) fn is_over(&self) -> bool {
        if interrupt::asked() {
            return true;
        }
        let is_late = |since: Instant| self.limit.is_some_and(|limit| since.elapsed() >= limit);
        let Some(load) = self.load else { return is_late(self.started) };
        let mut state = self.state.borrow_mut();
        match &mut *state {
            LoadState::Waiting(looked) => {
                if looked.elapsed() < INTERVAL {
                    return false;
                }
                if listening::any_descendant() || self.started.elapsed() >= PATIENCE {
                    let told = self.signal.map_or(Ok(()), raise);
                    *state = told.map_or_else(LoadState::Broken, |()| start(load));
                } else {
                    *looked = Instant::now();
                }
                false
            }
            LoadState::Running(child, since) => match child.try_wait() {
                Ok(None) => is_late(*since),
                Ok(Some(status)) => {
                    *state = LoadState::Ended(status, since.elapsed());
                    true
                }
                Err(error) => {
                    *state = LoadState::Broken(error);
                    true
                }
            },
            LoadState::Ended(..) | LoadState::Broken(_) => true,
        }
    }

    /// Ends the load, when the command has ended, and returns the duration.
    pub(super) fn finish(self) -> Result<RunTime> {
        let elapsed = self.started.elapsed();
        let is_late = |taken: Duration| self.limit.is_some_and(|limit| taken >= limit);
        let Some(load) = self.load else {
            return Ok(RunTime { seconds: elapsed.as_secs_f64(), is_cut: is_late(elapsed) });
        };
        match self.state.into_inner() {
            LoadState::Waiting(_) => bail!(
                "the command ended before its load `{load}` was started: the load is started when the command listens \
                 on a socket, or after {} seconds",
                PATIENCE.as_secs()
            ),
            LoadState::Running(mut child, since) => {
                let taken = since.elapsed();
                end(&mut child).with_context(|| format!("cannot end the load `{load}`"))?;
                Ok(RunTime { seconds: taken.as_secs_f64(), is_cut: is_late(taken) })
            }
            LoadState::Ended(status, taken) if status.success() => {
                Ok(RunTime { seconds: taken.as_secs_f64(), is_cut: false })
            }
            LoadState::Ended(status, _) => {
                bail!("the load `{load}` failed ({status}); run it by hand beside the command to see why")
            }
            LoadState::Broken(error) => Err(error).with_context(|| format!("cannot run the load `{load}`")),
        }
    }
}

/// Makes a file's first byte 1. The file keeps its length all the time: the traced command has it mapped.
fn raise(path: &Path) -> std::io::Result<()> {
    File::options().write(true).open(path)?.write_all(&[1])
}

/// Starts a load by the shell, in a process group of its own. What it prints is of no interest, but its errors are.
fn start(load: &str) -> LoadState {
    let mut shell = Command::new("sh");
    shell.args(["-c", load]).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    match shell.spawn() {
        Ok(child) => LoadState::Running(child, Instant::now()),
        Err(error) => LoadState::Broken(error),
    }
}

/// Ends a load with all that it started.
fn end(child: &mut Child) -> std::io::Result<()> {
    if child.try_wait()?.is_none() {
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        for signal in [Signal::TERM, Signal::KILL] {
            // it may have ended meanwhile
            let _ = group.map(|group| kill_process_group(group, signal));
            let asked = Instant::now();
            while asked.elapsed() < Duration::from_secs(2) {
                if child.try_wait()?.is_some() {
                    return Ok(());
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        child.wait()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls until the run is over.
    fn poll(run: &CommandRun<'_>) {
        while !run.is_over() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A run whose command listens: this process has a child that does.
    fn beside_a_listener(load: &str, seconds: Option<u64>) -> Result<RunTime> {
        let run = CommandRun::begin(Some(load), seconds);
        *run.state.borrow_mut() = start(load);
        poll(&run);
        run.finish()
    }

    #[test]
    fn a_run_is_over_with_its_load() {
        let time = beside_a_listener("true", None).expect("runs");
        assert!(!time.is_cut);
        let error = beside_a_listener("exit 3", None).expect_err("fails");
        assert!(error.to_string().contains("`exit 3` failed (exit status: 3)"), "{error}");
    }

    #[test]
    fn a_load_that_does_not_end_is_ended_with_its_children() {
        let time = beside_a_listener("sleep 1000 & wait", Some(1)).expect("ended");
        assert!(time.is_cut);
    }

    #[test]
    fn a_command_that_ends_without_its_load_is_an_error() {
        let run = CommandRun::begin(Some("true"), None);
        let error = run.finish().expect_err("never started");
        assert!(error.to_string().contains("before its load `true`"), "{error}");
    }
}
