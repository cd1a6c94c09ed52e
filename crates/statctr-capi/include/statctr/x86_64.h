/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The inline updates for x86-64 with GCC or clang. <statctr.h> includes this file, and this file
 * <statctr/update.h>, which makes the functions of its sections.
 *
 * They are the sections of the Rust library, instruction by instruction; its module `rseq` has the
 * specification. In short: `table[cpu]` is the displacement from a counter's home word to the
 * CPU's word, and 0 where that CPU has not been announced; it is 0 too for the numbers -1 and -2,
 * which threads have that are not registered with the kernel. A thread that is preempted between
 * labels 4 and 5 continues at label 6 and has stored nothing. The store before label 5 is the only
 * one. After an abort nothing is tried again here: the slow path does that.
 *
 * What stands in front of the table (entry 0 is at table & -64):
 *     -32  uint32_t   bytes of the widest vector store
 *     -28  uint32_t   STATCTR_ABI
 *     -24  ptrdiff_t  from the thread pointer to the thread's rseq area
 * and in the low bits of a handle's table: 1 these sections; 2 one CPU; 4 a locked instruction;
 * 8 a group whose lines have two copies; 16 a locked instruction on a stripe's word. All but the first are the library's.
 *
 * The asm has no outputs: GCC before 13 throws `asm goto` with outputs away, or miscompiles it (GCC
 * bug 113921). So rax is the scratch register, and vectors are copied before they are changed.
 */
#ifndef STATCTR_X86_64_H
#define STATCTR_X86_64_H

#include <statctr/descriptor.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The signature in front of label 6 is glibc's RSEQ_SIG, as the operand of an undefined
 * instruction. It lies in a subsection, behind the code of the function (or file).
 */
#define STATCTR_ABORT_                             \
    ".subsection 1\n\t"                            \
    ".byte 0x0f, 0xb9, 0x3d\n\t"                   \
    ".long 0x53053053\n"                           \
    "6:\tjmp %l[statctr_slow_]\n\t"                \
    ".previous"

#define STATCTR_SECTION_BY_(prepare, address, commit, cleanup) \
    STATCTR_DESCRIPTOR_                            \
    prepare                                        \
    "leaq 3b(%%rip), %%rax\n\t"                    \
    "movq %%rax, %%fs:8(%[area])\n"                \
    "4:\tmovslq %%fs:4(%[area]), %%rax\n\t"        \
    "movq -1(%[table], %%rax, 8), %%rax\n\t"       \
    address                                        \
    commit "\n"                                    \
    "5:\n\t"                                       \
    cleanup                                        \
    STATCTR_ABORT_

#define STATCTR_SECTION_(prepare, commit, cleanup) \
    STATCTR_SECTION_BY_(prepare,                   \
                        "testq %%rax, %%rax\n\t"   \
                        "jz %l[statctr_slow_]\n\t" \
                        "addq %[base], %%rax\n\t", \
                        commit, cleanup)

/*
 * The thread's rseq area from the thread pointer, 0 where these sections are not for this handle.
 *
 * Neither volatile nor with a memory operand, though it loads, so that compilers take it out of
 * loops. By that they may move it across any store, and up before a test that guards it. Neither
 * changes what comes out: the tag is tested inside, so it is good for every handle, also one that
 * was not made (0); the library writes the header once, with a barrier for compilers behind it,
 * before anybody has the table's address, and never again; and the memory goes with the last
 * handle, by a call.
 */
STATCTR_ALWAYS_INLINE_ ptrdiff_t statctr_area_(uintptr_t table)
{
    ptrdiff_t area;
    __asm__("xorl %k0, %k0\n\t"
            "testb $1, %b1\n\t"
            "jz 1f\n\t"
            "movq -25(%1), %0\n"
            "1:"
            : "=&r"(area)
            : "r"(table)
            : "cc");
    return area;
}

/* A word that the library stores once, as it is or as it was (0); for loops, as statctr_area_(). */
STATCTR_ALWAYS_INLINE_ uintptr_t statctr_stored_once_(const uintptr_t *place)
{
    uintptr_t value;
    __asm__("movq (%1), %0" : "=r"(value) : "r"(place));
    return value;
}

/* The same for the word at the start of a static; 0 for NULL, as it may come before the test for that. */
STATCTR_ALWAYS_INLINE_ uintptr_t statctr_static_home_(const statctr_static_t *counter)
{
    uintptr_t home;
    __asm__("movq %1, %0\n\t"
            "testq %0, %0\n\t"
            "jz 1f\n\t"
            "movq (%0), %0\n"
            "1:"
            : "=r"(home)
            : "r"(&counter->fast)
            : "cc");
    return home;
}

