//! Damaged files: bits flipped, bytes overwritten, ends cut off. No panic, and no endless output.
//!
//! This is the quick part of what the targets in `fuzz/` do for as long as they are left to.

use std::fs;
use std::path::{Path, PathBuf};
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::model::Types;
use tallyline_debuginfo::{
    Companion, Companions, Contents, Error, PointerTargets, Request, Wanted, read, read_with, read_with_base,
};
use tallyline_layout::print::pahole::{Printer, Style};
use tallyline_layout::print::{html, json};
use tallyline_layout::{check, diff, groups, query};

/// The limit on printed text of a type: the end of what is open when it is reached still follows.
const BUDGET: usize = 1 << 16;

const ROUNDS: u64 = 400;

fn data(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)).expect("committed")
}

/// A small generator of numbers that are the same on every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Does with a file what a user could.
fn use_it(bytes: &[u8]) {
    let named = Wanted::named(["nested", "arrays", "holes", "simple", "row_t", "signs"]);
    let plain = |wanted| Request { wanted, ..Request::default() };
    let deep = Request {
        inner: true,
        anonymous: true,
        positions: true,
        pointer_targets: PointerTargets::Declarations,
        ..Request::default()
    };
    if let Ok(types) = read(bytes, &plain(Wanted::Records)) {
        in_other_formats(&types);
    }
    let exact = Request { exact: true, positions: true, typedefs: true, ..Request::default() };
    let first = plain(Wanted::First(vec![b"holes".to_vec(), b"row_t".to_vec()]));
    for request in
        [plain(Wanted::Records), plain(named), exact, first, plain(Wanted::Enumerator(b"MINUS".into())), deep]
    {
        let Ok(types) = read(bytes, &request) else { continue };
        for expand_types in [false, true] {
            let style = Style { expand_types, budget: BUDGET, ..Style::default() };
            let mut printer = Printer::new(&types, style);
            for id in types.listed() {
                printer.print(*id);
                assert!(printer.text().len() <= 2 * BUDGET);
                printer.clear();
            }
            for id in types.listed() {
                printer.print_compilable(*id, types.type_name(*id));
                printer.clear();
            }
        }
        let mut definitions = lookup::Definitions::new(&types);
        definitions.called(b"struct row_t");
        definitions.records();
        for (id, record) in lookup::distinct_records(&types) {
            query::ends_flexibly(&types, types.record(record));
            query::count_members_of(&types, types.record(record), &[id]);
            query::pointer_members(&types, types.record(record), &[id]).count();
            query::first_biggest_member(&types, types.record(record));
        }
    }
}

/// Prints types in the other formats, and runs the other queries.
fn in_other_formats(types: &Types) {
    let mut document = json::Document::start(types, 64, std::io::sink()).expect("a sink");
    let mut sections = html::Sections::new(types, 64);
    for (id, record) in lookup::distinct_records(types).into_iter().take(4) {
        let record = types.record(record);
        document.add(id).expect("a sink");
        sections.section(id);
        sections.index_row(id);
        let found = groups::find(types, record, 64);
        groups::asserts(types, record, record.name, &found.groups, groups::Dialect::Rust, 64);
    }
    document.finish().expect("a sink");
    let counts =
        diff::diff(types, types, &diff::DiffOptions::default(), |change| Err(change.name().to_string()));
    assert!(!counts.expect("a file does not differ from itself").differ());
    let names = check::SuggestedNames::new(types, &["?*s".into()], 64);
    let mut policy = String::new();
    names.parts().for_each(|part| check::suggest(types, &part, 64, &mut policy));
    let policy = check::Policy::parse(&policy).expect("what is suggested can be read");
    check::check(types, &policy);
}

fn damage(original: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = original.to_vec();
    match numbers.below(8) {
        0 => bytes.truncate(numbers.below(original.len())),
        1 => {
            let from = numbers.below(original.len());
            let value = [0, 0xff, 0x7f, 0x80][numbers.below(4)];
            bytes[from..].iter_mut().take(1 + numbers.below(8)).for_each(|byte| *byte = value);
        }
        2 => {
            let (from, to) = (numbers.below(original.len()), numbers.below(original.len()));
            let length = numbers.below(32).min(original.len() - from).min(original.len() - to);
            bytes.copy_within(from..from + length, to);
        }
        _ => {
            for _ in 0..=numbers.below(4) {
                let at = numbers.below(bytes.len());
                bytes[at] ^= 1 << numbers.below(8);
            }
        }
    }
    bytes
}

