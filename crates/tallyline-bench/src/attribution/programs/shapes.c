/*
 * One access of each turn can stall: the first one to a random node. Its field is `cold`, or as truth.rs says;
 * all others of the node are in the same line and hit. Forms that a compiler chooses are written as the
 * instruction itself, so that each compiler's program has them.
 */
#define _GNU_SOURCE
#include "shapes.h"

struct node {
	uint64_t warm0;
	uint64_t cold;
	uint64_t warm1;
	uint64_t warm2;
	uint64_t (*handler)(struct node *);
	void *label;
	uint64_t (*tail)(struct node *);
	unsigned char bytes[8];
} __attribute__((aligned(64)));

static struct node *nodes;

static inline __attribute__((always_inline)) struct node *pick(void)
{
	return &nodes[random_index()];
}

/* A random node whose values are those of the turn: branches on them go a way that is predicted. */
static inline __attribute__((always_inline)) struct node *pick_for(long turn)
{
	return &nodes[(random_index() & ~3ul) | (turn & 3)];
}

/* A function that a shape calls is part of it, by its name. */
#define PART(shape, name)                                                        \
	__attribute__((noinline)) uint64_t shape_##shape##__##name(struct node *); \
	__attribute__((noinline)) uint64_t shape_##shape##__##name(struct node *p)

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
			struct node *p = pick_for(n);                                                \
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
/* the operands that each form of a pair has; jumps by the zero, carry and sign flags */
BRANCH(load_test, "movq %0, %%rcx\n\ttestq %%rcx, %%rcx", "jne", "r", FIVE)
BRANCH(load_cmp, "movq %0, %%rcx\n\tcmpq %1, %%rcx", "ja", "r", FIVE)
BRANCH(load_decrement, "movq %0, %%rcx\n\tdecq %%rcx", "jne", "r", FIVE)
BRANCH(cmp_taken, "cmpq %1, %0", "ja", "r", FIVE)
BRANCH(cmp_not_taken, "cmpq %1, %0", "jb", "r", FIVE)
BRANCH(cmp_either, "cmpq %1, %0", "je", "r", (uint64_t)9)
BRANCH(cmp_register, "cmpq %0, %1", "jb", "r", FIVE)
BRANCH(cmp_immediate, "cmpq $5, %0", "ja", "r", FIVE)
BRANCH(cmp_signed, "cmpq %1, %0", "jg", "r", FIVE)
BRANCH(cmp_immediate_signed, "cmpq $5, %0", "jl", "r", FIVE)
BRANCH(test_taken, "testq %1, %0", "jne", "r", (uint64_t)15)
BRANCH(test_immediate, "testb $1, %0", "jne", "r", FIVE)
BRANCH(sub, "movl $1, %%ecx\n\tsubq %0, %%rcx", "ja", "r", FIVE)
BRANCH(add, "movl $1, %%ecx\n\taddq %0, %%rcx", "jne", "r", FIVE)
BRANCH(and, "movl $15, %%ecx\n\tandq %0, %%rcx", "jne", "r", FIVE)
BRANCH(or, "movl $1, %%ecx\n\torq %0, %%rcx", "jne", "r", FIVE)
BRANCH(xor, "movl $1, %%ecx\n\txorq %0, %%rcx", "jne", "r", FIVE)
BRANCH(increment, "incq %0", "jne", "r", FIVE)
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
		struct node *p = pick_for(n);
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
		struct node *p = pick_for(n);
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
		while (*byte) {
			byte++;
			sum++;
		}
	}
	return sum;
}

PART(leaf_return, leaf)
{
	return p->cold;
}

SHAPE(leaf_return)
{
	uint64_t sum = 0;

	AGAIN {
		struct node *p = pick();
		sum += shape_leaf_return__leaf(p);
		BARRIER;
		sum ^= p->warm1;
	}
	return sum;
}

PART(call_memory, callee)
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

PART(tail_call, callee)
{
	return p->warm1 + 1;
}

PART(tail_call, jump)
{
	__asm__ volatile("" : "+r"(p));
	return p->tail(p);
}

SHAPE(tail_call)
{
	uint64_t sum = 0;

	AGAIN
		sum += shape_tail_call__jump(pick());
	return sum;
}

static __attribute__((noinline)) void set_labels(void *label)
{
	for (size_t i = 0; i < NODES; i++)
		nodes[i].label = label;
}

