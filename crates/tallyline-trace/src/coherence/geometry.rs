//! The size of the modelled machine.

/// The most cache lines that all caches together may hold; 48 bytes of memory each.
const ENTRIES_LIMIT: u64 = 1 << 24;

/// The shape of a simulated machine: its number of cores, and the size, associativity and line size of each core's
/// cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    cores: u16,
    line_bits: u32,
    sets: u32,
    ways: u32,
}

impl Geometry {
    /// Describes a simulated machine of `cores` cores, each with a cache of `size` bytes in lines of `line` bytes,
    /// `ways` lines in a set.
    ///
    /// # Errors
    /// A sentence that says why no cache has these sizes.
    pub fn new(cores: u16, line: u32, size: u64, ways: u32) -> Result<Self, String> {
        if cores == 0 {
            return Err("a machine has at least one core".into());
        }
        if !line.is_power_of_two() || !(8..=4096).contains(&line) {
            return Err(format!("lines of {line} bytes: a power of two from 8 to 4096 is wanted"));
        }
        let set = u64::from(line) * u64::from(ways);
        if set != 0 && size.is_multiple_of(set) && !(size / set).is_power_of_two() {
            return Err(format!(
                "a cache of {size} bytes in {ways} ways of lines of {line}: the number of sets, {size} / ({ways} × \
                 {line}), must be a power of two"
            ));
        }
        Self::with_any_sets(cores, line, size, ways)
    }

    /// Describes a simulated machine as [`new`](Self::new) does, but allows a number of sets that is no power of
    /// two, as the last-level caches of some processors have.
    pub fn with_any_sets(cores: u16, line: u32, size: u64, ways: u32) -> Result<Self, String> {
        if !line.is_power_of_two() || !(8..=4096).contains(&line) {
            return Err(format!("lines of {line} bytes: a power of two from 8 to 4096 is wanted"));
        }
        let set = u64::from(line) * u64::from(ways);
        if ways == 0 || size == 0 || !size.is_multiple_of(set) {
            return Err(format!(
                "a cache of {size} bytes in {ways} ways of lines of {line}: expected a multiple of {ways} × {line}"
            ));
        }
        let sets = u32::try_from(size / set).map_err(|_| format!("a cache of {size} bytes is too large"))?;
        let entries = u64::from(cores) * u64::from(sets) * u64::from(ways);
        if entries > ENTRIES_LIMIT {
            return Err(format!(
                "{cores} caches of {size} bytes are {entries} lines: the model holds {ENTRIES_LIMIT}"
            ));
        }
        Ok(Self { cores, line_bits: line.trailing_zeros(), sets, ways })
    }

    /// Returns the number of simulated cores.
    pub fn cores(self) -> u16 {
        self.cores
    }

    /// Returns the size of a simulated cache line in bytes.
    pub fn line(self) -> u32 {
        1 << self.line_bits
    }

    /// Returns the size of each core's simulated cache in bytes.
    pub fn size(self) -> u64 {
        (u64::from(self.sets) * u64::from(self.ways)) << self.line_bits
    }

    /// Returns the associativity of a simulated cache: the number of lines in a set.
    pub fn ways(self) -> u32 {
        self.ways
    }

    /// Returns the number of sets of each core's simulated cache.
    pub(crate) fn sets(self) -> u32 {
        self.sets
    }

    /// Returns the line of an address.
    #[inline]
    pub(super) fn line_of(self, address: u64) -> u64 {
        address >> self.line_bits
    }

    /// Returns the bytes of a line that an access touches, one bit each; a bit is more than a byte where a
    /// line has more than 64.
    #[inline]
    pub(super) fn byte_mask(self, offset: u64, size: u64) -> u64 {
        let granule = self.line_bits.saturating_sub(6);
        let (first, last) = (offset >> granule, (offset + size - 1) >> granule);
        (u64::MAX >> (63 - (last - first))) << first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_has_a_power_of_two_of_sets() {
        let ok = Geometry::new(8, 64, 1 << 20, 16).expect("1024 sets");
        assert_eq!((ok.sets(), ok.line(), ok.size(), ok.ways()), (1024, 64, 1 << 20, 16));
        assert!(Geometry::new(1, 64, 48 << 10, 12).is_ok(), "64 sets of 12");
        for (cores, line, size, ways) in [
            (0, 64, 4096, 4),
            (1, 48, 4096, 4),
            (1, 4, 4096, 4),
            (1, 64, 4096, 0),
            (1, 64, 0, 4),
            (1, 64, 4096 + 64, 4),
            (1, 64, 3 * 4096, 4),
            (u16::MAX, 64, 1 << 30, 16),
        ] {
            assert!(Geometry::new(cores, line, size, ways).is_err(), "{cores} {line} {size} {ways}");
        }
    }

    #[test]
    fn a_bit_of_what_is_touched_is_a_byte_or_its_share_of_a_large_line() {
        let geometry = Geometry::new(1, 64, 4096, 4).expect("a cache");
        assert_eq!(geometry.byte_mask(0, 64), u64::MAX);
        assert_eq!(geometry.byte_mask(8, 8), 0xff00);
        assert_eq!(geometry.byte_mask(63, 1), 1 << 63);
        let large = Geometry::new(1, 128, 8192, 4).expect("a cache");
        assert_eq!(large.byte_mask(0, 128), u64::MAX);
        assert_eq!(large.byte_mask(8, 8), 0xf0);
        assert_eq!(large.byte_mask(127, 1), 1 << 63);
    }
}
