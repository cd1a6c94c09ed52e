//! `tallyline advise -p` and `-i`, on programs whose sharing is known. What needs a C compiler, the clock's samples or
//! hardware breakpoints is left out, with a message, where they are not.

mod common;

use common::{compiles, cpu_time, folder, run, run_in, stderr, stdout, tallyline, wait_until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The kinds of `programs/shared.c` with the finding that each has.
const KINDS: [(&str, Option<(&str, &str)>); 4] = [
    ("counter", Some(("contended-counter", "requests"))),
    ("fields", Some(("false-sharing", "left"))),
    ("elements", Some(("shared-neighbours", "handled"))),
    ("own", None),
];

/// Builds the program; none, with a message, where there is no compiler or no permission to sample.
fn built(folder: &Path) -> Option<PathBuf> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        eprintln!("skipped: the code of this machine is not decoded");
        return None;
    }
    let probe = run_in(folder, &["record", "-e", "cpu-clock:u", "-o", "probe.data", "--", "true"]);
    if !probe.status.success() {
        eprintln!("skipped: {}", stderr(&probe).trim());
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/shared.c");
    let program = folder.join("shared");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-g", "-pthread", "-o"]).arg(&program).arg(source);
    compiles(&mut compiler).then_some(program)
}

/// A program that runs, and ends with the test.
struct Running(Child);

impl Running {
    /// Starts a program and waits for its first line.
    fn start(program: &Path, words: &[&str]) -> Running {
        let mut command = Command::new(program);
        let mut child = command.args(words).stdout(Stdio::piped()).spawn().expect("it was just built");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("readable");
        assert_eq!(line, "ready\n");
        Running(child)
    }

    fn advice(&self, more: &[&str]) -> Output {
        let pid = self.0.id().to_string();
        run(&[&["advise", "-p", &pid], more].concat())
    }

    /// Returns whether it runs: neither stopped nor ended.
    fn is_running(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['R', 'S', 'D']))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn parsed(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_str(&stdout(output)).expect("JSON")
}

/// Checks that the first finding, if there is one, is of a kind and has a field that two threads or more write.
fn check(kind: &str, advice: &Value, expected: Option<(&str, &str)>) {
    let findings = advice["findings"].as_array().expect("a list");
    let Some((id, field)) = expected else {
        assert!(findings.is_empty(), "{kind}: {advice:#}");
        return;
    };
    let found = findings.first().unwrap_or_else(|| panic!("{kind}: nothing found: {advice:#}"));
    assert_eq!(found["kind"], id, "{kind}: {found:#}");
    assert_eq!((&found["effect"], &advice["model"]), (&Value::Null, &Value::Null), "nothing is modelled");
    let fields = found["fields"].as_array().expect("a list");
    let named = fields.iter().find(|found| found["field"] == field);
    let named = named.unwrap_or_else(|| panic!("{kind}: no field {field}: {found:#}"));
    assert!(named["sites"][0]["file"].as_str().is_some_and(|file| file.ends_with("shared.c")), "{named:#}");
    let mut writers: Vec<u64> = fields
        .iter()
        .flat_map(|field| field["threads"].as_array().expect("a list"))
        .filter(|thread| thread["writes"].as_u64() > Some(0))
        .filter_map(|thread| thread["thread"].as_u64())
        .collect();
    writers.sort_unstable();
    writers.dedup();
    assert!(writers.len() >= 2, "{kind}: {found:#}");
}

/// Checks the lines that `tallyline sharing` shows of a recording without addresses of data, by its registers.
fn check_lines(kind: &str, found: &Value) {
    assert_eq!((&found["addresses"], &found["by"]), (&json!("computed"), &json!("thread")));
    let expected = match kind {
        "own" | "turns" => return assert_eq!(found["lines"], json!([]), "{kind}"),
        "counter" => "true",
        _ => "false",
    };
    let line = &found["lines"][0];
    assert_eq!(line["sharing"], expected, "{kind}: {found:#}");
    let writers: BTreeSet<u64> = line["parts"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|part| part["writers"].as_array().expect("a list"))
        .filter_map(Value::as_u64)
        .collect();
    assert_eq!(writers.len(), 2, "{kind}: {found:#}");
}

