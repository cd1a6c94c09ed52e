//! Programs that are installed beside this one.

use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Replaces this process by `tallyline-bench` with these arguments: from the folder of this program, else from
/// `PATH`.
///
/// # Errors
/// A message that says how to install `tallyline-bench`, if it is not found.
pub(crate) fn run_bench(words: &[OsString]) -> Result<()> {
    const NAME: &str = "tallyline-bench";
    let own = std::env::current_exe().context("cannot find this program")?;
    let beside = own.with_file_name(NAME);
    let program = if beside.is_file() { beside.into_os_string() } else { NAME.into() };
    let error = Command::new(program).args(words).exec();
    if error.kind() == std::io::ErrorKind::NotFound {
        bail!(
            "the benchmarks are a program of their own, {NAME}, which is not installed: `cargo build --release -p {NAME}` builds it beside this one"
        );
    }
    Err(error).context(format!("cannot run {NAME}"))
}
