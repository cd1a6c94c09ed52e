/* Counters that are statics, used first wherever that may be; and the registry. */
#include "check.h"

#include <signal.h>
#include <sys/wait.h>

STATCTR_DEFINE(requests);
STATCTR_DEFINE_AS(received, "received_bytes", "bytes received", "bytes");
STATCTR_DEFINE(before_main);
STATCTR_DEFINE(handled);
STATCTR_DEFINE(never);
STATCTR_DEFINE(raced);
STATCTR_DEFINE(plugin);
STATCTR_DECLARE(requests);

__attribute__((constructor)) static void construct(void)
{
    statctr_static_inc(&before_main);
}

static void handler(int number)
{
    (void)number;
    statctr_static_inc(&handled);
}

static void *count(void *number)
{
    for (unsigned i = 0; i < 100000; i++) {
        if (i % 1000 == 0)
            move_to((unsigned)(uintptr_t)number + i / 1000);
        statctr_static_inc(&raced);
        statctr_static_add(&raced, 5);
        statctr_static_dec(&raced);
        statctr_static_sub(&raced, 3);
    }
    return NULL;
}

struct seen {
    char text[2000];
    unsigned left;
};

static int note(const statctr_sample_t *sample, void *context)
{
    struct seen *seen = (struct seen *)context;
    const size_t there = strlen(seen->text);
    const char *const *labels = sample->desc.labels;
    snprintf(seen->text + there, sizeof(seen->text) - there, "%s%s%s=%" PRIu64 "%s;", sample->desc.name,
             labels[0] ? labels[0] : "", labels[0] ? labels[1] : "", sample->value, sample->desc.unit);
    return --seen->left == 0 ? 7 : 0;
}

int main(void)
{
    CHECK_EQ(statctr_static_read(&before_main), 1);
    CHECK_EQ(statctr_prepare(), 0);
    CHECK_EQ(statctr_static_read(&requests), 0);
    CHECK_EQ(requests.table, 0);
    CHECK_OK(statctr_static_inc(&requests));
    CHECK_OK(statctr_static_add(&requests, 41));
    CHECK_EQ(statctr_static_read(&requests), 42);
    CHECK_OK(statctr_static_add(&received, UINT64_C(1) << 40));
    const int mode = statctr_static_mode(&requests);
    CHECK(mode == STATCTR_MODE_RSEQ || mode == STATCTR_MODE_STRIPED || mode == STATCTR_MODE_ATOMIC);
    CHECK((mode == STATCTR_MODE_ATOMIC) == (requests.table == 0));
    /* the table that is loaded in line is the library's, whatever the linker made of it */
    CHECK(mode != STATCTR_MODE_RSEQ || (requests.fast != 0 && statctr_static_table_ == requests.table));

    CHECK(signal(SIGUSR1, handler) != SIG_ERR);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(statctr_static_read(&handled), 1);

    run_threads(4, count);
    CHECK_EQ(statctr_static_read(&raced), 4 * 100000 * 2);

    const pid_t child = fork();
    if (child == 0) {
        statctr_static_inc(&requests);
        _exit(statctr_static_read(&requests) == 43 ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(statctr_static_read(&requests), 42);

    /* the registry: what is registered first, then statics, by name */
    static statctr_t flow;
    const char *const labels[] = { "device", "eth0", NULL };
    const statctr_desc_t desc = { "flows", "flows seen", NULL, labels };
    const char *const half[] = { "device", NULL };
    const statctr_desc_t bad[] = { { "a b", "", "", NULL }, { NULL, "", "", NULL }, { "x", "", "", half } };
    CHECK_EQ(statctr_register(&flow, &desc), -EINVAL);
    CHECK_OK(statctr_init(&flow, 3));
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQ(statctr_register(&flow, &bad[i]), -EINVAL);
    CHECK_OK(statctr_register(&flow, &desc));
    CHECK_EQ(statctr_register(&flow, &desc), -EEXIST);
    struct seen seen = { "", 1000 };
    CHECK_OK(statctr_visit(note, &seen));
#if defined(__GNUC__)
    CHECK_EQ(strcmp(seen.text,
                    "flowsdeviceeth0=3;before_main=1;handled=1;never=0;plugin=0;raced=800000;"
                    "received_bytes=1099511627776bytes;requests=42;"),
             0);
#endif
    memset(&seen, 0, sizeof(seen));
    seen.left = 1;
    CHECK_EQ(statctr_visit(note, &seen), 7);
    CHECK_EQ(strcmp(seen.text, "flowsdeviceeth0=3;"), 0);
    CHECK_OK(statctr_unregister(&flow));
    CHECK_EQ(statctr_unregister(&flow), -ENOENT);
    CHECK_OK(statctr_static_forget(&plugin));
    CHECK_OK(statctr_static_forget(&plugin));
    seen.text[0] = 0;
    seen.left = 1000;
    CHECK_OK(statctr_visit(note, &seen));
    CHECK(strstr(seen.text, "flows") == NULL && strstr(seen.text, "plugin") == NULL);
    CHECK(strstr(seen.text, "never=0;") != NULL);
    CHECK_OK(statctr_cleanup(&flow));

    CHECK_EQ(statctr_static_add(NULL, 1), -EINVAL);
    CHECK_EQ(statctr_static_read(NULL), 0);
    CHECK_EQ(statctr_static_mode(NULL), -EINVAL);
    CHECK_EQ(statctr_static_list(NULL), -EINVAL);
    CHECK_EQ(statctr_visit(NULL, NULL), -EINVAL);
    return 0;
}
