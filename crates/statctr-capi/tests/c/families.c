/* Families by labels: exact on many threads, bounded, of every kind, first used before main; and what they refuse. */
#include "check.h"

#include <signal.h>
#include <sys/wait.h>

enum { THREADS = 4, ROUNDS = 2000, LIMIT = 50 };

STATCTR_DEFINE_FAMILY(responses, "method", "status");
STATCTR_DEFINE_FAMILY_AS(paths, "paths_total", "requests by path", "requests", LIMIT, "path");
STATCTR_DEFINE_FAMILY(before_main, "of");
STATCTR_DEFINE_GAUGE_FAMILY_AS(open_files, "open_files", "open files", "", 10, "by");
STATCTR_DEFINE_MAX_FAMILY(slowest, "by");
STATCTR_DEFINE_MIN_FAMILY(fastest, "by");
STATCTR_DEFINE_HISTOGRAM_FAMILY(sizes, 100, 0.1, "of");
STATCTR_DEFINE_AVERAGE_FAMILY(hits, "cache");
STATCTR_DEFINE_FLOAT_GAUGE_FAMILY(load, "of");
STATCTR_DECLARE_FAMILY(responses);
STATCTR_DECLARE_GAUGE_FAMILY(open_files);
STATCTR_DECLARE_MAX_FAMILY(slowest);
STATCTR_DECLARE_MIN_FAMILY(fastest);
STATCTR_DECLARE_AVERAGE_FAMILY(hits);
STATCTR_DECLARE_FLOAT_GAUGE_FAMILY(load);
STATCTR_DECLARE_HISTOGRAM_FAMILY(sizes);

__attribute__((constructor)) static void construct(void)
{
    statctr_static_t *counter = NULL;
    CHECK_OK(statctr_family_get(&before_main, STATCTR_VALUES("a constructor"), &counter));
    CHECK_OK(statctr_static_inc(counter));
}

static statctr_static_t *counter_of(statctr_family_t *family, const char *value)
{
    statctr_static_t *counter = NULL;
    CHECK_OK(statctr_family_get(family, &value, 1, &counter));
    return counter;
}

/* What the registry has of one name: the sum of the values, the members, and the value of "overflow". */
struct seen {
    const char *name;
    uint64_t sum;
    uint64_t overflow;
    unsigned members;
};

static int note(const statctr_reading_t *reading, void *context)
{
    struct seen *seen = (struct seen *)context;
    if (strcmp(reading->desc.name, seen->name) != 0)
        return 0;
    /* of histograms the number of values, of averages their sum */
    const uint64_t value = reading->kind == STATCTR_KIND_HISTOGRAM ? reading->count
                           : reading->kind == STATCTR_KIND_AVERAGE ? reading->sum
                                                                   : reading->value;
    seen->sum += value;
    seen->members++;
    if (strcmp(reading->desc.labels[1], "overflow") == 0)
        seen->overflow += value;
    return 0;
}

static struct seen visit(const char *name)
{
    struct seen seen = { name, 0, 0, 0 };
    CHECK_OK(statctr_visit_all(note, &seen));
    return seen;
}

