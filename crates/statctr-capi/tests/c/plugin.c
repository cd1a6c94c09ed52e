/* A plug-in with inline updates in it; unload.c loads and unloads it. */
#include <statctr.h>

STATCTR_DEFINE_FAMILY(plugin_calls, "by");

int plugin_count(statctr_t *counter, unsigned long n);

int plugin_count(statctr_t *counter, unsigned long n)
{
    const char *const values[] = { "a thread" };
    statctr_static_t *calls = NULL;
    int error = statctr_family_get(&plugin_calls, values, 1, &calls);
    if (error == 0)
        error = statctr_static_inc(calls);
    for (unsigned long i = 0; i < n && error == 0; i++)
        error = statctr_inc(counter);
    return error;
}
