/* Objects of several types, published, and functions that touch their fields. */
#include "published.h"
#include <string.h>

struct statistics { unsigned long packets, bytes; unsigned int errors[4]; };
struct order {
	struct order *next;
	int quantity;
	short flags;
	char name[18];
	struct statistics in, out;
	struct customer *customer;
};
struct customer { double balance; struct order *orders; long visits; char region; };
union word { unsigned long all; unsigned char bytes[8]; };
struct cell { union word word; unsigned kind : 3, weight : 13; };

#define ORDERS 500
#define CUSTOMERS 50
static struct cell cells[64];

__attribute__((noinline)) static long walk(struct order *order)
{
	long sum = 0;

	for (; order; order = order->next) {
		sum += order->quantity;
		if (order->flags & 1)
			order->out.bytes += order->in.bytes;
		order->customer->visits++;
	}
	return sum;
}

__attribute__((noinline)) static void receive(struct statistics *statistics, unsigned size)
{
	statistics->packets++;
	statistics->bytes += size;
	statistics->errors[size & 3] += size > 1400;
}

__attribute__((noinline)) static double settle(struct customer *customers, int count)
{
	double total = 0;

	for (int i = 0; i < count; i++) {
		for (struct order *order = customers[i].orders; order; order = order->next)
			customers[i].balance -= order->quantity * 0.5;
		total += customers[i].balance;
		customers[i].region = (char)i;
	}
	return total;
}

__attribute__((noinline)) static unsigned long mix(struct cell *cell, int count)
{
	unsigned long sum = 0;

	for (int i = 0; i < count; i++) {
		cell[i].word.all += i;
		cell[i].weight = i * 7;
		sum += cell[i].word.bytes[3] + cell[i].kind;
	}
	return sum;
}

int main(void)
{
	struct customer *customers = calloc(CUSTOMERS, sizeof *customers);
	struct order *orders = calloc(ORDERS, sizeof *orders);
	double result = 0;

	publish("struct customer", customers, sizeof *customers, CUSTOMERS);
	publish("struct order", orders, sizeof *orders, ORDERS);
	publish("struct cell", cells, sizeof *cells, 64);
	for (int i = 0; i < ORDERS; i++) {
		struct customer *customer = &customers[i % CUSTOMERS];

		orders[i].customer = customer;
		orders[i].next = customer->orders;
		orders[i].quantity = i;
		orders[i].flags = (short)i;
		orders[i].name[i % 18] = 'x';
		customer->orders = &orders[i];
	}
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < ORDERS; i++)
			receive(i & 1 ? &orders[i].in : &orders[i].out, i * 3);
		for (int i = 0; i < CUSTOMERS; i++)
			result += walk(customers[i].orders);
		result += settle(customers, CUSTOMERS) + mix(cells, 64);
	}
	return result == 1 ? 1 : 0;
}
