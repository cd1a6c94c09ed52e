/*
 * Twenty functions that count and that nobody calls, and one that main calls: for
 * tests/dead_code.rs, which looks at what a linker that drops unused functions keeps. C and C++.
 */
#include "check.h"

#include <statctr.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DEAD_(name)                                                                     \
    void dead_##name(statctr_t *counter, statctr_group_t *group, statctr_lazy_t *lazy); \
    void dead_##name(statctr_t *counter, statctr_group_t *group, statctr_lazy_t *lazy)  \
    {                                                                                   \
        statctr_inc(counter);                                                           \
        statctr_group_event2(group, 0, 1, 2);                                           \
        statctr_lazy_update(lazy, 1, 2, 3, 4);                                          \
    }
#define TEN_(name)                                                                        \
    DEAD_(name##0) DEAD_(name##1) DEAD_(name##2) DEAD_(name##3) DEAD_(name##4)            \
    DEAD_(name##5) DEAD_(name##6) DEAD_(name##7) DEAD_(name##8) DEAD_(name##9)

TEN_(a)
TEN_(b)

void live(statctr_t *counter);
__attribute__((noinline)) void live(statctr_t *counter)
{
    statctr_inc(counter);
    statctr_add(counter, 2);
}

#ifdef __cplusplus
} /* extern "C" */

/* In COMDAT groups, of which the linker keeps one each. */
template <int number> __attribute__((noinline)) void of_a_template(statctr_t *counter)
{
    statctr_add(counter, number);
}
#endif

int main(void)
{
    statctr_t counter;
    CHECK_EQ(statctr_init(&counter, 0), 0);
    unsigned long sum = 0;
    for (int turn = 0; turn < 1000; turn++) {
        live(&counter);
        sum += 3;
#ifdef __cplusplus
        of_a_template<4>(&counter);
        of_a_template<5>(&counter);
        sum += 9;
#endif
    }
    CHECK_EQ(statctr_read(&counter), sum);
    CHECK_EQ(statctr_cleanup(&counter), 0);
    return 0;
}
