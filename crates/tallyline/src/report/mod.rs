//! `tallyline report`: which types, fields and lines the samples go to.

mod args;
pub(crate) mod browse;
mod compare;
mod csv;
mod explain;
mod html;
mod json;
mod scope;
mod stdio;
mod view;

pub(crate) use args::{Columns, ReportArgs};
pub(crate) use view::{View, Views};

use crate::browser;
use crate::profile;
use anyhow::{Result, bail};
use args::{Exporter, Percentage};
use tallyline_report::filter::Operation;
use tallyline_report::keys::{Column, Needs};
use tallyline_report::pattern::NameKind;
use tallyline_report::{Filter, Profile, Weighing, tell_types_apart};
use tallyline_support::output::{Color, Output};

/// The default sort keys (columns that rows are made by) of `tallyline mem`, the report on memory accesses: perf's.
pub(crate) const MEMORY_KEYS: &str =
    "local_weight,mem,sym,dso,symbol_daddr,dso_daddr,snoop,tlb,locked,blocked,local_ins_lat,local_retire_lat";

/// The attributes that browsing may need.
const BROWSED: Needs = Needs {
    symbols: true,
    data_symbols: true,
    lines: true,
    types: true,
    parts: false,
    callers: false,
    apart: tallyline_report::MergeGranularity::Samples,
};

/// The default sort keys of `tallyline report`.
pub(crate) const DEFAULT_KEYS: &str = "type,typeoff";

/// Runs the sub-command `tallyline report`: prints the samples of a recording as a table by sort keys.
pub(crate) fn run(args: &ReportArgs, color: Color) -> Result<()> {
    show(args, None, color)
}

/// Runs `tallyline mem`: `tallyline report` with the sort keys and weights of memory accesses, restricted to loads
/// or stores by `operation`.
pub(crate) fn run_memory(args: &mut ReportArgs, operation: Option<Operation>, color: Color) -> Result<()> {
    args.mem_mode = true;
    args.show_nr_samples = true;
    args.needs_source = true;
    show(args, operation, color)
}

fn show(args: &ReportArgs, operation: Option<Operation>, color: Color) -> Result<()> {
    let columns = match &args.sort {
        Some(columns) => columns.clone(),
        None => Columns::parse(if args.mem_mode { MEMORY_KEYS } else { DEFAULT_KEYS })
            .map_err(anyhow::Error::msg)?,
    };
    let output = Output::open(args.output.as_deref(), color)?;
    let needs =
        columns.0.iter().filter_map(|column| column.key()).fold(Needs::NONE, |all, key| all.and(key.needs));
    let needs =
        if args.explain.is_some() { Needs::TYPES.and(Needs::SYMBOLS).and(Needs::SAMPLES) } else { needs };
    let is_browsed = args.may_be_browsed() && browser::is_wanted();
    let needs = if is_browsed { needs.and(BROWSED) } else { needs };
    let mut profile = profile::load(&args.input, needs)?;
    if profile.info().not_unwound > 0 {
        eprintln!(
            "tallyline: {}: {} samples have a copy of the stack that does not say who called: their files have no \
             unwind information (.eh_frame) or are not here",
            args.input.input.display(),
            profile.info().not_unwound
        );
    }
    if let Some(subject) = &args.explain {
        return output.write(|out| explain::write(&profile, subject, out));
    }
    if let Some(path) = &args.diff {
        let mut before = profile::load_from(path, &args.input, needs)?;
        tell_types_apart(&mut [&mut profile, &mut before]);
        // a name may be in one of them only
        let filter = args.input.filter(&[&profile, &before], operation)?;
        let views = all(args, &columns.0, &filter, &profile, &groups(args, &profile)?);
        let old = all(args, &columns.0, &filter, &before, &groups(args, &before)?);
        return output.write(|out| compare::write(&old, &views, args.json, &args.fit(), out));
    }
    let filter = args.input.filter(&[&profile], operation)?;
    let groups = groups(args, &profile)?;
    if is_browsed {
        let make = |columns: &[Column], filter: &Filter| all(args, columns, filter, &profile, &groups);
        let start =
            browse::Start::Tables { make: Box::new(make), columns: columns.0, is_tree: args.hierarchy };
        let pages = browse::Pages::new(&profile, filter, weighing(args), start);
        return browser::run(&pages, output.has_colors());
    }
    let views = all(args, &columns.0, &filter, &profile, &groups);
    let exporter = args.exporter();
    let has_hints = exporter == Exporter::Text && views.has_types();
    let mut hints = Vec::new();
    if has_hints {
        let debug = profile::debug_information(&profile, &filter).into_iter();
        hints.extend(debug.map(|hint| format!("No debug information: {hint}")));
        let types = profile::undecoded(&profile, &filter).into_iter();
        hints.extend(types.map(|line| format!("No types: {line}")));
    }
    let written = output.write(|out| match exporter {
        Exporter::Json => json::write(&views, out),
        Exporter::Csv => csv::write(&views, out),
        Exporter::Html => html::write(&views, &args.input.input, out),
        Exporter::Text => stdio::write(&views, &hints, args.hierarchy, &args.fit(), out),
    });
    std::mem::forget(views);
    profile::keep_to_the_end(profile);
    written
}

/// Returns all tables of a recording.
fn all<'p>(
    args: &ReportArgs,
    columns: &[Column],
    filter: &Filter,
    profile: &'p Profile,
    groups: &[Vec<usize>],
) -> Views<'p> {
    let relative = args.percentage == Percentage::Relative;
    let make =
        |events: &Vec<usize>| View::new(profile, columns, events.clone(), filter, weighing(args), relative);
    Views {
        profile,
        columns: columns.to_vec(),
        views: groups.iter().map(make).collect(),
        samples_column: args.show_nr_samples,
        limit: args.percent_limit,
        weighing: weighing(args),
    }
}

fn weighing(args: &ReportArgs) -> Weighing {
    if args.mem_mode { Weighing::Weight } else { Weighing::Period }
}

/// Returns the events of each table: one table for each event that has samples, or one for all.
fn groups(args: &ReportArgs, profile: &Profile) -> Result<Vec<Vec<usize>>> {
    let mut has_samples = vec![false; profile.info().events.len()];
    profile.groups().iter().for_each(|point| has_samples[point.event as usize] = true);
    let mut events: Vec<usize> =
        (0..profile.info().events.len()).filter(|index| has_samples[*index]).collect();
    if !events.is_empty()
        && let Some(names) = profile::names::resolve(NameKind::Event, &args.event, &[profile])?
    {
        events.retain(|index| names.contains(&profile.info().events[*index].name));
    }
    if args.needs_source && !events.iter().any(|index| profile.info().events[*index].has_source) {
        bail!(
            "{}: no samples of memory accesses; record them where the CPU has such events (tallyline record -e \
             mem-loads -e mem-stores), or see types by the clock: tallyline report",
            args.input.input.display()
        );
    }
    if args.mem_mode && !events.iter().any(|index| profile.info().events[*index].has_weight) {
        eprintln!(
            "tallyline: these samples have no weights, so each counts 1; record memory events \
             (tallyline record -e mem-loads, or perf mem record) where the CPU has them"
        );
    }
    // without samples: one table that says so
    if events.is_empty() {
        events.extend((!profile.info().events.is_empty()).then_some(0));
    }
    Ok(if args.group { vec![events] } else { events.into_iter().map(|event| vec![event]).collect() })
}
