//! `store_half_line` of the specification for x86-64.

use super::{asm, pair};

/// A section with the comparison in front of one 32-byte store.
macro_rules! half_line_section {
    (
        prepare { $($prepare:expr),* }
        commit $commit:expr;
        cleanup { $($cleanup:expr),* }
        $($operands:tt)*
    ) => {
        section_operands!(
            [
                ".pushsection __rseq_cs, \"aw?\"",
                ".balign 32",
                "20: .long 0, 0",
                ".quad 21f, 22f - 21f, 23f",
                ".popsection",
                $($prepare,)*
                "lea {t}, [rip + 20b]",
                "mov qword ptr fs:[{area} + 8], {t}",
                "21:",
                point!("16", "24"),
                "cmp dword ptr fs:[{area} + {field}], {index:e}",
                "jne {slow}",
                point!("32", "40"),
                "cmp qword ptr [{line}], {o0}",
                "jne {slow}",
                "cmp qword ptr [{line} + 8], {o1}",
                "jne {slow}",
                "cmp qword ptr [{line} + 16], {o2}",
                "jne {slow}",
                "cmp qword ptr [{line} + 24], {o3}",
                "jne {slow}",
                point!("48", "56"),
                $commit,
                "22:",
                $($cleanup,)*
                ".pushsection .text.unlikely, \"ax?\"",
                // the four bytes before the abort address are glibc's RSEQ_SIG, as in `section`
                ".byte 0x0f, 0xb9, 0x3d",
                ".long 0x53053053",
                "23: jmp {slow}",
                ".popsection"
            ]
            $($operands)*
        )
    };
}

/// `store_half_line` of the specification; `field` is where in the thread's area the index is that
/// must be `index`. The machine has vectors of `width` bytes.
///
/// `false`: nothing was stored.
///
/// # Safety
/// `area` is the offset of glibc's area and `field` that of a 32-bit field in it; `line` leads to
/// four live words, aligned to 32 bytes, that only sections with this index write.
#[inline(always)]
pub(crate) unsafe fn store_half_line(
    width: u32,
    area: isize,
    field: usize,
    index: u32,
    line: *mut u64,
    old: [u64; 4],
    new: [u64; 4],
) -> bool {
    match width {
        // SAFETY: passed on; the caller says that the machine has AVX-512VL.
        64.. => unsafe { store_evex(area, field, index, line, old, new) },
        // SAFETY: as above, AVX2.
        32 => unsafe { store_vex(area, field, index, line, old, new) },
        _ => false,
    }
}

// Both have the safety contract of `store_half_line`.

#[inline(always)]
unsafe fn store_evex(
    area: isize,
    field: usize,
    index: u32,
    line: *mut u64,
    old: [u64; 4],
    new: [u64; 4],
) -> bool {
    // SAFETY: loads of the thread's own area and of live words; between labels 21 and 22 there is
    // one store, the last instruction, 32 bytes wide and aligned, which an interrupt cannot split.
    unsafe {
        half_line_section!(
            prepare { "vinserti32x4 ymm16, {n0:y}, {n1:x}, 1" }
            commit "vmovdqa64 ymmword ptr [{line}], ymm16";
            cleanup {}
            area = in(reg) area,
            field = in(reg) field,
            index = in(reg) index,
            line = in(reg) line,
            o0 = in(reg) old[0],
            o1 = in(reg) old[1],
            o2 = in(reg) old[2],
            o3 = in(reg) old[3],
            t = out(reg) _,
            n0 = in(xmm_reg) pair(new[0], new[1]),
            n1 = in(xmm_reg) pair(new[2], new[3]),
            out("xmm16") _,
        );
    }
    true
}

#[inline(always)]
unsafe fn store_vex(
    area: isize,
    field: usize,
    index: u32,
    line: *mut u64,
    old: [u64; 4],
    new: [u64; 4],
) -> bool {
    // SAFETY: as in `store_evex`; `vzeroupper` clears the upper halves of all sixteen registers,
    // so all of them are named. Where the section leaves, they are dirty: slower, and no harm.
    unsafe {
        half_line_section!(
            prepare { "vinserti128 ymm0, ymm0, xmm1, 1" }
            commit "vmovdqa ymmword ptr [{line}], ymm0";
            cleanup { "vzeroupper" }
            area = in(reg) area,
            field = in(reg) field,
            index = in(reg) index,
            line = in(reg) line,
            o0 = in(reg) old[0],
            o1 = in(reg) old[1],
            o2 = in(reg) old[2],
            o3 = in(reg) old[3],
            t = out(reg) _,
            inlateout("xmm0") pair(new[0], new[1]) => _,
            inlateout("xmm1") pair(new[2], new[3]) => _,
            out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _, out("xmm6") _,
            out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
        );
    }
    true
}

/// Four words, the first two as of one moment and the last two as of one moment.
///
/// # Safety
/// `line` leads to four live words, aligned to 16 bytes.
#[inline(always)]
pub(crate) unsafe fn load_half_line(line: *const u64) -> [u64; 4] {
    let (low, high): (std::arch::x86_64::__m128i, std::arch::x86_64::__m128i);
    // SAFETY: two aligned loads of live words.
    unsafe {
        asm!(
            "movdqa {low}, xmmword ptr [{line}]",
            "movdqa {high}, xmmword ptr [{line} + 16]",
            line = in(reg) line,
            low = out(xmm_reg) low,
            high = out(xmm_reg) high,
            options(nostack, preserves_flags, readonly),
        );
    }
    // SAFETY: both are 32 plain bytes.
    unsafe { std::mem::transmute([low, high]) }
}

/// A 32-bit field of the calling thread's area.
///
/// # Safety
/// `area` is the offset of glibc's area, and the kernel keeps a field there.
#[inline(always)]
pub(crate) unsafe fn area_field(area: isize, field: usize) -> u32 {
    let value: u32;
    // SAFETY: by the caller's promise. Volatile: the kernel writes it.
    unsafe {
        asm!(
            "mov {value:e}, dword ptr fs:[{area} + {field}]",
            value = out(reg) value,
            area = in(reg) area,
            field = in(reg) field,
            options(nostack, preserves_flags, readonly),
        );
    }
    value
}
