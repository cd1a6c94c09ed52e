//! Changes between snapshots are exact modulo 2⁶⁴, add up to what was counted, and know their rate.
#![cfg(not(feature = "uniprocessor"))]

mod common;

use common::kit::schema_with_event;
use common::{Named, pools, scaled};
use statctr::{
    Counter, CounterArray, Description, Error, FloatGauge, Gauge, Group, GroupArray, Histogram, Registry,
    SampleItem, Snapshot, StaticCounter, Unit, Value,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[test]
fn a_change_is_exact_across_a_wrap_around_and_a_set_is_part_of_it() {
    for Named { name, pool } in &pools() {
        for start in [0, 1, u64::MAX, u64::MAX - 5, 1 << 63] {
            let counter = Counter::new_in(pool, start).expect("counter");
            let before = counter.snapshot();
            counter.add(17);
            let now = counter.snapshot();
            assert_eq!(*now.since(&before).expect("alike").delta(), 17, "{name}");
            assert_eq!(now.increase_since(&before), 17, "{name}");
            counter.sub(20);
            let change = counter.snapshot().since(&before).expect("alike");
            assert_eq!(change.delta().cast_signed(), -3, "{name}");
        }
        let counter = Counter::new_in(pool, 1000).expect("counter");
        let before = counter.snapshot();
        counter.set(7);
        counter.add(2);
        let now = counter.snapshot();
        assert_eq!(now.since(&before).expect("alike").delta().cast_signed(), -991, "{name}");
        assert_eq!(now.increase_since(&before), 9, "{name}: begun again");
    }
}

#[test]
fn changes_of_successive_snapshots_add_up_while_others_count() {
    for Named { name, pool } in &pools() {
        let (schema, event) = schema_with_event::<2>(1);
        let group = Group::new_in(pool, &schema).expect("group");
        let rows = GroupArray::new_in(pool, 3, &schema).expect("array");
        let counters = CounterArray::new_in(pool, 10, u64::MAX).expect("array");
        let histogram = Histogram::new_in(pool, 1000, 0.1).expect("histogram");
        let first = (group.snapshot(), rows.snapshot(), counters.snapshot());
        let first_seen = Snapshot::take(|| histogram.snapshot());
        let (updates, stop) = (scaled(3000) as u64, AtomicBool::new(false));
        let mut sums = [vec![0u64; 3], vec![0; 9], vec![0; 10]];
        let mut seen = first_seen.since(&first_seen).expect("alike").delta().clone();
        let (mut last, mut last_seen) = (first.clone(), first_seen.clone());
        let mut add = || {
            let now = (group.snapshot(), rows.snapshot(), counters.snapshot());
            let changes = [now.0.since(&last.0), now.1.since(&last.1), now.2.since(&last.2)];
            for (sum, change) in sums.iter_mut().zip(changes) {
                let change = change.expect("alike");
                sum.iter_mut().zip(change.delta()).for_each(|(sum, more)| *sum = sum.wrapping_add(*more));
            }
            last = now;
            let now = Snapshot::take(|| histogram.snapshot());
            let change = now.since(&last_seen).expect("alike");
            seen.merge(change.delta()).expect("alike");
            last_seen = now;
        };
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        for update in 0..updates {
                            group.commit(event, [1, 100]);
                            rows.get(2).expect("three").commit(event, [1, 10]);
                            counters.get(9).expect("ten").inc();
                            histogram.observe(update % 1001);
                        }
                    })
                })
                .collect();
            while !stop.load(Ordering::Relaxed) {
                stop.store(writers.iter().all(std::thread::ScopedJoinHandle::is_finished), Ordering::Relaxed);
                add();
            }
        });
        add();
        let all = 3 * updates;
        assert_eq!(sums[0], [all, 100 * all, 0], "{name}");
        assert_eq!(sums[1], [0, 0, 0, 0, 0, 0, all, 10 * all, 0], "{name}");
        assert_eq!(sums[2], [0, 0, 0, 0, 0, 0, 0, 0, 0, all], "{name}");
        let sum: u64 = (0..updates).map(|update| update % 1001).sum();
        assert_eq!((seen.count(), seen.sum()), (all, 3 * sum), "{name}");
        assert_eq!(*last.0.since(&first.0).expect("alike").delta(), sums[0], "{name}: in one step");
        assert_eq!(*last_seen.since(&first_seen).expect("alike").delta(), seen, "{name}: in one step");
    }
}

