/*
 * Several copies of the library in one process share one registration of each thread.
 *
 * usage: copies ORDER LIBRARY LIBRARY
 * ORDER has a letter for each copy, in the order in which they first count: p for the program's own,
 * 1 and 2 for the libraries, which are loaded just before.
 */
#include "check.h"

#include <dlfcn.h>
#include <string.h>

enum { THREADS = 8, UPDATES = 20000 };

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
};

static struct copy copies[3];
static unsigned used;

/* The functions of the library that `file` names, or of the program. */
static void load(struct copy *copy, const char *file)
{
    if (file == NULL) {
        const struct copy own = { NULL, statctr_init_abi, statctr_slow_add, statctr_read, statctr_cleanup,
                                  statctr_mode, statctr_thread_mode, statctr_registration, { 0, 0 } };
        *copy = own;
        return;
    }
    copy->library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (copy->library == NULL)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(copy->library != NULL);
#define FIND(field, name) CHECK((*(void **)&copy->field = dlsym(copy->library, name)) != NULL)
    FIND(init, "statctr_init_abi");
    FIND(add, "statctr_slow_add");
    FIND(read, "statctr_read");
    FIND(cleanup, "statctr_cleanup");
    FIND(mode, "statctr_mode");
    FIND(thread_mode, "statctr_thread_mode");
    FIND(registration, "statctr_registration");
}

static void begin(struct copy *copy, const char *file)
{
    load(copy, file);
    CHECK_EQ(copy->registration(), STATCTR_REGISTRATION_OWN);
    CHECK_EQ(copy->mode(), STATCTR_MODE_RSEQ);
    CHECK_OK(copy->init(&copy->counter, 0, STATCTR_ABI));
    CHECK_EQ(copy->thread_mode(), STATCTR_MODE_RSEQ);
}

static void *body(void *number)
{
    for (unsigned i = 0; i < UPDATES; i++)
        for (unsigned j = 0; j < used; j++) {
            struct copy *copy = &copies[((uintptr_t)number + j) % used];
            CHECK_OK(copy->add(copy->counter.base, copy->counter.table, 1));
        }
    for (unsigned j = 0; j < used; j++)
        CHECK_EQ(copies[j].thread_mode(), STATCTR_MODE_RSEQ);
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    for (const char *place = argv[1]; *place; place++) {
        begin(&copies[used], *place == 'p' ? NULL : argv[*place - '1' + 2]);
        used++;
        run_threads(THREADS, body);
    }
    for (unsigned j = 0; j < used; j++) {
        CHECK_EQ(copies[j].read(&copies[j].counter), (used - j) * THREADS * UPDATES);
        CHECK_OK(copies[j].cleanup(&copies[j].counter));
    }
    /* the copy whose area all use is still needed by the others */
    for (unsigned j = 0; j < used; j++)
        if (copies[j].library != NULL)
            dlclose(copies[j].library);
    for (unsigned j = 0; j < used; j++)
        if (argv[1][j] == 'p') {
            CHECK_OK(copies[j].init(&copies[j].counter, 0, STATCTR_ABI));
            used = 1;
            copies[0] = copies[j];
            run_threads(THREADS, body);
            CHECK_EQ(copies[0].read(&copies[0].counter), THREADS * UPDATES);
            return 0;
        }
    return 0;
}
