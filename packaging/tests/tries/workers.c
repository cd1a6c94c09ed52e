/* Four workers hash blocks; each counts its own. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
struct worker { unsigned long blocks, bytes; int id; };
static struct worker workers[4];
static long rounds;
static void *work(void *argument) {
    struct worker *me = argument;
    unsigned hash = me->id;
    for (long i = 0; i < rounds; i++) {
        hash = hash * 31 + i;
        me->blocks++;
        __asm__ volatile("" ::: "memory");
        me->bytes += hash & 63;
    }
    return 0;
}
int main(int argc, char **argv) {
    rounds = argc > 1 ? atol(argv[1]) : 200000000;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) { workers[i].id = i; pthread_create(&threads[i], 0, work, &workers[i]); }
    unsigned long sum = 0;
    for (int i = 0; i < 4; i++) { pthread_join(threads[i], 0); sum += workers[i].bytes; }
    printf("%lu\n", sum);
}
