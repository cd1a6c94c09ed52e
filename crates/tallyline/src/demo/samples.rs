//! The type at which samples of the clock find threads that write.

use super::project::Project;
use crate::advise::sample;
use crate::profile::{self, InputArgs};
use crate::record::open_dev_null;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use tallyline_perf_data::sample::CpuMode;
use tallyline_report::Profile;
use tallyline_report::keys::Needs;
use tallyline_report::operand::Outcome;

/// Samples for each run that the clock has to take.
const LEAST_SAMPLES: u64 = 50;

/// The advice where the kernel does not let this user sample.
const NOT_SAMPLED: &str = "the demo's program cannot be sampled; `tallyline demo counters` does without";

/// A type with the samples at its fields.
pub(super) struct HotType {
    pub(super) name: String,
    /// The number of all samples of the run.
    pub(super) samples: u64,
    /// The share of the run's samples that access the type, from 0 to 1.
    pub(super) share: f64,
    /// The number of threads that write to the type.
    pub(super) writers: usize,
    /// The fields of the type that have samples.
    pub(super) fields: Vec<HotField>,
}

/// A field with its part of all samples.
pub(super) struct HotField {
    pub(super) offset: u64,
    pub(super) name: String,
    pub(super) share: f64,
}

/// The samples at a type.
#[derive(Default)]
struct TypeSamples {
    samples: u64,
    writers: BTreeSet<i32>,
    fields: BTreeMap<(u64, String), u64>,
}

/// Records a run, and returns the type with the most samples that more than one thread writes.
pub(super) fn hottest(project: &Project, packets: u64) -> Result<Option<HotType>> {
    let (total, types) = record(project, packets)?;
    let shared = types.into_iter().filter(|(_, of)| of.writers.len() > 1);
    let most = shared.max_by_key(|(_, of)| of.samples);
    Ok(most.map(|(name, of)| HotType::new(name, total, of)))
}

/// Records a run, and returns the samples at a type.
pub(super) fn of_type(project: &Project, packets: u64, name: &str) -> Result<HotType> {
    let (total, mut types) = record(project, packets)?;
    Ok(HotType::new(name.to_owned(), total, types.remove(name).unwrap_or_default()))
}

impl HotType {
    fn new(name: String, total: u64, of: TypeSamples) -> HotType {
        let part = |samples: u64| samples as f64 / total.max(1) as f64;
        let fields = of.fields.into_iter();
        HotType {
            name,
            samples: total,
            share: part(of.samples),
            writers: of.writers.len(),
            fields: fields
                .map(|((offset, name), samples)| HotField { offset, name, share: part(samples) })
                .collect(),
        }
    }
}

/// Records runs until there are enough samples.
fn record(project: &Project, packets: u64) -> Result<(u64, BTreeMap<String, TypeSamples>)> {
    let recording = project.folder().join("samples.data");
    let mut packets = packets;
    for _ in 0..4 {
        let command = [project.program().into_os_string(), "2".into(), packets.to_string().into()];
        sample(&command, recording.clone(), &|| false, Some(&open_dev_null()?)).context(NOT_SAMPLED)?;
        let mut input = InputArgs::of(&recording);
        input.no_cache = true;
        let found = by_type(&profile::load(&input, Needs::TYPES.and(Needs::SYMBOLS))?);
        if found.0 >= LEAST_SAMPLES {
            return Ok(found);
        }
        packets = packets.saturating_mul(4);
    }
    Ok((0, BTreeMap::new()))
}

fn by_type(profile: &Profile) -> (u64, BTreeMap<String, TypeSamples>) {
    let mut types: BTreeMap<String, TypeSamples> = BTreeMap::new();
    let mut total = 0;
    for group in profile.groups().iter().filter(|group| group.mode == CpuMode::User) {
        total += group.samples;
        let Outcome::Typed(operand) = profile.outcome(group) else { continue };
        let Some((ty, _)) = profile.text(operand.text).rsplit_once(" +0") else { continue };
        let of = types.entry(ty.strip_prefix("struct ").unwrap_or(ty).to_owned()).or_default();
        of.samples += group.samples;
        if operand.writes {
            of.writers.insert(group.tid);
        }
        // of an atomic integer the member in it is no news
        let field = profile.text(operand.field).split('.').next().unwrap_or_default().to_owned();
        *of.fields.entry((operand.offset, field)).or_default() += group.samples;
    }
    (total, types)
}
