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

/// Reads the types of a file: of its debug file if it is stripped, and going on from `base`, or from
/// the kernel's if it is the BTF of a module.
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

/// Reads the types of a file that [`has_parts`], part by part: of its debug file if it is stripped.
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

/// Returns whether a file's types come in parts: those of DWARF do, and of a stripped file nobody knows.
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

/// Reads the types in the first of these formats (DWARF, BTF) that a file has, or whichever there is.
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

/// Prints to standard error what the reader of types left out.
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
