//! Approximate values are within their bound whatever runs at the same time, and comparisons are exact.
#![cfg(not(feature = "uniprocessor"))]

mod common;

use common::{Deadline, Named, StopAtEnd, budget, os, pools, scaled};
use statctr::topology::CpuId;
use statctr::{ApproximateCounter, Average, Counter, Error};
use std::cmp::Ordering as Order;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[test]
fn a_value_is_never_off_by_more_than_the_bound_while_others_count() {
    let pools = pools();
    let span = budget() * 2 / pools.len() as u32;
    for (Named { name, pool }, batch) in pools.iter().zip([1, 2, 8, 32, 1000].into_iter().cycle()) {
        let counter = ApproximateCounter::new_in(pool, 5, batch).expect("counter");
        let (stop, added) = (AtomicBool::new(false), AtomicU64::new(0));
        let (send, threads) = std::sync::mpsc::channel();
        let mut reads = 0u64;
        std::thread::scope(|scope| {
            let _stop_at_end = StopAtEnd(&stop);
            for thread in 0..4u64 {
                let (send, counter, stop, added) = (send.clone(), &counter, &stop, &added);
                scope.spawn(move || {
                    send.send(os::thread_id()).expect("wanted");
                    let mut mine = 0;
                    while !stop.load(Ordering::Relaxed) {
                        for step in 0..64 {
                            let value = 1 + (step * thread) % (batch + 1);
                            counter.add(value);
                            mine += value;
                        }
                    }
                    added.fetch_add(mine, Ordering::Relaxed);
                });
            }
            let threads: Vec<i32> = (0..4).map(|_| threads.recv().expect("a thread")).collect();
            os::while_moving(&threads, || {
                let deadline = Deadline::after(span);
                while !deadline.is_over() {
                    if reads.is_multiple_of(1000) {
                        let _ = pool.drain(CpuId::new(os::cpus()[0] as u32));
                    }
                    let least = counter.read();
                    let value = counter.approximate();
                    let most = counter.read();
                    reads += 1;
                    assert!(
                        value + counter.bound() >= least && value <= most + counter.bound(),
                        "{name}, batch {batch}: {value} of {least} to {most}, bound {}",
                        counter.bound()
                    );
                    assert_ne!(counter.compare(least - 1), Order::Less, "{name}: {least} was there");
                }
            });
        });
        let exact = 5 + added.into_inner();
        assert_eq!(counter.read(), exact, "{name}: not exact");
        assert!(counter.approximate().abs_diff(exact) <= counter.bound(), "{name}: when all have stopped");
        for (other, order) in [(exact - 1, Order::Greater), (exact, Order::Equal), (exact + 1, Order::Less)] {
            assert_eq!(counter.compare(other), order, "{name}");
        }
        println!("{name}, batch {batch}: {reads} reads, {exact} counted");
    }
}

/// Returns the updates to make, in all pools together: few, or `STATCTR_TEST_UPDATES`.
fn updates() -> u64 {
    let updates = std::env::var("STATCTR_TEST_UPDATES").ok().and_then(|text| text.parse().ok());
    updates.unwrap_or(scaled(300_000) as u64)
}

/// Times at which the threads that count stop, so that the exact value is known.
const PAUSES: u64 = 10;

#[test]
fn a_number_of_updates_is_counted_exactly_and_read_within_the_bound() {
    let pools = pools();
    // each of two threads makes that many before a pause
    let turn = updates().div_ceil(2 * PAUSES * pools.len() as u64);
    let mut all = 0;
    for (Named { name, pool }, batch) in pools.iter().zip([2, 8, 64, 1000].into_iter().cycle()) {
        let counter = ApproximateCounter::new_in(pool, 0, batch).expect("counter");
        let bound = counter.bound();
        let (mut while_counting, mut at_pauses) = (0, 0);
        for pause in 1..=PAUSES {
            std::thread::scope(|scope| {
                let writers: Vec<_> = (0..2)
                    .map(|_| {
                        let (send, thread) = std::sync::mpsc::channel();
                        let counter = &counter;
                        let writer = scope.spawn(move || {
                            send.send(os::thread_id()).expect("wanted");
                            (0..turn).for_each(|_| counter.inc());
                        });
                        (thread.recv().expect("started"), writer)
                    })
                    .collect();
                let (cpus, mut round) = (os::cpus(), 0);
                while !writers.iter().all(|(_, writer)| writer.is_finished()) {
                    round += 1;
                    // a thread that has ended cannot be moved
                    for (index, (thread, _)) in writers.iter().enumerate() {
                        os::pin(*thread, &[cpus[(round + index) % cpus.len()]]);
                    }
                    let least = counter.read();
                    let value = counter.approximate();
                    let most = counter.read();
                    // the value was between the two; how far off it was at least
                    let off = least.saturating_sub(value).max(value.saturating_sub(most));
                    assert!(off <= bound, "{name}: {value} of {least} to {most}, bound {bound}");
                    while_counting = off.max(while_counting);
                    os::sleep(std::time::Duration::from_micros(300));
                }
            });
            let exact = 2 * turn * pause;
            assert_eq!(counter.read(), exact, "{name}: not exact");
            let off = counter.approximate().abs_diff(exact);
            assert!(off <= bound, "{name}: off by {off} of {exact}, bound {bound}");
            at_pauses = off.max(at_pauses);
        }
        all += 2 * turn * PAUSES;
        println!(
            "{name}, batch {batch}: {} updates, largest error {at_pauses} at pauses, {while_counting} at least \
             while counting, bound {bound}",
            2 * turn * PAUSES
        );
    }
    println!("{all} updates in {} pools, all within their bounds", pools.len());
}

