//! The analysis against the truth: programs publish the addresses of their objects, and a trace records the addresses
//! that each instruction accessed.

mod objects;

use objects::{Objects, access_paths, agree, simple};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use tallyline_debuginfo::abi;
use tallyline_debuginfo::model::{TypeId, Types};
use tallyline_debuginfo::type_text;
use tallyline_debuginfo::{Companion, Companions, Contents, Request, read_file};
use tallyline_inference::code::Image;
use tallyline_inference::{Debug, Outcome, Reason, Typed, Wanted, infer, place_text};
use tallyline_trace::emulator::{PluginOptions, emulation};
use tallyline_trace::format::Event;
use tallyline_trace::{Trace, plugin};

/// The published objects that an instruction accessed: types, and offsets in them.
type Places = BTreeSet<(String, u64)>;

/// A program after its run.
struct Run {
    program: PathBuf,
    trace: PathBuf,
    objects: Objects,
}

/// The number of instructions with an answer, and with the right one.
#[derive(Clone, Copy, Default)]
struct Score {
    eligible: usize,
    typed: usize,
    right: usize,
}

impl Score {
    fn add(&mut self, other: Score) {
        self.eligible += other.eligible;
        self.typed += other.typed;
        self.right += other.right;
    }
}

/// Compiles and traces a program; none, with a word about it, where something is missing.
fn run(source: &str, compiler: &str, flags: &[&str]) -> Option<Run> {
    if cfg!(not(target_arch = "x86_64")) || Command::new("qemu-x86_64").arg("--version").output().is_err() {
        eprintln!("skipped: no qemu-x86_64 (Debian: qemu-user)");
        return None;
    }
    let name = format!("truth-{compiler}-{source}{}-{}", flags.concat(), std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("a folder");
    let (program, trace, truth) = (folder.join("program"), folder.join("trace"), folder.join("truth"));
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let mut command = Command::new(compiler);
    command.args(flags).arg("-o").arg(&program).arg(sources.join(source));
    if compiler == "go" {
        command.arg(sources.join("publish.go"));
    }
    let made = command.current_dir(&folder).output();
    match made {
        Err(_) => {
            eprintln!("skipped: no {compiler}");
            return None;
        }
        Ok(made) => assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr)),
    }
    let plugin = plugin::build(&folder).expect("the plugin is built");
    File::create(&trace).expect("a file");
    let options = PluginOptions::new(trace.clone(), 1, u64::MAX);
    let run = emulation(&[program.clone().into_os_string()], None, &plugin, &options).expect("an emulator");
    let mut command = Command::new(run.emulator());
    // a collector that has nothing to do takes no part
    let status = command.args(run.words()).env("TALLYLINE_TRUTH", &truth).env("GOGC", "off").status();
    assert!(status.expect("it runs").success());
    let objects = Objects::parse(&fs::read_to_string(truth).expect("what it published"));
    Some(Run { program, trace, objects })
}

/// Returns the published objects that each instruction of the program accessed.
fn touched(run: &Run, image: &Image) -> BTreeMap<u64, Places> {
    let file = File::open(&run.trace).expect("the trace");
    let trace = Trace::open(&file).expect("a trace");
    let mut by_instruction: HashMap<(u32, u32), Places> = HashMap::new();
    for thread in trace.threads() {
        let mut published = 0;
        for block in thread.blocks() {
            for event in trace.events(block, Vec::new()).expect("a block") {
                let Event::Access(access) = event.expect("an event") else { continue };
                published += usize::from(access.store() && access.address() == run.objects.counted_at);
                let Some((ty, offset)) = run.objects.at(access.address(), published) else { continue };
                let places = by_instruction.entry((thread.process(), access.instruction())).or_default();
                places.insert((ty.to_string(), offset));
            }
        }
    }
    let mut touched: BTreeMap<u64, Places> = BTreeMap::new();
    for ((process, instruction), places) in by_instruction {
        let address = trace.instructions().get(instruction).expect("known").address();
        let Some((mapping, place)) = trace.mapping_at(process, address) else { continue };
        if Path::new(mapping.path()) == run.program {
            touched.entry(image.address_of(place).expect("code")).or_default().extend(places);
        }
    }
    touched
}

