//! `tallyline reorganize --patch`: edits of the source, and what is refused.

mod common;

use common::{compiles, folder, run_in, stderr, stdout};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const HEADER: &str = "\
/* a connection */
struct conn {
	char state;	/* what it does */
	long id __attribute__((aligned(8)));	/* the id */
#ifdef DEBUG
	char trace;	/* debugging */
#endif
	void *next;
	short port;	// the port
	long bytes;
	int refs;
};
";

/// A program of one header and one unit, in a folder of its own; none without a compiler.
fn program(name: &str, header: &str, unit: &str, flags: &[&str]) -> Option<PathBuf> {
    let folder = folder(name);
    std::fs::create_dir_all(folder.join(".git")).expect("a folder");
    std::fs::write(folder.join("a.h"), header).expect("written");
    std::fs::write(folder.join("a.c"), format!("#include \"a.h\"\n{unit}")).expect("written");
    compiles(Command::new("cc").current_dir(&folder).args(["-g", "a.c", "-o", "a"]).args(flags))
        .then_some(folder)
}

fn patch(folder: &Path, more: &[&str]) -> String {
    let output = run_in(folder, &[&["reorganize", "--patch"], more, &["conn", "./a"]].concat());
    assert!(output.status.success(), "{output:?}");
    stdout(&output)
}

/// Applies a patch with git, and returns the header then.
fn applied(folder: &Path, patch: &str) -> String {
    std::fs::write(folder.join("a.diff"), patch).expect("written");
    // outside of a repository git applies as patch does; this one's is not to be found from there
    std::fs::remove_dir_all(folder.join(".git")).expect("removed");
    let mut git = Command::new("git");
    git.current_dir(folder).env("GIT_CEILING_DIRECTORIES", folder.parent().expect("a folder"));
    let git = git.args(["apply", "a.diff"]).output().expect("git");
    assert!(git.status.success(), "{git:?}");
    std::fs::read_to_string(folder.join("a.h")).expect("the header")
}

const UNIT: &str = "struct conn one = { .port = 1, .state = 2 };\nint main(void) { return one.refs; }\n";

#[test]
fn a_patch_moves_whole_lines_and_compiles_to_what_it_promises() {
    let Some(folder) = program("patch-lines", HEADER, UNIT, &["-DDEBUG"]) else { return };
    let edited = applied(&folder, &patch(&folder, &[]));
    for whole in [
        "\tchar state;\t/* what it does */\n",
        "\tlong id __attribute__((aligned(8)));\t/* the id */\n",
        "#ifdef DEBUG\n\tchar trace;\t/* debugging */\n#endif\n",
        "\tshort port;\t// the port\n",
    ] {
        assert!(edited.contains(whole), "{whole} in {edited}");
    }
    assert_eq!(edited.len(), HEADER.len(), "{edited}");
    assert!(compiles(Command::new("cc").current_dir(&folder).args(["-g", "-DDEBUG", "a.c", "-o", "a"])));
    let layout = stdout(&run_in(&folder, &["layout", "--sizes", "./a"]));
    assert!(layout.contains("conn\t40\t"), "{layout}");
}

#[test]
fn an_empty_patch_says_why_on_standard_error() {
    let header = "struct conn { char a; long b; char c; };\nstruct tight { long a; int b; };\n";
    let unit = "struct conn one;\nstruct tight two;\nint main(void) { return one.c + two.b; }\n";
    let Some(folder) = program("patch-none", header, unit, &[]) else { return };
    for edits in ["--patch", "--apply"] {
        for (name, said) in [
            ("conn", "conn: no smaller layout; --unpin last would save 8 bytes"),
            ("tight", "tight: no smaller layout"),
        ] {
            let output = run_in(&folder, &["reorganize", edits, name, "./a"]);
            assert!(output.status.success(), "{output:?}");
            assert_eq!((stdout(&output).as_str(), stderr(&output)), ("", format!("tallyline: {said}\n")));
        }
        let output = run_in(&folder, &["reorganize", edits, "./a"]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(stderr(&output), "tallyline: no smaller layout of any of 2 types\n");
    }
}

/// A struct whose used members lie on three lines.
const SPREAD: &str = "\
struct conn {
	struct conn *next;
	int sent;	/* by transmit */
	char name[60];
	unsigned short mtu;
	char first_note[50];
	long received;	/* by receive */
	char second_note[70];
	unsigned char open:1,
		      dead:1;
	long limit;
};
";

