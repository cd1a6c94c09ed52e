//! Slots of dropped counters: they start at zero again, their memory goes back to the system, and
//! neighbours that live never notice.
#![cfg(not(feature = "uniprocessor"))]

mod common;

use common::kit::{Kit, Line, schema_with_event};
use common::{Deadline, Named, StopAtEnd, budget, os, pools, pools_by_width, scaled};
use statctr::topology::{CpuId, CpuSet, Topology};
use statctr::{Counter, CounterArray, Group, GroupArray, ItemSpec, Mode, Placement, Pool, Schema};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// Counts on every CPU that there is: `work` runs on each of them.
fn on_every_cpu(work: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        for cpu in os::cpus() {
            let work = &work;
            scope.spawn(move || {
                assert!(os::pin(0, &[cpu]));
                work();
            });
        }
    });
}

#[test]
fn a_slot_starts_at_its_initial_value_again() {
    for Named { name, pool } in pools() {
        for round in 0..200u64 {
            let initial = if round % 3 == 0 { 0 } else { round << 40 };
            let counter = Counter::new_in(&pool, initial).expect("counter");
            let array = CounterArray::new_in(&pool, 9, initial).expect("array");
            let lines: Vec<Line> = [2, 4, 8].map(|width| Line::new(&pool, width)).into();
            assert_eq!(counter.read(), initial, "{name}: round {round}");
            assert!(array.iter().all(|counter| counter.read() == initial), "{name}: round {round}");
            lines.iter().for_each(|line| line.check(0, name));
            let work = || {
                counter.add(round);
                array.iter().for_each(|counter| counter.add(round));
                lines.iter().for_each(Line::turn);
            };
            work();
            let mut turns = 1;
            if round % 50 == 0 {
                on_every_cpu(work);
                turns += os::cpus().len() as u64;
            }
            assert_eq!(counter.read(), initial + turns * round, "{name}: round {round}");
            assert!(array.iter().all(|counter| counter.read() == initial + turns * round), "{name}");
            lines.iter().for_each(|line| line.check(turns, name));
            // the next round finds these slots in another order, and groups where counters were
            if round % 2 == 0 {
                drop(lines);
                drop(counter);
            } else {
                drop(counter);
                drop(array);
            }
        }
        assert_eq!(pool.memory().expect("smaps").slots, 0, "{name}");
    }
}

// what lived in a slot before may have left any number in the word that a line with two copies
// keeps its sequence number in
#[test]
fn lines_with_two_copies_start_at_zero_in_any_old_slot() {
    let machine = Topology::synthetic(128).build().expect("topology");
    let stranger = CpuId::new(100);
    for &width in &common::widths()[..1] {
        let builder = Pool::builder().topology(machine.clone()).placement(Placement::Fixed);
        let pool = builder.max_vector(width).unit_bytes(4096).build().expect("pool");
        let (schema, event) = schema_with_event(30);
        for round in 1..50u64 {
            let before = CounterArray::new_in(&pool, 500, 0).expect("array");
            on_every_cpu(|| {
                before.iter().enumerate().for_each(|(index, counter)| {
                    counter.add(round + index as u64 % 3);
                })
            });
            before.iter().enumerate().for_each(|(index, counter)| {
                counter.add_on_synthetic(stranger, round * 7 + index as u64 % 5).expect("synthetic");
            });
            drop(before);
            let group = Group::new_in(&pool, &schema).expect("group");
            assert!(group.read().iter().all(|value| *value == 0), "{:?}", group.read());
            group.commit(event, [1; 8]);
            on_every_cpu(|| group.commit(event, [1; 8]));
            for item in schema.items() {
                group.add(item, 1);
                group.add_on_synthetic(stranger, item, 5).expect("synthetic");
            }
            let commits = 1 + os::cpus().len() as u64;
            for (index, value) in group.read().into_iter().enumerate() {
                let expected = 6 + if index < 8 { commits } else { 0 };
                assert_eq!(value, expected, "round {round}, item {index}");
            }
        }
    }
}

