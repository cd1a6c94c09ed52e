//! Incremental folds: what happened before a fold is in it, whoever writes; and they read what was written.
#![cfg(not(feature = "uniprocessor"))]

mod common;

use common::kit::schema_with_event;
use common::{Deadline, StopAtEnd, budget, os};
use statctr::topology::{CpuId, Topology};
use statctr::{Error, IncrementalFold, Item, Mode, Placement, Pool, Schema, TrackedGroupArray};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const GROUPS: usize = 300;
const ITEMS: usize = 11;

fn array(pool: &Pool) -> (TrackedGroupArray, Schema) {
    let (schema, _) = schema_with_event::<4>(ITEMS - 4);
    (TrackedGroupArray::new_in(pool, GROUPS, &schema).expect("array"), schema)
}

#[test]
fn writers_that_move_are_in_the_fold_after_their_updates() {
    for common::Named { name, pool } in common::pools() {
        let (array, schema) = array(&pool);
        let event = schema.event::<4>(0).expect("an event");
        let single = schema.item(9).expect("an item");
        let (stop, turns) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let _stop_at_end = StopAtEnd(&stop);
            let writers: Vec<_> = (0..4u64)
                .map(|writer| {
                    let (send, thread) = std::sync::mpsc::channel();
                    let (array, stop, turns) = (&array, &stop, &turns);
                    scope.spawn(move || {
                        send.send(os::thread_id()).expect("wanted");
                        let mut random = writer;
                        while !stop.load(Ordering::Relaxed) {
                            for _ in 0..16 {
                                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                                let group =
                                    array.get((random >> 33) as usize % GROUPS).expect("in the array");
                                group.commit(event, [1, 2, 3, 4]);
                                group.add(single, 5);
                            }
                            turns.fetch_add(16, Ordering::Release);
                        }
                    });
                    thread.recv().expect("started")
                })
                .collect();
            scope.spawn(|| {
                let mut folds = array.incremental_fold().expect("nobody else folds");
                let (mut before, mut number) = (vec![0; GROUPS * ITEMS], 0);
                while !stop.load(Ordering::Relaxed) {
                    let done = turns.load(Ordering::Acquire);
                    let now = folds.fold();
                    let sum = |item: usize| now.iter().skip(item).step_by(ITEMS).sum::<u64>();
                    assert!(
                        sum(0) >= done && sum(9) >= 5 * done,
                        "{name}: {done} turns are not in fold {number}"
                    );
                    assert!(now.iter().zip(&before).all(|(now, before)| now >= before), "{name}: steps back");
                    before.copy_from_slice(now);
                    number += 1;
                }
            });
            os::while_moving(&writers, || os::sleep(budget()));
        });
        let turns = turns.into_inner();
        let mut folds = array.incremental_fold().expect("the other is gone");
        let mut all = vec![0; GROUPS * ITEMS];
        array.fold_into(&mut all).expect("room");
        for fold in 0..4 {
            let now = folds.fold();
            assert_eq!(now, all, "{name}: fold {fold}");
            let sum = |item: usize| now.iter().skip(item).step_by(ITEMS).sum::<u64>();
            assert_eq!(
                [0, 1, 2, 3, 9].map(sum),
                [1, 2, 3, 4, 5].map(|each| each * turns),
                "{name}: not exact"
            );
        }
    }
}

/// Writers that stay and a reader that folds all the time, so that folds see sections at each of their instructions.
#[test]
fn a_series_of_folds_ends_exact() {
    let pool = Pool::builder().placement(Placement::Fixed).build().expect("pool");
    let (array, schema) = array(&pool);
    let item = schema.item(5).expect("an item");
    let end = Deadline::after(budget());
    let mut folds = array.incremental_fold().expect("nobody else folds");
    let mut expected = 0;
    while !end.is_over() {
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..2usize)
                .map(|writer| {
                    let array = &array;
                    scope.spawn(move || {
                        for turn in 0..20_000 {
                            array.get((turn * 7 + writer) % GROUPS).expect("in the array").inc(item);
                        }
                    })
                })
                .collect();
            while !writers.iter().all(|writer| writer.is_finished()) {
                folds.fold();
            }
        });
        expected += 40_000;
        let now = folds.fold();
        assert_eq!(now.iter().skip(5).step_by(ITEMS).sum::<u64>(), expected, "an update was not read");
    }
}

/// Synthetic CPUs that no machine has, and a pool with them.
fn strangers(count: u32) -> (Pool, Vec<CpuId>) {
    let cpus: Vec<_> = (0..count).map(|number| CpuId::new(20_000 + 3 * number)).collect();
    let topology = Topology::synthetic_sparse(cpus.iter().copied().collect()).build().expect("topology");
    let pool = Pool::builder().topology(topology).placement(Placement::Fixed);
    (pool.build().expect("pool"), cpus)
}

/// Checks that a fold is what a fold of all lines is, and returns the number of lines that it read.
fn check(folds: &mut IncrementalFold<'_>, array: &TrackedGroupArray, context: &str) -> usize {
    let mut all = vec![0; GROUPS * ITEMS];
    array.fold_into(&mut all).expect("room");
    assert_eq!(folds.fold(), all, "{context}");
    assert_eq!(folds.values(), all, "{context}");
    folds.lines_read()
}

