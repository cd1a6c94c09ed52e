/* What the shapes of all languages share: nodes of one cache line each, far more of them than caches hold. */
#ifndef SHAPES_H
#define SHAPES_H
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct node {
	uint64_t warm0;
	uint64_t cold;
	uint64_t warm1;
	uint64_t warm2;
	uint64_t (*handler)(struct node *);
	void *label;
	unsigned char bytes[16];
} __attribute__((aligned(64)));

#define NODES (1u << 22) /* 256 MB */
static struct node *nodes;
static uint64_t random_state = 88172645463325252ull;

static inline __attribute__((always_inline)) struct node *pick(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return &nodes[random_state & (NODES - 1)];
}

/* A shape is a function of its own: it repeats n times and returns something that depends on all of it. */
#define SHAPE(name) __attribute__((noinline)) static uint64_t shape_##name(long n)
/* A function that a shape calls is part of it. */
#define PART(name) __attribute__((noinline)) static uint64_t shape_##name

typedef uint64_t (*shape_function)(long);
struct shape {
	const char *name;
	shape_function function;
};

static double seconds_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Runs the shape that the first argument names for as many seconds as the second says. */
static int run_shape(const struct shape *shapes, size_t count, int arguments, char **words)
{
	double end = seconds_now() + (arguments > 2 ? strtod(words[2], NULL) : 1.0);
	uint64_t sum = 0;

	for (size_t i = 0; i < count && arguments > 1; i++) {
		if (strcmp(words[1], shapes[i].name))
			continue;
		do
			sum += shapes[i].function(20000);
		while (seconds_now() < end);
		printf("%llu\n", (unsigned long long)sum);
		return 0;
	}
	for (size_t i = 0; i < count; i++)
		puts(shapes[i].name);
	return arguments > 1;
}
#endif
