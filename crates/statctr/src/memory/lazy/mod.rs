//! Objects with four items each, whose further instances come when a second CPU (node) writes.
//!
//! ```text
//! object:   the owner's instance │ owner, flags │ (index, instance) …          what most need
//! side:     4 atomic words of everyone                                         a slab's half away
//! table:    instances by index, where the pairs do not suffice                 in place of the last pair
//! ```
//! The first index (a CPU, a node, a concurrency id) to write becomes the owner. When a second one
//! has come, the owner gets a further instance, too, with its next update: otherwise each of its
//! updates would take from the others the line in which they look for theirs.
//! Where writers of an
//! index exclude each other, the four words of an instance are stored by one section; a node's CPUs
//! share them, and update them atomically one by one. Who can have no instance at once uses the
//! atomic words; flags say whether anybody did, so that an object of one writer is one cache line
//! to make, to update, to read and to free, and its side takes no memory. Nothing that readers walk
//! is ever taken away before the whole object.

mod cells;
mod lifetime;
mod nodes;
mod object;
mod pool;
mod run;
mod shape;

pub(crate) use lifetime::LazyOwner;
pub(crate) use nodes::Nodes;
pub(crate) use object::Object;
pub(crate) use pool::{IndexKind, LazyMemory, LazySettings};
