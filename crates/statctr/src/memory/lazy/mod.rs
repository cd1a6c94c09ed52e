//! Objects with four items each, whose further instances come when a second CPU (node) writes.
//!
//! ```text
//! object:   4 words of the owner │ 4 atomic words of everyone │ owner │ 3 × (index, instance) │ table
//!           └──────────── one cache line ────────────────────┘
//! ```
//! The first index (a CPU, a node, a concurrency id) to write becomes the owner. Where writers of an
//! index exclude each other, the four words of an instance are stored by one section; a node's CPUs
//! share them, and update them atomically one by one. Who can have no instance at once uses the
//! atomic words. Nothing that readers walk is ever taken away before the whole object.

mod cells;
mod object;

pub(crate) use cells::Nodes;
pub(crate) use object::{ITEMS, Index, LazyMemory, LazySettings, Object};
