// A cache of pages that is filled once and then read by several threads, with hit statistics.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

struct Page {
    std::uint64_t id;
    std::uint64_t body[7];
};

struct CacheStats {
    std::atomic<std::uint64_t> hits{0};
    std::atomic<std::uint64_t> misses{0};
    std::atomic<std::uint64_t> bytes_read{0};
};

class alignas(64) PageCache {
public:
    explicit PageCache(std::uint64_t pages) : table_(pages), mask_(pages - 1)
    {
        for (std::uint64_t i = 0; i < pages; i++) {
            table_[i].id = i % 8 == 7 ? ~0ull : i;
            for (int k = 0; k < 7; k++)
                table_[i].body[k] = i * 7 + k;
        }
    }

    bool read(std::uint64_t id, std::uint64_t &value)
    {
        const Page &p = table_[id & mask_];
        if (p.id != id) {
            stats_.misses.fetch_add(1, std::memory_order_relaxed);
            return false;
        }
        value = p.body[id % 7];
        stats_.hits.fetch_add(1, std::memory_order_relaxed);
        stats_.bytes_read.fetch_add(sizeof value, std::memory_order_relaxed);
        return true;
    }

    const CacheStats &stats() const { return stats_; }

private:
    CacheStats stats_;
    alignas(64) std::vector<Page> table_;
    std::uint64_t mask_;
};

static void reader(PageCache &cache, std::uint64_t n, std::uint64_t seed, std::atomic<std::uint64_t> &sum)
{
    std::uint64_t x = seed, local = 0;
    for (std::uint64_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        std::uint64_t value;
        if (cache.read(x >> 11 & 511, value))
            local += value;
        else
            local ^= x & 255;
    }
    sum.fetch_add(local);
}

int main(int argc, char **argv)
{
    std::uint64_t n = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 15000;
    auto cache = std::make_unique<PageCache>(512);
    std::atomic<std::uint64_t> sum{0};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 3; i++)
        threads.emplace_back(reader, std::ref(*cache), n, 1234567 + i * 7919, std::ref(sum));
    for (auto &t : threads)
        t.join();
    const CacheStats &s = cache->stats();
    std::printf("%llu hits, %llu misses, %llu bytes, sum %llu\n", (unsigned long long)s.hits.load(),
                (unsigned long long)s.misses.load(), (unsigned long long)s.bytes_read.load(),
                (unsigned long long)sum.load());
    return 0;
}
