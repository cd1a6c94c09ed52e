//! A registry has every kind of statistic, reads each exactly, and loses nothing between snapshots.
#![cfg(not(feature = "uniprocessor"))]

mod common;

use common::{Named, StopAtEnd, pools, scaled};
use statctr::{
    ApproximateCounter, Average, AverageSnapshot, Counter, Description, Error, FloatGauge, Gauge, Group,
    Histogram, HistogramSnapshot, Max, Min, Pool, Registry, RegistryValues, Snapshot, Unit, Value,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

statctr::group! {
    /// Messages by their type.
    struct Messages {
        item r#type: Unit::NONE, "of a type";
    }
}

#[test]
fn an_item_with_the_name_of_a_keyword_is_exported_without_its_mark() {
    let schema = Messages::schema().expect("a schema");
    let group = Arc::new(Group::new(schema).expect("group"));
    group.inc(Messages::r#type);
    let registry = Registry::new();
    registry.register(Description::new("messages"), &group).expect("a name");
    assert!(registry.prometheus_text().ends_with("\nmessages_type 1\n"), "{}", registry.prometheus_text());
}

/// One statistic of each kind, registered under the name of its kind.
struct Statistics {
    registry: Registry,
    counter: Arc<Counter>,
    approximate: Arc<ApproximateCounter>,
    gauge: Arc<Gauge>,
    float: Arc<FloatGauge>,
    max: Arc<Max>,
    min: Arc<Min>,
    average: Arc<Average>,
    histogram: Arc<Histogram>,
}

impl Statistics {
    fn new(pool: &Pool) -> Statistics {
        let statistics = Statistics {
            registry: Registry::new(),
            counter: Arc::new(Counter::new_in(pool, 0).expect("counter")),
            approximate: Arc::new(ApproximateCounter::new_in(pool, 0, 16).expect("counter")),
            gauge: Arc::new(Gauge::new_in(pool, 0).expect("gauge")),
            float: Arc::new(FloatGauge::new_in(pool, 0.0).expect("gauge")),
            max: Arc::new(Max::new_in(pool).expect("maximum")),
            min: Arc::new(Min::new_in(pool).expect("minimum")),
            average: Arc::new(Average::new_in(pool).expect("average")),
            histogram: Arc::new(Histogram::new_in(pool, 1000, 0.1).expect("histogram")),
        };
        let registry = &statistics.registry;
        registry.register(Description::new("counter"), &statistics.counter).expect("free");
        registry.register(Description::new("approximate"), &statistics.approximate).expect("free");
        registry.register(Description::new("gauge"), &statistics.gauge).expect("free");
        registry.register(Description::new("float"), &statistics.float).expect("free");
        registry.register(Description::new("max"), &statistics.max).expect("free");
        registry.register(Description::new("min"), &statistics.min).expect("free");
        registry.register(Description::new("average"), &statistics.average).expect("free");
        registry.register(Description::new("histogram"), &statistics.histogram).expect("free");
        statistics
    }

    /// Makes the same update of each.
    fn update(&self, number: u64) {
        self.counter.inc();
        self.approximate.add(2);
        self.gauge.sub(3);
        self.float.add(0.5);
        self.max.observe(100 + number);
        self.min.observe(100_000 - number);
        self.average.observe(number);
        self.histogram.observe(number % 2000);
    }
}

fn value_of(values: &RegistryValues, name: &str) -> Value {
    values.iter().find(|sample| sample.description.name() == name).expect("registered").value.clone()
}

/// The sums of changes.
#[derive(Default)]
struct Changes {
    counts: [u64; 2],
    gauge: i64,
    float: f64,
    average: (u64, u64),
    histogram: Option<HistogramSnapshot>,
}

impl Changes {
    fn add(&mut self, change: &RegistryValues) {
        for sample in change.iter() {
            match sample.value {
                Value::Counter(more) => {
                    let sum = &mut self.counts[usize::from(sample.description.name() == "approximate")];
                    *sum = sum.wrapping_add(*more);
                }
                Value::Gauge(more) => self.gauge += more,
                Value::FloatGauge(more) => self.float += more,
                Value::Average(more) => {
                    self.average = (self.average.0 + more.count(), self.average.1 + more.sum());
                }
                Value::Histogram(more) => match &mut self.histogram {
                    Some(sum) => sum.merge(more).expect("one histogram"),
                    None => self.histogram = Some(more.clone()),
                },
                _ => {}
            }
        }
    }
}

#[test]
fn changes_of_every_kind_add_up_while_others_count() {
    for Named { name, pool } in &pools() {
        let statistics = Statistics::new(pool);
        let updates = scaled(3000) as u64;
        let first = statistics.registry.snapshot();
        let (mut changes, mut last) = (Changes::default(), first.clone());
        let mut add = || {
            let now = statistics.registry.snapshot();
            changes.add(now.since(&last).expect("alike").delta());
            last = now;
        };
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|_| scope.spawn(|| (0..updates).for_each(|number| statistics.update(number))))
                .collect();
            while !stop.load(Ordering::Relaxed) {
                stop.store(writers.iter().all(std::thread::ScopedJoinHandle::is_finished), Ordering::Relaxed);
                add();
            }
        });
        add();
        let (all, sum) = (3 * updates, 3 * (0..updates).sum::<u64>());
        assert_eq!(changes.counts, [all, 2 * all], "{name}");
        assert_eq!((changes.gauge, changes.float), (-3 * all as i64, 0.5 * all as f64), "{name}");
        assert_eq!(changes.average, (all, sum), "{name}");
        let seen = changes.histogram.expect("registered");
        let sum = 3 * (0..updates).map(|number| number % 2000).sum::<u64>();
        assert_eq!((seen.count(), seen.sum()), (all, sum), "{name}");
        let now = last.values();
        assert_eq!(value_of(now, "max"), Value::Max(99 + updates), "{name}");
        assert_eq!(value_of(now, "min"), Value::Min(100_001 - updates), "{name}");
        let change = last.since(&first).expect("alike");
        assert_eq!(value_of(change.delta(), "histogram"), Value::Histogram(seen), "{name}: in one step");
    }
}

