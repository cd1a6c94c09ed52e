//! Indices of the lists that reports are made of, and numbers that may be absent.

use std::num::NonZeroU32;

/// The number that stands for an absent value of a report's sort key, such as the CPU of a sample whose CPU is not
/// known.
pub(crate) const ABSENT: u64 = u32::MAX as u64;

/// Defines the index of an element of one list. An `Option` of it takes four bytes.
macro_rules! index_types {
    ($($(#[$doc:meta])* $vis:vis $name:ident)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis struct $name(NonZeroU32);

        #[allow(dead_code)] // each list uses a part of it
        impl $name {
            /// Returns the index of the element at a position; none past the last that 32 bits can say.
            $vis fn from_position(position: usize) -> Option<$name> {
                u32::try_from(position).ok()?.checked_add(1).and_then(NonZeroU32::new).map($name)
            }

            /// Returns the index of the element at a position in a list that has as many elements as there are
            /// samples at most, which are fewer than 32 bits can say.
            pub(crate) fn of(position: usize) -> $name {
                $name::from_position(position).unwrap_or($name(NonZeroU32::MAX))
            }

            /// Returns the position of its element.
            $vis fn position(self) -> usize {
                self.0.get() as usize - 1
            }
        }
    )* };
}

index_types! {
    /// The index of a data location, see [`DataLocations`](super::data_locations::DataLocations).
    pub(crate) DataId
    /// The index of a sample's recorded registers, see [`SampleRegisters`](super::registers::SampleRegisters).
    pub(crate) RegistersId
    /// The index of a code place, see [`Profile::place`](super::Profile::place).
    pub PlaceId
    /// The index of a function or variable, see [`Profile::symbol`](super::Profile::symbol).
    pub SymbolId
    /// The index of a type among those of all programs.
    pub JoinedId
}

/// Converts an optional number (a CPU's, or a list index of a file, function, …) to the value of a report's sort key:
/// the number, or [`ABSENT`].
pub(crate) fn key_value(position: Option<usize>) -> u64 {
    position.map_or(ABSENT, |position| position as u64)
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
        assert_eq!(DataId::from_position(ABSENT as usize), None);
        assert_eq!(DataId::from_position(usize::MAX), None);
    }
}
