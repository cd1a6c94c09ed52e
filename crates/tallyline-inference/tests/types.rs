//! Types of memory operands in programs that are compiled here. The source names the fields that each line accesses;
//! the line table maps instructions to lines.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tallyline_debuginfo::program::source_lines;
use tallyline_debuginfo::{NoCompanions, model::Type, type_text};
use tallyline_inference::code::{Body, Flow, Image, Predecessors};
use tallyline_inference::{
    Debug, Outcome, Reason, TypeTable, Typed, Wanted, explain, field_path, infer, infer_by_btf, place_text,
};

/// The analysis of one program.
struct Found {
    table: TypeTable,
    lines: BTreeMap<u64, u64>,
    source: Vec<String>,
}

/// Compiles a program; `None`, with a message, without such a compiler.
fn compile(source: &str, compiler: &str, arguments: &[&str], name: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("types-{name}"));
    fs::create_dir_all(&folder).expect("a folder");
    let program = folder.join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let made = Command::new(compiler)
        .args(arguments)
        .arg("-o")
        .arg(&program)
        .arg(&source)
        .current_dir(&folder)
        .output();
    match made {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) => panic!("{compiler}: {}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => {
            eprintln!("skipped: no {compiler}");
            None
        }
    }
}

fn find(program: &Path, source: &str) -> Found {
    let bytes = fs::read(program).expect("the program");
    let image = Image::parse(&bytes).expect("an image");
    let table = infer(&image, Debug::Bytes(&bytes), &NoCompanions, Wanted::All).expect("a table");
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let lines = lines(program, source, &table);
    let source = fs::read_to_string(text).expect("the source").lines().map(String::from).collect();
    Found { table, lines, source }
}

/// Returns the source line of each row of a table; 0 for other files.
fn lines(program: &Path, source: &str, table: &TypeTable) -> BTreeMap<u64, u64> {
    let file = fs::File::open(program).expect("the program");
    let addresses: Vec<u64> = table.rows().iter().map(|(address, _)| *address).collect();
    let found = source_lines(&file, &NoCompanions, &addresses);
    let line_of = |address: &u64| found.get(address).filter(|(path, _)| path.ends_with(source));
    addresses.iter().map(|address| (*address, line_of(address).map_or(0, |(_, line)| *line))).collect()
}

impl Found {
    /// Returns the fields that the source names for the line of an instruction; empty if it names none.
    fn expected(&self, address: u64) -> Vec<&str> {
        let line = self.lines.get(&address).map_or(0, |line| *line as usize);
        let Some(text) = line.checked_sub(1).and_then(|line| self.source.get(line)) else {
            return Vec::new();
        };
        let words = match text.split_once("/* ").or(text.split_once("// ")) {
            Some((_, words)) => words.trim_end_matches("*/"),
            None => return Vec::new(),
        };
        words.split_whitespace().collect()
    }

    /// Returns a field as the sources write it: the type without scopes and parameters, and the path.
    fn field(&self, typed: &Typed) -> String {
        let types = self.table.types();
        let mut name = match types.get(typed.ty()) {
            Type::Record(_) => String::from_utf8_lossy(types.name(types.type_name(typed.ty()))).into_owned(),
            _ => type_text(types, typed.ty()).replace("struct ", "").replace("const ", "").replace(' ', ""),
        };
        if name.starts_with('(') {
            name = "tuple".into();
        }
        if let Some(end) = name.find('<') {
            name.truncate(end);
        }
        if let Some(start) = name.rfind(['.', '/', ':']) {
            name.drain(..=start);
        }
        let name = name.split(' ').next().unwrap_or_default().replace("longint", "long");
        format!("{name}.{}", field_path(types, typed))
    }

    /// Returns the number of typed instructions in the named functions, and of those that could be typed.
    fn coverage(&self, functions: &[&str]) -> (usize, usize) {
        let (mut typed, mut eligible) = (0, 0);
        for (address, outcome) in self.table.rows() {
            let own = self.table.function_at(*address).is_some_and(|function| {
                functions
                    .iter()
                    .any(|name| function.name() == *name || function.name() == format!("main.{name}"))
            });
            match outcome {
                _ if !own => {}
                Outcome::Typed(_) => (typed, eligible) = (typed + 1, eligible + 1),
                Outcome::Untyped(reason) => {
                    eprintln!("{address:#x}: {reason}");
                    eligible += 1;
                }
                Outcome::Pseudo(_) => {}
            }
        }
        (typed, eligible)
    }

