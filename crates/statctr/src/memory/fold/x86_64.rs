//! The kernels for x86-64: 16, 32 or 64 bytes at a time.
//!
//! Two shapes. *Narrow*, up to eight lines of each unit (four by 16-byte vectors): the sums stay in registers and the
//! units are walked one by one; their lines lie in different pages. *Wide*: four units at a time are added to sums in
//! the first-level cache, which makes four streams for the prefetchers.
//!
//! The narrow kernels fetch the first and the last line of the unit [`AHEAD`] further on. What takes long of it is to
//! find the pages, and the out-of-order window holds too few units to hide that: groups of five lines at random places
//! of 160 units took 814 ns without, 465 with the first line fetched, 429 with both, 518 with all five; 4 units ahead
//! 550, 16 447 (AMD EPYC, Zen 3, in a virtual machine).
//!
//! The kernels are never inlined: some end with `vzeroupper`, and only at a call may nothing be
//! expected in the upper halves of registers.

use crate::memory::layout::CHUNK_BYTES;
use std::arch::asm;
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Adds `chunks` chunks of each unit to `sums`.
///
/// # Safety
/// `sums` is aligned to 64 bytes and has room for them; `first + d` is a live row of chunks for
/// each displacement d; the machine has vectors of `width` bytes.
pub(super) unsafe fn add_units(
    width: u32,
    sums: *mut u64,
    chunks: usize,
    first: *const u8,
    displacements: &[usize],
) {
    let bytes = chunks * CHUNK_BYTES;
    // SAFETY: passed on.
    unsafe {
        match width {
            64.. => add(evex::NARROW, wide_evex, sums.cast(), bytes, first, displacements),
            32 => add(vex::NARROW, wide_vex, sums.cast(), bytes, first, displacements),
            _ => add(sse::NARROW, wide_sse, sums.cast(), bytes, first, displacements),
        }
    }
}

/// The number of units whose lines are fetched ahead of the one that is added.
const AHEAD: usize = 8;

/// Two narrow kernels: each loads the sums of so many vectors, adds each unit's, stores the sums. The second one also
/// fetches lines of the unit [`AHEAD`] further on, whose displacement it loads behind those that it is given.
///
/// Each vector is given as register, destination and source of the addition, offset, clobber; `last` is the offset of
/// the last line.
macro_rules! narrow {
    ($name:ident $fetching:ident $last:literal $add:literal $move:literal $after:literal $($vectors:tt)*) => {
        narrow_kernel!($name {} [] $add $move $after $($vectors)*);
        narrow_kernel!($fetching
            { p = out(reg) _, ahead = const (AHEAD - 1) * size_of::<usize>(), }
            [
                // `d` is at the next one
                "mov {p}, qword ptr [{d} + {ahead}]",
                "prefetcht0 byte ptr [{p} + {first}]",
                concat!("prefetcht0 byte ptr [{p} + {first} + ", $last, "]")
            ]
            $add $move $after $($vectors)*);
    };
}

macro_rules! narrow_kernel {
    ($name:ident { $($operands:tt)* } [$($fetch:expr),*] $add:literal $move:literal $after:literal $(($reg:literal $operation:literal $offset:literal $clobber:tt))*) => {
        #[inline(never)]
        unsafe fn $name(sums: *mut u8, first: *const u8, displacements: &[usize]) {
            let range = displacements.as_ptr_range();
            // SAFETY: loads of live words and of the displacements, loads and stores of the sums;
            // there is at least one displacement, and `AHEAD` are behind them where they are loaded. A fetch ahead may
            // have any address.
            unsafe {
                asm!(
                    $(concat!($move, " ", $reg, ", [{sums} + ", $offset, "]"),)*
                    "2:",
                    "mov {t}, qword ptr [{d}]",
                    "add {d}, 8",
                    "add {t}, {first}",
                    $($fetch,)*
                    $(concat!($add, " ", $operation, ", [{t} + ", $offset, "]"),)*
                    "cmp {d}, {end}",
                    "jne 2b",
                    $(concat!($move, " [{sums} + ", $offset, "], ", $reg),)*
                    $after,
                    sums = in(reg) sums,
                    first = in(reg) first,
                    d = inout(reg) range.start => _,
                    end = in(reg) range.end,
                    t = out(reg) _,
                    $($operands)*
                    $(out($clobber) _,)*
                    options(nostack),
                );
            }
        }
    };
}

