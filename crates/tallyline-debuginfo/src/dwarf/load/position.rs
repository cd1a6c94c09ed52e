//! The origins of types, as the loader notes them.

use super::{Cursor, Loader};
use crate::dwarf::entry::{Entries, Entry};
use crate::dwarf::found::FoundDie;
use crate::dwarf::offset::GlobalDieOffset;
use crate::error::Result;
use crate::model::{NameId, Position, TypeSource};
use gimli::constants;

impl<'a> Loader<'_, 'a> {
    /// Returns the file and line that declare the DIE that was read; none if positions are not wanted.
    pub(in crate::dwarf) fn position(&mut self, cursor: &Cursor<'_, '_, 'a>) -> Result<Position> {
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
        match &self.paths {
            None => return Ok(NameId::NONE),
            Some(paths) => {
                if let Some(name) = paths.names.get(&(unit, file)) {
                    return Ok(*name);
                }
            }
        }
        // what was split off numbers files as the table does that stayed behind
        let skeleton = self.units.skeleton_of(unit);
        let context = self.context(skeleton)?;
        let Some(paths) = &mut self.paths else { return Ok(NameId::NONE) };
        if paths.files.as_ref().is_none_or(|(of, _)| *of != unit) {
            paths.files = Some((unit, self.units.files(skeleton, &context)?));
        }
        let path = match &paths.files {
            Some((_, Some(files))) => files.path(self.units, skeleton, &context, file),
            _ => None,
        };
        let name = path.map_or(Ok(NameId::NONE), |path| self.types.intern(&path))?;
        paths.names.insert((unit, file), name);
        Ok(name)
    }

    /// Notes the unit and the entry that a wanted type was found in.
    pub(in crate::dwarf) fn note_source(&mut self, found: &FoundDie) -> Result<()> {
        if self.paths.is_none() {
            return Ok(());
        }
        let source = self.source_of(found.unit, found.place)?;
        self.types.sources.push(TypeSource { definitions: found.definitions, ..source });
        Ok(())
    }

    /// Returns where the type of an entry is defined, if positions are wanted.
    pub(in crate::dwarf) fn source_of(&mut self, unit: usize, place: GlobalDieOffset) -> Result<TypeSource> {
        let context = self.context(unit)?;
        let name = self.units.about(unit, &context)?.name;
        let mut entry = Entry::default();
        Entries::at(self.units, unit, &context, place)?.read(&mut entry)?;
        let declared_at = self.position_of(unit, &entry)?;
        let unit = name.map_or(Ok(NameId::NONE), |name| self.types.intern(name))?;
        Ok(TypeSource { unit, entry: place.0 as u64, declared_at, definitions: 1 })
    }
}