    /// Returns the number of instructions with the right field, and of all on lines that name fields. Without
    /// optimization every variable is in memory: then only members of records count.
    fn right(&self, optimised: bool) -> (usize, usize) {
        let (mut right, mut all) = (0, 0);
        let types = self.table.types();
        for (address, outcome) in self.table.rows() {
            let (Outcome::Typed(typed), expected) = (outcome, self.expected(*address)) else { continue };
            let is_record = matches!(types.get(typed.ty()), Type::Record(_));
            if expected.is_empty() || !(optimised || is_record) {
                continue;
            }
            all += 1;
            let field = self.field(typed);
            let other = typed.at_other_place().map(|other| self.field(&other));
            // where several fields are named, one of them is right
            let is_named = |field: &String| named(field).any(|one| expected.contains(&one.as_str()));
            let mut places = [&field].into_iter().chain(&other);
            // one access may load what two lines use
            let is_right = match typed.or() {
                Some(_) if typed.is_pair() => places.any(is_named),
                _ => places.all(is_named),
            };
            if is_right {
                right += 1;
            } else {
                eprintln!("{address:#x}: {field}, not of {expected:?}");
            }
        }
        (right, all)
    }

    fn check(&self, functions: &[&str], percent: usize, least: usize, optimised: bool) {
        let (typed, eligible) = self.coverage(functions);
        let (right, all) = self.right(optimised);
        eprintln!("typed {typed} of {eligible}, right {right} of {all}");
        assert!(all >= least, "{all} instructions with an expectation");
        assert!(typed * 100 >= eligible * percent, "typed {typed} of {eligible}");
        // code that is not optimised folds the start of an array in a record into the index
        let least_right = if optimised { 97 } else { 80 };
        assert!(right * 100 >= all * least_right, "right {right} of {all}");
    }
}

/// Splits a text that names several fields, as in `order.u.whole or u.half`, each with its type.
fn named(text: &str) -> impl Iterator<Item = String> + '_ {
    let (ty, paths) = text.split_once('.').unwrap_or((text, ""));
    paths.split(" or ").map(move |path| format!("{ty}.{path}"))
}

const C: [&str; 8] = ["flags_of", "cost", "find", "walk", "lists", "indirect", "matrix", "chain"];
const CPP: [&str; 3] = ["by_reference", "walk", "sum_of"];
const CPP_CONTAINERS: [&str; 6] = ["shared", "in_map", "all_map", "in_hash", "all_hash", "all_list"];

#[test]
fn c_operands_have_the_fields_that_the_source_says() {
    for (compiler, level) in
        [("gcc", "-O2"), ("gcc", "-O0"), ("gcc", "-O3"), ("clang", "-O2"), ("aarch64-linux-gnu-gcc", "-O2")]
    {
        let name = format!("c{compiler}{level}");
        let Some(program) = compile("orders.c", compiler, &["-g", level], &name) else { continue };
        eprintln!("{compiler} {level}");
        find(&program, "orders.c").check(&C, 95, 18, level != "-O0");
    }
}

#[test]
fn cpp_operands_have_the_fields_that_the_source_says() {
    for (compiler, level) in
        [("g++", "-O2"), ("g++", "-O0"), ("clang++", "-O2"), ("aarch64-linux-gnu-g++", "-O2")]
    {
        let name = format!("cpp{compiler}{level}");
        let Some(program) = compile("orders.cc", compiler, &["-g", level, "-std=c++17"], &name) else {
            continue;
        };
        eprintln!("{compiler} {level}");
        let found = find(&program, "orders.cc");
        found.check(&CPP, 95, 18, level != "-O0");
        found.check(&CPP_CONTAINERS, 85, 18, level != "-O0");
    }
}

#[test]
fn rust_operands_have_the_fields_that_the_source_says() {
    let flags = ["-O", "-g", "--edition=2021"];
    let Some(program) = compile("orders.rs", "rustc", &flags, "rust") else { return };
    let found = find(&program, "orders.rs");
    found.check(&["walk", "sum_of", "cached", "area", "dynamic"], 95, 15, true);
    found.check(&["hashed", "all_hashed", "sorted", "counted"], 80, 15, true);
}

#[test]
fn go_operands_have_the_fields_that_the_source_says() {
    if Command::new("go").arg("version").output().is_err() {
        eprintln!("skipped: no go");
        return;
    }
    let Some(program) = compile("orders.go", "go", &["build"], "go") else { return };
    let found = find(&program, "orders.go");
    found.check(&["walk", "sumOf", "pointers", "costs"], 80, 10, true);
    found.check(&["inMap", "inValues"], 60, 10, true);
}

