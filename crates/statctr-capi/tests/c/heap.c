/* A heap without a byte left: an init that needs more of it is refused, and the process goes on. */
#include "check.h"
#include <sys/resource.h>

static statctr_t first;
static statctr_histogram_t first_histogram;

static int init_all(void)
{
    int error = 0;
    statctr_t counter;
    for (int i = 0; i < 2000000 && error == 0; i++)
        error = statctr_init(&counter, 0);
    return error;
}

static int init_all_histograms(void)
{
    int error = 0;
    statctr_histogram_t histogram;
    for (int i = 0; i < 2000 && error == 0; i++)
        error = statctr_histogram_init(&histogram, 1u << 30, 0.01);
    return error;
}

int main(int count, char **arguments)
{
    CHECK(count == 2);
    const struct rlimit limit = { 64 << 20, 64 << 20 };
    CHECK_OK(setrlimit(RLIMIT_AS, &limit));
    CHECK_OK(statctr_init(&first, 0));
    CHECK_OK(statctr_histogram_init(&first_histogram, 1u << 30, 0.01));
    for (size_t bytes = 1 << 20; bytes >= 16; bytes /= 2)
        for (void *volatile taken = malloc(bytes); taken != NULL; taken = malloc(bytes))
            ;
    CHECK_EQ(strcmp(arguments[1], "counters") == 0 ? init_all() : init_all_histograms(), -ENOMEM);
    /* what is there works */
    CHECK_OK(statctr_inc(&first));
    CHECK_OK(statctr_set(&first, 3));
    CHECK_EQ(statctr_read(&first), 3);
    CHECK_OK(statctr_histogram_observe(&first_histogram, 1));
    return 0;
}
