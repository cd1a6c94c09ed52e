//! Registration of threads for rseq, by every party, with exact counts. `ci/registration` runs the
//! other tests of exactness in each of these ways.
#![cfg(not(feature = "uniprocessor"))]
#![allow(unsafe_code)] // symbols of a library that is preloaded, signals

mod common;

use common::kit::Kit;
use common::{Named, os, pools, scaled};
use statctr::{Counter, FallbackReason, Mode, Placement, Pool, Registration};
use statctr::{fallback_reason, registration, thread_mode};
use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// Settings by which libc leaves the registration of threads to others.
const NOT_BY_LIBC: (&str, &str) = ("GLIBC_TUNABLES", "glibc.pthread.rseq=0");

/// Runs a test again, in a process in which libc registers no thread.
fn again(name: &str, more: &[(&str, &str)]) {
    os::expect_child(&os::this_test(name), &[&[NOT_BY_LIBC], more].concat());
}

/// Returns `true` if there is rseq here, of whatever registration.
fn has_rseq() -> bool {
    let there = thread_mode() == Mode::Rseq;
    if !there {
        println!("skipped: no rseq here");
    }
    there
}

fn fixed() -> Pool {
    Pool::builder().placement(Placement::Fixed).build().expect("pool")
}

/// Returns what sections counted on all CPUs.
fn by_sections(counter: &Counter, pool: &Pool) -> u64 {
    pool.topology().possible().iter().map(|cpu| counter.read_cpu(cpu)).sum()
}

/// Updates everything from threads that are moved about, in every kind of pool.
fn count_exactly(context: &str) {
    for Named { name, pool } in &pools() {
        let kit = Kit::new(pool);
        let cpus = os::cpus();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (kit, cpus) = (&kit, &cpus);
                scope.spawn(move || {
                    for turn in 0..200 {
                        os::pin(0, &[cpus[(thread + turn) % cpus.len()]]);
                        kit.turn();
                    }
                });
            }
        });
        kit.check(800, &format!("{name}, {context}"));
    }
}

#[test]
fn threads_are_registered_when_they_first_count() {
    if !os::is_child() {
        if has_rseq() {
            again("threads_are_registered_when_they_first_count", &[]);
        }
        return;
    }
    assert_eq!(registration(), Some(Registration::Own));
    assert_eq!(fallback_reason(), None);
    let pool = fixed();
    assert_eq!(pool.mode(), Mode::Rseq);
    let counter = Counter::new_in(&pool, 0).expect("counter");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                assert_eq!(os::rseq::cpu(), Some(-1), "not before");
                counter.inc();
                assert!(os::rseq::cpu().is_some_and(|cpu| cpu >= 0));
                counter.inc();
            });
        }
    });
    assert_eq!((counter.read(), by_sections(&counter, &pool)), (16, 16));
    count_exactly("registered by the library");
}

#[test]
fn a_setting_leaves_threads_unregistered() {
    if !os::is_child() {
        return again("a_setting_leaves_threads_unregistered", &[("STATCTR_REGISTER", "0")]);
    }
    assert_eq!((registration(), thread_mode()), (None, Mode::Striped));
    assert_eq!(fallback_reason(), Some(FallbackReason::NotRegistered));
    count_exactly("not registered");
}

#[test]
fn libc_goes_first() {
    let by_libc = registration() == Some(Registration::Libc);
    let size = os::rseq::libc_area_bytes();
    // in the process of a test the kernel's refusal is the only other reason
    assert_eq!(by_libc, size.is_some_and(|bytes| bytes >= 20) && thread_mode() == Mode::Rseq);
    println!("{:?}, libc's area: {size:?}", registration());
}

/// A counter for threads that nothing borrows from. Freed when the test is done with them, as LeakSanitizer
/// does not find memory through a handle's tag.
struct Leaked(*mut Counter);

impl Leaked {
    fn new(counter: Counter) -> Leaked {
        Leaked(Box::into_raw(Box::new(counter)))
    }

