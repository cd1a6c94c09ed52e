//! The striped mode: words per CPU that are updated atomically, by choice and where there is no rseq.

mod common;

use common::kit::Kit;
use common::{StopAtEnd, os};
use statctr::topology::{CpuId, Topology};
use statctr::{
    ApproximateCounter, Average, Combine, Counter, CounterArray, FloatGauge, Gauge, Group, Histogram,
    ItemSpec, LazyPool, Max, Min, Mode, PerCpu, Placement, Pool, Schema, fallback_reason, thread_mode,
};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const WITHOUT_RSEQ: [(&str, &str); 2] =
    [("GLIBC_TUNABLES", "glibc.pthread.rseq=0"), ("STATCTR_REGISTER", "0")];

fn striped() -> Pool {
    Pool::builder().placement(Placement::Striped).unit_bytes(8192).build().expect("pool")
}

/// Runs the test `name` again in a process in which nobody registers threads.
fn again(name: &str) {
    os::expect_child(&os::this_test(name), &WITHOUT_RSEQ);
}

#[test]
fn each_cpu_counts_on_words_of_its_own() {
    let pool = striped();
    assert_eq!(pool.mode(), Mode::Striped);
    let (counter, cpus) = (Counter::new_in(&pool, 7).expect("counter"), os::cpus());
    for &cpu in &cpus {
        // a new thread asks for its CPU with its first update
        std::thread::scope(|scope| {
            scope.spawn(|| {
                os::pin(0, &[cpu]);
                (0..1000).for_each(|_| counter.inc());
            });
        });
    }
    let on = |cpu: usize| counter.read_cpu(CpuId::new(cpu as u32));
    assert_eq!(counter.read(), 7 + 1000 * cpus.len() as u64);
    assert_eq!(counter.fallback_part(), 0);
    assert_eq!(cpus.iter().map(|&cpu| on(cpu)).sum::<u64>(), 1000 * cpus.len() as u64);
    if !cfg!(feature = "portable") {
        assert!(cpus.iter().all(|&cpu| on(cpu) == 1000), "{counter:?}");
        assert_eq!(pool.active_cpus().len(), cpus.len());
    }
}

#[test]
fn memory_is_that_of_the_cpus_that_count() {
    let topology = Topology::synthetic(192).build().expect("topology");
    let builder = Pool::builder().placement(Placement::Striped).topology(topology).unit_bytes(64 << 10);
    let pool = builder.build().expect("pool");
    let counters: Vec<_> = (0..8000).map(|_| Counter::new_in(&pool, 0).expect("counter")).collect();
    assert_eq!(pool.cost().bytes_per_counter_per_cpu, 8);
    counters.iter().for_each(Counter::inc);
    let memory = pool.memory().expect("smaps");
    // one unit of 64 KB, the table's used pages, and what a migration adds
    let units = pool.active_cpus().len();
    let on_linux = !cfg!(feature = "portable");
    assert!(
        units >= 1 && on_linux <= (memory.resident <= units * (64 << 10) + (64 << 10)),
        "{memory:?}, {units} units"
    );
    assert!(counters.iter().all(|counter| counter.read() == 1));
}

#[test]
fn threads_on_moving_cpus_lose_nothing() {
    let pool = striped();
    let kit = Kit::new(&pool);
    let turns = 2000;
    let started = Barrier::new(5);
    let threads = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                threads.lock().expect("list").push(os::thread_id());
                started.wait();
                (0..turns).for_each(|_| kit.turn());
                started.wait();
            });
        }
        started.wait();
        let movable = threads.lock().expect("list").clone();
        os::while_moving(&movable, || started.wait());
    });
    kit.check(4 * turns, "striped");
}

#[test]
fn cpus_without_words_share_those_of_others() {
    // one CPU is laid out, and more count
    let topology = Topology::synthetic(1).build().expect("topology");
    let pool = Pool::builder().placement(Placement::Striped).topology(topology).build().expect("pool");
    let counter = Counter::new_in(&pool, 0).expect("counter");
    os::on_threads(&os::cpus(), &|cpu| {
        os::pin(0, &[cpu]);
        (0..1000).for_each(|_| counter.inc());
    });
    assert_eq!(counter.read(), 1000 * os::cpus().len() as u64);
    assert_eq!((counter.read_cpu(CpuId::new(0)), counter.fallback_part()), (counter.read(), 0));
}

