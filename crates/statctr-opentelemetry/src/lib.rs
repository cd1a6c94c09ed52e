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
//!   and `UpDownCounter::add` goes to words of each CPU, and each collection first adds what is new there to a counter
//!   of the other provider. All other instruments are the other provider's.
//! - [`observe_registry`] exports a whole [`statctr::Registry`]: every kind of statistic with its unit, help text and
//!   labels, statics and their families, and what is registered later. Its counters are the SDK's, to which each
//!   collection adds what was counted, its gauges observable ones. [`observe_counter`], [`observe_gauge`],
//!   [`observe_max`] and the like export one statistic, array or group. OpenTelemetry has no observable histogram:
//!   histograms are recorded through the first way, and are the SDK's.
//!
//! # Costs
//! `add` without attributes, and `add` of a bound counter, is an indirect call and an update of a
//! [`statctr::Counter`]. With attributes it hashes them and looks the series up, without a lock; the first one of a series
//! after each collection is the SDK's `add`. 8 bytes per CPU that counts for each series (floating point: 16), and some
//! 300 on the heap. Updates of statistics that are observed cost what they did before; a collection reads each once.
//!
//! # Bounds
//! Of an instrument at most [`CARDINALITY_LIMIT`] sets of attributes are counted per CPU, as long as it lives. What comes
//! later is added to the SDK's counter at once, at the SDK's cost.
//!
//! # Forks
//! A child of `fork` goes on with the counters of its parent, whatever other threads of the parent were doing: its updates
//! take no lock that those may have held, but for sets of attributes beyond [`CARDINALITY_LIMIT`]. They are counted per CPU
//! and are in what the child collects, if the reader needs no thread, which the child does not have; the order in which
//! sets come then does not decide which of them have values of their own. Making providers, meters and instruments,
//! observing, and collecting take locks of this crate and of the SDK: a thread of the parent that does so during the fork
//! can leave the child waiting for ever, as with the SDK alone.
//!
//! # Views
//! Views, their limits of cardinality and each reader's temporality apply to the counters of [`MeterProvider`] and of
//! [`observe_registry`] as they do to the SDK's own, and lose no count. Of the sets of attributes of a [`MeterProvider`]'s
//! counter those have values of their own that came first, as the SDK has it, whatever number follows. A view whose
//! aggregation is a histogram gets few values for each set of attributes and collection, sums of what was added: take
//! such counters from [`MeterProvider::inner`]. What a callback of an observable instrument adds may be in the next
//! collection.
//!
//! A floating-point counter adds up on each CPU from its first value on, and what a collection exports is a difference of
//! two such sums. With delta temporality it is thus exact to 2⁻⁵³ of all that was counted so far, where the SDK's is
//! exact to 2⁻⁵³ of what was counted since the last collection. Values from 2⁴⁰ on are added to the SDK's counter at
//! once, at the SDK's cost, so that none of them alone takes later values' digits.
//!
//! Gauges, and what [`observe_counter`] and the like export, are observable instruments. Of sets of attributes that a
//! view makes one by `with_allowed_attribute_keys`, or that are beyond its `with_cardinality_limit`, the SDK 0.33.1 exports
//! the last value in place of the sum: views should rename or drop these only. As its deltas of a counter that goes down
//! are wrong, what [`observe_counter`] exports must only be added to.

mod collection;
mod ended;
mod instrument;
mod observe;
mod provider;
mod reading;
mod registry;

pub use instrument::CARDINALITY_LIMIT;
pub use observe::{
    observe_approximate_counter, observe_average, observe_counter, observe_counter_array,
    observe_float_gauge, observe_float_up_down_counter, observe_gauge, observe_group, observe_group_array,
    observe_max, observe_min, observe_up_down_counter,
};
pub use provider::MeterProvider;
pub use registry::{RegistryObserver, observe_registry};
