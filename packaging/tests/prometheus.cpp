// The collectable of statctr_prometheus.hpp: the text that prometheus-cpp makes of it, whole and while others count.
#include <statctr_prometheus.hpp>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <initializer_list>
#include <memory>
#include <sstream>
#include <thread>

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

STATCTR_DEFINE(started);
STATCTR_DEFINE_GAUGE(waiting);

static std::string text(const prometheus::Collectable &source)
{
    return prometheus::TextSerializer().Serialize(source.Collect());
}

/* Checks that a text has each of some pieces, and prints those that it does not have. */
static void check_lines(const std::string &found, std::initializer_list<const char *> pieces)
{
    for (const char *const lines : pieces) {
        if (found.find(lines) == std::string::npos)
            std::fprintf(stderr, "%s is not in\n%s", lines, found.c_str());
        CHECK(found.find(lines) != std::string::npos);
    }
}

static void the_text_is_that_of_the_same_values_in_prometheus_cpp()
{
    constexpr unsigned threads = 4, updates = 20000;
    statctr::counter get, put;
    statctr::gauge open;
    statctr::collectable ours;
    ours.add("requests_total", "requests \\ served", {{"method", "GET"}}, get);
    ours.add("requests_total", "requests \\ served", {{"method", "PU\"T"}}, put);
    // theirs would write a line break as it is, with which the text is none that Prometheus reads
    ours.add("open", "open\nconnections", {}, open);
    std::vector<std::thread> workers;
    for (unsigned i = 0; i < threads; i++)
        workers.emplace_back([&] {
            for (unsigned n = 0; n < updates; n++) {
                ++get;
                put += 2;
                open.dec();
            }
        });
    for (auto &worker : workers)
        worker.join();

    prometheus::Registry theirs;
    auto &requests =
        prometheus::BuildCounter().Name("requests_total").Help("requests \\ served").Register(theirs);
    requests.Add({{"method", "GET"}}).Increment(threads * updates);
    requests.Add({{"method", "PU\"T"}}).Increment(2 * threads * updates);
    prometheus::BuildGauge().Name("open").Help("open connections").Register(theirs).Add({}).Decrement(threads * updates);
    // by name, as ours are; theirs are by the type first
    std::vector<prometheus::MetricFamily> expected = theirs.Collect();
    const auto by_name = [](const auto &a, const auto &b) { return a.name < b.name; };
    std::sort(expected.begin(), expected.end(), by_name);
    // their series of a family are in no order
    for (auto &family : expected)
        std::sort(family.metric.begin(), family.metric.end(),
                  [](const auto &a, const auto &b) { return a.label < b.label; });
    CHECK(text(ours) == prometheus::TextSerializer().Serialize(expected));
}

static void groups_and_the_registry_are_there()
{
    statctr::group eth0(traffic_group), eth1(traffic_group);
    statctr::counter registered(5);
    const char *const labels[] = {"zone", "a", nullptr};
    const statctr_desc_t desc = {"registered", "by its handle", nullptr, labels};
    CHECK(statctr_register(registered.handle(), &desc) == 0);
    statctr_static_inc(&started);
    eth0.event(traffic_received, 1, 1500);
    eth1.event(traffic_looped, 1, 2, 3, 4);
    statctr::collectable ours;
    ours.add_registry();
    ours.add("rx", {{"device", "eth0"}}, eth0);
    ours.add("rx", {{"device", "eth1"}}, eth1);
    const char *const expected = "# HELP registered by its handle\n# TYPE registered counter\nregistered{zone=\"a\"} 5\n"
                                 "# TYPE rx_a counter\n"
                                 "rx_a{device=\"eth0\"} 0\nrx_a{device=\"eth1\"} 1\n"
                                 "# TYPE rx_b counter\n"
                                 "rx_b{device=\"eth0\"} 0\nrx_b{device=\"eth1\"} 2\n"
                                 "# HELP rx_bytes bytes received\n# TYPE rx_bytes counter\n"
                                 "rx_bytes{device=\"eth0\"} 1500\nrx_bytes{device=\"eth1\"} 0\n"
                                 "# TYPE rx_c counter\n"
                                 "rx_c{device=\"eth0\"} 0\nrx_c{device=\"eth1\"} 3\n"
                                 "# TYPE rx_d counter\n"
                                 "rx_d{device=\"eth0\"} 0\nrx_d{device=\"eth1\"} 4\n"
                                 "# HELP rx_errors malformed packets\n# TYPE rx_errors counter\n"
                                 "rx_errors{device=\"eth0\"} 0\nrx_errors{device=\"eth1\"} 0\n"
                                 "# HELP rx_packets packets received\n# TYPE rx_packets counter\n"
                                 "rx_packets{device=\"eth0\"} 1\nrx_packets{device=\"eth1\"} 0\n"
                                 "# TYPE started counter\nstarted 1\n"
                                 "# TYPE waiting gauge\nwaiting 0\n";
    const std::string found = text(ours);
    if (found != expected)
        std::fprintf(stderr, "%s", found.c_str());
    CHECK(found == expected);
    CHECK(statctr_unregister(registered.handle()) == 0);
    ours.remove(eth0);
    CHECK(text(ours).find("registered") == std::string::npos && text(ours).find("eth0") == std::string::npos);
}

