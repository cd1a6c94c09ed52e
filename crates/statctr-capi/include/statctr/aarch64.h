/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The inline updates for little-endian aarch64 with GCC or clang. <statctr.h> includes this file,
 * and this file <statctr/update.h>, which makes the functions of its section.
 *
 * It is the section of the Rust library, instruction by instruction; see <statctr/x86_64.h> for how
 * sections work and what stands in front of a table. The store before label 5 is the only one to a
 * counter. Different from there:
 *   - Loads by index have no room for the handle's tag, so the table comes without it.
 *   - The thread pointer is read inside: read outside, a compiler could keep it across a call that
 *     goes on with another thread (coroutines).
 *   - The way out and the abort address are one branch, in a subsection behind the function: a
 *     conditional branch reaches 1 MiB, which the slow path may be beyond.
 *   - No store is wider than a word that an interrupt cannot split, so events of groups are calls.
 */
#ifndef STATCTR_AARCH64_H
#define STATCTR_AARCH64_H

#include <statctr/descriptor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In front of label 6, where the kernel continues an interrupted section, is glibc's RSEQ_SIG. */
#define STATCTR_ADD_                               \
    STATCTR_DESCRIPTOR_                            \
    "mrs x9, tpidr_el0\n\t"                        \
    "add x9, x9, %[area]\n\t"                      \
    "adrp x10, 3b\n\t"                             \
    "add x10, x10, :lo12:3b\n\t"                   \
    "str x10, [x9, #8]\n"                          \
    "4:\tldrsw x10, [x9, #4]\n\t"                  \
    "ldr x10, [%[table], x10, lsl #3]\n\t"         \
    "cbz x10, 6f\n\t"                              \
    "ldr x9, [%[base], x10]\n\t"                   \
    "add x9, x9, %[value]\n\t"                     \
    "str x9, [%[base], x10]\n"                     \
    "5:\n\t"                                       \
    ".subsection 1\n\t"                            \
    ".inst 0xd428bc00\n"                           \
    "6:\tb %l[statctr_slow_]\n\t"                  \
    ".previous"
#define STATCTR_TABLE_(table) ((table) - 1)
#define STATCTR_VALUE_ "rIJ"
#define STATCTR_SCRATCH_ "x9", "x10"

/*
 * The thread's rseq area from the thread pointer, 0 where the section is not for this handle. As on
 * x86-64: safe for every value of `table`, and for being moved.
 */
STATCTR_ALWAYS_INLINE_ ptrdiff_t statctr_area_(uintptr_t table)
{
    ptrdiff_t area;
    __asm__("mov %0, xzr\n\t"
            "tbz %1, #0, 1f\n\t"
            "ldur %0, [%1, #-25]\n"
            "1:"
            : "=&r"(area)
            : "r"(table));
    return area;
}

/* A word that the library stores once, as it is or as it was (0); for loops, as statctr_area_(). */
STATCTR_ALWAYS_INLINE_ uintptr_t statctr_stored_once_(const uintptr_t *place)
{
    uintptr_t value;
    __asm__("ldr %0, [%1]" : "=r"(value) : "r"(place));
    return value;
}

STATCTR_ALWAYS_INLINE_ int statctr_static_add(statctr_static_t *counter, uint64_t value)
{
    if (STATCTR_LIKELY_(counter != NULL)) {
        /* one table for all, which a loop loads once; 0, and so no area, before the first update of any */
        const uintptr_t table = statctr_stored_once_(&statctr_static_table_);
        const ptrdiff_t area = statctr_area_(table);
        const uintptr_t base = __atomic_load_n(&counter->fast, __ATOMIC_RELAXED);
        if (STATCTR_LIKELY_(area != 0 && base != 0)) {
            __asm__ volatile goto(STATCTR_ADD_
                                  :
                                  : [area] "r"(area), [table] "r"(STATCTR_TABLE_(table)), [base] "r"(base),
                                    [value] STATCTR_VALUE_(value)
                                  : STATCTR_SCRATCH_, "memory"
                                  : statctr_slow_);
            return 0;
        }
    }
statctr_slow_:
    return statctr_static_slow_add(counter, value, STATCTR_ABI);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#include <statctr/update.h>

#endif /* STATCTR_AARCH64_H */
