//! System calls that the standard library does not have, and values and threads that survive a
//! fork. Nothing here knows of counters.

#![allow(unsafe_code)] // system calls; see each block's reason

mod affinity;
mod helper_thread;
mod lock;
mod mempolicy;
mod once_box;
mod static_list;
mod uevents;

pub(crate) use affinity::{affinity, allowed_by_cpuset, cpu_bound, pin_to, small_cpu_bound};
pub(crate) use helper_thread::{detach_helper_thread, run_on_helper_thread, without_signals};
pub(crate) use lock::{Guard, Lock, Rank, forks};
pub(crate) use mempolicy::{prefer_for, prefer_node};
pub use once_box::OnceBox;
pub(crate) use static_list::{Link, Linked, StaticList};
pub(crate) use uevents::{Uevents, wait};
