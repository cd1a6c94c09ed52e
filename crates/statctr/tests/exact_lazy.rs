//! Lazy objects: exact whoever writes, one instance while one CPU writes, zero when made again.
#![cfg(not(feature = "uniprocessor"))]

mod common;

use common::{Deadline, StopAtEnd, budget, os};
use statctr::topology::{CpuId, Topology};
use statctr::{Combine, Error, LazyGroup, LazyPool, Mode, PerConcurrencyId, PerCpu, PerNode, Scope};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const FLOW: [Combine; 4] = [Combine::Sum, Combine::Sum, Combine::Max, Combine::Or];

fn pool<S: Scope>() -> LazyPool<S> {
    LazyPool::new(FLOW).expect("pool")
}

/// Makes update number `turn` of a writer.
fn turn<S: Scope>(flow: &LazyGroup<S>, turn: u64) {
    flow.update([1, 1500, turn, 1 << (turn % 48)]);
}

fn check([packets, bytes, last, flags]: [u64; 4], turns: u64, most: u64, context: &str) {
    assert_eq!((packets, bytes), (turns, 1500 * turns), "{context}: sums");
    assert_eq!(last, most.saturating_sub(1), "{context}: maximum");
    let expected = if most >= 48 { (1 << 48) - 1 } else { (1 << most) - 1 };
    assert_eq!(flags, expected, "{context}: or");
}

/// Writers that are moved about, and a reader to whom nothing may step back.
fn storm<S: Scope>(name: &str, pool: &LazyPool<S>) {
    let flows: Vec<_> = (0..3).map(|_| pool.create().expect("object")).collect();
    let (stop, turns, most) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _stop_at_end = StopAtEnd(&stop);
        let writers: Vec<_> = (0..4)
            .map(|_| {
                let (send, thread) = std::sync::mpsc::channel();
                let (flows, stop, turns, most) = (&flows, &stop, &turns, &most);
                scope.spawn(move || {
                    send.send(os::thread_id()).expect("wanted");
                    let mut own = 0;
                    while !stop.load(Ordering::Relaxed) {
                        for _ in 0..16 {
                            flows.iter().for_each(|flow| turn(flow, own));
                            own += 1;
                        }
                        turns.fetch_add(16, Ordering::Release);
                    }
                    most.fetch_max(own, Ordering::Relaxed);
                });
                thread.recv().expect("started")
            })
            .collect();
        scope.spawn(|| {
            let mut before = [0; 4];
            while !stop.load(Ordering::Relaxed) {
                let done = turns.load(Ordering::Acquire);
                let now = flows[1].read();
                assert!(now[0] >= done, "{name}: {now:?} of {done} turns: not visible");
                assert!(now.iter().zip(before).all(|(now, before)| *now >= before), "{name}: {now:?}");
                if pool.mode() == Mode::Rseq {
                    assert_eq!(now[1], 1500 * now[0], "{name}: half an update");
                }
                before = now;
            }
        });
        os::while_moving(&writers, || os::sleep(budget()));
    });
    for flow in &flows {
        check(flow.read(), turns.load(Ordering::Relaxed), most.load(Ordering::Relaxed), name);
    }
    println!("{name}, {}: {turns:?} turns, {} instances", pool.mode(), flows[0].instances());
}

#[test]
fn every_scope_is_exact_while_writers_move() {
    storm("per CPU", &pool::<PerCpu>());
    storm("per node", &pool::<PerNode>());
    let topology = Topology::current().expect("/sys");
    for width in common::widths() {
        let pool = LazyPool::<PerCpu>::builder(FLOW)
            .topology(topology.clone())
            .max_vector(width)
            .build()
            .expect("pool");
        storm(&format!("per CPU, {width:?}"), &pool);
    }
    // the kernel has the field where it maintains 28 bytes of an area; and the thread has an area
    let size = os::rseq_feature_size();
    let ids = size >= 28 && statctr::registration().is_some();
    match LazyPool::<PerConcurrencyId>::new(FLOW) {
        Ok(pool) => {
            assert!(ids, "at a feature size of {size}");
            storm("per concurrency id", &pool);
        }
        Err(error) => assert!(matches!(error, Error::BadSetting(_)) && !ids, "{error}, at {size}"),
    }
}

