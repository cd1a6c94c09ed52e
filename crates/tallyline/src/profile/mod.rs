//! What all reports on recordings share: the recording, the programs in it, which samples.

mod args;
mod cache;
mod files;

pub(crate) use args::InputArgs;
pub(crate) use cache::Cache;
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
        && let Some(profile) =
            Profile::load_pieces(&pieces, needs.and(args.needs()).apart).with_context(cannot)?
    {
        return Ok(look_up(profile, &pieces, path, args, needs));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).with_context(advice)?;
    load_whole(&bytes, path, args, needs)
}

fn load_whole(bytes: &[u8], path: &Path, args: &InputArgs, needs: Needs) -> Result<(Profile, Binaries)> {
    let cannot = || format!("cannot read {}", path.display());
    let recording = Recording::parse(bytes).with_context(cannot)?;
    let profile = Profile::load(&recording, needs.and(args.needs()).apart).with_context(cannot)?;
    Ok(look_up(profile, &recording, path, args, needs))
}

/// Looks up what is needed of a profile that was loaded from these records.
fn look_up(
    mut profile: Profile,
    records: &dyn Records,
    path: &Path,
    args: &InputArgs,
    needs: Needs,
) -> (Profile, Binaries) {
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
    let files = Files::new(args, &records.about().features);
    let binaries = profile.resolve(records, &files, needs.and(args.needs()), args.corrects_skid());
    for warning in &profile.joined.warnings {
        eprintln!("tallyline: {warning}");
    }
    (profile, binaries)
}
