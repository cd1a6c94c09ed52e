//! Statistics of the program's own as observable instruments, one by one.

mod common;
mod points;

use common::{Kit, SetOnDrop};
use opentelemetry::KeyValue;
use points::value;
use statctr::{
    ApproximateCounter, Average, CounterArray, FloatGauge, Gauge, GroupArray, ItemSpec, Max, Min, Schema,
    Unit,
};
use statctr_opentelemetry::{
    CARDINALITY_LIMIT, observe_approximate_counter, observe_average, observe_counter_array,
    observe_float_up_down_counter, observe_group_array, observe_max, observe_min, observe_up_down_counter,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn every_kind_has_the_instrument_that_fits_it() {
    let (kit, of_tank) = (Kit::new(), [KeyValue::new("of", "tank")]);
    let meter = kit.meter();
    let approximate = Arc::new(ApproximateCounter::new(5, 1000).expect("counter"));
    let open = Arc::new(Gauge::new(3).expect("gauge"));
    let level = Arc::new(FloatGauge::new(0.5).expect("gauge"));
    let slowest = Arc::new(Max::new().expect("max"));
    let fastest = Arc::new(Min::new().expect("min"));
    let sizes = Arc::new(Average::new().expect("average"));
    observe_approximate_counter(&meter, "requests", &of_tank, &approximate);
    observe_up_down_counter(&meter, "open", &of_tank, &open);
    observe_float_up_down_counter(&meter, "level", &of_tank, &level);
    observe_max(&meter, "slowest", &of_tank, &slowest);
    observe_min(&meter, "fastest", &of_tank, &fastest);
    observe_average(&meter, "sizes", &of_tank, &sizes);
    approximate.add(2);
    open.sub(10);
    level.add(2.25);
    [7, 9, 8].iter().for_each(|&time| slowest.observe(time));
    [7, 9, 8].iter().for_each(|&time| fastest.observe(time));
    [1500, 40].iter().for_each(|&size| sizes.observe(size));
    let values = kit.values();
    let of = |name| value(&values, name, &["of=tank"]).expect("observed");
    assert_eq!([of("requests"), of("open"), of("level")], [7.0, -7.0, 2.75]);
    assert_eq!([of("slowest"), of("fastest")], [9.0, 7.0]);
    assert_eq!([of("sizes.count"), of("sizes.sum")], [2.0, 1540.0]);
    let mut metrics = kit.metrics();
    metrics.sort();
    let kinds = [
        "counter requests",
        "counter sizes.count",
        "counter sizes.sum",
        "gauge fastest",
        "gauge slowest",
        "up-down counter level",
        "up-down counter open",
    ];
    assert_eq!(metrics.iter().map(|metric| metric.trim_end()).collect::<Vec<_>>(), kinds);
}

#[test]
fn a_minimum_without_values_is_left_out_and_a_maximum_is_0() {
    let kit = Kit::new();
    let (slowest, fastest) = (Arc::new(Max::new().expect("max")), Arc::new(Min::new().expect("min")));
    observe_max(&kit.meter(), "slowest", &[], &slowest);
    observe_min(&kit.meter(), "fastest", &[], &fastest);
    let values = kit.values();
    assert_eq!((values.len(), value(&values, "slowest", &[])), (1, Some(0.0)));
    fastest.observe(3);
    assert_eq!(value(&kit.values(), "fastest", &[]), Some(3.0));
    fastest.take();
    assert_eq!(value(&kit.values(), "fastest", &[]), None);
}

#[test]
fn elements_of_an_array_have_their_position_and_no_count_is_lost() {
    let kit = Kit::new();
    let few = Arc::new(CounterArray::new(3, 7).expect("array"));
    let many = Arc::new(CounterArray::new(CARDINALITY_LIMIT + 3, 1).expect("array"));
    observe_counter_array(&kit.meter(), "few", &[KeyValue::new("of", "a")], &few);
    observe_counter_array(&kit.meter(), "many", &[], &many);
    few.get(1).expect("three").add(10);
    let values = kit.values();
    let of_few = ["index=0", "index=1", "index=2"].map(|index| value(&values, "few", &[index, "of=a"]));
    assert_eq!(of_few, [Some(7.0), Some(17.0), Some(7.0)]);
    assert_eq!(value(&values, "many", &["otel.metric.overflow=true"]), Some(3.0));
    let of_many = values.iter().filter(|((name, _), _)| name == "many").map(|(_, value)| value);
    assert_eq!(of_many.sum::<f64>(), (CARDINALITY_LIMIT + 3) as f64);
}

#[test]
fn groups_of_an_array_and_averages_are_of_one_read() {
    let kit = Kit::new();
    let items = [ItemSpec::new("packets"), ItemSpec::new("volume").unit(Unit::BYTES).help("sent")];
    let schema = Schema::new(items, &[&[0, 1]]).expect("schema");
    let event = schema.event::<2>(0).expect("two items");
    let groups = Arc::new(GroupArray::new(3, &schema).expect("groups"));
    let sizes = Arc::new(Average::new().expect("average"));
    observe_group_array(&kit.meter(), "tx", &[KeyValue::new("of", "a")], &groups);
    observe_average(&kit.meter(), "sizes", &[], &sizes);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (groups, sizes, done) = (&groups, &sizes, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    groups.get(thread).expect("three").commit(event, [1, 1500]);
                    sizes.observe(3);
                }
            });
        }
        let end = SetOnDrop(&done);
        for _ in 0..300 {
            let values = kit.values();
            for index in ["index=0", "index=1", "index=2"] {
                let item = |name| value(&values, name, &[index, "of=a"]).expect("observed");
                assert_eq!(item("tx.volume"), 1500.0 * item("tx.packets"));
            }
            let part = |name| value(&values, name, &[]).expect("observed");
            assert_eq!(part("sizes.sum"), 3.0 * part("sizes.count"));
        }
        drop(end);
    });
    let metrics = kit.metrics();
    assert!(metrics.contains(&"counter tx.volume By sent".to_owned()), "{metrics:?}");
}
