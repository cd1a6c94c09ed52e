//! The layout of Zig types equals Zig's `comptime` assertions, whichever backend wrote it.

mod common;

use common::{folder, run};
use std::path::Path;
use std::process::Command;
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::{Request, read};

const SOURCE: &str = include_str!("data/languages/types.zig");
const OBJECTS: [&[u8]; 2] =
    [include_bytes!("data/languages/types-zig-self.o"), include_bytes!("data/languages/types-zig-llvm.o")];

/// A type's name, its size, and members with their offsets.
type Expected = (String, u64, Vec<(String, u64)>);

/// Returns the expectations that the source states for each type.
fn expected() -> Vec<Expected> {
    let lines = SOURCE.lines().filter_map(|line| line.trim().strip_prefix("expect("));
    lines
        .map(|line| {
            let (name, rest) = line.split_once(", ").expect("a name");
            let (size, rest) = rest.split_once(", ").expect("a size");
            let offsets = rest.split(".{ \"").skip(1).map(|member| {
                let (name, offset) = member.split_once("\", ").expect("a member");
                let digits = offset.split(' ').next().expect("a number");
                (name.to_string(), digits.parse().expect("a number"))
            });
            (format!("types.{name}"), size.parse().expect("a number"), offsets.collect())
        })
        .collect()
}

/// Compares an object with what is expected; how many offsets there are.
fn compare(object: &[u8]) -> usize {
    let types = read(object, &Request::default()).expect("readable");
    let mut count = 0;
    for (name, size, members) in expected() {
        let id = lookup::find(&types, name.as_bytes()).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(types.qualified_name(id), name.as_bytes(), "scopes are there once");
        let (_, record) = types.as_record(id).expect("a record");
        assert_eq!(record.size, size, "{name}");
        for (member, offset) in members {
            let found = types.members(record).iter().find(|one| types.name(one.name) == member.as_bytes());
            assert_eq!(found.map(|one| one.offset), Some(offset), "{name}.{member}");
            count += 1;
        }
    }
    count
}

#[test]
fn records_lie_where_both_backends_of_zig_say() {
    for object in OBJECTS {
        assert_eq!(compare(object), 18);
    }
}

#[test]
fn records_lie_where_the_machine_s_zig_puts_them() {
    let is_known = |version: &str| version.starts_with("0.15.");
    let version = Command::new("zig").arg("version").output();
    if !version.is_ok_and(|output| is_known(&String::from_utf8_lossy(&output.stdout))) {
        eprintln!("skipped: no zig 0.15");
        return;
    }
    // zig knows no `--version`, but rustc, which is here, does
    let Some(folder) = folder("zig", "rustc") else { return };
    std::fs::write(folder.join("types.zig"), SOURCE).expect("writable");
    for backend in ["-fllvm", "-fno-llvm"] {
        let object = folder.join(format!("types{backend}.o"));
        build(&folder, backend, &object);
        assert_eq!(compare(&std::fs::read(object).expect("made")), 18);
    }
    std::fs::remove_dir_all(folder).expect("removable");
}

fn build(folder: &Path, backend: &str, object: &Path) {
    let mut command = Command::new("zig");
    command.current_dir(folder).env("ZIG_GLOBAL_CACHE_DIR", folder.join("cache"));
    command.args(["build-obj", "types.zig", "-target", "x86_64-linux-gnu", backend]);
    run(command.arg(format!("-femit-bin={}", object.display())));
}