/* Floods the families with values, and counts in one member that all threads share. */
static void *flood(void *number)
{
    const unsigned me = (unsigned)(uintptr_t)number;
    char path[64], long_path[1000];
    memset(long_path, 'x', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (round % 100 == 0)
            move_to(me + round / 100);
        snprintf(path, sizeof(path), "/%u/%u", me, round);
        CHECK_OK(statctr_static_inc(counter_of(&paths, path)));
        CHECK_OK(statctr_static_inc(counter_of(&paths, "/index.html")));
        CHECK_OK(statctr_static_add(counter_of(&paths, long_path), 3));
        statctr_histogram_t *histogram = NULL;
        CHECK_OK(statctr_histogram_family_get(&sizes, STATCTR_VALUES(me % 2 ? "odd" : "even"), &histogram));
        CHECK_OK(statctr_histogram_observe(histogram, round % 100));
        statctr_group_t *average = NULL;
        CHECK_OK(statctr_average_family_get(&hits, STATCTR_VALUES("first"), &average));
        CHECK_OK(statctr_group_event2(average, 0, 1, round % 2));
        statctr_float_gauge_t *quantity = NULL;
        CHECK_OK(statctr_float_gauge_family_get(&load, STATCTR_VALUES(me % 2 ? "odd" : "even"), &quantity));
        CHECK_OK(statctr_float_gauge_add(quantity, -1.5));
        statctr_static_gauge_t *gauge = NULL;
        snprintf(path, sizeof(path), "%u", round % 20);
        CHECK_OK(statctr_gauge_family_get(&open_files, STATCTR_VALUES(path), &gauge));
        CHECK_OK(statctr_static_gauge_add(gauge, -2));
        CHECK_OK(statctr_static_gauge_inc(gauge));
        statctr_static_max_t *maximum = NULL;
        statctr_static_min_t *minimum = NULL;
        CHECK_OK(statctr_max_family_get(&slowest, STATCTR_VALUES("any"), &maximum));
        CHECK_OK(statctr_static_max_observe(maximum, me * ROUNDS + round));
        CHECK_OK(statctr_min_family_get(&fastest, STATCTR_VALUES("any"), &minimum));
        CHECK_OK(statctr_static_min_observe(minimum, 10 + me * ROUNDS + round));
    }
    return NULL;
}

static void handler(int number)
{
    (void)number;
    statctr_static_inc(counter_of(&before_main, "a constructor"));
}

static int store(const char *text, size_t length, void *context)
{
    char *target = (char *)context;
    CHECK(length < 20000);
    memcpy(target, text, length);
    target[length] = 0;
    return 0;
}

static void check_members(void)
{
    statctr_static_t *first = NULL, *again = NULL, *other = NULL;
    char get[] = "GET";
    CHECK_OK(statctr_family_get(&responses, STATCTR_VALUES("GET", "200"), &first));
    CHECK_OK(statctr_family_get(&responses, STATCTR_VALUES(get, "200"), &again));
    CHECK_OK(statctr_family_get(&responses, STATCTR_VALUES("200", "GET"), &other));
    CHECK(first == again && first != other);
    CHECK_OK(statctr_static_inc(first));
    CHECK_OK(statctr_static_add(first, 40));
    CHECK_OK(statctr_static_sub(again, 2));
    CHECK_EQ(statctr_static_read(first), 39);
    CHECK_EQ(statctr_static_mode(first), statctr_static_mode(counter_of(&before_main, "a constructor")));
    /* values are told apart where they are divided otherwise */
    CHECK_OK(statctr_family_get(&responses, STATCTR_VALUES("a", "bc"), &first));
    CHECK_OK(statctr_family_get(&responses, STATCTR_VALUES("ab", "c"), &again));
    CHECK(first != again);
    /* what has no member of its own: not UTF-8, too long, named as the overflow is */
    char text[258];
    memset(text, 'y', sizeof(text));
    text[257] = 0;
    CHECK_OK(statctr_family_get(&responses, STATCTR_VALUES("overflow", "overflow"), &other));
    CHECK_OK(statctr_family_get(&responses, STATCTR_VALUES("GET", "\xff"), &first));
    CHECK_OK(statctr_family_get(&responses, STATCTR_VALUES("GET", text), &again));
    CHECK(first == other && again == other);
    text[256] = 0;
    CHECK_OK(statctr_family_get(&responses, STATCTR_VALUES("GET", text), &again));
    CHECK(again != other);
    /* a definition that is loaded again goes on with its members */
    static const char *const labels[] = { "method", "status" };
    statctr_family_t copy = { NULL, "responses", NULL, "", labels, 2, STATCTR_FAMILY_LIMIT };
    CHECK_OK(statctr_family_get(&copy, STATCTR_VALUES("GET", "200"), &again));
    CHECK_EQ(statctr_static_read(again), 39);
}

