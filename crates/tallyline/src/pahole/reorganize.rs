//! `-R`, `-S` and `-P`: smaller layouts in pahole's format. The layouts are this program's own, as
//! `tallyline reorganize` finds and proves them: pahole's may be larger, or not what compiles.

use crate::layout::job::{Ask, Job};
use crate::layout::show;
use anyhow::Result;
use std::io::Write;
use tallyline_debuginfo::lookup::Definitions;
use tallyline_debuginfo::model::{TypeId, Types};
use tallyline_layout::print::pahole::Printer;
use tallyline_layout::reorganize::{Proposal, Reorganization, ReorganizeOptions, Reorganizer, print};

/// The output for smaller layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Smaller {
    /// The structs of `-C`, reorganised; with `steps` also the moves.
    Reorganized { steps: bool },
    /// The names and sizes of all structs that can be smaller.
    Packable,
}

/// Shows it; the first name that there is no type of.
pub(super) fn show(
    job: &Job,
    smaller: Smaller,
    types: &mut Types,
    out: &mut dyn Write,
) -> Result<Option<String>> {
    match smaller {
        Smaller::Packable => packable(job, types, out).map(|()| None),
        Smaller::Reorganized { steps } => reorganized(job, steps, types, out),
    }
}

fn options(job: &Job) -> ReorganizeOptions {
    ReorganizeOptions { cacheline: job.style.cacheline, ..ReorganizeOptions::default() }
}

fn packable(job: &Job, types: &Types, out: &mut dyn Write) -> Result<()> {
    let ids = show::filtered(job, types);
    let outcomes = Reorganizer::new(types, options(job)).propose_all(&ids);
    for (id, outcome) in ids.iter().zip(outcomes) {
        let Reorganization::Smaller(proposal) = outcome else { continue };
        if proposal.saved() == 0 {
            continue;
        }
        out.write_all(types.name(types.type_name(*id)))?;
        let (old, new, line) = (proposal.current().size(), proposal.proposed().size(), job.separator);
        writeln!(out, "{line}{old}{line}{new}{line}{}", proposal.saved())?;
    }
    Ok(())
}

fn reorganized(job: &Job, steps: bool, types: &mut Types, out: &mut dyn Write) -> Result<Option<String>> {
    let Ask::Types(names) = &job.ask else { return Ok(None) };
    for name in names.iter() {
        let found = name.find(types, &mut Definitions::new(types)).first().copied();
        let Some(id) = found else {
            if job.stop_at_missing {
                return Ok(Some(name.text().to_string()));
            }
            continue;
        };
        if types.as_record(id).is_some_and(|(_, record)| record.is_struct()) {
            one(job, steps, types, id, out)?;
        }
    }
    Ok(None)
}

fn one(job: &Job, steps: bool, types: &mut Types, id: TypeId, out: &mut dyn Write) -> Result<()> {
    let proposal: Option<Box<Proposal>> = match Reorganizer::new(types, options(job)).propose(id) {
        Reorganization::Smaller(proposal) => Some(proposal),
        Reorganization::Smallest { .. } => None,
        Reorganization::Refused(reason) => {
            let name = String::from_utf8_lossy(types.name(types.type_name(id)));
            eprintln!("pahole: {name}: {reason}");
            None
        }
    };
    let Some(proposal) = proposal else {
        let mut printer = Printer::new(types, job.style.clone());
        printer.print(id);
        return Ok(out.write_all(printer.text())?);
    };
    let mut text = Vec::new();
    print(types, id, &proposal, &job.style, steps, &mut text)?;
    Ok(out.write_all(&text)?)
}
