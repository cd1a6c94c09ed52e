//! The header and the library say the same.
//!
//! The prototypes of this crate's exported functions are put into C, by their Rust signatures, and
//! compiled together with the header: a C compiler refuses two declarations that differ. The same
//! with the layout of the structs. And the header declares no function that is not exported.

use statctr_capi::{
    StatctrBucket, StatctrCost, StatctrDesc, StatctrFamily, StatctrGroup, StatctrGroupDesc, StatctrHandle,
    StatctrHistogram, StatctrHistogramFamily, StatctrItemDesc, StatctrLazy, StatctrMemory, StatctrPcpuCtr,
    StatctrReading, StatctrSample, StatctrStatic,
};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SOURCES: [&str; 13] = [
    include_str!("../src/allocator.rs"),
    include_str!("../src/counter.rs"),
    include_str!("../src/extremes.rs"),
    include_str!("../src/family.rs"),
    include_str!("../src/float_gauge.rs"),
    include_str!("../src/group.rs"),
    include_str!("../src/histogram.rs"),
    include_str!("../src/hotplug.rs"),
    include_str!("../src/lazy.rs"),
    include_str!("../src/process.rs"),
    include_str!("../src/registry.rs"),
    include_str!("../src/static_extremes.rs"),
    include_str!("../src/statics.rs"),
];

struct Function {
    name: String,
    prototype: String,
}

fn c_type(rust: &str) -> String {
    let rust = rust.trim();
    if let Some(inner) = rust.strip_prefix("*mut ") {
        return format!("{}*", c_type(inner));
    }
    if let Some(inner) = rust.strip_prefix("*const ") {
        return format!("{} const *", c_type(inner));
    }
    match rust {
        "c_int" => "int",
        "c_uint" => "unsigned",
        "c_ulong" => "unsigned long",
        "c_char" => "char",
        "c_void" => "void",
        "u64" => "uint64_t",
        "f64" => "double",
        "usize" => "size_t",
        "StatctrHandle" => "statctr_handle_t",
        "StatctrGroup" => "statctr_group_t",
        "StatctrHistogram" => "statctr_histogram_t",
        "StatctrHistogramSnapshot" => "statctr_histogram_snapshot_t",
        "StatctrBucket" => "statctr_bucket_t",
        "StatctrFloatGauge" => "statctr_float_gauge_t",
        "StatctrMax" => "statctr_max_t",
        "StatctrMin" => "statctr_min_t",
        "StatctrGroupDesc" => "statctr_group_desc_t",
        "StatctrPcpuCtr" => "pcpu_ctr_t",
        "StatctrMoved" => "statctr_moved_t",
        "StatctrMovedFn" => "statctr_moved_fn",
        "StatctrLazy" => "statctr_lazy_t",
        "StatctrLazyPool" => "statctr_lazy_pool_t",
        "StatctrCost" => "statctr_cost_t",
        "StatctrMemory" => "statctr_memory_t",
        "StatctrStatic" => "statctr_static_t",
        "StatctrDesc" => "statctr_desc_t",
        "i64" => "int64_t",
        "StatctrStaticGauge" => "statctr_static_gauge_t",
        "StatctrStaticMax" => "statctr_static_max_t",
        "StatctrStaticMin" => "statctr_static_min_t",
        "StatctrFamily" => "statctr_family_t",
        "StatctrGaugeFamily" => "statctr_gauge_family_t",
        "StatctrMaxFamily" => "statctr_max_family_t",
        "StatctrMinFamily" => "statctr_min_family_t",
        "StatctrFloatGaugeFamily" => "statctr_float_gauge_family_t",
        "StatctrAverageFamily" => "statctr_average_family_t",
        "StatctrHistogramFamily" => "statctr_histogram_family_t",
        "StatctrReadingFn" => "statctr_reading_fn",
        "StatctrWriteFn" => "statctr_write_fn",
        "StatctrVisitFn" => "statctr_visit_fn",
        other => panic!("what is {other} in C?"),
    }
    .into()
}

