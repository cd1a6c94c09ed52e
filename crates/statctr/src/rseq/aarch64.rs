//! The sections for aarch64, in the order of the specification in the parent module.
//!
//! - The thread pointer is read inside each section, which costs an instruction: read beside it,
//!   a compiler could keep it across a call that moves the caller's stack to another thread
//!   (coroutines), and the section would be armed in an area that is not this thread's.
//! - No store is wider than a word here. A pair or a vector is stored whole as others see it
//!   (FEAT_LSE2), but the architecture lets an interrupt come between its halves. Events of more
//!   than one item therefore live in lines with two copies.
//! - Stores become visible in any order, so the two copies need barriers; see [`latch_commit`].
//! - The way out and the abort address are one branch, in a subsection behind the function: a
//!   conditional branch reaches 1 MiB, which the slow path may be beyond.

use std::arch::asm;
use std::sync::atomic::AtomicPtr;

pub(crate) use super::one_cpu::*;

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
            "adrp {offset}, :got:__rseq_offset",
            "ldr {offset}, [{offset}, :got_lo12:__rseq_offset]",
            "adrp {size}, :got:__rseq_size",
            "ldr {size}, [{size}, :got_lo12:__rseq_size]",
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
    // SAFETY: `offset` is the areas', so the thread pointer + offset + 4 is the calling thread's
    // `cpu_id` field. It is volatile: the kernel writes it.
    unsafe {
        asm!(
            "mrs {area}, tpidr_el0",
            "add {area}, {area}, {offset}",
            "ldr {cpu:w}, [{area}, #4]",
            area = out(reg) _,
            cpu = lateout(reg) cpu,
            offset = in(reg) offset,
            options(nostack, preserves_flags, readonly),
        );
    }
    cpu
}