    fn get(&self) -> &'static Counter {
        // SAFETY: there until `free`, which a test calls when no thread uses it any more.
        unsafe { &*self.0 }
    }

    fn free(self) {
        // SAFETY: of `new`, and the caller's threads have counted for the last time.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

// musl unmaps the stacks of detached threads while they run
#[test]
fn twenty_thousand_threads_that_end_at_once() {
    if !os::is_child() {
        if has_rseq() {
            again("twenty_thousand_threads_that_end_at_once", &[]);
        }
        return;
    }
    static ENDED: AtomicU64 = AtomicU64::new(0);
    let pool = fixed();
    let leaked = Leaked::new(Counter::new_in(&pool, 0).expect("counter"));
    let counter = leaked.get();
    let threads = scaled(20_000) as u64;
    for number in 0..threads {
        let count = move || {
            (0..5).for_each(|_| counter.inc());
            ENDED.fetch_add(1, Ordering::Release);
        };
        if number % 2 == 0 {
            os::detached(count);
            while number + 1 - ENDED.load(Ordering::Acquire) > 100 {
                std::thread::yield_now();
            }
        } else {
            std::thread::spawn(count).join().expect("a thread");
        }
    }
    while ENDED.load(Ordering::Acquire) != threads {
        std::thread::yield_now();
    }
    assert_eq!(counter.read(), 5 * threads);
    assert_eq!(by_sections(counter, &pool), 5 * threads, "no thread was refused");
    leaked.free();
}

/// Counts when a thread ends, after others of its kind.
struct AtTheEnd(&'static Counter);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        self.0.inc();
    }
}

thread_local! {
    static AT_THE_END: std::cell::RefCell<Option<AtTheEnd>> = const { std::cell::RefCell::new(None) };
}

#[test]
fn threads_may_count_while_they_end() {
    if !os::is_child() {
        if has_rseq() {
            again("threads_may_count_while_they_end", &[]);
        }
        return;
    }
    let leaked = Leaked::new(Counter::new(0).expect("counter"));
    let counter = leaked.get();
    let mut key = 0;
    extern "C" fn count(counter: *mut libc::c_void) {
        // SAFETY: the counter that the key's value is.
        unsafe { &*counter.cast::<Counter>() }.inc();
    }
    // SAFETY: a destructor that lives as long as the program.
    assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(count)) }, 0);
    for number in 0..500 {
        std::thread::spawn(move || {
            AT_THE_END.with(|cell| *cell.borrow_mut() = Some(AtTheEnd(counter)));
            // SAFETY: a key of this process.
            unsafe { libc::pthread_setspecific(key, std::ptr::from_ref(counter).cast()) };
            if number % 2 == 0 {
                counter.inc();
            }
        })
        .join()
        .expect("a thread");
    }
    assert_eq!(counter.read(), 500 + 500 + 250);
    leaked.free();
}

