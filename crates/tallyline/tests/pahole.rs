//! pahole's command line: `tallyline pahole …`, and the program under the name `pahole`.

mod common;

use common::{folder, run, stderr, stdout, tallyline};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn data(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/layout").join(name);
    path.to_str().expect("a plain path").to_string()
}

fn golden(name: &str) -> String {
    fs::read_to_string(data(name)).expect("committed")
}

fn pahole(args: &[&str]) -> Output {
    run(&[&["pahole"], args].concat())
}

/// Returns a link to the program by the name of `pahole`.
fn link(folder: &Path) -> PathBuf {
    let link = folder.join("pahole");
    symlink(env!("CARGO_BIN_EXE_tallyline"), &link).expect("a link");
    link
}

#[test]
fn the_program_under_the_name_of_pahole_is_pahole() {
    let link = link(&folder("called-pahole"));
    let output = Command::new(&link).arg("--version").output().expect("runs");
    assert_eq!(stdout(&output), "v1.32\n");
    let output = Command::new(&link).args(["-s", &data("holes.o")]).output().expect("runs");
    assert_eq!(stdout(&output), golden("holes.dwarf.sizes.txt"));
    assert_eq!(stdout(&pahole(&["--numeric_version"])), "132\n");
}

#[test]
fn options_are_abbreviated_and_bundled() {
    let file = data("nesting.o");
    for (args, name) in [
        (&["--expand_t", &file][..], "expand"),
        (&["-E", &file], "expand"),
        (&[&file, "-c32"], "line32"),
        (&["--cach=32", &file], "line32"),
        (&["-c", "32", "--", &file], "line32"),
        (&["-rj2", &file], "relative"),
        (&["-F", "dwarf,btf", &file], "plain"),
        (&["-F", "ctf,btf,dwarf", &file], "plain"),
    ] {
        let output = pahole(args);
        assert_eq!(stdout(&output), golden(&format!("nesting.dwarf.{name}.txt")), "{args:?}: {output:?}");
    }
}

#[test]
fn what_cannot_be_understood_ends_with_status_64() {
    for (args, message) in [
        (&["--nonesuch"][..], "unrecognized option '--nonesuch'"),
        (&["-K"], "invalid option -- 'K'"),
        (&["--hex=3"], "option '--hex' doesn't allow an argument"),
        (&["-c"], "option requires an argument -- 'c'"),
        (&["--btf_base"], "option '--btf_base' requires an argument"),
        (&["--suppress_f", "--suppress"], "option '--suppress' is ambiguous; possibilities: '--suppress_"),
    ] {
        let output = pahole(args);
        assert_eq!(output.status.code(), Some(64), "{args:?}: {output:?}");
        assert!(stderr(&output).starts_with(&format!("pahole: {message}")), "{args:?}: {output:?}");
        assert!(stderr(&output).contains("Try `pahole --help'"), "{args:?}: {output:?}");
    }
}

#[test]
fn a_type_that_is_not_there_is_no_failure_and_ends_the_list() {
    let file = data("holes.o");
    let output = pahole(&["-C", "dense,nonesuch,padded", &file]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(stderr(&output), "pahole: type 'nonesuch' not found\n");
    assert_eq!(stdout(&output), stdout(&pahole(&["-C", "dense", &file])));
    let output = pahole(&["--skip_missing", "-C", "dense,nonesuch,padded", &file]);
    assert!(stdout(&output).contains("struct padded {"), "{output:?}");
    assert!(pahole(&["-C", "pad*", &file]).stdout.is_empty(), "there are no patterns in pahole");
}

#[test]
fn files_without_types_fail() {
    let folder = folder("no-types");
    let file = folder.join("text");
    fs::write(&file, "no types\n").expect("written");
    let file = file.to_str().expect("a plain path");
    for args in [&[file][..], &["-F", "btf", &data("holes.o")], &["-F", "ctf", &data("holes.o")]] {
        let output = pahole(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {output:?}");
        assert_eq!(stderr(&output).lines().count(), 1, "{output:?}");
        assert!(stderr(&output).contains("type information"), "{output:?}");
    }
}

#[test]
fn a_missing_alternate_file_is_a_warning() {
    let folder = folder("pahole-no-alternate");
    fs::copy(data("companions/shared.so"), folder.join("shared.so")).expect("copied");
    let file = folder.join("shared.so");
    let output = pahole(&["-F", "dwarf", "-C", "bulk2", file.to_str().expect("a plain path")]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), ""), "{output:?}");
    assert_eq!(stderr(&output).lines().count(), 1, "{output:?}");
    assert!(stderr(&output).contains("could not resolve dwz alternate debug file"), "{output:?}");
}

