//! The operands of every command about layouts: types, then the file.

use super::job::KERNEL;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use tallyline_layout::is_readable;

/// The file, and the types that are asked for. The last operand is the file if it contains a slash
/// or opens as ELF or BTF; without one it is the running kernel. `file` forces it.
pub(crate) fn split(operands: &[String], file: Option<&Path>) -> (PathBuf, Vec<String>) {
    if let Some(file) = file {
        return (file.to_path_buf(), operands.to_vec());
    }
    match operands.split_last() {
        Some((last, rest)) if last.contains('/') || opens_as_types(last) => (last.into(), rest.to_vec()),
        _ => (PathBuf::from(KERNEL), operands.to_vec()),
    }
}

/// Whether an operand without a slash is a file with types, and not the name of a type.
pub(crate) fn opens_as_types(operand: &str) -> bool {
    let mut start = Vec::new();
    let read = File::open(operand).and_then(|file| file.take(4).read_to_end(&mut start));
    read.is_ok() && is_readable(&start)
}
