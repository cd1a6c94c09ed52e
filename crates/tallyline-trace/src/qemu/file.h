/* The trace's file: blocks that are appended whole, by any thread of the emulated program and of the
 * processes that it forks. The format is described in trace/format.rs. */
#ifndef TALLYLINE_FILE_H
#define TALLYLINE_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a program shares with the processes that it forks. */
struct shared {
	/* of the next point of synchronisation; on a line of its own, as all threads write it often */
	_Alignas(64) _Atomic uint64_t points;
	/* of the next instruction that is translated */
	_Alignas(64) _Atomic uint64_t instructions;
	/* bytes in the file */
	_Atomic uint64_t bytes;
	/* FILE_FULL and others: nothing more is recorded; each access reads it */
	_Atomic uint32_t stopped;
};

enum { FILE_FULL = 1, FILE_BROKEN = 2, FILE_ENDS = 4 };

extern struct shared *shared;

/* Opens the file, which may hold so many bytes; whether that succeeded. */
bool file_open(const char *path, uint64_t limit);

/* Appends a block: its first `size` bytes are there, with room for the block's head at the start. */
void file_append(const char kind[4], uint8_t *block, size_t size);

enum { BLOCK_HEAD = 8 };

static inline uint8_t *put_u16(uint8_t *at, uint16_t value)
{
	at[0] = value;
	at[1] = value >> 8;
	return at + 2;
}

static inline uint8_t *put_u32(uint8_t *at, uint32_t value)
{
	return put_u16(put_u16(at, value), value >> 16);
}

static inline uint8_t *put_u64(uint8_t *at, uint64_t value)
{
	return put_u32(put_u32(at, value), value >> 32);
}

/* Seven bits a byte, lowest first; at most ten bytes. */
static inline uint8_t *put_varint(uint8_t *at, uint64_t value)
{
	/* most are small */
	while (__builtin_expect(value >= 0x80, 0)) {
		*at++ = value | 0x80;
		value >>= 7;
	}
	*at++ = value;
	return at;
}

/* Small numbers of either sign as small numbers. */
static inline uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

#endif
