#include "mappings.h"
#include "file.h"
#include "window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct mapping {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint32_t protection;
	char path[4096];
};

/* Those that need no writing: the emulator's own, and what was written. By the hash of all they say. */
static uint64_t *known;
static size_t known_count;
static size_t known_room;

static uint64_t hash(const struct mapping *mapping)
{
	uint64_t value = mapping->start * 31 + mapping->end;
	const char *letter;

	value = value * 0x9e3779b97f4a7c15 + mapping->offset + mapping->protection;
	for (letter = mapping->path; *letter; letter++)
		value = (value ^ (uint8_t)*letter) * 0x100000001b3;
	return value;
}

/* Whether it was not known before. */
static bool is_news(const struct mapping *mapping)
{
	uint64_t value = hash(mapping);
	size_t at;

	for (at = 0; at < known_count; at++)
		if (known[at] == value)
			return false;
	if (known_count == known_room) {
		size_t room = known_room ? known_room * 2 : 64;
		uint64_t *larger = realloc(known, room * sizeof *known);

		if (!larger)
			return false;
		known = larger;
		known_room = room;
	}
	known[known_count++] = value;
	return true;
}

static void write_one(const struct mapping *mapping, uint64_t base)
{
	uint8_t block[BLOCK_HEAD + 64 + sizeof mapping->path];
	size_t length = strlen(mapping->path);
	uint8_t *at = block + BLOCK_HEAD;

	at = put_u32(at, getpid());
	at = put_u32(at, mapping->protection);
	at = put_u64(at, mapping->start - base);
	at = put_u64(at, mapping->end - mapping->start);
	at = put_u64(at, mapping->offset);
	at = put_u16(at, length);
	memcpy(at, mapping->path, length);
	file_append("MAPS", block, at + length - block);
	window_mapped(mapping->path, mapping->start - base, mapping->end - mapping->start, mapping->offset);
}

/* All mappings of files, news among them handed on. */
static void scan(void (*hand_on)(const struct mapping *, uint64_t), uint64_t base)
{
	static struct mapping mapping;
	static char line[sizeof mapping.path + 128];
	FILE *maps = fopen("/proc/self/maps", "re");

	if (!maps)
		return;
	while (fgets(line, sizeof line, maps)) {
		unsigned long long start, end, offset;
		char protection[5];
		int path = 0;

		if (sscanf(line, "%llx-%llx %4s %llx %*s %*s %n", &start, &end, protection, &offset, &path) < 4 ||
		    !path || line[path] != '/')
			continue;
		line[strcspn(line, "\n")] = 0;
		mapping.start = start;
		mapping.end = end;
		mapping.offset = offset;
		mapping.protection = (protection[0] == 'r') | (protection[1] == 'w') << 1 | (protection[2] == 'x') << 2;
		snprintf(mapping.path, sizeof mapping.path, "%s", line + path);
		if (is_news(&mapping) && hand_on)
			hand_on(&mapping, base);
	}
	fclose(maps);
}

void mappings_of_emulator(void)
{
	scan(NULL, 0);
}

void mappings_write(uint64_t base)
{
	scan(write_one, base);
}
