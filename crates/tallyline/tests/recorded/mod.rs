//! A program, and a recording of memory accesses in it that never ran: each sample says what it is.

#![allow(dead_code)] // each test file uses a part of it

use crate::common::{compiles, folder};
use std::io::Cursor;
use std::path::PathBuf;
use std::process::Command;
use tallyline_inference::code::Image;
use tallyline_perf_data::Attr;
use tallyline_perf_data::abi::{attr_flag, sample as bit};
use tallyline_perf_data::file::{Comm, Mmap};
use tallyline_perf_data::sample::{CpuMode, DataSource, Sample, Weight};
use tallyline_perf_data::writer::{Encoder, Event, MachineDescription, Writer};

pub(crate) const PROGRAM: &str = "\
struct inner { int x, y; };
struct pair { long a; long b; char gap[64]; struct inner in; };
struct pair shared_pair;
long get_a(struct pair *p) { return p->a; }
void set_b(struct pair *p, long v) { p->b = v; }
int get_y(struct pair *p) { return p->in.y; }
long nothing(long v) { return v; }
int main(void) { set_b(&shared_pair, nothing(2)); return (int)get_a(&shared_pair) + get_y(&shared_pair); }
";

/// The address of the program's first byte in memory.
const BASE: u64 = 0x5555_0000_0000;

/// A function of the program, and how it accesses memory with its first instruction.
pub(crate) const GET_A: &str = "get_a";
pub(crate) const SET_B: &str = "set_b";
pub(crate) const GET_Y: &str = "get_y";
pub(crate) const NOTHING: &str = "nothing";

/// The events of recordings, with a period of each of their samples.
pub(crate) const EVENTS: [(&str, u64); 2] = [("loads", 1000), ("faults", 1_000_000)];

/// Data sources, as the hardware has them.
pub(crate) const LOAD_L3: u64 = 2 | (2 | 1 << 6) << 5 | 2 << 19 | (2 | 8) << 26;
pub(crate) const LOAD_HITM: u64 = 2 | (2 | 1 << 6) << 5 | 16 << 19 | (2 | 8) << 26;
pub(crate) const STORE_L1: u64 = 4 | (2 | 1 << 3) << 5 | 1 << 19;

/// One sample.
#[derive(Clone, Copy)]
pub(crate) struct Access {
    pub(crate) function: &'static str,
    pub(crate) address: u64,
    pub(crate) cpu: u32,
    pub(crate) source: u64,
    pub(crate) weight: u64,
    /// The index of the event in [`EVENTS`].
    pub(crate) event: usize,
}

/// Returns an access of no particular CPU, address or cost.
pub(crate) fn access(function: &'static str) -> Access {
    Access { function, address: 0x7000_0000, cpu: 0, source: LOAD_L3, weight: 10, event: 0 }
}

/// The program and the recording.
pub(crate) struct Recorded {
    pub(crate) data: PathBuf,
    pub(crate) folder: PathBuf,
}

impl Recorded {
    /// Returns the recording's path.
    pub(crate) fn path(&self) -> &str {
        self.data.to_str().expect("a plain path")
    }
}

/// Compiles the program and writes a recording of these accesses; none where there is no compiler, or
/// the machine's code is not x86-64. Precise samples are at the access; others one instruction late.
pub(crate) fn record(name: &str, is_precise: bool, accesses: &[Access]) -> Option<Recorded> {
    record_program(name, PROGRAM, &["-g"], is_precise, accesses)
}

