//! A registry of the program's own as observable instruments.

mod common;
mod points;
mod threads;

use common::{Kit, SetOnDrop};
use points::{Values, value};
use statctr::{
    ApproximateCounter, Average, Counter, CounterArray, Description, FloatGauge, Gauge, Group, Histogram,
    ItemSpec, Max, Min, Registry, Schema, Source, StaticCounter, StaticFamily, StaticGauge, Unit,
};
use statctr_opentelemetry::{CARDINALITY_LIMIT, observe_registry};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use threads::{THREADS, UPDATES, on_threads};

/// Registers sources, which it keeps alive.
#[derive(Default)]
struct Kept(Arc<Registry>, Vec<Arc<dyn Source>>);

impl Kept {
    fn add<S: Source>(&mut self, description: Description, source: statctr::Result<S>) -> Arc<S> {
        let source = Arc::new(source.expect("memory"));
        self.0.register(description, &source).expect("free");
        self.1.push(Arc::clone(&source) as Arc<dyn Source>);
        source
    }
}

fn counter(registry: &Registry, description: Description) -> Arc<Counter> {
    let counter = Arc::new(Counter::new(0).expect("counter"));
    registry.register(description, &counter).expect("free");
    counter
}

/// Returns the values of the collection in which this metric is, as its instrument is made by a thread.
fn values_with(kit: &Kit, name: &str) -> Values {
    loop {
        let values = kit.values();
        if values.keys().any(|(there, _)| there == name) {
            return values;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn every_kind_has_its_instrument_unit_and_attributes() {
    let (kit, mut kept) = (Kit::new(), Kept::default());
    let of = |name: &'static str| Description::new(name).label("of", "a").label("to", "b");
    kept.add(of("requests").help("served").unit(Unit::OPERATIONS), Counter::new(3));
    kept.add(of("roughly"), ApproximateCounter::new(4, 100)).add(1);
    kept.add(of("open"), Gauge::new(-4));
    kept.add(of("load"), FloatGauge::new(0.25));
    kept.add(of("slowest").unit(Unit::NANOSECONDS), Max::new()).observe(17);
    kept.add(of("fastest").unit(Unit::SECONDS), Min::new()).observe(5);
    kept.add(of("nothing"), Min::new());
    kept.add(of("sizes").help("of files").unit(Unit::BYTES), Average::new()).observe_many(4, 12);
    kept.add(of("spread"), Histogram::new(100, 0.1)).observe(5);
    kept.add(of("cpu").unit(Unit::new("µjoules")), CounterArray::new(2, 7));
    let items = [ItemSpec::new("packets").unit(Unit::PACKETS), ItemSpec::new("bytes").help("sent")];
    let schema = Schema::new(items, &[]).expect("schema");
    kept.add(of("tx"), Group::new(&schema)).add(schema.item(1).expect("two"), 60);
    let _observer = observe_registry(&kit.meter(), Arc::clone(&kept.0));

    let expected = [
        ("cpu", "index=0", 7.0),
        ("cpu", "index=1", 7.0),
        ("fastest", "", 5.0),
        ("load", "", 0.25),
        ("open", "", -4.0),
        ("requests", "", 3.0),
        ("roughly", "", 5.0),
        ("sizes.count", "", 4.0),
        ("sizes.sum", "", 12.0),
        ("slowest", "", 17.0),
        ("tx.bytes", "", 60.0),
        ("tx.packets", "", 0.0),
    ];
    let with_labels = |(name, index, value): (&str, &str, f64)| {
        let attributes = [index, "of=a", "to=b"].into_iter().filter(|text| !text.is_empty());
        ((name.to_owned(), attributes.map(str::to_owned).collect()), value)
    };
    assert_eq!(kit.values(), expected.into_iter().map(with_labels).collect());
    let mut metrics = kit.metrics();
    metrics.sort();
    let expected = [
        "counter cpu  ",
        "counter requests {operation} served",
        "counter roughly  ",
        "counter sizes.count  of files",
        "counter sizes.sum By of files",
        "counter tx.bytes  sent",
        "counter tx.packets {packet} ",
        "gauge fastest s ",
        "gauge load  ",
        "gauge open  ",
        "gauge slowest ns ",
    ];
    assert_eq!(metrics, expected);
}

#[test]
fn an_entry_is_there_as_long_as_it_lives_and_the_sum_of_a_counter_stays() {
    let (kit, registry) = (Kit::new(), Arc::new(Registry::new()));
    let observer = observe_registry(&kit.meter(), Arc::clone(&registry));
    assert_eq!(kit.values(), Values::new());
    // a name that is new: by a refresh, and without
    let first = counter(&registry, Description::new("requests").label("method", "get"));
    observer.refresh();
    assert_eq!(value(&kit.values(), "requests", &["method=get"]), Some(0.0));
    let slowest = Arc::new(Max::new().expect("max"));
    registry.register(Description::new("slowest"), &slowest).expect("free");
    assert_eq!(values_with(&kit, "slowest").len(), 2);
    // new labels of a name, at once
    let second = counter(&registry, Description::new("requests").label("method", "put"));
    second.add(2);
    let values = kit.values();
    assert_eq!((values.len(), value(&values, "requests", &["method=put"])), (3, Some(2.0)));
    first.inc();
    kit.values();
    drop((first, slowest));
    let values = kit.values();
    assert_eq!((values.len(), value(&values, "requests", &["method=put"])), (2, Some(2.0)));
    assert_eq!(value(&values, "requests", &["method=get"]), Some(1.0));
    // again, and of another kind
    let first = counter(&registry, Description::new("requests").label("method", "get"));
    first.inc();
    assert_eq!(value(&kit.values(), "requests", &["method=get"]), Some(2.0));
    drop((first, second));
    assert_eq!(kit.values().len(), 2);
    let gauge = Arc::new(Gauge::new(-1).expect("gauge"));
    registry.register(Description::new("requests"), &gauge).expect("nobody else has the name");
    observer.refresh();
    assert_eq!(value(&kit.values(), "requests.gauge", &[]), Some(-1.0));
}

#[test]
fn dropping_the_observer_ends_the_observation_and_frees_the_registry() {
    let (kit, registry) = (Kit::new(), Arc::new(Registry::new()));
    let counter = counter(&registry, Description::new("requests"));
    let open = Arc::new(Gauge::new(3).expect("gauge"));
    registry.register(Description::new("open"), &open).expect("free");
    let observer = observe_registry(&kit.meter(), Arc::clone(&registry));
    assert_eq!(kit.values().len(), 2);
    // what is counted before the end is exported
    counter.inc();
    drop(observer);
    let values = kit.values();
    assert_eq!((value(&values, "requests", &[]), value(&values, "open", &[])), (Some(1.0), None));
    assert_eq!(Arc::strong_count(&registry), 1);
    counter.inc();
    assert_eq!(value(&kit.values(), "requests", &[]), Some(1.0));
    let observer = observe_registry(&kit.meter(), Arc::clone(&registry));
    counter.inc();
    assert_eq!(value(&kit.values(), "requests", &[]), Some(3.0));
    // also where the provider goes first
    drop(kit);
    observer.refresh();
    drop(observer);
    assert_eq!(Arc::strong_count(&registry), 1);
    // another provider has the whole value
    let kit = Kit::new();
    let _observer = observe_registry(&kit.meter(), Arc::clone(&registry));
    assert_eq!(value(&kit.values(), "requests", &[]), Some(3.0));
}

#[test]
fn the_global_registry_has_statics_and_families() {
    static REQUESTS: StaticFamily<2> =
        StaticFamily::new("requests", "served", Unit::NONE, ["method", "status"]);
    static ERRORS: StaticCounter = StaticCounter::new("errors", "", Unit::NONE);
    static OPEN: StaticGauge = StaticGauge::new("open", "", Unit::NONE);
    let kit = Kit::new();
    let _observer = observe_registry(&kit.meter(), Registry::global());
    on_threads(|thread| {
        for _ in 0..UPDATES {
            REQUESTS.get(["GET", if thread == 0 { "500" } else { "200" }]).inc();
            ERRORS.inc();
            OPEN.dec();
        }
    });
    let values = values_with(&kit, "open");
    let of = |status| value(&values, "requests", &["method=GET", status]);
    assert_eq!(of("status=200"), Some(((THREADS - 1) * UPDATES) as f64));
    assert_eq!(of("status=500"), Some(UPDATES as f64));
    assert_eq!(value(&values, "errors", &[]), Some((THREADS * UPDATES) as f64));
    assert_eq!(value(&values, "open", &[]), Some(-((THREADS * UPDATES) as f64)));
}

#[test]
fn no_two_instruments_have_one_name() {
    let (kit, mut kept) = (Kit::new(), Kept::default());
    for (name, initial) in [("app:requests", 1), ("App:Requests", 2), ("_hidden", 3), (":first", 4)] {
        kept.add(Description::new(name), Counter::new(initial));
    }
    let schema = Schema::new([ItemSpec::new("requests")], &[]).expect("schema");
    kept.add(Description::new("app"), Group::new(&schema)).set(schema.item(0).expect("one"), 5);
    let _observer = observe_registry(&kit.meter(), Arc::clone(&kept.0));
    let values = kit.values();
    let names = [
        "app.requests",
        "App.Requests.counter",
        "statctr_hidden",
        "statctr.first",
        "app.requests.counter.counter",
    ];
    assert_eq!(names.map(|name| value(&values, name, &[])), [1.0, 2.0, 3.0, 4.0, 5.0].map(Some));
    assert_eq!(values.len(), names.len());
}

#[test]
fn what_is_beyond_the_limit_is_combined() {
    let (kit, mut kept) = (Kit::new(), Kept::default());
    for series in 0..CARDINALITY_LIMIT + 3 {
        let of = |name: &'static str| Description::new(name).label("of", series.to_string());
        kept.add(of("requests"), Counter::new(2));
        kept.add(of("slowest"), Max::new()).observe(series as u64);
        kept.add(of("fastest"), Min::new()).observe(10 + series as u64);
    }
    let _observer = observe_registry(&kit.meter(), Arc::clone(&kept.0));
    let values = kit.values();
    let overflow = |name| value(&values, name, &["otel.metric.overflow=true"]);
    let limit = CARDINALITY_LIMIT as f64;
    assert_eq!(overflow("requests"), Some(6.0));
    assert_eq!([overflow("slowest"), overflow("fastest")], [Some(limit + 2.0), Some(limit + 10.0)]);
    let requests = values.iter().filter(|((name, _), _)| name == "requests").map(|(_, value)| value);
    assert_eq!(requests.sum::<f64>(), 2.0 * (limit + 3.0));
}

#[test]
fn a_group_in_a_collection_is_of_one_read_and_no_count_is_lost() {
    let (kit, registry) = (Kit::new(), Arc::new(Registry::new()));
    let items = [ItemSpec::new("packets"), ItemSpec::new("volume")];
    let schema = Schema::new(items, &[&[0, 1]]).expect("schema");
    let event = schema.event::<2>(0).expect("two items");
    let group = Arc::new(Group::new(&schema).expect("group"));
    registry.register(Description::new("tx"), &group).expect("free");
    let sizes = Arc::new(Average::new().expect("average"));
    registry.register(Description::new("sizes"), &sizes).expect("free");
    let _observer = observe_registry(&kit.meter(), Arc::clone(&registry));
    let done = AtomicBool::new(false);
    let mine = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (registry, group, sizes, done) = (&registry, &group, &sizes, &done);
                scope.spawn(move || {
                    // registered while others collect, under a name of its own and under a common one
                    let own = counter(registry, Description::new(format!("own{thread}")));
                    let labelled =
                        counter(registry, Description::new("common").label("of", thread.to_string()));
                    let mut updates = 0;
                    while !done.load(Ordering::Relaxed) {
                        group.commit(event, [1, 1500]);
                        sizes.observe(3);
                        own.inc();
                        labelled.inc();
                        updates += 1;
                    }
                    (own, labelled, updates)
                })
            })
            .collect();
        let end = SetOnDrop(&done);
        let mut last = 0.0;
        for _ in 0..300 {
            let values = kit.values();
            let of = |name| value(&values, name, &[]).expect("observed");
            assert_eq!(of("tx.volume"), 1500.0 * of("tx.packets"));
            assert_eq!(of("sizes.sum"), 3.0 * of("sizes.count"));
            assert!(of("tx.packets") >= last);
            last = of("tx.packets");
        }
        drop(end);
        threads.into_iter().map(|thread| thread.join().expect("joined")).collect::<Vec<_>>()
    });
    (0..THREADS).for_each(|thread| drop(values_with(&kit, &format!("own{thread}"))));
    let values = values_with(&kit, "common");
    let mut all = 0;
    for (thread, (_, _, updates)) in mine.iter().enumerate() {
        assert_eq!(value(&values, &format!("own{thread}"), &[]), Some(*updates as f64));
        assert_eq!(value(&values, "common", &[&format!("of={thread}")]), Some(*updates as f64));
        all += *updates;
    }
    assert_eq!(value(&values, "tx.packets", &[]), Some(all as f64));
    assert_eq!(value(&values, "sizes.count", &[]), Some(all as f64));
}
