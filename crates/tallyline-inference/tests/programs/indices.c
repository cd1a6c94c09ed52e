// Numbers in pointers: who creates a thread passes its number so. A line names the fields that it touches.

#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline))

struct ticker { volatile long dropped, updates, closed, ceiling; };
struct record { volatile long hits, misses, bytes; };

struct ticker *tickers;
struct ticker table[8];
struct record *records;
long rounds;

APART void *in_heap(void *data)
{
	unsigned long id = (unsigned long)data;
	for (long at = 0; at < rounds; at++) {
		tickers[id].updates += at; /* ticker.updates */
		tickers[id].closed += tickers[id].ceiling; /* ticker.closed ticker.ceiling */
	}
	return NULL;
}

APART void *in_table(void *data)
{
	unsigned long id = (unsigned long)data;
	for (long at = 0; at < rounds; at++) {
		table[id].updates += at; /* ticker.updates */
		table[id].closed += table[id].ceiling; /* ticker.closed ticker.ceiling */
	}
	return NULL;
}

APART void *of_three_words(void *data)
{
	unsigned long id = (unsigned long)data;
	for (long at = 0; at < rounds; at++) {
		records[id].misses += at; /* record.misses */
		records[id].bytes += records[id].hits; /* record.bytes record.hits */
	}
	return NULL;
}

APART void *behind_it(void *data)
{
	struct record *one = records + (long)data + 1;
	one->misses += rounds; /* record.misses */
	one->bytes += one->hits; /* record.bytes record.hits */
	return NULL;
}

int main(int count, char **words)
{
	rounds = count;
	tickers = calloc(4, sizeof *tickers);
	records = calloc(4, sizeof *records);
	for (long id = 0; id < 2; id++) {
		in_heap((void *)id);
		in_table((void *)id);
		of_three_words((void *)id);
		behind_it((void *)id);
	}
	printf("%ld %ld %p\n", tickers[1].closed, records[1].bytes, (void *)words);
	return 0;
}
