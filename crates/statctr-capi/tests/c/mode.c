/* Counts a little in the mode that the argument names: 1 rseq, 2 atomic, 3 one CPU. */
#include "check.h"

#define PAIR(EVENT, ITEM, kind)                                                          \
    EVENT(kind, moved, 8)                                                                \
    ITEM(kind, a, "", "") ITEM(kind, b, "", "") ITEM(kind, c, "", "") ITEM(kind, d, "", "") \
    ITEM(kind, e, "", "") ITEM(kind, f, "", "") ITEM(kind, g, "", "") ITEM(kind, h, "", "")
STATCTR_GROUP(wide, PAIR);

enum { THREADS = 4, UPDATES = 2000 };

static statctr_t counter;
static statctr_group_t group;

static void *body(void *unused)
{
    static const uint64_t deltas[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    (void)unused;
    for (int i = 0; i < UPDATES; i++) {
        CHECK_OK(statctr_inc(&counter));
        CHECK_OK(statctr_group_event8(&group, wide_moved, deltas));
        CHECK_OK(statctr_group_event4(&group, wide_moved, 1, 1, 1, 1));
        CHECK_OK(statctr_group_event2(&group, wide_moved, 1, 1));
        CHECK_OK(statctr_group_inc(&group, wide_a));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    uint64_t values[wide_SLOTS];
    CHECK(argc == 2);
    CHECK_EQ(statctr_mode(), atoi(argv[1]));
    CHECK_EQ(statctr_thread_mode(), atoi(argv[1]));
    CHECK_EQ(statctr_fallback_reason() != NULL, atoi(argv[1]) == STATCTR_MODE_STRIPED);
    CHECK_OK(statctr_init(&counter, 10));
    CHECK_OK(statctr_group_init(&group, &wide_group));
    run_threads(THREADS, body);
    CHECK_EQ(statctr_read(&counter), 10 + THREADS * UPDATES);
    CHECK_OK(statctr_group_fold(&group, values, wide_SLOTS));
    static const uint64_t others[8] = { 3, 2, 1, 1, 0, 0, 0, 0 };
    for (unsigned i = 0; i < 8; i++)
        CHECK_EQ(values[i], (i + 1 + others[i]) * THREADS * UPDATES);
    CHECK_OK(statctr_set(&counter, 5));
    CHECK_EQ(statctr_read(&counter), 5);
    CHECK_OK(statctr_cleanup(&counter));
    CHECK_OK(statctr_group_cleanup(&group));
    return 0;
}
