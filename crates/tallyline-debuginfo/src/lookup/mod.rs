//! Types by their names: definitions, patterns, spellings, near misses.

mod contents;
mod definitions;
pub(crate) mod naming;
mod nearest;
mod pattern;
mod select;
mod sort;

pub use definitions::{Definitions, named_as};
pub use naming::is_called;
pub(crate) use nearest::NearestNames;
pub use nearest::{did_you_mean, distance, nearest};
pub use pattern::{fits, is_pattern};
pub use select::{
    RecordDeduplicator, aliases, distinct_records, find, find_mentioned, is_same_record,
    records_and_anonymous, typedefs,
};
pub use sort::sort_by_name;
