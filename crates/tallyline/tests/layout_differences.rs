//! The differences of `tallyline layout` from pahole: each one that the documentation lists, shown
//! on a struct that is compiled here, and its text by compiling it again. Without a C compiler there is
//! nothing to show, and the tests say so.

mod common;

use common::{folder, run, stdout};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a source to an object file with debug information; none without such a compiler.
fn object(folder: &Path, compiler: &str, flags: &[&str], source: &str) -> Option<String> {
    let (input, output) = (folder.join("types.c"), folder.join("types.o"));
    fs::write(&input, source).expect("written");
    let done = Command::new(compiler).args(["-g", "-c", "-o"]).arg(&output).args(flags).arg(&input).output();
    if !done.as_ref().is_ok_and(|done| done.status.success()) {
        eprintln!("skipped: {compiler} {flags:?}: {done:?}");
        return None;
    }
    Some(output.to_str().expect("a plain path").to_string())
}

/// Asserts that the compiler agrees with a text's assertions.
fn compiles(folder: &Path, text: &str, assertions: &str) {
    let file: PathBuf = folder.join("again.c");
    fs::write(&file, format!("{text}\n{assertions}\n")).expect("written");
    let done = Command::new("cc").arg("-fsyntax-only").arg(&file).output().expect("there is a compiler");
    assert!(done.status.success(), "{}\n{text}", String::from_utf8_lossy(&done.stderr));
}

fn layout(args: &[&str]) -> String {
    let output = run(&[&["layout"], args].concat());
    assert!(output.status.success(), "{output:?}");
    stdout(&output)
}

const OFFSET: &str = "#define AT(t, m, n) _Static_assert(__builtin_offsetof(t, m) == n, #m);\n";

#[test]
fn anonymous_structs_of_clang_are_printed_once() {
    let folder = folder("difference-clang");
    let source = "struct outer { int a; struct { int b; union { long c; char d; }; }; int e; } outer;\n";
    for compiler in ["clang", "cc"] {
        let Some(file) = object(&folder, compiler, &[], source) else { continue };
        let text = layout(&["--compile", "outer", &file]);
        assert_eq!(text.matches(" c; ").count(), 1, "{compiler}: {text}");
        let same = format!(
            "{OFFSET}AT(struct outer, b, 8) AT(struct outer, c, 16) AT(struct outer, e, 24)\n\
             _Static_assert(sizeof(struct outer) == 32, \"size\");"
        );
        compiles(&folder, &text, &same);
    }
}

#[test]
fn members_of_qualified_types_have_their_names() {
    let folder = folder("difference-qualified");
    let source = "struct point { int x, y; };\nstruct outer { const struct { int a; long b; } first; \
                  const struct point second; volatile int last; } outer;\n";
    let Some(file) = object(&folder, "cc", &[], source) else { return };
    let same = format!(
        "{OFFSET}AT(struct outer, first.b, 8) AT(struct outer, second.y, 20) AT(struct outer, last, 24)"
    );
    compiles(&folder, &layout(&["outer", "--compile", &file]), &same);
    let expanded = layout(&["--expand-types", "outer", &file]);
    assert!(expanded.contains("} first;") && expanded.contains("} second;"), "{expanded}");
    compiles(&folder, &expanded, &same);
}

#[test]
fn type_units_are_read() {
    let folder = folder("difference-type-units");
    let source = "struct point { int x, y; };\nstruct outer { struct point from, *to; } outer;\n";
    let Some(plain) = object(&folder, "cc", &[], source) else { return };
    let mut types: Vec<String> = layout(&["--sort", &plain]).split("};\n").map(str::to_string).collect();
    types.sort();
    let Some(units) = object(&folder, "cc", &["-fdebug-types-section"], source) else { return };
    let mut others: Vec<String> = layout(&["--sort", &units]).split("};\n").map(str::to_string).collect();
    others.sort();
    assert_eq!(types, others);
    assert!(types.len() > 2, "{types:?}");
}

