/* A program of a user of libstatctr: counts with some threads, and says what it read. */
#include <pthread.h>
#include <statctr.h>
#include <stdio.h>

enum { THREADS = 4, UPDATES = 1000 };

static statctr_t packets;

static void *count(void *unused)
{
    (void)unused;
    for (int i = 0; i < UPDATES; i++)
        statctr_inc(&packets);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int error = statctr_init(&packets, 0);
    if (error) {
        fprintf(stderr, "statctr_init: %s\n", statctr_strerror(error));
        return 1;
    }
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, count, NULL))
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%lu packets, library %s\n", statctr_read(&packets), statctr_version());
    return statctr_read(&packets) != THREADS * UPDATES || statctr_cleanup(&packets) != 0;
}
