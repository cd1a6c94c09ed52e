/*
 * Code with inline updates in it is unloaded while threads that ran it live on: each of them makes
 * the kernel forget it first. The argument is the plug-in. With a second argument nobody does: then
 * the kernel may end the process (it does so at a preemption that finds the address gone).
 */
#include "check.h"

#include <dlfcn.h>
#include <time.h>

enum { THREADS = 3, UPDATES = 100000, ROUNDS = 20 };

static statctr_t counter;
static int (*count)(statctr_t *, unsigned long);
static pthread_barrier_t barrier;
static int forget = 1;

/* Long enough for a preemption or two. */
static void spin(void)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < 10000000L);
}

static void *body(void *unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&barrier); /* it is loaded */
        CHECK_OK(count(&counter, UPDATES));
        if (forget)
            CHECK_OK(statctr_prepare_unload());
        pthread_barrier_wait(&barrier); /* nobody counts any more */
        pthread_barrier_wait(&barrier); /* it is unloaded */
        spin();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    CHECK(argc >= 2);
    forget = argc == 2;
    CHECK_OK(statctr_init(&counter, 0));
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, body, NULL), 0);
    for (int round = 0; round < ROUNDS; round++) {
        void *plugin = dlopen(argv[1], RTLD_NOW);
        if (plugin == NULL)
            fprintf(stderr, "%s\n", dlerror());
        CHECK(plugin != NULL);
        *(void **)&count = dlsym(plugin, "plugin_count");
        CHECK(count != NULL);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        CHECK_EQ(dlclose(plugin), 0);
        pthread_barrier_wait(&barrier);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(statctr_read(&counter), THREADS * UPDATES * ROUNDS);
    return 0;
}
