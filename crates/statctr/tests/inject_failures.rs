//! Requests for memory, and others to the kernel, that fail at every site: what cannot be had is
//! counted in the fallback, the mode says so, and nothing is lost.
//!
//! Needs the feature `inject`: `cargo test -p statctr --features inject --test inject_failures`.
#![cfg(all(feature = "inject", not(feature = "uniprocessor")))]

mod common;

use common::kit::Kit;
use common::{Named, flexible_pools, os};
use statctr::inject::{self, Site};
use statctr::topology::{CpuId, CpuSet, Topology};
use statctr::{
    Combine, Counter, CounterArray, Error, Histogram, LazyPool, Mode, PerCpu, Placement, Pool, StaticCounter,
    StaticFamily, Unit,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Injections are the whole program's: one test at a time. They are taken back at its end.
struct NoCompanions(#[allow(dead_code)] MutexGuard<'static, ()>);

impl NoCompanions {
    fn new() -> NoCompanions {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = NoCompanions(ALONE.lock().unwrap_or_else(PoisonError::into_inner));
        inject::clear();
        alone
    }
}

impl Drop for NoCompanions {
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
fn no_count_is_lost_whatever_request_fails() {
    let _alone = NoCompanions::new();
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
    let _alone = NoCompanions::new();
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
fn without_address_space_setup_fails_and_names_the_size() {
    let _alone = NoCompanions::new();
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
    let _alone = NoCompanions::new();
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

const FLOW: [Combine; 4] = [Combine::Sum, Combine::Sum, Combine::Max, Combine::Or];

#[test]
fn synthetic_cpus_for_which_no_memory_is_to_be_had_are_refused_and_the_mode_says_so() {
    let _alone = NoCompanions::new();
    let topology = Topology::synthetic(2048).build().expect("topology");
    let pool = Pool::builder().topology(topology).placement(Placement::Flexible).build().expect("pool");
    if pool.mode() != Mode::Rseq {
        return;
    }
    let counter = Counter::new_in(&pool, 0).expect("counter");
    counter.add_on_synthetic(CpuId::new(999), 3).expect("memory");
    let mut counted = 1;
    inject::fail(Site::Map, u64::MAX);
    let refused = (1000..2048).find(|&cpu| {
        let done = counter.add_on_synthetic(CpuId::new(cpu), 3).is_ok();
        counted += u64::from(done);
        !done
    });
    assert!(refused.is_some() && counted > 1, "first some is left: {counted}");
    assert_eq!((counter.read(), pool.mode()), (3 * counted, Mode::ShortOfMemory));
    inject::clear();
    pool.expect(&CpuSet::new());
    assert_eq!(pool.mode(), Mode::Rseq);
    counter.add_on_synthetic(CpuId::new(refused.unwrap_or_default()), 3).expect("memory again");
    assert_eq!(counter.read(), 3 * counted + 3);
}

#[test]
fn lazy_objects_without_memory_use_their_atomic_words_and_the_mode_says_so() {
    let _alone = NoCompanions::new();
    let topology = Topology::synthetic(2048).build().expect("topology");
    let pool = LazyPool::<PerCpu>::builder(FLOW).topology(topology.clone()).build().expect("pool");
    if pool.mode() != Mode::Rseq {
        return;
    }
    let cpus = (1000..1030).map(CpuId::new);
    let mut cpus: Vec<_> = cpus.map(|cpu| pool.impersonate(cpu).expect("synthetic")).collect();
    let mut shortfalls = 0;
    // the first writer needs nothing; the table comes after the places in the object
    for (site, least) in [(Site::Instance, 2), (Site::Table, 30)] {
        for failures in [1, 10, u64::MAX] {
            let what = format!("{site:?} fails {failures} times");
            let flow = pool.create().expect("object");
            inject::fail(site, failures);
            for (round, time) in (0..3).zip(0u64..) {
                for (number, cpu) in (0u64..).zip(&mut cpus) {
                    cpu.update(&flow, [1, 10, time, 1 << number]).expect("of this pool");
                    let all = 30 * round + number + 1;
                    assert_eq!(flow.read()[..2], [all, 10 * all], "{what}");
                }
            }
            let used = failures - inject::failures_left(site);
            assert_eq!(flow.read(), [90, 900, 2, (1 << 30) - 1], "{what}");
            assert_eq!((pool.shortfalls() - shortfalls, pool.mode()), (used, Mode::ShortOfMemory), "{what}");
            assert_eq!(flow.instances() < least, failures == u64::MAX, "{what}: {}", flow.instances());
            shortfalls += used;
            inject::clear();
            pool.keep_ready().expect("memory");
            assert_eq!(pool.mode(), Mode::Rseq, "{what}");
            for cpu in &mut cpus {
                cpu.update(&flow, [1; 4]).expect("of this pool");
            }
            assert_eq!((flow.read()[0], flow.instances()), (120, 30), "{what}: made good");
        }
    }
}

#[test]
fn updates_have_memory_again_soon_after_the_kernel_gives_some() {
    let _alone = NoCompanions::new();
    let topology = Topology::synthetic(2048).build().expect("topology");
    let pool = LazyPool::<PerCpu>::builder(FLOW).topology(topology.clone()).build().expect("pool");
    let flows: Vec<_> = (0..1000).map(|_| pool.create().expect("object")).collect();
    if pool.mode() != Mode::Rseq {
        return;
    }
    let mut cpus: Vec<_> =
        (1000..1030).map(|cpu| pool.impersonate(CpuId::new(cpu)).expect("synthetic")).collect();
    let mut round = || {
        let before = pool.shortfalls();
        for cpu in &mut cpus {
            flows.iter().for_each(|flow| cpu.update(flow, [1, 10, 0, 1]).expect("of this pool"));
        }
        pool.shortfalls() - before
    };
    inject::fail(Site::Map, u64::MAX);
    assert!(round() > 1000 && round() > 1000, "nothing is to be had");
    assert_eq!(pool.mode(), Mode::ShortOfMemory);
    // the kernel is not asked with each of them
    let asked = u64::MAX - inject::failures_left(Site::Map);
    assert!((5..200).contains(&asked), "{asked} requests");
    inject::clear();
    let missed = round();
    // for instances, and for tables
    assert!(missed <= 2 * 1024, "{missed} go by before the kernel is asked again");
    assert_eq!((round(), pool.mode()), (0, Mode::Rseq));
    assert!(flows.iter().all(|flow| flow.read()[0] == 4 * 30 && flow.instances() == 30));
}

#[test]
fn lazy_objects_cannot_be_made_without_address_space() {
    let _alone = NoCompanions::new();
    inject::fail(Site::Map, u64::MAX);
    assert!(matches!(LazyPool::<PerCpu>::new(FLOW), Err(Error::OutOfMemory { .. })));
    inject::clear();
    let pool = LazyPool::<PerCpu>::new(FLOW).expect("pool");
    inject::fail(Site::Map, u64::MAX);
    assert!(matches!(pool.create(), Err(Error::OutOfMemory { .. })));
    // what is not there at once is not waited for, either
    inject::clear();
    inject::fail(Site::Populate, u64::MAX);
    let flows: Vec<_> = (0..10_000).map(|_| pool.create().expect("object")).collect();
    flows.iter().for_each(|flow| flow.update([1, 10, 5, 1]));
    assert!(flows.iter().all(|flow| flow.read() == [1, 10, 5, 1]));
}

#[test]
fn a_second_cpu_without_memory_uses_the_atomic_words_and_tries_again() {
    let _alone = NoCompanions::new();
    let pool = LazyPool::<PerCpu>::new(FLOW).expect("pool");
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
    if pool.mode() == Mode::ShortOfMemory {
        assert_eq!((pool.shortfalls(), flow.instances()), (50, 2), "tried again each time");
    } else {
        assert_eq!((pool.mode(), flow.instances()), (Mode::Striped, 2));
    }
}

static SHORT: [StaticCounter; 3] =
    [const { StaticCounter::new("short", "counts while there is no memory", Unit::NONE) }; 3];

#[test]
fn static_counters_wait_for_memory_on_words_of_their_own() {
    let _alone = NoCompanions::new();
    StaticCounter::prepare();
    if SHORT[0].mode() != Mode::Rseq {
        println!("skipped: static counters are atomic here");
        return;
    }
    inject::fail(Site::Map, u64::MAX);
    for _ in 0..100 {
        SHORT.iter().for_each(StaticCounter::inc);
    }
    assert!(SHORT.iter().all(|counter| counter.read() == 100 && counter.fallback_part() == 100));
    assert_eq!(StaticCounter::memory().expect("smaps").slots, 0);
    inject::clear();
    // asked for again after at most so many updates
    for _ in 0..2000 {
        SHORT.iter().for_each(StaticCounter::inc);
    }
    assert!(SHORT.iter().all(|counter| counter.read() == 2100 && counter.fallback_part() < 2100));
    assert_eq!(StaticCounter::memory().expect("smaps").slots, 3);
}

/// The error for which a histogram takes more than half a unit: where a section writes 8 bytes at a time there is room
/// for half as many buckets.
const LARGE_ERROR: f64 = if cfg!(target_arch = "aarch64") { 0.004 } else { 0.002 };
static LARGE: StaticFamily<1, Histogram> =
    StaticFamily::of_histograms("large", "a unit for each member", Unit::NONE, ["of"], u64::MAX, LARGE_ERROR);

#[test]
fn a_family_without_memory_for_a_member_counts_in_the_one_for_further_values() {
    let _alone = NoCompanions::new();
    let first = LARGE.get(["first"]).expect("memory");
    inject::fail(Site::Map, u64::MAX);
    assert!(matches!(LARGE.get(["second"]), Err(Error::OutOfMemory { .. })), "nor for further values");
    assert!(std::ptr::eq(first, LARGE.get(["first"]).expect("there")));
    inject::clear();
    let further = LARGE.get([StaticFamily::<1, Histogram>::OVERFLOW]).expect("memory");
    inject::fail(Site::Map, u64::MAX);
    assert!(std::ptr::eq(further, LARGE.get(["second"]).expect("memory")));
    assert_eq!(LARGE.len(), 1);
    inject::clear();
    LARGE.get(["second"]).expect("memory").observe(3);
    assert_eq!((LARGE.len(), further.snapshot().count()), (2, 0), "memory came back");
}