#[test]
fn what_a_condition_chooses_between_is_named_with_both_places() {
    let cases: [(&str, &str, &[&str]); 3] = [
        ("hot.rs", "rustc", &["-O", "-g", "--edition=2021"]),
        ("hot.rs", "rustc", &["-Copt-level=2", "-g", "--edition=2021"]),
        ("hot.c", "clang", &["-O2", "-g"]),
    ];
    for (number, (source, compiler, flags)) in cases.into_iter().enumerate() {
        let Some(program) = compile(source, compiler, flags, &format!("choice{number}")) else { continue };
        let found = find(&program, source);
        let function = found.table.functions().iter().find(|function| function.name() == "find");
        let range = function.expect("the function").ranges()[0].clone();
        let of_node = |outcome: &Outcome| match outcome {
            Outcome::Typed(typed) => Some((typed.or(), place_text(found.table.types(), typed))),
            Outcome::Pseudo(_) => None,
            Outcome::Untyped(reason) => panic!("{compiler} {flags:?}: {reason}"),
        };
        let rows = found.table.rows().iter().filter(|(address, _)| range.contains(address));
        let places: Vec<_> = rows.filter_map(|(_, outcome)| of_node(outcome)).collect();
        let chosen = places.iter().find(|(or, _)| or.is_some());
        // where left and right lie is the compiler's choice, and so is whether it branches
        let text = chosen.map_or("left or right", |(_, text)| text);
        assert!(text.contains("left") && text.contains(" or ") && text.contains("right"), "{text}");
        assert!(chosen.is_some() || places.iter().any(|(_, text)| text.contains("right")), "{places:?}");
    }
}

/// Asserts that every instruction of some functions has a type, and a field of its line if the line names any;
/// returns the number of those.
fn all_right(source: &str, compiler: &str, flags: &[&str], functions: &[&str], name: &str) -> Option<usize> {
    let found = find(&compile(source, compiler, flags, name)?, source);
    let mut right = 0;
    for (address, outcome) in found.table.rows() {
        let function = found.table.function_at(*address).map_or("", |function| function.name());
        let expected = found.expected(*address);
        if expected.is_empty() || !functions.contains(&function) {
            continue;
        }
        match outcome {
            // variables that the compiler has put on the stack are not what a line names
            Outcome::Typed(typed) if !matches!(found.table.types().get(typed.ty()), Type::Record(_)) => {}
            Outcome::Typed(typed) => {
                let field = found.field(typed);
                let is_named = named(&field).any(|one| expected.contains(&one.as_str()));
                assert!(is_named, "{address:#x}: {field} is not of {expected:?}");
                right += 1;
            }
            Outcome::Pseudo(_) => {}
            Outcome::Untyped(reason) => panic!("{address:#x}: {reason}"),
        }
    }
    Some(right)
}

/// Returns the fields that the instructions of a function touch, as reports name them; of records alone.
fn fields_of(found: &Found, name: &str) -> Vec<String> {
    let function = found.table.functions().iter().find(|function| function.name() == name);
    let range = function.unwrap_or_else(|| panic!("no function {name}")).ranges()[0].clone();
    let types = found.table.types();
    let rows = found.table.rows().iter().filter(|(address, _)| range.contains(address));
    let mut fields = Vec::new();
    for (address, outcome) in rows {
        match outcome {
            Outcome::Typed(typed) if matches!(types.get(typed.ty()), Type::Record(_)) => {
                let field = field_path(types, typed);
                if !field.is_empty() && fields.last() != Some(&field) {
                    fields.push(field);
                }
            }
            Outcome::Untyped(reason) => panic!("{address:#x} in {name}: {reason}"),
            _ => {}
        }
    }
    fields
}

#[test]
fn a_member_of_a_union_has_the_size_of_the_access_and_else_all_that_are_there_are_named() {
    for compiler in ["gcc", "clang"] {
        let name = format!("unions{compiler}");
        let Some(program) = compile("fields.c", compiler, &["-O2", "-g"], &name) else { continue };
        let found = find(&program, "fields.c");
        assert_eq!(fields_of(&found, "counted"), ["ref.count"], "{compiler}");
        assert_eq!(fields_of(&found, "padded"), ["ref.padding"], "{compiler}");
        assert_eq!(fields_of(&found, "smallest"), ["any.small or any.raw[]"], "{compiler}");
        assert_eq!(fields_of(&found, "wide"), ["any.number or any.pointer"], "{compiler}");
    }
}

#[test]
fn a_number_in_a_pointer_indexes_as_any_number_does() {
    let functions = ["in_heap", "in_table", "of_three_words", "behind_it"];
    for (compiler, level) in
        [("gcc", "-O2"), ("gcc", "-O3"), ("gcc", "-Os"), ("clang", "-O2"), ("aarch64-linux-gnu-gcc", "-O2")]
    {
        let name = format!("indices{compiler}{level}");
        let Some(right) = all_right("indices.c", compiler, &["-g", level], &functions, &name) else {
            continue;
        };
        assert!(right >= 9, "{compiler} {level}: {right}");
    }
}

