//! Questions about types: sizes, alignments, holes, what is packed, which types there are.
//!
//! One function each, on [`Types`](crate::model::Types) alone; printers only format the answers.

mod align;
mod biggest;
mod contents;
mod coverage;
mod definitions;
mod effective;
mod fields;
mod filter;
mod flexible;
mod gaps;
mod holes;
pub(crate) mod naming;
mod nearest;
mod packed;
mod pattern;
mod relations;
mod scalar;
mod select;
mod size;
mod sort;

pub use align::Alignments;
pub use biggest::first_biggest_member;
pub use coverage::{Coverage, tag_word};
pub use definitions::Definitions;
pub use effective::Effective;
pub(crate) use effective::InEffect;
pub use fields::{Field, field_at, fields};
pub use filter::Filter;
pub use flexible::{Flexible, ends_flexibly};
pub use gaps::{BitHole, Hole, Holes, holes};
pub use holes::{Gap, Layout, Summary, layout, summary};
pub use naming::is_called;
pub(crate) use nearest::distance;
pub use nearest::{did_you_mean, nearest};
pub(crate) use packed::Decided;
pub use packed::Packed;
pub use pattern::{fits, is_pattern};
pub use relations::{count_members_of, pointer_members};
pub(crate) use scalar::{Rules, is_alignment, is_atomic, member_align, rules, type_align};
pub use select::{
    Met, aliases, distinct_records, find, find_mentioned, is_same_record, records_and_anonymous,
};
pub use size::size_of;
pub use sort::sort_by_name;
