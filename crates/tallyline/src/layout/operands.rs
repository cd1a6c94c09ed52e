//! The operands of every command about layouts: types, then the file.

use super::job::KERNEL;
use super::open::looks_like_a_file;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use tallyline_debuginfo::is_readable;

/// Splits a layout command's arguments into the file to read and the names of types. The last argument is the file
/// if it looks like one or can be opened as one; else types are read from the running kernel. `file` forces the
/// file.
pub(crate) fn split(operands: &[impl AsRef<OsStr>], file: Option<&Path>) -> (PathBuf, Vec<String>) {
    // a file's name may be any bytes; no type has a name that is no UTF-8
    let names = |operands: &[_]| operands.iter().map(name_of).collect();
    if let Some(file) = file {
        return (file.to_path_buf(), names(operands));
    }
    match operands.split_last() {
        Some((last, rest))
            if looks_like_a_file(last)
                || opens_as_types(last.as_ref())
                || !rest.is_empty() && Path::new(last).is_file() =>
        {
            (last.into(), names(rest))
        }
        _ => (PathBuf::from(KERNEL), names(operands)),
    }
}

fn name_of(operand: &impl AsRef<OsStr>) -> String {
    operand.as_ref().to_string_lossy().into_owned()
}

/// Returns `true` if an argument without a slash names a file with type information in the current folder.
pub(crate) fn opens_as_types(operand: impl AsRef<Path>) -> bool {
    // a pipe would be empty behind this
    if !operand.as_ref().is_file() {
        return false;
    }
    let mut start = Vec::new();
    let read = File::open(operand).and_then(|file| file.take(4).read_to_end(&mut start));
    read.is_ok() && is_readable(&start)
}
