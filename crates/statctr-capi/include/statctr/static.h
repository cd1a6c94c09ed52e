/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Counters, gauges and extremes that are statics, and the registry: counters by name. <statctr.h> includes this
 * file. Other kinds in the registry are in <statctr/registry.h>, families of statics by labels in <statctr/family.h>.
 *
 *     STATCTR_DEFINE(requests);             // at file scope; nothing is to be initialised
 *     statctr_static_inc(&requests);        // anywhere: constructors, signal handlers, threads
 *
 *     static int print(const statctr_sample_t *sample, void *file)
 *     {
 *         return fprintf(file, "%s %" PRIu64 "\n", sample->desc.name, sample->value) < 0;
 *     }
 *     statctr_visit(print, stdout);         // requests 1
 *
 * A static counter is data of the program, and has no other memory before its first update. That may be
 * in a constructor, in a signal handler in the middle of malloc(), or on several threads at once: it takes
 * no lock and calls no allocator. It takes 8 bytes for each CPU that counts, which are never given back.
 * Where that cannot be had at once, updates go to a word of the static, atomically, and later ones try
 * again: where memory is short; where the C library registers no threads for rseq, and on aarch64, until
 * statctr_prepare(), statctr_visit() or the first statctr_init(), as a signal handler must not do what
 * these do.
 */
#ifndef STATCTR_H
#include <statctr.h> /* and that this file, after its own part */
#endif
#ifndef STATCTR_STATIC_H
#define STATCTR_STATIC_H

