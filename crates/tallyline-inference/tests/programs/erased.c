/* Types that casts and indices hide, as in a store of sorted sets: each line says which fields it touches. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline))
#define LEVELS 32

typedef char *text;

struct node {
	text name;
	double score;
	struct node *back;
	struct level { struct node *forward; unsigned long span; } level[];
};

struct list { struct node *header; unsigned long length; int level; };

struct __attribute__((packed)) short_head { unsigned char length; unsigned char kind; };

static inline size_t length(const text s)
{
	unsigned char kind = s[-1]; /* char. */
	switch (kind & 3) {
	case 0: return kind >> 2;
	case 1: return ((struct short_head *)(s - sizeof(struct short_head)))->length; /* char. short_head.length */
	case 2: return *(unsigned short *)(s - 5); /* char. */
	}
	return 0;
}

/* the parameters are pointers to void, what is inlined has the type */
APART int same(void *owner, const void *one, const void *other)
{
	size_t first = length((text)one), second = length((text)other);

	(void)owner;
	return first == second && memcmp(one, other, first) == 0;
}

APART unsigned long insert(struct list *list, double score, text name)
{
	struct node *update[LEVELS], *x = list->header; /* list.header */
	unsigned long rank[LEVELS], sum = 0;

	for (int i = list->level - 1; i >= 0; i--) { /* list.level */
		rank[i] = i == list->level - 1 ? 0 : rank[i + 1]; /* list.level longunsignedint[32].[] */
		while (x->level[i].forward && /* node.level[].forward */
		       (x->level[i].forward->score < score || /* node.level[].forward node.score */
			(x->level[i].forward->score == score && /* node.level[].forward node.score */
			 strcmp(x->level[i].forward->name, name) < 0))) { /* node.level[].forward node.name */
			rank[i] += x->level[i].span; /* node.level[].span longunsignedint[32].[] */
			x = x->level[i].forward; /* node.level[].forward */
		}
		update[i] = x;
	}
	for (int i = 0; i < list->level; i++) /* list.level */
		sum += rank[i] + update[i]->level[i].span; /* node.level[].span */
	return sum;
}

int main(int count, char **words)
{
	char buffer[] = "\x08xx\x02text";
	struct list list = { calloc(1, sizeof(struct node) + LEVELS * sizeof(struct level)), 0, count };

	printf("%lu\n", insert(&list, count, words[0]));
	return same(words, buffer + 4, buffer + 4);
}
