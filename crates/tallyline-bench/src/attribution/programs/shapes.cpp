/* Shapes that C++ has beside those of C: the first access to a random object is the only one that can stall. */
#include "shapes.h"
#include <atomic>
#include <new>

/* Objects of two classes: a compiler cannot tell which function a virtual call goes to. */
struct alignas(64) Node {
	virtual uint64_t shape_virtual_call__callee(uint64_t) = 0;
	uint64_t shape_member__increment(uint64_t);
	bool is_later(uint64_t limit) const { return cold > limit; }

	uint64_t warm0 = 0;
	uint64_t cold = 9;
	uint64_t warm1 = 1;
	std::atomic<uint64_t> uses{0};
};

struct Even final : Node {
	uint64_t shape_virtual_call__callee(uint64_t x) override { return x + warm0; }
};

struct Odd final : Node {
	uint64_t shape_virtual_call__callee(uint64_t x) override { return x ^ warm1; }
};

static Node *memory;

static inline __attribute__((always_inline)) Node *pick()
{
	return &memory[random_index()];
}

SHAPE(virtual_call)
{
	uint64_t sum = 0;

	/* the class is that of 256 turns, so that the call's target is predicted: AMD's Zen 3 in a virtual machine predicts
	   an indirect call by its last target alone, and took 7 ns more where targets alternate */
	AGAIN
		sum += memory[(random_index() & ~1ul) | (n >> 8 & 1)].shape_virtual_call__callee(sum);
	return sum;
}

__attribute__((noinline)) uint64_t Node::shape_member__increment(uint64_t x)
{
	uint64_t before = cold;
	BARRIER;
	warm0 += x;
	return before;
}

SHAPE(member)
{
	uint64_t sum = 0;

	AGAIN
		sum += pick()->shape_member__increment(sum);
	return sum;
}

SHAPE(member_inlined)
{
	uint64_t sum = 0;

	AGAIN {
		Node *p = pick();
		if (p->is_later(10))
			sum += p->warm0;
		BARRIER;
		p->warm1 += sum;
	}
	return sum;
}

SHAPE(atomic_add)
{
	uint64_t sum = 0;

	AGAIN {
		Node *p = pick();
		sum += p->uses.fetch_add(1, std::memory_order_relaxed);
		BARRIER;
		sum ^= p->warm1;
	}
	return sum;
}

SHAPE(atomic_load)
{
	uint64_t sum = 0;

	AGAIN {
		Node *p = pick();
		if (p->uses.load(std::memory_order_acquire) > 100)
			sum += p->warm0;
		p->warm1 += 1;
	}
	return sum;
}

SHAPE(atomic_exchange)
{
	uint64_t sum = 0;

	AGAIN {
		Node *p = pick();
		uint64_t expected = 0;
		sum += p->uses.compare_exchange_strong(expected, 1);
		BARRIER;
		sum ^= p->warm1;
	}
	return sum;
}

static const struct shape shapes[] = {
#define S(name) { #name, shape_##name }
	S(virtual_call), S(member), S(member_inlined), S(atomic_add), S(atomic_load), S(atomic_exchange),
};

static void prepare()
{
	for (size_t i = 0; i < NODES; i++) {
		if (i % 2)
			new (&memory[i]) Odd;
		else
			new (&memory[i]) Even;
	}
}

int main(int arguments, char **words)
{
	static_assert(sizeof(Node) == 64 && sizeof(Even) == 64 && sizeof(Odd) == 64, "an object is a line");
	memory = static_cast<Node *>(allocate_nodes(sizeof(Node)));
	if (!memory)
		return 2;
	return run_shapes(shapes, sizeof shapes / sizeof *shapes, prepare, arguments, words);
}
