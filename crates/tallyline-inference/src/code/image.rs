//! The parts of an ELF file that the analysis needs: code, read-only data, symbols.

use super::function_store::FunctionStore;
use super::instruction::Register;
use super::kernel_tables::{self, KernelTableEntry};
use super::region::{Region, SMALL, read_at};
use super::symbols::{Symbol, SymbolKind, SymbolName, Symbols};
use crate::error::{Error, Result};
use crate::store::Store;
use object::elf;
use object::read::elf::{ElfFile, ElfFile32, ElfFile64, FileHeader};
use object::{
    Architecture, Endianness, FileKind, Object, ObjectSection, ObjectSegment, ObjectSymbol,
    ObjectSymbolTable, ReadRef, SectionFlags, SectionKind,
};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The maximum number of bytes of code and read-only data of one file.
const BYTES_LIMIT: u64 = 1 << 30;

/// The instruction set of a program: one whose code can be analysed, or another, of which only symbols and debug
/// information are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Machine {
    /// The x86-64 instruction set.
    X86_64,
    /// The AArch64 instruction set (64-bit Arm).
    Aarch64,
    /// An instruction set whose code is not decoded, such as 32-bit x86.
    Other,
}

impl Machine {
    /// Returns the instruction set of an ELF file. x32 and ILP32 programs, whose pointers have 4 bytes, count as
    /// [`Machine::Other`].
    fn of<'a>(file: &impl Object<'a>) -> Machine {
        match file.architecture() {
            Architecture::X86_64 => Machine::X86_64,
            Architecture::Aarch64 if file.is_little_endian() => Machine::Aarch64,
            _ => Machine::Other,
        }
    }

    /// Returns the assembler's name of a register on this machine, such as `%rax` or `x0`.
    pub(crate) fn register_name(self, register: Register) -> String {
        const X86: [&str; 17] = [
            "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
            "r14", "r15", "rip",
        ];
        let number = register.0;
        match self {
            Machine::X86_64 => match X86.get(usize::from(number)) {
                Some(name) => format!("%{name}"),
                None if number >= 67 => format!("%xmm{}", number - 51),
                None => format!("%xmm{}", number.saturating_sub(17)),
            },
            Machine::Aarch64 if number == 31 => "sp".into(),
            Machine::Aarch64 => format!("x{number}"),
            Machine::Other => format!("r{number}"),
        }
    }
}

/// The smallest page of a machine whose programs are read.
const PAGE: u64 = 4096;

/// A loadable segment of an ELF file (`PT_LOAD`): its offset and size in the file, and its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub(crate) offset: u64,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) memory: u64,
}

impl Segment {
    /// Returns the segment's offset in the ELF file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the address at which the segment is linked, before any load bias.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the number of bytes that the segment has in the ELF file.
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// Error of [`Image::variable_at`]: the file has no local symbols, so `strip` may have removed the variable's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SymbolsMissing;

/// The maximum number of symbols before an address that are searched for one that covers it.
const SYMBOLS_LOOKED_AT: usize = 16;

/// An opened program or library (ELF file) with the parts that code analysis needs: code, read-only data, symbols,
/// relocations.
#[derive(Clone, Debug)]
pub struct Image {
    machine: Machine,
    architecture: Architecture,
    regions: Vec<Region>,
    segments: Vec<Segment>,
    symbols: Symbols,
    // from the debug file of a stripped program
    stripped: Option<Symbols>,
    // sections of addresses that the linker fills in
    tables: Vec<(u64, u64)>,
    // sections that the linker creates; no variable lies there
    links: Vec<(u64, u64)>,
    // values that the dynamic linker writes, sorted by address
    slots: Vec<(u64, u64)>,
    // names of imported variables, by the slot of their address
    imports: FxHashMap<u64, String>,
    thread_local: Option<(u64, u64)>,
    build_id: Option<Vec<u8>>,
    // found on first use
    runtime_types: OnceLock<Option<u64>>,
    // address range of `.eh_frame`
    frames: Option<(u64, u64)>,
    // sorted by address
    kernel_table_entries: Vec<KernelTableEntry>,
    // decoded functions of earlier runs
    function_store: Option<Arc<FunctionStore>>,
}

impl Image {
    /// Reads code, read-only data, symbols and relocations of an open ELF file. Large code stays in the file and is
    /// read on demand. Fails for a machine whose code is not decoded.
    pub fn read(file: &std::fs::File) -> Result<Image, Error> {
        Image::read_any_machine(file)?.decodable()
    }

