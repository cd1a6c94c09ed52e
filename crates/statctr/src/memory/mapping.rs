//! Address space from the kernel: zero until touched, and touched page by page.

use crate::cpu::NodeId;
use crate::error::{Error, Result};
use crate::rseq::is_refused;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The page size in bytes that memory layouts are made for: the largest that the architecture has, so that
/// guard pages are pages and no two units share one. A smaller one of the kernel divides it.
pub(crate) const PAGE: usize = if cfg!(target_arch = "aarch64") { 64 << 10 } else { 4096 };

/// Returns the kernel's page size: the unit in which memory is populated and given back.
fn kernel_page() -> usize {
    // SAFETY: asks for a constant.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).map_or(PAGE, |size| size.clamp(1, PAGE))
}

/// A private anonymous memory mapping between two guard pages, which the kernel merges with nothing else.
#[derive(Debug)]
pub(crate) struct Mapping {
    whole: NonNull<u8>,
    len: usize,
    /// The part of [`PIECES`] that this mapping took; 0: all of it is writable.
    pieces: usize,
}

/// Mappings that the kernel may have to keep apart for us, because parts of ours are writable and
/// others are not. A process may have 65 530 (`vm.max_map_count`); what is reserved when this is
/// used up is writable at once.
static PIECES: AtomicUsize = AtomicUsize::new(16_384);

// SAFETY: a mapping is address space; what is done with the memory is its users' business.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes (whole pages) of address space that read as zero. No memory is used until it is
    /// written, and none is set aside for it.
    ///
    /// Async-signal-safe, but for `errno`, and has to stay so (see `slabs`): system calls alone.
    pub(crate) fn new(len: usize) -> Result<Mapping> {
        Mapping::reserve(len, 0)
    }

    /// Reserves address space in which nothing may be written before
    /// [`make_writable`](Self::make_writable), in up to `parts` parts.
    pub(crate) fn read_only(len: usize, parts: usize) -> Result<Mapping> {
        // a part, and what is between it and the next one
        let pieces = 2 * parts;
        let less = |left: usize| left.checked_sub(pieces);
        let some = PIECES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
        let mapping = Mapping::reserve(len, if some { pieces } else { 0 });
        if some && mapping.is_err() {
            PIECES.fetch_add(pieces, Ordering::Relaxed);
        }
        mapping
    }

    fn reserve(len: usize, pieces: usize) -> Result<Mapping> {
        let refused = |errno| Error::OutOfMemory { bytes: len, errno };
        let total = len.checked_add(2 * PAGE).ok_or(refused(libc::ENOMEM))?;
        if is_refused!(Map) {
            return Err(refused(libc::ENOMEM));
        }
        // SAFETY: asks for fresh address space, touches no existing one.
        let whole = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                total,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if whole == libc::MAP_FAILED {
            return Err(refused(Error::last_errno()));
        }
        let Some(whole) = NonNull::new(whole.cast::<u8>()) else { return Err(refused(libc::ENOMEM)) };
        // a unit may lie in another mapping than its home: it is found by its address
        whole.as_ptr().expose_provenance();
        let mut mapping = Mapping { whole, len, pieces: 0 };
        let start = mapping.start().as_ptr().cast::<libc::c_void>();
        let access = if pieces > 0 { libc::PROT_READ } else { libc::PROT_READ | libc::PROT_WRITE };
        // SAFETY: the mapping just made, which holds nothing.
        let locked = unsafe { unlock_if_locked(start, len) };
        // SAFETY: [start, start + len) lies inside the mapping just made.
        if unsafe { libc::mprotect(start, len, access) } != 0 {
            return Err(refused(Error::last_errno()));
        }
        if locked {
            // SAFETY: as above. Refused where the process may lock no more, and by kernels before 4.4:
            // then these pages can be swapped out.
            unsafe { libc::syscall(libc::SYS_mlock2, start, len, MLOCK_ONFAULT) };
        }
        // SAFETY: as above. Both calls are advice: huge pages would give every unused CPU two
        // megabytes, the name is for readers of /proc/self/smaps. Kernels without them refuse.
        unsafe {
            libc::madvise(start, len, libc::MADV_NOHUGEPAGE);
            libc::prctl(libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME, start, len, c"statctr".as_ptr());
        }
        mapping.pieces = pieces;
        Ok(mapping)
    }

    /// Returns the address of the mapping's first usable byte, at a page boundary.
    pub(crate) fn start(&self) -> NonNull<u8> {
        // SAFETY: the guard page in front is part of the mapping.
        unsafe { self.whole.add(PAGE) }
    }

    /// Returns `true` if the whole mapping may be written.
    pub(crate) fn is_writable(&self) -> bool {
        self.pieces == 0
    }

    /// Makes the pages of `offset..offset + len` of the mapping writable; `false` where the kernel refuses.
    /// Async-signal-safe.
    pub(crate) fn make_writable(&self, offset: usize, len: usize) -> bool {
        let page = kernel_page();
        let first = offset.min(self.len) / page * page;
        let last = offset.saturating_add(len).next_multiple_of(page).min(self.len);
        if self.is_writable() || first >= last {
            return true;
        }
        let errno = Error::last_errno();
        // SAFETY: inside the mapping; nothing is taken from anybody.
        let done = unsafe {
            let start = self.start().add(first).as_ptr().cast();
            libc::mprotect(start, last - first, libc::PROT_READ | libc::PROT_WRITE) == 0
        };
        if !done {
            // SAFETY: the calling thread's own.
            unsafe { *libc::__errno_location() = errno };
        }
        done
    }

    /// Returns the number of the mapping's usable bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the address range of the mapping's usable bytes.
    pub(crate) fn addresses(&self) -> std::ops::Range<usize> {
        let start = self.start().addr().get();
        start..start + self.len
    }

    /// Asks the kernel to take the mapping's pages from this NUMA node where it can. Errors are ignored:
    /// kernels and sandboxes without memory policies refuse, and pages of another node serve as well.
    pub(crate) fn prefer(&self, node: NodeId) {
        let start = self.start().as_ptr();
        crate::sys::prefer_for(start, self.len, node);
    }

    /// Touches the pages of `offset..offset + len` of the mapping, without changing their contents, so that
    /// later stores take no page fault.
    pub(crate) fn populate(&self, offset: usize, len: usize) -> Result<()> {
        let start = self.start().addr().get();
        // SAFETY: inside the mapping.
        unsafe { populate(start + offset.min(self.len), len.min(self.len.saturating_sub(offset))) }
    }
}

