//! `tallyline reorganize`: what it proposes, what it leaves alone, and that a compiler is asked.

mod common;

use common::{folder, object, run, stderr, stdout, tallyline};
use serde_json::Value;

const SERVER: &str = "\
struct connection { char state; long id; short port; void *next; char flags; int refs; } c;
struct tight { long a; int b; int c; } t;
struct pinned { char a; long b; char c; } p;
struct group { long head; char __cacheline_group_begin__hot[0]; char x; long y; char z; long w;
  char __cacheline_group_end__hot[0]; char tail; long end; } g;
struct bits { char tag; unsigned a : 3; unsigned b : 30; long big; unsigned d : 4; long more;
  char last; short s; } b;
struct over { char a; char line[3] __attribute__((aligned(64))); int b; long c; char d[60]; short e; } o;
struct message { char kind; long at; char flags; int size; char data[]; } m;
struct __attribute__((packed)) wire { char a; long b; } w;
union either { char a; long b; } e;
int main(void) { return 0; }
";

/// Returns the server's types; none without a compiler.
fn server(name: &str) -> Option<String> {
    object(&folder(name), "server", SERVER)
}

fn json(args: &[&str]) -> Value {
    let output = run(args);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("JSON: {output:?}"))
}

#[test]
fn a_smaller_struct_is_printed_with_what_it_saves_and_is_verified() {
    let Some(file) = server("reorganize-smaller") else { return };
    let output = run(&["reorganize", "--verify", "connection", &file]);
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    assert!(text.starts_with("struct connection {\n\tchar                       state;"), "{text}");
    assert!(text.contains("};   /* saved 8 bytes! */\n"), "{text}");
    assert!(text.contains("/* 40 -> 32 bytes, 1 -> 1 cachelines, 1 move; optimal; verified by "), "{text}");
    assert_eq!(stderr(&output), "");
}

