//! The origins of types: the unit, and the file and line of a declaration.

use super::Slice;
use super::units::{Context, Units};
use crate::error::Result;
use crate::model::NameId;
use gimli::{AttributeValue, DebugLineOffset, LineProgramHeader, constants};
use rustc_hash::FxHashMap;

/// The attributes of a unit's first DIE.
#[derive(Default)]
pub(super) struct PositionAttributes<'a> {
    pub(super) name: Option<&'a [u8]>,
    pub(super) language: u64,
    pub(super) folder: Option<&'a [u8]>,
    lines: Option<DebugLineOffset<usize>>,
}

impl<'a> Units<'a> {
    /// Reads what a unit says about itself.
    pub(super) fn about(&self, index: usize, context: &Context) -> Result<PositionAttributes<'a>> {
        let mut about = PositionAttributes { language: context.language, ..PositionAttributes::default() };
        let root = self.root(index, context)?;
        about.name = root.string(self, index, context, constants::DW_AT_name);
        if about.name.is_none()
            && let Some(importer) = self.importer(index)
        {
            let context = self.context(importer.unit)?;
            let root = self.root(importer.unit, &context)?;
            about.name = root.string(self, importer.unit, &context, constants::DW_AT_name);
        }
        about.folder = root.string(self, index, context, constants::DW_AT_comp_dir);
        let lines = root.number(constants::DW_AT_stmt_list).and_then(|offset| usize::try_from(offset).ok());
        about.lines = lines.map(DebugLineOffset);
        Ok(about)
    }

    /// Returns the table of files of a unit, not a split one, whose skeleton has it; `None` where it is missing or damaged:
    /// types are shown without.
    pub(super) fn files(&self, index: usize, context: &Context) -> Result<Option<Files<'a>>> {
        let about = self.about(index, context)?;
        let Some(offset) = about.lines else { return Ok(None) };
        let program = self.line_program(index, offset);
        Ok(program.map(|header| Files { header, folder: about.folder }))
    }
}

/// The files that a unit was made of.
pub(super) struct Files<'a> {
    header: LineProgramHeader<Slice<'a>>,
    folder: Option<&'a [u8]>,
}

impl<'a> Files<'a> {
    /// Returns the path of a file as the table has it: its folder, or the unit's if it has none, and its name.
    pub(super) fn path(
        &self,
        units: &Units<'a>,
        unit: usize,
        context: &Context,
        index: u64,
    ) -> Option<Vec<u8>> {
        let string = |value: &AttributeValue<Slice<'a>>| units.string(unit, context, value);
        let file = self.header.file(index)?;
        let name = string(&file.path_name())?;
        let folder = file.directory(&self.header).as_ref().and_then(string).or(self.folder);
        let mut path = Vec::new();
        if let Some(folder) = folder.filter(|_| !name.starts_with(b"/")) {
            path.extend_from_slice(folder);
            path.push(b'/');
        }
        path.extend_from_slice(name);
        Some(path)
    }
}

/// Tables of files, and the paths that were made of them, each once.
#[derive(Default)]
pub(super) struct Paths<'a> {
    pub(super) files: Option<(usize, Option<Files<'a>>)>,
    pub(super) names: FxHashMap<(usize, u64), NameId>,
}
