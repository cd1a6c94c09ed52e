//! Gauges are exact where they promise it, and a set is wholly before or after each update.
#![cfg(not(feature = "uniprocessor"))]

mod common;

use common::{Deadline, Named, StopAtEnd, budget, os, pools};
use statctr::{Counter, FloatGauge, Gauge};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A gauge of either kind, in whole numbers.
trait AnyGauge: Sync {
    fn add(&self, value: i32);
    fn set(&self, value: i32);
    fn read(&self) -> i64;
}

impl AnyGauge for Gauge {
    fn add(&self, value: i32) {
        Gauge::add(self, value.into());
    }
    fn set(&self, value: i32) {
        Gauge::set(self, value.into());
    }
    fn read(&self) -> i64 {
        Gauge::read(self)
    }
}

impl AnyGauge for FloatGauge {
    fn add(&self, value: i32) {
        FloatGauge::add(self, value.into());
    }
    fn set(&self, value: i32) {
        FloatGauge::set(self, value.into());
    }
    fn read(&self) -> i64 {
        FloatGauge::read(self) as i64
    }
}

fn gauges() -> impl Iterator<Item = (&'static str, Box<dyn AnyGauge>)> {
    pools().into_iter().flat_map(|Named { name, pool }| {
        let whole: Box<dyn AnyGauge> = Box::new(Gauge::new_in(&pool, 0).expect("gauge"));
        let float: Box<dyn AnyGauge> = Box::new(FloatGauge::new_in(&pool, 0.0).expect("gauge"));
        [(name, whole), (name, float)]
    })
}

/// Updates that threads made of a gauge since the test began.
struct Updates {
    begun: [AtomicU64; 3],
    done: [AtomicU64; 3],
}

impl Updates {
    fn sum(of: &[AtomicU64; 3]) -> i64 {
        of.iter().map(|count| count.load(Ordering::SeqCst)).sum::<u64>() as i64
    }
}

#[test]
fn each_update_is_wholly_before_or_after_a_set() {
    let gauges: Vec<_> = gauges().collect();
    let span = budget() * 2 / gauges.len() as u32;
    for (name, gauge) in &gauges {
        let count = || [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)];
        let updates = Updates { begun: count(), done: count() };
        let stop = AtomicBool::new(false);
        let (send, threads) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let _stop_at_end = StopAtEnd(&stop);
            for thread in 0..3 {
                let (send, gauge, updates, stop) = (send.clone(), gauge, &updates, &stop);
                scope.spawn(move || {
                    send.send(os::thread_id()).expect("wanted");
                    while !stop.load(Ordering::Relaxed) {
                        updates.begun[thread].fetch_add(1, Ordering::SeqCst);
                        gauge.add(1);
                        updates.done[thread].fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            let threads: Vec<i32> = (0..3).map(|_| threads.recv().expect("a thread")).collect();
            os::while_moving(&threads, || {
                let deadline = Deadline::after(span);
                let mut value = 0;
                while !deadline.is_over() {
                    value = (value + 7) % 1000;
                    let begun_before = Updates::sum(&updates.done);
                    gauge.set(value);
                    let set = Updates::sum(&updates.begun);
                    (0..20).for_each(|_| std::hint::spin_loop());
                    let certain = Updates::sum(&updates.done) - set;
                    let read = gauge.read();
                    let possible = Updates::sum(&updates.begun) - begun_before;
                    let added = read - i64::from(value);
                    assert!(
                        certain <= added && added <= possible,
                        "{name}: {added} added since the set; {certain} at least, {possible} at most"
                    );
                }
            });
        });
        let before = gauge.read();
        gauge.add(-3);
        assert_eq!(gauge.read(), before - 3, "{name}");
    }
}

#[test]
fn a_set_ends_rounding_infinities_and_nan() {
    for Named { name, pool } in &pools() {
        let gauge = FloatGauge::new_in(pool, 1e300).expect("gauge");
        assert_eq!(gauge.read(), 1e300, "{name}");
        for noise in [1e17, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0] {
            gauge.add(noise);
            gauge.set(0.1);
            assert_eq!(gauge.read(), 0.1, "{name}: after {noise}");
            gauge.add(0.2);
            assert_eq!(gauge.read(), 0.1 + 0.2, "{name}: after {noise}");
        }
        gauge.add(f64::INFINITY);
        assert_eq!(gauge.read(), f64::INFINITY, "{name}");
        gauge.sub(f64::INFINITY);
        assert!(gauge.read().is_nan(), "{name}");
    }
}

/// Returns the largest error that `FloatGauge` states: of `updates` updates on this machine's CPUs, where `absolute` is the
/// sum of their absolute values and that of the value that was set.
fn bound_of_rounding(updates: u64, absolute: f64) -> f64 {
    (updates + os::cpus().len() as u64) as f64 * f64::EPSILON / 2.0 * absolute
}

#[test]
fn rounding_stays_below_the_stated_bound() {
    for (Named { name, pool }, set) in pools().iter().flat_map(|pool| [(pool, 0i64), (pool, 1 << 20)]) {
        let gauge = FloatGauge::new_in(pool, set as f64).expect("gauge");
        let updates = 30_000u64;
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let gauge = &gauge;
                scope.spawn(move || {
                    let mut seed = thread + 1u64;
                    for _ in 0..updates {
                        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                        // a multiple of 2^-30, so that the sum of whole numbers below is exact
                        gauge.add((seed >> 34) as f64 / f64::from(1 << 30) - 0.25);
                    }
                });
            }
        });
        let (mut exact, mut absolute) = (set << 30, set << 30);
        for thread in 0..3 {
            let mut seed = thread + 1u64;
            for _ in 0..updates {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let value = (seed >> 34) as i64 - (1 << 28);
                (exact, absolute) = (exact + value, absolute + value.abs());
            }
        }
        let scale = f64::from(1 << 30);
        let bound = bound_of_rounding(3 * updates, absolute as f64 / scale);
        let off = (gauge.read() - exact as f64 / scale).abs();
        assert!(off <= bound, "{name}, set to {set}: off by {off}, bound {bound}");
    }
}

