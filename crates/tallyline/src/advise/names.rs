//! The names of a trace's instructions and data: functions, lines, types, fields, variables.

use crate::profile::Cache;
use crate::replay::places::{is_runtime, part};
use crate::replay::{TracedFile, TracedInstruction, under};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tallyline_advice::evidence::{MemberInfo, Mobility, Site, Subject, SubjectKind, Update};
use tallyline_advice::{Operand, Resolved, Resolver, VariablePart};
use tallyline_debuginfo::abi::{Alignments, size_of};
use tallyline_debuginfo::lookup::Definitions;
use tallyline_debuginfo::model::{Language, Member, MemberKind, Record, Type, TypeId, Types};
use tallyline_debuginfo::{Request, Wanted};
use tallyline_inference::code::{Access, Body, MemoryUpdate, memory_update_at};
use tallyline_inference::{Outcome, TypeTable, Typed, base_loads, field_path};
use tallyline_report::programs::Program;
use tallyline_report::{demangle, inlined_call_lines, source_lines};
use tallyline_trace::Trace;

/// The largest record that stands for the one number in it, as an atomic integer's type does.
const WRAPPER: u64 = 16;

/// The maximum depth of nested arrays; the rest is left out.
const DEPTH_LIMIT: usize = 8;

/// The code of a process that ran: instructions by an index, and the files that they are in.
pub(super) trait ProcessInstructions {
    /// Returns the address of an instruction, and `true` if it is atomic.
    fn instruction(&self, index: u32) -> Option<(u64, bool)>;

    /// Returns the file that was mapped at an address, and the offset in it.
    fn file_at(&self, address: u64) -> Option<(&str, u64)>;
}

/// The instructions of a process in a trace.
pub(super) struct TracedInstructions<'t> {
    pub(super) trace: &'t Trace<'t>,
    pub(super) process: u32,
}

impl ProcessInstructions for TracedInstructions<'_> {
    fn instruction(&self, index: u32) -> Option<(u64, bool)> {
        let instruction = self.trace.instructions().get(index)?;
        Some((instruction.address(), instruction.atomic()))
    }

    fn file_at(&self, address: u64) -> Option<(&str, u64)> {
        let (mapping, offset) = self.trace.mapping_at(self.process, address)?;
        Some((mapping.path(), offset))
    }
}

/// Names of a process's files.
pub(super) struct ProgramNames<'t> {
    code: &'t dyn ProcessInstructions,
    symfs: Option<PathBuf>,
    cache: Option<Cache>,
    warnings: Vec<String>,
    objects: Vec<Object>,
}

/// A mapped file, with what is known of its code.
struct Object {
    path: PathBuf,
    program: Program,
    table: Option<TypeTable>,
    bias: u64,
    // by type of the table: the subject; none for what is no record of its own
    subjects: FxHashMap<TypeId, Option<usize>>,
}

impl<'t> ProgramNames<'t> {
    pub(super) fn new(code: &'t dyn ProcessInstructions, symfs: Option<&Path>) -> Self {
        Self {
            code,
            symfs: symfs.map(Path::to_path_buf),
            cache: Cache::of_user(false),
            warnings: Vec::new(),
            objects: Vec::new(),
        }
    }

    pub(super) fn into_warnings(self) -> Vec<String> {
        self.warnings
    }

    fn open(&mut self, path: &str, found: &[TracedInstruction], data: &[u64]) -> Option<Object> {
        let path = under(self.symfs.as_deref(), path);
        let traced = TracedFile::open(&path, self.symfs.as_deref(), self.cache.as_ref(), found, data);
        let TracedFile { program, table, bias } =
            traced.map_err(|why| self.warnings.push(format!("{}: {why}", path.display()))).ok()?;
        Some(Object { path, program, table, bias, subjects: FxHashMap::default() })
    }
}

