//! The section of the kernel's test for x86-64.

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
    // SAFETY: `offset` is glibc's, so fs:[offset + 8] is the calling thread's `rseq_cs` field, which
    // may be 0. The section has one store, its last instruction, to a word of this function's.
    unsafe {
        asm!(
            descriptor!(),
            "lea {t}, [rip + 20b]",
            "and {t}, {mask}",
            "mov qword ptr fs:[{area} + 8], {t}",
            "21:",
            "mov {first}, qword ptr [{word}]",
            "mov {t:e}, 1",
            "30: cmp qword ptr [{word}], {first}",
            "jne 31f",
            "dec {looks}",
            "jnz 30b",
            "jmp 32f",
            "31: mov {t:e}, 2",
            "32: mov qword ptr [{result}], {t}",
            "22:",
            ".subsection 1",
            // ud1 edi, [rip + signature], as in every section
            ".byte 0x0f, 0xb9, 0x3d",
            ".long 0x53053053",
            "23: jmp {slow}",
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