#[test]
fn without_rseq_every_kind_is_exact_and_says_so() {
    if !os::is_child() {
        return again("without_rseq_every_kind_is_exact_and_says_so");
    }
    assert!(fallback_reason().is_some());
    assert_eq!(thread_mode(), Mode::Striped);
    for placement in [Placement::Fixed, Placement::Flexible] {
        let pool = Pool::builder().placement(placement).build().expect("pool");
        assert_eq!((pool.placement(), pool.mode()), (placement, Mode::Striped));
        let counter = Counter::new_in(&pool, 0).expect("counter");
        let array = CounterArray::new_in(&pool, 20, 1).expect("array");
        let gauge = Gauge::new_in(&pool, -3).expect("gauge");
        let schema =
            Schema::new([ItemSpec::new("packets"), ItemSpec::new("bytes")], &[&[0, 1]]).expect("schema");
        let event = schema.event::<2>(0).expect("event");
        let group = Group::new_in(&pool, &schema).expect("group");
        let histogram = Histogram::new_in(&pool, 1 << 20, 0.1).expect("histogram");
        let float_gauge = FloatGauge::new_in(&pool, -0.5).expect("float gauge");
        let (max, min) = (Max::new_in(&pool).expect("maximum"), Min::new_in(&pool).expect("minimum"));
        let average = Average::new_in(&pool).expect("average");
        let approximate = ApproximateCounter::new_in(&pool, 9, 64).expect("approximate counter");
        let turn = |turn: u64| {
            counter.inc();
            array.iter().for_each(|counter| counter.add(2));
            gauge.add(5);
            group.commit(event, [1, 1500]);
            histogram.observe(100);
            float_gauge.add(1.25);
            max.observe(turn);
            min.observe(turn);
            average.observe(turn);
            approximate.add(3);
        };
        os::on_threads(&os::cpus(), &|cpu| {
            os::pin(0, &[cpu]);
            (1..=1000).for_each(turn);
        });
        let turns = 1000 * os::cpus().len() as u64;
        assert_eq!((counter.read(), counter.fallback_part()), (turns, 0));
        assert!(array.iter().all(|counter| counter.read() == 1 + 2 * turns));
        assert_eq!(gauge.read(), 5 * turns as i64 - 3);
        assert_eq!(group.read(), [turns, 1500 * turns]);
        assert_eq!(histogram.snapshot().count(), turns);
        assert_eq!(float_gauge.read(), -0.5 + 1.25 * turns as f64);
        assert_eq!((max.read(), min.read()), (1000, 1));
        assert_eq!((average.read().count(), average.read().sum()), (turns, turns / 1000 * 500_500));
        assert_eq!(approximate.read(), 9 + 3 * turns);
        // what is counted is in the word that an approximate read loads
        assert_eq!(approximate.approximate(), approximate.read());
        // nothing can be drained, and nothing is lost by trying
        let drained = pool.drain(CpuId::new(os::cpus()[0] as u32)).expect("nothing to do");
        assert_eq!((drained.blocks, counter.read()), (0, turns));
    }
}

/// Number of the threads that update while others set or take: more than there are stripes.
fn crowd() -> usize {
    3 * os::cpus().len() + 2
}

#[test]
fn sets_between_additions_to_a_float_gauge_lose_none() {
    let pool = striped();
    let gauge = FloatGauge::new_in(&pool, 0.0).expect("gauge");
    let (threads, rounds, turns) = (crowd(), 300, 40);
    // all come back with stale stripes at the same time
    let together = Barrier::new(threads + 1);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..rounds {
                    together.wait();
                    (0..turns).for_each(|_| gauge.add(1.0));
                    together.wait();
                }
            });
        }
        for round in 0..rounds {
            // as large as, and smaller than, what is on the stripes
            let value = f64::from(round % 50) - 25.0;
            gauge.set(value);
            together.wait();
            together.wait();
            assert_eq!(gauge.read(), value + (threads * turns) as f64, "round {round}");
        }
    });
}

#[test]
fn an_addition_to_a_float_gauge_is_before_or_after_a_set_at_the_same_time() {
    let pool = striped();
    let gauge = FloatGauge::new_in(&pool, 0.0).expect("gauge");
    let (begun, done, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let (mut gone, mut due) = (0, 0);
    let base = (1u64 << 40) as f64;
    std::thread::scope(|scope| {
        let _stop_at_end = StopAtEnd(&stop);
        for _ in 0..crowd() {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    begun.fetch_add(1, Ordering::SeqCst);
                    gauge.add(1.0);
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for set in 0..3000 {
            gone = done.load(Ordering::SeqCst);
            gauge.set(base);
            due = begun.load(Ordering::SeqCst);
            let added = gauge.read() - base;
            let most = begun.load(Ordering::SeqCst) - gone;
            assert!(added >= 0.0 && added <= most as f64, "{added} of {most}, set {set}");
            if set % 10 == 0 {
                os::sleep(std::time::Duration::from_micros(200));
            }
        }
        os::sleep(std::time::Duration::from_millis(5));
    });
    let all = done.into_inner();
    let added = gauge.read() - base;
    // those that ran during the last set are in or not
    assert!(added >= (all - due) as f64 && added <= (all - gone) as f64, "{added} of {due}..{all}, {gone}");
}

#[test]
fn takes_between_observations_lose_none() {
    let pool = striped();
    let (max, min) = (Max::new_in(&pool).expect("maximum"), Min::new_in(&pool).expect("minimum"));
    let (threads, rounds) = (crowd() as u64, 200);
    let together = Barrier::new(threads as usize + 1);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (max, min, together) = (&max, &min, &together);
            scope.spawn(move || {
                for round in 0..rounds {
                    together.wait();
                    // of each round another thread has the extremes
                    let value = 1000 + (thread + round) % threads;
                    (0..20).chain([value]).for_each(|value| max.observe(value));
                    [5000, value].into_iter().for_each(|value| min.observe(value));
                    together.wait();
                }
            });
        }
        for round in 0..rounds {
            together.wait();
            together.wait();
            assert_eq!((max.take(), min.take()), (999 + threads, 1000), "round {round}");
        }
    });
}

