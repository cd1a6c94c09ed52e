//! `tallyline layout` on the forms in which compilers and linkers leave debug information: each must
//! give what the plain build gives. What a machine has no compiler or tool for is skipped.

mod common;

use common::{run_in, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::Command;

const SHARED: &str = "\
struct leaf { char c; long l; };
typedef struct leaf leaf_t;
enum shade { LIGHT = 1, DARK = 2 };
struct common { int a; leaf_t leaf; enum shade shade; struct common *next; char tail[3]; };
union either { int i; double d; char bytes[12]; };
";

const ONE: &str = "\
#include \"shared.h\"
struct one { char a; struct common common; union either either; unsigned bits : 3, more : 7; void (*call)(struct one *, int); };
struct one one;
int other(void);
int main(void) { return other(); }
";

const TWO: &str = "\
#include \"shared.h\"
struct two { struct common *pointer; short s; struct leaf leaves[2]; union either either; };
struct two two;
struct common instance;
int other(void) { return two.s; }
";

/// A folder with the sources.
fn sources(name: &str) -> PathBuf {
    let folder = common::folder(name);
    for (file, text) in [("shared.h", SHARED), ("one.c", ONE), ("two.c", TWO)] {
        std::fs::write(folder.join(file), text).expect("written");
    }
    folder
}

/// Runs a command in a folder; false, and a message, if the machine cannot.
fn tool(folder: &Path, command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let done = Command::new(words[0]).args(&words[1..]).current_dir(folder).output();
    let works = done.as_ref().is_ok_and(|done| done.status.success());
    if !works {
        eprintln!("skipped: {command}: {done:?}");
    }
    works
}

/// What is shown of a file; it must be shown without a word about problems.
fn shown(folder: &Path, args: &[&str]) -> String {
    let args: Vec<&str> = std::iter::once("layout").chain(args.iter().copied()).collect();
    let output = run_in(folder, &args);
    assert!(output.status.success() && stderr(&output).is_empty(), "{args:?}: {output:?}");
    stdout(&output)
}

/// Builds the program in its own folder, plainly and with `flags`, and compares; whether it could.
fn same_as_plain(compiler: &str, flags: &str, order: Order, then: &[&str]) -> bool {
    let name: String = format!("formats {compiler} {flags} {}", then.concat())
        .chars()
        .map(|letter| if letter.is_alphanumeric() { letter } else { '_' })
        .collect();
    let folder = sources(&name);
    let machine = flags.split(' ').find(|flag| *flag == "-m32").unwrap_or_default();
    let built = tool(&folder, &format!("{compiler} -g {machine} -o plain one.c two.c"))
        && tool(&folder, &format!("{compiler} -g {flags} -o program one.c two.c"))
        && then.iter().all(|command| tool(&folder, command));
    if built {
        let options: &[&str] = match order {
            Order::AsPlain => &[],
            Order::Own => &["--sort"],
        };
        let of = |file| shown(&folder, &[options, &[file]].concat());
        let plain = of("./plain");
        let is_type = |line: &&str| line.starts_with("struct ") || line.starts_with("union ");
        assert_eq!(plain.lines().filter(is_type).count(), 5, "{plain}");
        assert_eq!(of("./program"), plain, "{compiler} {flags} {then:?}");
        let one = shown(&folder, &["one", "common", "./program"]);
        assert_eq!(one, shown(&folder, &["one", "common", "./plain"]), "{compiler} {flags} {then:?}");
        std::fs::remove_dir_all(&folder).expect("removable");
    }
    built
}

/// In which order types come.
#[derive(Clone, Copy)]
enum Order {
    /// As in the plain build.
    AsPlain,
    /// In one of their own, since the tool moves them to other units.
    Own,
}

#[test]
fn split_units_are_found_where_they_were_compiled() {
    for compiler in ["gcc", "clang"] {
        for flags in ["-gdwarf-5 -gsplit-dwarf", "-gdwarf-4 -gsplit-dwarf"] {
            same_as_plain(compiler, flags, Order::AsPlain, &[]);
        }
    }
}

#[test]
fn split_units_are_found_in_the_package() {
    let remove = "find . -name *.dwo -delete";
    for flags in ["-gdwarf-5 -gsplit-dwarf", "-gdwarf-4 -gsplit-dwarf"] {
        // binutils' packager knows no DWARF 5, and LLVM's takes both
        same_as_plain("clang", flags, Order::AsPlain, &["llvm-dwp -e program -o program.dwp", remove]);
        same_as_plain("gcc", flags, Order::AsPlain, &["llvm-dwp -e program -o program.dwp", remove]);
    }
    same_as_plain(
        "gcc",
        "-gdwarf-4 -gsplit-dwarf",
        Order::AsPlain,
        &["dwp -e program -o program.dwp", remove],
    );
}

#[test]
fn types_in_units_of_their_own_are_like_others() {
    for compiler in ["gcc", "clang"] {
        for flags in [
            "-gdwarf-5 -fdebug-types-section",
            "-gdwarf-4 -fdebug-types-section",
            "-gdwarf-5 -fdebug-types-section -gsplit-dwarf",
            "-gdwarf-4 -fdebug-types-section -gsplit-dwarf",
        ] {
            same_as_plain(compiler, flags, Order::Own, &[]);
        }
        let package = ["llvm-dwp -e program -o program.dwp", "find . -name *.dwo -delete"];
        same_as_plain(compiler, "-gdwarf-4 -fdebug-types-section -gsplit-dwarf", Order::Own, &package);
    }
}

#[test]
fn compressed_sections_and_the_old_versions_are_read() {
    for flags in ["-gz=zlib", "-gz=zlib-gnu", "-gdwarf-2", "-gdwarf-3", "-gdwarf-4", "-gdwarf64", "-m32"] {
        same_as_plain("gcc", flags, Order::AsPlain, &[]);
    }
    same_as_plain("gcc", "-O2", Order::AsPlain, &["objcopy --compress-debug-sections=zstd program"]);
    same_as_plain("clang", "-gz=zlib -gdwarf-5", Order::AsPlain, &[]);
}

#[test]
fn units_that_refer_to_each_other_are_read() {
    same_as_plain("gcc", "-flto -O1", Order::AsPlain, &[]);
    same_as_plain("gcc", "-O0", Order::Own, &["dwz program"]);
}
