//! Windows of any size against the whole file.

use super::super::read_whole;
use super::*;
use crate::elf::Input;
use crate::query::{Met, size_of, summary};

/// What is listed, in order: names, sizes and holes.
fn lines(parts: &[Types]) -> Vec<String> {
    let mut met = Met::default();
    let mut lines = Vec::new();
    for types in parts {
        for id in types.listed() {
            let Some((_, record)) = types.as_record(*id) else { continue };
            if met.is_new(types, record) {
                let name = String::from_utf8_lossy(&types.qualified_name(*id)).into_owned();
                lines.push(format!("{name} {} {:?}", size_of(types, *id), summary(types, record)));
            }
        }
    }
    lines
}

/// This test's own program, as it has many units.
fn program() -> Option<Vec<u8>> {
    let bytes = std::fs::read(std::env::current_exe().expect("known")).expect("readable");
    let file = File::parse(&bytes[..], Input::Bytes(&bytes)).expect("ELF");
    if file.naming() != Some(Naming::Plain) {
        eprintln!("skipped: this test is built without debug information");
        return None;
    }
    Some(bytes)
}

#[test]
fn windows_of_any_size_have_the_same_types_as_the_whole() {
    let Some(bytes) = program() else { return };
    let file = File::parse(&bytes[..], Input::Bytes(&bytes)).expect("ELF");
    let whole = read_whole(&file, Naming::Plain, &Request::default(), &crate::Alone, 0).expect("readable");
    let whole = lines(&[whole]);
    let small = Windows { first: 100, most: 1 << 16 };
    let large = Windows { first: 1 << 18, most: 1 << 20 };
    let sizes = Request { sizes_only: true, shallow: true, ..Request::default() };
    for (windows, request) in [(small, Request::default()), (large, Request::default()), (large, sizes)] {
        let mut parts = Vec::new();
        let outcome = read(&file, Naming::Plain, &request, windows, &mut |part| {
            parts.push(part);
            ControlFlow::Continue(())
        });
        if let Outcome::From(start) = outcome.expect("readable") {
            assert_ne!(start, 0, "the first window is enough for itself");
            let rest = read_whole(&file, Naming::Plain, &request, &crate::Alone, start);
            parts.push(rest.expect("readable"));
        }
        assert!(lines(&parts) == whole, "{windows:?} {request:?}");
    }
}

/// What a linker does with equal strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strings {
    Merged,
    /// Nothing, although the section says so.
    Repeated,
}

/// A program of two units, of which the first only declares what it holds and extends.
fn two_units(strings: Strings) -> Option<Vec<u8>> {
    const CLASSES: &str = "struct Key { virtual void key(); long a; char tail; };
        struct Empty { virtual void v(); };
        struct Mid : Key { virtual void mid(); short c; };
        struct Outer { struct In { virtual void in(); int n; }; };
        struct Derived : Mid { char d; int e; };
        struct Holder { char first; Mid held; char last; };
        struct OfInner : Outer::In { char c; };";
    let name = format!("tallyline-windows-{}-{strings:?}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).expect("writable");
    let first = "Derived *d = new Derived; Holder *h = new Holder; OfInner *o = new OfInner;";
    let second = "void Key::key() {} void Mid::mid() {} void Outer::In::in() {} void Empty::v() {}";
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new("g++");
        let output = command.args(["-g", "-w", "-fPIC"]).args(arguments).current_dir(&folder).output();
        output.is_ok_and(|output| output.status.success())
    };
    let compile = |name: &str, text: &str| {
        std::fs::write(folder.join("unit.cpp"), format!("{CLASSES}\n{text}\n")).expect("writable");
        if !run(&["-S", "-o", name, "unit.cpp"]) {
            return false;
        }
        let text = std::fs::read_to_string(folder.join(name)).expect("made");
        let merged = ".debug_str,\"MS\",@progbits,1";
        assert!(text.contains(merged));
        let text = match strings {
            Strings::Merged => text,
            Strings::Repeated => text.replace(merged, ".debug_str,\"\",@progbits"),
        };
        std::fs::write(folder.join(name), text).is_ok()
    };
    let made = compile("first.s", first)
        && compile("second.s", second)
        && run(&["-shared", "-o", "both.so", "first.s", "second.s"]);
    let bytes = made.then(|| std::fs::read(folder.join("both.so")).expect("made"));
    std::fs::remove_dir_all(&folder).expect("removable");
    bytes.map(|bytes| if strings == Strings::Repeated { say_merged(bytes) } else { bytes })
}

/// Says of `.debug_str` that equal strings are one.
fn say_merged(mut bytes: Vec<u8>) -> Vec<u8> {
    use object::read::elf::FileHeader;
    let header = object::elf::FileHeader64::<object::LittleEndian>::parse(&bytes[..]).expect("ELF");
    let endian = object::LittleEndian;
    let sections = header.sections(endian, &bytes[..]).expect("sections");
    let (index, _) = sections.section_by_name(endian, b".debug_str").expect("strings");
    let at = header.e_shoff.get(endian) as usize + index.0 * size_of_header(header, endian) + 8;
    let flags = object::elf::SHF_MERGE.0 | object::elf::SHF_STRINGS.0;
    bytes[at..at + 8].copy_from_slice(&flags.to_le_bytes());
    bytes
}

fn size_of_header(
    header: &object::elf::FileHeader64<object::LittleEndian>,
    endian: object::LittleEndian,
) -> usize {
    header.e_shentsize.get(endian).into()
}

#[test]
fn sizes_are_those_of_classes_that_later_windows_define() {
    sizes_of_two_units(Strings::Merged);
}

#[test]
fn sizes_are_the_same_where_equal_strings_are_not_one() {
    sizes_of_two_units(Strings::Repeated);
}

fn sizes_of_two_units(strings: Strings) {
    let Some(bytes) = two_units(strings) else {
        eprintln!("skipped: no g++");
        return;
    };
    let file = File::parse(&bytes[..], Input::Bytes(&bytes)).expect("ELF");
    let request = Request { sizes_only: true, ..Request::default() };
    let whole = read_whole(&file, Naming::Plain, &request, &crate::Alone, 0).expect("readable");
    let mut parts = Vec::new();
    let outcome = read(&file, Naming::Plain, &request, Windows { first: 64, most: 256 }, &mut |part| {
        parts.push(part);
        ControlFlow::Continue(())
    });
    assert_eq!(outcome.expect("readable"), Outcome::Done);
    assert!(parts.len() > 1, "the units are windows of their own");
    let lines = lines(&parts);
    assert_eq!(lines, self::lines(&[whole]));
    assert!(lines.iter().any(|line| line.starts_with("Holder 40 Summary { holes: 1,")), "{lines:?}");
}

#[test]
fn what_is_sought_by_name_ends_where_it_is_found() {
    let Some(bytes) = program() else { return };
    let file = File::parse(&bytes[..], Input::Bytes(&bytes)).expect("ELF");
    let wanted = Wanted::named(["Windows"]);
    let request = Request { wanted, ..Request::default() };
    let mut parts = Vec::new();
    let windows = Windows { first: 100, most: 1 << 16 };
    let outcome = read(&file, Naming::Plain, &request, windows, &mut |part| {
        parts.push(part);
        ControlFlow::Continue(())
    });
    if outcome.expect("readable") == Outcome::Done {
        let found = lines(&parts);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("::Windows 16 "), "{found:?}");
    }
}
