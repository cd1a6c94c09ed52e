//! Counts are exact, visible and monotone while CPUs are drained under those who count and read.
#![cfg(not(feature = "uniprocessor"))]

mod common;

use common::kit::{Kit, schema_with_event};
use common::{Deadline, Named, StopAtEnd, budget, flexible_pools, os};
use statctr::topology::{CpuId, CpuSet, Topology};
use statctr::{Counter, CounterArray, Error, FloatGauge, Group, Mode, Placement, Pool};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn cpus() -> impl Iterator<Item = CpuId> {
    os::cpus().into_iter().map(|cpu| CpuId::new(cpu as u32))
}

/// Returns `true` if this kernel and this sandbox let us drain.
fn may_drain(pool: &Pool) -> bool {
    let counter = Counter::new_in(pool, 0).expect("counter");
    counter.inc();
    let result = cpus().try_for_each(|cpu| pool.drain(cpu).map(|_| ()));
    if let Err(error) = &result {
        println!("skipped: {error}");
    }
    result.is_ok()
}

#[test]
fn nothing_is_lost_or_doubled_and_no_read_steps_back() {
    for Named { name, pool } in &flexible_pools() {
        if !may_drain(pool) {
            return;
        }
        let kit = Kit::new(pool);
        let (stop, turns) = (AtomicBool::new(false), AtomicU64::new(0));
        let (mut drains, mut blocks) = (0, 0);
        std::thread::scope(|scope| {
            let _stop_at_end = StopAtEnd(&stop);
            let writers: Vec<_> = (0..4)
                .map(|_| {
                    let (send, thread) = std::sync::mpsc::channel();
                    scope.spawn({
                        let (kit, stop, turns) = (&kit, &stop, &turns);
                        move || {
                            send.send(os::thread_id()).expect("wanted");
                            while !stop.load(Ordering::Relaxed) {
                                (0..16).for_each(|_| kit.turn());
                                turns.fetch_add(16, Ordering::Release);
                            }
                        }
                    });
                    thread.recv().expect("started")
                })
                .collect();
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut last = 0;
                    let mut row = [0; 33];
                    let mut last_row = [0; 4];
                    let _stop_at_end = StopAtEnd(&stop);
                    while !stop.load(Ordering::Relaxed) {
                        let done = turns.load(Ordering::Acquire);
                        let value = kit.neighbours[1].read().wrapping_add(1);
                        assert!(value >= last, "{name}: {value} after {last}");
                        assert!(value >= done, "{name}: {value} of {done} turns: not visible");
                        last = value;
                        kit.rows.fold_into(&mut row).expect("room");
                        for (now, before) in row[22..26].iter().zip(&mut last_row) {
                            assert!(*now >= *before, "{name}: {now} after {before} in a fold");
                            *before = *now;
                        }
                        for line in &kit.lines {
                            let first = line.group.read_item(line.items[0]);
                            assert!(first >= done, "{name}: {first} of {done} turns in a group");
                        }
                    }
                });
            }
            os::while_moving(&writers, || {
                let end = Deadline::after(budget());
                while !end.is_over() {
                    for cpu in cpus() {
                        blocks += pool.drain(cpu).expect("drained before").blocks;
                        drains += 1;
                        // on a busy machine nobody may have counted since
                        os::sleep(std::time::Duration::from_micros(100));
                    }
                }
            });
        });
        kit.check(turns.load(Ordering::Relaxed), name);
        for cpu in cpus() {
            pool.drain(cpu).expect("drained before");
        }
        // without rseq nothing says that no update is under way, so that stripes stay where they are
        let stays = pool.mode() == Mode::Striped;
        assert!(stays || pool.active_cpus().is_empty(), "{name}: who counts is announced, and nobody counts");
        kit.check(turns.load(Ordering::Relaxed), name);
        println!("{name}: {drains} drains of {blocks} blocks, {} turns", turns.into_inner());
    }
}

#[test]
fn slots_that_are_given_back_and_taken_again_start_at_zero() {
    for Named { name, pool } in &flexible_pools() {
        if !may_drain(pool) {
            return;
        }
        for round in 0..20u64 {
            let (schema, event) = schema_with_event(3);
            let group = Group::new_in(pool, &schema).expect("group");
            let array = CounterArray::new_in(pool, 100, round).expect("array");
            let counter = Counter::new_in(pool, 0).expect("counter");
            assert_eq!(group.read(), [0; 11], "{name}, round {round}");
            for turn in 1..=3 {
                group.commit(event, [1, 2, 3, 4, 5, 6, 7, 8]);
                array.iter().for_each(|counter| counter.add(turn));
                counter.add(round);
                cpus().for_each(|cpu| _ = pool.drain(cpu).expect("drained before"));
                assert_eq!(counter.read(), round * turn, "{name}, round {round}");
                assert_eq!(group.read()[7], 8 * turn, "{name}, round {round}");
            }
            assert!(array.iter().all(|counter| counter.read() == round + 6), "{name}, round {round}");
            counter.set(5);
            cpus().for_each(|cpu| _ = pool.drain(cpu).expect("drained before"));
            assert_eq!(counter.read(), 5);
            if round % 5 == 4 {
                drop((group, array, counter));
                pool.trim().expect("trimmed");
            }
        }
    }
}

