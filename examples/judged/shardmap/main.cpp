// A map in shards; requests are routed so that a thread serves its own shard, strangers only rarely.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

constexpr unsigned kShards = 4;
constexpr std::uint32_t kSlots = 1024;

struct Slot {
    std::uint64_t key;
    std::uint64_t value;
};

struct Shard {
    std::atomic<std::uint32_t> lock{0};
    std::uint32_t used = 0;
    std::uint64_t probes = 0;
    std::uint64_t updates = 0;
    Slot *slots = nullptr;
};

class ShardMap {
public:
    ShardMap()
    {
        for (auto &s : shards_)
            s.slots = static_cast<Slot *>(std::aligned_alloc(64, kSlots * sizeof(Slot)));
        for (auto &s : shards_)
            for (std::uint32_t i = 0; i < kSlots; i++)
                s.slots[i] = Slot{0, 0};
    }
    ~ShardMap()
    {
        for (auto &s : shards_)
            std::free(s.slots);
    }
    void add(std::uint64_t key, std::uint64_t by)
    {
        Shard &s = shards_[key % kShards];
        while (s.lock.exchange(1, std::memory_order_acquire))
            std::this_thread::yield();
        std::uint32_t i = static_cast<std::uint32_t>(key * 0x9e3779b97f4a7c15ull >> 40) % kSlots;
        while (s.slots[i].key != 0 && s.slots[i].key != key) {
            s.probes++;
            i = (i + 1) % kSlots;
        }
        if (s.slots[i].key == 0) {
            s.slots[i].key = key;
            s.used++;
        }
        s.slots[i].value += by;
        s.updates++;
        s.lock.store(0, std::memory_order_release);
    }
    void report() const
    {
        std::uint64_t used = 0, updates = 0, sum = 0;
        for (auto &s : shards_) {
            used += s.used;
            updates += s.updates;
            for (std::uint32_t i = 0; i < kSlots; i++)
                sum += s.slots[i].value;
        }
        std::printf("%llu keys, %llu updates, sum %llu\n", (unsigned long long)used, (unsigned long long)updates,
                    (unsigned long long)sum);
    }

private:
    alignas(64) Shard shards_[kShards];
};

static void serve(ShardMap &map, unsigned me, std::uint64_t n)
{
    std::uint64_t x = 1000 + me;
    for (std::uint64_t i = 0; i < n; i++) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        std::uint64_t key = ((x >> 33) % 500 + 1) * kShards;
        unsigned shard = (i & 1023) == 1023 ? static_cast<unsigned>(x >> 50) % kShards : me;
        map.add(key + shard, 1 + (x >> 60));
    }
}

int main(int argc, char **argv)
{
    std::uint64_t n = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10000;
    auto map = std::make_unique<ShardMap>();
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kShards; i++)
        threads.emplace_back(serve, std::ref(*map), i, n);
    for (auto &t : threads)
        t.join();
    map->report();
    return 0;
}
