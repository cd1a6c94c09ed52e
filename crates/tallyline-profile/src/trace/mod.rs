//! What a program does to memory, access by access, where there are no hardware counters.
//!
//! The program runs under QEMU's emulation, and a plugin of ours writes down every access, or one of
//! N: thread, instruction, address, size, read or write. [`mod@format`] says what is in the file,
//! [`Trace`] reads it, [`plugin`] builds the plugin from the source beside this file, [`emulator`]
//! finds the QEMU that runs a program, [`samples`] turns a trace into samples in perf's format.
//!
//! An emulated program sees no `rseq`: what relies on it runs its fallback, and the trace shows that.

#[cfg(test)]
pub(crate) mod build;
pub mod emulator;
pub mod format;
mod instructions;
pub mod plugin;
mod reader;
pub mod samples;

pub use instructions::{Instruction, Instructions};
pub use reader::{Block, Events, Source, Thread, Trace};
