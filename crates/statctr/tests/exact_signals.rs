//! Counts are exact where signal handlers count too, in the middle of everything.
#![cfg(not(feature = "uniprocessor"))]
#![allow(unsafe_code)] // signal handlers

mod common;

use common::kit::Kit;
use common::{Deadline, Named, StopAtEnd, budget, os, pools};
use statctr::hotplug::Watcher;
use statctr::{Combine, LazyGroup, LazyPool, PerCpu, Placement, Pool};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Signals are the whole program's: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Counters of the handler.
static KIT: AtomicPtr<Kit> = AtomicPtr::new(std::ptr::null_mut());
static HANDLED: AtomicU64 = AtomicU64::new(0);
static RUNNING: AtomicU64 = AtomicU64::new(0);

const SIGNALS: [i32; 4] = [libc::SIGALRM, libc::SIGPROF, libc::SIGUSR1, libc::SIGUSR2];

extern "C" fn handler(signal: i32) {
    RUNNING.fetch_add(1, Ordering::SeqCst);
    if let Some(timer) = TIMERS.iter().find(|timer| timer.signal == signal) {
        timer.has_gone_off.store(true, Ordering::Relaxed);
    }
    // SAFETY: null, or a kit that lives until no handler runs any more.
    if let Some(kit) = unsafe { KIT.load(Ordering::SeqCst).as_ref() } {
        kit.turn();
        HANDLED.fetch_add(1, Ordering::SeqCst);
    }
    RUNNING.fetch_sub(1, Ordering::SeqCst);
}

fn install_handlers() {
    for signal in SIGNALS {
        // SAFETY: plain numbers; an empty mask lets the other signals in.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler as extern "C" fn(i32) as usize;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: the handler does only what signal handlers may.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
}

/// A timer of the program, which goes off once, and is set again by the code that its handler interrupts.
///
/// One that goes off by itself again takes a thread from one handler into the next and never on, where that takes as
/// long: in an emulated machine beside other programs.
struct Timer {
    signal: i32,
    /// The timer's number for `setitimer`.
    number: i32,
    has_gone_off: AtomicBool,
}

static TIMERS: [Timer; 2] = [
    Timer { signal: libc::SIGALRM, number: libc::ITIMER_REAL, has_gone_off: AtomicBool::new(false) },
    Timer { signal: libc::SIGPROF, number: libc::ITIMER_PROF, has_gone_off: AtomicBool::new(false) },
];

impl Timer {
    /// Sets the timer to `span` from now on; 0 stops it.
    fn set(&self, span: Duration) {
        let never = libc::timeval { tv_sec: 0, tv_usec: 0 };
        let value = libc::timeval { tv_usec: span.subsec_micros() as libc::suseconds_t, ..never };
        let value = libc::itimerval { it_interval: never, it_value: value };
        // SAFETY: reads the structure.
        unsafe { libc::setitimer(self.number, &raw const value, std::ptr::null_mut()) };
    }
}

/// The program's timers, which go off 100 µs after each other until this is dropped.
struct RunningTimers;

impl RunningTimers {
    const SPAN: Duration = Duration::from_micros(100);

    fn start() -> RunningTimers {
        TIMERS.iter().for_each(|timer| timer.set(RunningTimers::SPAN));
        RunningTimers
    }

    /// Sets those that have gone off again.
    fn go_on() {
        for timer in &TIMERS {
            if timer.has_gone_off.load(Ordering::Relaxed) && timer.has_gone_off.swap(false, Ordering::Relaxed)
            {
                timer.set(RunningTimers::SPAN);
            }
        }
    }
}

impl Drop for RunningTimers {
    fn drop(&mut self) {
        TIMERS.iter().for_each(|timer| timer.set(Duration::ZERO));
    }
}

/// Lets handlers count in `kit` while `work` runs: how many did.
fn while_signals_count(kit: &Kit, work: impl FnOnce()) -> u64 {
    HANDLED.store(0, Ordering::SeqCst);
    KIT.store(std::ptr::from_ref(kit).cast_mut(), Ordering::SeqCst);
    work();
    KIT.store(std::ptr::null_mut(), Ordering::SeqCst);
    while RUNNING.load(Ordering::SeqCst) > 0 {
        std::thread::yield_now();
    }
    HANDLED.load(Ordering::SeqCst)
}

fn turns_until(kit: &Kit, deadline: Deadline, turns: &AtomicU64) {
    let mut mine = 0;
    while !deadline.is_over() {
        kit.turn();
        mine += 1;
        RunningTimers::go_on();
    }
    turns.fetch_add(mine, Ordering::SeqCst);
}

#[test]
fn counts_of_a_timers_handler_are_exact() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    install_handlers();
    let timers = RunningTimers::start();
    let mut all = 0;
    // often anew, so that it is also a handler that announces a CPU
    for Named { name, pool } in pools().iter().chain(&pools()) {
        let kit = Kit::new(pool);
        let turns = AtomicU64::new(0);
        let handled = while_signals_count(&kit, || {
            let deadline = Deadline::after(budget() / 8);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| turns_until(&kit, deadline, &turns));
                }
            });
        });
        kit.check(turns.into_inner() + handled, name);
        all += handled;
    }
    drop(timers);
    println!("{all} signals");
    assert!(all > 0, "the timers never went off");
}

