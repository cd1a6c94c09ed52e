//! Policies and tables with anything in them: read or refused with a line of the file, never a panic.

use std::fs;
use std::path::Path;
use tallyline_debuginfo::model::Types;
use tallyline_debuginfo::{Request, read};
use tallyline_layout::check::{Policy, Table, check, check_table};

fn data(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn types() -> Types {
    let bytes = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/holes.o")).expect("a file");
    read(&bytes, &Request { positions: true, ..Request::default() }).expect("types")
}

/// Texts made of one: bytes changed, pieces cut out, doubled and moved.
fn damaged(seed: &str, count: u64) -> impl Iterator<Item = String> {
    let seed = seed.as_bytes().to_vec();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below.max(1) as u64).expect("small")
    };
    (0..count).map(move |_| {
        let mut text = seed.clone();
        for _ in 0..=random(4) {
            let (from, length) = (random(text.len()), random(40));
            let piece = from..(from + length).min(text.len());
            let at = random(text.len());
            match random(4) {
                0 => drop(text.drain(piece)),
                1 => {
                    let copy = text[piece].to_vec();
                    text.splice(at..at, copy);
                }
                2 => text.splice(at..at, *b"=[]\"\n-99999999999999999999 \xc3\xa9").for_each(drop),
                _ if !text.is_empty() => text[at] = b"\n\0[]=\",.#'x9- "[random(14)],
                _ => {}
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    })
}

#[test]
fn damaged_policies_are_read_or_refused_with_a_line_of_theirs() {
    let types = types();
    let (mut read, mut refused) = (0, 0);
    for text in damaged(&data("tests/seeds/layout_policy/all.toml"), 1500) {
        match Policy::parse(&text) {
            Ok(policy) => {
                check(&types, &policy);
                read += 1;
            }
            Err(error) => {
                assert!(error.line() as usize <= text.split('\n').count(), "{error}\n{text}");
                assert!(error.line() >= 1 && !error.message().contains('\n'), "{error}\n{text}");
                refused += 1;
            }
        }
    }
    assert!(read > 10 && refused > 100, "{read} read, {refused} refused");
}

#[test]
fn damaged_tables_are_read_or_refused() {
    let types = types();
    let mut read = 0;
    for format in ["plain", "lines"] {
        for text in damaged(&data(&format!("tests/seeds/layout_table/{format}.rst")), 2000) {
            if let Ok(table) = Table::parse(&text) {
                let report = check_table(&types, &table, 64);
                assert!(report.checked_types() <= 1);
                read += 1;
            }
        }
    }
    assert!(read > 1000, "{read} read");
}
