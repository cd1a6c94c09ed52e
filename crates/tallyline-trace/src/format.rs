//! The file: blocks, each of four letters, the length of what follows (32 bits), and that.
//!
//! Numbers have their lowest byte first. A *varint* has seven bits a byte, lowest first; a *zigzag*
//! puts the sign into its lowest bit. Blocks are appended whole by the threads of a program and of
//! the processes it forks; those of one thread are in the order of its time, and what a block refers
//! to comes before it.
//!
//! | block | holds |
//! |---|---|
//! | `TLT1` | first: 1 for a whole machine, plus 2 for chosen functions only (32), version of QEMU's interface (32), one of how many accesses (64), process (32), nanoseconds (64), length (16) and name of the machine |
//! | `MAPS` | process (32), 1 read 2 write 4 execute (32), address (64), length (64), offset in the file (64), length (16) and path of the file |
//! | `INSN` | number of the first instruction (64), count (32), then each: varint of twice the zigzag of the distance from the end of the one before, plus 1 if it is atomic; its length (8) |
//! | `ACCS` | process (32), thread (32), accesses (32), points (32), then where the distances start from: instructions run (64), instruction (64), address (64); nanoseconds of the first and the last (64 each), events |
//! | `NAME` | process (32), thread (32), length (16) and name of the thread |
//! | `EXEC` | process (32), length (16) and path of the program that it is about to become, which is not traced |
//! | `BACK` | process (32): it could not become that program, and goes on |
//! | `DONE` | process (32), 1 if the file got too large, 2 if it could not be written (32), instructions run (64; in a sample 0), accesses written (64) |
//!
//! Of a trace of chosen functions the instructions run are an estimate: of those outside not all blocks are counted, and
//! of loops in which threads wait for others none. Its atomic instructions are no points of synchronisation, as those
//! outside would be missing in their order.
//!
//! An event begins with a varint. Its three lowest bits are the access's size as a power of two; then
//! come a bit for a store, a bit that says that as many instructions were run as lie between this one
//! and the last, and the zigzag of the distance to the last instruction's number. Where the bit is not
//! set, a varint of the instructions run follows. Last is the zigzag of the distance to the address
//! that the instruction last used, of those whose number has the same lowest 8 bits, in this block; if
//! there was none, to the last address.
//!
//! If the three bits are 7 it is a point of synchronisation: the rest is its kind, and then come two
//! varints, the distances of its number (in the order of all threads) and of the instructions run.

/// The four bytes at the start of a trace file, by which the format is recognised.
pub(crate) const MAGIC: [u8; 4] = *b"TLT1";

/// The largest block of a trace file, in bytes, that the reader accepts; a longer one is damage.
pub(crate) const BLOCK_LIMIT: u32 = 1 << 20;

/// The header of a trace file: when, how and on which emulated machine the memory accesses were recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceHeader {
    /// `true` for a trace of a whole emulated machine with its kernel, whose threads are CPUs.
    pub(crate) whole_machine: bool,
    /// `true` if only the accesses of chosen functions are in the file.
    pub(crate) windowed: bool,
    /// The version of the interface between QEMU and the plugin.
    pub(crate) interface: u32,
    /// The sampling interval: one of this many accesses is in the file on average.
    pub(crate) every: u64,
    /// The id of the first process, that of the traced command.
    pub(crate) process: u32,
    /// The start: nanoseconds of the machine's monotonic clock.
    pub(crate) time: u64,
    /// The emulated machine, as QEMU names it.
    pub(crate) machine: String,
}

impl TraceHeader {
    /// Returns `true` if a whole emulated machine with its kernel was traced, so that the trace's threads are its
    /// CPUs.
    #[inline]
    pub fn whole_machine(&self) -> bool {
        self.whole_machine
    }

    /// Returns `true` if only the accesses of chosen functions were recorded (`tallyline record --trace` with a
    /// list of functions).
    #[inline]
    pub fn windowed(&self) -> bool {
        self.windowed
    }

    /// Returns the process id of the traced command, the first process in the trace.
    #[inline]
    pub fn first_process(&self) -> u32 {
        self.process
    }

    /// Returns the time at which the trace was started, in nanoseconds of the recording host's monotonic clock.
    #[inline]
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Returns the architecture that QEMU emulated, by QEMU's name, such as `x86_64`.
    #[inline]
    pub fn machine(&self) -> &str {
        &self.machine
    }
}

/// A file that a traced process had mapped into memory: address range, offset in the file, protection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The id of the process that mapped the file.
    pub(crate) process: u32,
    /// The protection, as a sum: 1 read, 2 write, 4 execute.
    pub(crate) protection: u32,
    /// The address of the mapping's first byte.
    pub(crate) start: u64,
    /// The length of the mapping in bytes.
    pub(crate) length: u64,
    /// The offset in the file at which the mapping begins.
    pub(crate) offset: u64,
    /// The path of the mapped file.
    pub(crate) path: String,
}

impl Mapping {
    /// Returns the id of the process that mapped the file.
    #[inline]
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Returns the address of the mapping's first byte in the traced process.
    #[inline]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Returns the offset in the file of the byte that is mapped at [`start`](Self::start).
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the path of the mapped file.
    #[inline]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Converts an address of the traced process to an offset in the mapped file; `None` if the address is outside
    /// of the mapping.
    pub(crate) fn offset_of(&self, address: u64) -> Option<u64> {
        let distance = address.checked_sub(self.start).filter(|distance| *distance < self.length)?;
        self.offset.checked_add(distance)
    }

