/* What can be seen to be wrong is refused, with the errno that the header names. */
#include "check.h"

#define PLAIN(EVENT, ITEM, kind) EVENT(kind, both, 2) ITEM(kind, one, "", "") ITEM(kind, two, "", "")
STATCTR_GROUP(plain, PLAIN);

static void counters(void)
{
    statctr_t counter = { 0, 0 }, several[3];
    uint64_t value = 77;
    /* a pointer that the compiler cannot see through */
    statctr_t *volatile null = NULL;

    CHECK_EQ(statctr_init(NULL, 0), -EINVAL);
    CHECK_EQ(statctr_ninit(NULL, 1, 0), -EINVAL);
    CHECK_EQ(statctr_ninit(several, -1, 0), -EINVAL);
    CHECK_OK(statctr_ninit(several, 0, 0));
    CHECK_EQ(statctr_cleanup(NULL), -EINVAL);
    CHECK_EQ(statctr_ncleanup(several, -1), -EINVAL);
    CHECK_EQ(statctr_inc(null), -EINVAL);
    CHECK_EQ(statctr_dec(null), -EINVAL);
    CHECK_EQ(statctr_add(null, 1), -EINVAL);
    CHECK_EQ(statctr_sub(null, 1), -EINVAL);
    CHECK_EQ(statctr_set(NULL, 1), -EINVAL);
    CHECK_EQ(statctr_read(NULL), 0);
    CHECK_EQ(statctr_read_checked(NULL, &value), -EINVAL);
    CHECK_EQ(statctr_read_cpu(NULL, 0, &value), -EINVAL);

    /* before it is initialised, alone and in a loop out of which the compiler takes what it can */
    CHECK_EQ(statctr_inc(&counter), -EINVAL);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(statctr_inc(&counter), -EINVAL);
    CHECK_EQ(statctr_set(&counter, 1), -EINVAL);
    CHECK_EQ(statctr_read(&counter), 0);
    CHECK_EQ(statctr_read_checked(&counter, &value), -EINVAL);
    CHECK_EQ(statctr_cleanup(&counter), -EINVAL);
    CHECK_EQ(value, 77);

    CHECK_OK(statctr_init(&counter, 5));
    CHECK_EQ(statctr_read_checked(&counter, NULL), -EINVAL);
    CHECK_EQ(statctr_read_cpu(&counter, 0, NULL), -EINVAL);
    CHECK_OK(statctr_read_cpu(&counter, UINT32_MAX, &value));
    CHECK_EQ(value, 0);
    CHECK_OK(statctr_read_checked(&counter, &value));
    CHECK_EQ(value, 5);
    CHECK_OK(statctr_cleanup(&counter));
    CHECK_EQ(statctr_cleanup(&counter), -EINVAL);
    CHECK_EQ(statctr_inc(&counter), -EINVAL);

    /* some of several: those that can be are cleaned up */
    CHECK_OK(statctr_ninit(several, 3, 1));
    CHECK_OK(statctr_cleanup(&several[1]));
    CHECK_EQ(statctr_ncleanup(several, 3), -EINVAL);
    for (int i = 0; i < 3; i++)
        CHECK(several[i].base == 0 && several[i].table == 0);

    /* not a handle that this library makes */
    statctr_t strange = { 8, 64 };
    CHECK_EQ(statctr_inc(&strange), -EINVAL);
    CHECK_EQ(statctr_cleanup(&strange), -EINVAL);
}

