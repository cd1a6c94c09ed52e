/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * statctr for C++17: counters, gauges, groups, histograms and extremes that initialise and clean up themselves, and
 * their names in the program's registry.
 *
 *     statctr::counter packets;                    // throws std::system_error where there is no memory
 *     ++packets;                                   // inline: the instructions of statctr_inc()
 *     packets += 3;
 *     std::uint64_t n = packets.read();
 *
 * Every class holds the handle of <statctr.h>, and costs what that costs; costs, order, threads, signals
 * and fork are described there. Objects can be moved, and not copied: who needs two names for a counter
 * takes a reference. An object that was moved from may be destroyed and assigned to, and nothing else: what
 * is counted by one is lost. Updates never throw. Where exceptions are disabled (-fno-exceptions), a function that
 * would throw prints its error and ends the process by std::abort(). A static object is initialised before
 * main(); a counter that is there before any constructor is STATCTR_DEFINE() of <statctr/static.h>. Families by labels
 * are those of <statctr/family.h>, and member() looks up in them.
 */
#ifndef STATCTR_HPP
#define STATCTR_HPP

#include <statctr.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace statctr {

namespace detail {

/** Throws the library's error; where exceptions are disabled, prints it and aborts. */
[[noreturn]] inline void fail(int error, const char *what)
{
#ifdef __cpp_exceptions
    throw std::system_error(-error, std::generic_category(), what);
#else
    std::fprintf(stderr, "%s: %s\n", what, statctr_strerror(error));
    std::abort();
#endif
}

/** Throws the library's error, if it is one. */
inline void check(int error, const char *what)
{
    if (error < 0)
        fail(error, what);
}

/** The error of a quantile of no values: see statctr_histogram_quantile(). */
#ifdef ENODATA
inline constexpr int no_values = ENODATA;
#else
inline constexpr int no_values = ENOMSG;
#endif

/** Returns the member that a look-up of <statctr/family.h> stores. */
template <class Member, class Family>
Member &look_up(int (*get)(Family *, const char *const *, unsigned, Member **), Family &family,
                std::initializer_list<const char *> values)
{
    Member *found = nullptr;
    check(get(&family, values.begin(), static_cast<unsigned>(values.size()), &found), "statctr::member");
    return *found;
}

} // namespace detail

/** A 64-bit counter, modulo 2^64. */
class counter {
public:
    /** Initialises the counter with a value. Throws std::system_error. Signals: not safe. */
    explicit counter(unsigned long value = 0) { detail::check(statctr_init(&handle_, value), "statctr::counter"); }

    ~counter() { release(); }

    counter(const counter &) = delete;
    counter &operator=(const counter &) = delete;

    counter(counter &&other) noexcept : handle_(std::exchange(other.handle_, statctr_t{})) {}

    counter &operator=(counter &&other) noexcept
    {
        if (this != &other) {
            release();
            handle_ = std::exchange(other.handle_, statctr_t{});
        }
        return *this;
    }

    /** Adds 1. Signals: safe. */
    void inc() noexcept { (void)statctr_inc(&handle_); }

    /** Subtracts 1. Signals: safe. */
    void dec() noexcept { (void)statctr_dec(&handle_); }

    /** Adds `value`. Signals: safe. */
    void add(unsigned long value) noexcept { (void)statctr_add(&handle_, value); }

    /** Subtracts `value`. Signals: safe. */
    void sub(unsigned long value) noexcept { (void)statctr_sub(&handle_, value); }

    /** Adds 1. There is no value to return: it is divided among CPUs. */
    void operator++() noexcept { inc(); }

    /** Subtracts 1. */
    void operator--() noexcept { dec(); }

    /** Adds `value`. */
    void operator+=(unsigned long value) noexcept { add(value); }

    /** Subtracts `value`. */
    void operator-=(unsigned long value) noexcept { sub(value); }

