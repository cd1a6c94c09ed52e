//! `tallyline reorganize --patch` and `--apply` of structs that a program declares more than once.

mod common;

use common::{compiles, folder, run_in, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::Command;

const NODE: &str = "struct node {\n\tchar a;\n\tlong b;\n\tchar c;\n\tlong d;\n\tchar e;\n};\n";

/// Compiles a program of some files in a folder of its own; none without a compiler.
fn program(name: &str, compiler: &str, files: &[(&str, String)]) -> Option<PathBuf> {
    let folder = folder(name);
    std::fs::create_dir_all(folder.join(".git")).expect("a folder");
    for (file, text) in files {
        let path = folder.join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("written");
    }
    let units = files.iter().map(|(file, _)| *file).filter(|file| !file.ends_with(".h"));
    let built =
        Command::new(compiler).current_dir(&folder).args(["-g", "-o", "a"]).args(units).output().ok()?;
    assert!(built.status.success(), "{built:?}");
    Some(folder)
}

/// Returns what is said where nothing is edited.
fn refusal(folder: &Path, name: &str, more: &[&str]) -> String {
    let output = run_in(folder, &[&["reorganize"], more, &[name, "./a"]].concat());
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()), "{output:?}");
    stderr(&output)
}

/// Returns the patch for a struct.
fn patch(folder: &Path, name: &str, more: &[&str]) -> String {
    let output = run_in(folder, &[&["reorganize", "--patch"], more, &[name, "./a"]].concat());
    assert!(output.status.success(), "{output:?}");
    stdout(&output)
}

