//! A model of coherent caches, and a replay of a trace on it. **A model, not a measurement.**
//!
//! N cores have a cache each, of one level, with the protocol MESI and the least recently used line
//! replaced; behind them is memory. What the model says of a program is how its threads' accesses
//! meet on cache lines, on machines of whatever size; it knows no time, no prefetchers, no store
//! buffers, no shared levels, and takes virtual addresses for physical ones.
//!
//! [`Geometry`] is the machine, [`Machine`] runs accesses, [`replay()`] decides whose comes next.

pub mod cache;
mod geometry;
mod lines;
mod machine;
mod replay;

pub use geometry::Geometry;
pub use lines::LineCounts;
pub use machine::{AccessCounts, CoherenceSummary, Conflict, InstructionCounts, Machine};
pub use replay::{
    AtomicOrder, CoreModel, Excerpt, ReplayOptions, ReplayStats, TimedModel, TimedOptions, replay,
    replay_by_time, replay_on,
};
