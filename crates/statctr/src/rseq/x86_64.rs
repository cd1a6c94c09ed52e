//! The sections for x86-64, in the order of the specification in the parent module.
//!
//! Shapes that were measured, not guessed:
//! - The word's address is brought into one register before the commit, and 1 and −1 are
//!   immediates: then a CPU that renames memory (Intel since Ice Lake, AMD since Zen 2) forwards
//!   the last sum in no time; an indexed address costs it three times as much.
//! - The area's offset comes from the table's header by a pure asm block, so that a loop loads it
//!   once.
//! - With AVX-512VL the vectors go through registers 16 and up, which need no `vzeroupper`.

use std::arch::asm;
use std::sync::atomic::AtomicPtr;

/// Returns where glibc has registered threads' rseq areas, as (offset from the thread pointer, size in bytes); `None`
/// if it has not.
pub(crate) fn glibc_registration() -> Option<(isize, u32)> {
    let (offset, size): (*const isize, *const u32);
    // SAFETY: loads two addresses from the global offset table; they are null where the symbols
    // are not defined.
    unsafe {
        asm!(
            // weak, so that programs link where glibc is older or absent
            ".weak __rseq_offset",
            ".weak __rseq_size",
            "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
            "mov {size}, qword ptr [rip + __rseq_size@GOTPCREL]",
            offset = out(reg) offset,
            size = out(reg) size,
            options(nostack, preserves_flags, readonly, pure),
        );
    }
    if offset.is_null() || size.is_null() {
        return None;
    }
    // SAFETY: glibc exports both as constants of these types from 2.35 on (RHEL 9: 2.34-37; `<sys/rseq.h>`), set
    // before any code of the program runs.
    let (offset, size) = unsafe { (*offset, *size) };
    (size != 0).then_some((offset, size))
}

/// Returns the CPU number that the kernel keeps in the calling thread's rseq area; negative if the thread is not
/// registered.
pub(crate) fn area_cpu_id(offset: isize) -> i32 {
    let cpu: i32;
    // SAFETY: `offset` is the areas', so fs:[offset + 4] is the calling thread's `cpu_id` field. It
    // is volatile: the kernel writes it.
    unsafe {
        asm!(
            "mov {cpu:e}, dword ptr fs:[{offset} + 4]",
            cpu = out(reg) cpu,
            offset = in(reg) offset,
            options(nostack, preserves_flags, readonly),
        );
    }
    cpu
}

/// Clears the pointer to the last rseq critical section (`rseq_cs`) in the calling thread's rseq area.
pub(crate) fn clear_section(offset: isize) {
    // SAFETY: `offset` is the areas', so fs:[offset + 8] is the calling thread's `rseq_cs` field,
    // which a thread may set to 0 at any time outside a section.
    unsafe {
        asm!(
            "mov qword ptr fs:[{offset} + 8], 0",
            offset = in(reg) offset,
            options(nostack, preserves_flags),
        );
    }
}

/// Returns the offset of threads' rseq areas from the thread pointer, as stored in front of a reservation's table (each
/// CPU's distance to its words); 0 if the tag bits of the address `table` say that counters are not updated by rseq.
///
/// The block loads, and claims to read no memory (`nomem`), which is what lets a loop do it once: as
/// the sections of a loop may write all memory, the load would be repeated. By that claim compilers
/// may move the block across any store, and across the test of whoever asks. Neither changes what
/// comes out:
/// - The header is written once, before [`publish_header`], a block that may read and write all
///   memory, so no store to it is moved behind that; and nobody has the table's address before, so
///   this block, which needs it, comes after. From then on nothing stores to the field.
/// - The tag is tested inside, so the block is good for every handle, also where it comes before the
///   test of a tag, and for a table of address 0 (a C handle that was not made).
/// - The memory goes with the last handle, by a call (`munmap`), and what this block gave is used only
///   by a section before that.
///
/// # Safety
/// `table` is the tagged address of a live table.
#[inline(always)]
pub(crate) unsafe fn offset_of_table(table: *const u8) -> usize {
    let offset: usize;
    // SAFETY: where the tag says so the header is there by the caller's promise; see above for the
    // order.
    unsafe {
        asm!(
            "xor {offset:e}, {offset:e}",
            "test {table:l}, 1",
            "jz 2f",
            "mov {offset}, qword ptr [{table} - 25]",
            "2:",
            offset = out(reg) offset,
            table = in(reg) table.addr(),
            options(pure, nomem, nostack),
        );
    }
    offset
}

