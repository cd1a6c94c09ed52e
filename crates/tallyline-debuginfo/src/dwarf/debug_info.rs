//! Debug information for those who read more of it than types: units with their sections, and
//! types one at a time, by where their entries are.

use super::Slice;
use super::entry::{Entries, Entry, Interest, Step};
use super::load::{Loader, Need};
use super::offset::GlobalDieOffset;
use super::position::Paths;
use super::sections::Reading;
use super::units::{Context, Units};
use super::with_units;
use crate::Request;
use crate::companion::Companions;
use crate::elf::{File, Naming};
use crate::error::Result;
use crate::model::{TypeId, Types};
use gimli::{AttributeValue, UnitHeader, UnitOffset, constants};
use object::ReadRef;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// Opens the DWARF of an ELF file, whose sections have the names that `naming` says (plain, `.dwo`, link-time
/// optimisation's), with line tables if `lines`, and of the companion files (`.dwo`, `.dwp`, dwz's
/// alternate file) that `companions` finds, and calls `each` with it. Returns the closure's result and warnings about
/// missing companion files.
pub(crate) fn with_debug_info<'a, R: ReadRef<'a>, T>(
    file: &File<'a, R>,
    naming: Naming,
    companions: &dyn Companions,
    lines: bool,
    each: impl FnOnce(&DebugInfo<'_, '_>) -> Result<T>,
) -> Result<(T, Vec<String>)> {
    let reading = Reading { code: true, lines, ..Reading::default() };
    let opened = with_units(file, naming, &reading, companions, |units| each(&DebugInfo { units }))?;
    let mut warnings = opened.warnings;
    warnings.extend(opened.missing);
    Ok((opened.result, warnings))
}

/// The opened DWARF of a file and its companion files (`.dwo`, `.dwp`, dwz's alternate file), from which compilation
/// units and DIEs are read on demand.
///
/// A unit is named by its index. A DIE is named by its *global offset*: its offset counted through the unit sections of
/// the file and then those of its companions.
pub struct DebugInfo<'u, 'a> {
    units: &'u Units<'a>,
}

