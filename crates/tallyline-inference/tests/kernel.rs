//! Idioms of kernels that programs seldom use, in a program that is compiled here and analysed by its DWARF or by BTF
//! alone.
#![cfg(target_arch = "x86_64")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tallyline_debuginfo::{NoCompanions, type_text};
use tallyline_inference::code::Image;
use tallyline_inference::{
    Debug, Outcome, Pseudo, Reason, TypeTable, Wanted, field_path, infer, infer_by_btf,
};

/// Compiles and links a program; `None`, with a message, without a compiler.
fn compile(name: &str, sources: &[&str], arguments: &[&str]) -> Option<(Image, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("kernel-{name}"));
    fs::create_dir_all(&folder).expect("a folder");
    let program = folder.join("program");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let sources = sources.iter().map(|source| from.join(source));
    let made = Command::new("gcc").args(arguments).arg("-O2").arg("-o").arg(&program).args(sources).output();
    match made {
        Ok(output) => assert!(output.status.success(), "gcc: {}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => {
            eprintln!("skipped: no gcc");
            return None;
        }
    }
    let bytes = fs::read(&program).expect("the program");
    Some((Image::parse(&bytes).expect("an image"), bytes))
}

/// Returns the types with fields that a function's instructions access outside of its own stack.
fn accessed(table: &TypeTable, function: &str) -> Vec<String> {
    let own = table.functions().iter().find(|own| own.name() == function).expect("the function");
    let inside = |address: &u64| own.ranges().iter().any(|range| range.contains(address));
    let rows = table.rows().iter().filter(|(address, _)| inside(address));
    let text = |outcome: &Outcome| match outcome {
        Outcome::Typed(typed) => {
            let types = table.types();
            Some(format!("{}.{}", type_text(types, typed.ty()), field_path(types, typed)))
        }
        Outcome::Untyped(reason) => Some(format!("({reason})")),
        Outcome::Pseudo(_) => None,
    };
    rows.filter_map(|(_, outcome)| text(outcome)).collect()
}

/// Infers types by DWARF, in a folder of the test's own, because tests run at the same time.
fn by_dwarf(test: &str) -> Option<TypeTable> {
    let (image, bytes) = compile(test, &["kernel.c"], &["-g"])?;
    Some(infer(&image, Debug::Bytes(&bytes), &NoCompanions, Wanted::All).expect("a table"))
}

#[test]
fn an_address_that_was_kept_as_a_number_on_one_way_has_the_type_of_the_other() {
    let Some(table) = by_dwarf("number") else { return };
    assert_eq!(accessed(&table, "users_of"), ["struct page.head", "struct page.users"]);
}

#[test]
fn places_on_a_stack_that_is_aligned_anew_keep_their_names() {
    let Some(table) = by_dwarf("stack") else { return };
    let accessed = accessed(&table, "aligned");
    assert!(accessed.iter().any(|found| found == "struct page.flags"), "{accessed:?}");
    assert!(accessed.iter().all(|found| !found.starts_with('(')), "{accessed:?}");
}

#[test]
fn an_address_of_one_of_several_elements_on_the_stack_is_of_their_array_whatever_way_it_came() {
    let Some(table) = by_dwarf("elements") else { return };
    let counts = "int[4].[]";
    let expected = [counts, "struct page.head", counts, counts, "struct page.flags"];
    assert_eq!(accessed(&table, "counted"), expected);
}

#[test]
fn data_of_the_assembler_has_the_type_that_it_is_declared_with() {
    let Some(table) = by_dwarf("assembler") else { return };
    let accessed = accessed(&table, "symbol_at");
    assert!(accessed.iter().all(|found| !found.starts_with('(')) && accessed.len() == 2, "{accessed:?}");
    assert!(accessed[0].contains("short"), "{accessed:?}");
}

#[test]
fn members_of_a_union_that_lead_to_pointers_are_stepped_over_alike() {
    let Some(table) = by_dwarf("union") else { return };
    let accessed = accessed(&table, "first_of");
    assert!(
        !accessed.is_empty() && accessed.iter().all(|found| found.contains("struct page *")),
        "{accessed:?}"
    );
}

#[test]
fn the_address_of_a_page_may_come_back_as_a_number() {
    let Some(table) = by_dwarf("head") else { return };
    assert_eq!(accessed(&table, "users_of_head"), ["struct page.users"]);
}

#[test]
fn assembly_has_no_types_and_says_so() {
    let Some((image, bytes)) = compile("assembly", &["kernel.c", "bytes.S"], &["-g"]) else { return };
    let table = infer(&image, Debug::Bytes(&bytes), &NoCompanions, Wanted::All).expect("a table");
    let function =
        image.functions().iter().find(|function| function.name() == "set_bytes").expect("the function");
    let store = table
        .rows()
        .iter()
        .find(|(address, _)| *address > function.address() && *address < function.address() + 16);
    assert!(
        matches!(
            store,
            Some((_, Outcome::Untyped(Reason::NoDebugInformation) | Outcome::Pseudo(Pseudo::StackOperation)))
        ),
        "{store:?}"
    );
}

#[test]
fn by_btf_the_part_that_is_seldom_run_belongs_to_its_function() {
    let Some((image, bytes)) = compile("btf", &["kernel.c"], &["-gbtf"]) else { return };
    let cold = image.functions().iter().find(|function| function.name() == "checked.cold");
    let cold = cold.expect("the compiler puts it elsewhere").clone();
    for wanted in [Wanted::All, Wanted::At(&[cold.address()])] {
        let table = infer_by_btf(&image, &bytes, wanted).expect("a table");
        assert_eq!(table.function_at(cold.address()).map(|function| function.name()), Some("checked"));
        let inside = |(address, outcome): &(u64, Outcome)| {
            let is_cold = (cold.address()..cold.address() + cold.size()).contains(address);
            match outcome {
                Outcome::Typed(typed) if is_cold => Some(field_path(table.types(), typed)),
                _ => None,
            }
        };
        let fields: Vec<String> = table.rows().iter().filter_map(inside).collect();
        assert_eq!(fields, ["flags", "users"]);
    }
}
