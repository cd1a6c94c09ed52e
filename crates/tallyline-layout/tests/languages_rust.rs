//! The layout of Rust types equals rustc's: by its own assertions, and by its output for
//! every type with `-Zprint-type-sizes`.

mod common;

use common::{folder, run};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::model::{Member, MemberKind, RecordId, Types};
use tallyline_debuginfo::{Request, read};

const SOURCE: &str = include_str!("data/languages/types.rs");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Compiles a source; the program, and what the compiler says.
fn rustc(folder: &Path, name: &str, source: &str, flags: &[&str]) -> (PathBuf, String) {
    let path = folder.join(format!("{name}.rs"));
    std::fs::write(&path, source).expect("writable");
    let program = folder.join(name);
    let mut command = Command::new("rustc");
    command.env("RUSTC_BOOTSTRAP", "1").args(["-g", "--edition", "2021", "-Awarnings"]).args(flags);
    (program.clone(), run(command.arg("-o").arg(program).arg(path)))
}

/// Returns the name that Rust knows a member by.
fn field(types: &Types, member: &Member) -> String {
    let name = text(types.name(member.name));
    name.strip_prefix("__").filter(|rest| rest.parse::<u32>().is_ok()).map_or(name.clone(), String::from)
}

#[test]
fn records_lie_where_rustc_asserts_them() {
    let Some(folder) = folder("rust-assertions", "rustc") else { return };
    let (program, _) = rustc(&folder, "types", SOURCE, &[]);
    let types = read(&std::fs::read(program).expect("made"), &Request::default()).expect("readable");
    let mut assertions = String::from("const _: () = {\n");
    let mut count = 0;
    for (id, record) in lookup::distinct_records(&types) {
        let (name, record) = (text(&types.qualified_name(id)), types.record(record));
        let Some(own) = name.strip_prefix("types::") else { continue };
        if !own.chars().all(char::is_alphanumeric) {
            continue;
        }
        writeln!(assertions, "assert!(core::mem::size_of::<{own}>() == {});", record.size).expect("memory");
        writeln!(assertions, "assert!(core::mem::align_of::<{own}>() == {});", record.align.max(1))
            .expect("memory");
        count += 2;
        for member in types.members(record).iter().filter(|member| member.kind == MemberKind::Data) {
            let field = field(&types, member);
            writeln!(assertions, "assert!(core::mem::offset_of!({own}, {field}) == {});", member.offset)
                .expect("memory");
            count += 1;
        }
    }
    assert!(count > 40, "only {count} assertions");
    rustc(&folder, "proof", &format!("{SOURCE}\n{assertions}}};\n"), &[]);
    std::fs::remove_dir_all(folder).expect("removable");
}

/// A type as the compiler prints it: its size, and of each variant's fields the offset and size.
#[derive(Default)]
struct Printed {
    size: u64,
    fields: HashMap<(String, String), (u64, u64)>,
}

/// Parses the output of `-Zprint-type-sizes`, by the names of types as [`plain`] has them.
fn printed(output: &str) -> HashMap<String, Printed> {
    let mut all = HashMap::new();
    let (mut name, mut one) = (String::new(), Printed::default());
    let (mut variant, mut start, mut next) = (String::new(), 0, 0);
    for line in output.lines().filter_map(|line| line.strip_prefix("print-type-size ")) {
        let line = line.trim();
        let quoted = line.split('`').nth(1).unwrap_or_default();
        let number =
            |before: &str| -> Option<u64> { line.split(before).nth(1)?.split(' ').next()?.parse().ok() };
        let size = number("`: ").or_else(|| number(": ")).unwrap_or(0);
        if line.starts_with("type: ") {
            all.insert(plain(&name), std::mem::take(&mut one));
            (name, one.size) = (quoted.to_string(), size);
            (variant, start, next) = (String::new(), 0, 0);
        } else if line.starts_with("discriminant") {
            start = size;
        } else if line.starts_with("variant") {
            (variant, next) = (quoted.to_string(), start);
        } else if line.starts_with("padding") {
            next += size;
        } else if ["field", "upvar", "local"].iter().any(|word| line.starts_with(word)) {
            let offset = number("offset: ").unwrap_or(next);
            one.fields.insert((variant.clone(), quoted[1..].to_string()), (offset, size));
            next = offset + size;
        }
    }
    all.insert(plain(&name), one);
    all
}

/// Returns a type's name without what the two sides say differently: lifetimes, and the crates' names.
fn plain(name: &str) -> String {
    ["<'_>", "'_, ", "types::", "std::", "core::", "alloc::", " "]
        .iter()
        .fold(name.to_string(), |name, part| name.replace(part, ""))
}

/// Compares a type with what is printed; how many fields there are.
fn compare(types: &Types, name: &str, id: RecordId, printed: &Printed) -> usize {
    let record = types.record(id);
    assert_eq!(record.size, printed.size, "{name}");
    let mut count = 1;
    let mut check = |variant: &str, member: &Member| {
        let field = field(types, member);
        // where it lies over others the compiler says so otherwise
        let Some((offset, size)) = printed.fields.get(&(variant.to_string(), field.clone())) else { return };
        assert_eq!((member.offset, member.size), (*offset, *size), "{name} {variant} {field}");
        count += 1;
    };
    types.members(record).iter().for_each(|member| check("", member));
    for variant in types.variants(record) {
        let own = text(types.name(variant.name));
        types.variant_members(variant).iter().for_each(|member| check(&own, member));
    }
    count
}

