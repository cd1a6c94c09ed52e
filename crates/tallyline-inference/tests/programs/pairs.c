// Members side by side, which aarch64 loads and stores by one instruction for a pair of registers.

struct both {
	long first, second;
	long elements[2];
	__int128 wide;
	union { double number; void *pointer; int small; } any;
	void *last;
	double x, y;
};

#define APART __attribute__((noinline))

APART long sum(struct both *b) { return b->first + b->second; }
APART long elements(struct both *b) { return b->elements[0] * b->elements[1]; }
APART __int128 wide(struct both *b) { return b->wide; }
APART int pointers(struct both *b) { return b->any.pointer == b->last; }
APART double floats(struct both *b) { return b->x * b->y; }
APART void store(struct both *b, long one, long other) { b->first = one; b->second = other; }

int main(int count, char **words)
{
	struct both b = { .first = count };

	store(&b, count, 2);
	return sum(&b) + elements(&b) + wide(&b) + pointers(&b) + floats(&b) + (words == 0);
}
