//! Several definitions of one name: all of them are answered for, whatever the order of units.

mod common;

use common::{compiles, data, folder, run, run_in, stderr, stdout};
use std::fs;
use std::path::Path;
use std::process::Command;

const A: &str = "struct in { char a; long b; } u; struct only { char a; } o;\n";
const B: &str = "struct in { char a; long b; char d[24]; char e; int f; } k; int main(void) { return 0; }\n";
/// Like the first in names, places and sizes, but with a smaller member before a larger hole.
const C: &str = "struct in { short a; long b; } m;\n";

/// Links units in every order; the names of the programs. None where the compiler is missing.
fn programs(folder: &Path, compiler: &str, units: &[(&str, &str)], flags: &[&str]) -> Option<Vec<String>> {
    for (name, text) in units {
        fs::write(folder.join(name), text).expect("written");
    }
    let mut names = Vec::new();
    for (number, order) in permutations(units.len()).into_iter().enumerate() {
        let name = format!("{compiler}-{number}");
        let mut command = Command::new(compiler);
        command.current_dir(folder).args(["-g", "-o", &name]).args(flags);
        command.args(order.iter().map(|index| units[*index].0));
        if !compiles(&mut command) {
            return None;
        }
        names.push(name);
    }
    Some(names)
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = permutations(count - 1);
    let insert = |order: &Vec<usize>, at: usize| {
        let mut order = order.clone();
        order.insert(at, count - 1);
        order
    };
    shorter.iter().flat_map(|order| (0..count).map(move |at| insert(order, at))).collect()
}

/// Returns a command's output on a program in a folder, without the program's name, and its exit code.
fn said(folder: &Path, program: &str, args: &[&str]) -> (String, Option<i32>) {
    let path = format!("./{program}");
    let args: Vec<&str> =
        args.iter().map(|word| if *word == "FILE" { path.as_str() } else { *word }).collect();
    let output = run_in(folder, &args);
    let text = format!("{}{}", stdout(&output), stderr(&output));
    (without_ids(&text.replace(&path, "FILE")), output.status.code())
}

/// Returns text without the numbers that tell types of one document apart.
fn without_ids(text: &str) -> String {
    let mut parts = text.split("id\":");
    let first = parts.next().unwrap_or_default().to_string();
    let behind =
        |part: &str| format!("id\":{}", part.trim_start_matches(|letter: char| letter.is_ascii_digit()));
    parts.fold(first, |text, part| text + &behind(part))
}

/// Returns a command's output on every program, which must not differ.
fn said_of_all(folder: &Path, programs: &[String], args: &[&str]) -> (String, Option<i32>) {
    let first = said(folder, &programs[0], args);
    for program in &programs[1..] {
        assert_eq!(said(folder, program, args), first, "{program}: {args:?}");
    }
    first
}

#[test]
fn a_rule_answers_for_every_definition_of_a_name_in_any_link_order() {
    for compiler in ["gcc", "clang"] {
        let folder = folder(&format!("link-order-{compiler}"));
        let units = [("a.c", A), ("b.c", B), ("c.c", C)];
        let Some(programs) = programs(&folder, compiler, &units, &[]) else { continue };
        for name in ["in", "i*", "struct in"] {
            let policy = format!("[[type]]\nname = {name:?}\nmax-size = 20\n");
            fs::write(folder.join("layout.toml"), policy).expect("written");
            let (text, status) = said_of_all(&folder, &programs, &["check", "FILE"]);
            assert_eq!(status, Some(1), "{compiler} {name}: {text}");
            assert!(text.contains("it has 48 bytes") && text.contains("b.c:1"), "{text}");
            assert!(text.contains("unit b.c"), "{text}");
            assert!(text.contains("3 checks: 1 denied"), "{name}: {text}");
        }
        // the definitions of 16 bytes differ in a hole only
        fs::write(folder.join("layout.toml"), "[[type]]\nname = \"in\"\nmax-hole-bytes = 6\n")
            .expect("written");
        let (text, _) = said_of_all(&folder, &programs, &["check", "FILE"]);
        assert!(text.contains("its holes have 10 bytes") && text.contains("7 bytes"), "{text}");
        assert!(text.contains("2 denied"), "{text}");
    }
}