impl Resolver for ProgramNames<'_> {
    fn resolve(&mut self, instructions: &[u32], addresses: &[u64]) -> Resolved {
        let mut by_file: BTreeMap<String, Vec<TracedInstruction>> = BTreeMap::new();
        for index in instructions {
            let Some((address, _)) = self.code.instruction(*index) else { continue };
            if let Some((path, offset)) = self.code.file_at(address) {
                by_file.entry(path.to_owned()).or_default().push((*index, address, offset));
            }
        }
        let mut resolved = Resolved::default();
        for (path, found) in by_file {
            let file = Path::new(&path).file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(mut object) = self.open(&path, &found, addresses) else { continue };
            object.name_sites(self.code, &found, is_runtime(&file), &mut resolved);
            object.name_variables(addresses, &mut resolved);
            object.declare(&mut resolved);
            self.objects.push(object);
        }
        resolved
    }

    fn field(&self, subject: usize, offset: u64) -> String {
        let of_object = |object: &Object| {
            let types = object.table.as_ref()?.types();
            let (ty, _) = object.subjects.iter().find(|(_, known)| **known == Some(subject))?;
            let typed = Typed::at(*ty, u32::try_from(offset).ok()?, 0, Access::Read);
            Some(plain_path(&field_path(types, &typed)))
        };
        self.objects.iter().find_map(of_object).unwrap_or_default()
    }
}

impl Object {
    fn name_sites(
        &mut self,
        code: &dyn ProcessInstructions,
        found: &[TracedInstruction],
        is_runtime: bool,
        into: &mut Resolved,
    ) {
        let image = self.program.image();
        let linked: Vec<(u32, u64)> = found
            .iter()
            .filter_map(|(index, _, offset)| Some((*index, image.address_of(*offset)?)))
            .collect();
        let addresses: Vec<u64> = linked.iter().map(|(_, address)| *address).collect();
        let lines = source_lines(&self.program, &addresses);
        let calls = inlined_call_lines(&self.program, &addresses);
        for (index, address) in linked.iter().copied() {
            let symbol = self.program.symbols().function_at(address);
            let around = calls.get(&address).into_iter().flatten();
            let innermost = lines.get(&address);
            let own = innermost.into_iter().chain(around).find(|(file, _)| !is_library_source(file));
            let (file, line) = own.or(innermost).cloned().unwrap_or_default();
            let outcome = self.table.as_ref().and_then(|table| table.outcome(address));
            // of a file with debug information, what has none is the runtime's
            let is_foreign = self.table.is_some() && outcome.is_none();
            into.sites.insert(
                index,
                Site {
                    instruction: index,
                    function: symbol.map_or_else(
                        || format!("{address:#x}"),
                        |symbol| demangle(symbol.name()).into_owned(),
                    ),
                    file,
                    line,
                    update: memory_update_at(self.program.image(), address).map_or(Update::None, update),
                    atomic: code.instruction(index).is_some_and(|(_, atomic)| atomic),
                    is_runtime: is_runtime || is_foreign,
                },
            );
            if let Some(Outcome::Typed(typed)) = outcome
                && typed.or().is_none()
                && let Some(operand) = self.operand(&typed, into)
            {
                into.operands.insert(index, operand);
                let types = self.table.as_ref().map(TypeTable::types);
                let led_to = types.and_then(|types| pointee(types, typed.ty(), typed.offset().into()));
                into.pointees.extend(led_to.map(|pointee| (index, pointee)));
            }
        }
        self.follow_pointers(&linked, into);
    }

