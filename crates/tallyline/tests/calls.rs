//! Samples at functions' first instructions: what entered the function is what took long.

mod common;

use common::{compiles, folder, run, run_in, stderr, stdout};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;
use tallyline_inference::code::{Body, Flow, Image};
use tallyline_perf_data::abi::{attr_flag, sample as bit};
use tallyline_perf_data::file::{Comm, Mmap, RecordBody};
use tallyline_perf_data::sample::{CpuMode, Sample, UserStack};
use tallyline_perf_data::writer::{Encoder, Event, MachineDescription, Writer};
use tallyline_perf_data::{Attr, Recording};

/// A handler that is called, and jumped to, through memory; by its name; and by a register.
const PROGRAM: &str = "\
#ifdef __clang__
#define ALONE __attribute__((noinline))
#else
#define ALONE __attribute__((noipa))
#endif
#define KEPT(p) __asm__ volatile(\"\" : \"+r\"(p) : : \"memory\")
struct object { long first; long (*handler)(struct object *); long (*second)(struct object *); long value; };
ALONE long handle(struct object *o) { KEPT(o); return o->value; }
/* its work leaves samples in front of the call, by which it is known to run */
#define WORK __asm__ volatile(\".rept 40\\n imul %0, %0\\n .endr\" : \"+r\"(work))
ALONE long call(struct object *o) { long work = 3; WORK; KEPT(o); long r = o->handler(o); KEPT(o); return r + work; }
ALONE long jump_on(struct object *o) { KEPT(o); return o->handler(o); }
ALONE long through(struct object *o) { KEPT(o); long r = jump_on(o); KEPT(o); return r + 1; }
ALONE long choose(struct object *o) { KEPT(o); return o->first ? o->handler(o) : o->second(o); }
ALONE long either(struct object *o) { KEPT(o); long r = choose(o); KEPT(o); return r + 1; }
ALONE long direct(struct object *o) { KEPT(o); long r = handle(o); KEPT(o); return r + 1; }
struct object it = { 1, handle, handle, 3 };
static void flush(struct object *o) { __builtin_ia32_clflush(&o->handler); __builtin_ia32_mfence(); }
int main(int count, char **words)
{
	long sum = 0;
	for (long n = 0; n < (count > 1 ? 400000 : 1); n++) {
		flush(&it);
		sum += call(&it);
		if (count > 2) {
			flush(&it);
			sum += through(&it) + either(&it) + direct(&it);
		}
	}
	return words && sum == 1;
}
";

/// A function that a call through memory enters, and that jumps on through memory to another one.
const PASSED_ON: &str = "\
#define ALONE __attribute__((noinline, noclone))
#define KEPT(p) __asm__ volatile(\"\" : \"+r\"(p) : : \"memory\")
struct object { long value; struct type *type; };
struct type { long size; long (*destroy)(struct object *); long (*release)(struct object *); };
ALONE long give_back(struct object *o) { KEPT(o); return o->value; }
ALONE long drop(struct object *o) { KEPT(o); return o->type->release(o); }
ALONE long keep(struct object *o) { KEPT(o); return o->value + 1; }
struct type plain = { 16, drop, give_back }, kept = { 16, keep, keep };
ALONE long unref(struct object *o) { KEPT(o); long r = o->type->destroy(o); KEPT(o); return r + 1; }
int main(int count, char **words)
{
	struct object one = { count, &plain }, other = { count, &kept };
	return words && unref(&one) + unref(&other) == 9;
}
";

/// Classes whose second function is called by its table.
const CLASSES: &str = "\
struct Shape { long value; virtual long first(long n) { return n; } virtual long area(long n) = 0; };
struct Square : Shape { long area(long n) override; };
struct Circle : Shape { long area(long n) override { return 3 * value * n; } };
__attribute__((noinline)) long Square::area(long n) { return value + n; }
__attribute__((noinline)) long call(Shape *shape) { return shape->area(3) + 1; }
int main(int count, char **words)
{
	Square square;
	Circle circle;
	square.value = circle.value = count;
	return words && call(&square) + call(&circle) == 9;
}
";

/// The address of the program's first byte in memory.
const BASE: u64 = 0x5555_0000_0000;

/// The program, compiled.
struct Program {
    folder: PathBuf,
    path: PathBuf,
    image: Image,
    length: u64,
}

impl Program {
    fn new(name: &str) -> Option<Program> {
        Program::compile(name, "calls.c", "cc", PROGRAM)
    }

