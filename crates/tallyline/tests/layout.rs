//! `tallyline layout`: operands, names, and how it ends.

mod common;

use common::{data, run, stderr, stdout};

fn golden(name: &str) -> String {
    std::fs::read_to_string(data(name)).expect("committed")
}

#[test]
fn a_file_alone_means_every_type_of_it() {
    for (file, format) in [("holes.o", "dwarf"), ("holes.btf", "btf")] {
        let output = run(&["layout", &data(file)]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(stdout(&output), golden(&format!("holes.{format}.plain.txt")));
        assert_eq!(stderr(&output), "");
    }
}

#[test]
fn pahole_s_names_of_options_are_known() {
    let file = data("nesting.o");
    for (option, name) in [
        ("--expand_types", "expand"),
        ("-E", "expand"),
        ("--hex", "hex"),
        ("--sizes", "sizes"),
        ("-s", "sizes"),
        ("--quiet", "quiet"),
        ("--cacheline_size=32", "line32"),
        ("-c32", "line32"),
        ("--rel_offset", "relative"),
        ("--flat_arrays", "flat"),
        ("--unions", "unions"),
    ] {
        let output = run(&["layout", option, &file]);
        assert_eq!(stdout(&output), golden(&format!("nesting.dwarf.{name}.txt")), "{option}");
    }
}

#[test]
fn types_come_before_the_file_and_an_empty_line_behind_each() {
    let file = data("holes.o");
    let one = stdout(&run(&["layout", "dense", &file]));
    assert!(one.starts_with("struct dense {\n") && one.ends_with("};\n\n"), "{one}");
    let two = stdout(&run(&["layout", "dense", "padded", &file]));
    assert!(two.starts_with(&one) && two.contains("\nstruct padded {\n"), "{two}");
    assert_eq!(stdout(&run(&["layout", "-C", "dense,padded", "--file", &file])), two);
    let patterns = stdout(&run(&["layout", "p*d", &file]));
    assert_eq!(patterns.matches("\nstruct ").count() + 1, 3, "{patterns}");
}

#[test]
fn enumerations_and_typedefs_are_found_by_name() {
    let signs = stdout(&run(&["layout", "signs", &data("kinds.o")]));
    assert_eq!(signs, "enum signs {\n\tMINUS = -3,\n\tZERO  = -2,\n\tPLUS  = 70000,\n};\n\n");
    let callback = stdout(&run(&["layout", "callback_t", &data("kinds.btf")]));
    assert_eq!(callback, "typedef int (*callback_t)(void *, const char  *);\n\n");
}

#[test]
fn what_is_not_there_is_named_and_ends_with_status_2() {
    let file = data("holes.o");
    let output = run(&["layout", "dense", "nonesuch", &file]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).starts_with("struct dense {\n"), "{output:?}");
    assert!(stderr(&output).contains("nonesuch"), "{output:?}");
    for args in [
        &["layout", "--file", "no/such/file"][..],
        &["layout", "--file", &data("holes.c")],
        &["layout", "-F", "btf", "--file", &file],
        &["layout", "--contains", "nonesuch", &file],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        assert_eq!(stderr(&output).lines().count(), 1, "{args:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{args:?}: {output:?}");
    }
}

#[test]
fn what_holds_and_what_points_to_a_type() {
    let holders = stdout(&run(&["layout", "--contains", "one_hole", &data("holes.o")]));
    assert_eq!(holders, "inner_holes\n");
    for file in ["kinds.o", "kinds.btf"] {
        assert_eq!(
            stdout(&run(&["layout", "--contains", "callback_t", &data(file)])),
            "functions\n",
            "{file}"
        );
    }
    let pointers = stdout(&run(&["layout", "--find-pointers-to", "pointers", &data("kinds.o")]));
    assert_eq!(pointers, "pointers: h\n");
}

#[test]
fn the_debug_file_of_a_stripped_program_is_found_by_its_link() {
    let folder = common::folder("debug-link");
    let path = |name: &str| folder.join(name).to_str().expect("a plain path").to_string();
    let (program, debug) = (path("program"), path("program.debug"));
    std::fs::write(path("main.c"), "struct seen { char a; long b; } seen; int main(void) { return 0; }\n")
        .expect("written");
    let link = format!("--add-gnu-debuglink={debug}");
    let main = path("main.c");
    for command in [
        &["cc", "-g", "-o", &program, &main][..],
        &["objcopy", "--only-keep-debug", &program, &debug],
        &["strip", "--strip-debug", &program],
        &["objcopy", &link, &program],
    ] {
        let done = std::process::Command::new(command[0]).args(&command[1..]).output();
        if !done.is_ok_and(|done| done.status.success()) {
            eprintln!("skipped: {command:?}");
            return;
        }
    }
    let output = run(&["layout", "seen", &program]);
    assert!(stdout(&output).starts_with("struct seen {\n"), "{output:?}");
    std::fs::remove_file(&debug).expect("removable");
    let output = run(&["layout", "seen", &program]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("no type information"), "{output:?}");
}
