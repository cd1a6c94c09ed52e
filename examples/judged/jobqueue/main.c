// A pool of workers that check blocks taken from a queue, with statistics for the operator.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define WORKERS 3
#define BLOCK 48
#define BATCH 32

struct pool_stats {
    _Atomic uint64_t blocks_done;
    _Atomic uint64_t bytes_done;
    _Atomic uint64_t bad_blocks;
    uint64_t started_at;
    char reserved[32];
} __attribute__((aligned(64)));

struct job_queue {
    pthread_mutex_t lock;
    uint64_t next;
    uint64_t end;
} __attribute__((aligned(64)));

struct pool {
    struct job_queue queue;
    struct pool_stats stats;
    const uint8_t *input __attribute__((aligned(64)));
    size_t input_blocks;
};

static struct pool *pool_new(const uint8_t *input, size_t blocks, uint64_t jobs)
{
    struct pool *p = aligned_alloc(64, sizeof *p);
    if (!p)
        abort();
    pthread_mutex_init(&p->queue.lock, NULL);
    p->queue.next = 0;
    p->queue.end = jobs;
    atomic_init(&p->stats.blocks_done, 0);
    atomic_init(&p->stats.bytes_done, 0);
    atomic_init(&p->stats.bad_blocks, 0);
    p->stats.started_at = 1;
    p->input = input;
    p->input_blocks = blocks;
    return p;
}

static uint64_t queue_take(struct job_queue *q, uint64_t *end)
{
    pthread_mutex_lock(&q->lock);
    uint64_t first = q->next;
    uint64_t last = first + BATCH < q->end ? first + BATCH : q->end;
    q->next = last;
    pthread_mutex_unlock(&q->lock);
    *end = last;
    return first;
}

static uint32_t block_sum(const uint8_t *b, unsigned len)
{
    uint32_t a = 1, s = 0;
    for (unsigned i = 0; i < len; i++) {
        a += b[i];
        s += a;
    }
    return (s << 16) ^ a;
}

static void *worker(void *arg)
{
    struct pool *p = arg;
    for (;;) {
        uint64_t end, j = queue_take(&p->queue, &end);
        if (j == end)
            return NULL;
        for (; j < end; j++) {
            unsigned len = 16 + j % (BLOCK - 16);
            uint32_t sum = block_sum(p->input + (j % p->input_blocks) * BLOCK, len);
            atomic_fetch_add_explicit(&p->stats.blocks_done, 1, memory_order_relaxed);
            atomic_fetch_add_explicit(&p->stats.bytes_done, len, memory_order_relaxed);
            if ((sum & 15) == 3)
                atomic_fetch_add_explicit(&p->stats.bad_blocks, 1, memory_order_relaxed);
        }
    }
}

int main(int argc, char **argv)
{
    uint64_t jobs = argc > 1 ? strtoull(argv[1], NULL, 10) : 40000;
    size_t blocks = 1024;
    uint8_t *input = malloc(blocks * BLOCK);
    uint32_t x = 12345;
    for (size_t i = 0; i < blocks * BLOCK; i++) {
        x = x * 1664525u + 1013904223u;
        input[i] = x >> 24;
    }
    struct pool *p = pool_new(input, blocks, jobs);
    pthread_t t[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&t[i], NULL, worker, p);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(t[i], NULL);
    printf("%llu blocks, %llu bytes, %llu bad\n", (unsigned long long)p->stats.blocks_done,
           (unsigned long long)p->stats.bytes_done, (unsigned long long)p->stats.bad_blocks);
    free(input);
    free(p);
    return 0;
}
