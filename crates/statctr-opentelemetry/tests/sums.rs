//! Sums of a registry's counters that come and go, in each temporality.

mod points;
mod readers;

use opentelemetry::Key;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::{
    Aggregation, Instrument, InstrumentKind, SdkMeterProvider, Stream, Temporality,
};
use points::value;
use readers::Totals;
use statctr::{Counter, Description, Gauge, Registry, StaticFamily, Unit};
use statctr_opentelemetry::{CARDINALITY_LIMIT, observe_registry};
use std::sync::Arc;
use std::time::Duration;

/// A registry, and the SDK with a reader of each temporality and a view.
struct Kit {
    registry: Arc<Registry>,
    sdk: SdkMeterProvider,
    readers: [Totals; 2],
}

impl Kit {
    fn new(view: impl Fn(&Instrument) -> Option<Stream> + Send + Sync + 'static) -> Kit {
        // what is exported is what the tests flush
        Kit::with_interval(Duration::from_secs(3600), view)
    }

    fn with_interval(
        interval: Duration,
        view: impl Fn(&Instrument) -> Option<Stream> + Send + Sync + 'static,
    ) -> Kit {
        let readers = [Temporality::Cumulative, Temporality::Delta];
        let [(cumulative, first), (delta, second)] =
            readers.map(|temporality| Totals::new(temporality, interval));
        let sdk = SdkMeterProvider::builder().with_reader(first).with_reader(second).with_view(view).build();
        Kit { registry: Arc::new(Registry::new()), sdk, readers: [cumulative, delta] }
    }

    fn add(&self, description: Description, initial: u64) -> Arc<Counter> {
        let counter = Arc::new(Counter::new(initial).expect("counter"));
        self.registry.register(description, &counter).expect("free");
        counter
    }

    /// Collects, and returns what each reader has exported of a metric in all.
    fn sums(&self, name: &str) -> [f64; 2] {
        self.sdk.force_flush().expect("exported");
        self.readers.each_ref().map(|totals| totals.sum(name))
    }
}

#[test]
fn a_counter_that_is_replaced_under_its_name_adds_to_the_sum() {
    let kit = Kit::new(|_| None);
    let mut counter = kit.add(Description::new("requests"), 5);
    let _observer = observe_registry(&kit.sdk.meter("tests"), Arc::clone(&kit.registry));
    assert_eq!(kit.sums("requests"), [5.0; 2]);
    // to a smaller value, and to a larger one
    for (initial, sum) in [(2, 7.0), (9, 16.0)] {
        drop(counter);
        counter = kit.add(Description::new("requests"), initial);
        assert_eq!(kit.sums("requests"), [sum; 2]);
    }
    drop(counter);
    assert_eq!(kit.sums("requests"), [16.0; 2]);
    let counter = kit.add(Description::new("requests"), 1);
    assert_eq!(kit.sums("requests"), [17.0; 2]);
    counter.set(0);
    counter.add(3);
    assert_eq!(kit.sums("requests").map(|sum| sum - 17.0), [2.0; 2]);
    // a counter that went down was reset
    counter.set(1);
    assert_eq!(kit.sums("requests"), [20.0; 2]);
}

#[test]
fn entries_beyond_the_limit_that_come_and_go_leave_sums_exact() {
    let kit = Kit::new(|_| None);
    let of = |id: usize| Description::new("many").label("id", id.to_string());
    let mut counters: Vec<_> = (0..CARDINALITY_LIMIT + 10).map(|id| kit.add(of(id), 1)).collect();
    let observer = observe_registry(&kit.sdk.meter("tests"), Arc::clone(&kit.registry));
    let all = (CARDINALITY_LIMIT + 10) as f64;
    assert_eq!(kit.sums("many"), [all; 2]);
    let overflow = |kit: &Kit| {
        kit.readers.each_ref().map(|totals| value(&totals.values(), "many", &["otel.metric.overflow=true"]))
    };
    assert_eq!(overflow(&kit), [Some(10.0); 2]);
    counters.drain(..3);
    assert_eq!((kit.sums("many"), overflow(&kit)), ([all; 2], [Some(10.0); 2]));
    counters.iter().for_each(|counter| counter.add(1));
    let _new = kit.add(of(0), 1);
    observer.refresh();
    assert_eq!(kit.sums("many"), [2.0 * all - 2.0; 2]);
}

