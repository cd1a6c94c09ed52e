/* A thousand threads that live for a hundred updates each. */
#include "check.h"

enum { BATCHES = 40, BATCH = 25, UPDATES = 100 };

static statctr_t counter;

static void *body(void *unused)
{
    (void)unused;
    for (int i = 0; i < UPDATES; i++)
        statctr_inc(&counter);
    return NULL;
}

int main(void)
{
    CHECK_OK(statctr_init(&counter, 0));
    for (int batch = 0; batch < BATCHES; batch++)
        run_threads(BATCH, body);
    CHECK_EQ(statctr_read(&counter), BATCHES * BATCH * UPDATES);
    CHECK_OK(statctr_cleanup(&counter));
    return 0;
}
