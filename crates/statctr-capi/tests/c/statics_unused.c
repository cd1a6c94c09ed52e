/* Statics take no memory before the first update: no constructor counts here, and nothing allocates meanwhile. */
#include "check.h"

#include <fcntl.h>

STATCTR_DEFINE(used);
STATCTR_DEFINE(unused);

/* Returns the pages of address space that the process has, without allocating anything. */
static long pages(void)
{
    char text[200];
    const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    CHECK(file >= 0);
    const ssize_t count = read(file, text, sizeof(text) - 1);
    CHECK(count > 0);
    text[count] = 0;
    CHECK_EQ(close(file), 0);
    return strtol(text, NULL, 10);
}

static int count_samples(const statctr_sample_t *sample, void *count)
{
    CHECK_EQ(sample->value, 0);
    ++*(int *)count;
    return 0;
}

int main(void)
{
    /* what this allocates, a thread's stack and the registry's list, is not the statics' */
    int listed = 0;
    CHECK_EQ(statctr_prepare(), 0);
    CHECK_OK(statctr_visit(count_samples, &listed));
#if defined(__GNUC__)
    CHECK_EQ(listed, 2);
#endif
    const long before = pages();
    CHECK_EQ(pages(), before);
    CHECK_OK(statctr_static_list(&used));
    CHECK_OK(statctr_static_list(&unused));
    CHECK_EQ(statctr_static_read(&used), 0);
    CHECK_EQ(statctr_static_read(&unused), 0);
    CHECK(statctr_static_mode(&unused) >= 0);
    CHECK_EQ(pages(), before);
    CHECK(used.table == 0 && used.base == 0 && used.fast == 0);

    CHECK_OK(statctr_static_inc(&used));
    CHECK_EQ(statctr_static_read(&used), 1);
    if (statctr_static_mode(&used) == STATCTR_MODE_ATOMIC) {
        CHECK_EQ(pages(), before);
    } else {
        CHECK(used.table != 0 && used.base != 0);
        CHECK(pages() > before);
    }
    CHECK(unused.table == 0 && unused.base == 0 && unused.fast == 0);
    return 0;
}
