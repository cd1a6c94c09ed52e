/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * statctr.h for STATCTR_UP: a counter is a plain unsigned long. Do not include this file yourself.
 *
 * One unlocked instruction to memory cannot be split by an interrupt, so it cannot be split by a
 * signal handler or by another thread of the one CPU either.
 */
#ifndef STATCTR_UP_H
#define STATCTR_UP_H

#if !defined(__GNUC__) || !(defined(__x86_64__) || defined(__i386__))
#error "STATCTR_UP needs an instruction that adds to memory: x86, with GCC or clang"
#endif

#ifdef __cplusplus
extern "C" {
#endif

static inline int statctr_ninit(statctr_t *counters, int count, unsigned long value)
{
    int error;
    if (counters == NULL || count < 0)
        return -EINVAL;
    error = statctr_up_check();
    for (int i = 0; i < count; i++)
        counters[i] = error ? 0 : value;
    return error;
}

static inline int statctr_init(statctr_t *counter, unsigned long value)
{
    return statctr_ninit(counter, 1, value);
}

static inline int statctr_ncleanup(statctr_t *counters, int count)
{
    if (counters == NULL || count < 0)
        return -EINVAL;
    for (int i = 0; i < count; i++)
        counters[i] = 0;
    return 0;
}

static inline int statctr_cleanup(statctr_t *counter)
{
    return statctr_ncleanup(counter, 1);
}

static inline int statctr_set(statctr_t *counter, unsigned long value)
{
    if (counter == NULL)
        return -EINVAL;
    *(volatile statctr_t *)counter = value;
    return 0;
}

static inline unsigned long statctr_read(const statctr_t *counter)
{
    return counter == NULL ? 0 : *(const volatile statctr_t *)counter;
}

static inline int statctr_read_checked(const statctr_t *counter, uint64_t *value)
{
    if (counter == NULL || value == NULL)
        return -EINVAL;
    *value = statctr_read(counter);
    return 0;
}

static inline int statctr_add(statctr_t *counter, unsigned long value)
{
    if (__builtin_expect(counter == NULL, 0))
        return -EINVAL;
#ifdef __LP64__
    __asm__ volatile("addq %1, %0" : "+m"(*counter) : "er"(value) : "cc", "memory");
#else
    __asm__ volatile("addl %1, %0" : "+m"(*counter) : "ir"(value) : "cc", "memory");
#endif
    return 0;
}

static inline int statctr_sub(statctr_t *counter, unsigned long value)
{
    return statctr_add(counter, 0UL - value);
}

static inline int statctr_inc(statctr_t *counter)
{
    return statctr_add(counter, 1);
}

static inline int statctr_dec(statctr_t *counter)
{
    return statctr_add(counter, 0UL - 1);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* STATCTR_UP_H */