#[test]
fn every_command_shows_each_definition_with_its_place_in_any_link_order() {
    let folder = folder("link-order-shown");
    let units = [("a.c", A), ("b.c", B), ("c.c", C)];
    let Some(programs) = programs(&folder, "gcc", &units, &[]) else { return };
    let (text, status) = said_of_all(&folder, &programs, &["layout", "in", "FILE"]);
    assert_eq!((text.matches("struct in {").count(), status), (3, Some(0)), "{text}");
    for (number, unit) in [(1, "a.c"), (2, "b.c"), (3, "c.c")] {
        assert!(text.contains(&format!("/* definition {number} of 3: ")), "{text}");
        assert!(text.contains(&format!("{unit}:1 (unit {unit}) */")), "{text}");
    }
    let (text, _) = said_of_all(&folder, &programs, &["layout", "only", "FILE"]);
    assert!(!text.contains("definition"), "{text}");
    let (text, _) = said_of_all(&folder, &programs, &["layout", "--sizes", "in", "FILE"]);
    assert!(text.contains("in\t48\t2\t") && text.matches("in\t16\t1\t").count() == 2, "{text}");
    let (text, _) = said_of_all(&folder, &programs, &["layout", "--format", "json", "in", "FILE"]);
    assert_eq!(text.matches("\"name\":\"in\"").count(), 3, "{text}");
    let (text, _) = said_of_all(&folder, &programs, &["layout", "--compile", "in", "FILE"]);
    assert!(text.contains("the first of 3 definitions") && text.contains("b.c:1"), "{text}");
    let (text, _) = said_of_all(&folder, &programs, &["reorganize", "--unpin", "last", "in", "FILE"]);
    assert!(text.contains("/* in at ") && text.contains("48 -> 40 bytes"), "{text}");
    assert_eq!(text.matches("no smaller layout").count(), 2, "{text}");
    said_of_all(&folder, &programs, &["reorganize", "FILE"]);
    let (text, _) = said_of_all(&folder, &programs, &["groups", "in", "FILE"]);
    assert_eq!(text.matches(" bytes on 1 line, declared at ").count(), 3, "{text}");
}

#[test]
fn diff_pairs_definitions_by_their_units_in_any_link_order() {
    let folder = folder("link-order-diff");
    let Some(old) = programs(&folder, "gcc", &[("a.c", A), ("b.c", B), ("c.c", C)], &[]) else { return };
    let kept: Vec<String> = old.iter().map(|name| format!("old-{name}")).collect();
    old.iter()
        .zip(&kept)
        .for_each(|(from, to)| fs::rename(folder.join(from), folder.join(to)).expect("moved"));
    // a member more in the unit that is in the middle of the others
    let grown = B.replace("int f;", "int f; long g;");
    let units = [("a.c", A), ("b.c", grown.as_str()), ("c.c", C)];
    let Some(new) = programs(&folder, "gcc", &units, &[]) else { return };
    let mut said = Vec::new();
    for old in &kept {
        for new in &new {
            let output = run_in(&folder, &["diff", old, new]);
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            said.push(stdout(&output));
        }
    }
    assert!(said.iter().all(|text| *text == said[0]), "{said:?}");
    assert!(said[0].contains("struct in: 48 -> 56 bytes"), "{}", said[0]);
    assert!(said[0].contains(" 1 grown") && said[0].contains("; 3 the same"), "{}", said[0]);
}

#[test]
fn equal_definitions_are_one_also_from_two_compilers() {
    let folder = folder("link-order-equal");
    let header =
        "#include <stdbool.h>\nstruct in { unsigned long a; bool b; struct in *next; long long c; } ";
    for (name, text) in
        [("a.c", format!("{header} u;")), ("b.c", format!("{header} k; int main(void) {{ return 0; }}"))]
    {
        fs::write(folder.join(name), text).expect("written");
    }
    for (compiler, name) in [("gcc", "a"), ("clang", "b")] {
        let mut command = Command::new(compiler);
        let (from, to) = (format!("{name}.c"), format!("{name}.o"));
        if !compiles(command.current_dir(&folder).args(["-g", "-c", &from, "-o", &to])) {
            return;
        }
    }
    for order in [["a.o", "b.o"], ["b.o", "a.o"]] {
        assert!(compiles(Command::new("gcc").current_dir(&folder).args(["-o", "both"]).args(order)));
        let text = stdout(&run_in(&folder, &["layout", "in", "./both"]));
        assert_eq!(text.matches("struct in {").count(), 1, "{text}");
    }
}

#[test]
fn types_of_anonymous_namespaces_are_each_answered_for() {
    let folder = folder("link-order-cpp");
    let a = "namespace { struct hidden { char a; long b; }; template <class T> struct P { char c; T t; }; }\n\
             hidden u; P<long> p; void *use_a() { return p.c ? (void *)&u : &p; }\n";
    let b = "namespace { struct hidden { long b; char a[40]; }; template <class T> struct P { T t; char c[30]; }; }\n\
             hidden k; P<long> q; int main() { return k.b + q.t; }\n";
    for compiler in ["g++", "clang++"] {
        let Some(programs) = programs(&folder, compiler, &[("a.cc", a), ("b.cc", b)], &[]) else { continue };
        for (name, sizes) in
            [("hidden", ["16", "48"]), ("P<long>", ["16", "40"]), ("struct P<long int>", ["16", "40"])]
        {
            let (text, status) = said_of_all(&folder, &programs, &["layout", "--sizes", name, "FILE"]);
            assert_eq!(
                (text.lines().filter(|line| !line.is_empty()).count(), status),
                (2, Some(0)),
                "{text}"
            );
            assert!(sizes.iter().all(|size| text.contains(&format!("\t{size}\t"))), "{text}");
            assert!(text.contains("a.cc:1 (unit a.cc)") && text.contains("b.cc:1 (unit b.cc)"), "{text}");
        }
    }
}

