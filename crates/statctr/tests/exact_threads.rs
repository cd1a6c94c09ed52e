//! Counts are exact whatever threads do: move, come and go, and update in every way at once.
#![cfg(not(feature = "uniprocessor"))]

mod common;

use common::kit::{Kit, Line};
use common::{Deadline, Named, StopAtEnd, budget, os, pools, pools_by_width, scaled};
use statctr::topology::{CpuId, Topology};
use statctr::{Counter, CounterArray, Mode, Placement, Pool, SharedCounter, VectorWidth};
use statctr::{registration, thread_mode};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Lets `threads` threads take turns at a kit for `span`; `step` runs in each after every turn.
/// How many turns it were.
fn take_turns(kit: &Kit, threads: usize, span: Duration, step: impl Fn(u64) + Sync) -> u64 {
    let deadline = Deadline::after(span);
    let turns = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut mine = 0;
                while !deadline.is_over() {
                    for _ in 0..16 {
                        kit.turn();
                        mine += 1;
                        step(mine);
                    }
                }
                turns.fetch_add(mine, Ordering::Relaxed);
            });
        }
    });
    turns.into_inner()
}

#[test]
fn counts_are_exact_under_constant_migration() {
    let pools = pools();
    let span = budget() * 2 / pools.len() as u32;
    for Named { name, pool } in &pools {
        let kit = Kit::new(pool);
        let (send, threads) = mpsc::channel();
        let (go, turns) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let send = send.clone();
                let (kit, go, turns) = (&kit, &go, &turns);
                scope.spawn(move || {
                    send.send(os::thread_id()).expect("somebody listens");
                    while !go.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                    }
                    let deadline = Deadline::after(span);
                    while !deadline.is_over() {
                        (0..16).for_each(|_| kit.turn());
                        turns.fetch_add(16, Ordering::Relaxed);
                    }
                });
            }
            let threads: Vec<i32> = (0..3).map(|_| threads.recv().expect("a thread")).collect();
            os::while_moving(&threads, || {
                go.store(true, Ordering::Relaxed);
                os::sleep(span);
            });
        });
        kit.check(turns.into_inner(), name);
    }
}

#[test]
fn counts_are_exact_when_threads_move_themselves() {
    let pools = pools();
    let cpus = os::cpus();
    for Named { name, pool } in &pools {
        let kit = Kit::new(pool);
        let turns = take_turns(&kit, 3, budget() / pools.len() as u32, |turn| {
            os::pin(0, &[cpus[turn as usize % cpus.len()]]);
        });
        kit.check(turns, name);
    }
}

#[test]
fn counts_are_exact_with_more_threads_than_cpus() {
    let pools = pools();
    for Named { name, pool } in &pools {
        let kit = Kit::new(pool);
        let turns = take_turns(&kit, 8, budget() / pools.len() as u32, |_| ());
        kit.check(turns, name);
    }
}

// folly, ThreadCachedIntTest: as many threads, each of which adds and is gone
#[test]
fn counts_of_a_thousand_short_threads_are_exact() {
    for Named { name, pool } in &pools() {
        let kit = Kit::new(pool);
        for _ in 0..20 {
            std::thread::scope(|scope| {
                for _ in 0..10 {
                    scope.spawn(|| (0..7).for_each(|_| kit.turn()));
                }
            });
        }
        kit.check(20 * 10 * 7, name);
    }
    let counter = Counter::new(0).expect("counter");
    for _ in 0..100 {
        std::thread::scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| counter.inc());
            }
        });
    }
    assert_eq!(counter.read(), 1000);
}

// librseq, basic_percpu_ops_test: 200 threads, 5000 turns each
#[test]
fn two_hundred_threads_of_five_thousand_counts_are_exact() {
    for Named { name, pool } in &pools() {
        let counter = Counter::new_in(pool, 0).expect("counter");
        let line = Line::new(pool, 4);
        std::thread::scope(|scope| {
            for _ in 0..200 {
                scope.spawn(|| {
                    for _ in 0..5000 {
                        counter.inc();
                        line.turn();
                    }
                });
            }
        });
        assert_eq!(counter.read(), 200 * 5000, "{name}");
        line.check(200 * 5000, name);
    }
}

