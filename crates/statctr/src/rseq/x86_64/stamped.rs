//! `add_stamped` and `commit_stamped` of the specification for x86-64.
//!
//! Each begins as its namesake without stamps, and stores up to twice more before the commit: what is not there yet.
//! Stamps that an abort leaves mark a line that has not changed: a fold rereads it in vain.

use super::{asm, pair, width_of_table};
use crate::rseq::Stamps;

/// Support for stamping cache lines of counters as written, so that an incremental fold rereads only those: `true`, as
/// x86-64 makes stores visible in their order.
pub(crate) const CAN_STAMP: bool = true;

macro_rules! stamped_section {
    (
        prepare { $($prepare:expr),* }
        body { $($body:expr),* ; commit $commit:expr }
        cleanup { $($cleanup:expr),* }
        ($base:ident, $table:ident, $stamps:ident)
        $($operands:tt)*
    ) => {
        section!(
            prepare { $($prepare),* }
            check {
                // t: the piece's first word of the CPU, then the counter's
                "add {t}, {head}",
                "mov {e}, qword ptr [{epoch}]",
                // mostly they are there: a comparison takes a third of the time of a store (Zen 3)
                "cmp qword ptr [{t}], {e}",
                "je 40f",
                "mov qword ptr [{t}], {e}",
                "40:",
                "cmp byte ptr [{t} + {line} + 64], {e:l}",
                "je 41f",
                "mov byte ptr [{t} + {line} + 64], {e:l}",
                "41:"
            }
            body { $($body),* ; commit $commit }
            cleanup { $($cleanup),* }
            area = in(reg) $stamps.area,
            table = in(reg) $table,
            base = in(reg) $base.addr().wrapping_sub($stamps.head.addr()),
            head = in(reg) $stamps.head,
            epoch = in(reg) $stamps.epoch,
            line = in(reg) $stamps.line,
            t = out(reg) _,
            e = out(reg) _,
            $($operands)*
        )
    };
}

/// Adds `value` to the current CPU's word of a counter in an rseq critical section that first stamps the word's cache
/// line as written. Returns `false`, with nothing added, if rseq is not in use, the CPU has no word yet, or the kernel
/// aborted the section. (`add_stamped` of the specification.)
///
/// # Safety
/// The contract is that of [`add`](super::add), also for the words that `stamps` names; the area is the table's.
#[inline(always)]
pub(crate) unsafe fn add_stamped(base: *mut u8, table: *const u8, stamps: Stamps, value: u64) -> bool {
    if stamps.area == 0 {
        return false;
    }
    // SAFETY: as in `add`. The stores before the commit leave traces of an abort that say no wrong: see above.
    unsafe {
        stamped_section!(
            prepare {}
            body { ; commit "add qword ptr [{t}], {value}" }
            cleanup {}
            (base, table, stamps)
            value = in(reg) value,
        );
    }
    true
}

/// Adds `deltas` to the current CPU's words of the `N` items of an event (statistics updated together) in an rseq
/// critical section that first stamps their cache line as written. Returns `false`, with nothing added, if rseq is not
/// in use, the CPU has no words yet, the machine has no store as wide as the event, or the kernel aborted the section.
/// (`commit_stamped` of the specification.)
///
/// # Safety
/// The contract is that of [`commit_in_area`](super::commit_in_area), also for the words that `stamps` names; the area
/// is the table's.
#[inline(always)]
pub(crate) unsafe fn commit_stamped<const N: usize>(
    base: *mut u8,
    table: *const u8,
    stamps: Stamps,
    deltas: &[u64; N],
) -> bool {
    let delta = |index: usize| if index < N { deltas[index] } else { 0 };
    let two = |index: usize| pair(delta(index), delta(index + 1));
    // SAFETY: passed on; 0 where the tag is not for sections, as the area is.
    let width = unsafe { width_of_table(table) };
    // SAFETY: as in `commit_16`, `commit_32_vex`, `commit_32_evex` and `commit_64`, each as wide as the event and no
    // wider than the machine's stores; and as in `add_stamped`.
    unsafe {
        match N {
            2 if stamps.area != 0 => stamped_section!(
                prepare {}
                body { "paddq {d0}, xmmword ptr [{t}]" ; commit "movdqa xmmword ptr [{t}], {d0}" }
                cleanup {}
                (base, table, stamps)
                d0 = inlateout(xmm_reg) two(0) => _,
            ),
            3 | 4 if width >= 64 => stamped_section!(
                prepare { "vinserti32x4 ymm16, {d0:y}, {d1:x}, 1" }
                body { "vpaddq ymm16, ymm16, ymmword ptr [{t}]" ; commit "vmovdqa64 ymmword ptr [{t}], ymm16" }
                cleanup {}
                (base, table, stamps)
                d0 = in(xmm_reg) two(0),
                d1 = in(xmm_reg) two(2),
                out("xmm16") _,
            ),
            3 | 4 if width == 32 => stamped_section!(
                prepare { "vinserti128 ymm0, ymm0, xmm1, 1" }
                body { "vpaddq ymm0, ymm0, ymmword ptr [{t}]" ; commit "vmovdqa ymmword ptr [{t}], ymm0" }
                cleanup { "vzeroupper" }
                (base, table, stamps)
                inlateout("xmm0") two(0) => _,
                inlateout("xmm1") two(2) => _,
                out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _, out("xmm6") _,
                out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            ),
            5..=8 if width >= 64 => stamped_section!(
                prepare {
                    "vinserti32x4 ymm16, {d0:y}, {d1:x}, 1",
                    "vinserti32x4 ymm17, {d2:y}, {d3:x}, 1",
                    "vinserti64x4 zmm16, zmm16, ymm17, 1"
                }
                body { "vpaddq zmm16, zmm16, zmmword ptr [{t}]" ; commit "vmovdqa64 zmmword ptr [{t}], zmm16" }
                cleanup {}
                (base, table, stamps)
                d0 = in(xmm_reg) two(0),
                d1 = in(xmm_reg) two(2),
                d2 = in(xmm_reg) two(4),
                d3 = in(xmm_reg) two(6),
                out("xmm16") _,
                out("xmm17") _,
            ),
            _ => return false,
        }
    }
    true
}
