//! `tallyline record` and `tallyline evlist`. Where the kernel forbids sampling, what needs it is left
//! out with a word.

mod common;

use common::{ProcessGroup, compiles, cpu_time, folder, run, run_in, stderr, stdout, tallyline, wait_until};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tallyline_perf_data::abi::attr_flag;
use tallyline_perf_data::file::RecordBody;
use tallyline_perf_data::{AddressSpaces, Recording};

/// Keeps a shell busy for some tenths of a second.
const BUSY: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";

/// Returns whether the kernel permits sampling; prints a message if it does not.
fn permitted(folder: &Path) -> bool {
    let output = run_in(folder, &["record", "-e", "cpu-clock:u", "-o", "probe.data", "--", "true"]);
    if !output.status.success() {
        eprintln!("skipped: {}", stderr(&output).trim());
    }
    output.status.success()
}

/// Returns the samples of a file: all, and how many of them are where something is mapped.
fn samples(path: &Path) -> (usize, usize) {
    let bytes = fs::read(path).expect("a recording");
    let recording = Recording::parse(&bytes).expect("well-formed");
    assert!(recording.warnings().is_empty(), "{:?}", recording.warnings());
    let mut spaces = AddressSpaces::new(&recording);
    let (mut all, mut mapped) = (0, 0);
    for record in recording.in_time_order().expect("well-formed") {
        let record = record.expect("well-formed");
        spaces.apply(record.body()).expect("within limits");
        if let RecordBody::Sample(_, sample) = record.body() {
            all += 1;
            let (pid, ip) = (sample.pid.expect("asked for"), sample.ip.expect("asked for"));
            mapped += usize::from(spaces.resolve(pid, sample.mode, ip).is_some());
        }
    }
    (all, mapped)
}

#[test]
fn a_command_is_recorded_and_its_status_passed_on() {
    let folder = folder("record-command");
    if !permitted(&folder) {
        return;
    }
    let command = format!("{BUSY}; exit 7");
    let output =
        run_in(&folder, &["record", "-e", "cpu-clock:u", "-o", "a.data", "--", "sh", "-c", &command]);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert_eq!(stdout(&output), "", "the recorder has no results");
    let (all, mapped) = samples(&folder.join("a.data"));
    assert!(all > 20 && mapped == all, "{mapped} of {all} samples are where something is mapped");
    let said = stderr(&output);
    assert!(said.contains(&format!("{all} samples of cpu-clock:u (programs only)")), "{said}");

    let events = run_in(&folder, &["evlist", "-F", "-i", "a.data"]);
    assert_eq!(stdout(&events), "cpu-clock:u: sample_freq=1000\n");

    // a recording that is there is kept
    let again = run_in(&folder, &["record", "-q", "-o", "a.data", "--", "true"]);
    assert!(again.status.success(), "{}", stderr(&again));
    assert_eq!(samples(&folder.join("a.data.old")).0, all);

    // a command that a signal ends
    let before = fs::read(folder.join("a.data")).expect("a recording");
    let oldest = fs::read(folder.join("a.data.old")).expect("a recording");
    run_in(&folder, &["record", "-q", "-o", "a.data", "--", "no-such-command"]);
    assert_eq!(fs::read(folder.join("a.data.old")).expect("kept"), oldest);
    run_in(&folder, &["record", "-q", "-o", "new.data", "--", "no-such-command"]);
    assert_eq!(fs::read(folder.join("a.data")).expect("kept"), before, "nothing came in its place");
    assert!(!folder.join("new.data").exists());

    let killed = run_in(&folder, &["record", "-q", "-o", "b.data", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!((killed.status.code(), stderr(&killed).as_str()), (Some(137), ""));
}

#[test]
fn a_running_process_is_recorded_until_it_ends() {
    let folder = folder("record-process");
    if !permitted(&folder) {
        return;
    }
    // it has to live when the recorder comes to it, and waits until its mappings are in the file
    let busy = format!("read line; {BUSY}; {BUSY}");
    let mut shell = ProcessGroup::start(Command::new("sh").args(["-c", &busy]).stdin(Stdio::piped()));
    let pid = shell.0.id().to_string();
    let program = fs::read_link(format!("/proc/{pid}/exe")).expect("a process of ours");
    let program = program.to_str().expect("a plain path").as_bytes();
    let mut recorder = tallyline();
    recorder.args(["record", "-e", "cpu-clock:u", "-p", &pid, "-o", "a.data"]).current_dir(&folder);
    let mut recorder = recorder.stderr(Stdio::piped()).spawn().expect("it runs");
    let is_mapped = || {
        let bytes = fs::read(folder.join("a.data")).unwrap_or_default();
        bytes.windows(program.len()).any(|part| part == program)
    };
    wait_until("the shell's mappings", || is_mapped() || recorder.try_wait().expect("a child").is_some());
    drop(shell.0.stdin.take());
    let output = recorder.wait_with_output().expect("it ends with the shell");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let (all, mapped) = samples(&folder.join("a.data"));
    assert!(all > 20 && mapped == all, "{mapped} of {all} samples are where something is mapped");
}

#[test]
fn a_program_that_changes_its_user_is_told_from_one_that_ends() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder("record-setuid");
    // by root only: the program is another user's then
    if !permitted(&folder) || Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout != b"0\n") {
        return;
    }
    let program = folder.join("sleep");
    fs::copy("/bin/sleep", &program).expect("a program");
    let record = || stderr(&run_in(&folder, &["record", "-o", "a.data", "--", "./sleep", "1"]));
    let said = record();
    assert!(!said.contains("set-user-ID"), "{said}");
    std::os::unix::fs::chown(&program, Some(65534), None).expect("root may");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("root may");
    let said = record();
    assert!(said.contains("set-user-ID"), "{said}");
}

