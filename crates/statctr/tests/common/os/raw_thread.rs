//! Threads that a raw `clone` makes past libc, in a copy of their maker's thread area.

use super::rseq::thread_pointer;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};

/// Bytes of a raw thread's stack.
const STACK_BYTES: usize = 1 << 20;

/// Bytes of an rseq area that every kernel and libc has.
const AREA_BYTES: usize = 32;

/// Returns the calling thread's stack pointer.
#[inline(never)]
fn stack_pointer() -> usize {
    let pointer: usize;
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register.
    unsafe {
        std::arch::asm!("mov {}, sp", out(reg) pointer, options(nostack, nomem))
    };
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a register.
    unsafe {
        std::arch::asm!("mov {}, rsp", out(reg) pointer, options(nostack, nomem))
    };
    pointer
}

/// Returns the offset of the library's `__rseq_refcount` from the thread pointer.
fn refcount_offset() -> isize {
    let offset: isize;
    #[cfg(target_arch = "aarch64")]
    // SAFETY: loads the offset of a thread-local symbol of this program.
    unsafe {
        std::arch::asm!(
            "adrp {offset}, :gottprel:__rseq_refcount",
            "ldr {offset}, [{offset}, :gottprel_lo12:__rseq_refcount]",
            offset = out(reg) offset,
            options(nostack, readonly)
        )
    };
    #[cfg(target_arch = "x86_64")]
    // SAFETY: loads the offset of a thread-local symbol of this program.
    unsafe {
        std::arch::asm!(
            "mov {offset}, qword ptr [rip + __rseq_refcount@GOTTPOFF]",
            offset = out(reg) offset,
            options(nostack, readonly)
        )
    };
    offset
}

/// Returns the end of the mapping of the calling thread, which pthread_create made: its stack, and above that its
/// thread-local variables and libc's descriptor of it.
fn end_of_mapping() -> usize {
    let (mut start, mut bytes) = (std::ptr::null_mut(), 0);
    // SAFETY: all zeros is memory for attributes, which the first call fills and the last frees.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        assert_eq!(libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes), 0);
        assert_eq!(libc::pthread_attr_getstack(&raw const attributes, &raw mut start, &raw mut bytes), 0);
        libc::pthread_attr_destroy(&raw mut attributes);
    }
    start.addr() + bytes
}

/// A thread that libc does not know, or the memory for one: a stack, and above it a copy of the thread area of the
/// thread that made it.
///
/// The copy's table of dynamic thread-local variables is the maker's, which has to outlive the thread.
pub(crate) struct RawThread {
    mapping: *mut u8,
    bytes: usize,
    /// The start of the copy, above the stack.
    copy: *mut u8,
    thread_pointer: *mut u8,
    /// The thread's number; 0 before the start and from the end on (`CLONE_CHILD_CLEARTID`).
    number: Box<AtomicI32>,
}

impl RawThread {
    /// Maps memory for a thread, and copies the calling thread's area there. The calling thread is one of
    /// `pthread_create`.
    ///
    /// The copy's rseq areas, of libc and of the library, are those of a thread that is not registered. With
    /// `knows_itself` glibc's own functions take the copy for the thread's descriptor (on aarch64 they always do), else
    /// for its maker's.
    #[inline(never)]
    pub(crate) fn new(knows_itself: bool) -> RawThread {
        let (pointer, end) = (thread_pointer(), end_of_mapping());
        // from the frames on: no interface tells where static thread-local storage begins
        let start = stack_pointer() & !63;
        assert!(start < pointer && pointer < end && end - start < 1 << 20, "{start:x} {pointer:x} {end:x}");
        let bytes = (STACK_BYTES + end - start).next_multiple_of(65536);
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new memory.
        let mapping = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
        assert_ne!(mapping, libc::MAP_FAILED);
        let mapping: *mut u8 = mapping.cast();
        let copy = mapping.wrapping_add(bytes - (end - start));
        let thread = RawThread {
            mapping,
            bytes,
            copy,
            thread_pointer: copy.wrapping_add(pointer - start),
            number: Box::new(AtomicI32::new(0)),
        };
        let original = std::ptr::with_exposed_provenance::<u8>(start);
        // SAFETY: the calling thread's own memory, and as many bytes at the end of the mapping.
        unsafe { std::ptr::copy_nonoverlapping(original, copy, end - start) };
        thread.mend(knows_itself);
        thread
    }

