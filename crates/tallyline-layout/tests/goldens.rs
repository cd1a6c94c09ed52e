//! Equality with the text of pahole 1.32, for small files that cover every rule of its format.
//!
//! The files and outputs in `tests/data` were made by `ci/layout-goldens` with a real pahole; these
//! tests need neither it nor a compiler. Where a C compiler is there, the sources are compiled anew
//! and have to give the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::{Request, read};
use tallyline_layout::print::pahole::{Printer, Style};
use tallyline_layout::query::{self, Filter};

const SOURCES: [&str; 5] = ["atomic", "bitfields", "holes", "kinds", "nesting"];

/// The options that there are goldens for.
const OPTIONS: [&str; 11] =
    ["plain", "hex", "expand", "quiet", "sizes", "line32", "flat", "relative", "holes", "packed", "unions"];

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn style(option: &str) -> Style {
    let style = Style::default();
    match option {
        "hex" => Style { hex: true, ..style },
        "expand" => Style { expand_types: true, ..style },
        "quiet" => style.quiet(),
        "line32" => Style { cacheline: 32, ..style },
        "flat" => Style { flat_arrays: true, ..style },
        "unaligned" => Style { aligned: false, force_padding: false, ..style },
        "relative" => Style { relative_offsets: true, ..style },
        _ => style,
    }
}

fn filter(option: &str) -> Filter {
    match option {
        "holes" => Filter { holes: 1, ..Filter::default() },
        "packed" => Filter { packed: true, structs: true, ..Filter::default() },
        "unions" => Filter { unions: true, ..Filter::default() },
        _ => Filter::default(),
    }
}

/// Returns every type of a file, as an option shows it.
fn show(bytes: &[u8], option: &str) -> String {
    let style = style(option);
    let request = Request { cacheline: style.cacheline, ..Request::default() };
    let types = read(bytes, &request).expect("readable");
    let filter = filter(option);
    let mut printer = Printer::new(&types, style);
    let mut text = Vec::new();
    for (id, record) in lookup::distinct_records(&types) {
        if !filter.accepts(&types, record, printer.packed()) {
            continue;
        }
        if option == "sizes" {
            let record = types.record(record);
            text.extend_from_slice(types.name(record.name));
            let holes = query::layout(&types, record).summary().holes();
            text.extend_from_slice(format!("\t{}\t{holes}\n", record.size).as_bytes());
            continue;
        }
        printer.print(id);
        text.extend_from_slice(printer.text());
        printer.clear();
    }
    String::from_utf8(text).expect("C has plain names")
}

/// Asserts that two texts are equal; the message shows the first line that differs.
fn assert_same(ours: &str, golden: &str, what: &str) {
    for (number, (ours, golden)) in ours.lines().zip(golden.lines()).enumerate() {
        assert_eq!(ours, golden, "{what}: line {}", number + 1);
    }
    assert_eq!(ours.len(), golden.len(), "{what}: one is longer");
}

fn golden(source: &str, format: &str, option: &str) -> String {
    let path = data(&format!("{source}.{format}.{option}.txt"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn dwarf_is_printed_as_pahole_prints_it() {
    for source in SOURCES {
        let bytes = fs::read(data(&format!("{source}.o"))).expect("committed");
        for option in OPTIONS {
            assert_same(
                &show(&bytes, option),
                &golden(source, "dwarf", option),
                &format!("{source}, {option}"),
            );
        }
    }
}

#[test]
fn btf_is_printed_as_pahole_prints_it() {
    for source in SOURCES {
        // what cannot be written as BTF has none
        let Ok(bytes) = fs::read(data(&format!("{source}.btf"))) else { continue };
        for option in OPTIONS {
            let golden = golden(source, "btf", option);
            assert_same(&show(&bytes, option), &golden, &format!("{source}, BTF, {option}"));
        }
    }
}

#[test]
fn btf_of_the_other_byte_order_is_read() {
    for source in SOURCES {
        let Ok(mut bytes) = fs::read(data(&format!("{source}.btf"))) else { continue };
        bytes[..2].reverse();
        let number =
            |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize;
        let types_end = number(4) + number(8) + number(12);
        // everything but the magic, the version and the strings is words of 4 bytes
        bytes[4..types_end].chunks_exact_mut(4).for_each(<[u8]>::reverse);
        assert_same(&show(&bytes, "plain"), &golden(source, "btf", "plain"), source);
    }
}

#[test]
fn dwarf_and_btf_of_one_file_say_the_same() {
    for source in SOURCES {
        let Ok(btf) = fs::read(data(&format!("{source}.btf"))) else { continue };
        let dwarf = fs::read(data(&format!("{source}.o"))).expect("committed");
        // BTF has no alignment, and types come in another order
        let types = |bytes: &[u8]| {
            let mut types = one_by_one(&show(bytes, "unaligned"));
            types.sort();
            types
        };
        assert_eq!(types(&dwarf), types(&btf), "{source}");
    }
}

#[test]
fn every_version_of_dwarf_and_every_compression_gives_the_same() {
    let Some(folder) = folder_if_there_is_a_compiler() else { return };
    let variants: [&[&str]; 9] = [
        &["-gdwarf-2"],
        &["-gdwarf-3"],
        &["-gdwarf-4"],
        &["-gdwarf-5"],
        &["-gdwarf-5", "-gz=zlib"],
        &["-gdwarf-4", "-gz=zlib"],
        &["-gdwarf-4", "-fdebug-types-section"],
        &["-gdwarf-5", "-fdebug-types-section"],
        &["-gdwarf64"],
    ];
    for source in SOURCES {
        let golden = golden(source, "dwarf", "plain");
        for (index, flags) in variants.iter().enumerate() {
            // what is restricted is said since DWARF 3, what is atomic since 5
            if source == "kinds" && flags[0] == "-gdwarf-2" || source == "atomic" && flags[0] != "-gdwarf-5" {
                continue;
            }
            let object = folder.join(format!("{source}.{index}.o"));
            let made = Command::new("cc")
                .args(["-g", "-c", "-o"])
                .arg(&object)
                .args(*flags)
                .arg(data(&format!("{source}.c")))
                .output();
            // a compiler that does not know a flag
            if !made.is_ok_and(|made| made.status.success()) {
                eprintln!("skipped: cc {flags:?} {source}.c");
                continue;
            }
            let ours = show(&fs::read(&object).expect("made"), "plain");
            let (mut ours, mut golden) = (one_by_one(&ours), one_by_one(&golden));
            // type units come in another order
            if flags.contains(&"-fdebug-types-section") {
                ours.sort();
                golden.sort();
            }
            assert_eq!(ours, golden, "{source}, {flags:?}");
        }
    }
    fs::remove_dir_all(folder).expect("removable");
}

/// Returns the types one by one.
fn one_by_one(text: &str) -> Vec<String> {
    let mut types: Vec<String> = Vec::new();
    for line in text.split_inclusive('\n') {
        match types.last_mut() {
            Some(last) if !line.starts_with(['s', 'u']) => last.push_str(line),
            _ => types.push(line.to_string()),
        }
    }
    types
}

fn folder_if_there_is_a_compiler() -> Option<PathBuf> {
    if !Command::new("cc").arg("--version").output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no C compiler");
        return None;
    }
    let folder = std::env::temp_dir().join(format!("tallyline-layout-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("writable");
    Some(folder)
}
