//! `tallyline advise` on members that are not like others: of lines that only one thread uses, without a name, without
//! a byte of their own, or in front of all. What needs QEMU and a compiler is left out, with a message, where they are
//! not.

mod common;

use common::{compiles, folder, run, stderr, stdout};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Builds a program; none, with a message, where that or a trace of it cannot be had.
fn built(folder: &Path, compiler: &str, file: &str, source: &str) -> Option<String> {
    let has_emulator = Command::new("qemu-x86_64").arg("--version").output().is_ok();
    if !cfg!(target_arch = "x86_64") || !has_emulator {
        eprintln!("skipped: needs x86-64 and qemu-x86_64");
        return None;
    }
    let (path, program) = (folder.join(file), folder.join("program"));
    std::fs::write(&path, source).expect("written");
    let mut command = Command::new(compiler);
    command.args(["-O2", "-g", "-pthread"]).arg(&path).arg("-o").arg(&program);
    compiles(&mut command).then(|| program.to_str().expect("a plain path").to_owned())
}

/// Two functions alone are traced: nothing else accesses what they do.
const WINDOW: [&str; 4] = ["--functions", "first", "--functions", "second"];

/// Returns the advice on a program.
fn advice(program: &str, window: &[&str]) -> Value {
    let words = ["--schedules", "2", "--accesses", "8000"];
    let output = run(&[&["advise", "--json"], window, &words[..], &["--", program]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

/// Returns the members of a finding's proposal by group.
fn groups(finding: &Value) -> Vec<Vec<String>> {
    let mut groups: Vec<Vec<String>> = Vec::new();
    for member in finding["proposal"]["members"].as_array().expect("a layout") {
        let group = member["group"].as_u64().expect("a number") as usize;
        groups.resize(groups.len().max(group + 1), Vec::new());
        groups[group].push(member["name"].as_str().expect("a name").to_owned());
    }
    groups
}

/// A program of two threads that add to members of `shared`, as `first` and `second` say.
fn program(members: &str, first: &str, second: &str) -> String {
    format!(
        "#include <pthread.h>
struct empty {{}};
struct base {{ int kind; }};
{members}
#define ADD(member) __atomic_fetch_add(&shared.member, 1, __ATOMIC_RELAXED)
static void *first(void *data) {{ for (int at = 0; at < 5000; at++) {{ {first} }} return data; }}
static void *second(void *data) {{ for (int at = 0; at < 5000; at++) {{ {second} }} return data; }}
int main(void)
{{
\tpthread_t one, other;
\tpthread_create(&one, 0, first, 0);
\tpthread_create(&other, 0, second, 0);
\tpthread_join(one, 0);
\treturn pthread_join(other, 0);
}}
"
    )
}

#[test]
fn a_field_of_a_line_that_one_thread_uses_stays_with_that_thread() {
    let folder = folder("advise-private-line");
    let members = "static struct queue { char name[48]; unsigned long head, polls, idle, spare; } shared
\t__attribute__((aligned(64)));";
    let source = program(members, "ADD(head);", "ADD(polls); ADD(idle);");
    let Some(program) = built(&folder, "cc", "queue.c", &source) else { return };
    let json = advice(&program, &WINDOW);
    let finding = &json["findings"][0];
    assert_eq!((&finding["kind"], &finding["subject"]), (&"false-sharing".into(), &"queue".into()), "{json}");
    assert_eq!(groups(finding), [["name", "head", "spare"].to_vec(), ["polls", "idle"].to_vec()], "{json}");
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_member_that_cannot_move_alone_keeps_no_finding_away() {
    let cases = [
        ("int low : 3, high : 5;", ["in"].to_vec(), ["out", "low", "high", "next"].to_vec()),
        ("union { long word; double real; };", ["in", ""].to_vec(), ["out", "next"].to_vec()),
        ("struct { long word; double real; };", ["in", ""].to_vec(), ["out", "next"].to_vec()),
        ("struct empty nothing;", ["in"].to_vec(), ["out", "nothing", "next"].to_vec()),
    ];
    for (at, (member, front, back)) in cases.into_iter().enumerate() {
        let folder = folder(&format!("advise-member-{at}"));
        let members = format!(
            "static struct flow {{ unsigned long in, out; {member} unsigned long next; }} shared
\t__attribute__((aligned(64)));"
        );
        let source = program(&members, "ADD(in);", "ADD(out); ADD(next);");
        let Some(program) = built(&folder, "cc", "flow.c", &source) else { return };
        let json = advice(&program, &WINDOW);
        let finding = &json["findings"][0];
        assert_eq!(finding["kind"], "false-sharing", "{member}: {json}");
        assert_eq!(groups(finding), [front, back], "{member}: {json}");
        std::fs::remove_dir_all(folder).expect("removed");
    }
}

#[test]
fn a_type_that_cannot_be_reordered_is_named_with_the_reason() {
    let folder = folder("advise-refused");
    let members = "static struct both { unsigned long in; int low : 8, high : 8; } shared
\t__attribute__((aligned(64)));";
    let bits = "shared.low++; __asm__ volatile(\"\" ::: \"memory\");";
    let source = program(members, "ADD(in);", bits);
    let Some(program) = built(&folder, "cc", "both.c", &source) else { return };
    let json = advice(&program, &WINDOW);
    let refused = &json["dropped"][0];
    assert_eq!((&refused["kind"], &refused["effect"]), (&"false-sharing".into(), &Value::Null), "{json}");
    let proposal = &refused["proposal"];
    assert_eq!((&proposal["kind"], &proposal["type"]), (&"none".into(), &"both".into()), "{json}");
    assert!(proposal["why"].as_str().is_some_and(|why| why.contains("stay together")), "{json}");
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_rule_for_a_class_names_neither_its_base_nor_its_virtual_table() {
    let classes = [
        ("virtual ~flow() {}", "", "_vptr.flow"),
        ("", ": base", "base <ancestor>"),
        ("virtual ~flow() {}", ": base", "_vptr.flow"),
    ];
    for (at, (member, base, front)) in classes.into_iter().enumerate() {
        let folder = folder(&format!("advise-class-{at}"));
        let members = format!(
            "static struct flow {base} {{ {member} unsigned long limit, in, out; }} shared
\t__attribute__((aligned(64)));"
        );
        let source = program(&members, "ADD(in);", "ADD(out);");
        let Some(program) = built(&folder, "c++", "flow.cpp", &source) else { return };
        let json = advice(&program, &["--whole"]);
        let finding = &json["findings"][0];
        assert_eq!(finding["kind"], "false-sharing", "{base}: {json}");
        let first = &finding["proposal"]["members"][0];
        assert_eq!((&first["name"], &first["offset"]), (&front.into(), &0.into()), "{json}");
        let (rule, policy) = (finding["check"].as_str().expect("a rule"), folder.join("layout.toml"));
        assert!(!rule.contains("vptr") && !rule.contains("ancestor"), "{rule}");
        std::fs::write(&policy, rule).expect("written");
        let output = run(&["check", &program, "--policy", policy.to_str().expect("a plain path")]);
        // the layout as it is violates it; a name that the type does not have is an error
        assert_eq!(output.status.code(), Some(1), "{}{}", stdout(&output), stderr(&output));
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
