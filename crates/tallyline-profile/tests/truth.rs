//! What instructions touch, as the analysis has it, against what they touched: programs say where their
//! objects are, and a trace says which addresses each instruction used.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use tallyline_layout::Alone;
use tallyline_layout::model::{Type, TypeId, Types};
use tallyline_layout::print::type_text;
use tallyline_profile::code::Image;
use tallyline_profile::infer::{Debug, Outcome, TypeTable, Typed, Wanted, infer};
use tallyline_profile::trace::emulator::{Options, emulation};
use tallyline_profile::trace::format::Event;
use tallyline_profile::trace::{Trace, plugin};

/// Objects that a program published: type, first address, stride, count.
struct Objects(Vec<(String, u64, u64, u64)>);

impl Objects {
    fn parse(text: &str) -> Self {
        let object = |line: &str| {
            let mut words = line.split('\t');
            let ty = words.next().expect("a type").to_string();
            let first = words.next().and_then(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
            let mut number = || words.next().and_then(|word| word.parse().ok()).expect("a number");
            (ty, first.expect("an address"), number(), number())
        };
        Self(text.lines().map(object).collect())
    }

    /// The type and the offset of an address.
    fn at(&self, address: u64) -> Option<(&str, u64)> {
        self.0.iter().find_map(|(ty, first, stride, count)| {
            let distance = address.checked_sub(*first).filter(|distance| *distance < stride * count)?;
            Some((ty.as_str(), distance % stride))
        })
    }
}

/// Compiles and traces a program; none, with a word about it, where something is missing.
fn traced(source: &str, compiler: &str, flags: &[&str]) -> Option<(PathBuf, PathBuf, Objects)> {
    if cfg!(not(target_arch = "x86_64")) || Command::new("qemu-x86_64").arg("--version").output().is_err() {
        eprintln!("skipped: no qemu-x86_64 (Debian: qemu-user)");
        return None;
    }
    let name = format!("truth-{compiler}-{source}{}-{}", flags.concat(), std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("a folder");
    let (program, output, truth) = (folder.join("program"), folder.join("trace"), folder.join("truth"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let made =
        Command::new(compiler).args(["-O2", "-g"]).args(flags).arg("-o").arg(&program).arg(source).output();
    match made {
        Err(_) => {
            eprintln!("skipped: no {compiler}");
            return None;
        }
        Ok(made) => assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr)),
    }
    let plugin = plugin::build(&folder).expect("the plugin is built");
    File::create(&output).expect("a file");
    let options = Options { output: output.clone(), every: 1, limit: u64::MAX };
    let run = emulation(&[program.clone().into_os_string()], None, &plugin, &options).expect("an emulator");
    let status = Command::new(run.emulator).args(run.words).env("TALLYLINE_TRUTH", &truth).status();
    assert!(status.expect("it runs").success());
    let objects = Objects::parse(&fs::read_to_string(truth).expect("what it published"));
    Some((program, output, objects))
}

/// What each instruction of the program touched, of what was published: types and offsets.
fn touched(
    program: &Path,
    image: &Image,
    trace: &Path,
    objects: &Objects,
) -> BTreeMap<u64, BTreeSet<(String, u64)>> {
    let file = File::open(trace).expect("the trace");
    let trace = Trace::open(&file).expect("a trace");
    let mut touched: BTreeMap<u64, BTreeSet<(String, u64)>> = BTreeMap::new();
    for thread in trace.threads() {
        for block in &thread.blocks {
            for event in trace.events(block, Vec::new()).expect("a block") {
                let Event::Access(access) = event.expect("an event") else { continue };
                let Some((ty, offset)) = objects.at(access.address) else { continue };
                let address = trace.instructions().get(access.instruction).expect("known").address;
                let Some((mapping, place)) = trace.mapping_at(thread.process, address) else { continue };
                if Path::new(&mapping.path) == program {
                    let address = image.address_of(place).expect("code");
                    touched.entry(address).or_default().insert((ty.to_string(), offset));
                }
            }
        }
    }
    touched
}

/// Whether a part of an object of type `whole`, at an offset, is what the analysis says: the whole, or
/// the member that is there, or a member of that.
fn is_part(types: &Types, whole: TypeId, offset: u64, typed: &Typed, depth: u32) -> bool {
    let whole = types.strip(whole);
    if type_text(types, whole) == type_text(types, typed.ty) && offset == u64::from(typed.offset) {
        return true;
    }
    if depth == 0 {
        return false;
    }
    match types.get(whole) {
        Type::Record(record) => types.members(types.record(record)).iter().any(|member| {
            let inside = offset.checked_sub(member.offset).filter(|inside| *inside < member.size);
            inside.is_some_and(|inside| is_part(types, member.ty, inside, typed, depth - 1))
        }),
        Type::Array(array) => {
            let of = types.array(array).of;
            let size = tallyline_layout::query::size_of(types, of).max(1);
            is_part(types, of, offset % size, typed, depth - 1)
        }
        _ => false,
    }
}

fn is_right(table: &TypeTable, typed: &Typed, touched: &BTreeSet<(String, u64)>) -> bool {
    let types = table.types();
    // the types that were found are not all listed by name
    let ids = table.rows().iter().filter_map(|(_, outcome)| match outcome {
        Outcome::Typed(typed) => Some(typed.ty),
        _ => None,
    });
    let ids: BTreeSet<TypeId> = ids.collect();
    let named = |ty: &str| ids.iter().copied().find(|id| type_text(types, *id) == ty);
    touched.iter().any(|(ty, offset)| {
        type_text(types, typed.ty) == *ty && *offset == u64::from(typed.offset)
            || named(ty).is_some_and(|whole| is_part(types, whole, *offset, typed, 8))
    })
}

/// Of the instructions that have a type so many in a hundred have the right one, at least. What is wrong as
/// of now: an index register that starts at a field's offset, a pointer that is moved before it is used.
const RIGHT: usize = 85;

/// The share of right fields, of the instructions that have one.
fn check(source: &str, compiler: &str, flags: &[&str]) {
    let Some((program, trace, objects)) = traced(source, compiler, flags) else { return };
    let image = Image::read(&File::open(&program).expect("the program")).expect("an image");
    let file = File::open(&program).expect("the program");
    let table = infer(&image, Debug::File(&file), &Alone, Wanted::All).expect("a table");
    let touched = touched(&program, &image, &trace, &objects);
    let (mut right, mut wrong, mut untyped) = (0, Vec::new(), Vec::new());
    for (address, places) in &touched {
        match table.outcome(*address) {
            Some(Outcome::Typed(typed)) if is_right(&table, &typed, places) => right += 1,
            Some(Outcome::Typed(typed)) => {
                let name = type_text(table.types(), typed.ty);
                wrong.push(format!("{address:#x}: {name} +{:#x}, touched {places:?}", typed.offset));
            }
            other => untyped.push(format!("{address:#x}: {other:?}, touched {places:?}")),
        }
    }
    let typed = right + wrong.len();
    println!(
        "{source}, {compiler} {flags:?}: {} instructions touch published objects, {typed} typed, {right} right",
        touched.len()
    );
    println!("{}", untyped.iter().chain(&wrong).map(String::as_str).collect::<Vec<_>>().join("\n"));
    assert!(touched.len() >= 20, "the trace and the objects meet: {}", touched.len());
    assert!(right * 100 >= typed * RIGHT, "{right} of {typed} are right:\n{}", wrong.join("\n"));
    assert!(typed * 100 >= touched.len() * 60, "{typed} of {} are typed", touched.len());
    fs::remove_dir_all(program.parent().expect("a folder")).expect("removed");
}

#[test]
fn fields_in_c_are_those_that_the_trace_shows() {
    check("published.c", "gcc", &[]);
}

#[test]
fn fields_in_c_by_another_compiler_are_those_that_the_trace_shows() {
    check("published.c", "clang", &[]);
}

#[test]
fn fields_in_cpp_are_those_that_the_trace_shows() {
    check("published.cc", "g++", &[]);
}
