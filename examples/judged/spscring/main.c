// A ring between a thread that samples and a thread that filters.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 256u

struct message {
    uint64_t seq;
    uint64_t kind;
    int32_t samples[12];
} __attribute__((aligned(64)));

struct ring {
    // producer
    _Atomic uint64_t tail __attribute__((aligned(64)));
    uint64_t head_seen;
    // consumer
    _Atomic uint64_t head __attribute__((aligned(64)));
    uint64_t tail_seen;
    // messages
    struct message slot[SLOTS];
};

static struct ring ring;
static uint64_t total;

static struct message *ring_reserve(struct ring *r, uint64_t tail)
{
    while (tail - r->head_seen >= SLOTS) {
        r->head_seen = atomic_load_explicit(&r->head, memory_order_acquire);
        if (tail - r->head_seen >= SLOTS)
            sched_yield();
    }
    return &r->slot[tail % SLOTS];
}

static const struct message *ring_peek(struct ring *r, uint64_t head)
{
    while (head == r->tail_seen) {
        r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
        if (head == r->tail_seen)
            sched_yield();
    }
    return &r->slot[head % SLOTS];
}

static void *sampler(void *arg)
{
    (void)arg;
    uint32_t x = 7;
    for (uint64_t i = 0; i < total; i++) {
        struct message *m = ring_reserve(&ring, i);
        m->seq = i;
        m->kind = i % 5 == 0;
        for (int k = 0; k < 12; k++) {
            x = x * 1103515245u + 12345u;
            m->samples[k] = (int32_t)(x >> 16) - 32768;
        }
        atomic_store_explicit(&ring.tail, i + 1, memory_order_release);
    }
    return NULL;
}

struct verdict {
    int64_t level;
    uint64_t peaks;
};

static void *filter(void *arg)
{
    struct verdict v = {0, 0};
    int64_t low = 0;
    for (uint64_t i = 0; i < total; i++) {
        const struct message *m = ring_peek(&ring, i);
        for (int k = 0; k < 12; k++) {
            low += (m->samples[k] - low) / 8;
            if (m->kind && low > 9000)
                v.peaks++;
        }
        v.level += low;
        if (m->seq != i)
            abort();
        atomic_store_explicit(&ring.head, i + 1, memory_order_release);
    }
    memcpy(arg, &v, sizeof v);
    return NULL;
}

int main(int argc, char **argv)
{
    total = argc > 1 ? strtoull(argv[1], NULL, 10) : 8000;
    struct verdict v;
    pthread_t a, b;
    pthread_create(&a, NULL, sampler, NULL);
    pthread_create(&b, NULL, filter, &v);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("level %lld, peaks %llu\n", (long long)v.level, (unsigned long long)v.peaks);
    return 0;
}
