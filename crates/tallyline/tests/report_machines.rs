//! Reports on recordings of other machines: kernels that were moved, code compiled at run time, programs
//! in an archive, other cache lines, several events.

mod common;

use common::{compiles, folder, run, stderr, stdout, tallyline};
use serde_json::Value;
use std::io::{Cursor, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tallyline_inference::code::Image;
use tallyline_perf_data::Attr;
use tallyline_perf_data::abi::{attr_flag, sample as bit};
use tallyline_perf_data::file::{BuildId, CacheLevel, Comm, Mmap};
use tallyline_perf_data::sample::{CpuMode, DataSource, Sample, level, op, snoop};
use tallyline_perf_data::writer::{Encoder, Event, MachineDescription, NumaNode, Writer};

const SOURCE: &str = "\
struct pair { long a; long b; char gap[64]; int x; };
struct pair shared_pair;
long get_a(struct pair *p) { return p->a; }
void set_b(struct pair *p, long v) { p->b = v; }
int get_x(struct pair *p) { return p->x; }
long get_word(void *p) { return *(long *)p; }
long get_either(struct pair *p, int c) {
    void *place = &p->b;
    __asm__(\"test %2, %2; cmovne %1, %0\" : \"+r\"(place) : \"r\"(&p->a), \"r\"(c));
    return *(long *)place;
}
";

/// One sample: event, process, address of code, of data, CPU, where the data came from.
#[derive(Clone, Copy)]
struct At {
    event: usize,
    pid: i32,
    ip: u64,
    address: u64,
    cpu: u32,
    source: u64,
}

fn at(ip: u64) -> At {
    At { event: 0, pid: 7, ip, address: 0, cpu: 0, source: 0 }
}

fn mapping(pid: i32, start: u64, len: u64, file_offset: u64, path: &str) -> Mmap<'_> {
    let mode = if pid < 0 { CpuMode::Kernel } else { CpuMode::User };
    let path = path.as_bytes();
    Mmap {
        pid,
        tid: pid,
        mode,
        start,
        len,
        file_offset,
        path,
        is_executable: true,
        build_id: None,
        shared_file: None,
    }
}

/// Writes a recording of precise samples of two events, `one` and `two`.
fn write(file: &Path, machine: &MachineDescription, mappings: &[Mmap<'_>], samples: &[At]) {
    let attr = |config| Attr {
        kind: 1,
        config,
        sample_period: 100,
        sample_type: bit::IDENTIFIER
            | bit::IP
            | bit::TID
            | bit::TIME
            | bit::ADDR
            | bit::CPU
            | bit::PERIOD
            | bit::DATA_SRC,
        flags: attr_flag::SAMPLE_ID_ALL | 2 << attr_flag::PRECISE_SHIFT,
        ..Attr::default()
    };
    let attrs = [attr(0), attr(1)];
    let event = |index: usize, name: &str| Event::new(name, attrs[index].clone(), vec![index as u64 + 1]);
    let mut writer =
        Writer::new(Cursor::new(Vec::new()), vec![event(0, "one"), event(1, "two")]).expect("memory");
    for pid in [7, 8] {
        let name: &[u8] = if pid == 7 { b"seven" } else { b"eight" };
        let comm = Comm::new(pid, pid, name, true);
        writer.records(Encoder::comm(&comm, &attrs[0], 1).finish()).expect("memory");
    }
    for mapping in mappings {
        writer.records(Encoder::mapping(mapping, &attrs[0], 2).finish()).expect("memory");
    }
    for (index, at) in samples.iter().enumerate() {
        let sample = Sample {
            mode: if at.ip >> 63 == 1 { CpuMode::Kernel } else { CpuMode::User },
            exact: true,
            ip: Some(at.ip),
            pid: Some(at.pid),
            tid: Some(at.pid),
            time: Some(10 + index as u64),
            addr: Some(at.address),
            id: Some(at.event as u64 + 1),
            cpu: Some(at.cpu),
            data_source: Some(DataSource(at.source)),
            period: Some(100 + at.event as u64),
            ..Sample::default()
        };
        writer.records(Encoder::sample(&sample, &attrs[at.event]).finish()).expect("memory");
    }
    let written = writer.finish(machine, &[]).expect("memory").into_inner();
    std::fs::write(file, written).expect("written");
}

fn machine() -> MachineDescription {
    MachineDescription { arch: "x86_64".to_owned(), ..MachineDescription::default() }
}

/// Returns a linked file with the functions at an address as given to the linker, without a build-id; none
/// without a compiler.
fn linked(folder: &Path, name: &str, base: u64) -> Option<(PathBuf, Image)> {
    linked_with(folder, name, base, &["-Wl,--build-id=none"])
}

fn linked_with(folder: &Path, name: &str, base: u64, options: &[&str]) -> Option<(PathBuf, Image)> {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: the instructions are told for x86-64");
        return None;
    }
    let (source, program) = (folder.join("pair.c"), folder.join(name));
    std::fs::write(&source, SOURCE).expect("written");
    let model = if base >> 63 == 1 { "-mcmodel=kernel" } else { "-mcmodel=small" };
    let mut compiler = Command::new("cc");
    compiler
        .args([
            "-O2",
            "-g",
            "-fno-pic",
            "-fcf-protection=none",
            "-ffreestanding",
            "-nostdlib",
            "-static",
            model,
        ])
        .arg(format!("-Wl,-Ttext={base:#x},--defsym=_text={base:#x},-e,_text"))
        .args(options)
        .arg("-o")
        .arg(&program)
        .arg(&source);
    let image = compiles(&mut compiler).then(|| Image::parse(&std::fs::read(&program).expect("linked")))?;
    Some((program, image.expect("ELF")))
}

/// Returns the mapping of a program's code.
fn code_of<'p>(image: &Image, pid: i32, path: &'p str) -> Mmap<'p> {
    let segment = image.segments().iter().find(|segment| image.is_code(segment.address())).expect("code");
    mapping(pid, segment.address(), segment.size(), segment.offset(), path)
}

