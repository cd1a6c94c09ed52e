// Geolocation of addresses: a radix trie built once, looked up by all workers; each counts on a line of its own.
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NODES 65536
#define COUNTRIES 60
#define WORKERS 3

struct node {
    uint32_t child[4];
    uint16_t country;
    uint16_t depth;
    uint32_t asn;
};

struct trie {
    struct node *nodes;
    uint32_t used;
};

struct counters {
    _Atomic uint64_t lookups;
    _Atomic uint64_t unknown;
    _Atomic uint64_t steps;
    uint8_t pad[128 - 24];
};

struct worker {
    pthread_t thread;
    const struct trie *trie;
    uint64_t seed;
    unsigned long requests;
    unsigned id;
};

static struct counters counters[WORKERS] __attribute__((aligned(128)));
static uint16_t country_weight[COUNTRIES];

// Only the owner writes these; the reporter reads them.
static void count(_Atomic uint64_t *c, uint64_t by)
{
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + by, memory_order_relaxed);
}

static uint32_t new_node(struct trie *t, uint16_t depth)
{
    if (t->used == MAX_NODES) {
        fputs("trie is full\n", stderr);
        exit(1);
    }
    struct node *n = &t->nodes[t->used];
    memset(n, 0, sizeof *n);
    n->depth = depth;
    return t->used++;
}

static void insert(struct trie *t, uint32_t prefix, unsigned length, uint16_t country, uint32_t asn)
{
    uint32_t at = 0;
    for (unsigned bits = 0; bits < length; bits += 2) {
        unsigned k = prefix >> (30 - bits) & 3;
        if (t->nodes[at].child[k] == 0) {
            uint32_t made = new_node(t, (uint16_t)(bits + 2));
            t->nodes[at].child[k] = made;
        }
        at = t->nodes[at].child[k];
    }
    t->nodes[at].country = country;
    t->nodes[at].asn = asn;
}

__attribute__((noinline)) static uint16_t locate(const struct trie *t, uint32_t address, struct counters *c)
{
    uint16_t country = 0;
    uint32_t at = 0;
    unsigned shift = 30, steps = 0;
    do {
        at = t->nodes[at].child[address >> shift & 3];
        if (t->nodes[at].country)
            country = t->nodes[at].country;
        shift -= 2;
        steps++;
    } while (at != 0 && shift < 32);
    count(&c->lookups, 1);
    count(&c->steps, steps);
    if (!country)
        count(&c->unknown, 1);
    return country;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct counters *c = &counters[w->id];
    uint64_t x = w->seed, weight = 0;
    for (unsigned long i = 0; i < w->requests; i++) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        uint16_t country = locate(w->trie, (uint32_t)(x >> 32), c);
        weight += country_weight[country];
    }
    w->seed = weight;
    return NULL;
}

static uint64_t sum_of(size_t offset)
{
    uint64_t sum = 0;
    for (int i = 0; i < WORKERS; i++)
        sum += atomic_load((_Atomic uint64_t *)((char *)&counters[i] + offset));
    return sum;
}

int main(int argc, char **argv)
{
    unsigned long requests = argc > 1 ? strtoul(argv[1], NULL, 10) : 500000;
    struct trie trie = {aligned_alloc(64, MAX_NODES * sizeof(struct node)), 0};
    if (!trie.nodes)
        return 1;
    new_node(&trie, 0);
    uint32_t state = 4242;
    for (int i = 0; i < 6000; i++) {
        state = state * 1664525u + 1013904223u;
        unsigned length = 6 + (state >> 28) % 5 * 2;
        insert(&trie, state << 1 & ~((1u << (32 - length)) - 1), length, (uint16_t)(1 + (state >> 12) % (COUNTRIES - 1)),
               state >> 16);
    }
    for (int i = 0; i < COUNTRIES; i++)
        country_weight[i] = (uint16_t)(i * 7 % 50);

    struct worker workers[WORKERS];
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.trie = &trie, .seed = 100 + i, .requests = requests, .id = i};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            return 1;
    }
    uint64_t weight = 0;
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        weight += workers[i].seed;
    }
    printf("%u nodes: %llu lookups, %llu steps, %llu unknown, weight %llu\n", trie.used,
           (unsigned long long)sum_of(offsetof(struct counters, lookups)),
           (unsigned long long)sum_of(offsetof(struct counters, steps)),
           (unsigned long long)sum_of(offsetof(struct counters, unknown)), (unsigned long long)weight);
    free(trie.nodes);
    return 0;
}
