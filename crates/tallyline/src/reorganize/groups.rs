//! Orders of members by the groups of `net_cachelines` tables.

use super::{ReorganizeArgs, patch};
use crate::apply::{self, Target};
use crate::layout::{select::Names, source};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tallyline_debuginfo::lookup::Definitions;
use tallyline_debuginfo::model::{RecordId, Types};
use tallyline_debuginfo::{PointerTargets, Request};
use tallyline_layout::check::Table;
use tallyline_layout::reorganize::{Proposal, Reorganizer};
use tallyline_support::output::Output;

/// Proposes an order for the struct of each table, and edits sources if asked.
pub(super) fn run(args: &ReorganizeArgs, file: &Path, operands: &[String], output: Output) -> Result<()> {
    if let Some(name) = operands.first() {
        bail!("{name}: a table says which struct it is about: give the file alone");
    }
    let mut tables = Vec::new();
    let mut names = Names::default();
    for path in &args.groups {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let table = Table::parse(&text).with_context(|| format!("{}: not a table", path.display()))?;
        names.add_one(table.name())?;
        tables.push(table);
    }
    let request = Request {
        wanted: names.wanted(),
        format: args.format_path(),
        cacheline: args.cacheline_size,
        positions: true,
        pointer_targets: PointerTargets::Names,
        exact: true,
        ..Request::default()
    };
    let types = source::read(file, &request, args.btf_base.as_deref())?;
    source::warn(file, &types);
    let reorganizer = Reorganizer::new(&types, args.options());
    let record = |table: &Table| record(&types, table.name()).with_context(|| file.display().to_string());
    let records = tables.iter().map(record).collect::<Result<Vec<_>>>()?;
    args.pins().check_records(&types, &records.iter().map(|id| types.record(*id)).collect::<Vec<_>>())?;
    let mut proposals = Vec::new();
    for (table, record) in tables.iter().zip(records) {
        let proposal = reorganizer
            .propose_grouped(record, table)
            .map_err(|refusal| anyhow::anyhow!("{}: {refusal}", table.name()))?;
        let (before, after) = (proposal.current().size(), proposal.proposed().size());
        if after > before {
            bail!(
                "{}: its groups take {after} bytes, where it has {before}: leave fields that are seldom used out of the table",
                table.name()
            );
        }
        proposals.push((table, proposal));
    }
    if !args.apply.edits() {
        return output.write(|out| {
            proposals.iter().try_for_each(|(table, proposal)| {
                Ok(out.write_all(summary(&types, table.name(), proposal).as_bytes())?)
            })
        });
    }
    let mut targets = Vec::new();
    for (table, proposal) in &proposals {
        eprint!("{}", first_line(table.name(), proposal));
        targets.push(
            Target::of_groups(&types, table.name(), proposal)
                .map_err(|why| anyhow::anyhow!("{}: {why}", table.name()))?,
        );
    }
    let promised: Vec<_> = targets.iter().map(|target| target.promised.clone()).collect();
    let promises = |some: &[usize]| some.iter().map(|at| promised.get(*at).cloned()).collect();
    let plan = apply::plan(file, targets, &promises, &args.apply)?;
    patch::finish(args, file, &plan, &[], false, output)
}

/// Returns the definition of a struct's name; an error if there is none, or if there are several that differ.
fn record(types: &Types, name: &str) -> Result<RecordId> {
    let called = Definitions::new(types).records_called(name);
    let found: BTreeSet<RecordId> =
        called.into_iter().filter_map(|id| types.as_record(types.strip(id))).map(|(id, _)| id).collect();
    match found.first() {
        Some(record) if found.len() == 1 => Ok(*record),
        Some(_) => bail!(
            "{} different structs named {name}: give an object file that has only the one that is meant",
            found.len()
        ),
        None => bail!("no struct named {name}"),
    }
}

/// Returns the sizes of a proposed order by groups: lines of the groups, bytes of the struct.
fn first_line(name: &str, proposal: &Proposal) -> String {
    let (before, after) = proposal.group_lines();
    let sizes = (proposal.current().size(), proposal.proposed().size());
    let mut text = format!(
        "{name}: {} groups on {after} cache lines, of {before} before; {} bytes, of {} before\n",
        proposal.groups().len(),
        sizes.1,
        sizes.0
    );
    if !proposal.unplaced().is_empty() {
        text += &format!("{name}: not moved: {}\n", proposal.unplaced().join(", "));
    }
    text
}

/// Returns the groups with the places of their members.
fn summary(types: &Types, name: &str, proposal: &Proposal) -> String {
    let mut text = first_line(name, proposal);
    for (group, range) in proposal.groups() {
        text += &format!("  {group}\n");
        for member in proposal.members().get(range.clone()).unwrap_or_default() {
            let name = String::from_utf8_lossy(types.name(member.name));
            text += &format!("{:>10} {:>6}  {name}\n", member.bit_offset / 8, member.size);
        }
    }
    text
}