#[test]
fn a_recording_tells_what_threads_share() {
    let folder = folder("advise-recording");
    let Some(program) = built(&folder) else { return };
    let program = program.to_str().expect("a plain path");
    // threads that use an object one after the other, as a pool's do, share nothing
    for (kind, expected) in KINDS.into_iter().chain([("turns", None)]) {
        // Samples show sharing where both threads run at a time, which other programs may keep them from.
        let mut recordings = (0..8).map(|_| {
            let record = ["record", "-q", "-F", "4000", "-o", "a.data", "--", program, kind, "2"];
            let output = run_in(&folder, &record);
            assert!(output.status.success(), "{}", stderr(&output));
            parsed(&run_in(&folder, &["advise", "-i", "a.data", "--json"]))
        });
        let is_found = |advice: &Value| expected.is_none() || advice["findings"] != Value::Array(Vec::new());
        let advice = recordings.find(is_found);
        let advice = advice.unwrap_or_else(|| panic!("{kind}: nothing found in eight recordings"));
        assert_eq!(advice["by"], "samples");
        check(kind, &advice, expected);
        check_lines(kind, &parsed(&run_in(&folder, &["sharing", "-i", "a.data", "--json"])));
    }
    let text = run_in(&folder, &["advise", "-i", "a.data"]);
    assert!(
        stdout(&text).contains("Nothing to advise.\nLeft open: samples have no order"),
        "{}",
        stdout(&text)
    );
    std::fs::remove_dir_all(folder).expect("removed");
}

/// The time that both threads have to run at once in a look for their sharing to show.
const OVERLAP: Duration = Duration::from_millis(500);

/// The number of such looks that find nothing before that is a defect. What other programs take from a virtual CPU may
/// count as time of the threads.
const MISSES_LIMIT: usize = 3;

/// The number of all looks. With other programs on its CPUs, a program may need several until its threads ran at once.
const LOOKS_LIMIT: usize = 20;

/// Looks at a program whose threads share something until that is found, and returns the advice; none, with a message,
/// without a second CPU, hardware breakpoints or permission.
fn found(kind: &str, running: &Running, look: impl Fn() -> Output) -> Option<Value> {
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        eprintln!("skipped: on one CPU threads never run at once");
        return None;
    }
    let process = format!("/proc/{}", running.0.id());
    let mut misses = 0;
    for _ in 0..LOOKS_LIMIT {
        let (started, before) = (Instant::now(), cpu_time(&process));
        let output = look();
        if stderr(&output).contains("perf_event_paranoid") {
            eprintln!("skipped: {}", stderr(&output).trim());
            return None;
        }
        // two threads that together had more CPU time than passed ran at once for the rest, at least
        let overlap = cpu_time(&process).saturating_sub(before).saturating_sub(started.elapsed());
        let advice = parsed(&output);
        let notes = advice["notes"].as_array().expect("a list");
        if notes.iter().any(|note| note.as_str().is_some_and(|note| note.starts_with("samples only: "))) {
            eprintln!("skipped: no hardware breakpoints: {}", advice["notes"]);
            return None;
        }
        if advice["findings"] != json!([]) {
            return Some(advice);
        }
        misses += usize::from(overlap >= OVERLAP);
        assert!(
            misses < MISSES_LIMIT,
            "{kind}: nothing found, last while threads ran for {overlap:?} at once: {advice:#}"
        );
    }
    panic!(
        "{kind}: nothing found in {LOOKS_LIMIT} looks; threads ran for {OVERLAP:?} at once in {misses} of them"
    );
}

