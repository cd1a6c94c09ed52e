//! `tallyline groups`: cache line groups, where they lie, and assertions that hold them.

mod args;
mod json;
mod text;

pub(crate) use args::GroupsArgs;

use crate::layout::{operands, select::Names, source, suggest::files_among};
use anyhow::{Context, Result, bail};
use args::Format;
use std::collections::HashMap;
use std::path::Path;
use tallyline_debuginfo::lookup::{Definitions, named_as};
use tallyline_debuginfo::model::{NameId, Record, Types};
use tallyline_debuginfo::{Request, Wanted};
use tallyline_layout::check::Policy;
use tallyline_layout::groups::{self, FoundGroups, Group};
use tallyline_support::output::{Color, Output, printable};

/// A struct and its groups.
struct Grouped<'t> {
    types: &'t Types,
    record: &'t Record,
    /// The struct's name, or that of its typedef if it has none.
    name: NameId,
    /// The place of the definition, if several types have this name.
    place: Option<String>,
    found: FoundGroups,
}

/// Runs the sub-command `tallyline groups`: prints the cache-line groups (members meant to share cache lines) of
/// structs, with the lines they occupy.
pub(crate) fn run(args: &GroupsArgs, color: Color) -> Result<()> {
    let (file, operands) = operands::split(&args.operands, args.file.as_deref());
    let mut names = Names::default();
    operands.iter().try_for_each(|name| names.add_one(name))?;
    args.classes.iter().try_for_each(|list| names.add_list(list))?;
    let policy = args.policy.as_deref().map(read_policy).transpose()?.unwrap_or_default();
    let output = Output::open(args.output.as_deref(), color)?;
    let wanted = if names.is_empty() { Wanted::Records } else { names.wanted() };
    let request = Request {
        wanted,
        cacheline: args.cacheline_size,
        positions: true,
        exact: true,
        typedefs: true,
        ..Request::default()
    };
    let types = source::read(&file, &request, args.btf_base.as_deref())?;
    source::warn(&file, &types);
    let (mut ids, missing) =
        if names.is_empty() { (groups::grouped(&types), Vec::new()) } else { names.resolve(&types) };
    let listed = policy.listed_groups(&types);
    if names.is_empty() {
        // those of the policy behind those with markers
        for (id, _) in &listed {
            if !ids.contains(id) {
                ids.push(*id);
            }
        }
    }
    let mut structs = Vec::new();
    let definitions = Definitions::new(&types);
    let mut counts: HashMap<_, u32> = HashMap::new();
    ids.iter().for_each(|id| *counts.entry(types.qualified_name(*id)).or_default() += 1);
    for id in ids {
        // a typedef means what it stands for
        let Some((_, record)) = types.as_record(types.strip(id)) else { continue };
        let repeats = counts.get(&types.qualified_name(id)).is_some_and(|count| *count > 1);
        let place = repeats.then(|| definitions.place(id)).flatten();
        let mut found = groups::find(&types, record, args.cacheline_size);
        for (_, rule) in listed.iter().filter(|(of, _)| *of == id) {
            if found.groups.iter().any(|group| group.name() == rule.name()) {
                continue;
            }
            match Group::listed(&types, record, rule.name(), rule.members(), args.cacheline_size) {
                Ok(group) => found.groups.push(group),
                Err(missing) => found.problems.push(format!("no member {}", missing.join(", "))),
            }
        }
        let name = named_as(&types, id).map_or(NameId::NONE, |id| types.type_name(id));
        structs.push(Grouped { types: &types, record, name, place, found });
    }
    output.write(|out| match (args.asserts, args.format) {
        (Some(dialect), _) => structs.iter().try_for_each(|of| {
            let groups = &of.found.groups;
            let (dialect, line) = (dialect.into(), args.cacheline_size);
            let text = groups::asserts(&types, of.record, of.name, groups, dialect, line);
            if let Some(place) = &of.place {
                writeln!(out, "/* {} */", printable(place.as_bytes()).replace("*/", "* /"))?;
            }
            Ok(out.write_all(text.as_bytes())?)
        }),
        (None, Format::Text) => text::write(args, &structs, out),
        (None, Format::Json) => json::write(args, &structs, out),
    })?;
    if !missing.is_empty() {
        let files = files_among(&missing);
        bail!("{}: no type named {}{files}", file.display(), missing.join(", "));
    }
    for of in structs.iter().filter(|of| args.asserts.is_some() && of.found.groups.is_empty()) {
        let name = types.name(of.name);
        eprintln!("tallyline: {}: no groups, so nothing to assert", printable(name));
    }
    if names.is_empty() && structs.is_empty() {
        eprintln!("tallyline: {}: no struct has cache line groups", file.display());
    }
    Ok(())
}

fn read_policy(path: &Path) -> Result<Policy> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let policy = Policy::parse(&text).with_context(|| name.clone())?;
    if policy.is_empty() {
        bail!("{name}: no rules, so there is nothing to check; --suggest writes rules that hold now");
    }
    Ok(policy)
}
