// Orders in a list at random places, a table by key, ticks one after the other, a tree of rules, a queue.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct order { struct order *next; char name[40]; long amount; long seen; };
struct account { uint64_t key; long balance; char owner[48]; };
struct tick { double price; double volume; long time; long venue; };
struct rule { struct rule *left, *right; uint64_t key; long limit; char text[32]; };
struct job { long kind; long due; };

enum { ORDERS = 1 << 20, ACCOUNTS = 1 << 20, TICKS = 1 << 21, RULES = 1 << 13, JOBS = 1 << 10 };

static uint64_t state = 88172645463325252u;
static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

__attribute__((noinline)) static long walk(struct order **at, long steps)
{
	struct order *order = *at;
	long sum = 0;
	for (; steps > 0; steps--) {
		sum += order->amount;
		order = order->next;
	}
	*at = order;
	return sum;
}

__attribute__((noinline)) static void deposit(struct account *accounts, long count)
{
	for (; count > 0; count--) {
		uint64_t key = next_random() % ACCOUNTS;
		struct account *account = &accounts[key * 40503 % ACCOUNTS];
		if (account->key != key)
			abort();
		account->balance += count;
	}
}

__attribute__((noinline)) static double average(const struct tick *ticks, long count)
{
	double sum = 0, all = 0;
	for (long i = 0; i < count; i++) {
		sum += ticks[i].price * ticks[i].volume;
		all += ticks[i].volume;
	}
	return sum / all;
}

__attribute__((noinline)) static long apply(const struct rule *root, long count)
{
	long sum = 0;
	for (; count > 0; count--) {
		uint64_t key = next_random();
		const struct rule *rule = root, *last = root;
		while (rule) {
			last = rule;
			rule = key < rule->key ? rule->left : rule->right;
		}
		sum += last->limit;
	}
	return sum;
}

__attribute__((noinline)) static long work(struct job *jobs, long count)
{
	unsigned head = 0, tail = 0;
	long sum = 0;
	for (; count > 0; count--) {
		jobs[head++ % JOBS] = (struct job){ count & 7, count };
		if (head - tail == JOBS / 2)
			sum += jobs[tail++ % JOBS].due;
	}
	return sum;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 1;
	struct order *orders = calloc(ORDERS, sizeof *orders), *at = orders;
	struct account *accounts = calloc(ACCOUNTS, sizeof *accounts);
	struct tick *ticks = calloc(TICKS, sizeof *ticks);
	struct rule *rules = calloc(RULES, sizeof *rules), *root = rules;
	struct job *jobs = calloc(JOBS, sizeof *jobs);

	// one ring through all orders: a step of a full period
	for (uint64_t i = 0, place = 0; i < ORDERS; i++) {
		uint64_t next = (place * 1664525 + 1013904223) % ORDERS;
		orders[place].next = &orders[next];
		orders[place].amount = (long)i;
		place = next;
	}
	for (uint64_t key = 0; key < ACCOUNTS; key++)
		accounts[key * 40503 % ACCOUNTS].key = key;
	for (long i = 0; i < TICKS; i++)
		ticks[i] = (struct tick){ (double)i, 1, i, i };
	for (long i = 0; i < RULES; i++) {
		struct rule *rule = &rules[i], **place = &root;
		rule->key = next_random();
		rule->limit = i;
		while (i && *place)
			place = rule->key < (*place)->key ? &(*place)->left : &(*place)->right;
		*place = rule;
	}
	double sum = 0;
	for (; rounds > 0; rounds--) {
		sum += (double)walk(&at, 60000);
		deposit(accounts, 300000);
		sum += average(ticks, TICKS);
		sum += (double)apply(root, 100000);
		sum += (double)work(jobs, 1000000);
	}
	printf("%g\n", sum);
	return 0;
}
