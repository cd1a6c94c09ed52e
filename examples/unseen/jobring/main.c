/* Two stages of a compressor joined by a ring: the reader makes blocks, the packer takes and packs them.
 * Each side has the line of its index, with what it last saw of the other's. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RING_SIZE 256u
#define LINE 64
#define BLOCK_BYTES 112

typedef struct {
    uint32_t number;
    uint32_t length;
    uint64_t check;
    uint8_t bytes[BLOCK_BYTES];
} block_t;

typedef struct {
    _Alignas(LINE) atomic_size_t tail; /* written by the reader */
    size_t head_seen;                  /* of the reader alone */
    _Alignas(LINE) atomic_size_t head; /* written by the packer */
    size_t tail_seen;                  /* of the packer alone */
    _Alignas(LINE) block_t *blocks;    /* set up once */
    size_t mask;
} ring_t;

typedef struct {
    pthread_t thread;
    ring_t *ring;
    uint32_t blocks;
    uint64_t in, out;
    uint64_t digest;
} stage_t;

static ring_t *ring_new(void)
{
    ring_t *r = aligned_alloc(LINE, sizeof *r);
    if (!r)
        abort();
    memset(r, 0, sizeof *r);
    r->blocks = aligned_alloc(LINE, RING_SIZE * sizeof(block_t));
    if (!r->blocks)
        abort();
    memset(r->blocks, 0, RING_SIZE * sizeof(block_t));
    r->mask = RING_SIZE - 1;
    atomic_init(&r->tail, 0);
    atomic_init(&r->head, 0);
    return r;
}

static void ring_free(ring_t *r)
{
    free(r->blocks);
    free(r);
}

/* A place to write a block to; waits for one. */
static block_t *ring_reserve(ring_t *r)
{
    size_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    while (tail - r->head_seen > r->mask) {
        r->head_seen = atomic_load_explicit(&r->head, memory_order_acquire);
        if (tail - r->head_seen > r->mask)
            sched_yield();
    }
    return &r->blocks[tail & r->mask];
}

static void ring_commit(ring_t *r)
{
    size_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
}

/* The oldest block; waits for one. */
static const block_t *ring_front(ring_t *r)
{
    size_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    while (head == r->tail_seen) {
        r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
        if (head == r->tail_seen)
            sched_yield();
    }
    return &r->blocks[head & r->mask];
}

static void ring_pop(ring_t *r)
{
    size_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    atomic_store_explicit(&r->head, head + 1, memory_order_release);
}

static uint64_t checksum(const uint8_t *p, uint32_t n)
{
    uint64_t a = 1, b = 0;
    for (uint32_t i = 0; i < n; i++) {
        a += p[i];
        b += a;
    }
    return b << 32 | a;
}

static void *reader_main(void *arg)
{
    stage_t *s = arg;
    uint32_t state = 99;
    uint64_t in = 0;
    for (uint32_t n = 0; n < s->blocks; n++) {
        block_t *b = ring_reserve(s->ring);
        b->number = n;
        b->length = BLOCK_BYTES - n % 13;
        for (uint32_t i = 0; i < b->length;) {
            state = state * 1664525u + 1013904223u;
            uint32_t run = (state >> 28) + 1;
            for (; run && i < b->length; run--)
                b->bytes[i++] = (uint8_t)(state >> 20);
        }
        b->check = checksum(b->bytes, b->length);
        in += b->length;
        ring_commit(s->ring);
    }
    s->in = in;
    return NULL;
}

/* Runs of equal bytes become a count and the byte. */
static uint32_t pack(const block_t *b, uint8_t *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->length;) {
        uint32_t k = i + 1;
        while (k < b->length && b->bytes[k] == b->bytes[i] && k - i < 255)
            k++;
        out[n++] = (uint8_t)(k - i);
        out[n++] = b->bytes[i];
        i = k;
    }
    return n;
}

static void *packer_main(void *arg)
{
    stage_t *s = arg;
    uint8_t packed[BLOCK_BYTES * 2];
    uint64_t out = 0, digest = 0;
    for (uint32_t n = 0; n < s->blocks; n++) {
        const block_t *b = ring_front(s->ring);
        if (b->number != n) {
            fprintf(stderr, "block %u in place of %u\n", b->number, n);
            exit(1);
        }
        uint32_t length = pack(b, packed);
        digest = digest * 1099511628211ull ^ b->check ^ checksum(packed, length);
        out += length;
        ring_pop(s->ring);
    }
    s->out = out;
    s->digest = digest;
    return NULL;
}

int main(int argc, char **argv)
{
    uint32_t blocks = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 200000;
    ring_t *ring = ring_new();
    stage_t reader = {.ring = ring, .blocks = blocks};
    stage_t packer = {.ring = ring, .blocks = blocks};
    if (pthread_create(&reader.thread, NULL, reader_main, &reader) ||
        pthread_create(&packer.thread, NULL, packer_main, &packer)) {
        perror("pthread_create");
        return 1;
    }
    pthread_join(reader.thread, NULL);
    pthread_join(packer.thread, NULL);
    printf("%u blocks, %llu bytes to %llu, digest %016llx\n", blocks, (unsigned long long)reader.in,
           (unsigned long long)packer.out, (unsigned long long)packer.digest);
    ring_free(ring);
    return 0;
}