    /** Returns the value; 0 of a counter that was moved from. Signals: safe. */
    std::uint64_t read() const noexcept
    {
        std::uint64_t value = 0;
        return statctr_read_checked(&handle_, &value) < 0 ? 0 : value;
    }

    /** Sets the value. Throws std::system_error for a counter that was moved from. Signals: not safe. */
    void set(unsigned long value) { detail::check(statctr_set(&handle_, value), "statctr::counter::set"); }

    /** Returns the handle, for the functions of <statctr.h>; it stays this object's. */
    statctr_t *handle() noexcept { return &handle_; }

    /** Returns the handle, for the functions of <statctr.h> that read. */
    const statctr_t *handle() const noexcept { return &handle_; }

private:
    /* of one that was moved from the library says that it is none */
    void release() noexcept { (void)statctr_cleanup(&handle_); }

    statctr_t handle_{};
};

/** A signed value that goes up and down. See counter for what each function is. */
class gauge {
public:
    /** Initialises the gauge with a value. Throws std::system_error. Signals: not safe. */
    explicit gauge(long value = 0) { add(value); }

    /** Adds 1. Signals: safe. */
    void inc() noexcept { counter_.inc(); }

    /** Subtracts 1. Signals: safe. */
    void dec() noexcept { counter_.dec(); }

    /** Adds `value`. Signals: safe. */
    void add(long value) noexcept
    {
        /* as the opposite of what is below 0: where a long has 32 bits its pattern alone is another number */
        if (value < 0)
            counter_.sub(0UL - static_cast<unsigned long>(value));
        else
            counter_.add(static_cast<unsigned long>(value));
    }

    /** Sets the value. Throws std::system_error for a gauge that was moved from. Signals: not safe. */
    void set(long value)
    {
        /* two steps for what is below 0 where a long has 32 bits */
        const bool fits = value >= 0 || sizeof(long) == sizeof(std::int64_t);
        counter_.set(fits ? static_cast<unsigned long>(value) : 0UL);
        if (!fits)
            add(value);
    }

    /**
     * Returns the value. One that never was below 0 may be read as such for a moment, while it goes up on one CPU
     * and down on another. Signals: safe.
     */
    std::int64_t read() const noexcept { return static_cast<std::int64_t>(counter_.read()); }

    /** Returns the value, or 0 where it is below: for what cannot be negative. Signals: safe. */
    std::uint64_t read_clamped() const noexcept
    {
        const std::int64_t value = read();
        return value < 0 ? 0 : static_cast<std::uint64_t>(value);
    }

    /** Returns the handle, for the functions of <statctr.h> that read. */
    const statctr_t *handle() const noexcept { return counter_.handle(); }

private:
    counter counter_;
};

/**
 * A group of the kind that STATCTR_GROUP() declared: `statctr::group traffic(traffic_group);`. Items and
 * events are that macro's enumerators.
 */
class group {
public:
    /** Initialises a group of this kind, all zero. Throws std::system_error. Signals: not safe. */
    explicit group(const statctr_group_desc_t &kind) : slots_(kind.slots)
    {
        detail::check(statctr_group_init(&handle_, &kind), "statctr::group");
    }

    ~group() { release(); }

    group(const group &) = delete;
    group &operator=(const group &) = delete;

    group(group &&other) noexcept
        : handle_(std::exchange(other.handle_, statctr_group_t{})), slots_(std::exchange(other.slots_, 0u))
    {
    }

    group &operator=(group &&other) noexcept
    {
        if (this != &other) {
            release();
            handle_ = std::exchange(other.handle_, statctr_group_t{});
            slots_ = std::exchange(other.slots_, 0u);
        }
        return *this;
    }

    /** Adds 1 to an item. Signals: safe. */
    void inc(unsigned item) noexcept { (void)statctr_group_inc(&handle_, item); }

    /** Subtracts 1 from an item. Signals: safe. */
    void dec(unsigned item) noexcept { (void)statctr_group_dec(&handle_, item); }

