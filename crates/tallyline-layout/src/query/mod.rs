//! Questions about layouts: holes, padding, packed records, members by offset.
//!
//! One function each, on [`Types`](tallyline_debuginfo::model::Types) alone; printers only format the answers.

mod biggest;
mod coverage;
mod effective;
mod fields;
mod filter;
mod flexible;
mod gaps;
mod holes;
mod packed;
mod relations;
mod summary;

pub use biggest::first_biggest_member;
pub(crate) use coverage::Coverage;
pub use coverage::tag_word;
pub use effective::Effective;
pub use fields::{Field, field_at, fields};
pub use filter::Filter;
pub(crate) use flexible::Flexible;
pub use flexible::ends_flexibly;
pub use gaps::hole_ranges;
pub(crate) use gaps::{Holes, holes};
pub(crate) use holes::{Gap, summary_as_base};
pub use holes::{Layout, layout, summary};
pub(crate) use packed::Decided;
pub use packed::Packed;
pub use relations::{count_members_of, pointer_members};
pub use summary::Summary;
