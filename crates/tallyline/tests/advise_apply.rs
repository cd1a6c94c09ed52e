//! `tallyline advise --apply`: from a program to its edited, verified and measured source. What needs QEMU and compilers
//! is left out, with a message, where they are not.

mod common;

use common::{compiles, folder, run_in, stderr, stdout};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies an example to a folder of its own and builds it; none, with a message, where that or a trace of it cannot be
/// had.
fn project(name: &str, example: &str, build: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example);
    if !source.is_file() {
        eprintln!("skipped: no {}; the package alone does not have the examples", source.display());
        return None;
    }
    let file = source.file_name().and_then(|name| name.to_str()).expect("a plain name");
    project_of(name, file, &std::fs::read_to_string(&source).expect("read"), build)
}

/// Writes a source to a folder of its own and builds it; none, with a message, where that or a trace of it cannot be had.
fn project_of(name: &str, file: &str, source: &str, build: &str) -> Option<PathBuf> {
    let has_emulator = Command::new("qemu-x86_64").arg("--version").output().is_ok();
    if !cfg!(target_arch = "x86_64") || !has_emulator {
        eprintln!("skipped: needs x86-64 and qemu-x86_64");
        return None;
    }
    let folder = folder(name).canonicalize().expect("it is there");
    // a project of its own, whatever is around it
    std::fs::create_dir_all(folder.join(".git")).expect("a folder");
    std::fs::write(folder.join(file), source).expect("written");
    compiles(Command::new("sh").current_dir(&folder).args(["-c", build])).then_some(folder)
}

