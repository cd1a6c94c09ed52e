//! Windows of any size against the whole file.

use super::super::read_whole;
use super::*;
use crate::elf::Input;
use crate::model::Record;
use crate::type_text::type_text;
use crate::{abi::size_of, lookup::RecordDeduplicator};

/// Returns the names, sizes and holes of the listed records, in order.
fn lines(parts: &[Types]) -> Vec<String> {
    let mut met = RecordDeduplicator::default();
    let mut lines = Vec::new();
    for types in parts {
        for id in types.listed() {
            let Some((_, record)) = types.as_record(*id) else { continue };
            if met.is_new(types, record) {
                let name = String::from_utf8_lossy(&types.qualified_name(*id)).into_owned();
                lines.push(format!("{name} {} {:?}", size_of(types, *id), places(types, record)));
            }
        }
    }
    lines
}

/// Returns this test's own program, as it has many units.
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
    let whole =
        read_whole(&file, Naming::Plain, &Request::default(), &crate::NoCompanions, 0).expect("readable");
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
        if let WindowsResult::From(start) = outcome.expect("readable") {
            assert_ne!(start, 0, "the first window is enough for itself");
            let rest = read_whole(&file, Naming::Plain, &request, &crate::NoCompanions, start);
            parts.push(rest.expect("readable"));
        }
        assert!(lines(&parts) == whole, "{windows:?} {request:?}");
    }
}

/// The copies of equal strings that a linker keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strings {
    Merged,
    /// Nothing, although the section says so.
    Repeated,
}

/// Returns a program of two units, of which the first only declares what it holds and extends.
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
    let whole = read_whole(&file, Naming::Plain, &request, &crate::NoCompanions, 0).expect("readable");
    let mut parts = Vec::new();
    let outcome = read(&file, Naming::Plain, &request, Windows { first: 64, most: 256 }, &mut |part| {
        parts.push(part);
        ControlFlow::Continue(())
    });
    assert_eq!(outcome.expect("readable"), WindowsResult::Done);
    assert!(parts.len() > 1, "the units are windows of their own");
    let lines = lines(&parts);
    assert_eq!(lines, self::lines(&[whole]));
    assert!(lines.iter().any(|line| line.starts_with("Holder 40 ")), "{lines:?}");
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
    if outcome.expect("readable") == WindowsResult::Done {
        let found = lines(&parts);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("::Windows 16 "), "{found:?}");
    }
}

/// Compiles units and links them into one library; none without a compiler.
fn linked(name: &str, units: &[String], flags: &[&str]) -> Option<Vec<u8>> {
    let folder = std::env::temp_dir().join(format!("tallyline-again-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("writable");
    let mut command = std::process::Command::new("g++");
    command.args(["-g", "-w", "-fPIC", "-shared", "-o", "all.so"]).args(flags).current_dir(&folder);
    for (index, unit) in units.iter().enumerate() {
        let file = format!("unit{index}.cpp");
        std::fs::write(folder.join(&file), unit).expect("writable");
        command.arg(file);
    }
    let made = command.output().is_ok_and(|output| output.status.success());
    let bytes = made.then(|| std::fs::read(folder.join("all.so")).expect("made"));
    std::fs::remove_dir_all(&folder).expect("removable");
    if bytes.is_none() {
        eprintln!("skipped: no g++");
    }
    bytes
}

/// Writes units of which each defines one class, derived from the class of the next one, which it only
/// declares.
fn chain(length: usize) -> Vec<String> {
    let unit = |index: usize| {
        let classes: Vec<String> = (index..length.min(index + 2))
            .rev()
            .map(|class| {
                let base = if class > index || class + 1 == length {
                    String::new()
                } else {
                    format!(" : Link{}", class + 1)
                };
                let held = if class > index { "long a;" } else { "char b; Plain plain;" };
                format!("struct Link{class}{base} {{ virtual void link{class}(); {held} }};")
            })
            .collect();
        format!(
            "namespace chain {{ struct Plain {{ int common; }}; struct Padding{index} {{ char c[{}]; }};
             {} void Link{index}::link{index}() {{}} Padding{index} padding{index}; }}",
            index + 1,
            classes.join(" ")
        )
    };
    (0..length).map(unit).collect()
}

/// Writes all types with their members: names, types, offsets and sizes.
fn printed(parts: &[Types]) -> Vec<String> {
    let print = |types: &Types| {
        let mut text = String::new();
        for id in types.listed() {
            text +=
                &format!("{} {}", String::from_utf8_lossy(&types.qualified_name(*id)), size_of(types, *id));
            let Some((_, record)) = types.as_record(*id) else { continue };
            for member in types.members(record) {
                let (name, ty) =
                    (String::from_utf8_lossy(types.name(member.name)), type_text(types, member.ty));
                let (at, size) = (member.bit_offset, size_of(types, member.ty));
                text += &format!("; {ty} {name} at {at}, {} of {size}", member.size);
            }
            text.push('\n');
        }
        text
    };
    parts.iter().map(print).collect()
}

