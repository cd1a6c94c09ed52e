//! Address space from the kernel: zero until touched, and touched page by page.

use crate::cpu::NodeId;
use crate::errno::ENOMEM;
use crate::error::{Error, Result};
use crate::rseq::is_refused;
use crate::sys;
use crate::sys::set_errno;
pub(crate) use crate::sys::{HUGE_PAGE, PAGE};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A private anonymous memory mapping between two guard pages, so that the kernel cannot merge it with others; unmapped
/// when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    whole: NonNull<u8>,
    len: usize,
    /// The part of [`PIECES`] that this mapping took; 0: all of it is writable.
    pieces: usize,
    /// Bytes, at a multiple of as many, that become writable and are returned to the system together.
    granule: usize,
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
    /// Maps `len` bytes (whole pages) of zeroed memory, without committing any: pages are allocated when they are first
    /// written.
    ///
    /// Async-signal-safe, but for `errno`, and has to stay so (see `slabs`): system calls alone.
    pub(crate) fn new(len: usize) -> Result<Mapping> {
        Mapping::reserve(len, 0)
    }

    /// Maps `len` bytes that cannot be written before [`make_writable`](Self::make_writable), which may be called on up
    /// to `parts` parts.
    pub(crate) fn read_only(len: usize, parts: usize) -> Result<Mapping> {
        if !sys::PROTECTS {
            return Mapping::reserve(len, 0);
        }
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
        let total = len.checked_add(2 * PAGE).ok_or(refused(ENOMEM))?;
        if is_refused!(Map) {
            return Err(refused(ENOMEM));
        }
        let whole = sys::reserve(total, pieces == 0).map_err(refused)?;
        // a unit may lie in another mapping than its home: it is found by its address
        whole.as_ptr().expose_provenance();
        Ok(Mapping { whole, len, pieces, granule: sys::page_size() })
    }

    /// Returns the page-aligned address of the mapping's first usable byte.
    pub(crate) fn start(&self) -> NonNull<u8> {
        // SAFETY: the guard page in front is part of the mapping.
        unsafe { self.whole.add(PAGE) }
    }

    /// Asks the kernel for huge pages from `offset` to the end of the mapping: from then on whole ones are made writable
    /// and returned, as the kernel divides what differs within one. Advice, which a kernel may not follow.
    pub(crate) fn ask_for_huge_pages(&mut self, offset: usize) {
        let len = self.len.saturating_sub(offset);
        // SAFETY: inside the mapping, which nobody else has yet.
        unsafe { sys::advise_huge_pages(self.start().add(self.len - len), len) };
        self.granule = HUGE_PAGE;
    }

    /// Returns the bytes, at a multiple of as many, that are returned to the system together.
    pub(crate) fn granule(&self) -> usize {
        self.granule
    }

    /// Returns `true` if the whole mapping is writable.
    pub(crate) fn is_writable(&self) -> bool {
        self.pieces == 0
    }

    /// Makes the bytes `offset..offset + len` of the mapping (whole pages, or whole huge ones) writable; returns `false`
    /// if the kernel refuses. Async-signal-safe.
    pub(crate) fn make_writable(&self, offset: usize, len: usize) -> bool {
        // the mapping begins with a page, and in the midst of a huge one
        let start = self.addresses().start;
        let first = (start + offset.min(self.len)) / self.granule * self.granule;
        let end = (start + offset.saturating_add(len).min(self.len)).next_multiple_of(self.granule);
        let (first, last) = (first.saturating_sub(start), (end - start).min(self.len));
        if self.is_writable() || first >= last {
            return true;
        }
        let errno = Error::last_errno();
        // SAFETY: inside the mapping; nothing is taken from anybody.
        let done = unsafe { sys::make_writable(self.start().add(first), last - first) };
        if !done {
            set_errno(errno);
        }
        done
    }

    /// Returns the mapping's usable size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the address range of the mapping's usable bytes.
    pub(crate) fn addresses(&self) -> std::ops::Range<usize> {
        let start = self.start().addr().get();
        start..start + self.len
    }

    /// Sets the NUMA node from which the kernel preferably allocates the mapping's pages. Errors are ignored, as pages
    /// of any node serve.
    pub(crate) fn prefer(&self, node: NodeId) {
        let start = self.start().as_ptr();
        crate::sys::prefer_for(start, self.len, node);
    }

    /// Prefaults the pages of `offset..offset + len` of the mapping without changing their contents, so that later
    /// stores take no page fault.
    pub(crate) fn populate(&self, offset: usize, len: usize) -> Result<()> {
        let start = self.start().addr().get();
        // SAFETY: inside the mapping.
        unsafe { populate(start + offset.min(self.len), len.min(self.len.saturating_sub(offset))) }
    }
}

/// Prefaults the pages of `len` bytes from `address` on without changing their contents, so that later stores take no
/// page fault.
///
/// # Safety
/// The bytes lie in a mapping that lives.
pub(crate) unsafe fn populate(address: usize, len: usize) -> Result<()> {
    let refused = |errno| Err(Error::System { operation: "madvise(MADV_POPULATE_WRITE)", errno });
    if is_refused!(Populate) {
        return refused(ENOMEM);
    }
    let page = sys::page_size();
    // mappings begin and end at multiples of a page
    let (first, last) = (address / page * page, (address + len).next_multiple_of(page));
    // SAFETY: pages of a mapping by the caller's promise.
    unsafe { sys::populate(first, last - first) }.or_else(refused)
}

/// Zeroes `len` bytes of a mapping from `start` on: whole pieces of `granule` bytes, which is the mapping's
/// ([`Mapping::granule`]), by returning them to the system, the words at the edges by stores.
///
/// # Safety
/// The bytes lie in a mapping that lives, at multiples of 8, and nobody counts there now.
pub(crate) unsafe fn zero(start: NonNull<u8>, len: usize, granule: usize) -> Result<()> {
    let address = start.addr().get();
    let end = address + len;
    let (inner, inner_end) = (address.next_multiple_of(granule), end / granule * granule);
    if inner >= inner_end {
        // SAFETY: passed on.
        unsafe { store_zeros(start, 0..len) };
        return Ok(());
    }
    // SAFETY: whole pages inside the range; nobody counts there.
    unsafe {
        store_zeros(start, 0..inner - address);
        store_zeros(start, inner_end - address..len);
        let (pages, len) = (start.add(inner - address), inner_end - inner);
        if is_refused!(Discard) {
            return Err(Error::System { operation: "madvise", errno: Error::last_errno() });
        }
        match sys::discard(pages, len) {
            Ok(true) => {}
            // to stay: the words are zero all the same
            Ok(false) => store_zeros(pages, 0..len),
            Err(errno) => return Err(Error::System { operation: "madvise", errno }),
        }
    }
    Ok(())
}

/// Zeroes the bytes at the offsets `bytes` from `start`, in a mapping of counter memory, by stores, to those words
/// alone that are not zero.
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
        unsafe { sys::release(self.whole, self.len + 2 * PAGE) };
        PIECES.fetch_add(self.pieces, Ordering::Relaxed);
    }
}