/// `MLOCK_ONFAULT` of the kernel: pages are locked when they are there, and are not made to be.
const MLOCK_ONFAULT: libc::c_uint = 1;

/// Takes the lock from a mapping that the kernel locked as soon as it was made
/// (`mlockall(MCL_FUTURE)`), and says whether there was one.
///
/// A locked mapping is populated, whole, as soon as it becomes accessible: 50 MB for one counter on a
/// machine with 192 possible CPUs. So it becomes accessible unlocked, and is locked page by page from
/// then on. No call asks for the lock itself; `MADV_DONTNEED` refuses locked mappings, and these only.
///
/// Source: Linux `mm/mprotect.c` (`mprotect_fixup`: private, locked, becoming writable), `mm/mlock.c`.
///
/// # Safety
/// Fresh address space from `start` on, which nobody has anything in.
unsafe fn unlock_if_locked(start: *mut libc::c_void, len: usize) -> bool {
    // SAFETY: by the caller's promise there is nothing to lose.
    let accepted = unsafe { libc::madvise(start, kernel_page(), libc::MADV_DONTNEED) } == 0;
    if accepted || Error::last_errno() != libc::EINVAL {
        return false;
    }
    // SAFETY: as above.
    unsafe { libc::munlock(start, len) == 0 }
}