fn function(image: &Image, name: &str) -> u64 {
    image.functions().iter().find(|symbol| symbol.name() == name).expect("a function").address()
}

fn json(file: &Path, args: &[&str]) -> Value {
    let output = run(&[&["report", "--json", "-i", file.to_str().expect("a plain path")], args].concat());
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("a document")
}

/// Returns the samples of each row, by the text of a key.
fn rows(document: &Value, key: &str) -> Vec<(String, u64)> {
    let row = |row: &Value| {
        (row["keys"][key].as_str().expect("a text").to_owned(), row["samples"].as_u64().expect("a number"))
    };
    let mut rows: Vec<_> = document["rows"].as_array().expect("rows").iter().map(row).collect();
    rows.sort();
    rows
}

fn named(rows: &[(&str, u64)]) -> Vec<(String, u64)> {
    rows.iter().map(|(name, samples)| ((*name).to_owned(), *samples)).collect()
}

const KERNEL: u64 = 0xffff_ffff_8100_0000;
/// The displacement of the kernel by KASLR.
const MOVED: u64 = 0x1c00_0000;

#[test]
fn samples_of_a_kernel_that_was_moved_are_typed_by_its_file_and_named_by_its_list() {
    let folder = folder("moved-kernel");
    let Some((vmlinux, image)) = linked(&folder, "vmlinux", KERNEL) else { return };
    let (get_a, set_b) = (function(&image, "get_a") + MOVED, function(&image, "set_b") + MOVED);
    let data = folder.join("perf.data");
    let start = KERNEL + MOVED;
    let kernel = mapping(-1, start, 0x100_0000, start, "[kernel.kallsyms]_text");
    write(&data, &machine(), &[kernel], &[at(get_a), at(get_a), at(get_a), at(set_b)]);
    let vmlinux = vmlinux.to_str().expect("a plain path");
    let document = json(&data, &["-k", vmlinux, "-s", "typeoff"]);
    let expected = named(&[("struct pair +0 (a)", 3), ("struct pair +0x8 (b)", 1)]);
    assert_eq!(rows(&document, "typeoff"), expected);
    let expected = named(&[("[k] get_a", 3), ("[k] set_b", 1)]);
    assert_eq!(rows(&json(&data, &["-k", vmlinux, "-s", "sym"]), "sym"), expected);
    // the list has the addresses as they were on that machine
    let list = folder.join("kallsyms");
    std::fs::write(&list, format!("{get_a:016x} T get_a\n{set_b:016x} t set_b\n")).expect("written");
    let list = list.to_str().expect("a plain path");
    assert_eq!(rows(&json(&data, &["--kallsyms", list, "-s", "sym"]), "sym"), expected);
    let document = json(&data, &["--kallsyms", list, "-s", "type"]);
    let reason = document["untyped"][0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("--vmlinux"), "{reason}");
}

