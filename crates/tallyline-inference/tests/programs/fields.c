// Members that share bytes: a word behind a line's end says which of them the line touches, by the names
// that the report gives.

#include <stdio.h>
#include <stdlib.h>

struct shared {
	long other;
	union { long padding; int count; } ref;
	union { double number; void *pointer; short small; char raw[8]; } any;
};

struct flags {
	unsigned a : 3;
	unsigned b : 5;
	unsigned c : 9;
	unsigned d : 15;
	unsigned char open : 1, closed : 1, kind : 6;
	int rest;
};

#define APART __attribute__((noinline))

APART int counted(struct shared *s) { return s->ref.count; }
APART long padded(struct shared *s) { return s->ref.padding; }
APART char smallest(struct shared *s) { return s->any.raw[1]; }
APART long wide(struct shared *s) { return (long)s->any.pointer; }
APART unsigned get_b(struct flags *f) { return f->b; }
APART unsigned get_c(struct flags *f) { return f->c; }
APART int is_closed(struct flags *f) { return f->closed; }
APART int if_open(struct flags *f) { return f->open ? f->rest : 7; }
APART void set_c(struct flags *f, unsigned v) { f->c = v; }
APART void set_kind(struct flags *f, unsigned v) { f->kind = v; }
APART void close_it(struct flags *f) { f->closed = 1; }
APART int two(struct flags *f) { return f->a == 2 && f->d == 7; }
APART void all(struct flags *f) { *f = (struct flags){ .a = 1, .b = 2, .c = 3, .d = 4, .kind = 5 }; }

int main(int count, char **words)
{
	struct shared *s = calloc(4, sizeof *s);
	struct flags *f = calloc(4, sizeof *f);

	printf("%d %ld %d %ld %u %u %d %d\n", counted(s), padded(s), smallest(s), wide(s), get_b(f), get_c(f),
	       is_closed(f), if_open(f));
	set_c(f, count);
	set_kind(f, count);
	close_it(f);
	all(f + 1);
	return two(f) + (words == 0);
}
