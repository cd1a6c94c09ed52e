//! The symbols of an ELF file. Tables are copied, 32-bit ones widened, and sorted on the first query: a kernel has more
//! than a hundred thousand symbols.

use object::read::elf::{ElfFile, FileHeader, Sym};
use object::{Endianness, ReadRef, U16, U32, U64, elf};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The kind of object that an ELF symbol names: function, variable, or thread-local variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum SymbolKind {
    /// A function, indirect ones (`STT_GNU_IFUNC`) included.
    Function,
    /// A variable that is not thread-local, or a symbol without a type (`STT_NOTYPE`).
    Data,
    /// A thread-local variable (`STT_TLS`).
    ThreadLocal,
}

/// A symbol of an ELF file, with its name, address and size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) kind: SymbolKind,
    pub(crate) name: SymbolName,
}

impl Symbol {
    /// Returns the symbol's value: the linked address of the function or variable.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the size of the function or variable in bytes; 0 if the file does not state it.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the symbol's name as it is in the file, that is, mangled.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The symbol tables of a file, and the sorted symbols once they are queried.
#[derive(Clone, Debug, Default)]
pub(super) struct Symbols {
    tables: Vec<SymbolTable>,
    endian: Endianness,
    sorted_symbols: OnceLock<SortedSymbols>,
    function_ranges: OnceLock<Vec<(u64, u64)>>,
    variable_ranges: OnceLock<Vec<(u64, u64)>>,
    statics: OnceLock<StaticVariables>,
}

/// Function-local static variables of C files, with their files: linkers keep the symbols of a file together, behind
/// one with its name.
#[derive(Clone, Debug, Default)]
struct StaticVariables {
    /// Files by the address of the variable; none if ambiguous.
    files: FxHashMap<u64, Option<SymbolName>>,
    /// The names of all C files.
    all: FxHashSet<String>,
}

/// A symbol table of the file.
#[derive(Clone, Debug)]
struct SymbolTable {
    entries: Vec<elf::Sym64<Endianness>>,
    names: Arc<[u8]>,
}

/// A symbol's name, as a range of the string table that all symbols of a file share.
#[derive(Clone)]
pub(crate) struct SymbolName {
    table: Arc<[u8]>,
    start: u32,
    end: u32,
}

impl std::ops::Deref for SymbolName {
    type Target = str;

    fn deref(&self) -> &str {
        let bytes = self.table.get(self.start as usize..self.end as usize).unwrap_or_default();
        // checked when the symbol was created
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl fmt::Display for SymbolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for SymbolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &**self)
    }
}

impl PartialEq for SymbolName {
    fn eq(&self, other: &SymbolName) -> bool {
        **self == **other
    }
}

impl Eq for SymbolName {}

impl PartialEq<str> for SymbolName {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for SymbolName {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

/// Symbols sorted by kind and address, one for each address but for labels.
#[derive(Clone, Debug, Default)]
pub(super) struct SortedSymbols {
    pub(super) functions: Vec<Symbol>,
    pub(super) data: Vec<Symbol>,
    /// Further symbols of the variables in `data`.
    pub(super) aliases: Vec<Symbol>,
    /// Symbols without a type.
    pub(super) labels: Vec<Symbol>,
    /// `true` if local symbols are present; `strip` may have removed them.
    pub(super) has_locals: bool,
}

impl Symbols {
    /// Copies the tables of a file; a damaged table counts as empty.
    pub(super) fn read<'a, Elf: FileHeader<Endian = Endianness>, R: ReadRef<'a>>(
        file: &ElfFile<'a, Elf, R>,
    ) -> Symbols {
        let kinds = [elf::SHT_SYMTAB, elf::SHT_DYNSYM];
        let tables = kinds.iter().filter_map(|kind| table(file, *kind));
        Symbols {
            tables: tables.collect(),
            endian: file.endian(),
            sorted_symbols: OnceLock::new(),
            function_ranges: OnceLock::new(),
            variable_ranges: OnceLock::new(),
            statics: OnceLock::new(),
        }
    }

    /// Returns the sorted symbols.
    pub(super) fn sorted_symbols(&self) -> &SortedSymbols {
        self.sorted_symbols.get_or_init(|| self.sort())
    }

