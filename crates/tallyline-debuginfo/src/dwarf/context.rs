//! The context of a unit: the facts in its first DIE by which its other DIEs are read.

use super::abbreviations::Abbreviations;
use super::damaged;
use super::entry::{Entries, Entry};
use super::source::Role;
use super::unit::Unit;
use super::units::{Context, Units};
use crate::error::Result;
use crate::model::Language;
use gimli::{AttributeValue, DebugStrOffsetsBase, DwarfFileType, Reader, constants};
use std::sync::Arc;

/// The language of a unit without its version, which gimli has no name for.
const DW_AT_LANGUAGE_NAME: constants::DwAt = constants::DwAt(0x90);

/// The abbreviation of a unit's first DIE.
pub(super) struct RootAbbreviation {
    pub(super) tag: constants::DwTag,
    pub(super) attributes: Vec<constants::DwAt>,
}

impl<'a> Units<'a> {
    /// Returns the abbreviation of a unit's first DIE. The rest of the table is not read, as there are thousands of
    /// units.
    pub(super) fn root_abbreviation(&self, unit: usize) -> gimli::Result<RootAbbreviation> {
        let header = &self.head(unit).header;
        let code = header.range_from(header.root_offset()..)?.read_uleb128()?;
        let mut table = self.abbreviation_bytes(unit)?;
        let mut root = RootAbbreviation { tag: constants::DW_TAG_null, attributes: Vec::new() };
        loop {
            let own = table.read_uleb128()?;
            if own == 0 {
                return Ok(root);
            }
            let tag = table.read_uleb128()?;
            let _has_children = table.read_u8()?;
            loop {
                let (name, form) = (table.read_uleb128_u16()?, table.read_uleb128_u16()?);
                if (name, form) == (0, 0) {
                    break;
                }
                if constants::DwForm(form) == constants::DW_FORM_implicit_const {
                    table.read_sleb128()?;
                }
                if own == code {
                    root.attributes.push(constants::DwAt(name));
                }
            }
            if own == code {
                root.tag = constants::DwTag(u16::try_from(tag).unwrap_or(0));
                return Ok(root);
            }
        }
    }

    /// Returns the first entry of a unit: what it says about itself.
    pub(super) fn root(&self, unit: usize, context: &Context) -> Result<Entry<'a>> {
        let mut entry = Entry::default();
        let root = self.place(unit, self.get(unit).header.root_offset());
        let mut entries = Entries::at(self, unit, context, root)?;
        if !entries.is_empty() {
            entries.read(&mut entry)?;
        }
        Ok(entry)
    }

    /// Reads what the entries of a unit need.
    pub(super) fn context(&self, index: usize) -> Result<Context> {
        let Unit { header, contribution, start, .. } = self.get(index);
        let file_type = match self.role(index) {
            Role::Split => DwarfFileType::Dwo,
            Role::Main | Role::Alternate => DwarfFileType::Main,
        };
        let mut strings_base: DebugStrOffsetsBase<usize> =
            DebugStrOffsetsBase::default_for_encoding_and_file(header.encoding(), file_type);
        strings_base.0 = strings_base.0.saturating_add(contribution.strings);
        let table = self.abbreviation_bytes(index);
        let abbreviations = table.and_then(|table| Abbreviations::parse(table, header.encoding()));
        let abbreviations = Arc::new(abbreviations.map_err(|error| damaged(*start, error))?);
        let mut context = Context { abbreviations, strings_base, language: 0, producer: None };
        let root = self.root(index, &context)?;
        if let Some(AttributeValue::SecOffset(base)) = root.value(constants::DW_AT_str_offsets_base) {
            context.strings_base = DebugStrOffsetsBase(base);
        }
        let language = root.number(constants::DW_AT_language);
        context.language = language.filter(|language| *language <= u16::MAX.into()).unwrap_or(0);
        // since version 6 the language may be said without its version
        if language.is_none()
            && let Some(name) = root.number(DW_AT_LANGUAGE_NAME)
        {
            context.language = Language::by_name(name).map_or(0, |language| language.0.into());
        }
        // a partial unit has none: what is in it was of the units that import it
        if context.language == 0 {
            context.language = self.importer(index).map_or(0, |importer| importer.language);
        }
        let producer = root.value(constants::DW_AT_producer);
        if let Some(AttributeValue::DebugStrRef(offset)) = producer {
            context.producer = Some(offset.0);
        }
        // with LLVM behind it, Zig says that it is C
        if let Some(producer) = producer.filter(|_| context.language == u64::from(constants::DW_LANG_C99.0))
            && self.string(index, &context, &producer).is_some_and(|name| name.starts_with(b"zig "))
        {
            context.language = u64::from(constants::DW_LANG_Zig.0);
        }
        Ok(context)
    }
}
