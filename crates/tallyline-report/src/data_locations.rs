//! The data locations of samples, each once.

use super::index::{DataId, SymbolId};
use super::places::Place;
use rustc_hash::FxHashMap;

/// The data locations of samples, with their variables once those are looked up. The lists are as long as
/// `places`, or empty before the stage that fills them.
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
    /// Returns whether no sample has a data address.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Adds a location with its address in memory.
    pub(crate) fn push(&mut self, place: Place, recorded: u64) -> Option<DataId> {
        let id = DataId::from_position(self.places.len())?;
        self.places.push(place);
        self.recorded.push(recorded);
        Some(id)
    }

    /// Returns the file and the offset in it of each location.
    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    /// Returns the file and the offset in it.
    pub(crate) fn place(&self, id: DataId) -> Option<&Place> {
        self.places.get(id.position())
    }

    /// Returns the address in memory, as one of the samples has it.
    pub(crate) fn recorded(&self, id: DataId) -> u64 {
        self.recorded.get(id.position()).copied().unwrap_or(0)
    }

    /// Returns the address that the linker assigned.
    pub(crate) fn linked(&self, id: DataId) -> u64 {
        self.linked.get(id.position()).copied().unwrap_or(0)
    }

    /// Returns the variable, if variables were looked up.
    pub(crate) fn symbol(&self, id: DataId) -> Option<SymbolId> {
        self.symbols.get(id.position()).copied()
    }

    /// Sets the addresses that the linker assigned, one for each place.
    pub(crate) fn set_linked(&mut self, linked: Vec<u64>) {
        self.linked = linked;
    }

    /// Returns the place and the linked address of each location, once addresses are set.
    pub(crate) fn with_addresses(&self) -> impl Iterator<Item = (&Place, u64)> {
        self.places.iter().zip(self.linked.iter().copied())
    }

    /// Sets the variables, one for each place.
    pub(crate) fn set_symbols(&mut self, symbols: Vec<SymbolId>) {
        self.symbols = symbols;
    }
}

/// Collects data locations while samples are read.
#[derive(Default)]
pub(crate) struct DataCollector {
    list: DataLocations,
    ids: FxHashMap<Place, DataId>,
}

impl DataCollector {
    /// Returns the index of a location; stores its address when it is new.
    pub(crate) fn intern(&mut self, place: Place, recorded: u64) -> Option<DataId> {
        if let Some(id) = self.ids.get(&place) {
            return Some(*id);
        }
        let id = self.list.push(place, recorded)?;
        self.ids.insert(place, id);
        Some(id)
    }

    /// Returns the locations.
    pub(crate) fn finish(self) -> DataLocations {
        self.list
    }
}
