//! Restartable sequences: how a thread adds to its CPU's word without a lock prefix.
//!
//! The kernel keeps, in an area that is registered for each thread (by glibc 2.35 and later, 2.34 of
//! RHEL 9; elsewhere by this library, see `registration`), the number of the CPU that the thread runs on. A *section* is a few instructions that
//! end with one store, the *commit*; where the thread is preempted, migrated or signalled inside a
//! section, the kernel continues it at the section's abort address, and nothing has been stored. A
//! section therefore either commits on the CPU whose number it read, or has no effect.
//!
//! # The sections, specified once
//! ```text
//! T = the reservation's table: T[cpu] is the displacement from a counter's home word to that
//! CPU's word, 0 while the CPU is not announced; T[-1] = T[-2] = 0, because an unregistered
//! thread reads CPU number -1, and one whose registration was refused reads -2.
//!
//! add(base, T, v):                        commit(base, T, d[0..n]):         n·8 = 16, 32 or 64
//!   arm: rseq_cs := this section            arm
//!   [1] c := cpu_id                         [1] c := cpu_id
//!   [2] t := T[c]                           [2] t := T[c]
//!       if t = 0 leave for the slow path        if t = 0 leave for the slow path
//!       t := t + base                           t := t + base
//!   [3] *t := *t + v          (commit)          x := d + t[0..n]
//!                                           [3] t[0..n] := x                  (commit)
//!
//! add_to_static(H, T, v):                  the home word's address is at H, null while there is none, and
//!   h := *H                                 stored once, so that a loop loads it once, and tests its range;
//!   arm                                     displacements in T are negative, as addresses of 64 bits
//!   [1] c := cpu_id
//!   [2] t := T[c]
//!       t := t + h
//!       if that did not carry leave for the slow path: one of the two was 0
//!   [3] *t := *t + v          (commit)
//!
//! add_predicted(base, T, p, v):           p where the CPU's words were last time, and not 0
//!   arm
//!   [1] c := cpu_id
//!   [2] t := T[c]
//!       if t ≠ p leave for add
//!   [3] *(base + p) := *(base + p) + v      (commit)
//!
//! latch_commit(base, T, d[0..8]):          two copies of a line and a sequence number, where
//!   arm                                     one store cannot hold the event
//!   [1] c := cpu_id
//!   [2] t := T[c]
//!       if t = 0 or a reader holds the reservation leave for the slow path
//!       s := sequence of the line
//!       other copy := this copy + d        this copy = s mod 2; nobody reads the other
//!   [3] sequence := s + 1     (commit)
//!
//! latch_add(base, T, v):
//!   as add, to the copy that the sequence names
//!
//! add_float(base, T, E, v):                a sum, and the epoch that it belongs to
//!   arm
//!   [1] c := cpu_id
//!   [2] t := T[c]
//!       if t = 0 leave for the slow path
//!       t := t + base
//!       e := *E
//!       if t[1] = e
//!   [3]     t[0] := t[0] + v  (commit)
//!       else
//!           t[0] := v                      a sum of another epoch: nobody adds it
//!   [3]     t[1] := e         (commit)     the same instruction as above, with another address
//!
//! raise(base, T, E, e, v):                 a maximum, in the words of the epoch e
//!   arm
//!   [1] c := cpu_id
//!   [2] t := T[c]
//!       if t = 0 leave for the slow path
//!       t := t + base
//!       if *E ≠ e leave, too
//!       if t[1] = e
//!           if t[0] >= v done
//!   [3]     t[0] := v         (commit)
//!       else
//!           t[0] := v                      a maximum of another epoch: nobody reads it
//!   [3]     t[1] := e         (commit)     the same instruction as above, with another address
//!
//! add_bounded(base, T, limit, v):          claim(base, T, claimed):
//!   arm                                      arm
//!   [1] c := cpu_id                          [1] c := cpu_id
//!   [2] t := T[c]                            [2] t := T[c]
//!       if t = 0 leave for the slow path         if t = 0 leave for the slow path
//!       t := t + base                            t := t + base
//!       s := t[0] + v                            *claimed := t[0] - t[1]   a word of the caller's
//!       if |s - t[1]| > limit leave, too
//!   [3] t[0] := s             (commit)       [3] t[1] := t[0]              (commit)
//!
//! add_stamped(base, T, v; H, l, E):       line l of a piece whose folds read what was written:
//!   arm                                     H its first word, E its epoch, which readers advance
//!   [1] c := cpu_id
//!   [2] t := T[c]
//!       if t = 0 leave for the slow path
//!       e := *E
//!       latest of (t + H) := e              no section before this one on c has a later epoch,
//!       stamp of l in (t + H) := e          and all that had an earlier one are over; both unless they are so
//!       t := t + base
//!   [3] *t := *t + v          (commit)      likewise commit_stamped; an abort leaves a stamp behind,
//!                                           and the line is read in vain
//!
//! join(field, i, line, s[0..4], o[0..4], m[0..4]):            four words of a lazy object whose
//!   arm                                                         index i was looked up before: a CPU
//!   [1] if field ≠ i leave                                      or a concurrency id (mm_cid)
//!   [2] x := max((line[0..4] + s) or o, m)                      of s, o and m two are 0 for each item
//!   [3] line[0..4] := x       (commit)                          or, in two copies, as latch_commit
//! ```
//! An abort is never retried in line: the slow path announces the CPU, tries again a bounded
//! number of times ([`TRIES`]) and then uses the fallback cell, so a thread that is stopped after
//! every instruction (a debugger's single step) gets on all the same.
//!
//! Source: Linux `kernel/rseq.c`, `include/uapi/linux/rseq.h`; glibc manual, *Restartable
//! Sequences*.
//!
//! # What is left out
//! Sections for other architectures than x86-64 and little-endian aarch64: there counters run in the
//! atomic mode.

