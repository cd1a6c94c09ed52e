//! Static counters are exact wherever they are used first: before `main`, in signal handlers, on many
//! threads at once, on both sides of a fork, with rseq and without; and take nothing before that.
#![cfg(not(feature = "uniprocessor"))]
#![allow(unsafe_code)] // signal handlers, and a constructor

mod common;

use common::{Deadline, StopAtEnd, budget, os, scaled};
use statctr::topology::CpuId;
use statctr::{Counter, Description, Mode, Registry, Sample, StaticCounter, StaticFamily, Unit, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

const fn counter(name: &'static str) -> StaticCounter {
    StaticCounter::new(name, "", Unit::NONE)
}

/// Returns `true` if counters of this process can have per-CPU words as soon as they are used.
fn is_ready_at_once() -> bool {
    os::rseq::libc_area_bytes().is_some_and(|bytes| bytes >= 20) && cfg!(target_arch = "x86_64")
}

/// There are critical sections for this machine.
const HAS_SECTIONS: bool =
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) && !cfg!(feature = "portable");

static BEFORE_MAIN: StaticCounter = StaticCounter::new("before_main", "constructors", Unit::NONE);

extern "C" fn construct() {
    BEFORE_MAIN.inc();
    BEFORE_MAIN.add(41);
}

#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
static CONSTRUCTOR: extern "C" fn() = construct;

#[test]
fn a_constructor_counts() {
    assert_eq!(BEFORE_MAIN.read(), 42);
    if is_ready_at_once() {
        assert_eq!(BEFORE_MAIN.fallback_part(), 0, "on per-CPU words");
        assert!(matches!(BEFORE_MAIN.mode(), Mode::Rseq | Mode::Striped));
    }
    BEFORE_MAIN.sub(2);
    BEFORE_MAIN.dec();
    assert_eq!(BEFORE_MAIN.read(), 39);
}

static MOVED: StaticCounter = counter("moved");

#[test]
fn threads_that_are_moved_about_count_exactly() {
    StaticCounter::prepare();
    let total = AtomicU64::new(0);
    let deadline = Deadline::after(budget());
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (send, total) = (send.clone(), &total);
            scope.spawn(move || {
                send.send(os::thread_id()).expect("somebody listens");
                let mut turns = 0;
                while !deadline.is_over() {
                    MOVED.inc();
                    MOVED.add(10);
                    MOVED.dec();
                    MOVED.sub(3);
                    turns += 1;
                }
                total.fetch_add(7 * turns, Ordering::Relaxed);
            });
        }
        let threads: Vec<i32> = (0..4).map(|_| receive.recv().expect("a thread")).collect();
        os::while_moving(&threads, || {
            let mut last = 0;
            while !deadline.is_over() {
                let now = MOVED.read();
                assert!(now.wrapping_add(40) >= last, "{now} after {last}");
                last = now;
            }
        });
    });
    assert_eq!(MOVED.read(), total.into_inner());
    let by_cpu = os::cpus().into_iter().map(|cpu| MOVED.read_cpu(statctr::topology::CpuId::new(cpu as u32)));
    assert_eq!(by_cpu.fold(MOVED.fallback_part(), u64::wrapping_add), MOVED.read());
}

/// More than a block has, so that blocks are made while others count.
const MANY: usize = 3000;
static CROWD: [StaticCounter; MANY] = [const { counter("crowd") }; MANY];

#[test]
fn first_updates_of_many_threads_at_once_are_exact() {
    StaticCounter::prepare();
    let start = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                for index in 0..MANY {
                    // half of the threads from the other end
                    CROWD[if thread % 2 == 0 { index } else { MANY - 1 - index }].add(thread + 1);
                }
            });
        }
    });
    assert!(CROWD.iter().all(|counter| counter.read() == 36));
    if StaticCounter::memory().expect("smaps").slots > 0 {
        assert!(CROWD.iter().all(|counter| counter.mode() != Mode::AtomicFallback));
    }
}

/// Counters that a handler uses first.
const OF_HANDLERS: usize = 20_000;
static HANDLED: [StaticCounter; OF_HANDLERS] = [const { counter("handled") }; OF_HANDLERS];
static NEXT: AtomicUsize = AtomicUsize::new(0);
const AT_A_TIME: usize = 100;

extern "C" fn handler(_signal: i32) {
    let first = NEXT.fetch_add(AT_A_TIME, Ordering::SeqCst);
    // each with the one before it, so that some are used by two handlers
    let (skipped, taken) = (first.saturating_sub(1), AT_A_TIME + usize::from(first > 0));
    HANDLED.iter().skip(skipped).take(taken).for_each(StaticCounter::inc);
}

