//! Damaged programs: no panic, no endless work.

use std::fs;
use std::path::Path;
use std::process::Command;
use tallyline_debuginfo::NoCompanions;
use tallyline_inference::code::Image;
use tallyline_inference::{Debug, Outcome, Wanted, explain, field_path, infer, infer_by_btf};

/// Returns the number of damaged programs of each kind; more by the environment variable, for fault hunting.
fn rounds() -> u64 {
    std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(60)
}

fn program(flags: &[&str], name: &str) -> Option<Vec<u8>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile-code");
    fs::create_dir_all(&folder).expect("a folder");
    let made = folder.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/orders.c");
    let status = Command::new("gcc").args(flags).arg("-o").arg(&made).arg(source).status();
    match status {
        Ok(status) => {
            assert!(status.success());
            Some(fs::read(made).expect("the program"))
        }
        Err(_) => {
            eprintln!("skipped: no gcc");
            None
        }
    }
}

/// Returns the next pseudo-random number.
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

fn damaged(bytes: &[u8], seed: &mut u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + next(seed) % 40 {
        let at = next(seed) as usize % bytes.len();
        bytes[at] = match next(seed) % 4 {
            0 => 0,
            1 => 0xff,
            2 => bytes[at].wrapping_add(1),
            _ => next(seed) as u8,
        };
    }
    bytes
}

fn look_at(bytes: &[u8]) {
    let Ok(image) = Image::parse(bytes) else { return };
    let tables = [
        infer(&image, Debug::Bytes(bytes), &NoCompanions, Wanted::All),
        infer_by_btf(&image, bytes, Wanted::All),
    ];
    for table in tables.into_iter().flatten() {
        for (address, outcome) in table.rows() {
            if let Outcome::Typed(typed) = outcome {
                field_path(table.types(), typed);
            }
            table.function_at(*address);
        }
        if let Some((address, _)) = table.rows().get(table.rows().len() / 2) {
            let _ = explain(&image, Debug::Bytes(bytes), &NoCompanions, *address);
        }
    }
}

#[test]
fn damaged_programs_are_read_without_a_panic() {
    for (flags, name) in [(&["-g", "-O2"][..], "two"), (&["-g", "-O0"], "zero"), (&["-gbtf", "-O2"], "btf")] {
        let Some(bytes) = program(flags, name) else { return };
        look_at(&bytes);
        let mut seed = 0x9e37_79b9_7f4a_7c15;
        for _ in 0..rounds() {
            look_at(&damaged(&bytes, &mut seed));
        }
        for _ in 0..rounds() / 4 {
            let length = next(&mut seed) as usize % bytes.len();
            look_at(&bytes[..length]);
        }
    }
}
