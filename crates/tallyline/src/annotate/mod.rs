//! `tallyline annotate`: types field by field, functions instruction by instruction.

mod args;
mod exchange;

pub(crate) use args::AnnotateArgs;

use crate::browser;
use crate::listing::{code, text};
use crate::profile::{self, Patterns};
use crate::report::browse;
use anyhow::{Context, Result};
use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use tallyline_report::annotate::{TypeUse, annotate};
use tallyline_report::keys::Needs;
use tallyline_report::operand::Outcome;
use tallyline_report::pattern::NameKind;
use tallyline_report::{Filter, PlaceId, Profile, SampleGroup, Weighing};
use tallyline_support::output::{Color, Output, printable};

/// Runs the sub-command `tallyline annotate`: prints types field by field with the samples that access each.
pub(crate) fn run(args: &AnnotateArgs, color: Color) -> Result<()> {
    let output = Output::open(args.output.as_deref(), color)?;
    if let Some(path) = &args.read_json {
        let (mut types, line) = exchange::read(path)?;
        if let Some(wanted) = &args.name {
            let names = types.iter().map(|of_type| of_type.name()).collect();
            let wanted = wanted.select(NameKind::Type, &names)?;
            types.retain(|of_type| wanted.contains(of_type.name()));
        }
        let types = of_events(&types, &args.event)?;
        found(types.iter().map(|(_, types)| types.len()).sum(), path);
        return output.write(|out| write(args, &types, line, out));
    }
    let is_browsed = args.is_browsable() && browser::is_wanted();
    let needs = if args.code || is_browsed { Needs::LINES.and(Needs::TYPES) } else { Needs::TYPES };
    // it says on how many CPUs
    let needs = needs.and(if is_browsed { Needs::SAMPLES } else { Needs::CPUS });
    let profile = profile::load(&args.input, needs)?;
    let mut filter = args.input.filter(&[&profile], None)?;
    filter.events = profile::names::resolve(NameKind::Event, &args.event, &[&profile])?;
    let events = profile::sampled_events(&profile, &filter);
    if !is_browsed {
        for line in profile::undecoded(&profile, &filter) {
            eprintln!("tallyline: no types: {line}");
        }
    }
    if args.code {
        let root = args.input.symfs.as_deref();
        return output.write(|out| {
            for (event, _) in &events {
                heading(event, events.len(), out)?;
                let filter = Filter { events: Some(HashSet::from([event.clone()])), ..filter.clone() };
                code::write(&profile, &filter, root, &args.fit(), out)?;
            }
            Ok(())
        });
    }
    let weighing = if args.mem_mode { Weighing::Weight } else { Weighing::Period };
    if let Some(wanted) = args.name.as_ref().filter(|_| !profile.groups().is_empty()) {
        let let_through = |point: &SampleGroup| filter.accepts(&profile, point);
        let all = annotate(&profile, weighing, let_through);
        let parts = all.iter().flat_map(|of_type| of_type.parts().keys()).map(String::as_str);
        let names = all.iter().map(|of_type| of_type.name()).chain(parts).collect();
        filter.types = Some(wanted.select_in(NameKind::Type, &names, &[&profile])?);
    }
    let types = annotate(&profile, weighing, |point| filter.accepts(&profile, point));
    if !profile.groups().is_empty() {
        found(types.len(), &args.input.input);
    }
    if types.is_empty() {
        for hint in profile::debug_information(&profile, &filter) {
            eprintln!("tallyline: no debug information: {hint}");
        }
    }
    if is_browsed {
        let start = browse::Start::Types { events: events.into_iter().map(|(_, indices)| indices).collect() };
        let pages = browse::Pages::new(&profile, filter, weighing, start);
        return browser::run(&pages, output.has_colors());
    }
    if let Some(path) = &args.data_type_json {
        Output::open(Some(path), color)?.write(|out| exchange::write(&profile, &types, out))?;
        let left_out = exchange::left_out(&types);
        if left_out != 0 {
            eprintln!(
                "tallyline: {}: left out {left_out} samples that are at one of two members, as the format has \
                 one offset for each; tallyline report -s typeoff has them",
                path.display()
            );
        }
    }
    let written = output.write(|out| {
        if args.type_stat {
            statistics(&profile, out)?;
        }
        let of_event = |(event, indices): &(String, Vec<usize>)| {
            let accepts = |point: &SampleGroup| {
                indices.contains(&(point.event as usize)) && filter.accepts(&profile, point)
            };
            (event.clone(), annotate(&profile, weighing, accepts))
        };
        let types: Vec<_> = events.iter().map(of_event).collect();
        write(args, &types, profile.info().line_size.into(), out)
    });
    profile::keep_to_the_end(profile);
    written
}

