//! A program that is run to its end, and what it took.

use anyhow::{Context, Result, bail};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The elapsed time and the peak memory of one run of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// From start to end.
    pub(crate) time: Duration,
    /// The most memory that was resident at once, mapped files included, in bytes.
    pub(crate) resident: u64,
}

/// Runs a program to its end, with its output discarded, and returns its elapsed time and peak memory. A failed exit
/// status is an error.
pub(crate) fn run(command: &mut Command) -> Result<Cost> {
    let start = Instant::now();
    let name = command.get_program().to_string_lossy().into_owned();
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot run {name}"))?;
    let mut status = 0;
    // SAFETY: a plain structure of numbers, for which zeros are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: waits for the child just made, which nothing else waits for, and writes to the two
    // places that it is given.
    let waited = unsafe { libc::wait4(child.id().cast_signed(), &mut status, 0, &mut usage) };
    let time = start.elapsed();
    if waited < 0 {
        return Err(std::io::Error::last_os_error()).context("cannot wait for a program");
    }
    if !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) != 0 {
        bail!("{name} failed: status {status:#x}");
    }
    let kibibytes = u64::try_from(usage.ru_maxrss).unwrap_or(0);
    Ok(Cost { time, resident: kibibytes * 1024 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_takes_memory_and_its_failure_is_an_error() {
        let cost = run(Command::new("sh").args(["-c", ":"])).expect("runs");
        assert!(cost.resident > 100_000 && cost.time > Duration::ZERO, "{cost:?}");
        assert!(run(Command::new("sh").args(["-c", "exit 3"])).is_err());
        assert!(run(&mut Command::new("./no such program")).is_err());
    }
}
