//! One unit of debug information: its functions, its variables, the scopes that names are in.

use super::dies::{Entry, Go, RANGES_LIMIT, string, walk};
use super::location;
use super::ranges::Ranges;
use crate::dwarf::{DebugInfo, Slice, UnitEntries, VariablesOf};
use gimli::constants::{self, DwTag};
use gimli::{AttributeValue, UnitOffset};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::ops::Range;
use std::sync::OnceLock;

/// `DW_AT_go_runtime_type`: where a Go program has the description of a type.
const GO_RUNTIME_TYPE: gimli::DwAt = gimli::DwAt(0x2904);

/// Bytes that compilers align functions to: as many of a unit's code may belong to none.
const FUNCTION_ALIGNMENT: u64 = 16;

/// A function with code in a compilation unit: its DIE and its code ranges.
#[derive(Clone, Debug)]
pub struct Subprogram {
    pub(super) offset: UnitOffset<usize>,
    /// The code ranges of the function, first the one that it is entered at.
    pub ranges: Vec<Range<u64>>,
}

impl Subprogram {
    /// Returns the code address at which the function is entered.
    pub fn entry(&self) -> u64 {
        self.ranges.first().map_or(0, |range| range.start)
    }
}

/// The location of a global or static variable, which stays fixed while the program runs: an address, or an offset in
/// thread-local storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fixed {
    /// The address of the variable.
    Address(u64),
    /// The offset of the variable in thread-local storage.
    ThreadLocal(u64),
}

/// A global or static variable with its fixed address (or thread-local offset), or a piece of one: compilers split a
/// variable of which only parts are used.
#[derive(Clone, Copy, Debug)]
pub struct Global {
    /// The fixed location of the variable or piece.
    pub at: Fixed,
    /// The global offset of the DIE that has the variable's type, across all unit sections.
    pub entry: u64,
    /// The offset of the piece's first byte in the variable.
    pub offset: u32,
    /// The size of the piece in bytes; `None` for a whole variable.
    pub size: Option<u32>,
}

impl Global {
    /// Creates an unsplit variable at a fixed location; `entry` is its DIE's global offset (across all unit sections).
    pub fn whole(at: Fixed, entry: u64) -> Global {
        Global { at, entry, offset: 0, size: None }
    }
}