#[test]
fn a_million_counters_come_and_go() {
    let pool = Pool::builder().placement(Placement::Fixed).build().expect("pool");
    let neighbour = Counter::new_in(&pool, 0).expect("counter");
    let count = scaled(100_000);
    // one at a time: always the same slot
    for _ in 0..count {
        let counter = Counter::new_in(&pool, 0).expect("counter");
        counter.inc();
        neighbour.inc();
        assert_eq!(counter.read(), 1);
    }
    assert_eq!(pool.memory().expect("smaps").reservations, 1);
    // all at once
    let counters: Vec<Counter> = (0..count).map(|_| Counter::new_in(&pool, 0).expect("counter")).collect();
    counters.iter().for_each(Counter::inc);
    assert!(counters.iter().all(|counter| counter.read() == 1));
    assert_eq!(pool.memory().expect("smaps").slots, count + 1);
    drop(counters);
    assert_eq!(pool.memory().expect("smaps").slots, 1);
    assert_eq!(neighbour.read(), count as u64);
}

#[test]
fn threads_that_make_use_and_drop_at_once_get_slots_of_their_own() {
    for Named { name, pool } in pools() {
        let neighbours = Kit::new(&pool);
        let deadline = Deadline::after(budget() / 3);
        let turns = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..3u64 {
                let (pool, neighbours, turns) = (&pool, &neighbours, &turns);
                scope.spawn(move || {
                    let mut mine = 0;
                    while !deadline.is_over() {
                        let kit = Kit::new(pool);
                        let counters: Vec<Counter> = (0..thread * 5)
                            .map(|value| Counter::new_in(pool, value).expect("room"))
                            .collect();
                        kit.turn();
                        counters.iter().for_each(Counter::inc);
                        neighbours.turn();
                        kit.turn();
                        kit.check(2, name);
                        for (value, counter) in counters.iter().enumerate() {
                            assert_eq!(counter.read(), value as u64 + 1, "{name}");
                        }
                        mine += 1;
                    }
                    turns.fetch_add(mine, Ordering::Relaxed);
                });
            }
        });
        neighbours.check(turns.into_inner(), name);
    }
}

#[test]
fn trim_gives_memory_back_and_leaves_the_living_alone() {
    for Named { name, pool } in pools_by_width() {
        // baselines, and either a unit per CPU or the fallback cells
        let units = 1 + if pool.mode() == Mode::Rseq { os::cpus().len() } else { 1 };
        let before = pool.memory().expect("smaps").resident;
        let living = Kit::new(&pool);
        on_every_cpu(|| living.turn());
        let arrays: Vec<CounterArray> =
            (0..20).map(|_| CounterArray::new_in(&pool, 512, 1).expect("array")).collect();
        let more = Kit::new(&pool);
        on_every_cpu(|| {
            arrays.iter().flat_map(CounterArray::iter).for_each(|counter| counter.inc());
            more.turn();
        });
        let full = pool.memory().expect("smaps");
        let pages = arrays.len() * 4096 * units;
        assert!(full.resident >= before + pages, "{name}: {full:?} after {before}");
        let trimmed = pool.trim().expect("trimmed");
        assert_eq!(trimmed.reservations, 0, "{name}: nothing was dropped");
        drop(arrays);
        let trimmed = pool.trim().expect("trimmed");
        let after = pool.memory().expect("smaps");
        assert!(trimmed.reservations > 10, "{name}: {trimmed:?}");
        assert!(after.resident + pages * 3 / 4 <= full.resident, "{name}: {full:?}, {after:?}");
        let turns = os::cpus().len() as u64;
        living.check(turns, name);
        more.check(turns, name);
        on_every_cpu(|| living.turn());
        living.check(2 * turns, name);
        // what was trimmed is zero
        let again = CounterArray::new_in(&pool, 512, 0).expect("array");
        on_every_cpu(|| again.iter().for_each(|counter| counter.inc()));
        assert!(again.iter().all(|counter| counter.read() == turns), "{name}");
    }
}

