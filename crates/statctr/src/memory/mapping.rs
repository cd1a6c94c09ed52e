//! Address space from the kernel: zero until touched, and touched page by page.

use crate::error::{Error, Result};
use crate::rseq::is_refused;
use crate::topology::NodeId;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// The page size that layouts are made for: the largest that the architecture has, so that guard
/// pages are pages and no two units share one. A smaller one of the kernel divides it.
pub(crate) const PAGE: usize = if cfg!(target_arch = "aarch64") { 64 << 10 } else { 4096 };

/// The kernel's page size: what can be populated and given back.
fn kernel_page() -> usize {
    // SAFETY: asks for a constant.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).map_or(PAGE, |size| size.clamp(1, PAGE))
}

/// A private anonymous mapping between two guard pages, which nothing else is merged with.
#[derive(Debug)]
pub(crate) struct Mapping {
    whole: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is address space; what is done with the memory is its users' business.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves `len` bytes (whole pages) that read as zero. No memory is used until it is
    /// written, and none is set aside for it.
    pub(crate) fn new(len: usize) -> Result<Mapping> {
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
        let mapping = Mapping { whole, len };
        let start = mapping.start().as_ptr().cast::<libc::c_void>();
        // SAFETY: [start, start + len) lies inside the mapping just made.
        if unsafe { libc::mprotect(start, len, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
            return Err(refused(Error::last_errno()));
        }
        // SAFETY: as above. Both calls are advice: huge pages would give every unused CPU two
        // megabytes, the name is for readers of /proc/self/smaps. Kernels without them refuse.
        unsafe {
            libc::madvise(start, len, libc::MADV_NOHUGEPAGE);
            libc::prctl(libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME, start, len, c"statctr".as_ptr());
        }
        Ok(mapping)
    }

    /// The first usable byte, at a page boundary.
    pub(crate) fn start(&self) -> NonNull<u8> {
        // SAFETY: the guard page in front is part of the mapping.
        unsafe { self.whole.add(PAGE) }
    }

    /// Usable bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The addresses of the usable bytes.
    pub(crate) fn addresses(&self) -> std::ops::Range<usize> {
        let start = self.start().addr().get();
        start..start + self.len
    }

    /// Asks the kernel for pages of this node, where it has some left. What it says does not matter:
    /// kernels and sandboxes without memory policies refuse, and pages of another node serve as
    /// well.
    pub(crate) fn prefer(&self, node: NodeId) {
        let start = self.start().as_ptr();
        super::node::prefer_for(start, self.len, node);
    }

    /// Makes the pages of `offset..offset + len` be there, writable, without changing what they
    /// hold.
    pub(crate) fn populate(&self, offset: usize, len: usize) -> Result<()> {
        let start = self.start().addr().get();
        // SAFETY: inside the mapping.
        unsafe { populate(start + offset.min(self.len), len.min(self.len.saturating_sub(offset))) }
    }
}

/// Makes the pages of `len` bytes from an address on be there, writable, without changing what they
/// hold.
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

/// Makes `len` bytes from `start` on zero: whole pages are given back, words at the edges are
/// stored to.
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
        if !is_refused!(Discard) && libc::madvise(pages, inner_end - inner, libc::MADV_DONTNEED) == 0 {
            return Ok(());
        }
    }
    Err(Error::System { operation: "madvise", errno: Error::last_errno() })
}

/// Stores zeros to the words of a range that are not zero.
///
/// # Safety
/// As [`zero`].
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
    }
}
