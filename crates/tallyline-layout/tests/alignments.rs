//! Alignments are the compilers': for several machines, of attributes, vectors, complex and atomic
//! numbers, and of C++'s library; and nothing that follows from them counts as packed.

mod common;

use common::{compile, folder};
use std::fmt::Write;
use std::process::Command;
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::model::Types;
use tallyline_debuginfo::{Request, read};
use tallyline_layout::print::pahole::{Printer, Style};
use tallyline_layout::query::Effective;
use tallyline_layout::reorganize::{Reorganization, ReorganizeOptions, Reorganizer};

const OF_C: &str = "\
typedef int v16 __attribute__((vector_size(16))); typedef int v32 __attribute__((vector_size(32)));
typedef int v8 __attribute__((vector_size(8))); typedef char v4 __attribute__((vector_size(4)));
typedef long long less __attribute__((aligned(4))); typedef int more __attribute__((aligned(32)));
#define EACH \\
  X(a1, v16) X(a2, v32) X(a3, v8) X(a4, v4) X(a5, long double) X(a6, double) X(a7, long long) \\
  X(a8, _Complex float) X(a9, _Complex double) X(b1, _Complex long double) X(b2, _Atomic long long) \\
  X(b3, _Atomic double) X(b4, _Atomic _Complex float) X(b5, struct pair) X(b6, less) X(b7, more) \\
  X(b8, struct two) X(b9, enum byte) X(c1, struct tight *) X(c2, struct atomic) X(c3, _Complex short) \\
  X(c4, union both) X(c5, struct bits) X(c6, long) X(c7, struct cut)
struct pair { long long first, second; };
struct __attribute__((packed)) tight { char c; long long l; };
struct __attribute__((packed, aligned(2))) two { char c; int i; };
enum __attribute__((packed)) byte { BYTE };
struct atomic { _Atomic struct pair pair; };
union both { double d; char c[3]; };
struct bits { unsigned a : 3; unsigned long long b : 40; };
#pragma pack(push, 2)
struct cut { char c; long long l; };
#pragma pack(pop)
#define X(name, type) struct name { char before; type x; }; struct name v_##name;
EACH
#undef X
struct tight t;
struct ints { int a, b; }; struct __attribute__((packed)) holder { char c; struct ints ints; }; struct holder holder;
";

/// The compilers, by machine.
const COMPILERS: [(&str, &[&str]); 11] = [
    ("cc", &[]),
    ("cc", &["-m32"]),
    ("cc", &["-m32", "-msse2"]),
    ("aarch64-linux-gnu-gcc", &[]),
    ("s390x-linux-gnu-gcc", &[]),
    ("s390x-linux-gnu-gcc", &["-march=z14"]),
    ("clang", &[]),
    ("clang", &["-m32"]),
    ("clang", &["-target", "arm-linux-gnueabihf"]),
    ("clang", &["-target", "powerpc64le-linux-gnu"]),
    ("clang", &["-target", "riscv64-linux-gnu"]),
];

fn types_of(object: &[u8]) -> Types {
    read(object, &Request::default()).expect("readable")
}

/// Returns assertions of every alignment, which the compiler that made the file has to agree with; none but
/// those of these names may be shown as packed or refused.
fn assertions(types: &Types, packed: &[&str]) -> (String, usize) {
    let mut effective = Effective::new(types);
    let reorganizer = Reorganizer::new(types, ReorganizeOptions::default());
    let (mut text, mut count) = (String::new(), 0);
    for (id, record) in lookup::distinct_records(types) {
        let name = String::from_utf8_lossy(types.name(types.type_name(id))).into_owned();
        if name.contains(['<', ' ']) {
            continue;
        }
        let keyword = if types.record(record).is_union() { "union" } else { "struct" };
        let (align, size) = (effective.of(types, id), types.record(record).size);
        // gcc without AVX says 16 of a struct of 32-byte vectors, and aligns it to 32
        writeln!(text, "struct in_{name} {{ char c; {keyword} {name} x; }};").expect("memory");
        writeln!(
            text,
            "_Static_assert(__builtin_offsetof(struct in_{name}, x) == {align}, \"{name}: {align}\");"
        )
        .expect("memory");
        writeln!(text, "_Static_assert(sizeof({keyword} {name}) == {size}, \"{name}\");").expect("memory");
        count += 1;
        assert_eq!(effective.is_packed(types, record), packed.contains(&&*name), "{name}");
        if !packed.contains(&&*name) {
            let outcome = reorganizer.propose(id);
            let is_refused =
                matches!(outcome, Reorganization::Refused(_)) && types.record(record).is_struct();
            assert!(!is_refused, "{name}: {outcome:?}");
            let mut printer = Printer::new(types, Style::default());
            printer.print(id);
            let shown = String::from_utf8_lossy(printer.text()).into_owned();
            assert!(!shown.contains("__packed__"), "{shown}");
        }
    }
    (text, count)
}

