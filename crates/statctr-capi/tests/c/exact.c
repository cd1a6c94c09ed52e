/*
 * Threads that migrate all the time, and every kind of update: when they have stopped, reads are
 * the exact sums. A reader that runs meanwhile never sees a counter go down that is only added to.
 */
#include "check.h"

enum { THREADS = 8, ROUNDS = 400, UPDATES = 500, COUNTERS = 20 };

static statctr_t up, mixed, many[COUNTERS];
static int stop;

static void *writer(void *number)
{
    const unsigned me = (unsigned)(uintptr_t)number;
    for (unsigned round = 0; round < ROUNDS; round++) {
        move_to(me + round);
        for (unsigned i = 0; i < UPDATES; i++) {
            statctr_inc(&up);
            statctr_add(&mixed, 1000);
            statctr_sub(&mixed, 990);
            statctr_dec(&mixed);
            statctr_inc(&many[i % COUNTERS]);
        }
    }
    return NULL;
}

static void *reader(void *unused)
{
    unsigned long last = 0;
    (void)unused;
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        const unsigned long now = statctr_read(&up);
        CHECK(now >= last);
        last = now;
    }
    return NULL;
}

static statctr_t pushed, pushed_wide;

static void batch(void)
{
    for (int i = 0; i < 1000; i++) {
        statctr_inc(&pushed);
        statctr_add(&pushed_wide, 3);
    }
}

static void push_about(void)
{
    CHECK_OK(statctr_init(&pushed, 0));
    CHECK_OK(statctr_init(&pushed_wide, 0));
    const unsigned long batches = run_pushed(batch);
    CHECK_EQ(statctr_read(&pushed), 1000 * batches);
    CHECK_EQ(statctr_read(&pushed_wide), 3000 * batches);
    CHECK_OK(statctr_cleanup(&pushed));
    CHECK_OK(statctr_cleanup(&pushed_wide));
}

int main(void)
{
    const unsigned long updates = (unsigned long)THREADS * ROUNDS * UPDATES;
    pthread_t thread;
    CHECK_OK(statctr_init(&up, 0));
    CHECK_OK(statctr_init(&mixed, 7));
    CHECK_OK(statctr_ninit(many, COUNTERS, 3));
    CHECK_OK(statctr_prefault(NULL));
    CHECK_EQ(pthread_create(&thread, NULL, reader, NULL), 0);
    run_threads(THREADS, writer);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    CHECK_EQ(pthread_join(thread, NULL), 0);

    CHECK_EQ(statctr_read(&up), updates);
    CHECK_EQ(statctr_read(&mixed), 7 + 9 * updates);
    for (int i = 0; i < COUNTERS; i++)
        CHECK_EQ(statctr_read(&many[i]), 3 + updates / COUNTERS);

    /* a baseline, and copies of a handle */
    CHECK_OK(statctr_set(&up, 100));
    statctr_t copy = up;
    CHECK_OK(statctr_inc(&copy));
    CHECK_EQ(statctr_read(&up), 101);

    /* the parts of the CPUs, and no more: what the baseline hides is still there */
    uint64_t sum = 0, part;
    for (unsigned cpu = 0; cpu < 1024; cpu++) {
        CHECK_OK(statctr_read_cpu(&many[0], cpu, &part));
        sum += part;
    }
    CHECK(sum <= updates / COUNTERS);
    if (statctr_mode() == STATCTR_MODE_RSEQ)
        CHECK(sum > 0);

    CHECK_OK(statctr_cleanup(&up));
    CHECK_OK(statctr_cleanup(&mixed));
    CHECK_OK(statctr_ncleanup(many, COUNTERS));

    /* a slot that is used again starts at its initial value */
    CHECK_OK(statctr_ninit(many, COUNTERS, 5));
    for (int i = 0; i < COUNTERS; i++)
        CHECK_EQ(statctr_read(&many[i]), 5);
    CHECK_OK(statctr_ncleanup(many, COUNTERS));

    push_about();
    return 0;
}