/// Loads a pointer that is null at first and stored once; the compiler may hoist the load out of loops, which may then
/// see null for longer.
///
/// The asm block loads but is marked as reading no memory (`nomem`), as [`offset_of_table`]'s is, so that a loop does
/// it once. Therefore the result may be null, although the pointer is stored by now, for as long as the loop runs.
#[inline(always)]
pub(crate) fn load_stored_once(place: &'static AtomicPtr<u8>) -> *const u8 {
    let address: usize;
    // SAFETY: loads an aligned word that lives for ever.
    unsafe {
        asm!(
            "mov {address}, qword ptr [{place}]",
            address = out(reg) address,
            place = in(reg) std::ptr::from_ref(place).addr(),
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    std::ptr::with_exposed_provenance(address)
}

/// Orders earlier stores to the header in front of a reservation's table (CPU number to place of the CPU's words)
/// before all uses of the table's address; see [`offset_of_table`].
#[inline(always)]
pub(crate) fn publish_header(header: *const u8) {
    // SAFETY: no instruction, but as far as the compiler knows one that uses all memory.
    unsafe { asm!("/* {header} */", header = in(reg) header, options(nostack, preserves_flags)) };
}

#[cfg(not(feature = "inject"))]
macro_rules! point {
    ($delay:literal, $abort:literal) => {
        ""
    };
}

// a loop of {turns}, then the kernel's own way to the abort address
#[cfg(feature = "inject")]
macro_rules! point {
    ($delay:literal, $abort:literal) => {
        concat!(
            "mov {x}, qword ptr [rip + {injections} + ",
            $delay,
            "]\n",
            "test {x}, {x}\n",
            "jz 31f\n",
            "30: dec {x}\n",
            "jnz 30b\n",
            "31: mov {x}, qword ptr [rip + {injections} + ",
            $abort,
            "]\n",
            "test {x}, {x}\n",
            "jz 32f\n",
            "dec {x}\n",
            "mov qword ptr [rip + {injections} + ",
            $abort,
            "], {x}\n",
            "jmp 23f\n",
            "32:",
        )
    };
}

/// Expands to one critical section: `prepare` runs before it is armed; `body` follows `t := T[cpu] + base` and ends
/// with the commit; `cleanup` runs after it.
macro_rules! section {
    (
        prepare { $($prepare:expr),* }
        check { $($check:expr),* }
        body { $($body:expr),* ; commit $commit:expr }
        cleanup { $($cleanup:expr),* }
        $($operands:tt)*
    ) => {
        section_by!(
            prepare { $($prepare),* }
            address { "test {t}, {t}", "jz {slow}", $($check,)* "add {t}, {base}" }
            body { $($body),* ; commit $commit }
            cleanup { $($cleanup),* }
            $($operands)*
        )
    };
}

/// Expands to one critical section whose `address` makes the word's address of t, T\[cpu\], or leaves.
///
/// Labels: 20 the descriptor, 21 start, 22 end (the instruction after the commit), 23 abort.
macro_rules! section_by {
    (
        prepare { $($prepare:expr),* }
        address { $($address:expr),* }
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
                "movsxd {t}, dword ptr fs:[{area} + 4]",
                point!("32", "40"),
                "mov {t}, qword ptr [{table} + {t}*8 - 1]",
                $($address,)*
                $($body,)*
                point!("48", "56"),
                $commit,
                "22:",
                $($cleanup,)*
                ".subsection 1",
                // ud1 edi, [rip + signature]: the four bytes before the abort address must be glibc's RSEQ_SIG
                ".byte 0x0f, 0xb9, 0x3d",
                ".long 0x53053053",
                "23: jmp {slow}",
                ".previous"
            ]
            $($operands)*
        )
    };
}

