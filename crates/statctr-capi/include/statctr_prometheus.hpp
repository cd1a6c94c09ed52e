/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * statctr behind prometheus-cpp: what a program counts with <statctr.hpp> or <statctr.h>, in its scrapes.
 *
 *     statctr::counter requests;
 *     statctr::group traffic(traffic_group);
 *     statctr::histogram latencies(60000000000, 0.01);   // nanoseconds up to a minute, to 1 %
 *
 *     auto counters = std::make_shared<statctr::collectable>();
 *     counters->add_registry();                          // statics, and what is registered
 *     counters->add("requests_total", "requests served", {{"method", "GET"}}, requests);
 *     counters->add("rx", {{"device", "eth0"}}, traffic); // rx_packets, rx_bytes, ...
 *     counters->add("latency_seconds", "of requests", {}, latencies, 1e-9, {0.001, 0.01, 0.1});
 *
 *     prometheus::Exposer exposer("127.0.0.1:8080");
 *     exposer.RegisterCollectable(counters);
 *
 * For C++17 with exceptions and prometheus-cpp 1.0 or later; nothing else of the library needs either. Updates are those of
 * <statctr.hpp>: a scrape disturbs nobody who counts.
 */
#ifndef STATCTR_PROMETHEUS_HPP
#define STATCTR_PROMETHEUS_HPP

#include <statctr.hpp>

#include <prometheus/check_names.h>
#include <prometheus/collectable.h>
#include <prometheus/labels.h>
#include <prometheus/metric_family.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace statctr {

/**
 * Source of metrics for an exposer or a gateway of prometheus-cpp. Its functions may be called by any threads.
 *
 * Objects are borrowed: each has to live until remove(), or until the collectable is destroyed, and must not
 * be moved from before.
 *
 * # Consistency
 * The items of a group are of one read. Other values are read one after the other.
 *
 * # Names
 * What has the name, or the name and the labels, of another series, as items of groups and what is in the registry can,
 * gets its type at the end of its name; objects that were added come first. Line breaks in help texts become spaces.
 */
class collectable final : public prometheus::Collectable {
public:
    /**
     * Adds the program's registry: statics, and all that is registered when a scrape comes. Extremes are gauges, an
     * average is a summary without quantiles, and a histogram has the buckets of statctr_histogram_classic_buckets().
     */
    void add_registry()
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        with_registry_ = true;
    }

    /**
     * Adds a counter. Names stay as they are: the convention is an end in `_total`.
     * Throws std::invalid_argument for a name or a label that the format does not take, for a help text or a value
     * of a label that is not UTF-8, for a series that is there, and for a name that is there as another type.
     */
    void add(const std::string &name, const std::string &help, const prometheus::Labels &labels, const counter &object)
    {
        insert({name, help, prometheus::MetricType::Counter, labels, &object,
                [&object](const entry &of, family_map &families) {
                    families.put(of, static_cast<double>(object.read()));
                }});
    }

    /** Adds a gauge. Throws as for a counter. */
    void add(const std::string &name, const std::string &help, const prometheus::Labels &labels, const gauge &object)
    {
        insert({name, help, prometheus::MetricType::Gauge, labels, &object,
                [&object](const entry &of, family_map &families) {
                    families.put(of, static_cast<double>(object.read()));
                }});
    }

    /** Adds a floating-point gauge. Throws as for a counter. */
    void add(const std::string &name, const std::string &help, const prometheus::Labels &labels,
             const float_gauge &object)
    {
        insert({name, help, prometheus::MetricType::Gauge, labels, &object,
                [&object](const entry &of, family_map &families) { families.put(of, object.read()); }});
    }

    /**
     * Adds each item of a group as a counter NAME_ITEM with the item's help text. Throws as for a counter.
     */
    void add(const std::string &name, const prometheus::Labels &labels, const group &object)
    {
        insert({name, "", prometheus::MetricType::Untyped, labels, &object,
                [&object](const entry &of, family_map &families) { families.put_group(of, object); }});
    }

    /**
     * Adds a histogram of multiples of `unit` (1e-9: of nanoseconds, which are exported as seconds) by buckets with
     * these upper bounds. A bucket has the values that are certainly in it: those of the histogram's own buckets
     * that end there or below. Its number of values and their sum are exact, the sum modulo 2^64 units.
     * Throws as for a counter, and for a unit that is not positive and for a label `le`.
     */
    void add(const std::string &name, const std::string &help, const prometheus::Labels &labels,
             const histogram &object, double unit, std::vector<double> bounds)
    {
        if (!(unit > 0) || !std::isfinite(unit))
            throw std::invalid_argument("statctr::collectable: not a positive unit: " + name);
        const auto unusable = [](double bound) { return !(bound >= 0 && std::isfinite(bound)); };
        bounds.erase(std::remove_if(bounds.begin(), bounds.end(), unusable), bounds.end());
        std::sort(bounds.begin(), bounds.end());
        bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
        if (labels.count("le") != 0)
            throw std::invalid_argument("statctr::collectable: a label le, which buckets have: " + name);
        insert({name, help, prometheus::MetricType::Histogram, labels, &object,
                [&object, unit, bounds = std::move(bounds)](const entry &of, family_map &families) {
                    families.put_histogram(of, object, unit, bounds);
                }});
    }

    /** Takes an object out, where it was added; no scrape reads it afterwards. */
    template <class Object> void remove(const Object &object)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        const void *const address = &object;
        const auto is = [address](const entry &there) { return there.object == address; };
        entries_.erase(std::remove_if(entries_.begin(), entries_.end(), is), entries_.end());
    }

    /** Reads everything. Throws std::system_error where a group cannot be read, and std::bad_alloc. */
    std::vector<prometheus::MetricFamily> Collect() const override
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        family_map families;
        for (const entry &of : entries_)
            of.read(of, families);
        if (with_registry_)
            families.put_registry();
        return families.take();
    }

