use super::*;
use crate::info::{EventInfo, RecordingInfo};
use crate::keys::Needs;
use crate::names::NameId;
use crate::places::PlaceCollector;
use crate::programs::{self, Program, Programs};
use crate::samples::LoadedSamples;
use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use tallyline_debuginfo::NoCompanions;
use tallyline_inference::{Debug, Wanted, infer};
use tallyline_perf_data::file::{Record, RecordVisitor, Recording};
use tallyline_perf_data::jit::JitMap;
use tallyline_perf_data::sample::Weight;
use tallyline_perf_data::spaces::Dso;

#[test]
fn an_object_is_where_it_was_used_and_two_types_in_one_place_are_none() {
    let mut objects = Objects::default();
    objects.add(7, 0x1000, 64, JoinedId::of(3));
    objects.add(7, 0x1000, 64, JoinedId::of(3));
    objects.add(7, 0x1040, 64, JoinedId::of(4));
    assert_eq!(objects.at(7, 0x1038), Some((JoinedId::of(3), 0x38)));
    assert_eq!(objects.at(7, 0x1040), Some((JoinedId::of(4), 0)));
    assert_eq!(objects.at(7, 0x1080), None);
    assert_eq!(objects.at(8, 0x1000), None);
    objects.add(7, 0x1050, 16, JoinedId::of(5));
    assert_eq!(objects.at(7, 0x1040), None);
    assert_eq!(objects.at(7, 0x1000), Some((JoinedId::of(3), 0)));
}

/// Code that does not say what it accesses, and some that does.
const SOURCE: &str = "
struct counter { long hits; int errors, faults; long bytes; };
static struct counter zeros;
struct counter total = { 1, 2, 3, 4 };
__attribute__((noinline)) long known(struct counter *c) { return c->bytes; }
__attribute__((noinline)) long raw(unsigned long at) { return *(volatile long *)at; }
__attribute__((noinline)) long part(struct counter *c, unsigned long at) { return *(long *)((char *)c + at); }
int main(int n, char **v) { zeros.hits = n; return known(&total) + raw((unsigned long)v) + part(&zeros, n); }
";

/// A program, compiled; none where there is no compiler.
struct Compiled(PathBuf);

