//! Places of code, each once: in a file, with the address that the linker assigned, the function and the line.

use super::index::{PlaceId, SymbolId};
use super::names::NameId;
use rustc_hash::FxHashMap;
use tallyline_perf_data::sample::CpuMode;
use tallyline_perf_data::spaces::{AddressSpaces, DsoId, DsoKind, ResolvedAddress};

/// The part of an instruction that samples are charged to, or the reason why they are charged to none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum PlaceKind {
    /// The instruction, by its first operand in memory.
    #[default]
    Instruction,
    /// Its second operand in memory, as of a string move.
    SecondOperand,
    /// The instruction for those of its samples whose data address or registers tell what they access.
    ByEvidence,
    /// The return of a function that was called, or the call of this one, which ran right before.
    CallOrReturn,
    /// An indirect call of which is not known which.
    IndirectCall,
}

/// A place in a program: a mapped file and an offset in it.
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

/// The function and source line that a code place is in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resolved {
    /// The address in the file as the linker gave it; the offset where the file is not there.
    pub address: u64,
    /// The function, if functions were looked up, see [`Profile::symbol`](super::Profile::symbol).
    pub symbol: Option<SymbolId>,
    /// Source file, and file with line: `file.c`, `file.c:12`.
    pub(crate) source_file: NameId,
    /// The line.
    pub source_line: NameId,
}

/// The distinct code places of samples. The lists are as long as `places`, or empty before the stage that
/// fills them.
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
    /// Returns the number of distinct code places.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns each code place with its index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (PlaceId, &Place)> {
        (0..).map(PlaceId::of).zip(&self.places)
    }

    /// Returns each code place with its index and the address that the linker gave it, once those are set.
    pub(crate) fn linked(&self) -> impl Iterator<Item = (PlaceId, &Place, u64)> {
        self.iter().zip(&self.addresses).map(|((id, place), address)| (id, place, *address))
    }

    /// Returns the code place with an id; ids come from here, and no place is ever taken away.
    pub(crate) fn get(&self, id: PlaceId) -> &Place {
        &self.places[id.position()]
    }

    /// Returns the address that the linker gave a code place, once addresses are set; 0 before.
    pub(crate) fn address(&self, id: PlaceId) -> u64 {
        self.addresses.get(id.position()).copied().unwrap_or(0)
    }

    /// Returns the function and source line of a code place, as far as they are known.
    pub(crate) fn resolved(&self, id: PlaceId) -> Resolved {
        let (source_file, source_line) = self.lines.get(id.position()).copied().unwrap_or_default();
        let symbol = self.symbols.get(id.position()).copied();
        Resolved { address: self.address(id), symbol, source_file, source_line }
    }

    /// Sets the addresses that the linker gave the code places, one for each.
    pub(crate) fn set_addresses(&mut self, addresses: Vec<u64>) {
        self.addresses = addresses;
    }

    /// Adds a code place that samples are charged to, with the address that the linker gave it.
    pub(crate) fn push(&mut self, place: Place, address: u64) -> PlaceId {
        self.places.push(place);
        self.addresses.push(address);
        PlaceId::of(self.places.len() - 1)
    }

    /// Sets the functions of the code places, one for each.
    pub(crate) fn set_symbols(&mut self, symbols: Vec<SymbolId>) {
        self.symbols = symbols;
    }

    /// Sets the source files and lines of the code places, one of each for each place.
    pub(crate) fn set_lines(&mut self, lines: Vec<(NameId, NameId)>) {
        self.lines = lines;
    }
}

/// Collector of the distinct code places of samples, while samples are read.
#[derive(Default)]
pub(crate) struct PlaceCollector {
    list: CodePlaces,
    ids: FxHashMap<Place, PlaceId>,
}

impl PlaceCollector {
    /// Returns the index of a code place, which is added if it is new.
    pub(crate) fn intern(&mut self, place: Place) -> PlaceId {
        *self.ids.entry(place).or_insert_with(|| {
            self.list.places.push(place);
            PlaceId::of(self.list.places.len() - 1)
        })
    }

    /// Returns the distinct code places of samples.
    pub(crate) fn finish(self) -> CodePlaces {
        self.list
    }
}

/// Returns the file that is mapped at an address of a process, and the offset in it.
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