impl<'u, 'a> DebugInfo<'u, 'a> {
    /// Returns the indices of the compilation units in the order of the file; a split unit stands in place of its
    /// skeleton.
    pub fn units(&self) -> &'u [usize] {
        self.units.order()
    }

    /// Returns a compilation unit's header and the DWARF sections that it is in, with all of its DIEs in memory.
    pub(crate) fn unit(&self, unit: usize) -> (&'u UnitHeader<Slice<'a>>, &'u gimli::Dwarf<Slice<'a>>) {
        (&self.units.get(unit).header, self.units.dwarf(unit))
    }

    /// Returns a compilation unit's header and the DWARF sections that it is in; only its first DIE is certain to be in
    /// memory.
    pub(crate) fn head(&self, unit: usize) -> (&'u UnitHeader<Slice<'a>>, &'u gimli::Dwarf<Slice<'a>>) {
        (&self.units.head(unit).header, self.units.dwarf(unit))
    }

    /// Creates a [`gimli::Unit`] from a compilation unit's header, with the section bases of its first DIE but without
    /// line table, name and folder, which cost most.
    pub(crate) fn open(
        header: &UnitHeader<Slice<'a>>,
        dwarf: &gimli::Dwarf<Slice<'a>>,
    ) -> gimli::Result<gimli::Unit<Slice<'a>>> {
        use gimli::UnitType::{Skeleton, SplitCompilation};
        let (encoding, file) = (header.encoding(), dwarf.file_type);
        let mut unit = gimli::Unit {
            header: *header,
            abbreviations: dwarf.abbreviations(header)?,
            name: None,
            comp_dir: None,
            low_pc: 0,
            str_offsets_base: gimli::DebugStrOffsetsBase::default_for_encoding_and_file(encoding, file),
            addr_base: gimli::DebugAddrBase(0),
            loclists_base: gimli::DebugLocListsBase::default_for_encoding_and_file(encoding, file),
            rnglists_base: gimli::DebugRngListsBase::default_for_encoding_and_file(encoding, file),
            line_program: None,
            dwo_id: match header.type_() {
                Skeleton(id) | SplitCompilation(id) => Some(id),
                _ => None,
            },
        };
        let mut low = None;
        let mut root = header.entries(&unit.abbreviations);
        root.next_dfs()?;
        for attribute in root.current().ok_or(gimli::Error::MissingUnitDie)?.attrs() {
            match (attribute.name(), attribute.value()) {
                (constants::DW_AT_low_pc, value) => low = Some(value),
                (_, AttributeValue::DebugStrOffsetsBase(base)) => unit.str_offsets_base = base,
                (_, AttributeValue::DebugAddrBase(base)) => unit.addr_base = base,
                (_, AttributeValue::DebugLocListsBase(base)) => unit.loclists_base = base,
                (_, AttributeValue::DebugRngListsBase(base)) => unit.rnglists_base = base,
                (_, AttributeValue::DwoId(id)) => unit.dwo_id = unit.dwo_id.or(Some(id)),
                _ => {}
            }
        }
        if let Some(low) = low.map(|low| dwarf.attr_address(&unit, low)).transpose()?.flatten() {
            unit.low_pc = low;
        }
        Ok(unit)
    }

    /// Returns the location list that the value of an attribute, such as a variable's `DW_AT_location`, refers to;
    /// `None` if it refers to none.
    pub(crate) fn locations(
        &self,
        index: usize,
        dwarf: &gimli::Dwarf<Slice<'a>>,
        unit: &gimli::Unit<Slice<'a>>,
        value: &AttributeValue<Slice<'a>>,
    ) -> gimli::Result<Option<gimli::LocListIter<Slice<'a>>>> {
        match self.units.lists(index) {
            Some(lists) => lists.list(dwarf, unit, value),
            None => dwarf.attr_locations(unit, *value),
        }
    }

    /// Returns the address ranges of a compilation unit's code, from its `DW_AT_low_pc`/`DW_AT_ranges`; empty if these
    /// are damaged.
    pub fn unit_ranges(&self, index: usize) -> Vec<Range<u64>> {
        let source = self.skeleton(index).unwrap_or(index);
        let mut found = Vec::new();
        // the first DIE is mostly in the first bytes
        let ((head, dwarf), whole) = (self.head(source), || self.unit(source));
        let unit = Self::open(head, dwarf).or_else(|_| Self::open(whole().0, dwarf));
        let Ok(unit) = unit else { return found };
        if let Ok(mut ranges) = dwarf.unit_ranges(&unit) {
            while let Ok(Some(range)) = ranges.next() {
                if range.begin < range.end && range.begin != 0 && found.len() < RANGES_LIMIT {
                    found.push(range.begin..range.end);
                }
            }
        }
        found
    }

    /// Returns the index of a split compilation unit's skeleton unit in the program's file; `None` if the unit is not
    /// split (in a `.dwo` or `.dwp` file).
    pub(crate) fn skeleton(&self, unit: usize) -> Option<usize> {
        Some(self.units.skeleton_of(unit)).filter(|skeleton| *skeleton != unit)
    }

    /// Returns the DWARF sections of a split compilation unit, cut to its own contributions if it comes from a `.dwp`
    /// package.
    pub(crate) fn own_sections(&self, unit: usize) -> gimli::Dwarf<Slice<'a>> {
        self.units.own_sections(unit)
    }

    /// Returns the code address ranges in `.debug_aranges`, each with the index of its compilation unit. Compilers may
    /// omit the table or some units; a damaged table is read up to the damage.
    pub fn code_ranges(&self) -> Vec<(Range<u64>, usize)> {
        let split: FxHashMap<usize, usize> =
            self.units().iter().map(|unit| (self.skeleton(*unit).unwrap_or(*unit), *unit)).collect();
        let mut found = Vec::new();
        let Some(source) = self.units.main() else { return found };
        let mut headers = source.dwarf.debug_aranges.headers();
        while let Ok(Some(header)) = headers.next() {
            let place = source.place(header.debug_info_offset().0);
            let unit =
                self.units.index_of(place).filter(|unit| self.units.place(*unit, UnitOffset(0)) == place);
            let Some(unit) = unit.and_then(|unit| split.get(&unit)) else { continue };
            let mut entries = header.entries();
            while let Ok(Some(entry)) = entries.next() {
                if let Some(end) = entry.address().checked_add(entry.length()) {
                    found.push((entry.address()..end, *unit));
                }
            }
        }
        found
    }

    /// Returns the global offset (across all unit sections) of a DIE given by its compilation unit and its offset in
    /// the unit.
    pub(crate) fn place(&self, unit: usize, offset: UnitOffset<usize>) -> u64 {
        self.units.place(unit, offset).0 as u64
    }

    /// Splits a DIE's global offset (across all unit sections) into the index of its compilation unit and its offset in
    /// the unit; `None` if no unit contains it.
    pub(crate) fn locate(&self, place: u64) -> Option<(usize, UnitOffset<usize>)> {
        let place = GlobalDieOffset(usize::try_from(place).ok()?);
        let unit = self.units.index_of(place)?;
        Some((unit, self.units.offset(unit, place)))
    }

    /// Returns the global offset (across all unit sections) of the DIE that a reference attribute (such as
    /// `DW_AT_type`) of a DIE in this unit points to; `None` if it points to none.
    pub(crate) fn target(&self, unit: usize, value: &AttributeValue<Slice<'a>>) -> Option<u64> {
        let place = self.units.target(unit, value)?;
        self.units.index_of(place).map(|_| place.0 as u64)
    }

    /// Returns the abbreviations, encoding and language of a compilation unit, which reading its DIEs needs.
    pub(crate) fn entries(&self, unit: usize) -> Result<UnitEntries> {
        let (context, abbreviations) = (self.units.context(unit)?, self.units.abbreviations(unit)?);
        Ok(UnitEntries { context, abbreviations: Arc::new(abbreviations) })
    }

    /// Calls `each` with the global DIE offset (across all unit sections) and the location expression of each variable
    /// of a compilation unit that has one. Returns the unit's language, a `DW_LANG` number; damage ends the walk early.
    pub(crate) fn variables(
        &self,
        unit: usize,
        of: VariablesOf,
        mut each: impl FnMut(u64, Slice<'a>),
    ) -> Result<u64> {
        let context = self.units.context(unit)?;
        let root = self.units.place(unit, self.units.get(unit).header.root_offset());
        let mut entries = Entries::at(self.units, unit, &context, root)?;
        let mut entry = Entry::default();
        // functions that are open, by depth
        let mut functions: Vec<isize> = Vec::new();
        while !entries.is_empty() {
            let (depth, place) = (entries.depth(), entries.place());
            while functions.last().is_some_and(|function| *function >= depth) {
                functions.pop();
            }
            let interest = |tag| of.interest(tag, !functions.is_empty());
            let Ok(step) = entries.read_as(&mut entry, interest) else { break };
            if step == Step::Wanted {
                if let Some(AttributeValue::Block(expression)) = entry.value(constants::DW_AT_location) {
                    each(place.0 as u64, expression);
                }
                if entries.skip_children(&mut entry).is_err() {
                    break;
                }
            } else if step == Step::Other && entry.has_children && entry.tag == constants::DW_TAG_subprogram {
                functions.push(depth);
            }
            if entries.depth() <= 0 {
                break;
            }
        }
        Ok(context.language)
    }

    /// Returns the bytes of the string that a string attribute of a DIE in this compilation unit has or refers to;
    /// `None` if it cannot be read.
    pub(crate) fn string(
        &self,
        unit: usize,
        entries: &UnitEntries,
        value: &AttributeValue<Slice<'a>>,
    ) -> Option<&'a [u8]> {
        self.units.string(unit, &entries.context, value)
    }

    /// Creates a reader that loads single types by their DIEs. Readers share nothing, so each thread uses its own.
    pub fn types(&self) -> TypeReader<'u, 'a> {
        let request = Request::default();
        TypeReader { loader: Loader::new(self.units, &request), paths: Some(Paths::default()) }
    }
}

