//! Sums that OpenTelemetry's SDK exports, under threads.

mod common;
mod points;
mod threads;

use common::{Kit, SetOnDrop};
use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider as _;
use points::value;
use statctr::{Group, ItemSpec, Schema, Unit};
use statctr_opentelemetry::{
    CARDINALITY_LIMIT, observe_counter, observe_float_gauge, observe_gauge, observe_group,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use threads::{THREADS, UPDATES, on_threads};

#[test]
fn sums_of_all_counters_are_exact() {
    let kit = Kit::new();
    let meter = kit.meter();
    let counter = meter.u64_counter("requests").with_unit("1").with_description("served").build();
    let float = meter.f64_counter("energy").build();
    let up_down = meter.i64_up_down_counter("open").build();
    let float_up_down = meter.f64_up_down_counter("level").build();
    on_threads(|thread| {
        // the same counter, asked for again
        let again = kit.meter().u64_counter("Requests").build();
        let bound = again.bind(&[KeyValue::new("status", 200), KeyValue::new("method", "GET")]);
        for update in 0..UPDATES {
            counter.add(update % 3, &[]);
            bound.add(1);
            let mut attributes = [KeyValue::new("method", "GET"), KeyValue::new("status", 200)];
            attributes.rotate_left(update as usize % 2);
            again.add(2, &attributes);
            float.add(0.5, &[]);
            up_down.add(if thread % 2 == 0 { 3 } else { -5 }, &[]);
            float_up_down.add(if thread % 2 == 0 { 0.25 } else { -0.75 }, &[]);
        }
    });
    let values = kit.values();
    let all = (THREADS * UPDATES) as f64;
    let thirds = (0..UPDATES).map(|update| update % 3).sum::<u64>();
    assert_eq!(value(&values, "requests", &[]), Some((THREADS * thirds) as f64));
    assert_eq!(value(&values, "requests", &["method=GET", "status=200"]), Some(3.0 * all));
    assert_eq!(value(&values, "energy", &[]), Some(0.5 * all));
    assert_eq!(value(&values, "open", &[]), Some(-all));
    assert_eq!(value(&values, "level", &[]), Some(-0.25 * all));
    let metrics = kit.metrics();
    assert!(metrics.contains(&"counter requests 1 served".to_owned()), "{metrics:?}");
    // cumulative, and the same where nothing was added
    assert_eq!(kit.values(), values);
}

#[test]
fn a_counter_without_attributes_is_there_from_its_first_update_on() {
    let kit = Kit::new();
    let counter = kit.meter().u64_counter("plain").build();
    let bound = counter.bind(&[]);
    counter.add(1, &[KeyValue::new("key", "a")]);
    assert_eq!((kit.values().len(), value(&kit.values(), "plain", &[])), (1, None));
    // by whoever comes first, of several threads
    on_threads(|_| (0..UPDATES).for_each(|_| bound.add(1)));
    counter.add(0, &[]);
    let values = kit.values();
    assert_eq!((values.len(), value(&values, "plain", &[])), (2, Some((THREADS * UPDATES) as f64)));
}

#[test]
fn of_floating_point_values_those_are_counted_that_the_sdk_counts() {
    let kit = Kit::new();
    let (of_tank, of_nothing) = ([KeyValue::new("of", "tank")], [KeyValue::new("of", "nothing")]);
    for (prefix, meter) in [("ours", kit.meter()), ("sdks", kit.provider.inner().meter("tests"))] {
        let counter = meter.f64_counter(format!("{prefix}.counter")).build();
        let up_down = meter.f64_up_down_counter(format!("{prefix}.up_down")).build();
        for value in [1.5, f64::NAN, f64::INFINITY, -0.25, f64::NEG_INFINITY, 2.0] {
            counter.add(value, &[]);
            counter.add(value, &of_tank);
            up_down.add(value, &[]);
        }
        counter.add(f64::NAN, &of_nothing);
        meter.f64_counter(format!("{prefix}.nothing")).build().add(f64::INFINITY, &[]);
    }
    let bound = kit.meter().f64_counter("bound").build();
    for value in [1.5, f64::NAN, f64::INFINITY] {
        bound.bind(&[]).add(value);
        bound.bind(&of_tank).add(value);
    }
    let values = kit.values();
    for prefix in ["ours", "sdks"] {
        let of = |name: &str, attributes| value(&values, &format!("{prefix}.{name}"), attributes);
        let all = [of("counter", &[]), of("counter", &["of=tank"]), of("up_down", &[])];
        assert_eq!(all, [Some(3.25); 3], "{prefix}");
    }
    assert_eq!([&[][..], &["of=tank"]].map(|of| value(&values, "bound", of)), [Some(1.5); 2]);
    // no value came of what was not counted
    assert_eq!(values.len(), 2 * 3 + 2);
}

#[test]
fn a_bound_counter_outlives_its_instrument_and_provider() {
    let bound = Kit::new().meter().u64_counter("gone").build().bind(&[]);
    bound.add(1);
}

#[test]
fn gauges_of_the_program_are_observed() {
    let kit = Kit::new();
    let open = Arc::new(statctr::Gauge::new(3).expect("gauge"));
    let level = Arc::new(statctr::FloatGauge::new(0.5).expect("gauge"));
    observe_gauge(&kit.meter(), "open", &[], &open);
    observe_float_gauge(&kit.meter(), "level", &[KeyValue::new("of", "tank")], &level);
    open.sub(10);
    level.add(2.25);
    let values = kit.values();
    assert_eq!(
        (value(&values, "open", &[]), value(&values, "level", &["of=tank"])),
        (Some(-7.0), Some(2.75))
    );
}

#[test]
fn of_a_key_that_is_given_twice_the_last_value_counts() {
    let kit = Kit::new();
    let counter = kit.meter().u64_counter("twice").build();
    for (first, last) in [("a", "b"), ("b", "b"), ("c", "b")] {
        counter.add(1, &[KeyValue::new("key", first), KeyValue::new("key", last)]);
    }
    counter.add(1, &[KeyValue::new("key", "b")]);
    let values = kit.values();
    assert_eq!((values.len(), value(&values, "twice", &["key=b"])), (1, Some(4.0)));
}

#[test]
fn many_attributes_in_any_order_are_one_set() {
    let kit = Kit::new();
    let counter = kit.meter().u64_counter("many").build();
    let mut attributes: Vec<_> = (0..40i64).map(|key| KeyValue::new(key.to_string(), key)).collect();
    for _ in 0..attributes.len() {
        counter.add(1, &attributes);
        attributes.rotate_left(1);
    }
    // as many, of which one key is given twice: another set
    attributes[39] = attributes[0].clone();
    counter.add(5, &attributes);
    let mut sums: Vec<f64> = kit.values().into_values().collect();
    sums.sort_by(f64::total_cmp);
    assert_eq!(sums, [5.0, 40.0]);
}

#[test]
fn at_the_limit_a_key_that_is_given_twice_finds_its_series() {
    let kit = Kit::new();
    let counter = kit.meter().u64_counter("full").build();
    (0..CARDINALITY_LIMIT as i64 + 1).for_each(|id| counter.add(1, &[KeyValue::new("id", id)]));
    counter.add(6, &[KeyValue::new("id", -1), KeyValue::new("id", 3)]);
    counter.add(1, &[KeyValue::new("id", -1)]);
    let values = kit.values();
    assert_eq!(value(&values, "full", &["id=3"]), Some(7.0));
    assert_eq!(value(&values, "full", &["otel.metric.overflow=true"]), Some(2.0));
}

#[test]
fn a_flood_of_attributes_is_bounded_and_loses_no_count() {
    let kit = Kit::new();
    let counter = kit.meter().u64_counter("flood").build();
    on_threads(|_| {
        for update in 0..CARDINALITY_LIMIT as i64 * 2 {
            counter.add(1, &[KeyValue::new("id", update)]);
        }
    });
    let mut sum = 0.0;
    kit.values().values().for_each(|value| sum += value);
    assert_eq!(sum, (THREADS * CARDINALITY_LIMIT as u64 * 2) as f64);
    let overflow = value(&kit.values(), "flood", &["otel.metric.overflow=true"]);
    assert!(overflow.expect("beyond the limit") >= (THREADS as usize * CARDINALITY_LIMIT) as f64);
}

#[test]
fn other_instruments_are_the_other_providers() {
    let kit = Kit::new();
    let meter = kit.meter();
    meter.i64_gauge("temperature").build().record(-7, &[]);
    meter.f64_histogram("latency").with_boundaries(vec![1.0]).build().record(2.5, &[]);
    let _seen = meter.u64_observable_counter("seen").with_callback(|seen| seen.observe(9, &[])).build();
    let values = kit.values();
    assert_eq!(value(&values, "temperature", &[]), Some(-7.0));
    assert_eq!(value(&values, "latency", &[]), Some(2.5));
    assert_eq!(value(&values, "seen", &[]), Some(9.0));
}

#[test]
fn a_group_in_a_collection_is_of_one_read() {
    let kit = Kit::new();
    let items = [ItemSpec::new("packets"), ItemSpec::new("volume").unit(Unit::BYTES).help("sent")];
    let schema = Schema::new(items, &[&[0, 1]]).expect("schema");
    let event = schema.event::<2>(0).expect("two items");
    let group = Arc::new(Group::new(&schema).expect("group"));
    let counter = Arc::new(statctr::Counter::new(0).expect("counter"));
    observe_group(&kit.meter(), "tx", &[KeyValue::new("device", "eth0")], &group);
    observe_counter(&kit.meter(), "own", &[], &counter);
    let done = AtomicBool::new(false);
    let packets = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    group.commit(event, [1, 1500]);
                    counter.inc();
                }
            });
        }
        let end = SetOnDrop(&done);
        let mut last = 0.0;
        for _ in 0..300 {
            let values = kit.values();
            let item = |name| value(&values, name, &["device=eth0"]).expect("observed");
            assert_eq!(item("tx.volume"), 1500.0 * item("tx.packets"));
            assert!(item("tx.packets") >= last);
            last = item("tx.packets");
        }
        drop(end);
        last
    });
    let values = kit.values();
    assert!(value(&values, "tx.packets", &["device=eth0"]) >= Some(packets));
    assert_eq!(value(&values, "own", &[]), Some(counter.read() as f64));
}