// perfbook, CodeSamples/count: readers and updaters for 240 ms, updates in runs of 1000; fails on
// a count mismatch. There 30 samples; here as many as the time of the tests is longer.
#[test]
fn the_counting_test_of_perfbook() {
    for sample in 0..scaled(1) {
        for (readers, updaters) in [(1, 1), (1, 2), (2, 4)] {
            let counter = Counter::new(0).expect("counter");
            let deadline = Deadline::after(Duration::from_millis(240));
            let total = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for _ in 0..readers {
                    scope.spawn(|| {
                        while !deadline.is_over() {
                            (0..1000).for_each(|_| _ = std::hint::black_box(counter.read()));
                        }
                    });
                }
                for _ in 0..updaters {
                    scope.spawn(|| {
                        let mut mine = 0;
                        while !deadline.is_over() {
                            (0..1000).for_each(|_| counter.inc());
                            mine += 1000;
                        }
                        total.fetch_add(mine, Ordering::Relaxed);
                    });
                }
            });
            assert_eq!(counter.read(), total.into_inner(), "sample {sample}: {readers} and {updaters}");
        }
    }
}

#[test]
fn setting_a_counter_leaves_its_neighbours_exact() {
    for Named { name, pool } in &pools() {
        let kit = Kit::new(pool);
        let victim = Counter::new_in(pool, 3).expect("counter");
        let line = Line::new(pool, 4);
        let stop = AtomicBool::new(false);
        let (turns, sets) = std::thread::scope(|scope| {
            let running = StopAtEnd(&stop);
            let setter = scope.spawn(|| {
                // once at least, also where this thread comes to run when the others are through
                let mut sets = 0u64;
                loop {
                    victim.set(sets);
                    line.group.set(line.items[4], sets);
                    sets += 1;
                    if stop.load(Ordering::Relaxed) {
                        return sets;
                    }
                }
            });
            let turns = take_turns(&kit, 2, budget() / 8, |_| {
                victim.add(1 << 32);
                line.turn();
            });
            drop(running);
            (turns, setter.join().expect("setter"))
        });
        kit.check(turns, name);
        let values = line.group.read();
        assert_eq!(values[..4], [turns, 2 * turns, 3 * turns, 4 * turns], "{name}");
        // the last set, and the updates since
        assert!(values[4] >= sets - 1 && (values[4] - (sets - 1)).is_multiple_of(5), "{name}: {values:?}");
        assert_eq!(victim.read() % (1 << 32), sets - 1, "{name}");
        assert!(victim.read() >> 32 <= turns, "{name}");
        victim.set(77);
        line.group.set(line.items[4], 78);
        assert_eq!((victim.read(), line.group.read_item(line.items[4])), (77, 78), "{name}");
        assert_eq!(line.group.read()[4], 78, "{name}");
    }
}

// every bit of the sum matters, and nothing spills into the words beside it
#[test]
fn sums_wrap_and_do_not_spill() {
    for Named { name, pool } in &pools() {
        let array = CounterArray::new_in(pool, 64, u64::MAX - 1).expect("array");
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let array = &array;
                scope.spawn(move || {
                    for (index, counter) in array.iter().enumerate() {
                        counter.add((index as u64) << 56 | thread);
                        counter.sub(1 << 63);
                    }
                });
            }
        });
        for (index, counter) in array.iter().enumerate() {
            let added = ((index as u64) << 56).wrapping_mul(4).wrapping_add(6);
            assert_eq!(counter.read(), (u64::MAX - 1).wrapping_add(added), "{name}: {index}");
        }
    }
}

