/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * statctr: the largest and the smallest value that was observed. <statctr.h> includes this file, and says what
 * holds for every function.
 *
 *     static statctr_max_t slowest;                        // zeroed
 *     int error = statctr_max_init(&slowest);
 *     statctr_max_observe(&slowest, 1500);
 *     uint64_t value;
 *     error = statctr_max_take(&slowest, &value);          // of this interval
 *     statctr_max_cleanup(&slowest);
 *
 * A maximum of nothing is 0, a minimum of nothing UINT64_MAX, as if that had been observed.
 *
 * # Taking and resetting
 * An observation that runs at the same time as a take is in the value that is taken or in that of the next
 * interval; where it does not count per CPU (threads without rseq, memory that is not there) it may be in both.
 * None is lost, except where the kernel refuses membarrier(2) (before Linux 5.10, in some sandboxes): there one
 * that runs at the same time may be in neither; so may one that does not count per CPU and during which sixteen
 * takes go by. A reset drops the value.
 *
 * # Cost of an update
 * A library call, a restartable sequence of a dozen instructions, and a store where the value goes beyond the
 * CPU's others. 32 bytes for each CPU that observes, and 64.
 *
 * An average is a group with an event of 2: the number of values and their sum (<statctr/group.h>).
 */
#ifndef STATCTR_H
#include <statctr.h> /* and that this file, after its own part */
#endif
#ifndef STATCTR_EXTREMES_H
#define STATCTR_EXTREMES_H

#ifdef __cplusplus
extern "C" {
#endif

/** Handle of a maximum. Zeroed: not initialised. The field is for the library only. */
typedef struct statctr_max {
    void *maximum;
} statctr_max_t;

/** Handle of a minimum. Zeroed: not initialised. The field is for the library only. */
typedef struct statctr_min {
    void *minimum;
} statctr_min_t;

/**
 * Initialises a maximum of nothing. The former content of `maximum` is ignored.
 * Cost: as statctr_init(). Errors: -EINVAL (NULL), and as statctr_init(). The handle is zeroed on error. Signals:
 * not safe.
 */
extern int statctr_max_init(statctr_max_t *maximum);

/**
 * Gives a maximum's memory back and zeroes the handle. Nothing else may be using it.
 * Cost: a lock. Errors: -EINVAL (NULL; not initialised, so also a second cleanup). Signals: not safe.
 */
extern int statctr_max_cleanup(statctr_max_t *maximum);

/**
 * Observes a value.
 * Cost: see the top of this file. Errors: -EINVAL (NULL, or not initialised). Order: relaxed. Signals: safe.
 */
extern int statctr_max_observe(statctr_max_t *maximum, uint64_t value);

/**
 * Reads the largest value that was observed since the last take or reset.
 * Cost: one cache line for each CPU that observed. Errors: -EINVAL (a NULL, or not initialised); `*value` is left
 * alone then. Signals: safe.
 */
extern int statctr_max_read(const statctr_max_t *maximum, uint64_t *value);

/**
 * Reads the largest value that was observed since the last take or reset, and begins anew.
 * Cost: as statctr_max_read(), a lock, and a system call that interrupts the CPUs on which threads of the process
 * run. Errors: as statctr_max_read(). Signals: not safe.
 */
extern int statctr_max_take(statctr_max_t *maximum, uint64_t *value);

/** Drops all that was observed. Cost: a lock. Errors: -EINVAL (NULL, or not initialised). Signals: not safe. */
extern int statctr_max_reset(statctr_max_t *maximum);

/** Initialises a minimum of nothing. Otherwise as statctr_max_init(). */
extern int statctr_min_init(statctr_min_t *minimum);

/** Gives a minimum's memory back. Otherwise as statctr_max_cleanup(). */
extern int statctr_min_cleanup(statctr_min_t *minimum);

/** Observes a value. Otherwise as statctr_max_observe(). */
extern int statctr_min_observe(statctr_min_t *minimum, uint64_t value);

/** Reads the smallest value that was observed since the last take or reset. Otherwise as statctr_max_read(). */
extern int statctr_min_read(const statctr_min_t *minimum, uint64_t *value);

/** Reads the smallest value since the last take or reset, and begins anew. Otherwise as statctr_max_take(). */
extern int statctr_min_take(statctr_min_t *minimum, uint64_t *value);

/** Drops all that was observed. Otherwise as statctr_max_reset(). */
extern int statctr_min_reset(statctr_min_t *minimum);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* STATCTR_EXTREMES_H */