#[test]
fn handlers_use_counters_first_in_the_middle_of_allocations() {
    StaticCounter::prepare();
    // SAFETY: plain numbers, and a handler that does only what handlers may.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as extern "C" fn(i32) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut());
    }
    let over = AtomicBool::new(false);
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let _stop_at_end = StopAtEnd(&over);
        for _ in 0..2 {
            let (send, over) = (send.clone(), &over);
            scope.spawn(move || {
                // SAFETY: names this thread.
                send.send(unsafe { libc::pthread_self() } as usize).expect("somebody listens");
                let mut kept = Vec::new();
                while !over.load(Ordering::SeqCst) {
                    kept.push(vec![1u8; 1 + kept.len() % 3000]);
                    std::hint::black_box(vec![1u8; 1 << 18]);
                    if kept.len() == 2000 {
                        kept.clear();
                    }
                }
            });
        }
        let threads: Vec<usize> = (0..2).map(|_| receive.recv().expect("a thread")).collect();
        while NEXT.load(Ordering::SeqCst) < OF_HANDLERS {
            for &thread in &threads {
                // SAFETY: the thread runs until `over`.
                unsafe { libc::pthread_kill(thread as libc::pthread_t, libc::SIGUSR1) };
            }
            os::sleep(Duration::from_micros(200));
        }
    });
    let twice = |index: usize| index % AT_A_TIME == AT_A_TIME - 1 && index + 1 < NEXT.load(Ordering::SeqCst);
    for (index, counter) in HANDLED.iter().enumerate() {
        assert_eq!(counter.read(), 1 + u64::from(twice(index)), "{index}");
    }
}

static FORKED: StaticCounter = counter("forked");
static IN_CHILD: [StaticCounter; 100] = [const { counter("in_child") }; 100];

#[test]
fn a_child_goes_on_from_its_parents_counts() {
    StaticCounter::prepare();
    FORKED.add(5);
    let (_, status) = os::fork(
        || {
            FORKED.inc();
            IN_CHILD.iter().for_each(StaticCounter::inc);
            IN_CHILD.iter().for_each(StaticCounter::inc);
            FORKED.read() == 6 && IN_CHILD.iter().all(|counter| counter.read() == 2)
        },
        || FORKED.add(10),
    );
    assert!(status.success(), "{status}");
    assert_eq!(FORKED.read(), 15);
    assert!(IN_CHILD.iter().all(|counter| counter.read() == 0));
}

static OF_PARENT: [StaticCounter; 10_000] = [const { counter("of_parent") }; 10_000];

#[test]
fn children_forked_in_the_middle_of_first_updates_are_exact() {
    StaticCounter::prepare();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop_at_end = StopAtEnd(&over);
        for first in [0, 1] {
            let over = &over;
            scope.spawn(move || {
                // slowly, so that there are some left for each fork
                for counter in OF_PARENT.iter().skip(first).step_by(2) {
                    counter.inc();
                    if over.load(Ordering::Relaxed) {
                        continue;
                    }
                    std::thread::yield_now();
                }
            });
        }
        for _ in 0..scaled(20) {
            let ((), status) = os::fork(
                || {
                    // whatever the parent's threads were doing: here nobody else counts
                    let before: Vec<u64> = OF_PARENT.iter().map(StaticCounter::read).collect();
                    OF_PARENT.iter().for_each(|counter| counter.add(3));
                    let now = OF_PARENT.iter().map(StaticCounter::read);
                    now.zip(before).all(|(now, before)| now == before + 3 && before <= 1)
                },
                || (),
            );
            assert!(status.success(), "{status}");
        }
    });
    assert!(OF_PARENT.iter().all(|counter| counter.read() == 1));
}

static ALONE: [StaticCounter; 2] = [counter("alone"), counter("alone_too")];

#[test]
fn nothing_is_taken_before_the_first_update() {
    if !os::is_child() {
        os::expect_child(&os::this_test("nothing_is_taken_before_the_first_update"), &[]);
        return;
    }
    // this test's constructor has counted: what comes on top of that is looked at
    let before = StaticCounter::memory().expect("smaps");
    ALONE.iter().for_each(StaticCounter::list);
    assert_eq!(ALONE.each_ref().map(StaticCounter::read), [0, 0]);
    assert_eq!(StaticCounter::memory().expect("smaps"), before, "listed, and not used");
    ALONE[0].inc();
    let after = StaticCounter::memory().expect("smaps");
    if ALONE[0].mode() != Mode::AtomicFallback {
        assert_eq!(after.slots, before.slots + 1);
        assert!(after.reserved > 0 && after.resident > 0);
    } else {
        assert_eq!((after.slots, after.reserved), (0, 0), "on its own word");
    }
}

