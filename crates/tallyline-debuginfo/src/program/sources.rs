//! The source files that units were compiled from.

use crate::companion::Companions;
use crate::dwarf::DebugInfo;
use crate::with_debug_info;
use std::fs::File;

/// Returns the (compilation folder, source file) pairs of a file's compilation units (`DW_AT_comp_dir`, `DW_AT_name`),
/// each pair once. Units with neither are left out; empty if the file is damaged.
pub fn unit_sources(file: &File, companions: &dyn Companions) -> Vec<(String, String)> {
    let found = with_debug_info(file, companions, |info| {
        let mut all: Vec<(String, String)> =
            info.units().iter().filter_map(|unit| of_unit(info, *unit).ok().flatten()).collect();
        all.sort_unstable();
        all.dedup();
        Ok(all)
    });
    found.map_or_else(|_| Vec::new(), |(all, _)| all)
}

fn of_unit(info: &DebugInfo<'_, '_>, index: usize) -> gimli::Result<Option<(String, String)>> {
    let (header, dwarf) = info.head(info.skeleton(index).unwrap_or(index));
    let unit = dwarf.unit(*header)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let folder = unit.comp_dir.as_ref().map(|folder| text(folder.slice()));
    let name = unit.name.as_ref().map(|name| text(name.slice()));
    Ok(folder.or(name.as_ref().map(|_| String::new())).zip(name))
}
