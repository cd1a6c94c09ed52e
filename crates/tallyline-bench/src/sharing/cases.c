/* Small programs of two threads, by CASE: as they are with data on shared lines, with FIXED on lines of their own. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2 };

#ifdef FIXED
#define APART __attribute__((aligned(128)))
#else
#define APART
#endif

/* What two threads have beside each other. */
struct slot {
	volatile uint64_t count;
	volatile uint64_t bytes;
} APART;

struct atomic_slot {
	atomic_ulong count;
} APART;

/* A setting that is read, beside what is written. */
struct settings {
	volatile uint64_t limit;
	volatile uint64_t written APART;
};

/* A limit that one thread reads, beside what the other counts. */
struct gate {
	volatile uint64_t limit;
	atomic_ulong used APART;
};

/* What each thread looks things up in. */
struct table {
	uint8_t known[4096];
};

static struct gate gate __attribute__((aligned(128)));
static struct table tables[THREADS] __attribute__((aligned(128)));
static struct slot slots[THREADS] __attribute__((aligned(128)));
static struct atomic_slot atomics[THREADS] __attribute__((aligned(128)));
static struct settings settings __attribute__((aligned(128)));
static unsigned long rounds;

/* A chain of multiplications: three cycles each. */
static inline uint64_t work(uint64_t value, int steps)
{
	int at;

	for (at = 0; at < steps; at++) {
		value = value * 0x9e3779b97f4a7c15 + 1;
		__asm__ volatile("" : "+r"(value));
	}
	return value;
}

static uint64_t run_case(unsigned long thread)
{
	uint64_t value = thread, at;

	for (at = 0; at < rounds; at++) {
#if CASE == 1
		slots[thread].count++;
#elif CASE == 2
		slots[thread].count++;
		value = work(value, 12);
#elif CASE == 3
		slots[thread].count++;
		value = work(value, 50);
#elif CASE == 4
		atomic_fetch_add_explicit(&atomics[thread].count, 1, memory_order_relaxed);
#elif CASE == 5
		atomic_fetch_add_explicit(&atomics[thread].count, 1, memory_order_relaxed);
		value = work(value, 12);
#elif CASE == 6
		/* one writes, the other reads what is beside it */
		if (thread)
			settings.written = at;
		else
			value += settings.limit;
		value = work(value, 4);
#elif CASE == 7
		slots[thread].count++;
		slots[thread].bytes += at & 1023;
		value = work(value, 8);
#elif CASE == 8
		/* each reads its own word before it writes it, and the next step depends on it */
		value = work(slots[thread].count + value, 2);
		slots[thread].count = value;
#elif CASE == 9
		slots[thread].count = at;
		value = work(value, 4);
#elif CASE == 10
		/* a word of the stack's own: nothing is shared */
		volatile uint64_t own = at;
		value = work(value + own, 6);
#elif CASE == 11
		/* both read, nobody writes */
		value = work(value + settings.limit, 4);
#elif CASE == 12
		slots[thread].count++;
		value = work(value, 400);
#elif CASE == 13
		/* a look-up in a table of the thread's own, and its hits and misses beside the other's */
		value = work(value, 3);
		if (tables[thread].known[value >> 52])
			slots[thread].count++;
		else
			slots[thread].bytes++;
#elif CASE == 14
		/* one counts, the other reads the limit that stands beside it */
		if (thread)
			atomic_fetch_add_explicit(&gate.used, 1, memory_order_relaxed);
		else
			value += gate.limit;
		value = work(value, 8);
#endif
	}
	return value;
}

static void *run(void *data)
{
	unsigned long thread = (unsigned long)data;
	cpu_set_t allowed, own;
	int cpu, seen = 0;

	/* each on a CPU of its own, where there are two */
	if (!sched_getaffinity(0, sizeof allowed, &allowed))
		for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &allowed) && seen++ == (int)thread) {
				CPU_ZERO(&own);
				CPU_SET(cpu, &own);
				sched_setaffinity(0, sizeof own, &own);
			}
	return (void *)run_case(thread);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	unsigned long thread;
	uint64_t sum = 0;

	rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	settings.limit = 3;
	gate.limit = 5;
	for (thread = 0; thread < THREADS; thread++) {
		size_t at;

		for (at = 0; at < sizeof tables[thread].known; at++)
			tables[thread].known[at] = at * 7 % 16 != 0;
	}
	for (thread = 0; thread < THREADS; thread++)
		if (pthread_create(&threads[thread], NULL, run, (void *)thread))
			return 2;
	for (thread = 0; thread < THREADS; thread++) {
		void *value;

		pthread_join(threads[thread], &value);
		sum += (uint64_t)value;
	}
	/* the sum is used, and no exit status */
	return sum == 0x5eed5eed5eed5eed ? 3 : 0;
}
