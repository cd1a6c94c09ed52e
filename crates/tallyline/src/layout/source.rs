//! The file that types are read from, and where its debug information really is.

use super::open::open;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tallyline_debuginfo::locate::CompanionFinder;
use tallyline_debuginfo::locate::debug_file;
use tallyline_debuginfo::model::Types;
use tallyline_debuginfo::{Companions, Error, Format, Request, formats, read_file, read_with_base};

/// Reads the types of a file, or of its separate debug file if it is stripped. `base` is the BTF that split BTF
/// extends (by default, for a kernel module, the running kernel's).
pub(crate) fn read(file: &Path, request: &Request, base: Option<&Path>) -> Result<Types> {
    let types = match base.map(Path::to_path_buf).or_else(|| base_of_module(file)) {
        Some(base) => read_with_base(&bytes_of(file)?, &bytes_of(&base)?, request),
        None => {
            let open = open(file)?;
            beside(file, &open, &mut |file, companions| read_file(file, request, companions))
        }
    };
    types.with_context(|| file.display().to_string())
}

/// Reads the types of a file for which [`has_parts`] is `true` part by part and passes each to `each`, until that breaks.
/// A part is a [`Types`] of its own, with the types of some of the file's compilation units; equal types are in one part
/// alone.
pub(crate) fn read_parts(
    file: &Path,
    request: &Request,
    each: &mut dyn FnMut(Types) -> ControlFlow<()>,
) -> Result<()> {
    let open = open(file)?;
    let parts = beside(file, &open, &mut |file, companions| {
        tallyline_debuginfo::read_parts(file, request, companions, each)
    });
    parts.with_context(|| file.display().to_string())
}

/// Returns `true` if a file's types can be read part by part: those of DWARF can, those of BTF cannot. A stripped
/// file counts as one that can.
pub(crate) fn has_parts(file: &Path, wanted: &[Format], base: Option<&Path>) -> bool {
    let Some(formats) = open(file).ok().and_then(|open| formats(&open).ok()) else { return false };
    let dwarf = match wanted {
        [] => formats.contains(&Format::Dwarf) || formats.is_empty(),
        [Format::Dwarf] => true,
        _ => false,
    };
    dwarf && base.is_none() && base_of_module(file).is_none()
}

fn bytes_of(file: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(file)?.read_to_end(&mut bytes).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(bytes)
}

/// Reads a file and what is beside it, or the debug file of one that is stripped, or stripped of all
/// but its BTF.
fn beside<T>(
    file: &Path,
    open: &File,
    read: &mut dyn FnMut(&File, &dyn Companions) -> Result<T, Error>,
) -> Result<T, Error> {
    match read(open, &CompanionFinder::new(file)) {
        Err(error @ (Error::NoTypes | Error::NoSuchFormat("DWARF"))) => {
            debug_file::read(file, open, read).unwrap_or(Err(error))
        }
        result => result,
    }
}

/// Reads the types of a file in the first of `formats` (DWARF, BTF) that it has; any format if the list is empty.
pub(crate) fn read_first(
    file: &Path,
    formats: &[Format],
    request: &Request,
    base: Option<&Path>,
) -> Result<Types> {
    let Some((last, others)) = formats.split_last() else { return read(file, request, base) };
    let read = |format| read(file, &Request { format: Some(format), ..request.clone() }, base);
    others.iter().find_map(|format| read(*format).ok()).map_or_else(|| read(*last), Ok)
}

/// Prints, on standard error, warnings about types or debug information that the reader of a file had to leave out.
pub(crate) fn warn(file: &Path, types: &Types) {
    for warning in types.warnings() {
        eprintln!("tallyline: {}: {warning}", file.display());
    }
}

/// Returns the BTF of a module of the running kernel goes on from the kernel's.
fn base_of_module(file: &Path) -> Option<PathBuf> {
    let folder = Path::new("/sys/kernel/btf");
    let is_module = file.parent() == Some(folder) && file.file_name() != Some("vmlinux".as_ref());
    is_module.then(|| folder.join("vmlinux"))
}
