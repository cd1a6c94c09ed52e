//! `tallyline diff`: what differs between the layouts of two files.

mod args;
mod causes;
mod codiff;
mod evidence;
mod folded;
mod json;
mod markdown;
mod text;

pub(crate) use args::DiffArgs;

use crate::layout::select::split;
use crate::layout::source;
use anyhow::{Result, bail};
use args::Format;
use evidence::Evidence;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::model::Types;
use tallyline_debuginfo::{Request, Wanted};
use tallyline_layout::diff::{Counts, DiffOptions, TypeChange, causes, diff, missing};
use tallyline_support::output::{Color, Output};

/// An output format of differences, which are written one type after the other.
trait Report {
    /// Writes the change of one type.
    fn change(&mut self, change: &TypeChange, out: &mut dyn Write) -> Result<()>;
    /// Writes the numbers of changed types, after the last one.
    fn end(&mut self, counts: &Counts, out: &mut dyn Write) -> Result<()>;
}

/// Runs the sub-command `tallyline diff`, which compares the layouts of the types in two files; the exit code is 1 if a
/// type differs.
pub(crate) fn run(args: &DiffArgs, color: Color) -> Result<ExitCode> {
    let names = |lists: &[String]| -> Vec<String> {
        lists.iter().flat_map(|list| split(list)).map(String::from).collect()
    };
    let options = DiffOptions {
        cacheline: args.cacheline_size,
        only: names(&args.classes),
        except: names(&args.exclude),
        types: args.types,
    };
    let output = Output::open(args.output.as_deref(), color)?;
    let old = read(&args.old, &options)?;
    let new = read(&args.new, &options)?;
    let mut changes = Vec::new();
    let counts = diff(&old, &new, &options, |change| {
        changes.push(change.clone());
        Ok::<(), std::convert::Infallible>(())
    });
    let Ok(counts) = counts;
    let missing = missing(&old, &new, &options).join(", ");
    let evidence = Evidence::gather(args, &old, &new)?;
    drop((old, new));
    let is_folded = !args.all && !args.verbose && args.classes.is_empty();
    output.write(|out| {
        let mut report: Box<dyn Report + '_> = match args.format {
            Format::Text if is_folded => return folded::text(&changes, &evidence, &counts, out),
            Format::Markdown if is_folded => return folded::markdown(&changes, &evidence, &counts, out),
            Format::Text => {
                Box::new(text::Text { verbose: args.verbose, members: usize::MAX, evidence: &evidence })
            }
            Format::Json => Box::new(json::Json::new(&changes, causes(&changes), &evidence)),
            Format::Markdown => Box::new(markdown::Markdown::new(&evidence)),
            Format::Codiff => Box::new(codiff::Codiff::new(args.verbose)),
        };
        changes.iter().try_for_each(|change| report.change(change, out))?;
        report.end(&counts, out)
    })?;
    if !missing.is_empty() {
        bail!("{}, {}: no type named {missing}", args.old.display(), args.new.display());
    }
    Ok(if counts.differ() { ExitCode::from(crate::FINDINGS) } else { ExitCode::SUCCESS })
}

fn read(file: &Path, options: &DiffOptions) -> Result<Types> {
    let only = &options.only;
    let wanted = if only.is_empty() || only.iter().any(|name| lookup::is_pattern(name)) {
        Wanted::Records
    } else {
        Wanted::named(only.iter().map(String::as_str))
    };
    let request = Request {
        wanted,
        cacheline: options.cacheline,
        positions: true,
        exact: true,
        typedefs: true,
        ..Request::default()
    };
    let types = source::read(file, &request, None)?;
    source::warn(file, &types);
    Ok(types)
}
