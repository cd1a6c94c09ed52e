/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A dictionary whose entries point to their keys, each in memory of its own (valkey #541). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ENTRIES = 1 << 16 };

struct key {
	uint64_t length;
	uint64_t text[2];
};

struct entry {
#ifdef FIXED
	struct key key;
#else
	struct key *key;
#endif
	uint64_t value;
	struct entry *next;
};

#ifdef FIXED
#define KEY(entry) (&(entry)->key)
#else
#define KEY(entry) ((entry)->key)
#endif

static struct entry *buckets[ENTRIES];

static uint64_t mixed(uint64_t number)
{
	number = (number ^ number >> 15) * 0x2c1b3c6d;
	number = (number ^ number >> 12) * 0x297a2d39;
	return number ^ number >> 15;
}

static struct key *new_key(uint64_t number)
{
	struct key *key = calloc(1, sizeof *key);

	if (!key)
		abort();
	key->length = sizeof key->text;
	key->text[0] = number;
	return key;
}

static void add(struct key *key)
{
	struct entry *entry = calloc(1, sizeof *entry);
	uint64_t number = key->text[0];
	struct entry **bucket = &buckets[mixed(number) % ENTRIES];

	if (!entry)
		abort();
#ifdef FIXED
	entry->key = *key;
	free(key);
#else
	entry->key = key;
#endif
	entry->value = number;
	entry->next = *bucket;
	*bucket = entry;
}

__attribute__((noinline)) static struct entry *look_up(uint64_t number)
{
	struct entry *entry = buckets[mixed(number) % ENTRIES];

	for (; entry; entry = entry->next) {
		const struct key *key = KEY(entry);

		if (key->length == sizeof key->text && key->text[0] == number && !key->text[1])
			return entry;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000, at;
	static struct key *keys[ENTRIES];
	uint64_t sum = 0;

	/* keys were there before their entries, in an order of their own */
	for (at = 0; at < ENTRIES; at++)
		keys[at] = new_key(at * 40503 % ENTRIES);
	for (at = ENTRIES; at-- > 1;) {
		unsigned long other = mixed(at) % (at + 1);
		struct key *key = keys[at];

		keys[at] = keys[other];
		keys[other] = key;
	}
	for (at = 0; at < ENTRIES; at++)
		add(keys[at]);
	for (at = 0; at < rounds; at++) {
		struct entry *entry = look_up(mixed(at * 7) % ENTRIES);

		if (entry)
			sum += entry->value;
	}
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
