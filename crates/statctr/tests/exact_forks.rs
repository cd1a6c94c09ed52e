//! A forked child goes on from its parent's counts in memory of its own, both stay exact, and no
//! lock stays behind.
#![cfg(not(feature = "uniprocessor"))]
#![allow(unsafe_code)] // a handler of fork

mod common;

use common::kit::{Kit, schema_with_event};
use common::{Named, StopAtEnd, budget, os, pools, scaled};
use statctr::hotplug::Watcher;
use statctr::{Counter, Description, Group, Placement, Pool, Registry};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// Takes a turn on every CPU: how many.
fn turns_everywhere(kit: &Kit) -> u64 {
    let cpus = os::cpus();
    os::on_threads(&cpus, &|cpu| {
        os::pin(0, &[cpu]);
        (0..10).for_each(|_| kit.turn());
    });
    10 * cpus.len() as u64
}

#[test]
fn a_child_goes_on_from_its_parents_counts() {
    for Named { name, pool } in &pools() {
        let kit = Kit::new(pool);
        let mut turns = turns_everywhere(&kit);
        for _ in 0..3 {
            let before = kit.values();
            let (more, status) = os::fork(
                || {
                    kit.turn();
                    let here = turns_everywhere(&kit) + 1;
                    // and its child from its own
                    let between = kit.values();
                    let grandchild = || {
                        let there = turns_everywhere(&kit);
                        kit.has_grown(&between, there) && kit.has_grown(&before, here + there)
                    };
                    let ((), status) = os::fork(grandchild, || ());
                    status.success() && kit.has_grown(&before, here)
                },
                || turns_everywhere(&kit),
            );
            assert!(status.success(), "{name}: {status}");
            turns += more;
            kit.check(turns, name);
        }
    }
}

#[test]
fn children_forked_while_the_parent_counts_are_exact() {
    for Named { name, pool } in &pools() {
        let kit = Kit::new(pool);
        let (stop, turns) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let _stop_at_end = StopAtEnd(&stop);
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut mine = 0;
                    while !stop.load(Ordering::Relaxed) {
                        kit.turn();
                        mine += 1;
                    }
                    turns.fetch_add(mine, Ordering::Relaxed);
                });
            }
            for fork in 0..scaled(5) {
                // the counting threads are not in the child: whatever they were in the middle of
                // when it was made, from now on only its own updates change its values
                let child = || {
                    let before = kit.values();
                    let here = turns_everywhere(&kit);
                    kit.has_grown(&before, here)
                };
                let ((), status) = os::fork(child, || kit.turn());
                turns.fetch_add(1, Ordering::Relaxed);
                assert!(status.success(), "{name}: fork {fork}: {status}");
            }
        });
        kit.check(turns.into_inner(), name);
    }
}

/// Does everything that takes a lock.
fn make_set_read_and_drop(pool: &Pool, registry: &Registry) -> bool {
    let kit = Kit::new(pool);
    let named = Arc::new(Counter::new_in(pool, 7).expect("counter"));
    static NAMES: AtomicU64 = AtomicU64::new(0);
    let name = format!("n{}_{}", std::process::id(), NAMES.fetch_add(1, Ordering::Relaxed));
    let taken = registry.register(Description::new(name), &named).is_err();
    kit.set(1000);
    let before = kit.values();
    kit.turn();
    let own = Pool::builder().placement(Placement::Fixed).unit_bytes(4096).build().expect("pool");
    let (schema, event) = schema_with_event(1);
    let group = Group::new_in(&own, &schema).expect("group");
    group.commit(event, [1; 8]);
    let mut samples = 0;
    registry.visit(|_| samples += 1);
    let good = kit.has_grown(&before, 1) && group.read()[7] == 1 && !taken && samples > 0;
    drop(kit);
    good && pool.trim().is_ok() && pool.memory().is_ok() && named.read() == 7
}

