//! Counts are exact where there is no rseq: in the whole program, in some threads, now and then, and
//! under tools that stop a program after every instruction or run it on CPUs of their own.
#![cfg(not(feature = "uniprocessor"))]
#![allow(unsafe_code)] // functions that a debugger finds by their names

mod common;

use common::kit::Kit;
use common::{Deadline, Named, budget, os, pools, pools_by_width};
use statctr::{Mode, Pool, thread_mode};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts some turns on several threads, in every kind of pool.
fn count_in_threads(turns: u64) {
    for Named { name, pool } in &pools() {
        let kit = Kit::new(pool);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..turns).for_each(|_| kit.turn()));
            }
        });
        kit.check(3 * turns, name);
    }
}

/// Returns `true` if this program has rseq: a processor with sections, and a kernel and a sandbox that
/// let it.
fn has_rseq() -> bool {
    thread_mode() == Mode::Rseq
}

#[test]
fn a_program_without_rseq_counts_exactly() {
    if os::is_child() {
        assert_eq!(thread_mode(), Mode::Striped);
        let pool = &pools_by_width()[0].pool;
        assert_eq!(pool.mode(), Mode::Striped);
        count_in_threads(5000);
        println!("counted without rseq");
        return;
    }
    let this = os::this_test("a_program_without_rseq_counts_exactly");
    let output =
        os::expect_child(&this, &[("GLIBC_TUNABLES", "glibc.pthread.rseq=0"), ("STATCTR_REGISTER", "0")]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("counted without rseq"));
}

#[test]
fn some_unregistered_threads_count_exactly() {
    if !has_rseq() {
        println!("skipped: no rseq");
        return;
    }
    for Named { name, pool } in &pools() {
        let kit = Kit::new(pool);
        let turns = AtomicU64::new(0);
        let deadline = Deadline::after(budget() / 6);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (kit, turns) = (&kit, &turns);
                scope.spawn(move || {
                    if thread % 2 == 0 {
                        assert_eq!(thread_mode(), Mode::Rseq);
                        os::rseq::unregister().expect("was registered");
                        let again = os::registers_by_itself();
                        assert_eq!(thread_mode(), if again { Mode::Rseq } else { Mode::AtomicFallback });
                    }
                    let mut mine = 0;
                    while !deadline.is_over() {
                        kit.turn();
                        mine += 1;
                    }
                    turns.fetch_add(mine, Ordering::Relaxed);
                });
            }
        });
        kit.check(turns.into_inner(), name);
    }
}

// both are words of their own, so a thread may go from one to the other at any time
#[test]
fn threads_that_register_and_unregister_count_exactly() {
    if !has_rseq() {
        println!("skipped: no rseq");
        return;
    }
    for Named { name, pool } in &pools() {
        let kit = Kit::new(pool);
        let turns = AtomicU64::new(0);
        let deadline = Deadline::after(budget() / 6);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut mine = 0;
                    while !deadline.is_over() {
                        assert_eq!(thread_mode(), Mode::Rseq);
                        let size = os::rseq::unregister().expect("was registered");
                        kit.turn();
                        assert!(os::rseq::register(size));
                        kit.turn();
                        mine += 2;
                    }
                    turns.fetch_add(mine, Ordering::Relaxed);
                });
            }
        });
        kit.check(turns.into_inner(), name);
    }
}

