//! The thread's error number.

/// Sets the calling thread's `errno`, which a slow path must leave as it found it. Nothing where the system
/// keeps no such number per thread, or no signal handler could see it.
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