#[test]
fn values_go_up_and_down_and_are_set() {
    for Named { name, pool } in &pools() {
        let counter = ApproximateCounter::new_in(pool, 0, 10).expect("counter");
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..scaled(20_000) {
                        counter.add(7);
                        counter.sub(25);
                        counter.inc();
                        counter.add(17);
                        counter.dec();
                    }
                });
            }
        });
        let exact = (3 * scaled(20_000) as u64).wrapping_neg();
        assert_eq!(counter.read(), exact, "{name}");
        assert!(exact.wrapping_sub(counter.approximate()).cast_signed().unsigned_abs() <= counter.bound());
        assert_eq!(counter.compare(0), Order::Less, "{name}: below 0");
        counter.set(1 << 40);
        assert_eq!((counter.read(), counter.compare(1 << 40)), (1 << 40, Order::Equal), "{name}");
        assert!(counter.approximate().abs_diff(1 << 40) <= counter.bound(), "{name}: after a set");
    }
}

#[test]
fn counters_in_the_words_of_dropped_ones_start_anew() {
    for Named { name, pool } in &pools() {
        for round in 0..10 {
            let counters: Vec<Counter> =
                (0..20).map(|_| Counter::new_in(pool, 3).expect("counter")).collect();
            counters.iter().for_each(|counter| counter.add(1 << 50));
            drop(counters);
            let counters: Vec<ApproximateCounter> =
                (0..20).map(|_| ApproximateCounter::new_in(pool, round, 4).expect("counter")).collect();
            for counter in &counters {
                assert_eq!((counter.read(), counter.approximate()), (round, round), "{name}");
                (0..9).for_each(|_| counter.inc());
                for cpu in os::cpus() {
                    let _ = pool.drain(CpuId::new(cpu as u32));
                }
                assert_eq!(counter.read(), round + 9, "{name}");
                assert!(counter.approximate().abs_diff(round + 9) <= counter.bound(), "{name}");
            }
        }
    }
}

#[test]
fn batches_that_cannot_be_are_refused() {
    for batch in [0, u64::MAX, 1 << 62] {
        let refused = ApproximateCounter::new(0, batch);
        assert!(matches!(refused, Err(Error::BadSetting(_))), "{batch}");
    }
}

#[test]
fn counts_of_a_dropped_counter_are_no_part_of_what_is_made_in_its_place() {
    for Named { name, pool } in &pools() {
        let dropped = ApproximateCounter::new_in(pool, 0, 10).expect("counter");
        (0..100).for_each(|_| dropped.add(7));
        drop(dropped);
        let counters: Vec<Counter> = (0..16).map(|_| Counter::new_in(pool, 3).expect("counter")).collect();
        let average = Average::new_in(pool).expect("average");
        average.observe(5);
        // more than a batch: readers add fallback cells from now on
        ApproximateCounter::new_in(pool, 0, 10).expect("counter").add(50);
        assert!(counters.iter().all(|counter| counter.read() == 3), "{name}");
        assert_eq!((average.read().count(), average.read().sum()), (1, 5), "{name}");
    }
}

#[test]
fn a_comparison_is_exact_also_with_values_half_of_all_numbers_away() {
    const HALF: u64 = 1 << 63;
    for Named { name, pool } in pools() {
        let counter = ApproximateCounter::new_in(&pool, 0, 64).expect("counter");
        // most of which CPUs keep to themselves
        for added in 0..100u64 {
            counter.add(added % 7);
            let value = counter.read();
            for near in [0, HALF] {
                for off in 0..400 {
                    let other = value.wrapping_add(near).wrapping_add(off).wrapping_sub(200);
                    let exact = value.wrapping_sub(other).cast_signed().cmp(&0);
                    assert_eq!(counter.compare(other), exact, "{name}: {value} and {other}");
                }
            }
        }
    }
}