#[test]
fn counts_are_exact_under_constant_signals() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    install_handlers();
    for Named { name, pool } in &pools() {
        let kit = Kit::new(pool);
        let (turns, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let span = budget() / 6;
        let handled = while_signals_count(&kit, || {
            let (send, receive) = std::sync::mpsc::channel();
            std::thread::scope(|scope| {
                let _stop_at_end = StopAtEnd(&stop);
                for _ in 0..2 {
                    let send = send.clone();
                    let (kit, turns, stop) = (&kit, &turns, &stop);
                    scope.spawn(move || {
                        // SAFETY: names this thread.
                        send.send(unsafe { libc::pthread_self() } as usize).expect("somebody listens");
                        turns_until(kit, Deadline::after(span), turns);
                        // stays to be signalled until the sender is done
                        while !stop.load(Ordering::SeqCst) {
                            std::thread::yield_now();
                        }
                    });
                }
                let threads: Vec<usize> = (0..2).map(|_| receive.recv().expect("a thread")).collect();
                let deadline = Deadline::after(span + Duration::from_millis(5));
                let mut turn = 0;
                while !deadline.is_over() || HANDLED.load(Ordering::SeqCst) < 20 {
                    for &thread in &threads {
                        // SAFETY: the thread runs until `stop`.
                        unsafe { libc::pthread_kill(thread as libc::pthread_t, SIGNALS[2 + turn % 2]) };
                    }
                    turn += 1;
                }
            });
        });
        kit.check(turns.into_inner() + handled, name);
    }
}

// signals, moves and timers at once
#[test]
fn counts_are_exact_under_signals_and_migration() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    install_handlers();
    let timers = RunningTimers::start();
    for Named { name, pool } in &pools() {
        let kit = Kit::new(pool);
        let turns = AtomicU64::new(0);
        let handled = while_signals_count(&kit, || {
            let deadline = Deadline::after(budget() / 8);
            let (send, receive) = std::sync::mpsc::channel();
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    let send = send.clone();
                    let (kit, turns) = (&kit, &turns);
                    scope.spawn(move || {
                        send.send(os::thread_id()).expect("somebody listens");
                        turns_until(kit, deadline, turns);
                    });
                }
                let threads: Vec<i32> = (0..2).map(|_| receive.recv().expect("a thread")).collect();
                os::while_moving(&threads, || {
                    while !deadline.is_over() {
                        os::sleep(Duration::from_millis(1));
                    }
                });
            });
        });
        kit.check(turns.into_inner() + handled, name);
    }
    drop(timers);
}

// signals are for the program's own threads, which may wait for them
#[test]
fn a_watcher_takes_no_signals_from_the_program() {
    if !os::is_child() {
        os::expect_child(&os::this_test("a_watcher_takes_no_signals_from_the_program"), &[]);
        return;
    }
    let pool = Pool::builder().placement(Placement::Flexible).build().expect("pool");
    let watcher = Watcher::start(vec![pool]).expect("watcher");
    // SAFETY: a set of our own.
    unsafe {
        let is_watching = |thread: &PathBuf| {
            let name = std::fs::read_to_string(thread.join("comm"));
            name.is_ok_and(|name| name.trim() == "statctr-hotplug")
        };
        // it has its name a moment after it has begun
        let watching = loop {
            let threads = std::fs::read_dir("/proc/self/task").expect("proc").flatten();
            if let Some(thread) = threads.map(|thread| thread.path()).find(is_watching) {
                break thread;
            }
            std::thread::yield_now();
        };
        let status = std::fs::read_to_string(watching.join("status")).expect("proc");
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).expect("a mask").trim();
        let blocked = u64::from_str_radix(blocked, 16).expect("a number");
        for signal in SIGNALS.into_iter().chain([libc::SIGTERM, libc::SIGINT, libc::SIGCHLD]) {
            assert!(blocked >> (signal - 1) & 1 == 1, "signal {signal} of {blocked:x}");
        }
        // and this thread blocks what it blocked before
        let mut mine: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &raw mut mine);
        assert_eq!(libc::sigismember(&raw const mine, libc::SIGUSR1), 0);
    }
    drop(watcher);
}

