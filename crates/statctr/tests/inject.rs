//! Delays and aborts at every named point of every section: the counts are exact, an aborted
//! section leaves nothing behind, and the number of tries is bounded. As librseq's `param_test`.
//!
//! Needs the feature `inject`: `cargo test -p statctr --features inject --test inject`.
#![cfg(all(
    feature = "inject",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(feature = "uniprocessor")
))]

mod common;

use common::kit::{Kit, Line, schema_with_event};
use common::{Deadline, Named, StopAtEnd, budget, os, pools_by_width};
use statctr::topology::{CpuId, Topology};
use statctr::{
    Combine, Counter, CounterArray, FloatGauge, Group, Item, LazyPool, Max, Mode, PerCpu, Pool,
    SharedCounter, TrackedGroupArray, inject, thread_mode,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

/// Injections are the whole program's: one test at a time. They are taken back at its end.
struct NoCompanions(#[allow(dead_code)] MutexGuard<'static, ()>);

impl NoCompanions {
    fn new() -> Option<NoCompanions> {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = NoCompanions(ALONE.lock().unwrap_or_else(PoisonError::into_inner));
        inject::clear();
        if thread_mode() != Mode::Rseq {
            println!("skipped: no rseq");
            return None;
        }
        Some(alone)
    }
}

impl Drop for NoCompanions {
    fn drop(&mut self) {
        inject::clear();
    }
}

fn by_cpus(read: impl Fn(CpuId) -> u64) -> u64 {
    os::cpus().into_iter().map(|cpu| read(CpuId::new(cpu as u32))).fold(0, u64::wrapping_add)
}

fn items_by_cpus(group: &Group, items: &[Item]) -> Vec<u64> {
    items.iter().map(|item| by_cpus(|cpu| group.read_cpu(cpu, *item))).collect()
}

/// One kind of update: what it does, its effect on what is read and on the CPUs' parts of it.
struct Update<'a> {
    name: String,
    run: Box<dyn Fn() + Sync + 'a>,
    values: Box<dyn Fn() -> Vec<u64> + Sync + 'a>,
    on_cpus: Box<dyn Fn() -> Vec<u64> + Sync + 'a>,
    step: Vec<u64>,
    /// Number of tries of a section before the fallback cell is used.
    tries: u64,
}

impl Update<'_> {
    fn check(&self, before: &[u64], times: u64, context: &str) {
        for (index, (now, before)) in (self.values)().iter().zip(before).enumerate() {
            let grown = now.wrapping_sub(*before);
            let expected = self.step[index].wrapping_mul(times);
            assert_eq!(grown, expected, "{context}: {}, value {index}", self.name);
        }
    }
}

/// Targets of a pool's updates.
struct Targets {
    counter: Counter,
    shared: SharedCounter,
    array: CounterArray,
    tracked: TrackedGroupArray,
    lines: Vec<Line>,
    vector_bytes: usize,
}

impl Targets {
    fn new(pool: &Pool) -> Targets {
        Targets {
            counter: Counter::new_in(pool, 17).expect("counter"),
            shared: Counter::new_in(pool, 18).expect("counter").into(),
            array: CounterArray::new_in(pool, 3, 0).expect("array"),
            tracked: TrackedGroupArray::new_in(pool, 2, &schema_with_event::<2>(1).0).expect("tracked array"),
            lines: [2, 3, 4, 5, 8].map(|width| Line::new(pool, width)).into(),
            vector_bytes: pool.cost().vector_bytes,
        }
    }

