use super::super::outcome::{Choice, Outcome, Pseudo, Reason, Typed};
use super::super::table::Part;
use super::super::{field_path, infer_queries};
use super::*;
use crate::code::{Access, Register};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use tallyline_debuginfo::NoCompanions;
use tallyline_debuginfo::model::{Packer, Type, Types, Unpacker};
use tallyline_debuginfo::type_text;

/// A store in memory, as far as open files let it; counts what is kept.
#[derive(Default)]
struct Memory {
    bytes: Mutex<Option<Vec<u8>>>,
    kept: Mutex<u32>,
    stamp: &'static str,
}

impl Store for Memory {
    fn open(&self) -> Option<File> {
        let bytes = self.bytes.lock().expect("one thread").clone()?;
        Some(file(&bytes))
    }

    fn keep(&self, bytes: &[u8]) {
        *self.bytes.lock().expect("one thread") = Some(bytes.to_vec());
        *self.kept.lock().expect("one thread") += 1;
    }

    fn stamp(&self) -> &[u8] {
        self.stamp.as_bytes()
    }
}

impl Memory {
    fn taken(&self) -> Vec<u8> {
        self.bytes.lock().expect("one thread").clone().expect("something was kept")
    }

    fn times(&self) -> u32 {
        *self.kept.lock().expect("one thread")
    }
}

/// Returns a file without a name.
fn file(bytes: &[u8]) -> File {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("tallyline-kept-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    let mut file =
        File::options().read(true).write(true).create_new(true).open(&path).expect("a place for files");
    std::fs::remove_file(&path).expect("own file");
    file.write_all(bytes).and_then(|()| file.rewind()).expect("writable");
    file
}

/// Returns every kind of outcome.
fn outcomes() -> Vec<(u64, Outcome)> {
    let (ty, register) = (tallyline_debuginfo::model::TypeId::VOID, Register(7));
    let typed = |access| Outcome::Typed(Typed::at(ty, 300, 8, access));
    let either = |start| {
        let or = Some(Choice { offset: 8, start, both: start.is_none() });
        Outcome::Typed(Typed { or, candidates: 5, ..Typed::at(ty, 0, 4, Access::Read) })
    };
    let mut all: Vec<Outcome> = [Access::Read, Access::Write, Access::ReadWrite].map(typed).to_vec();
    all.extend([either(None), either(Some(-16))]);
    all.extend(Pseudo::ALL.map(Outcome::Pseudo));
    all.extend(
        [
            Reason::NoDebugInformation,
            Reason::NoInstruction,
            Reason::NoVariable(register),
            Reason::Lost { register, at: u64::MAX },
            Reason::NoVariableAt(0x4000),
            Reason::Opaque(ty),
            Reason::Outside { ty, offset: i32::MIN },
            Reason::Index { ty, step: 24, start: None },
            Reason::Index { ty, step: u32::MAX, start: Some(-8) },
            Reason::Segment,
            Reason::Unreached,
        ]
        .map(Outcome::Untyped),
    );
    (0..).map(|index| 0x1000 + index * 4).zip(all).collect()
}

/// Returns the types of nothing.
fn no_types() -> Types {
    let mut out = Packer::default();
    tallyline_debuginfo::read(include_bytes!("../../tests/data/nesting.btf"), &Default::default())
        .expect("BTF")
        .pack(&mut out);
    let bytes = out.into_bytes();
    Types::unpack(&mut Unpacker::new(&bytes)).expect("packed")
}

fn a_part() -> Part {
    let mut part = Part::of_unit(3);
    part.types = no_types();
    // the second part of a function lies before the first
    part.add("first", &[0x1000..0x1010, 0x800..0x808], &outcomes()[..4]);
    part.add("second", std::slice::from_ref(&(0x1010..0x1100)), &outcomes()[4..]);
    part
}

#[test]
fn every_kind_of_outcome_comes_back() {
    let part = a_part();
    let bytes = part::pack(&part);
    let ranges: Vec<_> = part.functions.iter().map(|function| function.ranges.clone()).collect();
    let again = part::unpack(3, &bytes, &ranges, |_| true).expect("packed");
    let rows = |part: &Part| -> Vec<_> {
        part.by_function().map(|(function, rows)| (function.name.clone(), rows.to_vec())).collect()
    };
    assert_eq!(rows(&again), rows(&part));
    assert_eq!(rows(&part).iter().map(|(_, rows)| rows.len()).sum::<usize>(), outcomes().len());
    let second = part::unpack(3, &bytes, &ranges, |index| index == 1).expect("packed");
    assert_eq!(rows(&second), rows(&part)[1..]);
}

#[test]
fn a_damaged_file_has_nothing_and_a_foreign_one_neither() {
    let bytes = CachedTables::default().with(b"stamp", &[a_part()], &[0x9000], &[]).expect("small");
    let open = |bytes: &[u8], stamp: &'static str| {
        let store = Memory { bytes: Mutex::new(Some(bytes.to_vec())), stamp, ..Memory::default() };
        let kept = CachedTables::open(&store);
        // all that is there, or nothing
        let (parts, outside) = kept.parts(&[0x1004, 0x1014, 0x9000], &[])?;
        let rows: usize = parts.iter().flat_map(|part| part.by_function().map(|(_, rows)| rows.len())).sum();
        (rows > 0 || !outside.is_empty()).then_some((rows, outside))
    };
    let whole = Some((outcomes().len(), vec![0x9000]));
    assert_eq!(open(&bytes, "stamp"), whole);
    assert_eq!(open(&bytes, "another build"), None);
    assert_eq!(open(b"", "stamp"), None);
    assert_eq!(open(&[b"tallyline types\n", &[0xff; 100][..]].concat(), "stamp"), None);
    for end in 0..bytes.len() {
        assert_eq!(open(&bytes[..end], "stamp"), None, "{end}");
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x41;
        assert_eq!(open(&damaged, "stamp"), None, "{at}");
    }
}

