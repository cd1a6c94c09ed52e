//! `add_float` of the specification for x86-64.

use super::{asm, offset_of_table};

/// Adds `value` to the current CPU's sum of a floating-point gauge in an rseq critical section; a sum of another epoch
/// (time between two sets of the gauge) than `*epoch` is replaced by `value`. `base` is the gauge's pair of words (sum,
/// epoch) that belongs to no CPU; `table`, tagged, has the distance from there to each CPU's pair. Returns `false`,
/// with nothing added, if rseq is not in use, the CPU has no words yet, or the kernel aborted the section. (`add_float`
/// of the specification.)
///
/// # Safety
/// The contract is that of [`add`](super::add), for the two words at `base`; `epoch` leads to a live word.
#[inline(always)]
pub(crate) unsafe fn add_float(base: *mut u8, table: *const u8, epoch: *const u64, value: f64) -> bool {
    // SAFETY: `table` is the caller's.
    let area = unsafe { offset_of_table(table) };
    if area == 0 {
        return false;
    }
    // SAFETY: as in `add`. The store before the commit goes to a sum that does not count, because the epoch
    // beside it is not the current one.
    unsafe {
        section!(
            prepare {}
            check {}
            body {
                "mov {e}, qword ptr [{epoch}]",
                "cmp {e}, qword ptr [{t} + 8]",
                "je 25f",
                "movsd qword ptr [{t}], {value}",
                "movq {sum}, {e}",
                "add {t}, 8",
                "jmp 26f",
                "25:",
                "movapd {sum}, {value}",
                "addsd {sum}, qword ptr [{t}]",
                "26:" ;
                commit "movsd qword ptr [{t}], {sum}"
            }
            cleanup {}
            area = in(reg) area,
            table = in(reg) table,
            base = in(reg) base,
            epoch = in(reg) epoch,
            value = in(xmm_reg) value,
            t = out(reg) _,
            e = out(reg) _,
            sum = out(xmm_reg) _,
        );
    }
    true
}