/// Returns the types of a document for each event that `wanted` selects, the most accessed first.
fn of_events(types: &[TypeUse], wanted: &[Patterns]) -> Result<Vec<(String, Vec<TypeUse>)>> {
    let mut events: Vec<&str> = Vec::new();
    for (event, _) in types.iter().flat_map(TypeUse::events) {
        if !events.contains(&event.as_str()) {
            events.push(event);
        }
    }
    // a document of types alone
    if events.is_empty() {
        return Ok(vec![(String::new(), types.to_vec())]);
    }
    if !wanted.is_empty() {
        let names = events.iter().copied().collect();
        let mut selected = HashSet::new();
        for patterns in wanted {
            selected.extend(patterns.select(NameKind::Event, &names)?);
        }
        events.retain(|event| selected.contains(*event));
    }
    let of_event = |event: &str| {
        let mut found: Vec<_> = types.iter().filter_map(|of_type| of_type.of_event(event)).collect();
        found.sort_by_key(|of_type| std::cmp::Reverse(of_type.whole().total()));
        (event.to_owned(), found)
    };
    Ok(events.into_iter().map(of_event).collect())
}

/// Writes the types of each event.
fn write(
    args: &AnnotateArgs,
    types: &[(String, Vec<TypeUse>)],
    line: u64,
    out: &mut dyn Write,
) -> Result<()> {
    for (event, of_event) in types {
        heading(event, types.len(), out)?;
        text::write(args.plain, of_event, line, &args.fit(), out)?;
    }
    Ok(())
}

/// Writes an event's name, if there are several.
fn heading(event: &str, count: usize, out: &mut dyn Write) -> Result<()> {
    if count > 1 {
        writeln!(out, "# Samples of event '{}'\n", printable(event.as_bytes()))?;
    }
    Ok(())
}

fn found(types: usize, file: &Path) {
    if types == 0 {
        eprintln!(
            "tallyline: {}: no sample has a type; tallyline report -s dso,type says why",
            file.display()
        );
    }
}

/// Prints the number of charged instructions, and of those that have a type.
fn statistics(profile: &Profile, out: &mut dyn Write) -> Result<()> {
    let mut places: Vec<PlaceId> = profile.groups().iter().map(|group| group.charged).collect();
    places.sort_unstable();
    places.dedup();
    let mut reasons = std::collections::BTreeMap::new();
    let mut ok = 0;
    for place in &places {
        match profile.outcome_at(*place) {
            Outcome::Typed(_) | Outcome::Pseudo(_) => ok += 1,
            Outcome::Untyped(reason) => {
                *reasons.entry(reason.text(|name| profile.text(name))).or_insert(0_u64) += 1;
            }
        }
    }
    let total = places.len();
    let share = |part: usize| if total == 0 { 0.0 } else { part as f64 * 100.0 / total as f64 };
    writeln!(out, "Annotate data type stats:")?;
    writeln!(
        out,
        "total {total}, ok {ok} ({:.1}%), bad {} ({:.1}%)",
        share(ok),
        total - ok,
        share(total - ok)
    )?;
    writeln!(out, "-----------------------------------------------------------")?;
    for (reason, count) in reasons {
        writeln!(out, "{count:>10} : {reason}")?;
    }
    writeln!(out).context("cannot write")
}
