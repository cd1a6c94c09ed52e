//! The configuration file: what holds, where it comes from, and what is wrong in it.

mod common;

use common::{data, folder, run, stderr, stdout, tallyline};
use serde_json::Value;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns a configuration file in a folder of its own.
fn file(name: &str, text: &str) -> PathBuf {
    let path = folder(name).join("config.toml");
    std::fs::write(&path, text).expect("written");
    path
}

fn with(file: &Path, args: &[&str]) -> Command {
    let mut command = tallyline();
    command.args(args).env("TALLYLINE_CONFIG", file);
    for variable in ["TALLYLINE_PAGER", "TALLYLINE_HYPERLINKS", "TALLYLINE_CACHE", "PAGER"] {
        command.env_remove(variable);
    }
    command
}

fn output(command: &mut Command) -> Output {
    command.output().expect("the program runs")
}

/// Returns the value of a setting and what it comes from.
fn setting(document: &Value, name: &str) -> (Value, String) {
    let all = document["settings"].as_array().expect("a list");
    let found = all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}: {document}"));
    (found["value"].clone(), found["from"].as_str().expect("a text").to_owned())
}

fn document(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn each_setting_says_what_it_comes_from() {
    let file =
        file("settings-origins", "color = \"never\"\ncacheline-size = 128\n\n[report]\nsort = \"type\"\n");
    let mut command = with(&file, &["config", "--json", "--color", "always"]);
    command.env("TALLYLINE_CACHELINE_SIZE", "32").env("PAGER", "most").env("TALLYLINE_DEBUG_FOLDER", "/a:/b");
    let document = document(&output(&mut command));
    assert_eq!(document["file"]["path"], file.to_str().expect("plain"));
    assert_eq!(setting(&document, "color"), ("always".into(), "option".into()));
    assert_eq!(setting(&document, "cacheline-size"), ("32".into(), "environment".into()));
    assert_eq!(setting(&document, "report.sort"), ("type".into(), "file".into()));
    assert_eq!(setting(&document, "pager"), ("most".into(), "environment".into()));
    assert_eq!(setting(&document, "debug-folders"), (serde_json::json!(["/a", "/b"]), "environment".into()));
    assert_eq!(setting(&document, "hyperlinks"), ("auto".into(), "default".into()));
    let sort =
        document["settings"].as_array().expect("a list").iter().find(|one| one["name"] == "report.sort");
    assert_eq!(sort.expect("there")["line"], 5);

    let text = stdout(&output(&mut with(&file, &["config"])));
    let line = text.lines().find(|line| line.starts_with("cacheline-size")).expect("a line");
    assert!(line.contains("128") && line.ends_with(&format!("{}:2", file.display())), "{text}");
    assert_eq!(stdout(&output(&mut with(&file, &["config", "cacheline-size"]))), "128\n");
}

#[test]
fn the_file_is_where_the_base_directory_specification_says() {
    let home = folder("settings-home");
    std::fs::create_dir_all(home.join(".config/tallyline")).expect("a folder");
    std::fs::create_dir_all(home.join("other/tallyline")).expect("a folder");
    std::fs::write(home.join(".config/tallyline/config.toml"), "cacheline-size = 32\n").expect("written");
    std::fs::write(home.join("other/tallyline/config.toml"), "cacheline-size = 256\n").expect("written");
    let value = |base: Option<&str>| {
        let mut command = tallyline();
        command.args(["config", "cacheline-size"]).env_remove("TALLYLINE_CONFIG").env("HOME", &home);
        match base {
            Some(base) => command.env("XDG_CONFIG_HOME", home.join(base)),
            None => command.env_remove("XDG_CONFIG_HOME"),
        };
        stdout(&output(&mut command))
    };
    assert_eq!(value(None), "32\n");
    assert_eq!(value(Some("other")), "256\n");
    assert_eq!(value(Some("nowhere")), "64\n");
    // another user's file or folder, which root may read
    for (closed, mode) in [("other/tallyline/config.toml", 0o644), ("other/tallyline", 0o755)] {
        let set = |mode| std::fs::set_permissions(home.join(closed), Permissions::from_mode(mode));
        set(0).expect("permissions");
        let is_readable = std::fs::read(home.join("other/tallyline/config.toml")).is_ok();
        assert_eq!(value(Some("other")), if is_readable { "256\n" } else { "64\n" }, "{closed}");
        set(mode).expect("permissions");
    }
}

#[test]
fn options_beat_variables_and_these_the_file_in_every_sub_command() {
    let config = file("settings-order", "cacheline-size = 32\n");
    let holes = data("holes.o");
    // the number of lines of a struct tells the size of one
    let commands: [&[&str]; 3] =
        [&["layout", &holes], &["layout", "--format", "json", &holes], &["reorganize", "--json", &holes]];
    for args in commands {
        let shown = |variable: Option<&str>, option: Option<&str>| {
            let mut command = with(&config, args);
            command.envs(variable.map(|size| ("TALLYLINE_CACHELINE_SIZE", size)));
            command.args(option.iter().flat_map(|size| ["--cacheline-size", size]));
            let output = output(&mut command);
            assert!(output.status.success(), "{args:?}: {output:?}");
            stdout(&output)
        };
        let by_option = |size: &str| stdout(&run(&[args, &["--cacheline-size", size]].concat()));
        assert_ne!(by_option("32"), by_option("16"), "{args:?}");
        assert_eq!(shown(None, None), by_option("32"), "{args:?}");
        assert_eq!(shown(Some("16"), None), by_option("16"), "{args:?}");
        assert_eq!(shown(Some("16"), Some("8")), by_option("8"), "{args:?}");
    }
}

#[test]
fn paths_of_findings_follow_the_map_of_the_file_unless_an_option_has_one() {
    let file = file("settings-maps", "path-prefix-map = [\"holes.c=here/holes.c\"]\n");
    let policy = file.with_file_name("policy.toml");
    std::fs::write(&policy, "[[type]]\nname = \"*\"\nmax-size = 0\n").expect("written");
    let policy = policy.to_str().expect("plain");
    let holes = data("holes.o");
    let args = ["check", &holes, "--policy", policy, "--format", "json"];
    let found = |command: &mut Command| {
        let output = output(command);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        stdout(&output)
    };
    let plain = found(tallyline().args(args));
    let mapped = found(&mut with(&file, &args));
    let by_option =
        found(&mut with(&file, &[&args[..], &["--path-prefix-map", "holes.c=there/holes.c"]].concat()));
    assert!(!plain.contains("here/") && mapped.contains("here/"), "{mapped}");
    assert!(by_option.contains("there/") && !by_option.contains("\"here/"), "{by_option}");
}

#[test]
fn mistakes_end_every_command_but_help_with_their_line() {
    let cases = [
        ("colour = \"auto\"\n", ":1: unknown setting `colour`; did you mean color?"),
        ("\n[report]\nsort = \"typ\"\n", ":3: report.sort: "),
        ("cacheline-size = \"many\"\n", ":1: cacheline-size: `many` is not a number from 1 to 65536"),
        ("pager = [1]\n", ":1: pager: expected a text"),
        ("color = \n", ":1: "),
    ];
    for (text, expected) in cases {
        let file = file("settings-mistakes", text);
        for args in [&["layout", "x"][..], &["config"], &["doctor"]] {
            let output = output(&mut with(&file, args));
            assert_eq!(output.status.code(), Some(2), "{text:?}: {output:?}");
            let complaint = stderr(&output);
            assert!(complaint.contains(&format!("{}{expected}", file.display())), "{text:?}: {complaint}");
            assert!(output.stdout.is_empty(), "{output:?}");
        }
        for args in [&["--version"][..], &["layout", "--help"], &["man", "config"], &["completions", "bash"]]
        {
            assert!(output(&mut with(&file, args)).status.success(), "{text:?}: {args:?}");
        }
    }
    let variable = output(tallyline().args(["layout", "x"]).env("TALLYLINE_COLOR", "alwys"));
    assert!(stderr(&variable).contains("TALLYLINE_COLOR: `alwys` is not one of"), "{variable:?}");
    let named = output(&mut with(Path::new("/no/such/file"), &["config"]));
    assert!(stderr(&named).contains("/no/such/file"), "{named:?}");
    let unknown = run(&["config", "cacheline"]);
    assert!(stderr(&unknown).contains("did you mean cacheline-size?"), "{unknown:?}");
}

#[test]
fn the_example_is_a_valid_file_with_every_setting() {
    let example = stdout(&run(&["config", "--example"]));
    // without its comments' signs it sets everything
    let lines = example.lines().filter_map(|line| line.strip_prefix("# "));
    let lines: Vec<&str> = lines.filter(|line| line.contains(" = ")).collect();
    let file = file("settings-example", &lines.join("\n"));
    let document = document(&output(&mut with(&file, &["config", "--json"])));
    let all = document["settings"].as_array().expect("a list");
    assert_eq!(all.len(), lines.len(), "{example}");
    assert!(all.iter().all(|one| one["from"] == "file"), "{document}");
}

#[test]
fn what_pahole_is_asked_depends_on_no_setting() {
    let file = file("settings-pahole", "nonsense = 1\n");
    let holes = data("holes.o");
    let output = output(&mut with(&file, &["pahole", &holes]));
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, run(&["pahole", &holes]).stdout);
}

#[test]
fn manual_pages_and_completion_scripts_have_no_settings() {
    let file = file("settings-documents", "[report]\nsort = \"sym\"\n");
    let help = stdout(&output(&mut with(&file, &["report", "--help"])));
    assert!(help.contains("[default: sym]"), "{help}");
    for words in [&["man", "report"][..], &["completions", "fish"]] {
        let of_user = stdout(&output(&mut with(&file, words)));
        assert_eq!(of_user, stdout(&output(tallyline().args(words))), "{words:?}");
    }
}
