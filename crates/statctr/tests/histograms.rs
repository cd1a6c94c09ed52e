//! Quantiles of histograms are within the stated error of those of the values themselves, and
//! snapshots of several add up.
#![cfg(not(feature = "uniprocessor"))]

mod common;

use common::{Named, pools, scaled};
use statctr::{Error, Histogram, HistogramSnapshot, Placement, Pool, VectorWidth};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns numbers that look like chance, of which each is the same in each run.
fn numbers(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state ^ (state >> 33)
    }
}

/// Returns values of several shapes: even, over many orders of magnitude, in two clusters, all the same.
fn distributions() -> Vec<Vec<u64>> {
    let mut next = numbers(7);
    let mut of = |value: &dyn Fn(u64) -> u64| (0..3000).map(|_| value(next())).collect::<Vec<u64>>();
    vec![
        of(&|number| number % 1_000_000),
        of(&|number| number >> (number % 64)),
        of(&|number| if number % 10 == 0 { 5_000_000 + number % 1000 } else { 200 + number % 50 }),
        of(&|_| 123_456_789),
        of(&|number| number % 3),
    ]
}

#[test]
fn quantiles_are_within_the_stated_error() {
    for error in [0.3, 0.05, 0.01] {
        for mut values in distributions() {
            let histogram = Histogram::new(u64::MAX, error).expect("a histogram");
            values.iter().for_each(|value| histogram.observe(*value));
            values.sort_unstable();
            let seen = histogram.snapshot();
            let sum = values.iter().fold(0u64, |sum, value| sum.wrapping_add(*value));
            assert_eq!((seen.count(), seen.sum()), (values.len() as u64, sum));
            for thousandth in 0..=1000 {
                let part = thousandth as f64 / 1000.0;
                let rank = (thousandth * values.len()).div_ceil(1000).max(1);
                let (exact, found) = (values[rank - 1] as f64, seen.quantile(part).expect("values") as f64);
                assert!(
                    (found - exact).abs() <= error * exact,
                    "{part}: {found} and not {exact}, to {error}"
                );
            }
            // each end of a bucket has what is at most that
            for (_, largest, _) in seen.buckets() {
                let exact = values.partition_point(|value| *value <= largest) as u64;
                assert_eq!(seen.count_up_to(largest), exact);
            }
        }
    }
}

/// Draws a largest value, an error from the smallest that is allowed (0.000123) on, and values: of every magnitude, in
/// clusters, beside powers of two and above the largest one.
fn draw(case: u64) -> (u64, f64, Vec<u64>) {
    let mut next = numbers(case);
    let error = match case % 4 {
        0 => 0.000_123,
        1 => 0.5f64.powi(1 + (next() % 13) as i32),
        // evenly over the magnitudes
        _ => 0.000_123f64.powf((next() >> 11) as f64 / (1u64 << 53) as f64).min(0.999),
    };
    let max = if case.is_multiple_of(8) { u64::MAX } else { next() >> (next() % 64) };
    let (count, cluster) = (1 + next() % 300, next() >> (next() % 64));
    let values = (0..count).map(|_| {
        let any = next() >> (next() % 64);
        match next() % 6 {
            0 => cluster.saturating_add(any % 100),
            1 => 1 << (any % 64),
            2 => (1 << (any % 64)) - 1,
            3 => max.saturating_add(any % 3),
            _ => any.min(max),
        }
    });
    (max, error, values.collect())
}