/// An opened compilation unit with its functions and global variables, searchable by address.
pub struct Unit<'u, 'a> {
    /// The index of the unit in [`DebugInfo`].
    pub index: usize,
    pub(super) entries: UnitEntries,
    pub(super) unit: gimli::Unit<Slice<'a>>,
    // of split units: with the sections that stayed behind
    joined: Option<gimli::Dwarf<Slice<'a>>>,
    dwarf: &'u gimli::Dwarf<Slice<'a>>,
    /// The functions of the unit that have code.
    pub functions: Vec<Subprogram>,
    /// The code ranges of the functions, with the function's index in `functions` for each.
    by_range: Ranges<u32>,
    /// The variables of the unit that have a fixed location.
    pub globals: Vec<Global>,
    /// The names and linkage names of the variables without a location, with the global offsets of their DIEs.
    pub unplaced: Vec<(&'a [u8], u64)>,
    // namespaces and types: where their entries are, and their names; by start
    scopes: Vec<(Range<usize>, &'a [u8])>,
    // what functions have at fixed places
    statics: OnceLock<Vec<Global>>,
    // records by what lies in them
    enclosing: OnceLock<FxHashMap<u64, Vec<Enclosing>>>,
}

impl<'u, 'a> Unit<'u, 'a> {
    /// Opens a compilation unit by its index and lists its functions and global variables; `None` if it is damaged.
    pub fn open(info: &DebugInfo<'u, 'a>, index: usize) -> Option<Unit<'u, 'a>> {
        let (header, dwarf) = info.unit(index);
        let (unit, joined) = match info.skeleton(index) {
            Some(skeleton) => {
                let (skeleton_header, parent) = info.unit(skeleton);
                let joined = join(&info.own_sections(index), parent, header.version());
                let mut unit = DebugInfo::open(header, &joined).ok()?;
                unit.copy_relocated_attributes(&DebugInfo::open(skeleton_header, parent).ok()?);
                (unit, Some(joined))
            }
            None => (DebugInfo::open(header, dwarf).ok()?, None),
        };
        let mut unit = Unit {
            index,
            entries: info.entries(index).ok()?,
            unit,
            joined,
            dwarf,
            functions: Vec::new(),
            by_range: Ranges::default(),
            globals: Vec::new(),
            unplaced: Vec::new(),
            scopes: Vec::new(),
            statics: OnceLock::new(),
            enclosing: OnceLock::new(),
        };
        unit.scan(info);
        Some(unit)
    }

    /// Returns the sections that addresses, ranges and locations are found in.
    pub(super) fn dwarf(&self) -> &gimli::Dwarf<Slice<'a>> {
        self.joined.as_ref().unwrap_or(self.dwarf)
    }

    /// Returns the compilation unit's programming language, a `DW_LANG` number.
    pub fn language(&self) -> u64 {
        self.entries.language()
    }

    /// Returns the global offset (across all unit sections) of the DIE of one of the unit's functions.
    pub fn place_of(&self, info: &DebugInfo<'u, 'a>, function: &Subprogram) -> u64 {
        info.place(self.index, function.offset)
    }

    /// Returns the name of the compilation unit's source file without its folder; `None` if it has no name.
    pub fn file(&self, info: &DebugInfo<'u, 'a>) -> Option<&'a str> {
        let mut name = None;
        walk(info, self.index, &self.entries, None, |entry| {
            name = string(info, self.index, &self.entries, entry, constants::DW_AT_name);
            Go::Stop
        });
        std::str::from_utf8(name?).ok()?.rsplit('/').next()
    }

    /// Returns the index in [`functions`](Unit::functions) of the function that contains a code address; `None` if none
    /// does.
    pub fn function_at(&self, address: u64) -> Option<usize> {
        self.by_range.at(address).first().map(|function| *function as usize)
    }

