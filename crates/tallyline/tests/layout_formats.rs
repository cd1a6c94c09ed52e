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

/// Returns a folder with the sources.
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

/// Returns the output for a file; fails if there is a message about a problem.
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
    /// The result of the plain build.
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
        same_as_plain("clang", flags, Order::AsPlain, &["llvm-dwp -e program -o program.dwp", remove]);
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
    }
    let package = ["llvm-dwp -e program -o program.dwp", "find . -name *.dwo -delete"];
    same_as_plain("clang", "-gdwarf-4 -fdebug-types-section -gsplit-dwarf", Order::Own, &package);
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

/// Returns three programs with many types in common, which dwz puts into a file of their own.
fn shared_by_dwz(name: &str, version: &str, option: &str) -> Option<PathBuf> {
    let folder = sources(name);
    let bulk: String = (1..60)
        .map(|n| format!("struct bulk{n} {{ int a{n}; char b{n}; struct bulk{n} *next{n}; long m{n}[{n}]; }} bulk{n};\n"))
        .collect();
    std::fs::write(folder.join("two.c"), format!("{TWO}{bulk}")).expect("written");
    let built = (1..=3).all(|n| {
        let own = format!("{ONE}struct only{n} {{ int q; struct common c; }} only{n};\n");
        std::fs::write(folder.join("one.c"), own).expect("written");
        tool(&folder, &format!("gcc -g {version} -Wl,--build-id -O{n} one.c two.c -o plain{n}"))
            && std::fs::copy(folder.join(format!("plain{n}")), folder.join(format!("program{n}"))).is_ok()
    });
    let dwz = format!("dwz {option} -m shared.dwz -r program1 program2 program3");
    (built && tool(&folder, dwz.as_str())).then_some(folder)
}

#[test]
fn what_dwz_shares_between_programs_is_found() {
    for (name, version, option) in [("dwz4", "-gdwarf-4", ""), ("dwz5", "-gdwarf-5", "-5")] {
        let Some(folder) = shared_by_dwz(name, version, option) else { return };
        for n in 1..=3 {
            let plain = shown(&folder, &["--sort", &format!("./plain{n}")]);
            assert!(
                plain.contains(&format!("struct only{n} {{")) && plain.contains("struct bulk59 {"),
                "{plain}"
            );
            assert_eq!(shown(&folder, &["--sort", &format!("./program{n}")]), plain, "{version} {n}");
        }
        std::fs::remove_dir_all(&folder).expect("removable");
    }
}

/// Classes that several units of C++ share.
const CPP: &str = "\
namespace ns {
struct Root { virtual ~Root() {} int a; };
struct Mid : virtual Root { int b; };
struct Most : Mid { long e; char pad[64]; double _Complex z; };
class Hidden { char a; protected: long b; public: char c; };
struct Other { Mid mid; Hidden hidden; Other *next; long more[3]; short s; };
}
";

#[test]
fn types_of_cpp_that_dwz_shares_have_the_language_and_unit_of_their_importers() {
    for (version, shared) in [("-gdwarf-4", false), ("-gdwarf-5", false), ("-gdwarf-5", true)] {
        let folder = common::folder(&format!("dwz-cpp{version}-{shared}"));
        std::fs::write(folder.join("shared.hpp"), CPP).expect("written");
        for unit in ["one", "two", "three"] {
            let main = if unit == "one" { "int main() {}" } else { "" };
            let own =
                format!("#include \"shared.hpp\"\nns::Most most_{unit}; ns::Other other_{unit};\n{main}\n");
            std::fs::write(folder.join(format!("{unit}.cpp")), own).expect("written");
        }
        let compile =
            format!("g++ -std=c++17 -g {version} -Wl,--build-id -o plain one.cpp two.cpp three.cpp");
        let dwz = if shared { "dwz -5 -m shared.dwz -r program second" } else { "dwz program" };
        if !tool(&folder, &compile)
            || !tool(&folder, "cp plain program")
            || !tool(&folder, "cp plain second")
            || !tool(&folder, dwz)
        {
            return;
        }
        for options in [&["--sort"][..], &["--sort", "-E"], &["--sort", "--lang", "c++,c++14"]] {
            let of = |file| shown(&folder, &[options, &[file]].concat());
            let plain = of("./plain");
            assert!(plain.contains("struct ns::Most : Mid {"), "{plain}");
            assert_eq!(of("./program"), plain, "{version} {shared} {options:?}");
        }
        let places = shown(&folder, &["-I", "ns::Most", "./program"]);
        assert!(places.starts_with("/* Used at: one.cpp */\n"), "{version} {shared}: {places}");
        assert!(places.contains("shared.hpp:4 */\n"), "{version} {shared}: {places}");
        let policy = "[[type]]\nname = \"ns::Most\"\nmax-size = 1\n";
        std::fs::write(folder.join("layout.toml"), policy).expect("written");
        let output = run_in(&folder, &["check", "./program"]);
        assert_eq!(output.status.code(), Some(1), "{version} {shared}: {output:?}");
        std::fs::remove_dir_all(&folder).expect("removable");
    }
}