fn pair(second: &str) -> [(&'static str, String); 2] {
    let main =
        "void use(struct node *);\nint main(void)\n{\n\tstruct node one = { .c = 7 };\n\tuse(&one);\n}\n";
    let other = "void use(struct node *one)\n{\n\tone->c++;\n}\n";
    [("a.c", format!("{NODE}{main}")), ("b.c", format!("\n{second}{other}"))]
}

#[test]
fn a_struct_that_two_files_declare_alike_is_refused_with_the_other_place() {
    let Some(folder) = program("duplicate-files", "cc", &pair(NODE)) else { return };
    let folder = folder.canonicalize().expect("it is there");
    let other = format!("node: not edited: duplicate: {}:2 ", folder.join("b.c").display());
    let said = refusal(&folder, "node", &["--patch"]);
    assert!(said.contains(&other), "{said}");
    let said = refusal(&folder, "node", &["--apply", "--build", "cc -g -o a a.c b.c"]);
    assert!(said.contains(&other), "{said}");
    assert!(patch(&folder, "node", &["--trust"]).starts_with("diff --git a/a.c b/a.c\n"));
}

#[test]
fn a_build_that_leaves_an_old_layout_beside_the_new_edits_nothing() {
    let Some(folder) = program("duplicate-build", "cc", &pair(NODE)) else { return };
    let source = std::fs::read_to_string(folder.join("a.c")).expect("there");
    // without debug information the other declaration is not seen before the build
    let cc = |words: &[&str]| compiles(Command::new("cc").current_dir(&folder).args(words));
    assert!(cc(&["-c", "b.c"]) && cc(&["-g", "-o", "a", "a.c", "b.o"]));
    let said = refusal(&folder, "node", &["--apply", "--build", "cc -g -o a a.c b.c"]);
    assert!(said.contains("has the new node and the old one, of ") && said.contains("b.c:2:"), "{said}");
    assert_eq!(std::fs::read_to_string(folder.join("a.c")).expect("there"), source);
}

#[test]
fn headers_of_one_name_in_two_folders_are_two_declarations() {
    let main = "#include \"t.h\"\nlong get(struct node *);\nint main(void)\n{\n\tstruct node one = { .c = 7 };\n\treturn get(&one);\n}\n";
    let get = "#include \"t.h\"\nlong get(struct node *one)\n{\n\treturn one->c;\n}\n";
    let files = [
        ("app/t.h", NODE.to_owned()),
        ("app/m.c", main.to_owned()),
        ("lib/t.h", NODE.to_owned()),
        ("lib/l.c", get.to_owned()),
    ];
    let Some(folder) = program("duplicate-headers", "cc", &files) else { return };
    let said = refusal(&folder, "node", &["--patch"]);
    assert!(said.contains("node: not edited: duplicate: ") && said.contains("lib/t.h:1 "), "{said}");
    // one file by two ways is one declaration
    std::fs::remove_file(folder.join("lib/t.h")).expect("removed");
    std::os::unix::fs::symlink("../app/t.h", folder.join("lib/t.h")).expect("a link");
    assert!(compiles(Command::new("cc").current_dir(&folder).args(["-g", "-o", "a", "app/m.c", "lib/l.c"])));
    assert!(patch(&folder, "node", &[]).starts_with("diff --git a/app/t.h b/app/t.h\n"));
}

#[test]
fn structs_of_one_name_with_other_members_are_edited() {
    let private = "struct node {\n\tint x;\n\tchar c;\n};\n";
    let Some(folder) = program("duplicate-private", "cc", &pair(private)) else { return };
    let output = run_in(&folder, &["reorganize", "--patch", "node", "./a"]);
    assert!(stdout(&output).starts_with("diff --git a/a.c b/a.c\n"), "{output:?}");
}

#[test]
fn classes_of_one_name_are_told_apart_by_their_scopes() {
    let unit = |open: &str, close: &str, function: &str| {
        format!("{open}\n{NODE}{close}\nlong {function}() {{ node one{{}}; one.c = 1; return one.c; }}\n")
    };
    let main = "long f();\nlong g();\nint main() { return f() + g(); }\n".to_owned();
    let files = |first: String, second: String| [("a.cc", first), ("b.cc", second), ("m.cc", main.clone())];
    // the one definition rule has both be one
    let both = files(unit("", "", "f"), unit("", "", "g"));
    let Some(folder) = program("duplicate-classes", "c++", &both) else { return };
    let said = refusal(&folder, "node", &["--patch"]);
    assert!(said.contains("node: not edited: duplicate: ") && said.contains("b.cc:2 "), "{said}");
    let scoped =
        files(unit("namespace x {", "} using x::node;", "f"), unit("namespace y {", "} using y::node;", "g"));
    let Some(folder) = program("duplicate-scopes", "c++", &scoped) else { return };
    assert!(patch(&folder, "x::node", &[]).starts_with("diff --git a/a.cc b/a.cc\n"));
    // nor can units name what is in each other's anonymous namespace
    let private = files(unit("namespace {", "}", "f"), unit("namespace {", "}", "g"));
    let Some(folder) = program("duplicate-anonymous", "c++", &private) else { return };
    let build = "c++ -g -o a a.cc b.cc m.cc";
    let output = run_in(&folder, &["reorganize", "--apply", "--build", build, "node", "./a"]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_struct_that_rust_and_c_declare_alike_is_refused_in_both() {
    let node =
        "#[repr(C)]\npub struct node {\n    a: u8,\n    b: u64,\n    c: u8,\n    d: u64,\n    e: u8,\n}\n";
    let main = "#[repr(C)]\npub struct holder {\n    of: node,\n}\nextern \"C\" {\n    fn get(from: *const holder) -> i64;\n}\n\
                fn main() {\n    let of = node { a: 1, b: 2, c: 3, d: 4, e: 5 };\n    let own = holder { of };\n    \
                println!(\"{}\", unsafe\n{ get(&own) } + (own.of.b + own.of.d) as i64);\n}\n";
    let c = format!(
        "{NODE}struct holder {{ struct node of; }};\nlong get(const struct holder *from)\n{{\n\treturn from->of.c;\n}}\n"
    );
    let folder = folder("duplicate-rust");
    std::fs::create_dir_all(folder.join(".git")).expect("a folder");
    std::fs::write(folder.join("main.rs"), format!("{node}{main}")).expect("written");
    std::fs::write(folder.join("n.c"), c).expect("written");
    let rustc = ["-g", "main.rs", "-C", "link-arg=n.o", "-o", "a"];
    let built = compiles(Command::new("cc").current_dir(&folder).args(["-g", "-c", "n.c"]))
        && compiles(Command::new("rustc").current_dir(&folder).args(rustc));
    if !built {
        return;
    }
    let said = refusal(&folder, "main::node", &["--patch"]);
    assert!(
        said.contains("main::node: not edited: duplicate: ") && said.contains("n.c:1 declares it"),
        "{said}"
    );
    let said = refusal(&folder, "node", &["--patch"]);
    assert!(said.contains("tallyline: node: not edited: duplicate: Rust's main::node declares it"), "{said}");
}