    /// Reads an open ELF file as [`read`](Self::read) does, and segments and symbols alone of one whose code is not
    /// decoded ([`undecoded`](Self::undecoded)), 32-bit ones included.
    pub fn read_any_machine(file: &std::fs::File) -> Result<Image, Error> {
        Image::new(&object::ReadCache::new(file), Some(file))
    }

    /// Reads code, read-only data, symbols and relocations of an ELF file in memory. Fails for a machine whose code is
    /// not decoded.
    pub fn parse(bytes: &[u8]) -> Result<Image, Error> {
        Image::new(bytes, None)?.decodable()
    }

    fn decodable(self) -> Result<Image> {
        self.check_decodable().map(|()| self)
    }

    /// Fails if the file's code is not decoded.
    pub(crate) fn check_decodable(&self) -> Result<()> {
        match self.undecoded() {
            Some(name) => Err(Error::Program(format!("code of {name} is not decoded"))),
            None => Ok(()),
        }
    }

    /// Parses a file; code is read from the open file on demand, if there is one.
    fn new<'a, R: ReadRef<'a>>(data: R, open: Option<&std::fs::File>) -> Result<Image> {
        let program = |error: object::Error| Error::Program(error.to_string());
        match FileKind::parse(data) {
            Ok(FileKind::Elf32) => {
                Image::of_elf(&ElfFile32::<Endianness, R>::parse(data).map_err(program)?, open)
            }
            _ => Image::of_elf(&ElfFile64::<Endianness, R>::parse(data).map_err(program)?, open),
        }
    }

    fn of_elf<'a, Elf: FileHeader<Endian = Endianness>, R: ReadRef<'a>>(
        file: &ElfFile<'a, Elf, R>,
        open: Option<&std::fs::File>,
    ) -> Result<Image> {
        let machine = Machine::of(file);
        let mut image = Image {
            machine,
            architecture: file.architecture(),
            regions: regions(file, open)?,
            segments: Vec::new(),
            symbols: Symbols::read(file),
            stripped: None,
            tables: Vec::new(),
            links: Vec::new(),
            slots: Vec::new(),
            imports: FxHashMap::default(),
            thread_local: None,
            runtime_types: OnceLock::new(),
            frames: None,
            kernel_table_entries: Vec::new(),
            function_store: None,
            build_id: file.build_id().ok().flatten().map(<[u8]>::to_vec),
        };
        image.regions.sort_by_key(|region| region.address);
        image.segments = file
            .segments()
            .map(|segment| {
                let (offset, size) = segment.file_range();
                Segment { offset, address: segment.address(), size, memory: segment.size() }
            })
            .collect();
        for section in file.sections() {
            let range = (section.address(), section.address().saturating_add(section.size()));
            match section.name() {
                Ok(".got" | ".got.plt") => {
                    image.tables.push(range);
                    image.links.push(range);
                }
                Ok(".eh_frame") => image.frames = Some(range),
                Ok(".data.rel.ro") => image.tables.push(range),
                Ok(".dynamic" | ".plt" | ".plt.got" | ".plt.sec") => image.links.push(range),
                _ => {}
            }
        }
        if machine == Machine::Other {
            return Ok(image);
        }
        image.read_slots(file);
        image.thread_local = thread_local(file);
        let section = |name: &str| {
            let section = file.section_by_name(name).filter(|section| section.size() <= BYTES_LIMIT)?;
            Some((section.address(), section.data().ok()?.to_vec()))
        };
        image.kernel_table_entries = kernel_tables::read(section, |address| image.is_code(address));
        Ok(image)
    }

    /// Sets the cache for this program's decoded functions, which [`Body::of_function`](super::Body::of_function)
    /// reads and adds to.
    pub fn set_function_store(&mut self, store: Box<dyn Store>) {
        self.function_store = Some(Arc::new(FunctionStore::new(store)));
    }

    /// Writes the program's functions that were decoded since the last call to its cache of decoded functions
    /// ([`set_function_store`](Self::set_function_store)); does nothing without one.
    pub fn keep_functions(&self) {
        self.function_store.iter().for_each(|store| store.keep());
    }