/// Reads types by name in windows, and of the file as a whole; returns how the first went, and both texts.
fn by_name(bytes: &[u8], names: &[&str]) -> (WindowsResult, String, Result<String>) {
    let file = File::parse(bytes, Input::Bytes(bytes)).expect("ELF");
    let request = Request { wanted: Wanted::named(names.iter().copied()), ..Request::default() };
    let mut parts = Vec::new();
    let windows = Windows { first: 64, most: 256 };
    let outcome = read(&file, Naming::Plain, &request, windows, &mut |part| {
        parts.push(part);
        ControlFlow::Continue(())
    });
    let whole = read_whole(&file, Naming::Plain, &request, &crate::NoCompanions, 0);
    let whole = whole.map(|whole| printed(&[whole]).concat());
    (outcome.unwrap_or(WindowsResult::From(0)), printed(&parts).concat(), whole)
}

#[test]
fn types_by_name_have_the_classes_of_other_units_without_the_whole_file() {
    for (name, flags) in [("plain", &["-gz=none"][..]), ("compressed", &["-gz"])] {
        let Some(bytes) = linked(name, &chain(6), flags) else { return };
        let all: Vec<String> = (0..6).map(|index| format!("chain::Link{index}")).collect();
        let several: Vec<&str> = all.iter().map(String::as_str).collect();
        for names in [&["Link0"][..], &["chain::Link4"], &["Padding2", "Link2", "Nowhere"], &several] {
            let (outcome, in_windows, whole) = by_name(&bytes, names);
            assert_eq!(outcome, WindowsResult::Done, "{name} {names:?}");
            assert_eq!(in_windows, whole.expect("readable"), "{name} {names:?}");
            assert!(in_windows.contains("; "), "{in_windows}");
        }
        let (_, link, _) = by_name(&bytes, &["Link0"]);
        assert!(link.contains("Link1") && !link.contains("Link1 0"), "{link}");
    }
}

#[test]
fn classes_that_derive_from_each_other_in_a_circle_end() {
    let first = "struct Y { virtual void y(); long a; };
        struct X : Y { virtual void x(); int b; }; void X::x() {}";
    let second = "struct X { virtual void x(); long c; };
        struct Y : X { virtual void y(); char d; }; void Y::y() {}";
    let Some(bytes) = linked("circle", &[first.into(), second.into()], &[]) else { return };
    let (outcome, in_windows, whole) = by_name(&bytes, &["X", "Y"]);
    assert_eq!(outcome, WindowsResult::Done);
    assert_eq!(in_windows, whole.expect("no error"));
}

#[test]
fn more_units_than_a_bound_are_read_as_a_whole() {
    let Some(bytes) = linked("long", &chain(60), &["-gz"]) else { return };
    // each link is known only when the one before it was read
    let (outcome, in_windows, whole) = by_name(&bytes, &["Link0"]);
    assert!(matches!(outcome, WindowsResult::From(_)), "{outcome:?}");
    assert!(in_windows.is_empty());
    assert!(whole.expect("readable").contains("Link0"));
    // one near the end takes few
    let (outcome, in_windows, whole) = by_name(&bytes, &["Link50"]);
    assert_eq!((outcome, in_windows), (WindowsResult::Done, whole.expect("readable")));
}

#[test]
fn damaged_units_are_read_again_without_panics() {
    let Some(bytes) = linked("damaged", &chain(4), &["-gz=none"]) else { return };
    use object::{Object, ObjectSection};
    let (start, size) = {
        let file = object::File::parse(&bytes[..]).expect("ELF");
        file.section_by_name(".debug_info").expect("units").file_range().expect("there")
    };
    let mut number = 7_u64;
    for round in 0..400 {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut damaged = bytes.clone();
        let at = (start + (number >> 33) % size) as usize;
        damaged[at] ^= 1 << (round % 8);
        let (outcome, in_windows, whole) = by_name(&damaged, &["Link0", "Link2"]);
        if let (WindowsResult::Done, Ok(whole)) = (outcome, whole) {
            assert_eq!(in_windows, whole, "byte {at}");
        }
    }
}

/// Returns offset and size of each member.
fn places(types: &Types, record: &Record) -> Vec<(u64, u64)> {
    types.members(record).iter().map(|member| (member.bit_offset, member.size)).collect()
}