#[test]
fn items_are_joined_as_they_were_meant_to_be_in_every_place_and_width() {
    let topology = Topology::current().expect("/sys");
    let top = 1 << 63;
    for width in common::widths() {
        // each kind in each place
        for turn in 0..4 {
            let items = [0, 1, 2, 3].map(|place| FLOW[(place + turn) % 4]);
            let pool = LazyPool::<PerCpu>::builder(items)
                .topology(topology.clone())
                .max_vector(width)
                .build()
                .expect("pool");
            let flow = pool.create().expect("object");
            let joined = |from: [u64; 4]| [0, 1, 2, 3].map(|place| from[(place + turn) % 4]);
            flow.update(joined([u64::MAX, 5, 7, 1]));
            flow.update(joined([3, top, 6, 4]));
            assert_eq!(flow.read(), joined([2, top + 5, 7, 5]), "{width:?}, {items:?}");
            // maxima have no sign
            flow.update(joined([0, top, top + 9, top]));
            flow.update(joined([0, 0, 8, 0]));
            flow.update(joined([0, 0, top - 1, 0]));
            assert_eq!(flow.read(), joined([2, 5, top + 9, top + 5]), "{width:?}, {items:?}");
        }
    }
}

#[test]
fn a_second_writer_gets_an_instance_of_its_own() {
    let pool = pool::<PerCpu>();
    let cpus = os::cpus();
    let flow = pool.create().expect("object");
    let run_on = |cpu: usize| {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                assert!(os::pin(0, &[cpu]), "pinned");
                (0..1000).for_each(|number| turn(&flow, number));
            });
            thread.join().expect("joined");
        });
    };
    for writers in 1..4 {
        run_on(cpus[0]);
        // a stripe is a thread's where CPUs are not told
        assert!(flow.instances() == 1 || cfg!(feature = "portable"), "after {writers} writers on one CPU");
    }
    check(flow.read(), 3000, 1000, "one CPU");
    if cpus.len() > 1 && !cfg!(feature = "portable") {
        run_on(cpus[1]);
        assert_eq!(flow.instances(), 2);
        run_on(cpus[1]);
        assert_eq!(flow.instances(), 2);
        let places = flow.instance_addresses();
        assert_eq!(places.iter().map(|(cpu, _)| *cpu).collect::<Vec<_>>(), [Some(cpus[0]), Some(cpus[1])]);
        check(flow.read(), 5000, 1000, "two CPUs");
        // the first, too, goes where it does not disturb the other
        run_on(cpus[0]);
        assert_eq!(flow.instances(), 2);
        let lines: Vec<usize> = flow.instance_addresses()[1..].iter().map(|(_, place)| place / 64).collect();
        assert!(lines.len() == 2 && lines[0] != lines[1], "{lines:?}");
        assert!(
            !lines.contains(&(flow.instance_addresses()[0].1 / 64)),
            "nobody writes the object's line any more"
        );
        check(flow.read(), 6000, 1000, "two CPUs");
    }
}

#[test]
fn many_synthetic_cpus_have_an_instance_each_and_leave_nothing_behind() {
    let topology = Topology::synthetic(1024).build().expect("topology");
    let pool = LazyPool::<PerCpu>::builder(FLOW).topology(topology.clone()).build().expect("pool");
    let cpus = (0..20).map(|number| CpuId::new(900 + number * 6));
    let mut cpus: Vec<_> = cpus.map(|cpu| pool.impersonate(cpu).expect("not ours")).collect();
    for round in 0..50 {
        let flow = pool.create().expect("object");
        assert_eq!((flow.read(), flow.instances()), ([0; 4], 1), "round {round}");
        for (number, cpu) in (0u64..).zip(&mut cpus) {
            for _ in 0..2 {
                cpu.update(&flow, [1, 10, number, 1 << number]).expect("of this pool");
            }
        }
        assert_eq!(flow.read(), [40, 400, 19, (1 << 20) - 1], "round {round}");
        if pool.shortfalls() == 0 {
            assert_eq!(flow.instances(), 20, "round {round}");
        }
        turn(&flow, 0);
        assert_eq!(flow.read()[0], 41);
    }
    assert_eq!(pool.shortfalls(), 0, "memory was kept ready");
    let refused = |cpu| matches!(pool.impersonate(cpu), Err(Error::CannotImpersonate { .. }));
    assert!(refused(CpuId::new(os::cpus()[0] as u32)), "a real one");
    assert!(refused(CpuId::new(900)), "one that somebody is");
    cpus.clear();
    assert!(!refused(CpuId::new(900)), "nobody is any more");
    let other = LazyPool::<PerCpu>::builder(FLOW)
        .topology(topology.clone())
        .build()
        .expect("topology")
        .create()
        .expect("object");
    let mut cpu = pool.impersonate(CpuId::new(901)).expect("not ours");
    assert!(cpu.update(&other, [1; 4]).is_err() && other.read() == [0; 4]);
}

