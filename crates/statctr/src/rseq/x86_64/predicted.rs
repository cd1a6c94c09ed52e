//! `add_predicted` of the specification for x86-64.
//!
//! The word's address is made before the section, of two words that no other load leads to; the CPU's number and its
//! table entry only decide a branch. The loads behind an update of an unknown address wait on Zen 3, about half of what
//! the loads take that lead to it: in a loop of three, four and six such loads and an addition to memory 2.5, 3.7 and
//! 6.3 cycles, where the loads alone take 1.2, 1.8 and 3.1.

use super::asm;

/// Support for predicting the address of a CPU's word of a counter: `true`, as the target's critical sections compare a
/// predicted distance from the counter's home word (which belongs to no CPU) instead of waiting for the table's entry.
pub(crate) const CAN_PREDICT: bool = true;

macro_rules! define_add_predicted {
    ($(#[$doc:meta])* $name:ident, $commit:expr $(, $value:ident)?) => {
        $(#[$doc])*
        ///
        /// Returns `false`, with nothing added, if the CPU's words are elsewhere, it has none yet, or the kernel
        /// aborted the section.
        ///
        /// # Safety
        /// The contract is that of [`add`](super::add). `area` is what [`offset_of_table`](super::offset_of_table)
        /// returns for `table`, and not 0; `displacement` is not 0, as the entry of a CPU that may not count is.
        #[inline(always)]
        pub(crate) unsafe fn $name(
            area: usize,
            base: *mut u8,
            table: *const u8,
            displacement: usize
            $(, $value: u64)?
        ) -> bool {
            // SAFETY: as in `add`. The word is the CPU's whose number was read, as its entry is compared; a
            // displacement that is no entry's makes an address that is never used.
            unsafe {
                section_by!(
                    prepare {}
                    address { "cmp {t}, {displacement}", "jne {slow}" }
                    body { ; commit $commit }
                    cleanup {}
                    area = in(reg) area,
                    table = in(reg) table,
                    displacement = in(reg) displacement,
                    word = in(reg) base.wrapping_add(displacement),
                    $($value = in(reg) $value,)?
                    t = out(reg) _,
                );
            }
            true
        }
    };
}

define_add_predicted!(
    /// Adds `value` to the counter's word at `displacement` from `base` in a critical section, if that is the current
    /// CPU's (`add_predicted` of the specification).
    add_predicted, "add qword ptr [{word}], {value}", value
);
define_add_predicted!(
    /// Adds 1 to the counter's word at `displacement` from `base` in a critical section, if that is the current CPU's
    /// (`add_predicted` of the specification).
    inc_predicted, "add qword ptr [{word}], 1"
);
define_add_predicted!(
    /// Subtracts 1 from the counter's word at `displacement` from `base` in a critical section, if that is the current
    /// CPU's (`add_predicted` of the specification).
    dec_predicted, "add qword ptr [{word}], -1"
);