#[cfg(not(feature = "inject"))]
macro_rules! section_operands {
    ([$($template:expr),*] $($operands:tt)*) => {
        asm!($($template,)* $($operands)* slow = label { return false }, options(nostack))
    };
}

#[cfg(feature = "inject")]
macro_rules! section_operands {
    ([$($template:expr),*] $($operands:tt)*) => {
        asm!(
            $($template,)*
            $($operands)*
            x = out(reg) _,
            injections = sym crate::rseq::inject::INJECTIONS,
            slow = label { return false },
            options(nostack)
        )
    };
}

mod area;
pub(crate) use area::*;
mod bounded;
pub(crate) use bounded::*;
mod float;
pub(crate) use float::*;
mod instance;
pub(crate) use instance::*;
mod maximum;
pub(crate) use maximum::*;
mod owned;
pub(crate) use owned::*;
mod predicted;
pub(crate) use predicted::*;
mod stamped;
pub(crate) use stamped::*;
mod statics;
pub(crate) use statics::*;

macro_rules! define_add {
    ($(#[$doc:meta])* $name:ident, $in_area:ident, $commit:expr $(, $value:ident)?) => {
        $(#[$doc])*
        ///
        /// Returns `false` if nothing was added and the slow path has to be taken.
        ///
        /// # Safety
        /// `table` is the tagged address of a live table, and where its tag says "by rseq", for every
        /// displacement d that can stand in it `base + d` is an aligned live word that only
        /// sections on that CPU write.
        #[inline(always)]
        pub(crate) unsafe fn $name(base: *mut u8, table: *const u8 $(, $value: u64)?) -> bool {
            // SAFETY: `table` is the caller's.
            let area = unsafe { offset_of_table(table) };
            if area == 0 {
                return false;
            }
            // SAFETY: passed on; the area's offset is the table's.
            unsafe { $in_area(area, base, table $(, $value)?) }
        }

        $(#[$doc])*
        ///
        /// For a caller that keeps the area's offset, so that the table's header is not loaded.
        ///
        /// `false`: nothing was added, take the slow path.
        ///
        /// # Safety
        /// `area` is what [`offset_of_table`] returns for `table`, and not 0; all else as for the function that finds
        /// it itself.
        #[inline(always)]
        pub(crate) unsafe fn $in_area(area: usize, base: *mut u8, table: *const u8 $(, $value: u64)?) -> bool {
            // SAFETY: the table has an entry for every number that the kernel can put into
            // `cpu_id` (see `cpu_bound`) and zeros for -1 and -2, so the index is in bounds; the
            // word it leads to is live by the caller's promise. Between labels 21 and 22 there is
            // one store, the last instruction: an abort leaves no trace.
            unsafe {
                section!(
                    prepare {}
                    check {}
                    body { ; commit $commit }
                    cleanup {}
                    area = in(reg) area,
                    table = in(reg) table,
                    base = in(reg) base,
                    $($value = in(reg) $value,)?
                    t = out(reg) _,
                );
            }
            true
        }
    };
}

define_add!(
    /// Adds `value` to the current CPU's 64-bit word of a counter in an rseq critical section: `base` is the counter's
    /// word that belongs to no CPU, `table` has the distance from there to each CPU's word (`add` of the
    /// specification).
    add, add_in_area, "add qword ptr [{t}], {value}", value
);
define_add!(
    /// Adds 1 to the current CPU's 64-bit word of a counter in an rseq critical section: `base` is the counter's word
    /// that belongs to no CPU, `table` has the distance from there to each CPU's word.
    inc, inc_in_area, "add qword ptr [{t}], 1"
);
define_add!(
    /// Subtracts 1 from the current CPU's 64-bit word of a counter in an rseq critical section: `base` is the counter's
    /// word that belongs to no CPU, `table` has the distance from there to each CPU's word.
    dec, dec_in_area, "add qword ptr [{t}], -1"
);

/// Adds `deltas` to the current CPU's words of the `N` items (2 to 8) of an event (statistics updated together) in an
/// rseq critical section that ends with one vector store. Returns `false`, with nothing added, if rseq is not in use,
/// the CPU has no words yet, the machine has no store as wide as the event, or the kernel aborted the section.
/// (`commit` of the specification.)
///
/// # Safety
/// The contract is that of [`add_in_area`], for the words at `base` that the event takes: N rounded up to 2, 4 or 8,
/// aligned to as many words.
#[inline(always)]
pub(crate) unsafe fn commit_in_area<const N: usize>(
    area: usize,
    base: *mut u8,
    table: *const u8,
    deltas: &[u64; N],
) -> bool {
    let delta = |index: usize| if index < N { deltas[index] } else { 0 };
    // SAFETY: the caller's promises are those of the functions called.
    unsafe {
        match N {
            2 => commit_16(area, base, table, [delta(0), delta(1)]),
            3 | 4 => {
                let deltas = [delta(0), delta(1), delta(2), delta(3)];
                match width_of_table(table) {
                    64.. => commit_32_evex(area, base, table, deltas),
                    32 => commit_32_vex(area, base, table, deltas),
                    _ => false,
                }
            }
            5..=8 if width_of_table(table) >= 64 => commit_64(
                area,
                base,
                table,
                [delta(0), delta(1), delta(2), delta(3), delta(4), delta(5), delta(6), delta(7)],
            ),
            _ => false,
        }
    }
}

/// Returns the bytes of one vector store of this machine: 16, 32 (AVX2) or 64 (AVX-512F and VL); 0
/// where the tag does not say "by rseq".
///
/// # Safety
/// The contract is that of [`offset_of_table`].
#[inline(always)]
unsafe fn width_of_table(table: *const u8) -> u32 {
    let width: u32;
    // SAFETY: as in `offset_of_table`.
    unsafe {
        asm!(
            "xor {width:e}, {width:e}",
            "test {table:l}, 1",
            "jz 2f",
            "mov {width:e}, dword ptr [{table} - 33]",
            "2:",
            width = out(reg) width,
            table = in(reg) table.addr(),
            options(pure, nomem, nostack),
        );
    }
    width
}

use std::arch::x86_64::{__m128i, _mm_set_epi64x};

#[inline(always)]
fn pair(low: u64, high: u64) -> __m128i {
    // SAFETY: SSE2 is part of x86-64.
    #[allow(unused_unsafe)]
    unsafe {
        _mm_set_epi64x(high as i64, low as i64)
    }
}

// Each of the following has the safety contract of `commit_in_area`; N and the width are in the name.

#[inline(always)]
unsafe fn commit_16(area: usize, base: *mut u8, table: *const u8, d: [u64; 2]) -> bool {
    // SAFETY: as in `add`; the one store is 16 bytes wide and aligned, so it cannot be split by an
    // interrupt.
    unsafe {
        if area == 0 {
            return false;
        }
        section!(
            prepare {}
            check {}
            body { "paddq {d0}, xmmword ptr [{t}]" ; commit "movdqa xmmword ptr [{t}], {d0}" }
            cleanup {}
            area = in(reg) area,
            table = in(reg) table,
            base = in(reg) base,
            t = out(reg) _,
            d0 = inlateout(xmm_reg) pair(d[0], d[1]) => _,
        );
    }
    true
}

#[inline(always)]
unsafe fn commit_32_vex(area: usize, base: *mut u8, table: *const u8, d: [u64; 4]) -> bool {
    // SAFETY: as in `commit_16`, 32 bytes; the caller has seen that AVX2 is there, and
    // by that the tag. `vzeroupper`
    // clears the upper halves of all sixteen registers, in which a function compiled for AVX may
    // keep something: so all of them are named.
    unsafe {
        section!(
            prepare { "vinserti128 ymm0, ymm0, xmm1, 1" }
            check {}
            body { "vpaddq ymm0, ymm0, ymmword ptr [{t}]" ; commit "vmovdqa ymmword ptr [{t}], ymm0" }
            cleanup { "vzeroupper" }
            area = in(reg) area,
            table = in(reg) table,
            base = in(reg) base,
            t = out(reg) _,
            inlateout("xmm0") pair(d[0], d[1]) => _,
            inlateout("xmm1") pair(d[2], d[3]) => _,
            out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _, out("xmm6") _,
            out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
        );
    }
    true
}

#[inline(always)]
unsafe fn commit_32_evex(area: usize, base: *mut u8, table: *const u8, d: [u64; 4]) -> bool {
    // SAFETY: as in `commit_16`, 32 bytes; the caller has seen that AVX-512VL is there, and by that the
    // tag.
    unsafe {
        section!(
            prepare { "vinserti32x4 ymm16, {d0:y}, {d1:x}, 1" }
            check {}
            body { "vpaddq ymm16, ymm16, ymmword ptr [{t}]" ; commit "vmovdqa64 ymmword ptr [{t}], ymm16" }
            cleanup {}
            area = in(reg) area,
            table = in(reg) table,
            base = in(reg) base,
            t = out(reg) _,
            d0 = in(xmm_reg) pair(d[0], d[1]),
            d1 = in(xmm_reg) pair(d[2], d[3]),
            out("xmm16") _,
        );
    }
    true
}

#[inline(always)]
unsafe fn commit_64(area: usize, base: *mut u8, table: *const u8, d: [u64; 8]) -> bool {
    // SAFETY: as in `commit_16`, 64 bytes; the caller has seen that AVX-512F and VL are there, and by that
    // the tag.
    unsafe {
        section!(
            prepare {
                "vinserti32x4 ymm16, {d0:y}, {d1:x}, 1",
                "vinserti32x4 ymm17, {d2:y}, {d3:x}, 1",
                "vinserti64x4 zmm16, zmm16, ymm17, 1"
            }
            check {}
            body { "vpaddq zmm16, zmm16, zmmword ptr [{t}]" ; commit "vmovdqa64 zmmword ptr [{t}], zmm16" }
            cleanup {}
            area = in(reg) area,
            table = in(reg) table,
            base = in(reg) base,
            t = out(reg) _,
            d0 = in(xmm_reg) pair(d[0], d[1]),
            d1 = in(xmm_reg) pair(d[2], d[3]),
            d2 = in(xmm_reg) pair(d[4], d[5]),
            d3 = in(xmm_reg) pair(d[6], d[7]),
            out("xmm16") _,
            out("xmm17") _,
        );
    }
    true
}

/// Adds `deltas` to the eight words of the current CPU's latched cache line of counters (kept twice, for consistent
/// reads) in an rseq critical section: changes the copy that is not current, `copies` bytes apart, and makes it current
/// by storing the sequence number, `sequence` bytes away (`latch_commit` of the specification).
///
/// Returns `false` if nothing was added and the slow path has to be taken.
///
/// # Safety
/// The contract is that of [`add`], for both copies of the line and for its sequence number.
pub(crate) unsafe fn latch_commit(
    line: *mut u8,
    table: *const u8,
    copies: usize,
    sequence: usize,
    deltas: &[u64; 8],
) -> bool {
    // SAFETY: as in `add`. The stores before the last go to the copy that the sequence number does
    // not name: an abort leaves them behind, and the next commit writes that copy whole.
    unsafe {
        let area = offset_of_table(table);
        section!(
            prepare {}
            check { "cmp qword ptr [{table} - 41], 0", "jne {slow}" }
            body {
                "mov {s}, qword ptr [{t} + {sequence}]",
                "mov {from:e}, {s:e}",
                "and {from:e}, 1",
                "imul {from}, {copies}",
                "mov {to}, {copies}",
                "sub {to}, {from}",
                "add {from}, {t}",
                "add {to}, {t}",
                "movdqu {v}, xmmword ptr [{deltas}]",
                "paddq {v}, xmmword ptr [{from}]",
                "movdqa xmmword ptr [{to}], {v}",
                "movdqu {v}, xmmword ptr [{deltas} + 16]",
                "paddq {v}, xmmword ptr [{from} + 16]",
                "movdqa xmmword ptr [{to} + 16], {v}",
                "movdqu {v}, xmmword ptr [{deltas} + 32]",
                "paddq {v}, xmmword ptr [{from} + 32]",
                "movdqa xmmword ptr [{to} + 32], {v}",
                "movdqu {v}, xmmword ptr [{deltas} + 48]",
                "paddq {v}, xmmword ptr [{from} + 48]",
                "movdqa xmmword ptr [{to} + 48], {v}",
                "inc {s}" ;
                commit "mov qword ptr [{t} + {sequence}], {s}"
            }
            cleanup {}
            area = in(reg) area,
            table = in(reg) table,
            base = in(reg) line,
            copies = in(reg) copies,
            sequence = in(reg) sequence,
            deltas = in(reg) deltas.as_ptr(),
            t = out(reg) _,
            s = out(reg) _,
            from = out(reg) _,
            to = out(reg) _,
            v = out(xmm_reg) _,
        );
    }
    true
}

/// Adds `value` to one 64-bit word of the current CPU's latched cache line (kept twice, `copies` bytes apart, for
/// consistent reads) in an rseq critical section, in the copy that the line's sequence number names; `word` and
/// `sequence` are the word and the number of the line that belongs to no CPU. Returns `false`, with nothing added, if
/// the CPU has no line yet or the kernel aborted the section. (`latch_add` of the specification.)
///
/// # Safety
/// The contract is that of [`latch_commit`].
pub(crate) unsafe fn latch_add(
    word: *mut u8,
    table: *const u8,
    copies: usize,
    sequence: *mut u8,
    value: u64,
) -> bool {
    // SAFETY: as in `add`: one store, to the copy that the sequence number names; a commit that
    // would change that number ends this section first, or comes after it.
    unsafe {
        let area = offset_of_table(table);
        section!(
            prepare {}
            check { "mov {s}, qword ptr [{t} + {sequence}]", "and {s:e}, 1", "imul {s}, {copies}", "add {t}, {s}" }
            body { ; commit "add qword ptr [{t}], {value}" }
            cleanup {}
            area = in(reg) area,
            table = in(reg) table,
            base = in(reg) word,
            copies = in(reg) copies,
            sequence = in(reg) sequence,
            value = in(reg) value,
            t = out(reg) _,
            s = out(reg) _,
        );
    }
    true
}

macro_rules! define_on_one_cpu {
    ($(#[$doc:meta])* $name:ident, $instruction:literal $(, $value:ident)?) => {
        $(#[$doc])*
        ///
        /// One instruction, which neither an interrupt nor a signal can split, so no lock prefix.
        ///
        /// # Safety
        /// The machine has one CPU; `word` is an aligned live `u64` that only these functions
        /// write.
        #[inline(always)]
        pub(crate) unsafe fn $name(word: *mut u8 $(, $value: u64)?) {
            // SAFETY: the word is live by the caller's promise.
            unsafe {
                asm!($instruction, word = in(reg) word, $($value = in(reg) $value,)? options(nostack));
            }
        }
    };
}

define_on_one_cpu!(
    /// Adds `value` to the 64-bit word at `word`, for machines with a single possible CPU.
    add_on_one_cpu, "add qword ptr [{word}], {value}", value
);
define_on_one_cpu!(
    /// Adds 1 to the 64-bit word at `word`, for machines with a single possible CPU.
    inc_on_one_cpu, "inc qword ptr [{word}]"
);
define_on_one_cpu!(
    /// Subtracts 1 from the 64-bit word at `word`, for machines with a single possible CPU.
    dec_on_one_cpu, "dec qword ptr [{word}]"
);

/// Adds `value` to the 64-bit counter word at `word`, which belongs to the calling thread: no other one writes it.
///
/// One instruction, which a signal cannot split; other threads only load the word.
///
/// # Safety
/// `word` is an aligned live `u64` that only this function writes, on this thread.
#[inline(always)]
pub(crate) unsafe fn add_by_owner(word: *mut u8, value: u64) {
    // SAFETY: the instruction is the same; of the machine's CPUs no other one writes the word.
    unsafe { add_on_one_cpu(word, value) };
}
