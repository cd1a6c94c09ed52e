//! Random structs: whatever is proposed for them compiles to exactly what was promised.

mod common;

use common::{compiles, folder, run};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write;
use std::process::Command;

const STRUCTS: usize = 300;

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn one_of<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }
}

const SCALARS: [&str; 12] = [
    "char",
    "short",
    "int",
    "long",
    "long long",
    "float",
    "double",
    "long double",
    "void *",
    "_Bool",
    "enum e",
    "int (*)",
];

/// Returns the declaration of a member.
fn member(random: &mut Random, index: usize, known: usize) -> String {
    let name = format!("m{index}");
    match random.below(16) {
        0..=2 => {
            let (ty, most) = *[("unsigned", 32), ("char", 8), ("unsigned long long", 64), ("short", 16)]
                .get(random.below(4) as usize)
                .expect("four");
            format!("{ty} {name} : {}", 1 + random.below(most))
        }
        3 if known > 0 => format!("struct s{} {name}", random.below(known as u64)),
        4 if known > 0 => format!("struct s{} {name}[2]", random.below(known as u64)),
        5 => format!("union {{ char c[{}]; int i; double d; }} {name}", 1 + random.below(20)),
        6 => format!("struct {{ char a; short b : 3; int c; }} {name}"),
        7 => format!("char {name}[{}]", 1 + random.below(30)),
        8 => format!("int {name} __attribute__((aligned({})))", 1 << random.below(7)),
        9 => format!("long {name} __attribute__((packed))"),
        10 => format!("{} {name}", random.one_of(&["less", "more", "many", "four"])),
        11 if random.below(3) == 0 => format!("char {name}[0]"),
        _ => {
            let ty = random.one_of(&SCALARS);
            if ty == "int (*)" { format!("int (*{name})(void)") } else { format!("{ty} {name}") }
        }
    }
}

fn program(random: &mut Random) -> String {
    let mut text = String::from(
        "enum e { A, B };\ntypedef long long less __attribute__((aligned(2)));\n\
         typedef int more __attribute__((aligned(16)));\ntypedef short many[3];\n\
         typedef float four __attribute__((vector_size(16)));\n",
    );
    for at in 0..STRUCTS {
        let _ = write!(text, "struct s{at} {{ ");
        // small ones are held by others
        let count = if at < 30 { 2 + random.below(4) } else { 3 + random.below(14) };
        for index in 0..count as usize {
            let member = member(random, index, at.min(30));
            let _ = write!(text, "{member}; ");
        }
        let attribute = match random.below(20) {
            0 => "__attribute__((packed))",
            1 => "__attribute__((aligned(32)))",
            _ => "",
        };
        let _ = writeln!(text, "}} {attribute};\nstruct s{at} v{at};");
    }
    text
}

/// Returns every type of the document by its name.
fn by_name(document: &Value) -> HashMap<&str, &Value> {
    let types = document["types"].as_array().expect("types");
    types.iter().map(|one| (one["name"].as_str().expect("a name"), one)).collect()
}

fn check(file: &str, options: &[&str]) {
    let output = run(&[&["reorganize", "--json", "--verify", "--all"], options, &[file]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let types = by_name(&document);
    assert_eq!(types.len(), STRUCTS);
    let totals = &document["totals"];
    assert!(totals["together"]["saved"].as_u64() > totals["as_pinned"].as_u64(), "{totals}");
    assert!(totals["together"]["verified"].is_string(), "{totals}");
    let (mut smaller, mut hidden) = (0, 0);
    for (name, one) in types {
        match one["outcome"].as_str() {
            Some("smaller") => {
                smaller += 1;
                assert!(one["verified"].is_string(), "{name}: {one}");
                assert!(one["new"]["size"].as_u64() < one["old"]["size"].as_u64(), "{name}: {one}");
                without_overlap(one);
            }
            Some("smallest") => assert_eq!(one["optimal"], true, "{name}: {one}"),
            Some("refused") => {
                // packed members of what a struct holds may show nowhere
                let why = one["reason"].as_str().expect("a reason");
                hidden += usize::from(why.contains("no alignment explains"));
                assert!(why.contains("packed") || why.contains("no alignment explains"), "{name}: {one}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    assert!(smaller > STRUCTS / 5, "{smaller} of {STRUCTS} can be smaller");
    assert!(hidden * 50 < STRUCTS, "{hidden} of {STRUCTS} are not explained");
}

/// Asserts that every printed definition compiles to the promised layout.
fn check_texts(file: &str) {
    let names: Vec<String> = (0..STRUCTS).step_by(4).map(|at| format!("s{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let output =
        run(&[&["reorganize", "--json", "--verify", "--unpin", "ends"], &names[..], &[file]].concat());
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut verified = 0;
    for (name, one) in by_name(&document) {
        if one["outcome"] == "smaller" || one["outcome"] == "withheld" {
            verified += 1;
            assert!(one["verified"].is_string(), "{name}: {one}");
        }
    }
    assert!(verified > 20, "{verified}");
}

/// Asserts that members keep their names and follow each other.
fn without_overlap(one: &Value) {
    let members = one["members"].as_array().expect("members");
    let mut names: Vec<&str> = members.iter().filter_map(|member| member["name"].as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), members.len(), "{one}");
    let mut filled = 0;
    for member in members {
        let start = member["bit_offset"].as_u64().expect("a number");
        assert!(start >= filled, "{one}");
        let bits = member["bits"].as_u64().or_else(|| Some(member["size"].as_u64()? * 8));
        filled = start + bits.expect("a size");
    }
    assert!(filled <= one["new"]["size"].as_u64().expect("a size") * 8, "{one}");
}

#[test]
fn every_proposal_for_a_random_struct_holds() {
    let folder = folder("reorganize-random");
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for machine in ["-m64", "-m32"] {
        let source = folder.join("random.c");
        let object = folder.join(format!("random{machine}.o"));
        std::fs::write(&source, program(&mut random)).expect("written");
        let native = if cfg!(target_arch = "x86_64") { vec![machine] } else { vec![] };
        let mut compiler = Command::new("cc");
        compiler.args(native).args(["-w", "-g", "-c", "-o"]).arg(&object).arg(&source);
        if !compiles(&mut compiler) {
            return;
        }
        let file = object.to_str().expect("a plain path");
        check(file, &[]);
        check(file, &["--unpin", "ends"]);
        check_texts(file);
    }
}