#[test]
fn trim_inside_a_reservation_gives_whole_pages_back() {
    let pool = Pool::builder().placement(Placement::Fixed).unit_bytes(256 << 10).build().expect("pool");
    let first = Counter::new_in(&pool, 0).expect("counter");
    let middle = CounterArray::new_in(&pool, 20_000, 3).expect("array");
    let last = CounterArray::new_in(&pool, 9, 2).expect("array");
    on_every_cpu(|| {
        first.inc();
        middle.iter().chain(last.iter()).for_each(|counter| counter.inc());
    });
    let full = pool.memory().expect("smaps").resident;
    drop(middle);
    let trimmed = pool.trim().expect("trimmed");
    assert!(trimmed.chunks >= 2500 && trimmed.reservations == 0, "{trimmed:?}");
    let after = pool.memory().expect("smaps").resident;
    assert!(after + 150_000 * 2 < full, "{full} to {after}");
    let turns = os::cpus().len() as u64;
    assert_eq!(first.read(), turns);
    assert!(last.iter().all(|counter| counter.read() == 2 + turns));
    let again = CounterArray::new_in(&pool, 20_000, 0).expect("array");
    assert!(again.iter().all(|counter| counter.read() == 0));
    on_every_cpu(|| again.iter().for_each(|counter| counter.inc()));
    assert!(again.iter().all(|counter| counter.read() == turns));
}

// whoever drops the last counter of a reservation must not need it any more when a trim, on
// another thread, has given it back
#[test]
fn trims_while_others_make_and_drop() {
    let pool = Pool::builder().placement(Placement::Fixed).unit_bytes(4096).build().expect("pool");
    let deadline = Deadline::after(budget() * 2);
    let living = Kit::new(&pool);
    let stop = AtomicBool::new(false);
    let turns = std::thread::scope(|scope| {
        let running = StopAtEnd(&stop);
        let trimmer = scope.spawn(|| {
            let mut reservations = 0;
            loop {
                // the last trim is after all that was made has been dropped
                let is_last = stop.load(Ordering::Acquire);
                reservations += pool.trim().expect("trimmed").reservations;
                if is_last {
                    return reservations;
                }
            }
        });
        let workers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut mine = 0;
                    while !deadline.is_over() {
                        // each fills a reservation
                        let arrays: Vec<CounterArray> =
                            (0..4).map(|_| CounterArray::new_in(&pool, 512, 1).expect("array")).collect();
                        arrays.iter().flat_map(|array| array.get(511)).for_each(|counter| counter.inc());
                        assert!(
                            arrays
                                .iter()
                                .all(|array| array.get(511).is_some_and(|counter| counter.read() == 2))
                        );
                        assert!(
                            arrays
                                .iter()
                                .all(|array| array.get(17).is_some_and(|counter| counter.read() == 1))
                        );
                        living.turn();
                        mine += 1;
                    }
                    mine
                })
            })
            .collect();
        let turns: u64 = workers.into_iter().map(|worker| worker.join().expect("worker")).sum();
        drop(running);
        assert!(trimmer.join().expect("trimmer") > 0, "no reservation was ever given back");
        turns
    });
    living.check(turns, "trimmed");
}

/// Returns the number of page faults of the calling thread so far that needed no disk.
#[allow(unsafe_code, clippy::useless_conversion)] // 32 bits on some machines
fn faults() -> i64 {
    // SAFETY: plain numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: writes the structure.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    i64::from(usage.ru_minflt)
}

/// Touches the pages of the stack that callees need: the slow path of an update may be the first to come to one, as
/// with musl.
#[inline(never)]
fn touch_stack() {
    std::hint::black_box([1_u8; 1 << 14]);
}