#define STATCTR_ADD_ STATCTR_SECTION_("", "addq %[value], (%%rax)", "")
/*
 * The displacements of statics are negative, so adding one to the address of a home word carries; adding 0, or one to
 * no address, does not.
 */
#define STATCTR_STATIC_ADD_                             \
    STATCTR_SECTION_BY_("",                             \
                        "addq %[home], %%rax\n\t"      \
                        "jnc %l[statctr_slow_]\n\t",   \
                        "addq %[value], (%%rax)", "")
#define STATCTR_TABLE_(table) (table)
#define STATCTR_VALUE_ "er"
#define STATCTR_SCRATCH_ "rax", "cc"

#ifdef __cplusplus
} /* extern "C" */
#endif

#include <statctr/update.h>

#ifdef __cplusplus
extern "C" {
#endif

STATCTR_ALWAYS_INLINE_ int statctr_static_add(statctr_static_t *counter, uint64_t value)
{
    if (STATCTR_LIKELY_(counter != NULL)) {
        /*
         * One table for all; 0, and so no area, before the first update of any. A loop loads it once, and the home word's
         * address, too. Compilers may keep both from a function's first update on: where one was 0 then, all updates in
         * the function are calls until it returns.
         */
        const uintptr_t table = statctr_stored_once_(&statctr_static_table_);
        const uintptr_t home = statctr_static_home_(counter);
        const ptrdiff_t area = statctr_area_(table);
        if (STATCTR_LIKELY_(area != 0)) {
            __asm__ volatile goto(STATCTR_STATIC_ADD_
                                  :
                                  : [area] "r"(area), [table] "r"(table), [home] "r"(home),
                                    [value] STATCTR_VALUE_(value)
                                  : STATCTR_SCRATCH_, "memory"
                                  : statctr_slow_);
            return 0;
        }
    }
statctr_slow_:
    return statctr_static_slow_add(counter, value, STATCTR_ABI);
}

#ifdef __SSE2__
typedef long long statctr_v2_ __attribute__((vector_size(16)));

STATCTR_ALWAYS_INLINE_ statctr_v2_ statctr_pair_(uint64_t low, uint64_t high)
{
    const statctr_v2_ pair = { (long long)low, (long long)high };
    return pair;
}

/* In a file for AVX, SSE's own encodings cost a wait for the upper halves. */
#ifdef __AVX__
#define STATCTR_PREPARE_16_ "vmovdqa %[d0], %%xmm15\n\t"
#define STATCTR_COMMIT_16_ "vpaddq (%%rax), %%xmm15, %%xmm15\n\tvmovdqa %%xmm15, (%%rax)"
#else
#define STATCTR_PREPARE_16_ "movdqa %[d0], %%xmm15\n\t"
#define STATCTR_COMMIT_16_ "paddq (%%rax), %%xmm15\n\tmovdqa %%xmm15, (%%rax)"
#endif

STATCTR_ALWAYS_INLINE_ int statctr_group_event2(statctr_group_t *group, unsigned event, uint64_t v0, uint64_t v1)
{
    if (STATCTR_LIKELY_(statctr_group_has_(group, event, 2))) {
        const uintptr_t base = group->home.base + 8 * (uintptr_t)event;
        const uintptr_t table = group->home.table;
        const ptrdiff_t area = statctr_area_(table);
        if (STATCTR_LIKELY_(area != 0)) {
            const statctr_v2_ d0 = statctr_pair_(v0, v1);
            __asm__ volatile goto(STATCTR_SECTION_(STATCTR_PREPARE_16_, STATCTR_COMMIT_16_, "")
                                  :
                                  : [area] "r"(area), [table] "r"(table), [base] "r"(base), [d0] "x"(d0)
                                  : "rax", "xmm15", "cc", "memory"
                                  : statctr_slow_);
            return 0;
        }
    }
statctr_slow_:
    return statctr_group_slow_event2(group, event, v0, v1);
}
#else
STATCTR_ALWAYS_INLINE_ int statctr_group_event2(statctr_group_t *group, unsigned event, uint64_t v0, uint64_t v1)
{
    return statctr_group_slow_event2(group, event, v0, v1);
}
#endif

/*
 * Whether wider commits can be written here: the registers that they change must be named in the
 * clobbers, or a function for AVX around them could be using these. GCC knows the names xmm16 and
 * up in files for AVX-512 only, clang always. In files for AVX2 the 256-bit registers are the
 * compiler's, which also clears their upper halves before code without AVX; an event of 8 needs
 * AVX-512 on the machine in any case.
 */
#if defined(__SSE2__) && ((defined(__AVX512F__) && defined(__AVX512VL__)) || defined(__clang__))
#define STATCTR_EVEX_ 1
#endif
#if defined(__AVX2__) && !(defined(__AVX512F__) && defined(__AVX512VL__))
#define STATCTR_VEX_ 1
#endif

#if defined(STATCTR_EVEX_) || defined(STATCTR_VEX_)
/* Bytes of the widest vector store, 0 where the sections are not for this handle. As statctr_area_(). */
STATCTR_ALWAYS_INLINE_ uint32_t statctr_width_(uintptr_t table)
{
    uintptr_t width;
    __asm__("xorl %k0, %k0\n\t"
            "testb $1, %b1\n\t"
            "jz 1f\n\t"
            "movl -33(%1), %k0\n"
            "1:"
            : "=&r"(width)
            : "r"(table)
            : "cc");
    return (uint32_t)width;
}
#endif

#if defined(STATCTR_VEX_)
typedef long long statctr_v4_ __attribute__((vector_size(32)));

/* As one operand of 32 bytes, or the compiler would not know that upper halves are in use. */
STATCTR_ALWAYS_INLINE_ statctr_v4_ statctr_four_(uint64_t v0, uint64_t v1, uint64_t v2, uint64_t v3)
{
    const statctr_v4_ four = { (long long)v0, (long long)v1, (long long)v2, (long long)v3 };
    return four;
}

#define STATCTR_WIDTH_32_ 32
#define STATCTR_PREPARE_32_ "vmovdqa %[d0], %%ymm15\n\t"
#define STATCTR_COMMIT_32_ "vpaddq (%%rax), %%ymm15, %%ymm15\n\tvmovdqa %%ymm15, (%%rax)"
#define STATCTR_VALUES_32_ [d0] "x"(statctr_four_(v0, v1, v2, v3))
#define STATCTR_CLOBBER_32_ "xmm15"
#elif defined(STATCTR_EVEX_)
#define STATCTR_WIDTH_32_ 64
#define STATCTR_PREPARE_32_ "vinserti32x4 $1, %[d1], %t[d0], %%ymm16\n\t"
#define STATCTR_COMMIT_32_ "vpaddq (%%rax), %%ymm16, %%ymm16\n\tvmovdqa64 %%ymm16, (%%rax)"
#define STATCTR_VALUES_32_ [d0] "x"(statctr_pair_(v0, v1)), [d1] "x"(statctr_pair_(v2, v3))
#define STATCTR_CLOBBER_32_ "xmm16"
#endif

STATCTR_ALWAYS_INLINE_ int statctr_group_event4(statctr_group_t *group, unsigned event, uint64_t v0, uint64_t v1,
                                                uint64_t v2, uint64_t v3)
{
#ifdef STATCTR_WIDTH_32_
    if (STATCTR_LIKELY_(statctr_group_has_(group, event, 4))) {
        const uintptr_t base = group->home.base + 8 * (uintptr_t)event;
        const uintptr_t table = group->home.table;
        const ptrdiff_t area = statctr_area_(table);
        if (STATCTR_LIKELY_(area != 0 && statctr_width_(table) >= STATCTR_WIDTH_32_)) {
            __asm__ volatile goto(STATCTR_SECTION_(STATCTR_PREPARE_32_, STATCTR_COMMIT_32_, "")
                                  :
                                  : [area] "r"(area), [table] "r"(table), [base] "r"(base), STATCTR_VALUES_32_
                                  : "rax", STATCTR_CLOBBER_32_, "cc", "memory"
                                  : statctr_slow_);
            return 0;
        }
    }
statctr_slow_:
#endif
    return statctr_group_slow_event4(group, event, v0, v1, v2, v3);
}

STATCTR_ALWAYS_INLINE_ int statctr_group_event8(statctr_group_t *group, unsigned event, const uint64_t values[8])
{
#ifdef STATCTR_EVEX_
    if (STATCTR_LIKELY_(statctr_group_has_(group, event, 8))) {
        const uintptr_t base = group->home.base + 8 * (uintptr_t)event;
        const uintptr_t table = group->home.table;
        const ptrdiff_t area = statctr_area_(table);
        if (STATCTR_LIKELY_(values != NULL && area != 0 && statctr_width_(table) >= 64)) {
            const statctr_v2_ d0 = statctr_pair_(values[0], values[1]), d1 = statctr_pair_(values[2], values[3]);
            const statctr_v2_ d2 = statctr_pair_(values[4], values[5]), d3 = statctr_pair_(values[6], values[7]);
            __asm__ volatile goto(
                STATCTR_SECTION_("vinserti32x4 $1, %[d1], %t[d0], %%ymm16\n\t"
                                 "vinserti32x4 $1, %[d3], %t[d2], %%ymm17\n\t"
                                 "vinserti64x4 $1, %%ymm17, %%zmm16, %%zmm16\n\t",
                                 "vpaddq (%%rax), %%zmm16, %%zmm16\n\tvmovdqa64 %%zmm16, (%%rax)", "")
                :
                : [area] "r"(area), [table] "r"(table), [base] "r"(base), [d0] "x"(d0), [d1] "x"(d1), [d2] "x"(d2),
                  [d3] "x"(d3)
                : "rax", "xmm16", "xmm17", "cc", "memory"
                : statctr_slow_);
            return 0;
        }
    }
statctr_slow_:
#endif
    return statctr_group_slow_event8(group, event, values);
}

/* ------------------------------------------------------------------------------------------- */
/* Lazy objects                                                                                */

#ifdef STATCTR_WIDTH_32_
/* What a pool of lazy objects begins with. */
struct statctr_joining_ {
    uint64_t sum[4], either[4], most[4]; /* all ones for the items of which it is that */
    ptrdiff_t area;                      /* from the thread pointer to the thread's rseq area */
    uint32_t field;                      /* where in the area the index of instances is */
    uint32_t width;                      /* bytes of the widest vector store, or 0 */
    uint64_t hold;
    uint32_t indices;                    /* words of a table */
    uint32_t cpus;                       /* whose updates are inline, 0 where there is no section of 32 bytes or more */
};
/* An object. */
struct statctr_lazy_cell_ {
    uint64_t words[4];
    uint32_t owner; /* 1 + the number of the CPU whose words these are */
    uint32_t flags;
    /* 1 + a CPU's number in the upper 16 bits, its instance in the others; the last one negative: the
     * complement of the address of a table of instances by CPU, in which the one that was there before is, too */
    uint64_t pairs[3];
};

/* The instance of a CPU that a table has a word for, `mark` less 1; NULL where it has none yet. */
STATCTR_ALWAYS_INLINE_ void *statctr_lazy_instance_(struct statctr_lazy_cell_ *cell, uint32_t mark)
{
    if (STATCTR_LIKELY_(__atomic_load_n(&cell->owner, __ATOMIC_RELAXED) == mark))
        return cell->words;
    const uint64_t addresses = ((uint64_t)1 << 48) - 1;
    const uint64_t last = __atomic_load_n(&cell->pairs[2], __ATOMIC_ACQUIRE);
    /* the table first: most of those who look there have no pair */
    if ((int64_t)last < 0) {
        const uintptr_t *const table = (const uintptr_t *)(uintptr_t)~last;
        void *const words = (void *)__atomic_load_n(&table[mark - 1], __ATOMIC_ACQUIRE);
        if (STATCTR_LIKELY_(words != NULL))
            return words;
    }
    const uint64_t first = __atomic_load_n(&cell->pairs[0], __ATOMIC_ACQUIRE);
    if (first >> 48 == mark)
        return (void *)(uintptr_t)(first & addresses);
    const uint64_t second = __atomic_load_n(&cell->pairs[1], __ATOMIC_ACQUIRE);
    if (second >> 48 == mark)
        return (void *)(uintptr_t)(second & addresses);
    /* loaded again, so that it takes no register before; it may be a table by now, in which case the slow path looks */
    const uint64_t third = __atomic_load_n(&cell->pairs[2], __ATOMIC_ACQUIRE);
    return third >> 48 == mark ? (void *)(uintptr_t)(third & addresses) : NULL;
}

/*
 * x := max((x + sums) or flags, maxima), of four words and in one store. AVX2 compares signed
 * numbers only, so it takes the maximum of numbers whose first bits were turned over.
 */
#if defined(STATCTR_VEX_)
#define STATCTR_PREPARE_LAZY_                    \
    "vpand (%[joining]), %[d0], %%ymm15\n\t"     \
    "vpand 32(%[joining]), %[d0], %%ymm14\n\t"   \
    "vpxor %%ymm15, %[d0], %%ymm13\n\t"          \
    "vpxor %%ymm14, %%ymm13, %%ymm13\n\t"        \
    "vpcmpeqq %%ymm12, %%ymm12, %%ymm12\n\t"     \
    "vpsllq $63, %%ymm12, %%ymm12\n\t"           \
    "vpxor %%ymm12, %%ymm13, %%ymm11\n\t"
#define STATCTR_JOIN_LAZY_                       \
    "vpaddq (%[words]), %%ymm15, %%ymm15\n\t"    \
    "vpor %%ymm14, %%ymm15, %%ymm15\n\t"         \
    "vpxor %%ymm12, %%ymm15, %%ymm12\n\t"        \
    "vpcmpgtq %%ymm12, %%ymm11, %%ymm12\n\t"     \
    "vpblendvb %%ymm12, %%ymm13, %%ymm15, %%ymm15\n\t" \
    "vmovdqa %%ymm15, (%[words])"
#define STATCTR_CLOBBER_LAZY_ "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#else
#define STATCTR_PREPARE_LAZY_                                 \
    "vinserti32x4 $1, %[d1], %t[d0], %%ymm16\n\t"             \
    "vpandq (%[joining]), %%ymm16, %%ymm17\n\t"               \
    "vpandq 32(%[joining]), %%ymm16, %%ymm18\n\t"             \
    "vpandq 64(%[joining]), %%ymm16, %%ymm16\n\t"
#define STATCTR_JOIN_LAZY_                                    \
    "vpaddq (%[words]), %%ymm17, %%ymm17\n\t"                 \
    "vporq %%ymm18, %%ymm17, %%ymm17\n\t"                     \
    "vpmaxuq %%ymm16, %%ymm17, %%ymm17\n\t"                   \
    "vmovdqa64 %%ymm17, (%[words])"
#define STATCTR_CLOBBER_LAZY_ "xmm16", "xmm17", "xmm18"
#endif

/* The number of CPUs asks for 32; a file for any machine that has sections for AVX-512 asks for their width. */
#if defined(STATCTR_VEX_) || (defined(__AVX512F__) && defined(__AVX512VL__))
#define STATCTR_LAZY_HAS_WIDTH_(joining) 1
#else
#define STATCTR_LAZY_HAS_WIDTH_(joining) ((joining)->width >= STATCTR_WIDTH_32_)
#endif

#define STATCTR_LAZY_SECTION_                      \
    STATCTR_DESCRIPTOR_                            \
    STATCTR_PREPARE_LAZY_                          \
    "leaq 3b(%%rip), %%rax\n\t"                    \
    "movq %%rax, %%fs:8(%[area])\n"                \
    "4:\tcmpl %[cpu], %%fs:4(%[area])\n\t"         \
    "jne %l[statctr_slow_]\n\t"                    \
    STATCTR_JOIN_LAZY_ "\n"                        \
    "5:\n\t"                                       \
    STATCTR_ABORT_
#endif

STATCTR_ALWAYS_INLINE_ int statctr_lazy_update(const statctr_lazy_t *object, uint64_t first, uint64_t second,
                                               uint64_t third, uint64_t fourth)
{
#ifdef STATCTR_WIDTH_32_
    if (STATCTR_LIKELY_(object != NULL && object->cell != 0)) {
        const struct statctr_joining_ *const joining = (const struct statctr_joining_ *)object->memory;
        struct statctr_lazy_cell_ *const cell = (struct statctr_lazy_cell_ *)object->cell;
        const uint64_t v0 = first, v1 = second, v2 = third, v3 = fourth;
        /* before the loads that acquire, behind which it would be loaded again */
        const ptrdiff_t area = joining->area;
        uint32_t cpu;
        /* 4: where the kernel keeps the CPU's number. Where there is no area it is not that, and no CPU is below 0 */
        __asm__ volatile("movl %%fs:4(%1), %0" : "=r"(cpu) : "r"(area));
        /* the numbers of threads without a registration are above */
        const int is_inline = cpu < joining->cpus && STATCTR_LAZY_HAS_WIDTH_(joining);
        void *const words = is_inline ? statctr_lazy_instance_(cell, cpu + 1) : NULL;
        if (STATCTR_LIKELY_(words != NULL)) {
            __asm__ volatile goto(STATCTR_LAZY_SECTION_
                                  :
                                  : [area] "r"(area), [cpu] "r"(cpu), [words] "r"(words),
                                    [joining] "r"(joining), STATCTR_VALUES_32_
                                  : "rax", STATCTR_CLOBBER_LAZY_, "cc", "memory"
                                  : statctr_slow_);
            return 0;
        }
    }
statctr_slow_:
#endif
    return statctr_lazy_slow_update(object, first, second, third, fourth);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* STATCTR_X86_64_H */
