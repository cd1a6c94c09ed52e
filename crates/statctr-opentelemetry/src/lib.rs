//! A meter provider for [`opentelemetry`] whose counters count per CPU, on words of [`statctr`]'s.
//!
//! ```
//! use opentelemetry::{KeyValue, metrics::MeterProvider as _};
//! use opentelemetry_sdk::metrics::SdkMeterProvider;
//!
//! let sdk = SdkMeterProvider::builder().build(); // with a reader and an exporter
//! let provider = statctr_opentelemetry::MeterProvider::new(sdk);
//! let requests = provider.meter("server").u64_counter("requests").build();
//! requests.add(1, &[KeyValue::new("method", "GET")]);
//! ```
//!
//! # The two ways
//! - [`MeterProvider`] stands before another one, such as the SDK's. What the program counts by `Counter::add`
//!   and `UpDownCounter::add` goes to words of each CPU, and the other provider sees an observable instrument of
//!   the same name, whose callback reads them when it collects. All other instruments are the other provider's.
//! - [`observe_counter`], [`observe_gauge`], [`observe_float_gauge`] and [`observe_group`] export what the program
//!   counts with itself.
//!
//! # Costs
//! `add` without attributes, and `add` of a bound counter, is an indirect call and an update of a
//! [`statctr::Counter`]. With attributes it hashes them and looks the series up, without a lock. 8 bytes per
//! CPU that counts for each series (floating point: 16), and some 200 on the heap.
//!
//! # Bounds
//! An instrument has at most [`CARDINALITY_LIMIT`] sets of attributes, as the specification proposes; what
//! comes later is counted under `otel.metric.overflow=true`, so sums stay exact. That an SDK applies the limit,
//! too, changes nothing.

mod instrument;
mod observe;
mod provider;

pub use instrument::CARDINALITY_LIMIT;
pub use observe::{observe_counter, observe_float_gauge, observe_gauge, observe_group};
pub use provider::MeterProvider;