    /// Returns the store of the program's decoded functions.
    pub(super) fn function_store(&self) -> Option<&FunctionStore> {
        self.function_store.as_deref()
    }

    /// Reads the slots that dynamic relocations fill: addresses in the program itself, and the names of imported
    /// variables.
    fn read_slots<'a, Elf: FileHeader<Endian = Endianness>, R: ReadRef<'a>>(
        &mut self,
        file: &ElfFile<'a, Elf, R>,
    ) {
        use object::read::elf::{Rela, SectionHeader};
        let (endian, data, sections) = (file.endian(), file.data(), file.elf_section_table());
        let Ok(table) = sections.symbols(endian, data, elf::SHT_DYNSYM) else { return };
        let symbols = file.dynamic_symbol_table();
        let symbol = |index| symbols.as_ref().and_then(|table| table.symbol_by_index(index).ok());
        let relative = match self.machine {
            Machine::X86_64 => elf::R_X86_64_RELATIVE,
            Machine::Aarch64 => elf::R_AARCH64_RELATIVE,
            Machine::Other => return,
        };
        let of_dynamic = |section: &Elf::SectionHeader| {
            let (relocations, link) = section.rela(endian, data).ok()??;
            (link == table.section()).then_some(relocations)
        };
        for relocation in sections.iter().filter_map(of_dynamic).flatten() {
            let (place, addend): (u64, i64) =
                (relocation.r_offset(endian).into(), relocation.r_addend(endian).into());
            if relocation.r_type(endian, false) == relative {
                self.slots.push((place, addend as u64));
                continue;
            }
            let Some(symbol) = relocation.symbol(endian, false).and_then(symbol) else { continue };
            // where the loader puts the variables of a library's threads is not known
            if symbol.kind() == object::SymbolKind::Tls {
                continue;
            }
            if !symbol.is_undefined() {
                self.slots.push((place, symbol.address().wrapping_add(addend as u64)));
            } else if addend == 0
                // without the other file at link time the symbol has no type
                && matches!(symbol.kind(), object::SymbolKind::Data | object::SymbolKind::Unknown)
                && let Ok(name) = symbol.name()
            {
                self.imports.insert(place, name.to_owned());
            }
        }
        // of several at a place the last one is what is there in the end
        self.slots.reverse();
        self.slots.sort_by_key(|(place, _)| *place);
        self.slots.dedup_by_key(|(place, _)| *place);
    }

    /// Reads the contents of the section with this name from an open ELF file; `None` if there is no such section.
    pub fn section(file: &std::fs::File, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let data = object::ReadCache::new(file);
        let program = |error: object::Error| Error::Program(error.to_string());
        let elf = object::File::parse(&data).map_err(program)?;
        let Some(section) = elf.section_by_name(name).filter(|section| section.size() <= BYTES_LIMIT) else {
            return Ok(None);
        };
        Ok(Some(section.data().map_err(program)?.to_vec()))
    }

    /// Returns the entries of a kernel's tables about instructions in a range.
    pub(super) fn kernel_table_entries(&self, range: &Range<u64>) -> &[KernelTableEntry] {
        let start = self.kernel_table_entries.partition_point(|entry| entry.from < range.start);
        let end = self.kernel_table_entries.partition_point(|entry| entry.from < range.end);
        self.kernel_table_entries.get(start..end).unwrap_or(&[])
    }

    /// Returns the address and the contents of the section `.eh_frame`, the unwind tables; `None` without one.
    pub fn frames(&self) -> Option<(u64, Cow<'_, [u8]>)> {
        let (start, end) = self.frames?;
        let (_, bytes) = self.bytes(start, usize::try_from(end - start).ok()?)?;
        Some((start, bytes))
    }

    /// Returns the instruction set of the file's code.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Returns the name of the file's machine, such as `i386`, if its code is not decoded, so that no types are
    /// inferred; `None` for x86-64 and AArch64.
    pub fn undecoded(&self) -> Option<String> {
        (self.machine == Machine::Other).then(|| match self.architecture {
            Architecture::Aarch64 => "big-endian aarch64".to_owned(),
            Architecture::X86_64_X32 => "x32".to_owned(),
            Architecture::Unknown => "an unknown architecture".to_owned(),
            other => format!("{other:?}").to_lowercase(),
        })
    }

