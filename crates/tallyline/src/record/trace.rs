//! `tallyline record --trace`: every access of a program to memory, or one of N, under QEMU.

use super::RecordArgs;
use crate::interrupt;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::BufWriter;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};
use tallyline_perf_data::recorder::{ask_to_end, build_id_of_file};
use tallyline_support::replacement::Replacement;
use tallyline_trace::emulator::{self, EmulatorCommand, PluginOptions};
use tallyline_trace::samples::{ProgramInfo, write_samples};
use tallyline_trace::{Trace, plugin};

/// Traces; the exit status is the command's.
pub(super) fn run(args: &RecordArgs) -> Result<ExitCode> {
    if args.is_stream() {
        bail!("a trace cannot go to standard output: name a file with -o");
    }
    let plugin = plugin::build(&plugin::cache_folder())?;
    let output = args.output();
    // samples are made of the trace when it is complete
    let path = if args.trace.is_whole() { output.to_path_buf() } else { beside(output) };
    File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let traced = trace(args, &plugin, &path);
    if !args.trace.is_whole() {
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    traced
}

/// A command to run under QEMU, with its memory accesses traced into a file, on behalf of another sub-command.
pub(crate) struct TracedCommand<'c> {
    /// The command to run: a program and its arguments.
    pub(crate) command: &'c [OsString],
    /// The path of the trace to write.
    pub(crate) output: &'c Path,
    /// The size of the trace in bytes at which tracing ends.
    pub(crate) max_size: u64,
    /// The file that names the functions to trace; none for all.
    pub(crate) window: Option<&'c Path>,
    /// The time after which the command is asked to end.
    pub(crate) seconds: Option<u64>,
    /// The file whose first byte says when accesses are traced; none for the command's start.
    pub(crate) start: Option<&'c Path>,
    /// A frequently called function that returns `true` once the command is to be asked to end early.
    pub(crate) until: Option<&'c dyn Fn() -> bool>,
    /// The command's standard output; none for ours.
    pub(crate) stdout: Option<&'c File>,
}

impl<'c> TracedCommand<'c> {
    /// Describes a command whose accesses are all traced, from its start to its end, into the file `output`.
    pub(crate) fn new(command: &'c [OsString], output: &'c Path) -> Self {
        Self {
            command,
            output,
            max_size: u64::MAX,
            window: None,
            seconds: None,
            start: None,
            until: None,
            stdout: None,
        }
    }
}

/// Opens `/dev/null`, to discard a command's output.
pub(crate) fn open_dev_null() -> Result<File> {
    File::options().write(true).open("/dev/null").context("cannot open /dev/null")
}

/// Runs a command under QEMU until it ends, tracing its memory accesses, and returns its exit status. A failed
/// status is no error here, as of a server that was asked to end.
pub(crate) fn trace_command(traced: &TracedCommand<'_>) -> Result<ExitStatus> {
    let plugin = plugin::build(&plugin::cache_folder())?;
    let path = traced.output;
    File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let options = PluginOptions::new(path.to_path_buf(), 1, traced.max_size)
        .with_window(traced.window.map(Path::to_path_buf))
        .with_start(traced.start.map(Path::to_path_buf));
    let emulation = emulator::emulation(traced.command, None, &plugin, &options)?;
    interrupt::listen()?;
    let started = Instant::now();
    let is_over = || {
        let is_late = traced.seconds.is_some_and(|seconds| started.elapsed() >= Duration::from_secs(seconds));
        is_late || traced.until.is_some_and(|until| until())
    };
    let status = run_emulator(&emulation, &is_over, traced.stdout)
        .with_context(|| format!("cannot run {}", emulation.emulator().display()))?;
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Trace::open(&file).map_err(|error| not_traced(error, &emulation, status))?;
    Ok(status)
}

/// Returns a file of our own beside the output: it may be as large.
fn beside(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_os_string();
    name.push(format!(".{}.trace", std::process::id()));
    name.into()
}

