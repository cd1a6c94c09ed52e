/* Two threads for some seconds, or until they are killed: they add to one word (`counter`), write fields of one object
 * (`fields`) or elements of one array (`elements`), share nothing (`own`), or use one object, the second thread after the
 * first has ended (`turns`). */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 64, THREADS = 2, BATCH = 10000 };

struct totals { uint64_t limit; uint64_t requests; };
struct pair { uint64_t left; uint64_t right; };
struct element { uint64_t handled; uint64_t failed; };
struct own { uint64_t count; char rest[2 * LINE - 8]; } __attribute__((aligned(2 * LINE)));

static struct totals totals;
static struct pair *pair;
static struct element elements[THREADS];
static struct own own[THREADS];
static volatile int stop, half, ended;
static const char *kind;

__attribute__((noinline)) static void count_requests(struct totals *all)
{
    for (int i = 0; i < BATCH; i++)
        __atomic_fetch_add(&all->requests, 1, __ATOMIC_RELAXED);
}

__attribute__((noinline)) static void go_left(volatile struct pair *both)
{
    for (int i = 0; i < BATCH; i++)
        both->left++;
}

__attribute__((noinline)) static void go_right(volatile struct pair *both)
{
    for (int i = 0; i < BATCH; i++)
        both->right++;
}

__attribute__((noinline)) static void handle(volatile struct element *element)
{
    for (int i = 0; i < BATCH; i++)
        element->handled++;
}

__attribute__((noinline)) static void count_own(volatile struct own *mine)
{
    for (int i = 0; i < BATCH; i++)
        mine->count++;
}

/* Threads on one CPU take turns, and share nothing: each has a CPU of its own, where there are as many. */
static void go_to_cpu(long number)
{
    cpu_set_t allowed, own;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && number-- == 0) {
            CPU_ZERO(&own);
            CPU_SET(cpu, &own);
            sched_setaffinity(0, sizeof(own), &own);
            return;
        }
}

static void *work(void *argument)
{
    long number = (long)argument;
    go_to_cpu(number);
    if (!strcmp(kind, "turns")) {
        while (number && !ended && !stop)
            usleep(1000);
        while (!stop && (number || !half))
            count_own(&own[0]);
        ended = 1;
        return NULL;
    }
    while (!stop) {
        if (!strcmp(kind, "counter"))
            count_requests(&totals);
        else if (!strcmp(kind, "elements"))
            handle(&elements[number]);
        else if (strcmp(kind, "fields"))
            count_own(&own[number]);
        else if (number)
            go_left(pair);
        else
            go_right(pair);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    kind = argc > 1 ? argv[1] : "own";
    pid_t parent = getppid();
    pthread_t threads[THREADS];
    pair = aligned_alloc(LINE, LINE);
    if (!pair)
        return 1;
    memset(pair, 0, LINE);
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            return 1;
    puts("ready");
    fflush(stdout);
    if (argc > 2) {
        usleep((useconds_t)(atof(argv[2]) * 5e5));
        half = 1;
        usleep((useconds_t)(atof(argv[2]) * 5e5));
    } else
        /* a test that is killed leaves nothing that keeps CPUs busy */
        while (getppid() == parent)
            sleep(1);
    stop = 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
