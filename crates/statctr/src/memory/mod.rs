//! The memory of counters: mappings, reservations of units, the slots in them, and the fold kernels.
//!
//! ```text
//! arena ── reservation ── guard │ header, table of displacements │ unit │ pad │ unit │ … │ guard
//!                                                                  home   baseline   CPU a, b, …
//! ```
//! All units of a reservation have the same shape, and a *slot* is the same place in each of them:
//! its *home* word (the fallback cell, atomic; on one CPU the plain word itself), its *baseline*
//! (what `set` and an initial value are made of) and a word per possible CPU. The parts outside
//! this folder see only safe types: [`Word`] and [`Lines`] own slots and give them back.

#![allow(unsafe_code)] // raw memory; see each block's reason

mod active_cpu_mask;
mod arena;
mod atomics;
mod bounded_sum;
mod depot;
mod drain;
mod float_sum;
mod fold;
mod fold_lines;
mod foreign_statics;
mod handle;
mod highest_bit;
mod latch;
mod layout;
mod lazy;
mod mapping;
mod maximum;
mod owner;
mod reservation;
mod resolved;
mod signal_safe_lock;
mod slabs;
mod slots;
mod stamped_fold;
mod stamps;
mod statics;
mod supply;
mod units;
mod writable_extent;

pub use arena::Trimmed;
pub(crate) use arena::{Arena, ArenaSettings};
pub(crate) use bounded_sum::BoundedSum;
pub use drain::Drained;
pub(crate) use float_sum::FloatSum;
pub(crate) use fold_lines::{fold_piece_tiles, fold_rows, fold_runs};
pub(crate) use foreign_statics::listed_foreign_statics;
pub use foreign_statics::{RawStatic, StaticKind};
pub(crate) use handle::Handle;
pub(crate) use highest_bit::highest_bit;
pub(crate) use layout::{CHUNK_WORDS, LatchLayout, Layout};
pub(crate) use lazy::{IndexKind, LazyMemory, LazyOwner, LazySettings, Nodes, Object};
pub(crate) use maximum::Maximum;
pub(crate) use owner::{LineWord, LineWords, Lines, Word};
pub(crate) use resolved::ResolvedHandle;
pub(crate) use stamped_fold::StampedFold;
pub(crate) use stamps::{StampedLines, StampedWords, most_stamped};
pub(crate) use statics::{StaticWord, static_table, statics_in_use};