#[test]
fn a_policy_with_a_pattern_still_knows_typedefs_and_types_inside_functions() {
    let folder = folder("link-order-parts");
    let text = "typedef struct { char a; int b; } named_t; named_t n; struct other { char c[100]; } o;\n\
                int main(void) { struct local { char d[50]; } l; l.d[0] = 0; return l.d[0]; }\n";
    let Some(programs) = programs(&folder, "gcc", &[("a.c", text)], &[]) else { return };
    let policy = "[[type]]\nname = \"named_t\"\nmax-size = 7\n[[type]]\nname = \"oth*\"\nmax-size = 99\n\
                  [[type]]\nname = \"local\"\nmax-size = 49\n[[allow]]\ntype = \"oth*\"\nreason = \"known\"\n";
    fs::write(folder.join("layout.toml"), policy).expect("written");
    let (text, _) = said(&folder, &programs[0], &["check", "FILE"]);
    assert!(text.contains("3 checks: 2 denied, 0 warned of, 1 allowed"), "{text}");
    let order = ["8 bytes, 7 allowed", "100 bytes, 99 allowed", "50 bytes, 49 allowed"];
    let places: Vec<usize> = order.iter().map(|part| text.find(part).expect(part)).collect();
    assert!(places.is_sorted(), "in the order of the rules: {text}");
}

/// Returns the output of `check --suggest` for a file, and of a check by it.
fn suggested(folder: &Path, file: &str, types: &[&str]) -> (String, String, Option<i32>) {
    let output = run(&[&["check", "--suggest"], types, &[file]].concat());
    assert!(output.status.success(), "{output:?}");
    let policy = folder.join("suggested.toml");
    fs::write(&policy, &output.stdout).expect("written");
    let checked = run(&["check", file, "--policy", policy.to_str().expect("plain")]);
    (stdout(&output), format!("{}{}", stdout(&checked), stderr(&checked)), checked.status.code())
}

#[test]
fn what_is_suggested_holds() {
    let folder = folder("suggested");
    let c = [
        ("a.c", A),
        ("b.c", B),
        ("c.c", C),
        (
            "d.c",
            "struct in { char __cacheline_group_begin__rx[0]; int a; char __cacheline_group_end__rx[0]; } z;\n\
         int f(void) { struct only { char x[70]; } l; l.x[0] = 1; return l.x[0]; }\n",
        ),
    ];
    let cpp = [
        (
            "a.cc",
            "template <class T> struct P { T t; char c; };\n\
        namespace { struct hidden { char a; long b; }; } namespace n { struct hidden { char c[90]; }; }\n\
        struct twice { char a; } w; int g() { struct twice { char x[70]; } l; l.x[0] = 1; return l.x[0]; }\n\
        P<char*> p; P<char**> q; P<int> r; hidden h; n::hidden i; struct U { union { int a; }; long b; } u;\n",
        ),
        (
            "b.cc",
            "namespace { struct hidden { char a[200]; long b; }; } hidden k; int main() { return 0; }\n",
        ),
    ];
    let mut files = Vec::new();
    let linked = |compiler, units: &[(&str, &str)]| {
        Some(folder.join(programs(&folder, compiler, units, &[])?.remove(0)))
    };
    files.extend(linked("gcc", &c[..]));
    files.extend(linked("g++", &cpp[..]));
    let rust = folder.join("types");
    let mut rustc = Command::new("rustc");
    rustc.args(["-g", "--edition=2021", "-o"]).arg(&rust);
    files.extend(compiles(rustc.arg(data("languages/types.rs"))).then_some(rust));
    for file in files {
        holds(&folder, file.to_str().expect("plain"), &["*"]);
    }
    // names that repeat in kernels, with others
    let kernel = "/sys/kernel/btf/vmlinux";
    if Path::new(kernel).exists() {
        holds(
            &folder,
            kernel,
            &["console", "dma_chan", "syscall_tp*", "perf_*", "get*", "work*", "walk*", "pci_*"],
        );
    }
}

/// Asserts that a file satisfies its suggested policy without a warning.
fn holds(folder: &Path, file: &str, types: &[&str]) {
    let (policy, said, status) = suggested(folder, file, types);
    assert!(policy.contains("[[type]]"), "{file}");
    let tail: Vec<&str> = said.lines().rev().take(6).collect();
    assert_eq!(status, Some(0), "{file}: {tail:?}");
    assert!(said.contains(": 0 denied, 0 warned of"), "{file}: {tail:?}");
}