    /// Returns `true` if the traced process mapped the file as executable code.
    pub(crate) fn is_code(&self) -> bool {
        self.protection & 4 != 0
    }
}

/// The totals that a trace file holds of a process that ended: instructions, accesses, and whether its trace was
/// cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessEnd {
    /// The id of the process that ended.
    pub(crate) process: u32,
    /// `true` if the file reached its size limit: the rest is missing.
    pub(crate) full: bool,
    /// `true` if writing the file failed: the rest is missing.
    pub(crate) broken: bool,
    /// The number of instructions that the process's threads ran; 0 in a sample.
    pub(crate) instructions: u64,
    /// The number of the process's accesses in the file.
    pub(crate) accesses: u64,
}

impl ProcessEnd {
    /// Returns the id of the process that ended.
    #[inline]
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Returns `true` if the trace file reached its size limit before the process ended, so that its later accesses
    /// are missing.
    #[inline]
    pub fn full(&self) -> bool {
        self.full
    }

    /// Returns `true` if writing the trace file failed before the process ended, so that its later accesses are
    /// missing.
    #[inline]
    pub fn broken(&self) -> bool {
        self.broken
    }

    /// Returns the number of instructions that the process's threads executed; 0 where only a sample of the
    /// accesses was recorded.
    #[inline]
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Returns the number of the process's memory accesses that are in the trace file.
    #[inline]
    pub fn accesses(&self) -> u64 {
        self.accesses
    }
}

/// A traced process that replaced itself by another program (`exec`), from where on it is not traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessExec {
    /// The id of the process that replaced itself.
    pub(crate) process: u32,
    /// The program, as the process named it.
    pub(crate) path: String,
}

/// One recorded memory access: the instruction, the address and size, read or write, and its place in the thread's
/// instruction count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The instruction, as an index of the trace's [`Instructions`](super::Instructions).
    pub(crate) instruction: u32,
    /// The address of the first byte that was accessed.
    pub(crate) address: u64,
    /// The size of the access in bytes.
    pub(crate) size: u8,
    /// `true` for a write, and for an access that reads and writes in one.
    pub(crate) store: bool,
    /// The number of instructions that the thread had run.
    pub(crate) now: u64,
}

impl Access {
    /// Creates a memory access of `size` bytes at `address`, a write if `store`, by the instruction with that index
    /// in the trace; `now` is the number of instructions that the thread had executed.
    #[inline]
    pub fn new(instruction: u32, address: u64, size: u8, store: bool, now: u64) -> Self {
        Self { instruction, address, size, store, now }
    }

    /// Returns the instruction that made the access, as an index of the trace's
    /// [`Instructions`](super::Instructions).
    #[inline]
    pub fn instruction(&self) -> u32 {
        self.instruction
    }

    /// Returns the address of the first byte that was read or written.
    #[inline]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the number of bytes that were read or written.
    #[inline]
    pub fn size(&self) -> u8 {
        self.size
    }

    /// Returns `true` if the access writes memory; a read-modify-write is a write.
    #[inline]
    pub fn store(&self) -> bool {
        self.store
    }

    /// Returns the number of instructions that the thread had executed when it made the access: the trace's clock.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now
    }
}

/// An event in the trace of a thread: a memory access, or a synchronisation with other threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An access to memory.
    Access(Access),
    /// A point of synchronisation with other threads.
    Sync {
        /// The kind of point.
        kind: SyncPoint,
        /// The position of the point in the order of all threads' points.
        number: u64,
        /// The number of instructions that the thread had run.
        now: u64,
    },
}

/// The kind of a traced thread's synchronisation with others: an atomic instruction, a futex call, the start, end or
/// creation of a thread, or the start or end of a spin loop that is left out of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPoint {
    /// An atomic instruction; its accesses follow.
    Atomic,
    /// The thread's first instruction.
    Start,
    /// The end of the thread.
    Exit,
    /// A futex call that wakes others.
    Wake,
    /// The return of a futex call that waited.
    Waited,
    /// A thread or process that is about to be made.
    Clone,
    /// The start of a loop that only waits for other threads: what they wait for of this one was done before.
    Spins,
    /// The first traced block behind a loop that only waits for other threads.
    Spun,
}

impl SyncPoint {
    pub(super) fn from_number(number: u64) -> Option<Self> {
        Some(match number {
            0 => Self::Atomic,
            1 => Self::Start,
            2 => Self::Exit,
            3 => Self::Wake,
            4 => Self::Waited,
            5 => Self::Clone,
            6 => Self::Spins,
            7 => Self::Spun,
            _ => return None,
        })
    }

    /// Returns `true` for a synchronisation by a system call (futex, start, end or creation of a thread) or by a spin
    /// loop that is left out, whose recorded order a replay must keep; `false` for an atomic instruction.
    pub(crate) fn is_awaited(self) -> bool {
        self != Self::Atomic
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_an_offset_only_where_it_is_mapped() {
        let mapping = Mapping {
            process: 1,
            protection: 5,
            start: 0x1000,
            length: 0x100,
            offset: 0x40,
            path: "/bin/program".into(),
        };
        assert_eq!(mapping.offset_of(0x1000), Some(0x40));
        assert_eq!(mapping.offset_of(0x10ff), Some(0x13f));
        assert_eq!(mapping.offset_of(0x1100), None);
        assert_eq!(mapping.offset_of(0xfff), None);
        let at_the_end = Mapping { offset: u64::MAX, ..mapping };
        assert_eq!(at_the_end.offset_of(0x1001), None, "no overflow");
    }
}
