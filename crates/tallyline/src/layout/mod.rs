//! `tallyline layout`: structs as the cache sees them, in pahole's format.

mod args;
mod debug_file;
mod select;

pub(crate) use args::LayoutArgs;

use anyhow::{Context, Result, bail};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tallyline_layout::model::{TypeId, Types};
use tallyline_layout::print::pahole::Printer;
use tallyline_layout::{Error, Request, Wanted, query};

/// How much text is collected before it is written.
const FLUSH: usize = 1 << 16;

/// Does what the command line says.
pub(crate) fn run(args: &LayoutArgs) -> Result<()> {
    let (file, names) = args.file_and_names()?;
    let related = args.contains.as_ref().or(args.find_pointers_to.as_ref());
    let wanted = if related.is_some() { Wanted::Records } else { names.wanted() };
    let types = read(args, &file, wanted)?;
    for warning in types.warnings() {
        eprintln!("tallyline: {}: {warning}", file.display());
    }
    let mut missing = Vec::new();
    // there are no colours in here that would have to be taken out
    let mut out = BufWriter::new(std::io::stdout().lock());
    match related {
        Some(name) => match query::find_mentioned(&types, name.as_bytes()) {
            Some(id) => relations(args, &types, id, &mut out)?,
            None => missing.push(name.as_str()),
        },
        None if names.is_empty() => all(args, &types, &mut out)?,
        None => {
            let (found, unknown) = names.resolve(&types);
            missing = unknown;
            some(args, &types, &found, &mut out)?;
        }
    }
    out.flush()?;
    if !missing.is_empty() {
        bail!("{}: no type named {}", file.display(), missing.join(", "));
    }
    Ok(())
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

fn read(args: &LayoutArgs, file: &Path, wanted: Wanted) -> Result<Types> {
    let request =
        Request { wanted, format: args.format(), cacheline: args.cacheline_size, ..Request::default() };
    let cannot = |path: &Path| format!("cannot read {}", path.display());
    let types = match args.btf_base.clone().or_else(|| base_of_module(file)) {
        Some(base) => {
            let bytes = std::fs::read(file).with_context(|| cannot(file))?;
            let base = std::fs::read(&base).with_context(|| cannot(&base))?;
            tallyline_layout::read_with_base(&bytes, &base, &request)
        }
        None => {
            let open = std::fs::File::open(file).with_context(|| cannot(file))?;
            match tallyline_layout::read_file(&open, &request) {
                Err(Error::NoTypes) => debug_file::read(file, &request).unwrap_or(Err(Error::NoTypes)),
                types => types,
            }
        }
    };
    types.with_context(|| file.display().to_string())
}

/// The BTF of a module of the running kernel goes on from the kernel's.
fn base_of_module(file: &Path) -> Option<PathBuf> {
    let folder = Path::new("/sys/kernel/btf");
    let is_module = file.parent() == Some(folder) && file.file_name() != Some("vmlinux".as_ref());
    is_module.then(|| folder.join("vmlinux"))
}
