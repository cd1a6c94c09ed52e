/* The registry with every kind: exact under migration, by kind, as text; and what it refuses. */
#include "check.h"

#include <math.h>
#include <signal.h>
#include <sys/wait.h>

enum { THREADS = 4, ROUNDS = 100, UPDATES = 200 };

/* it does not see the counts of references by which the library frees what two threads had */
#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#ifndef UNDER_TSAN
#define UNDER_TSAN 0
#endif

#define HITS(EVENT, ITEM, kind)                  \
    EVENT(kind, looked_up, 2)                    \
    ITEM(kind, lookups, "", "all look-ups")      \
    ITEM(kind, found, "", "those that found")    \
    ITEM(kind, errors, "", "")
STATCTR_GROUP(hits, HITS);

STATCTR_DEFINE_GAUGE(open_files);
STATCTR_DEFINE_GAUGE_AS(queued, "queued_bytes", "bytes in queues", "bytes");
STATCTR_DEFINE_GAUGE(handled);
STATCTR_DEFINE_GAUGE(plugin);
STATCTR_DECLARE_GAUGE(queued);

static statctr_t counter, gauge;
static statctr_group_t group;
static statctr_histogram_t histogram;
static statctr_max_t maximum;
static statctr_min_t minimum;
static statctr_float_gauge_t load;

/* may run before the one that lists it */
__attribute__((constructor)) static void construct(void)
{
    statctr_static_gauge_dec(&queued);
}

static void handler(int number)
{
    (void)number;
    statctr_static_gauge_dec(&handled);
}

static void *writer(void *number)
{
    const unsigned me = (unsigned)(uintptr_t)number;
    for (unsigned round = 0; round < ROUNDS; round++) {
        move_to(me + round);
        for (unsigned i = 0; i < UPDATES; i++) {
            statctr_inc(&counter);
            statctr_sub(&gauge, 2);
            statctr_group_event2(&group, hits_looked_up, 1, i % 2);
            statctr_histogram_observe(&histogram, i);
            statctr_max_observe(&maximum, round * 1000 + i);
            statctr_min_observe(&minimum, 1000000 - round * 1000 - i);
            statctr_float_gauge_add(&load, 0.25);
            statctr_static_gauge_add(&open_files, -5);
            statctr_static_gauge_inc(&open_files);
            statctr_static_gauge_sub(&open_files, -1);
        }
    }
    return NULL;
}

/* The readings of the names that the test registered. */
struct seen {
    unsigned kinds;
    unsigned left;
    uint64_t last;
};

static int note(const statctr_reading_t *reading, void *context)
{
    struct seen *seen = (struct seen *)context;
    const uint64_t all = (uint64_t)THREADS * ROUNDS * UPDATES;
    const char *name = reading->desc.name;
    if (strcmp(name, "requests") == 0) {
        CHECK_EQ(reading->kind, STATCTR_KIND_COUNTER);
        CHECK_EQ(reading->value, all);
        CHECK_EQ(strcmp(reading->desc.labels[1], "a"), 0);
    } else if (strcmp(name, "open") == 0) {
        CHECK_EQ(reading->kind, STATCTR_KIND_GAUGE);
        CHECK_EQ((int64_t)reading->value, -2 * (int64_t)all);
        CHECK(reading->number == -2.0 * (double)all);
    } else if (strcmp(name, "hits") == 0) {
        CHECK_EQ(reading->kind, STATCTR_KIND_AVERAGE);
        CHECK_EQ(reading->count, all);
        CHECK_EQ(reading->sum, all / 2);
        CHECK(reading->number == 0.5);
    } else if (strcmp(name, "sizes") == 0) {
        CHECK_EQ(reading->kind, STATCTR_KIND_HISTOGRAM);
        uint64_t count = 0, sum = 0;
        CHECK_OK(statctr_histogram_totals(reading->histogram, &count, &sum));
        CHECK_EQ(reading->count, all);
        CHECK_EQ(count, all);
        CHECK_EQ(reading->sum, sum);
        CHECK_EQ(sum, all / UPDATES * (UPDATES * (UPDATES - 1) / 2));
        statctr_bucket_t buckets[65];
        CHECK_EQ(statctr_histogram_classic_buckets(reading->histogram, NULL, 0), 8);
        CHECK_EQ(statctr_histogram_classic_buckets(reading->histogram, buckets, 65), 8);
        CHECK_EQ(buckets[6].largest, 63);
        CHECK_EQ(buckets[6].count, all / UPDATES * 64);
        CHECK_EQ(buckets[7].largest, 100);
        CHECK_EQ(buckets[7].count, all / UPDATES * 101);
    } else if (strcmp(name, "slowest") == 0) {
        CHECK_EQ(reading->kind, STATCTR_KIND_MAX);
        CHECK_EQ(reading->value, (ROUNDS - 1) * 1000 + UPDATES - 1);
    } else if (strcmp(name, "fastest") == 0) {
        CHECK_EQ(reading->kind, STATCTR_KIND_MIN);
        CHECK_EQ(reading->value, 1000000 - (ROUNDS - 1) * 1000 - (UPDATES - 1));
    } else if (strcmp(name, "load") == 0) {
        CHECK_EQ(reading->kind, STATCTR_KIND_FLOAT_GAUGE);
        CHECK_EQ(reading->value, 0);
        CHECK(reading->number == 0.25 * (double)all);
    } else if (strcmp(name, "open_files") == 0) {
        CHECK_EQ(reading->kind, STATCTR_KIND_GAUGE);
        CHECK_EQ((int64_t)reading->value, -3 * (int64_t)all);
    } else if (strcmp(name, "queued_bytes") == 0) {
        CHECK_EQ(reading->kind, STATCTR_KIND_GAUGE);
        CHECK_EQ((int64_t)reading->value, -1);
        CHECK_EQ(strcmp(reading->desc.unit, "bytes"), 0);
    } else if (strcmp(name, "handled") == 0) {
        CHECK_EQ(reading->kind, STATCTR_KIND_GAUGE);
        CHECK(reading->number == -1);
    } else {
        CHECK(strcmp(name, "plugin") == 0);
    }
    seen->kinds |= 1u << reading->kind;
    seen->last = reading->kind;
    return --seen->left == 0 ? 7 : 0;
}

