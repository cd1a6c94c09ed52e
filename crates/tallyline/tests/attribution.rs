//! Whom reports blame, by raw samples of the CPUs that were to be had: `tallyline bench attribution
//! --save-fixtures` wrote them, beside the programs that they are of.

mod common;

use common::{run, stderr};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tallyline_inference::code::{Body, FlagOperation, Flow, FusiblePair, Image, JumpCondition, OperandForm};

/// Returns the recordings; none, with a message, in a package of this crate alone, which has no
/// tallyline-bench to judge them.
fn folders() -> Vec<PathBuf> {
    if !Path::new(env!("CARGO_BIN_EXE_tallyline")).with_file_name("tallyline-bench").is_file() {
        eprintln!("skipped: no tallyline-bench beside tallyline");
        return Vec::new();
    }
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/attribution");
    let entries = fs::read_dir(all).expect("fixtures");
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    folders.sort();
    folders
}

/// Returns the recordings of Zen 5, which are among all.
fn zen_5() -> Option<PathBuf> {
    let all = folders();
    let found = all.iter().find(|folder| folder.ends_with("AuthenticAMD-26-2-1")).cloned();
    assert!(found.is_some() || all.is_empty(), "no recordings of Zen 5");
    found
}

fn judged(folder: &Path, words: &[&str]) -> Value {
    let folder = folder.to_str().expect("a plain path");
    let output = run(&[&["bench", "attribution", "--fixtures", folder, "--json"], words].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Returns the shapes of a document: compiler, and results.
fn shapes(document: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let programs = document["programs"].as_array().expect("programs");
    programs.iter().flat_map(|program| {
        let compiler = program["compiler"].as_str().expect("a name");
        program["shapes"].as_array().expect("shapes").iter().map(move |shape| (compiler, shape))
    })
}

#[test]
fn samples_of_each_recorded_cpu_are_those_of_the_access_that_stalled() {
    for folder in folders() {
        let kept = common::folder("attribution-kept");
        let document = judged(&folder, &["--keep", kept.to_str().expect("a plain path")]);
        if folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"AuthenticAMD")) {
            check_pairs_of_amd(&kept);
        }
        fs::remove_dir_all(kept).expect("removed");
        let mut judged = 0;
        for (compiler, result) in shapes(&document) {
            let shape = result["shape"].as_str().expect("a name");
            let verdict = result["ours"]["verdict"].as_str().expect("a verdict");
            judged += 1;
            let is_met = ["met", "within_error"].contains(&verdict);
            assert!(is_met, "{}: {shape} by {compiler}: {result:#}", folder.display());
        }
        assert!(judged > 0, "{}", folder.display());
    }
}

#[test]
fn samples_without_correction_name_the_instruction_behind() {
    let Some(folder) = zen_5() else { return };
    let document = judged(&folder, &["--shape", "load", "--shape", "member"]);
    let mut all = shapes(&document).peekable();
    assert!(all.peek().is_some());
    for (_, result) in all {
        let share = |side: &str, of: &str| result[side][of].as_f64().expect("a share");
        assert!(share("uncorrected", "right") < 5.0 && share("uncorrected", "other") > 85.0, "{result:#}");
        assert!(share("ours", "right") > 85.0 && share("ours", "other") < 5.0, "{result:#}");
    }
}

/// Checks what recordings teach of pairs: AMD's manuals have some that are decoded as one, yet there are samples between
/// their halves, and what is assumed where samples are few agrees with what others teach.
fn check_pairs_of_amd(kept: &Path) {
    let (mut learnt, mut assumed) = (0, 0);
    let entries = fs::read_dir(kept).expect("recordings").map(|entry| entry.expect("an entry").path());
    for recording in entries.filter(|path| path.extension().is_some_and(|extension| extension == "data")) {
        let data = recording.to_str().expect("a plain path");
        let output = run(&["report", "--json", "-i", data, "-s", "type"]);
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        for pair in document["fused_pairs"].as_array().expect("pairs") {
            assert_eq!(pair["fused"], false, "{data}: {pair}");
            *if pair["learnt"].is_null() { &mut assumed } else { &mut learnt } += 1;
        }
    }
    assert!(learnt > 30 && assumed > 0, "{}: {learnt} learnt, {assumed} assumed", kept.display());
}

