//! System calls that the standard library does not have, and values and threads that survive a
//! fork. Nothing here knows of counters.

#![allow(unsafe_code)] // system calls; see each block's reason

mod lock;
mod once_arc;
mod once_box;
mod set_errno;
mod static_list;
mod stripe;

#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod linux;
#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub(crate) use linux::*;
#[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
mod elsewhere;
#[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
pub(crate) use elsewhere::*;

#[cfg(unix)]
mod posix;
#[cfg(unix)]
pub(crate) use posix::*;
#[cfg(not(unix))]
mod plain;
#[cfg(not(unix))]
pub(crate) use plain::*;

pub(crate) use lock::{Guard, Lock, Rank};
pub use once_arc::OnceArc;
pub use once_box::OnceBox;
pub(crate) use set_errno::set_errno;
pub(crate) use static_list::{Link, Linked, StaticList};
pub(crate) use stripe::stripe;

/// The page size in bytes that memory layouts assume: the largest that the architecture has, so that guard pages are
/// whole pages and no page has counters of two CPUs. The kernel's page size divides it.
pub(crate) const PAGE: usize = if cfg!(any(
    target_arch = "x86_64",
    target_arch = "x86",
    target_arch = "riscv64",
    target_arch = "riscv32",
    target_arch = "s390x",
    target_arch = "wasm32",
    feature = "portable"
)) {
    4096
} else {
    64 << 10
};

/// The size in bytes of the huge pages that memory is laid out for: those of x86-64, and of aarch64 with pages of 4 KiB.
pub(crate) const HUGE_PAGE: usize = 2 << 20;
