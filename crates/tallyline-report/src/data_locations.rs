//! The data locations of samples, each once.

use super::index::{DataId, SymbolId};
use super::places::Place;
use rustc_hash::FxHashMap;

/// The distinct data locations that samples accessed (file and offset, or plain address), with their linked
/// addresses and variables once later stages have filled them in.
#[derive(Clone, Debug, Default)]
pub(crate) struct DataLocations {
    places: Vec<Place>,
    // the address in memory, as one sample has it
    recorded: Vec<u64>,
    // the address that the linker assigned
    linked: Vec<u64>,
    symbols: Vec<SymbolId>,
}

impl DataLocations {
    /// Returns `true` if no sample has a data address.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Adds a data location (file and offset, or plain address) and the address that a sample has for it, and returns
    /// its id; `None` if 32 bits cannot number it.
    pub(crate) fn push(&mut self, place: Place, recorded: u64) -> Option<DataId> {
        let id = DataId::from_position(self.places.len())?;
        self.places.push(place);
        self.recorded.push(recorded);
        Some(id)
    }

    /// Returns the mapped file and offset (or plain address) of each data location that samples accessed, by id.
    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    /// Returns the mapped file and offset (or plain address) of a data location that samples accessed; `None` for an
    /// unknown id.
    pub(crate) fn place(&self, id: DataId) -> Option<&Place> {
        self.places.get(id.position())
    }

    /// Returns the run-time address of a data location (file and offset), as the first sample that accessed it has it.
    pub(crate) fn recorded(&self, id: DataId) -> u64 {
        self.recorded.get(id.position()).copied().unwrap_or(0)
    }

    /// Returns the linked address of a data location (file and offset), as in its file's symbol table; 0 before these
    /// are set.
    pub(crate) fn linked(&self, id: DataId) -> u64 {
        self.linked.get(id.position()).copied().unwrap_or(0)
    }

    /// Returns the variable at a data location (file and offset); `None` if variables were not looked up.
    pub(crate) fn symbol(&self, id: DataId) -> Option<SymbolId> {
        self.symbols.get(id.position()).copied()
    }

    /// Sets the linked addresses (as in the files' symbol tables) of all data locations that samples accessed, by id.
    pub(crate) fn set_linked_addresses(&mut self, linked: Vec<u64>) {
        self.linked = linked;
    }

    /// Returns each data location (file and offset) that samples accessed with its linked address; empty before these
    /// are set.
    pub(crate) fn with_addresses(&self) -> impl Iterator<Item = (&Place, u64)> {
        self.places.iter().zip(self.linked.iter().copied())
    }

    /// Sets the variable at each data location (file and offset) that samples accessed, by id.
    pub(crate) fn set_symbols(&mut self, symbols: Vec<SymbolId>) {
        self.symbols = symbols;
    }
}

/// Builder of [`DataLocations`]: gives each distinct data location (file and offset) one id while samples are read.
#[derive(Default)]
pub(crate) struct DataCollector {
    list: DataLocations,
    ids: FxHashMap<Place, DataId>,
}

impl DataCollector {
    /// Returns the id of a data location (file and offset), which is added on first use with its run-time address;
    /// `None` if 32 bits cannot number it.
    pub(crate) fn intern(&mut self, place: Place, recorded: u64) -> Option<DataId> {
        if let Some(id) = self.ids.get(&place) {
            return Some(*id);
        }
        let id = self.list.push(place, recorded)?;
        self.ids.insert(place, id);
        Some(id)
    }

    /// Returns the collected data locations (files and offsets) that samples accessed.
    pub(crate) fn finish(self) -> DataLocations {
        self.list
    }
}