#[test]
fn quantiles_of_any_values_are_within_any_allowed_error() {
    // a unit with room for as many buckets as there can be, (64 - 12) powers of two in 4096 each, and for two copies of
    // them where a section writes 8 bytes at a time
    let pool = Pool::builder().placement(Placement::Fixed).unit_bytes(8 << 20).build().expect("pool");
    for case in 0..scaled(60) as u64 {
        let (max, error, mut values) = draw(case);
        let context = format!("case {case}: up to {max}, error {error}");
        let histogram = Histogram::new_in(&pool, max, error).expect("a histogram");
        values.iter().for_each(|value| histogram.observe(*value));
        values.sort_unstable();
        let seen = histogram.snapshot();
        let sum = values.iter().fold(0u64, |sum, value| sum.wrapping_add(*value));
        assert_eq!((seen.count(), seen.sum()), (values.len() as u64, sum), "{context}");
        let ranks = (1..=values.len()).step_by(1 + values.len() / 20).chain([values.len()]);
        for rank in ranks {
            let found = seen.quantile(rank as f64 / values.len() as f64).expect("values");
            // what is above the largest value is taken for that
            let exact = values[rank - 1].min(max);
            let off = found.abs_diff(exact) as f64;
            assert!(off <= error * exact as f64, "{context}: {found} and not {exact} at rank {rank}");
        }
    }
}

#[test]
fn values_above_the_largest_are_counted_and_summed_and_are_the_largest_in_quantiles() {
    let histogram = Histogram::new(1000, 0.01).expect("a histogram");
    [1000, 1001, u64::MAX / 4].into_iter().for_each(|value| histogram.observe(value));
    let seen = histogram.snapshot();
    assert_eq!((seen.count(), seen.sum()), (3, 2001 + u64::MAX / 4));
    assert_eq!(seen.quantile(1.0), Some(1000));
    assert_eq!((seen.count_up_to(1000), seen.count_up_to(u64::MAX)), (1, 3));
    assert_eq!(seen.buckets().last(), Some((1001, u64::MAX, 2)));
}

#[test]
fn snapshots_add_up_and_subtract() {
    let parts = distributions();
    let (one, other) = (Histogram::new(1 << 40, 0.05), Histogram::new(1 << 40, 0.05));
    let (one, other) = (one.expect("a histogram"), other.expect("a histogram"));
    parts[0].iter().for_each(|value| one.observe(*value));
    let before = one.snapshot();
    parts[1].iter().for_each(|value| one.observe(*value));
    parts[1].iter().for_each(|value| other.observe(*value));
    let since = one.snapshot().since(&before).expect("the same buckets");
    assert_eq!(since, other.snapshot());
    let mut all = before.clone();
    all.merge(&since).expect("the same buckets");
    assert_eq!(all, one.snapshot());
    assert_eq!(all.count(), (parts[0].len() + parts[1].len()) as u64);
    let foreign = Histogram::new(1 << 40, 0.1).expect("a histogram").snapshot();
    let untouched = all.clone();
    assert!(matches!(all.merge(&foreign), Err(Error::BadSetting(_))));
    assert!(all.since(&foreign).is_err() && all == untouched);
}

#[test]
fn an_empty_histogram_has_no_quantiles() {
    let histogram = Histogram::new(10, 0.5).expect("a histogram");
    let empty: HistogramSnapshot = histogram.snapshot();
    assert_eq!(
        (empty.quantile(0.5), empty.mean(), empty.count(), empty.buckets().count()),
        (None, None, 0, 0)
    );
    histogram.observe(4);
    let one = histogram.snapshot();
    assert_eq!((one.quantile(f64::NAN), one.mean()), (None, Some(4.0)));
    assert_eq!((one.quantile(-3.0), one.quantile(7.0)), (one.quantile(0.0), one.quantile(1.0)));
}

#[test]
fn a_histogram_that_does_not_fit_is_refused() {
    let small = Pool::builder().placement(Placement::Fixed).unit_bytes(4096).build().expect("pool");
    let refused = Histogram::new_in(&small, u64::MAX, 0.01).err();
    assert!(matches!(refused, Some(Error::TooMany { .. })), "{refused:?}");
    assert!(matches!(Histogram::new(100, 0.0), Err(Error::BadSetting(_))));
}