#[test]
fn new_members_of_a_family_in_front_of_others_are_counted_once() {
    static FAMILY: StaticFamily<1> =
        StaticFamily::new("family", "", Unit::NONE, ["id"]).limit(2 * CARDINALITY_LIMIT);
    let kit = Kit::new(|_| None);
    let observer = observe_registry(&kit.sdk.meter("tests"), Registry::global());
    let mut counted = 0.0;
    for (members, prefix) in [(CARDINALITY_LIMIT, "m"), (100, "a"), (50, "a"), (100, "A")] {
        for member in 0..members {
            FAMILY.get([&format!("{prefix}{member:05}")]).add(10);
            counted += 10.0;
        }
        observer.refresh();
        assert_eq!(kit.sums("family"), [counted; 2]);
    }
}

#[test]
fn what_an_entry_counted_that_ended_before_its_instrument_was_there_is_exported() {
    let kit = Kit::new(|_| None);
    let observer = observe_registry(&kit.sdk.meter("tests"), Arc::clone(&kit.registry));
    let counter = kit.add(Description::new("short"), 3);
    kit.sums("short");
    drop(counter);
    observer.refresh();
    assert_eq!(kit.sums("short"), [3.0; 2]);
    // and before the observation ended
    let counter = kit.add(Description::new("last"), 4);
    drop((observer, counter));
    assert_eq!(kit.sums("last"), [4.0; 2]);
}

#[test]
fn an_observation_continues_from_one_that_ended() {
    let kit = Kit::new(|_| None);
    let counter = kit.add(Description::new("requests"), 5);
    let mut expected = 5.0;
    for _ in 0..3 {
        let observer = observe_registry(&kit.sdk.meter("tests"), Arc::clone(&kit.registry));
        counter.inc();
        expected += 1.0;
        assert_eq!(kit.sums("requests"), [expected; 2]);
        drop(observer);
        counter.inc();
        expected += 1.0;
        // that nobody observes
        assert_eq!(kit.sums("requests"), [expected - 1.0; 2]);
    }
}

#[test]
fn views_of_a_registrys_counters_lose_no_count() {
    let kit = Kit::new(|instrument| {
        let keys = || Stream::builder().with_allowed_attribute_keys([Key::new("method")]);
        match instrument.name() {
            "filtered" => keys().build().ok(),
            "limited" => Stream::builder().with_cardinality_limit(10).build().ok(),
            _ => None,
        }
    });
    let counters: Vec<_> = (0..20)
        .flat_map(|id| {
            let of = |name: &'static str| {
                Description::new(name).label("method", "GET").label("id", id.to_string())
            };
            [kit.add(of("filtered"), 10), kit.add(of("limited"), 1)]
        })
        .collect();
    let _observer = observe_registry(&kit.sdk.meter("tests"), Arc::clone(&kit.registry));
    assert_eq!((kit.sums("filtered"), kit.sums("limited")), ([200.0; 2], [20.0; 2]));
    let filtered = kit.readers.each_ref().map(|totals| value(&totals.values(), "filtered", &["method=GET"]));
    assert_eq!(filtered, [Some(200.0); 2]);
    counters.iter().for_each(|counter| counter.add(5));
    assert_eq!((kit.sums("filtered"), kit.sums("limited")), ([300.0; 2], [120.0; 2]));
}

#[test]
fn counters_are_exported_where_views_drop_the_instrument_that_tells_collections() {
    let views: [fn(&Instrument) -> bool; 2] = [
        |instrument| instrument.name() != "requests",
        |instrument| instrument.kind() == InstrumentKind::ObservableGauge,
    ];
    for drops in views {
        let kit = Kit::new(move |instrument| {
            let drop = || Stream::builder().with_aggregation(Aggregation::Drop).build().expect("a stream");
            drops(instrument).then(drop)
        });
        let counter = kit.add(Description::new("requests"), 5);
        let _observer = observe_registry(&kit.sdk.meter("tests"), Arc::clone(&kit.registry));
        assert_eq!(kit.sums("requests"), [5.0; 2]);
        counter.add(2);
        assert_eq!(kit.sums("requests"), [7.0; 2]);
    }
}

#[test]
fn each_of_two_readers_that_collect_at_one_time_gets_all_counts() {
    let kit = Kit::with_interval(Duration::from_millis(1), |_| None);
    let counters: Vec<_> =
        (0..4).map(|id| kit.add(Description::new("requests").label("id", id.to_string()), 0)).collect();
    let open = Arc::new(Gauge::new(1).expect("gauge"));
    kit.registry.register(Description::new("open"), &open).expect("free");
    let observer = observe_registry(&kit.sdk.meter("tests"), Arc::clone(&kit.registry));
    std::thread::scope(|scope| {
        for counter in &counters {
            scope.spawn(|| (0..1_000_000).for_each(|_| counter.inc()));
        }
    });
    // the last collection of each reader
    kit.sdk.shutdown().expect("exported");
    assert_eq!(kit.readers.each_ref().map(|totals| totals.sum("requests")), [4_000_000.0; 2]);
    drop(observer);
}
