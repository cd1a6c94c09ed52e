use super::*;
use crate::keys::Needs;
use crate::operand::Outcome;
use crate::{LoadedSamples, MergeGranularity, Profile, programs};
use std::fs::{self, File};
use std::io::Cursor;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use tallyline_debuginfo::NoCompanions;
use tallyline_inference::code::Image;
use tallyline_inference::{Debug, Wanted, infer};
use tallyline_perf_data::abi::{attr_flag, sample as bit};
use tallyline_perf_data::file::{Comm, Mmap, Recording};
use tallyline_perf_data::jit::JitMap;
use tallyline_perf_data::writer::{Encoder, Event};
use tallyline_perf_data::{Attr, Writer, recorder};

const ONE: &str = "
struct order { struct order *next; long total; int flags; };
struct order orders[8];
__attribute__((noinline)) long walk(struct order *o) { long n = 0; for (; o; o = o->next) n += o->total; return n; }
__attribute__((noinline)) void mark(struct order *o) { o->flags++; }
int main(void) { mark(orders); return walk(orders); }
";
const TWO: &str = "
struct account { long balance; int refused; };
__attribute__((noinline)) void refuse(struct account *a) { a->refused++; }
int main(int n, char **v) { struct account a = { n, n }; refuse(&a); return a.refused; }
";

/// Two programs; counts how often one is opened.
struct Compiled {
    folder: PathBuf,
    opened: AtomicUsize,
}

