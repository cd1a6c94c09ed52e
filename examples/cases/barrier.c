/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A pool of threads with a barrier: who comes counts itself, who waits reads how many barriers passed, and all read
 * the pool's settings (llama.cpp #9588). The last one to come waits for nobody, so that a run with few CPUs ends. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, LOOKS = 8 };

#ifdef FIXED
#define APART __attribute__((aligned(64)))
#else
#define APART
#endif

struct pool {
	atomic_uint arrived APART;
	atomic_uint passed APART;
	unsigned int threads APART;
	unsigned int chunk;
};

static struct pool pool = { .threads = THREADS, .chunk = 16 };
static unsigned long rounds;

static void barrier(void)
{
	unsigned int passed = atomic_load_explicit(&pool.passed, memory_order_relaxed), look;

	if (atomic_fetch_add_explicit(&pool.arrived, 1, memory_order_acq_rel) % pool.threads == pool.threads - 1) {
		atomic_fetch_add_explicit(&pool.passed, 1, memory_order_release);
		return;
	}
	for (look = 0; look < LOOKS; look++)
		if (atomic_load_explicit(&pool.passed, memory_order_acquire) != passed)
			break;
}

static void *run(void *data)
{
	unsigned long at;
	volatile unsigned int work = 0;

	for (at = 0; at < rounds; at++) {
		unsigned int step;

		for (step = 0; step < pool.chunk; step++)
			work += step;
		barrier();
	}
	return data;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int thread;

	rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 50000;
	for (thread = 0; thread < THREADS; thread++)
		if (pthread_create(&threads[thread], NULL, run, NULL))
			return 2;
	for (thread = 0; thread < THREADS; thread++)
		pthread_join(threads[thread], NULL);
	printf("%lu\n", (unsigned long)atomic_load(&pool.arrived));
	return atomic_load(&pool.arrived) == (unsigned int)(rounds * THREADS) ? 0 : 1;
}