    /// Returns an update by each section that there is.
    fn updates(&self) -> Vec<Update<'_>> {
        let counter = |name: &str, step: u64, run: fn(&Counter)| Update {
            name: name.to_owned(),
            run: Box::new(move || run(&self.counter)),
            values: Box::new(|| vec![self.counter.read()]),
            on_cpus: Box::new(|| vec![by_cpus(|cpu| self.counter.read_cpu(cpu))]),
            step: vec![step],
            tries: 17,
        };
        // the words of its CPU are predicted: a try more, and then as any counter
        let shared = |name: &str, step: u64, run: fn(&SharedCounter)| Update {
            name: format!("{name} of a shared counter"),
            run: Box::new(move || run(&self.shared)),
            values: Box::new(|| vec![self.shared.read()]),
            on_cpus: Box::new(|| vec![by_cpus(|cpu| self.shared.read_cpu(cpu))]),
            step: vec![step],
            tries: 18,
        };
        let mut updates = vec![
            shared("inc", 1, SharedCounter::inc),
            shared("dec", u64::MAX, SharedCounter::dec),
            shared("add", 1 << 33, |counter| counter.add(1 << 33)),
            counter("inc", 1, Counter::inc),
            counter("dec", u64::MAX, Counter::dec),
            counter("add", 1 << 33, |counter| counter.add(1 << 33)),
            counter("sub", 0u64.wrapping_sub(7), |counter| counter.sub(7)),
            Update {
                name: "add in an array".to_owned(),
                run: Box::new(|| _ = self.array.get(2).map(|counter| counter.add(5))),
                values: Box::new(|| self.array.iter().map(|counter| counter.read()).collect()),
                on_cpus: Box::new(|| {
                    self.array.iter().map(|counter| by_cpus(|cpu| counter.read_cpu(cpu))).collect()
                }),
                step: vec![0, 0, 5],
                tries: 17,
            },
        ];
        let tracked = |name: &str, step: [u64; 3], run: Box<dyn Fn() + Sync>| Update {
            name: format!("{name} in a tracked array"),
            run,
            values: Box::new(|| {
                let mut folds = self.tracked.incremental_fold().expect("one at a time");
                let values = folds.fold().to_vec();
                assert_eq!(folds.fold(), values, "nothing was written");
                values
            }),
            on_cpus: Box::new(|| {
                let groups = (0..2).filter_map(|index| self.tracked.get(index));
                let items = || self.tracked.schema().items();
                let pairs = groups.flat_map(|group| items().map(move |item| (group, item)));
                pairs.map(|(group, item)| by_cpus(|cpu| group.read_cpu(cpu, item))).collect()
            }),
            step: [[0; 3], step].concat(),
            tries: 17,
        };
        if self.vector_bytes >= 16 {
            let group = || self.tracked.get(1).expect("two groups");
            let event = self.tracked.schema().event::<2>(0).expect("an event");
            let item = self.tracked.schema().item(2).expect("an item");
            updates.push(tracked("add", [0, 0, 7], Box::new(move || group().add(item, 7))));
            updates.push(tracked("commit", [1, 2, 0], Box::new(move || group().commit(event, [1, 2]))));
        }
        for line in &self.lines {
            let width = line.items.len() - 1;
            let two_copies = width.next_power_of_two() * 8 > self.vector_bytes;
            let update = |name: &str, step: Vec<u64>, run: Box<dyn Fn() + Sync>| Update {
                name: format!("{name} of {width}{}", if two_copies { ", two copies" } else { "" }),
                run,
                values: Box::new(|| line.group.read()),
                on_cpus: Box::new(|| items_by_cpus(&line.group, &line.items)),
                step,
                tries: if two_copies { 16 } else { 17 },
            };
            let commit = (1..=width as u64).chain([0]).collect();
            updates.push(update("commit", commit, Box::new(|| line.commit())));
            let mut add = vec![0; width + 1];
            add[1] = 9;
            updates.push(update("add", add, Box::new(move || line.group.add(line.items[1], 9))));
        }
        updates
    }
}

#[test]
fn an_aborted_addition_to_a_float_gauge_leaves_nothing_behind() {
    let Some(_alone) = NoCompanions::new() else { return };
    for Named { name, pool } in &pools_by_width() {
        let gauge = FloatGauge::new_in(pool, 0.0).expect("gauge");
        gauge.add(0.5);
        for point in 1..=inject::POINTS {
            for tries in [1, 2, 100] {
                for set_before in [false, true] {
                    let context = format!("{name}: point {point}, {tries} aborts, set before: {set_before}");
                    if set_before {
                        gauge.set(7.0);
                    }
                    let before = gauge.read();
                    inject::abort(point, tries);
                    gauge.add(0.25);
                    let left = inject::aborts_left(point);
                    assert!(left < tries && (left == 0 || tries == 100), "{context}: passes it");
                    inject::clear();
                    assert_eq!(gauge.read(), before + 0.25, "{context}");
                    gauge.add(0.25);
                    assert_eq!(gauge.read(), before + 0.5, "{context}");
                    gauge.set(before);
                    assert_eq!(gauge.read(), before, "{context}");
                }
            }
        }
    }
}