#[test]
fn slots_that_are_taken_after_a_trim_start_at_zero_in_both_residues() {
    for Named { name, pool } in &flexible_pools() {
        if !may_drain(pool) {
            return;
        }
        let drain = || cpus().for_each(|cpu| _ = pool.drain(cpu).expect("drained before"));
        let kept = Counter::new_in(pool, 0).expect("counter");
        let dropped = CounterArray::new_in(pool, 800, 0).expect("array");
        // one residue after the other has a part of the array
        for _ in 0..2 {
            kept.inc();
            dropped.iter().for_each(|counter| counter.add(1000));
            drain();
        }
        drop(dropped);
        pool.trim().expect("trimmed");
        // the residue that was not current at the trim is now
        kept.inc();
        drain();
        let counters = CounterArray::new_in(pool, 400, 7).expect("array");
        assert!(counters.iter().all(|counter| counter.read() == 7), "{name}");
        let gauges: Vec<FloatGauge> =
            (0..100).map(|_| FloatGauge::new_in(pool, 0.0).expect("gauge")).collect();
        gauges.iter().for_each(|gauge| gauge.add(5.0));
        drain();
        assert!(gauges.iter().all(|gauge| gauge.read() == 5.0), "{name}");
        assert_eq!(kept.read(), 3, "{name}");
    }
}

#[test]
fn a_drained_cpu_has_a_block_again_with_its_first_update() {
    let pool = Pool::builder().placement(Placement::Flexible).unit_bytes(4096).build().expect("pool");
    if !may_drain(&pool) || pool.mode() != Mode::Rseq {
        return;
    }
    // more parts than a drain makes blocks ready for
    let counters: Vec<Vec<Counter>> =
        (0..100).map(|_| (0..512).map(|_| Counter::new_in(&pool, 0).expect("counter")).collect()).collect();
    let cpu = cpus().next().expect("a CPU");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(os::pin(0, &[cpu.index()]), "pinned");
            for round in 1..=20 {
                pool.drain(cpu).expect("drained before");
                for counter in counters.iter().map(|counters| &counters[0]) {
                    assert_eq!((counter.read_cpu(cpu), counter.read()), (0, round - 1));
                    counter.inc();
                    assert_eq!((counter.read_cpu(cpu), counter.fallback_part()), (1, 0), "round {round}");
                }
            }
        });
    });
    assert_eq!((pool.shortfalls(), pool.mode()), (0, Mode::Rseq));
}

#[test]
fn a_drained_cpu_leaves_its_memory_and_what_it_counted() {
    let pool = Pool::builder().placement(Placement::Flexible).build().expect("pool");
    if !may_drain(&pool) || pool.mode() != Mode::Rseq {
        return;
    }
    let array = CounterArray::new_in(&pool, 32_768, 0).expect("array");
    // on one CPU: each that is drained has its turn of the two copies of the residue
    let cpu = cpus().next().expect("a CPU").index();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(os::pin(0, &[cpu]), "pinned");
            array.iter().for_each(|counter| counter.inc());
        });
    });
    let before = pool.memory().expect("smaps").resident;
    let drained: usize = cpus().map(|cpu| pool.drain(cpu).expect("drained before").bytes).sum();
    assert!(drained >= 32_768 * 8, "{drained}");
    let mut values = vec![0; 32_768];
    array.fold_into(&mut values).expect("room");
    assert!(values.iter().all(|&value| value == 1));
    // one residue in place of one unit
    let after = pool.memory().expect("smaps").resident;
    assert!(after <= before + 64 * 1024, "{after} after {before}");
}

