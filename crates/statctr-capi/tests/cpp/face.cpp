// The header from C++: classes, templates, threads, atomics.
#include "face.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#define CHECK_EQ(left, right)                                                                             \
    do {                                                                                                  \
        if (static_cast<uint64_t>(left) != static_cast<uint64_t>(right)) {                                \
            std::fprintf(stderr, "%s:%d: %s is not %s\n", __FILE__, __LINE__, #left, #right);             \
            std::exit(1);                                                                                 \
        }                                                                                                 \
    } while (0)

static_assert(cache_hits == 0 && cache_evicted == 3 && cache_SLOTS == 4, "slots in the order of the list");

int main()
{
    constexpr unsigned threads = 4, updates = 20000;
    Counter counter(100);
    CHECK_EQ(counter.error(), 0);
    statctr_group_t group;
    CHECK_EQ(statctr_group_init(&group, &cache_group), 0);
    std::atomic<unsigned> done{0};
    std::vector<std::thread> workers;
    for (unsigned i = 0; i < threads; i++)
        workers.emplace_back([&] {
            for (unsigned n = 0; n < updates; n++) {
                ++counter;
                count_twice(counter, 2L);
                count_elsewhere(counter, group);
                look_up(group, n % 4 == 0);
            }
            done.fetch_add(1, std::memory_order_release);
        });
    while (done.load(std::memory_order_acquire) != threads)
        std::this_thread::yield();
    CHECK_EQ(counter.read(), 100 + 11UL * threads * updates); // before the joins: the release is enough
    for (auto &worker : workers)
        worker.join();
    uint64_t values[cache_SLOTS];
    CHECK_EQ(statctr_group_fold(&group, values, cache_SLOTS), 0);
    CHECK_EQ(values[cache_hits], threads * updates * 5 / 4);
    CHECK_EQ(values[cache_misses], threads * updates * 3 / 4);
    CHECK_EQ(values[cache_nanos], 50 * threads * updates);
    CHECK_EQ(values[cache_evicted], 0);
    CHECK_EQ(statctr_group_cleanup(&group), 0);
    CHECK_EQ(statctr_inc(nullptr), -EINVAL);
    return 0;
}