#[test]
fn a_bound_counter_counts_after_its_provider_is_gone() {
    let kit = Kit::new();
    let counter = kit.meter().u64_counter("requests").build();
    let (plain, of_get) = (counter.bind(&[]), counter.bind(&[KeyValue::new("method", "GET")]));
    plain.add(1);
    of_get.add(2);
    let values = kit.values();
    assert_eq!(value(&values, "requests", &[]), Some(1.0));
    assert_eq!(value(&values, "requests", &["method=GET"]), Some(2.0));
    drop((counter, kit));
    // other counters may get the memory of those that are gone
    let others = Kit::new();
    let other = others.meter().u64_counter("others").build();
    other.add(1, &[]);
    for _ in 0..UPDATES {
        plain.add(1);
        of_get.add(1);
    }
    assert_eq!(value(&others.values(), "others", &[]), Some(1.0));
}

#[test]
fn collections_between_updates_leave_a_floating_point_sum_as_it_is() {
    let kits = [Kit::new(), Kit::new()];
    let counters = kits.each_ref().map(|kit| kit.meter().f64_up_down_counter("level").build());
    let mut change = 0.1;
    for _ in 0..1000 {
        counters.iter().for_each(|counter| counter.add(change, &[]));
        kits[0].values();
        change *= -1.001;
    }
    // the thread may move between two additions, and each CPU rounds its own sum
    let [often, once] = kits.map(|kit| value(&kit.values(), "level", &[]).expect("a value"));
    assert!((often - once).abs() < 1e-12, "{often} and {once}");
}
