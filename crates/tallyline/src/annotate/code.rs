//! Functions instruction by instruction: share, source line, instruction, type.

use crate::output::printable;
use anyhow::Result;
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use tallyline_profile::code::Body;
use tallyline_profile::infer::{Outcome, TypeTable, place_text};
use tallyline_profile::report::{Binaries, Filter, Profile};

/// A function, line by line.
pub(crate) struct Function {
    /// Its number in the profile.
    pub(crate) symbol: u32,
    /// What it is, and the heads of the columns.
    pub(crate) head: [String; 2],
    /// Its instructions, with the share of those that have samples.
    pub(crate) lines: Vec<(Option<f64>, String)>,
}

/// Writes the functions that have samples, those with the most first.
pub(super) fn write(
    profile: &Profile,
    binaries: &Binaries,
    filter: &Filter,
    out: &mut dyn Write,
) -> Result<()> {
    for function in functions(profile, binaries, filter) {
        for line in function.head.iter().chain(function.lines.iter().map(|(_, text)| text)) {
            writeln!(out, "{line}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The functions that have samples, those with the most first.
pub(crate) fn functions(profile: &Profile, binaries: &Binaries, filter: &Filter) -> Vec<Function> {
    let mut found = Vec::new();
    let mut functions: HashMap<u32, BTreeMap<u64, (u64, u32)>> = HashMap::new();
    for point in profile.points.iter().filter(|point| filter.accepts(profile, point)) {
        let at = profile.at(point.charged);
        let samples = functions.entry(at.symbol).or_default().entry(at.address).or_insert((0, point.charged));
        samples.0 += point.samples;
    }
    let mut functions: Vec<_> = functions.into_iter().collect();
    let size = |samples: &BTreeMap<u64, (u64, u32)>| samples.values().map(|(n, _)| *n).sum::<u64>();
    functions.sort_by_key(|(symbol, samples)| (std::cmp::Reverse(size(samples)), *symbol));
    for (number, samples) in functions {
        let Some(symbol) = profile.symbol(number) else { continue };
        let (Some(program), Some(table)) = (binaries.get(symbol.dso), profile.joined.tables.get(&symbol.dso))
        else {
            continue;
        };
        let first = samples.keys().next().copied().unwrap_or_default();
        let Some(function) = table.function_at(first) else { continue };
        let entry = function.ranges.first().map_or(0, |range| range.start);
        let body = Body::decode(&program.image, &function.ranges, entry);
        let total = size(&samples);
        let what = format!(
            "Annotate function: '{}' in {} ({total} samples):",
            printable(profile.text(symbol.name).as_bytes()),
            printable(profile.dso_name(symbol.dso).as_bytes())
        );
        let columns =
            " Percent  source                    address  instruction                                   type";
        let mut lines = Vec::new();
        for instruction in body.instructions() {
            let here = samples.get(&instruction.address);
            let share = here.map(|(n, _)| *n as f64 * 100.0 / total as f64);
            let percent = share.map_or_else(String::new, |share| format!("{share:.2}"));
            let line = here.map_or("", |(_, place)| profile.text(profile.at(*place).source_line));
            let ty = if instruction.memory.is_some() {
                text_of(table, instruction.address)
            } else {
                String::new()
            };
            let row = format!(
                " {percent:>7}  {:<20} {:>12x}  {:<45} {}",
                printable(line.as_bytes()),
                instruction.address,
                program.image.text(instruction).replace('\t', " "),
                printable(ty.as_bytes())
            );
            lines.push((share, row.trim_end().to_owned()));
        }
        let head = [what, columns.to_owned()];
        found.push(Function { symbol: number, head, lines });
    }
    found
}

fn text_of(table: &TypeTable, address: u64) -> String {
    match table.outcome(address) {
        Some(Outcome::Typed(typed)) => {
            let name = tallyline_layout::print::type_text(table.types(), typed.ty);
            format!("{name} {}", place_text(table.types(), &typed))
        }
        Some(Outcome::Pseudo(pseudo)) => pseudo.name().to_owned(),
        Some(Outcome::Untyped(reason)) => format!("(unknown: {reason})"),
        None => String::new(),
    }
}