#[test]
fn under_valgrind() {
    if os::is_child() {
        // one pool and few turns: this machine is slow
        let Named { name, pool } = &pools_by_width()[0];
        let kit = Kit::new(pool);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..500).for_each(|_| kit.turn()));
            }
        });
        kit.check(1500, name);
        println!("counted in the mode {:?}", pool.mode());
        return;
    }
    if !os::has_program("valgrind") {
        println!("skipped: no valgrind");
        return;
    }
    let valgrind = ["valgrind", "--quiet", "--error-exitcode=9", "--tool=memcheck"].map(str::to_owned);
    let with_valgrind =
        |arguments: Vec<String>| valgrind.iter().cloned().chain(arguments).collect::<Vec<_>>();
    let command = with_valgrind(os::this_test("under_valgrind"));
    // it cannot run programs that are built with a sanitizer, nor 32-bit ones without their debug files
    let list = with_valgrind(vec![command[valgrind.len()].clone(), "--list".into()]);
    if !os::starts_well(&list) {
        println!("skipped: this valgrind does not run this program");
        return;
    }
    let output = os::expect_child(&command, &[]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("counted in the mode"));
}

/// Changed by the two functions, so that the compiler does not make one of them, or none.
static STEPPING: AtomicU64 = AtomicU64::new(0);

/// Marks the place where the debugger begins to single-step.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn statctr_test_steps_begin() {
    // SAFETY: a static word that nobody else uses now.
    unsafe { STEPPING.as_ptr().write_volatile(1) };
}

/// Marks the place where it goes on at full speed.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn statctr_test_steps_end() {
    // not what the other one does, or the optimiser makes one function of both
    // SAFETY: a static word that nobody else uses now.
    unsafe { STEPPING.as_ptr().write_volatile(2) };
}

// a section that is stopped after each instruction never commits: the number of tries is bounded,
// then the update goes to the fallback cell
#[test]
fn under_a_debugger_that_steps() {
    if os::is_child() {
        let Named { pool, .. } = &pools_by_width()[0];
        let kit = Kit::new(pool);
        kit.turn();
        let per_cpu = |pool: &Pool| -> u64 {
            pool.topology().possible().iter().map(|cpu| kit.counter.read_cpu(cpu)).fold(0, u64::wrapping_add)
        };
        let before = per_cpu(pool);
        statctr_test_steps_begin();
        kit.counter.inc();
        kit.counter.add(99);
        kit.lines[5].commit();
        kit.lines[1].commit();
        statctr_test_steps_end();
        // a stripe is a CPU's, too, and has no section
        let in_sections = pool.mode() != Mode::Striped;
        let stepped = if in_sections { per_cpu(pool).wrapping_sub(before) } else { 0 };
        assert_eq!(kit.counter.read(), (1 << 40) + 200);
        assert_eq!(kit.lines[5].group.read(), [2, 4, 6, 8, 10, 12, 14, 16, 9]);
        assert_eq!(kit.lines[1].group.read(), [2, 4, 3]);
        println!("counted, {stepped} of 100 in sections");
        return;
    }
    if !os::has_program("gdb") {
        println!("skipped: no gdb");
        return;
    }
    // At the very addresses, in a language that knows them: these functions have no prologue to be
    // passed over. Then as many steps as it takes to the second one, and not for ever.
    let script = [
        "set pagination off",
        "set confirm off",
        "set language c",
        "set breakpoint pending on",
        "handle SIGALRM nostop noprint",
        "break *statctr_test_steps_begin",
        "break *statctr_test_steps_end",
        "run",
        "stepi 2000000",
        "info breakpoints",
        "delete",
        "continue",
    ];
    let commands = script.iter().flat_map(|line| ["-ex".to_owned(), (*line).to_owned()]);
    // far beyond what it takes: busy machines step slowly
    let start = ["timeout", "600", "gdb", "-nx", "-batch"].map(str::to_owned).into_iter();
    let command: Vec<String> = start
        .chain(commands)
        .chain(["--args".to_owned()])
        .chain(os::this_test("under_a_debugger_that_steps"))
        .collect();
    let output = os::run_child(&command, &[]);
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    if text.contains("ptrace: Operation not permitted") || text.contains("Couldn't get registers") {
        println!("skipped: no debugging here");
        return;
    }
    let both = text.matches("breakpoint already hit 1 time").count();
    assert!(output.status.success() && both == 2, "{text}");
    assert!(text.contains("counted, 0 of 100 in sections"), "{text}");
}
