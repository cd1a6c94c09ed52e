// The classes of statctr.hpp: exact under threads, moved, cleaned up, and refusing what the library refuses.
#include <statctr.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                             \
        }                                                                             \
    } while (0)

#define TRAFFIC(EVENT, ITEM, kind)                             \
    EVENT(kind, received, 2)                                   \
    ITEM(kind, packets, STATCTR_PACKETS, "packets received")   \
    ITEM(kind, bytes, STATCTR_BYTES, "bytes received")         \
    ITEM(kind, errors, STATCTR_PACKETS, "malformed packets")   \
    EVENT(kind, looped, 4)                                     \
    ITEM(kind, a, "", "")                                      \
    ITEM(kind, b, "", "")                                      \
    ITEM(kind, c, "", "")                                      \
    ITEM(kind, d, "", "")
STATCTR_GROUP(traffic, TRAFFIC);

static_assert(!std::is_copy_constructible_v<statctr::counter> && !std::is_copy_assignable_v<statctr::counter>);
static_assert(std::is_nothrow_move_constructible_v<statctr::counter> && std::is_nothrow_move_assignable_v<statctr::group>);
static_assert(!std::is_copy_constructible_v<statctr::group> && std::is_nothrow_move_constructible_v<statctr::gauge>);
static_assert(sizeof(statctr::counter) == sizeof(statctr_t), "nothing but the handle");

static std::uint64_t slots()
{
    statctr_memory_t memory;
    CHECK(statctr_get_memory(&memory) == 0);
    return memory.slots;
}

static statctr::counter of_constructors(5); // initialised before main

static void threads_count_exactly()
{
    constexpr unsigned threads = 4, updates = 50000;
    statctr::counter counter;
    statctr::gauge gauge(-7);
    statctr::group group(traffic_group);
    std::vector<std::thread> workers;
    for (unsigned i = 0; i < threads; i++)
        workers.emplace_back([&, i] {
            for (unsigned n = 0; n < updates; n++) {
                ++counter;
                counter += 3;
                counter -= 1;
                gauge.add(i % 2 == 0 ? 2 : -5);
                group.event(traffic_received, 1, 1500);
                group.event(traffic_looped, 1, 2, 3, 4);
                group.inc(traffic_errors);
            }
        });
    for (auto &worker : workers)
        worker.join();
    constexpr std::uint64_t all = std::uint64_t{threads} * updates;
    CHECK(counter.read() == 3 * all);
    CHECK(gauge.read() == -7 - static_cast<std::int64_t>(3 * all / 2));
    CHECK(group.read(traffic_packets) == all && group.read(traffic_bytes) == 1500 * all);
    const std::vector<std::uint64_t> values = group.read();
    CHECK(values.size() == traffic_SLOTS);
    CHECK(values[traffic_a] == all && values[traffic_d] == 4 * all && values[traffic_errors] == all);
}

static void moves_keep_the_counts()
{
    const std::uint64_t before = slots();
    {
        statctr::counter first(3);
        ++first;
        statctr::counter second(std::move(first));
        CHECK(second.read() == 4);
        statctr::counter third;
        third = std::move(second); // what was counted there is cleaned up
        third += 1;
        CHECK(third.read() == 5);
        statctr::counter &itself = third;
        third = std::move(itself);
        CHECK(third.read() == 5);

        std::vector<statctr::counter> many;
        for (unsigned long i = 0; i < 100; i++)
            many.emplace_back(i); // moved whenever the vector grows
        for (unsigned long i = 0; i < 100; i++)
            CHECK(many[i].read() == i);

        statctr::group group(traffic_group);
        group.add(traffic_bytes, 9);
        statctr::group other(std::move(group));
        group = std::move(other);
        CHECK(group.read()[traffic_bytes] == 9);
    }
    CHECK(slots() == before);
}