    /// Adds the loads of pointers that the addresses of operands come from. `linked` are instructions with their addresses
    /// as linked.
    fn follow_pointers(&self, linked: &[(u32, u64)], into: &mut Resolved) {
        let image = self.program.image();
        let by_address: FxHashMap<u64, u32> =
            linked.iter().map(|(index, address)| (*address, *index)).collect();
        let mut by_function: BTreeMap<(u64, u64), Vec<(u32, u64)>> = BTreeMap::new();
        for (index, address) in linked.iter().filter(|(index, _)| into.operands.contains_key(index)) {
            if let Some(range) = image.function_range_at(*address) {
                by_function.entry((range.start, range.end)).or_default().push((*index, *address));
            }
        }
        for ((start, end), instructions) in by_function {
            // nothing in it loads a pointer to a record
            if !instructions.iter().any(|(index, _)| into.pointees.contains_key(index)) {
                continue;
            }
            let body = Body::decode(image, std::slice::from_ref(&(start..end)), start);
            for (index, address) in instructions {
                let Some(loads) = base_loads(image, &body, address) else { continue };
                let known: Option<Vec<u32>> =
                    loads.iter().map(|load| by_address.get(load).copied()).collect();
                into.base_loads.extend(known.map(|loads| (index, loads)));
            }
        }
    }

    fn operand(&mut self, typed: &Typed, into: &mut Resolved) -> Option<Operand> {
        let types = self.table.as_ref()?.types();
        let (ty, inside, of_library) = own_type(types, typed.ty(), u64::from(typed.offset()));
        let moved = Typed::at(ty, u32::try_from(inside).ok()?, typed.size(), typed.access());
        let field = match ty == typed.ty() {
            true => field_path(types, typed),
            false => field_path(types, &moved),
        };
        let subject = self.record_subject(ty, into)?;
        into.subjects[subject].is_library_type |= of_library;
        Some(Operand { subject, offset: inside, field: plain_path(&field) })
    }

    /// Returns the subject of a record's type; none for numbers, and for what stands for one number.
    fn record_subject(&mut self, ty: TypeId, into: &mut Resolved) -> Option<usize> {
        let types = self.table.as_ref()?.types();
        let id = types.strip(ty);
        if let Some(known) = self.subjects.get(&id) {
            return *known;
        }
        let subject =
            types.as_record(id).and_then(|(_, record)| describe(types, id, record)).map(|subject| {
                let file = self.path.file_name().unwrap_or_default().to_string_lossy();
                let subject = Subject {
                    program: self.path.to_string_lossy().into_owned(),
                    is_library_type: subject.is_library_type || is_runtime(&file),
                    ..subject
                };
                let same = |known: &Subject| {
                    known.kind == SubjectKind::Record
                        && known.name == subject.name
                        && known.size == subject.size
                };
                into.subjects.iter().position(same).unwrap_or_else(|| {
                    into.subjects.push(subject);
                    into.subjects.len() - 1
                })
            });
        self.subjects.insert(id, subject);
        subject
    }

    fn name_variables(&mut self, addresses: &[u64], into: &mut Resolved) {
        for address in addresses {
            let linked = address.wrapping_sub(self.bias);
            let Some(symbol) = self.program.symbols().data_at(linked) else { continue };
            let (name, start) = (demangle(symbol.name()).into_owned(), symbol.address());
            if self.program.image().is_code(linked) {
                continue;
            }
            let found = self.variable(&name, start, linked, into);
            into.variables
                .insert(*address, VariablePart { base: found.base.wrapping_add(self.bias), ..found });
        }
    }

    /// Describes the variable at an address, both as the linker has them.
    fn variable(&mut self, name: &str, start: u64, address: u64, into: &mut Resolved) -> VariablePart {
        let known = self.table.as_ref().and_then(|table| table.variable_at(address));
        let Some((ty, offset)) = known else {
            let subject = variable_subject(name, 0, into);
            return VariablePart { subject, base: start, field: String::new(), variable: name.to_owned() };
        };
        let (mut element, mut inside, mut size) = (ty, u64::from(offset), 0);
        if let Some(table) = &self.table {
            let types = table.types();
            for _ in 0..DEPTH_LIMIT {
                let Type::Array(array) = types.get(types.strip(element)) else { break };
                element = types.array(array).of;
                let of_element = size_of(types, element);
                if of_element == 0 {
                    break;
                }
                inside %= of_element;
            }
            (element, inside, _) = own_type(types, element, inside);
            size = size_of(types, element);
        }
        let text = |object: &Object| {
            let types = object.table.as_ref().map(TypeTable::types)?;
            let field = field_path(types, &Typed::at(element, u32::try_from(inside).ok()?, 0, Access::Read));
            Some((plain_path(&format!("{name}{}", part(types, ty, offset.into()))), plain_path(&field)))
        };
        let (variable, field) = text(self).unwrap_or_else(|| (name.to_owned(), String::new()));
        let subject =
            self.record_subject(element, into).unwrap_or_else(|| variable_subject(name, size, into));
        VariablePart { subject, base: address - inside, field, variable }
    }

