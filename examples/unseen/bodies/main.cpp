// Broad phase of a physics engine. What each step needs of a body is on its first line; what scripts and the debugger
// look at now and then comes after.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace physics {

struct Vec3 {
    float x, y, z;

    Vec3 operator+(const Vec3 &o) const { return {x + o.x, y + o.y, z + o.z}; }
    Vec3 operator*(float f) const { return {x * f, y * f, z * f}; }
};

struct alignas(64) Body {
    // Every step.
    Vec3 position;
    Vec3 velocity;
    Vec3 acceleration;
    float radius;
    float damping;
    std::uint32_t flags;
    std::uint32_t cell;

    // Seldom.
    char name[32];
    float orientation[9];
    float inertia[9];
    std::uint64_t scriptHandle;
    std::uint64_t created;
    char material[32];
    std::uint32_t collisionMask;
    std::uint32_t group;
};

enum Flags : std::uint32_t { Sleeping = 1, Static = 2 };

class World {
public:
    explicit World(std::uint32_t count) : count_(count)
    {
        bodies_ = static_cast<Body *>(std::aligned_alloc(64, sizeof(Body) * count));
        if (!bodies_)
            throw std::bad_alloc();
        std::uint32_t state = 1;
        for (std::uint32_t i = 0; i < count; i++)
            spawn(i, state);
    }

    ~World() { std::free(bodies_); }
    World(const World &) = delete;
    World &operator=(const World &) = delete;

    std::uint32_t count() const { return count_; }

    std::uint32_t integrate(const std::vector<std::uint32_t> &active, float dt)
    {
        std::uint32_t crossed = 0;
        for (std::uint32_t i : active)
            crossed += move(bodies_[i], dt);
        return crossed;
    }

    const Body &body(std::uint32_t i) const { return bodies_[i]; }

private:
    static std::uint32_t cellOf(const Vec3 &p)
    {
        const auto x = static_cast<std::int32_t>(p.x * 0.25f) & 63;
        const auto y = static_cast<std::int32_t>(p.y * 0.25f) & 63;
        const auto z = static_cast<std::int32_t>(p.z * 0.25f) & 63;
        return static_cast<std::uint32_t>(x | y << 6 | z << 12);
    }

    __attribute__((noinline)) static std::uint32_t move(Body &b, float dt)
    {
        if (b.flags & (Sleeping | Static))
            return 0;
        b.velocity = (b.velocity + b.acceleration * dt) * b.damping;
        b.position = b.position + b.velocity * dt;
        if (b.position.z < b.radius) {
            b.position.z = b.radius;
            b.velocity.z = -b.velocity.z;
        }
        const std::uint32_t cell = cellOf(b.position);
        const bool changed = cell != b.cell;
        b.cell = cell;
        return changed;
    }

    static float unit(std::uint32_t &state)
    {
        state = state * 1664525u + 1013904223u;
        return static_cast<float>(state >> 8) / 16777216.0f;
    }

    void spawn(std::uint32_t i, std::uint32_t &state)
    {
        Body *b = new (bodies_ + i) Body{};
        b->position = {unit(state) * 250.0f, unit(state) * 250.0f, unit(state) * 100.0f};
        b->velocity = {unit(state) - 0.5f, unit(state) - 0.5f, 0.0f};
        b->acceleration = {0.0f, 0.0f, -9.81f};
        b->radius = 0.25f + unit(state);
        b->damping = 0.999f;
        b->flags = i % 37 == 0 ? Static : 0u;
        b->cell = cellOf(b->position);
        std::snprintf(b->name, sizeof b->name, "body-%u", i);
        std::strcpy(b->material, "stone");
        b->orientation[0] = b->orientation[4] = b->orientation[8] = 1.0f;
        b->created = i;
        b->collisionMask = ~0u;
    }

    Body *bodies_ = nullptr;
    std::uint32_t count_;
};

// The active bodies of an island in the order in which they woke up.
std::vector<std::uint32_t> makeIsland(std::uint32_t count, std::uint32_t islands, std::uint32_t which)
{
    std::vector<std::uint32_t> order;
    order.reserve(count / islands + 1);
    for (std::uint32_t i = which; i < count; i += islands)
        order.push_back(i);
    std::uint32_t state = which + 11;
    for (std::size_t i = order.size() - 1; i > 0; i--) {
        state = state * 1664525u + 1013904223u;
        std::swap(order[i], order[(state >> 4) % (i + 1)]);
    }
    return order;
}

} // namespace physics

int main(int argc, char **argv)
{
    const int steps = argc > 1 ? std::atoi(argv[1]) : 10;
    const std::uint32_t count = argc > 2 ? static_cast<std::uint32_t>(std::atoi(argv[2])) : 80000;
    auto world = std::make_unique<physics::World>(count);
    std::uint64_t crossings[2] = {0, 0};
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 2; t++)
        threads.emplace_back([&world, &crossings, t, steps, count] {
            const auto island = physics::makeIsland(count, 2, t);
            std::uint64_t crossed = 0;
            for (int s = 0; s < steps; s++)
                crossed += world->integrate(island, 1.0f / 60.0f);
            crossings[t] = crossed;
        });
    for (auto &t : threads)
        t.join();

    double height = 0;
    for (std::uint32_t i = 0; i < world->count(); i += 50)
        height += static_cast<double>(world->body(i).position.z);
    std::printf("%u bodies, %d steps, %llu crossings, height %.3f, first %s\n", world->count(), steps,
                static_cast<unsigned long long>(crossings[0] + crossings[1]), height, world->body(0).name);
    return 0;
}