#[test]
fn a_pair_of_registers_names_the_fields_of_both_halves() {
    let Some(program) = compile("pairs.c", "aarch64-linux-gnu-gcc", &["-O2", "-g"], "pairs") else { return };
    let found = find(&program, "pairs.c");
    let types = found.table.types();
    let places = |name: &str| {
        let function = found.table.functions().iter().find(|function| function.name() == name);
        let range = function.expect("the function").ranges()[0].clone();
        let rows = found.table.rows().iter().filter(|(address, _)| range.contains(address));
        let typed = rows.filter_map(|(address, outcome)| match outcome {
            Outcome::Typed(typed) => Some((place_text(types, typed), typed.bytes())),
            Outcome::Pseudo(_) => None,
            Outcome::Untyped(reason) => panic!("{address:#x} in {name}: {reason}"),
        });
        typed.collect::<Vec<_>>()
    };
    for (function, place) in [
        ("sum", "+0 or +0x8 (first or second)"),
        ("store", "+0 or +0x8 (first or second)"),
        // one field: an array's elements, a number of 16 bytes
        ("elements", "+0x10 (elements[])"),
        ("wide", "+0x20 (wide)"),
        // the members of a union that have the size of a half
        ("pointers", "+0x30 or +0x38 (any.number or any.pointer or last)"),
        ("floats", "+0x40 or +0x48 (x or y)"),
    ] {
        assert_eq!(places(function), [(place.to_owned(), 16)], "{function}");
    }
}

#[test]
fn a_bitfield_is_named_by_the_bits_that_are_used_and_else_all_in_the_bytes_are() {
    for compiler in ["gcc", "clang"] {
        let name = format!("bitfields{compiler}");
        let Some(program) = compile("fields.c", compiler, &["-O2", "-g"], &name) else { continue };
        let found = find(&program, "fields.c");
        for (function, field) in [
            ("get_b", "b"),
            ("get_c", "c"),
            ("is_closed", "closed"),
            ("set_c", "c"),
            ("set_kind", "kind"),
            ("close_it", "closed"),
            ("two", "a or d"),
        ] {
            assert_eq!(fields_of(&found, function), [field], "{compiler}: {function}");
        }
        assert_eq!(fields_of(&found, "if_open"), ["open", "rest"], "{compiler}");
        let all = fields_of(&found, "all");
        assert!(all.iter().any(|fields| fields.starts_with("a or b or c or d")), "{compiler}: {all:?}");
    }
}

#[test]
fn a_variant_is_named_where_the_path_has_tested_the_tag_and_else_all_that_fit_are() {
    for level in ["2", "3"] {
        let level = format!("-Copt-level={level}");
        let flags = [level.as_str(), "-g", "--edition=2021"];
        let name = format!("variants{level}");
        let Some(program) = compile("variants.rs", "rustc", &flags, &name) else { return };
        let found = find(&program, "variants.rs");
        let mut fed = fields_of(&found, "feed");
        fed.sort();
        fed.dedup();
        let (sum, std): (Vec<_>, Vec<_>) = fed.iter().partition(|field| field.starts_with("Sum.__0."));
        assert!(sum.iter().any(|field| field.as_str() == "Sum.__0.last"), "{fed:?}");
        assert!(
            std.iter().all(|field| ["Std.__0.scale", "Std.__0.limit"].contains(&field.as_str())),
            "{fed:?}"
        );
        let by_table = fields_of(&found, "by_table");
        assert!(by_table.iter().all(|field| !field.contains(" or ")), "{by_table:?}");
        for field in ["A.__0", "A.__1", "B.__1", "C.x", "C.y", "D.__0", "E.__1[]"] {
            assert!(by_table.iter().any(|found| found == field), "{field} is not among {by_table:?}");
        }
        assert_eq!(fields_of(&found, "in_loop"), ["B.__1"]);
        let by_niche = fields_of(&found, "by_niche");
        assert!(by_niche.iter().any(|field| field == "Number.high"), "{by_niche:?}");
        assert!(by_niche.iter().any(|field| field == "Text.__1"), "{by_niche:?}");
        assert!(by_niche.iter().all(|field| !field.contains(" or ")), "{by_niche:?}");
        let mut unproven = fields_of(&found, "unproven");
        unproven.sort();
        assert_eq!(unproven, ["A.__1 or B.__0 or C.y or D.__0 or E.__1[]", "B.__1 or E.__1[]"]);
    }
}

