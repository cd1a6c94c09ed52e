//! Recordings as small as tests can keep them: of each program of shapes the file, and the raw addresses of its
//! samples with their counts. From these the attribution is tested for CPUs that a machine does not have.
//!
//! `NAME.samples` is a line of JSON, the header, and a line for each address: its offset in the program's file,
//! how many samples lie there, and the return address on top of the stack, where samples have one, as an offset,
//! too. The program lies beside it.

use super::truth::{Language, Shape};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use tallyline_perf_data::abi::{attr_flag, sample as bit};
use tallyline_perf_data::file::{Comm, Mmap, RecordBody};
use tallyline_perf_data::recorder;
use tallyline_perf_data::sample::{CpuMode, UserStack};
use tallyline_perf_data::writer::{Encoder, Event};
use tallyline_perf_data::{AddressSpaces, Attr, Recording, Sample, Writer};

const SCHEMA: u32 = 1;

/// The end of the names of files with samples.
const ENDING: &str = "samples";

/// The address that a recording made of a fixture has the program at.
const BASE: u64 = 0x5555_5540_0000;

/// The process of a recording made of a fixture.
const PID: i32 = 4000;

/// The most samples that a fixture is read with.
const MOST: u64 = 1 << 24;

/// The description of a fixture.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Header {
    schema: u32,
    /// The processor's name, as its system gave it.
    pub(super) cpu: String,
    /// Vendor, family, model and stepping.
    pub(super) cpu_id: String,
    architecture: String,
    kernel: String,
    pub(super) compiler: String,
    pub(super) version: String,
    pub(super) language: Language,
    /// The file name of the program.
    program: String,
    frequency: u64,
    /// The truth of each shape when this was recorded; what counts is the table of the program that reads it.
    pub(super) truth: BTreeMap<String, String>,
}

/// The samples at one address: offset in the program, and that of the return address.
type Counts = BTreeMap<(u64, Option<u64>), u64>;

/// A recording in small.
#[derive(Debug)]
pub(super) struct Fixture {
    pub(super) header: Header,
    program: PathBuf,
    counts: Counts,
}

/// The origin of a recording.
pub(super) struct Origin<'o> {
    pub(super) machine: &'o super::Machine,
    pub(super) compiler: &'o super::Compiler,
    pub(super) frequency: u64,
    pub(super) shapes: &'o [&'o Shape],
}

impl Fixture {
    /// Takes the raw samples of a program from a recording.
    pub(super) fn of(origin: &Origin<'_>, program: &Path, recording: &Path) -> Result<Fixture> {
        let bytes = fs::read(recording).with_context(|| format!("cannot read {}", recording.display()))?;
        let counts = counts(&bytes, program).with_context(|| recording.display().to_string())?;
        let name = program.file_name().context("the program has no name")?.to_string_lossy();
        let header = Header {
            schema: SCHEMA,
            cpu: origin.machine.cpu.clone(),
            cpu_id: origin.machine.cpu_id.clone(),
            architecture: origin.machine.architecture.to_owned(),
            kernel: origin.machine.kernel.clone(),
            compiler: origin.compiler.name.clone(),
            version: origin.compiler.version.clone(),
            language: origin.compiler.language,
            program: name.into_owned(),
            frequency: origin.frequency,
            truth: origin
                .shapes
                .iter()
                .map(|shape| (shape.name.to_owned(), shape.truth.to_string()))
                .collect(),
        };
        Ok(Fixture { header, program: program.to_owned(), counts })
    }

    /// Writes it to a folder, with the program.
    pub(super) fn save(&self, folder: &Path) -> Result<()> {
        let write = |path: PathBuf, bytes: &[u8]| {
            fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
        };
        fs::create_dir_all(folder).with_context(|| format!("cannot write to {}", folder.display()))?;
        let program = fs::read(&self.program).context("cannot read the program")?;
        write(folder.join(&self.header.program), &program)?;
        let mut text = serde_json::to_string(&self.header)? + "\n";
        for ((offset, back), samples) in &self.counts {
            write!(text, "{offset:#x} {samples}")?;
            if let Some(back) = back {
                write!(text, " {back:#x}")?;
            }
            text.push('\n');
        }
        write(folder.join(&self.header.compiler).with_extension(ENDING), text.as_bytes())
    }

