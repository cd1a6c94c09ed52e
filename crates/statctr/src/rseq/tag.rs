//! The tag of a handle, which the sections test.

/// The tag in the low bits of a handle's table address, which says how the counter is updated: by rseq, by rseq on
/// latched lines (kept twice), atomically on a shared word, by words of threads and CPUs (striped), or by plain
/// instructions.
///
/// These values are part of the C ABI (`statctr.h` tests them in line).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum HandleTag {
    /// A section on the CPU's own word.
    Rseq = 1,
    /// An unlocked instruction on the home word, on a machine with one CPU.
    Uniprocessor = 2,
    /// A locked instruction on the home word.
    Atomic = 4,
    /// A section on the copy of the line that its sequence number names.
    Latch = 8,
    /// A plain instruction on the word of the stripe that belongs to the thread, or a locked one on another stripe's.
    Striped = 16,
}

/// The mask of the low bits in which a counter's handle keeps its tag (the way in which the counter is updated), in the
/// address of the table by which the counter's per-CPU words are found, which is aligned to more.
pub(crate) const TAG_MASK: usize = 63;