/// Returns true if an outcome matches all of the places.
fn is_right(
    types: &Types,
    published: &(Types, HashMap<String, TypeId>),
    typed: &Typed,
    places: &Places,
) -> bool {
    let size = abi::size_of(types, typed.ty()).max(1);
    // wide accesses are traced in parts, and go on in the next object of an array
    let parts = (0..u64::from(typed.size().max(1))).step_by(4);
    let either = [Some(typed.offset()), typed.or()];
    let bytes = parts.flat_map(|at| either.into_iter().flatten().map(move |offset| u64::from(offset) + at));
    let found: Vec<_> = bytes.flat_map(|byte| access_paths(types, typed.ty(), byte % size)).collect();
    let (wholes, named) = published;
    let agrees = |(ty, offset): &(String, u64)| {
        let whole = *named.get(ty).unwrap_or_else(|| panic!("{ty} is not among the types"));
        agree(&access_paths(wholes, whole, *offset), &found)
    };
    places.iter().all(agrees)
}

/// Returns the types of objects, by name.
fn published(run: &Run, companions: &dyn Companions) -> (Types, HashMap<String, TypeId>) {
    let request = Request { inner: true, ..Request::default() };
    let file = File::open(&run.program).expect("the program");
    let types = read_file(&file, &request, companions).expect("types");
    let of = |id: &TypeId| {
        let name = simple(&type_text(&types, *id));
        // other packages have types of such names, too
        (run.objects.size_of(&name) == Some(abi::size_of(&types, *id))).then_some((name, *id))
    };
    let named = types.listed().iter().filter_map(of).collect();
    (types, named)
}

/// The files that a compiler split off, in the folder that they were compiled in.
struct Folder(PathBuf);

impl Companions for Folder {
    fn open(&self, wanted: Companion<'_>) -> Result<Contents, Vec<PathBuf>> {
        let path = match wanted {
            Companion::Split { name, .. } => self.0.join(String::from_utf8_lossy(name).as_ref()),
            Companion::Package => self.0.join("program.dwp"),
            Companion::Alternate { .. } => return Err(Vec::new()),
        };
        File::open(&path).map(Contents::File).map_err(|_| vec![path])
    }
}

/// Scores the analysis of a program against its trace; prints wrong and missing answers.
fn score(source: &str, compiler: &str, flags: &[&str]) -> Option<Score> {
    let run = run(source, compiler, flags)?;
    let image = Image::read(&File::open(&run.program).expect("the program")).expect("an image");
    let file = File::open(&run.program).expect("the program");
    let folder = Folder(run.program.parent().expect("a folder").to_path_buf());
    let table = infer(&image, Debug::File(&file), &folder, Wanted::All).expect("a table");
    let (touched, published) = (touched(&run, &image), published(&run, &folder));
    let mut score = Score::default();
    let mut lines = Vec::new();
    for (address, places) in &touched {
        let function = table.function_at(*address).map_or("?", |function| function.name());
        match table.outcome(*address) {
            // code without debug information, as a runtime's assembler
            None | Some(Outcome::Untyped(Reason::NoDebugInformation)) => continue,
            Some(Outcome::Typed(typed)) => {
                score.typed += 1;
                if is_right(table.types(), &published, &typed, places) {
                    score.right += 1;
                } else {
                    let name = type_text(table.types(), typed.ty());
                    let place = place_text(table.types(), &typed);
                    lines.push(format!(
                        "  wrong {address:#x} in {function}: {name} {place}, touched {places:?}"
                    ));
                }
            }
            Some(Outcome::Untyped(reason)) => {
                lines.push(format!("  {address:#x} in {function}: {reason}, touched {places:?}"));
            }
            Some(Outcome::Pseudo(pseudo)) => {
                lines.push(format!("  {address:#x} in {function}: {}, touched {places:?}", pseudo.name()));
            }
        }
        score.eligible += 1;
    }
    let Score { eligible, typed, right } = score;
    println!("{source} {compiler} {}: {typed} of {eligible} typed, {right} right", flags.join(" "));
    println!("{}", lines.join("\n"));
    assert!(eligible >= 10, "the trace and the objects meet: {eligible}");
    if std::env::var_os("TALLYLINE_KEEP").is_none() {
        fs::remove_dir_all(run.program.parent().expect("a folder")).expect("removed");
    }
    Some(score)
}

