//! The thread's error number.

/// Sets the calling thread's `errno`, so that a slow path can restore it; does nothing on systems without one.
pub(crate) fn set_errno(number: i32) {
    #[cfg(any(target_os = "linux", target_os = "emscripten", target_os = "hurd", target_os = "redox"))]
    // SAFETY: the calling thread's own.
    unsafe {
        *libc::__errno_location() = number;
    }
    #[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
    // SAFETY: as above.
    unsafe {
        *libc::__error() = number;
    }
    #[cfg(any(target_os = "android", target_os = "netbsd", target_os = "openbsd"))]
    // SAFETY: as above.
    unsafe {
        *libc::__errno() = number;
    }
    let _ = number;
}