/// Four threads that keep busy until the process is killed.
const THREADS: &str = "\
#include <pthread.h>
#include <unistd.h>
static void *work(void *unused) { for (volatile long n = 0;; n++); return unused; }
int main(void)
{
	pthread_t thread;
	for (int n = 0; n < 4; n++)
		pthread_create(&thread, 0, work, 0);
	sleep(600);
	_exit(0);
}
";

/// The size in bytes of a recording that has samples: what describes events and processes is smaller.
const SAMPLED_SIZE: u64 = 20_000;

/// The CPU time in which a thread has some hundred samples.
const SAMPLED_TIME: Duration = Duration::from_millis(100);

/// Returns whether a recording that is being made has samples.
fn has_samples(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.len() > SAMPLED_SIZE)
}

/// Records to `a.data` until each of some threads, given by their folders in `/proc`, has run long enough to be
/// sampled: on a busy machine that takes more than any fixed time.
fn record_threads(folder: &Path, words: &[&str], threads: &[String]) -> Output {
    let mut recorder = tallyline();
    // the command ends with its input
    recorder.args(["record", "-e", "cpu-clock:u", "-o", "a.data"]).args(words).args(["--", "cat"]);
    recorder.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut recorder = recorder.spawn().expect("it runs");
    let times = || threads.iter().map(|thread| cpu_time(thread));
    let mut before: Option<Vec<Duration>> = None;
    wait_until("samples of each thread", || {
        if before.is_none() && has_samples(&folder.join("a.data")) {
            before = Some(times().collect());
        }
        let has_run = |before: &Vec<Duration>| {
            times().zip(before).all(|(now, before)| now.saturating_sub(*before) >= SAMPLED_TIME)
        };
        // the test says why a recorder ended early
        before.as_ref().is_some_and(has_run) || recorder.try_wait().expect("a child").is_some()
    });
    drop(recorder.stdin.take());
    recorder.wait_with_output().expect("it ends with its command")
}