#[test]
fn code_compiled_at_run_time_has_the_names_of_its_own_process() {
    let folder = folder("jit");
    let data = folder.join("perf.data");
    let maps = [7, 8].map(|pid| mapping(pid, 0x7f00_0000_0000, 0x1000, 0, "//anon"));
    let code = 0x7f00_0000_0100;
    let other = At { pid: 8, ..at(code) };
    write(&data, &machine(), &maps, &[at(code), at(code + 8), other, at(code + 0x80)]);
    let root = folder.join("root/tmp");
    std::fs::create_dir_all(&root).expect("a folder");
    std::fs::write(root.join("perf-7.map"), "7f0000000100 10 jit one\n").expect("written");
    std::fs::write(root.join("perf-8.map"), "7f0000000100 10 jit two\n").expect("written");
    let root = folder.join("root");
    let document = json(&data, &["--symfs", root.to_str().expect("a plain path"), "-s", "sym"]);
    let expected = named(&[("[.] 0x00007f0000000180", 1), ("[.] jit one", 2), ("[.] jit two", 1)]);
    assert_eq!(rows(&document, "sym"), expected);
    let document = json(&data, &["--symfs", root.to_str().expect("a plain path"), "-s", "type"]);
    assert_eq!(document["untyped"][0], serde_json::json!({"reason": "code without a file", "samples": 4}));
}

#[test]
fn programs_are_found_under_another_root_and_in_an_archive_without_folders() {
    let folder = folder("symfs");
    let Some((program, image)) = linked(&folder, "pair", 0x40_1000) else { return };
    let data = folder.join("perf.data");
    let text = code_of(&image, 7, "/opt/no-such-place/pair");
    write(&data, &machine(), &[text], &[at(function(&image, "get_a"))]);
    let typed = |args: &[&str]| json(&data, &[args, &["-s", "type"]].concat())["typed"].as_u64();
    assert_eq!(typed(&[]), Some(0));
    let root = folder.join("root/opt/no-such-place");
    std::fs::create_dir_all(&root).expect("a folder");
    std::fs::copy(&program, root.join("pair")).expect("copied");
    assert_eq!(typed(&["--symfs", folder.join("root").to_str().expect("a plain path")]), Some(1));
    assert_eq!(typed(&["--symfs", folder.to_str().expect("a plain path")]), Some(1));
}

/// A build-id, and the option that has the linker write it.
const BUILD: [u8; 20] = [0x5a; 20];
fn build_option() -> String {
    format!("-Wl,--build-id=0x{}", "5a".repeat(20))
}

fn of_build<'m>(mapping: Mmap<'m>, id: &[u8]) -> Mmap<'m> {
    Mmap { build_id: BuildId::new(id), ..mapping }
}

fn typed(data: &Path, args: &[&str]) -> u64 {
    json(data, &[args, &["-s", "type"]].concat())["typed"].as_u64().expect("a number")
}

#[test]
fn the_file_of_a_kernel_is_found_where_distributions_put_it_if_it_is_of_the_same_build() {
    let folder = folder("installed-kernel");
    let place = folder.join("usr/lib/debug/boot");
    std::fs::create_dir_all(&place).expect("a folder");
    let Some((_, image)) = linked_with(&place, "vmlinux-6.1-test", KERNEL, &[&build_option()]) else {
        return;
    };
    let data = folder.join("perf.data");
    let machine = MachineDescription { os_release: "6.1-test".to_owned(), ..machine() };
    let kernel = mapping(-1, KERNEL, 0x100_0000, KERNEL, "[kernel.kallsyms]_text");
    let samples = [at(function(&image, "get_a")); 3];
    let root = ["--symfs", folder.to_str().expect("a plain path")];
    write(&data, &machine, &[of_build(kernel, &BUILD)], &samples);
    assert_eq!(typed(&data, &root), 3);
    write(&data, &machine, &[of_build(kernel, &[1; 20])], &samples);
    assert_eq!(typed(&data, &root), 0, "of another build");
    write(&data, &machine, &[kernel], &samples);
    assert_eq!(typed(&data, &root), 0, "nothing says that it is the same");
}