/// The most ranges of one unit.
const RANGES_LIMIT: usize = 1 << 20;

/// The variables of a compilation unit to visit: those outside of functions, or the static ones inside functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariablesOf {
    /// The variables of the unit, and of its namespaces and types.
    Unit,
    /// The static variables inside functions.
    Functions,
}

impl VariablesOf {
    fn interest(self, tag: constants::DwTag, is_in_function: bool) -> Interest {
        match (self, tag) {
            (VariablesOf::Unit, constants::DW_TAG_variable) => Interest::Read,
            (VariablesOf::Functions, constants::DW_TAG_variable) if is_in_function => Interest::Read,
            (
                _,
                constants::DW_TAG_compile_unit
                | constants::DW_TAG_partial_unit
                | constants::DW_TAG_skeleton_unit
                | constants::DW_TAG_namespace
                | constants::DW_TAG_structure_type
                | constants::DW_TAG_class_type
                | constants::DW_TAG_union_type,
            ) => Interest::Inside,
            (VariablesOf::Functions, tag)
                if !matches!(tag, constants::DW_TAG_enumeration_type | constants::DW_TAG_subroutine_type) =>
            {
                Interest::Inside
            }
            _ => Interest::Leave,
        }
    }
}

/// The abbreviations, encoding and language of a compilation unit, which reading its DIEs needs.
#[derive(Clone)]
pub(crate) struct UnitEntries {
    context: Context,
    abbreviations: Arc<gimli::Abbreviations>,
}

