//! The boundary: results become numbers, panics become an error.

use std::ffi::{c_int, c_uint};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of a function that C calls. Returns 0 on success, the negated `errno` of its error, and
/// `-ENOTRECOVERABLE` after a panic, which would be a defect of this library.
///
/// Takes no lock and allocates nothing of its own, so that a body that is async-signal-safe
/// remains so.
pub fn guard(body: impl FnOnce() -> Result<(), c_int>) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(errno)) => -errno,
        Err(payload) => {
            // a payload may panic again when it is dropped
            std::mem::forget(payload);
            -libc::ENOTRECOVERABLE
        }
    }
}

/// Runs the body of a function that returns a value to C; returns `otherwise` if the body returns `None` or panics.
pub(crate) fn guard_value<T>(otherwise: T, body: impl FnOnce() -> Option<T>) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Some(value)) => value,
        Ok(None) => otherwise,
        Err(payload) => {
            std::mem::forget(payload);
            otherwise
        }
    }
}

/// Returns an error if a caller's ABI number is not this library's: the caller was compiled with another header, and
/// its inline updates would write to wrong addresses.
pub(crate) fn check_abi(abi: c_uint) -> Result<(), c_int> {
    if abi == crate::ABI { Ok(()) } else { Err(libc::EPROTO) }
}

/// Converts an error of the crate `statctr` to a positive `errno`.
pub(crate) fn errno(error: &statctr::Error) -> c_int {
    error.errno()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        assert_eq!(guard(|| panic!("on purpose")), -libc::ENOTRECOVERABLE);
        assert_eq!(guard_value(7, || -> Option<i32> { panic!("on purpose") }), 7);
    }

    #[test]
    fn a_panic_payload_that_panics_becomes_an_error() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("on purpose, again");
            }
        }
        assert_eq!(guard(|| std::panic::panic_any(Bomb)), -libc::ENOTRECOVERABLE);
    }

    #[test]
    fn results_become_numbers() {
        assert_eq!(guard(|| Ok(())), 0);
        assert_eq!(guard(|| Err(libc::EINVAL)), -libc::EINVAL);
        assert_eq!(guard_value(1, || None), 1);
    }
}
