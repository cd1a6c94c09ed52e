//! The test of whether the kernel aborts preempted sections, which the first pool runs on aarch64, and
//! elsewhere where these tests ask for it.
//!
//! Each test runs itself again in a process of its own, since a process tests its kernel once.

#![allow(unsafe_code)] // limits

mod common;

use common::kit::Kit;
use common::os;
use statctr::raw::request_kernel_test;
use statctr::{Combine, Counter, FallbackReason, LazyPool, Mode, PerCpu, Placement, Pool};
use statctr::{fallback_reason, thread_mode};

fn again(name: &str) {
    if thread_mode() != Mode::Rseq {
        println!("skipped: no rseq here");
        return;
    }
    os::expect_child(&os::this_test(name), &[]);
}

fn fixed() -> Pool {
    Pool::builder().placement(Placement::Fixed).build().expect("pool")
}

/// Updates all kinds of counters, from threads that are moved about.
fn count_exactly(pool: &Pool, context: &str) {
    let kit = Kit::new(pool);
    let cpus = os::cpus();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (kit, cpus) = (&kit, &cpus);
            scope.spawn(move || {
                for turn in 0..500 {
                    os::pin(0, &[cpus[(thread + turn) % cpus.len()]]);
                    kit.turn();
                }
            });
        }
    });
    kit.check(2000, context);
}

#[test]
#[cfg(not(feature = "uniprocessor"))]
fn counters_are_atomic_where_sections_are_not_aborted() {
    if os::is_child() {
        request_kernel_test(false);
        let pool = fixed();
        assert_eq!(pool.mode(), Mode::Striped);
        assert_eq!(fallback_reason(), Some(FallbackReason::SectionsNotAborted));
        assert_eq!(thread_mode(), Mode::Striped);
        let flexible = Pool::builder().placement(Placement::Flexible).build().expect("pool");
        assert_eq!(flexible.mode(), Mode::Striped);
        assert_eq!(Pool::global().expect("pool").mode(), Mode::Striped);
        let flows = LazyPool::<PerCpu>::new([Combine::Sum; 4]).expect("pool");
        assert_eq!(flows.mode(), Mode::Striped);
        let flow = flows.create().expect("flow");
        flow.update([1, 2, 3, 4]);
        assert_eq!(flow.read(), [1, 2, 3, 4]);
        count_exactly(&pool, "atomic, as sections are not aborted");
        count_exactly(&flexible, "flexible and atomic, as sections are not aborted");
        return;
    }
    again("counters_are_atomic_where_sections_are_not_aborted");
}

#[test]
#[cfg(not(feature = "uniprocessor"))]
fn a_lazy_pool_tests_the_kernel_too() {
    if os::is_child() {
        request_kernel_test(false);
        let flows = LazyPool::<PerCpu>::new([Combine::Sum; 4]).expect("pool");
        assert_eq!(flows.mode(), Mode::Striped);
        assert_eq!(fallback_reason(), Some(FallbackReason::SectionsNotAborted));
        return;
    }
    again("a_lazy_pool_tests_the_kernel_too");
}

#[test]
#[cfg(not(feature = "uniprocessor"))]
fn a_kernel_that_aborts_passes() {
    if os::is_child() {
        request_kernel_test(true);
        let pool = fixed();
        // on a machine that is busy the CPU may be had too late
        if fallback_reason() == Some(FallbackReason::AbortsNotProven) {
            assert_eq!(pool.mode(), Mode::Striped);
            println!("not proven in time");
        } else {
            assert_eq!((pool.mode(), fallback_reason()), (Mode::Rseq, None));
        }
        count_exactly(&pool, "tested");
        return;
    }
    if thread_mode() != Mode::Rseq {
        println!("skipped: no rseq here");
        return;
    }
    let proven = (0..5).any(|_| {
        let output = os::expect_child(&os::this_test("a_kernel_that_aborts_passes"), &[]);
        !String::from_utf8_lossy(&output.stdout).contains("not proven in time")
    });
    assert!(proven, "not once in five processes");
}

#[test]
#[cfg(not(feature = "uniprocessor"))]
fn without_a_second_thread_nothing_is_proven() {
    if os::is_child() {
        request_kernel_test(true);
        let limit = |bytes| {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: the kernel writes and reads a limit.
            unsafe {
                assert_eq!(libc::getrlimit(libc::RLIMIT_AS, &raw mut limit), 0);
                limit.rlim_cur = limit.rlim_max.min(bytes);
                assert_eq!(libc::setrlimit(libc::RLIMIT_AS, &raw const limit), 0);
            }
        };
        // no room for a stack
        limit(1 << 20);
        let pool = fixed();
        limit(libc::RLIM_INFINITY);
        assert_eq!(fallback_reason(), Some(FallbackReason::AbortsNotProven));
        assert_eq!(pool.mode(), Mode::Striped);
        count_exactly(&pool, "not proven");
        return;
    }
    again("without_a_second_thread_nothing_is_proven");
}

#[test]
#[cfg(not(feature = "uniprocessor"))]
fn the_kernel_is_tested_once_and_never_in_an_update() {
    if os::is_child() {
        let counter = Counter::new(0).expect("counter");
        let before = fallback_reason();
        // whoever tested now would find that nothing is aborted
        request_kernel_test(false);
        let cpus = os::cpus();
        for &cpu in &cpus {
            os::pin(0, &[cpu]);
            counter.inc();
        }
        assert_eq!(counter.read(), cpus.len() as u64);
        assert_eq!((fallback_reason(), before.is_some()), (before, thread_mode() != Mode::Rseq));
        return;
    }
    again("the_kernel_is_tested_once_and_never_in_an_update");
}
