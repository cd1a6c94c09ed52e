//! Maxima, minima and averages are exact whatever threads, CPUs and memory do, and none is lost to a take.
#![cfg(not(feature = "uniprocessor"))]

mod common;

use common::{Deadline, Named, StopAtEnd, budget, os, pools, pools_by_width, scaled};
use statctr::topology::CpuId;
use statctr::{Average, AverageSnapshot, Counter, Max, Min, Mode, Pool, Snapshot};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Returns numbers that look like chance, of which each is the same in each run.
fn numbers(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let number = state ^ (state >> 33);
        // of every magnitude
        number >> (number % 64)
    }
}

fn drain_all(pool: &Pool) {
    for cpu in os::cpus() {
        let _ = pool.drain(CpuId::new(cpu as u32));
    }
}

#[test]
fn the_extremes_and_the_average_are_those_of_all_values() {
    for Named { name, pool } in &pools() {
        let (max, min, average) = (Max::new_in(pool), Min::new_in(pool), Average::new_in(pool));
        let (max, min, average) = (max.expect("max"), min.expect("min"), average.expect("average"));
        let mut all = vec![];
        for round in 0..20 {
            let observe = |seed| {
                let values: Vec<u64> = std::iter::repeat_with(numbers(seed)).take(scaled(50)).collect();
                for &value in &values {
                    max.observe(value);
                    min.observe(value);
                    average.observe(value);
                }
                values
            };
            std::thread::scope(|scope| {
                let observe = &observe;
                let threads: Vec<_> =
                    (0..3).map(|thread| scope.spawn(move || observe(round * 3 + thread))).collect();
                threads.into_iter().for_each(|thread| all.extend(thread.join().expect("joined")));
            });
            if round % 3 == 0 {
                drain_all(pool);
            }
            assert_eq!(Some(max.read()), all.iter().copied().max(), "{name}, round {round}");
            assert_eq!(Some(min.read()), all.iter().copied().min(), "{name}, round {round}");
            let sum = all.iter().fold(0u64, |sum, value| sum.wrapping_add(*value));
            let seen = average.read();
            assert_eq!((seen.count(), seen.sum()), (all.len() as u64, sum), "{name}, round {round}");
            if round % 7 == 6 {
                max.reset();
                min.reset();
                assert_eq!((max.read(), min.read()), (Max::IDENTITY, Min::IDENTITY), "{name}: reset");
                max.observe(Max::IDENTITY);
                min.observe(Min::IDENTITY);
                assert_eq!((max.read(), min.read()), (0, u64::MAX), "{name}: the identities change nothing");
                let seen = average.read();
                let opposite = |value: u64| 0u64.wrapping_sub(value);
                average.observe_many(opposite(seen.count()), opposite(seen.sum()));
                all.clear();
            }
        }
    }
}

#[test]
fn between_resets_a_maximum_never_goes_down_while_threads_move_and_cpus_are_drained() {
    let pools = pools();
    let span = budget() * 2 / pools.len() as u32;
    for Named { name, pool } in &pools {
        let (max, min) = (Max::new_in(pool).expect("max"), Min::new_in(pool).expect("min"));
        let (stop, done) = (AtomicBool::new(false), [0, 0, 0].map(AtomicU64::new));
        let (send, threads) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let _stop_at_end = StopAtEnd(&stop);
            for (thread, done) in done.iter().enumerate() {
                let (send, max, min, stop) = (send.clone(), &max, &min, &stop);
                scope.spawn(move || {
                    send.send(os::thread_id()).expect("wanted");
                    let mut value = thread as u64;
                    while !stop.load(Ordering::Relaxed) {
                        value += 3;
                        max.observe(value);
                        min.observe(u64::MAX / 2 - value);
                        done.store(value, Ordering::Release);
                    }
                });
            }
            let threads: Vec<i32> = (0..3).map(|_| threads.recv().expect("a thread")).collect();
            os::while_moving(&threads, || {
                let (deadline, mut last, mut round) = (Deadline::after(span), 0, 0u32);
                while !deadline.is_over() {
                    let done = done.iter().map(|done| done.load(Ordering::Acquire)).max().unwrap_or(0);
                    let (most, least) = (max.read(), min.read());
                    assert!(most >= done.max(last), "{name}: {most} after {done} and {last}");
                    assert!(done == 0 || least <= u64::MAX / 2 - done, "{name}: {least} after {done}");
                    last = most;
                    round += 1;
                    if round.is_multiple_of(100) {
                        drain_all(pool);
                    }
                }
            });
        });
        let done = done.iter().map(|done| done.load(Ordering::Acquire)).max().unwrap_or(0);
        assert_eq!((max.read(), min.read()), (done, u64::MAX / 2 - done), "{name}");
    }
}