#[test]
fn a_missing_or_foreign_alternate_file_is_named_and_no_wrong_layout_is_shown() {
    let Some(folder) = shared_by_dwz("dwz-missing", "-gdwarf-4", "") else { return };
    std::fs::rename(folder.join("shared.dwz"), folder.join("other.dwz")).expect("renamed");
    let check = |problem: &str| {
        let output = run_in(&folder, &["layout", "./program1"]);
        let said = stderr(&output);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("shared.dwz") && said.contains(problem), "{said}");
        assert!(said.contains("types in it are left out"), "{said}");
        assert!(!stdout(&output).contains("missing type"), "{output:?}");
    };
    check("looked for in ./shared.dwz");
    std::fs::copy(folder.join("plain1"), folder.join("shared.dwz")).expect("copied");
    check("another build");
    std::fs::remove_dir_all(&folder).expect("removable");
}

#[test]
fn missing_split_units_are_one_warning_and_none_at_all_an_error() {
    let folder = sources("split-missing");
    if !tool(&folder, "gcc -g -gsplit-dwarf -o program one.c two.c") {
        return;
    }
    let dwo: Vec<PathBuf> = ["program-one.dwo", "program-two.dwo", "one.dwo", "two.dwo"]
        .iter()
        .map(|name| folder.join(name))
        .filter(|path| path.exists())
        .collect();
    assert_eq!(dwo.len(), 2, "{dwo:?}");
    std::fs::remove_file(&dwo[0]).expect("removable");
    let output = run_in(&folder, &["layout", "./program"]);
    assert!(output.status.success(), "{output:?}");
    assert!(
        stdout(&output).contains("struct two {") && !stdout(&output).contains("struct one {"),
        "{output:?}"
    );
    let said = stderr(&output);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains("one.dwo") && said.contains("looked for in") && said.contains("program.dwp"),
        "{said}"
    );
    // one of another build is no companion
    std::fs::copy(&dwo[1], &dwo[0]).expect("copied");
    let output = run_in(&folder, &["layout", "./program"]);
    assert!(stderr(&output).contains("one.dwo: no unit of this build"), "{output:?}");
    dwo.iter().for_each(|path| std::fs::remove_file(path).expect("removable"));
    let output = run_in(&folder, &["layout", "./program"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty() && stderr(&output).lines().count() == 1, "{output:?}");
    std::fs::remove_dir_all(&folder).expect("removable");
}

#[test]
fn split_units_are_found_beside_a_program_that_was_moved() {
    let folder = sources("split-moved");
    if !tool(&folder, "gcc -g -o plain one.c two.c")
        || !tool(&folder, "gcc -g -gsplit-dwarf -o program one.c two.c")
    {
        return;
    }
    let plain = shown(&folder, &["./plain"]);
    let (from, to) = (folder.join("to"), folder.join("moved"));
    std::fs::create_dir_all(&to).expect("a folder");
    assert!(!from.exists());
    for file in std::fs::read_dir(&folder).expect("readable").flatten() {
        let name = file.file_name();
        let text = name.to_string_lossy();
        if text.ends_with(".dwo") || text == "program" {
            std::fs::rename(file.path(), to.join(&name)).expect("renamed");
        }
    }
    assert_eq!(shown(&to, &["./program"]), plain);
    std::fs::remove_dir_all(&folder).expect("removable");
}

#[test]
fn debug_files_are_found_by_build_id_or_by_a_checksum_that_fits() {
    let folder = sources("debug-files");
    let steps = [
        "gcc -g -Wl,--build-id -o plain one.c two.c",
        "gcc -g -Wl,--build-id=none -o program one.c two.c",
        "objcopy --only-keep-debug program program.debug",
        "objcopy --strip-debug --add-gnu-debuglink=program.debug program",
        "objcopy --only-keep-debug plain plain.debug",
        "objcopy --strip-debug plain stripped",
    ];
    if !steps.iter().all(|step| tool(&folder, step)) {
        return;
    }
    let plain = shown(&folder, &["./plain"]);
    assert_eq!(shown(&folder, &["./program"]), plain);
    // a debug file that was made of something else
    std::fs::copy(folder.join("plain.debug"), folder.join("program.debug")).expect("copied");
    let output = run_in(&folder, &["layout", "./program"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("no type information"), "{output:?}");

    let notes = Command::new("readelf").args(["-n", "stripped"]).current_dir(&folder).output().expect("runs");
    let notes = stdout(&notes);
    let id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).expect("a build id");
    let place = folder.join("debug/.build-id").join(&id[..2]);
    std::fs::create_dir_all(&place).expect("a folder");
    std::fs::rename(folder.join("plain.debug"), place.join(format!("{}.debug", &id[2..]))).expect("renamed");
    let found = common::tallyline()
        .args(["layout", "./stripped"])
        .env("TALLYLINE_DEBUG_FOLDER", folder.join("debug"))
        .current_dir(&folder)
        .output()
        .expect("the program runs");
    assert_eq!(stdout(&found), plain, "{found:?}");
    std::fs::remove_dir_all(&folder).expect("removable");
}