/// Gives the same bytes, whatever is asked for.
struct Same<'b>(&'b [u8]);

impl Companions for Same<'_> {
    fn open(&self, _wanted: Companion<'_>) -> Result<Contents, Vec<PathBuf>> {
        Ok(Contents::Bytes(self.0.to_vec()))
    }
}

#[test]
fn damaged_companions_do_no_harm() {
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    for (name, companion) in [
        ("split4.o", "split4.dwo"),
        ("split5.o", "split5.dwo"),
        ("split4.o", "split4.dwp"),
        ("split5.o", "split5.dwp"),
        ("shared.so", "shared.dwz"),
    ] {
        let [main, beside] = [name, companion].map(|name| data(&format!("companions/{name}")));
        for round in 0..ROUNDS {
            let companion = if round == 0 { beside.clone() } else { damage(&beside, &mut numbers) };
            let main = if round % 4 == 3 { damage(&main, &mut numbers) } else { main.clone() };
            // a file may also be its own companion
            for companion in [&companion, &main] {
                let types = read_with(&main, &Request::default(), &Same(companion));
                assert!(round != 0 || companion == &main || types.is_ok(), "{name}: {types:?}");
                let Ok(types) = types else { continue };
                let mut printer = Printer::new(&types, Style { budget: BUDGET, ..Style::default() });
                for id in types.listed() {
                    printer.print(*id);
                    assert!(printer.text().len() <= 2 * BUDGET, "{name}, round {round}");
                    printer.clear();
                }
            }
        }
    }
}

fn survive(names: &[&str]) {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for name in names {
        let original = data(name);
        use_it(&original);
        for _ in 0..ROUNDS {
            use_it(&damage(&original, &mut numbers));
        }
    }
}

#[test]
fn damaged_btf_does_no_harm() {
    survive(&["kinds.btf", "nesting.btf", "bitfields.btf"]);
}

#[test]
fn damaged_dwarf_does_no_harm() {
    survive(&["kinds.o", "nesting.o", "bitfields.o"]);
}

#[test]
fn a_file_cut_off_anywhere_gives_an_error_or_types() {
    let original = data("holes.btf");
    for length in 0..original.len() {
        use_it(&original[..length]);
        let _ = read_with_base(&original, &original[..length], &Request::default());
    }
}

#[test]
fn types_that_unfold_without_end_are_cut() {
    // anonymous struct n holds two anonymous structs n + 1: 2^60 lines if nobody stops
    let depth = 60_u32;
    let mut types = Vec::new();
    let mut word = |value: u32| types.extend_from_slice(&value.to_le_bytes());
    for level in 0..depth {
        word(u32::from(level == 0));
        word(4 << 24 | 2);
        word(8);
        for _ in 0..2 {
            word(0);
            word(if level + 1 == depth { depth + 1 } else { level + 2 });
            word(0);
        }
    }
    // an int at the end
    [1, 1 << 24, 4, 32].into_iter().for_each(&mut word);
    let btf = raw_btf(&types, b"\0x\0");
    use_it(&btf);
    let types = read(&btf, &Request::default()).expect("sound");
    let mut printer = Printer::new(&types, Style { budget: BUDGET, ..Style::default() });
    let mut longest = 0;
    for id in types.listed() {
        printer.print(*id);
        longest = longest.max(printer.text().len());
        printer.clear();
    }
    // it is the budget that ends it
    assert!((BUDGET..=2 * BUDGET).contains(&longest), "{longest}");
}

/// Prints a chain of structs, each of which holds the next; returns the bytes of all printed texts.
fn print_chain(depth: u32) -> usize {
    // each has a name of its own by its size
    let mut types = Vec::new();
    let mut word = |value: u32| types.extend_from_slice(&value.to_le_bytes());
    for level in 1..=depth {
        [1, 4 << 24 | 1, level, 1, level + 1, 0].into_iter().for_each(&mut word);
    }
    [1, 1 << 24, 4, 32].into_iter().for_each(&mut word);
    let types = read(&raw_btf(&types, b"\0x\0"), &Request::default()).expect("sound");
    let mut printer = Printer::new(&types, Style::default());
    let mut bytes = 0;
    for (id, _) in lookup::distinct_records(&types) {
        printer.print(id);
        bytes += printer.text().len();
        printer.clear();
    }
    bytes
}

