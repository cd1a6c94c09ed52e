//! Address space from the kernel: zero until touched, and touched page by page.

use crate::error::{Error, Result};
use std::ptr::NonNull;

/// The page size that layouts are made for. Where pages are larger, two units may share one: more
/// memory, and no less exact.
pub(crate) const PAGE: usize = 4096;

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

    /// Gives the whole pages inside `offset..offset + len` back: they read as zero afterwards.
    ///
    /// # Safety
    /// Nobody uses these bytes now.
    pub(crate) unsafe fn discard(&self, offset: usize, len: usize) -> Result<()> {
        let (first, last) = (offset.next_multiple_of(PAGE), (offset + len) / PAGE * PAGE);
        if first >= last {
            return Ok(());
        }
        debug_assert!(last <= self.len);
        // SAFETY: inside the mapping; unused by the caller's promise.
        let done = unsafe {
            libc::madvise(self.start().add(first).as_ptr().cast(), last - first, libc::MADV_DONTNEED)
        };
        if done == 0 {
            Ok(())
        } else {
            Err(Error::System { operation: "madvise", errno: Error::last_errno() })
        }
    }

    /// Makes the pages of `offset..offset + len` be there, writable, without changing what they
    /// hold.
    pub(crate) fn populate(&self, offset: usize, len: usize) -> Result<()> {
        let (first, last) = (offset / PAGE * PAGE, (offset + len).next_multiple_of(PAGE).min(self.len));
        // SAFETY: inside the mapping; populating changes no value.
        let done = unsafe {
            libc::madvise(self.start().add(first).as_ptr().cast(), last - first, libc::MADV_POPULATE_WRITE)
        };
        if done == 0 {
            return Ok(());
        }
        match Error::last_errno() {
            // Linux before 5.14
            libc::EINVAL => {
                self.touch(first, last);
                Ok(())
            }
            errno => Err(Error::System { operation: "madvise(MADV_POPULATE_WRITE)", errno }),
        }
    }

    /// Adds nothing to a word of each page. A plain add by the word's CPU may run in between and
    /// overwrite it: that loses the nothing, and no count.
    fn touch(&self, first: usize, last: usize) {
        for offset in (first..last).step_by(PAGE) {
            // SAFETY: an aligned word inside the mapping.
            let word = unsafe { &*self.start().add(offset).as_ptr().cast::<std::sync::atomic::AtomicU64>() };
            word.fetch_add(0, std::sync::atomic::Ordering::Relaxed);
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
