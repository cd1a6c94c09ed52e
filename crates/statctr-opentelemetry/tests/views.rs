//! Counters behind the SDK's views, limits, temporalities and several readers.

mod points;
mod readers;
mod threads;

use opentelemetry::metrics::{Meter, MeterProvider as _};
use opentelemetry::{Key, KeyValue};
use opentelemetry_sdk::metrics::{Aggregation, Instrument, MeterProviderBuilder, Stream, Temporality};
use opentelemetry_sdk::metrics::{InstrumentKind, SdkMeterProvider};
use points::{Values, value};
use readers::Totals;
use statctr_opentelemetry::{CARDINALITY_LIMIT, MeterProvider};
use std::time::Duration;
use threads::{THREADS, UPDATES, on_threads};

const TEMPORALITIES: [Temporality; 2] = [Temporality::Cumulative, Temporality::Delta];
/// An interval in which tests end: what is exported is what they flush.
const NEVER: Duration = Duration::from_secs(3600);

/// Returns the SDK with one reader, and the totals that it exports to.
fn sdk(
    temporality: Temporality,
    with_views: impl FnOnce(MeterProviderBuilder) -> MeterProviderBuilder,
) -> (SdkMeterProvider, Totals) {
    let (totals, reader) = Totals::new(temporality, NEVER);
    (with_views(SdkMeterProvider::builder().with_reader(reader)).build(), totals)
}

fn stream(instrument: &Instrument) -> Option<Stream> {
    let builder = Stream::builder();
    let stream = match instrument.name() {
        "filtered" | "open" => builder.with_allowed_attribute_keys([Key::new("method")]),
        "limited" => builder.with_cardinality_limit(10),
        "raised" => builder.with_cardinality_limit(2 * CARDINALITY_LIMIT),
        "old" if instrument.kind() == InstrumentKind::Counter => builder.with_name("new"),
        "unseen" => builder.with_aggregation(Aggregation::Drop),
        _ => return None,
    };
    Some(stream.build().expect("a stream"))
}

/// Updates counters with and without views in two rounds, with a collection after each, and returns what was exported
/// then: of many series the sum and the number, as the order of updates decides which are beyond a limit.
fn exported(meter: &Meter, sdk: &SdkMeterProvider, totals: &Totals) -> Vec<(Values, [(f64, usize); 3])> {
    let of = |name, id: usize| [KeyValue::new("method", name), KeyValue::new("id", id as i64)];
    let counter = |name: &'static str| meter.u64_counter(name).build();
    let open = meter.i64_up_down_counter("open").build();
    let rounds = (1..=2).map(|round: u64| {
        for id in 0..5 {
            counter("filtered").add(10 * round, &of("GET", id));
            counter("filtered").add(round, &of("PUT", id));
            open.add(-2 * round as i64, &of("GET", id));
        }
        (0..20).for_each(|id| counter("limited").add(round, &of("GET", id)));
        counter("limited").add(5, &of("GET", 19));
        (0..CARDINALITY_LIMIT + 500).for_each(|id| counter("plain").add(round, &of("GET", id)));
        (0..CARDINALITY_LIMIT + 500).for_each(|id| counter("raised").add(round, &of("GET", id)));
        counter("old").add(round, &[]);
        counter("unseen").add(round, &[]);
        sdk.force_flush().expect("exported");
        let mut values = totals.values();
        let many = ["limited", "plain", "raised"];
        let series = |name| values.keys().filter(|(there, _)| there == name).count();
        let sums = many.map(|name| (totals.sum(name), series(name)));
        values.retain(|(name, _), _| !many.contains(&name.as_str()));
        (values, sums)
    });
    rounds.collect()
}

#[test]
fn views_and_temporalities_apply_as_to_the_sdks_own_counters() {
    for temporality in TEMPORALITIES {
        let (own, own_totals) = sdk(temporality, |builder| builder.with_view(stream));
        let (wrapped, totals) = sdk(temporality, |builder| builder.with_view(stream));
        let provider = MeterProvider::new(wrapped.clone());
        let expected = exported(&own.meter("tests"), &own, &own_totals);
        assert_eq!(value(&expected[0].0, "filtered", &["method=GET"]), Some(50.0));
        let all = CARDINALITY_LIMIT + 500;
        assert_eq!(expected[0].1, [(25.0, 11), (all as f64, CARDINALITY_LIMIT + 1), (all as f64, all)]);
        assert_eq!(exported(&provider.meter("tests"), &wrapped, &totals), expected, "{temporality:?}");
    }
}

#[test]
fn each_of_two_readers_gets_all_counts_of_threads() {
    let every = Duration::from_millis(1);
    let readers = TEMPORALITIES.map(|temporality| Totals::new(temporality, every));
    let [(cumulative, first), (delta, second)] = readers;
    let sdk = SdkMeterProvider::builder().with_reader(first).with_reader(second).build();
    let provider = MeterProvider::new(sdk.clone());
    let counter = provider.meter("tests").u64_counter("requests").build();
    let energy = provider.meter("tests").f64_counter("energy").build();
    on_threads(|thread| {
        let bound = counter.bind(&[KeyValue::new("thread", thread as i64)]);
        for update in 0..UPDATES {
            counter.add(1, &[]);
            bound.add(2);
            energy.add(0.5, &[KeyValue::new("id", (update % 3000) as i64)]);
        }
    });
    // the last collection of each reader
    sdk.shutdown().expect("exported");
    for totals in [cumulative, delta] {
        assert_eq!(totals.sum("requests"), (3 * THREADS * UPDATES) as f64);
        assert_eq!(totals.sum("energy"), 0.5 * (THREADS * UPDATES) as f64);
    }
}

#[test]
fn without_the_instrument_that_tells_collections_counters_are_the_sdks() {
    let views: [fn(&Instrument) -> bool; 2] = [
        |instrument| instrument.name() != "requests",
        |instrument| instrument.kind() == InstrumentKind::ObservableGauge,
    ];
    for drops in views {
        let view = move |instrument: &Instrument| {
            let drop = || Stream::builder().with_aggregation(Aggregation::Drop).build().expect("a stream");
            drops(instrument).then(drop)
        };
        let (sdk, totals) = sdk(Temporality::Delta, |builder| builder.with_view(view));
        let provider = MeterProvider::new(sdk.clone());
        let counter = provider.meter("tests").u64_counter("requests").build();
        for round in 1..4 {
            counter.add(7, &[]);
            sdk.force_flush().expect("exported");
            assert_eq!((totals.sum("requests"), totals.values().len()), (7.0 * f64::from(round), 1));
        }
    }
}
