//! The data locations of samples, each once.

use super::index::{DataId, SymbolId};
use super::places::Place;
use rustc_hash::FxHashMap;

/// The distinct places in memory that samples accessed (data addresses), with their variables once those are
/// looked up. The lists are as long as `places`, or empty before the stage that fills them.
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

    /// Adds a place in memory that samples accessed, with its address.
    pub(crate) fn push(&mut self, place: Place, recorded: u64) -> Option<DataId> {
        let id = DataId::from_position(self.places.len())?;
        self.places.push(place);
        self.recorded.push(recorded);
        Some(id)
    }

    /// Returns, for each accessed place in memory, the mapped file and the offset in it.
    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    /// Returns the mapped file, and the offset in it, of an accessed place in memory.
    pub(crate) fn place(&self, id: DataId) -> Option<&Place> {
        self.places.get(id.position())
    }

    /// Returns the address of an accessed place in memory, as one of the samples has it.
    pub(crate) fn recorded(&self, id: DataId) -> u64 {
        self.recorded.get(id.position()).copied().unwrap_or(0)
    }

    /// Returns the address that the linker gave to an accessed place in memory.
    pub(crate) fn linked(&self, id: DataId) -> u64 {
        self.linked.get(id.position()).copied().unwrap_or(0)
    }

    /// Returns the variable at an accessed place in memory, if variables were looked up.
    pub(crate) fn symbol(&self, id: DataId) -> Option<SymbolId> {
        self.symbols.get(id.position()).copied()
    }

    /// Sets the addresses that the linker gave to the accessed places in memory, one for each.
    pub(crate) fn set_linked_addresses(&mut self, linked: Vec<u64>) {
        self.linked = linked;
    }

    /// Returns each accessed place in memory with the address that the linker gave it, once these are set.
    pub(crate) fn with_addresses(&self) -> impl Iterator<Item = (&Place, u64)> {
        self.places.iter().zip(self.linked.iter().copied())
    }

    /// Sets the variables at the accessed places in memory, one for each.
    pub(crate) fn set_symbols(&mut self, symbols: Vec<SymbolId>) {
        self.symbols = symbols;
    }
}

/// Collector of the distinct places in memory that samples accessed, while samples are read.
#[derive(Default)]
pub(crate) struct DataCollector {
    list: DataLocations,
    ids: FxHashMap<Place, DataId>,
}

impl DataCollector {
    /// Returns the index of a place in memory that a sample accessed; stores its address when the place is
    /// new.
    pub(crate) fn intern(&mut self, place: Place, recorded: u64) -> Option<DataId> {
        if let Some(id) = self.ids.get(&place) {
            return Some(*id);
        }
        let id = self.list.push(place, recorded)?;
        self.ids.insert(place, id);
        Some(id)
    }

    /// Returns the distinct places in memory that samples accessed.
    pub(crate) fn finish(self) -> DataLocations {
        self.list
    }
}
