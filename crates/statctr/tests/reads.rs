//! Reads while writers are at work: they show everything that happened before, never less than
//! before, never less than a baseline, and both numbers of a pair.
#![cfg(not(feature = "uniprocessor"))]

mod common;

use common::kit::{Line, schema, schema_with_event};
use common::{Deadline, Named, StopAtEnd, budget, os, pools, pools_by_width, scaled};
use statctr::topology::{CpuId, CpuSet, Topology};
use statctr::{Counter, Group, GroupArray, Mode, Placement, Pool, fold_groups};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, mpsc};

/// Returns a pool whose memory no thread has counted in, as small as it can be.
fn fresh_pool() -> Pool {
    Pool::builder().placement(Placement::Fixed).unit_bytes(4096).build().expect("pool")
}

/// Returns a pool in which every update goes to the fallback cell: it is made for other CPUs.
fn pool_of_strangers(unit_bytes: usize) -> Pool {
    let strangers: CpuSet = "1000,2000".parse().expect("list");
    let topology = Topology::synthetic_sparse(strangers).build().expect("topology");
    Pool::builder().topology(topology).unit_bytes(unit_bytes).build().expect("pool")
}

// each pool is new, so that each first update announces its CPU
#[test]
fn an_update_handed_over_is_read() {
    let cpus = os::cpus();
    for make in [fresh_pool, || pool_of_strangers(4096)] {
        for round in 0..scaled(300) {
            let pool = make();
            let counter = Counter::new_in(&pool, 0).expect("counter");
            let lines: Vec<Line> = [2, 8].map(|width| Line::new(&pool, width)).into();
            let (send, receive) = mpsc::channel();
            let flag = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for writer in 0..3 {
                    let (send, counter, lines, flag, cpus) = (send.clone(), &counter, &lines, &flag, &cpus);
                    scope.spawn(move || {
                        os::pin(0, &[cpus[(writer + round) % cpus.len()]]);
                        counter.inc();
                        lines.iter().for_each(Line::turn);
                        if writer % 2 == 0 {
                            flag.fetch_add(1, Ordering::Release);
                        }
                        send.send(()).expect("a reader");
                    });
                }
                // by an atomic
                while flag.load(Ordering::Acquire) == 0 {
                    std::hint::spin_loop();
                }
                assert!(counter.read() >= 1, "round {round}");
                assert!(lines.iter().all(|line| line.group.read().iter().all(|value| *value >= 1)));
                // by a channel
                for seen in 1..=3 {
                    receive.recv().expect("a writer");
                    assert!(counter.read() >= seen, "round {round}: {seen}");
                    for line in &lines {
                        let values = line.group.read();
                        assert!(values.iter().all(|value| *value >= seen), "round {round}: {values:?}");
                        assert!(line.group.read_item(line.items[0]) >= seen, "round {round}");
                    }
                }
            });
            // by a join
            assert_eq!(counter.read(), 3, "round {round}");
            lines.iter().for_each(|line| line.check(3, "joined"));
        }
    }
}

// many writers at once on words of one reservation, whose CPUs are all new
#[test]
fn writers_that_announce_at_the_same_time_lose_nothing() {
    for round in 0..scaled(300) {
        let pool = fresh_pool();
        let counters: Vec<Counter> = (0..4).map(|_| Counter::new_in(&pool, 0).expect("counter")).collect();
        let barrier = Barrier::new(4);
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let (counters, barrier) = (&counters, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    counters[writer].inc();
                    assert!(counters[writer].read() >= 1, "round {round}: own update");
                    counters[(writer + 1) % 4].inc();
                });
            }
        });
        assert!(counters.iter().all(|counter| counter.read() == 2), "round {round}: {counters:?}");
    }
}

/// Runs `write` on two threads until `read`, on this one and on another, is done for a while.
fn read_while_writing(write: impl Fn(u64) + Sync, read: impl Fn() -> Vec<u64> + Sync, context: &str) {
    let deadline = Deadline::after(budget() / 4);
    let stop = AtomicBool::new(false);
    let reads = AtomicU64::new(0);
    let never_less = || {
        let mut last = read();
        // on a busy machine the time may be over before this thread runs
        while !deadline.is_over() || reads.load(Ordering::Relaxed) < 20 {
            let now = read();
            for (index, (now, last)) in now.iter().zip(&last).enumerate() {
                assert!(now >= last, "{context}: value {index} went from {last} to {now}");
            }
            last = now;
            reads.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut turn = 0;
                while !stop.load(Ordering::Relaxed) {
                    write(turn);
                    turn += 1;
                }
            });
        }
        let other = scope.spawn(never_less);
        let mine = std::panic::catch_unwind(std::panic::AssertUnwindSafe(never_less));
        let other = other.join();
        stop.store(true, Ordering::Relaxed);
        assert!(mine.is_ok() && other.is_ok(), "{context}");
    });
}

