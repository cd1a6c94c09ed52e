//! Rows of `annotate`: each sample is in one of them, whatever shares its bytes or its type's name.

mod common;
mod recorded;

use common::{compiles, folder, run, stderr, stdout};
use recorded::{Recorded, access, record_program};
use std::fs;
use std::process::Command;

const MAIN: &str = "int main(void) { return 0; }\n";

const SHARED: &str = "\
union value { long whole; int half; };
union either { long number; char *text; };
struct holder { union value v; unsigned one : 3, two : 5, rest : 24; union either e; };
long whole(struct holder *p) { return p->v.whole; }
int half(struct holder *p) { return p->v.half; }
unsigned two(struct holder *p) { return p->two; }
long either(struct holder *p) { return p->e.number; }
int main(void) { return 0; }
";

const ARRAYS: &str = "\
struct order { long key; int amount; int kind; };
struct order orders[1024], grid[4][8];
int numbers[16];
int kind(void) { return orders[3].kind; }
int kind_of_another(void) { return orders[700].kind; }
long key(void) { return orders[9].key; }
int amount(void) { return grid[2][3].amount; }
int number(void) { return numbers[5]; }
int main(void) { return 0; }
";

const ENUM: &str = include_str!("programs/shapes.rs");

/// A row: its depth, its samples and its text.
struct Row {
    depth: usize,
    samples: u64,
    text: String,
}

/// Returns the rows of a type.
fn rows(text: &str, name: &str) -> Vec<Row> {
    let head = |line: &&str| line.starts_with("Annotate type: ") && line.contains(name);
    let lines = text.lines().skip_while(|line| !head(line)).skip(1);
    let rows: Vec<Row> = lines.take_while(|line| !line.is_empty()).filter_map(row).collect();
    assert!(!rows.is_empty(), "no {name} in {text}");
    rows
}

/// Parses a row: percentage, samples, loads, stores, latency, CPUs, offset, size; then the indented text.
fn row(line: &str) -> Option<Row> {
    let mut rest = line;
    let mut words = Vec::new();
    for _ in 0..8 {
        rest = rest.trim_start();
        let end = rest.find(' ')?;
        words.push(&rest[..end]);
        rest = &rest[end..];
    }
    words[0].parse::<f64>().ok()?;
    let depth = (rest.len() - rest.trim_start().len() - 2) / 4;
    Some(Row { depth, samples: words[1].parse().ok()?, text: rest.trim().replace('\t', " ") })
}

/// Returns the samples of a row.
fn samples(rows: &[Row], text: &str) -> u64 {
    let found: Vec<&Row> = rows.iter().filter(|row| row.text.contains(text)).collect();
    assert_eq!(found.len(), 1, "{text}: {:?}", rows.iter().map(|row| &row.text).collect::<Vec<_>>());
    found[0].samples
}

/// Asserts that the rows without members, and those of the outermost members, have each sample once.
fn assert_sums(rows: &[Row], total: u64) {
    let sum = |is_counted: &dyn Fn(&Row) -> bool| -> u64 {
        rows.iter().filter(|row| is_counted(row)).map(|row| row.samples).sum()
    };
    assert_eq!(rows[0].samples, total);
    assert_eq!(sum(&|row| row.depth == 1), total);
    assert_eq!(sum(&|row| !row.text.ends_with('{')), total);
}

fn annotated(recorded: &Recorded) -> String {
    let shown = run(&["annotate", "-i", recorded.path(), "*"]);
    assert!(shown.status.success(), "{}", stderr(&shown));
    stdout(&shown)
}

#[test]
fn samples_of_unions_and_bitfields_are_in_one_row_each() {
    let accesses = ["whole", "whole", "whole", "half", "half", "two", "either", "either"].map(access);
    let Some(recorded) = record_program("annotate-shared", SHARED, &["-g"], true, &accesses) else { return };
    let text = annotated(&recorded);
    let rows = rows(&text, "struct holder");
    assert_sums(&rows, 8);
    // the size decides, or the bits
    assert_eq!((samples(&rows, "whole;"), samples(&rows, "half;")), (3, 2), "{text}");
    assert_eq!(
        (samples(&rows, "one;"), samples(&rows, "two;"), samples(&rows, "rest;")),
        (0, 1, 0),
        "{text}"
    );
    // two members of one size: neither is named alone, the union is
    assert_eq!((samples(&rows, " number;"), samples(&rows, " text;")), (0, 0), "{text}");
    assert_eq!(samples(&rows, "/* e.number or e.text */"), 2, "{text}");
    assert_eq!(samples(&rows, "e {"), 2, "{text}");
    fs::remove_dir_all(recorded.folder).expect("removed");
}

