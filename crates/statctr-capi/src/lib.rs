//! libstatctr: the C and C++ face of `statctr`.
//!
//! The interface, with cost, order, errors and what is safe where, is documented in
//! `include/statctr.h`, which is written by hand: its updates are inline assembly, the same
//! sections as the Rust library's. This crate holds what the header cannot do in line: setting up,
//! reading, and the slow paths. `tests/header.rs` holds the two together, and `ci/golden/run` the instructions.
//!
//! It promises: 0 or a negative `errno` from every function that can fail; no panic ever crosses
//! the boundary (see `guard.rs`); the structs that cross it have no padding.
//! It leaves out: pools of one's own, arrays without handles, and float gauges that are statics. Those are Rust's.

mod allocator;
mod counter;
mod extremes;
mod family;
mod float_gauge;
mod group;
mod guard;
mod histogram;
mod hotplug;
mod lazy;
mod process;
mod registry;
mod schema;
mod static_extremes;
mod statics;

pub use allocator::*;
pub use counter::*;
pub use extremes::*;
pub use family::*;
pub use float_gauge::*;
pub use group::*;
pub use guard::guard;
pub use histogram::*;
pub use hotplug::*;
pub use lazy::*;
pub use process::*;
pub use registry::*;
pub use schema::{StatctrGroupDesc, StatctrItemDesc};
pub use static_extremes::*;
pub use statics::*;

/// The version of the counters' memory layout that inline updates in the C headers rely on (`STATCTR_ABI`); code
/// compiled with another version is refused.
pub const ABI: u32 = 1;
