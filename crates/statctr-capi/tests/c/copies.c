/*
 * Copies of the library in one process, loaded and unloaded in some order, share one registration of each thread and
 * count exactly, whoever else registers threads.
 *
 * usage: copies REGISTRATION LIBRARY LIBRARY AREA STEP...
 * REGISTRATION is the answer of every copy (enum statctr_registration_value), AREA a library with an rseq area of its
 * own (area.c), or - for none. After each step threads count in all copies that have begun to. The steps:
 *   p              the program's own copy begins to count; with -DNO_COPY the program has none
 *   1, 2           a library begins to count, loaded if it is not yet
 *   there1, there2 the same, in a thread that AREA has registered
 *   load1, load2   a library is loaded, and does not count
 *   close1, close2 a library is given back to dlclose(), and counts on if it has begun to
 *   area           AREA is loaded for all to see
 *   register       AREA registers the first thread
 */
#include "check.h"

#include <dlfcn.h>
#include <string.h>

enum { THREADS = 8, UPDATES = 5000 };

struct copy {
    void *library;
    int (*init)(statctr_handle_t *, unsigned long, unsigned);
    int (*add)(uintptr_t, uintptr_t, uint64_t);
    unsigned long (*read)(const statctr_handle_t *);
    int (*cleanup)(statctr_handle_t *);
    int (*mode)(void);
    int (*thread_mode)(void);
    int (*registration)(void);
    statctr_handle_t counter;
    unsigned long rounds;
};

static struct copy copies[3]; /* the program's and the libraries */
static struct copy *used[3];  /* those that have begun to count */
static unsigned uses;
static int expected;
static int (*area_register)(void);

static void *open_library(const char *file, int visibility)
{
    void *library = dlopen(file, RTLD_NOW | visibility);
    if (library == NULL)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(library != NULL);
    return library;
}

static void load(struct copy *copy, const char *file)
{
    if (copy->library == NULL)
        copy->library = open_library(file, RTLD_LOCAL);
#define FIND(field, name) CHECK((*(void **)&copy->field = dlsym(copy->library, name)) != NULL)
    FIND(init, "statctr_init_abi");
    FIND(add, "statctr_slow_add");
    FIND(read, "statctr_read");
    FIND(cleanup, "statctr_cleanup");
    FIND(mode, "statctr_mode");
    FIND(thread_mode, "statctr_thread_mode");
    FIND(registration, "statctr_registration");
}

/* The mode of a thread's updates; `theirs`: of one that the other library registered first. */
static int mode_of_thread(int theirs)
{
    if (expected == STATCTR_REGISTRATION_NONE)
        return STATCTR_MODE_STRIPED;
    return theirs && expected == STATCTR_REGISTRATION_OWN ? STATCTR_MODE_ATOMIC : STATCTR_MODE_RSEQ;
}

static void begin(struct copy *copy, int theirs)
{
    CHECK_EQ(copy->registration(), expected);
    CHECK_EQ(copy->mode(), mode_of_thread(0));
    CHECK_EQ(copy->init(&copy->counter, 0, STATCTR_ABI), 0);
    CHECK_EQ(copy->thread_mode(), mode_of_thread(theirs));
    used[uses++] = copy;
}

static struct copy *beginner;

static void *begin_there(void *unused)
{
    (void)unused;
    CHECK_EQ(area_register(), 0);
    begin(beginner, 1);
    return NULL;
}

static void *body(void *number)
{
    const uintptr_t me = (uintptr_t)number;
    /* half of the threads are registered by the other library first, where the kernel lets it */
    const int area_first = area_register != NULL && me % 2 == 0;
    const int refused = area_first ? area_register() : 0;
    if (area_first)
        CHECK_EQ(refused != 0, expected == STATCTR_REGISTRATION_LIBC);
    for (unsigned i = 0; i < UPDATES; i++)
        for (unsigned j = 0; j < uses; j++) {
            struct copy *copy = used[(me + j) % uses];
            CHECK_EQ(copy->add(copy->counter.base, copy->counter.table, 1), 0);
        }
    /* a thread has one area: where all copies use rseq they use the same */
    for (unsigned j = 0; j < uses; j++)
        CHECK_EQ(used[j]->thread_mode(), mode_of_thread(area_first));
    if (area_register != NULL && !area_first && uses > 0)
        CHECK_EQ(area_register() != 0,
                 expected == STATCTR_REGISTRATION_LIBC || expected == STATCTR_REGISTRATION_OWN);
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc > 5);
    expected = atoi(argv[1]);
#ifndef NO_COPY
    const struct copy own = { .init = statctr_init_abi, .add = statctr_slow_add, .read = statctr_read,
                              .cleanup = statctr_cleanup, .mode = statctr_mode, .thread_mode = statctr_thread_mode,
                              .registration = statctr_registration };
    copies[0] = own;
#endif
    for (int i = 5; i < argc; i++) {
        const char *step = argv[i];
        const int which = step[strlen(step) - 1] - '0';
        struct copy *copy = which == 1 || which == 2 ? &copies[which] : &copies[0];
        if (strcmp(step, "area") == 0) {
            void *area = open_library(argv[4], RTLD_GLOBAL);
            CHECK((*(void **)&area_register = dlsym(area, "area_register")) != NULL);
        } else if (strcmp(step, "register") == 0) {
            CHECK_EQ(area_register(), 0);
        } else if (strncmp(step, "close", 5) == 0) {
            CHECK_EQ(dlclose(copy->library), 0);
            copy->library = NULL;
        } else {
            if (copy != &copies[0])
                load(copy, argv[1 + which]);
            beginner = copy;
            if (strncmp(step, "there", 5) == 0)
                run_threads(1, begin_there);
            else if (strncmp(step, "load", 4) != 0)
                begin(copy, 0);
        }
        run_threads(THREADS, body);
        for (unsigned j = 0; j < uses; j++)
            CHECK_EQ(used[j]->read(&used[j]->counter), ++used[j]->rounds * THREADS * UPDATES);
    }
    for (unsigned j = 0; j < uses; j++)
        CHECK_EQ(used[j]->cleanup(&used[j]->counter), 0);
    return 0;
}
