/* A plug-in with inline updates in it; unload.c loads and unloads it. */
#include <statctr.h>

int plugin_count(statctr_t *counter, unsigned long n);

int plugin_count(statctr_t *counter, unsigned long n)
{
    int error = 0;
    for (unsigned long i = 0; i < n && error == 0; i++)
        error = statctr_inc(counter);
    return error;
}
