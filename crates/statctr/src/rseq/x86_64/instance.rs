//! `join` of the specification for x86-64: the four words of an instance are stored by one
//! instruction.

use super::super::{CPU_ID, ITEMS, JoinIndex, JoinSettings, MM_CID};
use super::{asm, pair};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// A lazy object's four items (64-bit statistics) of one CPU or concurrency id, which rseq critical sections write by
/// one vector store.
#[derive(Debug)]
#[repr(C, align(32))]
pub(crate) struct Instance([AtomicU64; ITEMS]);

impl Instance {
    /// Returns the four words of the instance (a CPU's copy of a lazy object) as atomics, for instances that rseq
    /// critical sections do not write.
    pub(crate) fn words(&self) -> &[AtomicU64; ITEMS] {
        &self.0
    }

    /// Returns all words of the instance (a CPU's copy of a lazy object), which have to be zero while it is unused.
    pub(crate) fn all_words(&self) -> impl Iterator<Item = &AtomicU64> {
        self.0.iter()
    }
}

/// Returns `true` if rseq critical sections can update lazy objects (four statistics each) with vector stores of
/// `width` bytes.
pub(crate) const fn can_join(width: usize) -> bool {
    width >= 32
}

/// A section that joins values to an instance: `prepare` runs before it is armed.
macro_rules! join_section {
    (
        prepare { $($prepare:expr),* }
        body { $($body:expr),* ; commit $commit:expr }
        cleanup { $($cleanup:expr),* }
        $($operands:tt)*
    ) => {
        section_operands!(
            [
                descriptor!(),
                $($prepare,)*
                "lea {t}, [rip + 20b]",
                "mov qword ptr fs:[{area} + 8], {t}",
                "21:",
                point!("16", "24"),
                "cmp dword ptr fs:[{area} + {field}], {index:e}",
                "jne {slow}",
                point!("32", "40"),
                $($body,)*
                point!("48", "56"),
                $commit,
                "22:",
                $($cleanup,)*
                ".subsection 1",
                // the four bytes before the abort address are glibc's RSEQ_SIG, as in `section`
                ".byte 0x0f, 0xb9, 0x3d",
                ".long 0x53053053",
                "23: jmp {slow}",
                ".previous"
            ]
            $($operands)*
        )
    };
}

/// Combines one value with each of the four 64-bit words of an instance (a CPU's copy of a lazy object) in an rseq
/// critical section, by the operations in `settings`. Returns `false`, with nothing stored, if `index` is not the
/// thread's present CPU (or concurrency id), or the kernel aborted the section. (`join` of the specification.)
///
/// # Safety
/// The settings allow sections ([`JoinSettings::width`]), with glibc's area and a field in it; the
/// instance lives, and only sections with this index write it.
#[inline(always)]
pub(crate) unsafe fn join(
    settings: &JoinSettings,
    index: u32,
    instance: NonNull<Instance>,
    values: [u64; ITEMS],
) -> bool {
    // SAFETY: passed on.
    unsafe { join_at(settings.index(), settings, index, instance, values) }
}

/// Combines (adds, or-s or maximises, by `settings`) one value with each of the four 64-bit words of an instance (a
/// CPU's copy of a lazy object), as [`join`] does, for a caller that has loaded `at`, the settings' own. Returns
/// `false`, with nothing stored, if `index` is not the thread's present CPU (or concurrency id), or the kernel aborted
/// the section.
///
/// # Safety
/// The contract is that of [`join`].
#[inline(always)]
pub(crate) unsafe fn join_at(
    at: JoinIndex,
    settings: &JoinSettings,
    index: u32,
    instance: NonNull<Instance>,
    values: [u64; ITEMS],
) -> bool {
    // pools have one or the other; as a constant it takes no register
    if at.field as usize == CPU_ID {
        // SAFETY: passed on.
        unsafe { join_by::<CPU_ID>(at, settings, index, instance, values) }
    } else {
        // SAFETY: passed on.
        unsafe { join_by::<MM_CID>(at, settings, index, instance, values) }
    }
}

// All have the safety contract of `join`; `FIELD` is the settings' field.

#[inline(always)]
unsafe fn join_by<const FIELD: usize>(
    at: JoinIndex,
    settings: &JoinSettings,
    index: u32,
    instance: NonNull<Instance>,
    values: [u64; ITEMS],
) -> bool {
    if settings.width >= 64 {
        // SAFETY: passed on; that width is that of a machine with AVX-512VL.
        unsafe { join_evex::<FIELD>(at, settings, index, instance, values) }
    } else {
        // SAFETY: passed on; sections are allowed from AVX2 on.
        unsafe { join_vex::<FIELD>(at, settings, index, instance, values) }
    }
}

