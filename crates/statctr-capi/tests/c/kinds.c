/*
 * Histograms, maxima, minima and floating-point gauges: exact under migration, in every bucket, and refused where they
 * are not there.
 */
#include "check.h"

#include <math.h>

enum { THREADS = 6, ROUNDS = 100, UPDATES = 200 };

static statctr_histogram_t histogram;
static statctr_max_t maximum;
static statctr_min_t minimum;
static statctr_float_gauge_t load;

static void *writer(void *number)
{
    const unsigned me = (unsigned)(uintptr_t)number;
    for (unsigned round = 0; round < ROUNDS; round++) {
        move_to(me + round);
        for (unsigned i = 0; i < UPDATES; i++) {
            const uint64_t value = (uint64_t)round * 1000 + i;
            statctr_histogram_observe(&histogram, value);
            statctr_histogram_observe_many(&histogram, 7, 2);
            statctr_max_observe(&maximum, value * THREADS + me);
            statctr_min_observe(&minimum, UINT64_MAX / 2 - value * THREADS - me);
            statctr_float_gauge_add(&load, 2.25);
            statctr_float_gauge_sub(&load, 0.5);
            statctr_float_gauge_inc(&load);
            statctr_float_gauge_dec(&load);
        }
    }
    return NULL;
}

static void check_sums(void)
{
    const uint64_t each = (uint64_t)ROUNDS * UPDATES, all = THREADS * each;
    uint64_t sum = 14 * all, count = 0, found = 0, value;
    for (unsigned round = 0; round < ROUNDS; round++)
        for (unsigned i = 0; i < UPDATES; i++)
            sum += THREADS * ((uint64_t)round * 1000 + i);
    statctr_histogram_snapshot_t *seen = NULL;
    CHECK_OK(statctr_histogram_snapshot(&histogram, &seen));
    CHECK_OK(statctr_histogram_totals(seen, &count, &found));
    CHECK_EQ(count, 3 * all);
    CHECK_EQ(found, sum);
    CHECK_OK(statctr_histogram_totals(seen, NULL, NULL));

    /* two thirds are 7, the others run evenly over 99 199 */
    CHECK_OK(statctr_histogram_quantile(seen, 0.5, &value));
    CHECK_EQ(value, 7);
    CHECK_OK(statctr_histogram_quantile(seen, 1.0, &value));
    CHECK(fabs((double)value / 99199 - 1) <= 0.05);
    CHECK_OK(statctr_histogram_count_up_to(seen, 7, &count));
    CHECK_EQ(count, 2 * all + 8 * THREADS);

    /* the buckets are in order, side by side at most, and have all values */
    const int filled = statctr_histogram_buckets(seen, NULL, 0);
    CHECK(filled > 10);
    statctr_bucket_t *buckets = calloc((size_t)filled + 1, sizeof(*buckets));
    CHECK(buckets != NULL);
    CHECK_EQ(statctr_histogram_buckets(seen, buckets, (size_t)filled - 1), filled);
    CHECK_EQ(buckets[filled - 1].count, 0);
    CHECK_EQ(statctr_histogram_buckets(seen, buckets, (size_t)filled + 1), filled);
    CHECK_EQ(buckets[filled].count, 0);
    count = 0;
    for (int i = 0; i < filled; i++) {
        CHECK(buckets[i].least <= buckets[i].largest && buckets[i].count > 0);
        CHECK(i == 0 || buckets[i].least > buckets[i - 1].largest);
        count += buckets[i].count;
    }
    CHECK_EQ(count, 3 * all);
    free(buckets);

    const uint64_t largest = ((ROUNDS - 1) * 1000 + UPDATES - 1) * THREADS + THREADS - 1;
    CHECK_OK(statctr_max_read(&maximum, &value));
    CHECK_EQ(value, largest);
    CHECK_OK(statctr_max_take(&maximum, &value));
    CHECK_EQ(value, largest);
    CHECK_OK(statctr_max_take(&maximum, &value));
    CHECK_EQ(value, 0);
    CHECK_OK(statctr_min_read(&minimum, &value));
    CHECK_EQ(value, UINT64_MAX / 2 - largest);
    CHECK_OK(statctr_min_reset(&minimum));
    CHECK_OK(statctr_min_take(&minimum, &value));
    CHECK_EQ(value, UINT64_MAX);
    CHECK_OK(statctr_histogram_snapshot_free(seen));
}