#![allow(unsafe_code)] // the sections are machine code; see each block's reason
#![allow(named_asm_labels)] // one name, which is each block's own; see `descriptor`

/// The descriptor of a section, label 20: it goes from label 21 to label 22, and is aborted to label
/// 23.
///
/// A linker that drops unused functions must drop their descriptors with them, and nothing else may
/// keep a function. So each descriptor lies in a section that is linked to the code around it (`o`,
/// SHF_LINK_ORDER) and in the function's COMDAT group if it has one (`?`); in one section for the
/// whole object file all functions that count would stay because one of them does.
///
/// The symbol that names the code must have been defined before, and be no numeric label. `asm!` has
/// no number of its own to make a name of, but the way out has: the compiler's label of a block of
/// this function. Two sections can have one way out, in one function, and then one symbol serves both.
#[cfg(all(
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")),
    target_os = "linux",
    not(any(miri, feature = "portable"))
))]
macro_rules! descriptor {
    () => {
        concat!(
            ".ifndef .Lstatctr_section{slow}\n",
            ".Lstatctr_section{slow}:\n",
            ".endif\n",
            ".pushsection __rseq_cs, \"awo?\", @progbits, .Lstatctr_section{slow}\n",
            ".balign 32\n",
            "20: .long 0, 0\n",
            ".quad 21f, 22f - 21f, 23f\n",
            ".popsection"
        )
    };
}

/// Expands to the definition of the threads' own area, as libraries before glibc's registration have it: weak, so
/// that all copies in one object are one. The 32 bytes in front are nobody's.
#[cfg(all(
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")),
    target_os = "linux",
    not(any(miri, feature = "portable"))
))]
macro_rules! area_definition {
    () => {
        concat!(
            ".ifndef __rseq_abi\n",
            ".pushsection .tdata, \"awT\", @progbits\n",
            ".balign 32\n",
            ".zero 32\n",
            ".weak __rseq_abi\n",
            ".type __rseq_abi, @object\n",
            ".size __rseq_abi, 32\n",
            "__rseq_abi: .long 0, -1\n",
            ".zero 24\n",
            ".popsection\n",
            ".endif"
        )
    };
}

