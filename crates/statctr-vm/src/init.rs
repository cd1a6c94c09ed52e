//! Process 1 of the virtual machine, and the run of all scenarios.

use crate::os::machine;
use crate::report::say;
use crate::scenario::{SCENARIOS, Settings};
use statctr::topology::Topology;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Folder in which `ci/vm/image` puts test programs of the library, in one folder for each way in which threads are
/// registered for rseq. They run after the scenarios.
const TESTS: &str = "/tests";
/// The file in such a folder that holds environment variables for its programs, `NAME=VALUE` in each line.
const ENVIRONMENT: &str = "environment";
/// The file in such a folder that holds arguments for its Rust test programs, separated by blanks.
const ARGUMENTS: &str = "arguments";

/// Runs as the emulated machine's init process (PID 1): mounts the pseudo file systems, runs all scenarios and test
/// programs, and powers the machine off.
pub(crate) fn run() -> ! {
    for (kind, at) in [
        ("devtmpfs", "/dev"),
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("tmpfs", "/tmp"),
        ("tracefs", "/sys/kernel/tracing"),
    ] {
        if let Err(error) = machine::mount(kind, at) {
            say!("machine", "no {kind} at {at}: {error}");
        }
    }
    let line = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let words = line.split_whitespace().filter_map(|word| word.strip_prefix("statctr."));
    let failed = match Settings::parse(words.map(str::to_owned)) {
        Ok(settings) => {
            let mut failed = run_all(&settings);
            if settings.includes("tests") {
                failed.extend(run_tests());
            }
            failed
        }
        Err(error) => vec![error],
    };
    if failed.is_empty() {
        say!("machine", "PASSED");
    } else {
        say!("machine", "FAILED: {}", failed.join(", "));
    }
    let error = machine::power_off();
    say!("machine", "cannot be switched off: {error}");
    loop {
        std::thread::park();
    }
}

/// Runs each scenario (test of per-CPU counters) that the settings select in a process of its own; returns the names of
/// the scenarios that failed.
pub(crate) fn run_all(settings: &Settings) -> Vec<String> {
    say!("machine", "{}", describe());
    let mut failed = Vec::new();
    for scenario in SCENARIOS.iter().filter(|scenario| settings.includes(scenario.name)) {
        let mut command = Command::new("/proc/self/exe");
        command.arg(scenario.name).args(settings.arguments());
        if !ends_well(scenario.name, &mut command) {
            failed.push(scenario.name.to_owned());
        }
    }
    failed
}

/// Runs the library's own test programs, one after the other; returns the names of those that failed.
fn run_tests() -> Vec<String> {
    let mut failed = Vec::new();
    for way in entries(Path::new(TESTS)) {
        let text = |name: &str| std::fs::read_to_string(way.join(name)).unwrap_or_default();
        let (environment, arguments) = (text(ENVIRONMENT), text(ARGUMENTS));
        for program in entries(&way) {
            let file = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if [ENVIRONMENT, ARGUMENTS].contains(&file.as_str()) {
                continue;
            }
            let name = format!("{}/{file}", way.file_name().unwrap_or_default().to_string_lossy());
            let mut command = Command::new(&program);
            if !file.starts_with("c-") {
                command.arg("--test-threads=1").arg("--quiet").args(arguments.split_whitespace());
            }
            command.envs(environment.lines().filter_map(|line| line.split_once('=')));
            command.env("TMPDIR", "/tmp").stdin(Stdio::null());
            if !ends_well(&name, &mut command) {
                failed.push(name);
            }
        }
    }
    failed
}

/// Returns what a folder holds, in the order of names; nothing where it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

fn ends_well(name: &str, command: &mut Command) -> bool {
    let start = Instant::now();
    let status = command.status();
    let seconds = start.elapsed().as_secs_f64();
    match status {
        Ok(status) if status.success() => {
            say!(name, "held, {seconds:.1} s");
            true
        }
        Ok(status) => {
            say!(name, "BROKEN: {status}, {seconds:.1} s");
            false
        }
        Err(error) => {
            say!(name, "BROKEN: does not start: {error}");
            false
        }
    }
}

fn describe() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cpus = match Topology::current() {
        Ok(topology) => {
            let nodes: Vec<String> =
                topology.nodes().map(|(node, cpus)| format!("node {node}: {cpus}")).collect();
            format!(
                "CPUs possible {}, present {}, online {}; {}",
                topology.possible(),
                topology.present(),
                topology.online(),
                nodes.join(", ")
            )
        }
        Err(error) => error.to_string(),
    };
    format!(
        "Linux {} on {}; {cpus}; {}, rseq feature size {}",
        kernel.trim(),
        std::env::consts::ARCH,
        statctr::thread_mode(),
        machine::auxiliary(machine::RSEQ_FEATURE_SIZE)
    )
}
