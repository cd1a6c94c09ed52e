//! The forms in which the same types come: machines of both byte orders and widths, and files whose
//! types are in other files. Compilers made the files, see `ci/layout-goldens`.

use std::fs;
use std::path::{Path, PathBuf};
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::model::Types;
use tallyline_debuginfo::{
    Companion, Companions, Contents, Error, NoCompanions, Request, Wanted, read, read_file, read_with,
};
use tallyline_layout::print::pahole::{Printer, Style};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    fs::read(data(name)).expect("committed")
}

fn text(types: &Types) -> String {
    let mut printer = Printer::new(types, Style::default());
    for (id, _) in lookup::distinct_records(types) {
        printer.print(id);
    }
    String::from_utf8(printer.text().to_vec()).expect("UTF-8")
}

/// Returns every type of a file, which must be read without a warning, by both ways of reading.
fn show(name: &str, companions: &dyn Companions) -> String {
    let types = read_with(&bytes(name), &Request::default(), companions).expect("readable");
    assert!(types.warnings().is_empty(), "{name}: {:?}", types.warnings());
    let shown = text(&types);
    let file = fs::File::open(data(name)).expect("committed");
    let types = read_file(&file, &Request::default(), companions).expect("readable");
    assert_eq!(text(&types), shown, "{name}: from the open file");
    shown
}

#[test]
fn object_files_of_every_machine_are_shown_as_pahole_shows_them() {
    for machine in
        ["x86_64", "i386", "arm", "aarch64", "powerpc", "powerpc64", "powerpc64le", "s390x", "riscv64"]
    {
        let golden = fs::read_to_string(data(&format!("machines/{machine}.txt"))).expect("committed");
        assert_eq!(show(&format!("machines/{machine}.o"), &NoCompanions), golden, "{machine}");
    }
}

#[test]
fn btf_of_the_other_byte_order_is_read() {
    let golden = fs::read_to_string(data("machines/s390x.btf.txt")).expect("committed");
    assert_eq!(show("machines/s390x.btf", &NoCompanions), golden);
}

/// Gives some companions, and only by the names that they have.
struct Given(&'static [&'static str]);

impl Companions for Given {
    fn open(&self, wanted: Companion<'_>) -> Result<Contents, Vec<PathBuf>> {
        let fits = |name: &&&str| match wanted {
            Companion::Package => name.ends_with(".dwp"),
            Companion::Split { name: wanted, .. } | Companion::Alternate { name: wanted, .. } => {
                name.as_bytes() == wanted
            }
        };
        let found = self.0.iter().find(fits).map(|name| bytes(&format!("companions/{name}")));
        found.map(Contents::Bytes).ok_or_else(|| vec!["a place".into()])
    }
}

#[test]
fn split_units_give_what_the_whole_gives() {
    // the two compilers place the same bits in other units of storage
    let whole = fs::read_to_string(data("companions/split.txt")).expect("committed");
    assert_eq!(show("companions/split4.o", &Given(&["split4.dwo"])), whole);
    assert_eq!(show("companions/split5.o", &Given(&["split5.dwo"])), whole);
    assert_eq!(show("companions/split4.o", &Given(&["split4.dwp"])), whole);
    assert_eq!(show("companions/split5.o", &Given(&["split5.dwp"])), whole);
}

#[test]
fn split_units_and_packages_can_be_read_alone() {
    let whole = fs::read_to_string(data("companions/split.txt")).expect("committed");
    for name in ["split4.dwo", "split5.dwo", "split4.dwp", "split5.dwp"] {
        assert_eq!(show(&format!("companions/{name}"), &NoCompanions), whole, "{name}");
    }
}

#[test]
fn what_dwz_took_out_is_put_back() {
    let lines = |text: String| {
        let mut types: Vec<String> = text.split_inclusive("};\n").map(str::to_string).collect();
        types.sort();
        types
    };
    let plain = lines(show("companions/plain.so", &NoCompanions));
    assert_eq!(plain.len(), 12 + 1);
    assert_eq!(lines(show("companions/shared.so", &Given(&["shared.dwz"]))), plain);
}