#[test]
fn alignments_are_those_of_the_compilers_of_many_machines() {
    for (compiler, flags) in COMPILERS {
        let Some(folder) = folder(&format!("alignments-{}", flags.concat()), compiler) else { continue };
        // of clang's targets, and of -m32, the compiler may have no part
        std::fs::write(folder.join("probe.c"), "int x;").expect("writable");
        let mut probe = Command::new(compiler);
        probe.current_dir(&folder).args(flags).args(["-c", "probe.c", "-o", "probe.o"]);
        if !probe.output().is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: {compiler} {flags:?}");
            continue;
        }
        let object = compile(&folder, compiler, "types.c", OF_C, &[flags, &["-g", "-w"]].concat());
        let (text, count) = assertions(&types_of(&object), &["tight", "two", "cut", "holder"]);
        assert!(count > 30, "{count}");
        compile(&folder, compiler, "again.c", &format!("{OF_C}{text}"), &[flags, &["-w"]].concat());
        std::fs::remove_dir_all(folder).expect("removable");
    }
}

const OF_CPP: &str = "\
#include <any>
#include <array>
#include <atomic>
#include <bitset>
#include <chrono>
#include <complex>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>
struct empty {}; struct wide { alignas(32) char c; }; struct base { long l; char c; };
struct derived : base { char d; }; struct plain : empty { int i; };
struct virt { virtual ~virt() {} char c; };
typedef std::pair<char, long> pair_t; typedef std::map<int, long> map_t; typedef std::tuple<char, long, int> tuple_t;
typedef std::variant<char, double> variant_t; typedef std::variant<int, std::string> variant2_t;
typedef std::array<short, 3> array_t; typedef std::unordered_map<int, int> hash_t;
typedef void (empty::*method_t)(); typedef int empty::*field_t;
#define EACH \\
  X(a1, std::optional<long>) X(a2, std::optional<char>) X(a3, std::optional<std::string>) X(a4, std::string) \\
  X(a5, std::vector<int>) X(a6, pair_t) X(a7, map_t) X(a8, tuple_t) X(a9, variant_t) X(b1, variant2_t) \\
  X(b2, array_t) X(b3, hash_t) X(b4, std::unique_ptr<int>) X(b5, std::shared_ptr<int>) X(b6, std::any) \\
  X(b7, std::function<void()>) X(b8, std::mutex) X(b9, std::atomic<long>) X(c1, std::atomic<char>) \\
  X(c2, std::bitset<9>) X(c3, std::deque<int>) X(c4, std::list<int>) X(c5, std::set<int>) \\
  X(c6, std::string_view) X(c7, std::thread) X(c8, std::complex<float>) X(c9, std::chrono::seconds) \\
  X(d1, empty) X(d2, wide) X(d3, derived) X(d4, plain) X(d5, virt) X(d6, std::nullptr_t) X(d7, method_t) \\
  X(d8, field_t) X(d9, std::optional<wide>)
#define X(name, type) struct name { char before; type x; bool after; }; name v_##name;
EACH
#undef X
struct P { bool b; std::optional<long> c; int i; bool z; } p;
";

#[test]
fn types_of_the_library_of_cpp_align_as_the_compiler_says_and_are_not_packed() {
    // clang leaves the library's own types to the library's debug information
    for (compiler, whole) in [("g++", "-O0"), ("clang++", "-fstandalone-debug")] {
        let Some(folder) = folder(&format!("alignments-{compiler}"), compiler) else { continue };
        let object = compile(&folder, compiler, "types.cc", OF_CPP, &["-std=c++17", "-g", "-w", whole]);
        let types = types_of(&object);
        let mut effective = Effective::new(&types);
        let reorganizer = Reorganizer::new(&types, ReorganizeOptions::default());
        let (mut text, mut count) = (String::new(), 0);
        for (id, record) in lookup::distinct_records(&types) {
            let name = String::from_utf8_lossy(types.name(types.type_name(id))).into_owned();
            if name.len() > 2 && name != "P" || types.path(id).is_some() {
                continue;
            }
            let align = effective.of(&types, id);
            writeln!(text, "static_assert(alignof({name}) == {align}, \"{name}: {align}\");")
                .expect("memory");
            assert!(!effective.is_packed(&types, record), "{name}");
            let outcome = reorganizer.propose(id);
            assert!(!matches!(outcome, Reorganization::Refused(_)), "{compiler}, {name}: {outcome:?}");
            count += 1;
        }
        assert!(count > 30, "{count}");
        compile(&folder, compiler, "again.cc", &format!("{OF_CPP}{text}"), &["-std=c++17", "-w"]);
        std::fs::remove_dir_all(folder).expect("removable");
    }
}