fn trace(args: &RecordArgs, plugin: &Path, path: &Path) -> Result<ExitCode> {
    let options = PluginOptions::new(path.to_path_buf(), args.trace.every, args.max_size.unwrap_or(u64::MAX));
    let emulation = emulator::emulation(&args.command, args.trace.emulator.as_deref(), plugin, &options)?;
    interrupt::listen()?;
    let status = run_emulator(&emulation, &|| false, None)
        .with_context(|| format!("cannot run {}", emulation.emulator().display()))?;
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let trace = Trace::open(&file).map_err(|error| not_traced(error, &emulation, status))?;
    if !args.trace.is_whole() {
        convert(args, &trace, &emulation)?;
    }
    if !args.quiet {
        tell(args, &trace, &emulation)?;
    }
    // a command that ended well has its trace whole, or there was no room for it
    if status.success() && !emulation.whole_machine() && !trace.is_complete() {
        bail!(
            "{}: the trace could not be written to its end (is the disk full?); what is there can be read",
            args.output().display()
        );
    }
    // as shells do for a command that a signal ended
    let signal = status.signal().map(|signal| 128 + signal);
    Ok(ExitCode::from(status.code().or(signal).unwrap_or(1) as u8))
}

/// Runs until it ends by itself, or because we were asked to end: a terminal's Ctrl-C reaches it
/// without us, but nothing else does. Where that is said it is asked to end, too.
fn run_emulator(
    emulation: &EmulatorCommand,
    is_over: &dyn Fn() -> bool,
    stdout: Option<&File>,
) -> std::io::Result<ExitStatus> {
    let mut command = Command::new(emulation.emulator());
    if let Some(stdout) = stdout {
        command.stdout(stdout.try_clone()?);
    }
    let started = Instant::now();
    let mut child = command.args(emulation.words()).spawn()?;
    let mut is_told = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if !is_told && (interrupt::asked() || is_over()) {
            ask_to_end(&mut child);
            is_told = true;
        }
        std::thread::sleep(interval(started.elapsed()));
    }
}

/// Returns the time until the next check whether the emulator has ended, which has run for some time: a hundredth of
/// that, as the run's time, which is stated, is too long by it.
fn interval(elapsed: Duration) -> Duration {
    const SHORTEST: Duration = Duration::from_millis(1);
    const LONGEST: Duration = Duration::from_millis(20);
    (elapsed / 100).clamp(SHORTEST, LONGEST)
}

/// Returns the error for a run that left no trace: the emulator did not come as far as the plugin.
fn not_traced(
    error: tallyline_trace::Error,
    emulation: &EmulatorCommand,
    status: ExitStatus,
) -> anyhow::Error {
    let emulator = emulation.emulator().display();
    match error {
        // the emulator was asked to end before it came so far
        tallyline_trace::Error::NotTrace if interrupt::asked() => interrupt::Interrupted.into(),
        tallyline_trace::Error::NotTrace => anyhow::anyhow!(
            "{emulator} wrote no trace ({status}): is it a QEMU with plugins (not a static one), 4.2 or later, and is \
             there room for a trace?"
        ),
        other => other.into(),
    }
}

fn convert(args: &RecordArgs, trace: &Trace<'_>, emulation: &EmulatorCommand) -> Result<()> {
    let program = args.command.first().map(Path::new).and_then(Path::file_name);
    let name = program.unwrap_or_default().to_string_lossy();
    const LINKED: u64 = 0xffff_ffff_8100_0000;
    let kernel_text = args
        .trace
        .kernel_text
        .or_else(|| (emulation.whole_machine() && trace.header().machine() == "x86_64").then_some(LINKED));
    let about = ProgramInfo::new(
        &name,
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        kernel_text,
    );
    let output = args.output();
    let cannot = || format!("cannot write {}", output.display());
    let mut file = Replacement::create(output).with_context(cannot)?;
    let out = BufWriter::new(&mut file);
    write_samples(trace, out, &about, &|path| build_id_of_file(Path::new(path))).with_context(cannot)?;
    file.finish().with_context(cannot)
}

/// Describes the untraced programs: their number, and the most frequent names.
fn untraced<'t>(paths: impl Iterator<Item = &'t str>) -> Option<String> {
    const SHOWN: usize = 8;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for path in paths {
        *counts.entry(path.rsplit('/').next().unwrap_or(path)).or_default() += 1;
    }
    let all: usize = counts.values().sum();
    let mut named: Vec<_> = counts.into_iter().collect();
    named.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = named.len().saturating_sub(SHOWN);
    let mut names: Vec<_> = named
        .iter()
        .take(SHOWN)
        .map(|(name, count)| if *count > 1 { format!("{name} ({count} times)") } else { (*name).to_owned() })
        .collect();
    names.extend((more > 0).then(|| format!("{more} more")));
    (all > 0).then(|| {
        format!(
            "{all} programs that it started ran untraced: {}; to trace one, make it the command",
            names.join(", ")
        )
    })
}

