//! Metrics for the crate [`prometheus_client`] that count per CPU, on words of [`statctr`]'s.
//!
//! ```
//! use prometheus_client::{encoding::text::encode, registry::Registry};
//! use statctr_prometheus_client::Counter;
//!
//! let mut registry = Registry::default();
//! let requests = Counter::new()?;
//! registry.register("requests", "requests served", requests.clone());
//! requests.inc();
//!
//! let mut text = String::new();
//! encode(&mut text, &registry).expect("a string takes everything");
//! assert!(text.contains("requests_total 1\n"));
//! # Ok::<(), statctr::Error>(())
//! ```
//!
//! - [`Counter`], [`Gauge`], [`FloatGauge`], [`Histogram`] and [`Family`] are registered as those of the
//!   other crate are.
//! - [`Histogram::native`] is one with exponential buckets, which the protobuf format of Prometheus carries.
//! - [`Collector`] exports what is in a registry of [`statctr`]'s: counters, groups, statics; its histograms as native
//!   ones, too, with a schema ([`Collector::native_schema`]).
//!
//! `inc` and its kin return nothing: a counter that is divided among CPUs has no old value to return, which
//! is why it cannot be the other crate's `Atomic`.
//!
//! # Consistency
//! A scrape reads each metric once. The items of a group, and the buckets, the number and the sum of a
//! histogram, are of one read.

mod collector;
mod family;
mod metrics;

pub use collector::Collector;
pub use family::Family;
pub use metrics::{Counter, FloatGauge, Gauge, Histogram};
pub use statctr_facade::{NativeHistogram, NativeSchema};
