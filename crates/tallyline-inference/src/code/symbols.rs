//! The symbols of an ELF file, by address. Tables are copied as they are, each in one read, and put in
//! order when somebody asks: a kernel has more than a hundred thousand.

use object::read::elf::{ElfFile64, SectionTable};
use object::{Endianness, ReadRef, elf};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// What a symbol names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SymbolKind {
    /// A function.
    Function,
    /// A variable.
    Data,
    /// A variable that each thread has.
    ThreadLocal,
}

/// A named place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Where it is.
    pub address: u64,
    /// How many bytes; 0 where the file does not say.
    pub size: u64,
    /// What it names.
    pub kind: SymbolKind,
    /// Its name, as the linker knows it.
    pub name: SymbolName,
}

/// Symbols, and the tables that they are in.
#[derive(Clone, Debug, Default)]
pub(super) struct Symbols {
    tables: Vec<Table>,
    endian: Endianness,
    ordered: OnceLock<Ordered>,
    statics: OnceLock<Statics>,
}

/// Variables that functions of C files have for themselves, and whose: linkers keep the symbols of a file
/// together, behind one with its name.
#[derive(Clone, Debug, Default)]
struct Statics {
    /// By address: the file; none where it is not sure.
    files: FxHashMap<u64, Option<SymbolName>>,
    /// The names of all C files.
    all: FxHashSet<String>,
}

/// A table of symbols as the file has it.
#[derive(Clone, Debug)]
struct Table {
    entries: Vec<elf::Sym64<Endianness>>,
    names: Arc<[u8]>,
}

/// The name of a symbol, in a table that those of a file share: a kernel has a hundred thousand.
#[derive(Clone)]
pub struct SymbolName {
    table: Arc<[u8]>,
    start: u32,
    end: u32,
}

impl std::ops::Deref for SymbolName {
    type Target = str;

    fn deref(&self) -> &str {
        let bytes = self.table.get(self.start as usize..self.end as usize).unwrap_or_default();
        // it was looked at when the symbol was made
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

/// By address, kind by kind; each place once, but for labels.
#[derive(Clone, Debug, Default)]
pub(super) struct Ordered {
    pub(super) functions: Vec<Symbol>,
    pub(super) data: Vec<Symbol>,
    /// Further symbols of what is in `data`.
    pub(super) aliases: Vec<Symbol>,
    /// Those that do not say what they name.
    pub(super) labels: Vec<Symbol>,
    /// Whether those that only their own unit knows are there, too: they can be stripped.
    pub(super) has_locals: bool,
}

impl Symbols {
    /// Copies the tables of a file; what is damaged has no symbols.
    pub(super) fn read<'a, R: ReadRef<'a>>(file: &ElfFile64<'a, Endianness, R>) -> Symbols {
        let sections = file.elf_section_table();
        let tables = [elf::SHT_SYMTAB, elf::SHT_DYNSYM];
        let tables = tables.iter().filter_map(|kind| table(sections, file.endian(), file.data(), *kind));
        Symbols {
            tables: tables.collect(),
            endian: file.endian(),
            ordered: OnceLock::new(),
            statics: OnceLock::new(),
        }
    }

    /// Functions and variables.
    pub(super) fn ordered(&self) -> &Ordered {
        self.ordered.get_or_init(|| self.order())
    }

    /// The address of the symbol of a name, whatever it names.
    pub(super) fn address(&self, name: &str) -> Option<u64> {
        let mut all =
            self.tables.iter().flat_map(|table| table.entries.iter().map(move |entry| (table, entry)));
        let is_it = |(table, entry): &(&Table, &elf::Sym64<Endianness>)| {
            self.is_defined(entry) && table.is_called(entry.st_name.get(self.endian), name.as_bytes())
        };
        all.find(is_it).map(|(_, entry)| entry.st_value.get(self.endian))
    }

    /// Whether the variable at an address is one that a function of another C file than `file` has for itself.
    /// Not where the file's own name is not among the symbols, as with link-time optimisation.
    pub(super) fn is_static_elsewhere(&self, address: u64, file: &str) -> bool {
        let statics = self.statics.get_or_init(|| self.find_statics());
        let other = statics.files.get(&address).and_then(Option::as_ref);
        other.is_some_and(|other| **other != *file) && statics.all.contains(file)
    }

    fn find_statics(&self) -> Statics {
        let mut statics = Statics::default();
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

    fn order(&self) -> Ordered {
        let count: usize = self.tables.iter().map(|table| table.entries.len()).sum();
        if count < MANY {
            return Ordered { functions: self.sorted(Sort::Functions).0, ..self.others() };
        }
        // not by the pool of threads: who waits for that here could be given work that waits for this
        std::thread::scope(|scope| {
            let functions = scope.spawn(|| self.sorted(Sort::Functions));
            let others = self.others();
            let functions = functions.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ordered { functions: functions.0, ..others }
        })
    }

    fn others(&self) -> Ordered {
        let all = || self.tables.iter().flat_map(|table| &table.entries);
        let is_local = |entry: &elf::Sym64<Endianness>| {
            self.is_defined(entry) && entry.st_bind() == elf::STB_LOCAL && sort(entry) == Some(Sort::Data)
        };
        let (data, aliases) = self.sorted(Sort::Data);
        Ordered {
            functions: Vec::new(),
            data,
            aliases,
            labels: self.sorted(Sort::Labels).0,
            has_locals: all().any(is_local),
        }
    }

    /// The symbols of a sort by address: one for each place, and the others there.
    fn sorted(&self, wanted: Sort) -> (Vec<Symbol>, Vec<Symbol>) {
        let mut sorted = Vec::new();
        for table in &self.tables {
            for entry in table.entries.iter().filter(|entry| self.is_defined(entry)) {
                if sort(entry) != Some(wanted) {
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
        // the larger of two at one place, and of those the first
        sorted.sort_by_key(|symbol| (symbol.kind, symbol.address, std::cmp::Reverse(symbol.size)));
        let mut others = Vec::new();
        // linkers put the end of one thing where another starts
        if wanted != Sort::Labels {
            sorted.dedup_by(|symbol, first| {
                let is_other = (symbol.kind, symbol.address) == (first.kind, first.address);
                if is_other && wanted == Sort::Data {
                    others.push(symbol.clone());
                }
                is_other
            });
        }
        (sorted, others)
    }
}

/// Whether a compiler has made a name its own by a number: `expected.3`.
fn is_numbered(name: &str) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(_, number)| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// As many symbols as are worth a second thread.
const MANY: usize = 1 << 14;

/// What symbols are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Functions,
    /// What is in memory, and what threads have.
    Data,
    /// Those that do not say what they name.
    Labels,
}

fn sort(entry: &elf::Sym64<Endianness>) -> Option<Sort> {
    match entry.st_type() {
        elf::STT_FUNC | elf::STT_GNU_IFUNC => Some(Sort::Functions),
        elf::STT_OBJECT | elf::STT_COMMON | elf::STT_TLS => Some(Sort::Data),
        elf::STT_NOTYPE => Some(Sort::Labels),
        _ => None,
    }
}

impl Table {
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

fn table<'a, R: ReadRef<'a>>(
    sections: &SectionTable<'a, elf::FileHeader64<Endianness>, R>,
    endian: Endianness,
    data: R,
    kind: elf::SectionType,
) -> Option<Table> {
    let symbols = sections.symbols(endian, data, kind).ok()?;
    let names = sections.section(symbols.string_section()).ok()?;
    let names = object::read::elf::SectionHeader::data(names, endian, data).ok()?;
    Some(Table { entries: symbols.symbols().to_vec(), names: names.into() })
}