/* quarters are not rounded */
static void check_float_gauge(void)
{
    double value = 0;
    CHECK_OK(statctr_float_gauge_read(&load, &value));
    CHECK(value == 0.5 + 1.75 * THREADS * ROUNDS * UPDATES);
    CHECK_OK(statctr_float_gauge_set(&load, 0.1));
    CHECK_OK(statctr_float_gauge_read(&load, &value));
    CHECK(value == 0.1);
    CHECK_OK(statctr_float_gauge_add(&load, INFINITY));
    CHECK_OK(statctr_float_gauge_read(&load, &value));
    CHECK(isinf(value));
    CHECK_OK(statctr_float_gauge_set(&load, -3.0));
    CHECK_OK(statctr_float_gauge_add(&load, 1.0));
    CHECK_OK(statctr_float_gauge_read(&load, &value));
    CHECK(value == -2.0);
}

static void check_snapshots(void)
{
    statctr_histogram_snapshot_t *before, *now, *foreign;
    statctr_histogram_t other = { .max = 0 };
    uint64_t count, sum, value;
    CHECK_OK(statctr_histogram_snapshot(&histogram, &before));
    CHECK_OK(statctr_histogram_observe(&histogram, 1000));
    CHECK_OK(statctr_histogram_observe(&histogram, UINT64_MAX / 4)); /* above the largest */
    CHECK_OK(statctr_histogram_snapshot(&histogram, &now));
    CHECK_OK(statctr_histogram_subtract(now, before));
    CHECK_OK(statctr_histogram_totals(now, &count, &sum));
    CHECK_EQ(count, 2);
    CHECK_EQ(sum, 1000 + UINT64_MAX / 4);
    CHECK_OK(statctr_histogram_quantile(now, 1, &value));
    CHECK_EQ(value, 1000000);
    CHECK_OK(statctr_histogram_merge(now, now));
    CHECK_OK(statctr_histogram_totals(now, &count, NULL));
    CHECK_EQ(count, 4);
    CHECK_OK(statctr_histogram_subtract(now, now));
    CHECK_OK(statctr_histogram_totals(now, &count, &sum));
    CHECK(count == 0 && sum == 0);
    CHECK_EQ(statctr_histogram_quantile(now, 0.5, &value), -ENODATA);

    CHECK_OK(statctr_histogram_init(&other, 1000000, 0.1));
    CHECK_OK(statctr_histogram_snapshot(&other, &foreign));
    CHECK_EQ(statctr_histogram_merge(now, foreign), -EINVAL);
    CHECK_EQ(statctr_histogram_subtract(now, foreign), -EINVAL);
    CHECK_OK(statctr_histogram_snapshot_free(foreign));
    CHECK_OK(statctr_histogram_snapshot_free(now));
    CHECK_OK(statctr_histogram_cleanup(&other));
    /* a snapshot outlives its histogram */
    CHECK_OK(statctr_histogram_cleanup(&histogram));
    CHECK_OK(statctr_histogram_totals(before, &count, NULL));
    CHECK_EQ(count, (uint64_t)3 * THREADS * ROUNDS * UPDATES);
    CHECK_OK(statctr_histogram_snapshot_free(before));
}

