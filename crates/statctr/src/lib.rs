//! Statistics counters that scale with the CPUs of a machine.
//!
//! A counter that many CPUs add to through one word costs each of them the transfer of a cache
//! line. Here every CPU has a word of its own, which it updates with a few plain instructions and
//! without a lock prefix; a read sums the words of the CPUs that ever counted.
//!
//! ```
//! use statctr::{Counter, Unit};
//!
//! // one statistic
//! let requests = Counter::new(0)?;
//! requests.inc();
//! assert_eq!(requests.read(), 1);
//!
//! // statistics that belong together: the items of an event are updated by one commit
//! statctr::group! {
//!     /// Traffic of one interface.
//!     pub struct Traffic {
//!         /// A packet came in.
//!         event received(packets, bytes);
//!         item packets: Unit::PACKETS, "packets received";
//!         item bytes: Unit::BYTES, "bytes received";
//!         item errors: Unit::PACKETS, "malformed packets";
//!     }
//! }
//! let eth0 = Traffic::new()?;
//! eth0.received(1, 1500);
//! assert_eq!(eth0.read(), [1, 1500, 0]);
//! # Ok::<(), statctr::Error>(())
//! ```
//!
//! Values that go up and down are a [`Gauge`] or a [`FloatGauge`], distributions a [`Histogram`],
//! extremes and averages a [`Max`], [`Min`] or [`Average`]. Two
//! [`Snapshot`]s of any of them give a change, and its rate.
//!
//! A [`Registry`] has all of these by name, for exporters: [`Registry::prometheus_text`] is Prometheus' text format.
//!
//! A static needs no initialisation and no registration: [`StaticCounter`], [`StaticGauge`], [`StaticMax`],
//! [`StaticMin`]; several statistics of one name, by labels, of every kind: [`StaticFamily`].
//!
//! # Guarantees
//! 1. **Exact.** When writers have stopped, a read is the sum of all updates modulo 2⁶⁴, whatever
//!    the migrations, preemptions, signals, forks, threads without rseq and CPUs that come and go.
//! 2. **Visible.** An update that happens before a read is in it.
//! 3. **Monotone.** If a counter is only added to, successive reads by one reader never decrease.
//! 4. **Writers never wait**: no lock, no allocation, bounded retries, then an atomic fallback cell.
//!    The first touch of a page is a page fault; see [`Pool::prefault`].
//! 5. **Readers never disturb writers**: `set` and initial values are baselines that reads add (of an
//!    [`ApproximateCounter`] a part of its shared word).
//! 6. **One commit, one event.** The items of an event are applied by one store. A reader sees a
//!    pair of items together; wider events are seen together where the machine loads whole lines,
//!    which is measured, and not guaranteed by their makers.
//! 7. **Plain and atomic writers never share a word.**
//! 8. **Costs can be queried**: [`Pool::cost`], [`Pool::memory`], [`Pool::mode`], [`thread_mode`],
//!    [`fallback_reason`].
//!
//! # Costs
//! | | time | memory |
//! |---|---|---|
//! | [`Counter::inc`] | about a plain increment and a half | 8 bytes per CPU that counts, 16 for the handle |
//! | [`StaticCounter::inc`] | a load more than [`Counter::inc`] | 8 bytes per CPU that counts, from its first update on |
//! | [`Counter::inc`] where there is no rseq | a locked instruction on a line of the CPU's own (not under Linux: of some threads', see [`Mode::Striped`]) | 8 bytes per CPU that counts, 16 for the handle |
//! | an event of up to 8 items | about two increments | 8 bytes per item and CPU |
//! | [`ApproximateCounter::approximate`] | a cache line at any number of CPUs | |
//! | [`FloatGauge::add`] | about two increments | 16 bytes per CPU that counts, 64 for the handle |
//! | [`Max::observe`], [`Min::observe`] | about three increments | 32 bytes per CPU that observes, 64 for the handle |
//! | [`Average::observe`] | an event of two items | a cache line per CPU that observes |
//! | [`Histogram::observe`] | an event of two items and some five instructions | 16 bytes per bucket and CPU |
//! | [`Counter::read`] | a cache line per CPU that counts | |
//! | [`GroupArray::fold_into`] | memory bandwidth, of several threads with [`GroupArray::fold_parts`] | |
//! | [`IncrementalFold::fold`] | that of the lines that were written since the last one, and a byte a line; on other processors than x86-64 that of a fold of all | 8 bytes per item, 16 from the first use of a baseline or fallback cell on |
//!
//! `tallyline-bench` measures them on your machine.
//!
//! # Limitations
//! Sections exist for x86-64
//! and aarch64 on Linux with glibc or musl ([`registration`]); elsewhere pools are striped: counters, gauges, float
//! gauges, groups, averages, histograms and lazy objects have words per CPU, updated by locked instructions
//! ([`Placement::Striped`]), and [`Pool::mode`] says so. [`Max`] and [`Min`] have one shared word there, which only a
//! new extreme writes, and an [`ApproximateCounter`] has one that every update writes. On systems
//! other than Linux the library knows neither a thread's CPU nor the memory that is there: a thread keeps one of as many
//! words as there are CPUs, by its number, which it may share with other threads, the topology is as many CPUs as the
//! process may use, and [`Pool::memory`] is what is reserved. Children of vfork must not count (see [`Counter`]).
//!
//! # Features
//! `uniprocessor`: for machines with one possible CPU. A counter is a plain word, an update one
//! unlocked instruction, and building a pool fails where more CPUs are possible.

mod approximate;
mod average;
mod combine;
mod counter;
mod cpu;
mod description;
mod errno;
mod error;
mod extremes;
mod gauge;
mod group;
mod histogram;
pub mod hotplug;
mod lazy;
mod memory;
mod pieces;
mod placement;
#[doc(hidden)]
pub mod raw;
mod registry;
mod rseq;
mod schema;
mod shared_counter;
mod snapshot;
mod statics;
mod sys;
pub mod topology;
mod tracked;
mod value;

pub use approximate::ApproximateCounter;
pub use average::{Average, AverageSnapshot};
pub use combine::Combine;
pub use counter::{Batch, Counter, CounterArray, CounterRef};
pub use description::Description;
pub use error::{Error, Result};
pub use extremes::{Max, Min};
pub use gauge::{FloatGauge, Gauge};
pub use group::{FoldPart, Group, GroupArray, GroupRef, fold_groups};
pub use histogram::{Histogram, HistogramSnapshot};
pub use lazy::{
    LazyGroup, LazyPool, LazyPoolBuilder, PerConcurrencyId, PerCpu, PerNode, Scope, SyntheticCpu,
};
pub use memory::{Drained, Trimmed};
pub use placement::{
    Cost, DrainCallbackGuard, FallbackReason, Memory, Mode, Placement, Pool, PoolBuilder, VectorWidth,
    fallback_reason, thread_mode,
};
pub use registry::{Registry, RegistryValues, Sample};
#[cfg(feature = "inject")]
#[doc(hidden)]
pub use rseq::inject;
pub use rseq::{Registration, forget_section, registration};
#[doc(hidden)]
pub use schema::slots_of;
pub use schema::{Event, Item, ItemSpec, Schema, Unit};
pub use shared_counter::SharedCounter;
pub use snapshot::{Change, Reading, Snapshot};
pub use statics::{FamilyMember, StaticCounter, StaticFamily, StaticGauge, StaticMax, StaticMin};
#[doc(hidden)]
pub use sys::{OnceArc, OnceBox};
pub use tracked::{IncrementalFold, TrackedGroupArray, TrackedGroupRef};
pub use value::{SampleItem, Source, Value};
