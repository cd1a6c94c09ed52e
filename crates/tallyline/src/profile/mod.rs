//! What all reports on recordings share: the recording, the programs in it, which samples.

mod args;
mod cache;
mod files;

pub(crate) use args::InputArgs;
pub(crate) use cache::{Cache, file_of_build};
pub(crate) use files::open;

use anyhow::{Context, Result};
use files::Files;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use tallyline_profile::perfdata::Recording;
use tallyline_profile::perfdata::file::{Pieces, Records};
use tallyline_profile::report::keys::Needs;
use tallyline_profile::report::{Binaries, Profile};

/// Reads the recording that the command line names, and looks up what is needed.
pub(crate) fn load(args: &InputArgs, needs: Needs) -> Result<(Profile, Binaries)> {
    load_from(&args.input, args, needs)
}

/// Leaves a profile to the end of the process, which gives back its memory at once.
pub(crate) fn keep_to_the_end(profile: Profile, binaries: Binaries) {
    std::mem::forget((profile, binaries));
}

/// Reads another recording with the same programs.
pub(crate) fn load_from(path: &Path, args: &InputArgs, needs: Needs) -> Result<(Profile, Binaries)> {
    let cannot = || format!("cannot read {}", path.display());
    let advice =
        || format!("{}; record first (tallyline record -- COMMAND), or name a file with -i", cannot());
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).with_context(advice)?;
        return load_whole(&bytes, path, args, needs);
    }
    let mut file = File::open(path).with_context(advice)?;
    if let Some(pieces) = Pieces::open(&file).with_context(cannot)?
        && let Some(found) = read(&pieces, path, args, needs)?
    {
        return Ok(found);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).with_context(advice)?;
    load_whole(&bytes, path, args, needs)
}

fn load_whole(bytes: &[u8], path: &Path, args: &InputArgs, needs: Needs) -> Result<(Profile, Binaries)> {
    let recording = Recording::parse(bytes).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(read(&recording, path, args, needs)?.unwrap_or_default())
}

/// Reads the samples of records and looks up what is needed of them; none if they have to be read as a
/// whole.
fn read(
    records: &dyn Records,
    path: &Path,
    args: &InputArgs,
    needs: Needs,
) -> Result<Option<(Profile, Binaries)>> {
    let files = Files::new(args, &records.about().features);
    let needs = needs.and(args.needs());
    let found = Profile::load_resolved(records, &files, needs, args.corrects_skid())
        .with_context(|| format!("cannot read {}", path.display()))?;
    if let Some((profile, _)) = &found {
        warn(profile, path);
    }
    Ok(found)
}

/// Says what is missing.
fn warn(profile: &Profile, path: &Path) {
    for warning in &profile.warnings {
        eprintln!("tallyline: {}: {warning}", path.display());
    }
    if profile.unknown_events > 0 {
        eprintln!(
            "tallyline: {}: {} samples of events that the recording does not describe are left out",
            path.display(),
            profile.unknown_events
        );
    }
    for warning in &profile.joined.warnings {
        eprintln!("tallyline: {warning}");
    }
}
