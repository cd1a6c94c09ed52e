// Route look-ups by two forwarding threads while a control thread queues changes.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUTES 1024u
#define PENDING 128u

struct route {
    uint32_t prefix;
    uint32_t hop;
};

struct router {
    const struct route *routes;
    uint32_t mask;
    uint32_t default_hop;
    atomic_flag lock;
    uint32_t pending_count;
    uint64_t changes;
    uint32_t *pending;
    uint64_t reserved[2];
};

struct forwarder {
    struct router *router;
    uint64_t packets;
    uint64_t seed;
    uint64_t hops;
};

static void lock(struct router *r)
{
    while (atomic_flag_test_and_set_explicit(&r->lock, memory_order_acquire))
        __builtin_ia32_pause();
}

static void unlock(struct router *r)
{
    atomic_flag_clear_explicit(&r->lock, memory_order_release);
}

static void router_change(struct router *r, uint32_t prefix)
{
    lock(r);
    r->pending[r->pending_count] = prefix;
    r->pending_count = (r->pending_count + 1) % PENDING;
    r->changes++;
    unlock(r);
}

__attribute__((noinline)) static uint32_t router_lookup(const struct router *r, uint32_t address)
{
    const struct route *e = &r->routes[(address >> 8) & r->mask];
    return e->prefix == address >> 8 ? e->hop : r->default_hop;
}

static void *forward(void *arg)
{
    struct forwarder *f = arg;
    uint64_t x = f->seed, hops = 0;
    for (uint64_t i = 0; i < f->packets; i++) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        uint32_t address = (uint32_t)(x >> 33) & 0xfffff;
        hops += router_lookup(f->router, address);
        if ((i & 511) == 511)
            router_change(f->router, address >> 8);
    }
    f->hops = hops;
    return NULL;
}

static void *control(void *arg)
{
    struct forwarder *f = arg;
    uint32_t x = 5;
    for (uint64_t i = 0; i < f->packets; i++) {
        for (int k = 0; k < 6; k++)
            x = x * 1664525u + 1013904223u;
        router_change(f->router, x >> 20);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000;
    struct route *routes = malloc(ROUTES * sizeof *routes);
    for (uint32_t i = 0; i < ROUTES; i++)
        routes[i] = (struct route){i * 3 % 4096, i % 16};
    struct router *r = aligned_alloc(64, sizeof *r);
    uint32_t *pending = calloc(PENDING, sizeof *pending);
    if (!r || !pending)
        abort();
    *r = (struct router){.routes = routes, .mask = ROUTES - 1, .default_hop = 99, .pending = pending};
    struct forwarder f[3] = {{r, n, 1, 0}, {r, n, 2, 0}, {r, n / 2, 3, 0}};
    pthread_t t[3];
    pthread_create(&t[0], NULL, forward, &f[0]);
    pthread_create(&t[1], NULL, forward, &f[1]);
    pthread_create(&t[2], NULL, control, &f[2]);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    printf("hops %llu %llu, changes %llu\n", (unsigned long long)f[0].hops, (unsigned long long)f[1].hops,
           (unsigned long long)r->changes);
    free(pending);
    free(routes);
    free(r);
    return 0;
}