#[test]
fn a_cpu_gets_an_instance_of_its_own_whatever_its_number() {
    let topology = Topology::synthetic(65_536).build().expect("topology");
    let pool = LazyPool::<PerCpu>::builder(FLOW).topology(topology).build().expect("pool");
    let first = os::cpus().into_iter().max().unwrap_or(0) as u32 + 64;
    // so many that a table takes the place of the last pair, whose upper bits are then 1 + 32 767
    let few = (0..6).map(|cpu| first + cpu);
    let numbers: Vec<_> = few.chain([32_765, 32_766, 32_767, 32_768, 65_534, 65_535]).collect();
    let mut cpus: Vec<_> =
        numbers.iter().map(|cpu| pool.impersonate(CpuId::new(*cpu)).expect("not ours")).collect();
    let flow = pool.create().expect("object");
    let turns = 2 * cpus.len() as u64;
    for _ in 0..2 {
        for cpu in &mut cpus {
            cpu.update(&flow, [1, 10, 7, 1]).expect("of this pool");
        }
    }
    assert_eq!(flow.read(), [turns, 10 * turns, 7, 1]);
    assert_eq!((flow.instances(), flow.shared_part()), (numbers.len(), [0; 4]));
    let mut found: Vec<_> = flow.instance_addresses().iter().filter_map(|(cpu, _)| *cpu).skip(1).collect();
    found.sort_unstable();
    assert_eq!(found, numbers.iter().map(|cpu| *cpu as usize).collect::<Vec<_>>());
    for number in [65_536, i32::MAX as u32 - 1, i32::MAX as u32, u32::MAX] {
        let refused = pool.impersonate(CpuId::new(number));
        assert!(matches!(refused, Err(Error::CannotImpersonate { cpu }) if cpu == number), "{refused:?}");
    }
}

#[test]
fn no_more_instances_are_counted_than_there_are_writers_while_the_owner_gets_another() {
    let topology = Topology::synthetic(1024).build().expect("topology");
    let pool = LazyPool::<PerCpu>::builder(FLOW).topology(topology).build().expect("pool");
    let mut cpus = [900, 901].map(|cpu| pool.impersonate(CpuId::new(cpu)).expect("not ours"));
    // the reader comes between the first two updates in one object of some thousand
    for _ in 0..10_000 {
        let flow = pool.create().expect("object");
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _stop_at_end = StopAtEnd(&is_done);
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    assert!(flow.instances() <= 2);
                }
            });
            for turn in 0..4 {
                // where one fails the reader's thread ends all the same
                let _ = cpus[turn % 2].update(&flow, [1; 4]);
            }
        });
        assert_eq!(flow.read()[0], 4);
    }
}

