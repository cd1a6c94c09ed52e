//! Error numbers, also for machines whose system has none.

#[cfg(not(target_os = "unknown"))]
pub(crate) use libc::{E2BIG, EEXIST, EINVAL, EIO, ENOMEM, ENOSPC, ENOSYS, ENOTSUP, EPERM, ERANGE};

#[cfg(target_os = "unknown")]
mod numbers {
    //! Linux's numbers, for a machine without a system (`wasm32-unknown-unknown`).

    pub(crate) const EPERM: i32 = 1;
    pub(crate) const EIO: i32 = 5;
    pub(crate) const E2BIG: i32 = 7;
    pub(crate) const ENOMEM: i32 = 12;
    pub(crate) const EEXIST: i32 = 17;
    pub(crate) const EINVAL: i32 = 22;
    pub(crate) const ENOSPC: i32 = 28;
    pub(crate) const ERANGE: i32 = 34;
    pub(crate) const ENOSYS: i32 = 38;
    pub(crate) const ENOTSUP: i32 = 95;
}
#[cfg(target_os = "unknown")]
pub(crate) use numbers::*;