#[test]
fn programs_and_debug_files_are_asked_for_at_servers_by_their_build() {
    let folder = folder("servers");
    let Some((program, image)) = linked_with(&folder, "pair", 0x40_1000, &[&build_option()]) else { return };
    let at_server = |name: &str| folder.join(name).display().to_string();
    for (name, option) in [("executable", "--strip-debug"), ("debuginfo", "--only-keep-debug")] {
        let mut copy = Command::new("objcopy");
        copy.arg(option).arg(&program).arg(at_server(name));
        assert!(copy.status().expect("binutils").success());
    }
    // a client that finds the two files of this build
    let client = folder.join("debuginfod-find");
    let id = "5a".repeat(20);
    let script = format!("#!/bin/sh\n[ $2 = {id} ] && echo {}/$1\n", folder.display());
    std::fs::write(&client, script).expect("written");
    std::fs::set_permissions(&client, std::fs::Permissions::from_mode(0o755)).expect("own file");
    let data = folder.join("perf.data");
    let text = code_of(&image, 7, "/opt/no-such-place/pair");
    let samples = [at(function(&image, "get_a")); 2];
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let reported = |urls: &str, id: &[u8]| {
        write(&data, &machine(), &[of_build(text, id)], &samples);
        let mut command = Command::new(env!("CARGO_BIN_EXE_tallyline"));
        command.args(["report", "--json", "-s", "type", "-i"]).arg(&data);
        let output = command.env("PATH", &path).env("DEBUGINFOD_URLS", urls).output().expect("runs");
        assert!(output.status.success(), "{}", stderr(&output));
        let document: Value = serde_json::from_str(&stdout(&output)).expect("a document");
        document["typed"].as_u64().expect("a number")
    };
    assert_eq!(reported("http://localhost:1", &BUILD), 2);
    assert_eq!(reported("http://localhost:1", &[1; 20]), 0, "no server has it");
    assert_eq!(reported("", &BUILD), 0, "not asked for");
}

#[test]
fn a_program_in_a_container_is_found_through_a_process_that_still_runs() {
    let folder = folder("container");
    let source = folder.join("sleeper.c");
    let text = "#include <unistd.h>\nstruct s { long a, b; } s;\n\
                __attribute__((noinline, noclone)) long get_b(struct s *p) { return p->b; }\n\
                int main(void) { write(1, \"r\", 1); pause(); return (int)get_b(&s); }\n";
    std::fs::write(&source, text).expect("written");
    let root = folder.join("root/opt/no-such-place");
    std::fs::create_dir_all(&root).expect("a folder");
    let program = root.join("sleeper");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O2", "-g", "-static", "-fcf-protection=none", &build_option(), "-o"])
        .arg(&program)
        .arg(&source);
    if !compiles(&mut compiler) {
        return;
    }
    let mut sleeper = Command::new("unshare");
    sleeper.args(["-r", "--root"]).arg(folder.join("root")).arg("/opt/no-such-place/sleeper");
    let mut sleeper = sleeper.stdout(Stdio::piped()).spawn().expect("util-linux");
    let mut started = [0];
    if sleeper.stdout.take().expect("piped").read(&mut started).expect("a pipe") == 0 {
        eprintln!("skipped: no other root may be taken here");
        sleeper.wait().expect("own process");
        return;
    }
    let image = Image::parse(&std::fs::read(&program).expect("linked")).expect("ELF");
    let load = function(&image, "get_b");
    let pid = i32::try_from(sleeper.id()).expect("a process");
    let text = code_of(&image, pid, "/opt/no-such-place/sleeper");
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("Linux").trim().to_owned();
    let data = folder.join("perf.data");
    let samples = [At { pid, ..at(load) }; 2];
    let here = MachineDescription { hostname: hostname.clone(), ..machine() };
    write(&data, &here, &[of_build(text, &BUILD)], &samples);
    assert_eq!(typed(&data, &[]), 2);
    write(&data, &here, &[of_build(text, &[1; 20])], &samples);
    assert_eq!(typed(&data, &[]), 0, "of another build");
    let elsewhere = MachineDescription { hostname: hostname + "-not", ..machine() };
    write(&data, &elsewhere, &[of_build(text, &BUILD)], &samples);
    assert_eq!(typed(&data, &[]), 0, "processes of another machine have other numbers");
    sleeper.kill().expect("own process");
    sleeper.wait().expect("own process");
    write(&data, &here, &[of_build(text, &BUILD)], &samples);
    assert_eq!(typed(&data, &[]), 0, "it has ended");
}

#[test]
fn lines_of_a_type_follow_real_addresses_and_the_line_size_of_the_machine_recorded() {
    let folder = folder("lines");
    let Some((program, image)) = linked(&folder, "pair", 0x40_1000) else { return };
    let data = folder.join("perf.data");
    let text = code_of(&image, 7, program.to_str().expect("a plain path"));
    // an object 48 bytes behind the start of a line: x, at 80, is at 128
    let object = 0x7000_0030;
    let a = At { address: object, ..at(function(&image, "get_a")) };
    let x = At { address: object + 80, ..at(function(&image, "get_x")) };
    let unknown = at(function(&image, "get_x"));
    write(&data, &machine(), std::slice::from_ref(&text), &[a, x, x, unknown]);
    let lines = |line: u64, samples| (format!("struct pair: cache-line {line}"), samples);
    // without an address: as if the object started on a line
    assert_eq!(rows(&json(&data, &["-s", "typecln"]), "typecln"), [lines(0, 1), lines(1, 1), lines(2, 2)]);
    let cache = CacheLevel::new(1, 128, "Data", "32K", "0");
    write(&data, &MachineDescription { caches: vec![cache], ..machine() }, &[text], &[a, x, x, unknown]);
    assert_eq!(rows(&json(&data, &["-s", "typecln"]), "typecln"), [lines(0, 2), lines(1, 2)]);
}