#[test]
fn an_array_behind_a_descriptor_has_elements_with_fields() {
    for level in ["-O2", "-O1"] {
        let name = format!("particles{level}");
        let functions = ["step", "heaviest"];
        let right = all_right("particles.f90", "gfortran", &["-g", level], &functions, &name);
        assert!(right.is_none_or(|right| right >= 8), "{level}: {right:?}");
    }
}

#[test]
fn a_counter_in_place_of_an_iterator_s_pointer_leads_to_the_fields_of_elements() {
    for level in ["2", "3"] {
        let level = format!("-Copt-level={level}");
        let flags = [level.as_str(), "-g", "--edition=2021"];
        let right = all_right("counted.rs", "rustc", &flags, &["all", "last"], &format!("counted{level}"));
        assert!(right.is_none_or(|right| right >= 5), "{level}: {right:?}");
    }
}

#[test]
fn a_variable_that_the_compiler_has_split_has_its_fields_where_the_pieces_are() {
    let right = all_right("hot.c", "clang", &["-O2", "-g"], &["count"], "pieces");
    assert!(right.is_none_or(|right| right >= 3), "{right:?}");
}

#[test]
fn a_parameter_that_is_a_pointer_to_void_gives_way_to_what_is_inlined_in_the_same_register() {
    for compiler in ["gcc", "clang"] {
        let name = format!("erased{compiler}");
        let right = |functions: &[&str]| {
            let flags = ["-O2", "-g"];
            let found = find(&compile("erased.c", compiler, &flags, &name)?, "erased.c");
            let (typed, eligible) = found.coverage(functions);
            // two that look for the kind, and what is behind it
            assert!(typed == eligible && eligible >= 4, "{compiler}: {typed} of {eligible}");
            Some(())
        };
        right(&["same"]);
    }
}

#[test]
fn a_function_within_another_one_is_found() {
    let flags = ["-O2", "-g", "-fopenmp", "-nodefaultlibs", "-lc"];
    let right = all_right("nested.cc", "g++", &flags, &["_ZN5world4stepEd._omp_fn.0"], "nested");
    assert!(right.is_none_or(|right| right >= 4), "{right:?}");
}

#[test]
fn an_index_into_the_array_that_a_record_ends_with_leads_to_its_elements() {
    for compiler in ["gcc", "clang"] {
        let name = format!("ends{compiler}");
        let right = all_right("erased.c", compiler, &["-O2", "-g"], &["insert"], &name);
        assert!(right.is_none_or(|right| right >= 8), "{compiler}: {right:?}");
    }
}

#[test]
fn a_part_of_a_container_s_node_is_known_as_a_part_of_it() {
    for (number, compiler) in ["g++", "clang++"].into_iter().enumerate() {
        let flags = ["-O2", "-g", "-std=c++17"];
        let Some(program) = compile("nodes.cc", compiler, &flags, &format!("nodes{number}")) else {
            continue;
        };
        let found = find(&program, "nodes.cc");
        let types = found.table.types();
        let nodes = |name: &str| {
            let function = found.table.functions().iter().find(|function| function.name() == name);
            let range = function.unwrap_or_else(|| panic!("no {name}")).ranges()[0].clone();
            let rows = found.table.rows().iter().filter(move |(address, _)| range.contains(address));
            let object = |outcome: &Outcome| {
                let Outcome::Typed(typed) = outcome else { return None };
                let is_record = matches!(types.get(typed.ty()), Type::Record(_));
                let (ty, start) = typed.within().map_or((typed.ty(), 0), |node| (node.ty(), node.start()));
                is_record.then(|| (type_text(types, ty), start + typed.offset()))
            };
            rows.filter_map(|(_, outcome)| object(outcome)).collect::<Vec<_>>()
        };
        // the key behind the base, then the order: `quantity` is behind `id`
        for (function, node, key) in [
            ("in_tree", "_Rb_tree_node<", 32),
            ("in_hash", "_Hash_node<", 8),
            ("found", "_Rb_tree_node<", 32),
        ] {
            let places = nodes(function);
            let is_of_node = |(name, _): &&(String, u32)| name.contains(node);
            let others: Vec<_> = places
                .iter()
                .filter(|place| !is_of_node(place) && place.0 != "long int")
                .filter(|(name, _)| name.contains("_node") || name.starts_with("struct pair"))
                .collect();
            assert!(others.is_empty(), "{compiler}, {function}: {others:?}");
            let offset = if function == "found" { key + 8 } else { key + 16 };
            let has = |at: u32| places.iter().filter(is_of_node).any(|(_, place)| *place == at);
            assert!(has(offset), "{compiler}, {function}: {places:?}");
        }
        let alone = nodes("alone");
        assert!(alone.iter().all(|(name, _)| name.contains("pair")), "{compiler}: {alone:?}");
    }
}

