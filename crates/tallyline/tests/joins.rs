//! Samples at joins, of which branch stacks say which way they came.

mod common;

use common::{folder, run, stderr, stdout};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use tallyline_perf_data::Attr;
use tallyline_perf_data::abi::{attr_flag, branch, sample as bit};
use tallyline_perf_data::file::{Comm, Mmap};
use tallyline_perf_data::sample::CpuMode;
use tallyline_perf_data::writer::{Encoder, Event, MachineDescription, Writer};

/// The address of the program's first byte in memory; its offsets are its addresses.
const BASE: u64 = 0x5555_0000_0000;

/// Addresses in the function `shape_join_two` of the program: `jae` from a compare with `cold`, a store to `warm1`
/// that falls through to where that jump goes, and the start of the loop.
const JUMP: u64 = 0x2079;
const JOIN: u64 = 0x2087;
const LOOP: u64 = 0x2040;
const LOOP_END: u64 = 0x2090;

/// A function that a compiler made a join of, in the tree.
fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/attribution/AuthenticAMD-26-2-1/shapes-gcc")
}

/// A record of a sample, as kernels write it.
fn sample(ip: u64, time: u64, branches: &[(u64, u64)]) -> Vec<u8> {
    let mut words = vec![BASE + ip, 7 << 32 | 7, time, 1000, branches.len() as u64];
    words.extend(branches.iter().flat_map(|(from, to)| [BASE + from, BASE + to, 0]));
    // a sample of user mode
    let mut bytes = Vec::from(9_u32.to_ne_bytes());
    bytes.extend(2_u16.to_ne_bytes());
    bytes.extend(((words.len() + 1) as u16 * 8).to_ne_bytes());
    bytes.extend(words.into_iter().flat_map(u64::to_ne_bytes));
    bytes
}

/// Writes a recording by a counter without precision, of samples at the join with their branches, the newest first.
fn record(folder: &Path, arch: &str, samples: &[&[(u64, u64)]]) -> String {
    let attr = Attr {
        kind: 0,
        sample_period: 1000,
        sample_type: bit::IP | bit::TID | bit::TIME | bit::PERIOD | bit::BRANCH_STACK,
        branch_sample_type: branch::USER | branch::ANY,
        flags: attr_flag::SAMPLE_ID_ALL,
        ..Attr::default()
    };
    let event = Event::new("cycles:u", attr.clone(), vec![1]);
    let mut writer = Writer::new(Cursor::new(Vec::new()), vec![event]).expect("memory");
    writer.records(Encoder::comm(&Comm::new(7, 7, b"shapes", true), &attr, 1).finish()).expect("memory");
    let program = program();
    let path = program.to_str().expect("a plain path").as_bytes();
    let mapping = Mmap {
        pid: 7,
        tid: 7,
        mode: CpuMode::User,
        start: BASE,
        len: std::fs::metadata(&program).expect("the program").len(),
        file_offset: 0,
        path,
        is_executable: true,
        build_id: None,
        shared_file: None,
    };
    writer.records(Encoder::mapping(&mapping, &attr, 2).finish()).expect("memory");
    for (index, branches) in samples.iter().enumerate() {
        writer.records(&sample(JOIN, 10 + index as u64, branches)).expect("memory");
    }
    let machine = MachineDescription {
        arch: arch.to_owned(),
        // it retires compares with memory and jumps as one
        cpu_id: "GenuineIntel-6-207-2".to_owned(),
        ..MachineDescription::default()
    };
    let data = folder.join(format!("{}.data", samples.len()));
    std::fs::write(&data, writer.finish(&machine, &[]).expect("memory").into_inner()).expect("written");
    data.to_str().expect("a plain path").to_owned()
}

/// Samples by field.
fn fields(data: &str) -> (BTreeMap<String, u64>, Value) {
    let output = run(&["report", "--json", "-i", data, "-s", "typeoff"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let document: Value = serde_json::from_str(&stdout(&output)).expect("a document");
    let row = |row: &Value| {
        let name = row["keys"]["typeoff"].as_str().expect("a name").to_owned();
        (name, row["samples"].as_u64().expect("a number"))
    };
    (document["rows"].as_array().expect("rows").iter().map(row).collect(), document)
}

const COLD: &str = "struct node +0x8 (cold)";
const WARM: &str = "struct node +0x10 (warm1)";

#[test]
fn samples_at_a_join_are_those_of_the_way_that_their_branch_stacks_name() {
    let folder = folder("joins-branches");
    let jumped: &[(u64, u64)] = &[(JUMP, JOIN), (LOOP_END, LOOP)];
    let fell: &[(u64, u64)] = &[(LOOP_END, LOOP), (JUMP, JOIN)];
    let samples: Vec<_> = std::iter::repeat_n(jumped, 60).chain(std::iter::repeat_n(fell, 40)).collect();
    let data = record(&folder, "x86_64", &samples);
    let (found, document) = fields(&data);
    assert_eq!(found, BTreeMap::from([(COLD.to_owned(), 60), (WARM.to_owned(), 40)]), "{document:#}");
    let explained = run(&["report", "-i", &data, "--explain", &format!("{JOIN:#x}")]);
    assert!(stdout(&explained).contains("by the branch stack of each sample"), "{}", stdout(&explained));
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn without_branches_a_join_is_what_can_have_stalled() {
    let folder = folder("joins-none");
    let (found, document) = fields(&record(&folder, "x86_64", &[&[][..]; 50]));
    assert_eq!(found, BTreeMap::from([(COLD.to_owned(), 50)]), "{document:#}");
    std::fs::remove_dir_all(folder).expect("removed");
}

/// No machine of that architecture could be timed.
#[test]
fn on_aarch64_rules_are_said_to_follow_documents() {
    let folder = folder("joins-aarch64");
    let said = |arch| {
        let data = record(&folder, arch, &[&[][..]; 50]);
        let output = run(&["report", "--stdio", "-i", &data, "-s", "type"]);
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output).contains("# Skid on aarch64: by the architecture's documents, not measured\n")
    };
    assert!(said("aarch64") && !said("x86_64"));
    std::fs::remove_dir_all(folder).expect("removed");
}
