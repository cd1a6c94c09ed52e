/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Clients that wait for each I/O thread: the threads count them down, the main thread looks (redis #10892). */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };

struct pending {
	atomic_ulong count;
}
#ifdef FIXED
__attribute__((aligned(64)))
#endif
;

static struct pending pending[THREADS] __attribute__((aligned(64)));
static unsigned long rounds;

static void *run(void *data)
{
	unsigned long thread = (unsigned long)data, at;

	for (at = 0; at < rounds; at++) {
		unsigned long left = atomic_load_explicit(&pending[thread].count, memory_order_acquire);

		atomic_store_explicit(&pending[thread].count, left ? left - 1 : 16, memory_order_release);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	unsigned long thread;

	rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
	for (thread = 0; thread < THREADS; thread++)
		if (pthread_create(&threads[thread], NULL, run, (void *)thread))
			return 2;
	for (thread = 0; thread < THREADS; thread++)
		pthread_join(threads[thread], NULL);
	printf("%lu\n", atomic_load(&pending[0].count));
	return 0;
}
