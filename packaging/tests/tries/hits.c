#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <statctr.h>
#define CACHE(EVENT, ITEM, kind)                              \
    EVENT(kind, hit, 2)                                       \
    ITEM(kind, hits, STATCTR_OPERATIONS, "lookups that hit")  \
    ITEM(kind, bytes, STATCTR_BYTES, "bytes served")          \
    ITEM(kind, misses, STATCTR_OPERATIONS, "lookups that missed")
STATCTR_GROUP(cache, CACHE);
static statctr_group_t stats;
static void *work(void *unused) {
    for (int i = 0; i < 1000000; i++)
        if (i % 10) statctr_group_event2(&stats, cache_hit, 1, 100);
        else statctr_group_inc(&stats, cache_misses);
    return unused;
}
int main(void) {
    int error = statctr_group_init(&stats, &cache_group);
    if (error) { fprintf(stderr, "%s\n", statctr_strerror(error)); return 1; }
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    uint64_t values[cache_SLOTS];
    error = statctr_group_fold(&stats, values, cache_SLOTS);
    printf("%" PRIu64 " hits, %" PRIu64 " bytes, %" PRIu64 " misses\n", values[cache_hits], values[cache_bytes], values[cache_misses]);
    return statctr_group_cleanup(&stats) || error;
}