/// With a class that one of the units only declares, as its virtual functions are in the other.
#[test]
fn bases_that_have_units_of_their_own_are_read() {
    let folder = folder("difference-base-units");
    let types = "struct Mixin { char tag; };\nstruct Root { virtual ~Root(); int x; };\n\
                 struct Derived : Root, Mixin { char d; Mixin m; };\n";
    fs::write(folder.join("types.h"), types).expect("written");
    fs::write(folder.join("root.cpp"), "#include \"types.h\"\nRoot::~Root() {}\n").expect("written");
    let main = "#include \"types.h\"\nDerived derived;\nint main() { return derived.d; }\n";
    fs::write(folder.join("main.cpp"), main).expect("written");
    for compiler in ["g++", "clang++"] {
        for version in ["-gdwarf-4", "-gdwarf-5"] {
            let build = |name: &str, flags: &[&str]| -> Option<BTreeSet<String>> {
                let mut command = Command::new(compiler);
                command
                    .current_dir(&folder)
                    .args(["-g", version, "root.cpp", "main.cpp", "-o", name])
                    .args(flags);
                let done = command.output();
                if !done.as_ref().is_ok_and(|done| done.status.success()) {
                    eprintln!("skipped: {compiler} {version} {flags:?}: {done:?}");
                    return None;
                }
                let text = layout(&[folder.join(name).to_str().expect("a plain path")]);
                Some(text.split("};\n").map(str::to_owned).collect())
            };
            let (Some(plain), Some(units)) =
                (build("plain", &[]), build("units", &["-fdebug-types-section"]))
            else {
                continue;
            };
            assert_eq!(plain, units, "{compiler} {version}");
            let derived = "struct Derived : Root, Mixin {\n";
            assert!(units.iter().any(|text| text.starts_with(derived)), "{compiler} {version}: {units:?}");
        }
    }
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_hole_before_virtual_bases_is_none_of_a_base() {
    let folder = folder("difference-virtual-holes");
    let source = "struct Base { virtual ~Base() {} int x; char c; };\n\
                  struct Left : virtual Base { int l; };\n\
                  struct Gap : virtual Base { char a; int b; };\n\
                  struct Diamond : Left, Gap { short s; } diamond;\n";
    for compiler in ["g++", "clang++"] {
        let Some(file) = object(&folder, compiler, &["-xc++"], source) else {
            continue;
        };
        let text = layout(&["Diamond", &file]);
        // Left's is 4 bytes behind it, Gap has one between its own members
        assert_eq!(text.matches("/* XXX last struct has 1 hole */").count(), 1, "{compiler}: {text}");
        assert!(text.contains("/* member types with holes: 1, total: 1 */"), "{compiler}: {text}");
        assert!(layout(&["Left", &file]).contains("/* XXX 4 bytes hole, try to pack */"));
    }
}

#[test]
fn pointers_to_arrays_and_to_pointers_to_functions_are_as_declared() {
    let folder = folder("difference-pointers");
    let source = "struct p { int (*rows)[5]; int (**calls)(void); char (*grid)[2][3]; } p;\n";
    let Some(file) = object(&folder, "cc", &[], source) else { return };
    let assertions = "_Static_assert(sizeof(*((struct p *)0)->rows) == 20, \"rows\");\n\
                      _Static_assert(sizeof(*((struct p *)0)->grid) == 6, \"grid\");\n\
                      int f(struct p *p) { return (*p->calls)(); }";
    compiles(&folder, &layout(&["--compile", "p", &file]), assertions);
}

#[test]
fn padding_is_exactly_what_was_asked_for() {
    let folder = folder("difference-padding");
    let source = "struct three { long a; char b[5]; } three; struct seven { long a; char b; } seven;\n";
    let Some(file) = object(&folder, "cc", &[], source) else { return };
    let names = |args: &[&str]| layout(&[&["--sizes"], args, &[&file]].concat());
    assert_eq!(names(&["--padding", "3"]), "three\t16\t0\n");
    assert_eq!(names(&["--padding-at-least", "3"]), "three\t16\t0\nseven\t16\t0\n");
}

#[test]
fn sizes_are_sorted_too() {
    let folder = folder("difference-sort");
    let source = "struct b { int x; } b; struct a { long x; } a; struct c { char x; } c;\n";
    let Some(file) = object(&folder, "cc", &[], source) else { return };
    assert_eq!(layout(&["--sort", "--sizes", &file]), "a\t8\t0\nb\t4\t0\nc\t1\t0\n");
}

#[test]
fn relations_are_looked_for_in_every_unit() {
    let folder = folder("difference-units");
    let shared = "struct shared { int x; };\n";
    for (name, user) in
        [("one", "struct one { struct shared s; } one;"), ("two", "struct two { struct shared s, *p; } two;")]
    {
        let source = format!("{shared}{user}\n");
        if object(&folder, "cc", &[], &source).is_none() {
            return;
        }
        fs::rename(folder.join("types.o"), folder.join(format!("{name}.o"))).expect("renamed");
    }
    let path = |name: &str| folder.join(name).to_str().expect("a plain path").to_string();
    let linked = path("both.o");
    let done = Command::new("ld").args(["-r", "-o", &linked, &path("one.o"), &path("two.o")]).output();
    if !done.is_ok_and(|done| done.status.success()) {
        eprintln!("skipped: ld -r");
        return;
    }
    assert_eq!(layout(&["--contains", "shared", &linked]), "one\ntwo\n");
    assert_eq!(layout(&["--find-pointers-to", "shared", &linked]), "two: p\n");
}

#[test]
fn large_paddings_and_many_holes_are_counted() {
    let folder = folder("difference-large");
    let many: String = (0..300).map(|n| format!("char c{n}; int i{n}; ")).collect();
    let source = format!(
        "struct large {{ char a; }} __attribute__((aligned(131072))) large;\nstruct many {{ {many} }} many;\n"
    );
    let Some(file) = object(&folder, "cc", &[], &source) else { return };
    let large = layout(&["large", &file]);
    assert!(large.contains("/* padding: 131071 */"), "{large}");
    compiles(&folder, &large, "_Static_assert(sizeof(struct large) == 131072, \"size\");");
    assert_eq!(layout(&["--sizes", "--prefix", "many", &file]), "many\t2400\t300\n");
    assert!(layout(&["many", &file]).contains("holes: 300, sum holes: 900"));
}

#[test]
fn a_constant_is_looked_for_in_enumerations_only() {
    let folder = folder("difference-constants");
    let source =
        "enum color { RED, GREEN = 5 }; enum other { NONE }; struct s { enum color c; enum other o; } s;\n";
    let Some(file) = object(&folder, "cc", &[], source) else { return };
    assert_eq!(
        layout(&["--contains-enumerator", "GREEN", &file]),
        "enum color {\n\tRED   = 0,\n\tGREEN = 5,\n}\n"
    );
    let output = run(&["layout", "--contains-enumerator", "BLUE", &file]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{output:?}");
}

#[test]
fn a_header_is_complete_and_in_order() {
    let folder = folder("difference-header");
    let source = "typedef unsigned char byte; typedef struct { byte b; long l; } pair_t; enum kind { ONE, TWO };\n\
                  struct list { struct list *next; }; typedef int (*call_t)(struct list *, pair_t, enum kind);\n\
                  union shadow { int i; }; struct outer { struct list head; pair_t pairs[3]; call_t call; union shadow s; \
                  enum kind kind:4; const byte *bytes; } outer;\n";
    let Some(file) = object(&folder, "cc", &[], source) else { return };
    let assertions = format!(
        "{OFFSET}AT(struct outer, pairs, 8) AT(struct outer, call, 56) AT(struct outer, bytes, 72)\n\
         _Static_assert(sizeof(struct outer) == 80, \"size\");"
    );
    compiles(&folder, &layout(&["--compile", "outer", &file]), &assertions);
    // every type of the file, each once
    compiles(&folder, &layout(&["--compile", &file]), &assertions);
}

#[test]
fn a_header_of_what_c_declares_in_a_roundabout_way_compiles() {
    let folder = folder("differences-roundabout");
    // a base that holds a pointer to what holds the base, by typedefs: as in Python's headers
    let source = "\
typedef struct object object_t; typedef struct kind kind_t;
struct object { long count; kind_t *kind; };
struct kind { object_t base; const char *name; struct { kind_t *of; } many[2]; };
struct table { void (*exits[4])(int); int (*(*more[2]))(void); void (*gone)(void) __attribute__((noreturn));
  _Bool a : 1; unsigned char : 2; _Bool b : 1; };
struct table table; struct kind kind;
";
    let Some(file) = object(&folder, "gcc", &["-O0"], source) else { return };
    let header = layout(&["--compile", &file]);
    assert!(header.contains("(*exits[4])(int);") && header.contains("(*gone)(void);"), "{header}");
    let assertions = "_Static_assert(sizeof(struct kind) == 40 && sizeof(struct object) == 16, \"\");
        _Static_assert(sizeof(struct table) == 64 && __builtin_offsetof(struct table, gone) == 48, \"\");";
    compiles(&folder, &header, assertions);
}

#[test]
fn the_kernel_s_types_compile_to_the_same_sizes() {
    let kernel = "/sys/kernel/btf/vmlinux";
    if !Path::new(kernel).exists()
        || !Command::new("cc").arg("--version").output().is_ok_and(|o| o.status.success())
    {
        eprintln!("skipped: no {kernel}, or no C compiler");
        return;
    }
    let folder = folder("difference-kernel");
    let names = ["task_struct", "sk_buff", "tcp_sock", "net_device"];
    let header = layout(&[&["--compile"], &names[..], &[kernel]].concat());
    // a typedef that only functions name stands for what it does in the kernel
    assert!(!header.contains("typedef void s32;"), "{header}");
    let sizes = layout(&[&["--sizes"], &names[..], &[kernel]].concat());
    let assertion = |line: &str| {
        let mut columns = line.split('\t');
        let (name, size) = (columns.next()?, columns.next()?);
        Some(format!("_Static_assert(sizeof(struct {name}) == {size}, \"{name}\");\n"))
    };
    let assertions: String = sizes.lines().filter(|line| !line.is_empty()).filter_map(assertion).collect();
    assert_eq!(assertions.lines().count(), 4, "{sizes}");
    compiles(&folder, &header, &assertions);
}

#[test]
fn of_types_that_differ_only_in_the_types_of_members_the_first_is_shown_sorted_or_not() {
    let folder = folder("difference-sort");
    for (name, text) in [("one.c", "struct s { int a; } x;"), ("two.c", "struct s { float a; } y;")] {
        fs::write(folder.join(name), text).expect("written");
    }
    let file = folder.join("both.o");
    let mut compiler = Command::new("cc");
    compiler.args(["-g", "-r", "-nostdlib", "-o"]).arg(&file);
    compiler.args(["one.c", "two.c"].map(|name| folder.join(name)));
    if !compiler.output().is_ok_and(|done| done.status.success()) {
        eprintln!("skipped: no compiler that links object files");
        return;
    }
    let file = file.to_str().expect("a plain path");
    for options in [&["--sort"][..], &[]] {
        let text = layout(&[options, &["--file", file]].concat());
        assert_eq!(text.matches("struct s {").count(), 1, "{text}");
        assert!(text.contains("int                        a;"), "{text}");
    }
    // both are counted
    assert_eq!(layout(&["--definitions", "--file", file]), "s\t2\n");
}

#[test]
fn lines_beyond_65535_are_counted() {
    let folder = folder("difference-lines");
    let source = "\n".repeat(70_000) + "struct far { int a; } far;\n";
    let Some(file) = object(&folder, "cc", &[], &source) else { return };
    let text = layout(&["--positions", "far", &file]);
    assert!(text.contains("types.c:70001 */\nstruct far {"), "{text}");
}

/// Returns the names, offsets and types of a struct's members, as the file has them.
fn members(name: &str, file: &str) -> Vec<String> {
    let document: serde_json::Value =
        serde_json::from_str(&layout(&["--format", "json", name, file])).expect("JSON");
    let members = document["types"][0]["members"].as_array().expect("members").iter();
    members
        .map(|member| {
            format!("{} {} {} {}", member["name"], member["offset"], member["type"], member["dims"])
        })
        .collect()
}

#[test]
fn nested_declarators_and_complex_numbers_compile_to_the_same_types() {
    let folder = folder("difference-declarators");
    let nested = "int (*(*a)(int))[7]; _Complex float z; char (*d[3])[4]; int (*(*f)(void))(char);
  int (*(*(*g)[2])(void))[3]; void (*(*sig)(int, void (*)(int)))(int);
  char *(*(*x)[3])(int (*)[4], char (*(*)(void))[5]); _Complex double w; _Complex long double v; int (*m[2][3])[4];";
    let more = "const char *const (*names)[2]; int *_Atomic api; volatile int *volatile vp; int *restrict rp;
  int (*fp[2])(void); unsigned char (*const cfp)(void); const char *const strings[3]; int *const *const deep;
  _Complex int whole; int (*const table[2])(int (*row)[4]);";
    let source = format!("struct nested {{ {nested} }} n;\nstruct all {{ {nested} {more} }} a;\n");
    for compiler in ["gcc", "clang"] {
        let Some(file) = object(&folder, compiler, &[], &source) else { continue };
        // as pahole prints it where it can, and as a header
        for (name, options) in [("nested", &[][..]), ("nested", &["--compile"]), ("all", &["--compile"])] {
            let expected = members(name, &file);
            assert!(expected.len() >= 10, "{expected:?}");
            let text = layout(&[options, &[name, &file]].concat());
            let again = folder.join("again");
            fs::create_dir_all(&again).expect("a folder");
            let text = format!("{text}\nstruct {name} use;\n");
            let Some(compiled) = object(&again, compiler, &["-Werror"], &text) else {
                panic!("{compiler}, {options:?}: {text}")
            };
            assert_eq!(members(name, &compiled), expected, "{compiler}, {options:?}: {text}");
        }
    }
}

#[test]
fn a_header_has_the_attributes_that_lay_its_types_out() {
    let folder = folder("difference-attributes");
    let source = "struct cut { char a; int b __attribute__((packed)); long c; };
struct wide { char a; union { int i; char c; } u __attribute__((aligned(32))); };
union large { char c; int i; } __attribute__((aligned(64)));
#pragma pack(push, 2)
struct limited { char a; long b; int c; };
#pragma pack(pop)
struct __attribute__((packed, aligned(2))) two { char a; int b; };
struct gap { char a; int : 9; int b : 3; char c; int : 0; char d; };
typedef struct { char a; long b; } __attribute__((aligned(32))) typed_t;
struct all { char a; struct cut cut; char b; struct wide wide; union large large; char c; struct limited limited;
  struct two two; struct gap gap; char d; typed_t typed; char e; struct { char x; int y; } __attribute__((packed)) in; } all;
";
    for compiler in ["gcc", "clang"] {
        let Some(file) = object(&folder, compiler, &[], source) else { continue };
        let text = layout(&["--compile", "all", &file]);
        let again = folder.join("again");
        fs::create_dir_all(&again).expect("a folder");
        let compiled =
            object(&again, compiler, &[], &format!("{text}\nstruct all use;\n")).expect("compiles");
        for name in ["all", "cut", "wide", "large", "limited", "two", "gap"] {
            assert_eq!(members(name, &compiled), members(name, &file), "{compiler}, {name}: {text}");
        }
        assert_eq!(
            layout(&["--sizes", "--sort", &compiled]),
            layout(&["--sizes", "--sort", &file]),
            "{text}"
        );
    }
}

#[test]
fn what_an_abi_aligns_to_less_than_its_size_is_not_packed() {
    let folder = folder("difference-packed");
    let source = "struct halves { int i; double d; long long l; } h; struct complex_at_8 { long a; double _Complex z; } c;
typedef unsigned long long compat_t __attribute__((aligned(4))); struct compat { int i; compat_t c; } t;\n";
    for flags in [&["-m32"][..], &[]] {
        let Some(file) = object(&folder, "gcc", flags, source) else { continue };
        for name in
            if flags.is_empty() { &["complex_at_8", "compat"][..] } else { &["halves", "complex_at_8"] }
        {
            let text = layout(&[name, &file]);
            assert!(!text.contains("__packed__"), "{flags:?}: {text}");
        }
    }
}