#[test]
fn breakpoints_prove_what_threads_of_a_running_process_share() {
    let folder = folder("advise-process");
    let Some(program) = built(&folder) else { return };
    for (kind, expected) in KINDS {
        let running = Running::start(&program, &[kind]);
        let look = || running.advice(&["--seconds", "4", "--json"]);
        let advice = match expected {
            Some(_) => found(kind, &running, look),
            None => Some(parsed(&look())),
        };
        let Some(advice) = advice else { return };
        assert!(running.is_running(), "{kind}: it goes on");
        check(kind, &advice, expected);
        if expected.is_some() {
            assert!(advice["observed"]["breakpoints"]["hits"].as_u64() > Some(0), "{advice:#}");
            let slowdown = advice["observed"]["breakpoints"]["slowdown"].as_f64();
            assert!(slowdown.is_some_and(|slowdown| slowdown > 0.0), "{advice:#}");
        }
    }
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn an_ordinary_user_gets_the_same_of_own_processes() {
    let is_root = std::fs::read_to_string("/proc/self/status").is_ok_and(|text| text.contains("\nUid:\t0\t"));
    if !is_root || Command::new("setpriv").arg("--version").output().is_err() {
        return eprintln!("skipped: needs root, and setpriv");
    }
    // where every user may enter
    let folder = std::env::temp_dir().join(format!("tallyline-advise-user-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let Some(program) = built(&folder) else { return };
    std::fs::copy(env!("CARGO_BIN_EXE_tallyline"), folder.join("tallyline")).expect("copied");
    let user = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let as_user = |command: &Path| {
        let mut setpriv = Command::new("setpriv");
        setpriv.args(user).arg(command).env("TALLYLINE_CACHE", "off").env("TALLYLINE_CONFIG", "off");
        setpriv
    };
    let mut child = as_user(&program).arg("counter").stdout(Stdio::piped()).spawn().expect("started");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("readable");
    let running = Running(child);
    let pid = running.0.id().to_string();
    let advice = found("counter", &running, || {
        let mut advise = as_user(&folder.join("tallyline"));
        advise.args(["advise", "--json", "--seconds", "4", "-p", &pid]).output().expect("it was just copied")
    });
    let Some(advice) = advice else { return };
    check("counter", &advice, KINDS[0].1);
    // another's process is refused in one line
    let refused = as_user(&folder.join("tallyline")).args(["advise", "-p", "1"]).output().expect("started");
    assert_eq!(
        (refused.status.code(), stderr(&refused).lines().count()),
        (Some(2), 1),
        "{}",
        stderr(&refused)
    );
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_process_that_ends_meanwhile_is_no_error() {
    let folder = folder("advise-ends");
    let Some(program) = built(&folder) else { return };
    let mut running = Running::start(&program, &["counter"]);
    let mut advise = tallyline();
    advise.args(["advise", "--seconds", "60", "-p", &running.0.id().to_string()]).env("TMPDIR", &folder);
    let mut advise = advise.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    // what describes the process takes less
    let samples = folder.join(format!("tallyline-advise-{}/samples.data", advise.id()));
    let has_samples = || std::fs::metadata(&samples).is_ok_and(|file| file.len() > 1 << 16);
    wait_until("samples", || has_samples() || advise.try_wait().expect("a child").is_some());
    running.0.kill().expect("it runs");
    let output = advise.wait_with_output().expect("it ends with the process");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("the process ended"), "{}", stdout(&output));
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn what_cannot_be_looked_at_is_said_in_one_line() {
    let folder = folder("advise-errors");
    if built(&folder).is_none() {
        return;
    }
    let refused = |words: &[&str], reason: &str| {
        let output = tallyline().arg("advise").args(words).current_dir(&folder).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    };
    refused(&["-p", "2147483647"], "no process 2147483647");
    refused(&["-i", "not-there.data"], "cannot read not-there.data");
    refused(&["-i", "/dev/null"], "/dev/null");
    let asleep = Running(Command::new("sleep").arg("60").spawn().expect("a program of every system"));
    let pid = asleep.0.id().to_string();
    refused(&["-p", &pid, "--seconds", "1"], "no samples");
    std::fs::remove_dir_all(folder).expect("removed");
}