    /// Reads all of a folder, in the order of their names.
    pub(super) fn load_all(folder: &Path) -> Result<Vec<Fixture>> {
        let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>()?;
        paths.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
        paths.sort();
        if paths.is_empty() {
            bail!("{}: no file ends in .{ENDING}; --save-fixtures writes them", folder.display());
        }
        paths
            .iter()
            .map(|path| {
                let text =
                    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
                Fixture::parse(&text, folder).with_context(|| path.display().to_string())
            })
            .collect()
    }

    fn parse(text: &str, folder: &Path) -> Result<Fixture> {
        let (header, lines) = text.split_once('\n').context("no header")?;
        let header: Header = serde_json::from_str(header).context("header")?;
        if header.schema != SCHEMA {
            bail!("schema {} is not known, only {SCHEMA}", header.schema);
        }
        // a name, not a path to elsewhere
        let name = Path::new(&header.program).file_name().context("the program has no name")?;
        let mut counts = Counts::new();
        let mut all: u64 = 0;
        for (index, line) in lines.lines().enumerate() {
            let (place, samples) = parse_line(line).with_context(|| format!("line {}", index + 2))?;
            counts.insert(place, samples);
            all = all.saturating_add(samples);
        }
        if all > MOST {
            bail!("{all} samples; at most {MOST} are read");
        }
        let program = std::path::absolute(folder.join(name)).context("cannot find the current folder")?;
        Ok(Fixture { program, header, counts })
    }

    /// Makes a recording of it, as the CPU's own machine would have written it.
    pub(super) fn write_recording(&self, path: &Path) -> Result<()> {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let has_returns = self.counts.keys().any(|(_, back)| back.is_some());
        let attr = clock(self.header.frequency, has_returns);
        let event = Event::new("cpu-clock:u", attr.clone(), vec![1]);
        let mut writer = Writer::new(BufWriter::new(file), vec![event])?;
        let comm = Comm::new(PID, PID, b"shapes", true);
        writer.records(Encoder::comm(&comm, &attr, 1).finish())?;
        let size = fs::metadata(&self.program).map(|program| program.len());
        let size = size.with_context(|| format!("cannot read {}", self.program.display()))?;
        let mapping = Mmap {
            pid: PID,
            tid: PID,
            mode: CpuMode::User,
            start: BASE,
            len: size.next_multiple_of(4096),
            file_offset: 0,
            path: self.program.as_os_str().as_encoded_bytes(),
            is_executable: true,
            build_id: None,
            shared_file: None,
        };
        writer.records(Encoder::mapping(&mapping, &attr, 2).finish())?;
        let mut time = 1000;
        for ((offset, back), samples) in &self.counts {
            let word = back.map_or(0, |back| BASE + back).to_le_bytes();
            for _ in 0..*samples {
                time += 1000;
                let sample = Sample {
                    mode: CpuMode::User,
                    ip: Some(BASE + offset),
                    pid: Some(PID),
                    tid: Some(PID),
                    time: Some(time),
                    id: Some(1),
                    cpu: Some(0),
                    period: Some(1_000_000_000 / self.header.frequency.max(1)),
                    user_stack: has_returns.then_some(UserStack::new(&word, 8)),
                    ..Sample::default()
                };
                writer.sample_time(time);
                writer.records(Encoder::sample(&sample, &attr).finish())?;
            }
        }
        writer.finish_round()?;
        let mut machine = recorder::describe(&["bench attribution".to_owned()]);
        machine.arch.clone_from(&self.header.architecture);
        machine.cpu_description.clone_from(&self.header.cpu);
        machine.cpu_id = self.header.cpu_id.replace('-', ",");
        writer.finish(&machine, &[])?;
        Ok(())
    }
}

/// Returns the attributes of the clock.
fn clock(frequency: u64, has_returns: bool) -> Attr {
    const SOFTWARE: u32 = 1;
    let stack = if has_returns { bit::STACK_USER } else { 0 };
    Attr {
        kind: SOFTWARE,
        config: 0,
        sample_period: frequency,
        sample_type: bit::IDENTIFIER | bit::IP | bit::TID | bit::TIME | bit::CPU | bit::PERIOD | stack,
        flags: attr_flag::SAMPLE_ID_ALL | attr_flag::FREQ | attr_flag::EXCLUDE_KERNEL,
        sample_stack_user: if has_returns { 8 } else { 0 },
        ..Attr::default()
    }
}

