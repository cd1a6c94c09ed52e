/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Memory that each thread has allocated, summed by the main thread after each command (valkey #4111). */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };

struct used_memory {
	atomic_size_t bytes;
}
#ifdef FIXED
__attribute__((aligned(64)))
#endif
;

static struct used_memory used_memory[THREADS] __attribute__((aligned(64)));
static unsigned long rounds;

/* A thread alone writes its counter: a load and a store are enough. */
static void account(unsigned long thread, size_t size)
{
	size_t now = atomic_load_explicit(&used_memory[thread].bytes, memory_order_relaxed);

	atomic_store_explicit(&used_memory[thread].bytes, now + size, memory_order_relaxed);
}

static void *run(void *data)
{
	unsigned long thread = (unsigned long)data, at;
	volatile unsigned long work = 0;

	for (at = 0; at < rounds; at++) {
		account(thread, 64);
		work += at;
		account(thread, -(size_t)64);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	unsigned long at, thread;
	size_t most = 0;

	rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
	for (thread = 1; thread < THREADS; thread++)
		if (pthread_create(&threads[thread], NULL, run, (void *)thread))
			return 2;
	for (at = 0; at < rounds / 4; at++) {
		size_t sum = 0;

		for (thread = 0; thread < THREADS; thread++)
			sum += atomic_load_explicit(&used_memory[thread].bytes, memory_order_relaxed);
		most = sum > most ? sum : most;
		account(0, 16);
	}
	for (thread = 1; thread < THREADS; thread++)
		pthread_join(threads[thread], NULL);
	printf("%d\n", most > 0);
	return 0;
}