static void every_kind_of_the_registry_is_there()
{
    statctr::gauge open(-3);
    statctr::maximum slowest;
    statctr::group of_hits(traffic_group);
    statctr::histogram sizes(3, 0.1);
    statctr::float_gauge load(-0.5), busy(0.25);
    const statctr::registration entries[] = {
        {open, {"open", "open files"}},
        {load, {"load"}},
        {slowest, {"slowest"}},
        {of_hits, traffic_received, {"hits"}},
        {sizes, {"sizes", "in bytes", "bytes", {{"of", "a"}}}},
    };
    slowest.observe(17);
    of_hits.event(traffic_received, 4, 3);
    for (const std::uint64_t size : {0, 2, 100, 1000})
        sizes.observe(size);
    statctr_static_gauge_dec(&waiting);
    statctr::collectable ours;
    ours.add_registry();
    ours.add("busy", "", {}, busy);
    const std::string found = text(ours);
    check_lines(found, {
        "# TYPE hits summary\nhits_count 4\nhits_sum 3\n",
        "# HELP open open files\n# TYPE open gauge\nopen -3\n",
        "# HELP sizes in bytes\n# TYPE sizes histogram\nsizes_count{of=\"a\"} 4\nsizes_sum{of=\"a\"} 1102\n",
        "sizes_bucket{of=\"a\",le=\"1\"} 1\nsizes_bucket{of=\"a\",le=\"3\"} 2\nsizes_bucket{of=\"a\",le=\"+Inf\"} 4\n",
        "# TYPE slowest gauge\nslowest 17\n",
        "# TYPE load gauge\nload -0.5\n",
        "# TYPE busy gauge\nbusy 0.25\n",
        "# TYPE waiting gauge\nwaiting -1\n",
    });
    (void)entries;
}

static std::uint64_t value(const std::vector<prometheus::MetricFamily> &families, const char *name)
{
    for (const auto &family : families)
        if (family.name == name)
            return static_cast<std::uint64_t>(family.metric.at(0).counter.value);
    CHECK(!"there is such a family");
    return 0;
}

static void the_items_of_an_event_are_of_one_read()
{
    statctr::group group(traffic_group);
    statctr::collectable ours;
    ours.add("rx", {}, group);
    std::atomic<bool> done{false};
    std::thread writer([&] {
        while (!done.load(std::memory_order_relaxed))
            group.event(traffic_received, 1, 1500);
    });
    for (unsigned scrape = 0; scrape < 2000; scrape++) {
        const auto families = ours.Collect();
        CHECK(value(families, "rx_bytes") == 1500 * value(families, "rx_packets"));
    }
    done.store(true);
    writer.join();
}

template <class Function> static bool refused(Function function)
{
    try {
        function();
        return false;
    } catch (const std::invalid_argument &) {
        return true;
    }
}

static void histograms_have_classic_buckets()
{
    statctr::histogram latencies(60000000000, 0.01);
    for (std::uint64_t n = 1; n <= 100; n++)
        latencies.observe(n * 1000000);
    statctr::collectable ours;
    ours.add("latency_seconds", "of requests", {{"a", "b"}}, latencies, 1e-9, {1.0, 0.0, 0.1, 0.0505});
    const char *const expected = "# HELP latency_seconds of requests\n# TYPE latency_seconds histogram\n"
                                 "latency_seconds_count{a=\"b\"} 100\nlatency_seconds_sum{a=\"b\"} 5.05\n"
                                 "latency_seconds_bucket{a=\"b\",le=\"0\"} 0\n"
                                 "latency_seconds_bucket{a=\"b\",le=\"0.0505\"} 50\n"
                                 "latency_seconds_bucket{a=\"b\",le=\"0.1\"} 99\n"
                                 "latency_seconds_bucket{a=\"b\",le=\"1\"} 100\n"
                                 "latency_seconds_bucket{a=\"b\",le=\"+Inf\"} 100\n";
    const std::string found = text(ours);
    if (found != expected)
        std::fprintf(stderr, "%s", found.c_str());
    CHECK(found == expected);
    ours.remove(latencies);
    CHECK(ours.Collect().empty());
    CHECK(refused([&] { ours.add("latency", "", {}, latencies, 0, {}); }));
    CHECK(refused([&] { ours.add("latency", "", {{"le", "1"}}, latencies, 1, {}); }));
}

