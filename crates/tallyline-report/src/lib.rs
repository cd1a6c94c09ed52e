//! Reports: samples joined with the types of their operands and counted by sort keys.
//!
//! A recording passes the stages of [`samples`] up to a [`Profile`]: loaded, located in open programs, typed, and with
//! functions and lines. [`keys`] defines the columns of rows, [`aggregate`](mod@aggregate) counts them.
//!
//! # Guarantees
//! Every sample is accounted for: typed, or with the reason why not.
//!
//! # Limits
//! Text is the caller's: this crate answers in values.

pub mod aggregate;
mod ahead;
mod ambiguous_names;
pub mod annotate;
mod answers;
pub mod attribution;
mod binaries;
mod counts;
mod data_locations;
mod demangle;
pub mod evidence;
pub mod filter;
mod group_reads;
mod hierarchy;
mod index;
mod info;
pub mod join;
pub mod keys;
mod last_branches;
mod lines;
mod load;
pub mod members;
pub mod names;
pub mod operand;
pub mod pattern;
pub mod places;
pub mod profile;
pub mod programs;
mod registers;
mod resolve;
mod returns;
pub mod samples;
mod shared_memory;
pub mod sharing;
mod skid;
mod type_names;
mod unwind;
mod vtables;

pub use aggregate::{Row, Table, Weighing, aggregate};
pub use counts::Counts;
pub use demangle::demangle;
pub use filter::Filter;
pub use hierarchy::{Node, hierarchy};
pub use index::{JoinedId, PlaceId, SymbolId};
pub use info::{EventInfo, RecordingInfo};
pub use lines::{inlined_call_lines, source_lines};
pub use profile::Profile;
pub use samples::{LoadedSamples, MergeGranularity, SampleGroup};
pub use skid::Skid;
pub use type_names::{tell_types_apart, type_names};
