//! `tallyline reorganize --apply --build` of structs whose objects are initialised by position: no edit may change what
//! the program computes.

mod common;

use common::{compiles, folder, run_in, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A struct that another order makes smaller, and what prints one.
const STRUCT: &str = "struct S { char a; long b; char c; };\n";
const SHOW: &str = "static void show(const struct S &s) { printf(\"%d %ld %d\\n\", s.a, s.b, s.c); }\n";

/// Writes a program's source and a makefile into a folder of its own, and builds it; none without a compiler.
fn project(name: &str, file: &str, text: &str, compiler: &str) -> Option<PathBuf> {
    let folder = folder(name).canonicalize().expect("it is there");
    std::fs::create_dir_all(folder.join(".git")).expect("a folder");
    std::fs::write(folder.join(file), text).expect("written");
    let rules = format!("t: {file}\n\t{compiler} {file} -o t\n");
    std::fs::write(folder.join("Makefile"), rules).expect("written");
    compiles(Command::new("make").current_dir(&folder).arg("-s")).then_some(folder)
}

/// Returns what the program of a folder prints.
fn printed(folder: &Path) -> String {
    stdout(&Command::new(folder.join("t")).output().expect("it runs"))
}

/// Reorders `S` in a project, and returns what is said where it is not edited. A program that is edited is built again
/// and has to print the same.
fn reordered(folder: &Path, name: &str, more: &[&str]) -> Option<String> {
    let before = printed(folder);
    let words =
        [&["reorganize", "--unpin", "ends", "--apply", "--build", "make -s"], more, &[name, "./t"]].concat();
    let output = run_in(folder, &words);
    assert!(compiles(Command::new("make").current_dir(folder).arg("-s")));
    assert_eq!(printed(folder), before, "{}", stderr(&output));
    match output.status.code() {
        Some(0) => None,
        _ => Some(stderr(&output)),
    }
}

/// Checks that a program with some text behind the struct is refused as it initialises objects by position.
fn assert_refused(name: &str, file: &str, compiler: &str, texts: &[&str]) {
    for (at, text) in texts.iter().enumerate() {
        let Some(folder) = project(&format!("{name}-{at}"), file, text, compiler) else { return };
        let said = reordered(&folder, "S", &[]).unwrap_or_else(|| panic!("edited: {text}"));
        assert!(said.contains("S: not edited: positional: "), "{text}: {said}");
        assert!(said.contains(&format!("{file}:")), "{text}: {said}");
        std::fs::remove_dir_all(folder).expect("removed");
    }
}

#[test]
fn initialisers_by_position_of_cpp_are_refused() {
    let of = |head: &str, body: &str| {
        format!("{head}#include <cstdio>\n{STRUCT}{SHOW}{}\n", body.replace('\'', "\""))
    };
    let texts = [
        of("", "int main() { S s{1, 2, 3}; show(s); }"),
        of("", "int main() { show(S{1, 2, 3}); }"),
        of("", "int main() { S s; s = {1, 2, 3}; show(s); }"),
        of("", "static S make() { return {1, 2, 3}; }\nint main() { show(make()); }"),
        of("", "int main() { show({1, 2, 3}); }"),
        of("", "int main() { S *s = new S{1, 2, 3}; show(*s); }"),
        of("", "int main() { S s(1, 2, 3); show(s); }"),
        of("", "int main() { S s{.a = 1, .b = 2, .c = 3}; show(s); }"),
        of("", "struct H { S s{1, 2, 3}; };\nint main() { H h; show(h.s); }"),
        of("", "#define ALL {1, 2, 3}\nint main() { S s ALL; show(s); }"),
        of("", "using T = S;\nint main() { T t{1, 2, 3}; show(t); }"),
        of("", "struct D : S { int d; };\nint main() { D d{{1, 2, 3}, 4}; show(d); }"),
        of("", "template<class T> T make() { return T{1, 2, 3}; }\nint main() { show(make<S>()); }"),
        of(
            "#include <vector>\n",
            "std::vector<S> v{{1, 2, 3}};\nint main() { v.push_back({4, 5, 6}); show(v[0]); }",
        ),
        of("#include <vector>\n", "int main() { std::vector<S> v; v.emplace_back(1, 2, 3); show(v[0]); }"),
        of("#include <map>\n", "int main() { std::map<int, S> m{{1, {1, 2, 3}}}; show(m[1]); }"),
        of("#include <array>\n", "int main() { std::array<S, 1> a{{{1, 2, 3}}}; show(a[0]); }"),
    ];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    assert_refused("positional-cpp", "t.cpp", "g++ -std=c++20 -w -g", &texts);
}

#[test]
fn aggregates_with_destructors_and_defaulted_constructors_are_refused() {
    let texts = [
        "#include <cstdio>\nstruct S { char a; long b; char c; ~S() {} };\n\
         int main() { S s{1, 2, 3}; printf(\"%d %ld %d\\n\", s.a, s.b, s.c); }\n",
        "#include <cstdio>\nstruct S { S() = default; char a; long b; char c; };\n\
         int main() { S s{1, 2, 3}; printf(\"%d %ld %d\\n\", s.a, s.b, s.c); }\n",
        "#include <cstdio>\ntypedef struct { char a; long b; char c; } S;\n\
         int main() { S s{1, 2, 3}; printf(\"%d %ld %d\\n\", s.a, s.b, s.c); }\n",
    ];
    assert_refused("positional-aggregate", "t.cpp", "g++ -std=c++17 -w -g", &texts);
}

#[test]
fn what_only_looks_like_a_constructor_hides_no_initialisers() {
    let members = "char a; long b; char c;";
    let bodies = [
        "fn<A(int)> f;",
        "void on(fn<B(int)>);",
        "typedef C(make)(int); make *f;",
        "friend D(make)(int);",
        "E (F::*make)(int);",
        "\n#ifdef OLD_COMPILER\n G(int, long, int);\n#endif\n",
    ];
    let names = ["A", "B", "C", "D", "E", "G"];
    let mut text =
        "#include <cstdio>\n#define ALL {1, 2, 3}\ntemplate<class T> struct fn {};\nstruct F;\n".to_owned();
    let mut main = String::new();
    for (name, body) in names.iter().zip(bodies) {
        text += &format!("struct {name} {{ {members} {body} }};\n");
        main += &format!(" {{ {name} s ALL, t; t = s; printf(\"%d %ld %d\\n\", t.a, t.b, t.c); }}\n");
    }
    text += &format!("int main() {{\n{main}}}\n");
    let Some(folder) = project("positional-looks", "t.cpp", &text, "g++ -w -g") else { return };
    let said = reordered(&folder, "A", &names[1..]).expect("refused");
    for name in names {
        let place = format!("{name}: not edited: positional: initialised by position: t.cpp:2:");
        assert!(said.contains(&place), "{name}: {said}");
    }
    // a constructor for C++ alone, beside a unit of C: by the build, by the list, and by the text
    let files = [
        ("s.h", "struct S { char a; long b; char c;\n#ifdef __cplusplus\n S() : a(1) {}\n#endif\n};\n"),
        (
            "b.c",
            "#include \"s.h\"\n#define ALL {1, 2, 3}\nstruct S s = ALL;\nlong get(void) { return s.b; }\n",
        ),
        (
            "t.cpp",
            "#include \"s.h\"\nextern \"C\" long get();\nint main() { S s; return s.a + get() - 3; }\n",
        ),
        ("Makefile", "t: t.cpp s.h b.c\n\tgcc -Wall -g -c b.c && g++ -g b.o t.cpp -o t\n"),
    ];
    files.iter().for_each(|(file, text)| std::fs::write(folder.join(file), text).expect("written"));
    assert!(compiles(Command::new("make").current_dir(&folder).arg("-s")));
    let said = reordered(&folder, "S", &[]).expect("refused");
    assert!(said.contains("S: not edited: positional: initialised by position: b.c:2:"), "{said}");
    let call = |compiler: &str, file: &str| {
        let folder = folder.display();
        format!(
            "{{\"directory\": \"{folder}\", \"file\": \"{file}\", \"command\": \"{compiler} -c {file}\"}}"
        )
    };
    let list = format!("[{}, {}]", call("gcc", "b.c"), call("g++", "t.cpp"));
    std::fs::write(folder.join("compile_commands.json"), list).expect("written");
    let patch = ["reorganize", "--unpin", "ends", "--patch", "S", "./t"];
    let said = stderr(&run_in(&folder, &patch));
    assert!(said.contains("S: not edited: positional: initialised by position: b.c:2:"), "{said}");
    std::fs::remove_file(folder.join("compile_commands.json")).expect("removed");
    let shown = files[1].1.replace("ALL;", "{1, 2, 3};");
    std::fs::write(folder.join("b.c"), shown).expect("written");
    let said = stderr(&run_in(&folder, &patch));
    assert!(said.contains("S: not edited: positional: b.c:3 initialises"), "{said}");
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn initialisers_by_position_of_c_are_refused() {
    let of = |text: &str| {
        format!(
            "#include <stdio.h>\n{STRUCT}struct H {{ struct S s; int z; }};\n{text}\n\
             int main(void) {{ printf(\"%d %ld %d\\n\", s.a, s.b, s.c); return 0; }}\n"
        )
    };
    let told = [
        of("static struct H h = {{1, 2, 3}, 4};\n#define s h.s"),
        of("static struct H h = {1, 2, 3, 4};\n#define s h.s"),
        of("static struct S s0;\nstatic __typeof__(s0) s = {1, 2, 3};"),
        of("\tstatic struct S s = {\t0, 2};"),
    ];
    let told: Vec<&str> = told.iter().map(String::as_str).collect();
    assert_refused("positional-c", "t.c", "gcc -g -Wall", &told);
    // warnings are errors
    assert_refused("positional-c-error", "t.c", "gcc -g -Wall -Werror", &told[..1]);
    assert_refused("positional-c-old", "t.c", "gcc -std=c90 -pedantic -Wextra -g -Werror", &told[..1]);
    let color = "gcc -g -Wall -fdiagnostics-color=always -fdiagnostics-urls=always";
    assert_refused("positional-c-color", "t.c", color, &told[..1]);
    // no warnings are shown: what the text has
    assert_refused("positional-c-quiet", "t.c", "gcc -g -w", &told[..2]);
}

#[test]
fn what_is_not_initialised_by_position_is_edited() {
    let cpp = "#include <cstdio>\n#include <map>\nstruct S { char a; long b; char c; };\nstruct D : S { int d = 1; };\n\
               struct H { S s{}; S t = {}; };\nint main() { std::map<int, S> m; S s = S(), *p = new S(s); H h; D d{};\n\
               s.b = 2; m[1] = s; *p = m[1]; printf(\"%ld %d\\n\", p->b, d.d + (int)h.s.b); delete p; }\n";
    let c = "#include <stdio.h>\nstruct S { char a; long b; char c; };\nstruct H { struct S s; int z; };\n\
             static struct H h = {{.b = 2}, 4};\nstatic struct S s = {0};\n\
             int main(void) { printf(\"%ld %d\\n\", h.s.b, s.a); return 0; }\n";
    let own = "#include <cstdio>\nstruct S { char a; long b; char c; S(int a, int b, int c) : a(a), b(b), c(c) {} };\n\
               int main() { S s{1, 2, 3}; S t = {1, 2, 3}; printf(\"%d %ld %d\\n\", s.a, s.b, t.c); }\n";
    for (at, (file, compiler, text)) in [
        ("t.cpp", "g++ -std=c++20 -w -g", cpp),
        ("t.c", "gcc -g -Wall -Wextra -Werror -Wno-missing-field-initializers", c),
        ("t.cpp", "g++ -w -g", own),
    ]
    .into_iter()
    .enumerate()
    {
        let Some(folder) = project(&format!("positional-none-{at}"), file, text, compiler) else { return };
        assert_eq!(reordered(&folder, "S", &[]), None, "{text}");
        std::fs::remove_dir_all(folder).expect("removed");
    }
}

#[test]
fn a_header_of_c_and_cpp_is_probed_in_both() {
    let header = "#pragma once\nstruct S { char a; long b; char c; };\n";
    let main = "#include <cstdio>\n#include \"s.h\"\nextern \"C\" long get(void);\n\
                int main() { S s; s.b = get(); printf(\"%ld\\n\", s.b); }\n";
    for (at, (c, is_refused)) in [
        (
            "#include \"s.h\"\nstruct H { struct S s; } h = {{1, 2, 3}};\nlong get(void) { return h.s.b; }\n",
            true,
        ),
        ("#include \"s.h\"\nstruct S s = {.b = 2};\nlong get(void) { return s.b; }\n", false),
    ]
    .into_iter()
    .enumerate()
    {
        let compiler = "gcc -g -c b.c && g++ -g b.o";
        let files = [("s.h", header), ("b.c", c)];
        let parent = folder(&format!("positional-shared-{at}"));
        files.iter().for_each(|(file, text)| std::fs::write(parent.join(file), text).expect("written"));
        let Some(folder) = project(&format!("positional-shared-{at}"), "t.cpp", main, compiler) else {
            return;
        };
        std::fs::write(folder.join("Makefile"), format!("t: t.cpp s.h b.c\n\t{compiler} t.cpp -o t\n"))
            .expect("written");
        let said = reordered(&folder, "S", &[]);
        assert_eq!(said.as_ref().is_some_and(|said| said.contains("positional: ")), is_refused, "{said:?}");
        std::fs::remove_dir_all(folder).expect("removed");
    }
}

#[test]
fn of_several_structs_only_those_with_initialisers_by_position_are_refused() {
    let text = "#include <cstdio>\nstruct S { char a; long b; char c; };\nstruct T { char a; long b; char c; };\n\
                struct U { char a; long b; char c; };\nstatic long get(const T &t) { return t.b; }\n\
                int main() { S s; U u; s.b = u.b = 1; printf(\"%ld %ld %ld\\n\", s.b, get({1, 2, 3}), u.b); }\n";
    let Some(folder) = project("positional-several", "t.cpp", text, "g++ -w -g") else { return };
    let said = reordered(&folder, "S", &["T", "U"]).expect("one is refused");
    let refused: Vec<&str> = said.lines().filter(|line| line.contains("not edited")).collect();
    assert_eq!(refused.len(), 2, "{said}");
    assert!(refused[0].contains("T: not edited: positional: initialised by position: t.cpp:6:"), "{said}");
    let edited = std::fs::read_to_string(folder.join("t.cpp")).expect("read");
    for (name, is_edited) in [("S", true), ("T", false), ("U", true)] {
        let old = format!("struct {name} {{ char a; long b; char c; }};");
        assert_eq!(!edited.contains(&old), is_edited, "{edited}");
    }
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn of_several_structs_only_those_whose_edit_breaks_the_build_are_refused() {
    let text = "struct S { char a; long b; char c; };\nstruct T { char a; long b; char c; };\n\
                long f(T *t, S *s) { return t->b + s->b; }\nint main() { return 0; }\n";
    let Some(folder) = project("build-broken", "t.cpp", text, "g++ -g") else { return };
    // a check of the text that no compiler does
    let rules = "t: t.cpp\n\t@! grep -q 'struct T { long b' t.cpp || { echo 't.cpp:2:8: error: T has moved'; exit 1; }\n\
                 \tg++ -g t.cpp -o t\n";
    std::fs::write(folder.join("Makefile"), rules).expect("written");
    let said = reordered(&folder, "S", &["T"]).expect("one is refused");
    assert!(said.contains("T: not edited: broken: t.cpp:2:8: T has moved"), "{said}");
    assert!(
        said.contains("the build fails with the edit of T:\n  t.cpp:2:8: error: T has moved\n"),
        "{said}"
    );
    let edited = std::fs::read_to_string(folder.join("t.cpp")).expect("read");
    assert!(!edited.contains("struct S { char a; long b;") && edited.contains("struct T { char a; long b;"));
    // a build that fails as it is, also where the program is up to date
    std::fs::write(folder.join("t.cpp"), text).expect("written");
    let rules = format!("t: t.cpp\n\ttest $(CURDIR) = {}\n\tg++ -g t.cpp -o t\n", folder.display());
    std::fs::write(folder.join("Makefile"), rules).expect("written");
    assert!(compiles(Command::new("make").current_dir(&folder).arg("-s")));
    let said = reordered(&folder, "S", &[]).expect("refused");
    assert!(said.contains("S: not edited: not-rebuilt: the build fails without edits, too: "), "{said}");
    std::fs::write(folder.join("t.cpp"), text).expect("written");
    assert!(compiles(Command::new("make").current_dir(&folder).arg("-s")));
    let output = run_in(
        &folder,
        &[
            "reorganize",
            "--unpin",
            "ends",
            "--apply",
            "--build",
            "echo 'x.c:1:1: error: no' && false",
            "S",
            "./t",
        ],
    );
    assert!(
        stderr(&output).contains("not-rebuilt: the build fails without edits, too: x.c:1:1: no"),
        "{output:?}"
    );
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn templates_are_edited_by_a_build() {
    let text = "#include <cstdio>\ntemplate<class T> struct Box { char a; T t; char b; };\n\
                int main() { Box<long> b; Box<int> c; b.t = c.t = 4; printf(\"%ld\\n\", b.t + c.t); }\n";
    let Some(folder) = project("positional-template", "t.cpp", text, "g++ -g") else { return };
    assert_eq!(reordered(&folder, "Box<long int>", &[]), None);
    let edited = std::fs::read_to_string(folder.join("t.cpp")).expect("read");
    assert!(!edited.contains("char a; T t; char b;"), "{edited}");
    let position = text.replace("Box<long> b;", "Box<long> b{1, 2, 3};");
    let Some(folder) = project("positional-template", "t.cpp", &position, "g++ -g") else { return };
    let said = reordered(&folder, "Box<long int>", &[]).expect("refused");
    assert!(said.contains("not edited: positional: initialised by position: t.cpp:3:"), "{said}");
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_tuple_struct_of_rust_is_said_not_to_be_supported() {
    let text = "#[repr(C)]\npub struct Tup(u8, u64, u8);\nfn main() {\n    let t = Tup(1, 2, 3);\n    \
                println!(\"{} {} {}\", t.0, t.1, t.2);\n}\n";
    let folder = folder("positional-tuple").canonicalize().expect("it is there");
    std::fs::write(folder.join("t.rs"), text).expect("written");
    if !compiles(Command::new("rustc").current_dir(&folder).args(["-g", "t.rs", "-o", "t"])) {
        return;
    }
    let output = run_in(&folder, &["reorganize", "--unpin", "ends", "--patch", "Tup", "./t"]);
    assert!(
        stderr(&output).contains("Tup: not edited: positional: tuple structs are not supported"),
        "{output:?}"
    );
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn errors_of_a_build_whose_status_is_hidden_are_failures() {
    let text = format!("#include <cstdio>\n{STRUCT}{SHOW}int main() {{ show({{1, 2, 3}}); }}\n");
    let compiler = "g++ -w -g -fdiagnostics-color=always";
    let Some(folder) = project("positional-pipe", "t.cpp", &text, compiler) else { return };
    // an error of another file that is shown without edits, too
    std::fs::write(folder.join("other.cpp"), "int x = y;\n").expect("written");
    let rules =
        format!("all: o t\no: other.cpp\n\tg++ -c other.cpp -o o\nt: t.cpp\n\t{compiler} t.cpp -o t\n");
    std::fs::write(folder.join("Makefile2"), rules).expect("written");
    for build in ["make -s 2>&1 | tee log", "make -s -k -f Makefile2 || true"] {
        let output =
            run_in(&folder, &["reorganize", "--unpin", "ends", "--apply", "--build", build, "S", "./t"]);
        assert!(
            stderr(&output).contains("S: not edited: positional: initialised by position: t.cpp:4:"),
            "{build}: {output:?}"
        );
    }
    // what is there without edits is no failure
    let plain = text.replace("show({1, 2, 3})", "S s; s.a = s.b = s.c = 1; show(s)");
    std::fs::write(folder.join("t.cpp"), plain).expect("written");
    let build = "make -s -k -f Makefile2 || true";
    let output = run_in(&folder, &["reorganize", "--unpin", "ends", "--apply", "--build", build, "S", "./t"]);
    assert!(output.status.success(), "{output:?}");
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn units_that_no_compiler_tells_of_are_named() {
    let folder = folder("positional-untold").canonicalize().expect("it is there");
    std::fs::create_dir_all(folder.join(".git")).expect("a folder");
    // headers of the same length, with structs at the same line
    let of = |name: &str| format!("struct {name} {{ char a; long b; char c; }};\n");
    let files = [
        ("s.h", of("S")),
        ("u.h", of("U")),
        ("a.c", "#include \"s.h\"\n#include \"u.h\"\nextern struct S s;\nint main(void) { struct U u; u.b = 1; return s.b - u.b; }\n".to_owned()),
        ("b.c", "#include \"s.h\"\nstruct S s = {.b = 1};\n".to_owned()),
        ("Makefile", "t: a.c b.c s.h u.h\n\tgcc -g -Wall -c a.c && gcc -g $(W) -c b.c && gcc a.o b.o -o t\n".to_owned()),
    ];
    let write =
        || files.iter().for_each(|(file, text)| std::fs::write(folder.join(file), text).expect("written"));
    write();
    if !compiles(Command::new("make").current_dir(&folder).arg("-s")) {
        return;
    }
    for (build, is_told) in [("make -s W=-Wall", true), ("make -s W=-w", false)] {
        write();
        assert!(compiles(Command::new("make").current_dir(&folder).arg("-s")));
        let output =
            run_in(&folder, &["reorganize", "--unpin", "ends", "--apply", "--build", build, "S", "U", "./t"]);
        assert!(output.status.success(), "{output:?}");
        let note = "as of S, were only searched for in the text of 1 of 2 units that include it";
        assert_eq!(stderr(&output).contains(note), !is_told, "{output:?}");
        assert!(run_in(&folder, &["reorganize", "--undo"]).status.success());
    }
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn links_of_a_copy_lead_into_it_or_stop_the_command() {
    let text = format!("{STRUCT}int main() {{ S s; s.b = 1; return s.b - 1; }}\n");
    let Some(folder) = project("build-links", "t.cpp", &text, "g++ -g") else { return };
    let link = folder.join("out");
    std::fs::create_dir(folder.join("inside")).expect("a folder");
    std::os::unix::fs::symlink(folder.join("inside"), &link).expect("a link");
    let rules = "t: t.cpp\n\tg++ -g -c t.cpp -o out/t.o && g++ out/t.o -o t\n";
    std::fs::write(folder.join("Makefile"), rules).expect("written");
    std::fs::remove_file(folder.join("t")).expect("removed");
    assert!(compiles(Command::new("make").current_dir(&folder).arg("-s")));
    let object = std::fs::read(folder.join("inside/t.o")).expect("read");
    let words = ["reorganize", "--unpin", "ends", "--apply", "--build", "make -s", "S", "./t"];
    let output = run_in(&folder, &words);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read(folder.join("inside/t.o")).expect("read"), object);
    // a folder outside
    let outside = folder.with_extension("outside");
    std::fs::create_dir_all(&outside).expect("a folder");
    std::fs::remove_file(&link).expect("removed");
    std::os::unix::fs::symlink(&outside, &link).expect("a link");
    std::fs::write(folder.join("t.cpp"), text).expect("written");
    assert!(compiles(Command::new("make").current_dir(&folder).arg("-s")));
    let output = run_in(&folder, &words);
    let said = format!("{} is a link to {}, outside of the project", link.display(), outside.display());
    assert!(stderr(&output).contains(&said) && !output.status.success(), "{output:?}");
    std::fs::remove_dir_all(folder).expect("removed");
    std::fs::remove_dir_all(outside).expect("removed");
}

#[test]
fn of_many_structs_those_within_the_allowed_builds_are_edited() {
    let names: Vec<String> = (0..130).map(|at| format!("{}{at}", ["P", "Q"][at % 2])).collect();
    let mut text: String =
        names.iter().map(|name| format!("struct {name} {{ char a; long b; char c; }} v{name};\n")).collect();
    text += "int main() { return 0; }\n";
    let Some(folder) = project("build-many", "t.cpp", &text, "g++ -g") else { return };
    // as a compiler that finds initialisers by position
    let build = "! grep -q 'explicit P' t.cpp && make -s";
    let mut words = vec!["reorganize", "--unpin", "ends", "--apply", "--build", build];
    words.extend(names.iter().map(String::as_str));
    words.push("./t");
    let said = stderr(&run_in(&folder, &words));
    assert!(said.contains("P0: not edited: positional: ") && !said.contains("Q1: not edited"), "{said}");
    assert!(said.contains("Q129: not edited: not-rebuilt: too many builds"), "{said}");
    assert!(!said.contains("the build fails with"), "{said}");
    let edited = std::fs::read_to_string(folder.join("t.cpp")).expect("read");
    assert!(!edited.contains("struct Q1 { char a; long b; char c; }"), "{edited}");
    std::fs::remove_dir_all(folder).expect("removed");
}