/// Returns the functions that are exported, as their sources say.
fn exported() -> Vec<Function> {
    let mut functions = Vec::new();
    for source in SOURCES {
        for rest in source.split("extern \"C\" fn ").skip(1) {
            let (name, rest) = rest.split_once('(').expect("parameters");
            let (parameters, rest) = rest.split_once(')').expect("the end of the parameters");
            let result = rest.split_once('{').expect("a body").0.trim().trim_start_matches("->");
            let types = parameters.split(',').filter_map(|parameter| parameter.split_once(':'));
            let list: Vec<String> = types.map(|(_, of)| c_type(of)).collect();
            let list = if list.is_empty() { "void".into() } else { list.join(", ") };
            functions.push(Function {
                name: name.into(),
                prototype: format!("extern {} {name}({list});", c_type(result)),
            });
        }
    }
    assert!(functions.len() > 30, "{} functions found", functions.len());
    functions
}

/// Feeds `text` to the C compiler; its standard output.
fn compile(text: &str, arguments: &[&str]) -> Option<String> {
    compile_by(&["cc", "-std=c11", "-x", "c"], text, arguments)
}

/// Feeds `text` to a compiler, whose first arguments are given with it; its standard output.
fn compile_by(compiler: &[&str], text: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).arg("-I");
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/include")).args(arguments).arg("-");
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = spawned else {
        println!("skipped: there is no {}", compiler[0]);
        return None;
    };
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("the compiler reads");
    let output = child.wait_with_output().expect("the compiler ends");
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn prototypes_agree() {
    let mut text = String::from("#define STATCTR_NO_INLINE\n#include <statctr.h>\n");
    for function in exported() {
        writeln!(text, "{}", function.prototype).expect("a string");
    }
    compile(&text, &["-fsyntax-only"]);
}

#[test]
fn every_declaration_is_exported() {
    let names: BTreeSet<String> = exported().into_iter().map(|function| function.name).collect();
    for switch in ["STATCTR_NO_INLINE", "STATCTR_INLINE"] {
        let text = format!("#define {switch}\n#include <statctr.h>\n");
        let Some(expanded) = compile(&text, &["-E", "-P"]) else { return };
        let declared = expanded.split("extern ").skip(1).filter_map(|rest| {
            let name = rest.split_once('(')?.0.rsplit([' ', '*']).next()?;
            name.starts_with("statctr_").then(|| name.to_owned())
        });
        let declared: BTreeSet<String> = declared.collect();
        assert!(declared.len() > 15, "{declared:?}");
        let missing: Vec<&String> = declared.difference(&names).collect();
        assert!(missing.is_empty(), "declared, but not exported: {missing:?}");
        if switch == "STATCTR_NO_INLINE" {
            let left_out: Vec<&String> =
                names.difference(&declared).filter(|name| !expanded.contains(&format!("{name}("))).collect();
            assert!(left_out.is_empty(), "exported, but not declared: {left_out:?}");
        }
    }
}

#[test]
fn layouts_agree() {
    let mut text = String::from("#include <statctr.h>\n");
    macro_rules! layout {
        ($($Rust:ident = $c:literal { $($field:ident $(. $inner:ident)? = $c_field:literal),+ })+) => {$(
            writeln!(
                text,
                "_Static_assert(sizeof({0}) == {1} && _Alignof({0}) == {2}, \"{0}\");",
                $c, size_of::<$Rust>(), align_of::<$Rust>()
            )
            .expect("a string");
            $(writeln!(
                text,
                "_Static_assert(offsetof({0}, {1}) == {2}, \"{0}.{1}\");",
                $c, $c_field, offset_of!($Rust, $field $(. $inner)?)
            )
            .expect("a string");)+
        )+};
    }
    layout! {
        StatctrHandle = "statctr_handle_t" { base = "base", table = "table" }
        StatctrGroup = "statctr_group_t" {
            counter.base = "home.base", counter.table = "home.table", schema = "schema",
            lines = "lines", twin = "twin"
        }
        StatctrHistogram = "statctr_histogram_t" {
            buckets.counter = "buckets.home", max = "max", bits = "bits", beyond = "beyond"
        }
        StatctrBucket = "statctr_bucket_t" { least = "least", largest = "largest", count = "count" }
        StatctrPcpuCtr = "pcpu_ctr_t" { handle = "handle" }
        StatctrLazy = "statctr_lazy_t" { cell = "cell", memory = "memory" }
        StatctrItemDesc = "statctr_item_desc_t" {
            name = "name", unit = "unit", help = "help", slot = "slot", width = "width"
        }
        StatctrGroupDesc = "statctr_group_desc_t" { items = "items", count = "count", slots = "slots" }
        StatctrCost = "statctr_cost_t" {
            bytes_per_counter_per_cpu = "bytes_per_counter_per_cpu", units = "units",
            unit_bytes = "unit_bytes", stride = "stride", vector_bytes = "vector_bytes"
        }
        StatctrStatic = "statctr_static_t" { name = "name", help = "help", unit = "unit" }
        StatctrFamily = "statctr_family_t" {
            name = "name", help = "help", unit = "unit", labels = "labels", label_count = "label_count",
            limit = "limit"
        }
        StatctrHistogramFamily = "statctr_histogram_family_t" { max = "max", error = "error" }
        StatctrDesc = "statctr_desc_t" { name = "name", help = "help", unit = "unit", labels = "labels" }
        StatctrSample = "statctr_sample_t" { desc = "desc", item = "item", index = "index", value = "value" }
        StatctrReading = "statctr_reading_t" {
            desc = "desc", item = "item", index = "index", kind = "kind", value = "value", number = "number",
            count = "count", sum = "sum", histogram = "histogram", in_array = "in_array"
        }
        StatctrMemory = "statctr_memory_t" {
            reserved = "reserved", resident = "resident", reservations = "reservations", slots = "slots"
        }
    }
    compile(&text, &["-fsyntax-only"]);
}