/// Expands to the definition of the number of those who registered the thread's area.
#[cfg(all(
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")),
    target_os = "linux",
    not(any(miri, feature = "portable"))
))]
macro_rules! refcount_definition {
    () => {
        concat!(
            ".ifndef __rseq_refcount\n",
            ".pushsection .tbss, \"awT\", @nobits\n",
            ".balign 4\n",
            ".weak __rseq_refcount\n",
            ".type __rseq_refcount, @object\n",
            ".size __rseq_refcount, 4\n",
            "__rseq_refcount: .zero 4\n",
            ".popsection\n",
            ".endif"
        )
    };
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(any(miri, feature = "portable"))))]
mod x86_64;
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(any(miri, feature = "portable"))))]
pub(crate) use x86_64::*;

#[cfg(all(
    target_arch = "aarch64",
    target_endian = "little",
    target_os = "linux",
    not(any(miri, feature = "portable"))
))]
mod aarch64;
#[cfg(all(
    target_arch = "aarch64",
    target_endian = "little",
    target_os = "linux",
    not(any(miri, feature = "portable"))
))]
pub(crate) use aarch64::*;

#[cfg(not(all(
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")),
    target_os = "linux",
    not(any(miri, feature = "portable"))
)))]
mod portable;
#[cfg(not(all(
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")),
    target_os = "linux",
    not(any(miri, feature = "portable"))
)))]
pub(crate) use portable::*;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(any(miri, feature = "portable")))))]
mod one_cpu;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(any(miri, feature = "portable")))))]
mod unowned;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(any(miri, feature = "portable")))))]
pub(crate) use unowned::*;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(any(miri, feature = "portable")))))]
mod unstamped;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(any(miri, feature = "portable")))))]
pub(crate) use unstamped::*;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(any(miri, feature = "portable")))))]
mod unpredicted;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(any(miri, feature = "portable")))))]
pub(crate) use unpredicted::*;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(any(miri, feature = "portable")))))]
mod any_static;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(any(miri, feature = "portable")))))]
pub(crate) use any_static::*;

/// `true` if this target has rseq critical sections.
const HAS_SECTIONS: bool = cfg!(all(
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")),
    target_os = "linux",
    not(any(miri, feature = "portable"))
));

/// Evaluates to `true` where a test wants this request to fail; never without the feature `inject`.
macro_rules! is_refused {
    ($site:ident) => {{
        #[cfg(feature = "inject")]
        let refused = $crate::rseq::inject::fails($crate::rseq::inject::Site::$site);
        #[cfg(not(feature = "inject"))]
        let refused = false;
        refused
    }};
}
pub(crate) use is_refused;

mod barrier;
mod first_block;
#[cfg(feature = "inject")]
pub mod inject;
mod registration;
mod self_test;
mod tag;

pub(crate) use barrier::{end_sections, end_sections_on};
pub(crate) use first_block::{FirstBlock, HOME_BYTES};
pub(crate) use registration::{Outcome, registered_cpu, settle};
pub use registration::{Registration, registration};
pub(crate) use self_test::{Verdict, request as request_test, verdict};
pub(crate) use tag::{HandleTag, TAG_MASK};

use std::sync::atomic::AtomicU64;

/// The number of items (64-bit statistics) of a lazy object, which gets per-CPU copies of them when CPUs first write:
/// four, as many as one vector store commits.
pub(crate) const ITEMS: usize = 4;