    /** Adds `value` to an item. Signals: safe. */
    void add(unsigned item, std::uint64_t value) noexcept { (void)statctr_group_add(&handle_, item, value); }

    /** Adds to the items of an event of 2 by one commit. Signals: safe. */
    void event(unsigned event, std::uint64_t v0, std::uint64_t v1) noexcept
    {
        (void)statctr_group_event2(&handle_, event, v0, v1);
    }

    /** Adds to the items of an event of 4 (or 3, and 0 for the last) by one commit. Signals: safe. */
    void event(unsigned event, std::uint64_t v0, std::uint64_t v1, std::uint64_t v2, std::uint64_t v3) noexcept
    {
        (void)statctr_group_event4(&handle_, event, v0, v1, v2, v3);
    }

    /** Adds to the items of an event of 8 (or 5 to 7) by one commit. Signals: safe. */
    void event(unsigned event, const std::array<std::uint64_t, 8> &values) noexcept
    {
        (void)statctr_group_event8(&handle_, event, values.data());
    }

    /** Returns the value of an item. Throws std::system_error for one that is not there. Signals: not safe. */
    std::uint64_t read(unsigned item) const
    {
        std::uint64_t value = 0;
        detail::check(statctr_group_read_item(&handle_, item, &value), "statctr::group::read");
        return value;
    }

    /** Returns the values of all slots, of one read. Throws std::system_error. Signals: not safe. */
    std::vector<std::uint64_t> read() const
    {
        std::vector<std::uint64_t> values(slots_);
        detail::check(statctr_group_fold(&handle_, values.data(), values.size()), "statctr::group::read");
        return values;
    }

    /** Sets the value of an item. Throws std::system_error. Signals: not safe. */
    void set(unsigned item, std::uint64_t value)
    {
        detail::check(statctr_group_set(&handle_, item, value), "statctr::group::set");
    }

    /** Returns the handle, for the functions of <statctr/group.h>; it stays this object's. */
    statctr_group_t *handle() noexcept { return &handle_; }

    /** Returns the handle, for the functions of <statctr/group.h> that read. */
    const statctr_group_t *handle() const noexcept { return &handle_; }

private:
    void release() noexcept { (void)statctr_group_cleanup(&handle_); }

    statctr_group_t handle_{};
    std::uint32_t slots_;
};

/** The buckets of a histogram, as they were read. An object that was moved from has none. */
class histogram_snapshot {
public:
    histogram_snapshot(histogram_snapshot &&other) noexcept : snapshot_(std::exchange(other.snapshot_, nullptr)) {}

    histogram_snapshot &operator=(histogram_snapshot &&other) noexcept
    {
        std::swap(snapshot_, other.snapshot_);
        return *this;
    }

    histogram_snapshot(const histogram_snapshot &) = delete;
    histogram_snapshot &operator=(const histogram_snapshot &) = delete;

    ~histogram_snapshot() { (void)statctr_histogram_snapshot_free(snapshot_); }

    /** Returns the number of values. Throws std::system_error for a snapshot that was moved from, as all do. */
    std::uint64_t count() const
    {
        std::uint64_t count = 0;
        detail::check(statctr_histogram_totals(snapshot_, &count, nullptr), "statctr::histogram_snapshot::count");
        return count;
    }

    /** Returns the sum of the values, modulo 2^64. */
    std::uint64_t sum() const
    {
        std::uint64_t sum = 0;
        detail::check(statctr_histogram_totals(snapshot_, nullptr, &sum), "statctr::histogram_snapshot::sum");
        return sum;
    }

    /** Returns a quantile (0.5: the median); nothing without values, and for what is no number. */
    std::optional<std::uint64_t> quantile(double part) const
    {
        std::uint64_t value = 0;
        const int error = statctr_histogram_quantile(snapshot_, part, &value);
        if (error == -detail::no_values || (error == -EINVAL && snapshot_ != nullptr))
            return std::nullopt;
        detail::check(error, "statctr::histogram_snapshot::quantile");
        return value;
    }

