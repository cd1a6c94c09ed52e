//! Files that commands write with `-o`: complete, or as they were.

mod common;

use common::{data, folder, run_in, stderr, tallyline};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Returns the names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Runs the program where no file may grow beyond half a kilobyte, as on a full disk.
fn with_full_disk(folder: &Path, args: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_tallyline");
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh", program]).args(args);
    shell.current_dir(folder).env("TALLYLINE_CACHE", "off").stdin(Stdio::null());
    shell.output().expect("a shell")
}

#[test]
fn an_old_file_survives_a_full_disk() {
    let folder = folder("output-full");
    let holes = data("holes.o");
    let commands: [&[&str]; 4] = [
        &["layout", &holes],
        &["layout", "--format", "json", &holes],
        &["check", "--suggest", "*", &holes],
        &["reorganize", &holes],
    ];
    for args in commands {
        fs::write(folder.join("result"), "old").expect("written");
        let output = with_full_disk(&folder, &[args, &["-o", "result"]].concat());
        let complaint = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {complaint}");
        assert!(complaint.starts_with("tallyline: cannot write result"), "{args:?}: {complaint}");
        assert_eq!(fs::read_to_string(folder.join("result")).expect("there"), "old", "{args:?}");
        assert_eq!(names(&folder), ["result"], "{args:?}");
        let output = run_in(&folder, &[args, &["-o", "result"]].concat());
        assert!(output.status.success(), "{output:?}");
        assert!(fs::metadata(folder.join("result")).expect("there").len() > 512, "{args:?}");
    }
}

#[test]
fn a_file_keeps_its_mode_and_what_it_had_until_the_end() {
    let folder = folder("output-mode");
    let path = folder.join("result");
    fs::write(&path, "old".repeat(100_000)).expect("written");
    fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("set");
    // an error that is found when the place of the results is known to be writable
    let output = run_in(&folder, &["layout", "./nonesuch.o", "-o", "result"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(fs::metadata(&path).expect("there").len(), 300_000);
    let output = run_in(&folder, &["layout", &data("holes.o"), "-o", "result"]);
    assert!(output.status.success(), "{output:?}");
    let meta = fs::metadata(&path).expect("there");
    assert_eq!((meta.permissions().mode() & 0o777, names(&folder).len()), (0o600, 1));
    let plain = run_in(&folder, &["layout", &data("holes.o")]);
    assert_eq!(fs::read(&path).expect("there"), plain.stdout);
}

#[test]
fn results_do_not_take_the_place_of_what_they_are_of() {
    let folder = folder("output-over-input");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/trace");
    for (name, words) in
        [("pair.trace", &["replay", "it", "-o", "it"][..]), ("pair", &["layout", "-o", "it", "it"])]
    {
        let bytes = fs::read(data.join(name)).expect("committed");
        fs::write(folder.join("it"), &bytes).expect("written");
        let output = run_in(&folder, words);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("would be lost"), "{}", stderr(&output));
        assert_eq!(fs::read(folder.join("it")).expect("there"), bytes, "{name}");
    }
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn pipes_devices_and_standard_output_are_written_to_as_they_are() {
    let folder = folder("output-pipe");
    let holes = data("holes.o");
    let plain = run_in(&folder, &["layout", &holes]).stdout;
    let pipe = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let reader = Command::new("cat").arg(&pipe).stdout(Stdio::piped()).spawn().expect("cat");
    let output = run_in(&folder, &["layout", &holes, "-o", "pipe"]);
    assert!(output.status.success(), "{output:?}");
    assert!(reader.wait_with_output().expect("read").stdout == plain, "all of it, and its end once");
    for same in ["-", "/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"] {
        let output = run_in(&folder, &["layout", &holes, "-o", same]);
        assert!(output.status.success() && output.stdout == plain, "{same}: {}", stderr(&output));
    }
    // also where standard output is a file that something is in already
    let log = folder.join("log");
    fs::write(&log, "first\n").expect("written");
    let file = fs::File::options().append(true).open(&log).expect("log");
    let mut command = tallyline();
    let status = command.args(["layout", &holes, "-o", "/dev/stdout"]).stdout(file).status().expect("run");
    assert!(status.success());
    assert_eq!(fs::read(&log).expect("log"), [b"first\n".as_slice(), &plain].concat());
    let output = run_in(&folder, &["layout", &holes, "-o", "/dev/full"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("tallyline: cannot write /dev/full"), "{output:?}");
    assert_eq!(names(&folder), ["log", "pipe"]);
}

#[test]
fn help_and_version_that_cannot_be_written_are_errors() {
    for words in [&["help"][..], &["--help"], &["--version"], &["layout", "--help"], &["help", "layout"]] {
        let full = fs::File::options().write(true).open("/dev/full").expect("a full device");
        let output = tallyline().args(words).stdout(full).output().expect("the program runs");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(stderr(&output).starts_with("tallyline: cannot write standard output"), "{output:?}");
        assert_eq!(tallyline().args(words).output().expect("the program runs").status.code(), Some(0));
    }
}