/// Counts the samples of a program by address.
fn counts(bytes: &[u8], program: &Path) -> Result<Counts> {
    let recording = Recording::parse(bytes)?;
    let mut spaces = AddressSpaces::new(&recording);
    let mut counts = Counts::new();
    for record in recording.in_time_order()? {
        let record = record?;
        spaces.apply(record.body())?;
        let RecordBody::Sample(_, sample) = record.body() else { continue };
        let pid = sample.pid.unwrap_or(-1);
        let offset = |address: u64| {
            let location = spaces.resolve(pid, sample.mode, address)?;
            (Path::new(spaces.dso(location.dso()).path()) == program && location.is_executable())
                .then_some(location.offset())
        };
        let Some(place) = sample.ip.and_then(offset) else { continue };
        // at a function's first instruction that is the return address; elsewhere it is rarely one of code
        let word = sample.user_stack.filter(|stack| stack.used() >= 8);
        let word = word.and_then(|stack| stack.bytes().first_chunk().copied().map(u64::from_le_bytes));
        *counts.entry((place, word.and_then(offset))).or_default() += 1;
    }
    if counts.is_empty() {
        bail!("no samples of {}", program.display());
    }
    Ok(counts)
}

fn parse_line(line: &str) -> Result<((u64, Option<u64>), u64)> {
    let mut words = line.split(' ');
    let hex = |word: &str| {
        let digits = word.strip_prefix("0x").context("an offset begins with 0x")?;
        // what is added to it stays an address
        u64::from_str_radix(digits, 16).ok().filter(|offset| *offset < 1 << 40).context("no offset")
    };
    let offset = hex(words.next().context("no offset")?)?;
    let samples = words.next().and_then(|word| word.parse().ok()).context("no number of samples")?;
    let back = words.next().map(hex).transpose()?;
    if words.next().is_some() {
        bail!("more than three words");
    }
    Ok(((offset, back), samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"schema":1,"cpu":"A","cpu_id":"V-1-2-3","architecture":"x86_64","kernel":"6","compiler":"gcc","version":"12","language":"C","program":"PROGRAM","frequency":4000,"truth":{}}"#;

    fn parse(program: &str, lines: &str) -> Result<Fixture> {
        let header = HEADER.replace("PROGRAM", program);
        Fixture::parse(&format!("{header}\n{lines}"), Path::new("/folder"))
    }

    #[test]
    fn a_recording_made_of_a_fixture_has_its_samples_and_its_cpu() {
        let folder = std::env::temp_dir().join(format!("attribution-fixture-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("program"), vec![0; 0x3000]).expect("written");
        let header = HEADER.replace("PROGRAM", "program");
        let text = format!("{header}\n0x1000 3\n0x1004 2 0x2010\n0x1004 1 0x2020\n");
        let fixture = Fixture::parse(&text, &folder).expect("a fixture");
        let path = folder.join("perf.data");
        fixture.write_recording(&path).expect("a recording");
        let bytes = fs::read(&path).expect("a recording");
        let recording = Recording::parse(&bytes).expect("a recording");
        assert_eq!(recording.features().cpu_id(), Some("V,1,2,3"));
        assert_eq!(counts(&bytes, &folder.join("program")).expect("samples"), {
            // the word of a sample without a return address is no address of code
            Counts::from([((0x1000, None), 3), ((0x1004, Some(0x2010)), 2), ((0x1004, Some(0x2020)), 1)])
        });
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn damaged_fixtures_are_errors() {
        for line in
            ["1000 3", "0x1000", "0x1000 3 4", "0x1000 3 0x4 5", "0xffffffffffffffff 1", "0x1000 99999999"]
        {
            assert!(parse("program", line).is_err(), "{line}");
        }
        assert!(Fixture::parse("no header", Path::new("/")).is_err());
        assert!(parse("..", "0x1000 1").is_err());
        let elsewhere = parse("../../bin/sh", "0x1000 1").expect("a name");
        assert_eq!(elsewhere.program, Path::new("/folder/sh"));
    }
}