#[test]
fn samples_that_only_their_addresses_give_a_type_are_counted_and_said() {
    let folder = folder("evidence");
    let Some((program, image)) = linked(&folder, "pair", 0x40_1000) else { return };
    let data = folder.join("perf.data");
    let text = code_of(&image, 7, program.to_str().expect("a plain path"));
    let object = 0x7000_0040;
    let a = At { address: object, ..at(function(&image, "get_a")) };
    let word = |address| At { address, ..at(function(&image, "get_word")) };
    let elsewhere = word(0x7100_0000);
    write(&data, &machine(), &[text], &[a, word(object + 8), word(object + 8), elsewhere]);
    let document = json(&data, &["-s", "typeoff"]);
    let expected = [("(unknown)", 1), ("struct pair +0 (a)", 1), ("struct pair +0x8 (b)", 2)];
    assert_eq!(rows(&document, "typeoff"), named(&expected));
    assert_eq!((&document["by_evidence"], &document["typed"]), (&2.into(), &3.into()));
    let output = run(&["report", "--stdio", "-i", data.to_str().expect("a plain path"), "-s", "type"]);
    let line = "# Typed by where the data was, or what registers held: 2\n";
    assert!(stdout(&output).contains(line), "{}", stdout(&output));
}

#[test]
fn samples_at_one_of_two_members_are_said_where_a_format_has_no_place_for_them() {
    let folder = folder("either");
    let Some((program, image)) = linked(&folder, "pair", 0x40_1000) else { return };
    let data = folder.join("perf.data");
    let text = code_of(&image, 7, program.to_str().expect("a plain path"));
    let load = function(&image, "get_either") + 10;
    write(&data, &machine(), &[text], &[at(load), at(load), at(function(&image, "get_a"))]);
    let expected = named(&[("struct pair +0 (a)", 1), ("struct pair +0 or +0x8 (a or b)", 2)]);
    assert_eq!(rows(&json(&data, &["-s", "typeoff"]), "typeoff"), expected);
    let (data, types) = (data.to_str().expect("a plain path"), folder.join("types.json"));
    let types = types.to_str().expect("a plain path");
    let output = run(&["annotate", "--stdio", "-i", data, "--data-type-json", types]);
    assert!(stderr(&output).contains("left out 2 samples"), "{}", stderr(&output));
    let document: Value =
        serde_json::from_slice(&std::fs::read(types).expect("written")).expect("a document");
    assert_eq!(document["dsos"][0]["types"][0]["histograms"][0]["total_samples"], 1);
    let output = run(&["annotate", "get_a", "--code", "-i", data]);
    assert!(!stderr(&output).contains("left out"), "{}", stderr(&output));
}

#[test]
fn processes_contend_for_memory_that_they_share_and_not_for_equal_addresses() {
    let folder = folder("shared-memory");
    let Some((program, image)) = linked(&folder, "pair", 0x40_1000) else { return };
    let (data, path) = (folder.join("perf.data"), program.to_str().expect("a plain path"));
    let ring = |pid: i32, start: u64, shared_file: Option<(u32, u32, u64)>| Mmap {
        is_executable: false,
        shared_file,
        ..mapping(pid, start, 0x2000, 0x1000, "/dev/shm/ring")
    };
    let sample = |pid: i32, function_name: &str, address: u64| At {
        pid,
        address,
        cpu: pid as u32,
        ..at(function(&image, function_name))
    };
    let shared = Some((0, 27, 5));
    // a private mapping of the same file, and a shared one of another
    for (other, lines) in [(shared, 1), (None, 0), (Some((0, 27, 6)), 0)] {
        let text = [7, 8].map(|pid| code_of(&image, pid, path));
        let [one, two] = text;
        let maps = [one, two, ring(7, 0x7000_0000, shared), ring(8, 0x7200_0000, other)];
        let turns = [sample(7, "set_b", 0x7000_1048), sample(8, "get_a", 0x7200_1040)];
        write(&data, &machine(), &maps, &turns.repeat(10));
        let output = run(&["sharing", "--json", "-i", data.to_str().expect("a plain path")]);
        let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
        let found = document["lines"].as_array().expect("a list");
        assert_eq!(found.len(), lines, "{document:#}");
        if let Some(line) = found.first() {
            assert_eq!((&line["sharing"], &line["transfers"]), (&"false".into(), &19.into()), "{line:#}");
            assert_eq!((&line["pid"], &line["address"]), (&7.into(), &0x7000_1040_u64.into()), "{line:#}");
        }
    }
}