#[test]
fn no_value_is_lost_to_a_take() {
    let pools = pools();
    let span = budget() * 3 / pools.len() as u32;
    for Named { name, pool } in &pools {
        let (max, min) = (Max::new_in(pool).expect("max"), Min::new_in(pool).expect("min"));
        let (takes, taken) = (AtomicU64::new(0), [0, 0].map(AtomicU64::new));
        let (stop, spikes) = (AtomicBool::new(false), AtomicU64::new(0));
        let (send, threads) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let _stop_at_end = StopAtEnd(&stop);
            // the others keep the words in use, below every spike
            for noise in 0..2u64 {
                let (send, max, min, stop) = (send.clone(), &max, &min, &stop);
                scope.spawn(move || {
                    send.send(os::thread_id()).expect("wanted");
                    let mut value = noise;
                    while !stop.load(Ordering::Relaxed) {
                        value = (value + 1) % 1000;
                        max.observe(value);
                        min.observe(u64::MAX - value);
                    }
                });
            }
            let (send, max, min) = (send.clone(), &max, &min);
            let (takes, taken, stop, spikes) = (&takes, &taken, &stop, &spikes);
            scope.spawn(move || {
                send.send(os::thread_id()).expect("wanted");
                let mut spike = 1 << 20;
                while !stop.load(Ordering::Relaxed) {
                    spike += 1;
                    max.observe(spike);
                    min.observe(u64::MAX - spike);
                    let now = takes.load(Ordering::Acquire);
                    // the take that runs, and one that begins later
                    while takes.load(Ordering::Acquire) < now + 2 {
                        if stop.load(Ordering::Relaxed) {
                            return;
                        }
                        std::thread::yield_now();
                    }
                    let seen = taken.each_ref().map(|taken| taken.load(Ordering::Acquire));
                    assert_eq!(seen, [spike, spike], "{name}: a spike is in no interval");
                    spikes.fetch_add(1, Ordering::Relaxed);
                }
            });
            let threads: Vec<i32> = (0..3).map(|_| threads.recv().expect("a thread")).collect();
            os::while_moving(&threads, || {
                let (deadline, mut round) = (Deadline::after(span), 0u32);
                while !deadline.is_over() {
                    taken[0].fetch_max(max.take(), Ordering::AcqRel);
                    taken[1].fetch_max(u64::MAX - min.take(), Ordering::AcqRel);
                    takes.fetch_add(1, Ordering::AcqRel);
                    round += 1;
                    if round.is_multiple_of(50) {
                        drain_all(pool);
                    }
                }
            });
        });
        println!("{name}: {} takes, {} spikes", takes.into_inner(), spikes.into_inner());
        let _ = (max.take(), max.take());
        assert_eq!(max.take(), Max::IDENTITY, "{name}: nothing since");
    }
}

#[test]
fn a_reset_drops_what_was_before_and_keeps_what_comes_after() {
    for Named { name, pool } in &pools() {
        let max = Max::new_in(pool).expect("max");
        let go = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..scaled(500) as u64 {
                    go.wait();
                    max.observe(1000 + round);
                    go.wait();
                }
            });
            for round in 0..scaled(500) as u64 {
                max.observe(1 << 40);
                go.wait();
                max.reset();
                go.wait();
                let value = max.read();
                assert!(value == Max::IDENTITY || value == 1000 + round, "{name}: {value} in round {round}");
            }
        });
    }
}

