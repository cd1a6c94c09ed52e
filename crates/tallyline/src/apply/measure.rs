//! The time of a command before and after an edit, in alternating pairs.

use anyhow::{Context, Result, bail};
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The measured speed-up by edits of sources: median and quartiles over pairs of runs.
#[derive(Clone, Debug)]
pub(crate) struct SpeedUp {
    /// The lower quartile.
    pub(crate) low: f64,
    /// The median.
    pub(crate) median: f64,
    /// The upper quartile.
    pub(crate) high: f64,
    /// The number of pairs.
    pub(crate) pairs: usize,
}

impl fmt::Display for SpeedUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SpeedUp { low, median, high, pairs } = self;
        write!(f, "speed-up {median:.3}x (middle half {low:.3} to {high:.3}) in {pairs} pairs")
    }
}

/// Runs a shell command in two folders alternately, and compares the times of each pair of runs.
pub(crate) fn compare(command: &str, before: &Path, after: &Path, pairs: usize) -> Result<SpeedUp> {
    // once each, so that both find their files in memory
    run(command, before)?;
    run(command, after)?;
    let mut ratios = Vec::with_capacity(pairs);
    for pair in 0..pairs.max(1) {
        // neither is always first
        let (old, new) = if pair % 2 == 0 {
            let old = run(command, before)?;
            (old, run(command, after)?)
        } else {
            let new = run(command, after)?;
            (run(command, before)?, new)
        };
        ratios.push(old / new.max(1e-9));
    }
    Ok(summary(ratios))
}

fn summary(mut ratios: Vec<f64>) -> SpeedUp {
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = share * ratios.len().saturating_sub(1) as f64;
        let (low, part) = (place.floor() as usize, place.fract());
        let value = |at: usize| ratios.get(at).or(ratios.last()).copied().unwrap_or(1.0);
        value(low) * (1.0 - part) + value(low + 1) * part
    };
    SpeedUp { low: at(0.25), median: at(0.5), high: at(0.75), pairs: ratios.len() }
}

/// Runs a shell's command in a folder; the seconds that it took.
fn run(command: &str, folder: &Path) -> Result<f64> {
    let start = Instant::now();
    shell(command, folder, Stdio::null())?;
    Ok(start.elapsed().as_secs_f64())
}

/// Runs a shell command in a folder; an error with its last words if it fails.
pub(crate) fn shell(command: &str, folder: &Path, out: Stdio) -> Result<()> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder).stdin(Stdio::null()).stdout(out).stderr(Stdio::piped());
    let output = shell.output().with_context(|| format!("cannot run {command}"))?;
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
    fn a_command_that_fails_is_no_measurement() {
        let folder = std::env::temp_dir();
        let error = compare("echo no >&2; exit 3", &folder, &folder, 2).expect_err("fails");
        assert!(error.to_string().contains("no"), "{error}");
        assert_eq!(compare("true", &folder, &folder, 3).expect("runs").pairs, 3);
    }
}
