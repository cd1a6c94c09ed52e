//! `tallyline layout`: structs as the cache sees them, in pahole's format.

mod args;
mod companions;
mod debug_file;
mod json;
pub(crate) mod operands;
pub(crate) mod select;
pub(crate) mod source;

pub(crate) use args::LayoutArgs;

use crate::output::{Color, Output};
use anyhow::{Result, bail};
use args::Format;
use std::io::Write;
use tallyline_layout::model::{TypeId, Types};
use tallyline_layout::print::pahole::Printer;
use tallyline_layout::query::Packed;
use tallyline_layout::{Request, Wanted, query};

/// How much text is collected before it is written.
const FLUSH: usize = 1 << 16;

/// Does what the command line says.
pub(crate) fn run(args: &LayoutArgs) -> Result<()> {
    let (file, names) = args.file_and_names()?;
    // there are no colours in here that would have to be taken out
    let output = Output::open(args.output.as_deref(), Color::Always)?;
    let related = args.contains.as_ref().or(args.find_pointers_to.as_ref());
    let wanted = if related.is_some() { Wanted::Records } else { names.wanted() };
    let request = Request {
        wanted,
        format: args.format_path(),
        cacheline: args.cacheline_size,
        positions: args.format == Format::Json,
        ..Request::default()
    };
    let types = source::read(&file, &request, args.btf_base.as_deref())?;
    source::warn(&file, &types);
    let mut missing = Vec::new();
    output.write(|out| {
        if let Some(name) = related {
            match query::find_mentioned(&types, name.as_bytes()) {
                Some(id) => relations(args, &types, id, out)?,
                None => missing.push(name.as_str()),
            }
            return Ok(());
        }
        let (found, unknown) = names.resolve(&types);
        missing = unknown;
        match args.format {
            Format::Text if names.is_empty() => all(args, &types, out),
            Format::Text => some(args, &types, &found, out),
            Format::Json if names.is_empty() => json::write(args, &types, &filtered(args, &types), out),
            Format::Json => json::write(args, &types, &found, out),
        }
    })?;
    if !missing.is_empty() {
        bail!("{}: no type named {}", file.display(), missing.join(", "));
    }
    Ok(())
}

/// Every type that passes the filter.
fn filtered(args: &LayoutArgs, types: &Types) -> Vec<TypeId> {
    let (filter, mut packed) = (args.filter(), Packed::new(types));
    let mut records = query::distinct_records(types);
    if args.sort {
        query::sort_by_name(types, &mut records);
    }
    records.retain(|(_, record)| filter.accepts(types, *record, &mut packed));
    records.into_iter().map(|(id, _)| id).collect()
}

/// Shows every type that passes the filter.
fn all(args: &LayoutArgs, types: &Types, out: &mut dyn Write) -> Result<()> {
    let mut printer = Printer::new(types, args.style());
    let filter = args.filter();
    let mut records = query::distinct_records(types);
    if args.sort {
        query::sort_by_name(types, &mut records);
    }
    for (id, record) in records {
        if filter.accepts(types, record, printer.packed()) {
            show(args, types, &mut printer, id, out)?;
            flush(&mut printer, FLUSH, out)?;
        }
    }
    flush(&mut printer, 0, out)
}

/// Shows the types that were named, an empty line behind each.
fn some(args: &LayoutArgs, types: &Types, found: &[TypeId], out: &mut dyn Write) -> Result<()> {
    let mut printer = Printer::new(types, args.style());
    for id in found {
        show(args, types, &mut printer, *id, out)?;
        flush(&mut printer, 0, out)?;
        writeln!(out)?;
    }
    Ok(())
}

fn show(
    args: &LayoutArgs,
    types: &Types,
    printer: &mut Printer<'_>,
    id: TypeId,
    out: &mut dyn Write,
) -> Result<()> {
    let record = types.as_record(id).map(|(_, record)| record);
    let line = args.separator;
    let columns = match record {
        _ if args.names_only() => String::new(),
        Some(record) if args.nr_members => format!("{line}{}", types.members(record).len()),
        Some(record) if args.sizes => {
            format!("{line}{}{line}{}", record.size, query::layout(types, record).summary.holes)
        }
        _ if args.sizes => format!("{line}{}{line}0", query::size_of(types, id)),
        _ => {
            printer.print(id);
            return Ok(());
        }
    };
    out.write_all(types.name(types.type_name(id)))?;
    Ok(writeln!(out, "{columns}")?)
}

fn flush(printer: &mut Printer<'_>, above: usize, out: &mut dyn Write) -> Result<()> {
    if printer.text().len() > above {
        out.write_all(printer.text())?;
        printer.clear();
    }
    Ok(())
}

/// Shows what holds a type, or points to it.
fn relations(args: &LayoutArgs, types: &Types, wanted: TypeId, out: &mut dyn Write) -> Result<()> {
    let name = |id| types.name(types.type_name(id));
    if args.contains.is_some() {
        for id in query::containers(types, wanted) {
            out.write_all(name(id))?;
            writeln!(out)?;
        }
        return Ok(());
    }
    for (id, member) in query::pointers_to(types, wanted) {
        out.write_all(name(id))?;
        out.write_all(b": ")?;
        out.write_all(types.name(member))?;
        writeln!(out)?;
    }
    Ok(())
}
