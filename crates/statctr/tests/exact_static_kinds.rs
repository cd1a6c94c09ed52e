//! Static gauges and extremes, and families of every kind, are exact on threads that move, in handlers, on both sides of
//! a fork, and under a flood of label values.
#![cfg(not(feature = "uniprocessor"))]
#![allow(unsafe_code)] // signal handlers, and a constructor

mod common;

use common::{Deadline, StopAtEnd, budget, os, scaled};
use statctr::{
    Average, FloatGauge, Histogram, Pool, Registry, StaticCounter, StaticFamily, StaticGauge, StaticMax,
    StaticMin, Unit, Value,
};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

const fn gauge(name: &'static str) -> StaticGauge {
    StaticGauge::new(name, "", Unit::NONE)
}

/// Returns the values, with the labels' values, that the program's registry has under this name.
fn visited(name: &str) -> Vec<(Vec<String>, Value)> {
    let mut seen = Vec::new();
    Registry::global().visit(|sample| {
        if sample.description.name() == name {
            let labels = sample.description.labels().map(|(_, value)| value.to_owned()).collect();
            seen.push((labels, sample.value.clone()));
        }
    });
    seen
}

static BEFORE_MAIN: StaticGauge = gauge("before_main");
static FIRST: StaticMin = StaticMin::new("first", "", Unit::NONE);

extern "C" fn construct() {
    BEFORE_MAIN.dec();
    FIRST.observe(42);
}

#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
static CONSTRUCTOR: extern "C" fn() = construct;

#[test]
fn a_constructor_uses_them() {
    assert_eq!((BEFORE_MAIN.read(), BEFORE_MAIN.read_clamped(), FIRST.read()), (-1, 0, 42));
    assert_eq!(visited("before_main"), [(vec![], Value::Gauge(-1))]);
    assert_eq!(visited("first"), [(vec![], Value::Min(42))]);
}

static MOVED: StaticGauge = gauge("moved");

#[test]
fn threads_that_are_moved_about_update_exactly() {
    StaticCounter::prepare();
    let (total, deadline) = (AtomicI64::new(0), Deadline::after(budget()));
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (send, total) = (send.clone(), &total);
            scope.spawn(move || {
                send.send(os::thread_id()).expect("somebody listens");
                let mut turns = 0;
                while !deadline.is_over() {
                    MOVED.inc();
                    MOVED.add(-10);
                    MOVED.dec();
                    MOVED.sub(-3);
                    turns += 1;
                }
                total.fetch_sub(7 * turns, Ordering::Relaxed);
            });
        }
        let threads: Vec<i32> = (0..4).map(|_| receive.recv().expect("a thread")).collect();
        os::while_moving(&threads, || {
            while !deadline.is_over() {
                let _ = MOVED.read_clamped();
            }
        });
    });
    assert_eq!(MOVED.read(), total.into_inner());
    assert_eq!(visited("moved"), [(vec![], Value::Gauge(MOVED.read()))]);
}

static SET: StaticGauge = gauge("set");
static SET_BY_TWO: StaticGauge = gauge("set_by_two");

#[test]
fn a_set_takes_updates_as_before_it_or_after_it() {
    StaticCounter::prepare();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop_at_end = StopAtEnd(&over);
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    SET.inc();
                    SET.dec();
                }
            });
        }
        for _ in 0..scaled(1000) {
            SET.set(1_000_000);
            // each thread has at most one pair that the set divided, and one for each migration during the read
            let seen = SET.read();
            assert!((999_900..=1_000_100).contains(&seen), "{seen}");
        }
    });
    assert!((999_997..=1_000_003).contains(&SET.read()), "{}", SET.read());
    SET.set(-5);
    assert_eq!(SET.read(), -5);

    for _ in 0..scaled(100) {
        std::thread::scope(|scope| {
            for value in [7, 9] {
                scope.spawn(move || (0..20).for_each(|_| SET_BY_TWO.set(value)));
            }
        });
        assert!([7, 9].contains(&SET_BY_TWO.read()), "one of the two is the last");
    }
}