#[test]
fn a_variable_of_another_file_is_what_the_unit_declares() {
    // clang describes none that it does not define
    let flags = ["-O2", "-g", "-shared", "-fPIC"];
    let right = all_right("imports.c", "gcc", &flags, &["allowed"], "imports");
    assert!(right.is_none_or(|right| right >= 2), "{right:?}");
}

#[test]
fn a_constant_is_no_part_of_another_file_s_variable_that_the_linker_has_put_it_into() {
    let other = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/merged_other.c");
    let other = other.to_str().expect("a path");
    let Some(program) = compile("merged.c", "gcc", &["-O2", "-g", other], "merged") else { return };
    let found = find(&program, "merged.c");
    let of = |name: &str| {
        let function = found.table.functions().iter().find(|function| function.name() == name);
        let range = function.expect("the function").ranges()[0].clone();
        let rows = found.table.rows().iter().filter(move |(address, _)| range.contains(address));
        rows.map(|(_, outcome)| *outcome).collect::<Vec<_>>()
    };
    let is_typed = |outcome: &Outcome| matches!(outcome, Outcome::Typed(_));
    assert!(of("own").iter().any(is_typed));
    let others = of("of_other");
    assert!(!others.is_empty() && !others.iter().any(is_typed), "{others:?}");
}

#[test]
fn behind_the_head_of_a_list_that_is_in_one_record_only_is_that_record() {
    let right = all_right("hot.c", "gcc", &["-O2", "-g", "-flto"], &["linked"], "listed");
    assert!(right.is_none_or(|right| right >= 2), "{right:?}");
}

#[test]
fn an_iterator_s_own_parameters_say_what_its_base_is_the_start_of() {
    let flags = ["-O2", "-g", "-std=c++17"];
    for (number, compiler) in ["clang++", "g++"].into_iter().enumerate() {
        let functions = ["in_map", "all_map"];
        let right =
            all_right("hot_containers.cc", compiler, &flags, &functions, &format!("iterator{number}"));
        assert!(right.is_none_or(|right| right >= 3), "{right:?}");
    }
}

#[test]
fn the_words_that_groups_of_go_maps_start_with_have_a_type_and_what_is_behind_them_has_none() {
    if Command::new("go").arg("version").output().is_err() {
        eprintln!("skipped: no go");
        return;
    }
    let Some(program) = compile("hot_containers.go", "go", &["build"], "groups") else { return };
    let bytes = fs::read(&program).expect("the program");
    let image = Image::parse(&bytes).expect("an image");
    let table = infer(&image, Debug::Bytes(&bytes), &NoCompanions, Wanted::All).expect("a table");
    let function = table.functions().iter().find(|function| function.name() == "runtime.mapaccess1_fast64");
    let function = function.expect("the function that looks up keys of eight bytes");
    let body = Body::decode(&image, function.ranges(), function.ranges()[0].start);
    let (mut words, mut slots) = (0, 0);
    for instruction in body.instructions() {
        let Some(memory) = instruction.memory() else { continue };
        match table.outcome(instruction.address()).expect("an outcome") {
            Outcome::Typed(typed)
                if type_text(table.types(), typed.ty()) == "internal/runtime/maps.ctrlGroup" =>
            {
                assert_eq!((memory.index(), memory.displacement(), memory.size()), (None, 0, 8));
                words += 1;
            }
            // a key, which the code knows by its size only
            Outcome::Untyped(Reason::Opaque(_)) if memory.displacement() == 8 => slots += 1,
            _ => {}
        }
    }
    assert!(words > 0 && slots > 0, "{words} words, {slots} slots");
}