#[test]
fn each_thread_that_runs_already_is_recorded() {
    let folder = folder("record-threads");
    if !permitted(&folder) {
        return;
    }
    let (source, program) = (folder.join("threads.c"), folder.join("threads"));
    fs::write(&source, THREADS).expect("written");
    if !compiles(Command::new("cc").args(["-O1", "-pthread", "-o"]).arg(&program).arg(&source)) {
        return;
    }
    let busy = ProcessGroup::start(&mut Command::new(&program));
    let pid = busy.0.id();
    let threads = || -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
        let paths =
            tasks.map(|task| task.expect("it runs").path().to_str().expect("a plain path").to_owned());
        paths.filter(|path| !path.ends_with(&format!("/{pid}"))).collect()
    };
    wait_until("four threads", || threads().len() == 4);
    let output = record_threads(&folder, &["-q", "-p", &pid.to_string()], &threads());
    assert!(output.status.success(), "{}", stderr(&output));
    let mut sampled = each_sample(&folder.join("a.data"), |sample| sample.tid);
    sampled.sort_unstable();
    sampled.dedup();
    assert_eq!(sampled.len(), 4, "{sampled:?}");
}

#[test]
fn ctrl_c_and_sigterm_keep_what_there_is() {
    let folder = folder("record-interrupt");
    if !permitted(&folder) {
        return;
    }
    for (signal, command) in
        [("-INT", &["--", "sh", "-c", "while :; do :; done"][..]), ("-TERM", &["-p", "self"][..])]
    {
        // a process of ours that is recorded until somebody ends the recorder, and that goes on
        let mut busy = ProcessGroup::start(Command::new("sh").args(["-c", "while :; do :; done"]));
        let pid = busy.0.id().to_string();
        let words: Vec<_> =
            command.iter().map(|word| if *word == "self" { pid.as_str() } else { word }).collect();
        let mut recorder = tallyline();
        recorder.args(["record", "-e", "cpu-clock:u", "-o", "a.data"]).args(words).current_dir(&folder);
        let mut recorder = ProcessGroup::start(recorder.stderr(Stdio::piped()));
        // until it has recorded something, on a machine with other things to do
        wait_until("samples", || has_samples(&folder.join("a.data")));
        let asked = Command::new("kill").args([signal, &recorder.0.id().to_string()]).status();
        assert!(asked.expect("kill runs").success());
        recorder.0.wait().expect("it ends, and its command with it");
        let others = busy.0.try_wait().expect("a child");
        assert_eq!(others, None, "a process that was only watched goes on");
        assert!(samples(&folder.join("a.data")).0 > 20, "{signal}");
        fs::remove_file(folder.join("a.data")).expect("a recording");
    }
}

#[test]
fn a_full_disk_is_one_line_and_an_older_recording_is_kept() {
    let folder = folder("record-full");
    if !permitted(&folder) {
        return;
    }
    let output = run_in(&folder, &["record", "-q", "-e", "cpu-clock:u", "-o", "/dev/full", "--", "true"]);
    let said = stderr(&output);
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains("cannot write /dev/full: No space left"), "{said}");
}

#[test]
fn a_file_that_is_as_large_as_it_may_be_ends_the_recording() {
    let folder = folder("record-limit");
    if !permitted(&folder) {
        return;
    }
    let endless = "while :; do :; done";
    let words =
        ["record", "-e", "cpu-clock:u", "-F", "5000", "--max-size", "256K", "--ring-size", "64K", "-o"];
    let output = run_in(&folder, &[&words[..], &["a.data", "--", "sh", "-c", endless]].concat());
    assert!(stderr(&output).contains("--max-size"), "{}", stderr(&output));
    assert!(samples(&folder.join("a.data")).0 > 100);
    let size = fs::metadata(folder.join("a.data")).expect("a file").len();
    assert!(size < 1 << 20, "{size} bytes");
}