    /// Returns the file's GNU build-id; `None` if the linker gave it none.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.build_id.as_deref()
    }

    /// Returns the file's loadable segments (`PT_LOAD`).
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Converts an offset in the file to the address at which that byte is linked, or the zero in its place behind the
    /// data of the last mapped page, where variables without a value begin; `None` if no segment loads it.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let inside = |segment: &Segment| offset.checked_sub(segment.offset);
        let holds = |segment: &&Segment| inside(segment).is_some_and(|inside| inside < segment.size);
        let goes_on = |segment: &&Segment| {
            let end = segment.offset.saturating_add(segment.size);
            let page_end = end.checked_next_multiple_of(PAGE).unwrap_or(end);
            offset < page_end && inside(segment).is_some_and(|inside| inside < segment.memory)
        };
        let segment = self.segments.iter().find(holds).or_else(|| self.segments.iter().find(goes_on))?;
        Some(segment.address.wrapping_add(offset - segment.offset))
    }

    /// Returns the section of code or read-only data that contains an address; `None` if there is none.
    pub(crate) fn region(&self, address: u64) -> Option<&Region> {
        let index = self.regions.partition_point(|region| region.address <= address).checked_sub(1)?;
        Some(&self.regions[index]).filter(|region| region.contains(address))
    }

    /// Returns at most `most` bytes of code or read-only data at an address, with the section that contains them,
    /// at whose end they stop; `None` if there is none.
    pub(crate) fn bytes(&self, address: u64, most: usize) -> Option<(&Region, Cow<'_, [u8]>)> {
        let region = self.region(address)?;
        Some((region, region.bytes(address - region.address, most)?))
    }

    /// Returns `true` if an address is in an executable section of the file.
    pub fn is_code(&self, address: u64) -> bool {
        self.region(address).is_some_and(|region| region.code)
    }

    /// Returns `true` if an address is in the file's read-only data.
    pub(crate) fn is_constant(&self, address: u64) -> bool {
        self.region(address).is_some_and(|region| !region.code)
    }

    /// Returns `true` if an address is in a section of addresses that the linker fills in, such as the global offset
    /// table (GOT) or `.data.rel.ro`.
    pub(crate) fn is_table(&self, address: u64) -> bool {
        self.tables.iter().any(|(start, end)| (*start..*end).contains(&address))
    }

    /// Returns the address that the dynamic linker stores, by a relocation, at `place` in the program's data, such
    /// as in the GOT. `None` if no relocation to an address of this program is there.
    pub(crate) fn slot(&self, place: u64) -> Option<u64> {
        let index = self.slots.binary_search_by_key(&place, |(place, _)| *place).ok()?;
        Some(self.slots[index].1)
    }

    /// Returns the addresses in the program itself that the dynamic linker writes.
    pub(super) fn slots(&self) -> impl Iterator<Item = u64> {
        self.slots.iter().map(|(_, value)| *value)
    }

    /// Returns the regions, sorted by address.
    pub(super) fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Returns the name of another library's variable whose address the dynamic linker stores at `place` in the
    /// program's data; `None` if there is no such relocation.
    pub(crate) fn import(&self, place: u64) -> Option<&str> {
        self.imports.get(&place).map(String::as_str)
    }

    /// Returns `true` if an address is in a section that the linker generates, such as the GOT, so that no variable
    /// of the source is there.
    pub(crate) fn is_linker_generated(&self, address: u64) -> bool {
        self.links.iter().any(|(start, end)| (*start..*end).contains(&address))
    }

    /// Returns the file's function symbols, sorted by address.
    pub fn functions(&self) -> &[Symbol] {
        &self.symbols.sorted_symbols().functions
    }

    /// Returns the address of the symbol with this name, whatever it names; `None` if there is none.
    pub fn address_of_symbol(&self, name: &str) -> Option<u64> {
        self.symbols.address(name)
    }

    /// Returns the file's symbols of variables, sorted by address; thread-local variables are left out.
    pub fn data(&self) -> &[Symbol] {
        in_memory(&self.symbols.sorted_symbols().data)
    }

    /// Makes look-ups of variables use the symbols of `file`, the separate debug file of this stripped program.
    pub fn set_debug_symbols(&mut self, file: &Image) {
        self.stripped = Some(file.symbols.clone());
    }

    /// Returns the function symbol whose code contains an address; `None` if none does.
    pub fn function_at(&self, address: u64) -> Option<&Symbol> {
        covering(self.functions(), address)
    }

    /// Returns the code range of the function symbol that covers an address; `None` if none does. The range is
    /// empty if the symbol has no size.
    pub fn function_range_at(&self, address: u64) -> Option<Range<u64>> {
        covering_range(self.symbols.function_ranges(), address)
    }

    /// Returns the address range of the variable symbol that covers an address; `None` if none does. The range is
    /// empty if the symbol has no size.
    pub fn variable_range_at(&self, address: u64) -> Option<Range<u64>> {
        covering_range(self.symbols.variable_ranges(), address)
    }

    /// Returns the places in the program's data, by address, where the dynamic linker stores the given address.
    /// Linear in the number of such relocations.
    pub fn slots_with(&self, address: u64) -> impl Iterator<Item = u64> {
        self.slots.iter().filter(move |(_, value)| *value == address).map(|(place, _)| *place)
    }

    /// Returns the symbol of the variable whose bytes contain an address; `None` if none does.
    pub fn data_at(&self, address: u64) -> Option<&Symbol> {
        covering(self.data(), address)
    }

    /// Returns the symbol of the variable whose bytes contain an address; `Ok(None)` means that there is no
    /// variable. Fails with [`SymbolsMissing`] where `strip` may have removed its symbol.
    pub(crate) fn variable_at(&self, address: u64) -> std::result::Result<Option<&Symbol>, SymbolsMissing> {
        let symbols = self.stripped.as_ref().unwrap_or(&self.symbols).sorted_symbols();
        if !symbols.has_locals {
            return Err(SymbolsMissing);
        }
        let data = in_memory(&symbols.data);
        let direct = covering(data, address);
        // some symbols lie inside of others
        let before = data.partition_point(|symbol| symbol.address <= address);
        let holds = |symbol: &&Symbol| symbol.size != 0 && address - symbol.address < symbol.size;
        Ok(direct.or_else(|| data[..before].iter().rev().take(SYMBOLS_LOOKED_AT).find(holds)))
    }

    /// Returns `true` if the symbol table shows that a variable is a `static` of a function in another C file than
    /// `file`: the compiler numbered its name (`count.1`), and its symbol is listed under the other file. Code of
    /// `file` that uses its address then means another object.
    pub(crate) fn is_static_elsewhere(&self, variable: &Symbol, file: &str) -> bool {
        self.stripped.as_ref().unwrap_or(&self.symbols).is_static_elsewhere(variable.address, file)
    }

    /// Returns all symbol names of a variable that [`variable_at`](Self::variable_at) found: its own and its
    /// aliases.
    pub(crate) fn names_of<'s>(&'s self, variable: &'s Symbol) -> impl Iterator<Item = &'s SymbolName> {
        let aliases = &self.stripped.as_ref().unwrap_or(&self.symbols).sorted_symbols().aliases;
        let key = |symbol: &Symbol| (symbol.kind, symbol.address);
        let first = aliases.partition_point(|alias| key(alias) < key(variable));
        let others = aliases[first..].iter().take_while(move |alias| key(alias) == key(variable));
        std::iter::once(variable).chain(others).map(|symbol| &symbol.name)
    }

    /// Returns the symbols that may name the data at an address: the variable's symbol, and symbols without a type
    /// (labels of assembly code), of which several may share an address.
    pub(crate) fn labels_at(&self, address: u64) -> impl Iterator<Item = &Symbol> {
        let labels: &[Symbol] = match self.is_code(address) {
            true => &[],
            false => &self.symbols.sorted_symbols().labels,
        };
        let covering = covering(labels, address).map(|symbol| symbol.address);
        let first = covering.map_or(0, |start| labels.partition_point(|label| label.address < start));
        let same = labels[first..].iter().take_while(move |label| Some(label.address) == covering);
        self.data_at(address).filter(|_| !self.is_code(address)).into_iter().chain(same)
    }

    /// Returns the symbol of the thread-local variable at an offset in the program's block of thread-local storage;
    /// `None` if there is none.
    pub(crate) fn thread_local_at(&self, offset: u64) -> Option<&Symbol> {
        let all = &self.stripped.as_ref().unwrap_or(&self.symbols).sorted_symbols().data;
        covering(&all[in_memory(all).len()..], offset)
    }

    /// Returns the address of the type descriptors of a Go program (symbol `runtime.types`); `None` for other
    /// programs.
    pub fn runtime_types(&self) -> Option<u64> {
        *self.runtime_types.get_or_init(|| self.symbols.address("runtime.types"))
    }

    /// Converts an offset from the thread pointer to one in the program's block of thread-local storage; `None` if
    /// it is outside of the block.
    pub(crate) fn thread_local_offset(&self, from_pointer: i64) -> Option<u64> {
        let (size, align) = self.thread_local?;
        let offset = match self.machine {
            // the block lies before the pointer
            Machine::X86_64 => from_pointer.checked_add(i64::try_from(size).ok()?)?,
            // behind two words
            Machine::Aarch64 => from_pointer
                .checked_sub(i64::try_from(16_u64.checked_next_multiple_of(align.max(1))?).ok()?)?,
            Machine::Other => return None,
        };
        u64::try_from(offset).ok().filter(|offset| *offset < size)
    }
}