/// For a handler.
static SIGNALLED: AtomicPtr<Counter> = AtomicPtr::new(std::ptr::null_mut());
static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn count_in_a_handler(_signal: libc::c_int) {
    // SAFETY: null, or a counter that lives.
    if let Some(counter) = unsafe { SIGNALLED.load(Ordering::Acquire).as_ref() } {
        counter.inc();
        HANDLED.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_signal_may_come_while_a_thread_is_registered() {
    if !os::is_child() {
        if has_rseq() {
            again("a_signal_may_come_while_a_thread_is_registered", &[]);
        }
        return;
    }
    let pool = fixed();
    let leaked = Leaked::new(Counter::new_in(&pool, 0).expect("counter"));
    let counter = leaked.get();
    SIGNALLED.store(std::ptr::from_ref(counter).cast_mut(), Ordering::Release);
    let handler = count_in_a_handler as extern "C" fn(libc::c_int);
    // SAFETY: a handler that is async-signal-safe.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
    let threads = scaled(3000);
    for number in 0..threads {
        let (send, receive) = std::sync::mpsc::channel();
        let start = Arc::new(AtomicBool::new(false));
        let started = Arc::clone(&start);
        let thread = std::thread::spawn(move || {
            // SAFETY: has no arguments.
            send.send(unsafe { libc::pthread_self() } as usize).expect("somebody listens");
            while !started.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            (0..number % 50).for_each(|_| std::hint::spin_loop());
            counter.inc();
        });
        let thread_id = receive.recv().expect("a thread") as libc::pthread_t;
        // Every fourth thread certainly has its signal, before it counts; the others race with it.
        let before = number % 4 == 0;
        start.store(!before, Ordering::Release);
        // SAFETY: not joined yet, so it is still there.
        unsafe { libc::pthread_kill(thread_id, libc::SIGUSR1) };
        start.store(true, Ordering::Release);
        thread.join().expect("a thread");
    }
    let handled = HANDLED.load(Ordering::Relaxed);
    assert!(handled >= threads as u64 / 8, "{handled} of {threads}");
    assert_eq!(counter.read(), threads as u64 + handled);
    assert_eq!(by_sections(counter, &pool), counter.read(), "no thread was refused");
    SIGNALLED.store(std::ptr::null_mut(), Ordering::Release);
    leaked.free();
}

/// Compiles the library beside this file. `None` where there is no compiler, or it would make a library
/// for another libc.
fn library(name: &str, flags: &[&str]) -> Option<PathBuf> {
    if cfg!(not(target_env = "gnu")) {
        println!("skipped: told for glibc");
        return None;
    }
    if !os::has_program("cc") {
        println!("skipped: no cc");
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/registration/area.c");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()));
    let mut compile = Command::new("cc");
    compile
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror"])
        .args(flags)
        .arg("-o")
        .arg(&target)
        .arg(source);
    assert!(compile.status().expect("starts").success(), "{compile:?}");
    Some(target)
}

/// Returns a function of the library that was preloaded.
fn from_library(name: &CStr) -> extern "C" fn() -> i32 {
    // SAFETY: a name that ends.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    assert!(!function.is_null(), "{name:?}");
    // SAFETY: both of the library's functions have this type.
    unsafe { std::mem::transmute(function) }
}

#[test]
fn the_area_of_another_library_is_adopted() {
    if !os::is_child() {
        let Some(library) = library("area.so", &[]).filter(|_| has_rseq()) else { return };
        let preload = library.to_str().expect("UTF-8");
        for before in ["0", "1"] {
            again("the_area_of_another_library_is_adopted", &[("LD_PRELOAD", preload), ("BEFORE", before)]);
        }
        let _ = std::fs::remove_file(library);
        return;
    }
    let (register, cpu) = (from_library(c"area_register"), from_library(c"area_cpu"));
    let before = std::env::var("BEFORE").is_ok_and(|text| text == "1");
    if before {
        assert_eq!(register(), 0, "it comes first");
    }
    assert_eq!((registration(), thread_mode()), (Some(Registration::Adopted), Mode::Rseq));
    assert!(cpu() >= 0, "it is the library's area");
    assert_eq!(register(), 0, "and it comes second, and does not notice");
    let pool = fixed();
    let counter = Counter::new_in(&pool, 0).expect("counter");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let counter = &counter;
            scope.spawn(move || {
                assert_eq!(cpu(), -1);
                if thread % 2 == 0 {
                    assert_eq!(register(), 0);
                }
                counter.inc();
                assert!(cpu() >= 0);
                assert_eq!(register(), 0);
                counter.inc();
            });
        }
    });
    assert_eq!((counter.read(), by_sections(&counter, &pool)), (16, 16));
    count_exactly("in the area of another library");
}

#[test]
fn an_area_that_is_not_shown_is_left_alone() {
    if !os::is_child() {
        let Some(library) = library("hidden.so", &["-DHIDDEN"]).filter(|_| has_rseq()) else { return };
        let preload = library.to_str().expect("UTF-8");
        again("an_area_that_is_not_shown_is_left_alone", &[("LD_PRELOAD", preload)]);
        let _ = std::fs::remove_file(library);
        return;
    }
    // libtest runs this on a thread of its own, and the library registered the first one only
    let (register, cpu) = (from_library(c"area_register"), from_library(c"area_cpu"));
    assert_eq!(register(), 0);
    assert_eq!(registration(), None);
    assert_eq!(fallback_reason(), Some(FallbackReason::RegisteredElsewhere));
    count_exactly("beside an area that is not known");
    assert!(cpu() >= 0, "its registration is untouched");
    std::thread::spawn(move || assert_eq!(register(), 0, "and so are those to come"))
        .join()
        .expect("a thread");
}
