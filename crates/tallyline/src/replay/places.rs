//! The function of each instruction, and the type and field that it accesses.

use super::traced_file::{TracedFile, TracedInstruction, under};
use crate::profile::Cache;
use std::collections::BTreeMap;
use std::path::Path;
use tallyline_debuginfo::abi::size_of;
use tallyline_debuginfo::model::{Type, TypeId, Types};
use tallyline_inference::code::Access;
use tallyline_inference::{Outcome, Typed, field_path, place_text};
use tallyline_report::type_names;
use tallyline_trace::Trace;

/// The known facts about an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InstructionInfo {
    /// The instruction's address in the traced process.
    pub(super) address: u64,
    /// The name of the instruction's file, without folder; empty if none is mapped there.
    pub(super) file: String,
    /// The instruction's position: `function+0x1f`, or the address in the file.
    pub(super) code: String,
    /// The accessed type, or in brackets the reason why there is none.
    pub(super) ty: String,
    /// The offset in the type and the field's name; empty where there is none.
    pub(super) field: String,
    /// The accessed variable, with the element or the field, if it is always the same one; else empty.
    pub(super) variable: String,
    /// `true` if it is code of the C library or of another part of every program, or was compiled without debug
    /// information while the rest of its file has some.
    pub(super) is_runtime: bool,
}

/// The known facts about the instructions and the data of a trace.
pub(super) struct TraceSymbols {
    by_instruction: BTreeMap<u32, InstructionInfo>,
    objects: Vec<TracedFile>,
}

impl TraceSymbols {
    /// Describes an instruction, with the variable between two addresses that it accessed.
    pub(super) fn get(&self, instruction: u32, first: u64, last: u64) -> Option<InstructionInfo> {
        let place = self.by_instruction.get(&instruction)?;
        Some(InstructionInfo { variable: self.variable(first, last), ..place.clone() })
    }

    /// Returns the variable that two addresses of data are in; empty if there is none, or they are in two.
    fn variable(&self, first: u64, last: u64) -> String {
        let find = |address: u64| self.objects.iter().find_map(|object| object.variable(address));
        match (find(first), find(last)) {
            (Some((one, text)), Some((other, last))) if one == other => {
                if text == last {
                    text
                } else {
                    one.to_owned()
                }
            }
            _ => String::new(),
        }
    }
}

/// The starts of the names of files that every program has.
const RUNTIME: [&str; 9] =
    ["ld-linux", "ld-musl", "ld.so", "libc.", "libc-", "libgcc_s", "libpthread", "libstdc++", "[vdso]"];

pub(crate) fn is_runtime(file: &str) -> bool {
    RUNTIME.iter().any(|start| file.starts_with(start))
}

/// The lookup of programs, with a cache of its results.
pub(super) struct Programs<'p> {
    /// The folder that they are under.
    pub(super) symfs: Option<&'p Path>,
    /// Types that were found before.
    pub(super) cache: Option<Cache>,
}

/// Returns the places of some instructions, and the variables at some addresses; warnings about files go to
/// `warnings`.
pub(super) fn places(
    trace: &Trace<'_>,
    process: u32,
    programs: &Programs<'_>,
    instructions: &[u32],
    data: &[u64],
    warnings: &mut Vec<String>,
) -> TraceSymbols {
    let mut by_file: BTreeMap<String, Vec<TracedInstruction>> = BTreeMap::new();
    let mut places = BTreeMap::new();
    for index in instructions {
        let Some(instruction) = trace.instructions().get(*index) else { continue };
        let address = instruction.address();
        match trace.mapping_at(process, address) {
            Some((mapping, offset)) => {
                by_file.entry(mapping.path().to_owned()).or_default().push((*index, address, offset));
            }
            None => {
                let (code, ty) = (format!("{address:#x}"), "(no mapping)".into());
                places.insert(*index, InstructionInfo { address, code, ty, ..InstructionInfo::default() });
            }
        }
    }
    let opened: Vec<_> = by_file
        .into_iter()
        .map(|(path, found)| (programs.open(&path, &found, data, warnings), path, found))
        .collect();
    let (typed, types): (Vec<u32>, Vec<_>) = opened
        .iter()
        .filter_map(|(object, _, found)| Some((object.as_ref()?, found)))
        .flat_map(|(object, found)| found.iter().map(move |(index, _, offset)| (*index, object.ty(*offset))))
        .filter_map(|(index, ty)| Some((index, ty?)))
        .unzip();
    // of all files: two of them may have types of one name
    let mut names: BTreeMap<u32, String> = typed.into_iter().zip(type_names(&types)).collect();
    let mut objects = Vec::new();
    for (object, path, found) in opened {
        let file = Path::new(&path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        for (index, address, offset) in found {
            let known = object.as_ref().and_then(|object| object.place(offset, names.remove(&index)));
            let place = known.unwrap_or_else(|| InstructionInfo {
                code: format!("{offset:#x}"),
                ty: "(file not read)".into(),
                ..InstructionInfo::default()
            });
            let is_runtime = place.is_runtime || is_runtime(&file);
            places.insert(index, InstructionInfo { address, file: file.clone(), is_runtime, ..place });
        }
        objects.extend(object);
    }
    TraceSymbols { by_instruction: places, objects }
}

impl Programs<'_> {
    fn open(
        &self,
        path: &str,
        found: &[TracedInstruction],
        data: &[u64],
        warnings: &mut Vec<String>,
    ) -> Option<TracedFile> {
        let path = &under(self.symfs, path);
        TracedFile::open(path, self.symfs, self.cache.as_ref(), found, data)
            .map_err(|why| warnings.push(format!("{}: {why}", path.display())))
            .ok()
    }
}