/// Clears the pointer to the last rseq critical section (`rseq_cs`) in the calling thread's rseq area.
pub(crate) fn clear_section(offset: isize) {
    // SAFETY: `offset` is the areas', so the thread pointer + offset + 8 is the calling thread's
    // `rseq_cs` field, which a thread may set to 0 at any time outside a section.
    unsafe {
        asm!(
            "mrs {area}, tpidr_el0",
            "add {area}, {area}, {offset}",
            "str xzr, [{area}, #8]",
            area = out(reg) _,
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
            "mov {offset}, xzr",
            "tbz {table}, #0, 2f",
            "ldur {offset}, [{table}, #-25]",
            "2:",
            offset = out(reg) offset,
            table = in(reg) table.addr(),
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    offset
}

/// Returns `true` if the tag bits of a table's address say that counters are updated by rseq; the compiler may hoist
/// the test out of loops.
///
/// # Safety
/// The contract is that of [`offset_of_table`].
#[inline(always)]
pub(crate) unsafe fn has_area(table: *const u8) -> bool {
    // SAFETY: passed on.
    unsafe { offset_of_table(table) != 0 }
}

/// Loads a pointer that is null at first and stored once; the compiler may hoist the load out of loops, which may then
/// see null for longer.
///
/// The asm block loads but is marked as reading no memory (`nomem`), as [`offset_of_table`]'s is, so that a loop does
/// it once. Therefore the result may be null, although the pointer is stored by now, for as long as the loop runs.
#[inline(always)]
pub(crate) fn load_stored_once(place: &'static AtomicPtr<u8>) -> *const u8 {
    let address: usize;
    // SAFETY: loads an aligned word that lives for ever; what it leads to was stored before, and is loaded by
    // its address.
    unsafe {
        asm!(
            "ldr {address}, [{place}]",
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

/// Returns the table's entry 0: loads by index have no room for the tag.
#[inline(always)]
fn entries_of_table(table: *const u8) -> *const u8 {
    table.wrapping_sub(super::HandleTag::Rseq as usize)
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
            "ldr {turns}, [{injections}, #",
            $delay,
            "]\n",
            "cbz {turns}, 31f\n",
            "30: sub {turns}, {turns}, #1\n",
            "cbnz {turns}, 30b\n",
            "31: ldr {turns}, [{injections}, #",
            $abort,
            "]\n",
            "cbz {turns}, 32f\n",
            "sub {turns}, {turns}, #1\n",
            "str {turns}, [{injections}, #",
            $abort,
            "]\n",
            "b 23f\n",
            "32:",
        )
    };
}

/// Expands to one critical section: `body` follows the load of the displacement into `{d}` and ends with the commit.
///
/// Labels: 20 the descriptor, 21 start, 22 end (the instruction after the commit), 23 abort.
macro_rules! section {
    (
        body { $($body:expr),* ; commit $commit:expr }
        $($operands:tt)*
    ) => {
        section_operands!(
            [
                descriptor!(),
                "mrs {t}, tpidr_el0",
                "add {t}, {t}, {area}",
                "adrp {d}, 20b",
                "add {d}, {d}, :lo12:20b",
                "str {d}, [{t}, #8]",
                "21:",
                point!("16", "24"),
                "ldrsw {d}, [{t}, #4]",
                point!("32", "40"),
                "ldr {d}, [{table}, {d}, lsl #3]",
                "cbz {d}, 23f",
                $($body,)*
                point!("48", "56"),
                $commit,
                "22:",
                ".subsection 1",
                // brk #0x45e0: the four bytes before the abort address must be glibc's RSEQ_SIG
                ".inst 0xd428bc00",
                "23: b {slow}",
                ".previous"
            ]
            t = out(reg) _,
            d = out(reg) _,
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
            turns = out(reg) _,
            injections = in(reg) crate::rseq::inject::INJECTIONS.as_ptr(),
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

macro_rules! define_add {
    ($(#[$doc:meta])* $name:ident, $in_area:ident, $sum:expr $(, $value:ident)?) => {
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
                    body { "ldr {t}, [{base}, {d}]", $sum ; commit "str {t}, [{base}, {d}]" }
                    area = in(reg) area,
                    table = in(reg) entries_of_table(table),
                    base = in(reg) base,
                    $($value = in(reg) $value,)?
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
    add, add_in_area, "add {t}, {t}, {value}", value
);
define_add!(
    /// Adds 1 to the current CPU's 64-bit word of a counter in an rseq critical section: `base` is the counter's word
    /// that belongs to no CPU, `table` has the distance from there to each CPU's word.
    inc, inc_in_area, "add {t}, {t}, #1"
);
define_add!(
    /// Subtracts 1 from the current CPU's 64-bit word of a counter in an rseq critical section: `base` is the counter's
    /// word that belongs to no CPU, `table` has the distance from there to each CPU's word.
    dec, dec_in_area, "sub {t}, {t}, #1"
);

/// Adds nothing and returns `false`, as aarch64 has no single store that is wide enough for several statistics.
/// (`commit` of the specification.)
///
/// # Safety
/// None needed here.
#[inline(always)]
pub(crate) unsafe fn commit_in_area<const N: usize>(
    _area: usize,
    _base: *mut u8,
    _table: *const u8,
    _deltas: &[u64; N],
) -> bool {
    false
}

/// Adds `deltas` to the counters of the current CPU's latched cache line (kept twice, for consistent reads) in an rseq
/// critical section: changes the copy that is not current, `copies` bytes apart, and makes it current by storing the
/// sequence number, `sequence` bytes away (`latch_commit` of the specification).
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
    //
    // A reader that sees one of them must find, when it looks again, the number that made this
    // copy the other one: so the barrier comes between that number's store, by the section before
    // this one on this CPU, and these. A reader that sees the new number must see them all: so the
    // commit is a release.
    unsafe {
        let area = offset_of_table(table);
        section!(
            body {
                "ldur {s}, [{table}, #-40]",
                "cbnz {s}, 23f",
                "add {d}, {d}, {line}",
                "add {number}, {d}, {sequence}",
                "ldr {s}, [{number}]",
                "tst {s}, #1",
                "csel {t}, {copies}, xzr, ne",
                "sub {to}, {copies}, {t}",
                "add {t}, {t}, {d}",
                "add {to}, {to}, {d}",
                "add {s}, {s}, #1",
                "dmb ishst",
                "ldp {d}, {x}, [{t}]",
                "ldp {y}, {z}, [{deltas}]",
                "add {d}, {d}, {y}",
                "add {x}, {x}, {z}",
                "stp {d}, {x}, [{to}]",
                "ldp {d}, {x}, [{t}, #16]",
                "ldp {y}, {z}, [{deltas}, #16]",
                "add {d}, {d}, {y}",
                "add {x}, {x}, {z}",
                "stp {d}, {x}, [{to}, #16]",
                "ldp {d}, {x}, [{t}, #32]",
                "ldp {y}, {z}, [{deltas}, #32]",
                "add {d}, {d}, {y}",
                "add {x}, {x}, {z}",
                "stp {d}, {x}, [{to}, #32]",
                "ldp {d}, {x}, [{t}, #48]",
                "ldp {y}, {z}, [{deltas}, #48]",
                "add {d}, {d}, {y}",
                "add {x}, {x}, {z}",
                "stp {d}, {x}, [{to}, #48]" ;
                commit "stlr {s}, [{number}]"
            }
            area = in(reg) area,
            table = in(reg) entries_of_table(table),
            line = in(reg) line,
            copies = in(reg) copies,
            sequence = in(reg) sequence,
            deltas = in(reg) deltas.as_ptr(),
            s = out(reg) _,
            number = out(reg) _,
            to = out(reg) _,
            x = out(reg) _,
            y = out(reg) _,
            z = out(reg) _,
        );
    }
    true
}

/// Adds `value` to one counter's 64-bit word in the current CPU's latched cache line (kept twice, `copies` bytes apart,
/// for consistent reads) in an rseq critical section, in the copy that the line's sequence number names; `word` and
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
            body {
                "ldr {s}, [{sequence}, {d}]",
                "tst {s}, #1",
                "csel {s}, {copies}, xzr, ne",
                "add {d}, {d}, {s}",
                "ldr {t}, [{word}, {d}]",
                "add {t}, {t}, {value}" ;
                commit "str {t}, [{word}, {d}]"
            }
            area = in(reg) area,
            table = in(reg) entries_of_table(table),
            word = in(reg) word,
            copies = in(reg) copies,
            sequence = in(reg) sequence,
            value = in(reg) value,
            s = out(reg) _,
        );
    }
    true
}
