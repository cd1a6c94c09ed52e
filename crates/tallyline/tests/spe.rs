//! Reports on memory accesses that Arm's SPE sampled, as packets in a trace: a program for aarch64, and a recording of
//! it that is made up.

mod common;
#[path = "spe/stream.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod stream;

use common::{compiles, folder, run, stderr, stdout};
use serde_json::Value;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;
use stream::{ATOMIC, BRANCH, CLOCK, LOAD, PID, STORE, Sampled};
use tallyline_inference::code::Image;

const SOURCE: &str = "\
struct pair { long a; long b; char gap[64]; int x; };
long get_a(struct pair *p) { return p->a; }
void set_b(struct pair *p, long v) { p->b = v; }
void add_b(struct pair *p, long v) { __asm__ volatile(\"\" ::: \"memory\"); __atomic_fetch_add(&p->b, v, 0); }
int get_x(struct pair *p) { return p->x; }
";

/// Returns the program, linked as for a machine of Arm's; none without such a compiler.
fn program(folder: &Path) -> Option<(PathBuf, Image)> {
    let (source, program) = (folder.join("pair.c"), folder.join("pair"));
    std::fs::write(&source, SOURCE).expect("written");
    let mut compiler = Command::new("aarch64-linux-gnu-gcc");
    compiler
        .args([
            "-O2",
            "-g",
            "-march=armv8.1-a",
            "-ffreestanding",
            "-nostdlib",
            "-static",
            "-fno-pie",
            "-no-pie",
        ])
        .args(["-Wl,-Ttext=0x401000,-e,get_a,--build-id=none", "-o"])
        .arg(&program)
        .arg(&source);
    let image = compiles(&mut compiler).then(|| Image::parse(&std::fs::read(&program).expect("linked")))?;
    Some((program, image.expect("ELF")))
}

/// The address of the program's data: at the start of a line.
const OBJECT: u64 = 0xaaaa_0010_0000;

/// Returns two CPUs: one reads, the other one writes the same line. None without a compiler.
fn recording(name: &str) -> Option<(PathBuf, PathBuf)> {
    let folder = folder(name);
    let (program, image) = program(&folder)?;
    let at = |name: &str| {
        image.functions().iter().find(|symbol| symbol.name() == name).expect("a function").address()
    };
    let mut time = 1000;
    let mut sampled = |pc, operation, offset, source, latency| {
        time += 10;
        Sampled {
            pc,
            level: 0,
            operation,
            data: OBJECT + offset,
            physical: None,
            events: 0x16,
            source: (operation == LOAD).then_some(source),
            latency,
            thread: Some(PID),
            time: Some(time),
        }
    };
    let first: Vec<_> = (0..30)
        .map(|index| {
            sampled(
                at("get_a"),
                LOAD,
                0,
                if index % 3 == 0 { 9 } else { 0 },
                if index % 3 == 0 { 90 } else { 5 },
            )
        })
        .collect();
    let mut second: Vec<_> = (0..20).map(|_| sampled(at("set_b"), STORE, 8, 0, 3)).collect();
    second.extend((0..10).map(|_| sampled(at("add_b") + 4, ATOMIC, 8, 0, 40)));
    second.extend((0..5).map(|_| sampled(at("get_x"), LOAD, 80, 0xe, 300)));
    second.extend((0..7).map(|_| sampled(at("get_x") + 4, BRANCH, 0, 0, 1)));
    let holds = |start: u64, size: u64| (start..start + size).contains(&at("get_a"));
    let mut segments = image.segments().iter();
    let segment = segments.find(|segment| holds(segment.address(), segment.size())).expect("code");
    let path = program.to_str().expect("a plain path");
    let maps = [
        (PID, segment.address(), segment.size(), segment.offset(), path, true),
        (PID, OBJECT, 0x1000, 0, "//anon", false),
    ];
    let mut writer = stream::begin_with(Cursor::new(Vec::new()), Some(&CLOCK), &maps).expect("memory");
    stream::traces(&mut writer, &[first, second], &mut || 640).expect("memory");
    let bytes = stream::end(writer).expect("memory").into_inner();
    let data = folder.join("perf.data");
    std::fs::write(&data, bytes).expect("written");
    Some((data, folder))
}

fn json(data: &Path, words: &[&str]) -> Value {
    let (command, others) = words.split_first().expect("a command");
    let output = run(&[&[*command, "--json", "-i", data.to_str().expect("a plain path")], others].concat());
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    assert!(
        stderr(&output).contains("SPE: 65 records are memory accesses; 7 are not"),
        "{}",
        stderr(&output)
    );
    serde_json::from_str(&stdout(&output)).expect("a document")
}

/// Returns the samples and the weight of each row, by the texts of keys.
fn rows(document: &Value, keys: &[&str]) -> Vec<(String, u64)> {
    let row = |row: &Value| {
        let texts: Vec<_> = keys.iter().map(|key| row["keys"][key].as_str().expect("a text")).collect();
        (texts.join(", "), row["samples"].as_u64().expect("a number"))
    };
    let mut rows: Vec<_> = document["rows"].as_array().expect("rows").iter().map(row).collect();
    rows.sort();
    rows
}

fn named(rows: &[(&str, u64)]) -> Vec<(String, u64)> {
    rows.iter().map(|(name, samples)| ((*name).to_owned(), *samples)).collect()
}

#[test]
fn accesses_have_types_fields_and_places_of_data() {
    let Some((data, _)) = recording("spe-types") else { return };
    let document = json(&data, &["report", "-s", "typeoff,sym"]);
    let expected = named(&[
        ("struct pair +0 (a), [.] get_a", 30),
        ("struct pair +0x50 (x), [.] get_x", 5),
        ("struct pair +0x8 (b), [.] add_b", 10),
        ("struct pair +0x8 (b), [.] set_b", 20),
    ]);
    assert_eq!(rows(&document, &["typeoff", "sym"]), expected);
    let traces = &document["traces"];
    assert_eq!(
        (&traces["accesses"], &traces["branches"], &traces["cut"]),
        (&65.into(), &7.into(), &0.into())
    );
    assert_eq!(document["events"][2], serde_json::json!({"name": "memory", "precise": true}));

    let document = json(&data, &["mem", "-s", "typeoff,mem,snoop"]);
    // the first CPU knows snoops, the second one does not; of what is atomic events say where the data was
    let expected = named(&[
        ("struct pair +0 (a), L1 hit, None", 20),
        ("struct pair +0 (a), L2 hit, None or Peer", 10),
        ("struct pair +0x50 (x), RAM hit, None", 5),
        ("struct pair +0x8 (b), L1 hit, N/A", 10),
        ("struct pair +0x8 (b), N/A, N/A", 20),
    ]);
    assert_eq!(rows(&document, &["typeoff", "mem", "snoop"]), expected);
    let stores = json(&data, &["mem", "-t", "store", "-s", "typeoff"]);
    assert_eq!(
        rows(&stores, &["typeoff"]),
        named(&[("struct pair +0x8 (b)", 30)]),
        "what is atomic stores, too"
    );
}

#[test]
fn a_line_that_one_cpu_reads_and_another_one_writes_is_shared() {
    let Some((data, _)) = recording("spe-sharing") else { return };
    let document = json(&data, &["sharing"]);
    let lines = document["lines"].as_array().expect("lines");
    assert_eq!(lines.len(), 1, "{document}");
    assert!(lines[0].to_string().contains("struct pair"), "{}", lines[0]);
    let output = run(&["sharing", "-i", data.to_str().expect("a plain path")]);
    assert!(output.status.success() && stdout(&output).contains("struct pair"), "{}", stdout(&output));
}

#[test]
fn a_type_is_shown_field_by_field() {
    let Some((data, _)) = recording("spe-annotate") else { return };
    let output =
        run(&["annotate", "--stdio", "--mem-mode", "-i", data.to_str().expect("a plain path"), "pair"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    // by weight: 1000 of 2960 on a, 460 on b, 1500 on x
    for (percent, member) in [("33.78", "a;"), ("15.54", "b;"), ("50.68", "x;")] {
        let line = text.lines().find(|line| line.trim_end().ends_with(member));
        assert!(line.is_some_and(|line| line.contains(percent)), "{member} {percent} in\n{text}");
    }
}
