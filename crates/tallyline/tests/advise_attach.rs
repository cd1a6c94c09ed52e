//! `tallyline advise -p` and `-i`, on programs whose sharing is known. What needs a C compiler, the clock's samples or
//! hardware breakpoints is left out, with a message, where they are not.

mod common;

use common::{compiles, folder, run, run_in, stderr, stdout, tallyline};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

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
        "own" => return assert_eq!(found["lines"], json!([]), "{kind}"),
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
    for (kind, expected) in KINDS {
        // Samples show sharing where both threads run at a time, which other programs may keep them from.
        let mut recordings = (0..8).map(|_| {
            let record = ["record", "-q", "-F", "4000", "-o", "a.data", "--", program, kind, "3"];
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

#[test]
fn breakpoints_prove_what_threads_of_a_running_process_share() {
    let folder = folder("advise-process");
    let Some(program) = built(&folder) else { return };
    for (kind, expected) in KINDS {
        let running = Running::start(&program, &[kind, "60"]);
        // Hits show sharing where both threads run at a time, which other programs may keep them from.
        let mut looks = (0..8).map(|_| parsed(&running.advice(&["--seconds", "4", "--json"])));
        let is_told = |advice: &Value| {
            let is_found = advice["findings"] != Value::Array(Vec::new());
            expected.is_none() || is_found || advice["by"] == "samples"
        };
        let advice = looks.find(is_told).unwrap_or_else(|| panic!("{kind}: nothing found in four looks"));
        assert!(running.is_running(), "{kind}: it goes on");
        if advice["by"] == "samples" && expected.is_some() {
            eprintln!("skipped: no hardware breakpoints: {}", advice["notes"]);
            return;
        }
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
    let mut child =
        as_user(&program).args(["counter", "60"]).stdout(Stdio::piped()).spawn().expect("started");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("readable");
    let running = Running(child);
    let pid = running.0.id().to_string();
    let output = as_user(&folder.join("tallyline"))
        .args(["advise", "--json", "--seconds", "4", "-p", &pid])
        .output()
        .expect("it was just copied");
    if stderr(&output).contains("perf_event_paranoid") {
        return eprintln!("skipped: {}", stderr(&output).trim());
    }
    check("counter", &parsed(&output), KINDS[0].1);
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
    let running = Running::start(&program, &["counter", "2"]);
    let output = running.advice(&["--seconds", "60"]);
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
