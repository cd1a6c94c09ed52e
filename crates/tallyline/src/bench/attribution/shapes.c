/*
 * One access of each turn can stall: the first one to a random node. Its field is `cold`, or as the table in
 * truth.rs says; all others of the node are in the same line and hit. Forms that a compiler chooses are
 * written as the instruction itself, so that each compiler's program has them.
 */
#define _GNU_SOURCE
#include "shapes.h"

#define AGAIN while (n--)
/* keeps the compiler from moving accesses over it */
#define BARRIER __asm__ volatile("" ::: "memory")

SHAPE(load)
{
	uint64_t sum = 0;

	AGAIN {
		struct node *p = pick();
		sum += p->cold;
		BARRIER;
		sum ^= p->warm1;
	}
	return sum;
}

#if defined(__x86_64__)
/* a load and a conditional jump on it, in two instructions or one; behind it each way reads another field */
#define BRANCH(name, text, jump, constraint, value)                                                     \
	SHAPE(name)                                                                                     \
	{                                                                                               \
		uint64_t sum = 0;                                                                       \
		AGAIN {                                                                                 \
			struct node *p = pick();                                                        \
			__asm__ goto volatile(text "\n\t" jump " %l[out]" : : "m"(p->cold), constraint(value) : "cc", "rcx" : out); \
			sum += p->warm1;                                                                \
			continue;                                                                       \
		out:                                                                                    \
			__asm__ volatile("addq $1, %0" : "+m"(p->warm2));                               \
			sum++;                                                                          \
		}                                                                                       \
		return sum;                                                                             \
	}
#define FIVE ((uint64_t)5)
BRANCH(load_test, "movq %0, %%rcx\n\ttestq %%rcx, %%rcx", "jne", "r", FIVE)
BRANCH(cmp_taken, "cmpq %1, %0", "ja", "r", FIVE)
BRANCH(cmp_not_taken, "cmpq %1, %0", "jb", "r", FIVE)
BRANCH(cmp_either, "cmpq %1, %0", "je", "r", (uint64_t)9)
BRANCH(cmp_register, "cmpq %0, %1", "jb", "r", FIVE)
BRANCH(cmp_immediate, "cmpq $5, %0", "ja", "r", FIVE)
BRANCH(test_taken, "testq %1, %0", "jne", "r", (uint64_t)15)
BRANCH(test_immediate, "testb $1, %0", "jne", "r", FIVE)
BRANCH(sub, "movl $1, %%ecx\n\tsubq %0, %%rcx", "ja", "r", FIVE)
BRANCH(add, "movl $1, %%ecx\n\taddq %0, %%rcx", "jne", "r", FIVE)
BRANCH(and, "movl $15, %%ecx\n\tandq %0, %%rcx", "jne", "r", FIVE)
BRANCH(or, "movl $1, %%ecx\n\torq %0, %%rcx", "jne", "r", FIVE)
BRANCH(xor, "movl $1, %%ecx\n\txorq %0, %%rcx", "jne", "r", FIVE)
BRANCH(decrement, "decq %0", "jne", "r", FIVE)

SHAPE(loop_end)
{
	uint64_t sum = 0;
	struct node *p;
	long i = 0;

	do {
		p = pick();
		sum += (uint64_t)i;
		if (++i == n)
			break;
	} while (p->cold != sum + 0x123456789abcull);
	return sum;
}

SHAPE(join_two)
{
	uint64_t sum = 0;

	AGAIN {
		struct node *p = pick();
		uint64_t t;
		__asm__ goto volatile("cmpq %1, %0\n\tjae %l[out]" : : "m"(p->cold), "r"((uint64_t)11) : "cc" : out);
		__asm__ volatile("movq %1, %0\n\taddq $100, %0\n\tmovq %0, %1" : "=&r"(t), "+m"(p->warm1));
	out:
		__asm__ volatile("addq $1, %0" : "+m"(p->warm2));
		sum++;
	}
	return sum;
}

