//! Where the words live: mappings, reservations of units, the slots in them, and the fold kernels.
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

mod access;
mod announced;
mod arena;
mod depot;
mod drain;
mod flag;
mod fold;
mod handle;
mod helper;
mod lazy;
mod lock;
mod mapping;
mod node;
mod once;
mod reservation;
mod slabs;
mod slots;
mod twin;
mod uevents;
mod units;

pub use arena::Trimmed;
pub(crate) use arena::{Arena, ArenaSettings};
pub use drain::Drained;
pub(crate) use fold::{fold_piece_tiles, fold_rows, fold_runs};
pub(crate) use handle::{Handle, Lines, Word};
pub(crate) use helper::{detach_helper_thread, run_on_helper_thread};
pub(crate) use lazy::{Index, LazyMemory, LazyOwner, LazySettings, Nodes, Object};
pub(crate) use lock::{Lock, Rank};
pub(crate) use node::prefer_node;
pub use once::Once;
pub(crate) use reservation::{CHUNK_WORDS, How, Layout};
pub(crate) use twin::TwinShape;
pub(crate) use uevents::{Uevents, wait, without_signals};
