//! `join` of the specification for aarch64: an instance has two copies of its words and a sequence
//! number, whose store is the commit.

use super::super::{ITEMS, JoinIndex, JoinSettings};
use super::asm;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// One CPU's (or concurrency id's) copy of the four items (64-bit statistics) of a lazy object, which gets such copies
/// when CPUs first write; it is kept twice, and the lowest bit of a sequence number says which is current.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Instance {
    copies: [[AtomicU64; ITEMS]; 2],
    sequence: AtomicU64,
}

impl Instance {
    /// Returns the four words of the instance (a CPU's copy of a lazy object's four statistics) as atomics, for
    /// instances that rseq critical sections do not write.
    pub(crate) fn words(&self) -> &[AtomicU64; ITEMS] {
        &self.copies[0]
    }

    /// Returns all words of the instance (a CPU's copy of a lazy object's four statistics), which have to be zero while
    /// it is unused.
    pub(crate) fn all_words(&self) -> impl Iterator<Item = &AtomicU64> {
        self.copies.iter().flatten().chain([&self.sequence])
    }
}

/// Returns `true`: rseq critical sections can update lazy objects (four statistics each) on every aarch64 machine.
pub(crate) const fn can_join(_width: usize) -> bool {
    true
}

/// Values that are added to the items, or-ed to them, and the least that they become.
#[repr(C)]
struct Joined {
    sum: [u64; ITEMS],
    or: [u64; ITEMS],
    max: [u64; ITEMS],
}

/// Combines one value with each of the four words of an instance (a CPU's copy of a lazy object's four statistics), as
/// [`join`] does, for a caller that has loaded `at`, the settings' own. Returns `false`, with nothing stored, if
/// `index` is not the thread's present CPU (or concurrency id), a reader holds writers off, or the kernel aborted the
/// section.
///
/// # Safety
/// The contract is that of [`join`].
#[inline(always)]
pub(crate) unsafe fn join_at(
    _at: JoinIndex,
    settings: &JoinSettings,
    index: u32,
    instance: NonNull<Instance>,
    values: [u64; ITEMS],
) -> bool {
    // SAFETY: passed on.
    unsafe { join(settings, index, instance, values) }
}

/// Combines one value with each of the four 64-bit words of an instance (a CPU's copy of a lazy object's four
/// statistics) in an rseq critical section, by the operations in `settings` (sum, or, maximum). Returns `false`, with
/// nothing stored, if `index` is not the thread's present CPU (or concurrency id), a reader holds writers off, or the
/// kernel aborted the section. (`join` of the specification.)
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
    let masked = |mask: &[u64; ITEMS]| std::array::from_fn(|item| values[item] & mask[item]);
    let joined = Joined { sum: masked(&settings.sum), or: masked(&settings.or), max: masked(&settings.max) };
    // SAFETY: loads of the thread's own area and of live words. The stores before the last go to the
    // copy that the sequence number does not name: an abort leaves them behind, and the next commit
    // writes that copy whole. The barriers are those of `latch_commit`, for the same reasons.
    unsafe {
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
                "ldr {d:w}, [{t}, {field}]",
                "cmp {d:w}, {index:w}",
                "b.ne 23f",
                point!("32", "40"),
                "ldr {d}, [{hold}]",
                "cbnz {d}, 23f",
                "ldr {s}, [{instance}, #64]",
                "and {t}, {s}, #1",
                "add {from}, {instance}, {t}, lsl #5",
                "eor {t}, {t}, #1",
                "add {t}, {instance}, {t}, lsl #5",
                "add {s}, {s}, #1",
                "dmb ishst",
                "ldp {a}, {b}, [{from}]",
                "ldp {x}, {y}, [{joined}]",
                "add {a}, {a}, {x}",
                "add {b}, {b}, {y}",
                "ldp {x}, {y}, [{joined}, #32]",
                "orr {a}, {a}, {x}",
                "orr {b}, {b}, {y}",
                "ldp {x}, {y}, [{joined}, #64]",
                "cmp {a}, {x}",
                "csel {a}, {a}, {x}, hs",
                "cmp {b}, {y}",
                "csel {b}, {b}, {y}, hs",
                "stp {a}, {b}, [{t}]",
                "ldp {a}, {b}, [{from}, #16]",
                "ldp {x}, {y}, [{joined}, #16]",
                "add {a}, {a}, {x}",
                "add {b}, {b}, {y}",
                "ldp {x}, {y}, [{joined}, #48]",
                "orr {a}, {a}, {x}",
                "orr {b}, {b}, {y}",
                "ldp {x}, {y}, [{joined}, #80]",
                "cmp {a}, {x}",
                "csel {a}, {a}, {x}, hs",
                "cmp {b}, {y}",
                "csel {b}, {b}, {y}, hs",
                "stp {a}, {b}, [{t}, #16]",
                "add {d}, {instance}, #64",
                point!("48", "56"),
                "stlr {s}, [{d}]",
                "22:",
                ".subsection 1",
                // brk #0x45e0: the four bytes before the abort address must be glibc's RSEQ_SIG
                ".inst 0xd428bc00",
                "23: b {slow}",
                ".previous"
            ]
            t = out(reg) _,
            d = out(reg) _,
            area = in(reg) settings.area,
            field = in(reg) settings.field as usize,
            index = in(reg) index,
            hold = in(reg) &raw const settings.hold,
            instance = in(reg) instance.as_ptr(),
            joined = in(reg) &raw const joined,
            s = out(reg) _,
            from = out(reg) _,
            a = out(reg) _,
            b = out(reg) _,
            x = out(reg) _,
            y = out(reg) _,
        );
    }
    true
}

/// Reads the four values of an instance (a CPU's copy of a lazy object's four statistics), as of one moment; `None` if
/// an update was committed meanwhile.
///
/// # Safety
/// The instance lives.
#[inline]
pub(crate) unsafe fn load(instance: NonNull<Instance>) -> Option<[u64; ITEMS]> {
    // SAFETY: by the caller's promise.
    let instance = unsafe { instance.as_ref() };
    let before = instance.sequence.load(Ordering::Acquire);
    let copy = &instance.copies[before as usize & 1];
    let values = std::array::from_fn(|item| copy[item].load(Ordering::Relaxed));
    fence(Ordering::Acquire);
    (instance.sequence.load(Ordering::Relaxed) == before).then_some(values)
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
            "mrs {at}, tpidr_el0",
            "add {at}, {at}, {area}",
            "ldr {value:w}, [{at}, {field}]",
            at = out(reg) _,
            value = lateout(reg) value,
            area = in(reg) area,
            field = in(reg) field,
            options(nostack, preserves_flags, readonly),
        );
    }
    value
}