/// Touches the pages of `len` bytes from an address on, without changing their contents, so that later stores
/// take no page fault.
///
/// # Safety
/// The bytes lie in a mapping that lives.
pub(crate) unsafe fn populate(address: usize, len: usize) -> Result<()> {
    let refused = |errno| Err(Error::System { operation: "madvise(MADV_POPULATE_WRITE)", errno });
    if is_refused!(Populate) {
        return refused(libc::ENOMEM);
    }
    let page = kernel_page();
    // mappings begin and end at multiples of a page
    let (first, last) = (address / page * page, (address + len).next_multiple_of(page));
    let start = std::ptr::with_exposed_provenance_mut::<libc::c_void>(first);
    // SAFETY: pages of a mapping by the caller's promise; populating changes no value.
    if unsafe { libc::madvise(start, last - first, libc::MADV_POPULATE_WRITE) } == 0 {
        return Ok(());
    }
    match Error::last_errno() {
        // Linux before 5.14
        libc::EINVAL => {
            for offset in (first..last).step_by(page) {
                // SAFETY: an aligned word of the mapping. A plain add by the word's CPU may run in
                // between and overwrite this: that loses the nothing that is added, and no count.
                let word = unsafe { &*std::ptr::with_exposed_provenance::<AtomicU64>(offset) };
                word.fetch_add(0, Ordering::Relaxed);
            }
            Ok(())
        }
        errno => refused(errno),
    }
}

/// Zeroes `len` bytes of memory from `start` on: whole pages are returned to the system, words at the edges
/// are stored to.
///
/// # Safety
/// The bytes lie in a mapping that lives, at multiples of 8, and nobody counts there now.
pub(crate) unsafe fn zero(start: NonNull<u8>, len: usize) -> Result<()> {
    let address = start.addr().get();
    let end = address + len;
    let page = kernel_page();
    let (inner, inner_end) = (address.next_multiple_of(page), end / page * page);
    if inner >= inner_end {
        // SAFETY: passed on.
        unsafe { store_zeros(start, 0..len) };
        return Ok(());
    }
    // SAFETY: whole pages inside the range; nobody counts there.
    unsafe {
        store_zeros(start, 0..inner - address);
        store_zeros(start, inner_end - address..len);
        let pages = start.add(inner - address).as_ptr().cast();
        if is_refused!(Discard) {
            return Err(Error::System { operation: "madvise", errno: Error::last_errno() });
        }
        discard(pages, inner_end - inner)
    }
}

/// Gives whole pages back, also locked ones.
///
/// # Safety
/// The contract is that of [`zero`].
unsafe fn discard(pages: *mut libc::c_void, len: usize) -> Result<()> {
    /// `MADV_DONTNEED_LOCKED` of the kernel (Linux 5.18 and later).
    const DONTNEED_LOCKED: libc::c_int = 24;
    // SAFETY: passed on.
    let advised = |advice| unsafe { libc::madvise(pages, len, advice) } == 0;
    if advised(libc::MADV_DONTNEED) {
        return Ok(());
    }
    let errno = Error::last_errno();
    if errno != libc::EINVAL {
        return Err(Error::System { operation: "madvise", errno });
    }
    if !advised(DONTNEED_LOCKED)
        && let Some(start) = NonNull::new(pages.cast())
    {
        // locked, and to stay: the words are zero all the same
        // SAFETY: passed on.
        unsafe { store_zeros(start, 0..len) };
    }
    Ok(())
}

/// Stores zeros to those words of a range of memory that are not zero.
///
/// # Safety
/// The contract is that of [`zero`].
pub(crate) unsafe fn store_zeros(start: NonNull<u8>, bytes: std::ops::Range<usize>) {
    for offset in bytes.step_by(8) {
        // SAFETY: an aligned word of a mapping that lives.
        let word = unsafe { start.add(offset).cast::<AtomicU64>().as_ref() };
        if word.load(Ordering::Relaxed) != 0 {
            word.store(0, Ordering::Relaxed);
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the whole mapping as it was made; its owner is going away, and with it every
        // use.
        unsafe { libc::munmap(self.whole.as_ptr().cast(), self.len + 2 * PAGE) };
        PIECES.fetch_add(self.pieces, Ordering::Relaxed);
    }
}
