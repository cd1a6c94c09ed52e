//! The output shared by the tool and the benchmarks: results and their destinations, pages, the machine, summaries
//! of rounds.

pub mod cpus;
pub mod hyperlink;
pub mod machine;
pub mod output;
pub mod page;
mod pager;
pub mod quiet;
pub mod replacement;
mod size;
mod summary;
pub mod transfers;

pub use machine::Machine;
pub use size::parse_size;
pub use summary::{Summary, ratios};
