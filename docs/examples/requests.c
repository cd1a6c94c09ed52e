/* Counters by name, of which nothing was initialised. */
#include <inttypes.h>
#include <statctr.h>
#include <stdio.h>

STATCTR_DEFINE(requests);
STATCTR_DEFINE_AS(received, "received_bytes", "bytes received", "bytes");

static int print(const statctr_sample_t *sample, void *file)
{
    return fprintf(file, "%s %" PRIu64 "\n", sample->desc.name, sample->value) < 0;
}

int main(void)
{
    for (int i = 0; i < 1000; i++) {
        statctr_static_inc(&requests);
        statctr_static_add(&received, 1500);
    }
    return statctr_visit(print, stdout);
}
