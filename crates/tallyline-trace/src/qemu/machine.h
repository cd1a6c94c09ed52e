/* What depends on the emulated machine: which instructions are atomic, which system calls matter. */
#ifndef TALLYLINE_MACHINE_H
#define TALLYLINE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum machine { MACHINE_OTHER, MACHINE_X86_64, MACHINE_AARCH64 };

static inline enum machine machine_named(const char *name)
{
	if (!strcmp(name, "x86_64"))
		return MACHINE_X86_64;
	if (!strcmp(name, "aarch64"))
		return MACHINE_AARCH64;
	return MACHINE_OTHER;
}

/* A lock prefix, or an exchange with memory, which locks without one. */
static inline bool x86_is_atomic(const uint8_t *code, size_t size)
{
	size_t at = 0;

	for (; at < size; at++) {
		switch (code[at]) {
		case 0xf0:
			return true;
		case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65: case 0x66: case 0x67:
		case 0xf2: case 0xf3:
			continue;
		}
		break;
	}
	if (at < size && (code[at] & 0xf0) == 0x40)
		at++;
	return at + 1 < size && (code[at] & 0xfe) == 0x86 && code[at + 1] >> 6 != 3;
}

/* Exclusive and ordered loads and stores, compare and swap; and the atomic operations of Armv8.1. */
static inline bool aarch64_is_atomic(const uint8_t *code, size_t size)
{
	uint32_t word;

	if (size != 4)
		return false;
	word = code[0] | code[1] << 8 | code[2] << 16 | (uint32_t)code[3] << 24;
	return (word & 0x3f000000) == 0x08000000 || (word & 0x3b200c00) == 0x38200000;
}

static inline bool is_atomic(enum machine machine, const uint8_t *code, size_t size)
{
	switch (machine) {
	case MACHINE_X86_64:
		return x86_is_atomic(code, size);
	case MACHINE_AARCH64:
		return aarch64_is_atomic(code, size);
	default:
		return false;
	}
}

/* What a system call is to a trace. */
enum call { CALL_OTHER, CALL_FUTEX, CALL_CLONE, CALL_EXIT, CALL_EXECUTE, CALL_MAPPING };

static inline enum call x86_64_call(int64_t number)
{
	switch (number) {
	case 202:
		return CALL_FUTEX;
	case 56: case 57: case 58: case 435: /* clone, fork, vfork, clone3 */
		return CALL_CLONE;
	case 60:
		return CALL_EXIT;
	case 59: case 322: /* execve, execveat */
		return CALL_EXECUTE;
	case 9: case 10: case 11: case 25: /* mmap, mprotect, munmap, mremap */
		return CALL_MAPPING;
	}
	return CALL_OTHER;
}

static inline enum call aarch64_call(int64_t number)
{
	switch (number) {
	case 98:
		return CALL_FUTEX;
	case 220: case 435: /* clone, clone3 */
		return CALL_CLONE;
	case 93:
		return CALL_EXIT;
	case 221: case 281: /* execve, execveat */
		return CALL_EXECUTE;
	case 215: case 216: case 222: case 226: /* munmap, mremap, mmap, mprotect */
		return CALL_MAPPING;
	}
	return CALL_OTHER;
}

static inline enum call call_of(enum machine machine, int64_t number)
{
	switch (machine) {
	case MACHINE_X86_64:
		return x86_64_call(number);
	case MACHINE_AARCH64:
		return aarch64_call(number);
	default:
		return CALL_OTHER;
	}
}

/* Whether a futex operation waits; the others wake. */
static inline bool futex_waits(uint64_t operation)
{
	switch (operation & 0x7f) {
	case 0: case 6: case 9: case 11: case 13: /* WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2 */
		return true;
	}
	return false;
}

/* Whether what starts a program (CALL_EXECUTE) has the name behind a folder: execveat. */
static inline bool executes_by_name_at_second(enum machine machine, int64_t number)
{
	return number == (machine == MACHINE_X86_64 ? 322 : 281);
}

#endif
