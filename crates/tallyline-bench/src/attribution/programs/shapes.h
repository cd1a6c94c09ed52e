/* Shared by the shapes in C and C++: nodes of one cache line each, far more of them than caches hold. */
#ifndef SHAPES_H
#define SHAPES_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define NODES (1u << 22) /* 256 MB */

static uint64_t random_state = 88172645463325252ull;

static inline __attribute__((always_inline)) uint64_t random_index(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state & (NODES - 1);
}

/* A shape is a function of its own, which repeats n times and returns a value that depends on all of them. */
#ifdef __cplusplus
#define LINKAGE extern "C"
#else
#define LINKAGE
#endif
#define SHAPE(name)                                              \
	LINKAGE uint64_t shape_##name(long n);                   \
	LINKAGE __attribute__((noinline)) uint64_t shape_##name(long n)

/* keeps the compiler from moving accesses over it */
#define BARRIER __asm__ volatile("" ::: "memory")
#define AGAIN while (n--)

struct shape {
	const char *name;
	uint64_t (*function)(long);
};

/* Time of this process on the CPU: a busy machine takes as many samples of it as an idle one. */
static double seconds_on_cpu(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *allocate_nodes(size_t size)
{
	void *memory = aligned_alloc(1u << 21, size * NODES);
	if (memory)
		madvise(memory, size * NODES, MADV_HUGEPAGE);
	return memory;
}

/* Runs the shapes that arguments from the second on name, each for as many seconds as the first says; prints the
 * names of all shapes where there is no argument. */
static int run_shapes(const struct shape *shapes, size_t count, void (*prepare)(void), int arguments, char **words)
{
	double seconds = arguments > 1 ? strtod(words[1], NULL) : 0;
	uint64_t sum = 0;

	for (size_t i = 0; i < count && arguments < 2; i++)
		puts(shapes[i].name);
	for (int word = 2; word < arguments; word++) {
		size_t i = 0;
		while (i < count && strcmp(words[word], shapes[i].name))
			i++;
		if (i == count) {
			fprintf(stderr, "%s: no such shape\n", words[word]);
			return 1;
		}
		/* shapes write to nodes */
		prepare();
		double end = seconds_on_cpu() + seconds;
		do
			sum += shapes[i].function(20000);
		while (seconds_on_cpu() < end);
	}
	return sum == 1; /* it is not */
}
#endif
