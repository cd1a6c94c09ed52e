// Prices a path-dependent option by simulation. Each worker draws from a generator and a path of its own.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <thread>
#include <utility>
#include <vector>

// xorshift128+, seeded by splitmix64.
class Generator {
public:
    explicit Generator(std::uint64_t seed)
    {
        a_ = split(seed);
        b_ = split(seed);
    }

    __attribute__((noinline)) std::uint64_t draw()
    {
        std::uint64_t x = a_;
        const std::uint64_t y = b_;
        a_ = y;
        x ^= x << 23;
        b_ = x ^ y ^ (x >> 17) ^ (y >> 26);
        return b_ + y;
    }

private:
    static std::uint64_t split(std::uint64_t &s)
    {
        std::uint64_t z = (s += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }

    std::uint64_t a_;
    std::uint64_t b_;
};

// Objects that live as long as the program, one after the other.
class Pool {
public:
    explicit Pool(std::size_t bytes) : memory_(static_cast<char *>(std::aligned_alloc(64, bytes))), end_(bytes)
    {
        if (!memory_)
            throw std::bad_alloc();
    }
    ~Pool() { std::free(memory_); }
    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;

    template <class T, class... Args> T *make(Args &&...args)
    {
        used_ = (used_ + alignof(T) - 1) / alignof(T) * alignof(T);
        if (used_ + sizeof(T) > end_)
            throw std::bad_alloc();
        T *object = new (memory_ + used_) T(std::forward<Args>(args)...);
        used_ += sizeof(T);
        return object;
    }

private:
    char *memory_;
    std::size_t used_ = 0;
    std::size_t end_;
};

struct Market {
    double spot;
    double drift;
    double volatility;
    unsigned steps;
};

struct Contract {
    double strike;
    double barrier;
};

struct Estimate {
    std::uint64_t paths = 0;
    std::uint64_t knockedOut = 0;
    double sum = 0;
    double squares = 0;

    void add(double payoff)
    {
        paths++;
        sum += payoff;
        squares += payoff * payoff;
    }

    void merge(const Estimate &o)
    {
        paths += o.paths;
        knockedOut += o.knockedOut;
        sum += o.sum;
        squares += o.squares;
    }

    double mean() const { return sum / static_cast<double>(paths); }
    double error() const
    {
        const double m = mean();
        return std::sqrt((squares / static_cast<double>(paths) - m * m) / static_cast<double>(paths));
    }
};

class Simulation {
public:
    Simulation(Pool &pool, const Market &market, const Contract &contract, unsigned workers)
        : market_(market), contract_(contract)
    {
        for (unsigned i = 0; i < workers; i++)
            generators_.push_back(pool.make<Generator>(1000 + i));
    }

    Estimate run(std::uint64_t paths)
    {
        std::vector<Estimate> estimates(generators_.size());
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < generators_.size(); i++)
            threads.emplace_back([this, i, paths, &estimates] {
                estimates[i] = work(*generators_[i], paths);
            });
        for (auto &t : threads)
            t.join();
        Estimate total;
        for (const auto &e : estimates)
            total.merge(e);
        return total;
    }

private:
    // The sum of four bytes is near enough to a normal variate here.
    static double normal(std::uint64_t r)
    {
        const int s = static_cast<int>(r & 255) + static_cast<int>(r >> 8 & 255) + static_cast<int>(r >> 16 & 255) +
                      static_cast<int>(r >> 24 & 255);
        return (s - 510) * (1.0 / 147.8);
    }

    Estimate work(Generator &g, std::uint64_t paths) const
    {
        Estimate e;
        const double step = market_.volatility / std::sqrt(static_cast<double>(market_.steps));
        const double growth = 1.0 + market_.drift / market_.steps;
        for (std::uint64_t p = 0; p < paths; p++) {
            double price = market_.spot;
            bool out = false;
            for (unsigned s = 0; s < market_.steps; s++) {
                price *= growth + step * normal(g.draw());
                out |= price > contract_.barrier;
            }
            if (out)
                e.knockedOut++;
            e.add(!out && price > contract_.strike ? price - contract_.strike : 0.0);
        }
        return e;
    }

    Market market_;
    Contract contract_;
    std::vector<Generator *> generators_;
};

int main(int argc, char **argv)
{
    const std::uint64_t paths = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 30000;
    const unsigned workers = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 2;
    if (workers == 0 || workers > 4)
        return 2;
    Pool pool(4096);
    Simulation simulation(pool, {100.0, 0.03, 0.2, 64}, {105.0, 150.0}, workers);
    const Estimate e = simulation.run(paths);
    std::printf("%llu paths, %llu knocked out: %.5f +- %.5f\n", static_cast<unsigned long long>(e.paths),
                static_cast<unsigned long long>(e.knockedOut), e.mean(), e.error());
    return 0;
}