#[test]
fn every_cpu_keeps_its_instance_while_a_table_takes_the_place_of_the_last_pair() {
    const THREADS: u64 = 4;
    const CPUS: u64 = 4;
    let first = os::cpus().into_iter().max().unwrap_or(0) as u32 + 64;
    let topology = Topology::synthetic(first + (THREADS * CPUS) as u32).build().expect("topology");
    let pool = LazyPool::<PerCpu>::builder(FLOW).topology(topology).build().expect("pool");
    let end = Deadline::after(budget());
    let (mut rounds, mut crowded) = (0, 0);
    while !end.is_over() {
        // objects are new, so that all threads come to their pairs and tables at once
        let flows: Vec<_> = (0..50).map(|_| pool.create().expect("object")).collect();
        let start = std::sync::Barrier::new(THREADS as usize);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (flows, pool, start) = (&flows, &pool, &start);
                scope.spawn(move || {
                    let cpus = (0..CPUS).map(|cpu| CpuId::new(first + (thread * CPUS + cpu) as u32));
                    let mut cpus: Vec<_> = cpus.map(|cpu| pool.impersonate(cpu).expect("not ours")).collect();
                    start.wait();
                    for (flow, time) in flows.iter().zip(0u64..) {
                        for _ in 0..3 {
                            for cpu in &mut cpus {
                                cpu.update(flow, [1, 10, time, 1 << thread]).expect("of this pool");
                            }
                            turn(flow, 0);
                        }
                    }
                });
            }
        });
        for (flow, time) in flows.iter().zip(0u64..) {
            let (made_up, real) = (3 * THREADS * CPUS, 3 * THREADS);
            let all = [made_up + real, 10 * made_up + 1500 * real, time, (1 << THREADS) - 1];
            assert_eq!(flow.read(), all, "round {rounds}, object {time}");
            let addresses = flow.instance_addresses();
            let mut indices: Vec<_> = addresses.iter().skip(1).map(|(index, _)| *index).collect();
            indices.sort_unstable();
            assert!(
                indices.windows(2).all(|two| two[0] != two[1]),
                "an index has two instances: {addresses:?}"
            );
            crowded += usize::from(flow.instances() as u64 > THREADS * CPUS);
        }
        rounds += 1;
    }
    println!("{rounds} rounds, {crowded} objects with an instance for each of {} CPUs", THREADS * CPUS);
    assert!(rounds == 0 || crowded > 0 || cfg!(miri), "tables were used");
}

/// Returns the part of `updates` that used the objects' atomic words, in each round of so many.
fn atomic_parts(
    flows: &[LazyGroup<PerCpu>],
    rounds: usize,
    updates: usize,
    mut round: impl FnMut(),
) -> Vec<f64> {
    let mut atomic = 0;
    let parts = (0..rounds).map(|_| {
        let before = atomic;
        round();
        atomic = flows.iter().map(|flow| flow.shared_part()[0]).sum();
        (atomic - before) as f64 / updates as f64
    });
    parts.collect()
}

/// Rounds after which every object has what it asks for: the second CPU's instance comes with its
/// first update, the owner's further one with the owner's next.
const SETTLED: usize = 3;

#[test]
fn a_million_premade_objects_are_hardly_ever_updated_atomically() {
    let pool = pool::<PerCpu>();
    let cpus = os::cpus();
    let count = if cfg!(miri) { 100 } else { 1_000_000 };
    let flows: Vec<_> = (0..count).map(|_| pool.create().expect("object")).collect();
    let parts = atomic_parts(&flows, SETTLED + 1, 3 * cpus.len() * count, || {
        std::thread::scope(|scope| {
            // in turns, so that an owner asks for its further instance before others have theirs
            // for all objects
            scope.spawn(|| {
                for part in flows.chunks(1 << 15) {
                    for &cpu in cpus.iter().chain(&cpus) {
                        os::pin(0, &[cpu]);
                        part.iter().for_each(|flow| turn(flow, 0));
                    }
                }
            });
        });
        std::thread::scope(|scope| {
            for &cpu in &cpus {
                let flows = &flows;
                scope.spawn(move || {
                    os::pin(0, &[cpu]);
                    flows.iter().for_each(|flow| turn(flow, 0));
                });
            }
        });
    });
    println!("{} objects, {} CPUs, {}: {parts:.7?}", flows.len(), cpus.len(), pool.mode());
    let updates = 3 * (cpus.len() * parts.len()) as u64;
    assert!(flows.iter().all(|flow| flow.read() == [updates, 1500 * updates, 0, 1]));
    assert!(parts[SETTLED..].iter().all(|part| *part < 0.001), "{parts:?}");
}

