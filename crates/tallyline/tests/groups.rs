//! `tallyline groups`: groups of programs made by the machine's compilers, and assertions that these
//! compilers accept for what is so and refuse for what is not.

mod common;

use common::{compiles, folder, object, run, stderr, stdout};
use std::path::Path;
use std::process::Command;

/// Two groups, one of them across a line, in an anonymous struct; and something beside them.
const PROGRAM: &str = r#"
#define BEGIN(G) char __cacheline_group_begin__##G[0]
#define END(G) char __cacheline_group_end__##G[0]
struct connection {
    long other[5];
    BEGIN(rx);
    int packets;
    char kind;
    long bytes;
    unsigned ready : 1;
    unsigned state : 3;
    long last;
    END(rx);
    struct {
        BEGIN(tx) __attribute__((aligned(64)));
        long sent;
        int queue[4];
        END(tx);
    };
    char tail[8];
};
struct plain { int a; };
struct connection connection;
struct plain plain;
"#;

fn program(name: &str) -> Option<(std::path::PathBuf, String)> {
    let folder = folder(name);
    let object = object(&folder, "program", PROGRAM)?;
    Some((folder, object))
}

#[test]
fn groups_are_shown_with_holes_straddling_and_what_else_is_on_their_lines() {
    let Some((_, file)) = program("groups-text") else { return };
    let text = stdout(&run(&["groups", &file]));
    let expected = "\
connection: 256 bytes on 4 lines, declared at FILE:4
  group  offset  bytes      lines  members  holes
  rx         40     32        0-1        6     10  straddles
  tx        128     24          2        2      0

  rx, declared at FILE:6
        40      4  packets
        44      1  kind
        45      3  hole
        48      8  bytes
        56      1  ready:1
        56      1  state:3
        57      7  hole
        64      8  last
    straddles: 32 bytes on 2 lines, 1 would do
    also on its lines: other

  tx, declared at FILE:15
       128      8  sent
       136     16  queue
";
    assert_eq!(text.replace(&file.replace(".o", ".c"), "FILE"), expected, "{text}");
}

