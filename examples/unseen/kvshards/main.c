// A key-value store in memory, split into shards; each shard has its lock and its table on lines of its own.
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARD_BITS 6
#define SHARDS (1u << SHARD_BITS)
#define CLIENTS 3

struct slot {
    uint64_t key; // 0: free
    uint64_t value;
};

struct shard {
    pthread_mutex_t lock;
    uint32_t used;
    uint32_t capacity;
    struct slot *slots;
    uint64_t gets;
    uint64_t hits;
    uint64_t sets;
} __attribute__((aligned(64)));

struct store {
    struct shard shards[SHARDS];
};

struct client {
    pthread_t thread;
    struct store *store;
    uint64_t seed;
    unsigned long operations;
    uint64_t found;
};

static uint64_t scramble(uint64_t k)
{
    k ^= k >> 33;
    k *= 0xff51afd7ed558ccdull;
    k ^= k >> 33;
    k *= 0xc4ceb9fe1a85ec53ull;
    return k ^ k >> 33;
}

static struct slot *new_slots(uint32_t n)
{
    struct slot *s = aligned_alloc(64, n * sizeof *s);
    if (!s) {
        perror("aligned_alloc");
        exit(1);
    }
    memset(s, 0, n * sizeof *s);
    return s;
}

static struct store *store_new(void)
{
    struct store *s = aligned_alloc(64, sizeof *s);
    if (!s)
        exit(1);
    memset(s, 0, sizeof *s);
    for (unsigned i = 0; i < SHARDS; i++) {
        pthread_mutex_init(&s->shards[i].lock, NULL);
        s->shards[i].capacity = 64;
        s->shards[i].slots = new_slots(64);
    }
    return s;
}

static void store_free(struct store *s)
{
    for (unsigned i = 0; i < SHARDS; i++) {
        pthread_mutex_destroy(&s->shards[i].lock);
        free(s->shards[i].slots);
    }
    free(s);
}

static struct slot *probe(struct slot *slots, uint32_t capacity, uint64_t key, uint64_t h)
{
    uint32_t at = (uint32_t)h & (capacity - 1);
    while (slots[at].key != 0 && slots[at].key != key)
        at = (at + 1) & (capacity - 1);
    return &slots[at];
}

// With the lock held.
static void shard_grow(struct shard *sh)
{
    uint32_t capacity = sh->capacity * 2;
    struct slot *slots = new_slots(capacity);
    for (uint32_t i = 0; i < sh->capacity; i++)
        if (sh->slots[i].key != 0)
            *probe(slots, capacity, sh->slots[i].key, scramble(sh->slots[i].key)) = sh->slots[i];
    free(sh->slots);
    sh->slots = slots;
    sh->capacity = capacity;
}

static struct shard *shard_of(struct store *s, uint64_t h)
{
    return &s->shards[h >> (64 - SHARD_BITS)];
}

static bool store_get(struct store *s, uint64_t key, uint64_t *value)
{
    uint64_t h = scramble(key);
    struct shard *sh = shard_of(s, h);
    pthread_mutex_lock(&sh->lock);
    const struct slot *slot = probe(sh->slots, sh->capacity, key, h);
    bool found = slot->key == key;
    if (found)
        *value = slot->value;
    sh->gets++;
    sh->hits += found;
    pthread_mutex_unlock(&sh->lock);
    return found;
}

static void store_add(struct store *s, uint64_t key, uint64_t by)
{
    uint64_t h = scramble(key);
    struct shard *sh = shard_of(s, h);
    pthread_mutex_lock(&sh->lock);
    struct slot *slot = probe(sh->slots, sh->capacity, key, h);
    if (slot->key == 0) {
        if (sh->used * 4 >= sh->capacity * 3) {
            shard_grow(sh);
            slot = probe(sh->slots, sh->capacity, key, h);
        }
        slot->key = key;
        sh->used++;
    }
    slot->value += by;
    sh->sets++;
    pthread_mutex_unlock(&sh->lock);
}

// A request besides the store: a small template is filled in.
static uint64_t render(uint64_t key, uint64_t value)
{
    char text[64];
    size_t n = 0;
    for (uint64_t v = key; v && n < 20; v /= 10)
        text[n++] = (char)('0' + v % 10);
    text[n++] = '=';
    for (uint64_t v = value; v && n < 42; v /= 10)
        text[n++] = (char)('0' + v % 10);
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum = sum * 131 + (uint8_t)text[i];
    return sum;
}

static void *client_main(void *arg)
{
    struct client *c = arg;
    uint64_t x = c->seed, found = 0, rendered = 0;
    for (unsigned long i = 0; i < c->operations; i++) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        uint64_t key = (x >> 34) % 20000 + 1, value = 0;
        if ((x >> 20 & 3) == 0)
            store_add(c->store, key, i & 7);
        else
            found += store_get(c->store, key + (key & 1) * 20000, &value);
        rendered ^= render(key, i);
    }
    c->found = found ? rendered : 0;
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned long operations = argc > 1 ? strtoul(argv[1], NULL, 10) : 200000;
    struct store *store = store_new();
    struct client clients[CLIENTS];
    for (unsigned i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.store = store, .seed = i * 1000 + 1, .operations = operations};
        if (pthread_create(&clients[i].thread, NULL, client_main, &clients[i]))
            return 1;
    }
    uint64_t digest = 0, gets = 0, sets = 0, values = 0;
    uint32_t used = 0;
    for (unsigned i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        digest ^= clients[i].found;
    }
    for (unsigned i = 0; i < SHARDS; i++) {
        const struct shard *sh = &store->shards[i];
        gets += sh->gets;
        sets += sh->sets;
        used += sh->used;
        for (uint32_t k = 0; k < sh->capacity; k++)
            values += sh->slots[k].value;
    }
    printf("%u keys, %llu gets, %llu sets, sum %llu, digest %llx\n", used, (unsigned long long)gets,
           (unsigned long long)sets, (unsigned long long)values, (unsigned long long)digest);
    store_free(store);
    return 0;
}
