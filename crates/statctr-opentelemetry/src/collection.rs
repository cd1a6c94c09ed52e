//! Work at the beginning of each collection (export of all instruments) of another provider.

use crate::instrument::DeferredCounter;
use opentelemetry::metrics::{Counter, InstrumentBuilder, Meter};
use std::cell::Cell;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The name of the instrument whose callback records the counters of a meter; as it never has a value, it is not
/// exported.
const RECORDING_INSTRUMENT: &str = "statctr.counters";

/// Has `callback` called at the beginning of each collection, before the SDK reads its synchronous counters, by an
/// instrument of `meter` with this name and without values. Returns `false` if the meter keeps no callbacks, as views
/// drop such instruments or there is no reader.
///
/// `Pipeline::produce` of opentelemetry_sdk 0.33.1 (src/metrics/pipeline.rs) first calls all callbacks, and then
/// aggregates: therefore what a callback adds to a counter is in the same collection.
pub(crate) fn at_each_collection(
    meter: &Meter,
    name: &'static str,
    callback: impl Fn() + Send + Sync + 'static,
) -> bool {
    let callback = Arc::new(callback);
    // The SDK drops the callbacks of an instrument that a view drops, by its kind perhaps.
    let is_kept = || Arc::strong_count(&callback) > 1;
    let call = Arc::clone(&callback);
    meter.u64_observable_gauge(name).with_callback(move |_| call()).build();
    if !is_kept() {
        let call = Arc::clone(&callback);
        meter.u64_observable_counter(name).with_callback(move |_| call()).build();
    }
    is_kept()
}

thread_local! {
    /// `true` while this thread makes a counter that is not to be deferred.
    static IS_DIRECT: Cell<bool> = const { Cell::new(false) };
}

/// Makes a counter for callbacks to add to: that of the SDK also where the meter is one of
/// [`MeterProvider`](crate::MeterProvider), whose counters may have been recorded before the callback adds.
pub(crate) fn build_direct(builder: InstrumentBuilder<'_, Counter<u64>>) -> Counter<u64> {
    let was_direct = IS_DIRECT.replace(true);
    let counter = builder.build();
    IS_DIRECT.set(was_direct);
    counter
}

/// The counters of a meter that are recorded in the SDK's counters at each collection.
#[derive(Default)]
pub(crate) struct DeferredCounters {
    counters: Arc<Mutex<Vec<Arc<dyn DeferredCounter>>>>,
    /// `true` if collections of the meter's provider record the counters.
    are_recorded: OnceLock<bool>,
}

impl DeferredCounters {
    /// Returns `true` if collections of the provider of `meter` record the counters, which the first call sees to, and if
    /// this thread makes no other kind of counter.
    pub(crate) fn are_recorded(&self, meter: &Meter) -> bool {
        !IS_DIRECT.get()
            && *self.are_recorded.get_or_init(|| {
                let counters = Arc::clone(&self.counters);
                let record = move || {
                    let counters = counters.lock().unwrap_or_else(PoisonError::into_inner);
                    counters.iter().for_each(|counter| counter.record());
                };
                at_each_collection(meter, RECORDING_INSTRUMENT, record)
            })
    }

    /// Adds a counter to those that collections record.
    pub(crate) fn add(&self, counter: Arc<dyn DeferredCounter>) {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner).push(counter);
    }
}
