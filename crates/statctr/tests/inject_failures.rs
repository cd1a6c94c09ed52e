//! Requests for memory, and others to the kernel, that fail at every site: what cannot be had is
//! counted in the fallback, the mode says so, and nothing is lost.
//!
//! Needs the feature `inject`: `cargo test -p statctr --features inject --test inject_failures`.
#![cfg(all(feature = "inject", not(feature = "uniprocessor")))]

mod common;

use common::kit::Kit;
use common::{Named, flexible_pools, os};
use statctr::inject::{self, Site};
use statctr::topology::{CpuId, CpuSet};
use statctr::{Combine, Counter, CounterArray, Error, LazyPool, Mode, PerCpu, Placement, Pool};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Injections are the whole program's: one test at a time. They are taken back at its end.
struct Alone(#[allow(dead_code)] MutexGuard<'static, ()>);

impl Alone {
    fn new() -> Alone {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = Alone(ALONE.lock().unwrap_or_else(PoisonError::into_inner));
        inject::clear();
        alone
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        inject::clear();
    }
}

fn cpus() -> impl Iterator<Item = CpuId> {
    os::cpus().into_iter().map(|cpu| CpuId::new(cpu as u32))
}

/// Counts in 1000 turns on two threads while everything is asked for that can fail.
fn count_meanwhile(pool: &Pool, kit: &Kit) -> u64 {
    let (turns, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..500 {
                        kit.turn();
                        turns.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let all: CpuSet = cpus().collect();
            while !stop.load(Ordering::Relaxed) {
                cpus().for_each(|cpu| _ = pool.drain(cpu));
                pool.expect(&all);
                let _ = (pool.trim(), pool.prefault(&all), CounterArray::new_in(pool, 10_000, 3));
                std::thread::yield_now();
            }
        });
        let joined: Vec<_> = writers.into_iter().map(|writer| writer.join().is_ok()).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(joined.into_iter().all(|good| good));
    });
    turns.into_inner()
}

#[test]
fn whatever_fails_however_often_nothing_is_lost() {
    let _alone = Alone::new();
    for Named { name, pool } in &flexible_pools() {
        let kit = Kit::new(pool);
        let mut turns = 0;
        for site in inject::SITES {
            for count in [1, 3, u64::MAX] {
                inject::clear();
                inject::fail(site, count);
                turns += count_meanwhile(pool, &kit);
                kit.check(turns, &format!("{name}: {site:?} fails {count} times"));
            }
        }
        inject::clear();
        turns += count_meanwhile(pool, &kit);
        kit.check(turns, name);
    }
}

#[test]
fn a_cpu_without_a_block_counts_in_the_fallback_and_the_mode_says_so() {
    let _alone = Alone::new();
    let pool = Pool::builder().placement(Placement::Flexible).build().expect("pool");
    if pool.mode() != Mode::Rseq {
        return;
    }
    let counter = Counter::new_in(&pool, 0).expect("counter");
    let on_cpus = || cpus().map(|cpu| counter.read_cpu(cpu)).sum::<u64>();
    // the first blocks are given when the counter is made: take them away
    for cpu in cpus() {
        if let Err(error) = pool.drain(cpu) {
            println!("skipped: {error}");
            return;
        }
    }
    inject::fail(Site::Block, 10);
    (0..10).for_each(|_| counter.inc());
    assert_eq!((counter.read(), on_cpus()), (10, 0), "in the fallback cell");
    assert_eq!((pool.mode(), pool.shortfalls()), (Mode::ShortOfMemory, 10));
    counter.inc();
    assert_eq!((counter.read(), on_cpus()), (11, 1), "tried again");
    pool.expect(&CpuSet::new());
    assert_eq!((pool.mode(), pool.shortfalls()), (Mode::Rseq, 10));
}

#[test]
fn without_address_space_setting_up_fails_and_says_what_it_wanted() {
    let _alone = Alone::new();
    for placement in [Placement::Fixed, Placement::Flexible] {
        let pool = Pool::builder().placement(placement).build().expect("pool");
        inject::fail(Site::Map, u64::MAX);
        let error = Counter::new_in(&pool, 0).expect_err("no memory");
        assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
        inject::clear();
        let counter = Counter::new_in(&pool, 5).expect("counter");
        counter.inc();
        assert_eq!(counter.read(), 6);
    }
}

#[test]
fn a_refused_barrier_keeps_the_memory_and_the_counts_on_their_cpu() {
    let _alone = Alone::new();
    let pool = Pool::builder().placement(Placement::Flexible).build().expect("pool");
    let counter = Counter::new_in(&pool, 0).expect("counter");
    counter.add(7);
    let before: Vec<u64> = cpus().map(|cpu| counter.read_cpu(cpu)).collect();
    inject::fail(Site::Membarrier, u64::MAX);
    for cpu in cpus() {
        match pool.drain(cpu) {
            Err(error) => assert_eq!(error.to_string().split(':').next(), Some("membarrier")),
            Ok(drained) => assert_eq!(drained.blocks, 0),
        }
    }
    assert_eq!(cpus().map(|cpu| counter.read_cpu(cpu)).collect::<Vec<_>>(), before);
    counter.add(1);
    assert_eq!(counter.read(), 8);
}

#[test]
fn lazy_objects_without_memory_use_their_atomic_words() {
    let _alone = Alone::new();
    let pool =
        LazyPool::<PerCpu>::new([Combine::Sum, Combine::Sum, Combine::Max, Combine::Or]).expect("pool");
    inject::fail(Site::Map, u64::MAX);
    assert!(matches!(pool.create(), Err(Error::OutOfMemory { .. })));
    inject::clear();
    let cpus = os::cpus();
    let (Some(&first), Some(&second)) = (cpus.first(), cpus.get(1)) else { return };
    let flow = pool.create().expect("object");
    let count_on = |cpu: usize| {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                os::pin(0, &[cpu]);
                (0..100).for_each(|time| flow.update([1, 10, time, 1 << (time % 8)]));
            });
            thread.join().expect("joined");
        });
    };
    inject::fail(Site::Instance, 50);
    count_on(first);
    assert_eq!((flow.instances(), pool.shortfalls()), (1, 0), "the first needs none");
    count_on(second);
    assert_eq!(flow.read(), [200, 2000, 99, 255]);
    if pool.mode() == Mode::Rseq {
        assert_eq!((pool.shortfalls(), flow.instances()), (50, 2), "tried again each time");
    }
}