#[test]
fn what_cannot_be_done_is_one_line_that_says_what_to_do() {
    let folder = folder("record-errors");
    let path = folder.join("a.data");
    let file = path.to_str().expect("a plain path");
    for (args, expected) in [
        (&["record", "-o", file, "--", "no-such-command"][..], "cannot run no-such-command: No such file"),
        (
            &["record", "-e", "no-such-event", "-o", file, "--", "true"],
            "event `no-such-event`: not known; there are",
        ),
        (
            &["record", "-o", "/no/such/folder/a.data", "--", "true"],
            "cannot write /no/such/folder/a.data: No such file",
        ),
        (&["record", "-p", "2147483000", "-o", file], "no process 2147483000"),
        (&["evlist", "-i", "/no/such/file"], "cannot read /no/such/file"),
        (&["evlist", "-i", "/proc/self/status"], "not a perf.data file"),
    ] {
        let output = run(args);
        let said = stderr(&output);
        // a machine that forbids sampling says that first
        let forbids = said.contains("does not permit") || said.contains("perf_event_open");
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{args:?}: {said}");
        assert!(said.contains(expected) || forbids, "{args:?}: {said}");
    }
    let nothing = run(&["record"]);
    assert!(nothing.status.code() == Some(2) && stderr(&nothing).contains("COMMAND"), "{}", stderr(&nothing));
}

/// Returns each sample of a file, by what is asked of it.
fn each_sample<T>(path: &Path, ask: impl Fn(&tallyline_perf_data::Sample<'_>) -> T) -> Vec<T> {
    let bytes = fs::read(path).expect("a recording");
    let recording = Recording::parse(&bytes).expect("well-formed");
    assert!(recording.warnings().is_empty(), "{:?}", recording.warnings());
    let records = recording.records().map(|record| record.expect("well-formed"));
    records
        .filter_map(|record| match record.body() {
            RecordBody::Sample(_, sample) => Some(ask(sample)),
            _ => None,
        })
        .collect()
}

/// Returns a real perf's output on a file, where the variable PERF names one.
fn perf(words: &[&str]) -> Option<String> {
    let output = Command::new(std::env::var_os("PERF")?).args(words).output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("rror") && !said.contains("fail"), "perf {words:?}: {said}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_period_is_given_as_to_perf() {
    let folder = folder("record-period");
    if !permitted(&folder) {
        return;
    }
    let words = ["record", "-c", "1000000", "-e", "cpu-clock:u", "-o", "a.data", "sh", "-c", BUSY];
    let output = run_in(&folder, &words);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(
        stdout(&run_in(&folder, &["evlist", "-F", "-i", "a.data"])),
        "cpu-clock:u: sample_period=1000000\n"
    );
    assert!(!each_sample(&folder.join("a.data"), |_| ()).is_empty());
}

#[test]
fn events_of_the_kernel_are_sampled_once_a_period() {
    let folder = folder("record-period-software");
    let source = "#include <sys/mman.h>\nint main(void) { volatile char *p = mmap((void *)0x20000000, 4096 * 4096, 3, \
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0); madvise((void *)p, 4096 * 4096, MADV_NOHUGEPAGE); \
        for (int i = 1; i < 4096; i++) p[i * 4096] = 1; for (int i = 0; i < 5000; i++) p[8] = i; return 0; }\n";
    fs::write(folder.join("touch.c"), source).expect("writable");
    let mut compiler = Command::new("cc");
    let compiler = compiler.args(["-O1", "-o", "touch", "touch.c"]).current_dir(&folder);
    if !permitted(&folder) || !common::compiles(compiler) {
        return;
    }
    for (event, hits) in [("page-faults:u", 4096), ("mem:0x20000008/1:w", 5000)] {
        let output =
            run_in(&folder, &["record", "-q", "-c", "100", "-e", event, "-o", "a.data", "--", "./touch"]);
        if !output.status.success() && event.starts_with("mem:") {
            eprintln!("skipped: {}", stderr(&output).trim());
            continue;
        }
        assert!(output.status.success(), "{}", stderr(&output));
        let found = each_sample(&folder.join("a.data"), |_| ()).len();
        // what else the program does is a few more; each CPU has a count of its own
        assert!((hits / 200..hits / 50).contains(&found), "{event}: {found} samples of {hits} events");
        let shown = run_in(&folder, &["report", "-s", "comm", "--csv", "-i", "a.data"]);
        assert!(stdout(&shown).contains("touch"), "{}{}", stdout(&shown), stderr(&shown));
    }
}

#[test]
fn an_unknown_option_is_an_error_and_no_command() {
    for words in [
        &["record", "--nonsense", "true"][..],
        &["record", "-Z", "1", "--", "true"],
        &["record", "-c", "x", "true"],
    ] {
        let output = run(words);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let option = words[1];
        assert!(said.contains(option) && !said.contains("cannot run"), "{words:?}: {said}");
    }
}

#[test]
fn a_stream_is_what_perf_reads_from_a_pipe() {
    let folder = folder("record-stream");
    if !permitted(&folder) {
        return;
    }
    let command = format!("echo its own words; {BUSY}");
    let output = run_in(&folder, &["record", "-e", "cpu-clock:u", "-o", "-", "--", "sh", "-c", &command]);
    assert!(output.status.success() && !folder.join("-").exists());
    assert!(stderr(&output).contains("its own words"), "the command's words are not in the stream");
    let path = folder.join("stream.data");
    fs::write(&path, &output.stdout).expect("writable");
    let recording = Recording::parse(&output.stdout).expect("a recording");
    assert!(recording.is_stream());
    let event = recording.events().first().expect("an event");
    assert_eq!((event.name(), recording.events().len()), ("cpu-clock:u", 1));
    assert!(recording.features().hostname().is_some() && recording.build_ids().count() > 0);
    let (all, mapped) = samples(&path);
    assert!(all > 20 && mapped == all, "{mapped} of {all} samples are where something is mapped");
    if let Some(text) = perf(&["script", "-F", "ip,event", "-i", path.to_str().expect("a path")]) {
        assert_eq!(text.lines().count(), all);
    }
}

#[test]
fn a_terminal_gets_no_recording() {
    // the program of util-linux gives a command a terminal
    let line = format!("{} record -o - -- true", env!("CARGO_BIN_EXE_tallyline"));
    let Ok(output) = Command::new("script").args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).output()
    else {
        eprintln!("skipped: no program `script`");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(2) && said.contains("not for a terminal"), "{said}");
}

