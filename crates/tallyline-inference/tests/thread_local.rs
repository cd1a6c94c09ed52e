//! Types of thread-local variables in programs that are compiled here, by the models and ways to link that compilers
//! have. The sources name the fields that each line accesses.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tallyline_debuginfo::program::source_lines;
use tallyline_debuginfo::{NoCompanions, type_text};
use tallyline_inference::code::Image;
use tallyline_inference::{Debug, Outcome, Wanted, field_path, infer};

const C: &str = "thread_local.c";
const CPP: &str = "thread_local.cc";

fn path(source: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source)
}

/// Compiles a program; `None`, with a message, without such a compiler.
fn compile(source: &str, compiler: &str, options: &[&str]) -> Option<PathBuf> {
    let name = format!("thread-local-{compiler}{}", options.concat());
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let made =
        Command::new(compiler).arg("-g").args(options).arg("-o").arg(&program).arg(path(source)).output();
    match made {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) => panic!("{compiler} {options:?}: {}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => {
            eprintln!("skipped: no {compiler}");
            None
        }
    }
}

/// Returns the fields that lines of a source name, by the number of the line.
fn expected(source: &str) -> BTreeMap<u64, Vec<String>> {
    let text = fs::read_to_string(path(source)).expect("the source");
    let lines = (1..).zip(text.lines());
    let fields = |fields: &str| fields.split(' ').map(str::to_owned).collect();
    lines.filter_map(|(number, line)| Some((number, fields(line.split_once(" // ")?.1)))).collect()
}

/// Asserts that all operands on lines that name fields, but for the stack, have one of them, and that each such line
/// has one.
fn check(source: &str, compiler: &str, options: &[&str]) {
    let Some(program) = compile(source, compiler, options) else { return };
    let bytes = fs::read(&program).expect("the program");
    let image = Image::parse(&bytes).expect("an image");
    let table = infer(&image, Debug::Bytes(&bytes), &NoCompanions, Wanted::All).expect("a table");
    let addresses: Vec<u64> = table.rows().iter().map(|(address, _)| *address).collect();
    let file = fs::File::open(&program).expect("the program");
    let lines = source_lines(&file, &NoCompanions, &addresses);
    let expected = expected(source);
    let is_required = |(line, fields): (&u64, &Vec<String>)| (fields != &["-"]).then_some(*line);
    let mut missing: Vec<u64> = expected.iter().filter_map(is_required).collect();
    for (address, outcome) in table.rows() {
        let line = lines.get(address).filter(|(path, _)| path.ends_with(source)).map(|(_, line)| *line);
        let Some((line, fields)) = line.and_then(|line| Some((line, expected.get(&line)?))) else { continue };
        let at = format!("{compiler} {options:?}: {address:#x}, line {line}");
        let types = table.types();
        // each of two loads, where the compiler has made one for each of the types, has its own
        let is_alone =
            lines.values().filter(|(path, other)| path.ends_with(source) && *other == line).count() == 1;
        let is_ambiguous = fields == &["-"];
        if is_ambiguous && !is_alone {
            continue;
        }
        match outcome {
            Outcome::Typed(typed) => {
                let ty = type_text(types, typed.ty()).replace("struct ", "");
                // a pair of registers may load what two lines use
                let other = typed.at_other_place();
                let places = [Some(typed), other.as_ref()].into_iter().flatten();
                let names: Vec<_> = places.map(|one| format!("{ty}.{}", field_path(types, one))).collect();
                let is_named = names.iter().any(|name| fields.contains(name));
                // parameters and variables on the stack are no records
                let is_right = is_named || names.iter().all(|name| name.ends_with('.'));
                assert!(is_right, "{at}: {names:?}");
                missing.retain(|missing| !is_named || *missing != line);
            }
            Outcome::Untyped(reason) => assert!(is_ambiguous, "{at}: {reason}"),
            Outcome::Pseudo(_) => {}
        }
    }
    assert!(missing.is_empty(), "{compiler} {options:?}: no operand on lines {missing:?}");
}

const LEVELS: [&str; 4] = ["-O0", "-O2", "-O3", "-Os"];

