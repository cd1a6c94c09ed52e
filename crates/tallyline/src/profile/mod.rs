//! Common parts of all reports on recordings: the recording, its programs, the filters of samples.

mod args;
mod cache;
mod files;
mod hints;
pub(crate) mod names;

pub(crate) use args::InputArgs;
pub(crate) use cache::{Cache, set_cache_folder};
pub(crate) use files::{builds_folder, open};
pub(crate) use hints::{debug_information, undecoded};
pub(crate) use names::{Patterns, sampled_events};

use anyhow::{Context, Result, bail};
use files::Files;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tallyline_perf_data::Recording;
use tallyline_perf_data::file::{ChunkedRecording, RecordSource};
use tallyline_report::Profile;
use tallyline_report::keys::Needs;

/// Reads the recording (perf.data) named by the options into a profile of its samples, with the look-ups (symbols,
/// lines, types, …) that `needs` says.
pub(crate) fn load(args: &InputArgs, needs: Needs) -> Result<Profile> {
    load_from(&args.input, args, needs)
}

/// Leaks a profile on purpose: at the end of the process the kernel frees its memory faster than destructors do.
pub(crate) fn keep_to_the_end(profile: Profile) {
    std::mem::forget(profile);
}

/// Reads the recording (perf.data) at `path` into a profile of its samples, with the other options of `args`, as for a
/// comparison of two recordings.
pub(crate) fn load_from(path: &Path, args: &InputArgs, needs: Needs) -> Result<Profile> {
    let cannot = || format!("cannot read {}", path.display());
    let advice =
        || format!("{}; record first (tallyline record -- COMMAND), or name a file with -i", cannot());
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).with_context(advice)?;
        return load_whole(&bytes, path, args, needs);
    }
    if path.is_dir() {
        return load_folder(path, args, needs);
    }
    let mut file = File::open(path).with_context(advice)?;
    if let Some(pieces) = ChunkedRecording::open(&file).with_context(cannot)?
        && let Some(found) = read(&pieces, path, args, needs)?
    {
        return Ok(found);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).with_context(advice)?;
    load_whole(&bytes, path, args, needs)
}

/// Reads what `perf record --threads` writes: a folder with a file that describes the records, and one with
/// records of each of its threads.
fn load_folder(folder: &Path, args: &InputArgs, needs: Needs) -> Result<Profile> {
    let cannot = || format!("cannot read {}", folder.display());
    let first = File::open(folder.join(DATA))
        .with_context(|| format!("{}: a folder without a file `{DATA}` is no recording", cannot()))?;
    let mut more: Vec<(u32, String)> = Vec::new();
    for entry in folder.read_dir().with_context(cannot)? {
        let name = entry.with_context(cannot)?.file_name().to_string_lossy().into_owned();
        let number = name.strip_prefix(DATA).and_then(|rest| rest.strip_prefix('.')?.parse().ok());
        more.extend(number.map(|number| (number, name)));
    }
    more.sort_unstable();
    let open = |(_, name): &(u32, String)| File::open(folder.join(name)).with_context(cannot);
    let files = more.iter().map(open).collect::<Result<Vec<_>>>()?;
    let named = files.iter().zip(more.into_iter().map(|(_, name)| name));
    if let Some(pieces) = ChunkedRecording::open(&first).with_context(cannot)?
        && let Some(found) = read(&pieces.with_more(named).with_context(cannot)?, folder, args, needs)?
    {
        return Ok(found);
    }
    bail!(
        "{}: what is compressed or damaged is only read of one file; record without -z, or without --threads",
        cannot()
    )
}

/// The name of the first file of a recording that is a folder (`perf record --dir`); it describes the sampled events of
/// the folder's other files.
pub(crate) const DATA: &str = "data";

fn load_whole(bytes: &[u8], path: &Path, args: &InputArgs, needs: Needs) -> Result<Profile> {
    let recording = Recording::parse(bytes).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(read(&recording, path, args, needs)?.unwrap_or_default())
}

/// Reads the samples of records and looks up what is needed of them; none if they have to be read as a
/// whole.
fn read(records: &dyn RecordSource, path: &Path, args: &InputArgs, needs: Needs) -> Result<Option<Profile>> {
    let files = Files::new(args, records.recording().features());
    let needs = needs.and(args.needs());
    let found = Profile::load(records, &files, needs, args.corrects_skid())
        .with_context(|| format!("cannot read {}", path.display()))?;
    if let Some(profile) = &found {
        warn(profile, path);
    }
    Ok(found)
}

/// Set once a recording is read of which parts are damaged or missing.
static IS_DAMAGED: AtomicBool = AtomicBool::new(false);

/// Remembers that a recording (perf.data) is damaged: its readable part is reported, and the exit code says that it is
/// not all.
pub(crate) fn note_damage() {
    IS_DAMAGED.store(true, Ordering::Relaxed);
}

/// Returns `true` if a recording (perf.data) that this process read is damaged: [`note_damage`] was called.
pub(crate) fn is_damaged() -> bool {
    IS_DAMAGED.load(Ordering::Relaxed)
}

/// Warnings that were printed, so that a recording that is read a second time, with other look-ups, repeats none.
static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Prints a warning on standard error, once in the process.
fn warn_once(warning: String) {
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    if !printed.contains(&warning) {
        eprintln!("tallyline: {warning}");
        printed.insert(warning);
    }
}

/// Prints what is damaged or missing.
fn warn(profile: &Profile, path: &Path) {
    if profile.info().is_damaged {
        note_damage();
    }
    for warning in &profile.info().warnings {
        warn_once(format!("{}: {warning}", path.display()));
    }
    if profile.info().unknown_events > 0 {
        warn_once(format!(
            "{}: {} samples of events that the recording does not describe are left out",
            path.display(),
            profile.info().unknown_events
        ));
    }
    for warning in profile.warnings() {
        warn_once(warning.to_string());
    }
    if profile.groups().is_empty() {
        warn_once(format!("{}: {}", path.display(), hints::no_samples(profile.info())));
    }
}