    /** Returns the number of values that are certainly at most `bound`. */
    std::uint64_t count_up_to(std::uint64_t bound) const
    {
        std::uint64_t count = 0;
        detail::check(statctr_histogram_count_up_to(snapshot_, bound, &count),
                      "statctr::histogram_snapshot::count_up_to");
        return count;
    }

    /** Returns the buckets that have values, in order of the values. */
    std::vector<statctr_bucket_t> buckets() const
    {
        const int filled = statctr_histogram_buckets(snapshot_, nullptr, 0);
        detail::check(filled, "statctr::histogram_snapshot::buckets");
        std::vector<statctr_bucket_t> buckets(static_cast<std::size_t>(filled));
        (void)statctr_histogram_buckets(snapshot_, buckets.data(), buckets.size());
        return buckets;
    }

    /** Adds the values of another snapshot. Throws std::system_error for one with other buckets. */
    void operator+=(const histogram_snapshot &other)
    {
        detail::check(statctr_histogram_merge(snapshot_, other.snapshot_), "statctr::histogram_snapshot");
    }

    /** Takes an earlier snapshot's values away. Throws std::system_error for one with other buckets. */
    void operator-=(const histogram_snapshot &earlier)
    {
        detail::check(statctr_histogram_subtract(snapshot_, earlier.snapshot_), "statctr::histogram_snapshot");
    }

private:
    friend class histogram;
    explicit histogram_snapshot(statctr_histogram_snapshot_t *snapshot) noexcept : snapshot_(snapshot) {}

    statctr_histogram_snapshot_t *snapshot_;
};

/** A distribution of values, with quantiles of a chosen error. See <statctr/histogram.h>. */
class histogram {
public:
    /** Initialises a histogram for values up to `max`, quantiles to `error`. Throws std::system_error. */
    histogram(std::uint64_t max, double error)
    {
        detail::check(statctr_histogram_init(&handle_, max, error), "statctr::histogram");
    }

    ~histogram() { release(); }

    histogram(const histogram &) = delete;
    histogram &operator=(const histogram &) = delete;

    histogram(histogram &&other) noexcept : handle_(std::exchange(other.handle_, statctr_histogram_t{})) {}

    histogram &operator=(histogram &&other) noexcept
    {
        if (this != &other) {
            release();
            handle_ = std::exchange(other.handle_, statctr_histogram_t{});
        }
        return *this;
    }

    /** Counts a value. Signals: safe. */
    void observe(std::uint64_t value) noexcept { (void)statctr_histogram_observe(&handle_, value); }

    /** Counts a value `times` times. Signals: safe. */
    void observe_many(std::uint64_t value, std::uint64_t times) noexcept
    {
        (void)statctr_histogram_observe_many(&handle_, value, times);
    }

    /** Reads all buckets. Throws std::system_error. Signals: not safe. */
    histogram_snapshot snapshot() const
    {
        statctr_histogram_snapshot_t *snapshot = nullptr;
        detail::check(statctr_histogram_snapshot(&handle_, &snapshot), "statctr::histogram::snapshot");
        return histogram_snapshot(snapshot);
    }

    /** Returns the handle, for the functions of <statctr/histogram.h>; it stays this object's. */
    statctr_histogram_t *handle() noexcept { return &handle_; }

    /** Returns the handle, for the functions of <statctr/histogram.h> that read. */
    const statctr_histogram_t *handle() const noexcept { return &handle_; }

private:
    void release() noexcept { (void)statctr_histogram_cleanup(&handle_); }

    statctr_histogram_t handle_{};
};

/** The largest value that was observed; 0 of nothing. See <statctr/extremes.h>. */
class maximum {
public:
    /** Initialises a maximum of nothing. Throws std::system_error. Signals: not safe. */
    maximum() { detail::check(statctr_max_init(&handle_), "statctr::maximum"); }

    ~maximum() { (void)statctr_max_cleanup(&handle_); }

