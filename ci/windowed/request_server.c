/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A server's workers without the network: each parses requests, looks keys up in its part of a table, writes answers,
 * and counts them. What counts makes 3 of 100 accesses to memory, and has the sharing: an element for each worker in a
 * plain array, and totals that all workers add to.
 *
 *     cc -O2 -g -pthread -o request_server request_server.c
 *     ./request_server WORKERS REQUESTS
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS_LIMIT = 64, ENTRIES = 1 << 10, KEY_LIMIT = 24, VALUE_LENGTH = 32, LINES = 64, LINE_LIMIT = 96 };

struct entry {
	uint32_t hash;
	uint16_t key_length;
	char key[KEY_LIMIT];
	char value[VALUE_LENGTH];
};

struct request {
	const char *verb;
	const char *key;
	size_t verb_length;
	size_t key_length;
	unsigned long argument;
};

/* A worker's own numbers: elements of one array. */
struct worker_stats {
	uint64_t requests;
	uint64_t bytes;
	uint64_t misses;
};

/* The numbers of all workers, beside what each request reads. */
struct server {
	unsigned long limit;
	atomic_ulong requests;
	atomic_ulong bytes;
};

struct worker {
	pthread_t thread;
	unsigned int number;
	unsigned long requests;
	uint64_t checksum;
	struct entry *entries;
	char lines[LINES][LINE_LIMIT];
	char answer[256];
};

static struct server server = { .limit = 1 << 20 };
static struct worker_stats stats[WORKERS_LIMIT];

__attribute__((noinline)) static uint32_t hash_key(const char *key, size_t length)
{
	uint32_t value = 2166136261u;

	for (size_t at = 0; at < length; at++)
		value = (value ^ (uint8_t)key[at]) * 16777619u;
	return value ? value : 1;
}

__attribute__((noinline)) static const char *parse_word(const char *at, const char **word, size_t *length)
{
	while (*at == ' ')
		at++;
	*word = at;
	while (*at && *at != ' ' && *at != '\r')
		at++;
	*length = (size_t)(at - *word);
	return at;
}

__attribute__((noinline)) static void parse_request(const char *line, struct request *request)
{
	const char *number;
	size_t digits;

	line = parse_word(line, &request->verb, &request->verb_length);
	line = parse_word(line, &request->key, &request->key_length);
	parse_word(line, &number, &digits);
	request->argument = 0;
	for (size_t at = 0; at < digits; at++)
		request->argument = request->argument * 10 + (unsigned long)(number[at] - '0');
}

__attribute__((noinline)) static struct entry *find_entry(struct worker *worker, const struct request *request)
{
	uint32_t hash = hash_key(request->key, request->key_length);

	for (uint32_t probe = 0; probe < 8; probe++) {
		struct entry *entry = &worker->entries[(hash + probe) % ENTRIES];

		if (entry->hash == hash && entry->key_length == request->key_length &&
		    !memcmp(entry->key, request->key, request->key_length))
			return entry;
	}
	return NULL;
}

__attribute__((noinline)) static size_t write_answer(struct worker *worker, const struct entry *entry,
						     const struct request *request)
{
	char *at = worker->answer;
	unsigned long number = request->argument;

	*at++ = '+';
	do {
		*at++ = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	*at++ = ' ';
	for (size_t byte = 0; entry && byte < VALUE_LENGTH; byte++)
		*at++ = entry->value[byte] ^ (char)(byte & 1);
	*at++ = '\r';
	*at++ = '\n';
	return (size_t)(at - worker->answer);
}

__attribute__((noinline)) static void count_request(unsigned int number, size_t bytes, int missed)
{
	if (bytes > server.limit)
		return;
	stats[number].requests++;
	stats[number].bytes += bytes;
	stats[number].misses += missed;
	atomic_fetch_add_explicit(&server.requests, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&server.bytes, bytes, memory_order_relaxed);
}

static void fill(struct worker *worker)
{
	worker->entries = calloc(ENTRIES, sizeof *worker->entries);
	if (!worker->entries)
		exit(1);
	for (unsigned int line = 0; line < LINES; line++) {
		struct request request = { 0 };
		struct entry *entry;

		snprintf(worker->lines[line], LINE_LIMIT, "GET account:%05u:profile %u\r\n", line * 7919 % 65536,
			 line * 104729 % 1000000);
		parse_request(worker->lines[line], &request);
		entry = &worker->entries[hash_key(request.key, request.key_length) % ENTRIES];
		/* every eighth key is not there */
		if (line % 8 == 0 || entry->hash)
			continue;
		entry->hash = hash_key(request.key, request.key_length);
		entry->key_length = (uint16_t)request.key_length;
		memcpy(entry->key, request.key, request.key_length);
		memset(entry->value, 'a' + line % 26, VALUE_LENGTH);
	}
}

static void *serve(void *argument)
{
	struct worker *worker = argument;

	for (unsigned long done = 0; done < worker->requests; done++) {
		struct request request;
		struct entry *entry;
		size_t bytes;

		parse_request(worker->lines[done % LINES], &request);
		entry = find_entry(worker, &request);
		bytes = write_answer(worker, entry, &request);
		for (size_t at = 0; at < bytes; at++)
			worker->checksum = worker->checksum * 31 + (uint8_t)worker->answer[at];
		count_request(worker->number, bytes, !entry);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 2;
	unsigned long requests = argc > 2 ? strtoul(argv[2], NULL, 10) : 100000;
	struct worker *workers;
	uint64_t checksum = 0;

	if (!count || count > WORKERS_LIMIT || !(workers = calloc(count, sizeof *workers)))
		return 1;
	for (unsigned long at = 0; at < count; at++) {
		workers[at].number = (unsigned int)at;
		workers[at].requests = requests;
		fill(&workers[at]);
		if (pthread_create(&workers[at].thread, NULL, serve, &workers[at]))
			return 1;
	}
	for (unsigned long at = 0; at < count; at++) {
		pthread_join(workers[at].thread, NULL);
		checksum += workers[at].checksum;
		free(workers[at].entries);
	}
	free(workers);
	printf("%lu requests, %lu bytes, checksum %016llx\n", server.requests, server.bytes,
	       (unsigned long long)checksum);
	return 0;
}
