//! Running the program.

#![allow(dead_code)] // each test file uses a part of it

use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Long enough for any machine; only a failure waits so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the program, ready to be given arguments.
pub(crate) fn tallyline() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tallyline"));
    command.stdin(Stdio::null()).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    // what one test kept is no other's
    command.env("TALLYLINE_CACHE", "off");
    // nor is what the machine's user has set, and nobody presses a key
    command.env("TALLYLINE_CONFIG", "off").env("TALLYLINE_PAGER", "cat").env("TALLYLINE_HYPERLINKS", "never");
    command
}

/// Runs the program to its end.
pub(crate) fn run(args: &[&str]) -> Output {
    tallyline().args(args).output().expect("the program runs")
}

/// Runs the program in a folder.
pub(crate) fn run_in(folder: &Path, args: &[&str]) -> Output {
    tallyline().args(args).current_dir(folder).output().expect("the program runs")
}

/// Returns the text on standard output.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Returns the text on standard error.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// Waits until a condition holds; a failure says what was waited for.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "waited {PATIENCE:?} for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A program and its children, which end with the test at the latest.
pub(crate) struct ProcessGroup(pub(crate) Child);

impl ProcessGroup {
    /// Starts a program as the first process of a new group.
    pub(crate) fn start(command: &mut Command) -> ProcessGroup {
        ProcessGroup(command.process_group(0).spawn().expect("the program runs"))
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

/// Returns the CPU time of a process or thread, by its folder in `/proc`, in steps of 10 ms; zero if it has ended.
pub(crate) fn cpu_time(task: &str) -> Duration {
    /// The fields `utime` and `stime` of proc(5), counted from the one behind the name.
    const TIMES: std::ops::Range<usize> = 11..13;
    let stat = std::fs::read_to_string(format!("{task}/stat")).unwrap_or_default();
    // the name may have spaces and parentheses
    let Some((_, rest)) = stat.rsplit_once(") ") else { return Duration::ZERO };
    let fields = rest.split(' ').skip(TIMES.start).take(TIMES.len());
    let ticks: u64 = fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    // Linux shows ticks of 1/100 s, whatever it counts in
    Duration::from_millis(10 * ticks)
}

/// Returns a new folder for one test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Returns a file of the layout crate's tests, made by a real compiler, or what pahole prints of it.
pub(crate) fn data(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/layout").join(name);
    path.to_str().expect("a plain path").to_string()
}

/// Compiles a C program to an object file with debug information; none, with a message, where there
/// is no compiler.
pub(crate) fn object(folder: &Path, name: &str, source: &str) -> Option<String> {
    let (from, to) = (folder.join(format!("{name}.c")), folder.join(format!("{name}.o")));
    std::fs::write(&from, source).expect("written");
    let to = to.to_str().expect("a plain path").to_string();
    compiles(Command::new("cc").args(["-g", "-c", "-o", &to]).arg(&from)).then_some(to)
}

/// Returns whether a compiler accepts a program; `false`, with a message, if there is no compiler.
pub(crate) fn compiles(compiler: &mut Command) -> bool {
    match compiler.output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => panic!("{compiler:?}: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            eprintln!("skipped: {compiler:?}: {error}");
            false
        }
    }
}