#[test]
fn a_counter_that_is_added_to_never_goes_down() {
    for Named { name, pool } in pools() {
        let counter = Counter::new_in(&pool, 5).expect("counter");
        read_while_writing(|turn| counter.add(turn % 3), || vec![counter.read()], name);
    }
}

#[test]
fn a_group_that_is_added_to_never_goes_down() {
    for Named { name, pool } in pools() {
        for width in [2, 4, 8] {
            let line = Line::new(&pool, width);
            read_while_writing(|_| line.turn(), || line.group.read(), name);
        }
    }
}

#[test]
fn many_groups_that_are_added_to_never_go_down() {
    for Named { name, pool } in pools() {
        let (schema, event) = schema_with_event(33);
        let array = GroupArray::new_in(&pool, 5, &schema).expect("groups");
        let groups: Vec<Group> = (0..5).map(|_| Group::new_in(&pool, &schema).expect("group")).collect();
        let borrowed: Vec<&Group> = groups.iter().collect();
        read_while_writing(
            |turn| {
                let index = turn as usize % 5;
                if let Some(row) = array.get(index) {
                    row.commit(event, [1, 2, 3, 4]);
                }
                groups[index].commit(event, [1, 2, 3, 4]);
                groups[index].add(schema.item(36).expect("an item"), 1);
            },
            || {
                let mut values = vec![0; 2 * 5 * 37];
                let (first, second) = values.split_at_mut(5 * 37);
                array.fold_into(first).expect("room");
                fold_groups(&borrowed, second).expect("room");
                values
            },
            name,
        );
    }
}

// a walk that begins before a reset and ends after it must not take the new baseline with the
// old counts: that would be 2^64 - k
#[test]
fn no_reader_sees_less_than_the_new_baseline() {
    for Named { name, pool } in pools() {
        for width in [2, 8] {
            let counter = Counter::new_in(&pool, 0).expect("counter");
            let line = Line::new(&pool, width);
            let deadline = Deadline::after(budget() / 8);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        while !deadline.is_over() {
                            counter.inc();
                            line.turn();
                        }
                    });
                }
                scope.spawn(|| {
                    while !deadline.is_over() {
                        counter.set(1000);
                        line.items.iter().for_each(|item| line.group.set(*item, 1000));
                    }
                });
                counter.set(1000);
                line.items.iter().for_each(|item| line.group.set(*item, 1000));
                while !deadline.is_over() {
                    let value = counter.read();
                    assert!((1000..1 << 60).contains(&value), "{name}: {value}");
                    for (index, value) in line.group.read().into_iter().enumerate() {
                        assert!((1000..1 << 60).contains(&value), "{name}: item {index}: {value}");
                        let value = line.group.read_item(line.items[index]);
                        assert!((1000..1 << 60).contains(&value), "{name}: item {index}: {value}");
                    }
                }
            });
        }
    }
}

// as before, where the fallback cell comes into use between the reader's looks: the fold of many
// words is long enough for it
#[test]
fn no_fold_sees_less_than_a_baseline_made_from_the_fallback_cell() {
    for width in [1, 8] {
        let schema = schema(width, 1000);
        for round in 0..scaled(400) {
            let pool = pool_of_strangers(64 << 10);
            let group = Group::new_in(&pool, &schema).expect("group");
            let last = schema.items().last().expect("an item");
            // baselines are looked at from now on; home words are not
            group.set(schema.item(0).expect("an item"), 7);
            let ready = AtomicU64::new(0);
            let meet = || {
                ready.fetch_add(1, Ordering::SeqCst);
                while ready.load(Ordering::SeqCst) < 2 {
                    std::hint::spin_loop();
                }
            };
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    meet();
                    (0..round % 512).for_each(|_| std::hint::spin_loop());
                    group.add(last, 5);
                    group.set(last, 0);
                });
                meet();
                for _ in 0..4 {
                    let value = group.read()[last.index()];
                    assert!(value == 0 || value == 5, "round {round}: {}", value as i64);
                }
            });
        }
    }
}

