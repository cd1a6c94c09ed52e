#include "window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct function {
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
static struct range *ranges;
static size_t range_count;
static size_t range_room;
static bool is_set;

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
		int name = 0;

		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%llx %llx %n", &offset, &length, &name) < 2 || !name || !line[name]) {
			read = false;
			break;
		}
		larger = realloc(functions, (function_count + 1) * sizeof *functions);
		if (!larger) {
			read = false;
			break;
		}
		functions = larger;
		functions[function_count].offset = offset;
		functions[function_count].length = length;
		functions[function_count].path = strdup(line + name);
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

void window_mapped(const char *path, uint64_t address, uint64_t length, uint64_t offset)
{
	size_t at;

	for (at = 0; at < function_count; at++) {
		const struct function *function = &functions[at];

		if (function->offset < offset || function->offset - offset >= length || strcmp(function->path, path))
			continue;
		if (range_count == range_room) {
			size_t room = range_room ? range_room * 2 : 64;
			struct range *larger = realloc(ranges, room * sizeof *ranges);

			if (!larger)
				return;
			ranges = larger;
			range_room = room;
		}
		ranges[range_count].start = address + (function->offset - offset);
		ranges[range_count].end = ranges[range_count].start + function->length;
		range_count++;
	}
	qsort(ranges, range_count, sizeof *ranges, by_start);
}

bool window_excludes(uint64_t address)
{
	size_t first = 0, last = range_count;

	if (!is_set)
		return false;
	/* the first range that starts behind the address */
	while (first < last) {
		size_t middle = first + (last - first) / 2;

		if (ranges[middle].start <= address)
			first = middle + 1;
		else
			last = middle;
	}
	return !first || address >= ranges[first - 1].end;
}
