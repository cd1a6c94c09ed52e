//! Places of code and data, each once.

use super::index::NONE;
use rustc_hash::FxHashMap;
use tallyline_perf_data::sample::CpuMode;
use tallyline_perf_data::spaces::{AddressSpaces, DsoKind, ResolvedAddress};

/// A place in a program's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file, as an index into [`Profile::dsos`](super::Profile::dsos); [`NONE`] where nothing was mapped.
    pub dso: u32,
    /// The offset in the file, see [`DsoKind`]; the address without a file.
    pub offset: u64,
    /// The mode that the CPU ran in.
    pub mode: CpuMode,
    /// The process, where the code has no file; else 0.
    pub pid: i32,
}

/// Places, each once.
#[derive(Default)]
pub(super) struct Places {
    pub(super) list: Vec<Place>,
    ids: FxHashMap<Place, u32>,
}

impl Places {
    /// Returns the index of a place.
    pub(super) fn intern(&mut self, place: Place) -> u32 {
        *self.ids.entry(place).or_insert_with(|| {
            self.list.push(place);
            (self.list.len() - 1) as u32
        })
    }
}

/// Returns the place of an address, with the file that is mapped there.
pub(super) fn place_of(
    spaces: &AddressSpaces,
    location: Option<ResolvedAddress>,
    pid: i32,
    mode: CpuMode,
    address: u64,
) -> Place {
    match location {
        Some(found) => {
            let has_file = spaces.dso(found.dso()).kind() != DsoKind::Anonymous;
            Place {
                dso: found.dso().index(),
                offset: found.offset(),
                mode,
                pid: if has_file { 0 } else { pid },
            }
        }
        None => Place { dso: NONE, offset: address, mode, pid: 0 },
    }
}
