/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A packet flow table: workers look packets up in a shared table and count them, one thread ages flows.
 *
 * The layout is naive on purpose: each worker's statistics are one element of a plain array, the table's limits lie
 * beside what every packet changes, and totals are shared atomics.
 *
 *     cc -O2 -g -pthread -o flow_table flow_table.c
 *     ./flow_table WORKERS PACKETS
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUCKETS = 1 << 10, WORKERS_LIMIT = 64 };

/* A flow in a bucket. */
struct flow {
	uint32_t source;
	uint32_t destination;
	uint16_t source_port;
	uint16_t destination_port;
	uint8_t protocol;
	uint64_t packets;
	uint64_t bytes;
	uint64_t last_seen;
};

/* The table: its limits are read for each packet, its totals are written for each. */
struct flow_table {
	uint32_t mask;
	uint32_t max_packet;
	uint64_t timeout;
	atomic_ulong packets;
	atomic_ulong bytes;
	struct flow *flows;
};

/* What a worker counts for itself. */
struct worker_stats {
	uint64_t received;
	uint64_t dropped;
	uint64_t created;
};

struct worker {
	pthread_t thread;
	unsigned int number;
	unsigned long packets;
};

static struct flow_table table;
static struct worker_stats stats[WORKERS_LIMIT];

static inline uint32_t hash(uint32_t value)
{
	value ^= value >> 16;
	value *= 0x7feb352d;
	value ^= value >> 15;
	return value;
}

/* Each worker has its own part of the table, as receive queues have. */
static void receive(unsigned int number, uint32_t packet, uint64_t now)
{
	uint32_t bucket = hash(packet) & table.mask;
	struct flow *flow = &table.flows[(uint64_t)number * BUCKETS + bucket];
	uint32_t length = 64 + (packet & 1023);

	if (length > table.max_packet) {
		stats[number].dropped++;
		return;
	}
	if (flow->packets == 0 || now - flow->last_seen > table.timeout) {
		flow->source = packet;
		flow->protocol = 6;
		stats[number].created++;
	}
	flow->packets++;
	flow->bytes += length;
	flow->last_seen = now;
	stats[number].received++;
	atomic_fetch_add_explicit(&table.packets, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&table.bytes, length, memory_order_relaxed);
}

static void *run(void *data)
{
	struct worker *worker = data;
	unsigned long at;

	for (at = 0; at < worker->packets; at++)
		receive(worker->number, (uint32_t)at * 31 + worker->number, at);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned int count = argc > 1 ? strtoul(argv[1], NULL, 10) : 2, at;
	unsigned long packets = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000000;
	static struct worker workers[WORKERS_LIMIT];
	unsigned long received = 0;

	if (count < 1 || count > WORKERS_LIMIT)
		return 2;
	table.mask = BUCKETS - 1;
	table.max_packet = 1500;
	table.timeout = 1 << 20;
	table.flows = calloc((size_t)BUCKETS * count, sizeof *table.flows);
	if (!table.flows)
		return 2;
	for (at = 0; at < count; at++) {
		workers[at].number = at;
		workers[at].packets = packets;
		if (pthread_create(&workers[at].thread, NULL, run, &workers[at]))
			return 2;
	}
	for (at = 0; at < count; at++)
		pthread_join(workers[at].thread, NULL);
	for (at = 0; at < count; at++)
		received += stats[at].received;
	printf("%lu packets, %lu bytes, %lu received\n", atomic_load(&table.packets), atomic_load(&table.bytes), received);
	free(table.flows);
	return received == atomic_load(&table.packets) ? 0 : 1;
}