#[test]
fn text_of_deep_chains_of_structs_grows_in_proportion() {
    let (half, whole) = (print_chain(10_000), print_chain(20_000));
    assert!(half > 10_000 && whole < half * 5 / 2, "{half} bytes, {whole} for twice the depth");
}

#[test]
fn records_deep_in_each_other_end_at_the_limit_of_work() {
    // a unit of C++, and `a` in `a` in `a` and so on, each of another size
    let depth = 200_000_u32;
    let abbreviations = [1, 0x11, 1, 0x13, 0x0b, 0, 0, 2, 0x13, 1, 0x03, 0x08, 0x0b, 0x06, 0, 0, 0];
    let mut entries = vec![1, 0x04];
    for level in 0..depth {
        entries.extend([2, b'a', 0]);
        entries.extend(level.to_le_bytes());
    }
    entries.resize(entries.len() + depth as usize + 1, 0);
    let mut units = (entries.len() as u32 + 7).to_le_bytes().to_vec();
    units.extend([4, 0, 0, 0, 0, 0, 8]);
    units.extend(entries);
    let file = elf(&[(".debug_info", &units), (".debug_abbrev", &abbreviations)]);
    // each holds all that are in it: the reader counts its work, and gives up
    assert!(matches!(read(&file, &Request::default()), Err(Error::Limit { .. })));
}

/// Returns an ELF file with some sections.
fn elf(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut names = vec![0];
    let mut bytes = vec![0; 64];
    // a header: name, type, flags, address, offset, size, link and info, alignment, size of entries
    let header = |name: usize, ty: u32, offset: usize, size: usize| {
        let start = [name as u32, ty].map(u32::to_le_bytes).concat();
        let rest = [0, 0, offset as u64, size as u64, 0, 1, 0].map(u64::to_le_bytes).concat();
        [start, rest].concat()
    };
    let mut headers = header(0, 0, 0, 0);
    for (name, section) in sections {
        headers.extend(header(names.len(), 1, bytes.len(), section.len()));
        names.extend(name.bytes().chain([0]));
        bytes.extend(*section);
    }
    headers.extend(header(0, 3, bytes.len(), names.len()));
    bytes.extend(&names);
    let count = sections.len() as u8 + 2;
    // 64 bits, low bytes first; a program for x86-64
    bytes[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
    bytes[16..24].copy_from_slice(&[2, 0, 62, 0, 1, 0, 0, 0]);
    let at = bytes.len() as u64;
    bytes[40..48].copy_from_slice(&at.to_le_bytes());
    bytes[52..64].copy_from_slice(&[64, 0, 0, 0, 0, 0, 64, 0, count, 0, count - 1, 0]);
    bytes.extend(headers);
    bytes
}

#[test]
fn typedefs_of_themselves_end() {
    let mut types = Vec::new();
    let mut word = |value: u32| types.extend_from_slice(&value.to_le_bytes());
    // typedef x x; const of itself; an array of itself; a struct with all of them, and itself
    [1, 8 << 24, 1].into_iter().for_each(&mut word);
    [0, 10 << 24, 2].into_iter().for_each(&mut word);
    [0, 3 << 24, 0, 3, 1, 7].into_iter().for_each(&mut word);
    [1, 4 << 24 | 4, 64].into_iter().for_each(&mut word);
    for member in 1..=4 {
        [1, member, 0].into_iter().for_each(&mut word);
    }
    // a pointer to itself, and a function that returns and takes itself
    [0, 2 << 24, 5].into_iter().for_each(&mut word);
    [0, 13 << 24 | 1, 6, 1, 6].into_iter().for_each(&mut word);
    use_it(&raw_btf(&types, b"\0x\0"));
}

fn raw_btf(types: &[u8], strings: &[u8]) -> Vec<u8> {
    let mut btf = vec![0x9f, 0xeb, 1, 0];
    for value in [24, 0, types.len() as u32, types.len() as u32, strings.len() as u32] {
        btf.extend_from_slice(&value.to_le_bytes());
    }
    btf.extend_from_slice(types);
    btf.extend_from_slice(strings);
    btf
}