/// Returns three functions in two processes and two events.
fn mixed(name: &str) -> Option<(PathBuf, Vec<At>)> {
    let folder = folder(name);
    let (program, image) = linked(&folder, "pair", 0x40_1000)?;
    let path = program.to_str().expect("a plain path");
    let maps = [7, 8].map(|pid| code_of(&image, pid, path));
    let mut samples = Vec::new();
    for (function_name, event, pid, count) in
        [("get_a", 0, 7, 50), ("get_a", 1, 8, 5), ("set_b", 1, 7, 20), ("set_b", 0, 8, 4), ("get_x", 0, 8, 1)]
    {
        let sample = At { event, pid, ..at(function(&image, function_name)) };
        samples.extend(std::iter::repeat_n(sample, count));
    }
    // outside of everything
    samples.extend([At { event: 1, ..at(0x1000) }; 3]);
    let data = folder.join("perf.data");
    write(&data, &machine(), &maps, &samples);
    Some((data, samples))
}

#[test]
fn recordings_are_compared_event_by_event() {
    let folder = folder("compare-events");
    let Some((program, image)) = linked(&folder, "pair", 0x40_1000) else { return };
    let path = program.to_str().expect("a plain path");
    let recording = |name: &str, samples: &[(usize, &str, usize)]| {
        let data = folder.join(name);
        let at = |(event, function_name, count): &(usize, &str, usize)| {
            std::iter::repeat_n(At { event: *event, ..at(function(&image, function_name)) }, *count)
        };
        write(
            &data,
            &machine(),
            &[code_of(&image, 7, path)],
            &samples.iter().flat_map(at).collect::<Vec<_>>(),
        );
        data
    };
    // `one` is as it was, of `two` half of the samples are elsewhere
    let old = recording("old.data", &[(0, "get_a", 100), (0, "get_x", 100), (1, "set_b", 100)]);
    let new =
        recording("new.data", &[(0, "get_a", 10), (0, "get_x", 10), (1, "set_b", 50), (1, "get_x", 50)]);
    let plain = |path: &Path| path.to_str().expect("a plain path").to_owned();
    let document = json(&new, &["--diff", &plain(&old), "-s", "sym"]);
    let rows = document["rows"].as_array().expect("a list").iter();
    let mut deltas: Vec<_> = rows.map(|row| (row["event"].to_string(), row["delta"].to_string())).collect();
    deltas.sort();
    let expected = [("one", "0.0"), ("one", "0.0"), ("two", "-50.0"), ("two", "50.0")];
    assert_eq!(
        deltas,
        expected.map(|(event, delta)| (format!("\"{event}\""), delta.to_owned())),
        "{document:#}"
    );
    assert_eq!((&document["old"], &document["new"]), (&300.into(), &120.into()));
    let text = stdout(&run(&["report", "--diff", &plain(&old), "-s", "sym", "-i", &plain(&new)]));
    assert!(text.contains("# Samples of event 'two': 100 before, 100 now"), "{text}");
    // what only one of them has is named
    let one = recording("one.data", &[(0, "get_a", 10)]);
    let output = run(&["report", "--diff", &plain(&old), "-s", "sym", "-i", &plain(&one)]);
    assert!(stdout(&output).contains("# Samples: 200 before, 10 now"), "{}", stdout(&output));
    assert!(
        stderr(&output).contains("only the older one of the recordings has it: 'two'"),
        "{}",
        stderr(&output)
    );
    let two = recording("two.data", &[(1, "get_a", 10)]);
    let output = run(&["report", "--diff", &plain(&one), "-s", "sym", "-i", &plain(&two)]);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(stderr(&output).contains("no event is in both recordings"), "{}", stderr(&output));
}