    /// Returns the scopes that an entry is declared in, outermost first.
    pub(super) fn path_of(&self, offset: UnitOffset<usize>) -> Vec<&'a [u8]> {
        let before = self.scopes.partition_point(|(range, _)| range.start < offset.0);
        let mut path: Vec<&[u8]> = Vec::new();
        let mut outermost = usize::MAX;
        // inner ones come later: going back, those that hold the entry are met from the inside
        for (range, name) in self.scopes[..before].iter().rev().take(SCOPES_LOOKED_AT) {
            if range.end > offset.0 && range.start < outermost {
                outermost = range.start;
                path.push(name);
            }
        }
        path.reverse();
        path
    }

    /// Returns the entry of the innermost scope that an entry is declared in.
    pub(super) fn scope_of(&self, offset: UnitOffset<usize>) -> Option<UnitOffset<usize>> {
        let before = self.scopes.partition_point(|(range, _)| range.start < offset.0);
        let inner = self.scopes[..before].iter().rev().take(SCOPES_LOOKED_AT);
        inner.map(|(range, _)| range).find(|range| range.end > offset.0).map(|range| UnitOffset(range.start))
    }

    fn scan(&mut self, info: &DebugInfo<'u, 'a>) {
        // scopes that are not closed yet, with their depth
        let mut open: Vec<(isize, usize)> = Vec::new();
        let (mut functions, mut globals, mut scopes) = (Vec::new(), Vec::new(), Vec::new());
        let mut unplaced = Vec::new();
        // each entry, as the next one says where a scope ends
        walk(info, self.index, &self.entries, None, |entry| {
            while let Some((depth, index)) = open.last().copied()
                && depth >= entry.depth
            {
                close(&mut scopes, index, entry.offset);
                open.pop();
            }
            match entry.tag {
                constants::DW_TAG_subprogram => {
                    let ranges = self.code_of(entry);
                    if !ranges.is_empty() {
                        functions.push(Subprogram { offset: entry.offset, ranges });
                    }
                    Go::Past
                }
                constants::DW_TAG_variable => {
                    let pieces = self.pieces(info, entry);
                    if pieces.is_empty() {
                        let place = info.place(self.index, entry.offset);
                        // symbols of C++ and Rust have the mangled name
                        let names = [constants::DW_AT_name, constants::DW_AT_linkage_name]
                            .into_iter()
                            .filter_map(|name| string(info, self.index, &self.entries, entry, name));
                        unplaced.extend(names.map(|name| (name, place)));
                    }
                    globals.extend(pieces);
                    Go::Past
                }
                constants::DW_TAG_compile_unit
                | constants::DW_TAG_partial_unit
                | constants::DW_TAG_type_unit
                | constants::DW_TAG_skeleton_unit => Go::Inside,
                tag if is_scope(tag) && entry.has_children => {
                    let name = string(info, self.index, &self.entries, entry, constants::DW_AT_name);
                    let name = name.unwrap_or(if tag == constants::DW_TAG_namespace {
                        b"(anonymous namespace)"
                    } else {
                        b""
                    });
                    open.push((entry.depth, scopes.len()));
                    scopes.push((entry.offset.0..usize::MAX, name));
                    Go::Inside
                }
                _ => Go::Past,
            }
        });
        if self.has_more_code(&functions) {
            functions.extend(self.nested_functions(info));
        }
        let by_range = functions
            .iter()
            .enumerate()
            .flat_map(|(index, function): (usize, &Subprogram)| {
                function.ranges.iter().map(move |range| (range.clone(), index as u32))
            })
            .collect();
        self.by_range = Ranges::new(by_range);
        (self.functions, self.globals, self.scopes) = (functions, globals, scopes);
        self.unplaced = unplaced;
    }

    /// Returns `true` if the unit has code beside that of some functions, by more than functions are aligned to.
    fn has_more_code(&self, functions: &[Subprogram]) -> bool {
        let Ok(mut left) = self.dwarf().unit_ranges(&self.unit) else { return false };
        let mut ranges = Vec::new();
        while let Ok(Some(range)) = left.next()
            && ranges.len() < RANGES_LIMIT
        {
            ranges.push(range.begin..range.end);
        }
        // what the linker left out starts at 0
        ranges.retain(|range| range.start != 0);
        ranges.sort_unstable_by_key(|range| range.start);
        let mut known: Vec<&Range<u64>> = functions.iter().flat_map(|function| &function.ranges).collect();
        known.sort_unstable_by_key(|range| range.start);
        let mut known = known.into_iter().peekable();
        // all code of the unit before it is some function's
        let mut at = 0;
        for range in ranges {
            at = at.max(range.start);
            while let Some(function) = known.next_if(|function| function.start < range.end) {
                if function.start.saturating_sub(at) >= FUNCTION_ALIGNMENT {
                    return true;
                }
                at = at.max(function.end);
            }
            if range.end.saturating_sub(at) >= FUNCTION_ALIGNMENT {
                return true;
            }
        }
        false
    }

    /// Returns the functions that are declared within others: the contained procedures of Fortran, nested functions of
    /// Ada and GNU C, and what GCC makes of a parallel region of OpenMP in C++.
    fn nested_functions(&self, info: &DebugInfo<'u, 'a>) -> Vec<Subprogram> {
        let mut found = Vec::new();
        let mut around: Vec<isize> = Vec::new();
        walk(info, self.index, &self.entries, None, |entry| {
            while around.last().is_some_and(|depth| *depth >= entry.depth) {
                around.pop();
            }
            match entry.tag {
                constants::DW_TAG_subprogram => {
                    let ranges = self.code_of(entry);
                    if !around.is_empty() && !ranges.is_empty() {
                        found.push(Subprogram { offset: entry.offset, ranges });
                    }
                    around.push(entry.depth);
                    Go::Inside
                }
                constants::DW_TAG_inlined_subroutine
                | constants::DW_TAG_enumeration_type
                | constants::DW_TAG_subroutine_type => Go::Past,
                _ => Go::Inside,
            }
        });
        found
    }

    /// Returns the ranges of a function's code, the one that it is entered at first.
    fn code_of(&self, entry: &Entry<'a>) -> Vec<Range<u64>> {
        if !(entry.has(constants::DW_AT_low_pc) || entry.has(constants::DW_AT_ranges)) {
            return Vec::new();
        }
        let mut ranges = entry.ranges(self.dwarf(), &self.unit);
        // what the linker left out starts at 0, or at an address that no program has
        ranges.retain(|range| range.start != 0);
        ranges
    }

    /// Returns the variables at fixed locations of a compilation unit without opening it (its global variables, or its
    /// functions' static ones, by `of`), and the unit's language (a `DW_LANG` number); `None` if the unit has to be
    /// opened, as its addresses are indices into `.debug_addr`, or if it is damaged.
    pub fn variables(info: &DebugInfo<'u, 'a>, index: usize, of: VariablesOf) -> Option<(Vec<Global>, u64)> {
        let encoding = info.unit(index).0.encoding();
        let mut found = Vec::new();
        let needs_unit = Cell::new(false);
        let by_index = |_| {
            needs_unit.set(true);
            None
        };
        let language = info.variables(index, of, |entry, bytes| match location::only_address(bytes) {
            Some(address) => found.push(Global::whole(Fixed::Address(address), entry)),
            None => found.extend(fixed(gimli::Expression(bytes), encoding, entry, by_index)),
        });
        let language = language.ok()?;
        (!needs_unit.get()).then_some((found, language))
    }

    fn pieces(&self, info: &DebugInfo<'u, 'a>, entry: &Entry<'a>) -> Vec<Global> {
        let Some(AttributeValue::Exprloc(expression)) = entry.value(constants::DW_AT_location) else {
            return Vec::new();
        };
        let place = info.place(self.index, entry.offset);
        match location::only_address(expression.0) {
            Some(address) => vec![Global::whole(Fixed::Address(address), place)],
            None => self.fixed(expression, place),
        }
    }

    /// Returns the fixed places that an expression leads to, of the variable whose entry is at `entry`.
    pub(super) fn fixed(&self, expression: gimli::Expression<Slice<'a>>, entry: u64) -> Vec<Global> {
        let by_index = |index| self.dwarf().address(&self.unit, index).ok();
        fixed(expression, self.unit.encoding(), entry, by_index)
    }

    /// Returns the static variables that the unit's functions declare inside them, found on first use.
    pub fn statics(&self, info: &DebugInfo<'u, 'a>) -> &[Global] {
        self.statics.get_or_init(|| self.find_statics(info))
    }

    fn find_statics(&self, info: &DebugInfo<'u, 'a>) -> Vec<Global> {
        let mut found = Vec::new();
        let mut functions: Vec<isize> = Vec::new();
        walk(info, self.index, &self.entries, None, |entry| {
            while functions.last().is_some_and(|depth| *depth >= entry.depth) {
                functions.pop();
            }
            match entry.tag {
                constants::DW_TAG_subprogram => functions.push(entry.depth),
                constants::DW_TAG_variable if !functions.is_empty() => found.extend(self.pieces(info, entry)),
                constants::DW_TAG_enumeration_type | constants::DW_TAG_subroutine_type => return Go::Past,
                _ => {}
            }
            Go::Inside
        });
        found
    }

    /// Returns the records of this unit that contain a type (given by its DIE's global offset across all unit
    /// sections) as base class or member, or as raw storage for it such as libstdc++'s `__aligned_membuf`, each with
    /// the type's offset in it.
    pub fn enclosing(&self, info: &DebugInfo<'u, 'a>, part: u64) -> &[Enclosing] {
        let enclosing = self.enclosing.get_or_init(|| self.find_enclosing(info));
        enclosing.get(&part).map_or(&[], Vec::as_slice)
    }

    fn find_enclosing(&self, info: &DebugInfo<'u, 'a>) -> FxHashMap<u64, Vec<Enclosing>> {
        let mut enclosing: FxHashMap<u64, Vec<Enclosing>> = FxHashMap::default();
        // records that are open, with their depth
        let mut open: Vec<(isize, u64)> = Vec::new();
        walk(info, self.index, &self.entries, None, |entry| {
            while open.last().is_some_and(|(depth, _)| *depth >= entry.depth) {
                open.pop();
            }
            let at = match entry.tag {
                constants::DW_TAG_subprogram => return Go::Past,
                constants::DW_TAG_structure_type | constants::DW_TAG_class_type => {
                    open.push((entry.depth, info.place(self.index, entry.offset)));
                    return Go::Inside;
                }
                constants::DW_TAG_inheritance | constants::DW_TAG_member => {
                    entry.number(constants::DW_AT_data_member_location)
                }
                constants::DW_TAG_template_type_parameter => self.is_room(info, open.last()).then_some(0),
                _ => return Go::Inside,
            };
            let target = entry.raw(constants::DW_AT_type).and_then(|value| info.target(self.index, &value));
            if let (Some(at), Some(target), Some((depth, record))) = (at, target, open.last())
                && *depth == entry.depth - 1
            {
                let how = match entry.tag {
                    constants::DW_TAG_inheritance => PartOf::Derived,
                    constants::DW_TAG_member => PartOf::Member,
                    _ => PartOf::Room,
                };
                enclosing.entry(target).or_default().push(Enclosing { record: *record, at, how });
            }
            Go::Past
        });
        enclosing
    }

    fn is_room(&self, info: &DebugInfo<'u, 'a>, record: Option<&(isize, u64)>) -> bool {
        let Some((_, offset)) = record.and_then(|(_, place)| info.locate(*place)) else { return false };
        let mut is_room = false;
        walk(info, self.index, &self.entries, Some(offset), |entry| {
            let name = string(info, self.index, &self.entries, entry, constants::DW_AT_name);
            is_room = name.is_some_and(is_room_name);
            Go::Stop
        });
        is_room
    }

    /// Returns the run-time type descriptors that a unit of a Go program names: the address of each, with the DIE of
    /// its type (`DW_AT_go_runtime_type`).
    pub fn runtime_types(&self, info: &DebugInfo<'u, 'a>) -> GoTypes {
        let mut found = GoTypes::default();
        walk(info, self.index, &self.entries, None, |entry| {
            if entry.tag == constants::DW_TAG_structure_type
                && string(info, self.index, &self.entries, entry, constants::DW_AT_name) == Some(b"runtime.g")
            {
                found.goroutine = Some(info.place(self.index, entry.offset));
            }
            if entry.tag == constants::DW_TAG_base_type
                && string(info, self.index, &self.entries, entry, constants::DW_AT_name) == Some(CONTROL)
            {
                found.group_control = Some(info.place(self.index, entry.offset));
            }
            if let Some(value) = entry.value(GO_RUNTIME_TYPE)
                && let Some(address) = match value {
                    AttributeValue::Addr(address) => Some(address),
                    other => super::dies::address(self.dwarf(), &self.unit, other).or(other.udata_value()),
                }
            {
                found.described.push((address, info.place(self.index, entry.offset)));
            }
            if entry.depth == 0 { Go::Inside } else { Go::Past }
        });
        found
    }
}