static int note_counter(const statctr_sample_t *sample, void *context)
{
    CHECK_EQ(strcmp(sample->desc.name, "requests"), 0);
    ++*(unsigned *)context;
    return 0;
}

static int store(const char *text, size_t length, void *context)
{
    char *target = (char *)context;
    CHECK(length < 4000);
    memcpy(target, text, length);
    target[length] = 0;
    return 0;
}

static int refuse(const char *text, size_t length, void *context)
{
    (void)text;
    (void)length;
    (void)context;
    return 5;
}

/* Statistics that come and go while the registry is read. */
static void *churn(void *number)
{
    const char labels_of[2][2] = { "0", "1" };
    const unsigned me = (unsigned)(uintptr_t)number;
    const char *const labels[] = { "thread", labels_of[me % 2], NULL };
    const statctr_desc_t of_histogram = { "churn_sizes", "", "", labels }, of_max = { "churn_max", "", "", labels };
    for (unsigned round = 0; round < 300; round++) {
        statctr_histogram_t sizes = { 0 };
        statctr_max_t largest = { 0 };
        CHECK_OK(statctr_histogram_init(&sizes, 1000, 0.1));
        CHECK_OK(statctr_max_init(&largest));
        CHECK_OK(statctr_register_histogram(&sizes, &of_histogram));
        CHECK_OK(statctr_register_max(&largest, &of_max));
        for (unsigned i = 0; i < 10; i++) {
            CHECK_OK(statctr_histogram_observe(&sizes, 7));
            CHECK_OK(statctr_max_observe(&largest, 7));
        }
        CHECK_OK(statctr_unregister_histogram(&sizes));
        CHECK_OK(statctr_unregister_max(&largest));
        CHECK_OK(statctr_histogram_cleanup(&sizes));
        CHECK_OK(statctr_max_cleanup(&largest));
    }
    return NULL;
}

static int note_churn(const statctr_reading_t *reading, void *context)
{
    (void)context;
    if (strcmp(reading->desc.name, "churn_sizes") == 0) {
        uint64_t count, sum;
        CHECK_OK(statctr_histogram_totals(reading->histogram, &count, &sum));
        CHECK(count <= 10 && sum == 7 * count);
    } else if (strcmp(reading->desc.name, "churn_max") == 0) {
        CHECK(reading->value == 0 || reading->value == 7);
    }
    return 0;
}

static void *churn_and_visit(void *number)
{
    if ((uintptr_t)number < 2)
        return churn(number);
    for (unsigned visit = 0; visit < 300; visit++)
        CHECK_OK(statctr_visit_all(note_churn, NULL));
    return NULL;
}

