/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * statctr: distributions of values, with quantiles of a chosen error. <statctr.h> includes this file, and says
 * what holds for every function.
 *
 *     static statctr_histogram_t latencies;                              // zeroed
 *     // nanoseconds up to a minute, quantiles to 1 %
 *     int error = statctr_histogram_init(&latencies, 60000000000, 0.01);
 *     statctr_histogram_observe(&latencies, 1500);
 *     statctr_histogram_snapshot_t *seen;
 *     error = statctr_histogram_snapshot(&latencies, &seen);
 *     uint64_t p99;
 *     error = statctr_histogram_quantile(seen, 0.99, &p99);
 *     statctr_histogram_snapshot_free(seen);
 *
 * Buckets are log-linear: each power of two is divided into 2^k of equal width, and k is as small as the
 * relative error of quantiles allows. Each has the number of its values and their sum, and one commit updates
 * both.
 *
 * # Cost of an update
 * An event of 2 (see statctr_group_event2()), inline where that is, and some five instructions. A histogram
 * takes 16 bytes for each bucket and CPU that counted, of which only the pages that have values are memory: for
 * values up to a minute in nanoseconds 1900 buckets at 1 %, 260 at 10 %.
 */
#ifndef STATCTR_H
#include <statctr.h> /* and that this file, after its own part */
#endif
#ifndef STATCTR_HISTOGRAM_H
#define STATCTR_HISTOGRAM_H

