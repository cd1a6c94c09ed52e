//! Indices and numbers that may be absent.

use std::num::NonZeroU32;

/// The index or number that stands for a CPU, place or time that the recording does not have.
pub const NONE: u32 = u32::MAX;

/// Defines the index of an element of one list. An `Option` of it takes four bytes.
macro_rules! index_types {
    ($($(#[$doc:meta])* $name:ident)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) struct $name(NonZeroU32);

        impl $name {
            /// Returns the index of the element at a position; none past the last that 32 bits can say.
            pub(crate) fn from_position(position: usize) -> Option<$name> {
                u32::try_from(position).ok()?.checked_add(1).and_then(NonZeroU32::new).map($name)
            }
        }
    )* };
}

index_types! {
    /// The index of a data location, see [`DataLocations`](super::data_locations::DataLocations).
    DataId
    /// The index of a sample's recorded registers, see [`SampleRegisters`](super::registers::SampleRegisters).
    RegistersId
}

impl DataId {
    /// Returns the position of its location.
    pub(crate) fn position(self) -> usize {
        self.0.get() as usize - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absence_takes_no_memory_and_positions_survive() {
        assert_eq!(size_of::<Option<DataId>>(), 4);
        for position in [0, 1, 0xffff, u32::MAX as usize - 1] {
            assert_eq!(DataId::from_position(position).map(DataId::position), Some(position));
        }
        // the value of rows without an address
        assert_eq!(DataId::from_position(NONE as usize), None);
        assert_eq!(DataId::from_position(usize::MAX), None);
    }
}
