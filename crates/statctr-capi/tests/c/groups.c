/* Groups: layout, events of every width under migration, folds, the kernel's shape, descriptions. */
#include "check.h"

/* a hole before the event of 8, items behind it, an event of 3 whose last slot another item takes */
#define WIDE(EVENT, ITEM, kind)                               \
    ITEM(kind, num, STATCTR_NO_UNIT, "")                      \
    EVENT(kind, pair, 2)                                      \
    ITEM(kind, hits, STATCTR_OPERATIONS, "cache hits")        \
    ITEM(kind, nanos, STATCTR_NANOSECONDS, "time in the cache") \
    EVENT(kind, looped, 4)                                    \
    ITEM(kind, rx_packets, STATCTR_PACKETS, "packets received") \
    ITEM(kind, rx_bytes, STATCTR_BYTES, "bytes received")     \
    ITEM(kind, tx_packets, STATCTR_PACKETS, "packets sent")   \
    ITEM(kind, tx_bytes, STATCTR_BYTES, "bytes sent")         \
    EVENT(kind, three, 4)                                     \
    ITEM(kind, a, "widgets", "")                              \
    ITEM(kind, b, "widgets", "")                              \
    ITEM(kind, c, "widgets", "")                              \
    ITEM(kind, beside, STATCTR_NO_UNIT, "in the fourth place") \
    EVENT(kind, eight, 8)                                     \
    ITEM(kind, e0, "", "")                                    \
    ITEM(kind, e1, "", "")                                    \
    ITEM(kind, e2, "", "")                                    \
    ITEM(kind, e3, "", "")                                    \
    ITEM(kind, e4, "", "")                                    \
    ITEM(kind, e5, "", "")                                    \
    ITEM(kind, e6, "", "")                                    \
    ITEM(kind, e7, "", "")                                    \
    ITEM(kind, drops, STATCTR_PACKETS, "packets dropped")
STATCTR_GROUP(wide, WIDE);

#define PLAIN(EVENT, ITEM, kind) ITEM(kind, one, "", "") ITEM(kind, two, "", "")
STATCTR_GROUP(plain, PLAIN);

#define PAIRS(EVENT, ITEM, kind)                                \
    EVENT(kind, moved, 2)                                       \
    ITEM(kind, packets, STATCTR_PACKETS, "packets moved")       \
    ITEM(kind, bytes, STATCTR_BYTES, "bytes moved")
STATCTR_GROUP(pairs, PAIRS);

STATCTR_STATIC_ASSERT_(wide_hits == 2 && wide_pair == 2 && wide_nanos == 3, "after one skipped slot");
STATCTR_STATIC_ASSERT_(wide_looped == 4 && wide_tx_bytes == 7, "aligned to 4 as it is");
STATCTR_STATIC_ASSERT_(wide_three == 8 && wide_beside == 11, "an event of three, and a neighbour");
STATCTR_STATIC_ASSERT_(wide_eight == 16 && wide_e0 == 16 && wide_drops == 24, "after four skipped slots");
STATCTR_STATIC_ASSERT_(wide_SLOTS == 25 && plain_SLOTS == 2, "the length is the last slot's and one");

enum { THREADS = 6, ROUNDS = 100, UPDATES = 250 };

static statctr_group_t groups[3], pair_group;

static void *writer(void *number)
{
    const unsigned me = (unsigned)(uintptr_t)number;
    static const uint64_t eight[8] = { 1, 2, 3, 4, 5, 6, 7, UINT64_MAX };
    for (unsigned round = 0; round < ROUNDS; round++) {
        move_to(me + round);
        for (unsigned i = 0; i < UPDATES; i++) {
            statctr_group_t *group = &groups[i % 2];
            statctr_group_event2(group, wide_pair, 1, i);
            statctr_group_event4(group, wide_looped, 1, 1500, 2, 3000);
            statctr_group_event4(group, wide_three, 1, 10, 100, 0);
            statctr_group_inc(group, wide_beside);
            statctr_group_event8(group, wide_eight, eight);
            statctr_group_add(group, wide_drops, 4);
            statctr_group_dec(group, wide_drops);
            statctr_group_event2(&pair_group, pairs_moved, 3, 4);
        }
    }
    return NULL;
}

