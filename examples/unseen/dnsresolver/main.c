// An authoritative name server without its sockets: workers decode queries, look names up in a zone and encode answers.
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ZONE_SLOTS = 4096,
    ZONE_NAMES = 2500,
    WORKERS = 2,
    PACKET_MAX = 96,
    SAMPLES = 64,
};

enum rcode { RCODE_OK = 0, RCODE_FORMERR = 1, RCODE_NXDOMAIN = 3 };

struct record {
    char name[20];
    uint32_t hash;
    uint32_t address;
    uint32_t ttl;
};

struct zone {
    struct record slots[ZONE_SLOTS];
    uint32_t serial;
};

struct packet {
    uint16_t length;
    uint8_t data[PACKET_MAX];
};

// What `stats` on the control channel prints.
struct server_stats {
    _Alignas(64) atomic_ulong queries;
};

struct worker {
    pthread_t thread;
    const struct zone *zone;
    struct packet *samples;
    unsigned long rounds;
    uint64_t seed;
    uint64_t digest;
    unsigned long missing;
};

static struct server_stats stats;

static uint32_t hash_name(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 16777619u;
    return h;
}

static void make_name(uint32_t i, char *out)
{
    static const char letters[] = "abcdefghijklmnop";
    size_t n = 0;
    uint32_t x = i * 2654435761u;
    out[n++] = 'h';
    for (int k = 0; k < 4; k++) {
        out[n++] = letters[x & 15];
        x >>= 4;
    }
    out[n] = 0;
}

static void zone_insert(struct zone *z, const char *name, uint32_t address)
{
    uint32_t h = hash_name(name);
    uint32_t at = h % ZONE_SLOTS;
    while (z->slots[at].hash != 0) {
        if (z->slots[at].hash == h && strcmp(z->slots[at].name, name) == 0)
            return;
        at = (at + 1) % ZONE_SLOTS;
    }
    struct record *r = &z->slots[at];
    strcpy(r->name, name);
    r->hash = h;
    r->address = address;
    r->ttl = 300 + address % 600;
}

static const struct record *zone_find(const struct zone *z, const char *name)
{
    uint32_t h = hash_name(name);
    for (uint32_t at = h % ZONE_SLOTS; z->slots[at].hash != 0; at = (at + 1) % ZONE_SLOTS)
        if (z->slots[at].hash == h && strcmp(z->slots[at].name, name) == 0)
            return &z->slots[at];
    return NULL;
}

static void encode_query(struct packet *p, uint16_t id, const char *name)
{
    size_t n = strlen(name);
    memset(p, 0, sizeof *p);
    p->data[0] = (uint8_t)(id >> 8);
    p->data[1] = (uint8_t)id;
    p->data[5] = 1;
    p->data[12] = (uint8_t)n;
    memcpy(p->data + 13, name, n);
    p->data[14 + n + 1] = 1;
    p->data[14 + n + 3] = 1;
    p->length = (uint16_t)(14 + n + 4);
}

static bool decode_question(const struct packet *p, char *name)
{
    if (p->length < 18 || p->data[5] != 1)
        return false;
    size_t n = p->data[12];
    if (n == 0 || n > 19 || 13 + n >= p->length)
        return false;
    memcpy(name, p->data + 13, n);
    name[n] = 0;
    return true;
}

static void put32(uint8_t *to, uint32_t v)
{
    to[0] = (uint8_t)(v >> 24);
    to[1] = (uint8_t)(v >> 16);
    to[2] = (uint8_t)(v >> 8);
    to[3] = (uint8_t)v;
}

__attribute__((noinline)) static enum rcode answer(const struct zone *z, const struct packet *query, uint8_t *reply)
{
    char name[20];
    atomic_fetch_add_explicit(&stats.queries, 1, memory_order_relaxed);
    reply[0] = query->data[0];
    reply[1] = query->data[1];
    reply[2] = 0x84;
    if (!decode_question(query, name)) {
        reply[3] = RCODE_FORMERR;
        return RCODE_FORMERR;
    }
    const struct record *r = zone_find(z, name);
    if (!r) {
        reply[3] = RCODE_NXDOMAIN;
        return RCODE_NXDOMAIN;
    }
    reply[3] = RCODE_OK;
    put32(reply + 4, r->ttl);
    put32(reply + 8, r->address);
    return RCODE_OK;
}

static void *serve(void *arg)
{
    struct worker *w = arg;
    uint8_t reply[16] = {0};
    uint64_t x = w->seed, digest = 0;
    unsigned long missing = 0;
    for (unsigned long i = 0; i < w->rounds; i++) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        enum rcode rc = answer(w->zone, &w->samples[(x >> 40) % SAMPLES], reply);
        missing += rc == RCODE_NXDOMAIN;
        digest = digest * 31 + reply[11] + reply[7];
    }
    w->digest = digest;
    w->missing = missing;
    return NULL;
}

static struct packet *make_samples(uint32_t salt)
{
    struct packet *p = aligned_alloc(64, (SAMPLES * sizeof *p + 63) / 64 * 64);
    char name[20];
    if (!p)
        abort();
    for (uint32_t i = 0; i < SAMPLES; i++) {
        make_name(i % 8 == 7 ? 1000000 + i : (i * 37 + salt) % ZONE_NAMES, name);
        encode_query(&p[i], (uint16_t)(i + salt), name);
    }
    return p;
}

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 400000;
    struct zone *z = aligned_alloc(64, (sizeof *z + 63) / 64 * 64);
    if (!z)
        return 1;
    memset(z, 0, sizeof *z);
    z->serial = 2024010101;
    for (uint32_t i = 0; i < ZONE_NAMES; i++) {
        char name[20];
        make_name(i, name);
        zone_insert(z, name, 0x0a000000 + i);
    }

    struct worker workers[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.zone = z, .samples = make_samples((uint32_t)i * 11), .rounds = rounds,
                                     .seed = 77 + (uint64_t)i};
        if (pthread_create(&workers[i].thread, NULL, serve, &workers[i]) != 0)
            return 1;
    }
    uint64_t digest = 0;
    unsigned long missing = 0;
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        digest ^= workers[i].digest;
        missing += workers[i].missing;
        free(workers[i].samples);
    }
    printf("zone %u: %lu queries, %lu not found, digest %016llx\n", z->serial,
           atomic_load_explicit(&stats.queries, memory_order_relaxed), missing, (unsigned long long)digest);
    free(z);
    return 0;
}