/// Returns whether Intel's CPUs retire a pair as one: "Intel 64 and IA-32 Architectures Optimization Reference
/// Manual", macro-fusion in Sandy Bridge and later.
fn is_fused_by_intel(pair: &FusiblePair) -> bool {
    use FlagOperation::{Add, And, Cmp, Dec, Inc, Sub, Test};
    use JumpCondition::{Carry, Signed, Zero};
    let has_form = matches!(
        pair.operands(),
        OperandForm::Registers | OperandForm::Immediate | OperandForm::Memory | OperandForm::RelativeMemory
    );
    has_form
        && match pair.operation() {
            Test | And => true,
            Cmp | Add | Sub => matches!(pair.condition(), Zero | Carry | Signed),
            Inc | Dec => matches!(pair.condition(), Zero | Signed),
            _ => false,
        }
}

/// Makes a model of a CPU that retires pairs as one out of samples of a CPU that does not: what lies between the halves
/// of a pair then lies behind it, on both ways. Returns how many samples that are.
fn move_behind_pairs(program: &Path, counts: &mut BTreeMap<u64, u64>) -> u64 {
    let image = Image::parse(&fs::read(program).expect("the program")).expect("an image");
    let mut moved = 0;
    for function in image.functions().iter().filter(|function| function.size() > 0) {
        let range = function.address()..function.address() + function.size();
        let body = Body::decode(&image, std::slice::from_ref(&range), function.address());
        let jumps = (0..body.instructions().len())
            .filter(|position| body.pair_at(*position).is_some_and(|pair| is_fused_by_intel(&pair)));
        for jump in jumps.map(|position| &body.instructions()[position]) {
            let (address, Flow::Branch(taken)) = (jump.address(), jump.flow()) else { continue };
            // offsets in these programs are addresses
            assert_eq!(image.address_of(address), Some(address));
            let Some(samples) = counts.remove(&address) else { continue };
            *counts.entry(jump.end()).or_default() += samples / 2;
            *counts.entry(taken).or_default() += samples - samples / 2;
            moved += samples;
        }
    }
    moved
}

#[test]
fn a_model_of_a_cpu_that_fuses_pairs_blames_the_compare() {
    let Some(folder) = zen_5() else { return };
    let model = common::folder("attribution-model");
    for compiler in ["gcc", "clang"] {
        let program = model.join(format!("shapes-{compiler}"));
        fs::copy(folder.join(format!("shapes-{compiler}")), &program).expect("the program");
        let name = format!("{compiler}.samples");
        let text = fs::read_to_string(folder.join(&name)).expect("samples");
        let (header, lines) = text.split_once('\n').expect("a header");
        let mut header: Value = serde_json::from_str(header).expect("a header");
        header["cpu"] = "model after Intel's rules of macro-fusion".into();
        header["cpu_id"] = "GenuineIntel-6-207-2".into();
        // the return addresses do not matter here
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for line in lines.lines() {
            let mut words = line.split(' ');
            let offset = words.next().and_then(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
            let samples: Option<u64> = words.next().and_then(|word| word.parse().ok());
            *counts.entry(offset.expect("an offset")).or_default() += samples.expect("a number");
        }
        assert!(move_behind_pairs(&program, &mut counts) > 10_000);
        let lines: Vec<String> = counts.iter().map(|(at, samples)| format!("{at:#x} {samples}")).collect();
        fs::write(model.join(name), format!("{header}\n{}\n", lines.join("\n"))).expect("written");
    }
    let shapes_of_pairs = [
        "--shape",
        "load_*",
        "--shape",
        "cmp_*",
        "--shape",
        "test_*",
        "--shape",
        "sub",
        "--shape",
        "add",
        "--shape",
        "and",
        "--shape",
        "or",
        "--shape",
        "xor",
        "--shape",
        "increment",
        "--shape",
        "decrement",
        "--shape",
        "loop_end",
        "--shape",
        "join_*",
        "--shape",
        "chain",
    ];
    let document = judged(&model, &shapes_of_pairs);
    for (compiler, result) in shapes(&document) {
        let verdict = result["ours"]["verdict"].as_str().expect("a verdict");
        assert!(["met", "within_error"].contains(&verdict), "{compiler}: {result:#}");
    }
    fs::remove_dir_all(model).expect("removed");
}