#[test]
fn rounding_that_is_all_one_way_stays_below_the_stated_bound() {
    for Named { name, pool } in &pools() {
        let gauge = FloatGauge::new_in(pool, 0.0).expect("gauge");
        // half of what 1 can be off by: a sum that has the 1 is rounded to it each time
        let (half, updates) = (f64::EPSILON / 2.0, 100_000u64);
        gauge.add(1.0);
        (1..updates).for_each(|_| gauge.add(half));
        let added = (updates - 1) as f64 * half;
        let (off, bound) = ((1.0 - gauge.read() + added).abs(), bound_of_rounding(updates, 1.0 + added));
        assert!(off <= bound, "{name}: off by {off}, bound {bound}");
    }
}

#[test]
fn a_gauge_in_the_words_of_dropped_counters_starts_anew_and_the_other_way() {
    for Named { name, pool } in &pools() {
        for round in 0..10 {
            let counters: Vec<Counter> =
                (0..20).map(|_| Counter::new_in(pool, u64::MAX).expect("counter")).collect();
            counters.iter().for_each(|counter| counter.add(12_345 + round));
            assert!(counters.iter().all(|counter| counter.read() == 12_344 + round), "{name}");
            drop(counters);
            let gauges: Vec<FloatGauge> =
                (0..20).map(|value| FloatGauge::new_in(pool, f64::from(value)).expect("gauge")).collect();
            for (value, gauge) in gauges.iter().enumerate() {
                assert_eq!(gauge.read(), value as f64, "{name}, round {round}");
                gauge.add(0.5);
            }
            for cpu in os::cpus() {
                let _ = pool.drain(statctr::topology::CpuId::new(cpu as u32));
            }
            for (value, gauge) in gauges.iter().enumerate() {
                gauge.add(0.25);
                assert_eq!(gauge.read(), value as f64 + 0.75, "{name}, round {round}: drained");
                gauge.set(-1.0);
                gauge.add(0.25);
                assert_eq!(gauge.read(), -0.75, "{name}, round {round}: set");
            }
            for cpu in os::cpus() {
                let _ = pool.drain(statctr::topology::CpuId::new(cpu as u32));
            }
            assert!(gauges.iter().all(|gauge| gauge.read() == -0.75), "{name}: drained again");
        }
    }
}