impl TracedFile {
    /// Returns the type that the instruction at an offset of the file accesses.
    fn ty(&self, offset: u64) -> Option<(&Types, TypeId)> {
        let table = self.table.as_ref()?;
        match table.outcome(self.program.image().address_of(offset)?)? {
            Outcome::Typed(typed) => Some((table.types(), typed.ty())),
            Outcome::Pseudo(_) | Outcome::Untyped(_) => None,
        }
    }

    /// Describes the instruction at an offset of the file, which accesses a type of this name.
    fn place(&self, offset: u64, name: Option<String>) -> Option<InstructionInfo> {
        let address = self.program.image().address_of(offset)?;
        let code = match self.program.symbols().function_at(address) {
            Some(symbol) => format!("{}+{:#x}", symbol.name(), address.wrapping_sub(symbol.address())),
            None => format!("{address:#x}"),
        };
        let (ty, field) = match self.table.as_ref().and_then(|table| Some((table, table.outcome(address)?))) {
            None => (NO_DEBUG_INFORMATION.into(), String::new()),
            Some((_, Outcome::Pseudo(pseudo))) => (pseudo.name().into(), String::new()),
            Some((_, Outcome::Untyped(reason))) => (format!("({})", reason.kind()), String::new()),
            Some((table, Outcome::Typed(typed))) => {
                (name.unwrap_or_default(), place_text(table.types(), &typed))
            }
        };
        let is_runtime = self.table.is_some() && ty == NO_DEBUG_INFORMATION;
        Some(InstructionInfo { code, ty, field, is_runtime, ..InstructionInfo::default() })
    }

    /// Returns the variable that has an address in memory: its name, and that with the element or field
    /// there.
    fn variable(&self, address: u64) -> Option<(&str, String)> {
        let address = address.wrapping_sub(self.bias);
        let symbol = self.program.symbols().data_at(address)?;
        let inside = address.wrapping_sub(symbol.address());
        let known = self.table.as_ref().and_then(|table| Some((table, table.variable_at(address)?)));
        let text = match known {
            Some((table, (ty, offset))) => {
                format!("{}{}", symbol.name(), part(table.types(), ty, offset.into()))
            }
            None if inside == 0 => symbol.name().to_string(),
            None => format!("{}+{inside:#x}", symbol.name()),
        };
        Some((symbol.name(), text))
    }
}

/// The label of accesses without debug information, in place of a type.
const NO_DEBUG_INFORMATION: &str = "(no debug information)";

/// The maximum depth of nested arrays; the rest is left out.
const DEPTH_LIMIT: usize = 8;

/// Formats the part of a variable at an offset, such as `[3].count`: array indices, then the field.
pub(crate) fn part(types: &Types, ty: TypeId, offset: u64) -> String {
    let (mut text, mut ty, mut offset) = (String::new(), ty, offset);
    for _ in 0..DEPTH_LIMIT {
        let Type::Array(array) = types.get(types.strip(ty)) else { break };
        ty = types.array(array).of;
        let size = size_of(types, ty);
        if size == 0 {
            break;
        }
        text += &format!("[{}]", offset / size);
        offset %= size;
    }
    let field = u32::try_from(offset)
        .map_or_else(|_| String::new(), |offset| field_path(types, &Typed::at(ty, offset, 0, Access::Read)));
    if field.is_empty() { text } else { format!("{text}.{field}") }
}