    /// Adds where types are declared, which the types of operands do not say.
    fn declare(&self, into: &mut Resolved) {
        let ours = self.subjects.values().flatten();
        let mut wanted: Vec<usize> = ours.copied().filter(|at| into.subjects[*at].file.is_empty()).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let names: Vec<String> = wanted.iter().map(|at| into.subjects[*at].name.clone()).collect();
        if names.is_empty() {
            return;
        }
        let request = Request {
            wanted: Wanted::named(names.iter().map(String::as_str)),
            inner: true,
            positions: true,
            ..Request::default()
        };
        let file = self.program.debug().map(|_| self.path.as_path());
        let Some(types) = file.and_then(|file| crate::layout::source::read(file, &request, None).ok()) else {
            return;
        };
        let mut definitions = Definitions::new(&types);
        let mut alignments = Alignments::new(&types);
        for at in wanted {
            let subject = &mut into.subjects[at];
            let of_size = |id: &TypeId| {
                types.as_record(types.strip(*id)).is_some_and(|(_, record)| record.size == subject.size)
            };
            let Some(id) = definitions.called(subject.name.as_bytes()).into_iter().find(of_size) else {
                continue;
            };
            let Some((record_id, record)) = types.as_record(types.strip(id)) else { continue };
            subject.file = String::from_utf8_lossy(types.name(record.declared_at.file)).into_owned();
            subject.line = u64::from(record.declared_at.line);
            subject.align = record.align.max(alignments.of_record(&types, record_id));
            let members = members(&types, record, &mut alignments);
            if members.len() == subject.members.len() {
                subject.members = members;
            }
        }
    }
}

/// Returns `true` if a source file is one of a library: Rust's own, a crate of a registry, or one that is installed.
fn is_library_source(file: &str) -> bool {
    let parts = ["/rustlib/src/", "/cargo/registry/", "/.cargo/registry/", "/cargo/git/", "/.cargo/git/"];
    let roots = ["/rustc/", "/rust/deps/", "/usr/include/", "/usr/lib/", "/usr/local/include/"];
    roots.iter().any(|root| file.starts_with(root)) || parts.iter().any(|part| file.contains(part))
}

/// Members of library types that hold the one value in them.
const WRAPPERS: [&str; 9] = [
    ".v.value",
    ".value.value",
    ".v",
    "._M_i",
    "._M_base._M_i",
    ".__a_",
    ".__a_.__a_value",
    ".value",
    ".__data",
];

/// Returns a path without the members of library types that hold the one value in them, as of atomic integers.
fn plain_path(path: &str) -> String {
    let suffixes = WRAPPERS.iter().filter_map(|suffix| path.strip_suffix(suffix));
    suffixes.min_by_key(|rest| rest.len()).filter(|rest| !rest.is_empty()).unwrap_or(path).to_owned()
}

/// Returns the type whose objects an edit can set apart, and the offset in it: the program's own in one of a library's,
/// as in `ArcInner<Server>`, and the element of an array of records that is a member. `true` if it is a library's by the
/// name of the type around it, as in `ArcInner<BTreeMap<u32, u32>>`.
fn own_type(types: &Types, ty: TypeId, offset: u64) -> (TypeId, u64, bool) {
    let (ty, offset, of_library) = in_library_type(types, ty, offset);
    match element_of_member(types, ty, offset) {
        Some((ty, offset)) => (ty, offset, false),
        None => (ty, offset, of_library),
    }
}