/// Returns the headers, with their text.
fn headers() -> Vec<(PathBuf, String)> {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let files =
        [include.clone(), include.join("statctr")].map(|folder| std::fs::read_dir(folder).expect("headers"));
    let paths =
        files.into_iter().flatten().map(|file| file.expect("a header").path()).filter(|path| path.is_file());
    paths.map(|path| (path.clone(), std::fs::read_to_string(path).expect("a header"))).collect()
}

/// Returns the examples in the comments of a header: the lines behind an empty one that are indented by five columns or
/// more, up to the first line that is not.
fn examples(header: &str) -> Vec<Vec<&str>> {
    let (mut examples, mut in_example, mut behind_empty) = (Vec::new(), false, false);
    for line in header.lines() {
        let is_empty = line == " *";
        if let Some(code) = line.strip_prefix(" *     ").filter(|_| in_example || behind_empty) {
            if !in_example {
                examples.push(Vec::new());
            }
            in_example = true;
            examples.last_mut().expect("just begun").push(code);
        } else {
            in_example &= is_empty;
        }
        behind_empty = is_empty;
    }
    examples
}

/// Returns a file with an example: definitions of macros, statics, groups and functions, then the statements in a
/// function.
fn file_of(example: &[&str]) -> String {
    let (mut file, mut statements) = (String::new(), String::new());
    let mut lines = example.iter().peekable();
    while let Some(line) = lines.next() {
        let begins = |next: Option<&&&str>| next.is_some_and(|next| **next == "{");
        let end: fn(&str) -> bool = if line.starts_with("#define") {
            |line| !line.ends_with('\\')
        } else if begins(lines.peek()) {
            |line| line == "}"
        } else if line.starts_with("STATCTR_") {
            |line| line.contains(';')
        } else {
            writeln!(statements, "{line}").expect("a string");
            continue;
        };
        let mut line = Some(line);
        while let Some(part) = line {
            writeln!(file, "{part}").expect("a string");
            line = if end(part) { None } else { lines.next() };
        }
    }
    format!("{file}{EXAMPLE_FUNCTION}\n{{\n{statements}}}\n")
}

/// The function around an example's statements, with what they take from their surroundings.
const EXAMPLE_FUNCTION: &str = "struct device { statctr_t packets; };
void example(struct device *device, size_t count, uint64_t bytes, uint64_t now, uint64_t tcp_flags);
void example(struct device *device, size_t count, uint64_t bytes, uint64_t now, uint64_t tcp_flags)";