    /// Returns the address and size of each function, sorted by address: what can be told without names, for a tenth
    /// of the time that [`Symbols::sorted_symbols`] takes. The largest of an address stands for all.
    pub(super) fn function_ranges(&self) -> &[(u64, u64)] {
        self.function_ranges.get_or_init(|| self.ranges(SymbolCategory::Functions))
    }

    /// Returns the address and size of each variable, as of functions; thread-local ones are left out.
    pub(super) fn variable_ranges(&self) -> &[(u64, u64)] {
        self.variable_ranges.get_or_init(|| self.ranges(SymbolCategory::Data))
    }

    fn ranges(&self, wanted: SymbolCategory) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for entry in self.tables.iter().flat_map(|table| &table.entries) {
            let is_wanted = category_of(entry) == Some(wanted) && entry.st_type() != elf::STT_TLS;
            if is_wanted && self.is_defined(entry) {
                // sorted as they are: the largest first
                ranges.push((entry.st_value.get(self.endian), !entry.st_size.get(self.endian)));
            }
        }
        let mut ranges = sorted_by_address(ranges);
        ranges.dedup_by_key(|(address, _)| *address);
        ranges.iter_mut().for_each(|(_, size)| *size = !*size);
        ranges
    }

    /// Returns the address of a named symbol of any type.
    pub(super) fn address(&self, name: &str) -> Option<u64> {
        let mut all =
            self.tables.iter().flat_map(|table| table.entries.iter().map(move |entry| (table, entry)));
        let is_it = |(table, entry): &(&SymbolTable, &elf::Sym64<Endianness>)| {
            self.is_defined(entry) && table.is_called(entry.st_name.get(self.endian), name.as_bytes())
        };
        all.find(is_it).map(|(_, entry)| entry.st_value.get(self.endian))
    }

    /// Returns true if the variable at an address is local to a function of another C file than `file`. False if the
    /// file's own name is not among the symbols, as with link-time optimization.
    pub(super) fn is_static_elsewhere(&self, address: u64, file: &str) -> bool {
        let statics = self.statics.get_or_init(|| self.find_statics());
        let other = statics.files.get(&address).and_then(Option::as_ref);
        other.is_some_and(|other| **other != *file) && statics.all.contains(file)
    }

    fn find_statics(&self) -> StaticVariables {
        let mut statics = StaticVariables::default();
        for table in &self.tables {
            let mut file = None;
            for entry in table.entries.iter().take_while(|entry| entry.st_bind() == elf::STB_LOCAL) {
                let name = || table.name(entry.st_name.get(self.endian));
                match entry.st_type() {
                    elf::STT_FILE => {
                        file = name().filter(|name| name.ends_with(".c"));
                        statics.all.extend(file.iter().map(SymbolName::to_string));
                    }
                    elf::STT_OBJECT if name().is_some_and(|name| is_numbered(&name)) => {
                        let known = statics.files.entry(entry.st_value.get(self.endian));
                        let known = known.or_insert_with(|| file.clone());
                        *known = known.take().filter(|known| Some(known) == file.as_ref());
                    }
                    _ => {}
                }
            }
        }
        statics
    }

    fn is_defined(&self, entry: &elf::Sym64<Endianness>) -> bool {
        entry.st_shndx.get(self.endian) != elf::SHN_UNDEF
    }

    fn sort(&self) -> SortedSymbols {
        let count: usize = self.tables.iter().map(|table| table.entries.len()).sum();
        if count < PARALLEL_SORT_MIN {
            return SortedSymbols { functions: self.sorted(SymbolCategory::Functions).0, ..self.others() };
        }
        // not in the thread pool: a thread that waits here could steal work that waits for this
        std::thread::scope(|scope| {
            let functions = scope.spawn(|| self.sorted(SymbolCategory::Functions));
            let others = self.others();
            let functions = functions.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            SortedSymbols { functions: functions.0, ..others }
        })
    }

    fn others(&self) -> SortedSymbols {
        let all = || self.tables.iter().flat_map(|table| &table.entries);
        let is_local = |entry: &elf::Sym64<Endianness>| {
            self.is_defined(entry)
                && entry.st_bind() == elf::STB_LOCAL
                && category_of(entry) == Some(SymbolCategory::Data)
        };
        let (data, aliases) = self.sorted(SymbolCategory::Data);
        SortedSymbols {
            functions: Vec::new(),
            data,
            aliases,
            labels: self.sorted(SymbolCategory::Labels).0,
            has_locals: all().any(is_local),
        }
    }