impl UnitEntries {
    /// Returns the abbreviations (tags and attribute forms) of the compilation unit's DIEs.
    pub(crate) fn abbreviations(&self) -> &gimli::Abbreviations {
        &self.abbreviations
    }

    /// Returns the compilation unit's programming language, a `DW_LANG` number.
    pub(crate) fn language(&self) -> u64 {
        self.context.language
    }
}

/// Reader that loads single types from DWARF, by their DIEs' global offsets (across all unit sections), into one
/// growing [`Types`].
///
/// A type is loaded with the types of its members; a type that is only pointed to gets its name alone until
/// [`complete`](TypeReader::complete) loads the rest. Type ids stay valid.
pub struct TypeReader<'u, 'a> {
    loader: Loader<'u, 'a>,
    // kept from the loader, which would note the positions of all members
    paths: Option<Paths<'a>>,
}

impl TypeReader<'_, '_> {
    /// Loads the type whose DIE is at a global offset (across all unit sections), unless it is loaded, and returns its
    /// id. A declaration is resolved to its definition.
    pub fn at(&mut self, place: u64) -> Result<TypeId> {
        let place = GlobalDieOffset(usize::try_from(place).unwrap_or(usize::MAX));
        let place = self.loader.definition(place)?;
        let id = self.loader.refer(Some(place), Need::Layout)?;
        self.read()?;
        Ok(id)
    }

    /// Loads the members of a struct, class or union of which so far only the name was loaded; otherwise does nothing.
    pub fn complete(&mut self, id: TypeId) -> Result<()> {
        if let Some(place) = self.loader.place_of(id) {
            self.loader.refer(Some(place), Need::Layout)?;
            self.read()?;
        }
        Ok(())
    }

    /// Returns the global offset (across all unit sections) of the DIE that a type was loaded from; `None` if it came
    /// from none.
    pub fn place(&self, id: TypeId) -> Option<u64> {
        self.loader.place_of(id).map(|place| place.0 as u64)
    }

    /// Sets the namespaces and classes that a loaded type is declared in, as text such as `ns::Outer`.
    pub fn set_path(&mut self, id: TypeId, path: &[u8]) -> Result<()> {
        let path = self.loader.types.intern(path)?;
        self.loader.types.set_path(id, path);
        Ok(())
    }

    /// Adds a loaded type to the requested types ([`Types::listed`]), and its compilation unit to [`Types::sources`],
    /// with file and line if line tables are read.
    pub fn list(&mut self, id: TypeId) -> Result<()> {
        let Some(place) = self.loader.place_of(id) else { return Ok(()) };
        let Some(unit) = self.loader.units.index_of(place) else { return Ok(()) };
        std::mem::swap(&mut self.loader.paths, &mut self.paths);
        let source = self.loader.source_of(unit, place);
        std::mem::swap(&mut self.loader.paths, &mut self.paths);
        self.loader.types.sources.push(source?);
        self.loader.types.listed.push(id);
        Ok(())
    }

    /// Returns the types that the reader has loaded from DWARF so far.
    pub fn types(&self) -> &Types {
        &self.loader.types
    }

    /// Consumes the reader and returns the types that it loaded from DWARF.
    pub fn into_types(self) -> Types {
        self.loader.types
    }

    fn read(&mut self) -> Result<()> {
        self.loader.drain()?;
        self.loader.finish();
        Ok(())
    }
}
