// Latency summaries of request logs: every thread reads its part and keeps a summary.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 4

struct record {
    uint32_t latency;
    uint32_t status;
};

struct summary {
    uint64_t requests;
    uint64_t total_latency;
    uint32_t worst;
    uint32_t errors;
};

struct part {
    const struct record *from;
    const struct record *to;
    unsigned index;
    unsigned passes;
};

static struct summary summaries[THREADS] __attribute__((aligned(64)));

__attribute__((noinline)) static void account(struct summary *s, const struct record *r)
{
    s->requests++;
    s->total_latency += r->latency;
    if (r->latency > s->worst)
        s->worst = r->latency;
    if (r->status >= 500)
        s->errors++;
}

static void *summarise(void *arg)
{
    const struct part *p = arg;
    for (unsigned pass = 0; pass < p->passes; pass++)
        for (const struct record *r = p->from; r < p->to; r++)
            account(&summaries[p->index], r);
    return NULL;
}

static struct record *make_log(size_t n)
{
    struct record *log = malloc(n * sizeof *log);
    if (!log)
        abort();
    uint64_t x = 0x9e3779b97f4a7c15ull;
    for (size_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        log[i].latency = 100 + (uint32_t)(x % 9000);
        log[i].status = x >> 40 & 31 ? 200 : 503;
    }
    return log;
}

int main(int argc, char **argv)
{
    unsigned passes = argc > 1 ? (unsigned)atoi(argv[1]) : 8;
    size_t n = 4096;
    struct record *log = make_log(n);
    struct part parts[THREADS];
    pthread_t t[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        parts[i] = (struct part){log + n / THREADS * i, log + n / THREADS * (i + 1), i, passes};
        pthread_create(&t[i], NULL, summarise, &parts[i]);
    }
    struct summary all = {0, 0, 0, 0};
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        all.requests += summaries[i].requests;
        all.total_latency += summaries[i].total_latency;
        all.errors += summaries[i].errors;
        if (summaries[i].worst > all.worst)
            all.worst = summaries[i].worst;
    }
    printf("%llu requests, mean %llu us, worst %u us, %u errors\n", (unsigned long long)all.requests,
           (unsigned long long)(all.total_latency / all.requests), all.worst, all.errors);
    free(log);
    return 0;
}
