//! The kernels for x86-64: 16, 32 or 64 bytes at a time.
//!
//! Two shapes. *Narrow*, up to eight lines of each unit (four by 16-byte vectors): the sums stay in registers and the
//! units are walked one by one; their lines lie in different pages. *Wide*: four units at a time are added to sums in
//! the first-level cache, which makes four streams for the prefetchers.
//!
//! The narrow kernels fetch lines of a unit further on ([`Ahead`]). What takes long of it is to find the pages, and the
//! out-of-order window holds too few units to hide that. Which lines, into which cache and how far ahead depends on the
//! CPU:
//! - The first and the last line of the unit [`NEAR`] further on, into the first level: groups of five lines at random
//!   places of 160 units took 814 ns without, 465 with the first line fetched, 429 with both, 518 with all five; 4 units
//!   ahead 550, 16 447 (AMD EPYC, Zen 3, in a virtual machine).
//! - With AVX-512 on Intel, where other lines are folded next, all lines of a unit up to [`FAR`] further on, into the
//!   second level, whose queue is longer than the 16 fill buffers of the first: 5 % of the groups of an array 420 to
//!   440 ns a group, 440 to 490 as above, and no less into the first level at any distance (Intel Xeon, model 207). Of
//!   many units the first line [`FAR`] further on and the others half as far, which then do not wait for the page to be
//!   found: 8.2 ns a line in place of 9.4, 7.2 of 7.9 with huge pages, 12.9 of 14.9 in scattered pages (Intel Xeon,
//!   model 167, 158 units; with 32 there is no difference).
//!
//! Behind the last units the fetches of the narrow kernels go on with the first units of the lines that are folded next,
//! where the caller knows them: as many lines as are folded now.
//!
//! The kernels are never inlined: some end with `vzeroupper`, and only at a call may nothing be
//! expected in the upper halves of registers.

use crate::memory::layout::CHUNK_BYTES;
use std::arch::asm;
use std::arch::x86_64::{__cpuid, _MM_HINT_T0, _mm_prefetch};
use std::sync::atomic::{AtomicU8, Ordering};

/// Adds `chunks` chunks of each unit to `sums`. `next` is the distance in bytes from `first` to the lines of the same
/// units that are added next, which may be fetched; 0 where they are not known.
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
    next: usize,
) {
    let bytes = chunks * CHUNK_BYTES;
    let family = match width {
        // what is read alone may lie in the caches: 16 % slower from the second level
        64.. if next != 0 && fills_second_level() => &EVEX_FAR,
        64.. => &EVEX,
        32 => &VEX,
        _ => &SSE,
    };
    // SAFETY: passed on.
    unsafe { add(family, sums.cast(), bytes, first, displacements, next) };
}

/// Returns the length in lines of pieces that are folded faster one after the other, each with the next one known, than a
/// run of a few of them is; `None` where that has not been found.
pub(super) fn piece_lines(width: u32) -> Option<usize> {
    (width >= 64 && fills_second_level()).then_some(EVEX_FAR.narrow.len())
}

/// The number of units whose lines are fetched ahead of the one that is added.
const NEAR: usize = 8;

/// The largest number of units ahead where lines are fetched into the second level of the caches, which has room for
/// theirs.
const FAR: usize = 64;

/// Returns `true` if lines are fetched into the second level of the caches: on Intel CPUs; see the head of this file.
fn fills_second_level() -> bool {
    const UNKNOWN: u8 = 0;
    const NO: u8 = 1;
    const YES: u8 = 2;
    // `cpuid` leaves a virtual machine
    static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);
    match KNOWN.load(Ordering::Relaxed) {
        UNKNOWN => {
            // SAFETY: all x86-64 CPUs have the instruction. Later compilers know that.
            #[allow(unused_unsafe)]
            let vendor = unsafe { __cpuid(0) };
            let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
            let is_intel = name == [*b"Genu", *b"ineI", *b"ntel"];
            KNOWN.store(if is_intel { YES } else { NO }, Ordering::Relaxed);
            is_intel
        }
        known => known == YES,
    }
}