#[test]
fn an_outcome_can_be_explained_and_has_instructions_before_it() {
    let Some(program) = compile("orders.c", "gcc", &["-g", "-O2"], "explained") else { return };
    let bytes = fs::read(&program).expect("the program");
    let image = Image::parse(&bytes).expect("an image");
    let table = infer(&image, Debug::Bytes(&bytes), &NoCompanions, Wanted::All).expect("a table");
    let walk = table.functions().iter().find(|function| function.name() == "walk").expect("the function");
    let range = walk.ranges()[0].clone();
    let rows = table.rows().iter().filter(|(address, _)| range.contains(address));
    let (address, outcome) =
        rows.filter(|(_, outcome)| matches!(outcome, Outcome::Typed(_))).nth(1).expect("a row");
    let only = infer(&image, Debug::Bytes(&bytes), &NoCompanions, Wanted::At(&[*address])).expect("a table");
    assert_eq!(only.functions().len(), 1);
    let explained =
        explain(&image, Debug::Bytes(&bytes), &NoCompanions, *address).expect("read").expect("a function");
    assert_eq!(explained.function(), "walk");
    assert_eq!(explained.scopes(), ["walk"]);
    assert!(explained.answer().contains("order"), "{explained:?} {outcome:?}");
    assert!(explained.steps().iter().any(|step| step.known().iter().any(|known| known.contains("order"))));
    let body = Body::decode(&image, walk.ranges(), range.start);
    assert_eq!(body.predecessors(range.start), Some(Predecessors::Entry));
    let after_call = body.instructions().iter().find_map(|instruction| {
        match body.predecessors(instruction.address())? {
            Predecessors::Call { target, .. } => target,
            _ => None,
        }
    });
    let called = after_call.and_then(|target| table.function_at(target)).map(|function| function.name());
    assert_eq!(called, Some("flags_of"));
}

#[test]
fn prototypes_in_btf_are_enough_for_what_is_loaded_through_arguments() {
    if Command::new("gcc").arg("--version").output().is_err() {
        eprintln!("skipped: no gcc");
        return;
    }
    let Some(program) = compile("orders.c", "gcc", &["-gbtf", "-O2"], "btf") else { return };
    let bytes = fs::read(&program).expect("the program");
    let image = Image::parse(&bytes).expect("an image");
    let table = infer_by_btf(&image, &bytes, Wanted::All).expect("a table");
    let walk = table.functions().iter().find(|function| function.name() == "walk").expect("the function");
    let fields: Vec<String> = table
        .rows()
        .iter()
        .filter(|(address, _)| walk.ranges()[0].contains(address))
        .filter_map(|(_, outcome)| match outcome {
            Outcome::Typed(typed) => Some(field_path(table.types(), typed)),
            _ => None,
        })
        .collect();
    for field in ["price", "next", "quantity", "history[]"] {
        assert!(fields.iter().any(|found| found == field), "{field} is not among {fields:?}");
    }
}

/// Returns the fields of a function's gather and of the second operand of its string move.
fn vector_operand(program: &Path, found: &Found, name: &str) -> (Outcome, Option<Outcome>) {
    let image = Image::parse(&fs::read(program).expect("the program")).expect("an image");
    let function = found.table.functions().iter().find(|function| function.name() == name).expect("it");
    let body = Body::decode(&image, function.ranges(), function.ranges()[0].start);
    let instructions = body.instructions().iter();
    let wanted = instructions.filter(|one| {
        let text = image.text(one);
        text.contains("gather") || text.contains("movsq")
    });
    let mut all = wanted.map(|one| {
        (found.table.outcome(one.address()).expect("an outcome"), found.table.second_outcome(one.address()))
    });
    let first = all.next().unwrap_or_else(|| panic!("no such instruction in {name}"));
    assert!(all.all(|other| other == first), "{name}");
    first
}

#[test]
fn gathers_access_what_each_element_of_their_index_leads_to_and_string_moves_two_objects() {
    if cfg!(not(target_arch = "x86_64")) {
        eprintln!("skipped: no x86-64");
        return;
    }
    for compiler in ["gcc", "clang-14"] {
        let flags = ["-O2", "-g", "-mavx2"];
        let Some(program) = compile("vectors.c", compiler, &flags, &format!("vectors-{compiler}")) else {
            continue;
        };
        let found = find(&program, "vectors.c");
        let field = |outcome: Outcome| match outcome {
            Outcome::Typed(typed) => place_text(found.table.types(), &typed),
            Outcome::Untyped(reason) => reason.kind().to_owned(),
            Outcome::Pseudo(pseudo) => pseudo.name().to_owned(),
        };
        for (function, expected) in [
            ("index_of_zeros", "+0x8 (cold)"),
            ("index_of_constants", "+0x8 (cold)"),
            ("index_of_words", "+0x8 (cold)"),
            ("index_shifted", "+0x8 (cold)"),
            ("index_in_loop", "+0x8 (cold)"),
            ("pointers", "+0x8 (cold)"),
            ("pointer_to_all", "+0x8 (cold)"),
            ("index_not_known", "index not known"),
            ("index_changed", "index not known"),
            ("index_from_caller", "index not known"),
        ] {
            let (outcome, second) = vector_operand(&program, &found, function);
            assert_eq!((field(outcome).as_str(), second), (expected, None), "{compiler}: {function}");
        }
        let (read, written) = vector_operand(&program, &found, "move");
        let written = written.expect("a second operand");
        assert_eq!((field(read), field(written)), ("+0x8 (cold)".into(), "+0x8 (body[])".into()));
        assert!(matches!(written, Outcome::Typed(typed) if typed.access().writes()), "{written:?}");
    }
}

