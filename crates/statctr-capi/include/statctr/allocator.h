/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The choice of an allocator, CPUs that leave, and counters taken apart into their CPUs' words: the
 * interface of "Scalable Statistics Counters". Included by <statctr.h>, where what holds for all
 * functions is written.
 */
#ifndef STATCTR_H
#include <statctr.h> /* and that this file, after its own part */
#endif
#ifndef STATCTR_ALLOCATOR_H
#define STATCTR_ALLOCATOR_H

#ifdef __cplusplus
extern "C" {
#endif

/** The allocators; the `flag` of pcpu_ctr_alloc(). */
enum statctr_allocator {
    STATCTR_ALLOCATOR_DEFAULT = 0,  /* what fits the machine; for pcpu_ctr_alloc(): what was chosen */
    STATCTR_ALLOCATOR_FIXED = 1,    /* room for each possible CPU, laid out in advance */
    STATCTR_ALLOCATOR_FLEXIBLE = 2, /* for each CPU when it first counts; taken back by a drain */
    STATCTR_ALLOCATOR_SHARED = 3    /* one atomic word for all CPUs */
};

/**
 * Chooses the allocator of counters and groups that are initialised from now on; those that there
 * are stay what they are, and callers need not know. statctr_mode(), statctr_prefault(),
 * statctr_get_cost() and statctr_get_memory() speak of the allocator that is chosen.
 * Cost: sets the allocator up, once. Errors: -EINVAL (no such allocator); as statctr_init().
 * Signals: not safe.
 */
extern int statctr_use_allocator(int allocator);

/**
 * Moves what was counted on `cpu` in the flexible allocator elsewhere and frees its memory: for a
 * CPU that went offline. Reads see neither a loss nor a double count, and the CPU may go on
 * counting or come back at any moment. Pointers of PCPU_CTR() to that CPU's words are invalid from
 * then on. Cost: about 10 microseconds, and a pass over the CPU's counters. Errors: -EINVAL;
 * what membarrier(2) says where the kernel refuses it: then nothing has changed. Signals: not safe.
 */
extern int statctr_drain(unsigned cpu);

/**
 * Starts a thread that drains CPUs that go offline from the flexible allocator, and has memory ready
 * for those that come. No count depends on it: reads get cheaper, and memory smaller. The thread
 * takes no signals. A forked child has no such thread: it calls statctr_unwatch_cpus() first if it
 * wants one of its own. Errors: -EBUSY (it runs); as statctr_init(). Signals: not safe.
 */
extern int statctr_watch_cpus(void);

/** Ends that thread. Errors: -ESRCH (it does not run). Signals: not safe. */
extern int statctr_unwatch_cpus(void);

/**
 * Called when `bytes` bytes of counts of `cpu` were moved, on the thread that drained it. In C++ it must not throw: an
 * exception that leaves it ends the process.
 */
typedef void (*statctr_moved_fn)(unsigned cpu, size_t bytes, void *data);

/** A callback that is registered. */
typedef struct statctr_moved statctr_moved_t;

/**
 * Registers `callback`, called with `data` whenever a CPU was drained from the flexible allocator:
 * for statistics about statistics, or to move what else belongs to that CPU. It may read, make and
 * clean up counters. Errors: -EINVAL (NULL); as statctr_init(). Signals: not safe.
 */
extern int statctr_on_moved(statctr_moved_t **moved, statctr_moved_fn callback, void *data);

/**
 * Unregisters a callback. A call that is under way on another thread may still come to its end.
 * Errors: -EINVAL (NULL). Signals: not safe.
 */
extern int statctr_moved_free(statctr_moved_t *moved);

/** A counter in its CPUs' words. */
typedef struct pcpu_ctr {
    statctr_handle_t handle; /* as in a statctr_t, for the library's functions that take one */
} pcpu_ctr_t;

/**
 * Returns a counter with all words zero, from the allocator that `flag` names; NULL on failure.
 * Cost: as statctr_init(). Signals: not safe.
 */
#if defined(STATCTR_INLINE_)
static inline
#else
extern
#endif
pcpu_ctr_t *pcpu_ctr_alloc(int flag);

/* For the inline code of this header only: refuses code of another STATCTR_ABI. */
extern pcpu_ctr_t *pcpu_ctr_alloc_abi(int flag, unsigned abi);

#if defined(STATCTR_INLINE_)
static inline pcpu_ctr_t *pcpu_ctr_alloc(int flag)
{
    return pcpu_ctr_alloc_abi(flag, STATCTR_ABI);
}
#endif

/**
 * Gives a counter and all its words back; NULL is allowed. Returns NULL. Signals: not safe.
 */
extern pcpu_ctr_t *pcpu_ctr_free(pcpu_ctr_t *ctr);

/* Behind PCPU_CTR(). */
extern unsigned long *statctr_pcpu_word(pcpu_ctr_t *ctr, int cpu);

/**
 * Evaluates to the word of `cpu`: `unsigned long *`, until pcpu_ctr_free() or, in the flexible
 * allocator, statctr_drain() of that CPU. Of the shared allocator the one word that all CPUs have,
 * to be updated atomically. NULL where the CPU cannot have a word here. Readers of the counter
 * (statctr_read(&ctr->handle)) add the word from then on. Who stores to a word must be its only
 * writer, which statctr_add(&ctr->handle, n) is by itself.
 * Cost: a lock. Signals: not safe.
 */
#define PCPU_CTR(ctr, cpu) statctr_pcpu_word((ctr), (cpu))

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* STATCTR_ALLOCATOR_H */