// 16 bytes at an aligned address are stored and loaded whole; wider events are counted here, and
// said how often they were seen in part. Without sections each item is exact on its own
#[test]
fn pairs_are_seen_together() {
    for Named { name, pool } in pools_by_width() {
        pairs_of_event_are_seen_together::<2>(&pool, name);
        pairs_of_event_are_seen_together::<4>(&pool, name);
        pairs_of_event_are_seen_together::<8>(&pool, name);
    }
}

fn pairs_of_event_are_seen_together<const N: usize>(pool: &Pool, name: &str) {
    let (schema, event) = schema_with_event::<N>(3);
    let array = GroupArray::new_in(pool, 3, &schema).expect("groups");
    let group = Group::new_in(pool, &schema).expect("group");
    // in one store, or in two copies
    let sections = pool.mode() == Mode::Rseq;
    let in_one = sections && N * 8 <= pool.cost().vector_bytes;
    let whole = sections && (N * 8 <= 16 || !in_one);
    // not in the fallback cell; what lived in these slots before stays in these sums
    let on_cpus = || {
        let part = |item, cpu| group.read_cpu(CpuId::new(cpu as u32), item);
        let sum = |item| os::cpus().into_iter().map(|cpu| part(item, cpu)).fold(0, u64::wrapping_add);
        schema.items().map(sum).fold(0, u64::wrapping_add)
    };
    let before = on_cpus();
    let deadline = Deadline::after(budget() / 2);
    let (mut folds, mut parts, commits) = (0u64, 0u64, AtomicU64::new(0));
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (array, group, commits) = (&array, &group, &commits);
            let cpus = os::cpus();
            scope.spawn(move || {
                os::pin(0, &[cpus[writer % cpus.len()]]);
                while !deadline.is_over() {
                    for _ in 0..64 {
                        group.commit(event, [1; N]);
                        if let Some(row) = array.get(1) {
                            row.commit(event, [1; N]);
                        }
                    }
                    commits.fetch_add(64, Ordering::Relaxed);
                }
            });
        }
        let mut values = vec![0; 3 * (N + 3)];
        while !deadline.is_over() {
            array.fold_into(&mut values).expect("room");
            let row = &values[N + 3..][..N];
            let one = group.read();
            for (row, fold) in [(row, "of many"), (&one[..N], "of one")] {
                // pairs, and what is read by the same vector as a pair
                for pair in row.chunks_exact(2).filter(|_| in_one) {
                    assert_eq!(pair[0], pair[1], "{name}: fold {fold}, event of {N}");
                }
                folds += 1;
                parts += u64::from(row.iter().any(|value| *value != row[0]));
            }
        }
    });
    let commits = commits.into_inner();
    let mut values = vec![0; 3 * (N + 3)];
    array.fold_into(&mut values).expect("room");
    for (row, fold) in [(&values[N + 3..][..N], "of many"), (&group.read()[..N], "of one")] {
        assert_eq!(row, [commits; N], "{name}: fold {fold}, event of {N}: not exact");
    }
    // a reader that gets nowhere sends writers to the fallback cell for a moment
    let elsewhere = group.read().iter().sum::<u64>() - on_cpus().wrapping_sub(before);
    println!(
        "{name}: event of {N}: {parts} of {folds} folds saw a part of an event, \
         {elsewhere} updates in the fallback cell"
    );
    assert!(!whole || parts == 0 || elsewhere > 0, "{name}: event of {N}");
}

// the fold of one CPU's part of a line with two copies is as of one moment, too
#[test]
fn one_cpus_part_is_whole() {
    let pool = Pool::builder().placement(Placement::Fixed).max_vector(common::widths()[0]);
    let pool = pool.build().expect("pool");
    let line = Line::new(&pool, 8);
    let cpu = os::cpus()[0];
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop_at_end = StopAtEnd(&stop);
        scope.spawn(|| {
            os::pin(0, &[cpu]);
            while !stop.load(Ordering::Relaxed) {
                line.turn();
            }
        });
        let deadline = Deadline::after(budget() / 2);
        let mut last = 0;
        while !deadline.is_over() {
            let value = line.group.read_cpu(CpuId::new(cpu as u32), line.items[0]);
            assert!(value >= last, "{value} after {last}");
            last = value;
        }
    });
}
