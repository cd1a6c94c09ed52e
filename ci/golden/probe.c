/* What ci/golden/run looks at in C: the same functions as in probe.rs. */
#include <statctr.h>

void probe_inc(statctr_t *counter);
void probe_dec(statctr_t *counter);
void probe_add(statctr_t *counter, unsigned long value);
void probe_loop(statctr_t *counter, unsigned long n);
void probe_static(statctr_static_t *counter);
void probe_static_loop(statctr_static_t *counter, unsigned long n);
void probe_item(statctr_group_t *group, uint64_t value);
void probe_event2(statctr_group_t *group, uint64_t value);
void probe_event4(statctr_group_t *group, uint64_t value);
void probe_event8(statctr_group_t *group, const uint64_t *values);
void probe_lazy(statctr_lazy_t *flow, uint64_t bytes, uint64_t time);

void probe_inc(statctr_t *counter)
{
    statctr_inc(counter);
}

void probe_dec(statctr_t *counter)
{
    statctr_dec(counter);
}

void probe_add(statctr_t *counter, unsigned long value)
{
    statctr_add(counter, value);
}

void probe_loop(statctr_t *counter, unsigned long n)
{
    statctr_t hot = *counter;
    for (unsigned long i = 0; i < n; i++)
        statctr_inc(&hot);
}

void probe_static(statctr_static_t *counter)
{
    statctr_static_inc(counter);
}

void probe_static_loop(statctr_static_t *counter, unsigned long n)
{
    statctr_static_inc(counter);
    for (unsigned long i = 0; i < n; i++)
        statctr_static_inc(counter);
}

void probe_item(statctr_group_t *group, uint64_t value)
{
    statctr_group_add(group, 3, value);
}

void probe_event2(statctr_group_t *group, uint64_t value)
{
    statctr_group_event2(group, 12, 1, value);
}

void probe_event4(statctr_group_t *group, uint64_t value)
{
    statctr_group_event4(group, 8, 1, value, 1, value);
}

void probe_event8(statctr_group_t *group, const uint64_t *values)
{
    statctr_group_event8(group, 0, values);
}

void probe_lazy(statctr_lazy_t *flow, uint64_t bytes, uint64_t time)
{
    statctr_lazy_update(flow, 1, bytes, time, 2);
}