#[test]
fn samples_of_arrays_are_those_of_their_elements_fields() {
    let accesses = ["kind", "kind_of_another", "kind_of_another", "key", "amount", "number"].map(access);
    let Some(recorded) = record_program("annotate-arrays", ARRAYS, &["-g"], true, &accesses) else { return };
    let text = annotated(&recorded);
    for (array, total, of_key, of_amount, of_kind) in
        [("struct order[1024]", 4, 1, 0, 3), ("struct order[4][8]", 1, 0, 1, 0)]
    {
        let rows = rows(&text, array);
        assert_sums(&rows, total);
        assert_eq!(rows[0].text, "struct order  {", "{text}");
        let of = ["key;", "amount;", "kind;"].map(|field| samples(&rows, field));
        assert_eq!(of, [of_key, of_amount, of_kind], "{array}: {text}");
    }
    // an element without members has no rows of its own
    assert_eq!(rows(&text, "int[16]")[0].text, "int[16] ;", "{text}");
    fs::remove_dir_all(recorded.folder).expect("removed");
}

#[test]
fn samples_of_variants_are_in_one_row_each() {
    let folder = folder("annotate-variants-unit");
    let (source, object) = (folder.join("shape.rs"), folder.join("shape.o"));
    fs::write(&source, ENUM).expect("written");
    let mut compiler = Command::new("rustc");
    compiler.args(["--edition=2021", "--crate-type=lib", "--emit=obj", "-g", "-O", "-Cpanic=abort", "-o"]);
    if !compiles(compiler.arg(&object).arg(&source)) {
        return;
    }
    let accesses = ["is_oblong", "even", "even", "width", "width", "width"].map(access);
    let options = ["-g", object.to_str().expect("a plain path")];
    let Some(recorded) = record_program("annotate-variants", MAIN, &options, true, &accesses) else { return };
    let text = annotated(&recorded);
    let rows = rows(&text, "Shape");
    assert_sums(&rows, 6);
    assert_eq!(samples(&rows, "/* Circle.__0 or Square.__0 */"), 2, "{text}");
    assert_eq!((samples(&rows, "u64 Circle.__0;"), samples(&rows, "Oblong.__0;")), (0, 3), "{text}");
    fs::remove_dir_all(recorded.folder).expect("removed");
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_typedef_without_samples_names_its_struct() {
    let source = "\
typedef struct order { long key; int amount; } purchase_t;
typedef purchase_t sale_t;
purchase_t orders[1024];
long key(purchase_t *p) { return p->key; }
int amount(sale_t *p) { return p->amount; }
int main(void) { return 0; }
";
    let accesses = ["key", "amount"].map(access);
    let Some(recorded) = record_program("annotate-typedef", source, &["-g"], true, &accesses) else { return };
    for (command, name) in [("annotate", "purchase_t"), ("annotate", "sale_t"), ("report", "purchase_t")] {
        let words = if command == "report" { vec!["--type", name] } else { vec![name] };
        let shown = run(&[&[command, "-i", recorded.path()], &words[..]].concat());
        let text = stderr(&shown);
        assert_eq!(shown.status.code(), Some(2), "{command} {name}: {text}");
        let expected = format!("no samples of type {name}, a typedef of struct order: name that\n");
        assert!(text.contains(&expected), "{command} {name}: {text}");
    }
    fs::remove_dir_all(recorded.folder).expect("removed");
}

#[test]
fn types_of_one_name_and_size_are_apart_in_any_link_order() {
    let folder = folder("annotate-units");
    let units = [
        ("a.c", "struct in { long first; long second; };\nlong of_a(struct in *p) { return p->second; }\n"),
        ("b.c", "struct in { int x, y; char *text; };\nchar *of_b(struct in *p) { return p->text; }\n"),
        ("c.c", "struct in { long first; long second; };\nlong of_c(struct in *p) { return p->second; }\n"),
    ];
    let paths = units.map(|(name, text)| {
        let path = folder.join(name);
        fs::write(&path, text).expect("written");
        path.to_str().expect("a plain path").to_owned()
    });
    let accesses = ["of_a", "of_b", "of_b", "of_b", "of_c"].map(access);
    let mut shown = Vec::new();
    for (number, order) in [[0, 1, 2], [1, 0, 2], [2, 1, 0]].into_iter().enumerate() {
        let options = ["-g", &paths[order[0]], &paths[order[1]], &paths[order[2]]];
        let name = format!("annotate-units-{number}");
        let Some(recorded) = record_program(&name, MAIN, &options, true, &accesses) else { return };
        let text = annotated(&recorded);
        shown.push(text.replace(recorded.folder.to_str().expect("a plain path"), "FOLDER"));
        fs::remove_dir_all(recorded.folder).expect("removed");
    }
    assert!(shown.iter().all(|text| *text == shown[0]), "{shown:#?}");
    // the two units with one definition are together, the third one is not
    let text = &shown[0];
    assert_eq!(text.matches("Annotate type: 'struct in'").count(), 2, "{text}");
    assert!(text.contains("(3 samples)") && text.contains("(2 samples)"), "{text}");
    assert!(text.contains("/b.c\n") && text.contains("/a.c\n"), "{text}");
    fs::remove_dir_all(folder).expect("removed");
}