/// The wide kernel: four units at a time, sums in memory.
macro_rules! wide {
    ($name:ident $bytes:literal $add:literal $move:literal $after:literal $reg:literal $operands:literal $clobber:tt) => {
        #[inline(never)]
        unsafe fn $name(sums: *mut u8, bytes: usize, units: [*const u8; 4]) {
            // SAFETY: loads of live words, loads and stores of the sums.
            unsafe {
                asm!(
                    "2:",
                    concat!($move, " ", $reg, ", [{sums} + {i}]"),
                    concat!($add, " ", $operands, ", [{a} + {i}]"),
                    concat!($add, " ", $operands, ", [{b} + {i}]"),
                    concat!($add, " ", $operands, ", [{c} + {i}]"),
                    concat!($add, " ", $operands, ", [{d} + {i}]"),
                    concat!($move, " [{sums} + {i}], ", $reg),
                    concat!("add {i}, ", $bytes),
                    "cmp {i}, {bytes}",
                    "jb 2b",
                    $after,
                    sums = in(reg) sums,
                    bytes = in(reg) bytes,
                    a = in(reg) units[0],
                    b = in(reg) units[1],
                    c = in(reg) units[2],
                    d = in(reg) units[3],
                    i = inout(reg) 0usize => _,
                    out($clobber) _,
                    options(nostack),
                );
            }
        }
    };
}

type Kernel = unsafe fn(*mut u8, *const u8, &[usize]);

/// The kernels for a number of lines.
struct Narrow {
    plain: Kernel,
    /// For displacements with [`AHEAD`] more behind them.
    fetching: Kernel,
}

type Wide = unsafe fn(*mut u8, usize, [*const u8; 4]);

/// Chooses the shape; `narrow` has a kernel for each number of lines.
#[inline(always)]
unsafe fn add(
    narrow: &[Narrow],
    wide: Wide,
    sums: *mut u8,
    bytes: usize,
    first: *const u8,
    displacements: &[usize],
) {
    if displacements.is_empty() || bytes == 0 {
        return;
    }
    let in_registers = |displacements: &[usize]| {
        let (most, last) = displacements.split_at(displacements.len().saturating_sub(AHEAD));
        let mut done = 0;
        while done < bytes {
            let lines = ((bytes - done) / CHUNK_BYTES).min(narrow.len());
            let Narrow { plain, fetching } = &narrow[lines - 1];
            // SAFETY: still in range; `AHEAD` displacements are behind those that the first kernel is given, if any.
            unsafe {
                if !most.is_empty() {
                    fetching(sums.add(done), first.add(done), most);
                }
                plain(sums.add(done), first.add(done), last);
            }
            done += lines * CHUNK_BYTES;
        }
    };
    if bytes <= NARROW_BYTES {
        return in_registers(displacements);
    }
    let (fours, rest) = displacements.as_chunks::<4>();
    for (index, four) in fours.iter().enumerate() {
        for next in fours.get(index + 1).into_iter().flatten() {
            let start = first.wrapping_add(*next).cast();
            // SAFETY: a fetch ahead may have any address; SSE is part of x86-64.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start) };
        }
        // SAFETY: passed on.
        unsafe { wide(sums, bytes, four.map(|displacement| first.wrapping_add(displacement))) };
    }
    if !rest.is_empty() {
        in_registers(rest);
    }
}

/// Up to this many bytes of each unit the narrow kernels are used, in as many passes as it takes.
const NARROW_BYTES: usize = 512;

/// A module with narrow kernels for each number of lines: a kernel's vectors are those of the one before, and more.
macro_rules! family {
    ($module:ident $add:literal $move:literal $after:literal $($name:ident $fetching:ident $last:literal [$($vector:tt)*])*) => {
        mod $module {
            use super::*;
            prefixes! { $add $move $after [] $($name $fetching $last [$($vector)*])* }
            pub(super) const NARROW: &[Narrow] = &[$(Narrow { plain: $name, fetching: $fetching }),*];
        }
    };
}

