/* The server's counts by statctr: each thread counts on its own CPU's word. */
#include <pthread.h>
#include <statctr.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static statctr_t received, sent;
static long messages;

static void *receive(void *unused)
{
    for (long i = 0; i < messages; i++)
        statctr_inc(&received);
    return unused;
}

static void *transmit(void *unused)
{
    for (long i = 0; i < messages; i++)
        statctr_inc(&sent);
    return unused;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    messages = argc > 1 ? atol(argv[1]) : 50 * 1000 * 1000;
    int error = statctr_init(&received, 0);
    if (!error)
        error = statctr_init(&sent, 0);
    if (error) {
        fprintf(stderr, "no counters: %s\n", statctr_strerror(error));
        return 1;
    }
    double start = now();
    pthread_t receiver, sender;
    pthread_create(&receiver, NULL, receive, NULL);
    pthread_create(&sender, NULL, transmit, NULL);
    pthread_join(receiver, NULL);
    pthread_join(sender, NULL);
    printf("%lu received, %lu sent in %.2f s\n", statctr_read(&received), statctr_read(&sent), now() - start);
    statctr_cleanup(&sent);
    statctr_cleanup(&received);
    return 0;
}