/// Returns the name, the first byte and the size of each member.
fn members(types: &Types, name: &[u8]) -> (u64, Vec<(String, u64, u64)>) {
    let id = lookup::find(types, name).expect("defined");
    let (_, record) = types.as_record(id).expect("a record");
    let members = types.members(record).iter();
    let each = members.map(|member| {
        assert!(member.bitfield.is_none(), "no bitfield");
        (String::from_utf8_lossy(types.name(member.name)).into_owned(), member.offset, member.size)
    });
    (record.size, each.collect())
}

fn of(name: &str, offset: u64, size: u64) -> (String, u64, u64) {
    (name.to_string(), offset, size)
}

#[test]
fn atomics_that_clang_pads_lie_where_it_puts_them() {
    // as the program says that prints `__builtin_offsetof` of each
    let known = types_of(include_bytes!("data/alignments/atomics-clang.o"));
    let mut all = vec![known];
    if let Some(folder) = folder("alignments-atomics", "clang") {
        let source = include_str!("data/alignments/atomics.c");
        for flags in [&["-g"][..], &["-gdwarf-4"], &["-gdwarf-5", "-O2"]] {
            all.push(types_of(&compile(&folder, "clang", "atomics.c", source, flags)));
        }
        std::fs::remove_dir_all(folder).expect("removable");
    }
    for types in all {
        let (size, three) = members(&types, b"three");
        assert_eq!((size, three), (28, vec![of("a", 0, 18), of("d", 20, 4), of("after", 24, 1)]));
        let (size, many) = members(&types, b"many");
        let expected = [
            of("t", 0, 1),
            of("d", 4, 4),
            of("s", 8, 2),
            of("e", 16, 16),
            of("big", 32, 20),
            of("last", 52, 1),
        ];
        assert_eq!((size, many), (64, expected.to_vec()));
        let reorganizer = Reorganizer::new(&types, ReorganizeOptions::default());
        for name in [b"three".as_slice(), b"many"] {
            let outcome = reorganizer.propose(lookup::find(&types, name).expect("defined"));
            assert!(!matches!(outcome, Reorganization::Refused(_)), "{outcome:?}");
        }
    }
}

#[test]
fn bitfields_that_end_behind_their_units_lie_where_the_compiler_puts_them() {
    // before DWARF 5 such a field's first bit is -N, counted from the other end: N bits are behind the unit
    let mut source = String::new();
    for bits in 1..=16 {
        write!(
            source,
            "struct __attribute__((packed)) s{bits} {{ char a[3]; unsigned b : {}; char c; }} v{bits};",
            8 + bits
        )
        .expect("memory");
    }
    for compiler in ["cc", "clang"] {
        let Some(folder) = folder(&format!("bitfields-{compiler}"), compiler) else { continue };
        for version in ["-gdwarf-2", "-gdwarf-3", "-gdwarf-4", "-gdwarf-5"] {
            let types = types_of(&compile(&folder, compiler, "bits.c", &source, &["-g", version]));
            for bits in 1..=16 {
                let id = lookup::find(&types, format!("s{bits}").as_bytes()).expect("defined");
                let (_, record) = types.as_record(id).expect("a record");
                let member = types.members(record)[1];
                let size = member.bitfield.map(|field| field.size);
                assert_eq!((member.bit_offset, size), (24, Some(8 + bits)), "{compiler} {version}: s{bits}");
            }
        }
        std::fs::remove_dir_all(folder).expect("removable");
    }
}

#[test]
fn classes_with_virtual_bases_are_aligned_as_their_members_were_declared() {
    let source = "struct base { virtual void f(); int i; }; void base::f() {}\n\
                  struct line : virtual base { alignas(64) long hot; char cold[9]; line(); }; line::line() {}\n\
                  static_assert(alignof(line) == 64, \"\");\n";
    // GCC notes it at the class, too
    for compiler in ["g++", "clang++"] {
        let Some(folder) = folder(&format!("alignments-virtual-{compiler}"), compiler) else { continue };
        let types = types_of(&compile(&folder, compiler, "line.cc", source, &["-std=c++17", "-g"]));
        let id = lookup::find(&types, b"line").expect("defined");
        assert_eq!(Effective::new(&types).of(&types, id), 64, "{compiler}");
        std::fs::remove_dir_all(folder).expect("removable");
    }
}
