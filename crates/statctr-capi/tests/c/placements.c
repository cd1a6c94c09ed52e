/* The allocators behind the same calls, counters in their CPUs' words, drains, and lazy objects. */
#include "check.h"

#define PAIR(EVENT, ITEM, kind) EVENT(kind, both, 2) ITEM(kind, a, "", "") ITEM(kind, b, "", "")
STATCTR_GROUP(pair, PAIR);

enum { THREADS = 4, UPDATES = 5000 };
#define HIGH (UINT64_C(1) << 63)

static statctr_t counter;
static statctr_group_t group;
static pcpu_ctr_t *parts;
static statctr_lazy_t flow;
static int done;

static void *body(void *unused)
{
    (void)unused;
    for (uint64_t i = 0; i < UPDATES; i++) {
        CHECK_OK(statctr_inc(&counter));
        CHECK_OK(statctr_group_event2(&group, pair_both, 1, 2));
        CHECK_OK(statctr_add(&parts->handle, 3));
        /* a maximum that would be below zero if it had a sign */
        CHECK_OK(statctr_lazy_update(&flow, 1, 1500, i % 2 ? i : i | HIGH, UINT64_C(1) << (i % 64)));
    }
    return NULL;
}

static void *drain(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
        for (unsigned cpu = 0; cpu < 2; cpu++)
            (void)statctr_drain(cpu); /* a sandbox may refuse: then nothing moves */
        usleep(100);
    }
    return NULL;
}

static unsigned long moved;

static void on_moved(unsigned cpu, size_t bytes, void *data)
{
    CHECK(cpu < 1u << 16 && bytes > 0 && data == &moved);
    __atomic_add_fetch(&moved, 1, __ATOMIC_RELAXED);
}

/* A callback for drains, and the thread that drains CPUs by itself. */
static void watch(void)
{
    statctr_moved_t *registration;
    CHECK_OK(statctr_on_moved(&registration, on_moved, &moved));
    CHECK_EQ(statctr_on_moved(NULL, on_moved, NULL), -EINVAL);
    CHECK_EQ(statctr_on_moved(&registration, NULL, NULL), -EINVAL);
    CHECK_EQ(statctr_unwatch_cpus(), -ESRCH);
    CHECK_OK(statctr_watch_cpus());
    CHECK_EQ(statctr_watch_cpus(), -EBUSY);
    CHECK_OK(statctr_use_allocator(STATCTR_ALLOCATOR_FLEXIBLE));
    CHECK_OK(statctr_init(&counter, 0));
    /* where the kernel refuses barriers, or this thread is moved each time, nothing moves */
    for (int i = 0; i < 1000 && __atomic_load_n(&moved, __ATOMIC_RELAXED) == 0; i++) {
        CHECK_OK(statctr_inc(&counter));
        if (statctr_mode() != 1 || statctr_drain((unsigned)sched_getcpu()) != 0)
            moved = 1;
    }
    CHECK(moved > 0);
    CHECK_OK(statctr_cleanup(&counter));
    CHECK_OK(statctr_unwatch_cpus());
    CHECK_OK(statctr_moved_free(registration));
    CHECK_EQ(statctr_moved_free(NULL), -EINVAL);
}

static void use(int allocator)
{
    static const int items[4] = { STATCTR_SUM, STATCTR_SUM, STATCTR_MAX, STATCTR_OR };
    uint64_t values[4];
    statctr_lazy_pool_t *flows;
    pthread_t drainer;
    CHECK_OK(statctr_use_allocator(allocator));
    CHECK(statctr_mode() > 0);
    CHECK_OK(statctr_init(&counter, 7));
    CHECK_OK(statctr_group_init(&group, &pair_group));
    CHECK((parts = pcpu_ctr_alloc(STATCTR_ALLOCATOR_DEFAULT)) != NULL);
    CHECK_OK(statctr_lazy_pool_new(&flows, allocator % 2, items));
    CHECK(statctr_lazy_mode(flows) > 0);
    CHECK_OK(statctr_lazy_init(&flow, flows));
    CHECK_OK(statctr_lazy_pool_free(flows));

    /* a word that somebody stores to by hand, before others count */
    unsigned long *word = PCPU_CTR(parts, 0);
    CHECK(word != NULL && *word == 0 && word == PCPU_CTR(parts, 0));
    *word = 40;
    CHECK_EQ(statctr_read(&parts->handle), 40);
    CHECK(PCPU_CTR(parts, -1) == NULL && PCPU_CTR(NULL, 0) == NULL);

    done = 0;
    CHECK_EQ(pthread_create(&drainer, NULL, drain, NULL), 0);
    run_threads(THREADS, body);
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    CHECK_EQ(pthread_join(drainer, NULL), 0);

    CHECK_EQ(statctr_read(&counter), 7 + THREADS * UPDATES);
    CHECK_EQ(statctr_read(&parts->handle), 40 + 3 * THREADS * UPDATES);
    CHECK_OK(statctr_group_fold(&group, values, pair_SLOTS));
    CHECK_EQ(values[0], THREADS * UPDATES);
    CHECK_EQ(values[1], 2 * THREADS * UPDATES);
    CHECK_OK(statctr_lazy_read(&flow, values));
    CHECK_EQ(values[0], THREADS * UPDATES);
    CHECK_EQ(values[1], 1500ul * THREADS * UPDATES);
    CHECK_EQ(values[2], HIGH | (UPDATES - 2));
    CHECK_EQ(values[3], UINT64_MAX);
    CHECK(statctr_lazy_instances(&flow) >= 1);

    CHECK_OK(statctr_cleanup(&counter));
    CHECK_OK(statctr_group_cleanup(&group));
    CHECK(pcpu_ctr_free(parts) == NULL);
    CHECK_OK(statctr_lazy_cleanup(&flow));
    CHECK_EQ(statctr_lazy_cleanup(&flow), -EINVAL);
    CHECK_EQ(statctr_lazy_update(&flow, 1, 1, 1, 1), -EINVAL);
}

int main(void)
{
    static const int wrong[4] = { STATCTR_SUM, 9, STATCTR_SUM, STATCTR_SUM };
    statctr_lazy_pool_t *flows;
    int allocator = STATCTR_ALLOCATOR_DEFAULT;
    while (statctr_use_allocator(allocator) == 0)
        use(allocator++);
    CHECK(allocator > STATCTR_ALLOCATOR_SHARED);
    watch();
    CHECK_EQ(statctr_lazy_mode(NULL), -EINVAL);
    CHECK_EQ(statctr_use_allocator(99), -EINVAL);
    CHECK(pcpu_ctr_alloc(99) == NULL);
    CHECK(pcpu_ctr_free(NULL) == NULL);
    CHECK_EQ(statctr_lazy_pool_new(&flows, STATCTR_PER_CPU, wrong), -EINVAL);
    CHECK_EQ(statctr_lazy_pool_new(&flows, 7, wrong), -EINVAL);
    CHECK_EQ(statctr_lazy_init(NULL, NULL), -EINVAL);
    CHECK_EQ(statctr_drain(UINT32_MAX), -EINVAL);
    return 0;
}
