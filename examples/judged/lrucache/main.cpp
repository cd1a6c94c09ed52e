// A cache of rendered tiles with eviction of the least recently used, one lock around all of it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

struct Tile {
    std::uint64_t key;
    std::uint64_t checksum;
    std::uint64_t uses;
};

class TileCache {
public:
    explicit TileCache(std::size_t capacity) : capacity_(capacity) { index_.reserve(capacity * 2); }

    std::uint64_t get(std::uint64_t key)
    {
        std::lock_guard<std::mutex> hold(mutex_);
        auto found = index_.find(key);
        if (found != index_.end()) {
            order_.splice(order_.begin(), order_, found->second);
            hits_++;
            found->second->uses++;
            return found->second->checksum;
        }
        misses_++;
        if (order_.size() >= capacity_) {
            index_.erase(order_.back().key);
            order_.pop_back();
        }
        order_.push_front(Tile{key, render(key), 1});
        index_[key] = order_.begin();
        return order_.front().checksum;
    }

    std::uint64_t lookups()
    {
        std::lock_guard<std::mutex> hold(mutex_);
        return hits_ + misses_;
    }

private:
    static std::uint64_t render(std::uint64_t key)
    {
        std::uint64_t h = key;
        for (int i = 0; i < 16; i++)
            h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9ull;
        return h;
    }

    std::mutex mutex_;
    std::uint64_t hits_ = 0;
    std::uint64_t misses_ = 0;
    std::size_t capacity_;
    std::list<Tile> order_;
    std::unordered_map<std::uint64_t, std::list<Tile>::iterator> index_;
};

static void client(TileCache &cache, std::uint64_t requests, std::uint64_t seed, std::uint64_t &sum)
{
    std::uint64_t x = seed, local = 0;
    for (std::uint64_t i = 0; i < requests; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        std::uint64_t zoom = x % 7, spot = (x >> 8) % (64u << zoom >> 2);
        local ^= cache.get(zoom << 32 | spot);
    }
    sum = local;
}

int main(int argc, char **argv)
{
    std::uint64_t n = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 6000;
    TileCache cache(512);
    std::uint64_t sums[2];
    std::vector<std::thread> threads;
    threads.emplace_back(client, std::ref(cache), n, 11, std::ref(sums[0]));
    threads.emplace_back(client, std::ref(cache), n, 29, std::ref(sums[1]));
    for (auto &t : threads)
        t.join();
    std::printf("%llu lookups, sum %llx\n", (unsigned long long)cache.lookups(),
                (unsigned long long)(sums[0] ^ sums[1]));
    return 0;
}
