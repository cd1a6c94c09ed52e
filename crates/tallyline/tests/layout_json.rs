//! `tallyline layout --format json`: what its document says of types made by real compilers.

mod common;

use common::{data, folder, run, stdout};
use serde_json::Value;
use std::collections::HashSet;

fn document(args: &[&str]) -> Value {
    let output = run(&[&["layout", "--format", "json"], args].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn find<'v>(list: &'v Value, name: &str) -> &'v Value {
    let list = list.as_array().expect("a list");
    list.iter().find(|item| item["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn every_type_has_an_id_of_its_own_and_the_size_that_the_text_shows() {
    for file in ["holes.o", "bitfields.btf", "kinds.o", "nesting.btf"] {
        let file = data(file);
        let document = document(&[&file]);
        assert_eq!(document["schema"], 1);
        let types = document["types"].as_array().expect("types");
        let ids: HashSet<u64> = types.iter().map(|ty| ty["id"].as_u64().expect("an id")).collect();
        assert_eq!(ids.len(), types.len());
        let sizes = stdout(&run(&["layout", "--sizes", &file]));
        assert_eq!(sizes.lines().count(), types.len());
        for (line, ty) in sizes.lines().zip(types) {
            let holes = ty["holes"].as_array().map_or(0, Vec::len);
            let name = ty["name"].as_str().expect("a name");
            assert_eq!(line, format!("{name}\t{}\t{holes}", ty["size"]));
        }
    }
}

#[test]
fn holes_padding_and_alignment_are_where_the_compiler_left_them() {
    for file in ["holes.o", "holes.btf"] {
        let document = document(&["holes", "packed", "on_a_line", "flexible", &data(file)]);
        let holes = find(&document["types"], "holes");
        let expected = serde_json::json!([
            {"offset": 1, "size": 3, "after": "a"},
            {"offset": 9, "size": 7, "after": "c"},
        ]);
        assert_eq!(holes["holes"], expected, "{file}");
        assert_eq!((&holes["padding"], &holes["align"]), (&7.into(), &8.into()));
        let declared = &holes["declared_at"];
        assert_eq!(declared["line"], if file.ends_with(".o") { 4.into() } else { Value::Null });
        let line = &find(&holes["members"], "d")["declared_at"]["line"];
        assert_eq!(line, &declared["line"], "all on one line: {file}");
        let packed = find(&document["types"], "packed");
        assert_eq!((&packed["packed"], &packed["align"]), (&true.into(), &1.into()));
        assert_eq!(find(&document["types"], "on_a_line")["align"], 64);
        assert_eq!(find(&document["types"], "on_a_line")["cachelines"], 3);
        let flexible = find(&document["types"], "flexible");
        assert_eq!(flexible["flexible"], true);
        assert_eq!(flexible["members"][1]["dims"], serde_json::json!([0]));
    }
}

#[test]
fn bitfields_arrays_and_functions_are_spelled_out() {
    let bitfields = document(&["simple", &data("bitfields.o")]);
    let b = find(&bitfields["types"][0]["members"], "b");
    assert_eq!((&b["offset"], &b["bit_offset"], &b["bit_size"]), (&0.into(), &3.into(), &7.into()));
    let hole = serde_json::json!([{"bit_offset": 10, "bits": 6, "after": "b"}]);
    assert_eq!(bitfields["types"][0]["bit_holes"], hole);
    for file in ["kinds.o", "kinds.btf"] {
        let document = document(&["arrays", "functions", "signs", "callback_t", &data(file)]);
        let array = find(&find(&document["types"], "arrays")["members"], "b");
        assert_eq!((&array["type"], &array["dims"]), (&"char".into(), &serde_json::json!([2, 3, 4])));
        assert_eq!(array["size"], 24);
        let functions = &find(&document["types"], "functions")["members"];
        assert_eq!(find(functions, "b")["type"], "int (*)(int, const char *, ...)", "{file}");
        assert_eq!(find(&find(&document["types"], "signs")["enumerators"], "MINUS")["value"], -3);
        assert_eq!(find(&document["types"], "callback_t")["of"], "int (*)(void *, const char *)");
    }
}

#[test]
fn anonymous_structs_show_their_own_members() {
    let document = document(&["nested", &data("nesting.o")]);
    let table = find(&document["types"][0]["members"], "table");
    assert_eq!((&table["type"], &table["dims"]), (&"struct".into(), &serde_json::json!([4])));
    assert_eq!(find(&table["inner"]["members"], "value")["offset"], 8);
    assert!(document["types"][0]["members"][1]["name"].is_null());
}

#[test]
fn typedefs_of_anonymous_structs_show_their_members() {
    for file in ["nesting.o", "nesting.btf"] {
        let document = document(&["point_t", "cell_t", "nested", &data(file)]);
        let point = &find(&document["types"], "point_t")["inner"];
        assert_eq!((&point["kind"], &point["size"]), (&"struct".into(), &8.into()), "{file}");
        assert_eq!(find(&point["members"], "y")["offset"], 4);
        assert_eq!(find(&document["types"], "cell_t")["inner"]["kind"], "union");
        assert!(find(&document["types"], "nested").get("inner").is_none());
    }
}

#[test]
fn a_document_goes_into_a_file_and_filters_apply() {
    let path = folder("layout-json").join("types.json");
    let name = path.to_str().expect("a plain path");
    let output = run(&["layout", "--format", "json", "--unions", "-o", name, &data("holes.o")]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let document: Value =
        serde_json::from_slice(&std::fs::read(&path).expect("written")).expect("a document");
    let kinds: Vec<_> = document["types"].as_array().expect("types").iter().map(|ty| &ty["kind"]).collect();
    assert!(!kinds.is_empty() && kinds.iter().all(|kind| **kind == "union"), "{kinds:?}");
}