#[test]
fn variables_of_threads_have_their_fields_by_the_local_exec_model() {
    for compiler in ["gcc", "clang", "aarch64-linux-gnu-gcc"] {
        for level in LEVELS {
            for link in ["-pie", "-no-pie", "-static-pie", "-gdwarf-4"] {
                check(C, compiler, &[level, link]);
            }
        }
    }
}

#[test]
fn linkers_relax_other_models_to_one_that_leads_to_the_same_fields() {
    for compiler in ["gcc", "clang", "aarch64-linux-gnu-gcc"] {
        for level in ["-O0", "-O2"] {
            for model in ["global-dynamic", "local-dynamic", "initial-exec"] {
                check(C, compiler, &[level, "-fPIC", &format!("-ftls-model={model}")]);
            }
        }
    }
    for level in ["-O0", "-O2"] {
        check(C, "gcc", &[level, "-fPIC", "-mtls-dialect=gnu2"]);
    }
}

#[test]
fn variables_of_threads_of_cpp_have_their_fields() {
    for compiler in ["g++", "clang++", "aarch64-linux-gnu-g++"] {
        // without optimization clang calls a function for the address
        for level in ["-O1", "-O2"] {
            for link in ["-pie", "-static", "-fPIC"] {
                check(CPP, compiler, &["-std=c++17", level, link]);
            }
        }
    }
}

const LIBRARY: &str = "\
struct foreign { int start[20]; int field; };
struct other { int start[64]; };
__thread struct other other = {{1}};
__thread struct foreign foreign = {{1}};
int in_library(void) { return foreign.field; }
int of_other(void) { return other.start[7]; }
";
const PROGRAM: &str = "\
struct foreign { int start[20]; int field; };
struct own { int start[64]; };
extern __thread struct foreign foreign;
__thread struct own own;
__attribute__((noinline)) int get(void) { return foreign.field; }
__attribute__((noinline)) int get_own(void) { return own.start[20]; }
int main(void) { return get() + get_own(); }
";

/// Returns the fields of records that a file's functions access, each with the name of the function.
fn fields(file: &Path) -> Vec<(String, String)> {
    let bytes = fs::read(file).expect("the file");
    let image = Image::parse(&bytes).expect("an image");
    let table = infer(&image, Debug::Bytes(&bytes), &NoCompanions, Wanted::All).expect("a table");
    let field = |(address, outcome): &(u64, Outcome)| {
        let Outcome::Typed(typed) = outcome else { return None };
        let function = table.function_at(*address).map_or("", |function| function.name());
        let ty = type_text(table.types(), typed.ty());
        let field = format!("{}.{}", ty.strip_prefix("struct ")?, field_path(table.types(), typed));
        Some((function.to_owned(), field))
    };
    table.rows().iter().filter_map(field).collect()
}

#[test]
fn a_library_s_variable_is_none_of_those_at_the_same_offset_of_the_program() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("thread-local-library");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("library.c"), LIBRARY).expect("written");
    fs::write(folder.join("program.c"), PROGRAM).expect("written");
    for compiler in ["gcc", "clang", "aarch64-linux-gnu-gcc"] {
        let run = |arguments: &[&str]| {
            let made = Command::new(compiler).arg("-g").args(arguments).current_dir(&folder).output();
            let made = made.inspect_err(|_| eprintln!("skipped: no {compiler}")).ok()?;
            assert!(made.status.success(), "{compiler}: {}", String::from_utf8_lossy(&made.stderr));
            Some(())
        };
        for (level, model) in [("-O0", "-ftls-model=global-dynamic"), ("-O2", "-ftls-model=initial-exec")] {
            let made = run(&["-shared", "-fPIC", level, model, "-o", "library.so", "library.c"]);
            if made.and_then(|()| run(&[level, "-o", "program", "program.c", "library.so"])).is_none() {
                continue;
            }
            let accesses =
                fields(&folder.join("program")).into_iter().chain(fields(&folder.join("library.so")));
            let mut found = 0;
            for (function, field) in accesses {
                let right = match &*function {
                    "get_own" => "own.start[]",
                    "of_other" => "other.start[]",
                    _ => "foreign.field",
                };
                assert_eq!(field, right, "{compiler} {level} {model}, {function}");
                found += usize::from(function == "get_own");
            }
            assert_ne!(found, 0, "{compiler} {level}");
        }
    }
}
