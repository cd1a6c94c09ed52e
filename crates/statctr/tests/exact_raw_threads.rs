//! Threads that a raw `clone` makes past libc, with an area of their own (`CLONE_SETTLS`) that says "not registered",
//! count exactly: atomically where libc registers threads, registered by their first update where the library does.
//!
//! Code on such a thread calls nothing that needs a thread of libc: it counts, and stores its observations in atomics.
#![cfg(all(
    any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")),
    target_os = "linux",
    target_env = "gnu",
    not(any(feature = "portable", feature = "uniprocessor"))
))]
#![allow(unsafe_code)] // threads past libc

mod common;

use common::kit::Kit;
use common::os::raw_thread::RawThread;
use common::{Named, StopAtEnd, budget, os, pools, scaled};
use statctr::{Combine, LazyGroup, LazyPool, PerConcurrencyId, PerCpu, PerNode, Scope};
use statctr::{Counter, Mode, Placement, Pool, Registration, registration, thread_mode};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc;

/// Settings by which libc leaves the registration of threads to the library.
const NOT_BY_LIBC: (&str, &str) = ("GLIBC_TUNABLES", "glibc.pthread.rseq=0");

/// Runs `check` on a thread of libc's here, and the test `name` again in a process in which the library registers
/// threads.
fn in_both_registrations(name: &str, check: fn()) {
    if os::is_child() {
        assert_eq!(registration(), Some(Registration::Own));
    }
    println!("threads are registered: {:?}", registration());
    std::thread::spawn(check).join().expect("no panic");
    if registration() == Some(Registration::Libc) && thread_mode() == Mode::Rseq {
        os::expect_child(&os::this_test(name), &[NOT_BY_LIBC]);
    }
}

/// A raw thread's task, and what it saw.
struct Task<'a> {
    turn: &'a (dyn Fn() + Sync),
    /// The least number of turns.
    least: u64,
    /// Ends the turns after these.
    stop: &'a AtomicBool,
    turns: AtomicU64,
    /// The area's CPU number at the start and at the end.
    cpus: [AtomicI32; 2],
    /// The error of another area ([`os::rseq::error_of_another_area`]) at the start and at the end.
    errors: [AtomicI32; 2],
}

impl<'a> Task<'a> {
    fn new(turn: &'a (dyn Fn() + Sync), least: u64, stop: &'a AtomicBool) -> Task<'a> {
        let seen = || [const { AtomicI32::new(i32::MIN) }; 2];
        Task { turn, least, stop, turns: AtomicU64::new(0), cpus: seen(), errors: seen() }
    }

    /// Starts a raw thread with this task.
    ///
    /// # Safety
    /// The contract is that of [`RawThread::start`]; the task lives as long as the thread.
    unsafe fn start(&self, thread: &RawThread) {
        // SAFETY: passed on; the thread only counts.
        unsafe { thread.start(run, std::ptr::from_ref(self).cast_mut().cast()) };
    }

    fn look(&self, when: usize) {
        self.cpus[when].store(os::rseq::cpu().unwrap_or(i32::MIN), Ordering::Relaxed);
        self.errors[when].store(os::rseq::error_of_another_area(), Ordering::Relaxed);
    }

    /// Checks how the thread was registered, after its end; `counted` if it counted where sections may be used. Returns
    /// the number of turns.
    fn check(&self, counted: bool, context: &str) -> u64 {
        let [first, last] = self.cpus.each_ref().map(|cpu| cpu.load(Ordering::Relaxed));
        let [before, after] = self.errors.each_ref().map(|error| error.load(Ordering::Relaxed));
        assert_ne!(before, libc::EINVAL, "{context}: not registered at the start");
        let seen = (first, last, after);
        match registration() {
            Some(Registration::Libc) => assert_eq!(seen, (-1, -1, before), "{context}: as at the start"),
            Some(_) if counted => {
                assert_eq!((first, after), (-1, libc::EINVAL), "{context}: by its first update");
                assert!(last >= 0, "{context}: {last}");
            }
            Some(_) => assert_eq!(first, -1, "{context}"),
            None => assert_eq!(seen, (i32::MIN, i32::MIN, before), "{context}: no area"),
        }
        self.turns.load(Ordering::Relaxed)
    }
}