#[test]
fn what_cannot_be_smaller_is_said_in_one_line() {
    let Some(file) = server("reorganize-tight") else { return };
    for (name, hint) in [("tight", ""), ("pinned", "; --unpin last would save 8 bytes")] {
        let output = run(&["reorganize", name, &file]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(stdout(&output), format!("/* {name}: no smaller layout{hint} */\n"));
    }
}

#[test]
fn a_pin_of_a_member_that_no_type_has_is_an_error() {
    let Some(file) = server("reorganize-no-member") else { return };
    let refused = |args: &[&str]| {
        let output = run(&[&["reorganize"], args, &[&file]].concat());
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{args:?}");
        stderr(&output)
    };
    assert_eq!(
        refused(&["--pin", "prt", "connection"]),
        "tallyline: --pin prt: no member of that name in connection; did you mean port?\n"
    );
    assert!(refused(&["--unpin", "nosuch", "connection"]).contains("--unpin nosuch: no member of that name"));
    assert!(refused(&["--unpin", "frst", "pinned"]).contains("; did you mean first?"));
    assert!(refused(&["--pin", "port,", "connection"]).contains("--pin : no member"));
    // it is enough that one of the types has it
    let several = refused(&["--pin", "port,nosuch", "connection", "tight"]);
    assert!(several.contains("--pin nosuch: no member of that name in any of the 2 types"), "{several}");
    assert!(refused(&["--pin", "nosuch"]).contains("in any of the "));
    for args in [&["--pin", "port", "connection", "tight"][..], &["--pin", "port"], &["--unpin", "ends"]] {
        let output = run(&[&["reorganize"], args, &[&file]].concat());
        assert!(output.status.success() && stderr(&output).is_empty(), "{args:?}: {output:?}");
    }
}

#[test]
fn what_free_ends_would_save_is_what_they_save() {
    let Some(file) = server("reorganize-freed") else { return };
    let document = json(&["reorganize", "--json", &file]);
    let said = |end: &str| {
        let types = document["types"].as_array().expect("types");
        types.iter().filter_map(|one| one["unpinned"][end].as_u64()).sum::<u64>()
    };
    let ranked = stdout(&run(&["reorganize", "--all", &file]));
    for end in ["last", "ends"] {
        let freed = json(&["reorganize", "--json", "--unpin", end, &file]);
        let types = freed["types"].as_array().expect("types");
        let saved: u64 = types.iter().filter_map(|one| one["saved"].as_u64()).sum();
        assert!(saved > 0 && saved == said(end), "{end}: {saved}, {}", said(end));
        if end == "last" {
            assert!(ranked.contains(&format!("\n{saved} bytes where the last member may move ")), "{ranked}");
        }
    }
}

const NESTED: &str = "\
struct inner { char a; long b; char c; long d; int e; } i;
typedef struct { char tag; struct inner one; } wrapped_t;
union either { struct inner one; char bytes[20]; } e;
struct outer { int count; struct inner many[3]; struct { char q; struct inner inner; } unnamed; union either either;
  wrapped_t wrapped; short bits : 3; } o;
struct pointing { struct inner *one; } p;
struct __attribute__((packed)) wire { char a; struct inner inner; } w;
";

#[test]
fn what_holds_a_smaller_struct_is_smaller_too() {
    let Some(file) = object(&folder("reorganize-together"), "nested", NESTED) else { return };
    let document = json(&["reorganize", "--json", "--verify", &file]);
    let totals = &document["totals"];
    assert_eq!(totals["as_pinned"], 8, "inner alone, 32 bytes instead of 40: {totals}");
    // the same with inner as it was proposed, laid out by the compiler; unions do not count
    let smaller = NESTED.replace("char a; long b; char c;", "char a; char c; long b;");
    let sizes = |source: &str, name: &str| {
        let file = object(&folder(name), "sizes", source).expect("compiled before");
        let text = stdout(&run(&["layout", "--sizes", "--structs", &file]));
        text.lines()
            .map(|line| line.split('\t').nth(1).expect("a size").parse::<u64>().expect("a number"))
            .sum::<u64>()
    };
    let least = sizes(NESTED, "reorganize-together-old") - sizes(&smaller, "reorganize-together-new");
    let saved = totals["together"]["saved"].as_u64().expect("a number");
    assert!(saved >= least && least > 50, "{saved} of {least}: {totals}");
    assert!(totals["together"]["verified"].is_string(), "{totals}");
    let ranked = stdout(&run(&["reorganize", "--verify", &file]));
    // inner, outer, wire, and the struct that only wrapped_t names
    assert!(ranked.contains(&format!("\n{saved} bytes in 4 types with all of them applied, ")), "{ranked}");
}

#[test]
fn the_ends_stay_unless_they_are_freed() {
    let Some(file) = server("reorganize-ends") else { return };
    for free in ["last", "c", "ends"] {
        let output = run(&["reorganize", "--unpin", free, "--verify", "pinned", &file]);
        assert!(stdout(&output).contains("24 -> 16 bytes"), "{free}: {output:?}");
        assert!(stdout(&output).contains("verified by"), "{free}: {output:?}");
    }
    let output = run(&["reorganize", "--pin", "port", "connection", &file]);
    assert!(stdout(&output).starts_with("/* connection: no smaller layout"), "{output:?}");
}

#[test]
fn steps_lead_from_the_old_to_the_new() {
    let Some(file) = server("reorganize-steps") else { return };
    let text = stdout(&run(&["reorganize", "-S", "connection", &file]));
    assert_eq!(text.matches("/* Moving '").count(), 1, "{text}");
    assert_eq!(text.matches("\nstruct connection {").count(), 2, "{text}");
    assert!(text.contains("\n/* Final reorganized struct: */\n"), "{text}");
}

#[test]
fn members_of_a_group_stay_between_its_markers() {
    let Some(file) = server("reorganize-group") else { return };
    let document = json(&["reorganize", "--json", "--verify", "group", &file]);
    let one = &document["types"][0];
    assert_eq!((&one["old"]["size"], &one["new"]["size"]), (&56.into(), &40.into()), "{one}");
    let names: Vec<&str> = one["members"]
        .as_array()
        .expect("members")
        .iter()
        .map(|m| m["name"].as_str().expect("a name"))
        .collect();
    let at = |name: &str| names.iter().position(|known| *known == name).expect("a member");
    let group = at("__cacheline_group_begin__hot")..at("__cacheline_group_end__hot");
    for inside in ["x", "y", "z", "w"] {
        assert!(group.contains(&at(inside)), "{names:?}");
    }
    assert_eq!((at("head"), at("end")), (0, names.len() - 1));
    assert!(one["verified"].is_string(), "{one}");
}

#[test]
fn the_padding_of_a_group_stays_behind_it() {
    let source = "struct padded { long head; char __cacheline_group_begin__hot[0]; long x, y; \
        char __cacheline_group_end__hot[0]; char __cacheline_group_pad__hot[4]; long b; int i; long end; } p;";
    let Some(file) = object(&folder("reorganize-pad"), "program", source) else { return };
    // beside `i` it would save eight bytes
    let text = stdout(&run(&["reorganize", "--pin", "i", "padded", &file]));
    assert!(!text.contains("saved"), "{text}");
    let text = stdout(&run(&["reorganize", "padded", &file]));
    assert!(text.contains("saved 8 bytes"), "{text}");
}

#[test]
fn bitfields_alignments_and_flexible_arrays_are_laid_out_as_compilers_do() {
    let Some(file) = server("reorganize-kinds") else { return };
    let document = json(&["reorganize", "--json", "--verify", "bits", "over", "message", &file]);
    for one in document["types"].as_array().expect("types") {
        assert_eq!(one["outcome"], "smaller", "{one}");
        assert!(one["verified"].is_string(), "{one}");
        assert_eq!(one["optimal"], true, "{one}");
    }
    let last = document["types"][2]["members"].as_array().expect("members").last().cloned().expect("one");
    assert_eq!(last["name"], "data");
}

#[test]
fn what_is_not_for_this_is_refused_with_the_reason() {
    let Some(file) = server("reorganize-refused") else { return };
    for (name, why) in [("wire", "packed"), ("either", "not a struct"), ("nonesuch", "no type named")] {
        let output = run(&["reorganize", name, &file]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains(why), "{output:?}");
        assert_eq!(stderr(&output).lines().count(), 1, "{output:?}");
    }
    let output = run(&["reorganize", "--force", "wire", &file]);
    assert!(output.status.success() && stdout(&output).contains("no smaller layout"), "{output:?}");
}

#[test]
fn headers_for_programs_are_left_alone() {
    let folder = folder("reorganize-uapi");
    std::fs::create_dir_all(folder.join("uapi")).expect("a folder");
    std::fs::write(folder.join("uapi/user.h"), "struct user { char a; long b; char c; int d; long e; };\n")
        .expect("written");
    let Some(file) = object(&folder, "main", "#include \"uapi/user.h\"\nstruct user u;\n") else { return };
    let output = run(&["reorganize", "user", &file]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("uapi/user.h"), "{output:?}");
    let output = run(&["reorganize", "--force", "user", &file]);
    assert!(stdout(&output).contains("32 -> 24 bytes"), "{output:?}");
}

#[test]
fn of_rust_only_what_is_repr_c_is_reordered() {
    let folder = folder("reorganize-rust");
    let (source, file) = (folder.join("types.rs"), folder.join("types.o"));
    let text = "#![crate_type = \"lib\"] #[repr(C)] pub struct Fixed { a: u8, b: u64, c: u8, d: u64 }
        pub struct Free { a: u8, b: u64, c: u8, d: u64 } pub enum Kind { One(u8), Two(u64, u8) }
        #[unsafe(no_mangle)] pub static ALL: (Fixed, Free, Kind) = (Fixed { a: 1, b: 2, c: 3, d: 4 },
        Free { a: 1, b: 2, c: 3, d: 4 }, Kind::One(1));";
    std::fs::write(&source, text).expect("written");
    if !common::compiles(
        std::process::Command::new("rustc").args(["-g", "--emit=obj", "-o"]).args([&file, &source]),
    ) {
        eprintln!("skipped: no rustc");
        return;
    }
    let file = file.to_str().expect("a plain path");
    let output = run(&["reorganize", "--verify", "Fixed", file]);
    assert!(stdout(&output).contains("32 -> 24 bytes"), "{output:?}");
    for name in ["Free", "Kind"] {
        let output = run(&["reorganize", name, file]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains("laid out by the compiler already"), "{output:?}");
    }
}

