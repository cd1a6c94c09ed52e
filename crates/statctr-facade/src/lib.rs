//! The parts that crates share which put [`statctr`]'s counters behind other metrics APIs.
//!
//! - [`SeriesMap`]: series by their labels, found without a lock.
//! - [`FloatHistogram`]: a distribution of floating-point values.
//! - [`NativeHistogram`]: what was read of a histogram, in the native form of Prometheus.
//!
//! A program that counts uses `statctr` itself, `statctr-metrics`, `statctr-prometheus-client` or
//! `statctr-opentelemetry`; this crate is for those who write another of that kind.

mod float_histogram;
mod native;
mod series;

pub use float_histogram::{FloatHistogram, FloatHistogramSnapshot};
pub use native::{NativeHistogram, NativeSchema};
pub use series::SeriesMap;