#[test]
fn rates_are_of_the_numbers_of_values_and_extremes_have_none() {
    let pool = Pool::global().expect("pool");
    let statistics = Statistics::new(pool);
    let before = statistics.registry.snapshot();
    (0..10).for_each(|number| statistics.update(number));
    let now = statistics.registry.snapshot();
    let second = before.taken() + std::time::Duration::from_secs(2);
    let change = Snapshot::at(second, now.values().clone()).since(&before).expect("alike");
    let rates = change.per_second().expect("two seconds");
    assert_eq!(rates[..4], [5.0, 10.0, -15.0, 2.5]);
    assert!(rates[4].is_nan() && rates[5].is_nan(), "extremes");
    assert_eq!(rates[6..], [5.0, 5.0]);
    assert_eq!(value_of(change.delta(), "max"), Value::Max(109), "the later value");
}

#[test]
fn values_of_nothing_are_exported_as_such() {
    let statistics = Statistics::new(Pool::global().expect("pool"));
    let values = statistics.registry.snapshot();
    assert_eq!(value_of(values.values(), "average"), Value::Average(AverageSnapshot::default()));
    let text = statistics.registry.prometheus_text();
    for line in ["max 0", "min NaN", "average_count 0", "histogram_bucket{le=\"+Inf\"} 0", "gauge 0"] {
        assert!(text.lines().any(|there| there == line), "{line} in {text}");
    }
}

#[test]
fn a_dropped_name_can_be_registered_anew_while_others_read() {
    let pool = Pool::global().expect("pool");
    let registry = Registry::new();
    // whose buckets a read is busy with
    let slow = Arc::new(Histogram::new_in(pool, 1 << 40, 0.01).expect("histogram"));
    registry.register(Description::new("slow"), &slow).expect("free");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Acquire) {
                    let values = registry.snapshot();
                    let of_x = values.values().iter().filter(|sample| sample.description.name() == "x");
                    assert!(of_x.count() <= 1, "one at a time");
                }
            });
        }
        for round in 0..scaled(3000) {
            let counter = Arc::new(Counter::new_in(pool, 0).expect("counter"));
            // now and then under another help text, which is one of the whole name
            let description = Description::new("x").help(if round % 64 < 32 { "one" } else { "other" });
            registry.register(description, &counter).expect("nothing that lives has the name");
            let again = registry.register(Description::new("x"), &counter);
            assert!(matches!(again, Err(Error::NameTaken(_))), "{again:?}");
        }
    });
}
