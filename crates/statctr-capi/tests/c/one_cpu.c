/*
 * Built for one CPU. `refused`: on a machine with more, init says so and nothing is made.
 * `works`: where one CPU is possible, counters are plain words, exact under threads and signals.
 */
#define STATCTR_UP
#include "check.h"

#include <signal.h>
#include <sys/time.h>

STATCTR_STATIC_ASSERT_(sizeof(statctr_t) == sizeof(long), "a plain long");

#define PAIR(EVENT, ITEM, kind) EVENT(kind, moved, 2) ITEM(kind, packets, "", "") ITEM(kind, bytes, "", "")
STATCTR_GROUP(pair, PAIR);

enum { THREADS = 4, UPDATES = 1000000 };

static statctr_t counter, several[3];
static statctr_group_t group;
static unsigned long handled;

static void handler(int number)
{
    (void)number;
    statctr_inc(&counter);
    statctr_group_event2(&group, pair_moved, 1, 60);
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

static void *body(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < UPDATES; i++) {
        statctr_inc(&counter);
        statctr_add(&several[1], 5);
        statctr_sub(&several[1], 3);
        statctr_dec(&several[1]);
        if (i % 16 == 0)
            statctr_group_event2(&group, pair_moved, 1, 60);
    }
    return NULL;
}

static void works(void)
{
    const struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
    uint64_t value, values[pair_SLOTS];
    CHECK_OK(statctr_init(&counter, 9));
    CHECK_OK(statctr_ninit(several, 3, 1));
    CHECK_OK(statctr_group_init(&group, &pair_group));
    CHECK_EQ(statctr_mode(), STATCTR_MODE_UNIPROCESSOR);
    signal(SIGALRM, handler);
    CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
    run_threads(THREADS, body);
    CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
    CHECK_EQ(raise(SIGALRM), 0);
    const unsigned long signals = __atomic_load_n(&handled, __ATOMIC_RELAXED);
    CHECK_EQ(statctr_read(&counter), 9 + THREADS * UPDATES + signals);
    CHECK_OK(statctr_read_checked(&several[1], &value));
    CHECK_EQ(value, 1 + THREADS * UPDATES);
    CHECK_EQ(several[2], 1);
    CHECK_OK(statctr_group_fold(&group, values, pair_SLOTS));
    CHECK_EQ(values[pair_packets], THREADS * UPDATES / 16 + signals);
    CHECK_EQ(values[pair_bytes], 60 * (THREADS * UPDATES / 16 + signals));
    CHECK_OK(statctr_set(&counter, 3));
    CHECK_EQ(statctr_read(&counter), 3);
    CHECK_OK(statctr_ncleanup(several, 3));
    CHECK_OK(statctr_cleanup(&counter));
    CHECK_EQ(counter, 0);
    CHECK_OK(statctr_group_cleanup(&group));
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    if (!strcmp(argv[1], "works")) {
        works();
    } else {
        counter = 5;
        CHECK_EQ(statctr_init(&counter, 1), -ENOTSUP);
        CHECK_EQ(counter, 0);
        CHECK_EQ(statctr_ninit(several, 3, 1), -ENOTSUP);
    }
    CHECK_EQ(statctr_init(NULL, 1), -EINVAL);
    CHECK_EQ(statctr_ninit(several, -1, 1), -EINVAL);
    CHECK_EQ(statctr_inc(NULL), -EINVAL);
    CHECK_EQ(statctr_cleanup(NULL), -EINVAL);
    return 0;
}