#[test]
fn uniprocessor_counts_are_exact() {
    let topology = Topology::synthetic(1).build().expect("topology");
    for width in common::widths() {
        let builder = Pool::builder().topology(topology.clone()).placement(Placement::Uniprocessor);
        let pool = builder.max_vector(width).build().expect("pool");
        assert_eq!(pool.mode(), Mode::Uniprocessor);
        // also where the one CPU is not the one that the pool thinks it is
        for &cpu in os::cpus().iter().take(2) {
            let kit = Kit::new(&pool);
            let turns = std::thread::scope(|scope| {
                scope
                    .spawn(|| {
                        // threads inherit where they may run
                        assert!(os::pin(0, &[cpu]));
                        take_turns(&kit, 4, budget() / 6, |_| ())
                    })
                    .join()
                    .expect("threads")
            });
            kit.check(turns, "one CPU");
            // read from anywhere
            assert!(kit.counter.read_cpu(CpuId::new(0)) == 0, "the words of one CPU are home words");
        }
    }
}

#[test]
fn the_reported_mode_is_the_one_in_use() {
    for Named { name, pool } in pools_by_width() {
        let kit = Kit::new(&pool);
        kit.turn();
        let here: u64 = os::cpus().iter().map(|&cpu| kit.counter.read_cpu(CpuId::new(cpu as u32))).sum();
        let per_cpu = matches!(pool.mode(), Mode::Rseq | Mode::Striped);
        let expected = if per_cpu { 100 } else { 0 };
        assert_eq!(here, expected, "{name}: {}", pool.mode());
    }
    assert_eq!(VectorWidth::detect() > VectorWidth::Bytes8, !cfg!(target_arch = "aarch64"));
}

#[test]
fn threads_are_registered_by_those_whom_the_run_names() {
    assert_eq!(registration().is_some(), thread_mode() == Mode::Rseq);
    // set where other parties than libc register threads, so that such a run shows that they do
    if let Ok(named) = std::env::var("STATCTR_TEST_REGISTRATION") {
        assert_eq!(registration().map_or("None".to_owned(), |by| format!("{by:?}")), named);
    }
}

#[test]
fn shared_counters_of_several_pools_in_turn_are_exact() {
    // the words of a CPU are elsewhere in each, so that what the last update found is of no use for the next
    let pools: Vec<Pool> = [(Placement::Fixed, 4096), (Placement::Fixed, 8192), (Placement::Flexible, 4096)]
        .into_iter()
        .map(|(placement, bytes)| {
            Pool::builder().placement(placement).unit_bytes(bytes).build().expect("pool")
        })
        .collect();
    let counters: Vec<SharedCounter> =
        pools.iter().map(|pool| SharedCounter::from(Counter::new_in(pool, 0).expect("counter"))).collect();
    let cpus = os::cpus();
    let turns = AtomicU64::new(0);
    // one thread at a time announces a CPU: updates on it by others meanwhile fall back
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for cpu in &cpus {
                os::pin(os::thread_id(), &[*cpu]);
                counters.iter().for_each(|counter| {
                    counter.inc();
                    counter.dec();
                });
            }
        });
    });
    let early: Vec<u64> = counters.iter().map(|counter| counter.fallback_part()).collect();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (counters, cpus, turns) = (counters.clone(), &cpus, &turns);
            scope.spawn(move || {
                let deadline = Deadline::after(budget());
                let mut mine = 0;
                while !deadline.is_over() {
                    os::pin(os::thread_id(), &[cpus[(mine / 64 + thread) % cpus.len()]]);
                    for _ in 0..64 {
                        for counter in &counters {
                            counter.inc();
                            counter.add(7);
                            counter.dec();
                        }
                        counters[mine % 3].sub(1);
                        counters[mine % 3].inc();
                        mine += 1;
                    }
                }
                turns.fetch_add(mine as u64, Ordering::Relaxed);
            });
        }
    });
    for (counter, early) in counters.iter().zip(early) {
        assert_eq!(counter.read(), 7 * turns.load(Ordering::Relaxed));
        // with CPUs that may count, nothing but what was aborted again and again is in the fallback cell
        let late = counter.fallback_part().wrapping_sub(early);
        assert!(late <= counter.read() / 100, "{late}");
    }
}