/// Returns the variables that are not thread-local.
fn in_memory(data: &[Symbol]) -> &[Symbol] {
    // kinds are sorted: data, then what threads have
    &data[..data.partition_point(|symbol| symbol.kind == SymbolKind::Data)]
}

fn covering_range(ranges: &[(u64, u64)], address: u64) -> Option<Range<u64>> {
    let index = ranges.partition_point(|(start, _)| *start <= address).checked_sub(1)?;
    let (start, size) = ranges[index];
    let range = start..start.saturating_add(size);
    let next = ranges.get(index + 1).map_or(u64::MAX, |(next, _)| *next);
    (address < if size == 0 { next } else { range.end }).then_some(range)
}

fn covering(symbols: &[Symbol], address: u64) -> Option<&Symbol> {
    let index = symbols.partition_point(|symbol| symbol.address <= address).checked_sub(1)?;
    let symbol = &symbols[index];
    let next = symbols.get(index + 1).map_or(u64::MAX, |next| next.address);
    let end = if symbol.size == 0 { next } else { symbol.address.saturating_add(symbol.size) };
    (address < end).then_some(symbol)
}

fn regions<'a, Elf: FileHeader<Endian = Endianness>, R: ReadRef<'a>>(
    file: &ElfFile<'a, Elf, R>,
    open: Option<&std::fs::File>,
) -> Result<Vec<Region>> {
    let mut left = BYTES_LIMIT;
    let mut sections = Vec::new();
    for section in file.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        let is_loaded = sh_flags.contains(elf::SHF_ALLOC) && section.kind() != SectionKind::UninitializedData;
        let code = sh_flags.contains(elf::SHF_EXECINSTR);
        if !is_loaded || (!code && sh_flags.contains(elf::SHF_WRITE)) {
            continue;
        }
        left = left
            .checked_sub(section.size())
            .ok_or(Error::Limit { what: "bytes of code and constants", limit: BYTES_LIMIT })?;
        sections.push((section, code));
    }
    let kept = match open.filter(|_| BYTES_LIMIT - left > SMALL) {
        Some(file) => Some(Arc::new(file.try_clone()?)),
        None => None,
    };
    let mut regions = Vec::new();
    for (section, code) in sections {
        let address = section.address();
        regions.push(match (open, &kept, section.file_range()) {
            (Some(file), kept, Some((offset, size))) => {
                let end = offset.checked_add(size).filter(|end| *end <= length(file));
                let size = end.map(|end| end - offset).ok_or_else(section_beyond_end)?;
                match kept {
                    Some(kept) => Region::in_file(address, kept, offset, size, code),
                    None => Region::new(address, read_at(file, offset, size as usize)?, code),
                }
            }
            _ => {
                let bytes = section.data().map_err(|error| Error::Program(error.to_string()))?;
                Region::new(address, bytes.to_vec(), code)
            }
        });
    }
    Ok(regions)
}

