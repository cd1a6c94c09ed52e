//! System calls that std does not have.

#![allow(unsafe_code)] // system calls; see each block's reason

pub(crate) mod machine;
pub(crate) mod memory;
pub(crate) mod seccomp;
pub(crate) mod thread;

use std::io;

/// Returns the kernel's answer to a call that returns −1 where it fails.
fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