#ifdef __cplusplus
extern "C" {
#define STATCTR_ALIGNAS_(bytes) alignas(bytes)
#else
#define STATCTR_ALIGNAS_(bytes) _Alignas(bytes)
#endif

/**
 * Counter that is a static, made by STATCTR_DEFINE(), or a member of a family. The fields are for this header only.
 */
typedef struct statctr_static {
    uintptr_t fast;                     /* the home word, where updates are in line */
    uintptr_t base;                     /* the home word, once there is one */
    uintptr_t table;                    /* as in a handle; 0 before the first update */
    STATCTR_ALIGNAS_(8) uint64_t early; /* what was counted before that */
    struct statctr_static *next;        /* in the list of statics */
    STATCTR_ALIGNAS_(8) uint64_t state; /* of that list */
    const char *name;
    const char *help;
    const char *unit;
} statctr_static_t;

/* What the updates are here: with STATCTR_UP they are calls, too. */
#if defined(STATCTR_INLINE_)
#define STATCTR_STATIC_UPDATE_ static inline
#else
#define STATCTR_STATIC_UPDATE_ extern
#endif

/**
 * Defines a counter as a global variable `id`, whose name in the registry is that of the variable. Put
 * it at file scope. With GCC and clang the registry has it, with the value 0, from when the program, or
 * the library that it is in, is loaded; else from its first update. Several statics of one name are one
 * in the registry, with the sum of their values.
 */
#define STATCTR_DEFINE(id) STATCTR_DEFINE_AS(id, #id, "", "")

/** Defines a counter with a name of letters, digits, `_` and `:`, a help text and a unit. */
#define STATCTR_DEFINE_AS(id, name, help, unit)            \
    statctr_static_t id = { 0, 0, 0, 0, NULL, 0, name, help, unit }; \
    STATCTR_LIST_(id)                                      \
    struct statctr_static

/** Declares a counter that another file defines. */
#define STATCTR_DECLARE(id) extern statctr_static_t id

#if defined(__GNUC__)
#define STATCTR_LIST_(id)                                                     \
    __attribute__((constructor)) static void statctr_list_##id##_(void)       \
    {                                                                         \
        statctr_static_list(&id);                                             \
    }
#else
#define STATCTR_LIST_(id)
#endif

/**
 * Adds `value`, modulo 2^64.
 * Cost: that of statctr_add() on a handle in memory; the first update also some system calls. Updates in a function
 * that had begun before the counter's first update may be calls until it returns (2.5 to 3.3 ns in place of 0.5, AMD
 * EPYC, Zen 5), its first one included: a program whose main() has its loop adds 0 to its counters in a function of
 * their own before. Errors: -EINVAL (NULL). Order: relaxed. Signals: safe. Before main: yes.
 */
STATCTR_STATIC_UPDATE_ int statctr_static_add(statctr_static_t *counter, uint64_t value);

/** Subtracts `value`, modulo 2^64. Otherwise as statctr_static_add(). */
STATCTR_STATIC_UPDATE_ int statctr_static_sub(statctr_static_t *counter, uint64_t value);

/** Adds 1. Otherwise as statctr_static_add(). */
STATCTR_STATIC_UPDATE_ int statctr_static_inc(statctr_static_t *counter);

/** Subtracts 1. Otherwise as statctr_static_add(). */
STATCTR_STATIC_UPDATE_ int statctr_static_dec(statctr_static_t *counter);

/**
 * Returns the value: all updates that happen before the call. 0 for NULL.
 * Cost: a cache line per CPU that counted. Signals: safe.
 */
extern uint64_t statctr_static_read(const statctr_static_t *counter);

/**
 * Returns the mode of the counter's updates, an enum statctr_mode_value: STATCTR_MODE_RSEQ if it has
 * words per CPU, or gets them by its next update, STATCTR_MODE_STRIPED if these are updated atomically;
 * else STATCTR_MODE_ATOMIC.
 * Cost: a call. Errors: -EINVAL (NULL). Signals: safe.
 */
extern int statctr_static_mode(const statctr_static_t *counter);

/**
 * Puts the counter into the program's registry; STATCTR_DEFINE() does so by itself.
 * Cost: a call. Errors: -EINVAL (NULL). Signals: safe.
 */
extern int statctr_static_list(statctr_static_t *counter);

/**
 * Takes the counter out of the program's registry: for each static of code that is to be unloaded with
 * dlclose(), before that, when nobody counts there any more (see also statctr_prepare_unload()). Its 8 bytes
 * for each CPU stay taken. Of a gauge, a maximum or a minimum it takes the field `word`.
 * Cost: a lock. Errors: -EINVAL (NULL). Signals: not safe.
 */
extern int statctr_static_forget(statctr_static_t *counter);

/** Gauge, a signed value, that is a static, made by STATCTR_DEFINE_GAUGE(). The field is for this header only. */
typedef struct statctr_static_gauge {
    statctr_static_t word;
} statctr_static_gauge_t;

/** Defines a gauge as a global variable `id`. Otherwise as STATCTR_DEFINE(). */
#define STATCTR_DEFINE_GAUGE(id) STATCTR_DEFINE_GAUGE_AS(id, #id, "", "")

/** Defines a gauge with a name of letters, digits, `_` and `:`, a help text and a unit. */
#define STATCTR_DEFINE_GAUGE_AS(id, name, help, unit)                            \
    statctr_static_gauge_t id = { { 0, 0, 0, 0, NULL, 0, name, help, unit } }; \
    STATCTR_LIST_GAUGE_(id)                                                      \
    struct statctr_static_gauge

/** Declares a gauge that another file defines. */
#define STATCTR_DECLARE_GAUGE(id) extern statctr_static_gauge_t id

#if defined(__GNUC__)
#define STATCTR_LIST_GAUGE_(id)                                               \
    __attribute__((constructor)) static void statctr_list_##id##_(void)       \
    {                                                                         \
        statctr_static_gauge_list(&id);                                       \
    }
#else
#define STATCTR_LIST_GAUGE_(id)
#endif

/**
 * Puts the gauge into the program's registry; STATCTR_DEFINE_GAUGE() does so by itself.
 * Cost: a call. Errors: -EINVAL (NULL). Signals: safe.
 */
extern int statctr_static_gauge_list(statctr_static_gauge_t *gauge);

/**
 * Sets the value. An update that runs at the same time is wholly before it, and gone, or wholly after it; of two
 * calls at the same time one is the last. A read that it overtakes may return the value from before, with updates
 * from after it.
 * Cost: a lock and a read. Errors: -EINVAL (NULL). Signals: not safe.
 */
extern int statctr_static_gauge_set(statctr_static_gauge_t *gauge, int64_t value);

/**
 * Returns the value. One that never was below 0 may be read as such for a moment, while it goes up on one CPU and
 * down on another. 0 for NULL.
 * Cost: a cache line per CPU that counted. Signals: safe.
 */
extern int64_t statctr_static_gauge_read(const statctr_static_gauge_t *gauge);

/**
 * Maximum, the largest value that was observed, that is a static, made by STATCTR_DEFINE_MAX(). The field is for this
 * header only.
 */
typedef struct statctr_static_max {
    statctr_static_t word;
} statctr_static_max_t;

/**
 * Defines a maximum as a global variable `id`. Otherwise as STATCTR_DEFINE(); several of one name are one in the
 * registry, with the largest of their values. All CPUs share one word, which an observation loads, and writes only
 * where its value goes beyond all others: of n values in random order some ln n do. Values that go up steadily, such
 * as times of day, write it each time; a statctr_max_t has words per CPU.
 */
#define STATCTR_DEFINE_MAX(id) STATCTR_DEFINE_MAX_AS(id, #id, "", "")

/** Defines a maximum with a name of letters, digits, `_` and `:`, a help text and a unit. */
#define STATCTR_DEFINE_MAX_AS(id, name, help, unit)                            \
    statctr_static_max_t id = { { 0, 0, 0, 0, NULL, 0, name, help, unit } }; \
    STATCTR_LIST_MAX_(id)                                                      \
    struct statctr_static_max

/** Declares a maximum that another file defines. */
#define STATCTR_DECLARE_MAX(id) extern statctr_static_max_t id

#if defined(__GNUC__)
#define STATCTR_LIST_MAX_(id)                                                 \
    __attribute__((constructor)) static void statctr_list_##id##_(void)       \
    {                                                                         \
        statctr_static_max_list(&id);                                         \
    }
#else
#define STATCTR_LIST_MAX_(id)
#endif

/**
 * Observes a value.
 * Cost: a load and a comparison in line; a call and an atomic instruction where the value goes beyond all others.
 * Errors: -EINVAL (NULL). Order: relaxed. Signals: safe. Before main: yes.
 */
STATCTR_STATIC_UPDATE_ int statctr_static_max_observe(statctr_static_max_t *maximum, uint64_t value);

/**
 * Returns the largest value that was observed since the last take; 0 of nothing, and for NULL.
 * Cost: a load. Signals: safe.
 */
extern uint64_t statctr_static_max_read(const statctr_static_max_t *maximum);

/**
 * Returns the largest value that was observed since the last take, and begins anew: an observation that runs at the
 * same time is in this value or in that of the next interval. 0 of nothing, and for NULL.
 * Cost: an atomic instruction. Signals: safe.
 */
extern uint64_t statctr_static_max_take(statctr_static_max_t *maximum);

/**
 * Puts the maximum into the program's registry; STATCTR_DEFINE_MAX() does so by itself.
 * Cost: a call. Errors: -EINVAL (NULL). Signals: safe.
 */
extern int statctr_static_max_list(statctr_static_max_t *maximum);

/**
 * Minimum, the smallest value that was observed, that is a static, made by STATCTR_DEFINE_MIN(). The field is for this
 * header only.
 */
typedef struct statctr_static_min {
    statctr_static_t word; /* of the complements */
} statctr_static_min_t;

/** Defines a minimum as a global variable `id`. Otherwise as STATCTR_DEFINE_MAX(). */
#define STATCTR_DEFINE_MIN(id) STATCTR_DEFINE_MIN_AS(id, #id, "", "")

/** Defines a minimum with a name of letters, digits, `_` and `:`, a help text and a unit. */
#define STATCTR_DEFINE_MIN_AS(id, name, help, unit)                            \
    statctr_static_min_t id = { { 0, 0, 0, 0, NULL, 0, name, help, unit } }; \
    STATCTR_LIST_MIN_(id)                                                      \
    struct statctr_static_min

/** Declares a minimum that another file defines. */
#define STATCTR_DECLARE_MIN(id) extern statctr_static_min_t id

#if defined(__GNUC__)
#define STATCTR_LIST_MIN_(id)                                                 \
    __attribute__((constructor)) static void statctr_list_##id##_(void)       \
    {                                                                         \
        statctr_static_min_list(&id);                                         \
    }
#else
#define STATCTR_LIST_MIN_(id)
#endif

/** Observes a value. Otherwise as statctr_static_max_observe(). */
STATCTR_STATIC_UPDATE_ int statctr_static_min_observe(statctr_static_min_t *minimum, uint64_t value);

/**
 * Returns the smallest value that was observed since the last take; UINT64_MAX of nothing, and for NULL. Otherwise as
 * statctr_static_max_read().
 */
extern uint64_t statctr_static_min_read(const statctr_static_min_t *minimum);

/**
 * Returns the smallest value that was observed since the last take, and begins anew; UINT64_MAX of nothing, and for
 * NULL. Otherwise as statctr_static_max_take().
 */
extern uint64_t statctr_static_min_take(statctr_static_min_t *minimum);

/** Puts the minimum into the program's registry. Otherwise as statctr_static_max_list(). */
extern int statctr_static_min_list(statctr_static_min_t *minimum);

/**
 * Does what the first update of a static must not do, as it may be in a signal handler: registers threads
 * for rseq where the C library does not, and tests the kernel on aarch64. At the start of main(), say.
 * Cost: on x86-64 with glibc 2.35 or later nothing; elsewhere a thread, on aarch64 some milliseconds,
 * two seconds at most. Errors: none; returns 0. Signals: not safe.
 */
extern int statctr_prepare(void);

/* ------------------------------------------------------------------------------------------- */
/* The registry                                                                                */

/** Description of a counter. */
typedef struct statctr_desc {
    const char *name;          /* letters, digits, _ and :, no digit first */
    const char *help;          /* or NULL */
    const char *unit;          /* in the plural, or NULL */
    const char *const *labels; /* NULL, or name, value, name, value, ..., NULL; at most 64, none of them __name__ */
} statctr_desc_t;

/** The value of a counter in the registry. Its strings are valid as long as the function runs that gets it. */
typedef struct statctr_sample {
    statctr_desc_t desc;
    const char *item; /* the name of a group's item, else NULL */
    uint64_t index;   /* in an array, else 0 */
    uint64_t value;
} statctr_sample_t;

/**
 * Function that is called with the value of each counter; a result other than 0 ends the visit. In C++ it must not
 * throw: an exception that leaves it ends the process.
 */
typedef int (*statctr_visit_fn)(const statctr_sample_t *sample, void *context);

#ifndef STATCTR_UP
/**
 * Registers a counter under a description, which is copied. Call statctr_unregister() before the counter
 * is cleaned up.
 * Cost: a lock, some microseconds. Errors: -EINVAL (NULL, a handle that is not initialised, a bad name, a
 * label that is given twice), -EEXIST (the counter is registered; the name is taken with these labels, or
 * with another help text or unit). Signals: not safe.
 */
extern int statctr_register(const statctr_t *counter, const statctr_desc_t *desc);

/**
 * Takes a counter out of the registry; no visit reads it afterwards.
 * Cost: a lock. Errors: -EINVAL, -ENOENT (not registered). Signals: not safe.
 */
extern int statctr_unregister(const statctr_t *counter);
#endif

/**
 * Calls `visit` with the value of each registered counter, in the order of registration, and then of each
 * static counter, by name; statctr_visit_all() visits the other kinds, too. It may count, register and make counters; the values are of one moment each.
 * Cost: a read and some strings for each. Errors: -EINVAL (NULL), or what `visit` returned other than 0.
 * Signals: not safe.
 */
extern int statctr_visit(statctr_visit_fn visit, void *context);

/*
 * For the inline code of this header only: the table of the CPUs' words, 0 before the first update of a
 * static, and stored once.
 */
extern const uintptr_t statctr_static_table_;

/*
 * For the inline code of this header only: the way out of an update. It claims the counter's words, unless
 * the code was compiled for another STATCTR_ABI.
 */
extern int statctr_static_slow_add(statctr_static_t *counter, uint64_t value, unsigned abi);

/* For the inline code of this header only: the ways out of an observation, for values beyond all others. */
extern int statctr_static_max_slow_observe(statctr_static_max_t *maximum, uint64_t value);
extern int statctr_static_min_slow_observe(statctr_static_min_t *minimum, uint64_t value);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* STATCTR_STATIC_H */
