//! One run of a binary: what it wrote and how it ended.

use anyhow::{Context, Result};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The longest time for one case; a binary that takes longer is stopped, and the case says so.
const LIMIT: Duration = Duration::from_secs(300);

/// Returns a command of the binary as every case runs it: in the folder of inputs, under one name,
/// without colours, caches and servers.
pub(super) fn command(binary: &Path, inputs: &Path, words: &[String]) -> Command {
    let mut command = Command::new(binary);
    command.arg0("tallyline").args(words).current_dir(inputs).stdin(Stdio::null());
    command.env("TALLYLINE_CACHE", "off").env("NO_COLOR", "1").env("LC_ALL", "C");
    for name in ["COLUMNS", "DEBUGINFOD_URLS", "RUST_BACKTRACE", "TALLYLINE_DEBUG_FOLDER"] {
        command.env_remove(name);
    }
    command
}

/// Runs a case and returns its end, its standard output and its standard error as one text.
pub(super) fn of(binary: &Path, inputs: &Path, words: &[String]) -> Result<Vec<u8>> {
    // files, as a pipe that nobody reads would block the binary
    let files = [tempfile()?, tempfile()?];
    let mut child = command(binary, inputs, words)
        .stdout(files[0].1.try_clone()?)
        .stderr(files[1].1.try_clone()?)
        .spawn()
        .with_context(|| format!("{}: cannot run", binary.display()))?;
    let start = Instant::now();
    let end = loop {
        if let Some(status) = child.try_wait()? {
            break status.to_string();
        }
        if start.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            break format!("stopped after {} s", LIMIT.as_secs());
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let mut text = Vec::new();
    for (title, (path, _)) in ["standard output", "standard error"].into_iter().zip(&files) {
        text.extend_from_slice(format!("=== {title}\n").as_bytes());
        text.extend_from_slice(&std::fs::read(path)?);
        std::fs::remove_file(path)?;
    }
    text.extend_from_slice(format!("=== {end}\n").as_bytes());
    Ok(text)
}

fn tempfile() -> Result<(std::path::PathBuf, std::fs::File)> {
    static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("xtask-{}-{number}", std::process::id()));
    let file =
        std::fs::File::create_new(&path).with_context(|| format!("{}: cannot create", path.display()))?;
    Ok((path, file))
}

#[cfg(test)]
mod tests {
    use super::of;
    use std::path::Path;

    #[test]
    fn an_outcome_has_both_outputs_and_the_end() {
        let words = ["-c".to_owned(), "echo out; echo err >&2; exit 3".to_owned()];
        let text = of(Path::new("/bin/sh"), Path::new("/"), &words).expect("runs");
        let text = String::from_utf8(text).expect("text");
        assert_eq!(text, "=== standard output\nout\n=== standard error\nerr\n=== exit status: 3\n");
    }
}
