//! Functions instruction by instruction: share, source line, instruction, type; with the text of source lines and
//! labels where jumps lead to.

use super::source::SourceFiles;
use super::text::Line;
use crate::columns::Fit;
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write;
use std::path::Path;
use tallyline_inference::code::{Body, Flow, Instruction};
use tallyline_inference::{Outcome, TypeTable, place_text};
use tallyline_perf_data::spaces::DsoId;
use tallyline_report::profile::Symbol;
use tallyline_report::programs::Program;
use tallyline_report::{Filter, PlaceId, Profile, SampleGroup, SymbolId, source_lines};
use tallyline_support::output::printable;

/// An annotated listing of one function: instructions or source lines with their samples.
pub(crate) struct Function {
    /// The title of the listing and the headings of its columns.
    pub(crate) head: [String; 2],
    /// The lines of the listing: instructions, with the share of those that have samples, source lines and labels.
    pub(crate) lines: Vec<Line>,
}

/// Prints annotated listings of all functions with samples that pass the filter, those with the most samples first.
pub(crate) fn write(
    profile: &Profile,
    filter: &Filter,
    root: Option<&Path>,
    fit: &Fit,
    out: &mut dyn Write,
) -> Result<()> {
    for function in functions(profile, root, |point| filter.accepts(profile, point)) {
        for line in &function.head {
            writeln!(out, "{}", fit.rest(line, 0))?;
        }
        for line in &function.lines {
            writeln!(out, "{}", line.fitted(fit))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Samples by address, each with its place.
type Samples = BTreeMap<u64, (u64, PlaceId)>;

/// Returns annotated listings of the functions that the accepted samples are in, those with the most samples first.
/// Source files are also looked for under `root`.
pub(crate) fn functions(
    profile: &Profile,
    root: Option<&Path>,
    accepts: impl Fn(&SampleGroup) -> bool,
) -> Vec<Function> {
    let mut found = Vec::new();
    let mut functions: HashMap<SymbolId, Samples> = HashMap::new();
    for point in profile.groups().iter().filter(|point| accepts(point)) {
        let at = profile.at(point.charged);
        let Some(symbol) = at.symbol else { continue };
        let samples = functions.entry(symbol).or_default().entry(at.address).or_insert((0, point.charged));
        samples.0 += point.samples;
    }
    let mut functions: Vec<_> = functions.into_iter().collect();
    let size = |samples: &Samples| samples.values().map(|(n, _)| *n).sum::<u64>();
    functions.sort_by_key(|(symbol, samples)| (std::cmp::Reverse(size(samples)), *symbol));
    let mut sources = SourceFiles::new(root);
    for (number, samples) in functions {
        let Some(symbol) = profile.symbol(number) else { continue };
        let Some(dso) = symbol.dso else { continue };
        let (Some(program), Some(table)) = (profile.program(dso), profile.type_table(dso)) else {
            continue;
        };
        found.extend(function(profile, symbol, (program, table), &samples, &mut sources));
    }
    found
}

fn function(
    profile: &Profile,
    symbol: &Symbol,
    (program, table): (&Program, &TypeTable),
    samples: &Samples,
    sources: &mut SourceFiles<'_>,
) -> Option<Function> {
    let first = samples.keys().next().copied().unwrap_or_default();
    let function = table.function_at(first)?;
    let entry = function.ranges().first().map_or(0, |range| range.start);
    let body = Body::decode(program.image(), function.ranges(), entry);
    let total: u64 = samples.values().map(|(n, _)| *n).sum();
    let what = format!(
        "Annotate function: '{}' in {} ({total} samples):",
        printable(profile.text(symbol.name).as_bytes()),
        printable(profile.dso_name(symbol.dso).as_bytes())
    );
    let columns =
        " Percent  source                    address  instruction                                   type";
    let addresses: Vec<u64> = body.instructions().iter().map(|instruction| instruction.address()).collect();
    let positions = source_lines(program, &addresses);
    let labels = labels(body.instructions());
    let mut lines = Vec::new();
    let mut before = None;
    for instruction in body.instructions() {
        if let Some(label) = labels.get(&instruction.address()) {
            lines.push(plain(format!("{:45}{label}:", "")));
        }
        let position = positions.get(&instruction.address()).filter(|(_, line)| *line > 0);
        if let Some((path, line)) = position
            && before != Some((path, line))
            && let Some(text) = sources.line(path, *line)
        {
            let name = format!("{}:{line}", path.rsplit('/').next().unwrap_or(path));
            lines.push(plain(format!("{:10}{:<20} {text}", "", printable(name.as_bytes()))));
        }
        before = position.map(|(path, line)| (path, line)).or(before);
        let here = samples.get(&instruction.address());
        let share = here.map(|(n, _)| *n as f64 * 100.0 / total as f64);
        let percent = share.map_or_else(String::new, |share| format!("{share:.2}"));
        let line = here.map_or("", |(_, place)| profile.text(profile.at(*place).source_line));
        let mut code = program.image().text(instruction).replace('\t', " ");
        if let Some(label) = target(instruction).and_then(|target| labels.get(&target)) {
            code += &format!(" -> {label}");
        }
        let mut text = format!(
            " {percent:>7}  {:<20} {:>12x}  {code:<45} ",
            printable(line.as_bytes()),
            instruction.address()
        );
        let fixed = text.len();
        if instruction.memory().is_some() {
            text += &printable(text_of(profile, symbol.dso, table, instruction.address()).as_bytes());
        }
        text.truncate(text.trim_end().len());
        lines.push(Line { fixed: fixed.min(text.len()), percent: share, ..plain(text) });
    }
    Some(Function { head: [what, columns.to_owned()], lines })
}

fn plain(text: String) -> Line {
    Line { text, percent: None, bytes: 0..0, fixed: 0 }
}

/// Returns the target address of a jump.
fn target(instruction: &Instruction) -> Option<u64> {
    match instruction.flow() {
        Flow::Jump(target) => target,
        Flow::Branch(target) => Some(target),
        _ => None,
    }
}

/// Returns the names of those instructions that others of the function jump to, in the order of addresses.
fn labels(instructions: &[Instruction]) -> HashMap<u64, String> {
    let there: BTreeSet<u64> = instructions.iter().map(|instruction| instruction.address()).collect();
    let targets: BTreeSet<u64> =
        instructions.iter().filter_map(target).filter(|at| there.contains(at)).collect();
    targets.into_iter().zip(1..).map(|(address, number)| (address, format!("L{number}"))).collect()
}

fn text_of(profile: &Profile, dso: Option<DsoId>, table: &TypeTable, address: u64) -> String {
    match table.outcome(address) {
        Some(Outcome::Typed(typed)) => {
            let name = dso.map_or_else(String::new, |dso| profile.type_name(dso, typed.ty()));
            format!("{name} {}", place_text(table.types(), &typed))
        }
        Some(Outcome::Pseudo(pseudo)) => pseudo.name().to_owned(),
        Some(Outcome::Untyped(reason)) => format!("(unknown: {reason})"),
        None => String::new(),
    }
}