/// The parameters with which rseq critical sections update (join values into) the lazy objects (four statistics each) of a
/// pool: masks of the items that are summed, or-ed and maximised, field of the rseq area with the number (CPU or
/// concurrency id) of the copy to write, vector width. Part of the C ABI.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct JoinSettings {
    /// The masks of the items that are summed: all ones for those, 0 for others.
    pub(crate) sum: [u64; ITEMS],
    /// The masks of the items that are or-ed: all ones for those, 0 for others.
    pub(crate) or: [u64; ITEMS],
    /// The masks of the items that are maximised: all ones for those, 0 for others.
    pub(crate) max: [u64; ITEMS],
    /// Offset of the thread's rseq area from the thread pointer.
    pub(crate) area: isize,
    /// Offset of the number of the copy to write (CPU or concurrency id) in the rseq area.
    pub(crate) field: u32,
    /// Bytes of the widest vector store; 0 where sections may not be used.
    pub(crate) width: u32,
    /// While not zero, sections with two copies leave: a reader is waiting.
    pub(crate) hold: AtomicU64,
    /// Number of indices that an object's table has places for.
    pub(crate) indices: u32,
    /// Number of CPUs whose updates are in line: `indices`, but no more than there are marks of pairs, where sections
    /// are told apart by the CPU, else 0.
    pub(crate) cpus: u32,
}

/// The part of [`JoinSettings`] that tells where threads have their index (the CPU or concurrency id whose copy of a
/// lazy object's four statistics they update) and how wide stores are. By value: behind a load that acquires, the
/// compiler would load it again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JoinIndex {
    pub(crate) area: isize,
    pub(crate) field: u32,
    pub(crate) width: u32,
}

impl JoinSettings {
    #[inline(always)]
    pub(crate) fn index(&self) -> JoinIndex {
        JoinIndex { area: self.area, field: self.field, width: self.width }
    }

    /// Returns the index of pools whose copies belong to CPUs.
    #[inline(always)]
    pub(crate) fn cpu_index(&self) -> JoinIndex {
        JoinIndex { field: CPU_ID as u32, ..self.index() }
    }
}

const _: () = assert!(
    std::mem::offset_of!(JoinSettings, area) == 96 && std::mem::offset_of!(JoinSettings, cpus) == 124
);

/// The parameters of a stamp, which an update of a counter stores to mark its cache line as written: offset of the rseq
/// area, address of the stamps, current epoch (time between two folds, which reread what was written), index of the line.
#[derive(Debug, Clone, Copy)]
#[allow(dead_code)] // read by sections alone, where there are some that stamp
pub(crate) struct Stamps {
    /// The offset of the threads' rseq areas ([`offset_of_table`]); 0 where sections may not be used.
    pub(crate) area: usize,
    /// The piece's first word in the home unit. In a CPU's unit it is the latest epoch that was stamped there; the
    /// stamps, bytes by line, begin 64 bytes on.
    pub(crate) head: *mut u8,
    /// The address of the current epoch of the piece.
    pub(crate) epoch: *const u8,
    /// The index of the cache line in the piece.
    pub(crate) line: usize,
}

/// The number of times that the slow path of a counter's update retries its rseq critical section before it uses the
/// fallback cell, a word that all CPUs add to atomically.
///
/// A section of a few nanoseconds that is preempted this often in a row runs under a debugger or an emulator.
pub(crate) const TRIES: usize = 16;

/// Returns the offset of threads' rseq areas from the thread pointer; `None` if rseq cannot be used: no registration,
/// not looked for yet, or this kernel failed the test of whether it aborts rseq critical sections.
pub(crate) fn offset() -> Option<isize> {
    registration::offset().filter(|_| self_test::is_trusted())
}

/// Returns the [`offset`] of threads' rseq areas, after looking for a registration and, if necessary, testing whether
/// this kernel aborts rseq critical sections; `None` if rseq cannot be used. It may start threads and take two seconds,
/// so it is for building pools only.
pub(crate) fn tested_offset() -> Option<isize> {
    registration::settle();
    self_test::test_once(registration::offset()?);
    offset()
}