/// A record that contains a given type: the record's DIE, the type's offset in it, and how it contains it
/// (base class, member, or raw storage).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Enclosing {
    /// The global offset of the record's DIE, across all unit sections.
    pub record: u64,
    /// The type's offset in the record, in bytes.
    pub at: u64,
    /// The way in which the record contains the type.
    pub how: PartOf,
}

/// The ways in which a record contains a type: as base class, as member, or as raw storage made for an object of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartOf {
    /// A base class of the record.
    Derived,
    /// A member of the record.
    Member,
    /// The object that the record provides raw storage for.
    Room,
}

/// Returns the fixed places that an expression leads to; `by_index` finds an address by its index.
fn fixed(
    expression: gimli::Expression<Slice<'_>>,
    encoding: gimli::Encoding,
    entry: u64,
    by_index: impl Fn(gimli::DebugAddrIndex<usize>) -> Option<u64>,
) -> Vec<Global> {
    let pieces = location::pieces(expression, encoding, location::FrameBase::Unknown, by_index);
    let fixed = pieces.into_iter().filter_map(|piece| {
        let at = match piece.holder {
            location::Holder::Address(address) => Fixed::Address(address),
            location::Holder::ThreadLocal(offset) => Fixed::ThreadLocal(offset),
            _ => return None,
        };
        Some(Global { at, entry, offset: piece.offset, size: piece.size })
    });
    fixed.collect()
}