#[test]
fn folds_are_those_of_all_lines_however_much_was_written() {
    let (pool, cpus) = strangers(24);
    for reuse in 0..2 {
        let (array, schema) = array(&pool);
        let items: Vec<Item> = schema.items().collect();
        let mut folds = array.incremental_fold().expect("nobody else folds");
        let mut random = 1u64;
        let mut random = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize
        };
        // more rounds than there are stamps; CPUs join in the course of them, and rest for many
        for round in 0..700 {
            let written = [0, 1, 5, 40, 400, 3000][random() % 6];
            let cpus = &cpus[..1 + (round / 8).min(cpus.len() - 1)];
            for _ in 0..written {
                let cpu = cpus[random() % cpus.len().min(1 + round % 7)];
                let group = array.get(random() % GROUPS).expect("in the array");
                group.add_on_synthetic(cpu, items[random() % ITEMS], random() as u64).expect("synthetic");
            }
            if round == 350 && reuse == 1 {
                array.get(7).expect("in the array").set(items[3], 12_345);
            }
            check(&mut folds, &array, &format!("reuse {reuse}, round {round}, {written} written"));
        }
    }
}

#[test]
fn a_fold_of_a_range_and_a_snapshot_are_parts_of_a_fold_of_all() {
    for common::Named { name, pool } in common::pools() {
        let (schema, _) = schema_with_event::<4>(ITEMS - 4);
        // of several pieces, of which the last is shorter
        let len = 3 * pool.cost().unit_bytes / 8 / 16 + 605;
        let array = TrackedGroupArray::new_in(&pool, len, &schema).expect("array");
        let before = array.snapshot();
        let items: Vec<Item> = schema.items().collect();
        for group in (0..len).rev().step_by(3) {
            array.get(group).expect("in the array").add(items[group % ITEMS], 1 + group as u64);
        }
        array.get(len - 2).expect("in the array").set(items[1], 99);
        let mut all = vec![0; len * ITEMS];
        array.fold_into(&mut all).expect("room");
        assert_eq!(all.iter().filter(|value| **value != 0).count(), len.div_ceil(3) + 1, "{name}");
        for range in [0..len, 0..1, 1..4, len / 2 - 300..len / 2 + 300, len - 2..len, 7..7] {
            let mut part = vec![0; range.len() * ITEMS + 1];
            array.fold_range(range.clone(), &mut part).expect("room");
            assert_eq!(part.pop(), Some(0), "{name}, {range:?}: what lies behind is left alone");
            assert_eq!(part, all[range.start * ITEMS..range.end * ITEMS], "{name}, {range:?}");
        }
        let beyond = array.fold_range(len - 1..len + 1, &mut [0; 2 * ITEMS]);
        assert_eq!(beyond, Err(Error::OutOfRange { index: len, len }), "{name}");
        let short = array.fold_range(0..2, &mut [0; ITEMS]);
        assert_eq!(short, Err(Error::BufferTooSmall { needed: 2 * ITEMS, given: ITEMS }), "{name}");
        assert_eq!(*array.snapshot().since(&before).expect("alike").delta(), all, "{name}");
    }
}

#[test]
fn a_fold_reads_what_was_written_since_the_last_one() {
    let (pool, cpus) = strangers(16);
    let (array, schema) = array(&pool);
    // sections that mark what they write are x86-64's, and have no event wider than a store
    let marks = cfg!(target_arch = "x86_64") && pool.mode() == Mode::Rseq && pool.cost().vector_bytes >= 32;
    assert_eq!(array.is_tracked(), marks, "in the mode {}", pool.mode());
    let item = schema.item(2).expect("an item");
    let add = |cpu: usize, group: usize| {
        let group = array.get(group % GROUPS).expect("in the array");
        group.add_on_synthetic(cpus[cpu % 16], item, 1).expect("synthetic");
    };
    let mut folds = array.incremental_fold().expect("nobody else folds");
    (0..16).for_each(|cpu| (0..GROUPS).for_each(|group| add(cpu, group)));
    let first = check(&mut folds, &array, "first");
    if !marks {
        // each fold reads all lines, and counts none
        for round in 0..200 {
            (0..20).for_each(|group| add(group + round, 31 * group + round));
            assert_eq!(check(&mut folds, &array, "without marks"), 0, "round {round}");
        }
        return;
    }
    assert_eq!(first, GROUPS * schema.chunks());
    // fewer than there are stamps
    for round in 1..200 {
        // on more than one CPU, and others the next time
        for group in 0..20 {
            add(group % 16, 31 * group + round);
            add((group + round) % 16, 31 * group + round);
        }
        let read = check(&mut folds, &array, "sparse");
        assert!(read == 20 || round == 1, "round {round}: {read} lines");
    }
    for _ in 0..2 {
        check(&mut folds, &array, "idle");
    }
    assert_eq!(folds.lines_read(), 0);
    // few lines are read once more, as their CPU may not be through with them
    add(3, 5);
    assert_eq!(check(&mut folds, &array, "one"), 1);
    let again = check(&mut folds, &array, "and again");
    assert!(again <= 1, "{again}");
}

#[test]
fn there_is_one_series_of_folds_at_a_time() {
    let pool = Pool::builder().build().expect("pool");
    let (array, _) = array(&pool);
    let folds = array.incremental_fold().expect("nobody else folds");
    assert!(matches!(array.incremental_fold(), Err(Error::BadSetting(_))));
    drop(folds);
    assert!(array.incremental_fold().is_ok());
}
