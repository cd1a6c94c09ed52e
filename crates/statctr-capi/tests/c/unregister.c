/*
 * Threads that take back their rseq registration, among threads that have theirs: both count
 * exactly, and the mode of a thread can be asked for.
 */
#include "check.h"

#if defined(__has_include)
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define HAVE_RSEQ 1
#endif
#endif

#define PAIR(EVENT, ITEM, kind) EVENT(kind, moved, 2) ITEM(kind, packets, "", "") ITEM(kind, bytes, "", "")
STATCTR_GROUP(pair, PAIR);

enum { THREADS = 6, UPDATES = 100000 };

static statctr_t counter;
static statctr_group_t group;
static int taken_back;

/* Whether the calling thread's registration could be taken back. */
static int unregister(void)
{
#if defined(HAVE_RSEQ) && defined(__NR_rseq)
    char *area = (char *)__builtin_thread_pointer() + __rseq_offset;
    /* the length must be the one that glibc registered, which it does not tell */
    for (unsigned length = 32; length <= 256; length += 32)
        if (syscall(__NR_rseq, area, length, RSEQ_FLAG_UNREGISTER, RSEQ_SIG) == 0)
            return 1;
#endif
    return 0;
}

static void *body(void *number)
{
    if ((uintptr_t)number % 2 == 0 && unregister()) {
        __atomic_fetch_add(&taken_back, 1, __ATOMIC_RELAXED);
        CHECK_EQ(statctr_thread_mode(), STATCTR_MODE_ATOMIC);
    } else {
        CHECK_EQ(statctr_thread_mode(), statctr_mode());
    }
    for (unsigned i = 0; i < UPDATES; i++) {
        statctr_inc(&counter);
        statctr_group_event2(&group, pair_moved, 1, 60);
    }
    return NULL;
}

int main(void)
{
    uint64_t values[pair_SLOTS];
    CHECK_OK(statctr_init(&counter, 0));
    CHECK_OK(statctr_group_init(&group, &pair_group));
    run_threads(THREADS, body);
    CHECK_EQ(statctr_read(&counter), THREADS * UPDATES);
    CHECK_OK(statctr_group_fold(&group, values, pair_SLOTS));
    CHECK_EQ(values[pair_packets], THREADS * UPDATES);
    CHECK_EQ(values[pair_bytes], 60 * THREADS * UPDATES);
    if (taken_back == 0)
        printf("no registration could be taken back here\n");
    else
        CHECK_EQ(taken_back, THREADS / 2);
    return 0;
}