    /// Returns the symbols of a category, sorted: one for each address, and the aliases.
    fn sorted(&self, wanted: SymbolCategory) -> (Vec<Symbol>, Vec<Symbol>) {
        let mut sorted = Vec::new();
        for table in &self.tables {
            for entry in table.entries.iter().filter(|entry| self.is_defined(entry)) {
                if category_of(entry) != Some(wanted) {
                    continue;
                }
                let Some(name) = table.name(entry.st_name.get(self.endian)) else { continue };
                sorted.push(Symbol {
                    address: entry.st_value.get(self.endian),
                    size: entry.st_size.get(self.endian),
                    kind: match entry.st_type() {
                        elf::STT_FUNC | elf::STT_GNU_IFUNC => SymbolKind::Function,
                        elf::STT_TLS => SymbolKind::ThreadLocal,
                        _ => SymbolKind::Data,
                    },
                    name,
                });
            }
        }
        // the largest at an address first, then in file order
        sorted.sort_by_key(|symbol| (symbol.kind, symbol.address, std::cmp::Reverse(symbol.size)));
        let mut others = Vec::new();
        // linkers place end labels at the start of the next object
        if wanted != SymbolCategory::Labels {
            sorted.dedup_by(|symbol, first| {
                let is_other = (symbol.kind, symbol.address) == (first.kind, first.address);
                if is_other && wanted == SymbolCategory::Data {
                    others.push(symbol.clone());
                }
                is_other
            });
        }
        (sorted, others)
    }
}

/// Sorts pairs whose first number is an address. Those are spread evenly over a program, so that most are at their place
/// when they are distributed to as many buckets, which takes a fifth of the time of comparing them.
fn sorted_by_address(pairs: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    let lowest = pairs.iter().map(|(address, _)| *address).min().unwrap_or(0);
    let span = pairs.iter().map(|(address, _)| address - lowest).max().unwrap_or(0);
    // the highest bits of the distance: at most as many buckets as there are pairs
    let bits = u64::BITS - span.leading_zeros();
    let shift = bits.saturating_sub(pairs.len().checked_ilog2().unwrap_or(0));
    let bucket = |pair: &(u64, u64)| ((pair.0 - lowest) >> shift) as usize;
    let mut ends = vec![0_usize; (span >> shift) as usize + 2];
    pairs.iter().for_each(|pair| ends[bucket(pair) + 1] += 1);
    for index in 1..ends.len() {
        ends[index] += ends[index - 1];
    }
    let mut sorted = vec![(0, 0); pairs.len()];
    for pair in &pairs {
        let next = &mut ends[bucket(pair)];
        sorted[*next] = *pair;
        *next += 1;
    }
    let mut start = 0;
    for end in &ends[..ends.len() - 1] {
        sorted[start..*end].sort_unstable();
        start = *end;
    }
    sorted
}

/// Returns true if the compiler made a name unique by a number: `expected.3`.
fn is_numbered(name: &str) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(_, number)| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// The number of symbols from which sorting uses a second thread.
const PARALLEL_SORT_MIN: usize = 1 << 14;

/// A category of symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SymbolCategory {
    Functions,
    /// Variables, thread-local ones included.
    Data,
    /// Symbols without a type.
    Labels,
}

fn category_of(entry: &elf::Sym64<Endianness>) -> Option<SymbolCategory> {
    match entry.st_type() {
        elf::STT_FUNC | elf::STT_GNU_IFUNC => Some(SymbolCategory::Functions),
        elf::STT_OBJECT | elf::STT_COMMON | elf::STT_TLS => Some(SymbolCategory::Data),
        elf::STT_NOTYPE => Some(SymbolCategory::Labels),
        _ => None,
    }
}

