#include "window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Functions, and loops that wait. */
enum part { PART_FUNCTION, PART_WAIT, PARTS };

struct function {
	enum part part;
	uint64_t offset;
	uint64_t length;
	char *path;
};

struct range {
	uint64_t start;
	uint64_t end;
};

/* of the files */
static struct function *functions;
static size_t function_count;
/* of the program's memory, sorted by start */
static struct ranges {
	struct range *all;
	size_t count;
	size_t room;
} mapped[PARTS];
static bool is_set;

static const char WAIT[] = "wait ";

bool window_read(const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	bool read = file;

	is_set = true;
	while (file && getline(&line, &room, file) > 0) {
		unsigned long long offset, length;
		struct function *larger;
		const char *rest = line;
		bool waits = !strncmp(line, WAIT, strlen(WAIT));
		int name = 0;

		line[strcspn(line, "\n")] = 0;
		rest += waits ? strlen(WAIT) : 0;
		if (sscanf(rest, "%llx %llx %n", &offset, &length, &name) < 2 || !name || !rest[name]) {
			read = false;
			break;
		}
		larger = realloc(functions, (function_count + 1) * sizeof *functions);
		if (!larger) {
			read = false;
			break;
		}
		functions = larger;
		functions[function_count].part = waits ? PART_WAIT : PART_FUNCTION;
		functions[function_count].offset = offset;
		functions[function_count].length = length;
		functions[function_count].path = strdup(rest + name);
		read = read && functions[function_count].path;
		function_count += read;
	}
	free(line);
	if (file)
		fclose(file);
	return read;
}

static int by_start(const void *one, const void *other)
{
	const struct range *first = one, *second = other;

	return (first->start > second->start) - (first->start < second->start);
}

/* The last range that starts at an address or before it; none where there is no such range. */
static const struct range *range_before(const struct ranges *ranges, uint64_t address)
{
	size_t first = 0, last = ranges->count;

	/* the first range that starts behind the address */
	while (first < last) {
		size_t middle = first + (last - first) / 2;

		if (ranges->all[middle].start <= address)
			first = middle + 1;
		else
			last = middle;
	}
	return first ? &ranges->all[first - 1] : NULL;
}

static bool is_in(const struct ranges *ranges, uint64_t address)
{
	const struct range *range = range_before(ranges, address);

	return range && address < range->end;
}

static bool is_range(const struct ranges *ranges, uint64_t start, uint64_t end)
{
	const struct range *range = range_before(ranges, start);

	return range && range->start == start && range->end == end;
}

void window_mapped(const char *path, uint64_t address, uint64_t length, uint64_t offset)
{
	size_t at;

	for (at = 0; at < function_count; at++) {
		const struct function *function = &functions[at];
		struct ranges *ranges = &mapped[function->part];
		uint64_t start = address + (function->offset - offset);

		if (function->offset < offset || function->offset - offset >= length || strcmp(function->path, path))
			continue;
		/* that of a forked process's parent */
		if (is_range(ranges, start, start + function->length))
			continue;
		if (ranges->count == ranges->room) {
			size_t room = ranges->room ? ranges->room * 2 : 64;
			struct range *larger = realloc(ranges->all, room * sizeof *larger);

			if (!larger)
				return;
			ranges->all = larger;
			ranges->room = room;
		}
		ranges->all[ranges->count].start = start;
		ranges->all[ranges->count].end = start + function->length;
		ranges->count++;
		qsort(ranges->all, ranges->count, sizeof *ranges->all, by_start);
	}
}

bool window_excludes(uint64_t address)
{
	return is_set && (!is_in(&mapped[PART_FUNCTION], address) || window_waits(address));
}

bool window_waits(uint64_t address)
{
	return is_in(&mapped[PART_WAIT], address);
}
