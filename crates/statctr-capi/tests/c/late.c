/*
 * The library is loaded with dlopen() into a program that has no copy of it, and counts exactly, registered for rseq or
 * not: what musl loads late has no area. Arguments: the library, and the registration that is to be expected (enum
 * statctr_registration_value).
 */
#include "check.h"

#include <dlfcn.h>

enum { THREADS = 4, UPDATES = 100000 };

static statctr_t counter;
static int (*increment)(statctr_t *);

static void *body(void *unused)
{
    (void)unused;
    for (int i = 0; i < UPDATES; i++)
        CHECK_EQ(increment(&counter), 0);
    return NULL;
}

int main(int argc, char **argv)
{
    int (*registration)(void);
    int (*init)(statctr_handle_t *, unsigned long, unsigned);
    unsigned long (*read)(const statctr_t *);
    CHECK_EQ(argc, 3);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(library != NULL);
#define FIND(function, name) CHECK((*(void **)&(function) = dlsym(library, name)) != NULL)
    FIND(registration, "statctr_registration");
    FIND(init, "statctr_init_abi");
    FIND(increment, "statctr_inc");
    FIND(read, "statctr_read");
    CHECK_EQ(registration(), atoi(argv[2]));
    CHECK_EQ(init(&counter, 0, STATCTR_ABI), 0);
    run_threads(THREADS, body);
    CHECK_EQ(read(&counter), THREADS * UPDATES);
    return 0;
}
