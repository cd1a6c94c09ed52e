//! The traced run of a command.

use super::AdviseArgs;
use super::load::{CommandRun, RunTime};
use super::window::Window;
use crate::record::{TracedCommand, trace_command};
use anyhow::{Context, Result};
use std::cell::Cell;
use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;
use std::process::ExitStatus;
use tallyline_trace::{Thread, Trace};

/// Seconds of a run below which it is traced again for threads that did nothing, or that ran one after the other.
const SHORT: f64 = 1.0;

/// The most runs of a short command.
const RUNS: usize = 3;

/// Accesses of the busiest thread for each of a thread's from which that one did nothing.
const IDLE: u64 = 16;

/// The part of a thread's time beside another from which the two ran at the same time: one in this many.
const BESIDE: u64 = 4;

/// A traced run of the command of `tallyline advise`.
pub(super) struct TracedRun {
    pub(super) time: RunTime,
    /// Seconds after which the trace had the largest size; none where it stayed below.
    pub(super) full_after: Option<f64>,
    /// The status of a command that failed, and was not asked to end.
    pub(super) failed: Option<ExitStatus>,
}

impl TracedRun {
    /// Traces a run of the command to the file at `path`. Of a short command of which a thread did nothing, or whose
    /// threads ran one after the other, other runs are traced, and that one stays whose threads share time and work most
    /// evenly: which of them takes jobs from a queue, and if one ends before the next begins, is an accident of how soon
    /// each begins.
    pub(super) fn of_even_threads(
        args: &AdviseArgs,
        folder: &Path,
        path: &Path,
        window: Option<&Window>,
    ) -> Result<Self> {
        let mut best = Self::new(args, folder, path, window)?;
        let mut spread = Spread::of_trace(path);
        let other = path.with_extension("again");
        for _ in 1..RUNS {
            let is_short = best.time.seconds < SHORT && args.load.is_none() && best.failed.is_none();
            if !is_short || spread.idle == 0 && !spread.is_in_turn {
                break;
            }
            // the trace that there is will do
            let Ok(again) = Self::new(args, folder, &other, window) else { break };
            let of_again = Spread::of_trace(&other);
            if of_again.is_more_even(&spread) && again.failed.is_none() {
                fs::rename(&other, path).context("cannot rename a trace")?;
                (best, spread) = (again, of_again);
            }
        }
        let _ = fs::remove_file(&other);
        Ok(best)
    }

    fn new(args: &AdviseArgs, folder: &Path, path: &Path, window: Option<&Window>) -> Result<Self> {
        let stdout = args.command_output()?;
        let full_after = Cell::new(None);
        let file = folder.join("window");
        window.map(|window| window.write(&file)).transpose()?;
        // the start of a server is not what it does under load
        let start = args.load.as_ref().map(|_| folder.join("start"));
        start.as_ref().map(|start| fs::write(start, [0]).context("cannot write a file")).transpose()?;
        let run = CommandRun::begin(args.load.as_deref(), args.seconds).with_signal(start.as_deref());
        let has_largest_size = || fs::metadata(path).is_ok_and(|file| file.len() >= args.max_size);
        let is_over = || {
            if full_after.get().is_none() && has_largest_size() {
                full_after.set(Some(run.elapsed().as_secs_f64()));
            }
            run.is_over()
        };
        let traced = TracedCommand {
            max_size: args.max_size,
            window: window.map(|_| file.as_path()),
            start: start.as_deref(),
            until: Some(&is_over),
            stdout: stdout.as_ref(),
            ..TracedCommand::new(&args.command, path)
        };
        let traced = trace_command(&traced);
        // a load goes with its command, whatever became of that
        let time = run.finish();
        let status = traced?;
        // what Ctrl-C was to end has ended
        crate::interrupt::forget();
        let time = time?;
        // one that is asked to end does so by a signal, or with whatever status
        let is_asked = args.load.is_some() || time.is_cut || full_after.get().is_some();
        // the end of a run comes between two looks at its trace
        if full_after.get().is_none() && has_largest_size() {
            full_after.set(Some(time.seconds));
        }
        let failed = (!is_asked && !status.success()).then_some(status);
        Ok(Self { time, full_after: full_after.get(), failed })
    }
}

