//! The window of a trace: the functions that samples of the clock find hot.

use crate::interrupt;
use crate::profile::{self, InputArgs};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tallyline_inference::code::{Body, Image, Symbol, spin_loops};
use tallyline_perf_data::recorder::{
    self, CallChains, Output, RecordOptions, SampledCode, SamplingRate, Target,
};
use tallyline_perf_data::sample::CpuMode;
use tallyline_report::keys::Needs;
use tallyline_report::{Profile, demangle};
use tallyline_trace::emulator;

/// Samples a second on each CPU.
const FREQUENCY: u64 = 4000;

/// Parts of the samples below which a function is left out: one of so many. Who takes a line from others may be much
/// colder than who loses it.
const RARE: u64 = 200;

/// The maximum number of hot functions that are selected for a trace.
const FUNCTIONS_LIMIT: usize = 200;

/// Fewer samples do not tell hot functions from others.
const LEAST_SAMPLES: u64 = 50;

/// A part of a file: offset and length in bytes, file.
type FilePart = (u64, u64, String);

/// The functions to trace, and the loops to leave out because threads only wait in them.
#[derive(Default)]
pub(super) struct Window {
    functions: Vec<FilePart>,
    /// Loops in which threads only wait, in these functions and others: they are left out.
    waits: Vec<FilePart>,
    /// The number of all samples, and of those in the functions outside of loops that wait.
    pub(super) samples: (u64, u64),
    /// The number of samples in loops that wait.
    pub(super) waiting: u64,
    /// The functions that these loops are in, those with the most samples first.
    pub(super) waiting_in: Vec<String>,
}

impl Window {
    /// Returns the number of functions.
    pub(super) fn len(&self) -> usize {
        self.functions.len()
    }

    /// Writes the file that the plugin reads.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let line =
            |kind: &str, (offset, length, file): &FilePart| format!("{kind}{offset:x} {length:x} {file}\n");
        let functions = self.functions.iter().map(|part| line("", part));
        let lines = functions.chain(self.waits.iter().map(|part| line("wait ", part)));
        fs::write(path, lines.collect::<String>()).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Finds the hot functions of a recording; none where it has too few samples of work.
    pub(super) fn of_recording(path: &Path) -> Result<Option<Window>> {
        let samples = Samples::of_recording(path)?;
        let working = samples.total - samples.waiting();
        let mut all: Vec<_> =
            samples.functions.iter().filter(|function| function.working() * RARE >= working).collect();
        all.sort_by(|a, b| b.working().cmp(&a.working()).then_with(|| a.part.cmp(&b.part)));
        all.retain(|function| function.working() > 0);
        all.truncate(FUNCTIONS_LIMIT);
        let functions: Vec<_> = all.into_iter().map(|function| function.part.clone()).collect();
        if working < LEAST_SAMPLES || functions.is_empty() {
            return Ok(None);
        }
        let mut window = Window { functions, ..Window::default() };
        window.add_samples(samples);
        Ok(Some(window))
    }

