/* Responses by method and status, and the slowest one, in Prometheus' text format. */
#include <statctr.h>
#include <stdio.h>

STATCTR_DEFINE_FAMILY_AS(responses, "responses", "responses sent", "", 2, "method", "status");
STATCTR_DEFINE_MAX_AS(slowest, "slowest_ns", "the slowest response", "nanoseconds");

static void count(const char *method, const char *status, uint64_t nanoseconds)
{
    statctr_static_t *sent = NULL;
    if (statctr_family_get(&responses, STATCTR_VALUES(method, status), &sent) == 0)
        statctr_static_inc(sent); /* in line, as any other static */
    statctr_static_max_observe(&slowest, nanoseconds);
}

static int print(const char *text, size_t length, void *file)
{
    return fwrite(text, 1, length, (FILE *)file) != length;
}

int main(void)
{
    count("GET", "200", 1500);
    count("GET", "200", 900);
    count("GET", "404", 700);
    count("BREW", "418", 800);
    return statctr_write_prometheus(print, stdout);
}