/// Returns the innermost record at an offset that is an element of an array in a record, and the offset in it; none
/// where there is no such array.
fn element_of_member(types: &Types, ty: TypeId, offset: u64) -> Option<(TypeId, u64)> {
    let (mut ty, mut offset, mut found) = (ty, offset, None);
    for _ in 0..DEPTH_LIMIT {
        let outer = types.strip(ty);
        let (_, record) = types.as_record(outer)?;
        let holds = |member: &&tallyline_debuginfo::model::Member| {
            member.bitfield.is_none() && member.offset <= offset && offset - member.offset < member.size
        };
        let Some(member) = types.members(record).iter().find(holds) else { break };
        (ty, offset) = (member.ty, offset - member.offset);
        let mut is_array = false;
        while let Type::Array(array) = types.get(types.strip(ty)) {
            let element = types.array(array).of;
            let size = size_of(types, element);
            if size == 0 {
                return found;
            }
            (ty, offset, is_array) = (element, offset % size, true);
        }
        let Some((_, inner)) = types.as_record(types.strip(ty)) else { break };
        if !is_object(types, outer, types.strip(ty), inner) {
            break;
        }
        if is_array && inner.size > offset {
            found = Some((ty, offset));
        }
    }
    found
}

fn in_library_type(types: &Types, ty: TypeId, offset: u64) -> (TypeId, u64, bool) {
    let (mut ty, mut offset, mut of_library) = (ty, offset, false);
    for _ in 0..DEPTH_LIMIT {
        let outer = types.strip(ty);
        let Some((_, record)) = types.as_record(outer) else { break };
        let is_library_type = is_library_type(types, record);
        let holds = |member: &&tallyline_debuginfo::model::Member| {
            let inner = types.strip(member.ty);
            types.as_record(inner).is_some_and(|(_, record)| is_object(types, outer, inner, record))
                && (member.offset..member.offset.saturating_add(member.size.max(1))).contains(&offset)
        };
        let Some(member) = types.members(record).iter().find(holds).filter(|_| is_library_type) else {
            break;
        };
        offset -= member.offset;
        ty = member.ty;
        let name = |ty| String::from_utf8_lossy(&types.qualified_name(ty)).into_owned();
        of_library = is_library_argument(&name(outer), &name(types.strip(ty)));
    }
    (ty, offset, of_library)
}

/// Returns `true` if a record within another one is an object of its own. A small one stands for the number in it, as
/// an atomic integer's does, unless the outer one's name says that it is the program's.
fn is_object(types: &Types, outer: TypeId, inner: TypeId, record: &Record) -> bool {
    let name = |ty| String::from_utf8_lossy(&types.qualified_name(ty)).into_owned();
    record.size > WRAPPER || is_own_argument(&name(outer), &name(inner))
}

/// Returns `true` if the parameters in the name of the type `outer` include a type named like `inner` that is no
/// library's. The path of a type that is reached from another one is not known.
fn is_own_argument(outer: &str, inner: &str) -> bool {
    arguments_called(outer, inner).any(|path| !is_library_path(path))
}

/// Returns `true` if the parameters in the name of the type `outer` include a library's type named like `inner`, and
/// none of the program's.
fn is_library_argument(outer: &str, inner: &str) -> bool {
    arguments_called(outer, inner).any(is_library_path) && !is_own_argument(outer, inner)
}

