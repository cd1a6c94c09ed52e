//! The section of the kernel's test for aarch64.

use super::WatchOutcome;
use std::arch::asm;
use std::sync::atomic::{AtomicU64, Ordering};

const CONTINUED: u64 = 2;

/// Looks at `word` up to `looks` times in a section, until it changes. Not `armed`: in the same
/// instructions, of which the kernel is not told.
#[inline(never)]
pub(super) fn watch(offset: isize, armed: bool, word: &AtomicU64, looks: u64) -> WatchOutcome {
    let result = AtomicU64::new(0);
    let mask = if armed { u64::MAX } else { 0 };
    // SAFETY: `offset` is glibc's, so the thread pointer + offset + 8 is the calling thread's
    // `rseq_cs` field, which may be 0. The section has one store, its last instruction, to a word of
    // this function's.
    unsafe {
        asm!(
            descriptor!(),
            "mrs {t}, tpidr_el0",
            "add {t}, {t}, {area}",
            "adrp {first}, 20b",
            "add {first}, {first}, :lo12:20b",
            "and {first}, {first}, {mask}",
            "str {first}, [{t}, #8]",
            "21:",
            "ldr {first}, [{word}]",
            "30: ldr {t}, [{word}]",
            "cmp {t}, {first}",
            "b.ne 31f",
            "subs {looks}, {looks}, #1",
            "b.ne 30b",
            "mov {t}, #1",
            "b 32f",
            "31: mov {t}, #2",
            "32: str {t}, [{result}]",
            "22:",
            ".subsection 1",
            // brk #0x45e0, as in every section
            ".inst 0xd428bc00",
            "23: b {slow}",
            ".previous",
            area = in(reg) offset,
            mask = in(reg) mask,
            word = in(reg) word.as_ptr(),
            result = in(reg) result.as_ptr(),
            looks = inout(reg) looks.max(1) => _,
            first = out(reg) _,
            t = out(reg) _,
            slow = label { return WatchOutcome::Aborted },
            options(nostack)
        );
    }
    if result.load(Ordering::Relaxed) == CONTINUED { WatchOutcome::Continued } else { WatchOutcome::Quiet }
}
