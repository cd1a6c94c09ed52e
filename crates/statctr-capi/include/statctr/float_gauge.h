/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * statctr: floating-point values that go up and down. <statctr.h> includes this file, and says what holds for every
 * function.
 *
 *     static statctr_float_gauge_t load;                   // zeroed
 *     int error = statctr_float_gauge_init(&load, 0.0);
 *     statctr_float_gauge_add(&load, 2.5);
 *     double value;
 *     error = statctr_float_gauge_read(&load, &value);
 *     statctr_float_gauge_cleanup(&load);
 *
 * # Rounding
 * Each CPU adds its updates to a sum of its own, and a read adds these sums to the value that was set last. While
 * all of these are whole numbers of at most 2^53, or such multiples of one power of two, a read is exact. Else n
 * updates on P CPUs since the last set are off by at most (n + P) / 2^53 of the sum of their absolute values: an
 * addition and its opposite need not cancel. A set ends the rounding errors of before. Infinities and NaN are added
 * as IEEE 754 says, until the next set.
 *
 * # Races with a set
 * An update that runs at the same time as a set is wholly before it, and gone, or wholly after it. Of two sets at
 * the same time one is the last.
 *
 * # Cost of an update
 * A library call and a restartable sequence with one addition. 16 bytes for each CPU that counts, and 64.
 */
#ifndef STATCTR_H
#include <statctr.h> /* and that this file, after its own part */
#endif
#ifndef STATCTR_FLOAT_GAUGE_H
#define STATCTR_FLOAT_GAUGE_H

#ifdef __cplusplus
extern "C" {
#endif

/** Handle of a floating-point gauge. Zeroed: not initialised. The field is for the library only. */
typedef struct statctr_float_gauge {
    void *gauge;
} statctr_float_gauge_t;

/**
 * Initialises a gauge with a value. The former content of `gauge` is ignored.
 * Cost: as statctr_init(). Errors: -EINVAL (NULL), and as statctr_init(). The handle is zeroed on error. Signals:
 * not safe.
 */
extern int statctr_float_gauge_init(statctr_float_gauge_t *gauge, double value);

/**
 * Gives a gauge's memory back and zeroes the handle. Nothing else may be using it.
 * Cost: a lock. Errors: -EINVAL (NULL; not initialised, so also a second cleanup). Signals: not safe.
 */
extern int statctr_float_gauge_cleanup(statctr_float_gauge_t *gauge);

/**
 * Adds `value`.
 * Cost: see the top of this file. Errors: -EINVAL (NULL, or not initialised). Order: relaxed. Signals: safe.
 */
extern int statctr_float_gauge_add(statctr_float_gauge_t *gauge, double value);

/**
 * Sets the value, whatever was added before.
 * Cost: a lock, at any number of CPUs. Errors: -EINVAL (NULL, or not initialised). Signals: not safe.
 */
extern int statctr_float_gauge_set(statctr_float_gauge_t *gauge, double value);

/**
 * Reads the value: that of the last set, and all that was added since.
 * Cost: one cache line for each CPU that counted. Errors: -EINVAL (a NULL, or not initialised); `*value` is left
 * alone then. Signals: safe.
 */
extern int statctr_float_gauge_read(const statctr_float_gauge_t *gauge, double *value);

/** Subtracts `value`. Otherwise as statctr_float_gauge_add(). */
static inline int statctr_float_gauge_sub(statctr_float_gauge_t *gauge, double value)
{
    return statctr_float_gauge_add(gauge, -value);
}

/** Adds 1. Otherwise as statctr_float_gauge_add(). */
static inline int statctr_float_gauge_inc(statctr_float_gauge_t *gauge)
{
    return statctr_float_gauge_add(gauge, 1.0);
}

/** Subtracts 1. Otherwise as statctr_float_gauge_add(). */
static inline int statctr_float_gauge_dec(statctr_float_gauge_t *gauge)
{
    return statctr_float_gauge_add(gauge, -1.0);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* STATCTR_FLOAT_GAUGE_H */