impl SymbolTable {
    fn is_called(&self, offset: u32, name: &[u8]) -> bool {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.names.get(offset..));
        rest.and_then(|rest| rest.strip_prefix(name)).is_some_and(|rest| rest.first() == Some(&0))
    }

    fn name(&self, start: u32) -> Option<SymbolName> {
        let rest = self.names.get(usize::try_from(start).ok()?..)?;
        let length = memchr::memchr(0, rest)?;
        std::str::from_utf8(&rest[..length]).ok()?;
        let end = start.checked_add(u32::try_from(length).ok()?)?;
        Some(SymbolName { table: self.names.clone(), start, end })
    }
}

fn table<'a, Elf: FileHeader<Endian = Endianness>, R: ReadRef<'a>>(
    file: &ElfFile<'a, Elf, R>,
    kind: elf::SectionType,
) -> Option<SymbolTable> {
    let (endian, data, sections) = (file.endian(), file.data(), file.elf_section_table());
    let symbols = sections.symbols(endian, data, kind).ok()?;
    let names = sections.section(symbols.string_section()).ok()?;
    let names = object::read::elf::SectionHeader::data(names, endian, data).ok()?;
    let is_arm = file.elf_header().e_machine(endian) == elf::EM_ARM;
    let entries = symbols.symbols().iter().map(|symbol| entry(symbol, endian, is_arm));
    Some(SymbolTable { entries: entries.collect(), names: names.into() })
}

/// Converts a symbol of either ELF class to one of the 64-bit class. Arm marks functions of Thumb code by bit 0 of
/// their address.
fn entry<S: Sym<Endian = Endianness>>(
    symbol: &S,
    endian: Endianness,
    is_arm: bool,
) -> elf::Sym64<Endianness> {
    let is_function = matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC);
    let value: u64 = symbol.st_value(endian).into();
    elf::Sym64 {
        st_name: U32::new(endian, symbol.st_name(endian)),
        st_info: symbol.st_info(),
        st_other: symbol.st_other(),
        st_shndx: U16::new(endian, symbol.st_shndx(endian)),
        st_value: U64::new(endian, value & !u64::from(is_arm && is_function)),
        st_size: U64::new(endian, symbol.st_size(endian).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_32_bit_files_are_widened_without_the_bit_that_marks_thumb_code() {
        let endian = Endianness::Big;
        let symbol = |kind| elf::Sym32 {
            st_name: U32::new(endian, 7),
            st_value: U32::new(endian, 0xffff_8001),
            st_size: U32::new(endian, u32::MAX),
            st_info: elf::SymbolInfo::new(elf::STB_GLOBAL, kind),
            st_other: elf::SymbolOther(0),
            st_shndx: U16::new(endian, elf::SymbolSection(3)),
        };
        let value = |kind, is_arm| entry(&symbol(kind), endian, is_arm).st_value.get(endian);
        assert_eq!(value(elf::STT_FUNC, true), 0xffff_8000);
        assert_eq!(value(elf::STT_FUNC, false), 0xffff_8001);
        assert_eq!(value(elf::STT_OBJECT, true), 0xffff_8001);
        let widened = entry(&symbol(elf::STT_OBJECT), endian, true);
        assert_eq!(widened.st_size.get(endian), u64::from(u32::MAX));
        assert_eq!((widened.st_type(), widened.st_bind()), (elf::STT_OBJECT, elf::STB_GLOBAL));
        assert_eq!((widened.st_name.get(endian), widened.st_shndx.get(endian).0), (7, 3));
    }

    #[test]
    fn pairs_are_sorted_however_their_addresses_are_spread() {
        let spread =
            |count: u64, step: u64| (0..count).map(move |index| (index.wrapping_mul(step), index % 3));
        let lists: [Vec<(u64, u64)>; 6] = [
            Vec::new(),
            vec![(u64::MAX, 1)],
            vec![(u64::MAX, 1), (0, 2), (u64::MAX, 0), (1, 7)],
            // pseudo-random over all numbers, then over a few
            spread(1000, 0x9e37_79b9_7f4a_7c15).collect(),
            spread(1000, 0x9e37_79b9_7f4a_7c15)
                .map(|(address, size)| (0x40_1000 + address % 64, size))
                .collect(),
            // nearly all in one bucket
            spread(100, 1).chain([(1 << 60, 0)]).collect(),
        ];
        for list in lists {
            let mut sorted = list.clone();
            sorted.sort_unstable();
            assert_eq!(sorted_by_address(list), sorted);
        }
    }
}