    fn compile(name: &str, source: &str, compiler: &str, text: &str) -> Option<Program> {
        if !cfg!(target_arch = "x86_64") {
            eprintln!("skipped: calls through memory are those of x86-64");
            return None;
        }
        let folder = folder(name);
        let (source, path) = (folder.join(source), folder.join("calls"));
        std::fs::write(&source, text).expect("written");
        let mut compiler = Command::new(compiler);
        let options = ["-g", "-O2", "-fno-inline", "-fcf-protection=none", "-fomit-frame-pointer", "-o"];
        if !compiles(compiler.args(options).arg(&path).arg(&source)) {
            return None;
        }
        let bytes = std::fs::read(&path).expect("just made");
        let image = Image::parse(&bytes).expect("a program");
        Some(Program { folder, path, image, length: bytes.len() as u64 })
    }

    fn address(&self, function: &str) -> u64 {
        let symbol = self.image.functions().iter().find(|symbol| symbol.name() == function);
        symbol.expect("a function of the program").address()
    }

    fn body(&self, function: &str) -> Body {
        let symbol =
            self.image.functions().iter().find(|symbol| symbol.name() == function).expect("a function");
        let range = symbol.address()..symbol.address() + symbol.size();
        Body::decode(&self.image, std::slice::from_ref(&range), symbol.address())
    }

    /// Returns the return address of a function's first call.
    fn behind_call(&self, function: &str) -> u64 {
        let body = self.body(function);
        let call = body.instructions().iter().find(|one| matches!(one.flow(), Flow::Call(_)));
        call.expect("it calls").end()
    }

    /// Returns the address in memory of one in the program.
    fn loaded(&self, address: u64) -> u64 {
        let segments = self.image.segments().iter();
        let segment =
            segments.copied().find(|it| address.wrapping_sub(it.address()) < it.size()).expect("loaded");
        BASE + (address - segment.address()) + segment.offset()
    }

    /// Writes a recording of the clock: addresses of samples, each with the word on top of the stack if those are
    /// recorded.
    fn record(&self, name: &str, has_words: bool, samples: &[(u64, u64)]) -> PathBuf {
        let stack = if has_words { bit::STACK_USER } else { 0 };
        let attr = Attr {
            kind: 1,
            sample_period: 1000,
            sample_type: bit::IP | bit::TID | bit::TIME | bit::CPU | bit::PERIOD | stack,
            flags: attr_flag::SAMPLE_ID_ALL,
            sample_stack_user: if has_words { 8 } else { 0 },
            ..Attr::default()
        };
        let event = Event::new("cpu-clock", attr.clone(), vec![1]);
        let mut writer = Writer::new(Cursor::new(Vec::new()), vec![event]).expect("memory");
        let comm = Comm::new(7, 7, b"calls", true);
        writer.records(Encoder::comm(&comm, &attr, 1).finish()).expect("memory");
        let path = self.path.to_str().expect("a plain path").as_bytes();
        let (mode, is_executable, build_id) = (CpuMode::User, true, None);
        let (start, len, file_offset) = (BASE, self.length, 0);
        let mapping = Mmap {
            pid: 7,
            tid: 7,
            mode,
            start,
            len,
            file_offset,
            path,
            is_executable,
            build_id,
            shared_file: None,
        };
        writer.records(Encoder::mapping(&mapping, &attr, 2).finish()).expect("memory");
        for (index, (ip, word)) in samples.iter().enumerate() {
            let bytes = word.to_le_bytes();
            let sample = Sample {
                mode,
                ip: Some(*ip),
                pid: Some(7),
                tid: Some(7),
                time: Some(10 + index as u64),
                cpu: Some(0),
                period: Some(1000),
                user_stack: has_words.then_some(UserStack::new(&bytes, 8)),
                ..Sample::default()
            };
            writer.records(Encoder::sample(&sample, &attr).finish()).expect("memory");
        }
        let machine = MachineDescription { arch: "x86_64".to_owned(), ..MachineDescription::default() };
        let data = self.folder.join(name);
        std::fs::write(&data, writer.finish(&machine, &[]).expect("memory").into_inner()).expect("written");
        data
    }
}