    maximum(const maximum &) = delete;
    maximum &operator=(const maximum &) = delete;

    maximum(maximum &&other) noexcept : handle_(std::exchange(other.handle_, statctr_max_t{})) {}

    maximum &operator=(maximum &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }

    /** Observes a value. Signals: safe. */
    void observe(std::uint64_t value) noexcept { (void)statctr_max_observe(&handle_, value); }

    /** Returns the value. Throws std::system_error for an object that was moved from. Signals: safe. */
    std::uint64_t read() const
    {
        std::uint64_t value = 0;
        detail::check(statctr_max_read(&handle_, &value), "statctr::maximum::read");
        return value;
    }

    /** Returns the value since the last take, and begins anew. Throws as read(). Signals: not safe. */
    std::uint64_t take()
    {
        std::uint64_t value = 0;
        detail::check(statctr_max_take(&handle_, &value), "statctr::maximum::take");
        return value;
    }

    /** Drops all that was observed. Throws as read(). Signals: not safe. */
    void reset() { detail::check(statctr_max_reset(&handle_), "statctr::maximum::reset"); }

    /** Returns the handle, for the functions of <statctr/extremes.h> that read. */
    const statctr_max_t *handle() const noexcept { return &handle_; }

private:
    statctr_max_t handle_{};
};

/** The smallest value that was observed; the largest number of nothing. See <statctr/extremes.h>. */
class minimum {
public:
    /** Initialises a minimum of nothing. Throws std::system_error. Signals: not safe. */
    minimum() { detail::check(statctr_min_init(&handle_), "statctr::minimum"); }

    ~minimum() { (void)statctr_min_cleanup(&handle_); }

    minimum(const minimum &) = delete;
    minimum &operator=(const minimum &) = delete;

    minimum(minimum &&other) noexcept : handle_(std::exchange(other.handle_, statctr_min_t{})) {}

    minimum &operator=(minimum &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }

    /** Observes a value. Signals: safe. */
    void observe(std::uint64_t value) noexcept { (void)statctr_min_observe(&handle_, value); }

    /** Returns the value. Throws std::system_error for an object that was moved from. Signals: safe. */
    std::uint64_t read() const
    {
        std::uint64_t value = 0;
        detail::check(statctr_min_read(&handle_, &value), "statctr::minimum::read");
        return value;
    }

    /** Returns the value since the last take, and begins anew. Throws as read(). Signals: not safe. */
    std::uint64_t take()
    {
        std::uint64_t value = 0;
        detail::check(statctr_min_take(&handle_, &value), "statctr::minimum::take");
        return value;
    }

    /** Drops all that was observed. Throws as read(). Signals: not safe. */
    void reset() { detail::check(statctr_min_reset(&handle_), "statctr::minimum::reset"); }

    /** Returns the handle, for the functions of <statctr/extremes.h> that read. */
    const statctr_min_t *handle() const noexcept { return &handle_; }

private:
    statctr_min_t handle_{};
};

/** A floating-point value that goes up and down. See <statctr/float_gauge.h> for rounding, and races with set(). */
class float_gauge {
public:
    /** Initialises the gauge with a value. Throws std::system_error. Signals: not safe. */
    explicit float_gauge(double value = 0)
    {
        detail::check(statctr_float_gauge_init(&handle_, value), "statctr::float_gauge");
    }

    ~float_gauge() { (void)statctr_float_gauge_cleanup(&handle_); }

    float_gauge(const float_gauge &) = delete;
    float_gauge &operator=(const float_gauge &) = delete;

    float_gauge(float_gauge &&other) noexcept : handle_(std::exchange(other.handle_, statctr_float_gauge_t{})) {}

    float_gauge &operator=(float_gauge &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }

    /** Adds 1. Signals: safe. */
    void inc() noexcept { add(1); }

    /** Subtracts 1. Signals: safe. */
    void dec() noexcept { add(-1); }

    /** Adds `value`. Signals: safe. */
    void add(double value) noexcept { (void)statctr_float_gauge_add(&handle_, value); }

