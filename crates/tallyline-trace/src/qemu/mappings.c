#define _GNU_SOURCE
#include "mappings.h"
#include "file.h"
#include "window.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

struct mapping {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint32_t protection;
	char path[4096];
};

struct hashes {
	uint64_t *all;
	size_t count;
	size_t room;
};

/* Those that need no writing, by the hash of all they say: the emulator's own, and those that the last scan found, in
 * order. One that was gone meanwhile is written again, as another may have been in its place. */
static struct hashes of_emulator;
static struct hashes known;
static struct hashes found;
/* what QEMU adds to an address of the program, and whether mappings may have changed since */
static uint64_t base;
static bool base_known;
static atomic_bool changed = true;

static uint64_t hash(const struct mapping *mapping)
{
	uint64_t value = mapping->start * 31 + mapping->end;
	const char *letter;

	value = value * 0x9e3779b97f4a7c15 + mapping->offset + mapping->protection;
	for (letter = mapping->path; *letter; letter++)
		value = (value ^ (uint8_t)*letter) * 0x100000001b3;
	return value;
}

static int by_value(const void *one, const void *other)
{
	const uint64_t *first = one, *second = other;

	return (*first > *second) - (*first < *second);
}

static bool has(const struct hashes *hashes, uint64_t value)
{
	return hashes->count && bsearch(&value, hashes->all, hashes->count, sizeof value, by_value);
}

/* Whether there was room for it. */
static bool add(struct hashes *hashes, uint64_t value)
{
	if (hashes->count == hashes->room) {
		size_t room = hashes->room ? hashes->room * 2 : 64;
		uint64_t *larger = realloc(hashes->all, room * sizeof *larger);

		if (!larger)
			return false;
		hashes->all = larger;
		hashes->room = room;
	}
	hashes->all[hashes->count++] = value;
	return true;
}

static void write_one(const struct mapping *mapping)
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
static void scan(void (*hand_on)(const struct mapping *))
{
	static struct mapping mapping;
	static char line[sizeof mapping.path + 128];
	FILE *maps = fopen("/proc/self/maps", "re");
	struct hashes before = known;

	if (!maps)
		return;
	found.count = 0;
	while (fgets(line, sizeof line, maps)) {
		unsigned long long start, end, offset;
		char protection[5];
		int path = 0;
		uint64_t value;

		if (sscanf(line, "%llx-%llx %4s %llx %*s %*s %n", &start, &end, protection, &offset, &path) < 4 ||
		    !path || line[path] != '/')
			continue;
		line[strcspn(line, "\n")] = 0;
		mapping.start = start;
		mapping.end = end;
		mapping.offset = offset;
		mapping.protection = (protection[0] == 'r') | (protection[1] == 'w') << 1 | (protection[2] == 'x') << 2;
		snprintf(mapping.path, sizeof mapping.path, "%s", line + path);
		value = hash(&mapping);
		/* where there is no memory it comes once more, or is not written */
		if (add(&found, value) && hand_on && !has(&of_emulator, value) && !has(&known, value))
			hand_on(&mapping);
	}
	fclose(maps);
	if (found.count)
		qsort(found.all, found.count, sizeof *found.all, by_value);
	known = found;
	found = before;
}

void mappings_of_emulator(void)
{
	scan(NULL);
	of_emulator = known;
	known = (struct hashes){ 0 };
}

void mappings_change(void)
{
	atomic_store(&changed, true);
}

void mappings_forget(void)
{
	known.count = 0;
	mappings_change();
}

void mappings_look(struct qemu_plugin_tb *tb)
{
	if (!base_known) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, 0);
		uint64_t host = (uintptr_t)qemu_plugin_insn_haddr(insn);

		if (host) {
			base = host - qemu_plugin_insn_vaddr(insn);
			base_known = true;
		}
	}
	if (base_known && atomic_exchange(&changed, false))
		scan(write_one);
}

void mappings_execution(uint64_t name)
{
	enum { LONGEST = 4096 };
	uint8_t block[BLOCK_HEAD + 6 + LONGEST], *at = block + BLOCK_HEAD;
	char *text = (char *)at + 6;
	size_t length = 0;

	/* the address is the program's, and may be none: the kernel looks at it before we would fall over it; a page
	 * at a time, as the next one may not be there */
	while (name && base_known && length < LONGEST) {
		size_t size = 4096 - ((base + name + length) & 4095);
		struct iovec to = { text + length, size < LONGEST - length ? size : LONGEST - length };
		struct iovec from = { (void *)(uintptr_t)(base + name + length), to.iov_len };
		ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
		char *end = got > 0 ? memchr(to.iov_base, 0, got) : NULL;

		if (got <= 0)
			break;
		length += end ? end - (char *)to.iov_base : got;
		if (end)
			break;
	}
	at = put_u32(at, getpid());
	at = put_u16(at, length);
	file_append("EXEC", block, at + length - block);
}
