// Steps of a simulation of particles in a box, visited in the order of their cells.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

constexpr std::uint32_t kBodies = 16384;

struct alignas(64) Body {
    double x = 0, y = 0;
    char name[48] = {};
    double colour[4] = {};
    double initial_x = 0, initial_y = 0;
    double vx = 0, vy = 0;
    std::uint64_t history[10] = {};
    double charge = 0;
    double temperature = 0;
    double mesh[6] = {};
    double inverse_mass = 1;
    std::uint64_t collisions = 0;
    std::uint64_t material[5] = {};
};

struct World {
    std::vector<Body> bodies;
    std::vector<std::uint32_t> order;
    double dt = 0.01;

    World() : bodies(kBodies), order(kBodies)
    {
        std::uint32_t r = 1;
        for (std::uint32_t i = 0; i < kBodies; i++) {
            Body &b = bodies[i];
            r = r * 1664525u + 1013904223u;
            b.x = b.initial_x = (r >> 8) / 16777216.0;
            r = r * 1664525u + 1013904223u;
            b.y = b.initial_y = (r >> 8) / 16777216.0;
            b.vx = (static_cast<double>(i % 17) - 8) / 4;
            b.vy = (static_cast<double>(i % 13) - 6) / 4;
            b.inverse_mass = 1.0 / (1 + i % 5);
            std::snprintf(b.name, sizeof b.name, "body%u", i);
            order[i] = i;
        }
        // Each half is shuffled for itself, a thread has one.
        for (std::uint32_t half = 0; half < 2; half++)
            for (std::uint32_t i = kBodies / 2 - 1; i > 0; i--) {
                r = r * 1664525u + 1013904223u;
                std::swap(order[half * kBodies / 2 + i], order[half * kBodies / 2 + (r >> 4) % (i + 1)]);
            }
    }
};

static inline void advance(Body &b, double dt, double gravity)
{
    b.vy -= gravity * b.inverse_mass * dt;
    b.x += b.vx * dt;
    b.y += b.vy * dt;
    if (b.x < 0 || b.x > 1) {
        b.vx = -b.vx;
        b.collisions++;
    }
    if (b.y < 0 || b.y > 1) {
        b.vy = -b.vy;
        b.collisions++;
    }
}

static void simulate(World &w, std::uint32_t first, std::uint32_t last, unsigned steps)
{
    for (unsigned s = 0; s < steps; s++)
        for (std::uint32_t i = first; i < last; i++)
            advance(w.bodies[w.order[i]], w.dt, 9.81);
}

int main(int argc, char **argv)
{
    unsigned steps = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 5;
    World world;
    std::thread other(simulate, std::ref(world), kBodies / 2, kBodies, steps);
    simulate(world, 0, kBodies / 2, steps);
    other.join();
    double energy = 0;
    std::uint64_t collisions = 0;
    for (const Body &b : world.bodies) {
        energy += (b.vx * b.vx + b.vy * b.vy) / b.inverse_mass / 2;
        collisions += b.collisions;
    }
    std::printf("energy %.3f, %llu collisions\n", energy, (unsigned long long)collisions);
    return 0;
}