/// Returns the paths in the parameters of a type, as its name has them, of types that are called as `inner` is.
fn arguments_called<'o>(outer: &'o str, inner: &str) -> impl Iterator<Item = &'o str> {
    let name = inner.split('<').next().unwrap_or_default();
    let name = name.rsplit("::").next().unwrap_or_default().to_owned();
    let parameters = outer.split_once('<').map_or("", |(_, parameters)| parameters);
    let paths = parameters.split(|letter: char| !(letter.is_alphanumeric() || "_:".contains(letter)));
    paths.filter(move |path| !name.is_empty() && path.rsplit("::").next() == Some(name.as_str()))
}

fn is_library_path(path: &str) -> bool {
    LIBRARIES.iter().any(|library| path.strip_prefix(library).is_some_and(|rest| rest.starts_with("::")))
}

/// The libraries of Rust and C++, by their crates and namespaces.
const LIBRARIES: [&str; 3] = ["alloc", "core", "std"];

/// Returns `true` if a record is a type of Rust's or C++'s standard library.
fn is_library_type(types: &Types, record: &Record) -> bool {
    let path = types.name(record.path);
    LIBRARIES.iter().any(|library| {
        let rest = path.strip_prefix(library.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"::"))
    })
}

fn variable_subject(name: &str, size: u64, into: &mut Resolved) -> usize {
    let same = |known: &Subject| known.kind == SubjectKind::Variable && known.name == name;
    into.subjects.iter().position(same).unwrap_or_else(|| {
        into.subjects.push(Subject {
            kind: SubjectKind::Variable,
            name: name.to_owned(),
            size,
            align: size.clamp(1, 8),
            ..Subject::default()
        });
        into.subjects.len() - 1
    })
}

fn update(update: MemoryUpdate) -> Update {
    match update {
        MemoryUpdate::Add => Update::Add,
        MemoryUpdate::AddReturning => Update::AddReturning,
        MemoryUpdate::AddTested => Update::AddTested,
        MemoryUpdate::Exchange => Update::Exchange,
        MemoryUpdate::Other => Update::Other,
    }
}

/// Describes a record; none where it only stands for the number in it, as `AtomicU64` and `std::atomic<long>` do. One of
/// the program's own has a declaration that can be edited, however few members it has.
fn describe(types: &Types, id: TypeId, record: &Record) -> Option<Subject> {
    let mut alignments = Alignments::new(types);
    let members = members(types, record, &mut alignments);
    let name = String::from_utf8_lossy(&types.qualified_name(id)).into_owned();
    let is_library_type = is_library_type(types, record);
    let is_wrapper = record.size <= WRAPPER && members.len() <= 1 && is_library_type;
    if is_wrapper || name.is_empty() {
        return None;
    }
    Some(Subject {
        kind: SubjectKind::Record,
        name,
        size: record.size,
        align: record.align.max(1),
        members,
        language: language(record.language).to_owned(),
        is_library_type,
        ..Subject::default()
    })
}

fn language(language: Language) -> &'static str {
    match language {
        language if language.is_rust() => "Rust",
        language if language.is_cpp() => "C++",
        language if language.is_c() => "C",
        _ => "",
    }
}

/// Members that the type of a pointer is looked for in: `std::unique_ptr` has its pointer under six records.
const POINTER_DEPTH: usize = 16;

/// Returns the name and the size of the record that the pointer at an offset of a type points to; of a smart pointer, the
/// one that the pointer in it does. `None` for other fields, and where members overlap.
fn pointee(types: &Types, ty: TypeId, mut offset: u64) -> Option<(String, u64)> {
    let mut id = types.strip(ty);
    for _ in 0..POINTER_DEPTH {
        match types.get(id) {
            Type::Pointer { to, .. } if offset == 0 => {
                let to = types.strip(to);
                let (_, record) = types.as_record(to)?;
                return Some((String::from_utf8_lossy(&types.qualified_name(to)).into_owned(), record.size));
            }
            Type::Record(record) => {
                let record = types.record(record);
                // an empty base lies over what follows
                let holds = |member: &&Member| {
                    let distance = offset.checked_sub(member.offset);
                    let is_data = member.kind != MemberKind::Static && !member.overlaid && member.size > 1;
                    is_data && distance.is_some_and(|inside| inside < member.size)
                };
                let mut all = types.members(record).iter().filter(holds);
                let member = all.next()?;
                if record.is_union() || all.next().is_some() {
                    return None;
                }
                offset -= member.offset;
                id = types.strip(member.ty);
            }
            _ => return None,
        }
    }
    None
}