/* every bucket's ends, by the inline index and by the library's */
static void check_every_bucket(void)
{
    const double parts[] = { 0.5, 0.1, 0.01, 0.002 };
    for (unsigned i = 0; i < 4; i++) {
        statctr_histogram_t all = { .max = 0 };
        statctr_histogram_snapshot_t *seen;
        uint64_t count, sum = 0, values = 0;
        CHECK_OK(statctr_histogram_init(&all, (uint64_t)1 << 40, parts[i]));
        for (unsigned shift = 0; shift < 64; shift++)
            for (uint64_t value = ((uint64_t)1 << shift) - 1; value < ((uint64_t)1 << shift) + 2; value++) {
                CHECK_OK(statctr_histogram_observe(&all, value));
                sum += value;
                values++;
            }
        CHECK_OK(statctr_histogram_snapshot(&all, &seen));
        CHECK_OK(statctr_histogram_totals(seen, &count, &values));
        CHECK_EQ(values, sum);
        CHECK_EQ(count, 3 * 64);
        CHECK_OK(statctr_histogram_count_up_to(seen, (uint64_t)1 << 40, &count));
        CHECK_EQ(count, 3 * 40 + 2); /* all up to 2^39 + 1, 2^40 - 1 and 2^40 */
        statctr_bucket_t buckets[200];
        const int filled = statctr_histogram_buckets(seen, buckets, 200);
        CHECK(filled > 0 && filled < 200);
        for (int b = 0; b < filled; b++) {
            uint64_t in_it = 0;
            for (unsigned shift = 0; shift < 64; shift++)
                for (uint64_t value = ((uint64_t)1 << shift) - 1; value < ((uint64_t)1 << shift) + 2; value++)
                    in_it += buckets[b].least <= value && value <= buckets[b].largest;
            CHECK_EQ(buckets[b].count, in_it);
        }
        CHECK_OK(statctr_histogram_snapshot_free(seen));
        CHECK_OK(statctr_histogram_cleanup(&all));
    }
}

