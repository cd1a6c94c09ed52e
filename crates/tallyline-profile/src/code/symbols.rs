//! The symbols of an ELF file, by address. Tables are copied as they are, each in one read, and put in
//! order when somebody asks: a kernel has more than a hundred thousand.

use super::image::{Symbol, SymbolKind};
use object::read::elf::{ElfFile64, SectionTable};
use object::{Endianness, ReadRef, elf};
use std::sync::OnceLock;

/// Symbols, and the tables that they are in.
#[derive(Clone, Debug, Default)]
pub(super) struct Symbols {
    tables: Vec<Table>,
    endian: Endianness,
    ordered: OnceLock<Ordered>,
}

/// A table of symbols as the file has it.
#[derive(Clone, Debug)]
struct Table {
    entries: Vec<elf::Sym64<Endianness>>,
    names: Vec<u8>,
}

/// By address, kind by kind; each place once, but for labels.
#[derive(Clone, Debug, Default)]
pub(super) struct Ordered {
    pub(super) functions: Vec<Symbol>,
    pub(super) data: Vec<Symbol>,
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
        Symbols { tables: tables.collect(), endian: file.endian(), ordered: OnceLock::new() }
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

    fn is_defined(&self, entry: &elf::Sym64<Endianness>) -> bool {
        entry.st_shndx.get(self.endian) != elf::SHN_UNDEF
    }

    fn order(&self) -> Ordered {
        let mut ordered = Ordered::default();
        for table in &self.tables {
            for entry in table.entries.iter().filter(|entry| self.is_defined(entry)) {
                let kind = match entry.st_type() {
                    elf::STT_FUNC | elf::STT_GNU_IFUNC => SymbolKind::Function,
                    elf::STT_OBJECT | elf::STT_COMMON => SymbolKind::Data,
                    elf::STT_TLS => SymbolKind::ThreadLocal,
                    elf::STT_NOTYPE => SymbolKind::Data,
                    _ => continue,
                };
                ordered.has_locals |= kind == SymbolKind::Data && entry.st_bind() == elf::STB_LOCAL;
                let name = table.name(entry.st_name.get(self.endian));
                let Some(name) = name.and_then(|name| std::str::from_utf8(name).ok()) else { continue };
                let symbol = Symbol {
                    address: entry.st_value.get(self.endian),
                    size: entry.st_size.get(self.endian),
                    kind,
                    name: name.to_owned(),
                };
                match kind {
                    _ if entry.st_type() == elf::STT_NOTYPE => ordered.labels.push(symbol),
                    SymbolKind::Function => ordered.functions.push(symbol),
                    SymbolKind::Data | SymbolKind::ThreadLocal => ordered.data.push(symbol),
                }
            }
        }
        // the larger of two at one place, and of those the first
        let key = |symbol: &Symbol| (symbol.kind, symbol.address, std::cmp::Reverse(symbol.size));
        for table in [&mut ordered.functions, &mut ordered.data] {
            table.sort_by_key(key);
            table.dedup_by_key(|symbol| (symbol.kind, symbol.address));
        }
        // linkers put the end of one thing where another starts
        ordered.labels.sort_by_key(key);
        ordered
    }
}

impl Table {
    fn is_called(&self, offset: u32, name: &[u8]) -> bool {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.names.get(offset..));
        rest.and_then(|rest| rest.strip_prefix(name)).is_some_and(|rest| rest.first() == Some(&0))
    }

    fn name(&self, offset: u32) -> Option<&[u8]> {
        let name = self.names.get(usize::try_from(offset).ok()?..)?;
        Some(&name[..memchr::memchr(0, name)?])
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
    Some(Table { entries: symbols.symbols().to_vec(), names: names.to_vec() })
}
