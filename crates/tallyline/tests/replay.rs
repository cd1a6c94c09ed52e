//! `tallyline replay` and `tallyline record --trace`. What needs QEMU and a C compiler is left out,
//! with a message, where they are not.

mod common;

use common::{compiles, folder, run, run_in, stderr, stdout, tallyline};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns a trace of two threads that each write a field of one struct 400 times, and the program.
fn pair() -> (String, String) {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/trace");
    let text = |path: &Path| path.to_str().expect("a plain path").to_string();
    (text(&data.join("pair.trace")), text(&data))
}

#[test]
fn a_committed_trace_is_replayed_as_before() {
    let (trace, programs) = pair();
    let output = run(&["replay", &trace, "--symfs", &programs]);
    assert_eq!(stderr(&output), "");
    let golden = fs::read_to_string(Path::new(&programs).join("pair.txt")).expect("a golden");
    assert_eq!(stdout(&output), golden);
    assert!(output.status.success());
}

#[test]
fn types_that_were_kept_change_nothing() {
    let (trace, programs) = pair();
    let folder = folder("replay-kept");
    let kept = folder.join("kept");
    let replay = |more: &[&str]| {
        let words = ["replay", &trace, "--symfs", &programs];
        let output = tallyline().args(words).args(more).env("TALLYLINE_CACHE", &kept).output();
        stdout(&output.expect("the program runs"))
    };
    let found = replay(&["--no-cache"]);
    assert!(!kept.exists(), "--no-cache keeps none");
    for _ in 0..2 {
        assert_eq!(replay(&[]), found);
        assert_eq!(fs::read_dir(&kept).expect("a folder").count(), 1);
    }
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn the_json_has_the_same_and_its_sums_hold() {
    let (trace, programs) = pair();
    let output = run(&["replay", &trace, "--symfs", &programs, "--json", "--quantum", "50"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let counts = |name: &str| json["counts"][name].as_u64().expect(name);
    assert_eq!(json["model"], "MESI");
    assert_eq!(counts("accesses"), counts("hits") + counts("misses"));
    assert_eq!(counts("accesses"), counts("reads") + counts("writes"));
    // 400 times 4 instructions in turns of 50: 32 turns each, and each begins with a miss
    let missed = counts("false_sharing");
    assert!((2 * 30..=2 * 42).contains(&missed), "{missed}");
    assert_eq!(counts("true_sharing"), 0);
    let fields = json["fields"].as_array().expect("rows");
    let names: Vec<_> = fields.iter().take(2).map(|row| (&row["type"], &row["field"])).collect();
    assert!(names.iter().all(|(ty, _)| **ty == "struct pair"), "{names:?}");
}

#[test]
fn the_costs_of_all_fields_are_all_of_the_time() {
    let (trace, programs) = pair();
    let words = ["replay", &trace, "--symfs", &programs, "--cost"];
    let output = run(&[&words[..], &["--json", "--level", "48K:12:4,1M:16:14,15M:15:50"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let json: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(json["model"], "time");
    assert_eq!(json["processor"]["levels"][2]["size"], 15 << 20);
    let fields = json["fields"].as_array().expect("fields");
    let share: f64 = fields.iter().map(|field| field["share"].as_f64().expect("a share")).sum();
    assert!((share - 1.0).abs() < 1e-6, "{share}");
    let sum = |name: &str| fields.iter().map(|field| field[name].as_u64().expect("a count")).sum::<u64>();
    assert_eq!(json["accesses"], sum("accesses"));
    // both threads write their field 400 times
    let of_pair = fields.iter().filter(|field| field["type"].as_str().is_some_and(|ty| ty.contains("pair")));
    let accesses: u64 = of_pair.map(|field| field["accesses"].as_u64().expect("a count")).sum();
    assert!(accesses >= 800, "{accesses}");
    let text = stdout(&run(&words));
    assert!(text.starts_with("# A model of time, not a measurement: L1 "), "{text}");
}

#[test]
fn one_core_shares_nothing() {
    let (trace, programs) = pair();
    let output = run(&["replay", &trace, "--symfs", &programs, "--json", "--cores", "1"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["counts"]["invalidations"], 0);
    assert_eq!(json["counts"]["contended"], 0);
    assert_eq!(json["lines"].as_array().map(Vec::len), Some(0));
}

#[test]
fn what_is_no_trace_or_no_cache_is_one_line() {
    let (trace, programs) = pair();
    for (args, words) in [
        (vec!["replay", "/dev/null"], "not a trace"),
        (vec!["replay", "/no/such/file"], "cannot read /no/such/file"),
        (vec!["replay", &trace, "--cache", "48K"], "power of two"),
        (vec!["replay", &trace, "--cost", "--level", "48K:7:4"], "expected a multiple of 7"),
        (vec!["replay", &trace, "--cost", "--memory", "1"], "rising from level to level"),
        (vec!["replay", &trace, "--pid", "1"], "there are no accesses of process 1"),
    ] {
        let output = run(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(words), "{args:?}: {}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    }
    let missing = run(&["replay", &trace, "--symfs", "/no/such/folder"]);
    assert!(missing.status.success());
    assert!(stderr(&missing).contains("pair: cannot be opened"), "{}", stderr(&missing));
    assert!(stdout(&missing).contains("(file not read)"));
    drop(programs);
}

/// Returns the program, compiled; `None` where QEMU or a compiler is missing.
fn program(folder: &Path, name: &str, source: &str) -> Option<PathBuf> {
    if Command::new("qemu-x86_64").arg("--version").output().is_err() {
        eprintln!("skipped: no qemu-x86_64 (Debian: qemu-user)");
        return None;
    }
    if cfg!(not(target_arch = "x86_64")) {
        return None;
    }
    let is_cpp = source.contains("namespace ");
    let (compiler, suffix) = if is_cpp { ("c++", "cc") } else { ("cc", "c") };
    let (from, to) = (folder.join(format!("{name}.{suffix}")), folder.join(name));
    fs::write(&from, source).expect("written");
    compiles(Command::new(compiler).args(["-O2", "-g", "-pthread", "-o"]).arg(&to).arg(&from)).then_some(to)
}

/// Traces a program, and replays the trace as JSON.
fn traced(folder: &Path, program: &Path, options: &[&str]) -> Value {
    let program = program.to_str().expect("a plain path");
    let traced = tallyline()
        .args(["record", "--trace", "-o", "it.trace", "--", program])
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .output()
        .expect("runs");
    assert!(folder.join("it.trace").exists(), "{}", stderr(&traced));
    let output = run_in(folder, &[&["replay", "it.trace", "--json"], options].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)))
}

const SUMS: &str = r#"
#include <pthread.h>
static int sums[4];
static void *work(void *sum) { for (int i = 0; i < 5000; i++) *(volatile int *)sum += i; return 0; }
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, &sums[i]);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 0;
}
"#;

/// A thread that is woken, and that the scheduler lets run only once the one that woke it is done: it has the lowest
/// policy on the same CPU.
const LATE: &str = r#"
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
static struct { volatile int waker, woken; } shared __attribute__((aligned(64)));
static int word, other;
static void futex(int *at, int operation, int value) { syscall(SYS_futex, at, operation, value, 0, 0, 0); }
static void *work(void *no) {
    struct sched_param none = {0};
    sched_setscheduler(0, SCHED_IDLE, &none);
    futex(&word, FUTEX_WAIT_PRIVATE, 0);
    for (int i = 0; i < 20000; i++) shared.woken++;
    return no;
}
int main(void) {
    cpu_set_t one;
    pthread_t thread;
    sched_getaffinity(0, sizeof one, &one);
    for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &one) && seen++) CPU_CLR(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    pthread_create(&thread, 0, work, 0);
    usleep(300000);
    __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    futex(&word, FUTEX_WAKE_PRIVATE, 1);
    for (int i = 0; i < 20000; i++) shared.waker++;
    futex(&other, FUTEX_WAKE_PRIVATE, 1);
    pthread_join(thread, 0);
}
"#;

#[test]
fn a_woken_thread_waits_for_the_call_that_woke_it_alone() {
    let folder = folder("replay-late");
    let Some(program) = program(&folder, "late", LATE) else { return };
    let json = traced(&folder, &program, &[]);
    let fields = json["fields"].as_array().expect("rows");
    let named = |row: &&Value, name| row["field"].as_str().is_some_and(|field| field.contains(name));
    for name in ["waker", "woken"] {
        let row = fields.iter().find(|row| named(row, name)).unwrap_or_else(|| panic!("{name}: {fields:?}"));
        assert_eq!(row["writes"], 20_000, "{row}");
        assert!(row["false_sharing"].as_u64().expect("a number") > 100, "{row}");
    }
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn elements_of_a_variable_are_named_and_figures_of_other_turns_are_beside() {
    let folder = folder("replay-sums");
    let Some(program) = program(&folder, "sums", SUMS) else { return };
    let json = traced(&folder, &program, &[]);
    let line = &json["lines"][0];
    assert_eq!(line["runtime"], false, "{line}");
    let conflicts = line["conflicts"].as_array().expect("rows");
    let mut names: Vec<&str> =
        conflicts.iter().filter_map(|row| row["victim"]["variable"].as_str()).collect();
    names.sort_unstable();
    names.dedup();
    for name in ["sums[0]", "sums[1]", "sums[2]", "sums[3]"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let field = &json["fields"][0];
    assert_eq!((&field["variable"], &field["runtime"]), (&"sums".into(), &false.into()), "{field}");
    let turns = json["replay"]["by_quantum"].as_array().expect("rows");
    let quanta: Vec<_> = turns.iter().map(|turn| turn["quantum"].as_u64().expect("a number")).collect();
    assert_eq!(quanta, [20, 200, 2000]);
    let sharing: Vec<_> = turns.iter().map(|turn| turn["sharing"].as_u64().expect("a number")).collect();
    assert!(sharing.is_sorted_by(|a, b| a > b), "longer turns meet less often: {sharing:?}");
    let counts = &json["counts"];
    let own = counts["true_sharing"].as_u64().zip(counts["false_sharing"].as_u64()).map(|(a, b)| a + b);
    assert_eq!(own, Some(sharing[1]));
    let text = stdout(&run_in(&folder, &["replay", "it.trace"]));
    assert!(text.contains("at turns of 200 instructions  shown here"), "{text}");
    assert!(text.contains("+0x") && text.contains("sums[1]: "), "{text}");
    let unnamed = text.lines().find(|line| line.contains(" work+") && line.contains("(no field)"));
    assert_eq!(unnamed, None, "{text}");
    let once = stdout(&run_in(&folder, &["replay", "it.trace", "--one-quantum"]));
    assert!(once.contains("hold for turns of 200 instructions"), "{once}");
    fs::remove_dir_all(folder).expect("removed");
}

const CLEAN: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *work(void *unused) {
    for (int i = 0; i < 500; i++) { volatile char *block = malloc(100 + i % 50); block[0] = 1; free((void *)block); }
    printf("done\n");
    return unused;
}
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 0;
}
"#;

/// Additions that are many and run seldom each, beside one that runs often.
const SELDOM: &str = r#"
#define TEN(x) x x x x x x x x x x
static struct { volatile long often, seldom; } shared;
int main(void) {
    for (int i = 0; i < 40; i++) { TEN(TEN(shared.seldom++;)) TEN(TEN(shared.seldom++;)) }
    for (int i = 0; i < 400000; i++) shared.often++;
}
"#;

#[test]
fn instructions_that_run_seldom_are_counted_to_their_field() {
    let folder = folder("replay-seldom");
    let Some(program) = program(&folder, "seldom", SELDOM) else { return };
    let json = traced(&folder, &program, &[]);
    let fields = json["fields"].as_array().expect("rows");
    let sum = |name: &str, of: &dyn Fn(&Value) -> bool| -> u64 {
        fields.iter().filter(|row| of(row)).map(|row| row[name].as_u64().expect("a count")).sum()
    };
    let seldom = |row: &Value| row["field"].as_str().is_some_and(|field| field.contains("seldom"));
    assert_eq!((sum("reads", &seldom), sum("writes", &seldom)), (8000, 8000));
    let all = ["reads", "writes"].map(|name| (sum(name, &|_| true), json["counts"][name].as_u64()));
    assert!(all.iter().all(|(sum, total)| Some(*sum) == *total), "{all:?}");
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn what_only_the_runtime_shares_is_marked_and_comes_behind_the_program() {
    let folder = folder("replay-clean");
    let Some(program) = program(&folder, "clean", CLEAN) else { return };
    let json = traced(&folder, &program, &["--lines", "1000"]);
    let flags = |rows: &str| -> Vec<bool> {
        json[rows].as_array().expect("rows").iter().map(|row| row["runtime"] == true).collect()
    };
    for rows in ["lines", "fields"] {
        let flags = flags(rows);
        assert!(flags.is_sorted() && flags.contains(&true), "{rows}: {flags:?}");
    }
    let of_runtime = flags("lines").iter().filter(|is_runtime| **is_runtime).count();
    assert_eq!(json["counts"]["contended_by_runtime"], of_runtime);
    assert_eq!(json["counts"]["contended"], flags("lines").len());
    let text = stdout(&run_in(&folder, &["replay", "it.trace"]));
    assert!(text.contains("by the runtime's own code alone") && text.contains("[runtime]"), "{text}");
    fs::remove_dir_all(folder).expect("removed");
}

const SCOPES: &str = r#"
namespace here { struct node { long x; }; }
namespace there { struct node { long y; }; }
static here::node one;
static there::node other;
int main() {
    for (int i = 0; i < 5000; i++) {
        asm volatile("addq %1, %0" : "+m"(one.x) : "r"(long(i)));
        asm volatile("addq %1, %0" : "+m"(other.y) : "r"(long(i)));
    }
}
"#;

#[test]
fn types_of_one_name_are_told_apart_by_their_scopes() {
    let folder = folder("replay-scopes");
    let Some(program) = program(&folder, "scopes", SCOPES) else { return };
    let json = traced(&folder, &program, &[]);
    let fields = json["fields"].as_array().expect("rows");
    let of = |ty: &str| -> u64 {
        let rows = fields.iter().filter(|row| row["type"] == ty);
        rows.map(|row| row["writes"].as_u64().expect("a count")).sum()
    };
    assert_eq!(["here::node", "there::node", "node"].map(|ty| of(&format!("struct {ty}"))), [5000, 5000, 0]);
    fs::remove_dir_all(folder).expect("removed");
}

const COUNTERS: &str = r#"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
struct counters { long first, second; char line[48]; long alone; } __attribute__((aligned(64)));
static volatile struct counters counters;
static void *first(void *unused) { for (int i = 0; i < 20000; i++) counters.first++; return unused; }
static void *second(void *unused) { for (int i = 0; i < 20000; i++) counters.second++; return unused; }
static void *third(void *unused) { for (int i = 0; i < 20000; i++) counters.alone++; return unused; }
int main(int argc, char **argv) {
    pthread_t threads[3];
    pthread_create(&threads[0], 0, first, 0);
    pthread_create(&threads[1], 0, second, 0);
    pthread_create(&threads[2], 0, third, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    if (argc > 1 && !fork()) _exit(0);
    if (argc > 1) wait(0);
    return argv[0][0] == 'x' ? 0 : 3;
}
"#;

#[test]
fn a_program_is_traced_and_its_false_sharing_found_by_field() {
    let folder = folder("trace");
    let Some(program) = program(&folder, "counters", COUNTERS) else { return };
    let program = program.to_str().expect("a plain path");
    let cache = folder.join("cache");
    let traced = tallyline()
        .args(["record", "--trace", "-o", "it.trace", "--", program, "fork"])
        .current_dir(&folder)
        .env("XDG_CACHE_HOME", &cache)
        .output()
        .expect("runs");
    assert_eq!(traced.status.code(), Some(3), "the command's own status: {}", stderr(&traced));
    assert!(stderr(&traced).contains("there is no rseq"), "{}", stderr(&traced));
    let output = run_in(&folder, &["replay", "it.trace", "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["replay"]["threads"].as_array().map(Vec::len), Some(4), "not the forked process");
    let field = |name: &str| {
        let rows = json["fields"].as_array().expect("rows");
        let of_type = |row: &&Value| row["type"] == "struct counters";
        let named = |row: &&Value| row["field"].as_str().is_some_and(|field| field.ends_with(name));
        rows.iter().filter(of_type).find(named).cloned().unwrap_or_else(|| panic!("{name}: {rows:?}"))
    };
    for name in ["(first)", "(second)"] {
        let row = field(name);
        assert_eq!(row["writes"], 20_000, "{name}");
        assert!(row["false_sharing"].as_u64().expect("a number") > 100, "{name}: {row}");
    }
    let alone = field("(alone)");
    assert_eq!((&alone["writes"], &alone["false_sharing"]), (&20_000.into(), &0.into()));
    // the emulator is killed by a limit on the file, which is no error
    let args = ["record", "--trace", "--max-size", "100K", "-o", "small.trace", "--", program];
    let small =
        tallyline().args(args).current_dir(&folder).env("XDG_CACHE_HOME", &cache).output().expect("runs");
    assert!(stderr(&small).contains("as large as --max-size"), "{}", stderr(&small));
    let size = fs::metadata(folder.join("small.trace")).expect("written").len();
    assert!((1..300_000).contains(&size), "{size}");
    fs::remove_dir_all(folder).expect("removed");
}

/// Returns a shell under the emulator, with words of `record` in front of it.
fn traced_shell(folder: &Path, words: &[&str], script: &str) -> Option<Output> {
    // where the emulator or a compiler is missing, other tests say so
    program(folder, "counters", COUNTERS)?;
    let mut tallyline = tallyline();
    tallyline.args(["record", "--trace"]).args(words).args(["--", "sh", "-c", script]).current_dir(folder);
    Some(tallyline.env("XDG_CACHE_HOME", folder.join("cache")).output().expect("runs"))
}

#[test]
fn programs_that_a_traced_one_starts_are_named() {
    let folder = folder("trace-children");
    let script = "uname >out; uname >>out; (exit 0); no-such-program 2>err; hostname >>out; exit 5";
    let Some(traced) = traced_shell(&folder, &["-o", "it.trace"], script) else { return };
    assert_eq!(traced.status.code(), Some(5), "{}", stderr(&traced));
    let said = stderr(&traced);
    assert!(said.contains("3 programs that it started ran untraced: uname (2 times), hostname;"), "{said}");
    // a program that becomes another one came to its end
    let Some(replaced) = traced_shell(&folder, &["-o", "b.trace"], "exec uname") else { return };
    assert_eq!(
        (replaced.status.code(), stdout(&replaced).as_str()),
        (Some(0), "Linux\n"),
        "{}",
        stderr(&replaced)
    );
    assert!(
        stderr(&replaced).contains("1 programs that it started ran untraced: uname"),
        "{}",
        stderr(&replaced)
    );
    // and one that starts none says nothing
    let Some(alone) = traced_shell(&folder, &["-o", "c.trace"], "exit 0") else { return };
    assert!(alone.status.success() && !stderr(&alone).contains("untraced"), "{}", stderr(&alone));
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_trace_that_a_full_disk_cuts_is_an_error() {
    let folder = folder("trace-full");
    if program(&folder, "counters", COUNTERS).is_none() {
        return;
    }
    // a disk of its own that is too small for the emulator's first second
    let script = format!(
        "mkdir -p small && mount -t tmpfs -o size=256k none small || exit 77; {} record --trace -q -o small/it.trace -- \
         sh -c 'i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done'; echo status $?; {0} replay small/it.trace",
        env!("CARGO_BIN_EXE_tallyline")
    );
    let mut unshare = Command::new("unshare");
    unshare
        .args(["-m", "sh", "-c", &script])
        .current_dir(&folder)
        .env("XDG_CACHE_HOME", folder.join("cache"));
    let Ok(output) = unshare.output() else { return eprintln!("skipped: no program `unshare`") };
    let (text, said) = (stdout(&output), stderr(&output));
    if !text.contains("status ") {
        return eprintln!("skipped: {}", said.trim());
    }
    assert!(text.starts_with("status 2\n"), "{text}{said}");
    assert!(said.contains("small/it.trace: the trace could not be written to its end"), "{said}");
    assert!(text.contains("accesses of"), "what is there is replayed: {text}{said}");
    fs::remove_dir_all(folder).expect("removed");
}

const DESCRIPTORS: &str = r#"
#include <fcntl.h>
#include <unistd.h>
static volatile int work[4];
int main(void) {
    for (int descriptor = 3; descriptor < 1024; descriptor++) close(descriptor);
    for (int i = 0; i < 40000; i++) work[i % 4]++;
    /* numbers that were closed are taken, whoever had them */
    for (int last = 0; last < 100;)
        if ((last = open("mine", O_CREAT | O_WRONLY, 0600)) < 0) return 1;
    for (int i = 0; i < 40000; i++) work[i % 4]++;
    return 0;
}
"#;

#[test]
fn a_program_that_closes_all_descriptors_and_takes_their_numbers_has_its_files_to_itself() {
    let folder = folder("trace-descriptors");
    let Some(program) = program(&folder, "descriptors", DESCRIPTORS) else { return };
    let json = traced(&folder, &program, &[]);
    assert_eq!(fs::read(folder.join("mine")).expect("opened").len(), 0, "the trace is another file");
    let rows = json["fields"].as_array().expect("rows");
    let of_work = rows.iter().filter(|row| row["variable"] == "work");
    assert_eq!(of_work.filter_map(|row| row["writes"].as_u64()).sum::<u64>(), 80_000);
    fs::remove_dir_all(folder).expect("removed");
}

const LIMITED: &str = r#"
#include <sys/resource.h>
static volatile int work[4];
int main(void) {
    struct rlimit limit = { 4096, 4096 };
    if (setrlimit(RLIMIT_FSIZE, &limit)) return 1;
    for (int i = 0; i < 200000; i++) work[i % 4]++;
    return 7;
}
"#;

#[test]
fn a_program_that_limits_its_files_does_not_die_of_the_trace() {
    let folder = folder("trace-limited");
    let Some(program) = program(&folder, "limited", LIMITED) else { return };
    let program = program.to_str().expect("a plain path");
    let traced = tallyline()
        .args(["record", "--trace", "-o", "it.trace", "--", program])
        .current_dir(&folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .output()
        .expect("runs");
    let said = stderr(&traced);
    assert!(said.contains("File too large; the trace ends here"), "{said}");
    assert_eq!(traced.status.code(), Some(7), "the program's own: {said}");
    fs::remove_dir_all(folder).expect("removed");
}

const GRANDCHILD: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    if (!fork()) {
        double (*cosine)(double) = (double (*)(double))dlsym(dlopen("libm.so.6", RTLD_NOW), "cos");
        int child = fork();
        double sum = 0;
        if (!child) {
            for (int i = 0; i < 1000; i++) sum += cosine(i);
            _exit(sum > 1e9);
        }
        printf("%d\n", child);
        fflush(stdout);
        while (wait(0) > 0);
        _exit(0);
    }
    while (wait(0) > 0);
    return 0;
}
"#;

#[test]
fn a_grandchild_has_the_mappings_of_its_parent() {
    let folder = folder("trace-grandchild");
    let Some(program) = program(&folder, "grandchild", GRANDCHILD) else { return };
    let program = program.to_str().expect("a plain path");
    let traced = tallyline()
        .args(["record", "--trace", "-q", "-o", "it.trace", "--", program])
        .current_dir(&folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .output()
        .expect("runs");
    let grandchild = stdout(&traced);
    let words = ["replay", "it.trace", "--json", "-p", grandchild.trim()];
    let output = run_in(&folder, &words);
    let json: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let rows = json["fields"].as_array().expect("rows");
    assert!(rows.len() > 3 && rows.iter().all(|row| row["type"] != "(no mapping)"), "{}", rows.len());
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn one_access_of_many_becomes_samples() {
    let folder = folder("every");
    let Some(program) = program(&folder, "counters", COUNTERS) else { return };
    let program = program.to_str().expect("a plain path");
    let args = ["record", "--trace", "--every", "100", "-o", "it.data", "--", program];
    let traced = tallyline()
        .args(args)
        .current_dir(&folder)
        .env("XDG_CACHE_HOME", folder.join("c"))
        .output()
        .expect("runs");
    assert_eq!(traced.status.code(), Some(3), "{}", stderr(&traced));
    let listed = run_in(&folder, &["evlist", "-i", "it.data"]);
    assert!(stdout(&listed).contains("memory-accesses"), "{}{}", stdout(&listed), stderr(&listed));
    let report = run_in(&folder, &["report", "-i", "it.data", "-s", "type,typeoff", "--json"]);
    let text = stdout(&report);
    assert!(text.contains("struct counters"), "{text}{}", stderr(&report));
    assert!(
        !fs::read_dir(&folder)
            .expect("there")
            .flatten()
            .any(|file| { file.path().extension().is_some_and(|extension| extension == "trace") })
    );
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_missing_program_or_compiler_is_one_line_with_what_to_do() {
    let folder = folder("missing");
    let record = |args: &[&str], compiler: &str| {
        let mut command = tallyline();
        command.args(["record", "--trace", "-o", "t", "--"]).args(args).current_dir(&folder);
        command.env("XDG_CACHE_HOME", folder.join("cache")).env("CC", compiler).output().expect("runs")
    };
    let output = record(&["/bin/true"], "/no/such/compiler");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("apt install gcc"), "{}", stderr(&output));
    if Command::new("cc").arg("--version").output().is_ok() {
        let output = record(&["/no/such/program"], "cc");
        assert_eq!(
            (output.status.code(), stderr(&output).lines().count()),
            (Some(2), 1),
            "{}",
            stderr(&output)
        );
        assert!(stderr(&output).contains("no such program"), "{}", stderr(&output));
    }
    fs::remove_dir_all(folder).expect("removed");
}
