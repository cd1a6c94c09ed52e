/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The registry with statistics of every kind, and its text for Prometheus. <statctr.h> includes this file; counters
 * in the registry, and statics, are in <statctr/static.h>.
 *
 *     static statctr_t open_files;                          // up and down
 *     statctr_init(&open_files, 0);
 *     const statctr_desc_t desc = { "open_files", "open files", NULL, NULL };
 *     statctr_register_gauge(&open_files, &desc);
 *     statctr_dec(&open_files);
 *
 *     static int print(const char *text, size_t length, void *file)
 *     {
 *         return fwrite(text, 1, length, (FILE *)file) != length;
 *     }
 *     statctr_write_prometheus(print, stdout);              // ... # TYPE open_files gauge, open_files -1
 *
 * A statistic is in the registry once, under a name that others of its kind may have with other labels. Before it is
 * cleaned up it is taken out.
 */
#ifndef STATCTR_H
#include <statctr.h> /* and that this file, after its own part */
#endif
#ifndef STATCTR_REGISTRY_H
#define STATCTR_REGISTRY_H

#ifdef __cplusplus
extern "C" {
#endif

/** Kind of a statistic. Later versions may have more. */
enum statctr_kind_value {
    STATCTR_KIND_COUNTER = 1,
    STATCTR_KIND_GAUGE = 2,
    STATCTR_KIND_FLOAT_GAUGE = 3,
    STATCTR_KIND_MAX = 4,
    STATCTR_KIND_MIN = 5,
    STATCTR_KIND_AVERAGE = 6,
    STATCTR_KIND_HISTOGRAM = 7
};

/** A value in the registry. What it points to is valid as long as the function runs that gets it. */
typedef struct statctr_reading {
    statctr_desc_t desc;
    const char *item; /* the name of a group's item, else NULL */
    uint64_t index;   /* in an array, else 0 */
    uint64_t kind;    /* an enum statctr_kind_value */
    uint64_t value;   /* of a counter, a gauge (as int64_t), a maximum or a minimum, else 0 */
    double number;    /* the value as one number, also of a floating-point gauge: of averages and histograms the mean; NaN
                         where there is none */
    uint64_t count;   /* of an average or a histogram: its values, and their sum */
    uint64_t sum;
    const statctr_histogram_snapshot_t *histogram; /* the buckets of a histogram, else NULL */
    uint64_t in_array; /* 1 of an element of an array, also of the first, which has the index 0; else 0 */
} statctr_reading_t;

/**
 * Function that is called with each value; a result other than 0 ends the visit. In C++ it must not throw: an exception
 * that leaves it ends the process.
 */
typedef int (*statctr_reading_fn)(const statctr_reading_t *reading, void *context);

/**
 * Function that takes a text of `length` bytes, with no 0 at its end; a result other than 0 is an error. In C++ it must
 * not throw: an exception that leaves it ends the process.
 */
typedef int (*statctr_write_fn)(const char *text, size_t length, void *context);

#ifndef STATCTR_UP
/**
 * Registers a counter as a gauge, a signed value, under a description, which is copied. Call statctr_unregister()
 * before the counter is cleaned up.
 * Cost: a lock, some microseconds. Errors: -EINVAL (NULL, a handle that is not initialised, a bad name, a label that
 * is given twice), -EEXIST (the counter is registered; the name is taken with these labels, or with another kind,
 * help text or unit). Signals: not safe.
 */
extern int statctr_register_gauge(const statctr_t *gauge, const statctr_desc_t *desc);
#endif

/**
 * Registers a floating-point gauge. Call statctr_unregister_float_gauge() before it is cleaned up.
 * Cost and errors: as statctr_register_gauge(). Signals: not safe.
 */
extern int statctr_register_float_gauge(const statctr_float_gauge_t *gauge, const statctr_desc_t *desc);

/** Takes a floating-point gauge out of the registry. Otherwise as statctr_unregister_average(). */
extern int statctr_unregister_float_gauge(const statctr_float_gauge_t *gauge);

/**
 * Registers an event of a group as an average: its first item is the number of values, its second one their sum.
 * Call statctr_unregister_average() before the group is cleaned up. Of a group one event is in the registry.
 * Cost and errors: as statctr_register_gauge(), -EINVAL for a label `quantile`, and -ERANGE (a slot beyond the group, or
 * an odd one, where no event begins; other slots are taken for what the caller says). Signals: not safe.
 */
extern int statctr_register_average(const statctr_group_t *group, unsigned event, const statctr_desc_t *desc);

/**
 * Takes the average of a group out of the registry; no visit reads it afterwards.
 * Cost: a lock. Errors: -EINVAL, -ENOENT (not registered). Signals: not safe.
 */
extern int statctr_unregister_average(const statctr_group_t *group);

/**
 * Registers a histogram. Call statctr_unregister_histogram() before it is cleaned up.
 * Cost and errors: as statctr_register_gauge(), and -EINVAL for a label `le`. Signals: not safe.
 */
extern int statctr_register_histogram(const statctr_histogram_t *histogram, const statctr_desc_t *desc);

/** Takes a histogram out of the registry. Otherwise as statctr_unregister_average(). */
extern int statctr_unregister_histogram(const statctr_histogram_t *histogram);

/**
 * Registers a maximum. Call statctr_unregister_max() before it is cleaned up.
 * Cost and errors: as statctr_register_gauge(). Signals: not safe.
 */
extern int statctr_register_max(const statctr_max_t *maximum, const statctr_desc_t *desc);

/** Takes a maximum out of the registry. Otherwise as statctr_unregister_average(). */
extern int statctr_unregister_max(const statctr_max_t *maximum);

/** Registers a minimum. Otherwise as statctr_register_max(). */
extern int statctr_register_min(const statctr_min_t *minimum, const statctr_desc_t *desc);

/** Takes a minimum out of the registry. Otherwise as statctr_unregister_average(). */
extern int statctr_unregister_min(const statctr_min_t *minimum);

/**
 * Calls `visit` with each value of each kind in the registry: as statctr_visit() does with counters.
 * Cost: a read and some strings for each. Errors: -EINVAL (NULL), or what `visit` returned other than 0.
 * Signals: not safe.
 */
extern int statctr_visit_all(statctr_reading_fn visit, void *context);

/**
 * Passes all that is in the registry to `write`, once, in Prometheus' classic text format (text/plain; version=0.0.4):
 * counters, gauges (extremes are gauges, too; a minimum of nothing is NaN), averages as summaries without quantiles,
 * histograms by the buckets of statctr_histogram_classic_buckets(). Names and units stay as they are.
 * Cost: a visit, and the text. Errors: -EINVAL (NULL), or what `write` returned other than 0. Signals: not safe.
 */
extern int statctr_write_prometheus(statctr_write_fn write, void *context);

/**
 * Adds `value` to a gauge that is a static.
 * Cost: that of statctr_static_add(). Errors: -EINVAL (NULL). Order: relaxed. Signals: safe. Before main: yes.
 */
static inline int statctr_static_gauge_add(statctr_static_gauge_t *gauge, int64_t value)
{
    if (gauge == NULL)
        return -EINVAL;
    /* volatile: others may be storing it */
    if (*(const volatile uintptr_t *)&gauge->word.fast == 0)
        statctr_static_gauge_list(gauge); /* before the update puts it there as a counter */
    return statctr_static_add(&gauge->word, (uint64_t)value);
}

/** Subtracts `value`. Otherwise as statctr_static_gauge_add(). */
static inline int statctr_static_gauge_sub(statctr_static_gauge_t *gauge, int64_t value)
{
    return statctr_static_gauge_add(gauge, (int64_t)(0 - (uint64_t)value));
}

/** Adds 1. Otherwise as statctr_static_gauge_add(). */
static inline int statctr_static_gauge_inc(statctr_static_gauge_t *gauge)
{
    return statctr_static_gauge_add(gauge, 1);
}

/** Subtracts 1. Otherwise as statctr_static_gauge_add(). */
static inline int statctr_static_gauge_dec(statctr_static_gauge_t *gauge)
{
    return statctr_static_gauge_add(gauge, -1);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* STATCTR_REGISTRY_H */
