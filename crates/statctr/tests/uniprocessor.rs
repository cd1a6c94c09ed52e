//! One CPU: refused where there are more, and exact by plain words where there is one. With the
//! feature `uniprocessor` this is all that a program can have.

mod common;

use common::kit::Kit;
use common::{Deadline, budget, os};
use statctr::topology::{CpuSet, Topology};
use statctr::{Counter, Error, Mode, Placement, Pool};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

fn possible() -> usize {
    Topology::current().expect("/sys").possible().len()
}

fn refused(result: Result<Pool, Error>) {
    match result {
        Err(error @ Error::NotUniprocessor { .. }) => {
            assert_eq!(error.errno(), libc::ENOTSUP);
            assert!(error.to_string().contains("possible"), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn refused_where_more_cpus_are_possible() {
    if possible() == 1 {
        println!("skipped: one CPU is possible here");
        return;
    }
    refused(Pool::builder().placement(Placement::Uniprocessor).build());
    let two = Topology::synthetic(2).build().expect("topology");
    refused(Pool::builder().topology(two).placement(Placement::Uniprocessor).build());
}

#[test]
#[cfg(feature = "uniprocessor")]
fn a_build_for_one_cpu_does_not_start_on_more() {
    if possible() == 1 {
        println!("skipped: one CPU is possible here");
        return;
    }
    refused(Pool::builder().build());
    assert_eq!(Counter::new(0).map_err(|error| error.errno()).err(), Some(libc::ENOTSUP));
    assert!(Pool::global().is_err());
    for placement in [Placement::Fixed, Placement::Shared] {
        assert!(matches!(Pool::builder().placement(placement).build(), Err(Error::BadSetting(_))));
    }
}

#[test]
#[cfg(not(feature = "uniprocessor"))]
fn it_is_never_chosen_unless_asked_for() {
    let one = Topology::synthetic(1).build().expect("topology");
    let pool = Pool::builder().topology(one).build().expect("pool");
    assert_eq!(pool.placement(), Placement::Fixed);
}

// a container can be shown a list of CPUs that the kernel does not keep to
#[test]
fn a_list_with_one_cpu_is_not_believed_where_the_kernel_has_more() {
    if os::cpus().len() == 1 {
        println!("skipped: this thread may run on one CPU only");
        return;
    }
    struct Tree(PathBuf);
    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
    let tree = Tree(std::env::temp_dir().join(format!("statctr-one-cpu-{}", std::process::id())));
    let folder = tree.0.join("devices/system/cpu");
    std::fs::create_dir_all(&folder).expect("folder");
    std::fs::write(folder.join("possible"), "0\n").expect("file");
    let topology = Topology::from_sysfs(&tree.0).expect("tree");
    assert_eq!(topology.possible().len(), 1);
    refused(Pool::builder().topology(topology.clone()).placement(Placement::Uniprocessor).build());
    let default = Pool::builder().topology(topology).build();
    if cfg!(feature = "uniprocessor") {
        refused(default);
    } else {
        assert_eq!(default.expect("pool").placement(), Placement::Fixed);
    }
}

/// Returns a pool for one CPU, as this thread and those it makes are kept on `cpu`.
fn pool_for(cpu: usize, number: &str) -> Pool {
    assert!(os::pin(0, &[cpu]));
    let only: CpuSet = number.parse().expect("list");
    let topology = Topology::synthetic_sparse(only).build().expect("topology");
    let builder = Pool::builder().topology(topology).placement(Placement::Uniprocessor);
    let pool = builder.build().expect("pool");
    assert_eq!((pool.placement(), pool.mode()), (Placement::Uniprocessor, Mode::Uniprocessor));
    pool
}

#[test]
fn threads_on_one_cpu_count_exactly() {
    // by the number of the CPU and by a synthetic one: groups then use sections or fallback cells
    for number in ["0", "9"] {
        for cpu in os::cpus().into_iter().take(2) {
            let turns = AtomicU64::new(0);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let pool = pool_for(cpu, number);
                    let kit = Kit::new(&pool);
                    let deadline = Deadline::after(budget());
                    std::thread::scope(|scope| {
                        for _ in 0..3 {
                            scope.spawn(|| {
                                let mut mine = 0;
                                while !deadline.is_over() {
                                    kit.turn();
                                    mine += 1;
                                }
                                turns.fetch_add(mine, Ordering::Relaxed);
                            });
                        }
                    });
                    kit.check(turns.load(Ordering::Relaxed), "one CPU");
                    kit.counter.set(5);
                    kit.counter.dec();
                    assert_eq!(kit.counter.read(), 4);
                });
            });
        }
    }
}

#[test]
fn slots_of_one_cpu_start_again() {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let pool = pool_for(os::cpus()[0], "0");
            for round in 0..100 {
                let kit = Kit::new(&pool);
                kit.turn();
                kit.check(1, "again");
                let counter = Counter::new_in(&pool, round).expect("counter");
                counter.add(3);
                assert_eq!(counter.read(), round + 3);
                if round % 10 == 0 {
                    drop(kit);
                    pool.trim().expect("trimmed");
                }
            }
        });
    });
}