#[test]
fn every_variant_lies_where_rustc_says_it_does() {
    let Some(folder) = folder("rust-sizes", "rustc") else { return };
    let (program, output) = rustc(&folder, "types", SOURCE, &["-Zprint-type-sizes"]);
    let printed = printed(&output);
    let types = read(&std::fs::read(program).expect("made"), &Request::default()).expect("readable");
    let (mut records, mut fields, mut variants) = (0, 0, 0);
    for (id, record) in lookup::distinct_records(&types) {
        let name = plain(&text(&types.qualified_name(id)));
        // a tag that is not at the start is not told from the fields
        if types.tag(types.record(record)).is_some_and(|tag| tag.offset != 0) || name.starts_with('{') {
            continue;
        }
        if let Some(printed) =
            printed.get(&name).filter(|printed| !types.record(record).is_union() || printed.fields.is_empty())
        {
            fields += compare(&types, &name, record, printed);
            records += 1;
            variants += types.variants(types.record(record)).len();
        }
    }
    println!("{records} records, {variants} variants, {fields} sizes and fields");
    assert!(records > 25 && variants > 25 && fields > 80, "{records} {variants} {fields}");
    std::fs::remove_dir_all(folder).expect("removable");
}

#[test]
fn states_of_async_functions_lie_where_rustc_says_they_do() {
    const STATES: &str = include_str!("data/languages/states.rs");
    let Some(folder) = folder("rust-states", "rustc") else { return };
    let (program, output) = rustc(&folder, "states", STATES, &["-Zprint-type-sizes"]);
    let printed = printed(&output);
    let types = read(&std::fs::read(program).expect("made"), &Request::default()).expect("readable");
    let mut counts = Vec::new();
    // a variable that is an argument of the same name has one description in rustc's debug information
    for function in ["one", "outer"] {
        let id = lookup::find(&types, format!("states::{function}::{{async_fn_env#0}}").as_bytes());
        let (record, _) = types.as_record(id.expect("described")).expect("a record");
        let printed = &printed[&plain(&format!("{{async fn body of {function}()}}"))];
        let names = types.variants(types.record(record)).iter().map(|one| text(types.name(one.name)));
        let names: Vec<String> = names.take(4).collect();
        assert_eq!(names, ["Unresumed", "Returned", "Panicked", "Suspend0"], "{function}");
        counts.push(compare(&types, function, record, printed));
    }
    assert!(counts.iter().sum::<usize>() > 15, "{counts:?}");
    std::fs::remove_dir_all(folder).expect("removable");
}

/// Generic structs that hold a function: as a pointer, and as the function itself, which takes no bytes.
const FUNCTIONS: &str = "
    #[repr(C)] pub struct Between<F> { first: u32, function: F, second: u32, last: u64 }
    pub struct Behind<F> { kept: u64, function: F, tail: u32 }
    pub struct Only<F> { function: F }
    fn even(x: &u8) -> bool { x % 2 == 0 }
    #[inline(never)] fn run<F: Fn(&u8) -> bool>(a: &Between<F>, b: &Behind<F>, c: &Only<F>) -> bool {
        (a.function)(&(a.first as u8)) && (b.function)(&(b.tail as u8)) && (c.function)(&3)
            && u64::from(a.second) + a.last + b.kept > 3
    }
    fn sizes<F>() -> [usize; 3] {
        [size_of::<Between<F>>(), size_of::<Behind<F>>(), size_of::<Only<F>>()]
    }
    fn with<F: Fn(&u8) -> bool + Copy>(f: F) {
        let a = Between { first: 1, function: f, second: 2, last: 3 };
        println!(\"{:?} {}\", sizes::<F>(), run(&a, &Behind { kept: 1, function: f, tail: 2 }, &Only { function: f }));
    }
    fn main() { with(even); with(even as fn(&u8) -> bool); }";

#[test]
fn a_function_itself_takes_no_bytes_where_it_is_described_as_a_pointer() {
    let Some(folder) = folder("rust-functions", "rustc") else { return };
    let (program, _) = rustc(&folder, "functions", FUNCTIONS, &[]);
    let output = Command::new(&program).output().expect("it runs");
    let types = read(&std::fs::read(program).expect("made"), &Request::default()).expect("readable");
    let style = tallyline_layout::print::pahole::Style::default();
    let mut printer = tallyline_layout::print::pahole::Printer::new(&types, style);
    let (mut functions, mut pointers) = (0, 0);
    for (id, record) in lookup::distinct_records(&types) {
        let (name, record) = (text(&types.qualified_name(id)), types.record(record));
        if !name.starts_with("functions::") || !name.contains("<fn(") {
            continue;
        }
        let members: Vec<&Member> = types.members(record).iter().collect();
        let function = members.iter().find(|member| types.name(member.name) == b"function").expect("it");
        printer.clear();
        printer.print(id);
        let shown = text(printer.text());
        let is_noted = shown.contains("/* a function itself: takes no bytes */");
        assert_eq!((function.size == 0, function.overlaid), (is_noted, is_noted), "{shown}");
        if is_noted {
            functions += 1
        } else {
            pointers += 1
        }
        // no two members share bytes
        for (index, one) in members.iter().enumerate() {
            for other in &members[index + 1..] {
                let apart = one.offset + one.size <= other.offset || other.offset + other.size <= one.offset;
                assert!(apart || one.size == 0 || other.size == 0, "{shown}");
            }
        }
        assert!(members.iter().all(|member| member.offset + member.size <= record.size), "{shown}");
        let sizes: Vec<String> = text(&output.stdout).lines().map(String::from).collect();
        let place = if is_noted { &sizes[0] } else { &sizes[1] };
        assert!(place.contains(&record.size.to_string()), "{shown} {sizes:?}");
    }
    assert_eq!((functions, pointers), (3, 3));
    std::fs::remove_dir_all(folder).expect("removable");
}