static LARGEST: StaticMax = StaticMax::new("largest", "", Unit::NONE);
static SMALLEST: StaticMin = StaticMin::new("smallest", "", Unit::NONE);
static TAKEN: StaticMax = StaticMax::new("taken", "", Unit::NONE);

#[test]
fn extremes_are_those_of_all_threads_and_takes_lose_none() {
    assert_eq!((LARGEST.read(), SMALLEST.read()), (StaticMax::IDENTITY, StaticMin::IDENTITY));
    let updates = scaled(20_000) as u64;
    let running = AtomicU64::new(4);
    let mut taken = Vec::new();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let running = &running;
            scope.spawn(move || {
                for number in 0..updates {
                    // a different order on each thread
                    let value = 1 + (number * (2 * thread + 1) * 7919) % updates;
                    LARGEST.observe(value);
                    SMALLEST.observe(value + 5);
                    TAKEN.observe(number + 1);
                }
                running.fetch_sub(1, Ordering::Release);
            });
        }
        while running.load(Ordering::Acquire) > 0 {
            taken.push(TAKEN.take());
        }
    });
    taken.push(TAKEN.take());
    assert_eq!(taken.iter().max(), Some(&updates), "the largest of all intervals");
    assert_eq!(TAKEN.take(), 0);
    let values =
        || (0..4).flat_map(|thread| (0..updates).map(move |n| 1 + (n * (2 * thread + 1) * 7919) % updates));
    assert_eq!((Some(LARGEST.read()), Some(SMALLEST.read() - 5)), (values().max(), values().min()));
    assert_eq!(visited("largest"), [(vec![], Value::Max(LARGEST.read()))]);
    assert_eq!(visited("smallest"), [(vec![], Value::Min(SMALLEST.take()))]);
    assert_eq!(SMALLEST.read(), StaticMin::IDENTITY);
}

static HANDLED: StaticGauge = gauge("handled");
static HANDLED_MAX: StaticMax = StaticMax::new("handled_max", "", Unit::NONE);

extern "C" fn handler(signal: i32) {
    HANDLED.dec();
    HANDLED_MAX.observe(signal as u64);
}

#[test]
fn handlers_may_use_them_first() {
    // SAFETY: plain numbers, a handler that does only what handlers may, and a signal to this thread.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as extern "C" fn(i32) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut());
        (0..1000).for_each(|_| _ = libc::raise(libc::SIGUSR2));
    }
    assert_eq!((HANDLED.read(), HANDLED_MAX.read()), (-1000, libc::SIGUSR2 as u64));
}

static FORKED: StaticGauge = gauge("forked");
static FORKED_MIN: StaticMin = StaticMin::new("forked_min", "", Unit::NONE);
static FORKED_FAMILY: StaticFamily<1, Histogram> =
    StaticFamily::of_histograms("forked_family", "", Unit::NONE, ["of"], 1000, 0.1);

#[test]
fn a_child_goes_on_from_its_parents_values() {
    StaticCounter::prepare();
    FORKED.sub(5);
    FORKED_MIN.observe(100);
    FORKED_FAMILY.get(["a"]).expect("memory").observe(3);
    let (_, status) = os::fork(
        || {
            FORKED.add(1);
            let first = FORKED.read() == -4;
            FORKED.set(9);
            FORKED_MIN.observe(7);
            FORKED_FAMILY.get(["a"]).expect("memory").observe(4);
            FORKED_FAMILY.get(["b"]).expect("memory").observe(5);
            first && FORKED.read() == 9 && FORKED_MIN.read() == 7 && visited("forked_family").len() == 2
        },
        || FORKED.sub(10),
    );
    assert!(status.success(), "{status}");
    assert_eq!((FORKED.read(), FORKED_MIN.read(), visited("forked_family").len()), (-15, 100, 1));
}

