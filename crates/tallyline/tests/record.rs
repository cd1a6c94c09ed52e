//! `tallyline record` and `tallyline evlist`. Where the kernel forbids sampling, what needs it is left
//! out with a word.

mod common;

use common::{folder, run, run_in, stderr, stdout, tallyline};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tallyline_profile::perfdata::file::Body;
use tallyline_profile::perfdata::{AddressSpaces, Recording};

/// Keeps a shell busy for some tenths of a second.
const BUSY: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";

/// Whether the kernel lets us sample; says so where it does not.
fn permitted(folder: &Path) -> bool {
    let output = run_in(folder, &["record", "-e", "cpu-clock:u", "-o", "probe.data", "--", "true"]);
    if !output.status.success() {
        eprintln!("skipped: {}", stderr(&output).trim());
    }
    output.status.success()
}

/// The samples of a file: all, and how many of them are where something is mapped.
fn samples(path: &Path) -> (usize, usize) {
    let bytes = fs::read(path).expect("a recording");
    let recording = Recording::parse(&bytes).expect("well-formed");
    assert!(recording.warnings.is_empty(), "{:?}", recording.warnings);
    let mut spaces = AddressSpaces::new(&recording);
    let (mut all, mut mapped) = (0, 0);
    for record in recording.in_time_order().expect("well-formed") {
        let record = record.expect("well-formed");
        spaces.apply(&record.body).expect("within limits");
        if let Body::Sample(_, sample) = record.body {
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
    run_in(&folder, &["record", "-q", "-o", "a.data", "--", "no-such-command"]);
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
    let busy = format!("sleep 0.5; {BUSY}; {BUSY}");
    let mut shell = std::process::Command::new("sh").args(["-c", &busy]).spawn().expect("a shell");
    let pid = shell.id().to_string();
    let output = run_in(&folder, &["record", "-e", "cpu-clock:u", "-p", &pid, "-o", "a.data"]);
    shell.wait().expect("it ended");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let (all, mapped) = samples(&folder.join("a.data"));
    assert!(all > 20 && mapped == all, "{mapped} of {all} samples are where something is mapped");
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
        let mut busy =
            std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell");
        let pid = busy.id().to_string();
        let words: Vec<_> =
            command.iter().map(|word| if *word == "self" { pid.as_str() } else { word }).collect();
        let mut recorder = tallyline()
            .args(["record", "-e", "cpu-clock:u", "-o", "a.data"])
            .args(words)
            .current_dir(&folder)
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        std::thread::sleep(Duration::from_millis(1500));
        let asked = std::process::Command::new("kill").args([signal, &recorder.id().to_string()]).status();
        assert!(asked.expect("kill runs").success());
        recorder.wait().expect("it ends, and its command with it");
        let others = busy.try_wait().expect("a child");
        busy.kill().and_then(|()| busy.wait()).expect("it ends");
        assert_eq!(others, None, "a process that was only watched goes on");
        assert!(samples(&folder.join("a.data")).0 > 20, "{signal}");
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
