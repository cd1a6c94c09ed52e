/* A timer whose handler counts too, on whatever the program is just counting. */
#include "check.h"

#include <signal.h>
#include <sys/time.h>

#define PAIR(EVENT, ITEM, kind)     \
    EVENT(kind, moved, 4)           \
    ITEM(kind, packets, "", "")     \
    ITEM(kind, bytes, "", "")       \
    ITEM(kind, twice, "", "")       \
    ITEM(kind, none, "", "")
STATCTR_GROUP(pair, PAIR);

static statctr_t counter;
static statctr_group_t group;
static unsigned long handled;

static void handler(int number)
{
    (void)number;
    statctr_inc(&counter);
    statctr_group_event4(&group, pair_moved, 1, 100, 2, 0);
    statctr_group_inc(&group, pair_packets);
    if (statctr_read(&counter) == 0)
        abort(); /* it has just been counted here */
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

int main(void)
{
    const struct itimerval soon = { { 0, 0 }, { 0, 50 } }, never = { { 0, 0 }, { 0, 0 } };
    struct sigaction action;
    unsigned long updates = 0, seen = 0;
    uint64_t values[pair_SLOTS];

    CHECK_OK(statctr_init(&counter, 0));
    CHECK_OK(statctr_group_init(&group, &pair_group));
    memset(&action, 0, sizeof(action));
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_REAL, &soon, NULL), 0);
    while (__atomic_load_n(&handled, __ATOMIC_RELAXED) < 1500 && updates < 400000000) {
        /* set again here: one that repeats itself leaves a slow machine no time for anything but its handler */
        if (seen != __atomic_load_n(&handled, __ATOMIC_RELAXED)) {
            seen = __atomic_load_n(&handled, __ATOMIC_RELAXED);
            CHECK_EQ(setitimer(ITIMER_REAL, &soon, NULL), 0);
        }
        for (int i = 0; i < 1000; i++) {
            statctr_inc(&counter);
            statctr_group_event4(&group, pair_moved, 1, 100, 2, 0);
            statctr_group_inc(&group, pair_packets);
        }
        updates += 1000;
    }
    CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
    /* one that is still pending is delivered before this comes back */
    CHECK_EQ(raise(SIGALRM), 0);

    const unsigned long total = updates + __atomic_load_n(&handled, __ATOMIC_RELAXED);
    CHECK_EQ(statctr_read(&counter), total);
    CHECK_OK(statctr_group_fold(&group, values, pair_SLOTS));
    CHECK_EQ(values[pair_packets], 2 * total);
    CHECK_EQ(values[pair_bytes], 100 * total);
    CHECK_EQ(values[pair_twice], 2 * total);
    CHECK_EQ(values[pair_none], 0);
    CHECK_OK(statctr_cleanup(&counter));
    CHECK_OK(statctr_group_cleanup(&group));
    return 0;
}