#[test]
fn several_files_are_one_set_of_types() {
    let (one, other) = (data("holes.o"), data("nesting.o"));
    let both = stdout(&pahole(&[&one, &other]));
    assert_eq!(both, golden("holes.dwarf.plain.txt") + &golden("nesting.dwarf.plain.txt"));
    assert_eq!(stdout(&pahole(&[&one, &one])), golden("holes.dwarf.plain.txt"));
    let output = pahole(&[&one, &data("holes.btf")]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn what_is_not_done_here_is_passed_on_to_the_next_pahole() {
    let ours = folder("path-ours");
    let link = link(&ours);
    let theirs = folder("path-theirs");
    let path = format!("{}:{}:/usr/bin:/bin", ours.display(), theirs.display());
    let pass_on = |next: &str| {
        let _ = fs::remove_file(theirs.join("pahole"));
        symlink(next, theirs.join("pahole")).expect("a link");
        let mut command = Command::new(&link);
        command.args(["-J", "--btf_features=all", "x.o"]).env("PATH", &path).output().expect("runs")
    };
    let output = pass_on("/bin/echo");
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("-J --btf_features=all x.o\n", Some(0)));
    let output = pass_on("/bin/false");
    assert_eq!((output.status.code(), output.stderr.len()), (Some(1), 0), "{output:?}");
    // there is none but ourselves
    for option in ["-J", "--btf_encode_detached=x", "--prettify=x", "--supported_btf_features"] {
        let output = Command::new(&link).arg(option).env("PATH", &ours).output().expect("runs");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(stderr(&output).lines().count(), 1, "{output:?}");
        assert!(stderr(&output).contains("install the package dwarves"), "{output:?}");
    }
}

#[test]
fn two_of_us_do_not_run_each_other() {
    let (one, other) = (folder("two-one"), folder("two-other"));
    // another file to the system, with the same in it
    fs::hard_link(env!("CARGO_BIN_EXE_tallyline"), other.join("pahole")).expect("linked");
    let path = format!("{}:{}", one.display(), other.display());
    let output = Command::new(link(&one)).arg("-J").env("PATH", path).output().expect("runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("install the package dwarves"), "{output:?}");
}

#[test]
fn a_reorganised_struct_ends_with_what_is_saved() {
    let file = data("holes.o");
    let packable = stdout(&pahole(&["-P", &file]));
    let mut columns = packable.lines().next().expect("one can be smaller").split('\t');
    let (name, sizes) = (columns.next().expect("a name"), columns.map(|n| n.parse().expect("a number")));
    let [old, new, saved]: [u64; 3] = sizes.collect::<Vec<_>>().try_into().expect("three");
    assert_eq!(old - new, saved);
    let text = stdout(&pahole(&["-R", "-C", name, &file]));
    let note = format!("}};   /* saved {saved} byte");
    assert!(text.starts_with(&format!("struct {name} {{\n")) && text.contains(&note), "{text}");
    let steps = stdout(&pahole(&["-RS", "-C", name, &file]));
    assert!(steps.contains("/* Moving '") && steps.ends_with(&text), "{steps}");
    // what is as small as can be is printed as it is
    assert_eq!(
        stdout(&pahole(&["-R", "-C", "dense", &file])) + "\n",
        stdout(&pahole(&["-C", "dense", &file]))
    );
}

#[test]
fn pointers_unfold_what_they_point_to_but_nothing_inside_of_itself() {
    let file = data("options/pointers.o");
    for (option, name) in [("-p", "p"), ("-Ep", "Ep")] {
        let output = pahole(&[option, &file]);
        assert_eq!(stdout(&output), golden(&format!("options/pointers.{name}.txt")), "{option}");
    }
    let ring = stdout(&pahole(&["-p", "-C", "ring", &file]));
    assert_eq!(ring.matches("struct ring {").count(), 3, "itself, and what each of both points to: {ring}");
}

#[test]
fn bitfields_as_wide_as_their_types_are_plain_members_if_asked_for() {
    let file = data("options/silly.o");
    assert_eq!(stdout(&pahole(&["--fixup_silly_bitfields", &file])), golden("options/silly.fixup.txt"));
    let plain = stdout(&pahole(&[&file]));
    assert!(plain.contains("b:32") && plain.contains("c:64"), "{plain}");
}

#[test]
fn what_a_prototype_names_has_to_be_there() {
    let file = data("options/pointers.o");
    let plain = stdout(&pahole(&["-C", "leaf", &file]));
    assert_eq!(stdout(&pahole(&["-C", "leaf(sizeof=value,type=tag,filter=tag==3)", &file])), plain);
    for (class, message) in [
        ("leaf(sizeof=nope)", "the sizeof member 'nope' wasn't found in the 'leaf' type"),
        ("either(sizeof=a)", "attributes are only supported with 'class' and 'struct' types"),
        ("leaf(bogus=1)", "invalid arg 'bogus' in 'leaf(bogus=1)'"),
    ] {
        let output = pahole(&["-C", class, &file]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(stderr(&output).starts_with(&format!("pahole: {message}")), "{output:?}");
    }
}

#[test]
fn atomic_base_types_are_typedefs_in_a_header() {
    let source = folder("atomic-base-types").join("a.S");
    fs::write(&source, ATOMIC_BASE_TYPE).expect("written");
    let object = source.with_extension("o");
    let compiled = Command::new("cc").args(["-c", "-o"]).arg(&object).arg(&source).status();
    if !compiled.is_ok_and(|status| status.success()) {
        return;
    }
    let object = object.to_str().expect("a plain path");
    let header = stdout(&pahole(&["--compile", object]));
    let start = "typedef _Atomic unsigned int atomic_uint32_t;\n";
    assert!(header.starts_with(start) && header.matches(start).count() == 1, "{header}");
    let skipped = stdout(&pahole(&["--compile", "--skip_emitting_atomic_typedefs", object]));
    assert!(!skipped.contains("_Atomic") && skipped.contains("atomic_uint32_t            b;"), "{skipped}");
}

/// `struct counts { atomic_uint32_t a, b; }` as compilers wrote it before DWARF 5: a base type.
const ATOMIC_BASE_TYPE: &str = r#"
    .section .debug_abbrev,"",@progbits
    .byte 1,0x11,1, 0x13,0x0b, 0,0
    .byte 2,0x24,0, 3,8, 0xb,0xb, 0x3e,0xb, 0,0
    .byte 3,0x13,1, 3,8, 0xb,0xb, 0,0
    .byte 4,0x0d,0, 3,8, 0x49,0x13, 0x38,0xb, 0,0
    .byte 0
    .section .debug_info,"",@progbits
unit:
    .4byte end - version
version:
    .2byte 4
    .4byte 0
    .byte 8
    .byte 1,12
base:
    .byte 2
    .asciz "atomic_uint32_t"
    .byte 4,7
    .byte 3
    .asciz "counts"
    .byte 8
    .byte 4
    .asciz "a"
    .4byte base - unit
    .byte 0
    .byte 4
    .asciz "b"
    .4byte base - unit
    .byte 4
    .byte 0,0
end:
"#;

#[test]
fn types_without_a_name_are_counted_under_none() {
    let file = data("nesting.o");
    let plain = stdout(&pahole(&["-s", &file]));
    let all = stdout(&pahole(&["-s", "-a", &file]));
    assert!(!plain.contains("(null)") && all.contains("\n(null)\t"), "{all}");
    assert!(all.lines().count() > plain.lines().count());
}

#[test]
fn help_names_every_option_and_what_is_passed_on() {
    let help = stdout(&pahole(&["--help"]));
    for part in ["-C, --class_name=CLASS_NAME", "--jobs[=NR_JOBS]", "encodes BTF (passed on)", "Examples:"] {
        assert!(help.contains(part), "{part}: {help}");
    }
    assert!(stdout(&pahole(&["--usage"])).starts_with("Usage: pahole [-"));
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let mut command = tallyline();
    command.args(["pahole", &data("nesting.o")]).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("runs");
    drop(child.stdout.take());
    assert!(child.wait().expect("ends").success());
}