/// Diagnostics: what was recorded, and what is missing.
fn tell(args: &RecordArgs, trace: &Trace<'_>, emulation: &EmulatorCommand) -> Result<()> {
    if trace.ends().iter().any(|end| end.full()) {
        eprintln!("tallyline: the trace is as large as --max-size permits: what came later is missing");
    }
    if !trace.is_complete() {
        eprintln!(
            "tallyline: the emulator was killed or could not write: the last accesses of each thread are missing"
        );
    }
    if let Some(line) = untraced(trace.executed_programs()) {
        eprintln!("tallyline: {line}");
    }
    let accesses: u64 = trace.threads().iter().map(|thread| thread.accesses()).sum();
    let what = if args.trace.every == 1 { String::new() } else { format!(" (one of {})", args.trace.every) };
    let who = if emulation.whole_machine() { "CPUs" } else { "threads" };
    let size = fs::metadata(args.output())?.len();
    eprintln!(
        "tallyline: {accesses} accesses{what} of {} {who}, {:.1} MB in {}",
        trace.threads().len(),
        size as f64 / 1e6,
        args.output().display()
    );
    if !emulation.whole_machine() {
        eprintln!(
            "tallyline: emulated by {}: there is no rseq, what relies on it ran its fallback",
            emulation.emulator().display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tallyline_inference::code::Image;

    const TWO_FUNCTIONS: &str = "static volatile unsigned long table[1000];
        __attribute__((noinline)) void inside(void) { for (int at = 0; at < 10000; at++) table[at % 1000] += at; }
        __attribute__((noinline)) void outside(void) { for (int at = 0; at < 80000; at++) table[at % 1000] += at; }
        int main(void) { inside(); outside(); return 0; }";

    #[test]
    fn only_accesses_of_the_window_are_traced() {
        let folder = std::env::temp_dir().join(format!("tallyline-window-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (source, program) = (folder.join("two.c"), folder.join("two"));
        std::fs::write(&source, TWO_FUNCTIONS).expect("written");
        let built = Command::new("cc").arg("-O1").arg("-o").arg(&program).arg(&source).status();
        let has_emulator = Command::new("qemu-x86_64").arg("--version").output().is_ok();
        if !cfg!(target_arch = "x86_64") || !has_emulator || !built.is_ok_and(|status| status.success()) {
            println!("skipped: needs x86-64, qemu-x86_64 and a C compiler");
            return;
        }
        let image = Image::read(&File::open(&program).expect("there")).expect("a program");
        let address = image.address_of_symbol("inside").expect("a function");
        let size = image.function_at(address).expect("a function").size();
        let segment = image.segments().iter().find(|segment| {
            address.checked_sub(segment.address()).is_some_and(|inside| inside < segment.size())
        });
        let segment = segment.expect("the function is in one");
        let offset = address - segment.address() + segment.offset();
        let window = folder.join("window");
        std::fs::write(&window, format!("{offset:x} {size:x} {}\n", program.display())).expect("written");
        let command = [program.into_os_string()];
        let accesses = [None, Some(window.as_path())].map(|window| {
            let output = folder.join("trace");
            let status = trace_command(&TracedCommand { window, ..TracedCommand::new(&command, &output) });
            assert!(status.expect("traced").success());
            let trace = File::open(&output).expect("there");
            let trace = Trace::open(&trace).expect("a trace");
            let accesses = trace.threads().iter().map(|thread| thread.accesses()).sum::<u64>();
            (accesses, trace.ends().iter().map(|end| end.instructions()).sum::<u64>())
        });
        let (accesses, instructions) = (accesses.map(|(accesses, _)| accesses), accesses.map(|(_, run)| run));
        // a load and a store each
        assert!((20_000..30_000).contains(&accesses[1]), "{accesses:?}");
        assert!(accesses[0] >= 160_000 + accesses[1], "{accesses:?}");
        // outside not each block is counted, but each loop
        assert!(instructions[1].abs_diff(instructions[0]) * 4 < instructions[0], "{instructions:?}");
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn programs_that_were_not_traced_are_counted_by_name() {
        assert_eq!(untraced([].into_iter()), None);
        let line = untraced(["/bin/ls", "/usr/bin/cat", "/bin/cat"].into_iter()).expect("three programs");
        assert!(line.starts_with("3 programs") && line.contains(": cat (2 times), ls;"), "{line}");
        let many: Vec<String> = (0..20).map(|number| format!("/bin/tool{number}")).collect();
        let line = untraced(many.iter().map(String::as_str)).expect("twenty programs");
        assert!(line.contains(", 12 more;"), "{line}");
    }
}