#ifdef __cplusplus
extern "C" {
#endif

/** Handle of a histogram. Zeroed: not initialised. The fields are for these headers only. */
typedef struct statctr_histogram {
    statctr_group_t buckets; /* two slots each: number and sum */
    uint64_t max;            /* the largest value that has a bucket */
    uint32_t bits;           /* that tell buckets apart below a value's highest one */
    uint32_t beyond;         /* the bucket of larger values */
} statctr_histogram_t;

STATCTR_STATIC_ASSERT_(sizeof(void *) != 8 || sizeof(statctr_histogram_t) == 48, "statctr_histogram_t has no padding");

/** The buckets of a histogram, as they were read. */
typedef struct statctr_buckets statctr_histogram_snapshot_t;

/** A bucket that has values: its smallest and its largest possible value, and their number. */
typedef struct statctr_bucket {
    uint64_t least;
    uint64_t largest;
    uint64_t count;
} statctr_bucket_t;

/**
 * Initialises a histogram for values up to `max`, whose quantiles are at most the part `error` off (0.01 for
 * 1 %). The former content of `histogram` is ignored.
 * Cost: as statctr_init(). Errors: -EINVAL (NULL, or an error that is not between 0.000123 and 1), -E2BIG (more
 * than 16384 buckets), and as statctr_init(). The handle is zeroed on error. Signals: not safe.
 */
#if defined(STATCTR_INLINE_)
static inline
#else
extern
#endif
int statctr_histogram_init(statctr_histogram_t *histogram, uint64_t max, double error);

/**
 * Gives a histogram's memory back and zeroes the handle. Nothing else may be using the histogram; snapshots of it
 * stay.
 * Cost: a lock. Errors: -EINVAL (NULL; not initialised, so also a second cleanup). Signals: not safe.
 */
extern int statctr_histogram_cleanup(statctr_histogram_t *histogram);

/**
 * Counts a value. Those above the largest one are counted, too, and their sum is right; quantiles take them for
 * the largest one.
 * Cost: see the top of this file. Errors: -EINVAL (NULL, or not initialised), and then nothing is counted.
 * Order: relaxed. Signals: safe.
 */
#if defined(STATCTR_INLINE_)
static inline
#else
extern
#endif
int statctr_histogram_observe(statctr_histogram_t *histogram, uint64_t value);

/** Counts a value `times` times, by one update. Otherwise as statctr_histogram_observe(). */
#if defined(STATCTR_INLINE_)
static inline
#else
extern
#endif
int statctr_histogram_observe_many(statctr_histogram_t *histogram, uint64_t value, uint64_t times);

/**
 * Reads all buckets and stores a snapshot of them in `*snapshot`, which statctr_histogram_snapshot_free() frees.
 * Values that are counted meanwhile are in it or not, each with its part of the sum where the update is one commit
 * (STATCTR_MODE_RSEQ); else the count and the part of the sum are added one after the other.
 * Cost: an allocation, and all lines of all CPUs that counted: microseconds. Errors: -EINVAL (a NULL, or not
 * initialised); `*snapshot` is left alone then. Signals: not safe.
 */
extern int statctr_histogram_snapshot(const statctr_histogram_t *histogram, statctr_histogram_snapshot_t **snapshot);

/** Frees a snapshot; NULL is none. Cost: a deallocation. Errors: none; returns 0. Signals: not safe. */
extern int statctr_histogram_snapshot_free(statctr_histogram_snapshot_t *snapshot);

/**
 * Returns the number of values of a snapshot and their sum, modulo 2^64. Each pointer may be NULL where it is not
 * wanted.
 * Cost: a pass over the buckets. Errors: -EINVAL (a `snapshot` of NULL). Signals: not safe.
 */
extern int statctr_histogram_totals(const statctr_histogram_snapshot_t *snapshot, uint64_t *count, uint64_t *sum);

/**
 * Returns the value below or at which the part `part` of all values is (0.5: the median; clamped to 0 and 1), at
 * most the histogram's relative error off: the middle of the bucket of the value with the rank part · count,
 * rounded up and at least 1.
 * Cost: two passes over the buckets. Errors: -EINVAL (a NULL, or a part that is no number), -ENODATA (no
 * values; -ENOMSG on systems without an ENODATA: FreeBSD, OpenBSD, DragonFly, WASI); `*value` is left alone then.
 * Signals: not safe.
 */
extern int statctr_histogram_quantile(const statctr_histogram_snapshot_t *snapshot, double part, uint64_t *value);

/**
 * Returns the number of values that are certainly at most `bound`: of all buckets that end there or below, as
 * Prometheus' `le` wants it; exact for the ends of buckets.
 * Cost: a pass over the buckets. Errors: -EINVAL (a NULL). Signals: not safe.
 */
extern int statctr_histogram_count_up_to(const statctr_histogram_snapshot_t *snapshot, uint64_t bound,
                                         uint64_t *count);

/**
 * Stores the buckets that have values in `buckets`, in order of the values, as far as there is room for `len` of
 * them; `buckets` may be NULL where `len` is 0. Returns the number of such buckets.
 * Cost: a pass over the buckets. Errors: -EINVAL (a NULL). Signals: not safe.
 */
extern int statctr_histogram_buckets(const statctr_histogram_snapshot_t *snapshot, statctr_bucket_t *buckets,
                                     size_t len);

/**
 * Stores the buckets of Prometheus' classic histograms in `buckets`, as far as there is room for `len` of them;
 * `buckets` may be NULL where `len` is 0. Each goes from 0 to 2^k - 1, the last one to the histogram's largest
 * value, and `count` is the number of values in it, which is exact. Returns the number of such buckets, 65 at
 * most, which depends on the histogram's largest value alone.
 * Cost: a pass over the buckets. Errors: -EINVAL (a NULL). Signals: not safe.
 */
extern int statctr_histogram_classic_buckets(const statctr_histogram_snapshot_t *snapshot, statctr_bucket_t *buckets,
                                             size_t len);

/**
 * Adds the values of `other` to `snapshot`: of several histograms with the same largest value and error.
 * Cost: a pass over the buckets. Errors: -EINVAL (a NULL, or other buckets); nothing is changed then. Signals: not
 * safe.
 */
extern int statctr_histogram_merge(statctr_histogram_snapshot_t *snapshot, const statctr_histogram_snapshot_t *other);

/**
 * Takes the values of an earlier snapshot of the same histogram away from `snapshot`, so that it has what was
 * counted since.
 * Cost: a pass over the buckets. Errors: -EINVAL (a NULL, or other buckets); nothing is changed then. Signals: not
 * safe.
 */
extern int statctr_histogram_subtract(statctr_histogram_snapshot_t *snapshot,
                                      const statctr_histogram_snapshot_t *earlier);

/* For the inline code of these headers only: refuses code of another STATCTR_ABI. */
extern int statctr_histogram_init_abi(statctr_histogram_t *histogram, uint64_t max, double error, unsigned abi);

#if defined(STATCTR_INLINE_)
static inline int statctr_histogram_init(statctr_histogram_t *histogram, uint64_t max, double error)
{
    return statctr_histogram_init_abi(histogram, max, error, STATCTR_ABI);
}

#if defined(__x86_64__) && !defined(__LZCNT__)
/*
 * Code for any x86-64 CPU has bsr for the highest set bit, of 8 micro-operations on AMD Zen to Zen 4 where lzcnt has
 * one (instruction tables of Agner Fog). CPUs without lzcnt take its encoding for bsr, which counts from the other end.
 * Not volatile, so that a loop keeps the result for a constant.
 */
static inline unsigned statctr_histogram_scan_(uint64_t value)
{
    uint64_t found;
    __asm__("lzcntq %1, %0" : "=r"(found) : "r"(value) : "cc");
    return (unsigned)found;
}

/* The number of the highest set bit of a value that is not 0: lzcnt of 1 is 63, bsr of 1 is 0. */
static inline unsigned statctr_histogram_highest_(uint64_t value)
{
    return statctr_histogram_scan_(value) ^ statctr_histogram_scan_(1);
}
#else
static inline unsigned statctr_histogram_highest_(uint64_t value)
{
    return 63u - (unsigned)__builtin_clzll((unsigned long long)value);
}
#endif

/* The first slot of a value's bucket. */
static inline unsigned statctr_histogram_slot_(const statctr_histogram_t *histogram, uint64_t value)
{
    const unsigned bits = histogram->bits & 31;
    const unsigned shift = statctr_histogram_highest_(value | (uint64_t)1 << bits) - bits;
    const uint64_t index = ((uint64_t)shift << bits) + (value >> shift);
    return 2 * (value > histogram->max ? histogram->beyond : (unsigned)index);
}

static inline int statctr_histogram_observe_many(statctr_histogram_t *histogram, uint64_t value, uint64_t times)
{
    if (histogram == NULL)
        return -EINVAL;
    return statctr_group_event2(&histogram->buckets, statctr_histogram_slot_(histogram, value), times, value * times);
}

static inline int statctr_histogram_observe(statctr_histogram_t *histogram, uint64_t value)
{
    if (histogram == NULL)
        return -EINVAL;
    return statctr_group_event2(&histogram->buckets, statctr_histogram_slot_(histogram, value), 1, value);
}
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* STATCTR_HISTOGRAM_H */