/// Reads in small windows what is wanted; panics where the whole file is needed.
fn in_windows(bytes: &[u8], wanted: Wanted) -> Types {
    let file = File::parse(bytes, Input::Bytes(bytes)).expect("ELF");
    let request = Request { wanted, exact: true, ..Request::default() };
    let mut parts = Vec::new();
    let outcome = read(&file, Naming::Plain, &request, Windows { first: 64, most: 256 }, &mut |part| {
        parts.push(part);
        ControlFlow::Continue(())
    });
    assert_eq!(outcome.expect("readable"), WindowsResult::Done, "{request:?}");
    Types::merged(parts).expect("of one file")
}

fn names_of(types: &Types) -> Vec<String> {
    let name = |id: &crate::model::TypeId| String::from_utf8_lossy(&types.qualified_name(*id)).into_owned();
    let mut names: Vec<String> = types.listed().iter().map(name).collect();
    names.sort();
    names
}

#[test]
fn a_name_without_a_type_gets_the_nearest_names_of_the_same_pass() {
    let Some(bytes) = linked("nearest", &chain(6), &["-gz"]) else { return };
    for (asked, near) in [
        // in no string at all
        ("Pading2", &["Padding2", "Padding0", "Padding1"][..]),
        ("chain::Pading2", &["Padding2", "Padding0", "Padding1"]),
        // that of a function
        ("link3", &["Link3", "Link0", "Link1"]),
        ("Nowhere_near", &[]),
    ] {
        let types = in_windows(&bytes, Wanted::named([asked]));
        assert!(types.listed().is_empty(), "{asked}");
        assert_eq!(types.nearest(), Some(&near.iter().map(|name| name.to_string()).collect::<Vec<_>>()[..]));
    }
    assert_eq!(in_windows(&bytes, Wanted::named(["Link3"])).nearest(), None);
    let units = ["struct ring_buffer { int a; } r;", "struct ring_head { char b; } h;"].map(String::from);
    let Some(bytes) = linked("nearest-c", &units, &["-xc"]) else { return };
    let types = in_windows(&bytes, Wanted::named(["ring_bufer"]));
    assert_eq!(types.nearest(), Some(&["ring_buffer".to_string()][..]));
}

#[test]
fn types_of_one_name_have_their_positions_without_the_whole_file() {
    let unit = |members: &str| {
        format!(
            "struct Shared {{ long s; }} shared;\nnamespace {{\nstruct Own {{ {members} }} own;\n}}\n
            void *use(void) asm(\"use{}\"); void *use(void) {{ return &own; }}",
            members.len()
        )
    };
    let units = [unit("int a;"), unit("char b[3];"), unit("int a;")];
    for flags in [&["-gz=none", "-fno-lto", "-Wl,-z,muldefs"][..], &["-gz", "-Wl,-z,muldefs"]] {
        let Some(bytes) = linked("positions", &units, flags) else { return };
        let types = in_windows(&bytes, Wanted::named(["Own"]));
        let places: Vec<(String, u32)> = types
            .sources()
            .map(|(_, source)| {
                (String::from_utf8_lossy(types.name(source.unit)).into_owned(), source.declared_at.line)
            })
            .collect();
        assert_eq!(places, [("unit0.cpp".into(), 3), ("unit1.cpp".into(), 3)], "{flags:?}");
        // one definition needs none
        let types = in_windows(&bytes, Wanted::named(["Shared"]));
        assert_eq!((types.listed().len(), types.sources().count()), (1, 0), "{flags:?}");
    }
}

#[test]
fn patterns_match_what_is_among_all_records() {
    let Some(bytes) = linked("patterns", &chain(6), &["-gz"]) else { return };
    let file = File::parse(&bytes[..], Input::Bytes(&bytes)).expect("ELF");
    let request = Request { exact: true, ..Request::default() };
    let whole = read_whole(&file, Naming::Plain, &request, &crate::NoCompanions, 0).expect("readable");
    let all = names_of(&whole);
    for pattern in
        ["Link*", "chain::*", "chain::Link?", "*k3", "L?nk[", "Pad*5", "*", "c*::P*", "Link", "no*"]
    {
        let expected: Vec<String> = all
            .iter()
            .filter(|name| {
                let own = name.rsplit(':').next().unwrap_or(name);
                crate::lookup::fits(pattern.as_bytes(), name.as_bytes())
                    || crate::lookup::fits(pattern.as_bytes(), own.as_bytes())
            })
            .cloned()
            .collect();
        let types = in_windows(&bytes, Wanted::Matching(vec![pattern.into()]));
        assert_eq!(names_of(&types), expected, "{pattern}");
        // with the contents of what other units define
        for id in types.listed() {
            let name = types.qualified_name(*id);
            let known = whole.listed().iter().find(|id| whole.qualified_name(**id) == name).expect("known");
            assert_eq!(size_of(&types, *id), size_of(&whole, *known), "{pattern}");
        }
    }
}
