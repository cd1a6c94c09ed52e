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
