//! The operands of every command about layouts: types, then the file.

use super::job::KERNEL;
use super::open::looks_like_a_file;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use tallyline_debuginfo::is_readable;

/// Splits a layout command's arguments into the file to read and the names of types. The last argument is the file
/// if it looks like one or can be opened as one; else types are read from the running kernel. `file` forces the
/// file.
pub(crate) fn split(operands: &[String], file: Option<&Path>) -> (PathBuf, Vec<String>) {
    if let Some(file) = file {
        return (file.to_path_buf(), operands.to_vec());
    }
    match operands.split_last() {
        Some((last, rest))
            if looks_like_a_file(last)
                || opens_as_types(last)
                || !rest.is_empty() && Path::new(last).is_file() =>
        {
            (last.into(), rest.to_vec())
        }
        _ => (PathBuf::from(KERNEL), operands.to_vec()),
    }
}

/// Returns `true` if an argument without a slash names a file with type information in the current folder.
pub(crate) fn opens_as_types(operand: &str) -> bool {
    // a pipe would be empty behind this
    if !Path::new(operand).is_file() {
        return false;
    }
    let mut start = Vec::new();
    let read = File::open(operand).and_then(|file| file.take(4).read_to_end(&mut start));
    read.is_ok() && is_readable(&start)
}
