//! Counts the instructions of a program whose memory operand has a type, over all functions and without a recording.
//!
//! `type_stat FILE [--btf] [--list]` counts, by DWARF or by the BTF in the file, the instructions that
//! access memory: typed, of no type in the program, and untyped by reason. `--compare` does both, and
//! says where the two agree. `--list` prints each untyped instruction, `--rows` each typed one,
//! `--explain=ADDRESS` what is known before each instruction up to one.

use object::{Object, ObjectSection};
use std::collections::BTreeMap;
use std::fs::File;
use std::process::ExitCode;
use std::time::Instant;
use tallyline_debuginfo::NoCompanions;
use tallyline_debuginfo::type_text;
use tallyline_inference::code::Image;
use tallyline_inference::{
    Debug, Outcome, TypeTable, Typed, Wanted, explain, field_path, infer, infer_by_btf, place_text,
};

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("type_stat: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|given| given == word);
    let path = words
        .iter()
        .find(|word| !word.starts_with("--"))
        .ok_or("usage: type_stat FILE [--btf] [--compare] [--list] [--rows]")?;
    let file = File::open(path)?;
    let image = Image::read(&file)?;
    let by_btf = || -> Result<TypeTable, Failure> { Ok(infer_by_btf(&image, &btf(&file)?, Wanted::All)?) };
    let by_dwarf = || -> Result<TypeTable, Failure> {
        Ok(infer(&image, Debug::File(&file), &NoCompanions, Wanted::All)?)
    };
    if has("--compare") {
        compare(&by_dwarf()?, &by_btf()?);
        return Ok(());
    }
    if let Some(address) = words.iter().find_map(|word| word.strip_prefix("--explain=0x")) {
        let address = u64::from_str_radix(address, 16)?;
        let found =
            explain(&image, Debug::File(&file), &NoCompanions, address)?.ok_or("no function there")?;
        found.variables().iter().for_each(|variable| println!("{variable}"));
        found.steps().iter().for_each(|step| println!("{:#x}: {}", step.address(), step.known().join("; ")));
        println!("{}", found.answer());
        return Ok(());
    }
    let start = Instant::now();
    let table = if has("--btf") { by_btf()? } else { by_dwarf()? };
    count(&table);
    println!("{:.1} s", start.elapsed().as_secs_f64());
    if has("--list") {
        list(&table);
    }
    if has("--rows") {
        rows(&table);
    }
    Ok(())
}

/// Returns the section with BTF.
fn btf(file: &File) -> Result<Vec<u8>, Failure> {
    let cache = object::ReadCache::new(file);
    let elf = object::File::parse(&cache)?;
    let section = elf.section_by_name(".BTF").ok_or("no section .BTF")?;
    Ok(section.data()?.to_vec())
}

fn count(table: &TypeTable) {
    let (mut typed, mut pseudo) = (0_u64, BTreeMap::new());
    let mut untyped: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, outcome) in table.rows() {
        match outcome {
            Outcome::Typed(_) => typed += 1,
            Outcome::Pseudo(kind) => *pseudo.entry(kind.name()).or_insert(0_u64) += 1,
            Outcome::Untyped(reason) => *untyped.entry(reason.kind()).or_default() += 1,
        }
    }
    let eligible = typed + untyped.values().sum::<u64>();
    println!("{} instructions of {} functions access memory", table.rows().len(), table.functions().len());
    println!("typed {typed} of {eligible}: {:.2} %", 100.0 * typed as f64 / eligible.max(1) as f64);
    for (reason, number) in untyped {
        println!("{number:>10}  {:>5.2} %  {reason}", 100.0 * number as f64 / eligible.max(1) as f64);
    }
    for (kind, number) in pseudo {
        println!("{number:>10}           {kind}");
    }
}

fn rows(table: &TypeTable) {
    for (address, outcome) in table.rows() {
        let Outcome::Typed(typed) = outcome else { continue };
        let function = table.function_at(*address).map_or("?", |function| function.name());
        let (name, place) = (type_text(table.types(), typed.ty()), place_text(table.types(), typed));
        println!("{address:#x}\t{function}\t{name} {place}");
    }
}

fn list(table: &TypeTable) {
    for (address, outcome) in table.rows() {
        let Outcome::Untyped(reason) = outcome else { continue };
        let function = table.function_at(*address).map_or("?", |function| function.name());
        println!("{address:#x}\t{function}\t{}\t{reason}", reason.kind());
    }
}

/// Compares the tables by DWARF and by BTF where both name a type: the same record and byte, or one inside the other.
fn compare(dwarf: &TypeTable, btf: &TypeTable) {
    let (mut same, mut differ, mut only_dwarf, mut only_btf) = (0_u64, 0_u64, 0_u64, 0_u64);
    let text = |table: &TypeTable, typed: &Typed| {
        let types = table.types();
        format!("{} +{:#x} {}", type_text(types, typed.ty()), typed.offset(), field_path(types, typed))
    };
    for (address, outcome) in dwarf.rows() {
        match (outcome, btf.outcome(*address)) {
            (Outcome::Typed(one), Some(Outcome::Typed(other))) => {
                let (one, other) = (text(dwarf, one), text(btf, &other));
                if one == other {
                    same += 1;
                } else {
                    differ += 1;
                    let function = dwarf.function_at(*address).map_or("?", |function| function.name());
                    println!("{address:#x}\t{function}\t{one}\t{other}");
                }
            }
            (Outcome::Typed(_), _) => only_dwarf += 1,
            (_, Some(Outcome::Typed(_))) => only_btf += 1,
            _ => {}
        }
    }
    eprintln!("the same {same}, another {differ}, only by DWARF {only_dwarf}, only by BTF {only_btf}");
}
