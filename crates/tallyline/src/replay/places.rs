//! Where instructions are and what they touch: function, type and field.

use crate::profile::{Cache, open};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tallyline_layout::print::type_text;
use tallyline_profile::infer::cache::infer_cached;
use tallyline_profile::infer::{self, Asked, Outcome, TypeTable, infer_asked, place_text};
use tallyline_profile::perfdata::spaces::{Dso, DsoKind};
use tallyline_profile::report::programs::Program;
use tallyline_profile::trace::{Source, Trace};

/// What is known of an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// Its address as the program had it.
    pub(super) address: u64,
    /// The file, without its folder; empty where none is mapped.
    pub(super) file: String,
    /// `function+0x1f`, or the address in the file.
    pub(super) code: String,
    /// What it touches: a type, or in brackets why there is none.
    pub(super) ty: String,
    /// The offset in the type and the field's name; empty where there is none.
    pub(super) field: String,
}

/// A file that is mapped, and what is known of its code.
struct Object {
    program: Program,
    table: Option<TypeTable>,
}

/// Where programs are looked for, and what was kept of them.
pub(super) struct Programs<'p> {
    /// The folder that they are under.
    pub(super) symfs: Option<&'p Path>,
    /// Types that were found before.
    pub(super) cache: Option<Cache>,
}

/// The places of some instructions, by their index; warnings about files go to `warnings`.
pub(super) fn places<S: Source + ?Sized>(
    trace: &Trace<'_, S>,
    process: u32,
    programs: &Programs<'_>,
    instructions: &[u32],
    warnings: &mut Vec<String>,
) -> BTreeMap<u32, Place> {
    let mut by_file: BTreeMap<String, Vec<(u32, u64, u64)>> = BTreeMap::new();
    let mut places = BTreeMap::new();
    for index in instructions {
        let Some(instruction) = trace.instructions().get(*index) else { continue };
        let address = instruction.address;
        match trace.mapping_at(process, address) {
            Some((mapping, offset)) => {
                by_file.entry(mapping.path.clone()).or_default().push((*index, address, offset));
            }
            None => {
                let (code, ty) = (format!("{address:#x}"), "(no mapping)".into());
                places.insert(*index, Place { address, code, ty, ..Place::default() });
            }
        }
    }
    for (path, found) in by_file {
        let file = Path::new(&path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let object = programs.open(&path, &found, warnings);
        for (index, address, offset) in found {
            let place = object.as_ref().and_then(|object| object.place(offset)).unwrap_or_else(|| Place {
                code: format!("{offset:#x}"),
                ty: "(file not read)".into(),
                ..Place::default()
            });
            places.insert(index, Place { address, file: file.clone(), ..place });
        }
    }
    places
}

/// A program's path under another root, with its folders or, in an archive, without.
fn under(symfs: Option<&Path>, path: &str) -> PathBuf {
    let path = Path::new(path);
    let Some(root) = symfs else { return path.to_path_buf() };
    let with = root.join(path.strip_prefix("/").unwrap_or(path));
    match path.file_name().map(|name| root.join(name)) {
        Some(without) if !with.exists() && without.exists() => without,
        _ => with,
    }
}

impl Programs<'_> {
    fn open(&self, path: &str, found: &[(u32, u64, u64)], warnings: &mut Vec<String>) -> Option<Object> {
        let path = &under(self.symfs, path);
        let dso = Dso {
            path: path.display().to_string(),
            kind: DsoKind::File,
            build_id: None,
            reference: None,
            processes: Vec::new(),
        };
        let program = open(path, &dso, self.symfs)
            .map_err(|why| warnings.push(format!("{}: {why}", path.display())))
            .ok()?;
        let image = &program.image;
        let code = found.iter().filter_map(|(_, _, offset)| image.address_of(*offset)).collect();
        let asked = &mut std::iter::once(Asked { code, data: Vec::new() });
        let kept = self.cache.as_ref().and_then(|cache| cache.of_build(image.build_id()));
        // without debug information there are no types: each place says so
        let table = program.debug.as_ref().and_then(|debug| {
            let (file, companions) = (infer::Debug::File(&debug.file), &*debug.companions);
            let table = match kept {
                Some(kept) => infer_cached(image, file, companions, asked, &kept),
                None => infer_asked(image, file, companions, asked),
            };
            table.ok()
        });
        Some(Object { program, table })
    }
}

impl Object {
    fn place(&self, offset: u64) -> Option<Place> {
        let address = self.program.image.address_of(offset)?;
        let code = match self.program.symbols().function_at(address) {
            Some(symbol) => format!("{}+{:#x}", symbol.name, address.wrapping_sub(symbol.address)),
            None => format!("{address:#x}"),
        };
        let (ty, field) = match self.table.as_ref().and_then(|table| Some((table, table.outcome(address)?))) {
            None => ("(no debug information)".into(), String::new()),
            Some((_, Outcome::Pseudo(pseudo))) => (pseudo.name().into(), String::new()),
            Some((_, Outcome::Untyped(reason))) => (format!("({})", reason.kind()), String::new()),
            Some((table, Outcome::Typed(typed))) => {
                (type_text(table.types(), typed.ty), place_text(table.types(), &typed))
            }
        };
        Some(Place { code, ty, field, ..Place::default() })
    }
}
