/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Events of queries that all threads count in one place (ClickHouse #82697). */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };

struct events {
	atomic_ulong rows;
	atomic_ulong bytes;
};

static struct events events;
static unsigned long rounds;

static void *run(void *data)
{
	unsigned long at, rows = 0, bytes = 0;

	for (at = 0; at < rounds; at++) {
#ifdef FIXED
		rows += 1;
		bytes += at & 255;
#else
		atomic_fetch_add_explicit(&events.rows, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&events.bytes, at & 255, memory_order_relaxed);
#endif
	}
	atomic_fetch_add_explicit(&events.rows, rows, memory_order_relaxed);
	atomic_fetch_add_explicit(&events.bytes, bytes, memory_order_relaxed);
	return data;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int thread;

	rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
	for (thread = 0; thread < THREADS; thread++)
		if (pthread_create(&threads[thread], NULL, run, NULL))
			return 2;
	for (thread = 0; thread < THREADS; thread++)
		pthread_join(threads[thread], NULL);
	printf("%lu\n", atomic_load(&events.rows));
	return atomic_load(&events.rows) == rounds * THREADS ? 0 : 1;
}