const USES: &str = "\
conn struct fast path usage breakdown

======== ======== =================== =================== =======
Type     Name     fastpath_tx_access  fastpath_rx_access  Comment
======== ======== =================== =================== =======
int      sent     read_write
u16      mtu      read_mostly
long     received                     read_write
u8       open     read_mostly         read_mostly
long     limit    read_mostly         read_mostly
======== ======== =================== =================== =======
";

#[test]
fn groups_of_a_table_are_marked_and_lie_on_one_line() {
    let unit = "struct conn one;\nint main(void) { return one.sent; }\n";
    let Some(folder) = program("patch-groups", SPREAD, unit, &[]) else { return };
    std::fs::write(folder.join("conn.rst"), USES).expect("written");
    let shown = stdout(&run_in(&folder, &["reorganize", "--groups", "conn.rst", "./a"]));
    assert!(shown.starts_with("conn: 4 groups on 1 cache lines, of 4 before; "), "{shown}");
    let output = run_in(&folder, &["reorganize", "--groups", "conn.rst", "--patch", "./a"]);
    assert!(output.status.success(), "{output:?}");
    let edited = applied(&folder, &stdout(&output));
    for whole in [
        "\tint sent;\t/* by transmit */\n",
        "\tchar __cacheline_group_begin__conn_write_rx[0];\n\tlong received;\t/* by receive */\n",
        "\tunsigned char open:1,\n\t\t      dead:1;\n",
    ] {
        assert!(edited.contains(whole), "{whole} in {edited}");
    }
    assert!(compiles(Command::new("cc").current_dir(&folder).args(["-g", "a.c", "-o", "a"])));
    let groups = stdout(&run_in(&folder, &["groups", "--brief", "conn", "./a"]));
    for group in ["conn_read_tx", "conn_read_txrx", "conn_write_tx", "conn_write_rx"] {
        assert!(groups.contains(group), "{group} in {groups}");
    }
    let checked = run_in(&folder, &["check", "./a", "--net-cachelines", "conn.rst"]);
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
}

#[test]
fn a_table_says_nothing_of_two_structs_with_one_name() {
    let unit = "struct conn one;\nint main(void) { return one.sent; }\n";
    let Some(folder) = program("patch-groups-two", SPREAD, unit, &[]) else { return };
    std::fs::write(folder.join("conn.rst"), USES).expect("written");
    std::fs::write(folder.join("b.c"), "struct conn { long received; int sent; } two;\n").expect("written");
    assert!(compiles(Command::new("cc").current_dir(&folder).args(["-g", "a.c", "b.c", "-o", "a"])));
    let output = run_in(&folder, &["reorganize", "--groups", "conn.rst", "./a"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));
    assert!(stderr(&output).contains("2 different structs named conn"), "{}", stderr(&output));
}

#[test]
fn what_relies_on_the_order_is_refused_with_its_place() {
    let cases = [
        ("offset", "int at = __builtin_offsetof(struct conn, next);", "a.c:2"),
        (
            "transfer",
            "int write(int, void *, int); int f(void) { struct conn c; return write(1, &c, sizeof c); }",
            "a.c:2",
        ),
        ("positional", "struct conn two = { 1, 2 };", "a.c:2"),
        ("assertion", "_Static_assert(sizeof(struct conn) == 48, \"\");", "a.c:2"),
    ];
    for (kind, unit, place) in cases {
        let Some(folder) = program(&format!("patch-{kind}"), HEADER, &format!("{unit}\n{UNIT}"), &[]) else {
            return;
        };
        let output = run_in(&folder, &["reorganize", "--patch", "conn", "./a"]);
        assert_eq!(output.status.code(), Some(2), "{kind}: {output:?}");
        assert_eq!(stdout(&output), "", "{kind}");
        assert!(
            stderr(&output).contains(&format!("conn: not edited: {kind}: {place}")),
            "{}",
            stderr(&output)
        );
        let trusted = run_in(&folder, &["reorganize", "--patch", "--trust", "conn", "./a"]);
        assert!(stdout(&trusted).starts_with("diff --git a/a.h b/a.h\n"), "{trusted:?}");
    }
}