/// Of the instructions that have a type so many in a hundred have the right field, at least.
const RIGHT: usize = 97;

/// Checks programs of one kind together: the share that is typed, and of that the share that is right.
fn check(kind: &str, least: usize, programs: &[(&str, &str, &[&str])]) {
    let mut all = Score::default();
    for (source, compiler, flags) in programs {
        if let Some(score) = score(source, compiler, flags) {
            all.add(score);
        }
    }
    let Score { eligible, typed, right } = all;
    println!("{kind}: {typed} of {eligible} typed, {right} right");
    assert!(right * 100 >= typed * RIGHT, "{kind}: {right} of {typed} are right");
    assert!(typed * 100 >= eligible * least, "{kind}: {typed} of {eligible} are typed");
}

#[test]
fn fields_in_c_are_those_that_the_trace_shows() {
    let programs: [(&str, &str, &[&str]); 7] = [
        ("published.c", "gcc", &["-O2", "-g"]),
        ("published.c", "clang", &["-O2", "-g"]),
        ("structures.c", "gcc", &["-O2", "-g"]),
        ("structures.c", "gcc", &["-O3", "-g", "-flto"]),
        ("structures.c", "gcc", &["-O2", "-g", "-gsplit-dwarf"]),
        ("structures.c", "clang", &["-O2", "-g"]),
        ("structures.c", "clang", &["-O3", "-g"]),
    ];
    check("C", 95, &programs);
}

#[test]
fn fields_in_cpp_are_those_that_the_trace_shows() {
    let programs: [(&str, &str, &[&str]); 5] = [
        ("published.cc", "g++", &["-O2", "-g", "-std=c++17"]),
        ("structures.cc", "g++", &["-O2", "-g", "-std=c++17"]),
        ("structures.cc", "g++", &["-O3", "-g", "-std=c++17"]),
        ("structures.cc", "clang++", &["-O2", "-g", "-std=c++17"]),
        ("structures.cc", "clang++", &["-O3", "-g", "-std=c++17"]),
    ];
    check("C++", 95, &programs);
}

#[test]
fn fields_in_cpp_containers_are_those_that_the_trace_shows() {
    let programs: [(&str, &str, &[&str]); 3] = [
        ("containers.cc", "g++", &["-O2", "-g", "-std=c++17"]),
        ("containers.cc", "g++", &["-O3", "-g", "-std=c++17"]),
        ("containers.cc", "clang++", &["-O2", "-g", "-std=c++17"]),
    ];
    check("C++ containers", 85, &programs);
}

#[test]
fn fields_in_rust_are_those_that_the_trace_shows() {
    let programs: [(&str, &str, &[&str]); 2] = [
        ("structures.rs", "rustc", &["-Copt-level=2", "-g", "--edition=2021"]),
        ("structures.rs", "rustc", &["-Copt-level=3", "-g", "--edition=2021"]),
    ];
    check("Rust", 95, &programs);
}

#[test]
fn fields_in_rust_containers_are_those_that_the_trace_shows() {
    let programs: [(&str, &str, &[&str]); 2] = [
        ("containers.rs", "rustc", &["-Copt-level=2", "-g", "--edition=2021"]),
        ("containers.rs", "rustc", &["-Copt-level=3", "-g", "--edition=2021"]),
    ];
    check("Rust containers", 80, &programs);
}

#[test]
fn fields_in_go_are_those_that_the_trace_shows() {
    check("Go", 80, &[("structures.go", "go", &["build"])]);
}

#[test]
fn fields_in_go_containers_are_those_that_the_trace_shows() {
    check("Go containers", 60, &[("containers.go", "go", &["build"])]);
}