#[test]
fn an_aborted_observation_of_a_maximum_leaves_nothing_behind() {
    let Some(_alone) = NoCompanions::new() else { return };
    for Named { name, pool } in &pools_by_width() {
        let max = Max::new_in(pool).expect("max");
        max.observe(5);
        for point in 1..=inject::POINTS {
            for tries in [1, 2, 100] {
                for taken_before in [false, true] {
                    let context =
                        format!("{name}: point {point}, {tries} aborts, taken before: {taken_before}");
                    if taken_before {
                        let _ = max.take();
                    }
                    let before = max.read();
                    inject::abort(point, tries);
                    max.observe(before + 7);
                    let left = inject::aborts_left(point);
                    assert!(left < tries && (left == 0 || tries == 100), "{context}: passes it");
                    inject::clear();
                    assert_eq!(max.read(), before + 7, "{context}");
                    max.observe(before + 3);
                    assert_eq!(max.read(), before + 7, "{context}");
                    max.observe(before + 8);
                    assert_eq!((max.take(), max.read()), (before + 8, Max::IDENTITY), "{context}");
                    assert_eq!(max.take(), Max::IDENTITY, "{context}: the interval before");
                    max.observe(before + 9);
                }
            }
        }
    }
}

#[test]
fn one_abort_at_each_point_is_retried() {
    let Some(_alone) = NoCompanions::new() else { return };
    for Named { name, pool } in &pools_by_width() {
        let targets = Targets::new(pool);
        for update in targets.updates() {
            for point in 1..=inject::POINTS {
                let context = format!("{name}: point {point}");
                // announces the CPUs
                (update.run)();
                let (before, on_cpus) = ((update.values)(), (update.on_cpus)());
                inject::abort(point, 1);
                (update.run)();
                assert_eq!(inject::aborts_left(point), 0, "{context}: {} passes it", update.name);
                update.check(&before, 1, &context);
                let grown: Vec<u64> = (update.on_cpus)()
                    .iter()
                    .zip(&on_cpus)
                    .map(|(now, then)| now.wrapping_sub(*then))
                    .collect();
                // unless it was preempted sixteen times besides
                assert_eq!(grown, update.step, "{context}: {} by a section", update.name);
            }
        }
    }
}

#[test]
fn more_aborts_than_tries_lead_to_the_fallback_cell() {
    let Some(_alone) = NoCompanions::new() else { return };
    for Named { name, pool } in &pools_by_width() {
        let targets = Targets::new(pool);
        for update in targets.updates() {
            for point in 1..=inject::POINTS {
                let context = format!("{name}: point {point}");
                (update.run)();
                let (before, on_cpus) = ((update.values)(), (update.on_cpus)());
                inject::abort(point, 1000);
                (update.run)();
                let tries = 1000 - inject::aborts_left(point);
                inject::clear();
                // a preemption can end a try before it comes to the point
                assert!((1..=update.tries).contains(&tries), "{context}: {}: {tries} tries", update.name);
                update.check(&before, 1, &context);
                assert_eq!((update.on_cpus)(), on_cpus, "{context}: {} left something behind", update.name);
                // and on it goes
                (update.run)();
                update.check(&before, 2, &context);
            }
        }
    }
}

/// Runs `update` on three threads, which are moved all the time, while `disturb` disturbs.
fn many(update: &Update<'_>, context: &str, disturb: impl Fn()) {
    let before = (update.values)();
    let (stop, times) = (AtomicBool::new(false), AtomicU64::new(0));
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        let _stop_at_end = StopAtEnd(&stop);
        for _ in 0..3 {
            let send = send.clone();
            let (stop, times) = (&stop, &times);
            scope.spawn(move || {
                send.send(os::thread_id()).expect("somebody listens");
                let mut mine = 0;
                while !stop.load(Ordering::Relaxed) {
                    (update.run)();
                    mine += 1;
                }
                times.fetch_add(mine, Ordering::Relaxed);
            });
        }
        let threads: Vec<i32> = (0..3).map(|_| receive.recv().expect("a thread")).collect();
        let deadline = Deadline::after(budget() / 40);
        os::while_moving(&threads, || {
            while !deadline.is_over() {
                disturb();
                std::thread::yield_now();
            }
        });
        inject::clear();
    });
    update.check(&before, times.into_inner(), context);
}