static void no_series_is_there_twice()
{
    statctr::counter counter(1), packets(2);
    statctr::gauge open(-3);
    statctr::group eth0(traffic_group), hits(traffic_group);
    // the bounds 2^60 - 1 and 2^60 are the same floating-point number
    statctr::histogram sizes(std::uint64_t{1} << 60, 0.5), latencies(1, 0.5);
    sizes.observe(std::uint64_t{1} << 60);
    eth0.event(traffic_received, 1, 1500);
    const statctr::registration entries[] = {
        {counter, {"latency", "of the registry"}}, {open, {"open"}}, {hits, traffic_received, {"hits"}},
        {sizes, {"sizes"}}, {packets, {"rx_packets"}},
    };
    statctr::collectable ours;
    ours.add_registry();
    ours.add("latency", "", {}, latencies, 1, {1});
    ours.add("open", "", {}, counter);
    ours.add("hits_sum", "", {}, counter);
    ours.add("rx", {}, eth0);
    const std::string found = text(ours);
    check_lines(found, {
        "# TYPE latency histogram\nlatency_count 0\n",
        "# HELP latency_counter of the registry\n# TYPE latency_counter counter\nlatency_counter 1\n",
        "# TYPE open counter\nopen 1\n",
        "# TYPE open_gauge gauge\nopen_gauge -3\n",
        "# TYPE hits_sum counter\nhits_sum 1\n",
        "# TYPE hits_summary summary\nhits_summary_count 0\nhits_summary_sum 0\n",
        "# TYPE rx_packets counter\nrx_packets 1\n",
        "# TYPE rx_packets_counter counter\nrx_packets_counter 2\n",
    });
    for (const auto &family : ours.Collect())
        if (family.name == "sizes") {
            const auto &buckets = family.metric.at(0).histogram.bucket;
            const auto is_not_below = [](const auto &a, const auto &b) { return a.upper_bound >= b.upper_bound; };
            CHECK(std::adjacent_find(buckets.begin(), buckets.end(), is_not_below) == buckets.end());
            CHECK(buckets.size() == 62 && buckets.at(60).cumulative_count == 1);
        }
    (void)entries;
}

static bool with_array = false;

/* In place of the library's: an array of counters, which only Rust code registers, and then what the library has. */
extern "C" int statctr_visit_all(statctr_reading_fn visit, void *context)
{
    statctr_reading_t reading{};
    reading.desc.name = "ports";
    reading.kind = STATCTR_KIND_COUNTER;
    reading.in_array = 1;
    for (; with_array && reading.index < 2; reading.index++) {
        reading.number = static_cast<double>(reading.index + 7);
        visit(&reading, context);
    }
    void *const librarys = dlsym(RTLD_NEXT, "statctr_visit_all");
    return reinterpret_cast<int (*)(statctr_reading_fn, void *)>(librarys)(visit, context);
}

static void every_element_of_an_array_has_its_index()
{
    statctr::collectable ours;
    ours.add_registry();
    with_array = true;
    check_lines(text(ours), {"# TYPE ports counter\nports{index=\"0\"} 7\nports{index=\"1\"} 8\n"});
    with_array = false;
}

static void what_the_format_does_not_take_is_refused()
{
    statctr::counter counter;
    statctr::gauge gauge;
    statctr::group group(traffic_group);
    statctr::collectable ours;
    ours.add("there", "", {}, counter);
    CHECK(refused([&] { ours.add("there", "", {}, counter); }));
    CHECK(refused([&] { ours.add("there", "", {{"a", "b"}}, gauge); }));
    CHECK(refused([&] { ours.add("there", {}, group); }));
    for (const char *name : {"", "1a", "a-b", "a b", "__a"})
        CHECK(refused([&] { ours.add(name, "", {}, counter); }));
    for (const char *name : {"", "1a", "a-b", "a:b", "__a"})
        CHECK(refused([&] { ours.add("other", "", {{name, ""}}, counter); }));
    // no UTF-8: a lone continuation, an overlong `/`, a surrogate, beyond U+10FFFF, and a text that ends early
    for (const char *text : {"\xff\xfe", "\x80", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\xe2\x82"}) {
        CHECK(refused([&] { ours.add("other", "", {{"a", text}}, counter); }));
        CHECK(refused([&] { ours.add("other", text, {}, counter); }));
    }
    for (const char *text : {"", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x8e\x89z"})
        ours.add("other", "euro \xe2\x82\xac", {{"a", text}}, counter);
    ours.add("there", "", {{"a", "b"}}, counter);
    ours.remove(counter);
    CHECK(ours.Collect().empty());
}

int main()
{
    the_text_is_that_of_the_same_values_in_prometheus_cpp();
    groups_and_the_registry_are_there();
    every_kind_of_the_registry_is_there();
    the_items_of_an_event_are_of_one_read();
    histograms_have_classic_buckets();
    every_element_of_an_array_has_its_index();
    what_the_format_does_not_take_is_refused();
    no_series_is_there_twice();
    std::puts("prometheus-cpp: the same text, and groups of one read");
}
