/* Two threads count the messages of one connection: one those that came, one those that went. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "connection.h"

static _Alignas(64) struct connection connection;
static long messages;

static void *receive(void *unused)
{
    for (long i = 0; i < messages; i++)
        __atomic_fetch_add(&connection.received, 1, __ATOMIC_RELAXED);
    return unused;
}

static void *transmit(void *unused)
{
    for (long i = 0; i < messages; i++)
        __atomic_fetch_add(&connection.sent, 1, __ATOMIC_RELAXED);
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
    double start = now();
    pthread_t receiver, sender;
    pthread_create(&receiver, NULL, receive, NULL);
    pthread_create(&sender, NULL, transmit, NULL);
    pthread_join(receiver, NULL);
    pthread_join(sender, NULL);
    printf("%lu received, %lu sent in %.2f s\n", connection.received, connection.sent, now() - start);
    return 0;
}
