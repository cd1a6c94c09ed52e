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

/* Where an instruction's operation code begins: behind its prefixes. */
static inline size_t x86_opcode_at(const uint8_t *code, size_t size)
{
	size_t at = 0;

	for (; at < size; at++) {
		switch (code[at]) {
		case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65: case 0x66: case 0x67:
		case 0xf0: case 0xf2: case 0xf3:
			continue;
		}
		break;
	}
	return at < size && (code[at] & 0xf0) == 0x40 ? at + 1 : at;
}

/* Whether QEMU may access memory for an instruction in a function of its own, and not in translated code: atomic ones,
 * those of the x87 and of saved states, masked and gathered ones, far transfers, enter. */
static inline bool x86_accesses_in_function(const uint8_t *code, size_t size)
{
	size_t at = x86_opcode_at(code, size);
	uint8_t next = at + 1 < size ? code[at + 1] : 0;
	bool in_memory = at + 1 < size && next >> 6 != 3;

	if (x86_is_atomic(code, size))
		return true;
	if (at >= size)
		return false;
	switch (code[at]) {
	case 0xc8: case 0xca: case 0xcb: case 0xcf: /* enter, far returns */
		return true;
	case 0xd8 ... 0xdf:
		return in_memory;
	case 0xff: /* far calls and jumps */
		return in_memory && ((next >> 3 & 7) == 3 || (next >> 3 & 7) == 5);
	case 0x0f:
		if (next == 0xae || next == 0xc7)
			return at + 2 < size && code[at + 2] >> 6 != 3;
		return next == 0xf7;
	case 0xc5:
		return at + 2 < size && (code[at + 2] == 0xf7 || code[at + 2] == 0xae);
	case 0xc4:
		if (at + 3 >= size)
			return false;
		/* the map 0f38: vmaskmov, vpmaskmov, gathers */
		if ((next & 0x1f) == 2)
			return (code[at + 3] >= 0x2c && code[at + 3] <= 0x2f) || code[at + 3] == 0x8c || code[at + 3] == 0x8e ||
			       (code[at + 3] >= 0x90 && code[at + 3] <= 0x93);
		return (next & 0x1f) == 1 && (code[at + 3] == 0xf7 || code[at + 3] == 0xae);
	}
	return false;
}

/* As above: atomic ones, dc zva, and those of scalable vectors. */
static inline bool aarch64_accesses_in_function(const uint8_t *code, size_t size)
{
	uint32_t word;

	if (aarch64_is_atomic(code, size))
		return true;
	if (size != 4)
		return false;
	word = code[0] | code[1] << 8 | code[2] << 16 | (uint32_t)code[3] << 24;
	return (word & 0xffffffe0) == 0xd50b7420 || (word & 0xfe000000) == 0x84000000 ||
	       (word & 0xfe000000) == 0xa4000000 || (word & 0xfe000000) == 0xc4000000 ||
	       (word & 0xfe000000) == 0xe4000000;
}

static inline bool accesses_in_function(enum machine machine, const uint8_t *code, size_t size)
{
	switch (machine) {
	case MACHINE_X86_64:
		return x86_accesses_in_function(code, size);
	case MACHINE_AARCH64:
		return aarch64_accesses_in_function(code, size);
	default:
		return false;
	}
}

enum { ACCESSES_UNKNOWN = 3 };

/* The number of accesses, up to 2, of an instruction that ends its block by a jump; else ACCESSES_UNKNOWN. */
static inline unsigned int x86_accesses_of_jump(const uint8_t *code, size_t size)
{
	size_t at = x86_opcode_at(code, size);
	uint8_t next = at + 1 < size ? code[at + 1] : 0;

	if (at >= size)
		return ACCESSES_UNKNOWN;
	switch (code[at]) {
	case 0x70 ... 0x7f: case 0xe0 ... 0xe3: case 0xe9: case 0xeb:
		return 0;
	case 0x0f:
		return (next & 0xf0) == 0x80 ? 0 : ACCESSES_UNKNOWN;
	case 0xe8: case 0xc2: case 0xc3: /* the address of the return */
		return 1;
	case 0xff:
		/* and the one that is called, where it is in memory */
		if ((next >> 3 & 7) == 2)
			return next >> 6 == 3 ? 1 : 2;
		if ((next >> 3 & 7) == 4)
			return next >> 6 == 3 ? 0 : 1;
	}
	return ACCESSES_UNKNOWN;
}

static inline unsigned int aarch64_accesses_of_jump(const uint8_t *code, size_t size)
{
	/* branches and exceptions; system instructions are beside them */
	return size == 4 && (code[3] & 0x1c) == 0x14 && code[3] != 0xd5 ? 0 : ACCESSES_UNKNOWN;
}

static inline unsigned int accesses_of_jump(enum machine machine, const uint8_t *code, size_t size)
{
	switch (machine) {
	case MACHINE_X86_64:
		return x86_accesses_of_jump(code, size);
	case MACHINE_AARCH64:
		return aarch64_accesses_of_jump(code, size);
	default:
		return ACCESSES_UNKNOWN;
	}
}

/* What a system call is to a trace. */
enum call { CALL_OTHER, CALL_FUTEX, CALL_CLONE, CALL_EXIT, CALL_EXECUTE, CALL_MAP, CALL_PROTECT, CALL_REMAP };

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
	case 9: /* mmap */
		return CALL_MAP;
	case 10: /* mprotect */
		return CALL_PROTECT;
	case 25: /* mremap */
		return CALL_REMAP;
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
	case 222: /* mmap */
		return CALL_MAP;
	case 226: /* mprotect */
		return CALL_PROTECT;
	case 216: /* mremap */
		return CALL_REMAP;
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

/* Whether a call may map another file, or make a file's part code; memory without a file, and less of it, is no news. */
static inline bool maps_file(enum call call, uint64_t protection, uint64_t flags)
{
	enum { EXECUTE = 4, ANONYMOUS = 0x20 };

	switch (call) {
	case CALL_MAP:
		return !(flags & ANONYMOUS);
	case CALL_PROTECT:
		return protection & EXECUTE;
	default:
		return call == CALL_REMAP;
	}
}

/* Whether what starts a program (CALL_EXECUTE) has the name behind a folder: execveat. */
static inline bool executes_by_name_at_second(enum machine machine, int64_t number)
{
	return number == (machine == MACHINE_X86_64 ? 322 : 281);
}

#endif
