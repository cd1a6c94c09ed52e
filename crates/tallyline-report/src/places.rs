//! Places of code, each once: in a file, with the address that the linker assigned, the function and the line.

use super::index::{PlaceId, SymbolId};
use super::names::NameId;
use rustc_hash::FxHashMap;
use tallyline_perf_data::sample::CpuMode;
use tallyline_perf_data::spaces::{AddressSpaces, DsoId, DsoKind, ResolvedAddress};

/// The part of an instruction that a sample is charged to (first or second memory operand), or the reason why no
/// instruction can be named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum PlaceKind {
    /// The instruction, by its first operand in memory.
    #[default]
    Instruction,
    /// The instruction, by its second operand in memory, as of a string move.
    SecondOperand,
    /// The instruction for those of its samples whose data address or registers tell what they access.
    ByEvidence,
    /// The return of a function that was called, or the call of this one, which ran right before.
    CallOrReturn,
    /// An indirect call that is not known, one of several.
    IndirectCall,
}

/// A location in a program: a mapped file and an offset in it, or an address in memory that has no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file; none where nothing was mapped.
    pub dso: Option<DsoId>,
    /// The offset in the file, see [`DsoKind`]; the address without a file.
    pub offset: u64,
    /// The mode that the CPU ran in.
    pub mode: CpuMode,
    /// The process, where the code has no file.
    pub pid: Option<i32>,
    /// The part that samples are charged to.
    pub(crate) kind: PlaceKind,
}

/// The function, source line and linked address of a code place (file and offset of code).
#[derive(Clone, Copy, Debug, Default)]
pub struct Resolved {
    /// The address in the file as the linker gave it; the offset where the file is not there.
    pub address: u64,
    /// The function, if functions were looked up, see [`Profile::symbol`](super::Profile::symbol).
    pub symbol: Option<SymbolId>,
    /// The source file, such as `file.c`.
    pub(crate) source_file: NameId,
    /// The source file with the line, such as `file.c:12`.
    pub source_line: NameId,
}

/// The distinct code places (file and offset) of samples, by id, with linked addresses, functions and source lines
/// once later stages have filled them in.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodePlaces {
    places: Vec<Place>,
    // the addresses that the linker assigned
    addresses: Vec<u64>,
    symbols: Vec<SymbolId>,
    // the source file, and the file with the line
    lines: Vec<(NameId, NameId)>,
}

impl CodePlaces {
    /// Returns the number of distinct code places (file and offset of code).
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns all code places (files and offsets of code) with their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (PlaceId, &Place)> {
        (0..).map(PlaceId::of).zip(&self.places)
    }

    /// Returns all code places (files and offsets of code) with their ids and linked addresses; empty before these are
    /// set.
    pub(crate) fn linked(&self) -> impl Iterator<Item = (PlaceId, &Place, u64)> {
        self.iter().zip(&self.addresses).map(|((id, place), address)| (id, place, *address))
    }

    /// Returns the code place (file and offset of code) with an id. Ids come from this list, which never shrinks.
    pub(crate) fn get(&self, id: PlaceId) -> &Place {
        &self.places[id.position()]
    }

    /// Returns the linked address of a code place (file and offset of code), as in its file's symbol table; 0 before
    /// these are set.
    pub(crate) fn address(&self, id: PlaceId) -> u64 {
        self.addresses.get(id.position()).copied().unwrap_or(0)
    }

    /// Returns the function, source line and linked address of a code place (file and offset of code), as far as they
    /// have been looked up.
    pub(crate) fn resolved(&self, id: PlaceId) -> Resolved {
        let (source_file, source_line) = self.lines.get(id.position()).copied().unwrap_or_default();
        let symbol = self.symbols.get(id.position()).copied();
        Resolved { address: self.address(id), symbol, source_file, source_line }
    }

    /// Sets the linked addresses of all code places (files and offsets of code), by id.
    pub(crate) fn set_addresses(&mut self, addresses: Vec<u64>) {
        self.addresses = addresses;
    }

    /// Adds a code place (file and offset of code) with its linked address, for samples that are charged to another
    /// instruction than their own, and returns its id.
    pub(crate) fn push(&mut self, place: Place, address: u64) -> PlaceId {
        self.places.push(place);
        self.addresses.push(address);
        PlaceId::of(self.places.len() - 1)
    }

    /// Sets the functions of all code places (files and offsets of code), by id.
    pub(crate) fn set_symbols(&mut self, symbols: Vec<SymbolId>) {
        self.symbols = symbols;
    }

    /// Sets the source file (`file.c`) and line (`file.c:12`) of all code places (files and offsets of code), by id.
    pub(crate) fn set_lines(&mut self, lines: Vec<(NameId, NameId)>) {
        self.lines = lines;
    }
}

/// Builder of [`CodePlaces`]: gives each distinct code place (file and offset of code) one id while samples are read.
#[derive(Default)]
pub(crate) struct PlaceCollector {
    list: CodePlaces,
    ids: FxHashMap<Place, PlaceId>,
}

impl PlaceCollector {
    /// Returns the id of a code place (file and offset of code), which is added on first use.
    pub(crate) fn intern(&mut self, place: Place) -> PlaceId {
        *self.ids.entry(place).or_insert_with(|| {
            self.list.places.push(place);
            PlaceId::of(self.list.places.len() - 1)
        })
    }

    /// Returns the collected code places (files and offsets of code).
    pub(crate) fn finish(self) -> CodePlaces {
        self.list
    }
}

/// Converts a sampled address to a place: the mapped file and offset in `location`, else the bare address in the
/// process.
pub(crate) fn place_of(
    spaces: &AddressSpaces,
    location: Option<ResolvedAddress>,
    pid: i32,
    mode: CpuMode,
    address: u64,
) -> Place {
    let kind = PlaceKind::Instruction;
    match location {
        Some(found) => {
            let has_file = spaces.dso(found.dso()).kind() != DsoKind::Anonymous;
            let pid = (!has_file).then_some(pid);
            Place { dso: Some(found.dso()), offset: found.offset(), mode, pid, kind }
        }
        None => Place { dso: None, offset: address, mode, pid: None, kind },
    }
}