#[inline(always)]
unsafe fn join_evex<const FIELD: usize>(
    at: JoinIndex,
    settings: &JoinSettings,
    index: u32,
    instance: NonNull<Instance>,
    values: [u64; ITEMS],
) -> bool {
    // SAFETY: loads of the thread's own area, of the settings and of live words; between labels 21
    // and 22 there is one store, the last instruction, 32 bytes wide and aligned, which an interrupt
    // cannot split.
    unsafe {
        join_section!(
            prepare {
                "vinserti32x4 ymm16, {n0:y}, {n1:x}, 1",
                "vpandq ymm17, ymm16, ymmword ptr [{settings}]",
                "vpandq ymm18, ymm16, ymmword ptr [{settings} + 32]",
                "vpandq ymm16, ymm16, ymmword ptr [{settings} + 64]"
            }
            body {
                "vpaddq ymm17, ymm17, ymmword ptr [{instance}]",
                "vporq ymm17, ymm17, ymm18",
                "vpmaxuq ymm17, ymm17, ymm16" ;
                commit "vmovdqa64 ymmword ptr [{instance}], ymm17"
            }
            cleanup {}
            area = in(reg) at.area,
            field = const FIELD,
            index = in(reg) index,
            instance = in(reg) instance.as_ptr(),
            settings = in(reg) settings,
            t = out(reg) _,
            n0 = in(xmm_reg) pair(values[0], values[1]),
            n1 = in(xmm_reg) pair(values[2], values[3]),
            out("xmm16") _, out("xmm17") _, out("xmm18") _,
        );
    }
    true
}

#[inline(always)]
unsafe fn join_vex<const FIELD: usize>(
    at: JoinIndex,
    settings: &JoinSettings,
    index: u32,
    instance: NonNull<Instance>,
    values: [u64; ITEMS],
) -> bool {
    // SAFETY: as in `join_evex`. The maximum is that of signed numbers whose first bits were turned
    // over. `vzeroupper` clears the upper halves of all sixteen registers, so all of them are named.
    // Where the section leaves, they are dirty: slower, and no harm.
    unsafe {
        join_section!(
            prepare {
                "vmovq xmm0, {v0}",
                "vmovq xmm1, {v2}",
                "vpinsrq xmm0, xmm0, {v1}, 1",
                "vpinsrq xmm1, xmm1, {v3}, 1",
                "vinserti128 ymm0, ymm0, xmm1, 1",
                "vpand ymm1, ymm0, ymmword ptr [{settings}]",
                "vpand ymm2, ymm0, ymmword ptr [{settings} + 32]",
                "vpxor ymm0, ymm0, ymm1",
                "vpxor ymm0, ymm0, ymm2",
                "vpcmpeqq ymm3, ymm3, ymm3",
                "vpsllq ymm3, ymm3, 63",
                "vpxor ymm4, ymm0, ymm3"
            }
            body {
                "vpaddq ymm1, ymm1, ymmword ptr [{instance}]",
                "vpor ymm1, ymm1, ymm2",
                "vpxor ymm3, ymm1, ymm3",
                "vpcmpgtq ymm3, ymm4, ymm3",
                "vpblendvb ymm1, ymm1, ymm0, ymm3" ;
                commit "vmovdqa ymmword ptr [{instance}], ymm1"
            }
            cleanup { "vzeroupper" }
            area = in(reg) at.area,
            field = const FIELD,
            index = in(reg) index,
            instance = in(reg) instance.as_ptr(),
            settings = in(reg) settings,
            t = out(reg) _,
            v0 = in(reg) values[0],
            v1 = in(reg) values[1],
            v2 = in(reg) values[2],
            v3 = in(reg) values[3],
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _, out("xmm6") _,
            out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
        );
    }
    true
}

/// Reads the four values of an instance (a CPU's copy of a lazy object), the first two as of one moment and the last
/// two as of one moment; never `None` on x86-64, which elsewhere means that an update came between.
///
/// # Safety
/// The instance lives.
#[inline(always)]
pub(crate) unsafe fn load(instance: NonNull<Instance>) -> Option<[u64; ITEMS]> {
    let (low, high): (std::arch::x86_64::__m128i, std::arch::x86_64::__m128i);
    // SAFETY: two aligned loads of live words.
    unsafe {
        asm!(
            "movdqa {low}, xmmword ptr [{line}]",
            "movdqa {high}, xmmword ptr [{line} + 16]",
            line = in(reg) instance.as_ptr(),
            low = out(xmm_reg) low,
            high = out(xmm_reg) high,
            options(nostack, preserves_flags, readonly),
        );
    }
    // SAFETY: both are 32 plain bytes.
    Some(unsafe { std::mem::transmute::<[std::arch::x86_64::__m128i; 2], [u64; ITEMS]>([low, high]) })
}

/// Returns the 32-bit field at offset `field` of the calling thread's rseq area.
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