extern "C" fn run(task: *mut c_void) -> c_int {
    // SAFETY: the task that `Task::start` passed, which lives as long as this thread.
    let task = unsafe { &*task.cast::<Task<'_>>() };
    task.look(0);
    let mut turns = 0;
    while turns < task.least || !task.stop.load(Ordering::Relaxed) {
        (task.turn)();
        turns += 1;
    }
    task.look(1);
    task.turns.store(turns, Ordering::Relaxed);
    0
}

/// Takes turns on raw threads and on ordinary ones, all of which are moved from CPU to CPU meanwhile. Returns the
/// number of all turns, of which one is the calling thread's: the raw threads have copies of an area that was in use.
fn take_turns(turn: &(dyn Fn() + Sync), by_sections: bool, span: std::time::Duration, context: &str) -> u64 {
    turn();
    let (stop, turns) = (AtomicBool::new(false), AtomicU64::new(1));
    let tasks = [(); 3].map(|()| Task::new(turn, 64, &stop));
    let raw: Vec<RawThread> = (0..tasks.len()).map(|index| RawThread::new(index % 2 == 0)).collect();
    std::thread::scope(|scope| {
        let running = StopAtEnd(&stop);
        let (send, ordinary) = mpsc::channel();
        for _ in 0..2 {
            let (send, stop, turns) = (send.clone(), &stop, &turns);
            scope.spawn(move || {
                send.send(os::thread_id()).expect("somebody listens");
                while !stop.load(Ordering::Relaxed) {
                    (0..16).for_each(|_| turn());
                    turns.fetch_add(16, Ordering::Relaxed);
                }
            });
        }
        let mut movable: Vec<i32> = (0..2).map(|_| ordinary.recv().expect("a thread")).collect();
        for (thread, task) in raw.iter().zip(&tasks) {
            // SAFETY: made here, and waited for before the tasks go.
            unsafe { task.start(thread) };
            movable.push(thread.number());
        }
        os::while_moving(&movable, || os::sleep(span));
        drop(running);
        raw.iter().for_each(RawThread::wait);
    });
    tasks.iter().map(|task| task.check(by_sections, context)).sum::<u64>() + turns.into_inner()
}

#[test]
fn raw_threads_beside_ordinary_ones_count_exactly() {
    in_both_registrations("raw_threads_beside_ordinary_ones_count_exactly", || {
        let pools = pools();
        let span = budget() * 2 / pools.len() as u32;
        for Named { name, pool } in &pools {
            let kit = Kit::new(pool);
            let turns = take_turns(&|| kit.turn(), pool.mode() == Mode::Rseq, span, name);
            kit.check(turns, name);
        }
    });
}

/// Lets raw threads and ordinary ones update one lazy object.
fn update<S: Scope>(pool: &LazyPool<S>, name: &str) {
    let flow: LazyGroup<S> = pool.create().expect("object");
    let update = || flow.update([1, 1500, 7, 1 << 50]);
    let turns = take_turns(&update, pool.mode() == Mode::Rseq, budget() / 4, name);
    assert_eq!(flow.read(), [turns, 1500 * turns, 7, 1 << 50], "{name}");
}

#[test]
fn raw_threads_update_lazy_objects_exactly() {
    in_both_registrations("raw_threads_update_lazy_objects_exactly", || {
        const ITEMS: [Combine; 4] = [Combine::Sum, Combine::Sum, Combine::Max, Combine::Or];
        for width in common::widths() {
            let pool = LazyPool::<PerCpu>::builder(ITEMS).max_vector(width).build().expect("pool");
            update(&pool, &format!("per CPU, {width:?}"));
        }
        update(&LazyPool::<PerNode>::new(ITEMS).expect("pool"), "per node");
        // a thread that is not registered has the field, and no id
        match LazyPool::<PerConcurrencyId>::new(ITEMS) {
            Ok(pool) => update(&pool, "per concurrency id"),
            Err(error) => println!("no concurrency ids: {error}"),
        }
    });
}

fn fixed() -> Pool {
    Pool::builder().placement(Placement::Fixed).build().expect("pool")
}

#[test]
fn a_raw_thread_counts_in_the_fallback_cell_until_it_is_registered() {
    in_both_registrations("a_raw_thread_counts_in_the_fallback_cell_until_it_is_registered", || {
        let (pool, stop) = (fixed(), AtomicBool::new(true));
        // both live: the words of one that is gone are not zeroed for the next
        let counters = [(); 2].map(|()| Counter::new_in(&pool, 0).expect("counter"));
        for (knows_itself, counter) in [true, false].into_iter().zip(&counters) {
            let inc = || counter.inc();
            let task = Task::new(&inc, 1000, &stop);
            let thread = RawThread::new(knows_itself);
            // SAFETY: made here, and waited for at once.
            unsafe { task.start(&thread) };
            thread.wait();
            assert_eq!(task.check(pool.mode() == Mode::Rseq, "one thread"), 1000);
            let of_cpus: u64 = pool.topology().possible().iter().map(|cpu| counter.read_cpu(cpu)).sum();
            let seen = (counter.read(), counter.fallback_part(), of_cpus);
            let expected = match registration() {
                Some(Registration::Libc) if pool.mode() == Mode::Rseq => (1000, 1000, 0),
                _ => (1000, 0, 1000),
            };
            assert_eq!(seen, expected, "{:?}", registration());
        }
    });
}

#[test]
fn an_ordinary_thread_in_the_memory_of_a_raw_thread_counts_exactly() {
    in_both_registrations("an_ordinary_thread_in_the_memory_of_a_raw_thread_counts_exactly", || {
        let stop = AtomicBool::new(true);
        for Named { name, pool } in &pools() {
            let (kit, rounds) = (Kit::new(pool), scaled(10) as u64);
            let turn = || kit.turn();
            for round in 0..rounds {
                let thread = RawThread::new(round % 2 == 0);
                let task = Task::new(&turn, 20, &stop);
                // SAFETY: made here, and waited for at once.
                unsafe { task.start(&thread) };
                thread.wait();
                assert_eq!(task.check(pool.mode() == Mode::Rseq, name), 20);
                thread.in_its_memory(&|| {
                    match registration() {
                        Some(Registration::Libc) => assert!(os::rseq::cpu().is_some_and(|cpu| cpu >= 0)),
                        registration => assert_eq!(os::rseq::cpu(), registration.map(|_| -1), "{name}"),
                    }
                    (0..20).for_each(|_| turn());
                });
            }
            kit.check(40 * rounds, name);
        }
    });
}