impl Compiled {
    fn new() -> Option<Compiled> {
        let folder = std::env::temp_dir().join(format!("tallyline-evidence-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let source = folder.join("program.c");
        std::fs::write(&source, SOURCE).expect("written");
        let mut command = Command::new("gcc");
        command
            .args(["-O2", "-g", "-no-pie", "-fno-ipa-sra", "-fno-ipa-cp", "-o"])
            .arg(folder.join("program"));
        match command.arg(source).status() {
            Ok(status) if status.success() && cfg!(target_arch = "x86_64") => Some(Compiled(folder)),
            _ => None,
        }
    }

    fn image(&self) -> Image {
        Image::read(&File::open(self.0.join("program")).expect("the program")).expect("an image")
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        // a folder in the machine's own place for such: what is left does no harm
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Programs for Compiled {
    fn open(&self, _: &Dso) -> std::result::Result<Program, String> {
        let file = File::open(self.0.join("program")).expect("the program");
        let debug = programs::Debug { file, companions: Box::new(NoCompanions), symbols: None };
        Ok(Program { image: self.image(), debug: Some(debug), btf: None, store: None })
    }

    fn jit(&self, _: i32) -> Option<JitMap> {
        None
    }

    fn kernel(&self) -> Option<JitMap> {
        None
    }
}

/// No recording: what is to be known is in the profile.
struct Unrecorded;

impl RecordSource for Unrecorded {
    fn recording(&self) -> &Recording<'_> {
        unreachable!("nothing is loaded")
    }

    fn visit(&self, _: &mut RecordVisitor<'_>) -> Result<bool, Error> {
        Ok(true)
    }

    fn visit_at(
        &self,
        _: &mut dyn Iterator<Item = u64>,
        _: &mut dyn FnMut(&Record<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        Ok(())
    }
}

/// A recording that is put together sample by sample.
struct Made {
    samples: Samples,
    places: PlaceCollector,
    image: Image,
    functions: Vec<(String, u64)>,
}

impl Made {
    fn new(program: &Compiled) -> Made {
        let image = program.image();
        let file = File::open(program.0.join("program")).expect("the program");
        let table = infer(&image, Debug::File(&file), &NoCompanions, Wanted::All).expect("a table");
        let load = |name: &str| {
            let function =
                table.functions().iter().find(|function| function.name() == name).expect("it is there");
            let is_own = |address: &&u64| function.ranges()[0].contains(*address);
            *table.rows().iter().map(|(address, _)| address).find(is_own).expect("a load")
        };
        let functions = ["known", "raw", "part"].map(|name| (name.to_owned(), load(name))).to_vec();
        let dso = Dso::new("/program", DsoKind::File);
        let event = EventInfo {
            name: "loads".into(),
            is_precise: true,
            is_counter: false,
            has_weight: false,
            has_source: false,
        };
        let info = RecordingInfo { events: vec![event], ..RecordingInfo::default() };
        let samples = Samples { dsos: vec![dso], info, ..Samples::default() };
        Made { samples, places: PlaceCollector::default(), image, functions }
    }

    fn offset(&self, address: u64) -> u64 {
        let holds = |address: u64| {
            move |segment: &&tallyline_inference::code::Segment| {
                address.wrapping_sub(segment.address()) < segment.size()
            }
        };
        let segment = self.image.segments().iter().find(holds(address)).expect("in the file");
        address - segment.address() + segment.offset()
    }

    /// Adds a sample of the first load of a function.
    fn sample(&mut self, function: &str, address: Option<u64>, registers: &[(u8, u64)]) {
        let ip = self.functions.iter().find(|(name, _)| name == function).expect("it is there").1;
        let (dso, kind) = (DsoId::from_position(0), PlaceKind::Instruction);
        let place = Place { dso, offset: self.offset(ip), mode: CpuMode::User, pid: None, kind };
        let in_file = |address: &u64| self.image.address_of(0).is_some() && *address < 0x50_0000;
        let data = address.map(|address| match in_file(&address) && self.is_stored(address) {
            true => Place { offset: self.offset(address), ..place },
            false => Place { dso: None, offset: address, ..place },
        });
        let values = &mut self.samples.registers.values;
        let held = RegistersId::from_position(values.len()).filter(|_| !registers.is_empty());
        if let Some(held) = held {
            let mut own = [0; 16];
            registers.iter().for_each(|(register, value)| own[usize::from(*register)] = *value);
            values.insert(held, own.into());
        }
        let place = self.places.intern(place);
        let data = data.and_then(|data| self.samples.data.push(data, address.unwrap_or(0)));
        self.samples.groups.push(SampleGroup {
            event: 0,
            samples: 1,
            pid: 5,
            tid: 5,
            comm: NameId::default(),
            cpu: None,
            exact: true,
            mode: CpuMode::User,
            ip,
            place,
            charged: place,
            caller: None,
            time: 0,
            period: 1,
            address: address.unwrap_or(0),
            data,
            registers: held,
            physical_address: 0,
            weight: Weight::default(),
            source: None,
            data_page_size: 0,
            code_page_size: 0,
        });
    }

    fn is_stored(&self, address: u64) -> bool {
        self.image.segments().iter().any(|segment| address.wrapping_sub(segment.address()) < segment.size())
    }

    fn symbol(&self, name: &str) -> u64 {
        self.image.data().iter().find(|symbol| symbol.name() == name).expect("a symbol").address()
    }
}

#[test]
fn addresses_and_registers_decide_where_the_instruction_does_not() {
    let Some(program) = Compiled::new() else {
        eprintln!("skipped: no gcc");
        return;
    };
    let mut made = Made::new(&program);
    let (total, zeros) = (made.symbol("total"), made.symbol("zeros"));
    let (rdi, rsi) = (5, 4);
    made.sample("known", Some(0x7000_0010), &[]);
    let expected = [
        // in variables, one of which has no bytes in the file
        (("raw", Some(total + 16), &[][..]), Some("struct counter +0x10 (bytes)")),
        (("raw", Some(zeros), &[]), Some("struct counter +0 (hits)")),
        // in an object that another instruction has used, by the address and by registers
        (("raw", Some(0x7000_0008), &[]), Some("struct counter +0x8 (errors)")),
        (("raw", None, &[(rdi, 0x7000_0000)]), Some("struct counter +0 (hits)")),
        // an index
        (("part", None, &[(rdi, 0x9000), (rsi, 16)]), Some("struct counter +0x10 (bytes)")),
        // nothing known
        (("raw", Some(0x8000_0000), &[]), None),
        (("raw", None, &[]), None),
    ];
    for ((function, address, registers), _) in expected {
        made.sample(function, address, registers);
    }
    let Made { samples, places, .. } = made;
    let samples = Samples { places: places.finish(), ..samples };
    let loaded = LoadedSamples { samples, ..LoadedSamples::default() };
    let profile = loaded.resolve(&Unrecorded, &program, Needs { types: true, ..Needs::NONE }, true, None);
    for (group, (sample, expected)) in profile.groups()[1..].iter().zip(expected) {
        let found = profile.outcome(group).operand().map(|operand| profile.text(operand.text));
        assert_eq!(found, expected, "{sample:?}");
    }
    assert_eq!(profile.by_evidence(), 5);
}
