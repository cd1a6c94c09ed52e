/*
 * Code with inline updates in it is unloaded while threads that ran it live on: each of them makes
 * the kernel forget it first. The argument is the plug-in. With a second argument nobody does: then
 * the kernel may end the process (it does so at a preemption that finds the address gone).
 * A family that is defined there needs nothing: its members stay, and go on when it is loaded again.
 */
#include "check.h"

#include <dlfcn.h>
#include <time.h>

enum { THREADS = 3, UPDATES = 100000, ROUNDS = 20 };

/* the plug-in's, by its description */
STATCTR_DEFINE_FAMILY_AS(calls, "plugin_calls", "", "", STATCTR_FAMILY_LIMIT, "by");

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

static int note(const statctr_sample_t *sample, void *members)
{
    CHECK_EQ(strcmp(sample->desc.name, "plugin_calls"), 0);
    CHECK_EQ(sample->value, THREADS * ROUNDS + 1);
    ++*(unsigned *)members;
    return 0;
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
    statctr_static_t *made = NULL;
    CHECK_OK(statctr_family_get(&calls, STATCTR_VALUES("a thread"), &made));
    CHECK_EQ(statctr_static_read(made), THREADS * ROUNDS);
    CHECK_OK(statctr_static_inc(made));
    unsigned members = 0;
    CHECK_OK(statctr_visit(note, &members));
    CHECK_EQ(members, 1);
    return 0;
}