/// Applies the advice on the program `./a` of a project.
fn applied(folder: &Path, more: &[&str], words: &[&str]) -> Value {
    let first = ["advise", "--apply", "--json", "--schedules", "2", "--accesses", "20000", "--whole"];
    let output = run_in(folder, &[&first, more, &["--", "./a"], words].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

fn text(folder: &Path, file: &str) -> String {
    std::fs::read_to_string(folder.join(file)).expect("read")
}

fn undone(folder: &Path) {
    let output = run_in(folder, &["advise", "--undo"]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn elements_of_threads_get_lines_of_their_own() {
    let build = "cc -O2 -g -pthread pending_writes.c -o a";
    let Some(folder) = project("advise-apply-pending", "cases/pending_writes.c", build) else { return };
    let before = text(&folder, "pending_writes.c");
    // nothing says how it is built
    let words = ["--schedules", "2", "--accesses", "8000", "--whole", "--", "./a", "2000"];
    let output = run_in(&folder, &[&["advise", "--apply"], &words[..]].concat());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("--build verifies by the project's own build"), "{}", stderr(&output));
    assert_eq!(text(&folder, "pending_writes.c"), before);

    // what does not pay is not kept, and no program is a million times faster by this
    let measured = ["--build", build, "--measure", "./a 2000", "--pairs", "2", "--keep-if", "1000000"];
    let json = applied(&folder, &measured, &["2000"]);
    let edits = &json["edits"];
    assert_eq!((&edits["applied"], &edits["built"]), (&false.into(), &true.into()), "{edits}");
    assert_eq!(edits["speed_up"]["pairs"], 2, "{edits}");
    assert_eq!(text(&folder, "pending_writes.c"), before);

    let entry = serde_json::json!([{
        "directory": folder, "file": "pending_writes.c", "command": "cc -O2 -c pending_writes.c",
    }]);
    std::fs::write(folder.join("compile_commands.json"), entry.to_string()).expect("written");
    let json = applied(&folder, &[], &["2000"]);
    let edits = &json["edits"];
    assert_eq!((&edits["applied"], &edits["verified"]["units"]), (&true.into(), &1.into()), "{edits}");
    let after = text(&folder, "pending_writes.c");
    assert!(after.contains("_Static_assert(_Alignof(struct pending) % 64 == 0, "), "{after}");
    assert!(compiles(Command::new("sh").current_dir(&folder).args(["-c", build])));
    let layout = stdout(&run_in(&folder, &["layout", "--sizes", "./a"]));
    assert!(layout.contains("pending\t64\t"), "{layout}");
    undone(&folder);
    assert_eq!(text(&folder, "pending_writes.c"), before);

    // assertions that a build does not take are left out, and none are written where none are wanted
    std::fs::remove_file(folder.join("compile_commands.json")).expect("removed");
    assert!(compiles(Command::new("sh").current_dir(&folder).args(["-c", build])));
    let picky = format!("! grep -q _Static_assert pending_writes.c && {build}");
    for words in [&["--build", &picky][..], &["--build", build, "--assertions", "none"]] {
        let json = applied(&folder, words, &["2000"]);
        assert_eq!(json["edits"]["applied"], true, "{json}");
        let after = text(&folder, "pending_writes.c");
        assert!(after.contains("aligned(64)") && !after.contains("_Static_assert"), "{after}");
        undone(&folder);
    }
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn members_of_a_class_keep_their_initialisers() {
    let build = "c++ -std=c++17 -O2 -g -pthread order_book.cc -o a";
    let Some(folder) = project("advise-apply-book", "order-book/order_book.cc", build) else { return };
    let before = text(&folder, "order_book.cc");
    // so many orders that the sides overlap under load, too: where one ends before the other starts nothing is shared
    let json = applied(&folder, &["--build", build], &["40000"]);
    let edits = &json["edits"];
    assert_eq!((&edits["applied"], &edits["built"]), (&true.into(), &true.into()), "{edits}");
    let after = text(&folder, "order_book.cc");
    assert!(after.contains(" alignas(64) = 0;\n"), "{after}");
    assert!(after.contains("std::uint32_t lot = 10;\n"), "{after}");
    let asserted = "static_assert(__builtin_offsetof(Book, ask_orders) % 64 == 0, \"ask_orders begins a cache line\");\n";
    assert!(after.contains(asserted), "{after}");
    assert!(compiles(Command::new("sh").current_dir(&folder).args(["-c", build])));
    let status = Command::new(folder.join("a")).arg("1000").output().expect("run");
    assert!(status.status.success(), "{status:?}");
    undone(&folder);
    assert_eq!(text(&folder, "order_book.cc"), before);
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn counters_of_c_are_striped_and_their_uses_are_calls() {
    let build = "cc -O2 -g -Wall -Wextra -Werror -pthread flow_table.c -o a";
    let Some(folder) = project("advise-apply-flow", "flow-table/flow_table.c", build) else { return };
    let before = text(&folder, "flow_table.c");
    let json = applied(&folder, &["--build", build], &["2", "8000"]);
    let edits = &json["edits"];
    assert_eq!((&edits["applied"], &edits["built"]), (&true.into(), &true.into()), "{edits}");
    let table = edits["types"].as_array().and_then(|all| all.iter().find(|one| one["name"] == "flow_table"));
    let table = table.expect("the table");
    assert_eq!(table["counters"], serde_json::json!(["packets", "bytes"]), "{table}");
    let after = text(&folder, "flow_table.c");
    assert!(after.contains("\tstriped_counter_add(&table.bytes, length);\n"), "{after}");
    // another struct's member of the same name stays
    assert!(after.contains("\tflow->packets++;\n"), "{after}");
    assert!(compiles(Command::new("sh").current_dir(&folder).args(["-c", build])));
    let output = Command::new(folder.join("a")).args(["3", "1000"]).output().expect("run");
    assert!(output.status.success() && stdout(&output).starts_with("3000 packets"), "{output:?}");
    undone(&folder);
    assert_eq!(text(&folder, "flow_table.c"), before);

    // with a list of the units' compilers there is no build to ask
    let entry = serde_json::json!([{
        "directory": folder, "file": "flow_table.c", "command": "cc -O2 -c flow_table.c",
    }]);
    std::fs::write(folder.join("compile_commands.json"), entry.to_string()).expect("written");
    assert!(compiles(Command::new("sh").current_dir(&folder).args(["-c", build])));
    let json = applied(&folder, &[], &["2", "8000"]);
    assert_eq!(json["edits"]["verified"]["units"], 1, "{}", json["edits"]);
    assert_eq!(text(&folder, "flow_table.c"), after);
    undone(&folder);
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_counter_that_is_used_otherwise_is_left_and_named() {
    let build = "cc -O2 -g -pthread flow_table.c -o a";
    let Some(folder) = project("advise-apply-other", "flow-table/flow_table.c", build) else { return };
    // the one is reset, and of the other an addition's result is used
    let source = text(&folder, "flow_table.c")
        .replace("\tfree(table.flows);\n", "\tfree(table.flows);\n\ttable.packets = received;\n");
    std::fs::write(folder.join("flow_table.c"), &source).expect("written");
    assert!(compiles(Command::new("sh").current_dir(&folder).args(["-c", build])));
    let json = applied(&folder, &["--build", build], &["2", "8000"]);
    let table =
        json["edits"]["types"].as_array().and_then(|all| all.iter().find(|one| one["name"] == "flow_table"));
    let table = table.expect("the table").clone();
    assert_eq!(table["counters"], serde_json::json!(["bytes"]), "{table}");
    assert_eq!(table["kept"][0]["member"], "packets", "{table}");
    assert_eq!(table["kept"][0]["refused"], "other-use", "{table}");
    let evidence = table["kept"][0]["evidence"].as_str().expect("words");
    assert!(evidence.contains("table.packets = received"), "{evidence}");
    undone(&folder);

    let used = source.replace("\ttable.packets = received;\n", "").replace(
        "\tatomic_fetch_add_explicit(&table.bytes,",
        "\tflow->last_seen = atomic_fetch_add_explicit(&table.bytes,",
    );
    std::fs::write(folder.join("flow_table.c"), &used).expect("written");
    assert!(compiles(Command::new("sh").current_dir(&folder).args(["-c", build])));
    let json = applied(&folder, &["--build", build], &["2", "8000"]);
    let all = json["edits"]["types"].as_array().expect("types").clone();
    let bytes =
        |one: &Value| one["counters"].as_array().is_some_and(|all| all.iter().any(|name| name == "bytes"));
    assert!(!all.iter().any(bytes), "{all:?}");
    undone(&folder);
    assert_eq!(text(&folder, "flow_table.c"), used);
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn an_error_of_the_edited_copy_names_the_line_of_the_file() {
    let build = "c++ -O2 -g -pthread a.cc -o a";
    let source = "#include <atomic>\n#include <cstdlib>\n#include <thread>\nclass Reads {\npublic:\n  \
        Reads() : limit(100), reads_(0) {}\n  void note() { reads_.fetch_add(1, std::memory_order_relaxed); }\n  \
        long limit;\n  std::atomic<long> reads_;\n};\nstatic Reads reads;\nint main(int, char **words) {\n  \
        auto run = [=] { for (long n = std::atol(words[1]); n > 0; n--) reads.note(); };\n  \
        std::thread one(run), two(run);\n  one.join();\n  two.join();\n  return reads.limit != 100;\n}\n";
    let Some(folder) = project_of("advise-apply-line", "a.cc", source, build) else { return };
    let words = [
        "advise",
        "--apply",
        "--build",
        build,
        "--schedules",
        "2",
        "--accesses",
        "8000",
        "--",
        "./a",
        "100000",
    ];
    let output = run_in(&folder, &words);
    let said = stderr(&output);
    assert!(said.contains("Reads.reads_: kept as it is: other-use: a.cc:6:"), "{output:?}");
    assert!(
        said.contains("; a striped counter begins at 0 and takes no initial value: leave reads_ out"),
        "{said}"
    );
    assert_eq!(text(&folder, "a.cc"), source);
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn counters_of_rust_change_their_declaration_and_initial_values() {
    let build = "rustc -D warnings -O -g cache_server.rs -o a";
    let Some(folder) = project("advise-apply-cache", "cache-server/cache_server.rs", build) else { return };
    let before = text(&folder, "cache_server.rs");
    let json = applied(&folder, &["--build", build], &["2", "8000"]);
    let edits = &json["edits"];
    assert_eq!((&edits["applied"], &edits["built"]), (&true.into(), &true.into()), "{edits}");
    let after = text(&folder, "cache_server.rs");
    assert!(after.contains("        misses: StripedU64::new(0),\n"), "{after}");
    assert!(compiles(Command::new("sh").current_dir(&folder).args(["-c", build])));
    // the program compares its counts with the requests
    let output = Command::new(folder.join("a")).args(["3", "1000"]).output().expect("run");
    assert!(output.status.success(), "{output:?}");
    undone(&folder);
    assert_eq!(text(&folder, "cache_server.rs"), before);
    std::fs::remove_dir_all(folder).expect("removed");
}

/// A queue of two units of C++, whose counts are in a header: a class's own functions and another unit add to them.
const QUEUE: [(&str, &str); 3] = [
    (
        "queue.h",
        "#pragma once\n#include <atomic>\n\nclass Queue {\npublic:\n  void push(long n) { pushed += n; }\n  \
         long total() const { return pushed + popped.load(); }\n  long limit = 7;\n  std::atomic<long> popped{0};\n\n\
         private:\n  std::atomic<long> pushed{0};\n};\n\nextern Queue queue;\nvoid pop(long n);\n",
    ),
    ("pop.cc", "#include \"queue.h\"\n\nQueue queue;\n\nvoid pop(long n) { queue.popped.fetch_add(n); }\n"),
    (
        "main.cc",
        "#include \"queue.h\"\n#include <thread>\n#include <cstdlib>\n\nstatic void run(long rounds) {\n  \
         for (long at = 0; at < rounds; at++) {\n    queue.push(queue.limit);\n    pop(1);\n  }\n}\n\n\
         int main(int, char **words) {\n  long rounds = atol(words[1]);\n  std::thread one(run, rounds), \
         other(run, rounds);\n  one.join();\n  other.join();\n  return queue.total() == 16 * rounds ? 0 : 1;\n}\n",
    ),
];

#[test]
fn counters_of_a_class_in_a_header_need_no_other_text_where_they_are_used() {
    let build = "c++ -std=c++17 -Wall -Wextra -Werror -O1 -g -pthread pop.cc main.cc -o a";
    let has_emulator = Command::new("qemu-x86_64").arg("--version").output().is_ok();
    if !cfg!(target_arch = "x86_64") || !has_emulator {
        eprintln!("skipped: needs x86-64 and qemu-x86_64");
        return;
    }
    let folder = folder("advise-apply-queue").canonicalize().expect("it is there");
    std::fs::create_dir_all(folder.join(".git")).expect("a folder");
    for (name, text) in QUEUE {
        std::fs::write(folder.join(name), text).expect("written");
    }
    if !compiles(Command::new("sh").current_dir(&folder).args(["-c", build])) {
        return;
    }
    let json = applied(&folder, &["--build", build], &["10000"]);
    let types = &json["edits"]["types"];
    assert_eq!(types[0]["name"], "Queue", "{json}");
    assert_eq!(types[0]["counters"].as_array().map(Vec::len), Some(2), "{types}");
    let header = text(&folder, "queue.h");
    assert!(header.contains("  StripedCounter<long> popped;\n"), "{header}");
    assert_eq!((text(&folder, "pop.cc"), text(&folder, "main.cc")), (QUEUE[1].1.into(), QUEUE[2].1.into()));
    assert!(compiles(Command::new("sh").current_dir(&folder).args(["-c", build])));
    let output = Command::new(folder.join("a")).arg("1000").output().expect("run");
    assert!(output.status.success(), "{output:?}");
    undone(&folder);
    assert_eq!(text(&folder, "queue.h"), QUEUE[0].1);
    std::fs::remove_dir_all(folder).expect("removed");
}

/// A queue in Rust: one thread writes beside what another one writes. Each goes on until both have done their rounds, so
/// that they run side by side for as long as the trace needs, however loaded the machine is.
const RING: &str = "use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::{Acquire, Relaxed, Release}};

static RUNNING: AtomicU64 = AtomicU64::new(2);

#[derive(Debug, Default)]
pub struct Ring {
    step: u64,
    head: AtomicU64,
    tail: AtomicU64,
}

impl Ring {
    fn new(step: u64) -> Self {
        let head = AtomicU64::new(1);
        Self { step, head, tail: AtomicU64::new(1) }
    }
}

fn repeat(rounds: u64, mut update: impl FnMut()) -> u64 {
    let (mut done, mut is_over) = (0, false);
    while !is_over || RUNNING.load(Acquire) > 0 {
        for _ in 0..1000 {
            update();
        }
        done += 1000;
        if !is_over && done >= rounds {
            is_over = true;
            RUNNING.fetch_sub(1, Release);
        }
    }
    done
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1000);
    let ring = Arc::new(Ring::new(1));
    let (one, other) = (Arc::clone(&ring), Arc::clone(&ring));
    let writer = std::thread::spawn(move || {
        repeat(rounds, || one.head.store(one.head.load(Relaxed) + one.step, Release))
    });
    let reader = std::thread::spawn(move || {
        repeat(rounds, || other.tail.store(other.tail.load(Relaxed) + other.step, Release))
    });
    let written = writer.join().expect(\"a thread\") + reader.join().expect(\"a thread\");
    assert_eq!(ring.head.load(Acquire) + ring.tail.load(Relaxed), written + 2);
}
";

#[test]
fn fields_of_rust_come_to_lines_of_their_own_by_a_type_around_them() {
    let build = "rustc --edition 2021 -D warnings -O -g ring.rs -o a";
    let has_emulator = Command::new("qemu-x86_64").arg("--version").output().is_ok();
    if !cfg!(target_arch = "x86_64") || !has_emulator {
        eprintln!("skipped: needs x86-64 and qemu-x86_64");
        return;
    }
    let folder = folder("advise-apply-ring").canonicalize().expect("it is there");
    std::fs::create_dir_all(folder.join(".git")).expect("a folder");
    std::fs::write(folder.join("ring.rs"), RING).expect("written");
    if !compiles(Command::new("sh").current_dir(&folder).args(["-c", build])) {
        return;
    }
    let json = applied(&folder, &["--build", build], &["40000"]);
    let types = &json["edits"]["types"];
    assert!(types[0]["name"].as_str().is_some_and(|name| name.ends_with("Ring")), "{json}");
    let lines = types[0]["lines"].as_array().expect("names");
    assert!(!lines.is_empty(), "{types}");
    let after = text(&folder, "ring.rs");
    assert!(after.contains(": CacheLine<AtomicU64>,\n"), "{after}");
    assert!(after.contains("CacheLine(head)") || after.contains("CacheLine(AtomicU64::new(1))"), "{after}");
    assert!(compiles(Command::new("sh").current_dir(&folder).args(["-c", build])));
    assert!(Command::new(folder.join("a")).status().expect("run").success());
    undone(&folder);
    assert_eq!(text(&folder, "ring.rs"), RING);
    std::fs::remove_dir_all(folder).expect("removed");
}

/// A program of two threads that add to `in` and `out` of a struct.
fn two_threads(declaration: &str) -> String {
    format!(
        "#include <pthread.h>
struct base {{ int kind; }};
{declaration}
static struct flow shared __attribute__((aligned(64)));
#define ADD(member) for (int at = 0; at < 5000; at++) __atomic_fetch_add(&shared.member, 1, __ATOMIC_RELAXED)
static void *first(void *data) {{ ADD(in); return data; }}
static void *second(void *data) {{ ADD(out); return data; }}
int main(void)
{{
\tpthread_t one, other;
\tpthread_create(&one, 0, first, 0);
\tpthread_create(&other, 0, second, 0);
\tpthread_join(one, 0);
\tpthread_join(other, 0);
\treturn shared.in != shared.out;
}}
"
    )
}

#[test]
fn structs_with_members_that_cannot_move_alone_are_edited() {
    let cases = [
        ("bits.c", "struct flow {\n\tlong in;\n\tlong out;\n\tint low : 3, high : 5;\n\tlong next;\n};"),
        ("union.c", "struct flow {\n\tlong in;\n\tlong out;\n\tunion { long word; double real; };\n};"),
        ("base.cpp", "struct flow : base {\n\tlong limit;\n\tlong in;\n\tlong out;\n};"),
        ("table.cpp", "struct flow {\n\tvirtual ~flow() {}\n\tlong limit;\n\tlong in;\n\tlong out;\n};"),
    ];
    for (file, declaration) in cases {
        let compiler = if file.ends_with("cpp") { "c++" } else { "cc" };
        let build = format!("{compiler} -O2 -g -pthread {file} -o a");
        let name = format!("advise-apply-{}", file.replace('.', "-"));
        let source = two_threads(declaration);
        let Some(folder) = project_of(&name, file, &source, &build) else { return };
        let json = applied(&folder, &["--build", &build], &[]);
        let edits = &json["edits"];
        assert_eq!((&edits["applied"], &edits["built"]), (&true.into(), &true.into()), "{file}: {edits}");
        assert!(!text(&folder, file).contains(declaration), "{file}");
        undone(&folder);
        assert_eq!(text(&folder, file), source);
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