static void check_refusals(void)
{
    const char *const bound[] = { "le", "5", NULL };
    const statctr_desc_t free_name = { "free", "", "", NULL }, bad = { "a b", "", "", NULL };
    const statctr_desc_t taken = { "requests", "", "", NULL }, bounded = { "free", "", "", bound };
    static statctr_t no_counter;
    static statctr_group_t no_group;
    static statctr_histogram_t no_histogram;
    static statctr_max_t no_max;
    static statctr_min_t no_min;
    static statctr_float_gauge_t no_gauge;
    CHECK_EQ(statctr_register_gauge(&no_counter, &free_name), -EINVAL);
    CHECK_EQ(statctr_register_average(&no_group, 0, &free_name), -EINVAL);
    CHECK_EQ(statctr_register_histogram(&no_histogram, &free_name), -EINVAL);
    CHECK_EQ(statctr_register_max(&no_max, &free_name), -EINVAL);
    CHECK_EQ(statctr_register_min(NULL, &free_name), -EINVAL);
    CHECK_EQ(statctr_register_float_gauge(&no_gauge, &free_name), -EINVAL);
    CHECK_EQ(statctr_register_float_gauge(&load, &free_name), -EEXIST);
    CHECK_EQ(statctr_unregister_average(&no_group), -EINVAL);
    CHECK_EQ(statctr_unregister_histogram(&no_histogram), -EINVAL);
    CHECK_EQ(statctr_unregister_max(&no_max), -EINVAL);
    CHECK_EQ(statctr_unregister_min(&no_min), -EINVAL);
    CHECK_EQ(statctr_unregister_float_gauge(&no_gauge), -EINVAL);
    CHECK_EQ(statctr_register_max(&maximum, NULL), -EINVAL);
    CHECK_OK(statctr_max_init(&no_max));
    CHECK_EQ(statctr_register_max(&no_max, &bad), -EINVAL);
    CHECK_EQ(statctr_unregister_max(&no_max), -ENOENT);
    CHECK_OK(statctr_max_cleanup(&no_max));
    /* it is registered, and has one name */
    CHECK_EQ(statctr_register_max(&maximum, &free_name), -EEXIST);
    static statctr_histogram_t other;
    CHECK_OK(statctr_histogram_init(&other, 100, 0.1));
    CHECK_EQ(statctr_register_histogram(&other, &taken), -EEXIST);
    CHECK_EQ(statctr_register_histogram(&other, &bounded), -EINVAL);
    CHECK_EQ(statctr_unregister_histogram(&other), -ENOENT);
    CHECK_OK(statctr_histogram_cleanup(&other));
    CHECK_EQ(statctr_histogram_classic_buckets(NULL, NULL, 0), -EINVAL);
    CHECK_EQ(statctr_visit_all(NULL, NULL), -EINVAL);
    CHECK_EQ(statctr_write_prometheus(NULL, NULL), -EINVAL);
    CHECK_EQ(statctr_write_prometheus(refuse, NULL), 5);
    CHECK_EQ(statctr_static_gauge_add(NULL, 1), -EINVAL);
    CHECK_EQ(statctr_static_gauge_set(NULL, 1), -EINVAL);
    CHECK_EQ(statctr_static_gauge_list(NULL), -EINVAL);
    CHECK_EQ(statctr_static_gauge_read(NULL), 0);
}

