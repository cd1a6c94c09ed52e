/* Compiled with a header of another STATCTR_ABI than the library's: `refused` inline, `works` by calls. */
#include "check.h"

#define PLAIN(EVENT, ITEM, kind) EVENT(kind, both, 2) ITEM(kind, one, "", "") ITEM(kind, two, "", "")
STATCTR_GROUP(plain, PLAIN);

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    CHECK(statctr_abi() != STATCTR_ABI);
    const int expected = strcmp(argv[1], "works") ? -EPROTO : 0;
    const int items[4] = { STATCTR_SUM, STATCTR_SUM, STATCTR_MAX, STATCTR_OR };
    statctr_t counter, several[2];
    statctr_group_t group;
    statctr_lazy_pool_t *pool;
    statctr_lazy_t flow;
    pcpu_ctr_t *ctr;
    memset(&counter, 0x55, sizeof(counter));
    memset(several, 0x55, sizeof(several));
    memset(&group, 0x55, sizeof(group));
    memset(&flow, 0x55, sizeof(flow));

    CHECK_EQ(statctr_init(&counter, 5), expected);
    CHECK_EQ(statctr_ninit(several, 2, 5), expected);
    CHECK_EQ(statctr_group_init(&group, &plain_group), expected);
    CHECK_OK(statctr_lazy_pool_new(&pool, STATCTR_PER_CPU, items));
    CHECK_EQ(statctr_lazy_init(&flow, pool), expected);
    ctr = pcpu_ctr_alloc(STATCTR_ALLOCATOR_DEFAULT);
    CHECK_EQ(ctr != NULL, expected == 0);
    /* also by a pointer, as other languages would */
    int (*init)(statctr_t *, unsigned long) = statctr_init;
    CHECK_EQ(init(&counter, 5), expected);
    if (expected == 0) {
        CHECK_OK(statctr_inc(&counter));
        CHECK_EQ(statctr_read(&counter), 6);
        CHECK_OK(statctr_group_event2(&group, plain_both, 1, 2));
        CHECK_OK(statctr_lazy_update(&flow, 1, 2, 3, 4));
        pcpu_ctr_free(ctr);
        CHECK_OK(statctr_cleanup(&counter));
        CHECK_OK(statctr_ncleanup(several, 2));
        CHECK_OK(statctr_group_cleanup(&group));
        CHECK_OK(statctr_lazy_cleanup(&flow));
        CHECK_OK(statctr_lazy_pool_free(pool));
        return 0;
    }
    /* nothing counts, and nothing is there to be given back */
    CHECK(counter.base == 0 && counter.table == 0 && several[1].table == 0);
    CHECK_EQ(statctr_inc(&counter), -EINVAL);
    CHECK_EQ(statctr_cleanup(&counter), -EINVAL);
    CHECK_EQ(statctr_group_add(&group, plain_one, 1), -EINVAL);
    CHECK_EQ(statctr_lazy_update(&flow, 1, 2, 3, 4), -EINVAL);
    CHECK(strstr(statctr_strerror(-EPROTO), "header") != NULL);
    CHECK_OK(statctr_lazy_pool_free(pool));
    return 0;
}