SHAPE(join_three)
{
	uint64_t sum = 0;

	AGAIN {
		struct node *p = pick();
		uint64_t t;
		__asm__ goto volatile("cmpq %1, %0\n\tja %l[out]" : : "m"(p->cold), "r"((uint64_t)11) : "cc" : out);
		__asm__ goto volatile("cmpq %1, %0\n\tja %l[out]" : : "m"(p->warm0), "r"((uint64_t)1) : "cc" : out);
		__asm__ volatile("movq %1, %0\n\taddq $100, %0\n\tmovq %0, %1" : "=&r"(t), "+m"(p->warm1));
	out:
		__asm__ volatile("addq $1, %0" : "+m"(p->warm2));
		sum++;
	}
	return sum;
}

SHAPE(chain)
{
	uint64_t sum = 0;

	AGAIN {
		struct node *p = pick();
		__asm__ goto volatile("cmpq %1, %0\n\tje %l[out]" : : "m"(p->cold), "r"((uint64_t)13) : "cc" : out);
		__asm__ goto volatile("cmpq %1, %0\n\tje %l[out]" : : "m"(p->warm0), "r"((uint64_t)7) : "cc" : out);
		__asm__ goto volatile("cmpq %1, %0\n\tje %l[out]" : : "m"(p->warm1), "r"((uint64_t)1) : "cc" : out);
		sum += p->warm2;
		continue;
	out:
		sum++;
	}
	return sum;
}

/* one instruction that accesses `cold`, then one that hits */
#define ONE(name, text, ...)                                                      \
	SHAPE(name)                                                               \
	{                                                                         \
		uint64_t sum = 0;                                                 \
		AGAIN {                                                           \
			struct node *p = pick();                                  \
			uint64_t x = 1;                                           \
			__asm__ volatile(text : "+m"(p->cold), "+r"(x)__VA_ARGS__); \
			sum += x;                                                 \
			BARRIER;                                                  \
			sum ^= p->warm1;                                          \
		}                                                                 \
		return sum;                                                       \
	}
ONE(rmw, "addq $2, %0", : : "cc")
ONE(locked, "lock addq $2, %0", : : "cc")
ONE(exchange, "xchgq %1, %0")
ONE(compare_and_swap, "xorl %%eax, %%eax\n\tlock cmpxchgq %1, %0", : : "rax", "cc")
ONE(bit_set, "lock btsq $40, %0", : : "cc")
ONE(cmov, "testq %1, %1\n\tcmovneq %0, %1", : : "cc")
ONE(push, "leaq -128(%%rsp), %%rsp\n\tpushq %0\n\tpopq %1\n\tleaq 128(%%rsp), %%rsp", : : "cc")
ONE(vector, "movdqu %0, %%xmm0\n\tmovq %%xmm0, %1", : : "xmm0")

SHAPE(division)
{
	uint64_t sum = 0;

	AGAIN {
		struct node *p = pick();
		sum += 1000000007u / p->cold;
		BARRIER;
		sum ^= p->warm1;
	}
	return sum;
}

SHAPE(store)
{
	uint64_t sum = 0;

	AGAIN {
		struct node *p = pick();
		p->cold = (uint64_t)n;
		BARRIER;
		p->warm1 = sum;
		BARRIER;
		p->warm2 = sum++;
	}
	return sum;
}

SHAPE(string_move)
{
	uint64_t sum = 0, copy[2];

	AGAIN {
		struct node *p = pick();
		const void *from = &p->cold;
		void *to = copy;
		size_t length = 16;
		__asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(length) : : "memory");
		sum += copy[0];
		BARRIER;
		sum ^= p->warm2;
	}
	return sum;
}

SHAPE(byte_loop)
{
	uint64_t sum = 0;

	AGAIN {
		const unsigned char *byte = pick()->bytes;
		while (*byte)
			byte++, sum++;
	}
	return sum;
}

PART(leaf)(struct node *p)
{
	return p->cold;
}

