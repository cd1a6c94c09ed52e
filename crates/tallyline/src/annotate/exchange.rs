//! Types with their accesses in the JSON document that perf writes (`--data-type-json`) and pahole
//! reads: by file and build-id, with members and an account of each offset for each event.

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use tallyline_report::Profile;
use tallyline_report::annotate::{TypeUse, Use};
use tallyline_report::members;

/// The only version there is.
const VERSION: u64 = 1;

#[derive(Serialize, Deserialize)]
struct Document {
    #[serde(default = "version")]
    version: u64,
    machine: Machine,
    dsos: Vec<Dso>,
}

fn version() -> u64 {
    VERSION
}

#[derive(Serialize, Deserialize)]
struct Machine {
    #[serde(default)]
    arch: Option<String>,
    cacheline_size: u64,
}

#[derive(Serialize, Deserialize)]
struct Dso {
    dso: String,
    #[serde(default)]
    build_id: Option<String>,
    types: Vec<OfType>,
}

#[derive(Serialize, Deserialize)]
struct OfType {
    #[serde(rename = "type")]
    name: String,
    size: u64,
    /// The place of the definition, if several types have this name; perf's documents have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    #[serde(default)]
    members: Vec<Member>,
    histograms: Vec<Histogram>,
}

#[derive(Serialize, Deserialize)]
struct Member {
    #[serde(rename = "type")]
    ty: String,
    name: String,
    offset: u64,
    size: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    children: Vec<Member>,
}

#[derive(Serialize, Deserialize)]
struct Histogram {
    event: String,
    total_samples: u64,
    total_period: u64,
    samples: Vec<Offset>,
}

#[derive(Serialize, Deserialize)]
struct Offset {
    offset: u64,
    nr_samples_load: u64,
    nr_samples_store: u64,
    period_load: u64,
    period_store: u64,
}

/// Counts the samples that a document cannot hold: its format has one offset for each, and these are at
/// one of two.
pub(super) fn left_out(types: &[TypeUse]) -> u64 {
    types.iter().flat_map(|of_type| of_type.either().values()).map(|one| one.samples()).sum()
}

/// Writes types with their accesses as a JSON document in perf's format (`--data-type-json`).
pub(super) fn write(profile: &Profile, types: &[TypeUse], out: &mut dyn Write) -> Result<()> {
    let mut dsos: BTreeMap<(&str, Option<&str>), Vec<OfType>> = BTreeMap::new();
    for of_type in types {
        let dso = (of_type.dso(), of_type.build_id());
        dsos.entry(dso).or_default().push(OfType {
            // the format has no arrays
            name: of_type.element().unwrap_or(of_type.name()).to_string(),
            size: of_type.size(),
            place: of_type.place().map(str::to_string),
            members: of_type.members().iter().map(Member::of).collect(),
            histograms: of_type
                .events()
                .iter()
                .map(|(event, offsets)| Histogram::of(event, offsets))
                .collect(),
        });
    }
    let dsos = dsos.into_iter().map(|((dso, build_id), types)| Dso {
        dso: dso.to_owned(),
        build_id: build_id.map(str::to_owned),
        types,
    });
    let document = Document {
        version: VERSION,
        machine: Machine {
            arch: Some(profile.info().arch.clone()).filter(|arch| !arch.is_empty()),
            cacheline_size: profile.info().line_size.into(),
        },
        dsos: dsos.collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    Ok(writeln!(out)?)
}

/// Reads a document: the types, those most accessed first, and the size of a cache line.
pub(super) fn read(path: &Path) -> Result<(Vec<TypeUse>, u64)> {
    let name = path.display();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
    let document: Document = serde_json::from_slice(&bytes)
        .with_context(|| format!("{name} is no profile of types, as --data-type-json writes them"))?;
    if document.version != VERSION {
        bail!("{name}: version {} of the format; this program knows {VERSION}", document.version);
    }
    let mut types = Vec::new();
    for dso in document.dsos {
        for of_type in dso.types {
            let events =
                of_type.histograms.iter().map(|histogram| (histogram.event.clone(), histogram.uses()));
            let file = (dso.dso.clone(), dso.build_id.clone());
            let members = members_of(of_type.members);
            let events = events.collect();
            types.push(TypeUse::new(file, of_type.name, of_type.size, of_type.place, members, events));
        }
    }
    types.sort_by_cached_key(|of_type| {
        (std::cmp::Reverse(of_type.whole().total()), of_type.name().to_string())
    });
    Ok((types, document.machine.cacheline_size))
}

impl Histogram {
    fn of(event: &str, offsets: &BTreeMap<u64, Use>) -> Histogram {
        Histogram {
            event: event.to_owned(),
            total_samples: offsets.values().map(|one| one.samples()).sum(),
            total_period: offsets.values().fold(0, |sum, one| sum.saturating_add(one.total())),
            samples: offsets
                .iter()
                .map(|(offset, one)| Offset {
                    offset: *offset,
                    // the sum of both is the number of samples
                    nr_samples_load: one.loads().saturating_sub(one.updates()),
                    nr_samples_store: one.stores(),
                    period_load: one.total().saturating_sub(one.stored()),
                    period_store: one.stored(),
                })
                .collect(),
        }
    }

    fn uses(&self) -> BTreeMap<u64, Use> {
        let of = |offset: &Offset| {
            let Offset { nr_samples_load, nr_samples_store, period_load, period_store, .. } = *offset;
            Use::of_reads_and_writes(nr_samples_load, nr_samples_store, period_load, period_store)
        };
        self.samples.iter().map(|offset| (offset.offset, of(offset))).collect()
    }
}

impl Member {
    fn of(member: &members::Member) -> Member {
        Member {
            ty: member.ty().to_string(),
            name: member.name().to_string(),
            offset: member.offset(),
            size: member.size(),
            truncated: member.truncated(),
            children: member.children().iter().map(Member::of).collect(),
        }
    }

    /// Returns the parser bounds how deep a document nests.
    fn into_member(self, number: u32) -> members::Member {
        let place = (self.offset, self.size);
        members::Member::new(number, self.ty, self.name, place, self.truncated, members_of(self.children))
    }
}

fn members_of(read: Vec<Member>) -> Vec<members::Member> {
    (0..).zip(read).map(|(number, member)| member.into_member(number)).collect()
}