/// Units to fetch lines of: the one that `displacements` begins with first, then those behind it.
#[derive(Clone, Copy)]
struct Ahead {
    displacements: *const usize,
    /// The lines at a displacement of 0, as `first` is for those that are added.
    first: *const u8,
}

/// Two narrow kernels: each loads the sums of so many vectors, adds each unit's, stores the sums. The second one also
/// fetches lines of other units for each: of one unit the first and the last line, or in two steps all.
///
/// Each vector is given as register, destination and source of the addition, offset, clobber; `last` is the offset of
/// the last line.
macro_rules! narrow {
    (ends $name:ident $fetching:ident $last:literal $($rest:tt)*) => {
        narrow!(@both $name $fetching
            { _far: Ahead, near: Ahead }
            {
                p = out(reg) _,
                lines = in(reg) near.first,
                // `d` is at the next one
                near = in(reg) near.displacements.wrapping_sub(1),
            }
            [
                "mov {p}, qword ptr [{near} + {at}]",
                "prefetcht0 byte ptr [{p} + {lines}]",
                concat!("prefetcht0 byte ptr [{p} + {lines} + ", $last, "]")
            ]
            $($rest)*);
    };
    // each line is a vector
    (all $name:ident $fetching:ident $last:literal $add:literal $move:literal $after:literal $first:tt $(($reg:literal $operation:literal $offset:literal $clobber:tt))*) => {
        narrow!(@both $name $fetching
            { far: Ahead, near: Ahead }
            {
                p = out(reg) _,
                far_lines = in(reg) far.first,
                far = in(reg) far.displacements.wrapping_sub(1),
                lines = in(reg) near.first,
                near = in(reg) near.displacements.wrapping_sub(1),
            }
            [
                "mov {p}, qword ptr [{far} + {at}]",
                "prefetcht1 byte ptr [{p} + {far_lines}]",
                "mov {p}, qword ptr [{near} + {at}]",
                // so that it is used where there are no other lines
                "add {p}, {lines}"
                $(, concat!("prefetcht1 byte ptr [{p} + ", $offset, "]"))*
            ]
            $add $move $after $first $(($reg $operation $offset $clobber))*);
    };
    (@both $name:ident $fetching:ident $argument:tt $operands:tt $fetch:tt $($rest:tt)*) => {
        narrow_kernel!($name {} {} [] $($rest)*);
        narrow_kernel!($fetching $argument $operands $fetch $($rest)*);
    };
}