#[test]
fn without_its_companion_a_file_says_which_and_shows_nothing_wrong() {
    for (name, companion) in
        [("split4.o", "split4.dwo"), ("split5.o", "split5.dwo"), ("shared.so", "shared.dwz")]
    {
        let bytes = bytes(&format!("companions/{name}"));
        let said = match read_with(&bytes, &Request::default(), &Given(&[])) {
            Ok(types) => {
                assert!(!text(&types).contains("missing"), "{name}");
                types.warnings().join("\n")
            }
            Err(Error::Companion(said)) => said,
            Err(error) => panic!("{name}: {error}"),
        };
        assert!(said.contains(companion) && said.contains("a place"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn companions_of_another_build_are_refused() {
    let other = |name: &str, given| read_with(&bytes(name), &Request::default(), &Renamed(given));
    for (name, given, wanted) in [
        ("companions/split5.o", "split4.dwo", ".dwo"),
        ("companions/split4.o", "machines/x86_64.o", ".dwo"),
        ("companions/shared.so", "plain.so", "another build"),
    ] {
        match other(name, given) {
            Err(Error::Companion(said)) => assert!(said.contains(wanted), "{said}"),
            answer => panic!("{name}: {answer:?}"),
        }
    }
}

/// Gives one file, whatever is asked for but packages.
struct Renamed(&'static str);

impl Companions for Renamed {
    fn open(&self, wanted: Companion<'_>) -> Result<Contents, Vec<PathBuf>> {
        match (wanted, self.0.contains('/')) {
            (Companion::Package, _) => Err(Vec::new()),
            (_, true) => Ok(Contents::Bytes(bytes(self.0))),
            (_, false) => Ok(Contents::Bytes(bytes(&format!("companions/{}", self.0)))),
        }
    }
}

#[test]
fn kinds_of_btf_that_are_not_known_are_named_and_skipped() {
    let mut btf = vec![0x9f, 0xeb, 1, 0];
    let word = |btf: &mut Vec<u8>, value: u32| btf.extend_from_slice(&value.to_le_bytes());
    // an entry of kind 30, then a struct with a member of type int, which comes last
    let types = [0, 30 << 24, 0, 1, 4 << 24 | 1, 4, 1, 3, 0, 1, 1 << 24, 4, 32];
    for value in [24, 0, types.len() as u32 * 4, types.len() as u32 * 4, 3] {
        word(&mut btf, value);
    }
    types.into_iter().for_each(|value| word(&mut btf, value));
    btf.extend_from_slice(b"\0x\0");
    let types = read(&btf, &Request::default()).expect("readable");
    assert_eq!(types.warnings(), ["BTF type 1: kind 30 is not known and was skipped"]);
    assert!(text(&types).starts_with("struct x {"), "{}", text(&types));
}

/// Returns BTF of two structs `pair` of one member each, whose names are at these offsets.
fn two_structs(names: [u32; 2], members: [u32; 2], strings: &[u8]) -> Vec<u8> {
    // int, then the structs
    let mut types = vec![1, 1 << 24, 4, 32];
    for (name, member) in names.into_iter().zip(members) {
        types.extend([name, 4 << 24 | 1, 4, member, 1, 0]);
    }
    let length = 4 * types.len() as u32;
    let mut btf = vec![0x9f, 0xeb, 1, 0];
    let header = [24, 0, length, length, strings.len() as u32];
    header.into_iter().chain(types).for_each(|word| btf.extend_from_slice(&word.to_le_bytes()));
    btf.extend_from_slice(strings);
    btf
}

#[test]
fn names_of_btf_are_equal_wherever_their_text_is() {
    let strings = [
        ("each once", [5, 5], [10, 10], &b"\0int\0pair\0first\0"[..]),
        ("twice", [5, 16], [10, 10], b"\0int\0pair\0first\0pair\0"),
        ("the end of another", [5, 5], [16, 11], b"\0int\0pair\0first\0irst\0"),
        ("without a last zero", [5, 5], [10, 10], b"\0int\0pair\0first\0left over"),
    ];
    for (what, names, members, strings) in strings {
        let btf = two_structs(names, members, strings);
        let types = read(&btf, &Request::default()).expect("readable");
        assert_eq!(lookup::distinct_records(&types).len(), 1, "{what}");
        // another model's names are other numbers
        let twice = Types::merged(vec![types, read(&btf, &Request::default()).expect("readable")]);
        let twice = twice.expect("of one kind");
        assert_eq!(lookup::distinct_records(&twice).len(), 1, "{what}");
        assert_eq!(
            lookup::find(&twice, b"pair").map(|id| twice.qualified_name(id)),
            Some(b"pair"[..].into())
        );
    }
    let beyond = two_structs([5, 5], [10, 99], b"\0int\0pair\0first\0");
    let error = read(&beyond, &Request::default()).expect_err("there is no such name").to_string();
    assert!(error.contains("a name beyond the end of the strings"), "{error}");
}

#[test]
fn a_type_of_btf_asked_for_alone_is_shown_as_among_all_others() {
    for name in ["kinds.btf", "nesting.btf", "holes.btf", "bitfields.btf", "machines/s390x.btf"] {
        let bytes = bytes(name);
        let all = read(&bytes, &Request::default()).expect("readable");
        for (id, record) in lookup::distinct_records(&all) {
            let called = all.name(all.record(record).name);
            let request = Request { wanted: Wanted::named([called]), ..Request::default() };
            let alone = read(&bytes, &request).expect("readable");
            let found = lookup::find(&alone, called).expect("there");
            assert_eq!(found, id, "{name}");
            for expand_types in [false, true] {
                let show = |types| {
                    let mut printer = Printer::new(types, Style { expand_types, ..Style::default() });
                    printer.print(id);
                    String::from_utf8_lossy(printer.text()).into_owned()
                };
                assert_eq!(show(&alone), show(&all), "{name}");
            }
        }
        let request = Request { wanted: Wanted::named(["no such type"]), ..Request::default() };
        assert!(read(&bytes, &request).expect("readable").listed().is_empty());
    }
}
