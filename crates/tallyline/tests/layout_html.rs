//! `tallyline layout --format html`: what is on the page, and that names stay names.

mod common;

use common::{data, folder, object, run, stdout};
use std::process::Command;

fn page(args: &[&str]) -> String {
    let output = run(&[&["layout", "--format", "html"], args].concat());
    assert!(output.status.success(), "{output:?}");
    stdout(&output)
}

/// Asserts that every tag that is opened is closed in the right order; the rest of well-formedness is the
/// browser's business.
fn assert_balanced(page: &str) {
    let mut open = Vec::new();
    for part in page.split('<').skip(1) {
        let tag = part.split('>').next().expect("the end of a tag");
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().expect("a name");
        if ["!doctype", "meta", "link", "col"].contains(&name) {
            continue;
        }
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{part}");
        } else {
            open.push(name);
        }
    }
    assert_eq!(open, [""; 0]);
}

#[test]
fn a_struct_is_a_grid_of_lines_and_a_table_of_members() {
    let page = page(&["lines", &data("holes.o")]);
    assert_balanced(&page);
    // 60, a hole of 4, 8, 56 over the end of the second line, 1, 200, a hole of 7, 8
    for part in [
        "<td class=\"member\" colspan=\"60\" title=\"a: at 0, 60 bytes, char[60]\">",
        "<td class=\"hole\" colspan=\"4\" title=\"hole 4: at 60, 4 bytes\">",
        "<th scope=\"row\">1<small>64</small></th>",
        "<td class=\"member tiny\" colspan=\"1\" title=\"d: at 128, 1 byte, char\">",
        "<caption>Cache lines of lines: 64 bytes in a row",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    let spans = |row: &str| -> u64 {
        row.split("colspan=\"").skip(1).filter_map(|rest| rest.split('"').next()?.parse::<u64>().ok()).sum()
    };
    let (_, grid) = page.split_once("<tbody>").expect("a grid");
    let (grid, _) = grid.split_once("</tbody>").expect("its end");
    let rows: Vec<&str> = grid.split("<tr").skip(1).collect();
    assert!(rows.len() > 3 && rows.iter().all(|row| spans(row) == 64), "{rows:#?}");
}

#[test]
fn unions_bitfields_and_types_without_bytes_have_sections_too() {
    for file in ["bitfields.o", "nesting.btf", "kinds.o", "holes.o"] {
        let page = page(&[&data(file)]);
        assert_balanced(&page);
        let sections = page.matches("<section class=\"type\"").count();
        let types = stdout(&run(&["layout", "--sizes", &data(file)])).lines().count();
        assert_eq!(sections, types, "{file}");
        assert_eq!(page.matches("<a href=\"#t").count(), types, "{file}");
    }
    let page = page(&["simple", &data("bitfields.o")]);
    assert!(page.contains("a:3, b:7"), "{page}");
    // the bits between two bitfields have a row as bytes do
    let page = self::page(&["explicit_hole", &data("bitfields.o")]);
    assert!(page.contains("<td>0:5</td><td>3 bits</td>"), "{page}");
}

#[test]
fn members_of_unions_and_variants_are_laid_out_one_by_one() {
    let page = page(&["sizes", &data("holes.o")]);
    assert_balanced(&page);
    for part in [
        "<caption>The members of sizes, one by one",
        "scope=\"rowgroup\">b</th>",
        "title=\"c: at 0, 344 bytes, struct lines\"",
        // the one without a name is unfolded
        "title=\"hole 2: at 2, 2 bytes\"",
        "title=\"y: at 4, 4 bytes, int\"",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
}

#[test]
fn variants_of_rust_are_laid_out_one_by_one() {
    let folder = folder("html-variants");
    let (source, program) = (folder.join("e.rs"), folder.join("e.o"));
    let text = "#![crate_type = \"lib\"] pub enum Kind { Few(u64), Many { at: u32, how: u8 } } \
                #[unsafe(no_mangle)] pub static KIND: Kind = Kind::Few(1);";
    std::fs::write(&source, text).expect("written");
    let made = Command::new("rustc").args(["-g", "--emit=obj", "-o"]).args([&program, &source]).output();
    if !made.is_ok_and(|made| made.status.success()) {
        eprintln!("skipped: no rustc");
        return;
    }
    let page = page(&["Kind", program.to_str().expect("a plain path")]);
    assert_balanced(&page);
    for part in [
        "scope=\"rowgroup\">Few, where the tag is 0</th>",
        "Many, where the tag is 1</th>",
        "<h2 id=",
        "title=\"(tag): at 0, 1 byte, u8\"",
        "at: at 4, 4 bytes, u32",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
}

#[test]
fn groups_have_letters_and_names() {
    let source = "struct s { long a; char __cacheline_group_begin__g[0]; int x; char __cacheline_group_end__g[0]; } s;";
    let Some(file) = object(&folder("html-groups"), "program", source) else { return };
    let page = page(&["s", &file]);
    assert!(page.contains("group g, 4 bytes") && page.contains(">A</b>"), "{page}");
    assert!(page.contains("x: at 8, 4 bytes, int, group g"), "{page}");
    assert!(!page.contains("cacheline_group_begin"), "markers are no members: {page}");
}

#[test]
fn names_from_a_file_never_become_markup() {
    let folder = folder("html-hostile");
    let source = folder.join("hostile.s");
    let program = folder.join("program.c");
    let path = |path: &std::path::Path| path.to_str().expect("a plain path").to_string();
    std::fs::write(&program, "struct type_name_to_be_replaced { int member_name_replaced; } x;")
        .expect("written");
    let made = Command::new("cc").args(["-g", "-S", "-o", &path(&source), &path(&program)]).output();
    if !made.is_ok_and(|made| made.status.success()) {
        eprintln!("skipped: no compiler");
        return;
    }
    let text = std::fs::read_to_string(&source).expect("made");
    let text = text
        .replace("type_name_to_be_replaced", "v<script>alert(1)</script>")
        .replace("member_name_replaced", "\\\" onload='x'&lt;");
    std::fs::write(&source, text).expect("written");
    let made = path(&folder.join("hostile.o"));
    assert!(common::compiles(Command::new("cc").args(["-c", "-o", &made]).arg(&source)));
    let page = page(&[&made]);
    assert_balanced(&page);
    assert!(page.contains("v&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
    assert!(page.contains("&quot; onload=&#39;x&#39;&amp;lt;"), "{page}");
    assert!(!page.contains("<script"), "{page}");
}
