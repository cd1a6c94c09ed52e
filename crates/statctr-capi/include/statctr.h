/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * statctr: statistics counters that scale, from C (C11) and C++ (C++17).
 *
 *     static statctr_t packets;                    // zeroed: not initialised yet
 *     int error = statctr_init(&packets, 0);       // 0, or a negative errno
 *     statctr_inc(&packets);                       // on any thread, in a signal handler
 *     unsigned long n = statctr_read(&packets);
 *     statctr_cleanup(&packets);
 *
 * Link with `pkg-config --cflags --libs statctr`. Groups of counters that are updated together
 * are in <statctr/group.h>, counters that need no initialisation, and a registry, in
 * <statctr/static.h>, families of them by labels in <statctr/family.h>, histograms, maxima and minima in
 * <statctr/histogram.h> and <statctr/extremes.h>, floating-point gauges in <statctr/float_gauge.h>, and the registry's
 * other kinds in <statctr/registry.h>; this file includes them all.
 *
 * # Cost of an update
 * On x86-64 and aarch64 with GCC or clang an update is inline: a dozen plain instructions on memory that no
 * other CPU writes, made safe against preemption and migration by a restartable sequence (rseq(2)).
 * It never takes a lock, never allocates, never makes a system call on that path; a thread's first
 * update does, where the C library registers no threads (musl, glibc before 2.35). Elsewhere it is a library call. A counter takes 8 bytes for each CPU that counted,
 * and 16 bytes for its handle.
 *
 * In a hot loop with clang, copy the handle to a local variable. Clang takes every update for one
 * that could change all memory, handles included, and reads the handle again each time: 0.95 ns
 * instead of 0.53 ns in a loop of nothing else, on a virtual Intel Xeon with AMX. A copy of a handle
 * names the same counter, and the compiler keeps it in registers. GCC needs no such help.
 *
 *     statctr_t hot = device->packets;
 *     for (size_t i = 0; i < count; i++) statctr_inc(&hot);
 *
 * # Rules for every function
 * Units:     counters are 64-bit, modulo 2^64; what is counted is yours to say. `unsigned long`
 *            parameters are those of the interface's reference; where it has 32 bits, use the
 *            functions with uint64_t for the whole value.
 * Errors:    0, or a negative errno (-EINVAL, -ENOMEM, ...), which statctr_strerror() explains.
 *            NULL and handles that are all zero (never initialised, or cleaned up) are refused
 *            with -EINVAL. What cannot be seen: a handle of indeterminate content (an automatic
 *            variable without an initialiser), and copies of a handle: cleaning up one leaves the
 *            others dangling, to use those is undefined.
 * Order:     updates are atomic and otherwise relaxed. An update that happens before a read (by a
 *            lock, a join, a release and an acquire) is in it, whatever CPUs the two ran on.
 *            Successive reads by one reader of a counter that is only added to never go down.
 * Threads:   every function may be called from any thread at any time, on one handle by many,
 *            except that init and cleanup must not run at the same time as anything else on the
 *            same handle.
 * Signals:   the updates and statctr_read() are async-signal-safe: they take no lock, allocate
 *            nothing, and leave errno alone. The others are not.
 * fork:      a child of fork() goes on from its parent's counts, in its own memory. The library's
 *            locks survive the fork. A child of vfork(), or of clone() with CLONE_VM and without
 *            CLONE_THREAD, must not count before it calls exec: it shares its parent's memory,
 *            and its CPU number is out of date. _Fork(), and clone() without CLONE_VM past libc,
 *            run no fork handlers: such a child may update and read; every other function may find
 *            a lock held for ever, where the parent had more threads.
 * Threads past libc: one that clone() made with an area of its own (CLONE_SETTLS) is not
 *            registered for rseq by libc. It may count where the area's cpu_id is -1, as libc makes it; in
 *            an area of zeros it says CPU 0, and counts are lost. With musl it must not count.
 * CRIU:      counts go on after a restore (CRIU 3.17 and later restores the registration). On a
 *            machine with more CPUs those that are new count on the shared word, exactly, up to
 *            CPU 8191. Not with STATCTR_UP on a machine with more than one CPU.
 * Unloading: libstatctr itself stays loaded. Before code of yours that counts is unloaded with
 *            dlclose(), see statctr_prepare_unload().
 * Panics:    never cross into your code: a fault inside the library is -ENOTRECOVERABLE.
 * Callbacks: functions that the library calls (of visits, of texts, of moved counts) return to it. A C++ exception that
 *            leaves one ends the process, as Rust code cannot pass it on; a longjmp() out of one is
 *            undefined: keep the error where `context` leads to, and return a number that ends the visit.
 * Memory:    -ENOMEM where there is no address space or memory for counters, and where the heap has no room for the
 *            description of a new set of units, which an init may need. All else that the library keeps on the
 *            heap is as in other programs in Rust: where malloc() has nothing left the process ends, with a message
 *            and SIGABRT. That goes for the first call, which sets the library up, registration, visits, the text for
 *            Prometheus, snapshots of histograms, new members of families, and the bookkeeping of some bytes that
 *            an init may add. Updates and statctr_read() allocate nothing.
 *
 * # Switches, to be defined before the inclusion
 * STATCTR_UP         built for one CPU: statctr_t is a plain unsigned long, an update is one
 *                    unlocked instruction, and init refuses with -ENOTSUP where more CPUs are
 *                    possible. All files that share a statctr_t must agree on it. A second CPU is
 *                    looked for in /sys/devices/system/cpu/possible and present, /proc/softirqs,
 *                    /proc/stat, the affinity of all threads of the process and of process 1, and
 *                    the cpuset (a thread that lives for a moment asks for all CPUs). What cannot
 *                    be detected: a container in which all of these show one CPU, and whose cpuset
 *                    grows after the init; counts are lost there.
 * STATCTR_NO_INLINE  every update is a library call: smaller code, and no part of the library's
 *                    memory layout in your binary. Files that are compiled with -masm=intel need it: the inline
 *                    code is in AT&T's syntax, and does not assemble there.
 */