#[test]
fn call_graphs_by_dwarf_have_the_stack_of_each_sample() {
    let folder = folder("record-dwarf");
    if !permitted(&folder) {
        return;
    }
    let words =
        ["record", "--call-graph", "dwarf,4096", "-e", "cpu-clock:u", "-o", "a.data", "sh", "-c", BUSY];
    let output = run_in(&folder, &words);
    assert!(
        output.status.success() && stderr(&output).contains("4096 bytes of the stack"),
        "{}",
        stderr(&output)
    );
    let stacks = each_sample(&folder.join("a.data"), |sample| {
        sample.user_stack.is_some_and(|stack| stack.used() > 0 && stack.bytes().len() == 4096)
    });
    let whole = stacks.iter().filter(|is_there| **is_there).count();
    assert!(whole > 20 && whole * 10 > stacks.len() * 9, "{whole} of {} samples have a stack", stacks.len());
    let file = folder.join("a.data");
    if let Some(text) = perf(&["script", "-F", "ip", "-i", file.to_str().expect("a path")]) {
        let callers = text.lines().filter(|line| !line.trim().is_empty()).count();
        assert!(callers > 2 * stacks.len(), "perf unwinds {callers} addresses of {} samples", stacks.len());
    }
    // call stacks by the hardware are there or refused with a word
    let output =
        run_in(&folder, &["record", "--call-graph", "lbr", "-e", "cpu-clock:u", "-o", "b.data", "true"]);
    assert!(stderr(&output).contains("no last branch records"), "{}", stderr(&output));
}

/// A shell that waits for its child, which waits for a child of its own, which keeps busy.
struct Family {
    group: ProcessGroup,
    child: u32,
    grandchild: u32,
}

impl Family {
    /// Starts all three, and returns when the last one runs.
    fn start() -> Family {
        let script = r#"sh -c 'echo $$; sh -c "echo \$\$; while :; do :; done" & wait' & wait"#;
        let mut group = ProcessGroup::start(Command::new("sh").args(["-c", script]).stdout(Stdio::piped()));
        let mut lines = BufReader::new(group.0.stdout.take().expect("a pipe")).lines();
        let mut number = || lines.next().expect("a line").expect("text").parse().expect("a number");
        Family { child: number(), grandchild: number(), group }
    }
}