    /// Makes the copy the area of a thread of its own, which is not registered.
    fn mend(&self, knows_itself: bool) {
        if cfg!(target_arch = "x86_64") {
            // `tcb` and `self` of glibc's header
            let words = [Some(0), knows_itself.then_some(2)];
            for word in words.into_iter().flatten() {
                let place = self.thread_pointer.cast::<*mut u8>().wrapping_add(word);
                // SAFETY: a word of the copy, which nobody else uses yet.
                unsafe { place.write(self.thread_pointer) };
            }
        }
        let by_libc = super::rseq::libc_area_offset();
        for offset in [by_libc, statctr::raw::rseq_area()].into_iter().flatten() {
            let area = self.thread_pointer.wrapping_offset(offset);
            // SAFETY: an area in the copy, of so many bytes.
            unsafe {
                area.write_bytes(0, AREA_BYTES);
                area.add(4).cast::<i32>().write(-1);
            }
        }
        // SAFETY: a word of the copy.
        unsafe { self.thread_pointer.wrapping_offset(refcount_offset()).cast::<u32>().write(0) };
    }

    /// Starts the thread. It ends when `work` returns, without what libc does at the end of a thread.
    ///
    /// # Safety
    /// `work` may be called with `argument` until [`wait`](Self::wait) returns, and calls no function that needs a
    /// thread of libc. The calling thread made this one, no other runs here, and lives longer.
    pub(crate) unsafe fn start(&self, work: extern "C" fn(*mut c_void) -> c_int, argument: *mut c_void) {
        let flags = libc::CLONE_VM
            | libc::CLONE_FS
            | libc::CLONE_FILES
            | libc::CLONE_SIGHAND
            | libc::CLONE_THREAD
            | libc::CLONE_SYSVSEM
            | libc::CLONE_SETTLS
            | libc::CLONE_PARENT_SETTID
            | libc::CLONE_CHILD_CLEARTID;
        let stack = self.copy.wrapping_sub(64);
        // SAFETY: a stack and an area of the thread's own. libc's `clone` ends the thread by SYS_exit when `work`
        // returns.
        let number = unsafe {
            libc::clone(
                work,
                stack.cast(),
                flags,
                argument,
                self.number.as_ptr(),
                self.thread_pointer.cast::<c_void>(),
                self.number.as_ptr(),
            )
        };
        assert!(number > 0, "clone: {}", std::io::Error::last_os_error());
    }

    /// Returns the thread's number; 0 if it does not run.
    pub(crate) fn number(&self) -> i32 {
        self.number.load(Ordering::Acquire)
    }

    /// Waits until the kernel says that the thread is gone.
    pub(crate) fn wait(&self) {
        // a moment at a time: not all that emulates a kernel wakes those who wait
        let moment = libc::timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        loop {
            let number = self.number();
            if number == 0 {
                return;
            }
            // SAFETY: waits while the word has this value. Not a private one: the kernel wakes by the shared address.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.number.as_ptr(),
                    libc::FUTEX_WAIT,
                    number,
                    &raw const moment,
                )
            };
        }
    }

    /// Runs `work` on a thread of libc's in the memory of this one, which is over: with the same thread pointer.
    pub(crate) fn in_its_memory(&self, work: &(dyn Fn() + Sync)) {
        extern "C" fn run(work: *mut c_void) -> *mut c_void {
            // SAFETY: the reference below, which lives until the thread is joined.
            let work = unsafe { *work.cast::<&(dyn Fn() + Sync)>() };
            work();
            std::ptr::with_exposed_provenance_mut(thread_pointer())
        }
        assert_eq!(self.number(), 0, "it is over");
        let argument = (&raw const work).cast_mut().cast();
        let mut pointer = std::ptr::null_mut();
        // SAFETY: zeros are a thread, and memory for attributes; nobody uses this thread's mapping any more, and the
        // argument lives until the thread is joined.
        unsafe {
            let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
            let mut thread: libc::pthread_t = std::mem::zeroed();
            assert_eq!(libc::pthread_attr_init(&raw mut attributes), 0);
            assert_eq!(libc::pthread_attr_setstack(&raw mut attributes, self.mapping.cast(), self.bytes), 0);
            assert_eq!(libc::pthread_create(&raw mut thread, &raw const attributes, run, argument), 0);
            assert_eq!(libc::pthread_join(thread, &raw mut pointer), 0);
            libc::pthread_attr_destroy(&raw mut attributes);
        }
        assert_eq!(pointer.addr(), self.thread_pointer.addr(), "the same area");
    }
}

impl Drop for RawThread {
    fn drop(&mut self) {
        self.wait();
        // SAFETY: the thread is gone, and so is all that used its memory.
        unsafe { libc::munmap(self.mapping.cast(), self.bytes) };
    }
}