static WITHOUT: StaticCounter = counter("without");

fn count_on_threads(counter: &'static StaticCounter) {
    os::on_threads(&[0; 4], &|_| (0..5000).for_each(|_| counter.inc()));
    assert_eq!(counter.read(), 20_000);
}

#[test]
fn without_rseq_counts_are_exact_and_the_mode_says_so() {
    if os::is_child() {
        // where there are sections, nobody looked for rseq yet
        let (mode, early) = if HAS_SECTIONS { (Mode::AtomicFallback, 20_000) } else { (Mode::Striped, 0) };
        assert_eq!(WITHOUT.mode(), mode);
        count_on_threads(&WITHOUT);
        assert_eq!(WITHOUT.fallback_part(), early);
        StaticCounter::prepare();
        assert_eq!(WITHOUT.mode(), Mode::Striped);
        os::on_threads(&[0; 4], &|_| (0..5000).for_each(|_| WITHOUT.inc()));
        // while one thread makes the block, others count early
        let early = WITHOUT.fallback_part();
        assert!(WITHOUT.read() == 40_000 && early < 40_000, "{early}");
        let on_cpus: u64 = os::cpus().into_iter().map(|cpu| WITHOUT.read_cpu(CpuId::new(cpu as u32))).sum();
        assert_eq!(on_cpus, 40_000 - early);
        return;
    }
    let this = os::this_test("without_rseq_counts_are_exact_and_the_mode_says_so");
    os::expect_child(&this, &[("GLIBC_TUNABLES", "glibc.pthread.rseq=0"), ("STATCTR_REGISTER", "0")]);
}

static LATER: StaticCounter = counter("later");

#[test]
fn where_the_library_registers_threads_a_prepared_process_counts_by_rseq() {
    if os::is_child() {
        let prepared_before = is_ready_at_once();
        LATER.inc();
        assert!(prepared_before || !HAS_SECTIONS || LATER.fallback_part() == 1);
        StaticCounter::prepare();
        LATER.add(2);
        if HAS_SECTIONS && os::registers_by_itself() {
            assert_eq!(LATER.mode(), Mode::Rseq);
            assert_eq!(LATER.fallback_part(), 1, "what was counted early stays");
        }
        assert_eq!(LATER.read(), 3);
        return;
    }
    let this = os::this_test("where_the_library_registers_threads_a_prepared_process_counts_by_rseq");
    os::expect_child(&this, &[("GLIBC_TUNABLES", "glibc.pthread.rseq=0")]);
}

static LISTED: StaticCounter = StaticCounter::new("listed_bytes", "bytes listed", Unit::BYTES);
static LISTED_AGAIN: StaticCounter = StaticCounter::new("listed_bytes", "bytes listed", Unit::BYTES);
static UNUSED: StaticCounter = counter("listed_unused");
static NEVER: StaticCounter = counter("listed_never");

fn counter_value(sample: &Sample<'_>) -> u64 {
    match sample.value {
        Value::Counter(value) => *value,
        other => panic!("not of a counter: {other:?}"),
    }
}

/// Returns what the program's registry has under names with this prefix.
fn visited(prefix: &str) -> Vec<(String, u64)> {
    let mut seen = Vec::new();
    Registry::global().visit(|sample| {
        let labels: Vec<String> =
            sample.description.labels().map(|(name, value)| format!("{name}={value}")).collect();
        if sample.description.name().starts_with(prefix) {
            seen.push((format!("{}{labels:?}", sample.description.name()), counter_value(&sample)));
        }
    });
    seen
}

#[test]
fn statics_are_in_the_programs_registry_once_they_are_used_or_listed() {
    LISTED.add(40);
    LISTED_AGAIN.add(2);
    UNUSED.list();
    let registered = Arc::new(Counter::new(7).expect("counter"));
    Registry::global().register(Description::new("listed_other"), &registered).expect("free");
    let expected = [("listed_other[]", 7), ("listed_bytes[]", 42), ("listed_unused[]", 0)];
    assert_eq!(visited("listed_"), expected.map(|(name, value)| (name.to_owned(), value)));
    assert!(Registry::global().len() >= 3);
    assert_eq!((NEVER.read(), Registry::new().len()), (0, 0));
    assert_eq!(
        (LISTED.description().help_text(), LISTED.description().unit_name()),
        ("bytes listed", "bytes")
    );
}