#[test]
fn sets_between_additions_to_an_approximate_counter_lose_none() {
    let pool = striped();
    let counter = ApproximateCounter::new_in(&pool, 0, 16).expect("counter");
    let (threads, rounds, turns) = (crowd(), 100, 40);
    let together = Barrier::new(threads + 1);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..rounds {
                    together.wait();
                    (0..turns).for_each(|_| counter.inc());
                    together.wait();
                }
            });
        }
        for round in 0..rounds {
            counter.set(round);
            together.wait();
            together.wait();
            let due = round + (threads * turns) as u64;
            assert_eq!((counter.read(), counter.approximate()), (due, due), "round {round}");
        }
    });
}

#[test]
fn without_rseq_lazy_objects_have_an_instance_for_each_cpu() {
    if !os::is_child() {
        return again("without_rseq_lazy_objects_have_an_instance_for_each_cpu");
    }
    let pool =
        LazyPool::<PerCpu>::new([Combine::Sum, Combine::Sum, Combine::Max, Combine::Or]).expect("pool");
    assert_eq!(pool.mode(), Mode::Striped);
    let (flow, cpus) = (pool.create().expect("object"), os::cpus());
    for &cpu in &cpus {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                os::pin(0, &[cpu]);
                (1..=1000).for_each(|time| flow.update([1, 1500, time, 1 << (time % 4)]));
            });
        });
    }
    let updates = 1000 * cpus.len() as u64;
    assert_eq!(flow.read(), [updates, 1500 * updates, 1000, 15]);
    if !cfg!(feature = "portable") {
        assert_eq!((flow.instances(), pool.shortfalls()), (cpus.len(), 0));
    }
}

#[test]
fn threads_that_come_and_go_hand_their_stripes_over() {
    let pool = striped();
    let counter = std::sync::Arc::new(Counter::new_in(&pool, 0).expect("counter"));
    let (waves, threads, turns) = (100, 3 * os::cpus().len() + 2, 300);
    for _ in 0..waves {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    (0..turns).for_each(|_| counter.inc());
                    // while others take its stripe
                    let counter = std::sync::Arc::clone(&counter);
                    os::at_thread_end(move || (0..turns).for_each(|_| counter.inc()));
                });
            }
        });
    }
    // a scope ends before the ends of its threads do
    let due = (waves * threads * turns * 2) as u64;
    for _ in 0..1000 {
        if counter.read() == due {
            break;
        }
        os::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(counter.read(), due);
    assert_eq!(os::cpus().iter().map(|&cpu| counter.read_cpu(CpuId::new(cpu as u32))).sum::<u64>(), due);
}

#[test]
fn threads_without_a_stripe_of_their_own_share_no_word_with_owners() {
    let pool = striped();
    let kit = Kit::new(&pool);
    // all on one CPU, of which there are fewer stripes than these
    let (threads, turns) = (8, 500);
    let together = Barrier::new(threads);
    let cpu = os::cpus()[0];
    os::on_threads(&vec![cpu; threads], &|cpu| {
        os::pin(0, &[cpu]);
        kit.turn();
        together.wait();
        // and from here on anywhere
        os::pin(0, &os::cpus());
        (1..turns).for_each(|_| kit.turn());
    });
    kit.check((threads * turns) as u64, "striped");
}

#[test]
fn a_forked_child_goes_on_with_the_stripe_of_its_thread() {
    let pool = striped();
    let counter = Counter::new_in(&pool, 0).expect("counter");
    (0..500).for_each(|_| counter.inc());
    let child = || {
        let others: u64 = std::thread::scope(|scope| {
            let count = || (0..500).map(|_| counter.inc()).count() as u64;
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
            (0..500).for_each(|_| counter.inc());
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
        });
        counter.read() == 1000 + others
    };
    let ((), status) = os::fork(child, || (0..500).for_each(|_| counter.inc()));
    assert!(status.success(), "{status}");
    assert_eq!(counter.read(), 1000);
}
