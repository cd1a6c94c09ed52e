//! Placement of bitfields: the rule of the System V ABIs, which gcc and clang follow.

/// A bitfield of a record, named or unnamed: its width, and what its type's size and alignment mean for where it can
/// lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bits {
    /// The width in bits; 0 starts a new unit (`int : 0`).
    pub(crate) width: u64,
    /// The bits of the declared type.
    pub(crate) unit: u64,
    /// The alignment of the declared type in bits; 1 where it is packed.
    pub(crate) align: u64,
    /// The alignment that was asked for, in bits; 1 where none was.
    pub(crate) asked: u64,
    /// `true` if it is packed: it may lie across units.
    pub(crate) packed: bool,
    /// `true` if it has a name. An unnamed bitfield does not align the struct.
    pub(crate) named: bool,
}

impl Bits {
    /// Returns the bit offset in the record at which the ABI places the bitfield if the bits before `position` are
    /// taken.
    pub(crate) fn start(&self, position: u64) -> u64 {
        if self.width == 0 {
            return position.next_multiple_of(self.unit_align());
        }
        let start = position.next_multiple_of(self.asked.max(1));
        if self.packed || self.fits(start) { start } else { start.next_multiple_of(self.unit_align()) }
    }

    /// Returns the bit offset in the record after the bitfield if the bits before `position` are taken.
    pub(crate) fn end(&self, position: u64) -> u64 {
        self.start(position) + self.width
    }

    /// Returns `true` if the bitfield, started at `start`, touches no more units of its alignment than its type has.
    fn fits(&self, start: u64) -> bool {
        let align = self.unit_align();
        (start + self.width).div_ceil(align) - start / align <= self.unit / align
    }

    fn unit_align(&self) -> u64 {
        self.align.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(width: u64, unit: u64, align: u64) -> Bits {
        Bits { width, unit, align, asked: 1, packed: false, named: true }
    }

    #[test]
    fn a_bitfield_does_not_lie_across_units_of_its_type() {
        assert_eq!(bits(5, 32, 32).start(30), 32);
        assert_eq!(bits(2, 32, 32).start(30), 30);
        assert_eq!(bits(5, 8, 8).start(4), 8);
        assert_eq!(Bits { packed: true, ..bits(5, 32, 32) }.start(30), 30);
        // i386: a long long takes two units of 4 bytes, wherever they start
        assert_eq!(bits(40, 64, 32).start(20), 20);
        assert_eq!(bits(60, 64, 32).start(20), 32);
    }

    #[test]
    fn no_bits_start_a_new_unit() {
        assert_eq!(bits(0, 32, 32).end(1), 32);
        assert_eq!(bits(0, 32, 32).end(32), 32);
    }
}
