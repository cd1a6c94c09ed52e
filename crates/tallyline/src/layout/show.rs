//! Does a job on types that were read: one pass over them, written as it goes.

use super::in_order::{Done, TEXT_LIMIT, in_order};
use super::job::{Ask, Job, Show};
use super::source;
use anyhow::Result;
use std::collections::HashMap;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use tallyline_debuginfo::Request;
use tallyline_debuginfo::abi;
use tallyline_debuginfo::lookup;
use tallyline_debuginfo::lookup::{Definitions, RecordDeduplicator, is_pattern};
use tallyline_debuginfo::model::{NameId, RecordId, TypeId, TypeSource, Types};
use tallyline_layout::print::pahole::{Order, Printer, Start, Style};
use tallyline_layout::query::{self, Packed};

/// The number of bytes of text collected before a write.
const FLUSH: usize = 1 << 16;

/// The number of types that one worker shows at a time.
const PIECE: usize = 64;

/// The maximum depth of the tree of containing types; nothing in practice nests deeper.
const DEPTH_LIMIT: usize = 64;

/// Prints the types that a layout command selects; returns the requested names that match no type.
pub(crate) fn show<'j>(job: &'j Job, types: &Types, out: &mut dyn Write) -> Result<Vec<&'j str>> {
    let mut missing = Vec::new();
    if matches!(&job.ask, Ask::Types(names) if names.is_empty()) {
        all(job, types, out)?;
        return Ok(missing);
    }
    let mut shower = Shower::new(job, types);
    let mut definitions = Definitions::new(types);
    match &job.ask {
        Ask::Types(names) => {
            for name in names.iter() {
                let found = name.find(types, &mut definitions);
                if found.is_empty() {
                    missing.push(name.text());
                    if job.stop_at_missing {
                        break;
                    }
                }
                let found = shower.that_compile(found, name.text(), &definitions);
                let several = found.len() > 1 && !is_pattern(name.text());
                for (index, id) in found.iter().enumerate() {
                    let number = format!("definition {} of {}", index + 1, found.len());
                    let place = several.then(|| (number, definitions.place(*id).unwrap_or_default()));
                    shower.one_of_some(*id, place, out)?;
                }
            }
        }
        Ask::Containers { name, recursive, counted } => match mentioned(job, &mut definitions, types, name) {
            ids if ids.is_empty() => missing.push(name.as_str()),
            ids => shower.containers(&ids, *recursive, *counted, out)?,
        },
        Ask::PointersTo(name) => match mentioned(job, &mut definitions, types, name) {
            ids if ids.is_empty() => missing.push(name.as_str()),
            ids => shower.pointers_to(&ids, out)?,
        },
        Ask::Enumerator(name) => {
            types.listed().iter().try_for_each(|id| shower.enumeration(*id, out))?;
            if types.listed().is_empty() {
                missing.push(name.as_str());
            }
        }
    }
    Ok(missing)
}

/// Returns the types of a name, or one that others only refer to; for pahole the first.
fn mentioned(job: &Job, definitions: &mut Definitions<'_>, types: &Types, name: &str) -> Vec<TypeId> {
    let found = if job.stop_at_missing { Vec::new() } else { definitions.called(name.as_bytes()) };
    match found.is_empty() {
        true => lookup::find_mentioned(types, name.as_bytes()).into_iter().collect(),
        false => found,
    }
}

/// Shows every type; in parallel where the output is the same.
fn all(job: &Job, types: &Types, out: &mut dyn Write) -> Result<()> {
    let order = match job.show {
        Show::Compilable => None,
        Show::Definition => Order::new(types, &job.style),
        _ => Order::new(types, &Style { expand_types: false, ..job.style.clone() }),
    };
    let records = Records::new(job, types);
    match order {
        Some(order) if records.items.len() > PIECE => pieces(job, types, &records, order, out),
        _ => Shower::new(job, types).all(&records, out),
    }
}

