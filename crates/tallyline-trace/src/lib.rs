//! Traces of every memory access of a program, made under QEMU where no hardware counts accesses.
//!
//! The program runs under QEMU's user-mode emulation with a plugin that records every access, or one of N: thread,
//! instruction, address, size, read or write. [`mod@format`] defines the file, [`Trace`] reads it, [`plugin`] builds the
//! plugin from the source in `qemu/`, [`emulator`] finds the QEMU for a program, [`samples`] converts a trace to samples
//! in perf's format. [`coherence`] replays a trace on a model of coherent caches.
//!
//! # Guarantees
//! Files may be truncated, corrupt or malicious: no panic, no endless loop, bounded memory, and one error with its offset.
//!
//! # Limits
//! An emulated program has no `rseq`: code that relies on it runs its fallback, and the trace shows that.

#[cfg(test)]
pub(crate) mod build;
pub mod coherence;
pub mod emulator;
mod error;
pub mod format;
mod instructions;
pub mod plugin;
mod reader;
pub mod samples;

pub use error::Error;
pub(crate) use error::Result;
pub use instructions::{Instruction, Instructions};
pub use reader::{EventBlock, Events, Thread, Trace};