private:
    class family_map;

    /** An object, and the function that reads it. */
    struct entry {
        std::string name;
        std::string help;
        prometheus::MetricType type; /* Untyped: a group */
        prometheus::Labels labels;
        const void *object;
        std::function<void(const entry &, family_map &)> read;
    };

    /** The families of a scrape, by their names: all series of a name are in one. */
    class family_map {
    public:
        void put(const entry &of, double value) { put(of.name, of.help, of.type, of.labels, value); }

        void put_group(const entry &of, const group &object)
        {
            const std::vector<std::uint64_t> values = object.read();
            for (unsigned item = 0; item < values.size(); item++) {
                const char *name = nullptr, *help = nullptr;
                const int error = statctr_group_describe(object.handle(), item, &name, nullptr, &help);
                detail::check(error, "statctr::collectable: a group");
                if (*name != '\0') /* not a slot that an event skipped */
                    put(of.name + '_' + name, help, prometheus::MetricType::Counter, of.labels,
                        static_cast<double>(values[item]));
            }
        }

        void put_histogram(const entry &of, const histogram &object, double unit,
                           const std::vector<double> &bounds)
        {
            const histogram_snapshot read = object.snapshot();
            const std::uint64_t count = read.count();
            prometheus::ClientMetric::Histogram classic;
            classic.sample_count = count;
            /* 1 / 1e-9 is not a billion, as 1e-9 is no multiple of a power of two */
            const double exact = 1 / unit, whole = std::round(exact);
            constexpr double epsilon = std::numeric_limits<double>::epsilon();
            const double per_one = std::abs(exact - whole) <= exact * 4 * epsilon ? whole : exact;
            classic.sample_sum = static_cast<double>(read.sum()) / per_one;
            for (const double bound : bounds) {
                const double units = bound * per_one * (1 + epsilon); /* 0.3 * 10 is less than 3 */
                const bool fits = units < 18446744073709549568.0; /* the largest number below 2^64 */
                classic.bucket.push_back({fits ? read.count_up_to(static_cast<std::uint64_t>(units)) : count, bound});
            }
            classic.bucket.push_back({count, std::numeric_limits<double>::infinity()});
            series(of.name, of.help, of.type, of.labels).histogram = std::move(classic);
        }

        void put_registry()
        {
            statctr_visit_all(visit, this);
            if (failure_)
                std::rethrow_exception(failure_);
        }

        std::vector<prometheus::MetricFamily> take()
        {
            std::vector<prometheus::MetricFamily> all;
            all.reserve(families_.size());
            for (auto &[name, there] : families_)
                all.push_back(std::move(there.family));
            return all;
        }

    private:
        /* A family, and the labels of its series. */
        struct named_family {
            prometheus::MetricFamily family;
            std::set<prometheus::Labels> series;
        };

        /* Returns the end of a name whose family, or series, another one has. */
        static const char *end_of_name(prometheus::MetricType type)
        {
            switch (type) {
            case prometheus::MetricType::Gauge:
                return "_gauge";
            case prometheus::MetricType::Summary:
                return "_summary";
            case prometheus::MetricType::Histogram:
                return "_histogram";
            default:
                return "_counter";
            }
        }

        /* Returns the names of a family's series, its own among them. */
        static std::vector<std::string> names_of_series(const std::string &name, prometheus::MetricType type)
        {
            std::vector<std::string> names{name};
            if (type == prometheus::MetricType::Histogram)
                names.push_back(name + "_bucket");
            if (type == prometheus::MetricType::Histogram || type == prometheus::MetricType::Summary) {
                names.push_back(name + "_sum");
                names.push_back(name + "_count");
            }
            return names;
        }

        /* Returns the family of this name and type, made if there is none; NULL where another one has such a name. */
        named_family *family_of(const std::string &name, const std::string &help, prometheus::MetricType type)
        {
            const auto there = families_.find(name);
            if (there != families_.end())
                return there->second.family.type == type ? &there->second : nullptr;
            const std::vector<std::string> names = names_of_series(name, type);
            const auto is_taken = [this](const std::string &of_series) { return taken_.count(of_series) != 0; };
            if (std::any_of(names.begin(), names.end(), is_taken))
                return nullptr;
            taken_.insert(names.begin(), names.end());
            named_family &made = families_[name];
            made.family.name = name;
            made.family.help = help;
            /* which prometheus-cpp 1.0 writes as it is, and readers refuse */
            std::replace(made.family.help.begin(), made.family.help.end(), '\n', ' ');
            made.family.type = type;
            return &made;
        }

        /* Returns a new series with these labels, of the first name by `name` and the type that has none like it. */
        prometheus::ClientMetric &series(std::string name, const std::string &help, prometheus::MetricType type,
                                         const prometheus::Labels &labels)
        {
            named_family *found = family_of(name, help, type);
            while (found == nullptr || !found->series.insert(labels).second) {
                name += end_of_name(type);
                found = family_of(name, help, type);
            }
            found->family.metric.emplace_back();
            for (const auto &[label, text] : labels)
                found->family.metric.back().label.push_back({label, text});
            return found->family.metric.back();
        }

        void put(const std::string &name, const std::string &help, prometheus::MetricType type,
                 const prometheus::Labels &labels, double value)
        {
            prometheus::ClientMetric &added = series(name, help, type, labels);
            if (type == prometheus::MetricType::Gauge)
                added.gauge.value = value;
            else
                added.counter.value = value;
        }

        /* called by the library, through which no exception may pass */
        static int visit(const statctr_reading_t *reading, void *context) noexcept
        {
            auto *const families = static_cast<family_map *>(context);
            try {
                families->put_reading(*reading);
                return 0;
            } catch (...) {
                families->failure_ = std::current_exception();
                return 1;
            }
        }

        void put_reading(const statctr_reading_t &reading)
        {
            std::string name = reading.desc.name;
            if (reading.item != nullptr)
                name = name + '_' + reading.item;
            prometheus::Labels labels;
            if (reading.desc.labels != nullptr)
                for (const char *const *label = reading.desc.labels; *label != nullptr; label += 2)
                    labels.emplace(label[0], label[1]);
            if (reading.in_array != 0) /* that the program registered in Rust */
                labels.emplace("index", std::to_string(reading.index));
            const char *const help = reading.desc.help != nullptr ? reading.desc.help : "";
            switch (reading.kind) {
            case STATCTR_KIND_COUNTER:
                put(name, help, prometheus::MetricType::Counter, labels, reading.number);
                break;
            case STATCTR_KIND_AVERAGE: {
                auto &average = series(name, help, prometheus::MetricType::Summary, labels).summary;
                average.sample_count = reading.count;
                average.sample_sum = static_cast<double>(reading.sum);
                break;
            }
            case STATCTR_KIND_HISTOGRAM: {
                auto &classic = series(name, help, prometheus::MetricType::Histogram, labels).histogram;
                classic.sample_count = reading.count;
                classic.sample_sum = static_cast<double>(reading.sum);
                statctr_bucket_t buckets[65];
                const int found = statctr_histogram_classic_buckets(reading.histogram, buckets, 65);
                detail::check(found, "statctr::collectable: a histogram");
                for (int bucket = 0; bucket < found; bucket++) {
                    const auto bound = static_cast<double>(buckets[bucket].largest);
                    /* from 2^53 on neighbours may be the same floating-point number */
                    if (!classic.bucket.empty() && classic.bucket.back().upper_bound >= bound)
                        classic.bucket.pop_back();
                    classic.bucket.push_back({buckets[bucket].count, bound});
                }
                classic.bucket.push_back({reading.count, std::numeric_limits<double>::infinity()});
                break;
            }
            default: /* gauges and extremes */
                put(name, help, prometheus::MetricType::Gauge, labels, reading.number);
            }
        }

        std::map<std::string, named_family> families_;
        std::set<std::string> taken_; /* the names of all series */
        std::exception_ptr failure_;
    };

    /* prometheus-cpp's own check takes other arguments in each version */
    static bool is_label(const std::string &name)
    {
        const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
        const auto fits = [letter](char c) { return letter(c) || (c >= '0' && c <= '9'); };
        return !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), fits) &&
               name.compare(0, 2, "__") != 0;
    }

    /* Returns true for the bytes that Rust's and Go's readers of UTF-8 take: none overlong, no surrogates. */
    static bool is_utf8(const std::string &text)
    {
        const auto at = [&text](std::size_t place) {
            return place < text.size() ? static_cast<unsigned char>(text[place]) : 0u;
        };
        for (std::size_t place = 0; place < text.size();) {
            const unsigned first = at(place++);
            if (first < 0x80)
                continue;
            if (first < 0xc2 || first > 0xf4)
                return false;
            /* the second byte has a narrower range behind some first ones */
            const unsigned least = first == 0xe0 ? 0xa0u : first == 0xf0 ? 0x90u : 0x80u;
            const unsigned largest = first == 0xed ? 0x9fu : first == 0xf4 ? 0x8fu : 0xbfu;
            if (at(place) < least || at(place) > largest)
                return false;
            place++;
            for (unsigned more = first < 0xe0 ? 0 : first < 0xf0 ? 1 : 2; more > 0; more--)
                if ((at(place++) & 0xc0) != 0x80)
                    return false;
        }
        return true;
    }

    void insert(entry added)
    {
        if (!prometheus::CheckMetricName(added.name))
            throw std::invalid_argument("statctr::collectable: not the name of a metric: " + added.name);
        if (!is_utf8(added.help))
            throw std::invalid_argument("statctr::collectable: a help text that is not UTF-8: " + added.name);
        for (const auto &label : added.labels) {
            if (!is_label(label.first))
                throw std::invalid_argument("statctr::collectable: not the name of a label: " + label.first);
            if (!is_utf8(label.second))
                throw std::invalid_argument("statctr::collectable: a value that is not UTF-8 of the label: " +
                                            label.first);
        }
        const std::lock_guard<std::mutex> lock(mutex_);
        for (const entry &there : entries_) {
            if (there.name != added.name)
                continue;
            if (there.type != added.type)
                throw std::invalid_argument("statctr::collectable: of another type already: " + added.name);
            if (there.labels == added.labels)
                throw std::invalid_argument("statctr::collectable: there already with these labels: " + added.name);
        }
        entries_.push_back(std::move(added));
    }

    mutable std::mutex mutex_;
    std::vector<entry> entries_;
    bool with_registry_ = false;
};

} // namespace statctr

#endif /* STATCTR_PROMETHEUS_HPP */