#[test]
fn rates_are_per_second_and_signed() {
    let start = Instant::now();
    let later = |milliseconds| start + Duration::from_millis(milliseconds);
    let change = Snapshot::at(later(500), 7u64).since(&Snapshot::at(start, 10)).expect("alike");
    assert_eq!((*change.delta(), change.per_second()), (u64::MAX - 2, Some(-6.0)));
    let change =
        Snapshot::at(later(2000), [3u64, u64::MAX]).since(&Snapshot::at(start, [1, 1])).expect("alike");
    assert_eq!((*change.delta(), change.per_second()), ([2, u64::MAX - 1], Some([1.0, -1.0])));
    let change = Snapshot::at(later(250), vec![5u64]).since(&Snapshot::at(start, vec![0])).expect("alike");
    assert_eq!(change.per_second(), Some(vec![20.0]));
    let change = Snapshot::at(start, 5u64).since(&Snapshot::at(start, 0)).expect("alike");
    assert_eq!((*change.delta(), change.per_second()), (5, None), "no time went by");
    let change = Snapshot::at(start, 5u64).since(&Snapshot::at(later(1), 0)).expect("alike");
    assert_eq!((*change.delta(), change.per_second()), (5, None), "the other way round");

    let gauge = (Gauge::new(-3).expect("gauge"), FloatGauge::new(0.5).expect("gauge"));
    let before = (gauge.0.snapshot(), gauge.1.snapshot());
    gauge.0.sub(4);
    gauge.1.set(2.0);
    assert_eq!(*gauge.0.snapshot().since(&before.0).expect("alike").delta(), -4);
    assert_eq!(*gauge.1.snapshot().since(&before.1).expect("alike").delta(), 1.5);
    assert!(gauge.0.snapshot().taken() >= before.0.taken() && *before.0.values() == -3);
}

#[test]
fn snapshots_of_different_things_have_no_change() {
    let now = Instant::now();
    let refused = Snapshot::at(now, vec![1, 2]).since(&Snapshot::at(now, vec![1]));
    assert!(matches!(refused, Err(Error::BadSetting(_))));
    let of = |error| Snapshot::take(|| Histogram::new(1000, error).expect("histogram").snapshot());
    assert!(matches!(of(0.1).since(&of(0.01)), Err(Error::BadSetting(_))));
}

#[test]
fn a_registry_knows_a_counter_from_the_next_one_of_its_name() {
    let registry = Registry::new();
    let (schema, _) = schema_with_event::<2>(0);
    let new = |initial| Arc::new(Counter::new(initial).expect("counter"));
    let (stays, goes) = (new(5), new(100));
    let group = Arc::new(Group::new(&schema).expect("group"));
    registry.register(Description::new("goes"), &goes).expect("free");
    registry.register(Description::new("stays").label("a", "b"), &stays).expect("free");
    registry.register(Description::new("group"), &group).expect("free");
    let before = registry.snapshot();
    assert_eq!(before.values().len(), 4);
    drop(goes);
    let comes = new(3);
    registry.register(Description::new("goes"), &comes).expect("free again");
    stays.sub(1);
    group.add(schema.item(1).expect("two"), 9);
    let change = registry.snapshot().since(&before).expect("alike");
    let seen: Vec<_> = change
        .delta()
        .iter()
        .map(|sample| {
            let item = match sample.item {
                SampleItem::Named { name, .. } => name.to_owned(),
                _ => String::new(),
            };
            let Value::Counter(change) = sample.value else { panic!("not of a counter: {sample:?}") };
            (sample.description.name().to_owned(), item, change.cast_signed())
        })
        .collect();
    let expected = [("stays", "", -1), ("group", "item_0", 0), ("group", "item_1", 9), ("goes", "", 3)];
    assert_eq!(seen, expected.map(|(name, item, value)| (name.to_owned(), item.to_owned(), value)));
    let rates = change.per_second().expect("time went by");
    assert_eq!(rates.len(), 4);
    assert!(rates[0] < 0.0 && rates[1] == 0.0 && rates[2] > 0.0);
    assert!(Registry::new().snapshot().values().is_empty());
}

#[test]
fn the_registry_of_the_program_has_the_changes_of_statics() {
    static EARLY: StaticCounter = StaticCounter::new("early", "", Unit::NONE);
    static LATE: StaticCounter = StaticCounter::new("late", "", Unit::NONE);
    EARLY.add(5);
    let before = Registry::global().snapshot();
    EARLY.add(2);
    LATE.add(3);
    let change = Registry::global().snapshot().since(&before).expect("alike");
    let mut seen: Vec<_> =
        change.delta().iter().map(|sample| (sample.description.name(), sample.value.number())).collect();
    seen.sort_by_key(|(name, _)| *name);
    assert_eq!(seen, [("early", 2.0), ("late", 3.0)]);
}