#[test]
fn types_and_code_are_annotated_by_the_samples_of_one_event_at_a_time() {
    let Some((data, _)) = mixed("annotate-events") else { return };
    let data = data.to_str().expect("a plain path");
    let annotate = |args: &[&str]| {
        let output = run(&[&["annotate", "--stdio", "--plain"], args].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let types = std::env::temp_dir().join(format!("tallyline-types-{}.json", std::process::id()));
    let types = types.to_str().expect("a plain path");
    let both = annotate(&["-i", data, "--data-type-json", types]);
    let heads = |text: &str| {
        let is_head = |line: &&str| line.starts_with("# ") || line.starts_with("Annotate");
        let short = |line: &str| line.rsplit_once(" in ").map_or(line, |(_, last)| last).to_owned();
        text.lines().filter(is_head).map(short).collect::<Vec<_>>()
    };
    let found = heads(&both);
    assert!(found[0] == "# Samples of event 'one'" && found[1].contains("(55 samples)"), "{both}");
    assert!(found[2] == "# Samples of event 'two'" && found[3].contains("(25 samples)"), "{both}");
    assert_eq!(annotate(&["--read-json", types]), both);
    std::fs::remove_file(types).expect("own file");
    let two = annotate(&["-i", data, "-e", "two"]);
    assert!(!two.contains("# Samples") && heads(&two)[0].contains("(25 samples)"), "{two}");
    let code = stdout(&run(&["annotate", "--code", "--symbol", "get_a", "-i", data]));
    assert_eq!(code.matches("# Samples of event").count(), 2, "{code}");
    let output = run(&["annotate", "-e", "three", "-i", data]);
    assert!(stderr(&output).contains("no samples of event three"), "{}", stderr(&output));
}

#[test]
fn samples_are_in_rows_and_have_a_type_or_a_reason_whatever_events_and_filters() {
    let Some((data, samples)) = mixed("conservation") else { return };
    let count = |accepts: &dyn Fn(&At) -> bool| samples.iter().filter(|at| accepts(at)).count() as u64;
    type Case<'c> = (&'c [&'c str], &'c dyn Fn(&At) -> bool);
    let cases: [Case<'_>; 9] = [
        (&[], &|_| true),
        (&["--group"], &|_| true),
        (&["-e", "two"], &|at| at.event == 1),
        (&["--pid", "8"], &|at| at.pid == 8),
        (&["--tid", "7", "-e", "one"], &|at| at.pid == 7 && at.event == 0),
        (&["--comm", "eight"], &|at| at.pid == 8),
        (&["--dsos", "pair"], &|at| at.ip != 0x1000),
        (&["--comm", "eight,seven"], &|_| true),
        (&["--group", "--percentage", "relative", "--comm", "seven"], &|at| at.pid == 7),
    ];
    for (args, accepts) in cases {
        for keys in ["type,typeoff,sym", "comm,type", "dso"] {
            let document = json(&data, &[args, &["-s", keys]].concat());
            let sum = |list: &str| -> u64 {
                let all = document[list].as_array().expect("a list");
                all.iter().map(|one| one["samples"].as_u64().expect("a number")).sum()
            };
            let expected = count(accepts);
            assert_eq!((sum("rows"), &document["samples"]), (expected, &expected.into()), "{args:?} {keys}");
            if keys != "dso" {
                let typed = document["typed"].as_u64().expect("a number");
                assert_eq!(typed + sum("pseudo") + sum("untyped"), expected, "{args:?} {keys}");
            }
        }
    }
}

#[test]
fn a_limit_leaves_out_small_rows_and_nothing_else_changes() {
    let Some((data, _)) = mixed("limit") else { return };
    let all = json(&data, &["-s", "typeoff,sym", "--group"]);
    let some = json(&data, &["-s", "typeoff,sym", "--group", "--percent-limit", "20"]);
    let large = |row: &&Value| row["percent"].as_f64().expect("a number") >= 20.0;
    let expected: Vec<_> = all["rows"].as_array().expect("rows").iter().filter(large).cloned().collect();
    assert_eq!((some["rows"].as_array(), expected.len()), (Some(&expected), 2));
    for field in ["samples", "typed", "eligible", "untyped", "pseudo"] {
        assert_eq!(some[field], all[field], "{field}");
    }
}

#[test]
fn events_side_by_side_have_a_column_each_and_a_tree_has_a_level_for_each_key() {
    let Some((data, _)) = mixed("side") else { return };
    let path = data.to_str().expect("a plain path");
    let text = stdout(&run(&["report", "-i", path, "--group", "-s", "type"]));
    assert!(text.contains("of events 'one, two'"), "{text}");
    // 55 of 55 samples of one, 25 of 28 of two
    assert!(text.contains("   100.00%    89.29%  struct pair\n"), "{text}");
    let tree = stdout(&run(&["report", "-i", path, "-H", "-s", "type,typeoff,sym", "-e", "one"]));
    let expected = "   100.00%        struct pair
       90.91%        struct pair +0 (a)
          90.91%        [.] get_a
        7.27%        struct pair +0x8 (b)
           7.27%        [.] set_b
        1.82%        struct pair +0x50 (x)
           1.82%        [.] get_x
";
    let squeezed = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let lines = squeezed(&tree);
    let expected = squeezed(expected);
    assert!(lines.windows(expected.len()).any(|window| window == expected), "{tree}");
    assert!(tree.contains("\n   100.00%") && tree.contains("\n       90.91%"), "{tree}");
}

#[test]
fn sharing_says_for_each_line_where_loads_found_it_and_which_nodes_have_part_in_it() {
    let folder = folder("nodes");
    let Some((program, image)) = linked(&folder, "pair", 0x40_1000) else { return };
    let data = folder.join("perf.data");
    let text = code_of(&image, 7, program.to_str().expect("a plain path"));
    let source = |op: u8, levels: u16, snoop: u8| {
        u64::from(op) | u64::from(levels) << 5 | u64::from(snoop) << 19 | 1 << 24
    };
    let line = 0x7000_0000;
    let load = |cpu, levels, snoop| At {
        address: line,
        cpu,
        source: source(op::LOAD, levels, snoop),
        ..at(function(&image, "get_a"))
    };
    let store = |cpu, levels| At {
        address: line + 8,
        cpu,
        source: source(op::STORE, levels, snoop::NA),
        ..at(function(&image, "set_b"))
    };
    let hit = |place| level::HIT | place;
    let samples = [
        load(0, hit(level::L1), snoop::NONE),
        load(0, hit(level::LFB), snoop::NONE),
        load(1, hit(level::L2), snoop::NONE),
        load(1, hit(level::L3), snoop::HIT),
        load(1, hit(level::L3), snoop::HITM),
        load(5, hit(level::REMOTE_CACHE_1), snoop::HITM),
        load(5, hit(level::REMOTE_CACHE_1), snoop::HIT),
        load(5, hit(level::LOCAL_RAM), snoop::MISS),
        load(5, hit(level::REMOTE_RAM_1), snoop::MISS),
        store(4, hit(level::L1)),
        store(4, level::MISS | level::L1),
    ];
    let node = |number, cpus: &str| NumaNode::new(number, (0, 0), cpus, Vec::new());
    let machine = MachineDescription { nodes: vec![node(0, "0-3"), node(2, "4-5,7")], ..machine() };
    write(&data, &machine, &[text], &samples);
    let path = data.to_str().expect("a plain path");
    let output = run(&["sharing", "--json", "-i", path]);
    let document: Value = serde_json::from_str(&stdout(&output)).expect("a document");
    let line = &document["lines"][0];
    assert_eq!(
        (&line["local_hitm"], &line["remote_hitm"], &line["loads"]),
        (&1.into(), &1.into(), &9.into())
    );
    let levels = serde_json::json!({
        "fill_buffer": 1, "l1": 1, "l2": 1, "last": 1, "remote_cache": 1, "local_memory": 1,
        "remote_memory": 1, "store_hit": 1, "store_miss": 1,
    });
    assert_eq!((&line["levels"], &line["nodes"]), (&levels, &serde_json::json!([0, 2])));
    let part = |index: usize| (line["parts"][index]["cpus"].clone(), line["parts"][index]["nodes"].clone());
    assert_eq!(part(0), (serde_json::json!([0, 1, 5]), serde_json::json!([0, 2])));
    assert_eq!(part(1), (serde_json::json!([4]), serde_json::json!([2])));
    assert_eq!(line["sharing"], "false");
    let text = stdout(&run(&["sharing", "-i", path]));
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("struct pair")).collect();
    let words: Vec<&str> = rows[0].split_whitespace().take(8).collect();
    assert_eq!(words, ["0x0", "0,2", "3", "100.00%", "100.00%", "9", "0.00%", "0"], "{text}");
    let head = text.lines().position(|line| line.starts_with("# Index")).expect("a head");
    let (titles, row) = (text.lines().nth(head), text.lines().nth(head + 3));
    let ends = |line: Option<&str>, word: &str| line.and_then(|line| line.find(word));
    assert_eq!(ends(titles, "Node"), ends(row, "0,2"), "{text}");
    assert_eq!(ends(titles, "sharing"), ends(row, "false"), "{text}");
}

#[test]
fn evlist_reads_a_recording_from_standard_input() {
    let folder = folder("evlist-input");
    let file = folder.join("it.data");
    write(&file, &machine(), &[], &[]);
    let of_input = |path: &Path| {
        let input = std::fs::File::open(path).expect("just written");
        tallyline().args(["evlist", "-F", "-i", "-"]).stdin(input).output().expect("the program runs")
    };
    assert_eq!(stdout(&of_input(&file)), "one: sample_period=100\ntwo: sample_period=100\n");
    std::fs::write(&file, "text").expect("written");
    let output = of_input(&file);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("tallyline: -: "), "{}", stderr(&output));
}