/// Writes the columns of types as one document, a type a line.
pub(super) fn write_columns(job: &Job, types: &Types, ids: &[TypeId], out: &mut dyn Write) -> Result<()> {
    let shower = Shower::new(job, types);
    write!(out, "{{\"schema\":1,\"types\":[")?;
    for (index, id) in ids.iter().enumerate() {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut value = serde_json::Map::new();
        let name = types.type_name(*id).is_some().then(|| text(&types.qualified_name(*id)));
        value.insert("name".into(), name.into());
        value.extend(shower.numbers(*id).into_iter().map(|(name, number)| (name.into(), number.into())));
        if shower.sources.contains_key(id) || job.show == Show::Unit {
            value.insert("unit".into(), text(shower.unit(*id)).into());
        }
        out.write_all(if index == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, &value)?;
    }
    Ok(out.write_all(b"\n]}\n")?)
}

/// Prints all types of a file as a layout command (`job`: query, filters, style) asks, part by part (types that are read
/// together and then forgotten) while it is read. The outer result is an error of writing, the inner one
/// of reading.
pub(crate) fn show_parts(job: &Job, file: &Path, out: &mut dyn Write) -> Result<Result<()>> {
    let format = job.formats.first().copied();
    let request = Request { format, ..job.request() };
    let worker = || |part| show_part(job, part);
    let alone = |part: Part, out: &mut dyn Write| Shower::new(job, &part.types).all(&part.records, out);
    let mut met = RecordDeduplicator::default();
    let mut read = Ok(());
    in_order(worker, alone, out, |send| {
        let mut sent = Ok(());
        read = source::read_parts(file, &request, &mut |mut types| {
            source::warn(file, &types);
            if job.widen_bitfields {
                types.widen_bitfields();
            }
            let mut records = Records::new(job, &types);
            records.items.retain(|item| met.is_new(&types, types.record(item.record)));
            sent = send(Part { types, records });
            if sent.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        sent
    })?;
    Ok(read)
}

/// Types that were read together.
struct Part {
    types: Types,
    records: Records,
}

fn show_part(job: &Job, part: Part) -> Done<Part> {
    let mut shower = Shower::new(job, &part.types);
    for item in &part.records.items {
        if part.records.passes(job, &part.types, item, shower.printer.packed()) {
            shower.one(item.id, item.name);
        }
        if shower.printer.text().len() > TEXT_LIMIT {
            return Done::Large(part);
        }
    }
    Done::Text(shower.printer.take())
}

/// Some types, and what is known when it is their turn.
struct Piece<'r> {
    start: Start,
    items: Vec<&'r Item>,
}

fn pieces(
    job: &Job,
    types: &Types,
    records: &Records,
    mut order: Order<'_>,
    out: &mut dyn Write,
) -> Result<()> {
    let worker = || {
        let mut shower = Shower::new(job, types);
        move |piece| shower.piece(piece)
    };
    let alone = |piece: Piece<'_>, out: &mut dyn Write| {
        let mut shower = Shower::new(job, types);
        shower.printer.start_from(&piece.start);
        for item in piece.items {
            shower.one(item.id, item.name);
            shower.flush(FLUSH, out)?;
        }
        shower.flush(0, out)
    };
    in_order(worker, alone, out, |send| {
        let mut piece = Piece { start: order.start(), items: Vec::new() };
        for item in &records.items {
            if !records.passes(job, types, item, order.packed()) {
                continue;
            }
            piece.items.push(item);
            if job.show == Show::Definition {
                order.pass(item.id);
            }
            if piece.items.len() == PIECE {
                let next = Piece { start: order.start(), items: Vec::with_capacity(PIECE) };
                send(std::mem::replace(&mut piece, next))?;
            }
        }
        send(piece)
    })
}

/// Returns the structs that pass the layout command's filters, in the order of output.
pub(crate) fn filtered(job: &Job, types: &Types) -> Vec<TypeId> {
    let mut packed = Packed::new(types);
    let records = Records::new(job, types);
    let passes = |item: &&Item| records.passes(job, types, item, &mut packed);
    records.items.iter().filter(passes).map(|item| item.id).collect()
}

/// A record, and the name that it goes by.
struct Item {
    id: TypeId,
    record: RecordId,
    name: NameId,
}

/// Every record that is asked for, before it is filtered.
struct Records {
    items: Vec<Item>,
}

impl Records {
    fn new(job: &Job, types: &Types) -> Records {
        let anonymous = job.anonymous || job.nested_anonymous;
        let mut records = match anonymous {
            true => lookup::records_and_anonymous(types),
            false => lookup::distinct_records(types),
        };
        if job.sort {
            lookup::sort_by_name(types, &mut records);
        }
        let aliases = if anonymous { lookup::aliases(types) } else { Default::default() };
        let name = |id, record| match types.record(record).name {
            NameId::NONE => aliases.get(&id).copied().unwrap_or(NameId::NONE),
            name => name,
        };
        let items = records.into_iter().map(|(id, record)| Item { id, record, name: name(id, record) });
        Records { items: items.collect() }
    }