static void batch(void)
{
    static const uint64_t eight[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    for (int i = 0; i < 1000; i++) {
        statctr_group_event2(&groups[0], wide_pair, 1, 2);
        statctr_group_event4(&groups[0], wide_looped, 1, 2, 3, 4);
        statctr_group_event8(&groups[0], wide_eight, eight);
    }
}

static void check_pushed(void)
{
    uint64_t values[wide_SLOTS];
    CHECK_OK(statctr_group_init(&groups[0], &wide_group));
    const uint64_t events = 1000 * run_pushed(batch);
    CHECK_OK(statctr_group_fold(&groups[0], values, wide_SLOTS));
    for (unsigned i = 0; i < 2; i++)
        CHECK_EQ(values[wide_hits + i], (i + 1) * events);
    for (unsigned i = 0; i < 4; i++)
        CHECK_EQ(values[wide_rx_packets + i], (i + 1) * events);
    for (unsigned i = 0; i < 8; i++)
        CHECK_EQ(values[wide_e0 + i], (i + 1) * events);
    CHECK_OK(statctr_group_cleanup(&groups[0]));
}

static void check_sums(void)
{
    const uint64_t n = (uint64_t)THREADS * ROUNDS * UPDATES / 2;
    uint64_t values[2 * wide_SLOTS + 1], single;
    values[2 * wide_SLOTS] = 4711;
    CHECK_OK(statctr_group_fold_many(groups, 2, values, 2 * wide_SLOTS + 1));
    CHECK_EQ(values[2 * wide_SLOTS], 4711);
    for (int g = 0; g < 2; g++) {
        const uint64_t *v = values + g * wide_SLOTS;
        CHECK_EQ(v[wide_num], 0);
        CHECK_EQ(v[1], 0);
        CHECK_EQ(v[wide_hits], n);
        CHECK_EQ(v[wide_rx_packets], n);
        CHECK_EQ(v[wide_rx_bytes], 1500 * n);
        CHECK_EQ(v[wide_tx_packets], 2 * n);
        CHECK_EQ(v[wide_tx_bytes], 3000 * n);
        CHECK_EQ(v[wide_a], n);
        CHECK_EQ(v[wide_b], 10 * n);
        CHECK_EQ(v[wide_c], 100 * n);
        CHECK_EQ(v[wide_beside], n);
        for (int slot = 12; slot < 16; slot++)
            CHECK_EQ(v[slot], 0);
        for (int i = 0; i < 7; i++)
            CHECK_EQ(v[wide_e0 + i], (uint64_t)(i + 1) * n);
        CHECK_EQ(v[wide_e7], (uint64_t)0 - n);
        CHECK_EQ(v[wide_drops], 3 * n);
        CHECK_OK(statctr_group_read_item(&groups[g], wide_tx_bytes, &single));
        CHECK_EQ(single, 3000 * n);
    }
    /* even and odd i went to different groups */
    CHECK_EQ(values[wide_SLOTS + wide_nanos] - values[wide_nanos], n);

    uint64_t moved[pairs_SLOTS];
    CHECK_OK(statctr_group_fold(&pair_group, moved, pairs_SLOTS));
    CHECK_EQ(moved[pairs_packets], 6 * n);
    CHECK_EQ(moved[pairs_bytes], 8 * n);
}

static void check_shape(void)
{
    unsigned char target[8 * wide_SLOTS + 8 + 1 + 1];
    memset(target, 0xaa, sizeof(target));
    /* to an odd address, with room for one number more than there is */
    CHECK_OK(statctr_group_fill_stats(&groups[0], target + 1, 8 * wide_SLOTS + 8));
    uint64_t number;
    memcpy(&number, target + 1, 8);
    CHECK_EQ(number, wide_SLOTS);
    memcpy(&number, target + 1 + 8 * wide_rx_packets, 8);
    CHECK_EQ(number, (uint64_t)THREADS * ROUNDS * UPDATES / 2);
    memcpy(&number, target + 1 + 8 * wide_SLOTS, 8);
    CHECK_EQ(number, 0);
    CHECK_EQ(target[0], 0xaa);
    CHECK_EQ(target[sizeof(target) - 1], 0xaa);
    CHECK_EQ(statctr_group_fill_stats(&groups[0], target, 8 * wide_SLOTS - 1), -ENOSPC);
}

int main(void)
{
    const char *name, *unit, *help;
    uint64_t value, sum = 0;
    for (int g = 0; g < 2; g++)
        CHECK_OK(statctr_group_init(&groups[g], &wide_group));
    CHECK_OK(statctr_group_init(&groups[2], &plain_group));
    CHECK_OK(statctr_group_init(&pair_group, &pairs_group));
    run_threads(THREADS, writer);
    check_sums();
    check_shape();

    for (unsigned cpu = 0; cpu < 1024; cpu++) {
        CHECK_OK(statctr_group_read_cpu(&groups[0], cpu, wide_hits, &value));
        sum += value;
    }
    CHECK(sum <= (uint64_t)THREADS * ROUNDS * UPDATES / 2);

    CHECK_OK(statctr_group_set(&groups[0], wide_hits, 42));
    CHECK_OK(statctr_group_inc(&groups[0], wide_hits));
    CHECK_OK(statctr_group_read_item(&groups[0], wide_hits, &value));
    CHECK_EQ(value, 43);

    CHECK_OK(statctr_group_describe(&groups[0], wide_nanos, &name, &unit, &help));
    CHECK(!strcmp(name, "nanos") && !strcmp(unit, "nanoseconds") && !strcmp(help, "time in the cache"));
    CHECK_OK(statctr_group_describe(&groups[0], 1, &name, NULL, NULL));
    CHECK(!strcmp(name, ""));

    /* groups of different kinds cannot be folded together; a copy of one kind can */
    uint64_t values[2 * wide_SLOTS];
    CHECK_EQ(statctr_group_fold_many(groups + 1, 2, values, 2 * wide_SLOTS), -EINVAL);
    CHECK_EQ(statctr_group_fold_many(groups, 2, values, 2 * wide_SLOTS - 1), -ENOSPC);
    CHECK_OK(statctr_group_fold_many(groups, 0, values, 0));

    for (int g = 0; g < 3; g++)
        CHECK_OK(statctr_group_cleanup(&groups[g]));
    CHECK_OK(statctr_group_cleanup(&pair_group));

    check_pushed();

    /* many groups, made and given back: memory is used again */
    statctr_memory_t before, after;
    CHECK_OK(statctr_get_memory(&before));
    for (int i = 0; i < 2000; i++) {
        CHECK_OK(statctr_group_init(&groups[0], &wide_group));
        CHECK_OK(statctr_group_event4(&groups[0], wide_looped, 1, 1, 1, 1));
        CHECK_OK(statctr_group_read_item(&groups[0], wide_rx_packets, &value));
        CHECK_EQ(value, 1);
        CHECK_OK(statctr_group_cleanup(&groups[0]));
    }
    CHECK_OK(statctr_get_memory(&after));
    CHECK_EQ(after.slots, before.slots);
    CHECK_EQ(after.reservations, before.reservations);
    return 0;
}