#ifndef STATCTR_H
#define STATCTR_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

/* These headers are C first: its casts are no defect of a C++ program that includes them as its own. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuseless-cast"
#endif
#endif

/** Version of this header. */
#define STATCTR_VERSION_MAJOR 0
#define STATCTR_VERSION_MINOR 1
#define STATCTR_VERSION_PATCH 0

/**
 * Memory layout that the inline updates rely on. A library with another value of
 * statctr_abi() refuses code that was compiled with this header: statctr_init(), statctr_ninit(),
 * statctr_group_init() and statctr_lazy_init() return -EPROTO and zero the handle, and
 * pcpu_ctr_alloc() returns NULL. Code that was compiled with STATCTR_NO_INLINE does not rely on it
 * and is let in. It changes only together with the library's soname.
 */
#define STATCTR_ABI 1u

#ifdef __cplusplus
#define STATCTR_STATIC_ASSERT_(condition, text) static_assert(condition, text)
extern "C" {
#else
#define STATCTR_STATIC_ASSERT_(condition, text) _Static_assert(condition, text)
#endif

/**
 * Handle of a counter. Zeroed: not initialised. The fields are for the functions of
 * this header only.
 */
typedef struct statctr_handle {
    uintptr_t base;  /* the counter's home word */
    uintptr_t table; /* the table of the CPUs' displacements from there, tagged */
} statctr_handle_t;

STATCTR_STATIC_ASSERT_(sizeof(statctr_handle_t) == 2 * sizeof(void *), "statctr_handle_t has no padding");

/**
 * A counter. Initialise with statctr_init(); statically allocated is not enough: for that there is
 * STATCTR_DEFINE().
 */
#ifdef STATCTR_UP
typedef unsigned long statctr_t;
#else
typedef statctr_handle_t statctr_t;
#endif

/** Mechanism by which counters are updated. */
enum statctr_mode_value {
    STATCTR_MODE_RSEQ = 1,         /* per CPU, by restartable sequences */
    STATCTR_MODE_ATOMIC = 2,       /* on one word, atomically: a thread without rseq, a new static */
    STATCTR_MODE_UNIPROCESSOR = 3, /* one possible CPU: on one word, by one unlocked instruction */
    STATCTR_MODE_SHARED = 4,       /* on one word, atomically, by choice */
    STATCTR_MODE_SHORT = 5,        /* as RSEQ, but a CPU found no memory for words of its own yet */
    STATCTR_MODE_STRIPED = 6       /* on a word per CPU, atomically: rseq is absent or was refused */
};

/** Party that registers threads with the kernel for rseq. */
enum statctr_registration_value {
    STATCTR_REGISTRATION_NONE = 0,   /* nobody: see statctr_fallback_reason() */
    STATCTR_REGISTRATION_LIBC = 1,   /* the C library: glibc 2.35 and later, 2.34-37 of RHEL 9 */
    STATCTR_REGISTRATION_OWN = 2,    /* this library, when a thread first counts */
    STATCTR_REGISTRATION_ADOPTED = 3 /* as OWN, in the area that another library shows (tcmalloc) */
};

/** Costs of counters (in bytes, and numbers of units). */
typedef struct statctr_cost {
    uint64_t bytes_per_counter_per_cpu;
    uint64_t units;      /* how many CPUs have a unit of their own */
    uint64_t unit_bytes; /* bytes of counters in a unit */
    uint64_t stride;     /* bytes of address space from one unit to the next */
    uint64_t vector_bytes; /* bytes of the widest store that commits an event */
} statctr_cost_t;

/** Memory that counters occupy at this moment. */
typedef struct statctr_memory {
    uint64_t reserved;     /* bytes of address space */
    uint64_t resident;     /* bytes of memory behind it */
    uint64_t reservations; /* sets of units */
    uint64_t slots;        /* of 8 bytes, that counters and groups have, with the groups' holes */
} statctr_memory_t;

STATCTR_STATIC_ASSERT_(sizeof(statctr_cost_t) == 40 && sizeof(statctr_memory_t) == 32, "no padding");

/* ------------------------------------------------------------------------------------------- */
/* The library as a whole                                                                      */

/**
 * Returns the library's version, "major.minor.patch"; a static string.
 * Cost: a call. Signals: safe.
 */
const char *statctr_version(void);

/** Returns the library's value of STATCTR_ABI. Cost: a call. Signals: safe. */
unsigned statctr_abi(void);

/**
 * Explains what a negative errno means when it comes from this library; a static string, never
 * NULL, also for other numbers. Cost: a call. Signals: safe.
 */
const char *statctr_strerror(int error);

/**
 * Returns the mode of this process's updates, an enum statctr_mode_value. The first call sets the
 * library up. Cost: a call, after the first one. Errors: as statctr_init(). Signals: not safe.
 */
int statctr_mode(void);

/**
 * Returns the mode of the calling thread's updates: that of statctr_mode(), but STATCTR_MODE_ATOMIC
 * for a thread whose rseq registration was refused or taken back: its updates go to the shared
 * word. Cost: a call, after the first one. Errors: as statctr_init(). Signals: not safe.
 */
int statctr_thread_mode(void);

/**
 * Returns the reason why this process does not count by rseq, where statctr_mode() is
 * STATCTR_MODE_STRIPED; a static string, NULL where it does. On aarch64 the first counter tests
 * whether the kernel aborts preempted sections (two threads of a few milliseconds, two seconds at
 * most): kernels that do not were reported (Linux 6.19), and counters are atomic there, and where
 * it cannot be tested.
 * Cost: a call. Signals: safe.
 */
const char *statctr_fallback_reason(void);

/**
 * Returns the party that registers this process's threads for rseq, an enum
 * statctr_registration_value. Where the C library does not, this library does, unless the
 * environment has STATCTR_REGISTER=0: a thread's first update makes one system call more.
 * Cost: a call; the first one in a process may start a thread. Errors: none. Signals: not safe.
 */
int statctr_registration(void);

/**
 * Touches the memory of these CPUs' counters, so that later updates there have no page fault.
 * `cpus` is a list as in "0-3,8"; NULL stands for all CPUs that are online. It covers the memory
 * reserved so far: call it after the counters were made.
 * Cost: system calls and a page fault a page. Errors: -EINVAL (not a list), -ENOMEM. Signals: not
 * safe.
 */
int statctr_prefault(const char *cpus);

/**
 * Reports the costs of counters. Cost: a call. Errors: -EINVAL (NULL); as statctr_init(). Signals:
 * not safe.
 */
int statctr_get_cost(statctr_cost_t *cost);

/**
 * Reports the memory that counters occupy. Cost: system calls, in proportion to the memory
 * reserved. Errors: -EINVAL (NULL), -EIO and others where the kernel does not tell. Signals: not safe.
 */
int statctr_get_memory(statctr_memory_t *memory);

/**
 * Makes the calling thread forget the code of the last inline update that it ran.
 *
 * A thread's rseq area goes on naming the section of its last update after the update is over,
 * and the kernel follows that address at the thread's next preemption, migration or signal. If
 * the section's code was unmapped by dlclose() in between, the kernel kills the process. So every
 * thread that ran inline updates *in code that is to be unloaded*, and is still alive, calls this
 * after its last update there and before the dlclose(). Programs that unload nothing, and code
 * compiled with STATCTR_NO_INLINE, need not.
 * Cost: one store. Errors: none; returns 0. Signals: safe.
 */
int statctr_prepare_unload(void);

/* ------------------------------------------------------------------------------------------- */
/* Counters                                                                                    */

/* What each function is here; of the _INIT_ ones the inline part passes STATCTR_ABI on. */
#if defined(STATCTR_UP)
#define STATCTR_INIT_ static inline
#define STATCTR_SETUP_ static inline
#define STATCTR_UPDATE_ static inline
#elif !defined(STATCTR_NO_INLINE) && defined(__linux__) && defined(__LP64__) &&       \
    (defined(__x86_64__) || defined(__AARCH64EL__)) &&                                      \
    ((defined(__clang__) && __clang_major__ >= 9) || (!defined(__clang__) && defined(__GNUC__) && __GNUC__ >= 7))
#define STATCTR_INLINE_ 1
#define STATCTR_INIT_ static inline
#define STATCTR_SETUP_ extern
#define STATCTR_UPDATE_ static inline
#else
#define STATCTR_INIT_ extern
#define STATCTR_SETUP_ extern
#define STATCTR_UPDATE_ extern
#endif

/**
 * Initialises a counter with the value `value`. The former content of `counter` is ignored: to
 * initialise a live counter again leaks it.
 * Cost: a lock and a few hundred instructions; the first call sets the library up (it reads files
 * under /sys and reserves address space); STATCTR_UP: some files and a thread, about 0.1 ms.
 * Errors: -EINVAL (NULL), -ENOMEM (see Memory at the top of this file), -ENOTSUP (STATCTR_UP), -EPROTO
 * (compiled with the header of a library of another STATCTR_ABI). The handle is zeroed on error.
 * Signals: not safe.
 */
STATCTR_INIT_ int statctr_init(statctr_t *counter, unsigned long value);

/**
 * Initialises `count` counters, each with the value `value`: all, or none and an error. Their per-CPU
 * words are interlaced in cache lines.
 * Cost and errors: as statctr_init(), per counter; -EINVAL for a negative count. Signals: not
 * safe.
 */
STATCTR_INIT_ int statctr_ninit(statctr_t *counters, int count, unsigned long value);

/**
 * Gives a counter's memory back and zeroes the handle. Nothing else may be using the counter.
 * Cost: a lock. Errors: -EINVAL (NULL; not initialised, so also a second cleanup). Signals: not
 * safe. STATCTR_UP: sets the counter to 0; there is nothing to give back, nor a second cleanup to
 * be seen.
 */
STATCTR_SETUP_ int statctr_cleanup(statctr_t *counter);

/**
 * Cleans up `count` counters, as many as were initialised.
 * Cost: as statctr_cleanup(), per counter. Errors: -EINVAL where `counters` is NULL, `count` is
 * negative, or any of them was not initialised. Signals: not safe.
 */
STATCTR_SETUP_ int statctr_ncleanup(statctr_t *counters, int count);

/**
 * Sets the value. A concurrent update is wholly in or wholly out, and no reader sees
 * less than the new value; two concurrent calls and a reader need not agree on an order (not
 * linearizable). Writers are not disturbed: no CPU's word is written.
 * Cost: a lock and a read. Errors: -EINVAL. Signals: not safe (STATCTR_UP: safe).
 */
STATCTR_SETUP_ int statctr_set(statctr_t *counter, unsigned long value);

/**
 * Returns the value: the sum over the CPUs that ever counted, modulo ULONG_MAX + 1. 0 where there is no
 * counter to read (NULL, not initialised); statctr_read_checked() tells the difference.
 * A counter that goes down, too (statctr_dec(), statctr_sub()), can read ULONG_MAX or a little less
 * for a moment: where a thread has added on a CPU that the read has passed, moved, and taken away on
 * one that the read has not come to. So read it as (long)statctr_read(), and take what is below 0
 * for 0. When writers have stopped it is exact, as always.
 * Cost: one cache line for each CPU that counted. Signals: safe.
 */
STATCTR_SETUP_ unsigned long statctr_read(const statctr_t *counter);

/**
 * Reads the value as statctr_read() does, with an error and the whole 64 bits. `*value` is left
 * alone on error.
 * Errors: -EINVAL (a NULL, or not initialised). Signals: safe.
 */
STATCTR_SETUP_ int statctr_read_checked(const statctr_t *counter, uint64_t *value);

#ifndef STATCTR_UP
/**
 * Reads one CPU's part of the value: what was counted there since initialisation. Initial value,
 * statctr_set(), and updates that could not be made per CPU are on no CPU. 0 for a CPU that never
 * counted, or that does not exist.
 * Cost: one cache line. Errors: -EINVAL (a NULL, or not initialised). Signals: safe.
 */
extern int statctr_read_cpu(const statctr_t *counter, unsigned cpu, uint64_t *value);
#endif

/**
 * Adds `value`, modulo 2^64.
 * Cost: see the top of this file; a process's first update on a CPU announces the CPU, and the
 * first touch of a page is a page fault (see statctr_prefault()). Errors: -EINVAL (NULL, or not
 * initialised), and then nothing is counted. Order: relaxed. Signals: safe.
 */
STATCTR_UPDATE_ int statctr_add(statctr_t *counter, unsigned long value);

/** Subtracts `value`, modulo 2^64. Otherwise as statctr_add(). */
STATCTR_UPDATE_ int statctr_sub(statctr_t *counter, unsigned long value);

/** Adds 1. Otherwise as statctr_add(); in a row on one counter up to three times as fast. */
STATCTR_UPDATE_ int statctr_inc(statctr_t *counter);

/** Subtracts 1. Otherwise as statctr_inc(). */
STATCTR_UPDATE_ int statctr_dec(statctr_t *counter);

/*
 * For the inline code of this header only. The way out of an inline update: tries again a bounded
 * number of times, then uses the shared word. It takes the handle by value, so that a local copy
 * of a handle can stay in registers.
 *
 * To GCC it changes nothing that the compiler can see, so it is `const` there: or the handle would have to be read
 * again after each update that *could* have taken it. <statctr/update.h> keeps its calls in place.
 */
#if defined(STATCTR_INLINE_) && !defined(__clang__)
#define STATCTR_CONST_ __attribute__((const))
#else
#define STATCTR_CONST_
#endif
extern STATCTR_CONST_ int statctr_slow_add(uintptr_t base, uintptr_t table, uint64_t value);

/* For the inline code of this header only: refuses code of another STATCTR_ABI. */
extern int statctr_init_abi(statctr_handle_t *counter, unsigned long value, unsigned abi);
extern int statctr_ninit_abi(statctr_handle_t *counters, int count, unsigned long value, unsigned abi);

#if defined(STATCTR_INLINE_)
static inline int statctr_init(statctr_t *counter, unsigned long value)
{
    return statctr_init_abi(counter, value, STATCTR_ABI);
}

static inline int statctr_ninit(statctr_t *counters, int count, unsigned long value)
{
    return statctr_ninit_abi(counters, count, value, STATCTR_ABI);
}
#endif

/* For the inline code of this header only: 0 where no source knows of a second CPU, else -ENOTSUP. */
extern int statctr_up_check(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#if defined(STATCTR_UP)
#include <statctr/up.h>
#endif
#include <statctr/group.h>
#include <statctr/allocator.h>
#include <statctr/lazy.h>
#include <statctr/static.h>
#if defined(STATCTR_INLINE_)
/* Always: an inline function with asm in it looks larger to a compiler than it is. */
#define STATCTR_ALWAYS_INLINE_ static inline __attribute__((always_inline))
#define STATCTR_LIKELY_(condition) __builtin_expect(!!(condition), 1)
#if defined(__x86_64__)
#include <statctr/x86_64.h>
#else
#include <statctr/aarch64.h>
#endif
#endif
#include <statctr/histogram.h>
#include <statctr/extremes.h>
#include <statctr/float_gauge.h>
#include <statctr/registry.h>
#include <statctr/family.h>

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif /* STATCTR_H */