SHAPE(leaf_return)
{
	uint64_t sum = 0;

	AGAIN {
		struct node *p = pick();
		sum += shape_leaf(p);
		BARRIER;
		sum ^= p->warm1;
	}
	return sum;
}

PART(handler)(struct node *p)
{
	return p->warm1 + 1;
}

SHAPE(call_memory)
{
	uint64_t sum = 0;

	AGAIN {
		struct node *p = pick();
		sum += p->handler(p);
	}
	return sum;
}

PART(tail)(struct node *p)
{
	__asm__ volatile("" : "+r"(p));
	return p->handler(p);
}

SHAPE(tail_call)
{
	uint64_t sum = 0;

	AGAIN
		sum += shape_tail(pick());
	return sum;
}

SHAPE(jump_memory)
{
	uint64_t sum = 0;
	static void *label;

	if (!label) {
		label = &&target;
		for (size_t i = 0; i < NODES; i++)
			nodes[i].label = label;
	}
	AGAIN {
		struct node *p = pick();
		__asm__ goto volatile("jmp *%0" : : "m"(p->label) : : target);
	target:
		__asm__ volatile("addq $1, %0" : "+m"(p->warm2));
		sum++;
	}
	return sum;
}

#ifdef __AVX2__
#include <immintrin.h>
SHAPE(gather)
{
	uint64_t sum = 0;

	AGAIN {
		struct node *p = pick();
		__m256i index = _mm256_set_epi64x(0, 0, 0, 0), got;
		got = _mm256_i64gather_epi64((const long long *)&p->cold, index, 8);
		sum += (uint64_t)_mm256_extract_epi64(got, 0);
		BARRIER;
		sum ^= p->warm1;
	}
	return sum;
}
#endif
#endif

/* two loads that both miss, the second at an address that depends on the first's value */
SHAPE(two_misses)
{
	uint64_t sum = 0;

	AGAIN {
		struct node *p = pick(), *q;
		uint64_t first = p->cold;
		q = &nodes[(random_state * 0x9e3779b97f4a7c15ull + first * 0) >> 42];
		q = (struct node *)((uintptr_t)q + (first & 0x40));
		sum += q->warm0;
	}
	return sum;
}

/* nothing misses: the instructions retire evenly */
SHAPE(hot)
{
	struct node *p = nodes;
	uint64_t a = 1, b = 2;

	AGAIN {
		p->warm0 += a;
		a ^= b;
		p->warm1 = b;
		b += a;
		p->warm2 ^= b;
	}
	return a + b;
}

static const struct shape shapes[] = {
#define S(name) { #name, shape_##name }
	S(load),
#if defined(__x86_64__)
	S(load_test), S(cmp_taken), S(cmp_not_taken), S(cmp_either), S(cmp_register), S(cmp_immediate), S(test_taken),
	S(test_immediate), S(sub), S(add), S(and), S(or), S(xor), S(decrement), S(loop_end), S(join_two),
	S(join_three), S(chain), S(rmw), S(locked), S(exchange), S(compare_and_swap), S(bit_set), S(cmov), S(push),
	S(vector), S(division), S(store), S(string_move), S(byte_loop), S(leaf_return), S(call_memory), S(tail_call),
	S(jump_memory),
#ifdef __AVX2__
	S(gather),
#endif
#endif
	S(two_misses), S(hot),
};

int main(int arguments, char **words)
{
	nodes = aligned_alloc(64, sizeof *nodes * NODES);
	if (!nodes)
		return 2;
	for (size_t i = 0; i < NODES; i++) {
		memset(&nodes[i], 0, sizeof nodes[i]);
		nodes[i].cold = 9 + i % 3 * 2;
		nodes[i].warm1 = i;
#if defined(__x86_64__)
		nodes[i].handler = shape_handler;
#endif
		memset(nodes[i].bytes, 1, 6);
	}
	return run_shape(shapes, sizeof shapes / sizeof *shapes, arguments, words);
}