macro_rules! prefixes {
    ($add:literal $move:literal $after:literal [$($before:tt)*]) => {};
    ($add:literal $move:literal $after:literal [$($before:tt)*] $name:ident $fetching:ident $last:literal [$($vector:tt)*] $($rest:tt)*) => {
        narrow!($name $fetching $last $add $move $after $($before)* $($vector)*);
        prefixes! { $add $move $after [$($before)* $($vector)*] $($rest)* }
    };
}

wide!(wide_evex "64" "vpaddq" "vmovdqa64" "" "zmm16" "zmm16, zmm16" "xmm16");
family! { evex "vpaddq" "vmovdqa64" ""
    lines_1 fetching_1 "0" [("zmm16" "zmm16, zmm16" "0" "xmm16")]
    lines_2 fetching_2 "64" [("zmm17" "zmm17, zmm17" "64" "xmm17")]
    lines_3 fetching_3 "128" [("zmm18" "zmm18, zmm18" "128" "xmm18")]
    lines_4 fetching_4 "192" [("zmm19" "zmm19, zmm19" "192" "xmm19")]
    lines_5 fetching_5 "256" [("zmm20" "zmm20, zmm20" "256" "xmm20")]
    lines_6 fetching_6 "320" [("zmm21" "zmm21, zmm21" "320" "xmm21")]
    lines_7 fetching_7 "384" [("zmm22" "zmm22, zmm22" "384" "xmm22")]
    lines_8 fetching_8 "448" [("zmm23" "zmm23, zmm23" "448" "xmm23")]
}

wide!(wide_vex "32" "vpaddq" "vmovdqa" "vzeroupper" "ymm0" "ymm0, ymm0" "xmm0");
family! { vex "vpaddq" "vmovdqa" "vzeroupper"
    lines_1 fetching_1 "0" [("ymm0" "ymm0, ymm0" "0" "xmm0") ("ymm1" "ymm1, ymm1" "32" "xmm1")]
    lines_2 fetching_2 "64" [("ymm2" "ymm2, ymm2" "64" "xmm2") ("ymm3" "ymm3, ymm3" "96" "xmm3")]
    lines_3 fetching_3 "128" [("ymm4" "ymm4, ymm4" "128" "xmm4") ("ymm5" "ymm5, ymm5" "160" "xmm5")]
    lines_4 fetching_4 "192" [("ymm6" "ymm6, ymm6" "192" "xmm6") ("ymm7" "ymm7, ymm7" "224" "xmm7")]
    lines_5 fetching_5 "256" [("ymm8" "ymm8, ymm8" "256" "xmm8") ("ymm9" "ymm9, ymm9" "288" "xmm9")]
    lines_6 fetching_6 "320" [("ymm10" "ymm10, ymm10" "320" "xmm10") ("ymm11" "ymm11, ymm11" "352" "xmm11")]
    lines_7 fetching_7 "384" [("ymm12" "ymm12, ymm12" "384" "xmm12") ("ymm13" "ymm13, ymm13" "416" "xmm13")]
    lines_8 fetching_8 "448" [("ymm14" "ymm14, ymm14" "448" "xmm14") ("ymm15" "ymm15, ymm15" "480" "xmm15")]
}

wide!(wide_sse "16" "paddq" "movdqa" "" "xmm0" "xmm0" "xmm0");
family! { sse "paddq" "movdqa" ""
    lines_1 fetching_1 "0" [("xmm0" "xmm0" "0" "xmm0") ("xmm1" "xmm1" "16" "xmm1") ("xmm2" "xmm2" "32" "xmm2") ("xmm3" "xmm3" "48" "xmm3")]
    lines_2 fetching_2 "64" [("xmm4" "xmm4" "64" "xmm4") ("xmm5" "xmm5" "80" "xmm5") ("xmm6" "xmm6" "96" "xmm6") ("xmm7" "xmm7" "112" "xmm7")]
    lines_3 fetching_3 "128" [("xmm8" "xmm8" "128" "xmm8") ("xmm9" "xmm9" "144" "xmm9") ("xmm10" "xmm10" "160" "xmm10") ("xmm11" "xmm11" "176" "xmm11")]
    lines_4 fetching_4 "192" [("xmm12" "xmm12" "192" "xmm12") ("xmm13" "xmm13" "208" "xmm13") ("xmm14" "xmm14" "224" "xmm14") ("xmm15" "xmm15" "240" "xmm15")]
}