#[test]
fn synthetic_cpus_count_and_are_drained_and_only_those_have_memory() {
    let topology = Topology::synthetic(1024).build().expect("topology");
    let pool = Pool::builder().placement(Placement::Flexible).topology(topology).build().expect("pool");
    let counter = Counter::new_in(&pool, 7).expect("counter");
    for cpu in [1000, 1001, 1023].map(CpuId::new) {
        counter.add_on_synthetic(cpu, 100).expect("not ours");
    }
    assert_eq!((counter.read(), pool.active_cpus().len()), (307, 3));
    assert_eq!(counter.read_cpu(CpuId::new(1001)), 100);
    let drained = pool.drain(CpuId::new(1001)).expect("no sections there");
    if pool.mode() == Mode::Striped {
        assert_eq!((drained.blocks, counter.read(), counter.read_cpu(CpuId::new(1001))), (0, 307, 100));
        return;
    }
    assert_eq!((drained.blocks, counter.read(), counter.read_cpu(CpuId::new(1001))), (1, 307, 0));
    assert_eq!(pool.active_cpus().to_string(), "1000,1023");
    counter.add_on_synthetic(CpuId::new(1001), 1).expect("not ours");
    assert_eq!((counter.read(), counter.read_cpu(CpuId::new(1001))), (308, 1));
    assert_eq!(pool.drain(CpuId::new(70_000)).expect("nothing to do").blocks, 0);
}

#[test]
fn other_placements_have_nothing_to_drain() {
    let pool = Pool::builder().placement(Placement::Fixed).build().expect("pool");
    let counter = Counter::new_in(&pool, 0).expect("counter");
    counter.inc();
    assert!(cpus().all(|cpu| pool.drain(cpu).expect("nothing to do").blocks == 0));
    pool.expect(&CpuSet::new());
    assert_eq!(counter.read(), 1);
}

#[test]
fn a_child_goes_on_and_drains_on_its_own() {
    for Named { name, pool } in &flexible_pools() {
        if !may_drain(pool) {
            return;
        }
        let kit = Kit::new(pool);
        let (stop, turns) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let _stop_at_end = StopAtEnd(&stop);
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    kit.turn();
                    turns.fetch_add(1, Ordering::Relaxed);
                }
            });
            // forks meet the other threads in the middle of drains and announcements
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    cpus().for_each(|cpu| _ = pool.drain(cpu).expect("drained before"));
                }
            });
            for _ in 0..common::scaled(20) {
                let child = || {
                    let before = kit.values();
                    for _ in 0..100 {
                        kit.turn();
                        cpus().for_each(|cpu| _ = pool.drain(cpu).expect("drained before"));
                    }
                    Counter::new_in(pool, 3).expect("counter").read() == 3 && grown(&kit, &before)
                };
                let ((), status) = os::fork(child, || ());
                assert!(status.success(), "{name}: {status}");
            }
        });
        kit.check(turns.load(Ordering::Relaxed), name);
    }
}

fn grown(kit: &Kit, before: &[u64]) -> bool {
    // a turn that the fork cut in half stays so in the child
    kit.has_grown(before, 100)
}

#[test]
fn a_refused_barrier_leaves_everything_where_it_was() {
    let pool = Pool::builder().placement(Placement::Flexible).build().expect("pool");
    let counter = Counter::new_in(&pool, 0).expect("counter");
    counter.inc();
    for cpu in cpus() {
        match pool.drain(cpu) {
            Ok(_) => {}
            Err(error) => assert!(matches!(error, Error::System { operation: "membarrier", .. }), "{error}"),
        }
        counter.inc();
    }
    assert_eq!(counter.read(), 1 + os::cpus().len() as u64);
}

#[test]
fn callbacks_are_called_for_drains_until_their_guard_is_dropped() {
    let topology = Topology::synthetic(1024).build().expect("topology");
    let pool = Pool::builder().placement(Placement::Flexible).topology(topology).build().expect("pool");
    let counter = Counter::new_in(&pool, 0).expect("counter");
    let heard = std::sync::Arc::new(AtomicU64::new(0));
    let callback = pool.on_moved({
        let heard = std::sync::Arc::clone(&heard);
        move |cpu, drained| {
            _ = heard.fetch_add(u64::from(cpu.get()) + drained.blocks as u64, Ordering::Relaxed)
        }
    });
    let count_and_drain = || {
        counter.add_on_synthetic(CpuId::new(1000), 1).expect("not ours");
        pool.drain(CpuId::new(1000)).expect("no sections there");
        pool.drain(CpuId::new(1000)).expect("nothing left");
    };
    count_and_drain();
    // without rseq stripes stay where they are
    let moved = if pool.mode() == Mode::Striped { 0 } else { 1001 };
    assert_eq!(heard.load(Ordering::Relaxed), moved);
    drop(callback);
    count_and_drain();
    assert_eq!((heard.load(Ordering::Relaxed), counter.read()), (moved, 2));
}