#[test]
fn one_line_for_each_group_and_structs_without_groups_say_so() {
    let Some((_, file)) = program("groups-brief") else { return };
    let brief = stdout(&run(&["groups", "--brief", &file]));
    assert_eq!(brief.lines().count(), 4, "{brief}");
    assert!(stdout(&run(&["groups", "plain", &file])).contains("no groups"));
    let output = run(&["groups", "nonesuch", &file]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no type named nonesuch"), "{output:?}");
}

#[test]
fn json_says_what_the_text_says() {
    let Some((_, file)) = program("groups-json") else { return };
    let output = run(&["groups", "--format", "json", &file]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rx = &value["types"][0]["groups"][0];
    assert_eq!((&rx["name"], &rx["offset"], &rx["bytes"]), (&"rx".into(), &40.into(), &32.into()));
    assert_eq!((&rx["lines"], &rx["straddles"]), (&serde_json::json!([0, 1]), &true.into()));
    assert_eq!(rx["members"][4]["bits"], 3);
    assert_eq!(rx["foreign"][0]["name"], "other");
    assert_eq!(value["types"][0]["groups"][1]["align"], 64);
}

/// Compiles a program that includes the assertions, after its own text was changed.
fn holds(folder: &Path, compiler: &[&str], head: &str, program: &str, asserts: &str) -> bool {
    let file = folder.join(format!("asserts.{}", compiler[0].replace('+', "x")));
    std::fs::write(&file, format!("{head}\n{program}\n{asserts}\n")).expect("written");
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).arg(&file).current_dir(folder);
    command.output().expect("the compiler runs").status.success()
}

fn is_there(compiler: &str) -> bool {
    compiles(Command::new(compiler).arg("--version"))
}

/// The kernel's macros, as its documentation describes them.
const KERNEL: &str = r#"
#include <stddef.h>
#define __init
#define offsetofend(T, M) (offsetof(T, M) + sizeof(((T *)0)->M))
#define CACHELINE_ASSERT_GROUP_MEMBER(T, G, M) \
    _Static_assert(offsetof(T, M) >= offsetofend(T, __cacheline_group_begin__##G) && \
                   offsetofend(T, M) <= offsetof(T, __cacheline_group_end__##G), #M)
#define CACHELINE_ASSERT_GROUP_SIZE(T, G, N) \
    _Static_assert(offsetof(T, __cacheline_group_end__##G) - offsetofend(T, __cacheline_group_begin__##G) <= N, #G)
"#;

#[test]
fn assertions_hold_for_the_struct_they_were_made_from_and_for_no_other() {
    let Some((folder, file)) = program("groups-asserts") else { return };
    let c = ["cc", "-std=gnu11", "-fsyntax-only", "-x", "c"];
    let cpp = ["g++", "-std=c++17", "-fsyntax-only", "-x", "c++"];
    let moved =
        PROGRAM.replace("    char kind;\n", "").replace("long other[5];", "long other[5]; char kind;");
    let grown = PROGRAM.replace("int queue[4];", "int queue[6];");
    for (dialect, compiler, head) in
        [("kernel", &c[..], KERNEL), ("c11", &c, "#include <stddef.h>"), ("c++", &cpp, "#include <cstddef>")]
    {
        if !is_there(compiler[0]) {
            continue;
        }
        let asserts = stdout(&run(&["groups", "--asserts", dialect, &file]));
        assert!(asserts.contains("packets") && asserts.contains("ready: has no offset"), "{asserts}");
        assert!(holds(&folder, compiler, head, PROGRAM, &asserts), "{dialect}:\n{asserts}");
        assert!(!holds(&folder, compiler, head, &moved, &asserts), "{dialect}: kind was moved");
        assert!(!holds(&folder, compiler, head, &grown, &asserts), "{dialect}: queue has grown");
    }
}

#[test]
fn assertions_for_rust_hold_for_the_same_struct_in_rust() {
    let Some((folder, file)) = program("groups-rust") else { return };
    if !is_there("rustc") {
        return;
    }
    let rust = r#"
        #[repr(C)] pub struct connection { other: [i64; 5], __cacheline_group_begin__rx: [u8; 0], packets: i32,
            kind: u8, bytes: i64, state: u32, last: i64, __cacheline_group_end__rx: [u8; 0],
            __cacheline_group_begin__tx: Line, sent: i64, queue: [i32; 4], __cacheline_group_end__tx: [u8; 0],
            tail: [u8; 8] }
        #[repr(C, align(64))] pub struct Line;
    "#;
    let head = "#![allow(dead_code, non_camel_case_types, non_snake_case)]";
    let compiler = ["rustc", "--crate-type", "lib", "--emit", "metadata", "--edition", "2021"];
    let asserts = stdout(&run(&["groups", "--asserts", "rust", &file]));
    assert!(holds(&folder, &compiler, head, rust, &asserts), "{asserts}");
    let moved = rust
        .replace("kind: u8, ", "")
        .replace("pub struct connection {", "pub struct connection { kind: u8,");
    assert!(!holds(&folder, &compiler, head, &moved, &asserts), "kind was moved");
}

#[test]
fn markers_without_their_other_half_are_named() {
    let source = "struct broken { char __cacheline_group_begin__a[0]; int x; char __cacheline_group_end__b[0]; } broken;";
    let Some(file) = object(&folder("groups-broken"), "broken", source) else { return };
    let text = stdout(&run(&["groups", &file]));
    assert!(text.contains("group a begins and does not end"), "{text}");
    assert!(text.contains("group b ends and does not begin"), "{text}");
}

#[test]
fn a_policy_names_groups_of_structs_without_markers() {
    let folder = folder("groups-policy");
    let source = "struct conn { long a; int b; char c; long d; }; struct conn conn;";
    let Some(file) = object(&folder, "program", source) else { return };
    let policy = folder.join("layout.toml");
    let text = "[[group]]\ntype = \"conn\"\nname = \"hot\"\nmembers = [\"b\", \"c\"]\n";
    std::fs::write(&policy, text).expect("written");
    let policy = policy.to_str().expect("a plain path");
    let brief = stdout(&run(&["groups", "--brief", "--policy", policy, &file]));
    assert!(brief.contains("  hot         8      5          0        2      0\n"), "{brief}");
    let c = ["cc", "-std=gnu11", "-fsyntax-only", "-x", "c"];
    let asserts = stdout(&run(&["groups", "--asserts", "c11", "--policy", policy, &file]));
    let head = "#include <stddef.h>";
    assert!(asserts.contains("is in group hot"), "{asserts}");
    assert!(holds(&folder, &c, head, source, &asserts), "{asserts}");
    let moved = source.replace("char c; long d;", "long d; char c;");
    assert!(!holds(&folder, &c, head, &moved, &asserts), "c was moved: {asserts}");
}

#[test]
fn a_policy_without_rules_is_refused() {
    let folder = folder("groups-empty-policy");
    let Some(file) = object(&folder, "program", PROGRAM) else { return };
    let policy = folder.join("layout.toml");
    std::fs::write(&policy, "# nothing yet\n").expect("written");
    let output = run(&["groups", "--policy", policy.to_str().expect("a plain path"), &file]);
    assert!(!output.status.success(), "{}", stdout(&output));
    assert!(stderr(&output).contains("layout.toml: no rules"), "{}", stderr(&output));
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_struct_that_only_a_typedef_names_goes_by_its_name() {
    let source = "#define BEGIN(G) char __cacheline_group_begin__##G[0]
#define END(G) char __cacheline_group_end__##G[0]
typedef struct { long a; BEGIN(rx); long b; END(rx); } conn_t;
conn_t conn;
";
    let folder = folder("groups-typedefs");
    let Some(file) = object(&folder, "program", source) else { return };
    let text = stdout(&run(&["groups", &file]));
    assert!(text.starts_with("conn_t: 16 bytes on 1 line, "), "{text}");
    let asserts = stdout(&run(&["groups", "--asserts", "c11", &file]));
    let c = ["cc", "-std=gnu11", "-fsyntax-only", "-x", "c"];
    assert!(asserts.contains("is in group rx"), "{asserts}");
    assert!(holds(&folder, &c, "#include <stddef.h>", source, &asserts), "{asserts}");
    std::fs::remove_dir_all(&folder).expect("removed");
}
