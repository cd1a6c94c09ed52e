// Compression of pages by threads with their own statistics; a monitor adds them up now and then.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS 3
#define PAGE 256

struct thread_stats {
    _Atomic uint64_t pages;
    _Atomic uint64_t bytes_in;
    _Atomic uint64_t bytes_out;
    _Atomic uint64_t incompressible;
    uint64_t spare[4];
} __attribute__((aligned(64)));

struct task {
    const uint8_t *pages;
    uint64_t count;
    unsigned index;
};

static struct thread_stats stats[THREADS];
static _Atomic int stopped;

static inline void add(_Atomic uint64_t *c, uint64_t by)
{
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + by, memory_order_relaxed);
}

static unsigned run_length(const uint8_t *p, uint8_t *out)
{
    unsigned n = 0;
    for (unsigned i = 0; i < PAGE;) {
        unsigned run = 1;
        while (i + run < PAGE && p[i + run] == p[i] && run < 255)
            run++;
        out[n++] = (uint8_t)run;
        out[n++] = p[i];
        i += run;
    }
    return n;
}

static void *compress(void *arg)
{
    const struct task *t = arg;
    struct thread_stats *s = &stats[t->index];
    uint8_t out[2 * PAGE];
    for (uint64_t i = 0; i < t->count; i++) {
        unsigned len = run_length(t->pages + (i + t->index * 7) % 64 * PAGE, out);
        add(&s->pages, 1);
        add(&s->bytes_in, PAGE);
        add(&s->bytes_out, len < PAGE ? len : PAGE);
        if (len >= PAGE)
            add(&s->incompressible, 1);
    }
    return NULL;
}

static uint64_t sum_out(void)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < THREADS; i++)
        sum += atomic_load_explicit(&stats[i].bytes_out, memory_order_relaxed);
    return sum;
}

static void *monitor(void *arg)
{
    uint64_t *peak = arg;
    while (!atomic_load(&stopped)) {
        uint64_t s = sum_out();
        if (s > *peak)
            *peak = s;
        usleep(5000);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 3000;
    uint8_t *pages = malloc(64 * PAGE);
    uint32_t x = 3;
    for (unsigned i = 0; i < 64 * PAGE; i++) {
        x = x * 1664525u + 1013904223u;
        pages[i] = i && x >> 29 ? pages[i - 1] : (uint8_t)(x >> 20);
    }
    struct task tasks[THREADS];
    pthread_t t[THREADS], m;
    uint64_t peak = 0;
    pthread_create(&m, NULL, monitor, &peak);
    for (unsigned i = 0; i < THREADS; i++) {
        tasks[i] = (struct task){pages, n, i};
        pthread_create(&t[i], NULL, compress, &tasks[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    atomic_store(&stopped, 1);
    pthread_join(m, NULL);
    uint64_t pages_done = 0;
    for (unsigned i = 0; i < THREADS; i++)
        pages_done += stats[i].pages;
    printf("%llu pages, %llu bytes, monitor %s\n", (unsigned long long)pages_done, (unsigned long long)sum_out(),
           peak <= sum_out() ? "ok" : "wrong");
    free(pages);
    return 0;
}
