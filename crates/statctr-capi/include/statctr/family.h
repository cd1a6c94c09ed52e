/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Families of statistics of one kind and name, one for each combination of values of their labels: counters, gauges,
 * floating-point gauges, maxima, minima, averages and histograms. <statctr.h> includes this file, and says what holds
 * for every function.
 *
 *     STATCTR_DEFINE_FAMILY(responses, "method", "status"); // at file scope; nothing is to be initialised
 *
 *     statctr_static_t *served;
 *     int error = statctr_family_get(&responses, STATCTR_VALUES("GET", "200"), &served);
 *     statctr_static_inc(served);                           // in line, as any other static
 *     statctr_write_prometheus(print, stdout);              // ... responses{method="GET",status="200"} 1
 *
 * # Members
 * A look-up returns the member for the values of the labels, in the order of the labels; the first one creates it,
 * and puts it into the program's registry. A member is a static of its kind, and is updated and read by the functions
 * of <statctr/static.h>. Floating-point gauges, averages and histograms are in memory of the pool that
 * statctr_use_allocator() chose, and are for the functions of <statctr/float_gauge.h>, <statctr/group.h> and
 * <statctr/histogram.h>. A member lives as long as the process: keep the pointer where the values are known in
 * advance, and do not clean up, forget or register it.
 *
 * # Bounds
 * Values of labels come from outside more often than not, so a family has at most STATCTR_FAMILY_LIMIT members, or
 * the limit that it was defined with. What comes when there are that many, or has a value of more than
 * STATCTR_FAMILY_VALUE_BYTES bytes or one that is not UTF-8, is counted by one further member, whose labels all have
 * the value "overflow". So nothing is lost, the sum over the family stays exact, and a flood of values takes no
 * memory and makes no look-up slower. Threads that create the same member at once may find the bound reached by as
 * many members early. Where a pool has no memory for a new member, its values are counted by the further one, too.
 *
 * # Cost of a look-up
 * A call, a hash of the values (SipHash, keyed at random) and the comparison of one entry: 80 ns with one label, 90
 * ns with two (AMD EPYC, Zen 3, other work beside). It takes no lock, and writes nothing where the member is there.
 * The first one of a family makes a table of 16 to 32 bytes for each member that it may have; each new member takes
 * some 500 bytes of heap and its values, and what a statistic of its kind takes.
 *
 * # Rules for every look-up
 * Errors:    -EINVAL: a NULL, another number of values than of labels; no name of letters, digits, `_` and `:`
 *            (labels: without `:`), no label, more than 16, one that is given twice, `le` of histograms, `quantile` of
 *            averages, or `__name__`; a limit that is not from 1 to 65536. Of floating-point gauges, averages and
 *            histograms also the errors of statctr_float_gauge_init(), statctr_group_init() and
 *            statctr_histogram_init(). The pointer to the member is left alone.
 * Threads:   any thread at any time. Before main: yes.
 * Signals:   safe where the member is there, as it then takes no lock and does not allocate; else not safe.
 * Order:     all threads that look up equal values get the same member.
 * Unloading: families are one where name, help text, unit, labels, limit and kind are equal: in several files or
 *            libraries, and in one that is loaded again. Their members stay in the registry after dlclose(), and
 *            nothing is to be forgotten.
 */
#ifndef STATCTR_H
#include <statctr.h> /* and that this file, after its own part */
#endif
#ifndef STATCTR_FAMILY_H
#define STATCTR_FAMILY_H