#[test]
fn aborts_at_each_point_are_exact_under_migration() {
    let Some(_alone) = NoCompanions::new() else { return };
    for Named { name, pool } in &pools_by_width() {
        let targets = Targets::new(pool);
        for update in targets.updates() {
            for point in 1..=inject::POINTS {
                for count in [1, 30] {
                    let context = format!("{name}: {count} aborts at a time at point {point}");
                    many(&update, &context, || inject::abort(point, count));
                }
            }
        }
    }
}

// so long that most sections are interrupted where they wait
#[test]
fn delays_at_each_point_are_exact_under_migration() {
    let Some(_alone) = NoCompanions::new() else { return };
    for Named { name, pool } in &pools_by_width() {
        let targets = Targets::new(pool);
        for update in targets.updates() {
            for point in 1..=inject::POINTS {
                for turns in [100, 100_000] {
                    let context = format!("{name}: delays of {turns} turns at point {point}");
                    inject::delay(point, turns);
                    many(&update, &context, || ());
                }
            }
        }
    }
}

// everything at once, and readers beside it: an event in two copies is never seen half done, except
// for what was sent to the fallback cell
#[test]
fn readers_never_step_back_beside_delays_and_aborts() {
    let Some(_alone) = NoCompanions::new() else { return };
    for Named { name, pool } in &pools_by_width() {
        let kit = Kit::new(pool);
        let turns = AtomicU64::new(0);
        for point in 1..=inject::POINTS {
            inject::clear();
            let deadline = Deadline::after(budget() / 4);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        let mut mine = 0;
                        while !deadline.is_over() {
                            kit.turn();
                            mine += 1;
                        }
                        turns.fetch_add(mine, Ordering::Relaxed);
                    });
                }
                let mut last = vec![0; 9];
                let mut turn = 0;
                while !deadline.is_over() {
                    inject::abort(point, 20);
                    inject::delay(1 + turn % inject::POINTS, 3000 * (turn as u64 % 3));
                    let now = kit.lines[5].group.read();
                    assert!(
                        now.iter().zip(&last).all(|(now, last)| now >= last),
                        "{name}: {now:?}, {last:?}"
                    );
                    last = now;
                    turn += 1;
                }
            });
            inject::clear();
            kit.check(turns.load(Ordering::Relaxed), name);
        }
    }
}

#[test]
fn lazy_objects_are_exact_beside_delays_and_aborts() {
    let Some(_alone) = NoCompanions::new() else { return };
    let items = [Combine::Sum, Combine::Sum, Combine::Max, Combine::Or];
    let topology = Topology::current().expect("/sys");
    for width in common::widths() {
        let pool = LazyPool::<PerCpu>::builder(items)
            .topology(topology.clone())
            .max_vector(width)
            .build()
            .expect("pool");
        let flow = pool.create().expect("object");
        let turns = AtomicU64::new(0);
        let turn = || flow.update([1, 10, turns.fetch_add(1, Ordering::Relaxed) + 1, 4]);
        for point in 1..=inject::POINTS {
            // one abort is made good by another try; more than tries lead to the atomic words
            for aborts in [1, 1000] {
                inject::abort(point, aborts);
                turn();
                assert_eq!(
                    flow.read()[..2],
                    [turns.load(Ordering::Relaxed), 10 * turns.load(Ordering::Relaxed)]
                );
                if pool.mode() == Mode::Rseq {
                    assert!(inject::aborts_left(point) < aborts, "the section has its points");
                }
                inject::clear();
            }
            for delay in [100, 20_000] {
                inject::delay(point, delay);
                let deadline = Deadline::after(budget() / 10);
                let movable = Mutex::new(Vec::new());
                std::thread::scope(|scope| {
                    for _ in 0..3 {
                        scope.spawn(|| {
                            movable.lock().expect("no thread panics").push(os::thread_id());
                            while !deadline.is_over() {
                                turn();
                            }
                        });
                    }
                    let threads = || movable.lock().expect("no thread panics").clone();
                    while threads().len() < 3 {
                        std::thread::yield_now();
                    }
                    os::while_moving(&threads(), || os::sleep(budget() / 10));
                });
                inject::clear();
                let all = turns.load(Ordering::Relaxed);
                assert_eq!(flow.read(), [all, 10 * all, all, 4], "{width:?}: delays of {delay} at {point}");
            }
        }
    }
}
