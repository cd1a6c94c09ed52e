//! `tallyline advise` and `tallyline sharing-check`. What needs QEMU and a C compiler is left out, with a message,
//! where they are not.

mod common;

use common::{compiles, folder, run, stderr, stdout};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A trace of two threads that each write a field of one struct 400 times, and the program's folder.
fn pair() -> (String, String) {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/trace");
    let text = |path: &Path| path.to_str().expect("a plain path").to_string();
    (text(&data.join("pair.trace")), text(&data))
}

fn example(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(path)
}

/// Builds an example; none, with a message, where that or a trace of it cannot be had.
fn built(folder: &Path, source: &str, name: &str, words: &[&str]) -> Option<String> {
    if !example(source).is_file() {
        eprintln!("skipped: no {}; the package alone does not have the examples", example(source).display());
        return None;
    }
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-g", "-pthread"]).arg(example(source)).args(words);
    built_by(&mut compiler, folder, name)
}

/// Builds a program by a compiler that only has to be told where it goes; none, with a message, where that or a trace of
/// it cannot be had.
fn built_by(compiler: &mut Command, folder: &Path, name: &str) -> Option<String> {
    let has_emulator = Command::new("qemu-x86_64").arg("--version").output().is_ok();
    if !cfg!(target_arch = "x86_64") || !has_emulator {
        eprintln!("skipped: needs x86-64 and qemu-x86_64");
        return None;
    }
    let program = folder.join(name);
    compiles(compiler.arg("-o").arg(&program)).then_some(())?;
    Some(program.to_str().expect("a plain path").to_owned())
}

