//! Traced files without debug information, of which no data can be named.

use crate::profile::open;
use crate::replay::places::is_runtime;
use crate::replay::under;
use std::path::Path;
use tallyline_perf_data::spaces::{Dso, DsoKind};
use tallyline_trace::Trace;

/// The most files that are named.
const SHOWN: usize = 3;

/// Says that no traced code of a process has debug information, as a note; `None` if some has it. Files that every program
/// has, such as the C library, do not count.
pub(super) fn note(trace: &Trace<'_>, process: u32, symfs: Option<&Path>) -> Option<String> {
    let mut paths: Vec<&str> = Vec::new();
    for instruction in trace.instructions().iter() {
        if let Some((mapping, _)) = trace.mapping_at(process, instruction.address())
            && !paths.contains(&mapping.path())
        {
            paths.push(mapping.path());
        }
    }
    let name = |path: &str| Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
    paths.retain(|path| !is_runtime(&name(path)));
    let has_debug = |path: &&str| {
        let path = under(symfs, path);
        let dso = Dso::new(path.display().to_string(), DsoKind::File);
        open(&path, &dso, symfs).is_ok_and(|program| program.debug().is_some())
    };
    if paths.is_empty() || paths.iter().any(has_debug) {
        return None;
    }
    let names: Vec<String> = paths.iter().take(SHOWN).map(|path| name(path)).collect();
    let more = if paths.len() > SHOWN { ", …" } else { "" };
    let has = if paths.len() == 1 { "has" } else { "have" };
    Some(format!(
        "{}{more} {has} no debug information, so that no types, fields or variables are known to advise on: build with -g and \
         do not strip, or install the debug files",
        names.join(", ")
    ))
}