fn report(data: &Path, more: &[&str]) -> Value {
    let data = data.to_str().expect("a plain path");
    let output = run(&[&["report", "--json", "-i", data, "-s", "sym,typeoff"], more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("a document")
}

/// Returns the number of samples by function and field.
fn rows(document: &Value) -> BTreeMap<(String, String), u64> {
    let text = |value: &Value| value.as_str().expect("a text").trim_start_matches("[.] ").to_owned();
    let mut all = BTreeMap::new();
    for row in document["rows"].as_array().expect("rows") {
        let keys = (text(&row["keys"]["sym"]), text(&row["keys"]["typeoff"]));
        *all.entry(keys).or_default() += row["samples"].as_u64().expect("a number");
    }
    assert_eq!(all.values().sum::<u64>(), document["samples"].as_u64().expect("a number"), "{document}");
    all
}

const HANDLER: &str = "struct object +0x8 (handler)";
const SECOND: &str = "struct object +0x10 (second)";

#[test]
fn a_return_address_tells_the_call_that_entered_a_function() {
    let Some(program) = Program::new("calls-known") else { return };
    let entry = program.loaded(program.address("handle"));
    let behind = |function: &str| program.loaded(program.behind_call(function));
    let mut samples = Vec::new();
    for (word, count) in
        [(behind("call"), 60), (behind("through"), 30), (behind("either"), 20), (behind("direct"), 12)]
    {
        samples.extend(std::iter::repeat_n((entry, word), count));
    }
    // a word that is no return address: of code, of nothing, zero
    samples.extend([(entry, entry), (entry, 0x1234), (entry, 0)]);
    let data = program.record("known.data", true, &samples);
    let document = report(&data, &[]);
    let rows = rows(&document);
    let of = |function: &str, field: &str| {
        rows.get(&(function.to_owned(), field.to_owned())).copied().unwrap_or_default()
    };
    assert_eq!(of("call", HANDLER), 60, "{rows:?}");
    assert_eq!(of("jump_on", HANDLER), 30, "{rows:?}");
    // either of two jumps, in equal parts
    assert_eq!((of("choose", HANDLER), of("choose", SECOND)), (10, 10), "{rows:?}");
    assert_eq!(of("handle", "(stack operation)"), 12 + 3, "{rows:?}");
    let counts = serde_json::json!({"by_return_address": 110, "assumed": 0, "unknown": 0});
    assert_eq!(document["indirect_calls"], counts);
    assert!(document["skid"].as_str().expect("a text").contains("20 of them divided"), "{document}");

    // each sample for itself, and explained
    let data = data.to_str().expect("a plain path");
    let explain = |number: &str| stdout(&run(&["report", "-i", data, "--explain", number]));
    assert!(
        explain("#0").contains("call through memory in front of the return address"),
        "{}",
        explain("#0")
    );
    assert!(explain("#0").contains(HANDLER), "{}", explain("#0"));
    assert!(explain("#70").contains("a jump through memory that leaves the function"), "{}", explain("#70"));
    let document = report(Path::new(data), &["--skid", "none"]);
    assert_eq!(document["indirect_calls"]["by_return_address"], 0);
}

#[test]
fn of_a_call_and_a_jump_behind_it_that_one_is_charged_whose_slot_holds_the_function() {
    let Some(program) = Program::compile("calls-passed-on", "passed.c", "cc", PASSED_ON) else { return };
    let behind = program.loaded(program.behind_call("unref"));
    let mut samples = Vec::new();
    for (function, count) in [("drop", 20), ("give_back", 12), ("keep", 5)] {
        samples.extend(std::iter::repeat_n((program.loaded(program.address(function)), behind), count));
    }
    let rows = rows(&report(&program.record("passed.data", true, &samples), &[]));
    let of = |function: &str, field: &str| {
        rows.get(&(function.to_owned(), field.to_owned())).copied().unwrap_or_default()
    };
    const RELEASE: &str = "struct type +0x10 (release)";
    const DESTROY: &str = "struct type +0x8 (destroy)";
    // `keep` is in both slots, and divided
    assert_eq!((of("unref", DESTROY), of("drop", RELEASE)), (20 + 3, 12 + 2), "{rows:?}");
    std::fs::remove_dir_all(&program.folder).expect("removed");
}

#[test]
fn without_a_return_address_the_only_call_is_assumed_and_of_several_none() {
    let Some(program) = Program::new("calls-assumed") else { return };
    let at = |function: &str| program.loaded(program.address(function));
    let behind = |function: &str| program.loaded(program.behind_call(function));
    let mut samples = vec![(at("handle"), 0); 100];
    // far more often behind its call than anywhere else: that is what the flow through it is judged by
    samples.extend([(at("call"), 0), (behind("call"), 0), (behind("call"), 0)]);
    let document = report(&program.record("one.data", false, &samples), &[]);
    let found = rows(&document);
    assert_eq!(found.get(&("call".to_owned(), HANDLER.to_owned())), Some(&100), "{found:?}");
    assert_eq!(document["indirect_calls"]["assumed"], 100);

    // another call of another field, in a function with samples: it may have been that
    samples.extend([(at("jump_on"), 0); 5]);
    let document = report(&program.record("two.data", false, &samples), &[]);
    let found = rows(&document);
    assert!(!found.keys().any(|(_, field)| field == HANDLER), "{found:?}");
    assert_eq!(document["indirect_calls"]["unknown"], 100);
    let reason = serde_json::json!({"reason": "entered by an indirect call", "samples": 100});
    assert!(document["untyped"].as_array().expect("reasons").contains(&reason), "{document}");

    // nobody takes the address of this function
    let samples = vec![(at("direct"), 0); 100];
    let document = report(&program.record("direct.data", false, &samples), &[]);
    assert_eq!(document["indirect_calls"]["unknown"], 0);
    assert_eq!(rows(&document).get(&("direct".to_owned(), "(stack operation)".to_owned())), Some(&100));
}

#[test]
fn a_virtual_call_names_the_class_and_the_slot() {
    let Some(program) = Program::compile("calls-virtual", "calls.cc", "c++", CLASSES) else { return };
    let entry = program.loaded(program.address("_ZN6Square4areaEl"));
    let back = program.loaded(program.behind_call("_Z4callP5Shape"));
    let document = report(&program.record("it.data", true, &[(entry, back); 20]), &[]);
    let found = rows(&document);
    let slot = "(vtable) struct Shape, slot 1";
    assert_eq!(found.get(&("call".to_owned(), slot.to_owned())), Some(&20), "{found:?}");
}

#[test]
fn the_recorder_samples_return_addresses_of_the_clock() {
    let Some(program) = Program::new("calls-recorded") else { return };
    let path = program.path.to_str().expect("a plain path");
    let behind = program.behind_call("call") & 0xfff;
    let entry = program.address("handle") & 0xfff;
    for (options, has_words) in [
        (&[][..], true),
        (&["-g"][..], false),
        (&["--call-graph", "dwarf,64"], true),
        (&["--no-return-address"], false),
    ] {
        let args = [
            &["record", "-q", "-F", "4000", "-e", "cpu-clock:u", "-e", "page-faults:u", "-o", "it.data"],
            options,
            &["--", path, "1"],
        ]
        .concat();
        let output = run_in(&program.folder, &args);
        if !output.status.success() {
            eprintln!("skipped: {}", stderr(&output).trim());
            return;
        }
        let bytes = std::fs::read(program.folder.join("it.data")).expect("a recording");
        let recording = Recording::parse(&bytes).expect("well-formed");
        let (mut at_entry, mut with_word) = (0, 0);
        for record in recording.records() {
            let RecordBody::Sample(event, sample) = record.expect("well-formed").into_body() else {
                continue;
            };
            let is_clock = recording.events().get(event).expect("described").name().starts_with("cpu-clock");
            let size = sample.user_stack.map_or(0, |stack| stack.bytes().len());
            let expected = match options {
                ["--call-graph", _] => 64,
                _ if is_clock && has_words => 8,
                _ => 0,
            };
            assert_eq!(
                size,
                expected,
                "{options:?}: {}",
                recording.events().get(event).expect("described").name()
            );
            if is_clock && sample.ip.is_some_and(|ip| ip & 0xfff == entry) {
                at_entry += 1;
                let word = sample.return_address("x86_64").unwrap_or_default();
                with_word += u32::from(word & 0xfff == behind);
            }
        }
        assert!(at_entry >= 10, "{options:?}: {at_entry} samples at the handler's first instruction");
        assert_eq!(with_word, if has_words { at_entry } else { 0 }, "{options:?}");
        let document = report(&program.folder.join("it.data"), &[]);
        let found = rows(&document);
        let charged = found.get(&("call".to_owned(), HANDLER.to_owned())).copied().unwrap_or_default();
        assert!(charged >= u64::from(at_entry), "{options:?}: {charged} of {at_entry}: {found:?}");
    }
}
