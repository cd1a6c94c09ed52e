// Products of matrices, by bands of rows, with a barrier between the products.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define DIM 64
#define THREADS 2

struct band {
    unsigned first;
    unsigned last;
    unsigned rounds;
    unsigned index;
    double trace;
    double largest;
};

static double a[DIM][DIM] __attribute__((aligned(64)));
static double b[DIM][DIM] __attribute__((aligned(64)));
static double c[DIM][DIM] __attribute__((aligned(64)));
static pthread_barrier_t turn;

static void multiply_row(unsigned i)
{
    double row[DIM] = {0};
    for (unsigned k = 0; k < DIM; k++) {
        double f = a[i][k];
        for (unsigned j = 0; j < DIM; j++)
            row[j] += f * b[k][j];
    }
    for (unsigned j = 0; j < DIM; j++)
        c[i][j] = row[j];
}

static void *run_band(void *arg)
{
    struct band *me = arg;
    double trace = 0, largest = 0;
    for (unsigned r = 0; r < me->rounds; r++) {
        for (unsigned i = me->first; i < me->last; i++)
            multiply_row(i);
        pthread_barrier_wait(&turn);
        for (unsigned i = me->first; i < me->last; i++) {
            trace += c[i][i];
            for (unsigned j = 0; j < DIM; j++) {
                a[i][j] = c[i][j] * (1.0 / DIM);
                if (c[i][j] > largest)
                    largest = c[i][j];
            }
        }
        pthread_barrier_wait(&turn);
    }
    me->trace = trace;
    me->largest = largest;
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 3;
    for (unsigned i = 0; i < DIM; i++)
        for (unsigned j = 0; j < DIM; j++) {
            a[i][j] = (double)((i * 7 + j * 3) % 11) / 11.0;
            b[i][j] = (double)((i * 5 + j * 2) % 13) / 6.5;
        }
    pthread_barrier_init(&turn, NULL, THREADS);
    struct band bands[THREADS];
    pthread_t t[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        bands[i] = (struct band){DIM / THREADS * i, DIM / THREADS * (i + 1), rounds, i, 0, 0};
        pthread_create(&t[i], NULL, run_band, &bands[i]);
    }
    double trace = 0, largest = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        trace += bands[i].trace;
        if (bands[i].largest > largest)
            largest = bands[i].largest;
    }
    printf("trace %.3f, largest %.3f\n", trace, largest);
    return 0;
}
