//! The highest set bit of a number, which selects the bucket of a histogram.

/// Returns the number of the highest set bit, 0 to 63, of a value that is not 0.
///
/// On x86-64 code for any CPU has `bsr`, of 8 micro-operations and 4 cycles on AMD Zen to Zen 4, where `lzcnt` is one
/// of each (instruction tables of Agner Fog). Its encoding is that of `bsr` with a prefix that CPUs without `lzcnt`
/// ignore, so the one instruction counts from the one end or from the other, and its result for 1 tells which.
#[inline(always)]
pub(crate) fn highest_bit(value: u64) -> u32 {
    number(scan(value), scan(1))
}

/// Returns the number of a value's highest set bit from what an instruction returns for the value and for 1: the
/// number of zeros above that bit (63 for 1), or its number (0 for 1).
#[inline(always)]
const fn number(of_value: u32, of_one: u32) -> u32 {
    of_value ^ of_one
}

/// Returns the number of zeros above the highest set bit of a value that is not 0, or on CPUs without `lzcnt` the
/// number of that bit. Pure: loops keep the result for a constant.
#[cfg(all(target_arch = "x86_64", not(target_feature = "lzcnt"), not(miri)))]
#[inline(always)]
fn scan(value: u64) -> u32 {
    let found: u64;
    // SAFETY: a computation in registers, by either instruction; of 0, which callers do not have, `bsr` makes any number.
    unsafe {
        std::arch::asm!(
            "lzcnt {found}, {value}",
            value = in(reg) value,
            found = lateout(reg) found,
            options(pure, nomem, nostack),
        );
    }
    found as u32
}

/// Returns the number of zeros above the highest set bit.
#[cfg(not(all(target_arch = "x86_64", not(target_feature = "lzcnt"), not(miri))))]
#[inline(always)]
fn scan(value: u64) -> u32 {
    value.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_bit_of_each_length_is_found() {
        for bit in 0..64 {
            for value in [1 << bit, (1 << bit) | 1, u64::MAX >> (63 - bit)] {
                assert_eq!(highest_bit(value), bit, "{value:#x}");
            }
        }
    }

    #[test]
    fn either_instruction_gives_the_number_of_the_bit() {
        for value in (0..64).map(|bit| 1u64 << bit) {
            let (lzcnt, bsr) = (u64::leading_zeros, u64::ilog2);
            assert_eq!(number(lzcnt(value), lzcnt(1)), value.ilog2());
            assert_eq!(number(bsr(value), bsr(1)), value.ilog2());
        }
    }
}