/// Returns the [`offset`] of threads' rseq areas if it can be found without threads, locks or allocation: where libc
/// registers threads and this kernel needs no test, or it was found before; else `None`. Async-signal-safe, but for
/// `errno`.
pub(crate) fn offset_at_once() -> Option<isize> {
    registration::settle_by_libc();
    if self_test::is_due() { None } else { offset() }
}

/// Returns `true` if rseq critical sections will never be used in this process: none exist for this architecture,
/// nobody registers threads, or this kernel does not abort them as documented; `false` while that is unknown.
/// Async-signal-safe.
pub(crate) fn is_ruled_out() -> bool {
    !HAS_SECTIONS || registration::is_ruled_out() || !self_test::is_trusted()
}

/// The offset in bytes of the field `cpu_id` (number of the CPU) in a thread's rseq area.
pub(crate) const CPU_ID: usize = 4;
/// The offset in bytes of the field `node_id` (number of the CPU's NUMA node) in a thread's rseq area, if the kernel has
/// it ([`has_node_id`]).
pub(crate) const NODE_ID: usize = 20;
/// The offset in bytes of the field `mm_cid` (concurrency id) in a thread's rseq area, if the kernel has it
/// ([`has_mm_cid`]).
pub(crate) const MM_CID: usize = 24;

/// Returns `true` if this kernel maintains concurrency ids (`mm_cid`, Linux 6.3): numbers, unique among the running
/// threads of a process, below the smaller of its threads and the CPUs that it may use.
///
/// The kernel shows it by the size of the area that it maintains, in the auxiliary vector; glibc's `__rseq_size` does
/// not.
pub(crate) fn has_mm_cid() -> bool {
    offset().is_some() && crate::sys::rseq_feature_size() >= MM_CID + 4
}

/// Returns `true` if this kernel maintains the number of the NUMA node in threads' rseq areas (`node_id`, Linux 6.3),
/// which it shows as it does for concurrency ids ([`has_mm_cid`]).
pub(crate) fn has_node_id() -> bool {
    offset().is_some() && crate::sys::rseq_feature_size() >= NODE_ID + 4
}

/// Returns the number of the CPU that the calling thread runs on, from its rseq area; `None` if the thread is not
/// registered (it is registered first where that is this library's task). May be outdated at once. Async-signal-safe.
pub(crate) fn current_cpu() -> Option<u32> {
    registered_cpu(offset()?)
}

/// Clears the pointer to the last rseq critical section in the calling thread's rseq area. Necessary before the code of
/// that section is unloaded.
///
/// A thread's rseq area still points to the last section after that has ended, and the kernel reads the address at the
/// next preemption. Before code with sections is unmapped (`dlclose` of a plug-in that counts), every thread that ran
/// it must call this.
pub fn forget_section() {
    if let Some(offset) = offset() {
        clear_section(offset);
    }
}

#[cfg(all(
    test,
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")),
    target_os = "linux",
    not(any(miri, feature = "portable"))
))]
mod tests {
    use super::*;

    #[test]
    fn a_handle_that_is_not_for_sections_has_no_area_whatever_its_table() {
        // all that stands around the field would show
        #[repr(align(64))]
        struct Table([u64; 16]);
        let mut table = Table([u64::MAX; 16]);
        table.0[5] = 0x1234;
        publish_header((&raw const table).cast());
        let entries = (&raw const table.0[8]).cast::<u8>();
        for tag in 0..64 {
            // SAFETY: the header is there for every tag.
            let offset = unsafe { offset_of_table(entries.wrapping_add(tag)) };
            assert_eq!(offset != 0, tag & 1 == 1, "tag {tag}");
            assert!(tag != 1 || offset == 0x1234);
        }
        // SAFETY: looked at, and not followed.
        assert_eq!(unsafe { offset_of_table(std::ptr::null()) }, 0, "nor has one that was never made");
    }
}