/// Records another program with these functions, compiled with additional options.
pub(crate) fn record_program(
    name: &str,
    text: &str,
    options: &[&str],
    is_precise: bool,
    accesses: &[Access],
) -> Option<Recorded> {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: the program's instructions are told for x86-64");
        return None;
    }
    let folder = folder(name);
    let (source, program) = (folder.join("pair.c"), folder.join("pair"));
    std::fs::write(&source, text).expect("written");
    let mut compiler = Command::new("cc");
    // no landing pads: the first instruction is the access
    compiler.args(options).args(["-O1", "-fno-inline", "-fcf-protection=none", "-fomit-frame-pointer", "-o"]);
    if !compiles(compiler.arg(&program).arg(&source)) {
        return None;
    }
    let bytes = std::fs::read(&program).expect("just made");
    let image = Image::parse(&bytes).expect("a program");
    let address_of = |name: &str| {
        let symbol = image.functions().iter().find(|symbol| symbol.name() == name);
        let address = symbol.expect("a function of the program").address();
        let segment =
            image.segments().iter().find(|segment| address.wrapping_sub(segment.address()) < segment.size());
        let segment = segment.expect("code is loaded");
        BASE + (address - segment.address()) + segment.offset()
    };
    let count = accesses.iter().map(|access| access.event + 1).max().unwrap_or(1);
    let attr_of = |event: usize| Attr {
        kind: 1,
        config: event as u64,
        sample_period: EVENTS[event].1,
        sample_type: bit::IP
            | bit::TID
            | bit::TIME
            | bit::ADDR
            | bit::CPU
            | bit::PERIOD
            | bit::DATA_SRC
            | bit::WEIGHT_STRUCT
            | if count > 1 { bit::IDENTIFIER } else { 0 },
        flags: attr_flag::SAMPLE_ID_ALL | if is_precise { 2 << attr_flag::PRECISE_SHIFT } else { 0 },
        ..Attr::default()
    };
    let attrs: Vec<Attr> = (0..count).map(attr_of).collect();
    let event = |event: usize| Event::new(EVENTS[event].0, attrs[event].clone(), vec![event as u64 + 1]);
    let mut writer = Writer::new(Cursor::new(Vec::new()), (0..count).map(event).collect()).expect("memory");
    let attr = &attrs[0];
    let comm = Comm::new(7, 7, b"pair", true);
    writer.records(Encoder::comm(&comm, attr, 1).finish()).expect("memory");
    let mapping = Mmap {
        pid: 7,
        tid: 7,
        mode: CpuMode::User,
        start: BASE,
        len: bytes.len() as u64,
        file_offset: 0,
        path: program.to_str().expect("a plain path").as_bytes(),
        is_executable: true,
        build_id: None,
        shared_file: None,
    };
    writer.records(Encoder::mapping(&mapping, attr, 2).finish()).expect("memory");
    for (index, access) in accesses.iter().enumerate() {
        // a move of eight bytes has three or four of its own: the code says where it ends
        let late = if is_precise { 0 } else { first_length(&image, access.function) };
        let sample = Sample {
            mode: CpuMode::User,
            exact: is_precise,
            ip: Some(address_of(access.function) + late),
            pid: Some(7),
            tid: Some(7),
            time: Some(10 + index as u64),
            addr: Some(access.address),
            id: (count > 1).then_some(access.event as u64 + 1),
            cpu: Some(access.cpu),
            period: Some(EVENTS[access.event].1),
            weight: Some(Weight::new(access.weight, 3, 1)),
            data_source: Some(DataSource(access.source)),
            ..Sample::default()
        };
        writer.records(Encoder::sample(&sample, &attrs[access.event]).finish()).expect("memory");
    }
    let machine = MachineDescription { arch: "x86_64".to_owned(), ..MachineDescription::default() };
    let written = writer.finish(&machine, &[]).expect("memory").into_inner();
    let data = folder.join("perf.data");
    std::fs::write(&data, written).expect("written");
    Some(Recorded { data, folder })
}

fn first_length(image: &Image, function: &str) -> u64 {
    let symbol = image.functions().iter().find(|symbol| symbol.name() == function).expect("a function");
    let range = symbol.address()..symbol.address() + symbol.size();
    let body = tallyline_inference::code::Body::decode(image, &[range], symbol.address());
    body.instructions()[0].length().into()
}
