/* Data structures that C programs are made of, each object published: a hash table, a tree, a ring, arrays
 * of structs in loops that compilers unroll and vectorise, a matrix and tables inside of structs. */
#include "published.h"
#include <string.h>

#define BUCKETS 32
#define KEYS 100

struct entry { struct entry *next; unsigned long key; int hits, misses; char label[12]; };
struct table { unsigned long count, mask; struct entry *buckets[BUCKETS]; unsigned short depth[BUCKETS]; };

struct node { struct node *left, *right, *parent; long key; double weight; unsigned char red, height; };

struct slot { unsigned long sequence; unsigned length; unsigned short port, flags; unsigned char data[40]; };
struct ring { unsigned head, tail; unsigned mask, drops; struct slot *slots; unsigned long bytes[4]; };

struct particle { float x, y, z, mass; float velocity[3]; int kind; };
struct sample { long time; int value; short channel; short quality; };
struct odd { long first; int second[5]; int third; long fourth[3]; };
struct row { double cells[8]; int used; int next; };
struct matrix { long rows, columns; struct row row[12]; double trace; };
struct meter { unsigned id; unsigned pad; struct { unsigned long sum; unsigned count; unsigned peak; } bins[10]; unsigned long total; };
struct wide { long head; char name[88]; long counts[3]; };
struct config { int level; const char *name; long limits[6]; struct { int low, high; } ranges[8]; };

static struct config config = { 3, "config", { 1, 2, 3, 4, 5, 6 }, { { 0, 1 } } };
static struct meter meters[6];

#define NOINLINE __attribute__((noinline))

NOINLINE static struct entry *lookup(struct table *table, unsigned long key)
{
	unsigned long hash = key * 0x9e3779b97f4a7c15ul >> 32;

	for (struct entry *entry = table->buckets[hash & table->mask]; entry; entry = entry->next) {
		if (entry->key == key) {
			entry->hits++;
			return entry;
		}
		entry->misses++;
	}
	return NULL;
}

NOINLINE static void insert(struct table *table, struct entry *entry, unsigned long key)
{
	unsigned long hash = (key * 0x9e3779b97f4a7c15ul >> 32) & table->mask;

	entry->key = key;
	entry->next = table->buckets[hash];
	entry->label[key % 12] = (char)key;
	table->buckets[hash] = entry;
	table->depth[hash]++;
	table->count++;
}

NOINLINE static unsigned long deepest(const struct table *table)
{
	unsigned long most = 0;

	for (unsigned i = 0; i <= table->mask; i++)
		if (table->depth[i] > most)
			most = table->depth[i];
	return most + table->count;
}

NOINLINE static struct node *grow(struct node *root, struct node *fresh)
{
	struct node **place = &root, *parent = NULL;

	while (*place) {
		parent = *place;
		parent->height++;
		place = fresh->key < parent->key ? &parent->left : &parent->right;
	}
	fresh->parent = parent;
	fresh->red = 1;
	*place = fresh;
	return root;
}

NOINLINE static double weigh(const struct node *node)
{
	if (!node)
		return 0;
	return node->weight * node->height + weigh(node->left) + weigh(node->right);
}

NOINLINE static struct node *rotate(struct node *node)
{
	struct node *up = node->right;

	if (!up)
		return node;
	node->right = up->left;
	if (up->left)
		up->left->parent = node;
	up->left = node;
	up->parent = node->parent;
	node->parent = up;
	up->red = node->red;
	return up;
}

NOINLINE static int put(struct ring *ring, unsigned length, unsigned short port)
{
	unsigned next = (ring->head + 1) & ring->mask;

	if (next == ring->tail) {
		ring->drops++;
		return 0;
	}
	struct slot *slot = &ring->slots[ring->head];

	slot->length = length;
	slot->port = port;
	slot->sequence++;
	slot->data[length % 40] = (unsigned char)port;
	ring->bytes[port & 3] += length;
	ring->head = next;
	return 1;
}

NOINLINE static unsigned take(struct ring *ring)
{
	unsigned sum = 0;

	while (ring->tail != ring->head) {
		const struct slot *slot = &ring->slots[ring->tail];

		sum += slot->length + slot->port + slot->data[0];
		ring->tail = (ring->tail + 1) & ring->mask;
	}
	return sum;
}

NOINLINE static void advance(struct particle *particles, int count, float step)
{
	for (int i = 0; i < count; i++) {
		particles[i].x += particles[i].velocity[0] * step;
		particles[i].y += particles[i].velocity[1] * step;
		particles[i].z += particles[i].velocity[2] * step;
	}
}

NOINLINE static float heaviest(const struct particle *particles, int count)
{
	float most = 0;

	for (int i = 0; i < count; i++)
		if (particles[i].kind != 3 && particles[i].mass > most)
			most = particles[i].mass;
	return most;
}

NOINLINE static void smooth(struct sample *samples, int count)
{
	for (int i = 1; i + 1 < count; i++) {
		samples[i].value = (samples[i - 1].value + samples[i + 1].value) / 2;
		samples[i].quality += samples[i].channel;
	}
}

NOINLINE static long total(const struct sample *samples, int count)
{
	long sum = 0;

	for (int i = 0; i < count; i++)
		sum += samples[i].value;
	return sum;
}

NOINLINE static void stamp(struct sample *samples, int count, long now)
{
	for (int i = count - 1; i >= 0; i--)
		samples[i].time = now + i;
}

NOINLINE static long odds(struct odd *odd, int count, int which)
{
	long sum = 0;

	for (int i = 0; i < count; i++) {
		sum += odd[i].second[which] + odd[i].fourth[which % 3];
		odd[i].third = (int)sum;
		for (int j = 0; j < 5; j++)
			odd[i].second[j] += j;
	}
	return sum + odd[which].first;
}