#[test]
fn examples_compile() {
    let mut found = 0;
    for (path, text) in headers() {
        let cxx = path.extension().is_some_and(|extension| extension == "hpp");
        for example in examples(&text) {
            let file = file_of(&example);
            let mut text = String::from("#include <inttypes.h>\n#include <stdio.h>\n#include <statctr.h>\n");
            if cxx {
                let name = path.file_name().expect("a name").to_string_lossy();
                if name == "statctr_prometheus.hpp" {
                    text += "#if __has_include(<prometheus/exposer.h>)\n#include <prometheus/exposer.h>\n";
                }
                writeln!(text, "#include <memory>\n#include <{name}>").expect("a string");
                // a kind of group that somebody declared
                text +=
                    "#define TRAFFIC(E, I, k) I(k, bytes, \"\", \"\")\nSTATCTR_GROUP(traffic, TRAFFIC);\n";
            } else if !file.contains("int print(") {
                text += "extern int print(const char *text, size_t length, void *file);\n";
            }
            text += &file;
            if text.contains("#if ") {
                text += "#endif\n";
            }
            let compiler: &[&str] =
                if cxx { &["c++", "-std=c++17", "-x", "c++"] } else { &["cc", "-std=c11", "-x", "c"] };
            let flags = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused"];
            if compile_by(compiler, &text, &[&flags[..], &["-Wno-unused-parameter"]].concat()).is_none() {
                return;
            }
            found += 1;
        }
    }
    assert!(found > 10, "{found} examples");
}

/// A file with each macro and inline function whose code is in the file that uses it.
const USES: &str = r#"
#define TRAFFIC(E, I, k) E(k, received, 2) I(k, packets, STATCTR_PACKETS, "") I(k, bytes, STATCTR_BYTES, "received")
STATCTR_GROUP(traffic, TRAFFIC);
STATCTR_DEFINE(requests);
STATCTR_DEFINE_GAUGE(connections);
STATCTR_DEFINE_MAX(longest);
STATCTR_DEFINE_MIN(shortest);
STATCTR_DEFINE_FAMILY(responses, "method", "status");
STATCTR_DEFINE_HISTOGRAM_FAMILY(latencies, 1000, 0.05, "method");
STATCTR_DEFINE_AVERAGE_FAMILY(sizes, "method");
extern int use(statctr_t *counter, statctr_group_t *group, statctr_histogram_t *histogram, statctr_lazy_t *lazy);
int use(statctr_t *counter, statctr_group_t *group, statctr_histogram_t *histogram, statctr_lazy_t *lazy)
{
    const uint64_t values[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    statctr_add(counter, 3);
    statctr_static_dec(&requests);
    statctr_static_gauge_sub(&connections, 2);
    statctr_static_max_observe(&longest, 2);
    statctr_static_min_observe(&shortest, 2);
    statctr_group_event2(group, traffic_received, 1, 1500);
    statctr_group_event4(group, traffic_received, 1, 2, 3, 4);
    statctr_group_event8(group, traffic_received, values);
    statctr_group_inc(group, traffic_bytes);
    statctr_lazy_update(lazy, 1, 2, 3, 4);
    return statctr_histogram_observe_many(histogram, 1, 2);
}
"#;

#[test]
fn headers_compile_with_the_warnings_of_strict_programs() {
    let strict = ["-fsyntax-only", "-Wall", "-Wextra", "-Wconversion", "-Wredundant-decls", "-Werror"];
    let c = format!("#include <statctr.h>\n{USES}");
    let cxx = format!("#include <statctr.hpp>\n{USES}");
    for machine in ["-O2", "-DSTATCTR_NO_INLINE"] {
        compile_by(&["cc", "-std=c11", "-x", "c", machine], &c, &strict);
        let gxx = ["g++", "-std=c++17", "-x", "c++", machine];
        compile_by(&gxx, &cxx, &[&strict[..], &["-Wold-style-cast", "-Wuseless-cast"]].concat());
        compile_by(&["clang", "-std=c11", "-x", "c", machine], &c, &strict);
        let clang = ["clang++", "-std=c++17", "-x", "c++", machine];
        compile_by(&clang, &cxx, &[&strict[..], &["-Wold-style-cast"]].concat());
    }
}

#[test]
fn classes_compile_without_exceptions() {
    let classes = "std::uint64_t use_classes();
std::uint64_t use_classes()
{
    statctr::counter counter;
    return counter.read() + statctr::prometheus_text().size();
}
";
    let text = format!("#include <statctr.hpp>\n{USES}{classes}");
    for compiler in ["c++", "clang++"] {
        let flags = ["-fsyntax-only", "-fno-exceptions", "-Wall", "-Wextra", "-Werror"];
        compile_by(&[compiler, "-std=c++17", "-x", "c++"], &text, &flags);
    }
}