SHAPE(jump_memory)
{
	uint64_t sum = 0;

	if (nodes[0].label != &&target)
		set_labels(&&target);
	AGAIN {
		struct node *p = pick();
		__asm__ goto volatile("jmp *%0" : : "m"(p->label) : : target);
	target:
		__asm__ volatile("addq $1, %0" : "+m"(p->warm2));
		sum++;
	}
	return sum;
}

SHAPE(gather)
{
	uint64_t sum = 0;

	AGAIN {
		struct node *p = pick();
		uint64_t x;
		__asm__ volatile("vpxor %%xmm1, %%xmm1, %%xmm1\n\t"
				 "vpcmpeqd %%xmm2, %%xmm2, %%xmm2\n\t"
				 "vpgatherqq %%xmm2, (%1,%%xmm1,8), %%xmm0\n\t"
				 "vmovq %%xmm0, %0"
				 : "=r"(x) : "r"(&p->cold), "m"(p->cold) : "xmm0", "xmm1", "xmm2");
		sum += x;
		BARRIER;
		sum ^= p->warm1;
	}
	return sum;
}
#endif

/* Two loads that both miss, each at an address that depends on the other's value. */
SHAPE(two_misses)
{
	uint64_t sum = 0;

	AGAIN {
		struct node *p = pick(), *q;
		q = &nodes[(p->cold * 0x9e3779b97f4a7c15ull ^ random_state) & (NODES - 1)];
		random_state += q->warm2;
		sum++;
	}
	return sum;
}

/*
 * Nothing misses. Each instruction of a turn waits for the one before it and takes as long, so that as many samples
 * lie behind each: eight multiplications, half of them by `cold`, a quarter by `warm0`, one each by the others.
 */
SHAPE(hot)
{
	struct node *p = nodes;
	uint64_t x = 3;

	AGAIN {
#if defined(__x86_64__)
		__asm__ volatile("imulq %2, %0\n\timulq %1, %0\n\timulq %2, %0\n\timulq %3, %0\n\t"
				 "imulq %2, %0\n\timulq %1, %0\n\timulq %2, %0\n\timulq %4, %0"
				 : "+r"(x) : "m"(p->warm0), "m"(p->cold), "m"(p->warm1), "m"(p->warm2) : "cc");
#else
		for (int i = 0; i < 2; i++) {
			x *= p->cold;
			BARRIER;
			x *= p->warm0;
			BARRIER;
			x *= p->cold;
			BARRIER;
			x *= i ? p->warm2 : p->warm1;
			BARRIER;
		}
#endif
	}
	return x;
}

static const struct shape shapes[] = {
#define S(name) { #name, shape_##name }
	S(load),
#if defined(__x86_64__)
	S(load_test), S(load_cmp), S(load_decrement), S(cmp_taken), S(cmp_not_taken), S(cmp_either), S(cmp_register), S(cmp_immediate), S(cmp_signed),
	S(cmp_immediate_signed), S(test_taken), S(test_immediate), S(sub), S(add), S(and), S(or), S(xor), S(increment),
	S(decrement), S(loop_end), S(join_two), S(join_three), S(chain), S(rmw), S(locked), S(exchange),
	S(compare_and_swap), S(bit_set), S(cmov), S(push), S(vector), S(gather), S(division), S(store), S(string_move),
	S(byte_loop), S(leaf_return), S(call_memory), S(tail_call), S(jump_memory),
#endif
	S(two_misses), S(hot),
};

static void prepare(void)
{
	for (size_t i = 0; i < NODES; i++) {
		memset(&nodes[i], 0, sizeof nodes[i]);
		nodes[i].cold = 9 + (i & 3) * 2;
		nodes[i].warm0 = (i & 3) == 1 ? 2 : 0;
		nodes[i].warm1 = i;
#if defined(__x86_64__)
		nodes[i].handler = shape_call_memory__callee;
		nodes[i].tail = shape_tail_call__callee;
#endif
		memset(nodes[i].bytes, 1, 6);
	}
}

int main(int arguments, char **words)
{
	nodes = allocate_nodes(sizeof *nodes);
	if (!nodes)
		return 2;
	return run_shapes(shapes, sizeof shapes / sizeof *shapes, prepare, arguments, words);
}
