//! The layout of C++ classes equals the compiler's: every offset and size is asserted by a
//! program that the same compiler makes of the same source.

mod common;

use common::{compile, folder, run};
use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::model::{Member, MemberKind, Pointer, Record, Type, TypeId, Types};
use tallyline_debuginfo::{Request, Wanted, read};
use tallyline_layout::print::pahole::{Printer, Style};
use tallyline_layout::query::fields;

const SOURCE: &str = include_str!("data/languages/classes.cpp");

/// The helpers of the assertions; `base_offset` makes an object, as a virtual base needs one.
const PRELUDE: &str = "
#include <cstdio>
#include <new>
static int wrong;
template <class C, class B> static void base_offset(const char *name, long expected) {
  alignas(C) static char memory[sizeof(C)];
  C *object = new (memory) C();
  long offset = (char *)static_cast<B *>(object) - (char *)object;
  if (offset != expected) { std::printf(\"%s: %ld, not %ld\\n\", name, offset, expected); wrong = 1; }
}
";

/// The check of one field's offset.
const FIELD: &str = "
#include <cstdio>
#include <new>
static int wrong;
#define FIELD(C, M, expected) do { \\
  alignas(C) static char memory[sizeof(C)]; \\
  C *object = new (memory) C(); \\
  long offset = (char *)&object->M - (char *)object; \\
  if (offset != expected) { std::printf(\"%s::%s: %ld, not %d\\n\", #C, #M, offset, expected); wrong = 1; } \\
} while (0)
";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn is_reference(types: &Types, id: TypeId) -> bool {
    matches!(types.get(id), Type::Pointer { kind: Pointer::Reference | Pointer::RvalueReference, .. })
}

/// Appends the assertions about one class, and returns their number.
fn assert_class(
    types: &Types,
    id: TypeId,
    record: &Record,
    scope: &str,
    into: &mut (String, String),
) -> usize {
    let class = text(&types.qualified_name(id));
    let mut count = 1;
    writeln!(into.0, "static_assert(sizeof({class}) == {}, \"{class}\");", record.size).expect("memory");
    for member in types.members(record) {
        let name = text(types.name(member.name));
        match member.kind {
            MemberKind::Data if member.bitfield.is_none() && !member.artificial && !name.is_empty() => {
                count += assert_member(types, member, &class, &name, &mut into.0);
            }
            MemberKind::Base | MemberKind::VirtualBase => {
                let base = types.type_name(types.strip(member.ty));
                let base = format!("{scope}{}", text(types.name(base)));
                let base = base.replace("probe::Hidden", "probe::inner::Hidden");
                assert!(member.is_placed(), "{class}: {base} has no place");
                writeln!(into.1, "base_offset<{class}, {base}>(\"{class}\", {});", member.offset)
                    .expect("memory");
                count += 1;
            }
            _ => {}
        }
    }
    count
}

fn assert_member(types: &Types, member: &Member, class: &str, name: &str, into: &mut String) -> usize {
    let place = format!("__builtin_offsetof({class}, {name})");
    if !is_reference(types, member.ty) {
        writeln!(into, "static_assert({place} == {}, \"{class}::{name}\");", member.offset).expect("memory");
        let size = format!("sizeof((({class} *)0)->{name})");
        let is_open = matches!(types.get(member.ty), Type::Array(_)) && member.size == 0;
        if !member.overlaid && !is_open {
            writeln!(into, "static_assert({size} == {}, \"{class}::{name}\");", member.size).expect("memory");
        }
        return 2;
    }
    0
}

/// Compiles a source, asserts what was read of it, and runs it; how many assertions held.
fn prove(folder: &Path, compiler: &str, flags: &[&str], source: &str) -> usize {
    let all: Vec<&str> = flags.iter().copied().chain(["-g", "-w", "-std=c++20"]).collect();
    // without a use clang writes nothing
    let used = format!("{source}\n{}", uses(source));
    let object = compile(folder, compiler, "classes.cpp", &used, &all);
    let types = read(&object, &Request::default()).expect("readable");
    prove_types(folder, compiler, &all, &types, &used)
}

/// Asserts what was read of classes, and runs that; how many assertions held.
fn prove_types(folder: &Path, compiler: &str, flags: &[&str], types: &Types, source: &str) -> usize {
    let mut assertions = (String::new(), String::new());
    let mut count = 0;
    for (id, record) in lookup::distinct_records(types) {
        let record = types.record(record);
        if text(&types.qualified_name(id)).starts_with("probe::") {
            count += assert_class(types, id, record, "probe::", &mut assertions);
        }
    }
    let (fixed, at_run_time) = assertions;
    let program = format!("{source}\n{PRELUDE}\n{fixed}\nint main() {{\n{at_run_time}\nreturn wrong;\n}}\n");
    let path = folder.join("proof.cpp");
    std::fs::write(&path, program).expect("writable");
    let proof = folder.join("proof");
    run(Command::new(compiler)
        .args(flags)
        .args(["-fno-access-control", "-Wno-invalid-offsetof", "-o"])
        .arg(&proof)
        .arg(&path));
    run(&mut Command::new(&proof));
    count
}

/// Returns an object of every class that is declared in the namespace itself.
fn uses(source: &str) -> String {
    let names = source.lines().filter_map(|line| {
        let rest = line.strip_prefix("struct ").or_else(|| line.strip_prefix("union "))?;
        let rest = rest.trim_start_matches("alignas(64) ");
        rest.split([' ', '{', ':']).next().map(String::from)
    });
    let used = names.map(|name| format!("probe::{name} *use_{name} = new probe::{name}();\n"));
    used.collect()
}

fn everywhere(name: &str, source: &str, least: usize, versions: usize) {
    for compiler in ["g++", "clang++"] {
        let Some(folder) = folder(&format!("{name}-{compiler}"), compiler) else { continue };
        // clang writes what is not needed to run only when asked
        let variants: [&[&str]; 3] = match compiler {
            "g++" => [&["-gdwarf-4"], &["-gdwarf-5"], &["-gdwarf-5", "-fdebug-types-section"]],
            _ => [
                &["-gdwarf-4", "-fstandalone-debug"],
                &["-fstandalone-debug"],
                &["-gdwarf-5", "-fstandalone-debug"],
            ],
        };
        for flags in variants.into_iter().take(versions) {
            let count = prove(&folder, compiler, flags, source);
            assert!(count >= least, "{compiler} {flags:?}: only {count} assertions");
        }
        std::fs::remove_dir_all(folder).expect("removable");
    }
}

#[test]
fn classes_lie_where_compilers_put_them() {
    everywhere("classes", SOURCE, 135, 3);
}

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Classes that derive from each other, virtually or not, so that no base is ambiguous.
fn hierarchies(seed: u64, classes: usize) -> String {
    let mut numbers = Numbers(seed);
    let mut source = String::from("namespace probe {\n");
    // of each class: every base, and whether it is virtual
    let mut bases_of: Vec<Vec<(usize, bool)>> = Vec::new();
    for class in 0..classes {
        let (mut all, mut list): (Vec<(usize, bool)>, Vec<String>) = (Vec::new(), Vec::new());
        for _ in 0..numbers.below(4).min(class as u64) {
            let base = numbers.below(class as u64) as usize;
            let is_virtual = numbers.below(2) == 0;
            let mut new = bases_of[base].clone();
            new.push((base, is_virtual));
            // one that is there already has to be virtual both times, and not named twice
            let fits = |one: &(usize, bool)| {
                all.iter().all(|known| known.0 != one.0 || known.1 && one.1 && one.0 != base)
            };
            if new.iter().all(fits) {
                all.extend(new);
                list.push(format!("{}C{base}", if is_virtual { "virtual " } else { "" }));
            }
        }
        let bases = if list.is_empty() { String::new() } else { format!(" : {}", list.join(", ")) };
        write!(source, "struct C{class}{bases} {{ ").expect("memory");
        if numbers.below(3) == 0 {
            write!(source, "virtual void f{class}() {{}} ").expect("memory");
        }
        // non-empty: where empty bases lie is not said
        let least = u64::from(!source.ends_with("{} "));
        for member in 0..least + numbers.below(3) {
            let ty = ["char", "short", "int", "long", "void *", "long double"][numbers.below(6) as usize];
            write!(source, "{ty} m{class}_{member}; ").expect("memory");
        }
        source.push_str("};\n");
        bases_of.push(all);
    }
    source + "}\n"
}

#[test]
fn virtual_bases_lie_where_compilers_put_them_in_any_hierarchy() {
    for seed in 0..4 {
        everywhere("hierarchies", &hierarchies(seed, 40), 40, 1);
    }
}

#[test]
fn fields_of_any_hierarchy_lie_where_compilers_put_them() {
    for compiler in ["g++", "clang++"] {
        let Some(folder) = folder(&format!("fields-{compiler}"), compiler) else { continue };
        for seed in 0..2 {
            let source = hierarchies(seed, 40);
            let source = format!("{source}\n{}", uses(&source));
            let flags = ["-g", "-w", "-std=c++20"];
            let object = compile(&folder, compiler, "classes.cpp", &source, &flags);
            let types = read(&object, &Request::default()).expect("readable");
            let (mut checks, mut count) = (String::new(), 0);
            for (id, record) in lookup::distinct_records(&types) {
                let class = text(&types.qualified_name(id));
                let mut names = HashSet::new();
                for field in fields(&types, types.record(record)) {
                    let name = text(types.name(field.name()));
                    if !name.starts_with('m') {
                        continue;
                    }
                    assert!(names.insert(name.clone()), "{compiler}, seed {seed}: {class} has two {name}");
                    let offset = field.start();
                    writeln!(checks, "FIELD({class}, {name}, {offset});").expect("memory");
                    count += 1;
                }
            }
            assert!(count > 100, "{compiler}, seed {seed}: only {count} fields");
            let program = format!("{source}\n{FIELD}\nint main() {{\n{checks}return wrong;\n}}\n");
            compile(&folder, compiler, "fields.cpp", &program, &["-w", "-std=c++20"]);
            let proof = folder.join("fields");
            run(Command::new(compiler).arg(folder.join("fields.o")).arg("-o").arg(&proof));
            run(&mut Command::new(&proof));
        }
        std::fs::remove_dir_all(folder).expect("removable");
    }
}

#[test]
fn virtual_bases_with_members_of_no_bytes_are_the_start_of_a_class_where_compilers_say_so() {
    // of `Two` and `None` GCC 12 and clang 14 disagree, so that each compiler asserts its own
    let source = "\
namespace probe {
struct E {}; struct F {};
struct Over { [[no_unique_address]] E e; virtual void f() {} };
struct Both { [[no_unique_address]] E e; [[no_unique_address]] F h; virtual void f() {} };
struct Two { [[no_unique_address]] E e; [[no_unique_address]] E h; virtual void f() {} };
struct None { int z[0]; virtual void f() {} };
struct Byte { E e; virtual void f() {} };
struct Further : Over { virtual void g() {} };
struct D0 : virtual Over { int x; };
struct D1 : virtual Both { virtual void g() {} int x; };
struct D2 : virtual Two { int x; };
struct D3 : virtual None { int x; };
struct D4 : virtual Byte { int x; };
struct D5 : virtual Further { char x; };
struct D6 : virtual Byte, virtual Over { int x; };
struct D7 : virtual Over, virtual Both { int x; };
struct D8 : D0, virtual Over { int y; };
}
";
    everywhere("nearly-empty", source, 40, 3);
}

#[test]
fn virtual_bases_of_bases_are_expanded_once() {
    let source = "
struct Root { virtual ~Root() {} int a; };
struct Mid : virtual Root { int b; };
struct Most : Mid { long e; char pad[64]; } most;
";
    for compiler in ["g++", "clang++"] {
        let Some(folder) = folder(&format!("expanded-{compiler}"), compiler) else { continue };
        let object = compile(&folder, compiler, "most.cpp", source, &["-g"]);
        let types = read(&object, &Request::default()).expect("readable");
        let most = lookup::find(&types, b"Most").expect("there");
        let style = Style { expand_types: true, ..Style::default() };
        let mut printer = Printer::new(&types, style);
        printer.print(most);
        let text = text(printer.text());
        let lines_of = |wanted: &str| text.lines().filter(|line| line.contains(wanted)).collect::<Vec<_>>();
        let [a] = lines_of(" a; ")[..] else { panic!("{compiler}: {text}") };
        assert!(a.ends_with("/*    96     4 */"), "{compiler}: {text}");
        // the one in front of `e`
        assert_eq!(lines_of("4 bytes hole").len(), 1, "{compiler}: {text}");
        std::fs::remove_dir_all(folder).expect("removable");
    }
}

const TWO_UNITS: &str = "
namespace probe {
struct Key { virtual void key(); int a; char tail; };
struct Second { virtual ~Second(); long b; };
struct Mid : virtual Key { virtual void mid(); short c; };
struct Side : virtual Key { char s; };
struct Derived : Mid, Second { char d; int e; };
struct Diamond : Mid, Side { char f; };
struct Holder { Key held; char after; Mid other; char last; };
template <class T> struct Tm { virtual void virtually(); T value; };
extern template struct Tm<char>;
struct OfTemplate : Tm<char> { char g; };
}
";

/// A unit that makes a compiler write the classes of which the other needs no more than the name.
const SECOND_UNIT: &str = "
void probe::Key::key() {}
probe::Second::~Second() {}
void probe::Mid::mid() {}
template <class T> void probe::Tm<T>::virtually() {}
template struct probe::Tm<char>;
";

#[test]
fn classes_that_a_unit_only_declares_are_found_in_others() {
    for compiler in ["g++", "clang++"] {
        let Some(folder) = folder(&format!("two-units-{compiler}"), compiler) else { continue };
        let flags = ["-g", "-w", "-std=c++20", "-fPIC"];
        let names = ["Derived", "Diamond", "Holder", "OfTemplate"];
        let uses: String =
            names.map(|name| format!("probe::{name} *use_{name} = new probe::{name}();\n")).concat();
        let first = compile(&folder, compiler, "first.cpp", &format!("{TWO_UNITS}{uses}"), &flags);
        compile(&folder, compiler, "second.cpp", &format!("{TWO_UNITS}{SECOND_UNIT}"), &flags);
        let both = folder.join("both.so");
        let objects = ["first.o", "second.o"].map(|name| folder.join(name));
        run(Command::new(compiler).arg("-shared").args(objects).arg("-o").arg(&both));
        let both = std::fs::read(both).expect("made");

        let types = read(&both, &Request::default()).expect("readable");
        let source = format!("{TWO_UNITS}{SECOND_UNIT}{uses}");
        let count = prove_types(&folder, compiler, &flags, &types, &source);
        assert!(count >= 35, "{compiler}: only {count} assertions");
        // one by name is the same
        for name in names {
            let base_of = |bytes: &[u8]| {
                let wanted = Wanted::named([name]);
                let types = read(bytes, &Request { wanted, ..Request::default() }).expect("readable");
                let (_, record) = types.as_record(types.listed()[0]).expect("a record");
                let members = types.members(record).iter().map(|member| (member.offset, member.size));
                members.collect::<Vec<_>>()
            };
            let (whole, alone) = (base_of(&both), base_of(&first));
            assert!(whole.iter().any(|(_, size)| *size > 2), "{compiler} {name}: {whole:?}");
            // what this is about: the first unit alone does not have it all; clang has more
            assert!(compiler == "clang++" || whole != alone, "{compiler} {name}");
        }
        std::fs::remove_dir_all(folder).expect("removable");
    }
}