fn length(file: &std::fs::File) -> u64 {
    file.metadata().map_or(0, |data| data.len())
}

fn section_beyond_end() -> Error {
    Error::Program("a section beyond the end of the file".into())
}

/// Returns the size of the TLS block, rounded as the loader does, and its alignment.
fn thread_local<'a, Elf: FileHeader<Endian = Endianness>, R: ReadRef<'a>>(
    file: &ElfFile<'a, Elf, R>,
) -> Option<(u64, u64)> {
    use object::read::elf::ProgramHeader;
    let endian = file.endian();
    let header = file.elf_program_headers().iter().find(|header| header.p_type(endian) == elf::PT_TLS)?;
    let align = header.p_align(endian).into().max(1);
    Some((header.p_memsz(endian).into().checked_next_multiple_of(align)?, align))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn programs_of_32_bits_have_segments_and_symbols_and_no_decoded_code() {
        let folder = std::env::temp_dir();
        let name = |suffix: &str| folder.join(format!("tallyline-narrow-{}.{suffix}", std::process::id()));
        std::fs::write(name("c"), "int count; int get_count(void) { return count; }\n").expect("written");
        for (option, machine) in [("-m32", "i386"), ("-mx32", "x32")] {
            let mut compiler = Command::new("cc");
            compiler.args([option, "-O1", "-nostdlib", "-shared", "-o"]).arg(name("so")).arg(name("c"));
            if cfg!(not(target_arch = "x86_64")) || !compiler.output().is_ok_and(|made| made.status.success())
            {
                // that of -m32 is installed in the gate; x32 has no package beside compilers for other machines
                if option == "-m32" {
                    eprintln!("skipped: no compiler with {option}");
                }
                continue;
            }
            let bytes = std::fs::read(name("so")).expect("just made");
            let image = Image::new(&bytes[..], None).expect("an image");
            assert_eq!((image.machine(), image.undecoded().as_deref()), (Machine::Other, Some(machine)));
            let function = image.functions().iter().find(|symbol| symbol.name == "get_count").expect("it");
            assert_eq!(image.function_at(function.address + 1), Some(function));
            assert!(function.size > 1 && image.is_code(function.address));
            let code = image.segments().iter().find(|segment| segment.offset != 0).expect("a segment");
            assert_eq!(image.address_of(code.offset), Some(code.address));
            assert!(image.data().iter().any(|symbol| symbol.name == "count"));
            let refused =
                Image::parse(&bytes).map(|_| ()).expect_err("no analysis of other code").to_string();
            assert!(refused.ends_with(&format!("code of {machine} is not decoded")), "{refused}");
            // a file that ends early is an error, or has fewer symbols
            for end in (0..bytes.len()).step_by(16) {
                let image = Image::new(&bytes[..end], None);
                assert!(image.is_err() || image.is_ok_and(|image| image.functions().len() < 8));
            }
            std::fs::remove_file(name("so")).expect("removed");
        }
        std::fs::remove_file(name("c")).expect("removed");
    }

    #[test]
    fn variables_without_a_value_lie_behind_the_data_of_the_last_page() {
        let bytes = std::fs::read(std::env::current_exe().expect("a program")).expect("the program");
        let mut image = Image::parse(&bytes).expect("an ELF file");
        image.segments = vec![Segment { offset: 0x3000, address: 0x40_3000, size: 4, memory: 0x1080 }];
        assert_eq!(image.address_of(0x3003), Some(0x40_3003));
        assert_eq!(image.address_of(0x3080), Some(0x40_3080));
        assert_eq!(image.address_of(0x4000), None, "no page of the file");
        image.segments[0].memory = 0x40;
        assert_eq!(image.address_of(0x3080), None, "no variable");
        image.segments[0].size = u64::MAX;
        assert_eq!(image.address_of(0x2fff), None, "in front of a segment that no file can have");
    }

    #[test]
    fn ranges_of_functions_are_those_of_their_symbols() {
        // this very program
        let bytes = std::fs::read(std::env::current_exe().expect("a program")).expect("the program");
        let image = Image::parse(&bytes).expect("an ELF file");
        let asked = image.functions().iter().flat_map(|function| {
            let (start, size) = (function.address, function.size);
            [start.wrapping_sub(1), start, start.saturating_add(size / 2), start.saturating_add(size)]
        });
        let mut found = 0;
        for address in asked {
            let symbol = image.function_at(address);
            let range = symbol.map(|symbol| symbol.address..symbol.address.saturating_add(symbol.size));
            assert_eq!(image.function_range_at(address), range, "{address:#x}");
            found += usize::from(range.is_some());
        }
        assert!(found > 1000, "{found}");
    }
}