// also where a bucket's two numbers are not committed by one store, but by the flip of a latch
#[test]
fn counts_never_go_down_and_are_exact_in_the_end() {
    let narrow = Pool::builder().placement(Placement::Fixed).max_vector(VectorWidth::Bytes8);
    let narrow = Named { name: "no vectors", pool: narrow.build().expect("pool") };
    for Named { name, pool } in pools().iter().chain([&narrow]) {
        let histogram = Histogram::new_in(pool, 100, 0.1).expect("a histogram");
        let running = AtomicUsize::new(2);
        let seen_to_fall = std::thread::scope(|scope| {
            for value in [7, 90] {
                let (histogram, running) = (&histogram, &running);
                scope.spawn(move || {
                    (0..scaled(50_000)).for_each(|_| histogram.observe(value));
                    running.fetch_sub(1, Ordering::Relaxed);
                });
            }
            let (mut last, mut fell) = (0, false);
            while running.load(Ordering::Relaxed) > 0 {
                let now = histogram.snapshot().count();
                fell |= now < last;
                last = now;
            }
            fell
        });
        let (seen, each) = (histogram.snapshot(), scaled(50_000) as u64);
        assert!(!seen_to_fall, "{name}");
        assert_eq!((seen.count(), seen.sum()), (2 * each, 97 * each), "{name}");
        assert_eq!(seen.buckets().map(|(.., count)| count).collect::<Vec<_>>(), [each; 2], "{name}");
    }
}

#[test]
fn batches_and_gauges_read_what_was_added() {
    let pool = &pools()[0].pool;
    let counter = statctr::Counter::new_in(pool, 5).expect("counter");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let mut batch = counter.batch();
                    (0..1000).for_each(|_| batch.inc());
                    batch.flush();
                    assert_eq!(batch.pending(), 0);
                    batch.add(u64::MAX);
                }
            });
        }
    });
    assert_eq!(counter.read(), 5 + 4 * 10 * 999);
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut batch = counter.batch();
        batch.add(10);
        panic!("on purpose");
    }));
    assert!(unwound.is_err() && counter.read() == 5 + 4 * 10 * 999 + 10, "added while unwinding");
    let gauge = statctr::Gauge::new_in(pool, i64::MIN).expect("gauge");
    gauge.dec();
    assert_eq!(gauge.read(), i64::MAX, "modulo 2⁶⁴");
    gauge.set(-1);
    assert_eq!((gauge.read(), gauge.read_clamped(), format!("{gauge:?}")), (-1, 0, "Gauge(-1)".to_owned()));
    gauge.add(11);
    gauge.sub(4);
    assert_eq!((gauge.read(), gauge.read_clamped()), (6, 6));
}

#[test]
fn many_of_one_value_count_as_often() {
    let (many, one_by_one) =
        (Histogram::new(1000, 0.05).expect("one"), Histogram::new(1000, 0.05).expect("other"));
    for (value, times) in [(0, 3), (7, 100), (999, 1), (5000, 2), (3, 0)] {
        many.observe_many(value, times);
        (0..times).for_each(|_| one_by_one.observe(value));
    }
    assert!(many.snapshot() == one_by_one.snapshot());
    assert_eq!((many.snapshot().count(), many.snapshot().sum()), (106, 700 + 999 + 10_000));
}

#[test]
fn a_quantile_is_of_the_rank_that_decimals_say() {
    // 0.07 is a little more than 7 of 100, and its product with 100 rounds to the number above 7
    for count in [10u64, 20, 50, 100, 200, 1000] {
        let histogram = Histogram::new(1000, 0.0005).expect("histogram");
        (1..=count).for_each(|value| histogram.observe(value));
        let seen = histogram.snapshot();
        for thousandths in (1..=1000).filter(|part| count * part % 1000 == 0) {
            let part = thousandths as f64 / 1000.0;
            assert_eq!(seen.quantile(part), Some(count * thousandths / 1000), "{part} of {count}");
        }
        assert_eq!((seen.quantile(0.0), seen.quantile(1.0_f64.next_down())), (Some(1), Some(count)));
        assert_eq!(seen.quantile(0.5_f64.next_up()), Some(count / 2 + 1), "of {count}");
    }
}