macro_rules! narrow_kernel {
    ($name:ident { $($argument:ident: $type:ty),* } { $($operands:tt)* } [$($fetch:expr),*] $add:literal $move:literal $after:literal $(($reg:literal $operation:literal $offset:literal $clobber:tt))*) => {
        #[inline(never)]
        unsafe fn $name(sums: *mut u8, first: *const u8, displacements: &[usize] $(, $argument: $type)*) {
            // SAFETY: loads of live words and of the displacements, of which there is at least one, and of as many to
            // fetch ahead; loads and stores of the sums. A fetch ahead may have any address.
            unsafe {
                asm!(
                    $(concat!($move, " ", $reg, ", [{sums} + ", $offset, "]"),)*
                    "2:",
                    "mov {t}, qword ptr [{d} + {at}]",
                    "add {at}, 8",
                    "add {t}, {first}",
                    $($fetch,)*
                    $(concat!($add, " ", $operation, ", [{t} + ", $offset, "]"),)*
                    "cmp {at}, {end}",
                    "jne 2b",
                    $(concat!($move, " [{sums} + ", $offset, "], ", $reg),)*
                    $after,
                    sums = in(reg) sums,
                    first = in(reg) first,
                    d = in(reg) displacements.as_ptr(),
                    at = inout(reg) 0usize => _,
                    end = in(reg) size_of_val(displacements),
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

/// The kernels for a number of lines.
struct Narrow {
    plain: unsafe fn(*mut u8, *const u8, &[usize]),
    /// With as many displacements to fetch lines of as there are, in the first step and, not as far ahead, in the second.
    fetching: unsafe fn(*mut u8, *const u8, &[usize], Ahead, Ahead),
}

type Wide = unsafe fn(*mut u8, usize, [*const u8; 4]);

/// The kernels of a width of vectors.
struct Family {
    /// By the number of lines, from one on.
    narrow: &'static [Narrow],
    wide: Wide,
    /// The distances in units at which lines are fetched ahead, of so many units: in the first step and in the second.
    ahead: fn(usize) -> (usize, usize),
}

fn near(_units: usize) -> (usize, usize) {
    (NEAR, NEAR)
}

fn far(units: usize) -> (usize, usize) {
    let far = (units / 2).clamp(1, FAR);
    // a second step takes a call of a kernel more, which few units do not repay
    (far, if units < 2 * FAR { far } else { far / 2 })
}

static EVEX_FAR: Family = Family { narrow: evex_far::NARROW, wide: wide_evex, ahead: far };
static EVEX: Family = Family { narrow: evex::NARROW, wide: wide_evex, ahead: near };
static VEX: Family = Family { narrow: vex::NARROW, wide: wide_vex, ahead: near };
static SSE: Family = Family { narrow: sse::NARROW, wide: wide_sse, ahead: near };

/// Chooses the shape.
///
/// # Safety
/// The contract is that of [`add_units`], for vectors of the family.
#[inline(always)]
unsafe fn add(
    family: &Family,
    sums: *mut u8,
    bytes: usize,
    first: *const u8,
    displacements: &[usize],
    next: usize,
) {
    if displacements.is_empty() || bytes == 0 {
        return;
    }
    let in_registers = |displacements: &[usize], next: usize| {
        let units = displacements.len();
        let (far, near) = (family.ahead)(units);
        let (far, near) = (far.min(units), near.min(units));
        // of the second ones the first step, of the last ones both are to the first units of the lines that are next
        let (most, rest) = displacements.split_at(units - far);
        let (second, last) = rest.split_at(far - near);
        let mut done = 0;
        while done < bytes {
            let lines = ((bytes - done) / CHUNK_BYTES).min(family.narrow.len());
            let Narrow { plain, fetching } = &family.narrow[lines - 1];
            let (sums, first) = (sums.wrapping_add(done), first.wrapping_add(done));
            let units_from = |place: usize, first: *const u8| Ahead {
                displacements: displacements.as_ptr().wrapping_add(place),
                first,
            };
            let next_first = first.wrapping_add(next);
            // SAFETY: still in range; from where a step begins there are at least as many units as are added with it.
            unsafe {
                if !most.is_empty() {
                    fetching(sums, first, most, units_from(far, first), units_from(near, first));
                }
                if next == 0 {
                    plain(sums, first, rest);
                } else {
                    if !second.is_empty() {
                        let later = units_from(units - far + near, first);
                        fetching(sums, first, second, units_from(0, next_first), later);
                    }
                    let far_ones = units_from(far - near, next_first);
                    fetching(sums, first, last, far_ones, units_from(0, next_first));
                }
            }
            done += lines * CHUNK_BYTES;
        }
    };
    if bytes <= NARROW_BYTES {
        return in_registers(displacements, next);
    }
    let (fours, rest) = displacements.as_chunks::<4>();
    for (index, four) in fours.iter().enumerate() {
        for next in fours.get(index + 1).into_iter().flatten() {
            let start = first.wrapping_add(*next).cast();
            // SAFETY: a fetch ahead may have any address; SSE is part of x86-64.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start) };
        }
        // SAFETY: passed on.
        unsafe { (family.wide)(sums, bytes, four.map(|displacement| first.wrapping_add(displacement))) };
    }
    if !rest.is_empty() {
        // they are the last ones of the next lines, too
        in_registers(rest, 0);
    }
}

/// Up to this many bytes of each unit the narrow kernels are used, in as many passes as it takes.
const NARROW_BYTES: usize = 512;

/// A module with narrow kernels for each number of lines: a kernel's vectors are those of the one before, and more.
macro_rules! family {
    ($module:ident $fetches:ident $add:literal $move:literal $after:literal $($name:ident $fetching:ident $last:literal [$($vector:tt)*])*) => {
        mod $module {
            use super::*;
            prefixes! { $fetches $add $move $after [] $($name $fetching $last [$($vector)*])* }
            pub(super) const NARROW: &[Narrow] = &[$(Narrow { plain: $name, fetching: $fetching }),*];
        }
    };
}

macro_rules! prefixes {
    ($fetches:ident $add:literal $move:literal $after:literal [$($before:tt)*]) => {};
    ($fetches:ident $add:literal $move:literal $after:literal [$($before:tt)*] $name:ident $fetching:ident $last:literal [$($vector:tt)*] $($rest:tt)*) => {
        narrow!($fetches $name $fetching $last $add $move $after $($before)* $($vector)*);
        prefixes! { $fetches $add $move $after [$($before)* $($vector)*] $($rest)* }
    };
}

wide!(wide_evex "64" "vpaddq" "vmovdqa64" "" "zmm16" "zmm16, zmm16" "xmm16");
/// The families with vectors of a line.
macro_rules! evex {
    ($($module:ident $fetches:ident)*) => {$(
        family! { $module $fetches "vpaddq" "vmovdqa64" ""
            lines_1 fetching_1 "0" [("zmm16" "zmm16, zmm16" "0" "xmm16")]
            lines_2 fetching_2 "64" [("zmm17" "zmm17, zmm17" "64" "xmm17")]
            lines_3 fetching_3 "128" [("zmm18" "zmm18, zmm18" "128" "xmm18")]
            lines_4 fetching_4 "192" [("zmm19" "zmm19, zmm19" "192" "xmm19")]
            lines_5 fetching_5 "256" [("zmm20" "zmm20, zmm20" "256" "xmm20")]
            lines_6 fetching_6 "320" [("zmm21" "zmm21, zmm21" "320" "xmm21")]
            lines_7 fetching_7 "384" [("zmm22" "zmm22, zmm22" "384" "xmm22")]
            lines_8 fetching_8 "448" [("zmm23" "zmm23, zmm23" "448" "xmm23")]
        }
    )*};
}
evex! { evex ends evex_far all }

wide!(wide_vex "32" "vpaddq" "vmovdqa" "vzeroupper" "ymm0" "ymm0, ymm0" "xmm0");
family! { vex ends "vpaddq" "vmovdqa" "vzeroupper"
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
family! { sse ends "paddq" "movdqa" ""
    lines_1 fetching_1 "0" [("xmm0" "xmm0" "0" "xmm0") ("xmm1" "xmm1" "16" "xmm1") ("xmm2" "xmm2" "32" "xmm2") ("xmm3" "xmm3" "48" "xmm3")]
    lines_2 fetching_2 "64" [("xmm4" "xmm4" "64" "xmm4") ("xmm5" "xmm5" "80" "xmm5") ("xmm6" "xmm6" "96" "xmm6") ("xmm7" "xmm7" "112" "xmm7")]
    lines_3 fetching_3 "128" [("xmm8" "xmm8" "128" "xmm8") ("xmm9" "xmm9" "144" "xmm9") ("xmm10" "xmm10" "160" "xmm10") ("xmm11" "xmm11" "176" "xmm11")]
    lines_4 fetching_4 "192" [("xmm12" "xmm12" "192" "xmm12") ("xmm13" "xmm13" "208" "xmm13") ("xmm14" "xmm14" "224" "xmm14") ("xmm15" "xmm15" "240" "xmm15")]
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// The families that this machine can run.
    fn families() -> Vec<&'static Family> {
        let mut families = vec![&SSE];
        if std::arch::is_x86_feature_detected!("avx2") {
            families.push(&VEX);
        }
        if std::arch::is_x86_feature_detected!("avx512f") {
            families.extend([&EVEX, &EVEX_FAR]);
        }
        families
    }

    /// Words that end where memory does that may not be read.
    struct GuardedEnd {
        pages: *mut libc::c_void,
        len: usize,
    }

    impl GuardedEnd {
        const PAGE: usize = 4096;

        fn of(words: impl ExactSizeIterator<Item = usize>) -> GuardedEnd {
            let len = words.len();
            assert!(len * size_of::<usize>() <= Self::PAGE);
            let (protection, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            // SAFETY: a new mapping, of which the second page loses its access.
            let pages = unsafe {
                let pages = libc::mmap(std::ptr::null_mut(), 2 * Self::PAGE, protection, flags, -1, 0);
                assert_ne!(pages, libc::MAP_FAILED);
                assert_eq!(libc::mprotect(pages.byte_add(Self::PAGE), Self::PAGE, libc::PROT_NONE), 0);
                pages
            };
            let guarded = GuardedEnd { pages, len };
            for (index, word) in words.enumerate() {
                // SAFETY: inside the first page, which may be written.
                unsafe { guarded.start().add(index).write(word) };
            }
            guarded
        }

        fn start(&self) -> *mut usize {
            // SAFETY: inside the mapping.
            unsafe { self.pages.byte_add(Self::PAGE).cast::<usize>().sub(self.len) }
        }

        fn words(&self) -> &[usize] {
            // SAFETY: written by `of`, live as long as this.
            unsafe { std::slice::from_raw_parts(self.start(), self.len) }
        }
    }

    impl Drop for GuardedEnd {
        fn drop(&mut self) {
            // SAFETY: the mapping that `of` made.
            unsafe { libc::munmap(self.pages, 2 * Self::PAGE) };
        }
    }

    #[test]
    fn all_kernels_come_to_the_same_sums_wherever_they_fetch() {
        const LINES: usize = 12;
        const WORDS: usize = CHUNK_BYTES / 8;
        #[repr(align(64))]
        #[derive(Clone, Copy)]
        struct Line([u64; WORDS]);
        for units in [1, 2, 3, 7, 8, 9, 17, 128, 130, 158] {
            let lines: Vec<Line> = (0..units * LINES)
                .map(|line| Line(std::array::from_fn(|word| (line as u64 + 1) << 40 | word as u64)))
                .collect();
            // a permutation, as no number of units is a multiple of 11
            let displacements =
                GuardedEnd::of((0..units).map(|unit| unit * 11 % units * LINES * CHUNK_BYTES));
            let expected = |word: usize| {
                let of =
                    |displacement: &usize| lines[displacement / CHUNK_BYTES + word / WORDS].0[word % WORDS];
                displacements.words().iter().map(of).fold(1, u64::wrapping_add)
            };
            for chunks in 1..=LINES {
                for next in [0, CHUNK_BYTES, usize::MAX - 4095] {
                    for family in families() {
                        let mut sums = [Line([1; WORDS]); LINES];
                        let place = sums.as_mut_ptr().cast();
                        // SAFETY: rows of live lines, room for the sums, vectors that this machine has.
                        unsafe {
                            add(
                                family,
                                place,
                                chunks * CHUNK_BYTES,
                                lines.as_ptr().cast(),
                                displacements.words(),
                                next,
                            )
                        };
                        let found = sums.iter().flat_map(|line| line.0);
                        let due = (0..LINES * WORDS)
                            .map(|word| if word < chunks * WORDS { expected(word) } else { 1 });
                        assert!(found.eq(due), "{units} units, {chunks} chunks, next at {next:#x}");
                    }
                }
            }
        }
    }
}