#ifdef __cplusplus
extern "C" {
#endif

/** The largest number of members in a family that was defined without a limit. */
#define STATCTR_FAMILY_LIMIT 1000u

/** The largest length in bytes of a label's value that has a member of its own. */
#define STATCTR_FAMILY_VALUE_BYTES 256u

/** Family of counters, made by STATCTR_DEFINE_FAMILY(). The fields are for this header only. */
typedef struct statctr_family {
    void *members; /* NULL before the first look-up */
    const char *name;
    const char *help;
    const char *unit;
    const char *const *labels;
    uint32_t label_count;
    uint32_t limit;
} statctr_family_t;

/** Family of gauges, made by STATCTR_DEFINE_GAUGE_FAMILY(). The field is for this header only. */
typedef struct statctr_gauge_family {
    statctr_family_t family;
} statctr_gauge_family_t;

/** Family of maxima, made by STATCTR_DEFINE_MAX_FAMILY(). The field is for this header only. */
typedef struct statctr_max_family {
    statctr_family_t family;
} statctr_max_family_t;

/** Family of minima, made by STATCTR_DEFINE_MIN_FAMILY(). The field is for this header only. */
typedef struct statctr_min_family {
    statctr_family_t family;
} statctr_min_family_t;

/** Family of floating-point gauges, made by STATCTR_DEFINE_FLOAT_GAUGE_FAMILY(). The field is for this header only. */
typedef struct statctr_float_gauge_family {
    statctr_family_t family;
} statctr_float_gauge_family_t;

/** Family of averages, made by STATCTR_DEFINE_AVERAGE_FAMILY(). The field is for this header only. */
typedef struct statctr_average_family {
    statctr_family_t family;
} statctr_average_family_t;

/** Family of histograms, made by STATCTR_DEFINE_HISTOGRAM_FAMILY(). The fields are for this header only. */
typedef struct statctr_histogram_family {
    statctr_family_t family;
    uint64_t max;
    double error;
} statctr_histogram_family_t;

STATCTR_STATIC_ASSERT_(sizeof(statctr_family_t) == 5 * sizeof(void *) + 8, "statctr_family_t has no padding");

/* The names of a family's labels, and what a family is made of. */
#define STATCTR_LABELS_(id, ...) static const char *const statctr_labels_##id##_[] = { __VA_ARGS__ }
#define STATCTR_FAMILY_(id, name, help, unit, limit)                                                       \
    {                                                                                                      \
        NULL, name, help, unit, statctr_labels_##id##_,                                                    \
            sizeof(statctr_labels_##id##_) / sizeof(statctr_labels_##id##_[0]), limit                      \
    }

/**
 * Defines a family of counters as a global variable `id`, whose name in the registry is that of the variable, with
 * these names of labels, of letters, digits and `_`. Put it at file scope.
 */
#define STATCTR_DEFINE_FAMILY(id, ...) STATCTR_DEFINE_FAMILY_AS(id, #id, "", "", STATCTR_FAMILY_LIMIT, __VA_ARGS__)

/**
 * Defines a family of counters with a name of letters, digits, `_` and `:`, a help text, a unit, the largest number of
 * members (1 to 65536, without the overflow member), and names of labels.
 */
#define STATCTR_DEFINE_FAMILY_AS(id, name, help, unit, limit, ...) \
    STATCTR_LABELS_(id, __VA_ARGS__);                              \
    statctr_family_t id = STATCTR_FAMILY_(id, name, help, unit, limit)

/** Declares a family of counters that another file defines. */
#define STATCTR_DECLARE_FAMILY(id) extern statctr_family_t id

/** Defines a family of gauges. Otherwise as STATCTR_DEFINE_FAMILY(). */
#define STATCTR_DEFINE_GAUGE_FAMILY(id, ...) \
    STATCTR_DEFINE_GAUGE_FAMILY_AS(id, #id, "", "", STATCTR_FAMILY_LIMIT, __VA_ARGS__)

/** Defines a family of gauges. Otherwise as STATCTR_DEFINE_FAMILY_AS(). */
#define STATCTR_DEFINE_GAUGE_FAMILY_AS(id, name, help, unit, limit, ...) \
    STATCTR_LABELS_(id, __VA_ARGS__);                                    \
    statctr_gauge_family_t id = { STATCTR_FAMILY_(id, name, help, unit, limit) }

/** Declares a family of gauges that another file defines. */
#define STATCTR_DECLARE_GAUGE_FAMILY(id) extern statctr_gauge_family_t id

/** Defines a family of maxima. Otherwise as STATCTR_DEFINE_FAMILY(). */
#define STATCTR_DEFINE_MAX_FAMILY(id, ...) \
    STATCTR_DEFINE_MAX_FAMILY_AS(id, #id, "", "", STATCTR_FAMILY_LIMIT, __VA_ARGS__)

/** Defines a family of maxima. Otherwise as STATCTR_DEFINE_FAMILY_AS(). */
#define STATCTR_DEFINE_MAX_FAMILY_AS(id, name, help, unit, limit, ...) \
    STATCTR_LABELS_(id, __VA_ARGS__);                                  \
    statctr_max_family_t id = { STATCTR_FAMILY_(id, name, help, unit, limit) }

/** Declares a family of maxima that another file defines. */
#define STATCTR_DECLARE_MAX_FAMILY(id) extern statctr_max_family_t id

/** Defines a family of minima. Otherwise as STATCTR_DEFINE_FAMILY(). */
#define STATCTR_DEFINE_MIN_FAMILY(id, ...) \
    STATCTR_DEFINE_MIN_FAMILY_AS(id, #id, "", "", STATCTR_FAMILY_LIMIT, __VA_ARGS__)

/** Defines a family of minima. Otherwise as STATCTR_DEFINE_FAMILY_AS(). */
#define STATCTR_DEFINE_MIN_FAMILY_AS(id, name, help, unit, limit, ...) \
    STATCTR_LABELS_(id, __VA_ARGS__);                                  \
    statctr_min_family_t id = { STATCTR_FAMILY_(id, name, help, unit, limit) }

/** Declares a family of minima that another file defines. */
#define STATCTR_DECLARE_MIN_FAMILY(id) extern statctr_min_family_t id

/** Defines a family of floating-point gauges, which begin with 0. Otherwise as STATCTR_DEFINE_FAMILY(). */
#define STATCTR_DEFINE_FLOAT_GAUGE_FAMILY(id, ...) \
    STATCTR_DEFINE_FLOAT_GAUGE_FAMILY_AS(id, #id, "", "", STATCTR_FAMILY_LIMIT, __VA_ARGS__)

/** Defines a family of floating-point gauges, which begin with 0. Otherwise as STATCTR_DEFINE_FAMILY_AS(). */
#define STATCTR_DEFINE_FLOAT_GAUGE_FAMILY_AS(id, name, help, unit, limit, ...) \
    STATCTR_LABELS_(id, __VA_ARGS__);                                          \
    statctr_float_gauge_family_t id = { STATCTR_FAMILY_(id, name, help, unit, limit) }

/** Declares a family of floating-point gauges that another file defines. */
#define STATCTR_DECLARE_FLOAT_GAUGE_FAMILY(id) extern statctr_float_gauge_family_t id

/** Defines a family of averages. Otherwise as STATCTR_DEFINE_FAMILY(). */
#define STATCTR_DEFINE_AVERAGE_FAMILY(id, ...) \
    STATCTR_DEFINE_AVERAGE_FAMILY_AS(id, #id, "", "", STATCTR_FAMILY_LIMIT, __VA_ARGS__)

/** Defines a family of averages. Otherwise as STATCTR_DEFINE_FAMILY_AS(). */
#define STATCTR_DEFINE_AVERAGE_FAMILY_AS(id, name, help, unit, limit, ...) \
    STATCTR_LABELS_(id, __VA_ARGS__);                                      \
    statctr_average_family_t id = { STATCTR_FAMILY_(id, name, help, unit, limit) }

/** Declares a family of averages that another file defines. */
#define STATCTR_DECLARE_AVERAGE_FAMILY(id) extern statctr_average_family_t id

/**
 * Defines a family of histograms for values up to `max`, whose quantiles have at most the relative error `error`: see
 * statctr_histogram_init(). Otherwise as STATCTR_DEFINE_FAMILY().
 */
#define STATCTR_DEFINE_HISTOGRAM_FAMILY(id, max, error, ...) \
    STATCTR_DEFINE_HISTOGRAM_FAMILY_AS(id, #id, "", "", max, error, STATCTR_FAMILY_LIMIT, __VA_ARGS__)

/** Defines a family of histograms with a largest value and an error. Otherwise as STATCTR_DEFINE_FAMILY_AS(). */
#define STATCTR_DEFINE_HISTOGRAM_FAMILY_AS(id, name, help, unit, max, error, limit, ...) \
    STATCTR_LABELS_(id, __VA_ARGS__);                                                    \
    statctr_histogram_family_t id = { STATCTR_FAMILY_(id, name, help, unit, limit), max, error }

/** Declares a family of histograms that another file defines. */
#define STATCTR_DECLARE_HISTOGRAM_FAMILY(id) extern statctr_histogram_family_t id

#ifndef __cplusplus
/** The values of labels and their number, two arguments of a look-up. C only: C++ has <statctr.hpp>. */
#define STATCTR_VALUES(...)              \
    (const char *const[]){ __VA_ARGS__ }, \
        (unsigned)(sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))
#endif

/**
 * Stores the counter for these values of the labels, `count` of them, in `*counter`: statctr_static_add() and its like
 * update it, in line.
 * Cost, errors, threads and signals: see the top of this file.
 */
extern int statctr_family_get(statctr_family_t *family, const char *const *values, unsigned count,
                              statctr_static_t **counter);

/** Stores the gauge for these values of the labels in `*gauge`. Otherwise as statctr_family_get(). */
extern int statctr_gauge_family_get(statctr_gauge_family_t *family, const char *const *values, unsigned count,
                                    statctr_static_gauge_t **gauge);

/** Stores the maximum for these values of the labels in `*maximum`. Otherwise as statctr_family_get(). */
extern int statctr_max_family_get(statctr_max_family_t *family, const char *const *values, unsigned count,
                                  statctr_static_max_t **maximum);

/** Stores the minimum for these values of the labels in `*minimum`. Otherwise as statctr_family_get(). */
extern int statctr_min_family_get(statctr_min_family_t *family, const char *const *values, unsigned count,
                                  statctr_static_min_t **minimum);

/**
 * Stores the floating-point gauge for these values of the labels in `*gauge`: statctr_float_gauge_add() and its like
 * update it. Otherwise as statctr_family_get().
 */
extern int statctr_float_gauge_family_get(statctr_float_gauge_family_t *family, const char *const *values,
                                          unsigned count, statctr_float_gauge_t **gauge);

/**
 * Stores the average for these values of the labels in `*average`, a group of two items, the number of values and their
 * sum, that are one event: statctr_group_event2(average, 0, 1, value) counts a value, in line. Otherwise as
 * statctr_family_get().
 */
extern int statctr_average_family_get(statctr_average_family_t *family, const char *const *values, unsigned count,
                                      statctr_group_t **average);

/**
 * Stores the histogram for these values of the labels in `*histogram`: statctr_histogram_observe() and its like update
 * it, in line. Otherwise as statctr_family_get().
 */
extern int statctr_histogram_family_get(statctr_histogram_family_t *family, const char *const *values, unsigned count,
                                        statctr_histogram_t **histogram);

#if defined(__SANITIZE_THREAD__)
#define STATCTR_TSAN_ 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define STATCTR_TSAN_ 1
#endif
#endif

#ifdef STATCTR_TSAN_
/*
 * ThreadSanitizer takes an allocation for a write by its thread, and does not see that the library publishes a member
 * with release ordering: GCC 12 and clang 14 report a race of the look-up that creates a member and an update of it on
 * another thread. So it is told to ignore what a look-up allocates.
 */
extern void AnnotateIgnoreWritesBegin(const char *file, int line);
extern void AnnotateIgnoreWritesEnd(const char *file, int line);

#define STATCTR_LOOK_UP_(get, family_t, member_t)                                                                 \
    static inline int get##_unseen_(family_t *family, const char *const *values, unsigned count, member_t **member) \
    {                                                                                                             \
        int error;                                                                                                \
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);                                                            \
        error = get(family, values, count, member);                                                               \
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);                                                              \
        return error;                                                                                             \
    }
STATCTR_LOOK_UP_(statctr_family_get, statctr_family_t, statctr_static_t)
STATCTR_LOOK_UP_(statctr_gauge_family_get, statctr_gauge_family_t, statctr_static_gauge_t)
STATCTR_LOOK_UP_(statctr_max_family_get, statctr_max_family_t, statctr_static_max_t)
STATCTR_LOOK_UP_(statctr_min_family_get, statctr_min_family_t, statctr_static_min_t)
STATCTR_LOOK_UP_(statctr_float_gauge_family_get, statctr_float_gauge_family_t, statctr_float_gauge_t)
STATCTR_LOOK_UP_(statctr_average_family_get, statctr_average_family_t, statctr_group_t)
STATCTR_LOOK_UP_(statctr_histogram_family_get, statctr_histogram_family_t, statctr_histogram_t)
#define statctr_family_get statctr_family_get_unseen_
#define statctr_gauge_family_get statctr_gauge_family_get_unseen_
#define statctr_max_family_get statctr_max_family_get_unseen_
#define statctr_min_family_get statctr_min_family_get_unseen_
#define statctr_float_gauge_family_get statctr_float_gauge_family_get_unseen_
#define statctr_average_family_get statctr_average_family_get_unseen_
#define statctr_histogram_family_get statctr_histogram_family_get_unseen_
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* STATCTR_FAMILY_H */