fn advice(words: &[&str]) -> Value {
    let output = run(&[&["advise", "--json"], words].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    // the document alone: what the program prints is no part of it
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

#[test]
fn the_same_trace_gives_the_same_advice() {
    let (trace, programs) = pair();
    let words = ["--trace", &trace, "--symfs", &programs];
    let (one, other) = (advice(&words), advice(&words));
    assert_eq!(one, other);
    assert_eq!(one["schema"], 1);
    assert_eq!(one["model"]["schedules"], 6);
}

#[test]
fn a_trace_against_itself_passes_the_check() {
    let (trace, programs) = pair();
    let words =
        ["sharing-check", "--base", &trace, "--head", &trace, "--symfs", &programs, "--format", "json"];
    let output = run(&words);
    assert!(output.status.success(), "{}", stderr(&output));
    let json: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(json["percent"][0], json["percent"][1]);
    for list in ["gained", "lost", "uncertain"] {
        assert_eq!(json[list], Value::Array(Vec::new()), "{list}");
    }
    let output = run(&[&words[..], &["--base", &trace]].concat());
    let json: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(json["traces"], serde_json::json!([2, 1]));
    let output = run(&[&words[..], &["--base", "/bin/true"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("/bin/true is no trace"), "{}", stderr(&output));
}

/// Two threads that take turns as the scheduler has it: what they do differs from run to run.
const RACE: &str = "#include <pthread.h>
#include <stdatomic.h>
static struct { _Alignas(64) atomic_long taken; long tasks[2], misses[2]; } pool;
static void *run(void *data)
{
\tlong self = (long)data;
\twhile (pool.taken < 4000) {
\t\tlong seen = pool.taken;
\t\tif (seen / 64 % 2 == self || seen % 3)
\t\t\tatomic_fetch_add(&pool.taken, 1), pool.tasks[self]++;
\t\telse
\t\t\tpool.misses[self]++;
\t}
\treturn 0;
}
int main(void)
{
\tpthread_t other;
\tpthread_create(&other, 0, run, (void *)1);
\trun(0);
\treturn pthread_join(other, 0);
}
";

#[test]
fn a_build_whose_runs_differ_passes_the_check_against_itself() {
    let folder = folder("sharing-race");
    let source = folder.join("race.c");
    std::fs::write(&source, RACE).expect("written");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-g", "-pthread"]).arg(&source);
    let Some(program) = built_by(&mut compiler, &folder, "race") else { return };
    let words =
        ["sharing-check", "--base", &program, "--head", &program, "--schedules", "2", "--accesses", "8000"];
    let output = run(&words);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn waits_without_a_finding_and_other_processes_are_left_open() {
    let folder = folder("advise-open");
    let source = folder.join("tickets.c");
    let text = "#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>
static struct { char before[128]; atomic_ulong next; char behind[128]; } queue;
static void *run(void *data)
{
\tunsigned long sum = 0;
\tfor (int at = 0; at < 20000; at++)
\t\tsum += atomic_fetch_add(&queue.next, 1);
\treturn (void *)sum;
}
int main(void)
{
\tpthread_t other;
\tif (!fork())
\t\t_exit(0);
\twait(0);
\tpthread_create(&other, 0, run, 0);
\trun(0);
\treturn pthread_join(other, 0);
}
";
    std::fs::write(&source, text).expect("written");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-g", "-pthread"]).arg(&source);
    let Some(program) = built_by(&mut compiler, &folder, "tickets") else { return };
    let json = advice(&["--whole", "--schedules", "2", "--accesses", "8000", "--", &program]);
    assert_eq!(json["findings"], Value::Array(Vec::new()), "{json}");
    let notes = json["notes"].to_string();
    let wait = "queue.next: run tickets.c:10 adds to it and takes the old value";
    assert!(notes.contains(wait), "{notes}");
    assert!(notes.contains("1 other traced process, and memory shared with it"), "{notes}");
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_file_that_is_no_trace_is_named() {
    let output = run(&["advise", "--trace", "/dev/null"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("/dev/null"), "{}", stderr(&output));
}

#[test]
fn shared_counters_become_statctrs_and_packed_statistics_get_lines() {
    let folder = folder("advise-flow");
    let Some(program) = built(&folder, "flow-table/flow_table.c", "flow_table", &[]) else { return };
    let json = advice(&["--whole", "--schedules", "2", "--accesses", "8000", "--", &program, "2", "5000"]);
    let findings = json["findings"].as_array().expect("findings");
    let counter = findings.iter().find(|finding| finding["kind"] == "contended-counter").expect("a counter");
    let names: Vec<&str> =
        counter["proposal"]["names"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
    assert_eq!(names, ["flow_table.packets", "flow_table.bytes"]);
    let site = &counter["fields"][0]["sites"][0];
    assert!(site["file"].as_str().is_some_and(|file| file.ends_with("flow_table.c")), "{site}");
    assert!(counter["effect"]["run"]["median"].as_f64().is_some_and(|median| median > 1.5), "{counter}");
    std::fs::remove_dir_all(folder).expect("removed");
}

/// A struct with one atomic integer, on the heap, that two threads add to.
const ONE_ATOMIC: &str = r#"
#include <atomic>
#include <pthread.h>
struct total { std::atomic<unsigned long> count{0}; };
static total *all;
static void *run(void *) {
    for (int at = 0; at < 4000; at++)
        all->count.fetch_add(1);
    return nullptr;
}
int main() {
    all = new total;
    pthread_t threads[2];
    for (auto &thread : threads)
        pthread_create(&thread, nullptr, run, nullptr);
    for (auto &thread : threads)
        pthread_join(thread, nullptr);
    delete all;
}
"#;

#[test]
fn a_struct_with_one_atomic_is_named_wherever_it_lies() {
    let folder = folder("advise-one-atomic");
    let source = folder.join("total.cc");
    std::fs::write(&source, ONE_ATOMIC).expect("written");
    let source = source.to_str().expect("a plain path");
    let Some(program) = built(&folder, source, "total", &["-lstdc++"]) else { return };
    let json = advice(&["--whole", "--schedules", "2", "--accesses", "8000", "--", &program]);
    let found = json["findings"].as_array().expect("findings");
    assert_eq!(found.len(), 1, "{json}");
    assert_eq!(found[0]["kind"], "contended-counter");
    assert_eq!(found[0]["subject"], "total.count");
    std::fs::remove_dir_all(folder).expect("removed");
}

/// A struct of two atomic integers in an `Arc`, each of which a thread adds to. They begin together: a thread that is
/// late meets the other one's end at a lock of the library, and the replay keeps that order.
const TWO_ATOMICS: &str = r#"
use std::sync::{Arc, Barrier};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
static BEGIN: Barrier = Barrier::new(2);
#[derive(Default)]
struct Totals { hits: AtomicU64, misses: AtomicU64 }
fn main() {
    let totals = Arc::new(Totals::default());
    let threads: Vec<_> = (0..2).map(|number| {
        let totals = Arc::clone(&totals);
        std::thread::spawn(move || {
            BEGIN.wait();
            for _ in 0..4000 {
                if number == 0 { totals.hits.fetch_add(1, Relaxed); } else { totals.misses.fetch_add(1, Relaxed); }
            }
        })
    }).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
"#;

#[test]
fn a_small_struct_within_one_of_the_library_is_named() {
    let folder = folder("advise-two-atomics");
    let source = folder.join("totals.rs");
    std::fs::write(&source, TWO_ATOMICS).expect("written");
    let mut compiler = Command::new("rustc");
    compiler.args(["--edition=2021", "-O", "-g"]).arg(&source);
    let Some(program) = built_by(&mut compiler, &folder, "totals") else { return };
    let json = advice(&["--whole", "--schedules", "2", "--accesses", "8000", "--", &program]);
    let found = json["findings"].as_array().expect("findings");
    assert_eq!(found.len(), 1, "{json}");
    assert_eq!(found[0]["kind"], "false-sharing");
    assert!(found[0]["subject"].as_str().is_some_and(|name| name.ends_with("Totals")), "{json}");
    let fields: Vec<&str> = found[0]["fields"]
        .as_array()
        .expect("fields")
        .iter()
        .filter_map(|field| field["field"].as_str())
        .collect();
    assert_eq!(fields, ["hits", "misses"]);
    // the additions are inlined from the library: the program's own line says more than that
    let line = TWO_ATOMICS.lines().position(|line| line.contains("fetch_add")).expect("a line") + 1;
    let places: Vec<&Value> = found[0]["fields"]
        .as_array()
        .expect("fields")
        .iter()
        .flat_map(|field| field["sites"].as_array())
        .flatten()
        .collect();
    let atomic: Vec<&&Value> = places.iter().filter(|place| place["atomic"] == true).collect();
    assert!(!atomic.is_empty(), "{json}");
    for place in atomic {
        let file = place["file"].as_str().is_some_and(|file| file.ends_with("totals.rs"));
        assert!(file && place["line"] == line, "{place}");
    }
    std::fs::remove_dir_all(folder).expect("removed");
}

/// The reduced cases, and the field that is on their lines.
const CASES: [(&str, &str); 4] = [
    ("per_thread_memory", "used_memory.bytes"),
    ("pending_writes", "pending.count"),
    ("barrier", "pool.passed"),
    ("shared_events", "events.rows"),
];

#[test]
fn reduced_cases_of_real_changes_are_told_from_their_fixed_forms() {
    for (name, field) in CASES {
        let folder = folder(&format!("sharing-{name}"));
        let source = format!("cases/{name}.c");
        let Some(naive) = built(&folder, &source, "naive", &[]) else { return };
        let fixed = built(&folder, &source, "fixed", &["-DFIXED"]).expect("built as the other");
        let check = |base: &str, head: &str, format: &str| {
            let words =
                ["sharing-check", "--base", base, "--head", head, "--schedules", "2", "--format", format];
            run(&[&words[..], &["--accesses", "8000", "--", "2000"]].concat())
        };
        let worse = check(&fixed, &naive, "json");
        assert_eq!(worse.status.code(), Some(1), "{name}: {}", stderr(&worse));
        let json: Value = serde_json::from_str(&stdout(&worse)).expect("JSON");
        let fields = json["gained"][0]["fields"].as_array().expect("fields");
        assert!(fields.iter().any(|found| found == field), "{name}: {fields:?}");
        std::fs::remove_dir_all(folder).expect("removed");
    }
}

#[test]
fn keys_behind_pointers_are_found_and_embedded_ones_are_not() {
    let folder = folder("advise-pointers");
    let Some(naive) = built(&folder, "cases/embedded_key.c", "naive", &[]) else { return };
    let fixed = built(&folder, "cases/embedded_key.c", "fixed", &["-DFIXED"]).expect("built as the other");
    let of = |program: &str| {
        let words =
            ["--functions", "look_up", "--schedules", "2", "--accesses", "60000", "--", program, "30000"];
        advice(&words)
    };
    let json = of(&naive);
    let found = &json["findings"][0];
    assert_eq!(
        (found["kind"].as_str(), found["subject"].as_str()),
        (Some("pointer-chasing"), Some("entry")),
        "{json}"
    );
    let proposal =
        serde_json::json!({"kind": "embed", "pointer": "entry.key", "target": "key", "size": [24, 40]});
    assert_eq!(found["proposal"], proposal);
    assert_eq!(of(&fixed)["findings"], serde_json::json!([]));
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn hot_functions_alone_have_the_finding_of_the_whole_program() {
    let folder = folder("advise-window");
    let Some(program) = built(&folder, "cases/shared_events.c", "events", &[]) else { return };
    for more in [&["--whole"][..], &[]] {
        let json = advice(
            &[&["--schedules", "2", "--accesses", "8000"], more, &["--", &program, "100000"]].concat(),
        );
        assert_eq!(json["findings"][0]["kind"], "contended-counter", "{more:?}: {json}");
    }
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn missing_symbols_and_debug_information_are_what_is_missed() {
    let folder = folder("advise-stripped");
    let Some(program) = built(&folder, "cases/shared_events.c", "events", &["-s"]) else { return };
    let words =
        ["advise", "--schedules", "2", "--accesses", "8000", "--max-size", "8M", "--", &program, "8000000"];
    let output = run(&words);
    assert!(output.status.success(), "{}", stderr(&output));
    let (said, text) = (stderr(&output), stdout(&output));
    // where the command cannot be sampled there are no samples to have symbols
    if !said.contains("cannot be sampled") {
        assert!(said.contains("samples of the clock fell on a function with a symbol"), "{said}");
        assert!(!said.contains("too few"), "{said}");
    }
    assert!(text.contains("Nothing to advise.\n"), "{text}");
    assert!(text.contains("Left open: events has no debug information"), "{text}");
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn commands_that_are_not_there_or_fail_are_said_to() {
    let output = run(&["advise", "--", "./nonexist"]);
    assert_eq!(stderr(&output), "tallyline: ./nonexist: no such program\n");
    assert_eq!(output.status.code(), Some(2));

    let folder = folder("advise-failing");
    let source = folder.join("failing.c");
    std::fs::write(&source, "int main(int n, char **words) { return n == 2 ? 3 : 0; }\n").expect("written");
    let Some(program) = built_by(Command::new("cc").arg("-g").arg(&source), &folder, "failing") else {
        return;
    };
    for (words, note) in [(&["x"][..], true), (&[], false)] {
        let json = advice(&[&["--whole", "--schedules", "1", "--", &program], words].concat());
        let notes = json["notes"].to_string();
        assert_eq!(notes.contains("the traced command failed (exit status: 3)"), note, "{notes}");
    }
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_trace_that_is_full_states_no_slow_down_and_the_time_that_it_took() {
    let folder = folder("advise-full");
    let Some(program) = built(&folder, "cases/shared_events.c", "events", &[]) else { return };
    let json = |size: &str| {
        let words = ["--functions", "run", "--schedules", "1", "--accesses", "1000", "--max-size", size];
        advice(&[&words[..], &["--", &program, "100000"]].concat())
    };
    let full = json("64K");
    let (after, seconds) = (full["full_after"].as_f64(), full["traced_seconds"].as_f64());
    let (after, seconds) = (after.expect("a time"), seconds.expect("a time"));
    assert!((0.0..=seconds).contains(&after), "{after} of {seconds}");
    assert!(full["window"]["slowdown"].is_null(), "{full}");
    let notes = full["notes"].to_string();
    assert!(notes.contains("the trace was full (--max-size) after"), "{notes}");
    assert!(!notes.contains("times the run's time"), "{notes}");
    let all = json("1G");
    assert!(all["full_after"].is_null(), "{all}");
    // where the command cannot be sampled there is no plain run
    let window = &all["window"];
    assert_eq!(window["slowdown"].is_null(), window["seconds"].is_null(), "{all}");
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn loads_and_windows_are_of_commands_alone() {
    for other in [["-p", "1"], ["-i", "some.data"], ["--trace", "some.trace"]] {
        for option in [["--load", "true"], ["--functions", "main"]] {
            let output = run(&[&["advise"], &option[..], &other[..]].concat());
            assert_eq!(output.status.code(), Some(2));
            let expected = format!("the argument '{}", option[0]);
            assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
        }
    }
}

/// A server on a Unix socket: each byte that a client sends is counted by two threads.
const SERVER: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
struct served { volatile unsigned long even, odd; };
static struct served served;
static int listener;
__attribute__((noinline)) static void count(int odd)
{
	for (int at = 0; at < 20000; at++)
		if (odd) served.odd++; else served.even++;
}
static void *work(void *odd)
{
	char byte;
	for (;;) {
		int client = accept(listener, NULL, NULL);
		while (read(client, &byte, 1) == 1) count(odd != NULL);
		close(client);
	}
}
int main(int argc, char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	pthread_t thread;
	count(0);
	strcpy(address.sun_path, argv[argc - 1]);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 9)) return 1;
	pthread_create(&thread, NULL, work, &thread);
	work(NULL);
}
"#;

#[test]
fn a_server_is_traced_from_the_start_of_its_load_to_its_end() {
    let folder = folder("advise-load");
    let (source, program) = (folder.join("server.c"), folder.join("server"));
    std::fs::write(&source, SERVER).expect("written");
    let has_programs = Command::new("qemu-x86_64").arg("--version").output().is_ok()
        && Command::new("python3").arg("--version").output().is_ok();
    if !cfg!(target_arch = "x86_64") || !has_programs {
        eprintln!("skipped: needs x86-64, qemu-x86_64 and python3");
        return;
    }
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-g", "-pthread", "-o"]).arg(&program).arg(&source);
    let Some(()) = compiles(&mut compiler).then_some(()) else { return };
    let program = program.to_str().expect("a plain path");
    let socket = folder.join("socket");
    let socket = socket.to_str().expect("a plain path");
    let load = format!(
        "python3 -c \"import socket, os; all = [socket.socket(socket.AF_UNIX) for _ in range(2)]; \
         [(one.connect('{socket}'), one.send(b'abc'), one.shutdown(1), one.recv(1)) for one in all]; \
         os.unlink('{socket}')\""
    );
    let words = ["--functions", "count", "--accesses", "8000", "--load", &load, "--", program, socket];
    let json = advice(&words);
    // six bytes, each of which is 20 000 loads and stores; the count before the load is left out, and so is what the
    // threads had not written when the server was killed
    let accesses = json["accesses"].as_u64().expect("a number");
    assert!((100_000..241_000).contains(&accesses), "{accesses}");
    assert_eq!(json["window"]["functions"], 1);
    assert!(json["window"]["seconds"].is_array() || json["window"]["samples"][0] == 0, "{json}");

    let failing = run(&["advise", "--load", "exit 3", "--", program, socket]);
    assert_eq!(failing.status.code(), Some(2));
    assert!(stderr(&failing).contains("the load `exit 3` failed"), "{}", stderr(&failing));
    let missing = run(&["advise", "--functions", "no_such", "--", program, socket]);
    assert!(stderr(&missing).contains("has no function `no_such`"), "{}", stderr(&missing));
    std::fs::remove_dir_all(folder).expect("removed");
}

/// Two threads that hand work to each other, and spin until it comes: most of their time. What they work on is counted in
/// two words of one line.
const HANDED_OVER: &str = r#"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
struct counted { unsigned long padding[8]; atomic_ulong sent; atomic_ulong received; unsigned long more[6]; };
static struct counted counted __attribute__((aligned(64)));
static _Alignas(64) atomic_ulong turn;
static unsigned long rounds;
__attribute__((noinline)) static void await_turn(unsigned long mine)
{
	while ((atomic_load_explicit(&turn, memory_order_acquire) & 1) != mine)
		;
}
__attribute__((noinline)) static void count(unsigned long mine)
{
	for (unsigned long at = 0, number = mine; at < 100000; at++)
		__asm__ volatile("imul $3, %0" : "+r"(number));
	for (int at = 0; at < 100; at++)
		atomic_fetch_add(&counted.sent, 1), atomic_fetch_add(&counted.received, mine + 1);
}
static void *work(void *mine)
{
	for (unsigned long round = 0; round < rounds; round++) {
		await_turn(mine != NULL);
		count(mine != NULL);
		atomic_fetch_add_explicit(&turn, 1, memory_order_release);
	}
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t thread;
	rounds = strtoul(argv[argc - 1], NULL, 10);
	pthread_create(&thread, NULL, work, &thread);
	work(NULL);
	return pthread_join(thread, NULL);
}
"#;

#[test]
fn loops_that_wait_for_another_thread_are_left_out_of_the_window() {
    let folder = folder("advise-waits");
    let (source, program) = (folder.join("handed.c"), folder.join("handed"));
    std::fs::write(&source, HANDED_OVER).expect("written");
    let has_emulator = Command::new("qemu-x86_64").arg("--version").output().is_ok();
    if !cfg!(target_arch = "x86_64") || !has_emulator {
        eprintln!("skipped: needs x86-64 and qemu-x86_64");
        return;
    }
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-g", "-pthread", "-o"]).arg(&program).arg(&source);
    let Some(()) = compiles(&mut compiler).then_some(()) else { return };
    let program = program.to_str().expect("a plain path");
    let model = ["--schedules", "2", "--accesses", "8000"];
    let named = ["--functions", "await_turn,count"];
    let json = advice(&[&model[..], &named[..], &["--", program, "20"]].concat());
    // 200 additions of a thread in each round, and what returns and first looks at the turn read: not the loops' loads
    let accesses = json["accesses"].as_u64().expect("a number");
    assert!((2 * 20 * 200..2 * 20 * 210).contains(&accesses), "{accesses}");

    let output = run(&[&["advise", "--json"], &model[..], &["--", program, "600"]].concat());
    let said = stderr(&output);
    assert!(output.status.success() && !said.contains("too few samples"), "{said}");
    if said.contains("cannot be sampled") {
        eprintln!("skipped: {}", said.trim());
        return;
    }
    let json: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let window = &json["window"];
    let (waiting, all) = (window["waiting"].as_u64(), window["samples"][0].as_u64());
    assert!(waiting.expect("a number") > 0 && waiting < all, "{window}");
    assert_eq!(window["waiting_in"][0], "await_turn", "{window}");
    assert!(json["notes"].to_string().contains("only wait for other threads (await_turn)"), "{json}");
    std::fs::remove_dir_all(folder).expect("removed");
}

const ATOMICS_OUTSIDE: &str = r#"
#include <pthread.h>
static long inside, outside;
static long double halves = 0.5;
__attribute__((noinline)) static void count(void) { __asm__ volatile("addq $1, %0" : "+m"(inside)); }
__attribute__((noinline)) static void pass(void) {
    __atomic_fetch_add(&outside, 1, __ATOMIC_RELAXED);
    __asm__ volatile("fldt (%0); fstpt (%0)" : : "D"(&halves) : "memory");
    __asm__ volatile("cs fldt %0; fstpt %0" : "+m"(halves));
}
static void *run(void *unused) {
    for (int i = 0; i < 1000; i++) { count(); pass(); pass(); }
    return unused;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, run, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
"#;

// of QEMU before 8.0 they were accesses of the last `ret` in the window
#[test]
fn what_other_functions_access_atomically_is_not_in_the_window() {
    let folder = folder("advise-atomics-outside");
    let source = folder.join("outside.c");
    std::fs::write(&source, ATOMICS_OUTSIDE).expect("written");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-g", "-pthread"]).arg(&source);
    let Some(program) = built_by(&mut compiler, &folder, "outside") else { return };
    let json = advice(&["--functions", "count", "--schedules", "1", "--", &program]);
    // each call of each thread reads and writes the counter, and reads where it returns to
    assert_eq!(json["accesses"], 2 * 1000 * 3, "{json}");
    std::fs::remove_dir_all(folder).expect("removed");
}

const SIGNALS: &str = r#"
#include <signal.h>
#include <sys/time.h>
static long inside;
static volatile int alarms;
static void on_alarm(int number) { (void)number; alarms++; }
__attribute__((noinline)) static void count(void) { __asm__ volatile("addq $1, %0" : "+m"(inside)); }
int main(void) {
    // set again once it was handled: one that repeats itself leaves an emulator no time for anything else
    struct itimerval soon = { { 0, 0 }, { 0, 1000 } };
    int seen = -1;
    signal(SIGALRM, on_alarm);
    for (int i = 0; i < 1000 || alarms < 20; i++) {
        if (seen != alarms) {
            seen = alarms;
            setitimer(ITIMER_REAL, &soon, 0);
        }
        if (i < 1000) count();
        for (volatile int j = 0; j < 1000; j++);
    }
    return 0;
}
"#;

// of QEMU before 8.0 what it stored in the signals' frames was
#[test]
fn frames_of_signals_are_no_accesses_of_the_function_before() {
    let folder = folder("advise-signals");
    let source = folder.join("signals.c");
    std::fs::write(&source, SIGNALS).expect("written");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-g"]).arg(&source);
    let Some(program) = built_by(&mut compiler, &folder, "signals") else { return };
    let json = advice(&["--functions", "count", "--schedules", "1", "--", &program]);
    assert_eq!(json["accesses"], 1000 * 3, "{json}");
    std::fs::remove_dir_all(folder).expect("removed");
}

const SPLIT: &str = r#"
static long hot, cold;
__attribute__((noinline)) static void part(long n) { hot += n; }
__asm__(".text\n.type part.cold, @function\npart.cold: addq $1, cold(%rip)\nret\n.size part.cold, .-part.cold");
void apart(void) __asm__("part.cold");
__attribute__((used)) long *const keeps = &cold;
int main(void) { for (int i = 0; i < 100; i++) { part(i); if (i % 10 == 0) apart(); } return (int)(hot & 1); }
"#;

#[test]
fn a_function_is_traced_with_the_parts_that_the_compiler_split_off() {
    let folder = folder("advise-split");
    let source = folder.join("split.c");
    std::fs::write(&source, SPLIT).expect("written");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-g", "-fno-toplevel-reorder"]).arg(&source);
    let Some(program) = built_by(&mut compiler, &folder, "split") else { return };
    let json = advice(&["--functions", "part", "--schedules", "1", "--", &program]);
    assert_eq!(json["accesses"], 100 * 3 + 10 * 3, "{json}");
    std::fs::remove_dir_all(folder).expect("removed");
}