/// Returns the number of page faults at the first update of each page of a fresh pool, on each CPU;
/// `prefault` or not.
fn faults_at_first_updates(pages: usize, prefault: bool) -> i64 {
    let pool = Pool::builder().placement(Placement::Fixed).unit_bytes(pages * 4096).build().expect("pool");
    let array = CounterArray::new_in(&pool, pages * 512, 0).expect("array");
    let cpus: CpuSet = os::cpus().into_iter().map(|cpu| CpuId::new(cpu as u32)).collect();
    if prefault {
        pool.prefault(&cpus).expect("memory");
        assert!(pool.memory().expect("smaps").resident >= cpus.len() * pages * 4096);
    }
    let all = AtomicI64::new(0);
    on_every_cpu(|| {
        let counters: Vec<_> = (0..pages).filter_map(|page| array.get(page * 512)).collect();
        touch_stack();
        let before = faults();
        for counter in &counters {
            counter.add(1);
        }
        all.fetch_add(faults() - before, Ordering::Relaxed);
    });
    assert!((0..pages).all(|page| array.get(page * 512).is_some_and(|c| c.read() == cpus.len() as u64)));
    all.into_inner()
}

#[test]
fn after_prefault_the_first_update_takes_no_page_fault() {
    let sections = Pool::builder().placement(Placement::Fixed).build().expect("pool").mode() == Mode::Rseq;
    for pages in [1, 64] {
        // the program's own pages fault too when they are new, or when the system is short of memory
        let fewest = |prefault| (0..10).map(|_| faults_at_first_updates(pages, prefault)).min();
        let (with, without) = (fewest(true).expect("ten"), fewest(false).expect("ten"));
        // without sections a thread's first update takes words of the thread's own, whose books may be in a new page
        assert!(with == 0 || !sections && with <= os::cpus().len() as i64, "{pages} pages: {with}");
        // and without it there is at least one per page and CPU: the measurement measures
        assert!(
            without - with >= (pages * os::cpus().len()) as i64,
            "{pages} pages: {without}, {with} with it"
        );
    }
}

// dropping while the pool's own handle is gone: the memory lives as long as the last counter
#[test]
fn counters_outlive_their_pool() {
    for Named { name, pool } in pools() {
        let kit = Kit::new(&pool);
        drop(pool);
        on_every_cpu(|| kit.turn());
        kit.check(os::cpus().len() as u64, name);
    }
}

// with 32-bit addresses the units are made smaller, or it is said that they do not fit
#[test]
fn machines_too_large_for_the_address_space_are_no_danger() {
    let machine = Topology::synthetic(65_536).build().expect("topology");
    for unit_bytes in [4096, 1 << 20, 1 << 30] {
        let pool = Pool::builder().topology(machine.clone()).unit_bytes(unit_bytes).build().expect("pool");
        match CounterArray::new_in(&pool, 512, 7) {
            Ok(array) => {
                on_every_cpu(|| array.iter().for_each(|counter| counter.inc()));
                let turns = os::cpus().len() as u64;
                assert!(array.iter().all(|counter| counter.read() == 7 + turns), "{unit_bytes}");
            }
            Err(error) => assert!(matches!(error, statctr::Error::OutOfMemory { .. }), "{error}"),
        }
    }
}

#[test]
fn an_event_is_had_only_with_its_number_of_items() {
    let items: Vec<_> = (0..4).map(|item| ItemSpec::new(format!("item{item}"))).collect();
    let schema = Schema::new(items, &[&[2, 1], &[3]]).expect("schema");
    assert_eq!(schema.event::<1>(0), None);
    assert_eq!(schema.event::<3>(0), None);
    assert_eq!(schema.event::<2>(1), None);
    assert_eq!(schema.event::<1>(2), None);
    let (pair, single) = (schema.event::<2>(0).expect("an event"), schema.event::<1>(1).expect("an event"));
    for pool in pools() {
        let group = Group::new_in(&pool.pool, &schema).expect("group");
        let rows = GroupArray::new_in(&pool.pool, 2, &schema).expect("groups");
        group.commit(pair, [5, 7]);
        group.commit(single, [11]);
        assert_eq!(group.read(), [0, 7, 5, 11], "{}", pool.name);
        rows.get(1).expect("a row").commit(pair, [1, 2]);
        let mut values = [0; 8];
        rows.fold_into(&mut values).expect("room");
        assert_eq!(values, [0, 0, 0, 0, 0, 2, 1, 0], "{}", pool.name);
    }
}
