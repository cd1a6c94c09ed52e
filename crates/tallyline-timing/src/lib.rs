//! A model of the time that each access of a trace costs. **A model, not a measurement.**
//!
//! One out-of-order core for each modelled core: instructions enter a window of the reorder buffer's size, run when
//! their operands are there, and retire in order. What an instruction costs is the time between its predecessor's
//! retirement and its own: a load that depends on another one's miss costs its whole latency, independent misses
//! within a window overlap and cost together as much as one. Behind it are sets of the least recently used lines
//! in several levels, a stride prefetcher for each load, a TLB whose misses read a page table through the caches, and
//! memory with a latency and a rate. A page that is touched for the first time was just cleared by the kernel, so
//! that its lines are close. A load takes over the data of a store that wrote all of its bytes, and waits for one that
//! wrote some until that is in the cache.
//!
//! The trace has accesses only. The instructions between two of them are found in the program's code by their number
//! (`path`); branches among them are predicted, and a wrong prediction empties the window when the branch is known.
//!
//! Left out: the front end's own stalls, ports, dividers that are busy, bank conflicts, several threads on one core,
//! the kernel. What one core writes is gone from the others' caches.

mod caches;
mod calendar;
mod core;
mod costs;
mod forwarding;
mod ownership;
mod path;
mod predictor;
mod processor;
mod store_buffer;

pub use core::TimedCores;
pub use costs::{InstructionCost, SharingLoss, TraceCosts};
pub use ownership::SharingCosts;
pub use path::Code;
pub use processor::{Level, Processor};
