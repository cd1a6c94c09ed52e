//! Ctrl-C and SIGTERM while other programs run: these end, too, and nothing is left behind.

mod common;

use common::{compiles, folder};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const SOURCE: &str = "
struct rec { char first; long second; char third; } rec;
int main(void) { for (;;) rec.second += rec.first + rec.third; }
";

/// Makes a project of one source, built with debugging information, beside an empty folder for temporary files; none,
/// with a message, where there is no compiler.
fn project(name: &str) -> Option<(PathBuf, PathBuf)> {
    let folder = folder(name).canonicalize().expect("it is there");
    let temporary = folder.join("temporary");
    let project = folder.join("project");
    for made in [&temporary, &project.join(".git")] {
        std::fs::create_dir_all(made).expect("a folder");
    }
    std::fs::write(project.join("a.c"), SOURCE).expect("written");
    let built = compiles(Command::new("cc").current_dir(&project).args(["-g", "-O1", "-o", "a", "a.c"]));
    built.then_some((project, temporary))
}

/// Starts `tallyline` as a terminal or a service does: in a process group of its own.
fn start(project: &Path, temporary: &Path, words: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tallyline"));
    command.args(words).current_dir(project).env("TMPDIR", temporary).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("starts")
}

/// Sends a signal once `is_ready`, and returns what came of it.
fn interrupt(child: Child, signal: &str, to: &str, is_ready: impl Fn() -> bool) -> Output {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_ready() {
        assert!(Instant::now() < deadline, "it never came so far");
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = Command::new("kill").args([signal, "--", to]).status().expect("kill");
    assert!(sent.success());
    child.wait_with_output().expect("ends")
}

/// Returns `true` if programs that this one starts ignore SIGHUP, as under `nohup`: they go on ignoring it.
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| mask.trim_end().ends_with(['1', '3', '5', '7', '9', 'b', 'd', 'f']))
}

fn names(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).expect("there").map(|entry| entry.expect("read").path()).collect()
}

#[test]
fn copies_of_a_project_go_and_its_command_ends_when_a_measurement_is_interrupted() {
    let Some((project, temporary)) = project("interrupted-measurement") else { return };
    let before = std::fs::read(project.join("a.c")).expect("read");
    let mut cases = vec![("-INT", 2, true), ("-INT", 2, false), ("-TERM", 15, false)];
    if !ignores_hang_up() {
        cases.push(("-HUP", 1, true));
    }
    for (signal, number, to_group) in cases {
        let started = temporary.join("started");
        // what it starts itself ends, too, and leaves no file
        let measure = "touch \"$TMPDIR/started\"; sh -c 'sleep 20; touch \"$TMPDIR/ended\"'";
        let edit = ["reorganize", "rec", "./a", "--unpin", "ends", "--apply"];
        let build = ["--build", "cc -g -O1 -o a a.c", "--measure", measure];
        let child = start(&project, &temporary, &[&edit[..], &build].concat());
        let to = format!("{}{}", if to_group { "-" } else { "" }, child.id());
        let output = interrupt(child, signal, &to, || started.is_file());
        assert_eq!(output.status.signal(), Some(number), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        std::fs::remove_file(started).expect("it was there");
        assert_eq!(names(&temporary), [""; 0].map(PathBuf::from), "{signal} {to_group}");
    }
    assert_eq!(std::fs::read(project.join("a.c")).expect("read"), before);
}

#[test]
fn a_second_request_to_end_does_not_cut_the_first_short() {
    let Some((project, temporary)) = project("interrupted-twice") else { return };
    let edit = ["reorganize", "rec", "./a", "--unpin", "ends", "--apply"];
    // a process that is stopped does not end by itself
    let build = "cc -g -O1 -o a a.c; touch \"$TMPDIR/started\"; sh -c 'kill -STOP $$'; sleep 20; touch \"$TMPDIR/ended\"";
    let child = start(&project, &temporary, &[&edit[..], &["--build", build]].concat());
    let started = temporary.join("started");
    let pid = child.id().to_string();
    let output = interrupt(child, "-TERM", &format!("-{pid}"), || {
        // as `timeout` does it: to the process, and to its group
        started.is_file()
            && Command::new("kill").args(["-TERM", &pid]).status().is_ok_and(|sent| sent.success())
    });
    assert_eq!(output.status.signal(), Some(15), "{output:?}");
    assert_eq!(names(&temporary), [started]);
}

#[test]
fn advice_that_is_interrupted_does_not_blame_the_emulator() {
    let has_emulator = Command::new("qemu-x86_64").arg("--version").output().is_ok();
    if !cfg!(target_arch = "x86_64") || !has_emulator {
        eprintln!("skipped: needs x86-64 and qemu-x86_64");
        return;
    }
    let Some((project, temporary)) = project("interrupted-advice") else { return };
    let has_begun = || names(&temporary).iter().any(|path| !names(path).is_empty());
    for signal in ["-INT", "-TERM"] {
        let child = start(&project, &temporary, &["advise", "--", "./a"]);
        let to = format!("-{}", child.id());
        let output = interrupt(child, signal, &to, has_begun);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("no trace"), "{output:?}");
        assert_eq!(names(&temporary), [""; 0].map(PathBuf::from), "{said}");
    }
}
