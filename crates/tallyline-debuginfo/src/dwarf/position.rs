//! The origins of types: the unit, and the file and line of a declaration.

use super::Slice;
use super::entry::{Entries, Entry};
use super::load::{Cursor, Loader};
use super::scan::Found;
use super::units::{GlobalDieOffset, Units};
use crate::error::Result;
use crate::model::{NameId, Position, Source};
use gimli::{AttributeValue, DebugLineOffset, LineProgramHeader, constants};
use rustc_hash::FxHashMap;

/// The attributes of a unit's first DIE.
#[derive(Default)]
pub(super) struct About<'a> {
    pub(super) name: Option<&'a [u8]>,
    pub(super) language: u64,
    folder: Option<&'a [u8]>,
    lines: Option<DebugLineOffset<usize>>,
}

impl<'a> Units<'a> {
    /// Reads what a unit says about itself.
    pub(super) fn about(&self, index: usize) -> Result<About<'a>> {
        let context = self.context(index)?;
        let mut about = About { language: context.language, ..About::default() };
        let root = self.root(index, &context)?;
        about.name = root.string(self, index, &context, constants::DW_AT_name);
        about.folder = root.string(self, index, &context, constants::DW_AT_comp_dir);
        let lines = root.number(constants::DW_AT_stmt_list).and_then(|offset| usize::try_from(offset).ok());
        about.lines = lines.map(DebugLineOffset);
        Ok(about)
    }

    /// The table of files of a unit; none where it is missing or damaged: types are shown without.
    fn files(&self, index: usize) -> Result<Option<Files<'a>>> {
        // what was split off numbers files as the table does that stayed behind
        let index = self.skeleton_of(index);
        let about = self.about(index)?;
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
    /// The path of a file as the table has it: its folder, or the unit's if it has none, and its name.
    fn path(&self, units: &Units<'a>, unit: usize, index: u64) -> Result<Option<Vec<u8>>> {
        let context = units.context(unit)?;
        let string = |value: &AttributeValue<Slice<'a>>| units.string(unit, &context, value);
        let Some(file) = self.header.file(index) else { return Ok(None) };
        let Some(name) = string(&file.path_name()) else { return Ok(None) };
        let folder = file.directory(&self.header).as_ref().and_then(string).or(self.folder);
        let mut path = Vec::new();
        if let Some(folder) = folder.filter(|_| !name.starts_with(b"/")) {
            path.extend_from_slice(folder);
            path.push(b'/');
        }
        path.extend_from_slice(name);
        Ok(Some(path))
    }
}

/// Tables of files, and the paths that were made of them, each once.
#[derive(Default)]
pub(super) struct Paths<'a> {
    files: Option<(usize, Option<Files<'a>>)>,
    names: FxHashMap<(usize, u64), NameId>,
}

impl<'a> Loader<'_, 'a> {
    /// Returns the file and line that declare the DIE that was read; none if positions are not wanted.
    pub(super) fn position(&mut self, cursor: &Cursor<'_, '_, 'a>) -> Result<Position> {
        self.position_of(cursor.unit, &cursor.entry)
    }

    fn position_of(&mut self, unit: usize, entry: &Entry<'a>) -> Result<Position> {
        if self.paths.is_none() {
            return Ok(Position::default());
        }
        let line = entry.number(constants::DW_AT_decl_line).unwrap_or(0);
        let line = u32::try_from(line).unwrap_or(0);
        let file = entry.number(constants::DW_AT_decl_file);
        let file = file.map_or(Ok(NameId::NONE), |file| self.path(unit, file))?;
        Ok(Position { file, line })
    }

    fn path(&mut self, unit: usize, file: u64) -> Result<NameId> {
        let Some(paths) = &mut self.paths else { return Ok(NameId::NONE) };
        if let Some(name) = paths.names.get(&(unit, file)) {
            return Ok(*name);
        }
        if paths.files.as_ref().is_none_or(|(of, _)| *of != unit) {
            paths.files = Some((unit, self.units.files(unit)?));
        }
        let path = match &paths.files {
            Some((_, Some(files))) => files.path(self.units, self.units.skeleton_of(unit), file)?,
            _ => None,
        };
        let name = path.map_or(Ok(NameId::NONE), |path| self.types.intern(&path))?;
        paths.names.insert((unit, file), name);
        Ok(name)
    }

    /// Notes the unit and the entry that a wanted type was found in.
    pub(super) fn note_source(&mut self, found: &Found) -> Result<()> {
        if self.paths.is_none() {
            return Ok(());
        }
        let source = self.source_of(found.unit, found.place)?;
        self.types.sources.push(Source { definitions: found.definitions, ..source });
        Ok(())
    }

    /// Returns where the type of an entry is defined, if positions are wanted.
    pub(super) fn source_of(&mut self, unit: usize, place: GlobalDieOffset) -> Result<Source> {
        let name = self.units.about(unit)?.name;
        let context = self.units.context(unit)?;
        let mut entry = Entry::default();
        Entries::at(self.units, unit, &context, place)?.read(&mut entry)?;
        let declared_at = self.position_of(unit, &entry)?;
        let unit = name.map_or(Ok(NameId::NONE), |name| self.types.intern(name))?;
        Ok(Source { unit, entry: place.0 as u64, declared_at, definitions: 1 })
    }
}
