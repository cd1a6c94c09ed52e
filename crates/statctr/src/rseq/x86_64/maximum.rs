//! `raise` of the specification for x86-64.

use super::{asm, offset_of_table};

/// Raises the current CPU's word of a maximum to `value` in an rseq critical section, if it is smaller: the first of
/// the two words that `base` is the home address of, found by the distances from home words in `table`. Returns
/// `false`, with nothing done, if the epoch (time between two resets) is no longer `number`, rseq is not in use, the
/// CPU has no words yet, or the kernel aborted the section. (`raise` of the specification.)
///
/// # Safety
/// The contract is that of [`add`](super::add), for the two words at `base`, which are those of `number`;
/// `epoch` leads to a live word.
#[inline(always)]
pub(crate) unsafe fn raise(
    base: *mut u8,
    table: *const u8,
    epoch: *const u64,
    number: u64,
    value: u64,
) -> bool {
    // SAFETY: `table` is the caller's.
    let area = unsafe { offset_of_table(table) };
    if area == 0 {
        return false;
    }
    // SAFETY: as in `add`. The store before the commit goes to a maximum that nobody reads, because the epoch
    // beside it is not the current one.
    unsafe {
        section!(
            prepare {}
            check {}
            body {
                "cmp {number}, qword ptr [{epoch}]",
                "jne {slow}",
                "mov {stored}, {value}",
                "cmp {number}, qword ptr [{t} + 8]",
                "jne 25f",
                "cmp {value}, qword ptr [{t}]",
                "jbe 22f",
                "jmp 26f",
                "25:",
                "mov qword ptr [{t}], {value}",
                "mov {stored}, {number}",
                "add {t}, 8",
                "26:" ;
                commit "mov qword ptr [{t}], {stored}"
            }
            cleanup {}
            area = in(reg) area,
            table = in(reg) table,
            base = in(reg) base,
            epoch = in(reg) epoch,
            number = in(reg) number,
            value = in(reg) value,
            t = out(reg) _,
            stored = out(reg) _,
        );
    }
    true
}