static REQUESTS: StaticFamily<2> =
    StaticFamily::new("family_requests", "requests", Unit::NONE, ["method", "status"]);

#[test]
fn a_family_has_a_counter_for_each_combination_of_values() {
    REQUESTS.get(["GET", "200"]).inc();
    REQUESTS.get(["GET", "404"]).add(2);
    REQUESTS.get(["GET", "200"]).inc();
    let _ = REQUESTS.get(["", ""]);
    assert!(std::ptr::eq(REQUESTS.get(["GET", "404"]), REQUESTS.get(["GET", "404"])));
    assert_eq!(REQUESTS.len(), 3);
    let expected = [
        (r#"family_requests["method=", "status="]"#, 0),
        (r#"family_requests["method=GET", "status=200"]"#, 2),
        (r#"family_requests["method=GET", "status=404"]"#, 2),
    ];
    assert_eq!(visited("family_requests"), expected.map(|(name, value)| (name.to_owned(), value)));
}

static ATTACKED: StaticFamily<1> =
    StaticFamily::new("attacked", "requests by path", Unit::NONE, ["path"]).limit(100);

#[test]
fn a_flood_of_values_is_counted_by_one_counter_and_takes_no_memory() {
    let known = ATTACKED.get(["/index.html"]);
    let total = scaled(100_000) as u64;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for number in 0..total / 4 {
                    ATTACKED.get([&format!("/{thread}/{number}")]).inc();
                    known.inc();
                    if number % 1000 == 0 {
                        ATTACKED.get([&"x".repeat(5000)]).inc();
                        assert!(std::ptr::eq(known, ATTACKED.get(["/index.html"])), "still found");
                    }
                }
            });
        }
    });
    let rounds = total / 4;
    let long = 4 * rounds.div_ceil(1000);
    assert_eq!(ATTACKED.len(), 100);
    assert_eq!(known.read(), 4 * rounds);
    let overflow = ATTACKED.get([StaticFamily::<1>::OVERFLOW]);
    assert_eq!(overflow.read(), 4 * rounds - 99 + long, "what is beyond the bound");
    let all = visited("attacked");
    assert_eq!(all.len(), 101);
    assert_eq!(all.iter().map(|(_, value)| value).sum::<u64>(), 8 * rounds + long);
}

static RACED: StaticFamily<1> = StaticFamily::new("raced", "", Unit::NONE, ["of"]).limit(64);

#[test]
fn threads_that_make_the_same_entries_at_once_share_them() {
    let start = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                start.wait();
                (0..64).for_each(|value| RACED.get([&value.to_string()]).inc());
            });
        }
    });
    // at its bound a family may have counted an entry beside a place that another thread filled
    let all = visited("raced");
    assert_eq!(all.iter().map(|(_, value)| value).sum::<u64>(), 256);
    assert!(RACED.len() <= 64 && all.len() >= 60, "{}", all.len());
}

#[cfg(not(feature = "uniprocessor"))]
static BLOCKFUL: StaticFamily<1> =
    StaticFamily::new("blockful", "more than one block holds", Unit::NONE, ["number"]).limit(5000);

#[test]
#[cfg(not(feature = "uniprocessor"))]
fn counters_of_further_blocks_are_exact_and_per_cpu() {
    StaticCounter::prepare();
    let counters: Vec<_> = (0..5000).map(|number| BLOCKFUL.get([&number.to_string()])).collect();
    os::on_threads(&[0; 4], &|_| counters.iter().for_each(|counter| (0..10).for_each(|_| counter.inc())));
    for counter in &counters {
        assert_eq!(counter.read(), 40, "{counter:?}");
        assert!(matches!(counter.mode(), Mode::Rseq | Mode::Striped));
    }
    // Updates while another thread made a block fell back, however many that were. Now there are blocks for all.
    let early: u64 = counters.iter().map(|counter| counter.fallback_part()).sum();
    counters.iter().for_each(|counter| counter.inc());
    let late = counters.iter().map(|counter| counter.fallback_part()).sum::<u64>() - early;
    assert!(late < 50, "{late} of 5000");
    assert!(StaticCounter::memory().expect("smaps").reservations >= 2, "one block holds 4096");
}
