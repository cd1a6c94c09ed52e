// Order gateway of an exchange: orders are checked against the limits of the instrument, while the feed of another
// venue moves the reference price that the surveillance looks at.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace exchange {

enum class Reject : std::uint8_t { None, Tick, Band, Size, Halted };

struct Order {
    std::int64_t price;
    std::int32_t quantity;
    std::int32_t account;
};

struct Tick {
    std::int32_t move;
    std::int32_t size;
};

class alignas(64) Instrument {
public:
    Instrument(std::int64_t tick, std::int64_t low, std::int64_t high, std::int32_t most)
        : tickSize_(tick), bandLow_(low), bandHigh_(high), maxQuantity_(most), halted_(false)
    {
    }

    // Called by the order threads for each order.
    __attribute__((noinline)) Reject check(const Order &o) const
    {
        if (halted_)
            return Reject::Halted;
        if (o.quantity <= 0 || o.quantity > maxQuantity_)
            return Reject::Size;
        if (o.price < bandLow_ || o.price > bandHigh_)
            return Reject::Band;
        return (o.price & (tickSize_ - 1)) ? Reject::Tick : Reject::None;
    }

    // Called by the feed thread for each trade of the other venue.
    __attribute__((noinline)) void onTrade(const Tick &t)
    {
        reference_.store(reference_.load(std::memory_order_relaxed) + t.move, std::memory_order_relaxed);
        turnover_.store(turnover_.load(std::memory_order_relaxed) + static_cast<std::uint64_t>(t.size),
                        std::memory_order_release);
    }

    std::int64_t reference() const { return reference_.load(std::memory_order_relaxed); }
    std::uint64_t turnover() const { return turnover_.load(std::memory_order_acquire); }

private:
    std::int64_t tickSize_;
    std::int64_t bandLow_;
    std::int64_t bandHigh_;
    std::int32_t maxQuantity_;
    bool halted_;
    std::atomic<std::int64_t> reference_{0};
    std::atomic<std::uint64_t> turnover_{0};
};

class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed * 2 + 1) {}
    std::uint32_t next()
    {
        state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
        return static_cast<std::uint32_t>(state_ >> 33);
    }

private:
    std::uint64_t state_;
};

std::vector<Order> makeOrders(std::size_t count, std::uint64_t seed)
{
    Random random(seed);
    std::vector<Order> orders;
    orders.reserve(count);
    for (std::size_t i = 0; i < count; i++) {
        Order o;
        o.price = 9000 + random.next() % 2200;
        if (random.next() % 8 != 0)
            o.price &= ~std::int64_t{3};
        o.quantity = static_cast<std::int32_t>(random.next() % 1100);
        o.account = static_cast<std::int32_t>(random.next() % 500);
        orders.push_back(o);
    }
    return orders;
}

std::vector<Tick> makeTicks(std::size_t count, std::uint64_t seed)
{
    Random random(seed);
    std::vector<Tick> ticks(count);
    for (auto &t : ticks) {
        t.move = static_cast<std::int32_t>(random.next() % 9) - 4;
        t.size = static_cast<std::int32_t>(random.next() % 200) + 1;
    }
    return ticks;
}

struct Outcome {
    std::uint64_t accepted = 0;
    std::uint64_t rejected = 0;
    std::uint64_t shares = 0;
};

class OrderThread {
public:
    OrderThread(const Instrument &instrument, std::vector<Order> orders, unsigned rounds)
        : instrument_(instrument), orders_(std::move(orders)), rounds_(rounds)
    {
    }

    void operator()(Outcome &result) const
    {
        Outcome local;
        for (unsigned r = 0; r < rounds_; r++)
            for (const Order &o : orders_) {
                if (instrument_.check(o) == Reject::None) {
                    local.accepted++;
                    local.shares += static_cast<std::uint64_t>(o.quantity);
                } else {
                    local.rejected++;
                }
            }
        result = local;
    }

private:
    const Instrument &instrument_;
    std::vector<Order> orders_;
    unsigned rounds_;
};

void feed(Instrument &instrument, const std::vector<Tick> &ticks, unsigned rounds)
{
    for (unsigned r = 0; r < rounds; r++)
        for (const Tick &t : ticks)
            instrument.onTrade(t);
}

} // namespace exchange

int main(int argc, char **argv)
{
    using namespace exchange;
    const unsigned rounds = argc > 1 ? static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10)) : 1000;
    auto instrument = std::make_unique<Instrument>(4, 9200, 11000, 1000);
    const auto ticks = makeTicks(4096, 3);
    const OrderThread orders(*instrument, makeOrders(4096, 8), rounds);

    Outcome outcome;
    std::thread feeder(feed, std::ref(*instrument), std::cref(ticks), rounds);
    std::thread checker(orders, std::ref(outcome));
    checker.join();
    feeder.join();

    std::printf("accepted %llu (%llu shares), rejected %llu; reference %lld, turnover %llu\n",
                static_cast<unsigned long long>(outcome.accepted), static_cast<unsigned long long>(outcome.shares),
                static_cast<unsigned long long>(outcome.rejected), static_cast<long long>(instrument->reference()),
                static_cast<unsigned long long>(instrument->turnover()));
    return 0;
}