/// Objects that the handler updates, each once.
static FLOWS: AtomicPtr<Vec<LazyGroup<PerCpu>>> = AtomicPtr::new(std::ptr::null_mut());
static NEXT: AtomicUsize = AtomicUsize::new(0);
/// Objects that a handler updates at a time.
const AT_A_TIME: usize = 5000;

extern "C" fn update_flows(_signal: i32) {
    // SAFETY: null, or objects that live until the test is over.
    if let Some(flows) = unsafe { FLOWS.load(Ordering::SeqCst).as_ref() } {
        let first = NEXT.fetch_add(AT_A_TIME, Ordering::SeqCst);
        flows.iter().skip(first).take(AT_A_TIME).for_each(|flow| flow.update([1, 10, 7, 2]));
    }
}

// a handler that the allocator was interrupted by may not use it, and what it maps comes by system
// calls alone
#[test]
fn a_handler_maps_memory_for_instances_in_the_middle_of_an_allocation() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let cpus = os::cpus();
    let pool =
        LazyPool::<PerCpu>::new([Combine::Sum, Combine::Sum, Combine::Max, Combine::Or]).expect("pool");
    if cpus.len() < 2 {
        println!("skipped: there is no second CPU that could have an instance");
        return;
    }
    let flows: Vec<_> = (0..200_000).map(|_| pool.create().expect("object")).collect();
    let update_on = |cpu: usize, rounds: usize| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(os::pin(0, &[cpu]), "pinned");
                (0..rounds).for_each(|_| flows.iter().for_each(|flow| flow.update([1, 10, 1, 1])));
            });
        });
    };
    update_on(cpus[0], 1);
    let mapped = pool.memory().expect("smaps").reservations;
    // SAFETY: as in `install_handlers`.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = update_flows as extern "C" fn(i32) as usize;
        libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut());
    }
    FLOWS.store(std::ptr::from_ref(&flows).cast_mut(), Ordering::SeqCst);
    let (over, (send, receive)) = (AtomicBool::new(false), std::sync::mpsc::channel());
    std::thread::scope(|scope| {
        let _stop_at_end = StopAtEnd(&over);
        let (over, cpu) = (&over, cpus[1]);
        scope.spawn(move || {
            assert!(os::pin(0, &[cpu]), "pinned");
            // SAFETY: names this thread.
            send.send(unsafe { libc::pthread_self() } as usize).expect("somebody listens");
            let mut kept = Vec::new();
            while !over.load(Ordering::SeqCst) {
                // in its arena, at the end of it, and by mmap
                kept.push(vec![1u8; 1 + kept.len() % 3000]);
                std::hint::black_box(vec![1u8; 1 << 18]);
                if kept.len() == 5000 {
                    kept.clear();
                }
            }
        });
        let thread = receive.recv().expect("a thread");
        // until all objects were updated there: half of them once more, for the owner's instances
        while NEXT.load(Ordering::SeqCst) < flows.len() + AT_A_TIME {
            // SAFETY: the thread runs until `over`.
            unsafe { libc::pthread_kill(thread as libc::pthread_t, libc::SIGUSR1) };
            os::sleep(Duration::from_micros(200));
        }
    });
    FLOWS.store(std::ptr::null_mut(), Ordering::SeqCst);
    update_on(cpus[0], 1);
    update_on(cpus[1], 1);
    assert!(flows.iter().all(|flow| flow.read() == [4, 40, 7, 3]));
    let memory = pool.memory().expect("smaps");
    assert!(memory.reservations > mapped, "{memory:?}: nothing was mapped, so nothing was tried");
    assert!(flows.iter().all(|flow| flow.instances() == 2), "each has its own");
}