#[test]
fn what_is_written_within_another_files_struct_is_refused() {
    let header = format!("{HEADER}struct file {{ int magic; struct conn first; }};\n");
    let Some(folder) = program("patch-holder", &header, UNIT, &[]) else { return };
    let other = "#include \"a.h\"\nvoid save(struct file *f)\n{ fwrite(f, sizeof *f, 1, out); }\n";
    std::fs::write(folder.join("b.c"), other).expect("written");
    let output = run_in(&folder, &["reorganize", "--patch", "conn", "./a"]);
    assert!(stderr(&output).contains("conn: not edited: transfer: b.c:3 "), "{output:?}");
}

#[test]
fn what_another_files_functions_and_macros_write_is_refused() {
    let macros = "#define PUT(x) \\\n\tput(&(x), sizeof(x))\n";
    let header = format!("{HEADER}__attribute__((weak)) int put(const void *p, unsigned long n);\n{macros}");
    let functions = "long write(int, const void *, unsigned long);\nint put(const void *p, unsigned long n)\n\
                     { while (n) { long k = write(1, p, n); p = (char *)p + k; n -= k; } return 0; }\n";
    for (name, call) in [("function", "put(&c, sizeof c)"), ("macro", "PUT(c)")] {
        let unit = format!("int f(struct conn c)\n{{ return {call}; }}\n{UNIT}");
        let Some(folder) = program(&format!("patch-wrapper-{name}"), &header, &unit, &[]) else { return };
        std::fs::write(folder.join("b.c"), functions).expect("written");
        let output = run_in(&folder, &["reorganize", "--patch", "conn", "./a"]);
        assert!(stderr(&output).contains("conn: not edited: transfer: a.c:3 "), "{output:?}");
    }
}

#[test]
fn a_structured_binding_counts_in_what_includes_the_struct() {
    let folder = folder("patch-binding");
    std::fs::create_dir_all(folder.join(".git")).expect("a folder");
    let files = [
        ("a.hpp", "struct conn { char a;\n\tlong b;\n\tchar c;\n\tlong d;\n};\nconn make();\n"),
        ("b.hpp", "#include \"a.hpp\"\n"),
        ("a.cpp", "#include \"b.hpp\"\nint main() {\n\tauto [a, b, c, d] = make();\n\treturn c;\n}\n"),
        ("b.cpp", "#include \"a.hpp\"\nconn make() { conn made{}; return made; }\n"),
        ("c.cpp", "void f() { auto [a, b, c, d] = elsewhere(); }\n"),
    ];
    for (name, text) in files {
        std::fs::write(folder.join(name), text).expect("written");
    }
    let compiler = ["-std=c++17", "-g", "a.cpp", "b.cpp", "-o", "a"];
    if !compiles(Command::new("c++").current_dir(&folder).args(compiler)) {
        return;
    }
    let output = run_in(&folder, &["reorganize", "--patch", "--unpin", "last", "conn", "./a"]);
    assert!(stderr(&output).contains("conn: not edited: positional: a.cpp:3 "), "{output:?}");
    std::fs::remove_file(folder.join("a.cpp")).expect("removed");
    let output = run_in(&folder, &["reorganize", "--patch", "--unpin", "last", "conn", "./a"]);
    assert!(stdout(&output).starts_with("diff --git a/a.hpp b/a.hpp\n"), "{output:?}");
}

