//! The time of a command before and after an edit, in alternating pairs.

use crate::interrupt;
use anyhow::{Context, Result, bail};
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The measured speed-up by edits of sources: the median and quartiles of old time / new time over pairs of runs.
#[derive(Clone, Debug)]
pub(crate) struct SpeedUp {
    /// The lower quartile of the speed-ups of the pairs.
    pub(crate) low: f64,
    /// The median of the speed-ups of the pairs.
    pub(crate) median: f64,
    /// The upper quartile of the speed-ups of the pairs.
    pub(crate) high: f64,
    /// The number of pairs of runs.
    pub(crate) pairs: usize,
    /// The mean number of CPUs that the command had before the edit; none where it is not known.
    pub(crate) cpus: Option<f64>,
}

impl fmt::Display for SpeedUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SpeedUp { low, median, high, pairs, .. } = self;
        write!(f, "speed-up {median:.3}x (middle half {low:.3} to {high:.3}) in {pairs} pairs")
    }
}

/// Runs a shell command alternately in the folders `before` and `after`, `pairs` times each, and returns the ratio
/// of its run times.
pub(crate) fn compare(command: &str, before: &Path, after: &Path, pairs: usize) -> Result<SpeedUp> {
    // once each, so that both find their files in memory
    run(command, before)?;
    run(command, after)?;
    let mut ratios = Vec::with_capacity(pairs);
    let mut before_edit = Used::default();
    for pair in 0..pairs.max(1) {
        // neither is always first
        let (old, new) = if pair % 2 == 0 {
            let old = run(command, before)?;
            (old, run(command, after)?)
        } else {
            let new = run(command, after)?;
            (run(command, before)?, new)
        };
        before_edit.add(&old);
        ratios.push(old.seconds / new.seconds.max(1e-9));
    }
    Ok(SpeedUp { cpus: before_edit.cpus(), ..summary(ratios) })
}

fn summary(mut ratios: Vec<f64>) -> SpeedUp {
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = share * ratios.len().saturating_sub(1) as f64;
        let (low, part) = (place.floor() as usize, place.fract());
        let value = |at: usize| ratios.get(at).or(ratios.last()).copied().unwrap_or(1.0);
        value(low) * (1.0 - part) + value(low + 1) * part
    };
    SpeedUp { low: at(0.25), median: at(0.5), high: at(0.75), pairs: ratios.len(), cpus: None }
}

/// Seconds of CPU time below which the number of CPUs is not known.
const LEAST_CPU: f64 = 0.2;

/// The time that a command took.
#[derive(Clone, Debug, Default)]
struct Used {
    /// Seconds from start to end.
    seconds: f64,
    /// Seconds of CPU time; none where the kernel does not say.
    cpu: Option<f64>,
}

impl Used {
    fn add(&mut self, other: &Used) {
        self.cpu = other.cpu.map(|cpu| cpu + self.cpu.unwrap_or(0.0));
        self.seconds += other.seconds;
    }

    /// Returns the mean number of CPUs in use; none for too little time, as the kernel counts it in hundredths.
    fn cpus(&self) -> Option<f64> {
        self.cpu.filter(|cpu| *cpu >= LEAST_CPU && self.seconds > 0.0).map(|cpu| cpu / self.seconds)
    }
}

/// Runs a shell's command in a folder, and returns the time that it took.
fn run(command: &str, folder: &Path) -> Result<Used> {
    let (start, before) = (Instant::now(), cpu_of_children());
    shell(command, folder, Stdio::null())?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu = before.zip(cpu_of_children()).map(|(before, after)| after - before);
    Ok(Used { seconds, cpu })
}

/// Returns the seconds of CPU time that all ended children had; none where the kernel does not say.
fn cpu_of_children() -> Option<f64> {
    cpu_in(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// Reads the CPU time of children from the text of /proc/PID/stat: its fields 16 and 17, in hundredths of a second on
/// every architecture that we run on (`USER_HZ`). The name, field 2, may have spaces and brackets.
fn cpu_in(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(13);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    let (user, system) = (ticks()?, ticks()?);
    Some(user.checked_add(system)? as f64 / 100.0)
}

/// Runs a shell command in a folder with its output to `out`; fails with the end of its error output if it fails, or is
/// interrupted.
pub(crate) fn shell(command: &str, folder: &Path, out: Stdio) -> Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder).stdin(Stdio::null()).stdout(out).stderr(Stdio::piped());
    let output = interrupt::output(&mut shell).with_context(|| format!("cannot run {command}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message");
    bail!("{command}: failed in {} ({}): {}", folder.display(), output.status, last.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_of_the_ratios() {
        let speed_up = summary(vec![4.0, 1.0, 2.0, 3.0, 5.0]);
        assert_eq!((speed_up.low, speed_up.median, speed_up.high, speed_up.pairs), (2.0, 3.0, 4.0, 5));
    }

    #[test]
    fn the_cpu_time_of_children_is_behind_any_name() {
        let stat = "7 (a) b (c) R 1 7 7 0 -1 4194304 100 200 0 0 11 22 150 50 20 0 1 0 5 6 7";
        assert_eq!(cpu_in(stat), Some(2.0));
        assert_eq!(cpu_in("7 (cut) R 1 7"), None);
        let mut used = Used { seconds: 0.0, cpu: None };
        used.add(&Used { seconds: 1.0, cpu: Some(2.0) });
        used.add(&Used { seconds: 1.0, cpu: Some(1.0) });
        assert_eq!(used.cpus(), Some(1.5));
    }

    #[test]
    fn a_command_that_fails_is_no_measurement() {
        let folder = std::env::temp_dir();
        let error = compare("echo no >&2; exit 3", &folder, &folder, 2).expect_err("fails");
        assert!(error.to_string().contains("no"), "{error}");
        assert_eq!(compare("true", &folder, &folder, 3).expect("runs").pairs, 3);
    }
}