    /** Subtracts `value`. Signals: safe. */
    void sub(double value) noexcept { add(-value); }

    /** Sets the value. Throws std::system_error for a gauge that was moved from. Signals: not safe. */
    void set(double value) { detail::check(statctr_float_gauge_set(&handle_, value), "statctr::float_gauge::set"); }

    /** Returns the value; 0 of a gauge that was moved from. Signals: safe. */
    double read() const noexcept
    {
        double value = 0;
        return statctr_float_gauge_read(&handle_, &value) < 0 ? 0 : value;
    }

    /** Returns the handle, for the functions of <statctr/float_gauge.h> that read. */
    const statctr_float_gauge_t *handle() const noexcept { return &handle_; }

private:
    statctr_float_gauge_t handle_{};
};

/** Name, labels, unit and help text of a statistic in the registry. */
struct description {
    std::string name; /* letters, digits, _ and :, no digit first */
    std::string help = {};
    std::string unit = {};
    std::vector<std::pair<std::string, std::string>> labels = {};
};

/**
 * A statistic's name in the program's registry, as long as this object lives, which must not outlive the statistic.
 * The statistic may be moved meanwhile. Constructors throw std::system_error: EINVAL for a bad name, and for an object
 * that was moved from; EEXIST where the statistic or the name is registered already, or the name is one of another
 * kind, help text or unit.
 */
class registration {
public:
#ifndef STATCTR_UP
    /** Registers a counter. */
    registration(const counter &object, const description &of) : handle_(*object.handle())
    {
        enter(of, [&](const statctr_desc_t *desc) { return statctr_register(object.handle(), desc); });
    }

    /** Registers a gauge. */
    registration(const gauge &object, const description &of) : handle_(*object.handle())
    {
        enter(of, [&](const statctr_desc_t *desc) { return statctr_register_gauge(object.handle(), desc); });
    }
#endif

    /** Registers an event of a group as an average: the number of values, and their sum. */
    registration(const group &object, unsigned event, const description &of) : handle_(*object.handle())
    {
        enter(of, [&](const statctr_desc_t *desc) { return statctr_register_average(object.handle(), event, desc); });
    }

    /** Registers a histogram. */
    registration(const histogram &object, const description &of) : handle_(*object.handle())
    {
        enter(of, [&](const statctr_desc_t *desc) { return statctr_register_histogram(object.handle(), desc); });
    }

    /** Registers a maximum. */
    registration(const maximum &object, const description &of) : handle_(*object.handle())
    {
        enter(of, [&](const statctr_desc_t *desc) { return statctr_register_max(object.handle(), desc); });
    }

    /** Registers a minimum. */
    registration(const minimum &object, const description &of) : handle_(*object.handle())
    {
        enter(of, [&](const statctr_desc_t *desc) { return statctr_register_min(object.handle(), desc); });
    }

    /** Registers a floating-point gauge. */
    registration(const float_gauge &object, const description &of) : handle_(*object.handle())
    {
        enter(of, [&](const statctr_desc_t *desc) { return statctr_register_float_gauge(object.handle(), desc); });
    }

    ~registration() { std::visit(leave{}, handle_); }

    registration(const registration &) = delete;
    registration &operator=(const registration &) = delete;

    registration(registration &&other) noexcept : handle_(std::exchange(other.handle_, std::monostate{})) {}

    registration &operator=(registration &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }

private:
    /* a destructor does not run after a constructor that threw: nothing is taken out that was not entered */
    template <class Register> static void enter(const description &of, Register entered)
    {
        std::vector<const char *> labels;
        for (const auto &[name, value] : of.labels) {
            labels.push_back(name.c_str());
            labels.push_back(value.c_str());
        }
        labels.push_back(nullptr);
        const statctr_desc_t desc = {of.name.c_str(), of.help.c_str(), of.unit.c_str(), labels.data()};
        detail::check(entered(&desc), "statctr::registration");
    }

