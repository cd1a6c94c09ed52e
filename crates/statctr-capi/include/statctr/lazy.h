/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * Statistics of a million objects: four items each, one instance in the object while one CPU
 * writes, and further ones as further CPUs do. Included by <statctr.h>, where what holds for all
 * functions is written.
 *
 *     static const int flow_items[4] = { STATCTR_SUM, STATCTR_SUM, STATCTR_MAX, STATCTR_OR };
 *     statctr_lazy_pool_t *flows;
 *     int error = statctr_lazy_pool_new(&flows, STATCTR_PER_CPU, flow_items);
 *     statctr_lazy_t flow;
 *     error = statctr_lazy_init(&flow, flows);
 *     statctr_lazy_update(&flow, 1, bytes, now, tcp_flags);
 */
#ifndef STATCTR_H
#include <statctr.h> /* and that this file, after its own part */
#endif
#ifndef STATCTR_LAZY_H
#define STATCTR_LAZY_H

#ifdef __cplusplus
extern "C" {
#endif

/** Granularity of instances. */
enum statctr_scope {
    STATCTR_PER_CPU = 0,           /* the items of an update are one commit */
    STATCTR_PER_NODE = 1,          /* shared by the node's CPUs: each item is exact on its own */
    STATCTR_PER_CONCURRENCY_ID = 2 /* Linux 6.3 and later: for few threads on many CPUs */
};

/** Operation by which an update joins a value to an item; 0 changes nothing. */
enum statctr_combine { STATCTR_SUM = 0, STATCTR_MAX = 1, STATCTR_OR = 2 };

/** Pool of objects of one kind. */
typedef struct statctr_lazy_pool statctr_lazy_pool_t;

/** An object. Zeroed: not initialised. The fields are for the library only. */
typedef struct statctr_lazy {
    uintptr_t cell;
    uintptr_t memory;
} statctr_lazy_t;

/**
 * Creates a pool of objects whose four items are joined as `items` says.
 * Errors: -EINVAL, -ENOMEM, -ENOTSUP (this kernel gives no concurrency ids). Signals: not safe.
 */
extern int statctr_lazy_pool_new(statctr_lazy_pool_t **pool, int scope, const int *items);

/**
 * Gives a pool back; its memory stays until its last object is cleaned up.
 * Errors: -EINVAL (NULL). Signals: not safe.
 */
extern int statctr_lazy_pool_free(statctr_lazy_pool_t *pool);

/**
 * Returns the mode of updates in this pool, an enum statctr_mode_value: by rseq, by rseq and short of
 * memory (an update found none for an instance at once, and used the object's own words), shared (in
 * the scope of nodes), or atomically. Errors: -EINVAL (NULL). Signals: safe.
 */
extern int statctr_lazy_mode(statctr_lazy_pool_t *pool);

/**
 * Initialises an object, all zero. Cost: some tens of nanoseconds and 64 bytes (128 on aarch64); now and
 * then maps memory. Errors: -EINVAL (NULL), -ENOMEM, -EPROTO (see STATCTR_ABI); the object is
 * zeroed on error. Signals: not safe.
 */
#if defined(STATCTR_INLINE_)
static inline
#else
extern
#endif
int statctr_lazy_init(statctr_lazy_t *object, statctr_lazy_pool_t *pool);

/**
 * Gives an object and its instances back. Nothing else may be using it.
 * Errors: -EINVAL (NULL; not initialised). Signals: not safe.
 */
extern int statctr_lazy_cleanup(statctr_lazy_t *object);

/**
 * Joins one number to each item. Waits for no other thread: where there is no memory for an instance
 * at once, the object's atomic words serve. Now and then an update maps memory for more instances, by
 * system calls alone (mmap, mprotect, madvise, prctl, mbind).
 * Cost: some nanoseconds; on x86-64 inline where the file is compiled for AVX2 or AVX-512, or by clang,
 * else a call more. Where many CPUs write, loads of a further line or two. Errors: -EINVAL (NULL, not
 * initialised). Signals: safe.
 */
STATCTR_UPDATE_ int statctr_lazy_update(const statctr_lazy_t *object, uint64_t first, uint64_t second,
                                        uint64_t third, uint64_t fourth);

/** Writes the four values through `values`. Errors: -EINVAL. Signals: safe. */
extern int statctr_lazy_read(const statctr_lazy_t *object, uint64_t *values);

/** Returns the number of the object's instances: 1 while one CPU (node) writes. Errors: -EINVAL. */
extern int statctr_lazy_instances(const statctr_lazy_t *object);

/* For the inline code of this header only: refuses code of another STATCTR_ABI. */
extern int statctr_lazy_init_abi(statctr_lazy_t *object, statctr_lazy_pool_t *pool, unsigned abi);

#if defined(STATCTR_INLINE_)
static inline int statctr_lazy_init(statctr_lazy_t *object, statctr_lazy_pool_t *pool)
{
    return statctr_lazy_init_abi(object, pool, STATCTR_ABI);
}
#endif

/* For the inline code of this header only: the way out of an inline update. */
extern int statctr_lazy_slow_update(const statctr_lazy_t *object, uint64_t first, uint64_t second,
                                    uint64_t third, uint64_t fourth);

#if defined(STATCTR_UP) || (defined(STATCTR_INLINE_) && !defined(__x86_64__))
static inline int statctr_lazy_update(const statctr_lazy_t *object, uint64_t first, uint64_t second,
                                      uint64_t third, uint64_t fourth)
{
    return statctr_lazy_slow_update(object, first, second, third, fourth);
}
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* STATCTR_LAZY_H */