#[test]
fn parts_that_were_changed_with_their_checksum_are_refused_or_sound() {
    let bytes = part::pack(&a_part());
    let index = {
        let file = CachedTables::default().with(b"stamp", &[a_part()], &[0x9000], &[]).expect("small");
        let size = u32::from_le_bytes(*file[16..].first_chunk().expect("a header"));
        file[24..24 + size as usize].to_vec()
    };
    assert!(read_index(&index));
    for at in 0..bytes.len().max(index.len()) {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let changed = |bytes: &[u8]| {
                let mut changed = bytes.to_vec();
                changed.get_mut(at).into_iter().for_each(|byte| *byte = value);
                changed
            };
            read_part(&changed(&bytes));
            read_index(&changed(&index));
        }
    }
}

const ONE: &str = "
struct order { long total; int flags, count; struct order *next; };
struct order orders[4];
__attribute__((noinline)) long walk(struct order *o) { long sum = 0; for (; o; o = o->next) sum += o->flags; return sum; }
__attribute__((noinline)) void mark(struct order *o, int n) { for (int i = 0; i < n; i++) o[i].count += i; }
long other(int n);
int main(int n, char **v) { mark(orders, n); return walk(orders) + other(n); }
";

const TWO: &str = "
struct rate { long price; int uses; };
static struct rate rates[8];
long other(int n) { rates[n & 7].uses++; return rates[(n + 1) & 7].price; }
";