static void distributions_and_extremes()
{
    const std::uint64_t before = slots();
    {
        statctr::histogram first(1000000, 0.05);
        statctr::maximum largest;
        statctr::minimum smallest;
        std::vector<std::thread> workers;
        for (unsigned i = 0; i < 4; i++)
            workers.emplace_back([&] {
                for (std::uint64_t n = 1; n <= 10000; n++) {
                    first.observe(n);
                    largest.observe(n);
                    smallest.observe(n);
                }
            });
        for (auto &worker : workers)
            worker.join();
        statctr::histogram sizes(std::move(first));
        statctr::histogram_snapshot seen = sizes.snapshot();
        CHECK(seen.count() == 40000 && seen.sum() == 4 * std::uint64_t{10000} * 10001 / 2);
        const auto median = seen.quantile(0.5);
        CHECK(median && *median >= 4750 && *median <= 5250);
        CHECK(seen.count_up_to(1) == 4 && seen.buckets().front().count == 4);
        sizes.observe_many(3, 5);
        statctr::histogram_snapshot now = sizes.snapshot();
        now -= seen;
        CHECK(now.count() == 5 && now.sum() == 15);
        now += seen;
        CHECK(now.count() == 40005);
        seen = std::move(now);
        CHECK(seen.count() == 40005);
        const statctr::histogram_snapshot empty = statctr::histogram(10, 0.5).snapshot();
        CHECK(!empty.quantile(0.5) && empty.buckets().empty());
        int error = 0;
        try {
            seen += empty;
        } catch (const std::system_error &thrown) {
            error = thrown.code().value();
        }
        CHECK(error == EINVAL && seen.count() == 40005);

        statctr::maximum taken(std::move(largest));
        CHECK(taken.read() == 10000 && taken.take() == 10000 && taken.take() == 0);
        CHECK(smallest.read() == 1);
        smallest.reset();
        CHECK(smallest.take() == UINT64_MAX);
        statctr::minimum other;
        other.observe(3);
        smallest = std::move(other);
        CHECK(smallest.read() == 3);

        statctr::float_gauge load(0.5);
        load.add(2.25);
        load.sub(0.75);
        load.inc();
        CHECK(load.read() == 3.0);
        statctr::float_gauge elsewhere(std::move(load));
        elsewhere.dec();
        CHECK(elsewhere.read() == 2.0);
        load = std::move(elsewhere);
        load.set(-0.125);
        CHECK(load.read() == -0.125);
    }
    CHECK(slots() == before);
}

static bool has(const std::string &text, const char *lines)
{
    return text.find(lines) != std::string::npos;
}

STATCTR_DEFINE_GAUGE(waiting);

static void names_last_as_long_as_their_registrations()
{
    const std::uint64_t before = slots();
    {
        statctr::counter requests(3);
        statctr::gauge open(-4);
        statctr::group lookups(traffic_group);
        statctr::histogram sizes(3, 0.1);
        statctr::maximum slowest;
        statctr::minimum fastest;
        statctr::float_gauge load(0.5);
        statctr::registration of_requests(requests, {"requests", "requests served", "", {{"method", "GET"}}});
        std::vector<statctr::registration> others;
        others.emplace_back(open, statctr::description{"open"});
        others.emplace_back(lookups, traffic_received, statctr::description{"hits"});
        others.emplace_back(sizes, statctr::description{"sizes", "in bytes", "bytes"});
        others.emplace_back(slowest, statctr::description{"slowest"});
        others.emplace_back(fastest, statctr::description{"fastest"});
        others.emplace_back(load, statctr::description{"load"});
        lookups.event(traffic_received, 4, 3);
        sizes.observe(2);
        slowest.observe(17);
        fastest.observe(5);
        load.add(0.25);
        statctr_static_gauge_dec(&waiting);
        // the statistic may move, its registration stays
        statctr::counter moved(std::move(requests));
        ++moved;
        const std::string text = statctr::prometheus_text();
        CHECK(has(text, "# HELP requests requests served\n# TYPE requests counter\nrequests{method=\"GET\"} 4\n"));
        CHECK(has(text, "open -4\n") && has(text, "hits_sum 3\nhits_count 4\n") && has(text, "slowest 17\n"));
        CHECK(has(text, "sizes_bucket{le=\"1\"} 0\nsizes_bucket{le=\"3\"} 1\n") && has(text, "fastest 5\n"));
        CHECK(has(text, "# TYPE waiting gauge\nwaiting -1\n") && has(text, "# TYPE load gauge\nload 0.75\n"));

        int error = 0;
        try {
            statctr::registration again(open, {"another_name"});
        } catch (const std::system_error &thrown) {
            error = thrown.code().value();
        }
        CHECK(error == EEXIST);
        others.erase(others.begin());
        statctr::registration again(open, {"another_name"});
        of_requests = std::move(again);
        CHECK(has(statctr::prometheus_text(), "another_name -4\n") && !has(statctr::prometheus_text(), "\nopen "));
    }
    CHECK(!has(statctr::prometheus_text(), "requests") && has(statctr::prometheus_text(), "waiting"));
    CHECK(slots() == before);
}

