//! A recorder of the crate [`metrics`] whose counters and histograms are [`statctr`]'s: each CPU counts on
//! words of its own.
//!
//! ```
//! let recorder = statctr_metrics::Recorder::new();
//! metrics::set_global_recorder(recorder.clone()).expect("the first recorder");
//!
//! metrics::counter!("requests", "method" => "get").increment(1);
//! metrics::histogram!("latency_seconds").record(0.002);
//!
//! assert_eq!(recorder.snapshot().counter("requests", &[("method", "get")]), Some(1));
//! assert!(recorder.render().contains("requests{method=\"get\"} 1"));
//! ```
//!
//! # Semantics
//! - Counters are exact whatever the threads, signals and forks: [`statctr::Counter`]. `absolute` raises a
//!   counter to a value without a lock, and never lowers it; increments at the same time are in it. It reads the
//!   counter, a cache line per CPU that counts.
//! - Gauges are [`statctr::FloatGauge`]s: adding is per CPU, setting takes a lock.
//! - Histograms count in log-linear buckets, so quantiles are at most 1 % off over the whole time, and
//!   nothing is sampled: [`FloatHistogram`]. Values are rounded to multiples of a resolution, by
//!   the unit given to `describe_histogram!` before the first value, or by the end of the name:
//!   a nanosecond for times, 1 for bytes, else 10⁻⁶ ([`Builder::resolution`]). Values above 2⁶² resolutions, 4.6·10¹²
//!   with the last one, count as that many, and negative ones as 0.
//!
//! # Costs
//! An update through a handle that is kept (`let requests = counter!("requests")`) is an indirect call and
//! [`statctr::SharedCounter::add`]: two to three nanoseconds, and the same with any number of threads. The macros look
//! their series up each time: without a lock, also beyond the limit, and without a write to memory that other threads
//! write.
//! 8 bytes per CPU that counts and some 300 for each counter. Series are never removed.
//!
//! # Forks and signals
//! A child of `fork` goes on with all series from its parent's values, and makes and describes others, whatever other
//! threads of the parent were doing.
//!
//! Updates through a handle that is kept are async-signal-safe but for a gauge's `set`, which takes a lock, and but for
//! `dlopen` (see [`statctr::SharedCounter`]): also of a series that the interrupted thread is updating. So are the macros
//! with a name and labels that are literals, once the same thread has used them outside of a handler: a first use
//! allocates, and may take a lock. Describing metrics and reading them is nothing for a handler.
//!
//! # Bounds
//! Labels often have values from outside. There are at most [`Builder::limit`] series of each kind; what
//! comes later is counted in one further series for each name, with the label `overflow="true"`, so that
//! sums over a name stay exact, but of what is set: of several series there `absolute` keeps the largest value, and
//! a gauge's `set` the last one. Updates of a series with just this label are counted there, too.
//! Beyond 10 000 such names of a kind updates are dropped; [`Recorder::refused`] counts them.

mod descriptions;
mod families;
mod kinds;
mod protobuf;
mod recorder;
mod render;
mod snapshot;

pub use recorder::{Builder, Recorder};
pub use snapshot::{Metric, Snapshot, Value};
pub use statctr_facade::{FloatHistogram, FloatHistogramSnapshot, NativeHistogram, NativeSchema};
