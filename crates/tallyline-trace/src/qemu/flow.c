/* A block has a *carry*: the instructions that were run before it and are not counted yet. A block that is counted adds
 * its own instructions and its carry, less the carry of what follows; a block that is not leaves them to its
 * successors, as Knuth's counts on few edges of a graph do. So of a loop one block is counted, and not all. Carries are
 * given as blocks are translated, by the first block that leads to them. What another block leads there with differs:
 * that block is counted, unless it differs by few instructions, which is the error of this count. */
#include "flow.h"
#include "window.h"

#include <stdbool.h>
#include <stdlib.h>

enum {
	/* the difference of carries that is not corrected on a jump forwards */
	TOLERANCE = 6,
	/* so many are not left to others */
	CARRY_LIMIT = 1 << 12,
	FIRST_ROOM = 1 << 12,
	/* of the table; programs with more code count what is beyond it block by block */
	LAST_ROOM = 1 << 22,
};

struct carry {
	/* of the block; 0 for a free place */
	uint64_t address;
	int64_t instructions;
};

/* by the hash of the address; with the lock of the table of instructions held */
static struct carry *carries;
static size_t room;
static size_t used;

static struct carry *place_of(struct carry *table, size_t size, uint64_t address)
{
	size_t at = (address * 0x9e3779b97f4a7c15 >> 32) & (size - 1);

	while (table[at].address && table[at].address != address)
		at = (at + 1) & (size - 1);
	return &table[at];
}

/* Makes room for another block; whether there is some. */
static bool make_room(void)
{
	size_t size = room ? room * 2 : FIRST_ROOM, at;
	struct carry *larger;

	if (used * 2 < room)
		return true;
	if (size > LAST_ROOM)
		return false;
	larger = calloc(size, sizeof *larger);
	if (!larger)
		return false;
	for (at = 0; at < room; at++)
		if (carries[at].address)
			*place_of(larger, size, carries[at].address) = carries[at];
	free(carries);
	carries = larger;
	room = size;
	return true;
}

/* Where control goes from a block. */
struct successors {
	uint64_t addresses[2];
	int count;
};

/* Returns the successors that an instruction names; none for calls, returns and jumps through registers. */
static struct successors x86_successors(uint64_t address, const uint8_t *code, size_t size)
{
	struct successors next = { { address + size }, 1 };
	size_t at = 0;
	bool falls_through = true, is_wide;

	/* prefixes that jumps have: bnd, and hints of branches */
	while (at < size && (code[at] == 0xf2 || code[at] == 0x2e || code[at] == 0x3e))
		at++;
	if (at >= size)
		return next;
	switch (code[at]) {
	case 0x70 ... 0x7f: case 0xe0 ... 0xe3:
		is_wide = false;
		break;
	case 0xeb: case 0xe9:
		is_wide = code[at] == 0xe9;
		falls_through = false;
		break;
	case 0x0f:
		if (at + 1 >= size || (code[at + 1] & 0xf0) != 0x80)
			return next;
		is_wide = true;
		break;
	case 0xff:
		/* calls and jumps through registers and memory; the rest adds and pushes */
		if (at + 1 < size && (code[at + 1] >> 3 & 7) >= 2 && (code[at + 1] >> 3 & 7) <= 5)
			next.count = 0;
		return next;
	case 0x40 ... 0x4f:
		if (at + 2 < size && code[at + 1] == 0xff && (code[at + 2] >> 3 & 7) >= 2 && (code[at + 2] >> 3 & 7) <= 5)
			next.count = 0;
		return next;
	case 0xe8: case 0xc2: case 0xc3:
		next.count = 0;
		return next;
	case 0xf3:
		/* rep ret */
		if (at + 1 < size && code[at + 1] == 0xc3)
			next.count = 0;
		return next;
	default:
		return next;
	}
	if (size < (is_wide ? 4 : 1))
		return next;
	uint64_t target = address + size;

	if (is_wide) {
		const uint8_t *from = code + size - 4;

		target += (uint64_t)(int32_t)(from[0] | from[1] << 8 | from[2] << 16 | (uint32_t)from[3] << 24);
	} else {
		target += (uint64_t)(int8_t)code[size - 1];
	}
	if (falls_through)
		next.addresses[next.count++] = target;
	else
		next.addresses[0] = target;
	return next;
}

/* The field of an instruction as a distance in bytes. */
static uint64_t aarch64_distance(uint32_t word, int low, int bits)
{
	uint32_t field = word >> low << (32 - bits);

	return (uint64_t)((int64_t)(int32_t)field >> (32 - bits)) * 4;
}

static struct successors aarch64_successors(uint64_t address, const uint8_t *code, size_t size)
{
	struct successors next = { { address + size }, 1 };
	uint32_t word;

	if (size != 4)
		return next;
	word = code[0] | code[1] << 8 | code[2] << 16 | (uint32_t)code[3] << 24;
	if ((word & 0xff000000) == 0x54000000 || (word & 0x7e000000) == 0x34000000)
		/* b.cond, cbz, cbnz */
		next.addresses[next.count++] = address + aarch64_distance(word, 5, 19);
	else if ((word & 0x7e000000) == 0x36000000)
		/* tbz, tbnz */
		next.addresses[next.count++] = address + aarch64_distance(word, 5, 14);
	else if ((word & 0xfc000000) == 0x14000000)
		/* b */
		next.addresses[0] = address + aarch64_distance(word, 0, 26);
	else if ((word & 0xfc000000) == 0x94000000 || (word & 0xfe000000) == 0xd6000000)
		/* bl; br, blr, ret and the rest through registers */
		next.count = 0;
	return next;
}

int64_t flow_block(enum machine machine, uint64_t start, size_t count, uint64_t last, const uint8_t *code, size_t size)
{
	struct successors next;
	struct carry *own, *place;
	int64_t sum = (int64_t)count, after = 0;
	bool counts = false, is_known = false, is_loop = false;
	int at;

	/* three more at most */
	if (machine == MACHINE_OTHER || !start || !make_room())
		return sum;
	own = place_of(carries, room, start);
	sum += own->instructions;
	if (!own->address) {
		own->address = start;
		used++;
	}
	next = machine == MACHINE_X86_64 ? x86_successors(last, code, size) : aarch64_successors(last, code, size);
	/* who returns, or jumps to where a register says, leaves nothing */
	counts = !next.count || sum > CARRY_LIMIT;
	for (at = 0; at < next.count; at++) {
		uint64_t address = next.addresses[at];
		/* each circle has a jump back: an error there would add up */
		bool is_back = address <= start;
		/* the window counts for itself, and begins with nothing; so does what waits, and is not counted */
		bool is_window = address && (!window_excludes(address) || window_waits(address));
		int64_t there, difference;

		place = address ? place_of(carries, room, address) : NULL;
		if (!is_back && !is_window && (!place || !place->address))
			continue;
		there = is_window || !place ? 0 : place->instructions;
		difference = sum - there;
		if (is_back || is_window || difference < -TOLERANCE || difference > TOLERANCE)
			counts = true;
		if (is_back || !is_loop)
			after = is_known && !is_back ? (after + there) / 2 : there;
		is_known = true;
		is_loop = is_loop || is_back;
	}
	if (!counts)
		after = sum;
	else if (!is_known)
		after = 0;
	for (at = 0; at < next.count; at++) {
		place = next.addresses[at] ? place_of(carries, room, next.addresses[at]) : NULL;
		if (!place || place->address)
			continue;
		place->address = next.addresses[at];
		place->instructions = after;
		used++;
	}
	return counts ? sum - after : 0;
}