#[test]
fn types_of_go_are_refused() {
    let folder = folder("reorganize-go");
    let (source, file) = (folder.join("main.go"), folder.join("main"));
    let text = "package main\n\ntype loose struct {\n\ta byte\n\tb int64\n\tc byte\n\td int64\n}\n\n\
                var all loose\n\nfunc main() { println(&all) }\n";
    std::fs::write(&source, text).expect("written");
    let mut compiler = std::process::Command::new("go");
    compiler.args(["build", "-o"]).args([&file, &source]).env("GOCACHE", folder.join("cache"));
    if !common::compiles(&mut compiler) {
        eprintln!("skipped: no Go compiler");
        return;
    }
    let output = run(&["reorganize", "main.loose", file.to_str().expect("a plain path")]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(
        stderr(&output),
        "tallyline: main.loose: a type of Go: only C, C++ and repr(C) are reordered\n"
    );
}

#[test]
fn a_ranking_counts_instances() {
    let Some(file) = server("reorganize-rank") else { return };
    let counts = folder("reorganize-rank").join("counts");
    std::fs::write(&counts, "struct message 1000\nconnection 2\n").expect("written");
    let counts = counts.to_str().expect("a plain path");
    let text = stdout(&run(&["reorganize", "--instances", counts, &file]));
    let types: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(types[..3], ["type", "message", "over"], "{text}");
    assert!(text.contains("not for this\n"), "{text}");
    assert!(text.contains("8000        8       1000           24 -> 16"), "{text}");
}

/// Returns a server for i386, and a folder for compilers; `None` where there is no compiler for both
/// machines.
fn server32(name: &str) -> Option<(String, std::path::PathBuf)> {
    let folder = folder(name);
    let (source, to) = (folder.join("server.c"), folder.join("server32.o"));
    std::fs::write(&source, SERVER).expect("written");
    let mut compiler = std::process::Command::new("cc");
    compiler.args(["-m32", "-g", "-c", "-o"]).arg(&to).arg(&source);
    if !cfg!(target_arch = "x86_64") || !common::compiles(&mut compiler) {
        eprintln!("skipped: no compiler for i386");
        return None;
    }
    Some((to.to_str().expect("a plain path").to_string(), folder))
}

/// Returns a compiler for x86-64 alone: `-m32` is dropped where a shell's condition on `$*` holds.
fn compiler64(folder: &std::path::Path, name: &str, when: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join(name);
    let drop = "for word; do shift; case $word in -m*) ;; *) set -- \"$@\" \"$word\" ;; esac; done";
    std::fs::write(&path, format!("#!/bin/sh\nif {when}; then {drop}; fi\nexec cc \"$@\"\n"))
        .expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("permitted");
    path.to_str().expect("a plain path").to_string()
}

#[test]
fn the_compiler_is_asked_for_the_machine_of_the_file() {
    let Some((file, _)) = server32("reorganize-i386") else { return };
    let output = run(&["reorganize", "--verify", "connection", &file]);
    assert!(stdout(&output).contains("24 -> 16 bytes"), "{output:?}");
    assert!(stdout(&output).contains("; verified by"), "{output:?}");
}

#[test]
fn a_compiler_for_another_machine_verifies_nothing() {
    let Some((file, folder)) = server32("reorganize-machine") else { return };
    let cc = compiler64(&folder, "cc64", "true");
    let output = run(&["reorganize", "--verify", "--cc", &cc, "connection", &file]);
    assert!(output.status.success(), "{output:?}");
    assert!(stdout(&output).contains("; unverified: "), "{output:?}");
    assert!(stdout(&output).contains("for x86_64, not for i386"), "{output:?}");
}

#[test]
fn a_compiler_that_says_one_machine_and_compiles_for_another_is_found_out() {
    let Some((file, folder)) = server32("reorganize-liar") else { return };
    let cc = compiler64(&folder, "liar", "test \"${*#*-dM}\" = \"$*\"");
    let output = run(&["reorganize", "--verify", "--cc", &cc, "connection", &file]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(stdout(&output), "", "withheld");
    assert!(stderr(&output).contains("withheld, as it does not hold"), "{output:?}");
}

#[test]
fn a_proposal_that_the_compiler_lays_out_otherwise_is_withheld() {
    let Some(file) = server("reorganize-withheld") else { return };
    // the same machine, with other rules
    let output = run(&["reorganize", "--verify", "--cc", "cc -fpack-struct=2", "connection", &file]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(stdout(&output), "", "withheld");
    assert!(stderr(&output).contains("connection: withheld"), "{output:?}");
    let output =
        run(&["reorganize", "--verify", "--json", "--cc", "cc -fpack-struct=2", "connection", &file]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stdout(&output).contains("\"withheld\""), "{output:?}");
}

#[test]
fn without_a_compiler_it_says_unverified() {
    let Some(file) = server("reorganize-unverified") else { return };
    for cc in ["/no/such/compiler", "true"] {
        let output = tallyline()
            .env("CC", cc)
            .args(["reorganize", "--verify", "connection", &file])
            .output()
            .expect("the program runs");
        assert!(output.status.success(), "{output:?}");
        assert!(stdout(&output).contains("; unverified: "), "{output:?}");
    }
}

/// Structs whose printed text has to say more than pahole's; they need nothing but C.
const ATTRIBUTES: &str = "\
struct cut { char a; int b __attribute__((packed)); long c; char d; long e; } cut;
struct calls { char a; int (*fp[2])(void); char b; long c; int x; } calls;
struct bits { char a; int f : 3; long l; char g : 2; int h : 20; int : 0; int i : 7; short s; long m; char z; } bits;
struct inner { char a; struct { char x; int y; } __attribute__((packed)) in; char b; long l;
  union { char u[5]; int q; } un; char c; long z; } inner;
struct wide { char a; struct { char x; int y; } __attribute__((aligned(16))) in; char b; long l; char c; long z[3]; } wide;
struct numbers { char a; float _Complex z; char b; double _Complex w; char c; long long l; double d; char e; int last; } numbers;
struct bools { char a; _Bool b : 1; long c; _Bool d : 1; int e; char f; long g; } bools;
struct points { char a; volatile int *volatile vp; char b; int *restrict r; char c; int (*(*n)(int))[7]; char d; int e; } points;
";

#[test]
fn what_is_printed_compiles_to_what_is_promised() {
    let folder = folder("reorganize-printed");
    let source = folder.join("attributes.c");
    std::fs::write(&source, ATTRIBUTES).expect("written");
    for flags in [&[][..], &["-m32"]] {
        let to = folder.join("attributes.o");
        let mut compiler = std::process::Command::new("cc");
        compiler.args(flags).args(["-g", "-c", "-o"]).arg(&to).arg(&source);
        if !compiler.output().is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: cc {flags:?}");
            continue;
        }
        let file = to.to_str().expect("a plain path");
        for name in ["cut", "calls", "bits", "inner", "wide", "numbers", "bools", "points"] {
            let output = run(&["reorganize", "--verify", name, file]);
            let text = stdout(&output);
            assert!(text.contains("; verified by "), "{flags:?}, {name}: {output:?}");
            let one = &json(&["reorganize", "--json", name, file])["types"][0];
            // pasted by somebody who asserts what it said
            let mut pasted = format!(
                "{text}\n_Static_assert(sizeof(struct {name}) == {}, \"size\");\n",
                one["new"]["size"]
            );
            for member in one["members"].as_array().expect("members") {
                if member["bits"].is_null() {
                    let (member, offset) = (member["name"].as_str().expect("a name"), &member["offset"]);
                    pasted += &format!(
                        "_Static_assert(__builtin_offsetof(struct {name}, {member}) == {offset}, \"{member}\");\n"
                    );
                }
            }
            let again = folder.join("pasted.c");
            std::fs::write(&again, &pasted).expect("written");
            let mut compiler = std::process::Command::new("cc");
            compiler.args(flags).arg("-fsyntax-only").arg(&again);
            assert!(common::compiles(&mut compiler), "{pasted}");
        }
    }
}

#[test]
fn the_text_that_is_printed_is_what_is_verified() {
    let folder = folder("reorganize-text");
    let source = format!("{ATTRIBUTES}typedef unsigned char byte; enum kind {{ ONE, TWO }}; struct later;
typedef struct {{ byte a; long b; }} pair_t; typedef int call_t(struct later *, pair_t);
struct user {{ byte a; pair_t p; byte b; enum kind k; struct later *l; call_t *f; byte c; int (*rows)[3]; char e;
  pair_t last; }} user;\n");
    let Some(file) = object(&folder, "text", &source) else { return };
    // the types that the text names are declared as the file has them
    let output = run(&["reorganize", "--verify", "user", &file]);
    assert!(stdout(&output).contains("; verified by "), "{output:?}");
    // a compiler that drops the attribute of the text, and only that
    let output = run(&["reorganize", "--verify", "--cc", "cc -D__packed__=", "cut", &file]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "withheld: {output:?}");
    assert!(stderr(&output).contains("as printed it takes 32 bytes, not 24"), "{output:?}");
}

/// Compiles a source of another language; none without its compiler.
fn other_object(compiler: &[&str], file: &str, source: &str) -> Option<String> {
    let folder = folder(&format!("reorganize-{file}"));
    let (from, to) = (folder.join(file), folder.join("out.o"));
    std::fs::write(&from, source).expect("written");
    let (program, arguments) = compiler.split_first().expect("a compiler");
    let mut command = std::process::Command::new(program);
    command.args(arguments).arg("-o").arg(&to).arg(&from);
    common::compiles(&mut command).then(|| to.to_str().expect("a plain path").to_string())
}

#[test]
fn of_other_languages_only_the_layout_is_said_to_be_verified() {
    let cpp = "namespace app { struct Plain { char a; long b; char c; }; } app::Plain plain;";
    let rust = "#[repr(C)] pub struct Plain { a: u8, b: u64, c: u8 }
        #[no_mangle] pub static PLAIN: Plain = Plain { a: 1, b: 2, c: 3 };";
    let cpp = other_object(&["g++", "-g", "-c"], "plain.cpp", cpp);
    let rust = other_object(&["rustc", "-g", "--crate-type=lib", "--emit=obj"], "plain.rs", rust);
    for (file, said) in [(cpp, "the text was not compiled"), (rust, "the text is no Rust")] {
        let Some(file) = file else { continue };
        let arguments = ["--unpin", "ends", "--verify", "Plain", &file];
        let output = run(&[&["reorganize"], &arguments[..]].concat());
        let text = stdout(&output);
        assert!(text.contains("24 -> 16 bytes"), "{output:?}");
        assert!(text.contains("; layout verified by ") && text.contains(said), "{output:?}");
        let one = &json(&[&["reorganize", "--json"], &arguments[..]].concat())["types"][0];
        assert!(one["verified"].is_string() && one["text_verified"] == false, "{one}");
    }
    // C's text is compiled as it is printed
    let Some(file) = server("reorganize-text-of-c") else { return };
    let one = &json(&["reorganize", "--json", "--verify", "connection", &file])["types"][0];
    assert_eq!(one["text_verified"], true, "{one}");
}

#[test]
fn structs_that_only_a_typedef_names_are_ranked() {
    let source = "typedef struct { char a; long b; char c; long d; } conn_t; conn_t one;
struct named { char a; long b; char c; long d; } two;";
    let Some(file) = object(&folder("reorganize-typedefs"), "program", source) else { return };
    let ranks = stdout(&run(&["reorganize", "--unpin", "last", &file]));
    assert!(ranks.contains("  conn_t\n") && ranks.contains("2 types, 2 can be smaller"), "{ranks}");
    let called = stdout(&run(&["reorganize", "--unpin", "last", "conn*", &file]));
    assert!(called.contains("} conn_t;"), "{called}");
}