int main(void)
{
    const char *const labels[] = { "of", "a", NULL };
    const statctr_desc_t requests = { "requests", "requests served", NULL, labels };
    const statctr_desc_t open = { "open", NULL, NULL, NULL }, hits = { "hits", NULL, NULL, NULL };
    const statctr_desc_t sizes = { "sizes", NULL, "bytes", NULL }, slowest = { "slowest", NULL, NULL, NULL };
    const statctr_desc_t fastest = { "fastest", NULL, NULL, NULL }, of_load = { "load", NULL, NULL, NULL };
    CHECK_OK(statctr_prepare());
    CHECK_OK(statctr_init(&counter, 0));
    CHECK_OK(statctr_init(&gauge, 0));
    CHECK_OK(statctr_group_init(&group, &hits_group));
    CHECK_OK(statctr_histogram_init(&histogram, 100, 0.1));
    CHECK_OK(statctr_max_init(&maximum));
    CHECK_OK(statctr_min_init(&minimum));
    CHECK_OK(statctr_float_gauge_init(&load, 0));
    CHECK_OK(statctr_register(&counter, &requests));
    CHECK_OK(statctr_register_gauge(&gauge, &open));
    CHECK_EQ(statctr_register_average(&group, hits_SLOTS - 1, &hits), -ERANGE);
    CHECK_EQ(statctr_register_average(&group, UINT32_MAX, &hits), -ERANGE);
    CHECK_EQ(statctr_register_average(&group, hits_looked_up + 1, &hits), -ERANGE);
    CHECK_OK(statctr_register_average(&group, hits_looked_up, &hits));
    CHECK_OK(statctr_register_histogram(&histogram, &sizes));
    CHECK_OK(statctr_register_max(&maximum, &slowest));
    CHECK_OK(statctr_register_min(&minimum, &fastest));
    CHECK_OK(statctr_register_float_gauge(&load, &of_load));
    check_refusals();
    if (!UNDER_TSAN)
        run_threads(3, churn_and_visit);

    CHECK(signal(SIGUSR1, handler) != SIG_ERR);
    CHECK_EQ(raise(SIGUSR1), 0);
    run_threads(THREADS, writer);

    struct seen seen = { 0, 1000, 0 };
    CHECK_OK(statctr_visit_all(note, &seen));
    CHECK_EQ(seen.kinds, 1u << STATCTR_KIND_COUNTER | 1u << STATCTR_KIND_GAUGE | 1u << STATCTR_KIND_AVERAGE |
                             1u << STATCTR_KIND_HISTOGRAM | 1u << STATCTR_KIND_MAX | 1u << STATCTR_KIND_MIN |
                             1u << STATCTR_KIND_FLOAT_GAUGE);
    seen.left = 2;
    CHECK_EQ(statctr_visit_all(note, &seen), 7);
    CHECK_EQ(seen.last, STATCTR_KIND_GAUGE);
    /* who knows of counters alone gets nothing else */
    unsigned counters = 0;
    CHECK_OK(statctr_visit(note_counter, &counters));
    CHECK_EQ(counters, 1);

    /* sets, and a fork */
    CHECK_OK(statctr_static_gauge_set(&open_files, 12));
    CHECK_OK(statctr_static_gauge_dec(&open_files));
    CHECK_EQ(statctr_static_gauge_read(&open_files), 11);
    const pid_t child = fork();
    if (child == 0) {
        statctr_static_gauge_sub(&open_files, 12);
        statctr_static_gauge_set(&queued, -7);
        _exit(statctr_static_gauge_read(&open_files) == -1 && statctr_static_gauge_read(&queued) == -7 ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(statctr_static_gauge_read(&open_files), 11);

    static char text[4000];
    CHECK_OK(statctr_write_prometheus(store, text));
    const char *const parts[] = {
        "# HELP requests requests served\n# TYPE requests counter\nrequests{of=\"a\"} 80000\n",
        "# TYPE open gauge\nopen -160000\n",
        "# TYPE hits summary\nhits_sum 40000\nhits_count 80000\n",
        "# TYPE sizes histogram\nsizes_bucket{le=\"0\"} 400\nsizes_bucket{le=\"1\"} 800\n",
        "sizes_bucket{le=\"100\"} 40400\nsizes_bucket{le=\"+Inf\"} 80000\nsizes_sum 7960000\nsizes_count 80000\n",
        "# TYPE slowest gauge\nslowest 99199\n",
        "# TYPE fastest gauge\nfastest 900801\n",
        "# TYPE load gauge\nload 20000\n",
        "# TYPE open_files gauge\nopen_files 11\n",
        "# HELP queued_bytes bytes in queues\n# TYPE queued_bytes gauge\nqueued_bytes -1\n",
    };
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strstr(text, parts[i]) == NULL) {
            fprintf(stderr, "%s is not in\n%s", parts[i], text);
            return 1;
        }

    CHECK(strstr(text, "plugin") != NULL);
    CHECK_OK(statctr_static_forget(&plugin.word));
    CHECK_OK(statctr_unregister(&gauge));
    CHECK_EQ(statctr_unregister(&gauge), -ENOENT);
    CHECK_OK(statctr_unregister_average(&group));
    CHECK_EQ(statctr_unregister_average(&group), -ENOENT);
    CHECK_OK(statctr_unregister_histogram(&histogram));
    CHECK_OK(statctr_unregister_max(&maximum));
    CHECK_EQ(statctr_unregister_max(&maximum), -ENOENT);
    CHECK_OK(statctr_unregister_min(&minimum));
    CHECK_OK(statctr_unregister_float_gauge(&load));
    CHECK_EQ(statctr_unregister_float_gauge(&load), -ENOENT);
    CHECK_OK(statctr_write_prometheus(store, text));
    CHECK(strstr(text, "plugin") == NULL && strstr(text, "slowest") == NULL && strstr(text, "open -") == NULL);
    CHECK(strstr(text, "load") == NULL);
    CHECK(strstr(text, "requests{") != NULL);
    /* the name is free for another kind */
    CHECK_OK(statctr_register_min(&minimum, &slowest));
    CHECK_OK(statctr_unregister_min(&minimum));

    CHECK_OK(statctr_unregister(&counter));
    CHECK_OK(statctr_cleanup(&counter));
    CHECK_OK(statctr_cleanup(&gauge));
    CHECK_OK(statctr_group_cleanup(&group));
    CHECK_OK(statctr_histogram_cleanup(&histogram));
    CHECK_OK(statctr_max_cleanup(&maximum));
    CHECK_OK(statctr_min_cleanup(&minimum));
    CHECK_OK(statctr_float_gauge_cleanup(&load));
    return 0;
}
