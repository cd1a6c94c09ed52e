//! Reports on programs whose code is not decoded: functions and lines are named, and types are said to be unknown.

mod common;

use common::{compiles, folder, run, stderr, stdout};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;
use tallyline_inference::code::Image;
use tallyline_perf_data::Attr;
use tallyline_perf_data::abi::{attr_flag, sample as bit};
use tallyline_perf_data::file::{Comm, Mmap};
use tallyline_perf_data::sample::{CpuMode, Sample};
use tallyline_perf_data::writer::{Encoder, Event, MachineDescription, Writer};

const SOURCE: &str = "\
struct pair { int a, b; };
int get_a(struct pair *p)
{ return p->a; }
static inline __attribute__((always_inline)) int both(struct pair *p)
{ return p->a * p->b; }
int product(struct pair *p)
{ return both(p); }
";

/// A linked program, and the process that runs it.
struct Program {
    path: PathBuf,
    image: Image,
    pid: i32,
}

impl Program {
    /// Links the functions by a compiler with these options; `None` without that compiler.
    fn link(folder: &Path, name: &str, pid: i32, compiler: &[&str]) -> Option<Program> {
        let (source, path) = (folder.join("pair.c"), folder.join(name));
        std::fs::write(&source, SOURCE).expect("written");
        let (command, options) = compiler.split_first().expect("a compiler");
        let mut command = Command::new(command);
        command.args(options).args([
            "-O2",
            "-g",
            "-nostdlib",
            "-static",
            "-no-pie",
            "-fno-pic",
            "-Wl,-e,get_a",
        ]);
        if !compiles(command.arg("-o").arg(&path).arg(&source)) {
            return None;
        }
        let image = Image::read_any_machine(&File::open(&path).expect("just made")).expect("a program");
        Some(Program { path, image, pid })
    }

    fn address(&self, function: &str) -> u64 {
        let symbol = self.image.functions().iter().find(|symbol| symbol.name() == function);
        symbol.expect("a function of the program").address()
    }
}

/// Writes a recording of samples at offsets from the start of functions.
fn record(file: &Path, arch: &str, samples: &[(&Program, &str, u64)]) {
    let attr = Attr {
        kind: 1,
        sample_period: 100,
        sample_type: bit::IP | bit::TID | bit::TIME,
        flags: attr_flag::SAMPLE_ID_ALL,
        ..Attr::default()
    };
    let events = vec![Event::new("cpu-clock", attr.clone(), vec![1])];
    let mut writer = Writer::new(Cursor::new(Vec::new()), events).expect("memory");
    for (program, function, _) in samples {
        let (pid, tid, time) = (program.pid, program.pid, 1);
        writer
            .records(Encoder::comm(&Comm::new(pid, tid, b"pair", true), &attr, time).finish())
            .expect("memory");
        let code = program.image.segments().iter().find(|segment| {
            let inside = program.address(function).wrapping_sub(segment.address());
            inside < segment.size()
        });
        let code = code.expect("code is loaded");
        let mapping = Mmap {
            pid,
            tid,
            mode: CpuMode::User,
            start: code.address(),
            len: code.size(),
            file_offset: code.offset(),
            path: program.path.to_str().expect("a plain path").as_bytes(),
            is_executable: true,
            build_id: None,
            shared_file: None,
        };
        writer.records(Encoder::mapping(&mapping, &attr, time).finish()).expect("memory");
    }
    for (index, (program, function, offset)) in samples.iter().enumerate() {
        let sample = Sample {
            mode: CpuMode::User,
            ip: Some(program.address(function) + offset),
            pid: Some(program.pid),
            tid: Some(program.pid),
            time: Some(10 + index as u64),
            ..Sample::default()
        };
        writer.records(Encoder::sample(&sample, &attr).finish()).expect("memory");
    }
    let machine = MachineDescription { arch: arch.to_owned(), ..MachineDescription::default() };
    let written = writer.finish(&machine, &[]).expect("memory").into_inner();
    std::fs::write(file, written).expect("written");
}

fn report(data: &Path, args: &[&str]) -> String {
    let output = run(&[&["report", "-i", data.to_str().expect("a plain path")], args].concat());
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

/// Returns the values of some keys in each row, sorted.
fn rows(data: &Path, keys: &str) -> Vec<Vec<String>> {
    let document: Value = serde_json::from_str(&report(data, &["--json", "-s", keys])).expect("a document");
    let row = |row: &Value| {
        let of_key = |key| row["keys"][key].as_str().expect("a text").to_owned();
        keys.split(',').map(of_key).collect()
    };
    let mut rows: Vec<Vec<String>> = document["rows"].as_array().expect("rows").iter().map(row).collect();
    rows.sort();
    rows
}

#[test]
fn functions_and_lines_of_a_32_bit_program_are_known_beside_those_of_a_64_bit_one() {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: the compiler's -m32 is told for x86-64");
        return;
    }
    let folder = folder("architecture-i386");
    let narrow = Program::link(&folder, "narrow", 7, &["cc", "-m32", "-fcf-protection=none"]);
    let wide = Program::link(&folder, "wide", 8, &["cc", "-m64", "-fcf-protection=none"]);
    let (Some(narrow), Some(wide)) = (narrow, wide) else { return };
    assert_eq!(narrow.image.undecoded().as_deref(), Some("i386"));
    let refused = Image::read(&File::open(&narrow.path).expect("just made")).map(|_| ());
    let refused = refused.expect_err("its code is not decoded").to_string();
    assert!(refused.contains("code of i386 is not decoded"), "{refused}");
    let data = folder.join("perf.data");
    // the first instruction of four bytes loads the argument
    record(&data, "x86_64", &[(&narrow, "get_a", 0), (&narrow, "product", 4), (&wide, "get_a", 0)]);
    let expected = [
        ["narrow", "[.] get_a", "pair.c:3"],
        ["narrow", "[.] product", "pair.c:5"],
        ["wide", "[.] get_a", "pair.c:3"],
    ];
    assert_eq!(rows(&data, "dso,sym,srcline"), expected);
    let document: Value = serde_json::from_str(&report(&data, &["--json", "--skid", "none", "-s", "type"]))
        .expect("a document");
    assert_eq!(document["typed"], 1, "that of the 64-bit program");
    assert_eq!(document["untyped"], json!([{"reason": "code of i386 is not decoded", "samples": 2}]));
    let text = report(&data, &["-s", "type"]);
    let line =
        "# No types: 2 samples in narrow: code of i386 is not decoded; functions and lines are known\n";
    assert!(text.contains(line) && !text.contains("debug information"), "{text}");
}

#[test]
fn functions_and_lines_of_a_big_endian_program_are_known() {
    let folder = folder("architecture-s390x");
    let Some(program) = Program::link(&folder, "pair", 7, &["s390x-linux-gnu-gcc"]) else { return };
    let data = folder.join("perf.data");
    record(&data, "s390x", &[(&program, "get_a", 0), (&program, "product", 0)]);
    let expected = [["[.] get_a", "pair.c:3"], ["[.] product", "pair.c:5"]];
    assert_eq!(rows(&data, "sym,srcline"), expected);
    let text = report(&data, &["-s", "type"]);
    assert!(text.contains("# No types: 2 samples in pair: code of s390x is not decoded; "), "{text}");
}