static void groups(void)
{
    statctr_group_t group, zero;
    uint64_t value = 77, values[8] = { 0 };
    const char *name;
    statctr_group_t *volatile null = NULL;
    memset(&zero, 0, sizeof(zero));

    CHECK_EQ(statctr_group_init(NULL, &plain_group), -EINVAL);
    CHECK_EQ(statctr_group_init(&group, NULL), -EINVAL);
    CHECK_EQ(statctr_group_cleanup(&group), -EINVAL); /* zeroed by the failed init */
    CHECK_EQ(statctr_group_cleanup(NULL), -EINVAL);
    CHECK_EQ(statctr_group_add(null, plain_one, 1), -EINVAL);
    CHECK_EQ(statctr_group_event2(null, plain_both, 1, 1), -EINVAL);
    CHECK_EQ(statctr_group_event4(null, plain_both, 1, 1, 1, 1), -EINVAL);
    CHECK_EQ(statctr_group_event8(null, plain_both, values), -EINVAL);
    CHECK_EQ(statctr_group_add(&zero, plain_one, 1), -EINVAL);
    CHECK_EQ(statctr_group_event2(&zero, plain_both, 1, 1), -EINVAL);
    CHECK_EQ(statctr_group_read_item(&zero, plain_one, &value), -EINVAL);
    CHECK_EQ(statctr_group_read_cpu(&zero, 0, plain_one, &value), -EINVAL);
    CHECK_EQ(statctr_group_fold(&zero, values, 8), -EINVAL);
    CHECK_EQ(statctr_group_fold_many(&zero, 1, values, 8), -EINVAL);
    CHECK_EQ(statctr_group_fold_many(NULL, 1, values, 8), -EINVAL);
    CHECK_EQ(statctr_group_fill_stats(&zero, values, 64), -EINVAL);
    CHECK_EQ(statctr_group_set(&zero, plain_one, 1), -EINVAL);
    CHECK_EQ(statctr_group_describe(&zero, plain_one, &name, NULL, NULL), -EINVAL);

    CHECK_OK(statctr_group_init(&group, &plain_group));
    CHECK_EQ(statctr_group_add(&group, 8, 1), -ERANGE);
    CHECK_EQ(statctr_group_inc(&group, UINT32_MAX), -ERANGE);
    CHECK_EQ(statctr_group_event2(&group, 8, 1, 1), -ERANGE);
    CHECK_EQ(statctr_group_event2(&group, 1, 1, 1), -ERANGE);
    CHECK_EQ(statctr_group_event4(&group, 2, 1, 1, 1, 1), -ERANGE);
    CHECK_EQ(statctr_group_event8(&group, 4, values), -ERANGE);
    CHECK_EQ(statctr_group_event8(&group, 0, NULL), -EINVAL);
    CHECK_EQ(statctr_group_read_item(&group, 2, &value), -ERANGE);
    CHECK_EQ(statctr_group_read_item(&group, plain_one, NULL), -EINVAL);
    CHECK_EQ(statctr_group_read_cpu(&group, 0, 2, &value), -ERANGE);
    CHECK_EQ(statctr_group_fold(&group, values, 1), -ENOSPC);
    CHECK_EQ(statctr_group_fold(&group, NULL, 8), -EINVAL);
    CHECK_EQ(statctr_group_fill_stats(&group, values, 15), -ENOSPC);
    CHECK_EQ(statctr_group_fill_stats(&group, NULL, 64), -EINVAL);
    CHECK_EQ(statctr_group_set(&group, 2, 1), -ERANGE);
    CHECK_EQ(statctr_group_describe(&group, 2, &name, NULL, NULL), -ERANGE);
    CHECK_EQ(value, 77);
    CHECK_OK(statctr_group_fold(&group, values, 8));
    CHECK_EQ(values[plain_one], 0);
    CHECK_OK(statctr_group_cleanup(&group));
    CHECK_EQ(statctr_group_cleanup(&group), -EINVAL);

    /* kinds that contradict themselves */
    static const statctr_item_desc_t twice[] = { { "a", "", "", 0, 0 }, { "b", "", "", 0, 0 } };
    static const statctr_item_desc_t beyond[] = { { "a", "", "", 9, 0 } };
    static const statctr_item_desc_t crooked[] = { { "e", "", "", 1, 2 }, { "a", "", "", 1, 0 } };
    static const statctr_item_desc_t nameless[] = { { NULL, NULL, NULL, 0, 0 } };
    const statctr_group_desc_t kinds[] = {
        { twice, 2, 2 }, { beyond, 1, 2 }, { crooked, 2, 3 }, { nameless, 1, 1 }, { NULL, 0, 1 }, { twice, 1, 0 },
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        CHECK_EQ(statctr_group_init(&group, &kinds[i]), -EINVAL);
    const statctr_group_desc_t large = { twice, 1, 10000 };
    CHECK_EQ(statctr_group_init(&group, &large), -E2BIG);
}

static void process(void)
{
    statctr_cost_t cost;
    statctr_memory_t memory;
    char version[32];

    CHECK_EQ(statctr_abi(), STATCTR_ABI);
    snprintf(version, sizeof(version), "%d.%d.%d", STATCTR_VERSION_MAJOR, STATCTR_VERSION_MINOR,
             STATCTR_VERSION_PATCH);
    CHECK(!strcmp(statctr_version(), version));
    if (statctr_mode() == STATCTR_MODE_RSEQ) {
        /* what the inline updates rely on stands in front of every table */
        statctr_t counter;
        CHECK_OK(statctr_init(&counter, 0));
        CHECK_EQ(counter.table % 64, 1);
        CHECK_EQ(*(const uint32_t *)(counter.table - 1 - 28), STATCTR_ABI);
        CHECK_OK(statctr_cleanup(&counter));
    }
    CHECK(statctr_mode() >= 1 && statctr_mode() <= STATCTR_MODE_STRIPED);
    CHECK(statctr_thread_mode() >= 1 && statctr_thread_mode() <= STATCTR_MODE_STRIPED);
    CHECK(strlen(statctr_strerror(-EINVAL)) > 0 && strlen(statctr_strerror(12345)) > 0);
    CHECK_EQ(statctr_get_cost(NULL), -EINVAL);
    CHECK_OK(statctr_get_cost(&cost));
    CHECK_EQ(cost.bytes_per_counter_per_cpu, 8);
    CHECK(cost.units >= 1 && cost.stride > cost.unit_bytes && cost.vector_bytes >= 8);
    CHECK_EQ(statctr_get_memory(NULL), -EINVAL);
    CHECK_OK(statctr_get_memory(&memory));
    CHECK(memory.reserved >= memory.resident);
    CHECK_EQ(statctr_prefault("0-"), -EINVAL);
    CHECK_EQ(statctr_prefault("none"), -EINVAL);
    CHECK_OK(statctr_prefault("0"));
    CHECK_OK(statctr_prepare_unload());
}

int main(void)
{
    counters();
    groups();
    process();
    return 0;
}