STATCTR_DEFINE_FAMILY(responses, "method", "status");
STATCTR_DEFINE_GAUGE_FAMILY(open_files, "by");
STATCTR_DEFINE_MAX_FAMILY_AS(slowest_by, "slowest_by", "the slowest", "", 2, "by");
STATCTR_DEFINE_MIN_FAMILY(fastest_by, "by");
STATCTR_DEFINE_AVERAGE_FAMILY(hits_by, "by");
STATCTR_DEFINE_FLOAT_GAUGE_FAMILY(load_by, "by");
STATCTR_DEFINE_HISTOGRAM_FAMILY(sizes_by, 100, 0.1, "by");
STATCTR_DEFINE_MAX(slowest_of_all);
STATCTR_DEFINE_MIN(fastest_of_all);

static void members_of_families_are_looked_up()
{
    std::vector<std::thread> workers;
    for (unsigned i = 0; i < 4; i++)
        workers.emplace_back([i] {
            const std::string name = std::to_string(i);
            for (unsigned n = 0; n < 1000; n++) {
                statctr_static_inc(&statctr::member(responses, {"GET", name.c_str()}));
                statctr_static_gauge_dec(&statctr::member(open_files, {"all"}));
                statctr_static_max_observe(&statctr::member(slowest_by, {name.c_str()}), n);
                statctr_static_min_observe(&statctr::member(fastest_by, {name.c_str()}), n + 1);
                statctr_group_event2(&statctr::member(hits_by, {"all"}), 0, 1, 3);
                statctr_float_gauge_add(&statctr::member(load_by, {"all"}), 0.25);
                statctr_histogram_observe(&statctr::member(sizes_by, {"all"}), 1);
                statctr_static_max_observe(&slowest_of_all, n);
                statctr_static_min_observe(&fastest_of_all, n + 1);
            }
        });
    for (auto &worker : workers)
        worker.join();
    const std::string text = statctr::prometheus_text();
    for (const char *name : {"0", "1", "2", "3"})
        CHECK(has(text, ("responses{method=\"GET\",status=\"" + std::string(name) + "\"} 1000\n").c_str()));
    CHECK(has(text, "open_files{by=\"all\"} -4000\n") && has(text, "slowest_by{by=\"overflow\"} 999\n"));
    CHECK(has(text, "fastest_by{by=\"3\"} 1\n") && has(text, "sizes_by_count{by=\"all\"} 4000\n"));
    CHECK(has(text, "load_by{by=\"all\"} 1000\n"));
    CHECK(has(text, "hits_by_sum{by=\"all\"} 12000\nhits_by_count{by=\"all\"} 4000\n"));
    CHECK(statctr_static_max_read(&slowest_of_all) == 999 && statctr_static_min_read(&fastest_of_all) == 1);
    CHECK(&statctr::member(responses, {"GET", "0"}) == &statctr::member(responses, {"GET", "0"}));
    int error = 0;
    try {
        (void)statctr::member(responses, {"GET"});
    } catch (const std::system_error &thrown) {
        error = thrown.code().value();
    }
    CHECK(error == EINVAL);
}

static void what_cannot_be_is_thrown()
{
    statctr::group group(traffic_group);
    int error = 0;
    try {
        (void)group.read(traffic_SLOTS);
    } catch (const std::system_error &thrown) {
        error = thrown.code().value();
    }
    CHECK(error == ERANGE);
    const statctr_group_desc_t empty{nullptr, 0, 0};
    error = 0;
    try {
        statctr::group none(empty);
    } catch (const std::system_error &thrown) {
        error = thrown.code().value();
    }
    CHECK(error == EINVAL);
}

int main()
{
    CHECK(of_constructors.read() == 5);
    of_constructors.set(7);
    --of_constructors;
    CHECK(of_constructors.read() == 6 && statctr_read(of_constructors.handle()) == 6);
    statctr::gauge gauge;
    gauge.set(-9);
    gauge.inc();
    CHECK(gauge.read() == -8 && gauge.read_clamped() == 0);
    gauge.add(10);
    CHECK(gauge.read_clamped() == 2);
    threads_count_exactly();
    moves_keep_the_counts();
    distributions_and_extremes();
    names_last_as_long_as_their_registrations();
    members_of_families_are_looked_up();
    what_cannot_be_is_thrown();
    return 0;
}