    /// Finds functions of the command's program by their names.
    pub(super) fn of_names(names: &[String], command: &[OsString]) -> Result<Window> {
        let program = command.first().context("no command")?;
        let path = emulator::find(program)
            .with_context(|| format!("{}: no such program", Path::new(program).display()))?;
        let path = path.canonicalize().with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.to_str().with_context(|| format!("{}: not UTF-8", path.display()))?;
        let file = File::open(&path).with_context(|| format!("cannot read {name}"))?;
        let image = Image::read(&file).with_context(|| name.to_owned())?;
        let mut window = Window::default();
        for wanted in names {
            let before = window.functions.len();
            // a static function may be there several times, and compilers split and clone: `name.cold`, `name.part.0`
            let is_wanted = |name: &str| {
                name.strip_prefix(wanted.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            for symbol in image.functions().iter().filter(|symbol| is_wanted(symbol.name())) {
                let offset = image.segments().iter().find_map(|segment| {
                    let inside = symbol.address().checked_sub(segment.address())?;
                    (inside < segment.size()).then(|| segment.offset() + inside)
                });
                let Some(offset) = offset else { continue };
                let length = symbol.size().max(1);
                window.functions.push((offset, length, name.to_owned()));
                let waits = waits(&image, symbol, length);
                window.waits.extend(waits.into_iter().map(|wait| wait.in_file(offset, name)));
            }
            if window.functions.len() == before {
                bail!("{name} has no function `{wanted}`; it may be inlined wherever it is called");
            }
        }
        Ok(window)
    }

    /// Counts the samples of a recording: all, those in the window, and those that wait.
    pub(super) fn count(&mut self, recording: &Path) -> Result<()> {
        self.add_samples(Samples::of_recording(recording)?);
        Ok(())
    }

    fn add_samples(&mut self, samples: Samples) {
        let is_in =
            |part: &FilePart| self.functions.iter().any(|(at, _, file)| *at == part.0 && *file == part.2);
        let inside = samples.functions.iter().filter(|function| is_in(&function.part));
        self.samples = (samples.total, inside.map(FunctionSamples::working).sum());
        self.waiting = samples.waiting();
        let mut waiting: Vec<_> = samples.functions.iter().filter(|function| function.waiting > 0).collect();
        waiting.sort_by_key(|function| std::cmp::Reverse(function.waiting));
        self.waiting_in = waiting.into_iter().map(|function| function.name.clone()).collect();
        for function in &samples.functions {
            let waits = function.waits.iter().map(|wait| wait.in_file(function.part.0, &function.part.2));
            self.waits.extend(waits);
        }
        self.waits.sort();
        self.waits.dedup();
    }
}

/// A loop that waits: distance from the function's start, and length in bytes.
#[derive(Clone, Copy)]
struct Wait {
    start: u64,
    length: u64,
}

impl Wait {
    fn in_file(self, function: u64, file: &str) -> FilePart {
        (function + self.start, self.length, file.to_owned())
    }

    fn contains(self, distance: u64) -> bool {
        distance.checked_sub(self.start).is_some_and(|inside| inside < self.length)
    }
}

/// Returns the loops of a function that wait.
fn waits(image: &Image, symbol: &Symbol, length: u64) -> Vec<Wait> {
    let range = symbol.address()..symbol.address().saturating_add(length);
    let body = Body::decode(image, std::slice::from_ref(&range), range.start);
    let wait = |found: std::ops::Range<u64>| Wait {
        start: found.start - range.start,
        length: found.end - found.start,
    };
    spin_loops(image, &body).into_iter().map(wait).collect()
}

/// The samples of a function in user mode.
struct FunctionSamples {
    part: FilePart,
    name: String,
    waits: Vec<Wait>,
    samples: u64,
    /// The number of samples in loops of the function that wait.
    waiting: u64,
}

impl FunctionSamples {
    fn working(&self) -> u64 {
        self.samples - self.waiting
    }
}

/// The samples of a recording in user mode, by function.
struct Samples {
    functions: Vec<FunctionSamples>,
    /// The number of all samples, those of no known function included.
    total: u64,
}

impl Samples {
    fn of_recording(path: &Path) -> Result<Samples> {
        Ok(Samples::of_profile(&profile::load(&InputArgs::of(path), Needs::SYMBOLS)?))
    }

    fn of_profile(profile: &Profile) -> Samples {
        let mut images: BTreeMap<String, Option<Image>> = BTreeMap::new();
        let mut functions: BTreeMap<FilePart, FunctionSamples> = BTreeMap::new();
        let mut total = 0;
        for group in profile.groups().iter().filter(|group| group.mode == CpuMode::User) {
            total += group.samples;
            let place = profile.place(group.place);
            let Some(dso) = place.dso.and_then(|dso| profile.dso(dso)) else { continue };
            let image = images
                .entry(dso.path().to_owned())
                .or_insert_with(|| File::open(dso.path()).ok().and_then(|file| Image::read(&file).ok()));
            let Some(image) = image else { continue };
            let Some(address) = image.address_of(place.offset) else { continue };
            let Some(symbol) = image.function_at(address) else { continue };
            let distance = address - symbol.address();
            let Some(start) = place.offset.checked_sub(distance) else { continue };
            let length = symbol.size().max(distance + 1);
            let part = (start, length, dso.path().to_owned());
            let function = functions.entry(part.clone()).or_insert_with(|| FunctionSamples {
                part,
                name: demangle(symbol.name()).into_owned(),
                waits: waits(image, symbol, length),
                samples: 0,
                waiting: 0,
            });
            function.samples += group.samples;
            let is_waiting = function.waits.iter().any(|wait| wait.contains(distance));
            function.waiting += if is_waiting { group.samples } else { 0 };
        }
        Samples { functions: functions.into_values().collect(), total }
    }

    fn waiting(&self) -> u64 {
        self.functions.iter().map(|function| function.waiting).sum()
    }
}

/// Runs a command and records clock samples of it into the file `output`, until the command ends or `until` returns
/// `true`. `stdout` redirects its standard output.
pub(crate) fn sample(
    command: &[OsString],
    output: PathBuf,
    until: &dyn Fn() -> bool,
    stdout: Option<&File>,
) -> Result<()> {
    interrupt::listen()?;
    let options = RecordOptions {
        target: Target::Command,
        command: command.to_vec(),
        events: recorder::parse(&["cpu-clock:u".to_owned()], &recorder::Pmus::default())
            .map_err(|error| anyhow::anyhow!(error))?,
        rate: SamplingRate::Frequency(FREQUENCY),
        call_chains: CallChains::None,
        return_addresses: false,
        data_mappings: false,
        inherit: true,
        delay: Duration::ZERO,
        scope: SampledCode::default(),
        output: Output::File(output),
        max_size: Some(1 << 28),
        ring_pages: 128,
        build_id_cache: None,
        command_line: Vec::new(),
    };
    let is_over = || interrupt::asked() || until();
    match stdout {
        Some(stdout) => recorder::record_redirected(&options, stdout, &is_over)?,
        None => recorder::record(&options, &is_over)?,
    };
    Ok(())
}
