// Image pipeline: a loader makes tiles, two filters blur them, a writer sums them up. Queues hand over batches.
#include <array>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

constexpr int kSide = 16;
constexpr std::size_t kBatch = 8;

struct Tile {
    std::uint32_t number;
    std::array<std::uint8_t, kSide * kSide> pixels;
};

using Batch = std::vector<Tile>;

// A bounded queue; all of it is under its lock.
class BatchQueue {
public:
    BatchQueue(std::size_t limit, int producers) : limit_(limit), producers_(producers) {}

    void push(Batch batch)
    {
        std::unique_lock<std::mutex> hold(mutex_);
        room_.wait(hold, [this] { return batches_.size() < limit_; });
        pushed_++;
        tiles_ += batch.size();
        batches_.push_back(std::move(batch));
        if (batches_.size() > deepest_)
            deepest_ = batches_.size();
        hold.unlock();
        filled_.notify_one();
    }

    std::optional<Batch> pop()
    {
        std::unique_lock<std::mutex> hold(mutex_);
        filled_.wait(hold, [this] { return !batches_.empty() || producers_ == 0; });
        if (batches_.empty())
            return std::nullopt;
        Batch batch = std::move(batches_.front());
        batches_.pop_front();
        hold.unlock();
        room_.notify_one();
        return batch;
    }

    void close()
    {
        std::lock_guard<std::mutex> hold(mutex_);
        if (--producers_ == 0)
            filled_.notify_all();
    }

    std::uint64_t tiles()
    {
        std::lock_guard<std::mutex> hold(mutex_);
        return tiles_;
    }

    bool withinLimit()
    {
        std::lock_guard<std::mutex> hold(mutex_);
        return deepest_ <= limit_ && pushed_ > 0;
    }

private:
    std::mutex mutex_;
    std::condition_variable room_;
    std::condition_variable filled_;
    std::deque<Batch> batches_;
    std::size_t limit_;
    int producers_;
    std::uint64_t pushed_ = 0;
    std::uint64_t tiles_ = 0;
    std::size_t deepest_ = 0;
};

static Tile loadTile(std::uint32_t number)
{
    Tile t;
    t.number = number;
    std::uint32_t x = number * 2654435761u + 99;
    for (auto &p : t.pixels) {
        x = x * 1664525u + 1013904223u;
        p = static_cast<std::uint8_t>(x >> 24);
    }
    return t;
}

static void load(std::uint32_t tiles, BatchQueue &out)
{
    for (std::uint32_t n = 0; n < tiles;) {
        Batch batch;
        batch.reserve(kBatch);
        for (std::size_t k = 0; k < kBatch && n < tiles; k++)
            batch.push_back(loadTile(n++));
        out.push(std::move(batch));
    }
    out.close();
}

static void blur(Tile &t)
{
    std::array<std::uint8_t, kSide * kSide> to;
    for (int y = 0; y < kSide; y++)
        for (int x = 0; x < kSide; x++) {
            unsigned sum = 0, n = 0;
            for (int dy = -1; dy <= 1; dy++)
                for (int dx = -1; dx <= 1; dx++) {
                    const int u = x + dx, v = y + dy;
                    if (u >= 0 && u < kSide && v >= 0 && v < kSide) {
                        sum += t.pixels[static_cast<std::size_t>(v * kSide + u)];
                        n++;
                    }
                }
            to[static_cast<std::size_t>(y * kSide + x)] = static_cast<std::uint8_t>(sum / n);
        }
    t.pixels = to;
}

// Each filter notes at its start how it is set up; this is read after it has ended.
struct FilterSetup {
    std::uint32_t passes;
    std::uint32_t id;
};

static void filter(BatchQueue &in, BatchQueue &out, FilterSetup &setup, std::uint32_t id)
{
    setup.id = id;
    setup.passes = 1;
    while (auto batch = in.pop()) {
        for (auto &t : *batch)
            blur(t);
        out.push(std::move(*batch));
    }
    out.close();
}

static std::uint64_t write(BatchQueue &in)
{
    std::uint64_t digest = 0;
    while (auto batch = in.pop())
        for (const auto &t : *batch) {
            std::uint64_t sum = t.number;
            for (auto p : t.pixels)
                sum = sum * 131 + p;
            digest += sum ^ sum >> 29;
        }
    return digest;
}

int main(int argc, char **argv)
{
    const auto tiles = argc > 1 ? static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 10)) : 30000u;
    auto loaded = std::make_unique<BatchQueue>(16, 1);
    auto blurred = std::make_unique<BatchQueue>(16, 2);
    std::vector<FilterSetup> setups(2);
    std::uint64_t digest = 0;

    std::thread loader(load, tiles, std::ref(*loaded));
    std::vector<std::thread> filters;
    for (std::uint32_t i = 0; i < 2; i++)
        filters.emplace_back(filter, std::ref(*loaded), std::ref(*blurred), std::ref(setups[i]), i + 1);
    std::thread writer([&] { digest = write(*blurred); });
    loader.join();
    for (auto &f : filters)
        f.join();
    writer.join();

    const auto passes = std::accumulate(setups.begin(), setups.end(), 0u,
                                        [](unsigned n, const FilterSetup &s) { return n + s.passes * s.id; });
    std::printf("%llu tiles, digest %016llx, setup %u, queues %s\n", static_cast<unsigned long long>(blurred->tiles()),
                static_cast<unsigned long long>(digest), passes,
                loaded->withinLimit() && blurred->withinLimit() ? "kept" : "overrun");
    return 0;
}