static void check_refusals(void)
{
    statctr_static_t *const nothing = (statctr_static_t *)&responses, *counter = nothing;
    statctr_histogram_t *histogram = NULL;
    const char *const values[] = { "a", NULL };
    CHECK_EQ(statctr_family_get(NULL, values, 1, &counter), -EINVAL);
    CHECK_EQ(statctr_family_get(&paths, NULL, 1, &counter), -EINVAL);
    CHECK_EQ(statctr_family_get(&paths, values, 1, NULL), -EINVAL);
    CHECK_EQ(statctr_family_get(&paths, values, 0, &counter), -EINVAL);
    CHECK_EQ(statctr_family_get(&paths, STATCTR_VALUES("a", "b"), &counter), -EINVAL);
    CHECK_EQ(statctr_family_get(&paths, values, 1000000, &counter), -EINVAL);
    CHECK_EQ(statctr_family_get(&responses, values, 2, &counter), -EINVAL);
    CHECK_EQ(statctr_gauge_family_get(NULL, values, 1, NULL), -EINVAL);
    CHECK_EQ(statctr_max_family_get(NULL, values, 1, NULL), -EINVAL);
    CHECK_EQ(statctr_min_family_get(NULL, values, 1, NULL), -EINVAL);
    CHECK_EQ(statctr_average_family_get(NULL, values, 1, NULL), -EINVAL);
    CHECK_EQ(statctr_float_gauge_family_get(NULL, values, 1, NULL), -EINVAL);
    CHECK_EQ(statctr_float_gauge_family_get(&load, values, 1, NULL), -EINVAL);
    CHECK_EQ(statctr_histogram_family_get(NULL, values, 1, &histogram), -EINVAL);
    CHECK_EQ(statctr_histogram_family_get(&sizes, values, 1, NULL), -EINVAL);

    static const char *const one[] = { "a" }, *const bad[] = { "a b" }, *const twice[] = { "a", "a" };
    static const char *const bound[] = { "le" }, *const null[] = { NULL };
    statctr_family_t wrong[] = {
        { NULL, "no name", "", "", one, 1, 5 }, { NULL, NULL, "", "", one, 1, 5 },
        { NULL, "x", "\xff", "", one, 1, 5 },   { NULL, "x", "", "", NULL, 1, 5 },
        { NULL, "x", "", "", bad, 1, 5 },       { NULL, "x", "", "", null, 1, 5 },
        { NULL, "x", "", "", one, 0, 5 },       { NULL, "x", "", "", one, 17, 5 },
        { NULL, "x", "", "", one, 1, 0 },       { NULL, "x", "", "", one, 1, 65537 },
        { NULL, "x", "", "", one, 1, 1u << 31 },
    };
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CHECK_EQ(statctr_family_get(&wrong[i], values, 1, &counter), -EINVAL);
    statctr_family_t named_twice = { NULL, "x", "", "", twice, 2, 5 };
    CHECK_EQ(statctr_family_get(&named_twice, STATCTR_VALUES("1", "2"), &counter), -EINVAL);
    statctr_histogram_family_t of_bounds = { { NULL, "x", "", "", bound, 1, 5 }, 10, 0.1 };
    statctr_histogram_family_t inexact = { { NULL, "x", "", "", one, 1, 5 }, 10, 2.0 };
    statctr_histogram_family_t too_large = { { NULL, "x", "", "", one, 1, 5 }, UINT64_MAX, 0.0002 };
    CHECK_EQ(statctr_histogram_family_get(&of_bounds, values, 1, &histogram), -EINVAL);
    CHECK_EQ(statctr_histogram_family_get(&inexact, values, 1, &histogram), -EINVAL);
    CHECK_EQ(statctr_histogram_family_get(&too_large, values, 1, &histogram), -E2BIG);
    CHECK(counter == nothing && histogram == NULL);
    CHECK_EQ(visit("x").members, 0);
}