#[test]
fn a_jump_through_a_table_leads_to_its_cases_and_nowhere_else() {
    let cases: [(&str, &[&str]); 4] = [
        ("gcc", &["-O2", "-g"]),
        ("gcc", &["-O2", "-g", "-fcf-protection=full"]),
        ("gcc", &["-O2", "-g", "-no-pie", "-fno-pie"]),
        ("clang", &["-O2", "-g"]),
    ];
    for (number, (compiler, flags)) in cases.into_iter().enumerate() {
        let name = format!("table{number}");
        let Some(program) = compile("structures.c", compiler, flags, &name) else { continue };
        let bytes = fs::read(&program).expect("the program");
        let image = Image::parse(&bytes).expect("an image");
        let table = infer(&image, Debug::Bytes(&bytes), &NoCompanions, Wanted::All).expect("a table");
        let function = table.functions().iter().find(|function| function.name() == "classify");
        // clang makes a part of `main` of it
        let Some(function) = function else { continue };
        let body = Body::decode(&image, function.ranges(), function.ranges()[0].start);
        let jump = body.blocks().iter().find(|block| {
            let last = &body.instructions()[block.instructions().end as usize - 1];
            last.flow() == Flow::Jump(None)
        });
        let cases = jump.expect("a jump").successors().len();
        // eight values, some of which may do the same
        assert!((6..=8).contains(&cases), "{compiler} {flags:?}: {cases} cases");
    }
}

#[test]
fn a_niche_of_many_variants_is_told_by_its_sign_and_what_is_added_to_it() {
    for level in ["2", "3"] {
        let level = format!("-Copt-level={level}");
        let flags = [level.as_str(), "-g", "--edition=2021"];
        let Some(program) = compile("niches.rs", "rustc", &flags, &format!("niches{level}")) else { return };
        let found = find(&program, "niches.rs");
        let fields = |name: &str| {
            let mut fields = fields_of(&found, name);
            fields.sort();
            fields.dedup();
            fields
        };
        let three = ["Number.high", "Number.low", "Pair.__0", "Pair.__1", "Pair.__2", "Text.__1"];
        assert_eq!(fields("three"), three, "{level}");
        let halves = |field: &String| !field.starts_with("Half.");
        let (others, many): (Vec<_>, Vec<_>) = fields("many").into_iter().partition(halves);
        assert_eq!((others, many.len()), (three.map(String::from).to_vec(), 2), "{level}");
        assert_eq!(fields("change"), ["Half.__1", "Number.low", "Pair.__1", "Text.__1"], "{level}");
    }
}

#[test]
fn control_bytes_of_a_hash_table_are_no_bytes_of_its_elements_which_lie_below_them() {
    for level in ["2", "3"] {
        let level = format!("-Copt-level={level}");
        let flags = [level.as_str(), "-g", "--edition=2021"];
        for (source, function, fields) in [
            ("containers.rs", "all_hash", ["__1.weight", "__1.flags"]),
            ("control.rs", "sum", ["__1.bytes", "__1.bytes"]),
            ("control.rs", "find", ["__0", "__1.bytes"]),
            ("control.rs", "change", ["__1.hits", "__1.last"]),
        ] {
            let Some(program) = compile(source, "rustc", &flags, &format!("{function}{level}")) else {
                return;
            };
            let found = find(&program, source);
            let range = found.table.functions().iter().find(|one| one.name() == function);
            let range = range.expect("the function").ranges()[0].clone();
            let types = found.table.types();
            let (mut elements, mut control) = (Vec::new(), 0);
            for (address, outcome) in found.table.rows().iter().filter(|(at, _)| range.contains(at)) {
                // registers would choose a byte of an element
                if let Outcome::Untyped(reason @ Reason::Index { step: 1, .. }) = outcome {
                    panic!("{address:#x} in {function}: {reason}");
                }
                let Outcome::Typed(typed) = outcome else { continue };
                if type_text(types, typed.ty()).starts_with("struct (u64, ") {
                    // sixteen of them are read at once
                    assert!(typed.size() <= 8, "{address:#x}: {}", place_text(types, typed));
                    elements.push(field_path(types, typed));
                } else if typed.size() == 16 {
                    control += 1;
                }
            }
            assert!(control > 0, "{function}: {elements:?}");
            assert!(elements.iter().all(|field| !field.is_empty()), "{elements:?}");
            assert!(fields.iter().all(|field| elements.iter().any(|one| one == field)), "{elements:?}");
        }
    }
}
