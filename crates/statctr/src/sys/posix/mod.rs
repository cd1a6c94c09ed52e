//! Calls of every Unix: threads that a forked child may make, and mutexes that survive a fork.

mod helper_thread;
mod mutex;

#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub(crate) use helper_thread::run_on_helper_thread;
pub(crate) use helper_thread::{detach_helper_thread, without_signals};
pub(crate) use mutex::{RawMutex, forks, thread_identity};