#[test]
fn sixteen_synthetic_cpus_get_their_instances_without_being_expected() {
    let first = os::cpus().into_iter().max().unwrap_or(0) as u32 + 64;
    let topology = Topology::synthetic(first + 16).build().expect("topology");
    let pool = LazyPool::<PerCpu>::builder(FLOW).topology(topology.clone()).build().expect("pool");
    let flows: Vec<_> = (0..65_536).map(|_| pool.create().expect("object")).collect();
    let mut cpus: Vec<_> =
        (first..first + 16).map(|cpu| pool.impersonate(CpuId::new(cpu)).expect("synthetic")).collect();
    let parts = atomic_parts(&flows, SETTLED + 1, 16 * flows.len(), || {
        for cpu in &mut cpus {
            flows.iter().for_each(|flow| cpu.update(flow, [1, 10, 0, 1]).expect("of this pool"));
        }
    });
    println!("{} objects, 16 synthetic CPUs: {parts:.5?}", flows.len());
    assert!(flows.iter().all(|flow| flow.read()[0] == 16 * parts.len() as u64));
    // nobody disturbs them, so there is no update without memory at all
    assert_eq!((parts, pool.shortfalls()), (vec![0.0; SETTLED + 1], 0));
}

#[test]
fn a_pool_goes_with_its_last_object_whoever_drops_it() {
    let end = Deadline::after(budget() / 2);
    while !end.is_over() {
        let pool = pool::<PerCpu>();
        let flows: Vec<_> = (0..100).map(|_| pool.create().expect("object")).collect();
        let parts: Vec<Vec<_>> = {
            let mut flows = flows.into_iter();
            (0..4).map(|_| flows.by_ref().take(25).collect()).collect()
        };
        std::thread::scope(|scope| {
            for part in parts {
                scope.spawn(move || {
                    part.iter().for_each(|flow| turn(flow, 3));
                    assert!(part.iter().all(|flow| flow.read() == [1, 1500, 3, 8]));
                });
            }
            // while they go
            drop(pool);
        });
    }
    // nothing is left: not even their address space
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps").lines().count();
    for _ in 0..200 {
        let pool = pool::<PerCpu>();
        let flow = pool.create().expect("object");
        drop(pool);
        turn(&flow, 1);
    }
    let after = std::fs::read_to_string("/proc/self/maps").expect("maps").lines().count();
    assert!(after < maps + 100, "{after} mappings after {maps}");
}

#[test]
fn objects_created_and_dropped_on_many_threads_are_exact() {
    let pool = pool::<PerCpu>();
    let shared: Vec<_> = (0..100).map(|_| pool.create().expect("object")).collect();
    let (end, turns) = (Deadline::after(budget()), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut kept = Vec::new();
                while !end.is_over() {
                    for number in 0..200 {
                        let flow = pool.create().expect("object");
                        assert_eq!(flow.read(), [0; 4]);
                        turn(&flow, 5);
                        assert_eq!(flow.read(), [1, 1500, 5, 32]);
                        shared.iter().for_each(|flow| turn(flow, 7));
                        turns.fetch_add(1, Ordering::Relaxed);
                        kept.push(flow);
                        if number % 3 == 0 {
                            kept.swap_remove(number % kept.len());
                        }
                    }
                    assert!(kept.iter().all(|flow| flow.read() == [1, 1500, 5, 32]));
                    kept.clear();
                }
            });
        }
    });
    let turns = turns.into_inner();
    assert!(shared.iter().all(|flow| flow.read() == [turns, 1500 * turns, 7, 128]));
    let memory = pool.memory().expect("smaps");
    assert!(memory.resident > 0 && memory.resident <= memory.reserved, "{memory:?}");
    let object = pool.create().expect("object");
    drop(pool);
    turn(&object, 1);
    assert_eq!(object.read()[0], 1, "objects keep their memory");
}

#[test]
fn a_forked_child_goes_on() {
    let pool = pool::<PerCpu>();
    let flow = pool.create().expect("object");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop_at_end = StopAtEnd(&stop);
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let other = pool.create().expect("object");
                    turn(&other, 1);
                    turn(&flow, 1);
                }
            });
        }
        for _ in 0..common::scaled(20) {
            let child = || {
                let before = flow.read()[0];
                let others: Vec<_> = (0..300).filter_map(|_| pool.create().ok()).collect();
                others.iter().for_each(|other| turn(other, 1));
                (0..100).for_each(|number| turn(&flow, number));
                flow.read()[0] == before + 100 && others.iter().all(|other| other.read()[0] == 1)
            };
            let ((), status) = os::fork(child, || ());
            assert!(status.success(), "{status}");
        }
    });
}