#[test]
fn a_class_whose_initialisers_depend_on_the_order_is_refused() {
    // the new order is first, b, a, c
    let header = |of_c: &str, of_b: &str| {
        format!(
            "struct conn {{\n\tlong first;\n\tchar a;\n\tlong b{of_b};\n\tchar c{of_c};\n\tconn(int n);\n}};\n"
        )
    };
    for (name, header, list, place) in [
        ("list", header("", ""), "first(n), a(0), b(a), c(n)", Some("a.cpp:3 ")),
        ("default", header("", " = this->a"), "first(n), a(0), c(n)", Some("a.h:4 ")),
        ("order", header(" = a", ""), "first(n), a(first), b(first)", None),
    ] {
        let folder = folder(&format!("patch-dependent-{name}"));
        std::fs::create_dir_all(folder.join(".git")).expect("a folder");
        std::fs::write(folder.join("a.h"), header).expect("written");
        let unit = format!(
            "#include \"a.h\"\nconn::conn(int n)\n\t: {list} {{}}\nint main() {{ return conn(0).c; }}\n"
        );
        std::fs::write(folder.join("a.cpp"), unit).expect("written");
        if !compiles(Command::new("c++").current_dir(&folder).args(["-g", "a.cpp", "-o", "a"])) {
            return;
        }
        let output = run_in(&folder, &["reorganize", "--patch", "--unpin", "last", "conn", "./a"]);
        let said = place.map(|place| format!("conn: not edited: dependent: {place}"));
        assert_eq!(stdout(&output).is_empty(), said.is_some(), "{output:?}");
        assert!(stderr(&output).contains(said.as_deref().unwrap_or_default()), "{output:?}");
        let trusted =
            run_in(&folder, &["reorganize", "--patch", "--trust", "--unpin", "last", "conn", "./a"]);
        assert!(stdout(&trusted).starts_with("diff --git a/a.h b/a.h\n"), "{trusted:?}");
    }
}

#[test]
fn git_applies_a_patch_of_paths_with_any_characters() {
    let folder = folder("patch-path");
    let inside = folder.join("t\tb \"q\" \\ü");
    std::fs::create_dir_all(folder.join(".git")).expect("a folder");
    std::fs::create_dir_all(&inside).expect("a folder");
    std::fs::write(inside.join("a.c"), format!("{HEADER}{UNIT}")).expect("written");
    let unit = Path::new(inside.file_name().expect("a name")).join("a.c");
    if !compiles(Command::new("cc").current_dir(&folder).args(["-g", "-o", "a"]).arg(&unit)) {
        return;
    }
    std::fs::write(folder.join("a.h"), "").expect("written");
    applied(&folder, &patch(&folder, &[]));
    let edited = std::fs::read_to_string(folder.join(unit)).expect("the unit");
    assert_ne!(edited, format!("{HEADER}{UNIT}"));
}

#[test]
fn a_source_that_has_changed_is_refused() {
    let Some(folder) = program("patch-changed", HEADER, UNIT, &[]) else { return };
    std::fs::write(folder.join("a.h"), HEADER.replace("short port", "int other;\n\tshort port"))
        .expect("written");
    let output = run_in(&folder, &["reorganize", "--patch", "conn", "./a"]);
    assert!(stderr(&output).contains("conn: not edited: changed: "), "{}", stderr(&output));
    std::fs::remove_file(folder.join("a.h")).expect("removed");
    let output = run_in(&folder, &["reorganize", "--patch", "conn", "./a"]);
    assert!(stderr(&output).contains("conn: not edited: no-source: "), "{}", stderr(&output));
}

#[test]
fn an_installed_header_is_left_as_it_is() {
    let Some(folder) = program("patch-abi", HEADER, UNIT, &[]) else { return };
    let output = run_in(&folder, &["reorganize", "--patch", "--abi", "a.h", "conn", "./a"]);
    assert!(stderr(&output).contains("conn: not edited: abi: "), "{}", stderr(&output));
}

