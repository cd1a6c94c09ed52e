//! Recordings of programs that nobody ran: samples spread over the functions of a file.
//!
//! What a report costs follows the file's debug information, and how many functions have samples; so a
//! kernel, or a program that needs a cluster to run, can be measured where it is only a file.

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::path::Path;
use tallyline_inference::code::{Body, Image};
use tallyline_perf_data::abi::{attr_flag, sample as bit};
use tallyline_perf_data::file::{BuildId, Comm, Mmap};
use tallyline_perf_data::recorder;
use tallyline_perf_data::sample::CpuMode;
use tallyline_perf_data::writer::{Encoder, Event};
use tallyline_perf_data::{Attr, Sample, Writer};

/// Instructions with samples in each function.
const PLACES: usize = 8;

/// The load address of a position-independent file.
const BASE: u64 = 0x5555_5555_4000;

const PAGE: u64 = 4096;
const PID: i32 = 4000;

/// Returns the attributes that perf sets for the software clock.
fn attr() -> Attr {
    Attr {
        kind: 1,
        sample_period: 1_000_000,
        sample_type: bit::IDENTIFIER | bit::IP | bit::TID | bit::TIME | bit::CPU | bit::PERIOD,
        flags: attr_flag::SAMPLE_ID_ALL,
        ..Attr::default()
    }
}

/// Writes a recording of so many samples at instructions of a file that access memory, in so many
/// functions: the n-th has 1/n of what the first has.
pub(super) fn write(program: &Path, samples: u64, functions: usize, recording: &Path) -> Result<()> {
    let program = program.canonicalize().with_context(|| format!("cannot read {}", program.display()))?;
    let file = File::open(&program).with_context(|| format!("cannot read {}", program.display()))?;
    let image = Image::read(&file).with_context(|| program.display().to_string())?;
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let functions = places(&image, functions, &mut random);
    if functions.is_empty() {
        bail!("{}: no function with a size", program.display());
    }
    let attr = attr();
    let event = Event::new("cpu-clock", attr.clone(), vec![1]);
    let out = File::create(recording).with_context(|| format!("cannot write {}", recording.display()))?;
    let mut writer = Writer::new(BufWriter::new(out), vec![event])?;
    let comm = Comm::new(PID, PID, b"spread", true);
    writer.records(Encoder::comm(&comm, &attr, 1).finish())?;
    let base = map(&image, &program, &attr, &mut writer)?;
    let mode = if is_kernel(&image) { CpuMode::Kernel } else { CpuMode::User };
    // where each function's part of the samples ends
    let ends: Vec<f64> = functions
        .iter()
        .enumerate()
        .scan(0.0, |sum, (rank, _)| {
            *sum += 1.0 / (rank + 1) as f64;
            Some(*sum)
        })
        .collect();
    let whole = ends.last().copied().unwrap_or_default();
    for index in 0..samples {
        let at = random.below(1 << 32) as f64 / (1_u64 << 32) as f64 * whole;
        let places = &functions[ends.partition_point(|end| *end < at).min(functions.len() - 1)];
        let place = places[random.below(places.len() as u64) as usize];
        let time = 1000 + index * 1000;
        let sample = Sample {
            mode,
            // at the very instruction that accesses memory: there is nothing to correct
            exact: true,
            ip: Some(base + place),
            pid: Some(PID),
            tid: Some(PID),
            time: Some(time),
            id: Some(1),
            cpu: Some(0),
            period: Some(attr.sample_period),
            ..Sample::default()
        };
        writer.sample_time(time);
        writer.records(Encoder::sample(&sample, &attr).finish())?;
    }
    writer.finish_round()?;
    writer.finish(&recorder::describe(&["tallyline-bench report".to_owned()]), &[])?;
    Ok(())
}

/// Says where the file lies, and returns how far from where the linker put it.
fn map<W: Write + Seek>(image: &Image, program: &Path, attr: &Attr, writer: &mut Writer<W>) -> Result<u64> {
    let id = image.build_id().and_then(BuildId::new);
    if is_kernel(image) {
        let start = image.address_of_symbol("_text").context("a kernel without the symbol _text")?;
        let len = u64::MAX - start - (1 << 24);
        let path = b"[kernel.kallsyms]_text";
        let mapping = Mmap {
            pid: -1,
            tid: 0,
            mode: CpuMode::Kernel,
            start,
            len,
            file_offset: start,
            path,
            is_executable: true,
            build_id: None,
            shared_file: None,
        };
        writer.records(Encoder::mapping(&mapping, attr, 2).finish())?;
        id.into_iter().for_each(|id| writer.build_id(true, b"[kernel.kallsyms]", id));
        return Ok(0);
    }
    let first = image.segments().iter().map(|segment| segment.address()).min().unwrap_or_default();
    let base = if first < PAGE { BASE } else { 0 };
    let path = program.as_os_str().as_encoded_bytes();
    for segment in image.segments() {
        let before = segment.address() % PAGE;
        let mapping = Mmap {
            pid: PID,
            tid: PID,
            mode: CpuMode::User,
            start: base + segment.address() - before,
            len: (segment.size() + before).next_multiple_of(PAGE),
            file_offset: segment.offset() - before,
            path,
            is_executable: image.is_code(segment.address())
                || has_code(image, segment.address(), segment.size()),
            build_id: None,
            shared_file: None,
        };
        writer.records(Encoder::mapping(&mapping, attr, 2).finish())?;
    }
    id.into_iter().for_each(|id| writer.build_id(false, path, id));
    Ok(base)
}

fn has_code(image: &Image, address: u64, size: u64) -> bool {
    image.functions().iter().any(|symbol| symbol.address().wrapping_sub(address) < size)
}

fn is_kernel(image: &Image) -> bool {
    image.functions().first().is_some_and(|symbol| symbol.address() >> 63 != 0)
}

/// Returns some instructions of some functions that access memory.
fn places(image: &Image, functions: usize, random: &mut Random) -> Vec<Vec<u64>> {
    let mut symbols: Vec<_> = image.functions().iter().filter(|symbol| symbol.size() > 0).collect();
    let mut found = Vec::new();
    while found.len() < functions && !symbols.is_empty() {
        let symbol = symbols.swap_remove(random.below(symbols.len() as u64) as usize);
        let range = symbol.address()..symbol.address() + symbol.size();
        let body = Body::decode(image, &[range], symbol.address());
        let mut places: Vec<u64> = body
            .instructions()
            .iter()
            .filter(|instruction| instruction.memory().is_some_and(|memory| !memory.implicit()))
            .map(|instruction| instruction.address())
            .collect();
        while places.len() > PLACES {
            places.swap_remove(random.below(places.len() as u64) as usize);
        }
        if !places.is_empty() {
            found.push(places);
        }
    }
    found
}

/// Numbers without an order (xorshift); the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
