// A bridge of two directions: one thread receives and checks frames, one builds and sends them.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FRAMES 64u
#define FRAME_LEN 96u

// What the monitor reads, one writer each.
static _Atomic uint64_t rx_frames;
static _Atomic uint64_t rx_bytes;
static _Atomic uint64_t tx_frames;
static _Atomic uint64_t tx_bytes;

static uint8_t in_pool[FRAMES][FRAME_LEN] __attribute__((aligned(64)));
static uint8_t out_pool[FRAMES][FRAME_LEN] __attribute__((aligned(64)));

static inline void bump(_Atomic uint64_t *c, uint64_t by)
{
    uint64_t v = atomic_load_explicit(c, memory_order_relaxed);
    atomic_store_explicit(c, v + by, memory_order_relaxed);
}

static uint16_t checksum(const uint8_t *p, unsigned len)
{
    uint32_t s = 0;
    for (unsigned i = 0; i + 1 < len; i += 2)
        s += (uint32_t)p[i] << 8 | p[i + 1];
    s = (s & 0xffff) + (s >> 16);
    return (uint16_t)~s;
}

struct direction {
    uint64_t count;
    uint64_t result;
};

static void *receive(void *arg)
{
    struct direction *d = arg;
    uint64_t damaged = 0, n = d->count;
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *f = in_pool[i % FRAMES];
        unsigned len = 24 + (f[0] & 7);
        if (checksum(f, len) & 1)
            damaged++;
        bump(&rx_frames, 1);
        bump(&rx_bytes, len);
    }
    d->result = damaged;
    return NULL;
}

static void *transmit(void *arg)
{
    struct direction *d = arg;
    uint64_t mixed = 0, n = d->count;
    for (uint64_t i = 0; i < n; i++) {
        uint8_t *f = out_pool[i % FRAMES];
        unsigned len = 20 + i % 9;
        for (unsigned k = 0; k < len; k += 4)
            f[k] = (uint8_t)(i + k);
        mixed += f[4];
        bump(&tx_frames, 1);
        bump(&tx_bytes, len);
    }
    d->result = mixed;
    return NULL;
}

int main(int argc, char **argv)
{
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000;
    for (unsigned i = 0; i < FRAMES; i++)
        for (unsigned k = 0; k < FRAME_LEN; k++)
            in_pool[i][k] = (uint8_t)(i * 31 + k * 17);
    struct direction in = {n, 0}, out = {n, 0};
    pthread_t a, b;
    pthread_create(&a, NULL, receive, &in);
    pthread_create(&b, NULL, transmit, &out);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("rx %llu frames %llu bytes (%llu damaged), tx %llu frames %llu bytes (%llu)\n",
           (unsigned long long)rx_frames, (unsigned long long)rx_bytes, (unsigned long long)in.result,
           (unsigned long long)tx_frames, (unsigned long long)tx_bytes, (unsigned long long)out.result);
    return 0;
}