#[test]
fn statics_of_one_name_and_kind_are_merged_and_other_kinds_are_apart() {
    static TWO: [StaticGauge; 2] = [gauge("merged"), gauge("merged")];
    static MOST: [StaticMax; 2] = [const { StaticMax::new("merged", "", Unit::NONE) }; 2];
    static COUNTER: StaticCounter = StaticCounter::new("merged", "", Unit::NONE);
    TWO[0].sub(7);
    TWO[1].add(3);
    MOST[0].observe(5);
    MOST[1].observe(50);
    COUNTER.inc();
    let seen: Vec<Value> = visited("merged").into_iter().map(|(_, value)| value).collect();
    assert_eq!(seen, [Value::Counter(1), Value::Gauge(-4), Value::Max(50)]);
    let text = Registry::global().prometheus_text();
    assert!(text.contains("# TYPE merged counter\nmerged 1\n"), "{text}");
    assert!(text.contains("# TYPE merged_gauge gauge\nmerged_gauge -4\n"), "{text}");
    assert!(
        text.contains("# TYPE merged_gauge_gauge gauge\nmerged_gauge_gauge 50\n"),
        "no series is there twice: {text}"
    );
}

/// Floods a family from four threads with values of its label, and checks that it has its bound and one more; a
/// `update` is made of each look-up, and the values in the registry are returned.
macro_rules! flood {
    ($family:ident, $rounds:expr, |$found:ident| $update:expr) => {{
        let rounds: u64 = $rounds;
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    for number in 0..rounds {
                        let $found = $family.get([&format!("/{thread}/{number}")]);
                        $update;
                        if number % 100 == 0 {
                            let $found = $family.get([&"x".repeat(5000)]);
                            $update;
                        }
                        let $found = $family.get(["/index.html"]);
                        $update;
                    }
                });
            }
        });
        assert_eq!($family.len(), 50);
        let seen = visited(stringify!($family));
        assert_eq!(seen.len(), 51, "its bound, and what is beyond");
        assert!(seen.iter().any(|(labels, _)| labels[0] == "overflow"));
        seen
    }};
}

/// Returns the number of updates that `flood!` makes.
const fn updates_of(rounds: u64) -> u64 {
    4 * (2 * rounds + rounds.div_ceil(100))
}

#[allow(non_upper_case_globals)] // names of the registry
static flood_counters: StaticFamily<1> =
    StaticFamily::new("flood_counters", "", Unit::NONE, ["path"]).limit(50);
#[allow(non_upper_case_globals)]
static flood_gauges: StaticFamily<1, StaticGauge> =
    StaticFamily::new("flood_gauges", "", Unit::NONE, ["path"]).limit(50);
#[allow(non_upper_case_globals)]
static flood_maxima: StaticFamily<1, StaticMax> =
    StaticFamily::new("flood_maxima", "", Unit::NONE, ["path"]).limit(50);
#[allow(non_upper_case_globals)]
static flood_minima: StaticFamily<1, StaticMin> =
    StaticFamily::new("flood_minima", "", Unit::NONE, ["path"]).limit(50);
#[allow(non_upper_case_globals)]
static flood_floats: StaticFamily<1, FloatGauge> =
    StaticFamily::new("flood_floats", "", Unit::NONE, ["path"]).limit(50);
#[allow(non_upper_case_globals)]
static flood_averages: StaticFamily<1, Average> =
    StaticFamily::new("flood_averages", "", Unit::NONE, ["path"]).limit(50);
#[allow(non_upper_case_globals)]
static flood_histograms: StaticFamily<1, Histogram> =
    StaticFamily::of_histograms("flood_histograms", "", Unit::NONE, ["path"], 1000, 0.1).limit(50);

