//! `tallyline layout`: structs as the cache sees them, in pahole's format.
//!
//! A command line comes down to a [`job`]: this program's own ([`args`]), or pahole's
//! ([`crate::pahole`]).

pub(crate) mod args;
pub(crate) mod filter;
mod html;
mod in_order;
pub(crate) mod job;
mod json;
pub(crate) mod open;
pub(crate) mod operands;
mod paint;
pub(crate) mod select;
pub(crate) mod show;
pub(crate) mod source;
mod style;
pub(crate) mod suggest;

pub(crate) use args::LayoutArgs;
pub(crate) use suggest::nearest_in;

use anyhow::{Result, bail};
use args::Format;
use job::{Ask, Job, Show};
use tallyline_debuginfo::model::{TypeId, Types};
use tallyline_support::output::{Color, Output};

/// Runs the sub-command `tallyline layout`: prints structs with offsets, holes and cache lines.
pub(crate) fn run(args: &LayoutArgs, color: Color) -> Result<()> {
    let mut job = args.job()?;
    let colored = match &args.output {
        Some(_) => color == Color::Always,
        None => Output::open(None, color)?.has_colors(),
    };
    let colored = colored && args.format == Format::Text && job.shows_definitions();
    // else there are none that would have to be taken out
    let output = Output::open(args.output.as_deref(), Color::Always)?;
    if let (Format::Text, Some(file)) = (args.format, job.in_parts()) {
        let mut read = Ok(());
        output.write(|out| {
            match colored {
                true => paint::painted(out, |out| {
                    read = show::show_parts(&job, file, out)?;
                    Ok(())
                })?,
                false => read = show::show_parts(&job, file, out)?,
            }
            Ok(())
        })?;
        return read;
    }
    let types = job.read_and_locate()?;
    let mut missing = Vec::new();
    output.write(|out| {
        missing = match args.format {
            Format::Text if colored => {
                let mut missing = Vec::new();
                paint::painted(out, |out| {
                    missing = show::show(&job, &types, out)?;
                    Ok(())
                })?;
                missing
            }
            Format::Text => show::show(&job, &types, out)?,
            Format::Json => {
                let (ids, missing) = chosen(&job, &types);
                match job.show {
                    Show::Definition => json::write(job.style.cacheline, &types, &ids, out)?,
                    _ => show::write_columns(&job, &types, &ids, out)?,
                }
                missing
            }
            Format::Html => {
                let (ids, missing) = chosen(&job, &types);
                html::write(&job.files, job.style.cacheline, &types, &ids, out)?;
                missing
            }
        };
        Ok(())
    })?;
    if !missing.is_empty() && !job.skip_missing {
        bail!("{}", suggest::not_found(&job, &types, &missing));
    }
    Ok(())
}

/// Returns the types that are asked for, and the names that there is no type of.
fn chosen<'j>(job: &'j Job, types: &Types) -> (Vec<TypeId>, Vec<&'j str>) {
    match &job.ask {
        Ask::Types(names) if !names.is_empty() => names.resolve(types),
        _ => (show::filtered(job, types), Vec::new()),
    }
}