/// Returns a program of two units; `None` where there is no compiler for this machine.
fn program(test: &str) -> Option<PathBuf> {
    let folder = std::env::temp_dir().join(format!("tallyline-cache-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for (name, source) in [("one.c", ONE), ("two.c", TWO)] {
        std::fs::write(folder.join(name), source).expect("written");
    }
    let mut command = Command::new("gcc");
    command.args(["-O2", "-g", "-o", "program", "one.c", "two.c"]).current_dir(&folder);
    match command.status() {
        Ok(status) if status.success() => Some(folder.join("program")),
        _ => {
            eprintln!("skipped: no gcc");
            None
        }
    }
}

/// Returns all that a table says, in words.
fn told(table: &TypeTable, data: &[u64]) -> String {
    let mut text = String::new();
    for (address, outcome) in table.rows() {
        let of = match outcome {
            Outcome::Typed(typed) => {
                let name = type_text(table.types(), typed.ty);
                let field = field_path(table.types(), typed);
                format!("{name} {field} {} {:?} {:?}", typed.size, typed.access, typed.or)
            }
            other => format!("{other:?}"),
        };
        text += &format!("{address:#x} {of}\n");
    }
    for function in table.functions() {
        text += &format!("{} {:x?}\n", function.name, function.ranges);
    }
    for address in data {
        let found = table.variable_at(*address);
        text += &format!("{address:#x} {:?}\n", found.map(|(ty, at)| (type_text(table.types(), ty), at)));
    }
    text
}

/// Returns all at once.
fn asked(code: &[u64], data: &[u64]) -> impl Iterator<Item = AddressQuery> {
    std::iter::once(AddressQuery { code: code.to_vec(), data: data.to_vec() })
}

#[test]
fn answers_are_the_same_whatever_is_asked_first() {
    let Some(path) = program("asked") else { return };
    let file = File::open(&path).expect("the program");
    let image = Image::read(&file).expect("an image");
    let address = |name: &str| image.address_of_symbol(name).expect("a symbol");
    let all = ["walk", "mark", "other", "main", "_start"].map(address);
    let data = [address("orders") + 8];
    let fresh = infer_queries(&image, Debug::File(&file), &NoCompanions, &mut asked(&all, &data));
    let fresh = told(&fresh.expect("a table"), &data);
    for first in [&all[..0], &all[..1], &all[1..3], &all[3..], &all] {
        let batches = || asked(first, &[]).chain(asked(&all, &data));
        let table = infer_queries(&image, Debug::File(&file), &NoCompanions, &mut batches());
        assert_eq!(told(&table.expect("a table"), &data), fresh, "{first:x?}");
        let store = Memory { stamp: "test", ..Memory::default() };
        for times in [1, 1] {
            let table = infer_cached(&image, Debug::File(&file), &NoCompanions, &mut batches(), &store);
            assert_eq!(told(&table.expect("a table"), &data), fresh, "{first:x?}");
            assert_eq!(store.times(), times);
        }
    }
    let _ = std::fs::remove_dir_all(path.parent().expect("a folder"));
}

#[test]
fn answers_are_the_same_whatever_was_kept_before() {
    let Some(path) = program("kept") else { return };
    let file = File::open(&path).expect("the program");
    let image = Image::read(&file).expect("an image");
    let address = |name: &str| image.address_of_symbol(name).expect("a symbol");
    let [walk, mark, other, main, orders] = ["walk", "mark", "other", "main", "orders"].map(address);
    let start = address("_start");
    let mut all = vec![walk, mark, other, main, start];
    all.sort_unstable();
    let fresh = |addresses: &[u64], data: &[u64]| {
        let asked = &mut asked(addresses, data);
        let table = infer_queries(&image, Debug::File(&file), &NoCompanions, asked);
        told(&table.expect("a table"), data)
    };
    let store = Memory { stamp: "test", ..Memory::default() };
    let cached = |addresses: &[u64], data: &[u64], store: &Memory| {
        let asked = &mut asked(addresses, data);
        let table = infer_cached(&image, Debug::File(&file), &NoCompanions, asked, store);
        told(&table.expect("a table"), data)
    };
    assert!(fresh(&all, &[orders + 8]).contains("struct order"));
    // one function of a unit, then another one of it, then all, then less: what was kept is added to
    let data = [orders + 8];
    let steps: [(&[u64], &[u64]); 7] = [
        (&[walk], &[]),
        (&[mark], &[]),
        (&all, &data),
        (&all, &data),
        (&[other], &[]),
        (&all, &[orders]),
        (&[start], &data),
    ];
    let mut times = Vec::new();
    for (addresses, data) in steps {
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        assert_eq!(cached(&addresses, data, &store), fresh(&addresses, data), "{addresses:x?} {data:x?}");
        times.push(store.times());
    }
    assert_eq!(times, [1, 2, 3, 3, 3, 4, 5], "kept when something is new, and only then");
    // nothing of it is believed when it is damaged, and it is made anew
    let bytes = store.taken();
    for at in [bytes.len() / 2, bytes.len() - 1, 30] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let store = Memory { bytes: Mutex::new(Some(damaged)), stamp: "test", ..Memory::default() };
        assert_eq!(cached(&all, &data, &store), fresh(&all, &data), "{at}");
        assert_eq!(store.times(), 1);
    }
    // debug information is not opened for what is there
    let gone = Debug::Bytes(b"not a program");
    let table = infer_cached(&image, gone, &NoCompanions, &mut asked(&all, &[]), &store).expect("kept");
    assert_eq!(told(&table, &[]), fresh(&all, &[]));
    let mut left = Vec::new();
    store.open().expect("kept").read_to_end(&mut left).expect("readable");
    assert_eq!(left, store.taken());
    assert!(matches!(table.types().get(tallyline_debuginfo::model::TypeId::VOID), Type::Void));
    let _ = std::fs::remove_dir_all(path.parent().expect("a folder"));
}