#[test]
fn no_lock_stays_behind_in_a_child() {
    let narrow = common::widths()[0];
    let builder = || Pool::builder().placement(Placement::Fixed).unit_bytes(4096).max_vector(narrow);
    let (pool, registry) = (builder().build().expect("pool"), Registry::new());
    let (stop, deadline) = (AtomicBool::new(false), common::Deadline::after(budget() * 4));
    let (mut forks, mut failed) = (0, None);
    std::thread::scope(|scope| {
        let _stop_at_end = StopAtEnd(&stop);
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    assert!(make_set_read_and_drop(&pool, &registry));
                }
            });
        }
        while !deadline.is_over() && failed.is_none() {
            let child = || make_set_read_and_drop(&pool, &registry);
            let ((), status) = os::fork(child, || ());
            forks += 1;
            failed = (!status.success()).then_some(status);
        }
    });
    assert!(failed.is_none(), "fork {forks}: {failed:?}");
    println!("{forks} forks");
}

/// For a handler of the program's own.
static AT_FORK: AtomicPtr<Counter> = AtomicPtr::new(std::ptr::null_mut());

extern "C" fn in_the_child() {
    // SAFETY: null, or a counter that lives.
    if let Some(counter) = unsafe { AT_FORK.load(Ordering::SeqCst).as_ref() } {
        counter.set(0);
        counter.inc();
        assert_eq!(Counter::new(1).map(|counter| counter.read()), Ok(1));
    }
}

// such handlers reset statistics in the child, often registered before anything else is done
#[test]
fn handlers_of_fork_may_use_counters() {
    if !os::is_child() {
        os::expect_child(&os::this_test("handlers_of_fork_may_use_counters"), &[]);
        return;
    }
    // SAFETY: the handler lives as long as the program.
    unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
    let counter = Counter::new(5).expect("counter");
    AT_FORK.store(std::ptr::from_ref(&counter).cast_mut(), Ordering::SeqCst);
    let ((), status) = os::fork(|| counter.read() == 1, || counter.inc());
    assert!(status.success(), "{status}");
    assert_eq!(counter.read(), 6);
}

// the thread that watches is not in the child: nobody waits for it there
#[test]
fn a_child_drops_the_watcher_of_its_parent() {
    let pool = Pool::builder().placement(Placement::Flexible).build().expect("pool");
    let counter = Counter::new_in(&pool, 0).expect("counter");
    let mut watcher = Some(Watcher::start(vec![pool.clone()]).expect("watcher"));
    for _ in 0..scaled(5) {
        let child = || {
            drop(watcher.take());
            counter.inc();
            // and starts one of its own, which ends as any other
            drop(Watcher::start(vec![pool.clone()]));
            counter.read() == 1
        };
        let ((), status) = os::fork(child, || ());
        assert!(status.success(), "{status}");
    }
    drop(watcher);
}

// such a child has the watcher's descriptors for as long as it lives
#[test]
fn a_watcher_ends_while_a_child_lives() {
    let pool = Pool::builder().placement(Placement::Flexible).build().expect("pool");
    let watcher = Watcher::start(vec![pool]).expect("watcher");
    let (end, mut start_of_child) = std::io::pipe().expect("pipe");
    let child = || {
        let mut end = end;
        // lives until the parent has written
        std::io::Read::read_exact(&mut end, &mut [0]).is_ok()
    };
    let parent = || {
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            drop(watcher);
            let _ = send.send(());
        });
        let ended = receive.recv_timeout(std::time::Duration::from_secs(60));
        std::io::Write::write_all(&mut start_of_child, &[1]).expect("the child reads");
        ended
    };
    let (ended, status) = os::fork(child, parent);
    assert!(ended.is_ok(), "the watcher waits for the child to end");
    assert!(status.success(), "{status}");
}

// the very first use of the library, in a program of its own, while another thread forks
#[test]
fn a_fork_during_the_first_use_leaves_no_lock_behind() {
    if !os::is_child() {
        for _ in 0..scaled(10) {
            os::expect_child(&os::this_test("a_fork_during_the_first_use_leaves_no_lock_behind"), &[]);
        }
        return;
    }
    let go = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !go.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            let counter = Counter::new(3).expect("counter");
            counter.inc();
            assert_eq!(counter.read(), 4);
        });
        go.store(true, Ordering::Release);
        for _ in 0..5 {
            let child = || {
                let counter = Counter::new(5).expect("counter");
                counter.inc();
                counter.set(counter.read() + 1);
                counter.read() == 7
            };
            let ((), status) = os::fork(child, || ());
            assert!(status.success(), "{status}");
        }
    });
}