    fn passes(&self, job: &Job, types: &Types, item: &Item, packed: &mut Packed) -> bool {
        let is_anonymous = !types.record(item.record).name.is_some();
        let in_columns = !matches!(job.show, Show::Definition | Show::Compilable);
        job.filter.accepts_as(types, item.record, item.name, packed)
            && (!is_anonymous || job.anonymous && (item.name.is_some() || job.nested_anonymous || in_columns))
    }
}

struct Shower<'j, 't> {
    job: &'j Job,
    types: &'t Types,
    printer: Printer<'t>,
    // empty where they are not asked for
    sources: HashMap<TypeId, TypeSource>,
}

impl<'j, 't> Shower<'j, 't> {
    fn new(job: &'j Job, types: &'t Types) -> Shower<'j, 't> {
        let printer = Printer::new(types, job.style.clone());
        Shower { job, types, printer, sources: types.sources().collect() }
    }

    fn all(&mut self, records: &Records, out: &mut dyn Write) -> Result<()> {
        for item in &records.items {
            if records.passes(self.job, self.types, item, self.printer.packed()) {
                self.one(item.id, item.name);
                self.flush(FLUSH, out)?;
            }
        }
        self.flush(0, out)
    }

    fn piece<'r>(&mut self, piece: Piece<'r>) -> Done<Piece<'r>> {
        self.printer.clear();
        self.printer.start_from(&piece.start);
        for item in &piece.items {
            self.one(item.id, item.name);
            if self.printer.text().len() > TEXT_LIMIT {
                return Done::Large(piece);
            }
        }
        Done::Text(self.printer.take())
    }

    /// Keeps those definitions of one name that one program can hold: the first, if the output is to compile.
    fn that_compile(&self, mut found: Vec<TypeId>, name: &str, definitions: &Definitions<'_>) -> Vec<TypeId> {
        if self.job.show == Show::Compilable && found.len() > 1 && !is_pattern(name) {
            let places: Vec<String> = found.iter().filter_map(|id| definitions.place(*id)).collect();
            let places = places.join(", ");
            let count = found.len();
            eprintln!(
                "tallyline: {name}: the first of {count} definitions, as one program has one: {places}"
            );
            found.truncate(1);
        }
        found
    }

    /// Shows one of several requested types, followed by an empty line. The place that tells it from others
    /// of its name goes before it, or into its line.
    fn one_of_some(
        &mut self,
        id: TypeId,
        place: Option<(String, String)>,
        out: &mut dyn Write,
    ) -> Result<()> {
        let is_shown = self.job.positions && self.job.show == Show::Definition;
        match (place.filter(|_| !is_shown), self.job.show) {
            (Some((number, place)), Show::Definition) => {
                let colon = if place.is_empty() { "" } else { ": " };
                let place = place.replace("*/", "* /");
                self.printer.append(format!("/* {number}{colon}{place} */\n").as_bytes());
                self.one(id, self.types.type_name(id));
            }
            (Some((_, place)), _) => {
                self.one(id, self.types.type_name(id));
                let mut line = self.printer.take();
                line.pop_if(|last| *last == b'\n');
                self.printer.append(&line);
                self.printer.append(format!("{}{place}\n", self.job.separator).as_bytes());
            }
            _ => self.one(id, self.types.type_name(id)),
        }
        self.flush(0, out)?;
        if self.job.show != Show::Unit {
            writeln!(out)?;
        }
        Ok(())
    }

    fn one(&mut self, id: TypeId, name: NameId) {
        if self.job.positions && matches!(self.job.show, Show::Definition) {
            self.print_source(id);
        }
        let is_alias = name != self.types.type_name(id);
        match self.job.show {
            Show::Definition if is_alias => self.printer.print_typedef_of(id, name),
            Show::Definition => self.printer.print(id),
            Show::Compilable => self.printer.print_compilable(id, name),
            _ => self.columns(id),
        }
    }

    fn columns(&mut self, id: TypeId) {
        let types = self.types;
        // as pahole has it, whatever a typedef calls it
        let mut line = match types.type_name(id).is_some() {
            true => types.qualified_name(id).into_owned(),
            false => b"(null)".to_vec(),
        };
        if self.job.show == Show::Unit {
            line = self.unit(id).to_vec();
        }
        for (_, column) in self.numbers(id) {
            write!(line, "{}{column}", self.job.separator).unwrap_or_default();
        }
        line.push(b'\n');
        self.printer.append(&line);
    }

    /// Returns the columns behind a name, by what they are called in JSON.
    fn numbers(&self, id: TypeId) -> Vec<(&'static str, u64)> {
        let types = self.types;
        let record = types.as_record(id).map(|(_, record)| record);
        match self.job.show {
            Show::Sizes => vec![
                ("size", record.map_or_else(|| abi::size_of(types, id), |record| record.size)),
                ("holes", record.map_or(0, |record| query::summary(types, record).holes().into())),
            ],
            Show::Members => vec![("members", record.map_or(0, |record| types.members(record).len() as u64))],
            Show::NameLength => vec![("name_length", types.qualified_name(id).len() as u64)],
            Show::Definitions => {
                vec![("definitions", self.sources.get(&id).map_or(1, |source| source.definitions.into()))]
            }
            Show::Unit | Show::Name | Show::Definition | Show::Compilable => Vec::new(),
        }
    }

    /// Returns the unit that a type was found in; BTF's only one is the file.
    fn unit(&self, id: TypeId) -> &[u8] {
        use std::os::unix::ffi::OsStrExt;
        match self.sources.get(&id) {
            Some(source) => self.types.name(source.unit),
            None => self.job.files.first().map_or(b"", |file| file.as_os_str().as_bytes()),
        }
    }

    fn print_source(&mut self, id: TypeId) {
        let source = self.sources.get(&id).copied().unwrap_or_default();
        let unit = self.unit(id).to_vec();
        self.printer.print_source(&unit, &source);
    }

    fn enumeration(&mut self, id: TypeId, out: &mut dyn Write) -> Result<()> {
        self.printer.print_bare(id);
        self.flush(0, out)
    }

    fn containers(
        &mut self,
        wanted: &[TypeId],
        recursive: bool,
        counted: bool,
        out: &mut dyn Write,
    ) -> Result<()> {
        let records = Records::new(self.job, self.types);
        for item in &records.items {
            if records.passes(self.job, self.types, item, self.printer.packed()) {
                self.container(item.id, wanted, (recursive, counted), 0);
                self.flush(FLUSH, out)?;
            }
        }
        self.flush(0, out)
    }

    fn container(&mut self, id: TypeId, wanted: &[TypeId], how: (bool, bool), depth: usize) {
        let types = self.types;
        let Some((_, record)) = types.as_record(id) else { return };
        let count = query::count_members_of(types, record, wanted);
        let is_full = self.printer.text().len() > self.job.style.budget;
        if count == 0 || depth > DEPTH_LIMIT || is_full {
            return;
        }
        let mut line = vec![b' '; depth * 2];
        let own = types.qualified_name(id);
        line.extend_from_slice(if record.name.is_some() { &own } else { b"(null)" });
        if how.1 {
            line.extend_from_slice(format!(": {count}").as_bytes());
        }
        line.push(b'\n');
        self.printer.append(&line);
        if how.0 {
            for member in types.members(record) {
                self.container(member.ty, wanted, how, depth + 1);
            }
        }
    }

    fn pointers_to(&mut self, wanted: &[TypeId], out: &mut dyn Write) -> Result<()> {
        let (types, records) = (self.types, Records::new(self.job, self.types));
        for item in &records.items {
            if !records.passes(self.job, types, item, self.printer.packed()) {
                continue;
            }
            for member in query::pointer_members(types, types.record(item.record), wanted) {
                let is_alias = item.name != types.type_name(item.id);
                let own = types.qualified_name(item.id);
                out.write_all(if is_alias { types.name(item.name) } else { &own })?;
                out.write_all(b": ")?;
                out.write_all(types.name(member.name))?;
                writeln!(out)?;
            }
        }
        Ok(())
    }

    fn flush(&mut self, above: usize, out: &mut dyn Write) -> Result<()> {
        if self.printer.text().len() > above {
            out.write_all(self.printer.text())?;
            self.printer.clear();
        }
        Ok(())
    }
}