/// The spread of a trace's accesses over the threads of its busiest process, without the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Spread {
    /// Threads that did nothing.
    idle: usize,
    /// `true` if there are several threads, of which no two ran at the same time.
    is_in_turn: bool,
    /// The number of threads with as many accesses each that would differ as much: the square of the sum over the sum
    /// of the squares.
    busy: f64,
}

impl Spread {
    /// Returns the spread of a trace; of none that can be read, an empty one.
    fn of_trace(path: &Path) -> Self {
        let Ok(file) = File::open(path) else { return Self::default() };
        let Ok(trace) = Trace::open(&file) else { return Self::default() };
        // the first thread of many programs only starts the others
        let threads_of = |process: u32| -> Vec<(u64, Range<u64>)> {
            let of_process = |thread: &&Thread| thread.process() == process && thread.thread() != process;
            let threads = trace.threads().iter().filter(of_process);
            threads.map(|thread| (thread.accesses(), thread.times().unwrap_or_default())).collect()
        };
        let processes = trace.threads().iter().map(|thread| thread.process());
        let accesses = |all: &Vec<(u64, Range<u64>)>| all.iter().map(|(accesses, _)| accesses).sum::<u64>();
        let busiest = processes.map(threads_of).max_by_key(accesses);
        Self::of_threads(&busiest.unwrap_or_default())
    }

    /// Returns the spread of threads with the accesses and the time of each.
    fn of_threads(threads: &[(u64, Range<u64>)]) -> Self {
        let most = threads.iter().map(|(accesses, _)| *accesses).max().unwrap_or(0);
        let sum: f64 = threads.iter().map(|(accesses, _)| *accesses as f64).sum();
        let squares: f64 = threads.iter().map(|(accesses, _)| (*accesses as f64).powi(2)).sum();
        let is_idle = |accesses: u64| accesses < most / IDLE;
        let mut times: Vec<&Range<u64>> =
            threads.iter().filter(|(accesses, _)| !is_idle(*accesses)).map(|(_, time)| time).collect();
        times.sort_by_key(|time| time.start);
        let is_behind = |pair: &[&Range<u64>]| {
            let (first, next) = (pair[0], pair[1]);
            let beside = first.end.min(next.end).saturating_sub(next.start);
            let shorter = first.end.saturating_sub(first.start).min(next.end.saturating_sub(next.start));
            beside < shorter / BESIDE
        };
        Self {
            idle: threads.iter().filter(|(accesses, _)| is_idle(*accesses)).count(),
            is_in_turn: times.len() > 1 && times.windows(2).all(is_behind),
            busy: if squares > 0.0 { sum * sum / squares } else { 0.0 },
        }
    }

    /// Returns `true` if threads share time and work more evenly than those of another run.
    fn is_more_even(&self, other: &Self) -> bool {
        match (self.is_in_turn, other.is_in_turn) {
            (false, true) => true,
            (true, false) => false,
            _ => self.busy > other.busy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(threads: &[(u64, u64, u64)]) -> Spread {
        let of = |(accesses, start, end): &(u64, u64, u64)| (*accesses, *start..*end);
        Spread::of_threads(&threads.iter().map(of).collect::<Vec<_>>())
    }

    #[test]
    fn threads_that_share_the_work_are_more_than_one_that_does_it_all() {
        let even = spread(&[(100, 0, 90), (100, 1, 91), (100, 2, 92)]);
        let uneven = spread(&[(298, 0, 90), (1, 90, 91), (1, 1, 2)]);
        assert_eq!(even, Spread { idle: 0, is_in_turn: false, busy: 3.0 });
        assert_eq!((uneven.idle, uneven.is_in_turn), (2, false));
        assert!(uneven.busy < 1.1 && even.is_more_even(&uneven) && !uneven.is_more_even(&even));
        assert_eq!(spread(&[]), Spread::default());
    }

    #[test]
    fn threads_that_run_one_after_the_other_are_told_from_those_that_run_together() {
        let in_turn = spread(&[(100, 90, 200), (100, 0, 100)]);
        assert!(in_turn.is_in_turn);
        let together = spread(&[(100, 0, 100), (60, 70, 170)]);
        assert!(!together.is_in_turn && together.is_more_even(&in_turn) && !in_turn.is_more_even(&together));
        assert!(!spread(&[(100, 0, 100)]).is_in_turn, "one alone");
    }
}