impl Compiled {
    fn new() -> Option<Compiled> {
        let folder = std::env::temp_dir().join(format!("tallyline-ahead-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        for (name, source) in [("one", ONE), ("two", TWO)] {
            let path = folder.join(name).with_extension("c");
            fs::write(&path, source).expect("written");
            let mut command = Command::new("gcc");
            command.args(["-O2", "-g", "-no-pie", "-o"]).arg(folder.join(name)).arg(path);
            if !command.status().is_ok_and(|status| status.success()) {
                eprintln!("skipped: no gcc");
                return None;
            }
        }
        Some(Compiled { folder, opened: AtomicUsize::new(0) })
    }

    /// Returns the file offset of each instruction of a program that accesses memory.
    fn offsets(&self, name: &str) -> Vec<u64> {
        let file = File::open(self.folder.join(name)).expect("the program");
        let image = Image::read(&file).expect("an image");
        let table = infer(&image, Debug::File(&file), &NoCompanions, Wanted::All).expect("a table");
        let holds = |address: u64| {
            image.segments().iter().find(move |one| address.wrapping_sub(one.address()) < one.size())
        };
        let offset =
            |address: &u64| holds(*address).map(|segment| address - segment.address() + segment.offset());
        table.rows().iter().filter_map(|(address, _)| offset(address)).collect()
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Programs for Compiled {
    fn open(&self, dso: &Dso) -> Result<Program, String> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        let file = File::open(self.folder.join(dso.path().trim_start_matches('/')))
            .map_err(|error| error.to_string())?;
        let image = Image::read(&file).map_err(|error| error.to_string())?;
        let debug = programs::Debug { file, companions: Box::new(NoCompanions), symbols: None };
        Ok(Program { image, debug: Some(debug), btf: None, store: None })
    }

    fn jit(&self, _: i32) -> Option<JitMap> {
        None
    }

    fn kernel(&self) -> Option<JitMap> {
        None
    }
}

const PID: i32 = 77;
const BASE: u64 = 0x40_0000;

fn map(path: &[u8], pid: i32) -> Mmap<'_> {
    Mmap {
        pid,
        tid: pid,
        mode: CpuMode::User,
        start: BASE,
        len: 0x10_0000,
        file_offset: 0,
        path,
        is_executable: true,
        build_id: None,
        shared_file: None,
    }
}

/// Returns a recording in which most code is there early, some late, and a program and a missing file only
/// later.
fn recorded(compiled: &Compiled) -> Vec<u8> {
    let attr = Attr {
        kind: 1,
        sample_period: 1000,
        sample_type: bit::IDENTIFIER | bit::IP | bit::TID | bit::TIME | bit::CPU | bit::PERIOD,
        flags: attr_flag::SAMPLE_ID_ALL,
        ..Attr::default()
    };
    let event = Event::new("cpu-clock", attr.clone(), vec![1]);
    let mut writer = Writer::new(Cursor::new(Vec::new()), vec![event]).expect("memory");
    let mut time = 1000;
    let (one, two) = (compiled.offsets("one"), compiled.offsets("two"));
    let mut samples = |writer: &mut Writer<Cursor<Vec<u8>>>, pid: i32, offsets: &[u64], count: usize| {
        for (index, offset) in offsets.iter().cycle().take(count).enumerate() {
            // CPUs' rings are emptied one after the other
            time = match index % 10 {
                0 => time + 500,
                5 => time - 300,
                _ => time + 7,
            };
            let sample = Sample {
                mode: CpuMode::User,
                exact: index % 3 == 0,
                ip: Some(BASE + offset),
                pid: Some(pid),
                tid: Some(pid),
                time: Some(time),
                id: Some(1),
                cpu: Some(0),
                period: Some(attr.sample_period),
                ..Sample::default()
            };
            writer.records(Encoder::sample(&sample, &attr).finish()).expect("memory");
        }
        time
    };
    let comm = Comm::new(PID, PID, b"one", true);
    writer.records(Encoder::comm(&comm, &attr, 1).finish()).expect("memory");
    writer.records(Encoder::mapping(&map(b"/one", PID), &attr, 2).finish()).expect("memory");
    let at = samples(&mut writer, PID, &one[..one.len() / 2], FIRST + 3);
    writer.records(Encoder::mapping(&map(b"/two", PID + 1), &attr, at + 1).finish()).expect("memory");
    let at = samples(&mut writer, PID + 1, &two, 40) + 1000;
    writer.records(Encoder::mapping(&map(b"/gone", PID), &attr, at).finish()).expect("memory");
    writer.records(Encoder::mapping(&map(b"/one", PID + 2), &attr, at).finish()).expect("memory");
    samples(&mut writer, PID + 2, &one, 30 * one.len());
    samples(&mut writer, PID, &[64, 80], 5);
    writer.finish_round().expect("memory");
    writer.finish(&recorder::describe(&[]), &[]).expect("memory").into_inner()
}

/// Returns each group of samples with what it accesses, in words.
fn told(profile: &Profile) -> Vec<String> {
    let told = |group: &crate::samples::SampleGroup| {
        let outcome = match profile.outcome(group) {
            Outcome::Typed(operand) => profile.text(operand.text).to_owned(),
            other => format!("{other:?}"),
        };
        let place = profile.place(group.place);
        format!("{} {:#x} {} {outcome}", profile.dso_name(place.dso), place.offset, group.samples)
    };
    let dsos = (0..4).filter_map(DsoId::from_position);
    let why_not = |dso| format!("{dso:?}: {:?}", profile.why_not(dso));
    profile.groups().iter().map(told).chain(dsos.map(why_not)).collect()
}

#[test]
fn a_report_is_the_same_as_of_programs_that_are_looked_at_when_all_is_read() {
    let Some(compiled) = Compiled::new() else { return };
    let bytes = recorded(&compiled);
    let recording = Recording::parse(&bytes).expect("well-formed");
    for needs in [Needs::TYPES, Needs::TYPES.and(Needs::CPUS), Needs::TYPES.and(Needs::SAMPLES)] {
        for correct in [false, true] {
            let loaded = LoadedSamples::load(&recording, needs.apart).expect("well-formed");
            let after = loaded.resolve(&recording, &compiled, needs, correct, None);
            assert_eq!(compiled.opened.swap(0, Ordering::Relaxed), 3, "one, two, and the one that is gone");
            let ahead = Profile::load(&recording, &compiled, needs, correct);
            let ahead = ahead.expect("well-formed").expect("read");
            assert_eq!(compiled.opened.swap(0, Ordering::Relaxed), 3);
            assert_eq!(told(&ahead), told(&after));
            let is_apart = needs.apart == MergeGranularity::Samples;
            let samples: u64 = ahead.groups().iter().map(|group| group.samples).sum();
            assert_eq!(ahead.groups().len() as u64 == samples, is_apart);
            assert!(told(&ahead).iter().any(|line| line.contains("struct order") && line.contains("flags")));
            assert!(told(&ahead).iter().any(|line| line.contains("struct account")));
        }
    }
}