#[test]
fn processes_are_recorded_with_their_children_that_run_already() {
    let folder = folder("record-children");
    if !permitted(&folder) {
        return;
    }
    let [one, two] = [Family::start(), Family::start()];
    let list = format!("{},{}", one.group.0.id(), two.group.0.id());
    let busy = [&one, &two].map(|family| format!("/proc/{}", family.grandchild));
    let output = record_threads(&folder, &["-p", &list], &busy);
    let alone = run_in(
        &folder,
        &["record", "-i", "-e", "cpu-clock:u", "-p", &list, "-o", "b.data", "--", "sleep", "0.5"],
    );
    let said = stderr(&output);
    assert!(output.status.success() && alone.status.success(), "{said} {}", stderr(&alone));
    assert!([&one, &two].iter().all(|family| said.contains(&family.child.to_string())), "{said}");
    let pids = each_sample(&folder.join("a.data"), |sample| sample.pid.map(i32::cast_unsigned));
    for family in [one, two] {
        assert!(pids.contains(&Some(family.grandchild)), "no samples of {}", family.grandchild);
    }
    // the parents wait, and their children are left out
    assert_eq!(each_sample(&folder.join("b.data"), |_| ()).len(), 0);
}

#[test]
fn one_thread_of_a_process_is_recorded() {
    let folder = folder("record-thread");
    if !permitted(&folder) {
        return;
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (sender, stop) = (sender.clone(), &stop);
            scope.spawn(move || {
                let own = fs::read_link("/proc/thread-self").expect("procfs");
                let tid = own.file_name().and_then(|name| name.to_str()?.parse::<i32>().ok());
                sender.send(tid.expect("a number")).expect("somebody waits");
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let tid = receiver.recv().expect("a thread");
        let own = [format!("/proc/self/task/{tid}")];
        let output = record_threads(&folder, &["-t", &tid.to_string()], &own);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(output.status.success(), "{}", stderr(&output));
        let (all, mapped) = samples(&folder.join("a.data"));
        let tids = each_sample(&folder.join("a.data"), |sample| sample.tid);
        assert!(
            all > 20 && mapped == all && tids.iter().all(|found| *found == Some(tid)),
            "{mapped} of {all}"
        );
    });
    let gone = run_in(&folder, &["record", "-t", "2147483000", "-o", "b.data"]);
    assert!(stderr(&gone).contains("no thread 2147483000"), "{}", stderr(&gone));
}

#[test]
fn samples_begin_after_a_delay_and_mappings_before_it() {
    let folder = folder("record-delay");
    if !permitted(&folder) {
        return;
    }
    let endless = "timeout 2 sh -c 'while :; do :; done'";
    let words = ["record", "-D", "700", "-e", "cpu-clock:u", "-o", "a.data", "--", "sh", "-c", endless];
    let output = run_in(&folder, &words);
    assert_eq!(output.status.code(), Some(124), "{}", stderr(&output));
    let bytes = fs::read(folder.join("a.data")).expect("a recording");
    let recording = Recording::parse(&bytes).expect("well-formed");
    let (mut started, mut sampled) = (u64::MAX, u64::MAX);
    for record in recording.records().map(|record| record.expect("well-formed")) {
        let Some(time) = record.time().filter(|time| *time > 0) else { continue };
        match record.body() {
            RecordBody::Comm(comm) if comm.is_exec() => started = started.min(time),
            RecordBody::Sample(..) => sampled = sampled.min(time),
            _ => {}
        }
    }
    assert!(sampled < u64::MAX && started + 690_000_000 < sampled, "{started} {sampled}");
    let (all, mapped) = samples(&folder.join("a.data"));
    assert!(all > 20 && mapped == all, "{mapped} of {all} samples are where something is mapped");
}

#[test]
fn tracepoints_are_recorded_by_name() {
    let folder = folder("record-tracepoint");
    let output =
        run_in(&folder, &["record", "-e", "sched:sched_switch", "-o", "a.data", "--", "sleep", "0.05"]);
    let said = stderr(&output);
    if !output.status.success() {
        let known = ["cannot be read in", "mount -t tracefs", "does not permit", "perf_event_open"];
        assert!(known.iter().any(|known| said.contains(known)), "{said}");
        eprintln!("skipped: {}", said.trim());
        return;
    }
    assert_eq!(stdout(&run_in(&folder, &["evlist", "-i", "a.data"])), "sched:sched_switch\n");
    let raw = each_sample(&folder.join("a.data"), |sample| sample.raw.map_or(0, <[u8]>::len));
    assert!(raw.iter().any(|len| *len > 16), "what the kernel says of a switch: {raw:?}");
    let stream = run_in(&folder, &["record", "-e", "sched:sched_switch", "-o", "-", "--", "sleep", "0.05"]);
    let path = folder.join("stream.data");
    fs::write(&path, &stream.stdout).expect("writable");
    for file in [folder.join("a.data"), path] {
        if let Some(text) = perf(&["script", "-i", file.to_str().expect("a path")]) {
            assert!(text.contains("prev_comm=sleep"), "perf knows the format: {text}");
        }
    }
    let misspelt = run_in(&folder, &["record", "-e", "sched:sched_swich", "-o", "b.data", "--", "true"]);
    assert!(stderr(&misspelt).contains("no tracepoint `sched:sched_swich`"), "{}", stderr(&misspelt));
}

#[test]
fn mappings_of_data_are_recorded_where_they_are_wanted() {
    let folder = folder("record-data");
    if !permitted(&folder) {
        return;
    }
    let count = |name: &str, words: &[&str]| {
        let start = ["record", "-q", "-e", "cpu-clock:u", "-o", name];
        let output = run_in(&folder, &[&start[..], words, &["--", "sh", "-c", BUSY]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let bytes = fs::read(folder.join(name)).expect("a recording");
        let recording = Recording::parse(&bytes).expect("well-formed");
        let flags = recording.events().first().expect("an event").attr().flags;
        assert_ne!(flags & attr_flag::KSYMBOL, 0, "code that comes into the kernel");
        assert_ne!(flags & attr_flag::BPF_EVENT, 0);
        let mappings =
            recording.records().filter_map(|record| match record.expect("well-formed").into_body() {
                RecordBody::Mmap(mapping) if !mapping.is_executable => Some(()),
                _ => None,
            });
        mappings.count()
    };
    assert_eq!(count("code.data", &[]), 0);
    assert!(count("data.data", &["-d"]) > 0);
    // as perf unwinds by them
    assert!(count("dwarf.data", &["--call-graph", "dwarf"]) > 0);
    assert_eq!(count("frames.data", &["--call-graph", "fp"]), 0);
}

/// Returns a program that spends its time in `spin`, with the names of a struct's members.
fn spinning(folder: &Path) -> Option<String> {
    let source = "struct counted { long steps, unused[7]; long sum; };\n\
        __attribute__((noinline)) void spin(volatile struct counted *c, long n) { while (n--) c->sum += c->steps; }\n\
        int main(void) { struct counted c = {1}; for (int i = 0; i < 20; i++) spin(&c, 60000000); return 0; }\n";
    let (from, to) = (folder.join("spinning.c"), folder.join("spinning"));
    fs::write(&from, source).expect("writable");
    let to = to.to_str().expect("a path").to_owned();
    let mut compiler = Command::new("cc");
    common::compiles(compiler.args(["-g", "-O1", "-Wl,--build-id", "-o", &to]).arg(from)).then_some(to)
}

#[test]
fn programs_of_a_container_have_their_types_when_it_is_gone() {
    let folder = folder("record-container");
    if !permitted(&folder) {
        return;
    }
    let Some(program) = spinning(&folder) else { return };
    let inside = folder.join("inside");
    fs::create_dir_all(&inside).expect("a folder");
    let inside = inside.to_str().expect("a path");
    // files in memory that nobody else sees, and that are gone with the last process
    let script = format!("mount -t tmpfs none {inside} && cp {program} {inside}/server && {inside}/server");
    let record = |more: &[&str], name: &str| {
        let words = ["record", "-e", "cpu-clock:u", "-o", name];
        let command = ["--", "unshare", "-m", "sh", "-c", &script];
        let mut tallyline = tallyline();
        tallyline.args([&words[..], more, &command].concat()).current_dir(&folder).env("HOME", &folder);
        tallyline.output().expect("it runs")
    };
    let output = record(&[], "a.data");
    if !output.status.success() {
        eprintln!("skipped: {}", stderr(&output).trim());
        return;
    }
    assert!(stderr(&output).contains("kept 1 programs of other mount namespaces"), "{}", stderr(&output));
    let typed = |name: &str| {
        let mut report = tallyline();
        report
            .args(["report", "--stdio", "-s", "sym,type", "-i", name])
            .current_dir(&folder)
            .env("HOME", &folder);
        let output = report.output().expect("it runs");
        let text = stdout(&output);
        text.lines().any(|line| line.contains("spin") && line.contains("struct counted"))
    };
    assert!(typed("a.data"), "types of a program that is gone");
    // and this is why
    fs::remove_dir_all(folder.join(".debug")).expect("what was kept");
    assert!(!typed("a.data"));
    assert!(record(&["-N"], "b.data").status.success() && !folder.join(".debug").exists());
}

#[test]
fn the_vdso_has_symbols() {
    let folder = folder("record-vdso");
    let Some(symbols) = symbols_of_vdso(&folder, "[vdso]", &[]) else { return };
    assert!(symbols.iter().all(|symbol| !symbol.contains("0x")), "an address is no symbol: {symbols:?}");
    assert!(symbols.len() <= 3, "a row for each symbol: {symbols:?}");
}

#[test]
fn the_vdso_of_a_32_bit_program_has_symbols() {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: the compiler's -m32 is told for x86-64");
        return;
    }
    let folder = folder("record-vdso32");
    let Some(symbols) = symbols_of_vdso(&folder, "[vdso32]", &["-m32"]) else { return };
    // its local functions have none
    assert!(symbols.iter().any(|symbol| symbol.starts_with("[.] __vdso_clock_gettime")), "{symbols:?}");
}

/// Records a program that reads the clock, and returns the symbols with samples in the vDSO, which has to be kept;
/// `None` where that cannot be done.
fn symbols_of_vdso(folder: &Path, name: &str, options: &[&str]) -> Option<Vec<String>> {
    if !permitted(folder) {
        return None;
    }
    let source = "#include <time.h>\nint main(void) { struct timespec t; time_t start = time(0);\n\
        do { for (int i = 0; i < 1000000; i++) clock_gettime(CLOCK_MONOTONIC, &t); } while (time(0) < start + 2);\n\
        return 0; }\n";
    let (from, to) = (folder.join("clock.c"), folder.join("clock"));
    fs::write(&from, source).expect("writable");
    let mut compiler = Command::new("cc");
    if !common::compiles(compiler.args(options).args(["-O1", "-o"]).arg(to).arg(from)) {
        return None;
    }
    let run = |words: &[&str]| {
        let mut tallyline = tallyline();
        tallyline.args(words).current_dir(folder).env("HOME", folder).output().expect("it runs")
    };
    let output = run(&["record", "-e", "cpu-clock:u", "-o", "a.data", "./clock"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let rows = |file: &str| {
        let text = stdout(&run(&["report", "--json", "-s", "dso,sym", "-i", file]));
        let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let rows = document["rows"].as_array().expect("rows").clone();
        let of = rows.into_iter().filter(|row| row["keys"]["dso"] == name);
        of.map(|row| row["keys"]["sym"].as_str().expect("a symbol").to_owned()).collect::<Vec<_>>()
    };
    let symbols = rows("a.data");
    if symbols.is_empty() {
        eprintln!("skipped: the clock is read by a system call here");
        return None;
    }
    // it is kept for another kernel's report
    let kept = walk(&folder.join(".debug").join(name));
    assert!(kept.iter().any(|path| path.ends_with("vdso")), "{kept:?}");
    Some(symbols)
}

/// Returns the files below a folder.
fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