#[test]
fn extremes_in_the_words_of_dropped_counters_start_anew_and_the_other_way() {
    for Named { name, pool } in &pools() {
        for round in 0..10 {
            let counters: Vec<Counter> =
                (0..20).map(|_| Counter::new_in(pool, u64::MAX).expect("counter")).collect();
            counters.iter().for_each(|counter| counter.add(12_345 + round));
            assert!(counters.iter().all(|counter| counter.read() == 12_344 + round), "{name}");
            drop(counters);
            let extremes: Vec<(Max, Min)> =
                (0..10).map(|_| (Max::new_in(pool).expect("max"), Min::new_in(pool).expect("min"))).collect();
            for (max, min) in &extremes {
                assert_eq!((max.read(), min.read()), (Max::IDENTITY, Min::IDENTITY), "{name}, round {round}");
                for (value, most, least) in [(7, 7, 7), (9, 9, 7), (3, 9, 3)] {
                    max.observe(value);
                    min.observe(value);
                    drain_all(pool);
                    assert_eq!((max.read(), min.read()), (most, least), "{name}, round {round}");
                }
                assert_eq!((max.take(), min.take()), (9, 3), "{name}, round {round}");
                drain_all(pool);
                max.observe(5);
                assert_eq!((max.read(), min.read()), (5, Min::IDENTITY), "{name}, round {round}: taken");
                assert_eq!((max.take(), max.take(), max.take()), (5, 0, 0), "{name}: two intervals ago");
            }
        }
    }
}

#[test]
fn a_forked_child_goes_on_from_the_extremes_of_its_parent() {
    for Named { name, pool } in &pools() {
        let (max, min) = (Max::new_in(pool).expect("max"), Min::new_in(pool).expect("min"));
        let average = Average::new_in(pool).expect("average");
        let observe = |value| {
            max.observe(value);
            min.observe(value);
            average.observe(value);
        };
        let seen = || (max.read(), min.read(), average.read().count(), average.read().sum());
        observe(50);
        let (parents, status) = os::fork(
            || {
                observe(60);
                observe(40);
                let went_on = seen() == (60, 40, 3, 150) && (max.take(), min.take()) == (60, 40);
                observe(1);
                went_on && seen() == (1, 1, 4, 151)
            },
            || {
                observe(55);
                seen()
            },
        );
        assert!(status.success(), "{name}: in the child");
        assert_eq!(parents, (55, 50, 2, 105), "{name}: in the parent");
    }
}

#[test]
fn threads_without_registration_observe_too() {
    for Named { name, pool } in &pools() {
        let (max, min) = (Max::new_in(pool).expect("max"), Min::new_in(pool).expect("min"));
        max.observe(10);
        min.observe(10);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let size = os::rseq::unregister();
                for value in [30, 20, 5] {
                    max.observe(value);
                    min.observe(value);
                }
                if let Some(size) = size {
                    assert!(os::rseq::register(size));
                }
            });
        });
        assert_eq!((max.read(), min.read()), (30, 5), "{name}");
        max.observe(31);
        assert_eq!((max.take(), min.take(), max.take()), (31, 5, 0), "{name}");
    }
}

#[test]
fn the_count_and_the_sum_of_an_average_are_of_one_moment() {
    // of all CPUs, each with words of its own: the fallback cell takes one number after the other
    for Named { name, pool } in &pools_by_width() {
        if pool.mode() != Mode::Rseq {
            continue; // two atomic additions
        }
        let average = Average::new_in(pool).expect("average");
        let stop = AtomicBool::new(false);
        let (torn, change) = std::thread::scope(|scope| {
            let _stop_at_end = StopAtEnd(&stop);
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        average.observe(1500);
                    }
                });
            }
            let before = Snapshot::take(|| average.read());
            let is_torn = |seen: &AverageSnapshot| seen.sum() != 1500 * seen.count();
            let torn = (0..scaled(2000)).map(|_| average.read()).find(is_torn);
            let change = Snapshot::take(|| average.read()).since(&before).expect("alike");
            (torn, change)
        });
        assert_eq!(torn, None, "{name}");
        assert!(change.delta().mean().is_none_or(|mean| mean == 1500.0), "{name}");
    }
    assert_eq!(AverageSnapshot::default().mean(), None);
}