fn members(types: &Types, record: &Record, alignments: &mut Alignments) -> Vec<MemberInfo> {
    // a virtual base may have its place only at run time
    let mut placed: Vec<&Member> = types.members(record).iter().filter(|member| member.is_placed()).collect();
    placed.sort_by_key(|member| (member.offset, member.overlaid));
    let last = placed.len().saturating_sub(1);
    let info = |(at, member): (usize, &&Member)| {
        let (offset, size) = match member.bitfield {
            Some(field) => {
                (member.bit_offset / 8, (member.bit_offset % 8 + u64::from(field.size)).div_ceil(8))
            }
            None if member.takes_bytes() => (member.offset, member.size),
            None => (member.offset, 0),
        };
        MemberInfo {
            name: member_name(types, member),
            offset,
            size,
            align: member.align.max(alignments.of(types, member.ty)),
            mobility: mobility(types, member, size, at == last),
            is_implicit: is_implicit(member),
        }
    };
    let mut all: Vec<MemberInfo> = placed.iter().enumerate().map(info).collect();
    all.sort_by_key(|member| member.offset);
    all
}

/// Returns the name of a member; of a base class as `tallyline layout` has it.
fn member_name(types: &Types, member: &Member) -> String {
    match member.is_base() {
        true => {
            format!("{} <ancestor>", String::from_utf8_lossy(&types.qualified_name(types.strip(member.ty))))
        }
        false => String::from_utf8_lossy(types.name(member.name)).into_owned(),
    }
}

/// Returns `true` if a part of an object has no declaration as a member.
fn is_implicit(member: &Member) -> bool {
    member.kind != MemberKind::Data || member.artificial
}

/// Returns the places that a new order of members may give one of `size` bytes of its own.
fn mobility(types: &Types, member: &Member, size: u64, is_last: bool) -> Mobility {
    let is_array = || matches!(types.get(types.strip(member.ty)), Type::Array(_));
    match member.kind {
        MemberKind::VirtualBase => Mobility::End,
        _ if is_implicit(member) => Mobility::Front,
        _ if member.bitfield.is_some() => Mobility::Attached("a bit-field"),
        // a flexible array
        _ if size == 0 && is_last && is_array() => Mobility::End,
        _ if size == 0 => Mobility::Attached("without bytes of its own"),
        _ => Mobility::Free,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_type_is_the_programs_where_a_librarys_has_it_as_a_parameter() {
        for outer in [
            "alloc::sync::ArcInner<server::Totals>",
            "std::array<Totals, 4>",
            "std::pair<a::Totals<int>, int>",
        ] {
            assert!(is_own_argument(outer, "Totals"), "{outer}");
        }
        for (outer, inner) in [
            ("alloc::sync::ArcInner<core::sync::atomic::AtomicU64>", "AtomicU64"),
            ("std::atomic<unsigned long>", "__atomic_base<unsigned long>"),
            ("alloc::sync::ArcInner<std::sync::Mutex<server::Totals>>", "Mutex<server::Totals>"),
            ("Totals", "Totals"),
            ("std::array<Totals2, 4>", "Totals"),
            ("std::array<Totals, 4>", ""),
        ] {
            assert!(!is_own_argument(outer, inner), "{outer} {inner}");
        }
        let map = "alloc::sync::ArcInner<alloc::collections::btree::map::BTreeMap<u32, a::Totals>>";
        assert!(is_library_argument(map, "BTreeMap<u32, a::Totals>") && !is_library_argument(map, "Totals"));
    }
}