    struct leave {
        void operator()(std::monostate) const noexcept {}
#ifndef STATCTR_UP
        void operator()(const statctr_t &handle) const noexcept { (void)statctr_unregister(&handle); }
#endif
        void operator()(const statctr_group_t &handle) const noexcept { (void)statctr_unregister_average(&handle); }
        void operator()(const statctr_histogram_t &handle) const noexcept
        {
            (void)statctr_unregister_histogram(&handle);
        }
        void operator()(const statctr_max_t &handle) const noexcept { (void)statctr_unregister_max(&handle); }
        void operator()(const statctr_min_t &handle) const noexcept { (void)statctr_unregister_min(&handle); }
        void operator()(const statctr_float_gauge_t &handle) const noexcept
        {
            (void)statctr_unregister_float_gauge(&handle);
        }
    };

    std::variant<std::monostate,
#ifndef STATCTR_UP
                 statctr_t,
#endif
                 statctr_group_t, statctr_histogram_t, statctr_max_t, statctr_min_t, statctr_float_gauge_t>
        handle_;
};

/**
 * Returns the counter of a family for these values of its labels, in the order of the labels:
 *
 *     STATCTR_DEFINE_FAMILY(responses, "method", "status");
 *     statctr_static_inc(&statctr::member(responses, {"GET", "200"}));
 *
 * It lives as long as the process. Throws std::system_error: see <statctr/family.h>. Signals: safe where the member is
 * there.
 */
inline statctr_static_t &member(statctr_family_t &family, std::initializer_list<const char *> values)
{
    return detail::look_up(statctr_family_get, family, values);
}

/** Returns the gauge of a family for these values of its labels. */
inline statctr_static_gauge_t &member(statctr_gauge_family_t &family, std::initializer_list<const char *> values)
{
    return detail::look_up(statctr_gauge_family_get, family, values);
}

/** Returns the maximum of a family for these values of its labels. */
inline statctr_static_max_t &member(statctr_max_family_t &family, std::initializer_list<const char *> values)
{
    return detail::look_up(statctr_max_family_get, family, values);
}

/** Returns the minimum of a family for these values of its labels. */
inline statctr_static_min_t &member(statctr_min_family_t &family, std::initializer_list<const char *> values)
{
    return detail::look_up(statctr_min_family_get, family, values);
}

/** Returns the floating-point gauge of a family for these values of its labels. */
inline statctr_float_gauge_t &member(statctr_float_gauge_family_t &family, std::initializer_list<const char *> values)
{
    return detail::look_up(statctr_float_gauge_family_get, family, values);
}

/** Returns the average of a family for these values of its labels: a group with an event of two items. */
inline statctr_group_t &member(statctr_average_family_t &family, std::initializer_list<const char *> values)
{
    return detail::look_up(statctr_average_family_get, family, values);
}

/** Returns the histogram of a family for these values of its labels. */
inline statctr_histogram_t &member(statctr_histogram_family_t &family, std::initializer_list<const char *> values)
{
    return detail::look_up(statctr_histogram_family_get, family, values);
}

/**
 * Returns all that is in the program's registry in Prometheus' classic text format; see statctr_write_prometheus().
 * Throws std::bad_alloc.
 */
inline std::string prometheus_text()
{
    std::string text;
    const auto append = [](const char *piece, std::size_t length, void *context) noexcept {
#ifdef __cpp_exceptions
        try {
            static_cast<std::string *>(context)->append(piece, length);
            return 0;
        } catch (...) { /* no exception may pass through the library */
            return -ENOMEM;
        }
#else
        static_cast<std::string *>(context)->append(piece, length);
        return 0;
#endif
    };
    [[maybe_unused]] const int error = statctr_write_prometheus(append, &text);
#ifdef __cpp_exceptions
    if (error < 0)
        throw std::bad_alloc();
#endif
    return text;
}

} // namespace statctr

#endif /* STATCTR_HPP */
