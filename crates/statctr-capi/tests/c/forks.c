/*
 * A forked child goes on from its parent's counts in its own memory, and can make counters although
 * other threads of the parent held the library's locks at the fork.
 */
#include "check.h"

#include <sys/wait.h>

static statctr_t counter;
static int stop;

static void *churn(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        statctr_t several[40];
        CHECK_OK(statctr_ninit(several, 40, 1));
        CHECK_OK(statctr_set(&several[0], 9));
        CHECK_OK(statctr_ncleanup(several, 40));
    }
    return NULL;
}

static void child(unsigned long before)
{
    statctr_t own;
    CHECK_EQ(statctr_read(&counter), before);
    for (int i = 0; i < 500; i++)
        CHECK_OK(statctr_inc(&counter));
    CHECK_EQ(statctr_read(&counter), before + 500);
    CHECK_OK(statctr_init(&own, 3));
    CHECK_OK(statctr_inc(&own));
    CHECK_EQ(statctr_read(&own), 4);
    CHECK_OK(statctr_set(&counter, 1));
    CHECK_EQ(statctr_read(&counter), 1);
    CHECK_OK(statctr_cleanup(&own));
    _exit(0);
}

int main(void)
{
    unsigned long counted = 0;
    pthread_t thread;
    CHECK_OK(statctr_init(&counter, 0));
    CHECK_EQ(pthread_create(&thread, NULL, churn, NULL), 0);
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < 1000; i++)
            CHECK_OK(statctr_inc(&counter));
        counted += 1000;
        const pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            alarm(20); /* a lock that did not survive ends the child, and so the test */
            child(counted);
        }
        /* meanwhile the parent goes on */
        for (int i = 0; i < 1000; i++)
            CHECK_OK(statctr_inc(&counter));
        counted += 1000;
        int status;
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        CHECK_EQ(statctr_read(&counter), counted);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_OK(statctr_cleanup(&counter));
    return 0;
}
