// Inline functions with updates in them, in two translation units: one copy of each remains, and
// its section with it.
#pragma once

#include <statctr.h>

class Counter {
public:
    explicit Counter(unsigned long value = 0) { error_ = statctr_init(&handle_, value); }
    ~Counter() { statctr_cleanup(&handle_); }
    Counter(const Counter &) = delete;
    Counter &operator=(const Counter &) = delete;

    int error() const { return error_; }
    void operator++() { statctr_inc(&handle_); }
    void operator--() { statctr_dec(&handle_); }
    void operator+=(unsigned long value) { statctr_add(&handle_, value); }
    unsigned long read() const { return statctr_read(&handle_); }

private:
    statctr_t handle_ = {};
    int error_;
};

#define CACHE(EVENT, ITEM, kind)                               \
    EVENT(kind, lookup, 4)                                     \
    ITEM(kind, hits, STATCTR_OPERATIONS, "lookups that hit")   \
    ITEM(kind, misses, STATCTR_OPERATIONS, "lookups that missed") \
    ITEM(kind, nanos, STATCTR_NANOSECONDS, "time spent")       \
    ITEM(kind, evicted, STATCTR_OPERATIONS, "entries thrown out")
STATCTR_GROUP(cache, CACHE);

template <typename Value> inline void count_twice(Counter &counter, Value value)
{
    counter += static_cast<unsigned long>(value);
    counter += static_cast<unsigned long>(value);
}

inline void look_up(statctr_group_t &group, bool hit)
{
    statctr_group_event4(&group, cache_lookup, hit, !hit, 25, 0);
}

void count_elsewhere(Counter &counter, statctr_group_t &group);