#[test]
fn a_document_has_the_patch_and_each_type() {
    let Some(folder) = program("patch-json", HEADER, UNIT, &[]) else { return };
    let output = run_in(&folder, &["reorganize", "--patch", "--json", "./a"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let one = &document["types"][0];
    assert_eq!((&one["name"], &one["line"], &one["refused"]), (&"conn".into(), &2.into(), &Value::Null));
    assert!(document["patch"].as_str().expect("a patch").contains("+++ b/a.h"), "{document}");
}

#[test]
fn paths_of_another_machine_are_mapped() {
    let Some(folder) = program("patch-map", HEADER, UNIT, &["-ffile-prefix-map=/=/gone/"]) else { return };
    let output = run_in(&folder, &["reorganize", "--patch", "conn", "./a"]);
    assert!(stderr(&output).contains("no-source"), "{output:?}");
    let output = run_in(&folder, &["reorganize", "--patch", "--source-map", "/gone/gone/=/", "conn", "./a"]);
    assert!(output.status.success(), "{output:?}");
}

/// The list of compiler's calls for the unit of a program.
fn with_commands(folder: &Path, flags: &[&str]) {
    let words: Vec<&str> = [&["cc", "-c"], flags, &["a.c"]].concat();
    let entry = serde_json::json!([{ "directory": folder, "file": "a.c", "arguments": words }]);
    std::fs::write(folder.join("compile_commands.json"), entry.to_string()).expect("written");
}

fn document(folder: &Path, more: &[&str]) -> Value {
    let output = run_in(folder, &[&["reorganize", "--json"], more, &["conn", "./a"]].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("JSON: {output:?}"))
}

#[test]
fn units_are_compiled_again_in_every_configuration() {
    let Some(folder) = program("patch-units", HEADER, UNIT, &["-DDEBUG"]) else { return };
    let folder = folder.canonicalize().expect("it is there");
    let call = |flags: &[&str]| {
        let words: Vec<&str> = [&["cc", "-c"], flags, &["a.c"]].concat();
        serde_json::json!({ "directory": folder, "file": "a.c", "arguments": words })
    };
    let both = Value::Array(vec![call(&["-DDEBUG"]), call(&["-O2"])]);
    std::fs::write(folder.join("compile_commands.json"), both.to_string()).expect("written");
    let document = document(&folder, &["--patch"]);
    let verified = &document["verified"];
    assert_eq!(verified["units"], 2, "{document}");
    assert_eq!((&verified["layouts"], &verified["configurations"]), (&1.into(), &1.into()), "{document}");
}

#[test]
fn a_compiler_finds_what_relies_on_the_order_through_macros() {
    let macros = "#define PAIR(a, b) { a, b }\nstruct holder { int x; struct conn c; };\n";
    let cases = [
        ("positional", "struct holder h = { 1, PAIR(1, 2) };"),
        ("assertion", "#define SIZE(t) sizeof(struct t)\n_Static_assert(SIZE(conn) == 48, \"\");"),
    ];
    for (kind, unit) in cases {
        let unit = format!("{macros}{unit}\n{UNIT}");
        let Some(folder) = program(&format!("patch-macro-{kind}"), HEADER, &unit, &[]) else { return };
        with_commands(&folder, &[]);
        let document = document(&folder, &["--patch"]);
        assert_eq!(document["types"][0]["refused"], kind, "{document}");
    }
    // an initialiser of nothing, and one by names of which some are left out, rely on no order
    let unit = format!(
        "{macros}int f(void)\n{{\n\tstruct\tconn\tzero = {{ 0 }};\n\treturn zero.refs;\n}}\nstruct conn zero = {{0}}; struct holder h = {{ .c = {{ .refs = 1, .state = 2 }} }};\n{UNIT}"
    );
    let Some(folder) = program("patch-macro-none", HEADER, &unit, &[]) else { return };
    with_commands(&folder, &[]);
    let document = document(&folder, &["--patch"]);
    assert_eq!(document["types"][0]["refused"], Value::Null, "{document}");
}

#[test]
fn what_holds_a_smaller_struct_is_promised_with_it() {
    let header =
        format!("{HEADER}struct outer {{ char a; struct conn c; char b; long l; char d; int e; }};\n");
    let unit = format!("struct outer o;\n{UNIT}");
    let Some(folder) = program("patch-inner", &header, &unit, &[]) else { return };
    with_commands(&folder, &[]);
    let output = run_in(&folder, &["reorganize", "--patch", "--json", "conn", "outer", "./a"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let sizes = |at: usize| (document["types"][at]["old"].clone(), document["types"][at]["new"].clone());
    assert_eq!(document["verified"]["layouts"], 2, "{document}");
    assert_eq!(sizes(0), (48.into(), 40.into()), "{document}");
    assert_eq!(sizes(1), (80.into(), 64.into()), "{document}");
}

#[test]
fn what_holds_another_units_copy_of_a_smaller_struct_is_promised_with_it() {
    let inner =
        "struct body;\nstruct conn { char state; long id; char kind; struct body *body; int refs; };\n";
    let unit = "struct body { int x; };\nstruct body b;\nstruct conn one;\nextern struct outer two;\n\
                int main(void) { return one.refs + b.x; }\n";
    let folder = folder("patch-copies");
    std::fs::create_dir_all(folder.join(".git")).expect("a folder");
    let outer = "#include \"a.h\"\nstruct outer { struct conn c; char d; long e; char f; int g; };\nstruct outer two;\n";
    for (name, text) in [("a.h", inner), ("a.c", &format!("#include \"a.h\"\n{unit}")), ("b.c", outer)] {
        std::fs::write(folder.join(name), text).expect("written");
    }
    if !compiles(Command::new("cc").current_dir(&folder).args(["-g", "a.c", "b.c", "-o", "a"])) {
        return;
    }
    let entry = |source: &str| serde_json::json!({ "directory": folder, "file": source, "command": format!("cc -c {source}") });
    let entries = serde_json::json!([entry("a.c"), entry("b.c")]).to_string();
    std::fs::write(folder.join("compile_commands.json"), entries).expect("written");
    let output = run_in(&folder, &["reorganize", "--patch", "--json", "conn", "outer", "./a"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let sizes = |at: usize| (&document["types"][at]["refused"], &document["types"][at]["new"]);
    assert_eq!(sizes(0), (&Value::Null, &32.into()), "{document}");
    assert_eq!(sizes(1), (&Value::Null, &48.into()), "{document}");
}

#[test]
fn nothing_is_promised_of_what_holds_a_struct_that_rustc_orders() {
    let source = "#[repr(C)]\npub struct Inner {\n    pub a: u8,\n    pub b: u64,\n    pub c: u8,\n    pub end: u64,\n}\n\
                  pub struct Middle {\n    pub d: u8,\n    pub inner: Inner,\n    pub e: u32,\n}\n\
                  #[repr(C)]\npub struct Outer {\n    pub f: u8,\n    pub middle: Middle,\n    pub g: u8,\n    pub end: u64,\n}\n\
                  #[repr(C)]\npub struct Other {\n    pub h: u8,\n    pub inner: Inner,\n    pub i: u8,\n    pub end: u64,\n}\n\
                  pub fn size(outer: &Outer, other: &Other) -> u8 {\n    outer.f + outer.middle.d + other.h\n}\n";
    let folder = folder("patch-rustc-orders");
    std::fs::create_dir_all(folder.join(".git")).expect("a folder");
    std::fs::write(folder.join("a.rs"), source).expect("written");
    let rustc = ["-g", "--crate-type", "lib", "--crate-name", "a", "--emit", "obj", "-o", "a", "a.rs"];
    if !compiles(Command::new("rustc").current_dir(&folder).args(rustc)) {
        return;
    }
    let output = run_in(&folder, &["reorganize", "--patch", "--json", "Inner", "Outer", "Other", "./a"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let refused = |at: usize| document["types"][at]["refused"].clone();
    assert_eq!([0, 1, 2].map(refused), [Value::Null, "other-layout".into(), Value::Null], "{document}");
    assert_eq!(document["types"][2]["new"], 40, "{document}");
}

#[test]
fn a_rust_struct_is_edited_in_its_module_and_not_with_two_modules_that_declare_it() {
    let list = "#[repr(C)]\npub struct Node {\n    pub a: u8,\n    pub b: u64,\n    pub c: u8,\n    pub end: u64,\n}\n\
                pub fn sum(node: &Node) -> u8 {\n    node.a + node.c\n}\n";
    let folder = folder("patch-rust-module");
    std::fs::create_dir_all(folder.join(".git")).expect("a folder");
    let files = [
        ("Cargo.toml", ""),
        ("src/lib.rs", "pub mod list;\n"),
        ("src/list.rs", list),
        ("original/list.rs", list),
        ("original/compile_commands.json", "[]"),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("written");
    }
    let rustc = ["-g", "--crate-type", "lib", "--crate-name", "a", "--emit", "obj", "-o", "a", "src/lib.rs"];
    if !compiles(Command::new("rustc").current_dir(&folder).args(rustc)) {
        return;
    }
    let patch = || stdout(&run_in(&folder, &["reorganize", "--patch", "Node", "./a"]));
    let edited = patch();
    assert!(edited.contains("+++ b/src/list.rs") && !edited.contains("original"), "{edited}");
    std::fs::copy(folder.join("src/list.rs"), folder.join("src/other.rs")).expect("copied");
    assert_eq!(patch(), "");
}

#[test]
fn a_rust_struct_that_code_in_c_knows_is_refused_and_one_that_other_rust_defines_is_not() {
    let record = |name: &str| {
        format!(
            "#[repr(C)]\npub struct {name} {{\n    pub a: u8,\n    pub b: u64,\n    pub c: u8,\n    pub end: u64,\n}}\n"
        )
    };
    let source = format!(
        "{}{}extern \"C\" {{\n    fn elsewhere(shared: *mut Shared);\n    fn here(own: *mut Own);\n}}\n\
         pub mod other {{\n    #[no_mangle]\n    pub extern \"C\" fn here(own: &mut super::Own) {{\n        own.a = 1;\n    }}\n}}\n\
         pub fn use_both(shared: &Shared, own: &Own) -> u8 {{\n    shared.c + own.c\n}}\n",
        record("Shared"),
        record("Own")
    );
    let folder = folder("patch-rust-foreign");
    std::fs::create_dir_all(folder.join(".git")).expect("a folder");
    std::fs::write(folder.join("a.rs"), source).expect("written");
    let rustc = [
        "-g",
        "--edition=2021",
        "-Awarnings",
        "--crate-type",
        "lib",
        "--crate-name",
        "a",
        "--emit",
        "obj",
        "-o",
        "a",
        "a.rs",
    ];
    if !compiles(Command::new("rustc").current_dir(&folder).args(rustc)) {
        return;
    }
    let output = run_in(&folder, &["reorganize", "--patch", "--json", "Shared", "Own", "./a"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let refused = |at: usize| document["types"][at]["refused"].clone();
    assert_eq!([0, 1].map(refused), ["abi".into(), Value::Null], "{document}");
    assert!(
        document["types"][0]["evidence"].as_str().is_some_and(|text| text.starts_with("a.rs:16 ")),
        "{document}"
    );
}

#[test]
fn sources_are_edited_in_place_and_every_byte_is_put_back() {
    let Some(folder) = program("apply-undo", HEADER, UNIT, &[]) else { return };
    let output = run_in(&folder, &["reorganize", "--apply", "conn", "./a"]);
    assert!(stderr(&output).contains("nothing is edited, as it cannot be verified"), "{output:?}");
    with_commands(&folder, &[]);
    let output = run_in(&folder, &["reorganize", "--apply", "conn", "./a"]);
    assert!(output.status.success(), "{output:?}");
    assert!(stdout(&output).starts_with("conn at a.h:2: 48 -> 40 bytes; edited\n"), "{output:?}");
    assert_ne!(std::fs::read_to_string(folder.join("a.h")).expect("read"), HEADER);
    let again = run_in(&folder, &["reorganize", "--undo"]);
    assert!(again.status.success(), "{again:?}");
    assert_eq!(std::fs::read_to_string(folder.join("a.h")).expect("read"), HEADER);
    assert!(!folder.join(".tallyline-undo").exists());
    let nothing = run_in(&folder, &["reorganize", "--undo"]);
    assert_eq!(nothing.status.code(), Some(2), "{nothing:?}");
}

#[test]
fn what_does_not_pay_is_not_kept() {
    let unit = UNIT.replace("return one.refs", "return one.refs * 0");
    let Some(folder) = program("apply-measure", HEADER, &unit, &[]) else { return };
    with_commands(&folder, &[]);
    let build = "cc -g a.c -o a";
    let args = |least| {
        [
            "reorganize",
            "--apply",
            "--measure",
            "./a",
            "--build",
            build,
            "--pairs",
            "3",
            "--keep-if",
            least,
            "conn",
            "./a",
        ]
    };
    // no program is a million times faster by this
    let output = run_in(&folder, &args("1000000"));
    assert!(output.status.success(), "{output:?}");
    assert!(stdout(&output).contains("left as it is") && stdout(&output).contains("speed-up "), "{output:?}");
    assert_eq!(std::fs::read_to_string(folder.join("a.h")).expect("read"), HEADER);
    let output = run_in(&folder, &args("0"));
    assert!(stdout(&output).contains("; edited\n"), "{output:?}");
    // a build that does not build the program from the copy's sources is no measurement
    run_in(&folder, &["reorganize", "--undo"]);
    let here = format!("cc -g {}/a.c -o a", folder.display());
    let output =
        run_in(&folder, &["reorganize", "--apply", "--measure", "./a", "--build", &here, "conn", "./a"]);
    assert!(stderr(&output).contains("does not have the new conn"), "{output:?}");
}