#[test]
fn a_flood_of_values_is_bounded_and_exact_in_families_of_every_kind() {
    let rounds = scaled(5000) as u64;
    let all = updates_of(rounds);
    let seen = flood!(flood_counters, rounds, |found| found.inc());
    let sum: f64 = seen.iter().map(|(_, value)| value.number()).sum();
    assert_eq!(sum, all as f64);

    let seen = flood!(flood_gauges, rounds, |found| found.sub(2));
    let sum: f64 = seen.iter().map(|(_, value)| value.number()).sum();
    assert_eq!(sum, -2.0 * all as f64);

    let seen = flood!(flood_maxima, rounds, |found| found.observe(17));
    assert!(seen.iter().all(|(_, value)| *value == Value::Max(17)), "{seen:?}");
    let seen = flood!(flood_minima, rounds, |found| found.observe(17));
    assert!(seen.iter().all(|(_, value)| *value == Value::Min(17)), "{seen:?}");

    let seen = flood!(flood_floats, rounds, |found| found.expect("memory").add(0.5));
    let sum: f64 = seen.iter().map(|(_, value)| value.number()).sum();
    assert_eq!(sum, 0.5 * all as f64);

    let seen = flood!(flood_averages, rounds, |found| found.expect("memory").observe(3));
    let sums = seen.iter().map(|(_, value)| match value {
        Value::Average(value) => (value.count(), value.sum()),
        other => panic!("of an average: {other:?}"),
    });
    assert_eq!(sums.fold((0, 0), |(n, s), (count, sum)| (n + count, s + sum)), (all, 3 * all));

    let seen = flood!(flood_histograms, rounds, |found| found.expect("memory").observe(700));
    let mut values = seen.into_iter().map(|(_, value)| match value {
        Value::Histogram(value) => value,
        other => panic!("of a histogram: {other:?}"),
    });
    let mut sum = values.next().expect("51");
    values.for_each(|value| sum.merge(&value).expect("of one family"));
    assert_eq!((sum.count(), sum.sum()), (all, 700 * all));
    assert!(sum.quantile(0.5).expect("not empty").abs_diff(700) <= 70);
}

static RACED: StaticFamily<1, Histogram> =
    StaticFamily::of_histograms("raced", "", Unit::NONE, ["of"], 1_000_000, 0.1).limit(100);

#[test]
fn members_that_threads_make_at_once_are_one() {
    let start = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                start.wait();
                (0..64).for_each(|value| RACED.get([&value.to_string()]).expect("memory").observe(value));
            });
        }
    });
    assert_eq!(RACED.len(), 64);
    let seen = visited("raced");
    assert_eq!(seen.len(), 64);
    for (labels, value) in seen {
        let Value::Histogram(value) = value else { panic!("of a histogram: {value:?}") };
        assert_eq!((value.count(), value.sum()), (4, 4 * labels[0].parse::<u64>().expect("a number")));
    }
    assert!(std::ptr::eq(RACED.get(["7"]).expect("there"), RACED.get(["7"]).expect("there")));
}

#[test]
fn members_are_in_snapshots_and_their_changes() {
    static SIZES: StaticFamily<2, Average> =
        StaticFamily::new("changed_sizes", "sizes", Unit::BYTES, ["device", "way"]);
    SIZES.get(["eth0", "in"]).expect("memory").observe(1500);
    let before = Registry::global().snapshot();
    SIZES.get(["eth0", "in"]).expect("memory").observe_many(2, 80);
    SIZES.get(["eth0", "out"]).expect("memory").observe(9);
    let change = Registry::global().snapshot().since(&before).expect("alike");
    let of_sizes = change.delta().iter().filter(|sample| sample.description.name() == "changed_sizes");
    let seen: Vec<(u64, u64)> = of_sizes
        .map(|sample| match sample.value {
            Value::Average(value) => (value.count(), value.sum()),
            other => panic!("of an average: {other:?}"),
        })
        .collect();
    assert_eq!(seen, [(2, 80), (1, 9)]);
}

#[test]
fn settings_that_cannot_be_are_an_error_of_each_look_up() {
    static LARGE: StaticFamily<1, Histogram> =
        StaticFamily::of_histograms("too_large", "", Unit::NONE, ["of"], u64::MAX, 0.0002);
    for _ in 0..3 {
        let refused = LARGE.get(["a"]);
        assert!(matches!(refused, Err(statctr::Error::TooMany { .. })), "{refused:?}");
    }
    assert!(LARGE.is_empty() && visited("too_large").is_empty());
    assert!(Pool::global().is_ok());
}
