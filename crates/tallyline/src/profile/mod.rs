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
use tallyline_profile::report::keys::Needs;
use tallyline_profile::report::{Binaries, Profile};

/// Reads the recording that the command line names, and looks up what is needed.
pub(crate) fn load(args: &InputArgs, needs: Needs) -> Result<(Profile, Binaries)> {
    load_from(&args.input, args, needs)
}

/// Reads another recording with the same programs.
pub(crate) fn load_from(path: &Path, args: &InputArgs, needs: Needs) -> Result<(Profile, Binaries)> {
    let bytes = read(path)?;
    let cannot = || format!("cannot read {}", path.display());
    let recording = Recording::parse(&bytes).with_context(cannot)?;
    let mut profile = Profile::load(&recording).with_context(cannot)?;
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
    let files = Files::new(args, &recording.features);
    let binaries = profile.resolve(&files, needs.and(args.needs()), args.corrects_skid());
    for warning in &profile.joined.warnings {
        eprintln!("tallyline: {warning}");
    }
    Ok((profile, binaries))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let advice = || {
        format!(
            "cannot read {}; record first (tallyline record -- COMMAND), or name a file with -i",
            path.display()
        )
    };
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes).with_context(advice)?;
    } else {
        File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).with_context(advice)?;
    }
    Ok(bytes)
}
