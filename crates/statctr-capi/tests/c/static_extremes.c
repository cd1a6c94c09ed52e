/* Maxima and minima that are statics: of all threads, used first anywhere, taken without loss, and in the registry. */
#include "check.h"

#include <signal.h>
#include <sys/wait.h>

enum { THREADS = 4, UPDATES = 50000 };

STATCTR_DEFINE_MAX(largest);
STATCTR_DEFINE_MIN(smallest);
STATCTR_DEFINE_MAX_AS(slowest, "slowest_seconds", "the slowest request", "seconds");
STATCTR_DEFINE_MAX(before_main);
STATCTR_DEFINE_MIN(before_main_min);
STATCTR_DEFINE_MAX(handled);
STATCTR_DEFINE_MAX(taken);
STATCTR_DEFINE_MAX(plugin);
STATCTR_DEFINE_MIN(plugin_min);
STATCTR_DECLARE_MAX(largest);
STATCTR_DECLARE_MIN(smallest);

/* may run before the ones that list them */
__attribute__((constructor)) static void construct(void)
{
    statctr_static_max_observe(&before_main, 7);
    statctr_static_min_observe(&before_main_min, 7);
}

static void handler(int number)
{
    statctr_static_max_observe(&handled, (uint64_t)number);
}

static unsigned running = THREADS;

static void *observe(void *number)
{
    const uint64_t me = (uint64_t)(uintptr_t)number;
    if (me == THREADS) {
        uint64_t most = 0;
        while (__atomic_load_n(&running, __ATOMIC_ACQUIRE) > 0) {
            const uint64_t one = statctr_static_max_take(&taken);
            most = one > most ? one : most;
        }
        const uint64_t rest = statctr_static_max_take(&taken);
        CHECK_EQ(rest > most ? rest : most, UPDATES);
        return NULL;
    }
    for (uint64_t i = 0; i < UPDATES; i++) {
        /* a different order on each thread */
        const uint64_t value = 1 + i * (2 * me + 1) * 7919 % UPDATES;
        CHECK_OK(statctr_static_max_observe(&largest, value));
        CHECK_OK(statctr_static_min_observe(&smallest, value + 5));
        CHECK_OK(statctr_static_max_observe(&taken, i + 1));
    }
    __atomic_fetch_sub(&running, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* What the registry has: "name kind value unit;" each. */
static int note(const statctr_reading_t *reading, void *context)
{
    char *text = (char *)context;
    const size_t there = strlen(text);
    snprintf(text + there, 2000 - there, "%s %" PRIu64 " %" PRIu64 " %s;", reading->desc.name, reading->kind,
             reading->value, reading->desc.unit);
    return 0;
}

static int count(const statctr_sample_t *sample, void *context)
{
    (void)sample;
    ++*(unsigned *)context;
    return 0;
}

int main(void)
{
    CHECK_EQ(statctr_static_max_read(&before_main), 7);
    CHECK_EQ(statctr_static_min_read(&before_main_min), 7);
    CHECK_EQ(statctr_static_max_read(&largest), 0);
    CHECK(statctr_static_min_read(&smallest) == UINT64_MAX);

    /* the ends of the numbers, and values that are no records */
    CHECK_OK(statctr_static_max_observe(&largest, 0));
    CHECK_EQ(statctr_static_max_read(&largest), 0);
    CHECK_OK(statctr_static_max_observe(&largest, UINT64_MAX));
    CHECK_OK(statctr_static_max_observe(&largest, 3));
    CHECK(statctr_static_max_take(&largest) == UINT64_MAX);
    CHECK_EQ(statctr_static_max_take(&largest), 0);
    CHECK_OK(statctr_static_min_observe(&smallest, UINT64_MAX));
    CHECK(statctr_static_min_read(&smallest) == UINT64_MAX);
    CHECK_OK(statctr_static_min_observe(&smallest, 0));
    CHECK_OK(statctr_static_min_observe(&smallest, 3));
    CHECK_EQ(statctr_static_min_take(&smallest), 0);
    CHECK(statctr_static_min_take(&smallest) == UINT64_MAX);

    CHECK(signal(SIGUSR1, handler) != SIG_ERR);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(statctr_static_max_read(&handled), SIGUSR1);

    run_threads(THREADS + 1, observe);
    uint64_t most = 0, least = UINT64_MAX;
    for (uint64_t me = 0; me < THREADS; me++)
        for (uint64_t i = 0; i < UPDATES; i++) {
            const uint64_t value = 1 + i * (2 * me + 1) * 7919 % UPDATES;
            most = value > most ? value : most;
            least = value < least ? value : least;
        }
    CHECK_EQ(statctr_static_max_read(&largest), most);
    CHECK_EQ(statctr_static_min_read(&smallest), least + 5);

    const pid_t child = fork();
    if (child == 0) {
        statctr_static_max_observe(&largest, most + 1);
        _exit(statctr_static_max_read(&largest) == most + 1 ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(statctr_static_max_read(&largest), most);

    CHECK_OK(statctr_static_max_observe(&slowest, 17));
    static char text[2000], expected[2000];
    CHECK_OK(statctr_visit_all(note, text));
#if defined(__GNUC__)
    snprintf(expected, sizeof(expected),
             "before_main 4 7 ;before_main_min 5 7 ;handled 4 %d ;largest 4 %" PRIu64
             " ;plugin 4 0 ;plugin_min 5 18446744073709551615 ;slowest_seconds 4 17 seconds;smallest 5 %" PRIu64
             " ;taken 4 0 ;",
             SIGUSR1, most, least + 5);
    if (strcmp(text, expected) != 0) {
        fprintf(stderr, "%s\nis not\n%s\n", text, expected);
        return 1;
    }
#endif
    /* who knows of counters alone gets nothing of them */
    unsigned counters = 0;
    CHECK_OK(statctr_visit(count, &counters));
    CHECK_EQ(counters, 0);
    CHECK_OK(statctr_static_forget(&plugin.word));
    CHECK_OK(statctr_static_forget(&plugin_min.word));
    text[0] = 0;
    CHECK_OK(statctr_visit_all(note, text));
    CHECK(strstr(text, "plugin") == NULL && strstr(text, "largest") != NULL);

    /* pointers that the compiler cannot see through */
    statctr_static_max_t *volatile no_max = NULL;
    statctr_static_min_t *volatile no_min = NULL;
    CHECK_EQ(statctr_static_max_observe(no_max, 1), -EINVAL);
    CHECK_EQ(statctr_static_min_observe(no_min, 1), -EINVAL);
    CHECK_EQ(statctr_static_max_list(NULL), -EINVAL);
    CHECK_EQ(statctr_static_min_list(NULL), -EINVAL);
    CHECK_EQ(statctr_static_max_read(NULL), 0);
    CHECK_EQ(statctr_static_max_take(NULL), 0);
    CHECK(statctr_static_min_read(NULL) == UINT64_MAX);
    CHECK(statctr_static_min_take(NULL) == UINT64_MAX);
    return 0;
}
