//! The window of a trace: the functions that samples of the clock find hot.

use crate::interrupt;
use crate::profile::{self, InputArgs};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tallyline_inference::code::Image;
use tallyline_perf_data::recorder::{
    self, CallChains, Output, RecordOptions, SampledCode, SamplingRate, Target,
};
use tallyline_perf_data::sample::CpuMode;
use tallyline_report::Profile;
use tallyline_report::keys::Needs;
use tallyline_trace::emulator;

/// Samples a second on each CPU.
const FREQUENCY: u64 = 4000;

/// Parts of the samples below which a function is left out: one of so many. Who takes a line from others may be much
/// colder than who loses it.
const RARE: u64 = 200;

/// The most functions.
const FUNCTIONS_LIMIT: usize = 200;

/// Fewer samples do not tell hot functions from others.
const LEAST_SAMPLES: u64 = 50;

/// Functions to trace.
pub(super) struct Window {
    /// Offset in the file, length, file.
    functions: Vec<(u64, u64, String)>,
    /// Samples, and those in the functions.
    pub(super) samples: (u64, u64),
}

impl Window {
    /// Returns the number of functions.
    pub(super) fn len(&self) -> usize {
        self.functions.len()
    }

    /// Writes the file that the plugin reads.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let lines =
            self.functions.iter().map(|(offset, length, file)| format!("{offset:x} {length:x} {file}\n"));
        fs::write(path, lines.collect::<String>()).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Finds the hot functions of a recording; none where it has too few samples.
    pub(super) fn of_recording(path: &Path) -> Result<Option<Window>> {
        let profile = profile::load(&InputArgs::of(path), Needs::SYMBOLS)?;
        Ok(Window::of_profile(&profile))
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
        let mut functions = Vec::new();
        for wanted in names {
            let before = functions.len();
            // a static function may be there several times
            for symbol in image.functions().iter().filter(|symbol| symbol.name() == wanted.as_str()) {
                let offset = image.segments().iter().find_map(|segment| {
                    let inside = symbol.address().checked_sub(segment.address())?;
                    (inside < segment.size()).then(|| segment.offset() + inside)
                });
                functions.extend(offset.map(|offset| (offset, symbol.size().max(1), name.to_owned())));
            }
            if functions.len() == before {
                bail!("{name} has no function `{wanted}`; it may be inlined wherever it is called");
            }
        }
        Ok(Window { functions, samples: (0, 0) })
    }

    /// Counts the samples of a recording, all and those in the window.
    pub(super) fn count(&mut self, recording: &Path) -> Result<()> {
        let (functions, total) =
            sampled_functions(&profile::load(&InputArgs::of(recording), Needs::SYMBOLS)?);
        let is_in =
            |file: &str, start: u64| self.functions.iter().any(|(at, _, path)| *at == start && path == file);
        let inside = functions.iter().filter(|((file, start, _), _)| is_in(file, *start));
        self.samples = (total, inside.map(|(_, samples)| samples).sum());
        Ok(())
    }

    fn of_profile(profile: &Profile) -> Option<Window> {
        let (functions, total) = sampled_functions(profile);
        let mut all: Vec<_> = functions.into_iter().filter(|(_, samples)| *samples * RARE >= total).collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        all.truncate(FUNCTIONS_LIMIT);
        let inside = all.iter().map(|(_, samples)| samples).sum();
        let functions: Vec<_> =
            all.into_iter().map(|((file, offset, length), _)| (offset, length, file)).collect();
        (total >= LEAST_SAMPLES && !functions.is_empty())
            .then_some(Window { functions, samples: (total, inside) })
    }
}

/// Returns the samples of each function by its file, offset in it and length, and all samples in user mode.
fn sampled_functions(profile: &Profile) -> (BTreeMap<(String, u64, u64), u64>, u64) {
    let mut images: BTreeMap<String, Option<Image>> = BTreeMap::new();
    let mut functions: BTreeMap<(String, u64, u64), u64> = BTreeMap::new();
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
        let Some(start) = place.offset.checked_sub(address - symbol.address()) else { continue };
        let length = symbol.size().max(address - symbol.address() + 1);
        *functions.entry((dso.path().to_owned(), start, length)).or_default() += group.samples;
    }
    (functions, total)
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
