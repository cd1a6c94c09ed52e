//! Reports: samples joined with what their instructions access, counted by sort keys.
//!
//! [`Profile`] is what is kept of a recording; `resolve` and [`join`] say
//! what is known about its places; [`keys`] are what rows are made of, [`aggregate`](mod@aggregate) counts them.

pub mod aggregate;
mod ahead;
pub mod annotate;
pub mod attribution;
mod demangle;
pub mod evidence;
pub mod filter;
mod hierarchy;
pub mod join;
pub mod keys;
mod lines;
mod load;
pub mod members;
pub mod names;
pub mod operand;
pub mod pattern;
pub mod profile;
pub mod programs;
mod resolve;
mod returns;
pub mod sharing;
mod unwind;
mod vtables;

pub use aggregate::{Counts, Row, Table, Weighing, aggregate};
pub use filter::Filter;
pub use hierarchy::{Node, hierarchy};
pub use lines::source_lines;
pub use load::Apart;
pub use profile::Profile;
pub use resolve::Binaries;
