//! The layout of Go types equals the Go compiler's, by `unsafe.Offsetof` and
//! `unsafe.Sizeof`.

mod common;

use common::{folder, run};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::{Request, Wanted, read};
use tallyline_layout::print::pahole::{Printer, Style};

const SOURCE: &str = include_str!("data/languages/types.go");

/// Builds a program of the sources in a folder.
fn build(folder: &Path, source: &str) -> Vec<u8> {
    std::fs::write(folder.join("main.go"), source).expect("writable");
    std::fs::write(folder.join("go.mod"), "module types\ngo 1.19\n").expect("writable");
    let mut command = Command::new("go");
    run(command.current_dir(folder).args(["build", "-o", "program", "."]).env("GOFLAGS", "-mod=mod"));
    std::fs::read(folder.join("program")).expect("made")
}

/// Asserts every offset and size of a program's own types in the program itself.
fn prove(folder: &Path, source: &str) -> usize {
    let types = read(&build(folder, source), &Request::default()).expect("readable");
    let mut body = String::new();
    let mut count = 0;
    for (id, record) in lookup::distinct_records(&types) {
        let name = String::from_utf8_lossy(types.name(types.type_name(id))).into_owned();
        let Some(own) = name.strip_prefix("main.") else { continue };
        if !own.chars().all(|letter| letter.is_alphanumeric() || "[]".contains(letter)) {
            continue;
        }
        let record = types.record(record);
        writeln!(body, "\t{{\n\t\tvar v {own}\n\t\texpect(\"{own}\", unsafe.Sizeof(v), {})", record.size)
            .expect("memory");
        for member in types.members(record) {
            let field = String::from_utf8_lossy(types.name(member.name));
            writeln!(body, "\t\texpect(\"{own}.{field}\", unsafe.Offsetof(v.{field}), {})", member.offset)
                .expect("memory");
            writeln!(body, "\t\texpect(\"{own}.{field}\", unsafe.Sizeof(v.{field}), {})", member.size)
                .expect("memory");
            count += 2;
        }
        body.push_str("\t}\n");
        count += 1;
    }
    let proof = format!(
        "package main\n\nimport \"unsafe\"\n\nfunc expect(what string, is, said uintptr) {{\n\tif is != said \
         {{\n\t\tpanic(what)\n\t}}\n}}\n\nfunc init() {{\n{body}}}\n"
    );
    std::fs::write(folder.join("proof.go"), proof).expect("writable");
    build(folder, source);
    run(&mut Command::new(folder.join("program")));
    count
}

#[test]
#[ignore = "compiles Go's library: ci/layout-languages"]
fn structs_lie_where_go_puts_them() {
    let Some(folder) = folder("go", "go") else { return };
    let count = prove(&folder, SOURCE);
    assert!(count > 50, "only {count} assertions");
    std::fs::remove_dir_all(folder).expect("removable");
}

#[test]
#[ignore = "compiles Go's library: ci/layout-languages"]
fn named_numbers_are_found_and_structs_without_a_name_are_structs_once() {
    let Some(folder) = folder("go-names", "go") else { return };
    let program = build(&folder, SOURCE);
    let wanted = Wanted::named(["main.Color", "main.All"]);
    let types = read(&program, &Request { wanted, ..Request::default() }).expect("readable");
    let print = |name: &[u8]| {
        let id = lookup::find(&types, name).expect("found");
        let mut printer = Printer::new(&types, Style::default());
        printer.print(id);
        String::from_utf8_lossy(printer.text()).into_owned()
    };
    assert_eq!(print(b"main.Color"), "main.Color /* size: 1 */;\n");
    let all = print(b"main.All");
    assert!(all.contains("\tstruct { main.x int32; main.y int32 } emb;"), "{all}");
    assert!(!all.contains("struct struct"), "{all}");
    std::fs::remove_dir_all(folder).expect("removable");
}

#[test]
#[ignore = "compiles Go's library: ci/layout-languages"]
fn programs_of_go_and_c_are_read() {
    let Some(folder) = folder("cgo", "go") else { return };
    let with_c = SOURCE.replacen(
        "import (",
        "// struct of_c { char a; long b; };\n// static long touch(struct of_c *c) { return c->b; }\nimport \"C\"\n\nimport (",
        1,
    );
    let with_c =
        with_c.replacen("var a All", "var c C.struct_of_c\n\tfmt.Println(C.touch(&c))\n\tvar a All", 1);
    let types = read(&build(&folder, &with_c), &Request::default()).expect("readable");
    let size = |name: &[u8]| {
        let id = lookup::find(&types, name).expect("defined");
        types.as_record(id).map(|(_, record)| record.size)
    };
    assert_eq!(size(b"of_c"), Some(16));
    assert_eq!(size(b"main.All"), Some(272));
    std::fs::remove_dir_all(folder).expect("removable");
}