NOINLINE static double diagonal(struct matrix *matrix)
{
	double sum = 0;

	for (int i = 0; i < matrix->rows && i < 8; i++)
		sum += matrix->row[i].cells[i];
	matrix->trace = sum;
	return sum;
}

NOINLINE static void multiply(struct matrix *to, const struct matrix *one, const struct matrix *other)
{
	for (int i = 0; i < 8; i++) {
		for (int j = 0; j < 8; j++) {
			double sum = 0;

			for (int k = 0; k < 8; k++)
				sum += one->row[i].cells[k] * other->row[k].cells[j];
			to->row[i].cells[j] = sum;
		}
		to->row[i].used++;
	}
}

NOINLINE static double column(const struct matrix *matrix, int which)
{
	double sum = 0;

	for (int i = 0; i < matrix->rows; i++)
		sum += matrix->row[i].cells[which];
	return sum;
}

NOINLINE static void measure(struct meter *meter, unsigned value)
{
	meter->bins[value % 10].sum += value;
	meter->bins[value % 10].count++;
	if (meter->bins[value % 10].peak < value)
		meter->bins[value % 10].peak = value;
	meter->total += value;
}

NOINLINE static unsigned long measured(int which)
{
	unsigned long sum = 0;

	for (int i = 0; i < 10; i++)
		sum += meters[which].bins[i].sum * meters[which].bins[i].count;
	return sum + meters[which].total;
}

NOINLINE static void count(struct wide *wide, unsigned which, unsigned length)
{
	wide[which].head++;
	wide[which].counts[length % 3] += length;
	for (unsigned i = 0; i < length % 88; i++)
		wide[which].name[i] ^= (char)length;
}

NOINLINE static long limits(int which)
{
	long sum = config.level;

	for (int i = 0; i < 6; i++)
		sum += config.limits[i];
	config.ranges[which & 7].high++;
	return sum + config.limits[which % 6] + config.ranges[which & 7].low;
}

NOINLINE static long classify(struct odd *odd, int kind)
{
	switch (kind) {
	case 0: return odd->first;
	case 1: return odd->second[1]++;
	case 2: return odd->third += 3;
	case 3: return odd->fourth[2];
	case 4: return odd->second[4] - odd->third;
	case 5: odd->fourth[0]++; return 5;
	case 6: return odd->first ^ odd->fourth[1];
	default: return 0;
	}
}

NOINLINE static void copy(struct sample *to, const struct sample *from, int count)
{
	for (int i = 0; i < count; i++)
		to[i] = from[i];
}

int main(void)
{
	struct table *table = calloc(1, sizeof *table);
	struct entry *entries = calloc(KEYS, sizeof *entries);
	struct node *nodes = calloc(KEYS, sizeof *nodes), *root = &nodes[0];
	struct ring *ring = calloc(1, sizeof *ring);
	struct particle *particles = calloc(KEYS, sizeof *particles);
	struct sample *samples = calloc(KEYS, sizeof *samples), *others = calloc(KEYS, sizeof *others);
	struct odd *odd = calloc(KEYS, sizeof *odd);
	struct matrix *matrices = calloc(3, sizeof *matrices);
	struct wide *wide = calloc(8, sizeof *wide);
	double result = 0;

	ring->slots = calloc(16, sizeof *ring->slots);
	ring->mask = 15;
	table->mask = BUCKETS - 1;
	publish("struct table", table, sizeof *table, 1);
	publish("struct entry", entries, sizeof *entries, KEYS);
	publish("struct node", nodes, sizeof *nodes, KEYS);
	publish("struct ring", ring, sizeof *ring, 1);
	publish("struct slot", ring->slots, sizeof *ring->slots, 16);
	publish("struct particle", particles, sizeof *particles, KEYS);
	publish("struct sample", samples, sizeof *samples, KEYS);
	publish("struct sample", others, sizeof *others, KEYS);
	publish("struct odd", odd, sizeof *odd, KEYS);
	publish("struct matrix", matrices, sizeof *matrices, 3);
	publish("struct wide", wide, sizeof *wide, 8);
	publish("struct meter", meters, sizeof *meters, 6);
	publish("struct config", &config, sizeof config, 1);
	for (unsigned long i = 0; i < KEYS; i++) {
		insert(table, &entries[i], i * 7);
		nodes[i].key = (long)(i * 37 % KEYS);
		nodes[i].weight = (double)i;
		if (i)
			root = grow(root, &nodes[i]);
		particles[i].velocity[i % 3] = 1;
		particles[i].kind = (int)i & 3;
		matrices[i % 3].row[i % 12].cells[i % 8] = (double)i;
	}
	for (int i = 0; i < 3; i++)
		matrices[i].rows = 8;
	for (int i = 0; i < KEYS; i++) {
		result += lookup(table, (unsigned long)i) != NULL;
		result += put(ring, (unsigned)i, (unsigned short)i);
		if (i % 7 == 0)
			result += take(ring);
		measure(&meters[i % 6], (unsigned)i);
		count(wide, (unsigned)i & 7, (unsigned)i);
		result += classify(&odd[i], i % 8);
	}
	root = rotate(root);
	advance(particles, KEYS, 0.5f);
	smooth(samples, KEYS);
	stamp(samples, KEYS, 100);
	copy(others, samples, KEYS);
	multiply(&matrices[0], &matrices[1], &matrices[2]);
	result += weigh(root) + heaviest(particles, KEYS) + total(samples, KEYS) + odds(odd, KEYS, 2) + deepest(table);
	result += diagonal(&matrices[0]) + column(&matrices[1], 3) + measured(2) + limits(4);
	return result == 1;
}