/// The run-time type descriptors of a Go program, as pairs of a descriptor's address and the global offset (across all
/// unit sections) of its type's DIE; also the DIEs of two types of Go's run-time library: of goroutines, and of the
/// control word in the groups of a map.
#[derive(Clone, Debug, Default)]
pub struct GoTypes {
    /// Types that the program describes at addresses.
    pub described: Vec<(u64, u64)>,
    /// The type of a goroutine.
    pub goroutine: Option<u64>,
    /// The word that each group of a map starts with.
    pub group_control: Option<u64>,
}

/// The type of the word that a group starts with.
const CONTROL: &[u8] = b"internal/runtime/maps.ctrlGroup";

/// The number of the programming language Go in DWARF (`DW_LANG_Go`).
pub const GO: u64 = 0x16;

/// The number of the programming language Rust in DWARF (`DW_LANG_Rust`).
pub const RUST: u64 = 0x1c;

/// The number of scopes before a DIE that are searched for those that hold it.
const SCOPES_LOOKED_AT: usize = 1 << 16;

fn close(scopes: &mut [(Range<usize>, &[u8])], index: usize, end: UnitOffset<usize>) {
    if let Some((range, _)) = scopes.get_mut(index) {
        range.end = end.0;
    }
}

fn is_scope(tag: DwTag) -> bool {
    matches!(
        tag,
        constants::DW_TAG_namespace
            | constants::DW_TAG_structure_type
            | constants::DW_TAG_class_type
            | constants::DW_TAG_union_type
    )
}

/// Returns the sections of a split unit, with those that stayed with what it was split off from.
fn join<'a>(
    split: &gimli::Dwarf<Slice<'a>>,
    parent: &gimli::Dwarf<Slice<'a>>,
    version: u16,
) -> gimli::Dwarf<Slice<'a>> {
    gimli::Dwarf {
        debug_abbrev: split.debug_abbrev,
        debug_addr: parent.debug_addr,
        debug_info: split.debug_info,
        debug_line: split.debug_line,
        debug_line_str: parent.debug_line_str,
        debug_str: split.debug_str,
        debug_str_offsets: split.debug_str_offsets,
        debug_types: split.debug_types,
        locations: split.locations,
        // before DWARF 5 ranges stayed behind
        ranges: if version < 5 { parent.ranges } else { split.ranges },
        file_type: gimli::DwarfFileType::Dwo,
        ..gimli::Dwarf::default()
    }
}

/// Returns `true` if a C++ class name is that of libstdc++'s raw storage for an object of its template argument:
/// `__aligned_membuf<T>` or `__aligned_buffer<T>`.
pub fn is_room_name(name: &[u8]) -> bool {
    name.starts_with(b"__aligned_membuf<") || name.starts_with(b"__aligned_buffer<")
}
