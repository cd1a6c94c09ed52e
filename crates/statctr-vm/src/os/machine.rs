//! The machine as a whole, for process 1.

use super::checked;
use std::ffi::CString;
use std::io;

/// Creates the folder `at` if needed and mounts a pseudo file system of this type, such as `proc`, on it.
pub(crate) fn mount(kind: &str, at: &str) -> io::Result<()> {
    std::fs::create_dir_all(at)?;
    let (kind, at) = (CString::new(kind)?, CString::new(at)?);
    // SAFETY: the strings end with a zero and live through the call.
    checked(unsafe { libc::mount(kind.as_ptr(), at.as_ptr(), kind.as_ptr(), 0, std::ptr::null()).into() })?;
    Ok(())
}

/// Powers the emulated machine off. Returns only on failure, with the kernel's error.
pub(crate) fn power_off() -> io::Error {
    // SAFETY: writes buffers back, and ends everything.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_POWER_OFF);
    }
    io::Error::last_os_error()
}

/// `AT_RSEQ_FEATURE_SIZE` of Linux 6.3 and later: bytes of an rseq area that the kernel keeps.
pub(crate) const RSEQ_FEATURE_SIZE: libc::c_ulong = 27;

/// Returns the value of an entry of this process's ELF auxiliary vector (`getauxval`), by its `AT_` number; 0 if there
/// is none.
pub(crate) fn auxiliary(kind: libc::c_ulong) -> u64 {
    // SAFETY: looks up a number.
    unsafe { libc::getauxval(kind) }
}