int main(void)
{
    CHECK_EQ(statctr_static_read(counter_of(&before_main, "a constructor")), 1);
    CHECK_OK(statctr_prepare());
    check_members();
    check_refusals();

    run_threads(THREADS, flood);
    const uint64_t rounds = (uint64_t)THREADS * ROUNDS;
    struct seen seen = visit("paths_total");
    CHECK_EQ(seen.members, LIMIT + 1);
    CHECK_EQ(seen.sum, 5 * rounds);
    /* all but the members that are there, of which one is shared and the others have one count */
    CHECK_EQ(statctr_static_read(counter_of(&paths, "overflow")), seen.overflow);
    CHECK_EQ(seen.overflow + statctr_static_read(counter_of(&paths, "/index.html")), 5 * rounds - (LIMIT - 1));
    seen = visit("open_files");
    CHECK_EQ(seen.members, 11);
    CHECK_EQ(seen.sum, -(int64_t)rounds);
    seen = visit("slowest");
    CHECK_EQ(seen.sum, rounds - 1);
    CHECK_EQ(seen.members, 1);
    CHECK_EQ(visit("fastest").sum, 10);
    seen = visit("hits");
    CHECK_EQ(seen.members, 1);
    CHECK_EQ(seen.sum, rounds / 2);
    statctr_group_t *average = NULL;
    uint64_t values[2] = { 0, 0 };
    CHECK_OK(statctr_average_family_get(&hits, STATCTR_VALUES("first"), &average));
    CHECK_OK(statctr_group_fold(average, values, 2));
    CHECK(values[0] == rounds && values[1] == rounds / 2);
    double value = 0;
    statctr_float_gauge_t *quantity = NULL;
    CHECK_EQ(visit("load").members, 2);
    CHECK_OK(statctr_float_gauge_family_get(&load, STATCTR_VALUES("odd"), &quantity));
    CHECK_OK(statctr_float_gauge_read(quantity, &value));
    CHECK(value == -1.5 * (double)rounds / 2);
    CHECK_OK(statctr_float_gauge_family_get(&load, STATCTR_VALUES("third"), &quantity));
    CHECK_OK(statctr_float_gauge_set(quantity, 0.25));
    CHECK_OK(statctr_float_gauge_family_get(&load, STATCTR_VALUES("third"), &quantity));
    CHECK_OK(statctr_float_gauge_read(quantity, &value));
    CHECK(value == 0.25);
    CHECK_EQ(visit("load").members, 3);
    seen = visit("sizes");
    CHECK_EQ(seen.members, 2);
    CHECK_EQ(seen.sum, rounds);

    CHECK(signal(SIGUSR1, handler) != SIG_ERR);
    CHECK_EQ(raise(SIGUSR1), 0);
    const pid_t child = fork();
    if (child == 0) {
        statctr_static_inc(counter_of(&before_main, "a constructor"));
        statctr_static_inc(counter_of(&before_main, "a child"));
        _exit(visit("before_main").sum == 4 && visit("before_main").members == 2 ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(visit("before_main").sum, 2);

    static char text[20000];
    CHECK_OK(statctr_write_prometheus(store, text));
    const char *const parts[] = {
        "# TYPE before_main counter\nbefore_main{of=\"a constructor\"} 2\n",
        "responses{method=\"GET\",status=\"200\"} 39\n",
        "# HELP paths_total requests by path\n# TYPE paths_total counter\n",
        "# TYPE open_files gauge\n",
        "slowest{by=\"any\"} 7999\n",
        "fastest{by=\"any\"} 10\n",
        "# TYPE load gauge\n",
        "load{of=\"even\"} -6000\n",
        "# TYPE hits summary\nhits_sum{cache=\"first\"} 4000\nhits_count{cache=\"first\"} 8000\n",
        "sizes_bucket{of=\"even\",le=\"1\"} 80\n",
    };
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strstr(text, parts[i]) == NULL) {
            fprintf(stderr, "%s is not in\n%s", parts[i], text);
            return 1;
        }
    return 0;
}
