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
/// then.
fn exported(meter: &Meter, sdk: &SdkMeterProvider, totals: &Totals) -> Vec<Values> {
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
        totals.values()
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
        assert_eq!(value(&expected[0], "filtered", &["method=GET"]), Some(50.0));
        let series = |name| expected[0].keys().filter(|(there, _)| there == name).count();
        let limits = [11, CARDINALITY_LIMIT + 1, CARDINALITY_LIMIT + 500];
        assert_eq!(["limited", "plain", "raised"].map(series), limits);
        assert!(exported(&provider.meter("tests"), &wrapped, &totals) == expected, "{temporality:?}");
    }
}

/// Adds to a few series in each of some rounds, in some of them before and in some behind a flood of others, and
/// returns what was exported after each round. `binds` is for ours: the SDK's bound counters need a feature of its own.
fn exported_in_a_flood(meter: &Meter, sdk: &SdkMeterProvider, totals: &Totals, binds: bool) -> Vec<Values> {
    let of = |id: usize| [KeyValue::new("id", id as i64), KeyValue::new("method", "GET")];
    let counter = meter.u64_counter("flood").build();
    let level = meter.f64_up_down_counter("level").build();
    let of_bound = [KeyValue::new("method", "bound")];
    let bound = binds.then(|| counter.bind(&of_bound));
    let established = |round: usize| {
        // of two that pause one comes back in front of the flood, and one behind it
        let pauses = [[false, false], [true, true], [true, true], [false, true]][round % 4];
        for (name, pauses) in ["a", "b"].into_iter().zip(pauses) {
            if !pauses {
                (0..3).for_each(|_| counter.add(1, &[KeyValue::new("of", name)]));
                level.add(-0.5, &[KeyValue::new("of", name)]);
            }
        }
        (0..3).for_each(|_| counter.add(1, &[KeyValue::new("method", "GET")]));
        bound.as_ref().map_or_else(|| counter.add(2, &of_bound), |bound| bound.add(2));
    };
    let rounds = (0..9).map(|round| {
        established(round);
        for id in 0..CARDINALITY_LIMIT + 500 {
            counter.add(1, &of(10_000 * round + id));
            level.add(0.5, &of(10_000 * round + id));
        }
        established(round);
        if round % 4 == 3 {
            counter.add(1, &[KeyValue::new("of", "b")]);
        }
        sdk.force_flush().expect("exported");
        totals.values()
    });
    rounds.collect()
}

#[test]
fn series_that_were_there_before_a_flood_keep_their_places() {
    for temporality in TEMPORALITIES {
        let [(own, own_totals), (wrapped, totals)] = [(); 2].map(|()| sdk(temporality, |builder| builder));
        let provider = MeterProvider::new(wrapped.clone());
        let expected = exported_in_a_flood(&own.meter("tests"), &own, &own_totals, false);
        let found = exported_in_a_flood(&provider.meter("tests"), &wrapped, &totals, true);
        for (round, (found, expected)) in found.iter().zip(&expected).enumerate() {
            for key in [&["method=GET"], &["method=bound"], &["of=a"], &["of=b"]] {
                let of = |values| (value(values, "flood", key), value(values, "level", key));
                assert_eq!(of(found), of(expected), "{key:?}, round {round}, {temporality:?}");
            }
            assert!(found == expected, "round {round}, {temporality:?}");
        }
        assert_eq!(value(&expected[8], "flood", &["method=GET"]), Some(54.0));
    }
}

#[test]
fn large_floating_point_values_leave_later_deltas_as_the_sdk_has_them() {
    let of = [KeyValue::new("of", "tank")];
    for large in [1e16, -1e300, f64::MAX, -f64::MAX] {
        let [(own, own_totals), (wrapped, totals)] =
            [(); 2].map(|()| sdk(Temporality::Delta, |builder| builder));
        let ours = MeterProvider::new(wrapped.clone());
        let exported = |meter: Meter, sdk: &SdkMeterProvider, totals: &Totals| {
            // the SDK has no deltas of up-down counters, and no objection to a counter that goes down
            let level = meter.f64_counter("level").build();
            let rounds = [vec![1.0], vec![large; 2], vec![1.0; 100], vec![-0.5, large], vec![2.5, -1.0]];
            rounds.map(|values| {
                values.iter().for_each(|value| [&[], &of[..]].iter().for_each(|of| level.add(*value, of)));
                sdk.force_flush().expect("exported");
                std::mem::take(&mut *totals.values.lock().expect("not poisoned"))
            })
        };
        let expected = exported(own.meter("tests"), &own, &own_totals);
        assert_eq!(value(&expected[2], "level", &["of=tank"]), Some(100.0));
        assert_eq!(exported(ours.meter("tests"), &wrapped, &totals), expected, "{large}");
    }
}

#[test]
fn a_sum_beyond_the_floating_point_numbers_is_infinite_as_the_sdk_has_it() {
    let (sdk, totals) = sdk(Temporality::Cumulative, |builder| builder);
    let provider = MeterProvider::new(sdk.clone());
    let level = provider.meter("tests").f64_counter("level").build();
    let (of_tank, of_bound) = ([KeyValue::new("of", "tank")], [KeyValue::new("of", "bound")]);
    let bound = level.bind(&of_bound);
    for large in [f64::MAX, f64::MAX, 1.0] {
        [&[], &of_tank[..]].iter().for_each(|of| level.add(large, of));
        bound.add(large);
    }
    sdk.force_flush().expect("exported");
    let values = totals.values();
    let of = |attributes| value(&values, "level", attributes);
    assert_eq!([of(&[]), of(&["of=tank"]), of(&["of=bound"])], [Some(f64::INFINITY); 3]);
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