static void check_refusals(void)
{
    static statctr_histogram_t none;
    static statctr_max_t no_max;
    static statctr_min_t no_min;
    static statctr_float_gauge_t no_gauge;
    double number = 47.11;
    statctr_histogram_snapshot_t *seen = NULL;
    uint64_t value = 4711;
    CHECK_EQ(statctr_histogram_init(NULL, 100, 0.1), -EINVAL);
    CHECK_EQ(statctr_histogram_init(&none, 100, 0), -EINVAL);
    CHECK_EQ(statctr_histogram_init(&none, 100, (double)NAN), -EINVAL);
    CHECK_EQ(statctr_histogram_init(&none, UINT64_MAX, 0.0002), -E2BIG);
    CHECK_EQ(statctr_histogram_observe(NULL, 1), -EINVAL);
    CHECK_EQ(statctr_histogram_observe(&none, 1), -EINVAL);
    CHECK_EQ(statctr_histogram_observe_many(&none, UINT64_MAX, 1), -EINVAL);
    CHECK_EQ(statctr_histogram_snapshot(&none, &seen), -EINVAL);
    CHECK_EQ(statctr_histogram_snapshot(NULL, &seen), -EINVAL);
    CHECK_EQ(statctr_histogram_cleanup(&none), -EINVAL);
    CHECK(seen == NULL);
    CHECK_OK(statctr_histogram_snapshot_free(NULL));
    CHECK_EQ(statctr_histogram_totals(NULL, &value, NULL), -EINVAL);
    CHECK_EQ(statctr_histogram_quantile(NULL, 0.5, &value), -EINVAL);
    CHECK_EQ(statctr_histogram_buckets(NULL, NULL, 0), -EINVAL);
    CHECK_EQ(statctr_histogram_merge(NULL, NULL), -EINVAL);

    CHECK_OK(statctr_histogram_init(&none, 100, 0.1));
    CHECK_EQ(statctr_histogram_snapshot(&none, NULL), -EINVAL);
    /* the buckets are no group of which anything is known */
    CHECK_EQ(statctr_group_read_item(&none.buckets, 0, &value), -EINVAL);
    CHECK_OK(statctr_histogram_snapshot(&none, &seen));
    CHECK_EQ(statctr_histogram_quantile(seen, 0.5, NULL), -EINVAL);
    CHECK_EQ(statctr_histogram_quantile(seen, (double)NAN, &value), -EINVAL);
    CHECK_EQ(statctr_histogram_quantile(seen, 0.5, &value), -ENODATA);
    CHECK_EQ(statctr_histogram_count_up_to(seen, 1, NULL), -EINVAL);
    CHECK_EQ(statctr_histogram_buckets(seen, NULL, 1), -EINVAL);
    CHECK_OK(statctr_histogram_snapshot_free(seen));
    CHECK_OK(statctr_histogram_cleanup(&none));

    CHECK_EQ(statctr_max_init(NULL), -EINVAL);
    CHECK_EQ(statctr_max_observe(NULL, 1), -EINVAL);
    CHECK_EQ(statctr_max_observe(&no_max, 1), -EINVAL);
    CHECK_EQ(statctr_max_read(&no_max, &value), -EINVAL);
    CHECK_EQ(statctr_max_take(&no_max, &value), -EINVAL);
    CHECK_EQ(statctr_max_reset(&no_max), -EINVAL);
    CHECK_EQ(statctr_max_cleanup(&no_max), -EINVAL);
    CHECK_EQ(statctr_min_observe(&no_min, 1), -EINVAL);
    CHECK_EQ(statctr_min_read(&no_min, &value), -EINVAL);
    CHECK_EQ(statctr_min_cleanup(&no_min), -EINVAL);
    CHECK_EQ(value, 4711);
    CHECK_OK(statctr_min_init(&no_min));
    CHECK_EQ(statctr_min_read(&no_min, NULL), -EINVAL);
    CHECK_OK(statctr_min_cleanup(&no_min));

    CHECK_EQ(statctr_float_gauge_init(NULL, 1), -EINVAL);
    CHECK_EQ(statctr_float_gauge_add(NULL, 1), -EINVAL);
    CHECK_EQ(statctr_float_gauge_inc(&no_gauge), -EINVAL);
    CHECK_EQ(statctr_float_gauge_set(&no_gauge, 1), -EINVAL);
    CHECK_EQ(statctr_float_gauge_read(&no_gauge, &number), -EINVAL);
    CHECK_EQ(statctr_float_gauge_cleanup(&no_gauge), -EINVAL);
    CHECK(number == 47.11);
    CHECK_OK(statctr_float_gauge_init(&no_gauge, 1));
    CHECK_EQ(statctr_float_gauge_read(&no_gauge, NULL), -EINVAL);
    CHECK_OK(statctr_float_gauge_cleanup(&no_gauge));
}

int main(void)
{
    statctr_memory_t before, after;
    CHECK_OK(statctr_get_memory(&before));
    CHECK_OK(statctr_histogram_init(&histogram, 1000000, 0.05));
    CHECK_OK(statctr_max_init(&maximum));
    CHECK_OK(statctr_min_init(&minimum));
    CHECK_OK(statctr_float_gauge_init(&load, 0.5));
    run_threads(THREADS, writer);
    check_sums();
    check_float_gauge();
    check_snapshots();
    check_every_bucket();
    check_refusals();
    CHECK_OK(statctr_max_cleanup(&maximum));
    CHECK_EQ(statctr_max_cleanup(&maximum), -EINVAL);
    CHECK_OK(statctr_min_cleanup(&minimum));
    CHECK_OK(statctr_float_gauge_cleanup(&load));
    CHECK_EQ(statctr_float_gauge_cleanup(&load), -EINVAL);
    CHECK_OK(statctr_get_memory(&after));
    CHECK_EQ(after.slots, before.slots);
    return 0;
}
