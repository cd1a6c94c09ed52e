//! The layout of Fortran's and Ada's types, whose arrays start at 1 by default, equals the
//! statements of their compilers: by `storage_size` and `loc`, by `'Object_Size` and `'Position`. Objects that they
//! made stand for compilers that are missing.

mod common;

use common::{folder, run};
use std::path::Path;
use std::process::Command;
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::model::Types;
use tallyline_debuginfo::{Request, read};
use tallyline_layout::print::pahole::{Printer, Style};

const FORTRAN: &str = include_str!("data/languages/shapes.f90");
const FORTRAN_OBJECT: &[u8] = include_bytes!("data/languages/shapes-gfortran.o");
/// The program's output.
const FORTRAN_SAYS: &str = "\
point 16
box 112
table 328
point3 24
in_main 26
in_main.g 2 24
box.tag 0 3
box.m 4 24
box.lo 28 32
box.corner 64 32
box.flag 96 4
box.last 104 1
table.between 160 1
table.z 304 8
table.last 312 1
point3.z 16 4
";

const ADA: [(&str, &str); 2] = [
    ("things.ads", include_str!("data/languages/things.ads")),
    ("main.adb", include_str!("data/languages/main.adb")),
];
const ADA_OBJECT: &[u8] = include_bytes!("data/languages/main-gnat.o");
/// The program's output.
const ADA_SAYS: &str = "\
things__mat 176
things__mat.g 0 24
things__mat.s 24 10
things__mat.l 40 8
things__mat.c 48 120
things__mat.p 168 4
things__dyn.len 0 4
things__dyn.after 4 4
things__holder 32
things__holder.t 8 16
things__holder.after 24 1
things__plain 16
things__plain.f 0 2
things__plain.b 2 1
things__plain.l 8 8
";

/// Compares types with what a compiler said about them, and finds no contradiction in their text.
fn compare(types: &Types, said: &str) {
    for line in said.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        let (name, member) = words[0].split_once('.').map_or((words[0], None), |(n, m)| (n, Some(m)));
        let id = lookup::find(types, name.as_bytes()).unwrap_or_else(|| panic!("no {name}"));
        let (_, record) = types.as_record(id).expect("a record");
        match member {
            None => assert_eq!(record.size, number(1), "{line}"),
            Some(member) => {
                let found =
                    types.members(record).iter().find(|one| types.name(one.name) == member.as_bytes());
                let found = found.unwrap_or_else(|| panic!("no {line}"));
                assert_eq!((found.offset, found.size), (number(1), number(2)), "{line}");
            }
        }
    }
    for (id, _) in lookup::distinct_records(types) {
        let text = print(types, id);
        assert!(!text.contains("BRAIN FART") && !text.contains("combined with"), "{text}");
    }
}

fn print(types: &Types, id: tallyline_debuginfo::model::TypeId) -> String {
    let mut printer = Printer::new(types, Style::default());
    printer.print(id);
    String::from_utf8_lossy(printer.text()).into_owned()
}

fn text_of(types: &Types, name: &str) -> String {
    print(types, lookup::find(types, name.as_bytes()).expect("found"))
}

fn types_of(path: &Path) -> Types {
    read(&std::fs::read(path).expect("made"), &Request::default()).expect("readable")
}

#[test]
fn types_of_fortran_lie_where_gfortran_said() {
    let types = read(FORTRAN_OBJECT, &Request::default()).expect("readable");
    compare(&types, FORTRAN_SAYS);
    let text = text_of(&types, "box");
    // the first index varies fastest: the last is C's first
    for expected in [" m[4][3]; ", " lo[8]; ", " corner[2]; "] {
        assert!(text.contains(expected), "{text}");
    }
    let text = text_of(&types, "table");
    for expected in [" v[:];                 /*     8    64 */", " p[:][:];              /*    72    88 */"] {
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn types_of_fortran_lie_where_the_machine_s_compiler_puts_them() {
    let Some(folder) = folder("fortran", "gfortran") else { return };
    let (source, program) = (folder.join("shapes.f90"), folder.join("shapes"));
    std::fs::write(&source, FORTRAN).expect("writable");
    for flags in [&["-g"][..], &["-gdwarf-4", "-O2"], &["-g", "-gdwarf-2", "-gstrict-dwarf"]] {
        let mut compiler = Command::new("gfortran");
        run(compiler.current_dir(&folder).args(flags).arg("-o").arg(&program).arg(&source));
        let said = run(&mut Command::new(&program));
        // descriptors are of DWARF 3: without them there are fewer sizes to compare
        if flags.contains(&"-gdwarf-2") {
            let without: Vec<&str> = said.lines().filter(|line| !line.starts_with("table")).collect();
            let types = types_of(&program);
            for line in without {
                let name = line.split(['.', ' ']).next().expect("a name");
                assert!(lookup::find(&types, name.as_bytes()).is_some(), "no {name}");
            }
            continue;
        }
        compare(&types_of(&program), &said);
    }
    std::fs::remove_dir_all(folder).expect("removable");
}

#[test]
fn records_of_ada_lie_where_gnat_said() {
    let types = read(ADA_OBJECT, &Request::default()).expect("readable");
    compare(&types, ADA_SAYS);
    let text = text_of(&types, "things__dyn");
    assert!(text.contains("/* size: at least 8, members: 3 */"), "{text}");
    let text = text_of(&types, "things__two");
    assert!(text.contains(" other[];              /*     ?     0 */"), "{text}");
    let text = text_of(&types, "things__bits");
    assert!(text.contains(" f[12]:12;             /*     0: 1  2 */"), "{text}");
}

#[test]
fn a_record_of_dynamic_size_is_not_packed_because_its_known_part_is_odd() {
    let Some(folder) = folder("ada-odd", "gnatmake") else { return };
    let source = "package odds is
       type Kept (Length : Natural) is record Text : String (1 .. Length); Flag : Boolean; end record;
       K : Kept (5);
    end odds;\n";
    std::fs::write(folder.join("odds.ads"), source).expect("writable");
    run(Command::new("gcc").current_dir(&folder).args(["-c", "-g", "odds.ads"]));
    let text = text_of(&types_of(&folder.join("odds.o")), "odds__kept");
    assert!(text.contains("at least 5") && !text.contains("packed"), "{text}");
    std::fs::remove_dir_all(folder).expect("removable");
}

#[test]
fn records_of_ada_lie_where_the_machine_s_compiler_puts_them() {
    let Some(folder) = folder("ada", "gnatmake") else { return };
    for (name, source) in ADA {
        std::fs::write(folder.join(name), source).expect("writable");
    }
    for level in ["-O0", "-O2"] {
        let mut compiler = Command::new("gnatmake");
        run(compiler.current_dir(&folder).args(["-q", "-f", "-g", level, "main.adb"]));
        let program = folder.join("main");
        let said = run(&mut Command::new(&program));
        let said: String = match level {
            // what is not used is not described
            "-O0" => said,
            _ => said.lines().filter(|line| line.contains("mat")).map(|line| format!("{line}\n")).collect(),
        };
        compare(&types_of(&program), &said);
    }
    std::fs::remove_dir_all(folder).expect("removable");
}
