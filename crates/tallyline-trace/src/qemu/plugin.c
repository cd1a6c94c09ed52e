/* A plugin for QEMU that writes down what a program does to memory. It is built by
 * `tallyline record --trace`, and told by its arguments what to do:
 *   out=FILE   the file, which is there and empty
 *   every=N    one access of N on average; 1 for all
 *   limit=N    the file's size in bytes at which recording ends
 *   window=FILE  the functions of which accesses are written down; else all
 *   start=FILE   a file that says when accesses are written down: once its first byte is not 0; else from the start
 */
#define _GNU_SOURCE
#include "file.h"
#include "flow.h"
#include "futex.h"
#include "machine.h"
#include "mappings.h"
#include "qemu.h"
#include "table.h"
#include "window.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
/* the names of QEMU */
EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct host *host, int argc, char **argv);

enum {
	/* of a thread's block, with its head */
	BLOCK_ROOM = 64 << 10,
	BLOCK_START = BLOCK_HEAD + 56,
	/* the most that one access takes: a point (three numbers) and the access (three numbers) */
	EVENT_ROOM = 64,
	/* of instructions whose last address is remembered, a power of two */
	REMEMBERED = 256,
	CPUS = 4096,
	/* of kinds of accesses whose heads are kept, a power of two */
	KINDS = 16,
};

/* Points of synchronisation, as in the file. */
enum point {
	POINT_ATOMIC,
	POINT_START,
	POINT_EXIT,
	POINT_WAKE,
	POINT_WAITED,
	POINT_CLONE,
	POINT_SPINS,
	POINT_SPUN,
};
enum { POINT_MARK = 7, STORE = 1 << 3, TOGETHER = 1 << 4 };

/* What an event's head says of a kind of access. */
struct kind {
	qemu_plugin_meminfo_t info;
	/* 0 where there is no kind yet */
	uint32_t is_known;
	uint64_t head;
};

/* A thread of the emulated program; in a whole machine a CPU. */
struct thread {
	/* of the block that runs: its first instruction, how many it has, how many ran before it */
	uint64_t block;
	uint64_t block_count;
	uint64_t before;
	/* whether nothing is written down now; looked at once for a block */
	bool is_stopped;
	/* accesses until the next that is written down, and the state of the numbers that choose it */
	uint64_t countdown;
	uint64_t random;
	/* the last ones that were written down */
	uint64_t instruction;
	uint64_t now;
	uint64_t address;
	uint64_t point;
	uint64_t remembered[REMEMBERED];
	struct kind kinds[KINDS];
	/* where the next one goes */
	uint8_t *at;
	uint32_t accesses;
	uint32_t points;
	uint64_t since;
	uint64_t recorded;
	/* the last jump through a register that accessed memory, by the instructions before it, and how often it did */
	uint64_t jump;
	uint64_t jump_accesses;
	struct futex_call futex;
	/* whether the mapping call under way may map a file */
	bool maps_file;
	/* whether it is in a loop that waits, or has run nothing of the window since */
	bool spins;
	uint32_t pid;
	uint32_t tid;
	struct thread *next;
	uint8_t bytes[BLOCK_ROOM];
};

static enum machine machine;
static bool whole_machine;
static bool windowed;
static int interface;
static uint64_t every = 1;

static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static struct thread *threads;
/* of threads that ended */
static uint64_t ended_instructions;
static uint64_t ended_recorded;
static __thread struct thread *own __attribute__((tls_model("initial-exec")));
static struct thread *cpus[CPUS];
/* instructions that the thread ran outside of the window and that are in no `before` yet */
static __thread uint64_t passed __attribute__((tls_model("initial-exec")));

/* of the table of instructions, and of what is translated */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

/* not 0 when accesses are written down; another process may change it */
static const _Atomic uint8_t begun_at_once = 1;
static const _Atomic uint8_t *begun = &begun_at_once;

/* Whether accesses are left out: not yet, or not any more. */
static bool stopped(void)
{
	return atomic_load_explicit(&shared->stopped, memory_order_relaxed) != 0 ||
	       !atomic_load_explicit(begun, memory_order_relaxed);
}

static bool start_read(const char *path)
{
	int start = open(path, O_RDONLY | O_CLOEXEC);
	void *mapped = start < 0 ? MAP_FAILED : mmap(NULL, 1, PROT_READ, MAP_SHARED, start, 0);

	if (start >= 0)
		close(start);
	if (mapped == MAP_FAILED)
		return false;
	begun = mapped;
	return true;
}

static uint64_t clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* --- a thread's block --- */

static void block_start(struct thread *thread)
{
	thread->at = thread->bytes + BLOCK_START;
	thread->accesses = 0;
	thread->points = 0;
	thread->point = 0;
	thread->since = clock_now();
	memset(thread->remembered, 0, sizeof thread->remembered);

	uint8_t *at = thread->bytes + BLOCK_HEAD;

	at = put_u32(at, thread->pid);
	at = put_u32(at, thread->tid);
	/* 8 bytes for the counts, that come when they are known */
	at = put_u64(at + 8, thread->now);
	at = put_u64(at, thread->instruction);
	at = put_u64(at, thread->address);
	put_u64(at, thread->since);
}

static void block_flush(struct thread *thread)
{
	uint8_t *at = thread->bytes + BLOCK_HEAD + 8;

	if (thread->accesses || thread->points) {
		at = put_u32(at, thread->accesses);
		put_u32(at, thread->points);
		put_u64(thread->bytes + BLOCK_HEAD + 48, clock_now());
		/* what the accesses refer to comes before them */
		pthread_mutex_lock(&table_lock);
		table_flush();
		pthread_mutex_unlock(&table_lock);
		file_append("ACCS", thread->bytes, thread->at - thread->bytes);
		thread->recorded += thread->accesses;
	}
	block_start(thread);
}

/* Distances between N/2 and 3N/2: a loop does not fall into step with them. */
static uint64_t distance(struct thread *thread)
{
	if (every == 1)
		return 1;
	thread->random ^= thread->random << 13;
	thread->random ^= thread->random >> 7;
	thread->random ^= thread->random << 17;
	/* an odd number of them, so that N is their middle */
	return (every + 1) / 2 + thread->random % (every | 1);
}

static void put_point_at(struct thread *thread, enum point kind, uint64_t number, uint64_t now)
{
	if (thread->at + EVENT_ROOM > thread->bytes + BLOCK_ROOM)
		block_flush(thread);
	thread->at = put_varint(thread->at, POINT_MARK | (uint64_t)kind << 3);
	thread->at = put_varint(thread->at, number - thread->point);
	thread->at = put_varint(thread->at, now - thread->now);
	thread->point = number;
	thread->now = now;
	thread->points++;
}

/* Puts a point behind all others, and returns its number. */
static uint64_t put_point(struct thread *thread, enum point kind, uint64_t now)
{
	uint64_t number = atomic_fetch_add(&shared->points, 1);

	put_point_at(thread, kind, number, now);
	return number;
}

/* The thread's name, as the program has set it. */
static void name_write(const struct thread *thread)
{
	enum { LONGEST = 64 };
	uint8_t block[BLOCK_HEAD + 10 + LONGEST], *at = block + BLOCK_HEAD;
	char path[64], *name = (char *)at + 10;
	FILE *file;
	size_t length = 0;

	if (whole_machine)
		return;
	snprintf(path, sizeof path, "/proc/self/task/%u/comm", thread->tid);
	file = fopen(path, "re");
	if (!file)
		return;
	length = fread(name, 1, LONGEST, file);
	fclose(file);
	if (length && name[length - 1] == '\n')
		length--;
	at = put_u32(at, thread->pid);
	at = put_u32(at, thread->tid);
	at = put_u16(at, length);
	file_append("NAME", block, at + length - block);
}

/* Instructions that the thread began, when it is between blocks. */
static uint64_t now_of(const struct thread *thread)
{
	int64_t outside = whole_machine ? 0 : (int64_t)passed;

	/* what is not counted exactly never makes time go back */
	return thread->before + thread->block_count + (outside > 0 ? outside : 0);
}

static struct thread *thread_new(uint32_t tid)
{
	struct thread *thread = calloc(1, sizeof *thread);

	if (!thread) {
		fputs("tallyline: no memory for a thread's block\n", stderr);
		abort();
	}
	thread->pid = getpid();
	thread->tid = tid;
	thread->jump = UINT64_MAX;
	thread->random = 0x9e3779b97f4a7c15 ^ (uint64_t)tid << 17;
	thread->countdown = every == 1 ? 1 : 1 + distance(thread) % every;
	block_start(thread);
	pthread_mutex_lock(&threads_lock);
	thread->next = threads;
	threads = thread;
	pthread_mutex_unlock(&threads_lock);
	if (!whole_machine)
		put_point(thread, POINT_START, 0);
	return thread;
}

/* The thread of which `own` is not known: a new one, or a CPU of a whole machine. Apart from what is called for each
 * access, so that that saves no registers for it. */
__attribute__((noinline, cold)) static struct thread *find_thread(unsigned int cpu)
{
	if (whole_machine) {
		cpu %= CPUS;
		if (!cpus[cpu])
			cpus[cpu] = thread_new(cpu);
		return cpus[cpu];
	}
	own = thread_new(gettid());
	return own;
}

static inline struct thread *current(unsigned int cpu)
{
	/* a whole machine sets none */
	struct thread *thread = own;

	return __builtin_expect(!thread, 0) ? find_thread(cpu) : thread;
}

static void thread_end(void)
{
	struct thread *thread = own, **at;

	if (!thread)
		return;
	put_point(thread, POINT_EXIT, now_of(thread));
	block_flush(thread);
	name_write(thread);
	pthread_mutex_lock(&threads_lock);
	for (at = &threads; *at; at = &(*at)->next)
		if (*at == thread) {
			*at = thread->next;
			break;
		}
	ended_instructions += now_of(thread);
	ended_recorded += thread->recorded;
	pthread_mutex_unlock(&threads_lock);
	own = NULL;
	passed = 0;
	free(thread);
}

/* --- what QEMU calls --- */

static void on_block(unsigned int cpu, void *data)
{
	struct thread *thread = current(cpu);
	uint64_t block = (uintptr_t)data;

	thread->before = now_of(thread);
	if (!whole_machine)
		passed = 0;
	thread->block = block >> 10;
	thread->block_count = block & 0x3ff;
	thread->is_stopped = stopped();
	if (__builtin_expect(thread->spins, 0)) {
		thread->spins = false;
		put_point(thread, POINT_SPUN, thread->before);
	}
}

/* A block of a loop that waits. Before it the thread has done what others wait for: a point of the order. */
static void on_wait(unsigned int cpu, void *data)
{
	struct thread *thread = current(cpu);

	(void)data;
	if (thread->spins || stopped())
		return;
	thread->spins = true;
	put_point(thread, POINT_SPINS, now_of(thread));
}

/* A block outside of the window that stands for its instructions and for others: they are counted, for the time between
 * those inside. One addition: it is called more often than all else. */
static void on_other_block(unsigned int cpu, void *data)
{
	(void)cpu;
	passed += (uintptr_t)data;
}

/* The size and direction of an access. QEMU's answers are two calls out of here; what they are is by `info` alone. */
static inline uint64_t head_of(struct thread *thread, qemu_plugin_meminfo_t info)
{
	struct kind *kind = &thread->kinds[(info ^ info >> 16) % KINDS];

	if (__builtin_expect(kind->info != info || !kind->is_known, 0)) {
		uint64_t head = qemu_plugin_mem_size_shift(info) & 7;

		if (head == POINT_MARK)
			head = POINT_MARK - 1;
		kind->head = head | (qemu_plugin_mem_is_store(info) ? STORE : 0);
		kind->info = info;
		kind->is_known = 1;
	}
	return kind->head;
}

/* `all`: not a sample. */
static inline __attribute__((always_inline)) void put_access(struct thread *thread, qemu_plugin_meminfo_t info,
							     uint64_t address, uint64_t id, bool all)
{
	uint64_t now = all ? thread->before + (id - thread->block) : thread->now;
	uint64_t *remembered = &thread->remembered[id % REMEMBERED];
	uint64_t from = *remembered ? *remembered : thread->address;
	uint64_t head = head_of(thread, info);
	bool together = !all || now - thread->now == id - thread->instruction;

	head |= together ? TOGETHER : 0;
	if (__builtin_expect(thread->at + EVENT_ROOM > thread->bytes + BLOCK_ROOM, 0))
		block_flush(thread), from = thread->address;
	thread->at = put_varint(thread->at, head | zigzag((int64_t)(id - thread->instruction)) << 5);
	if (!together)
		thread->at = put_varint(thread->at, now - thread->now);
	thread->at = put_varint(thread->at, zigzag((int64_t)(address - from)));
	*remembered = address;
	thread->address = address;
	thread->instruction = id;
	thread->now = now;
	thread->accesses++;
}

/* An access, where all are written down. */
static void on_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	struct thread *thread = current(cpu);

	if (!thread->is_stopped)
		put_access(thread, info, address, (uintptr_t)data, true);
}

/* An access of a whole machine, whose CPUs still run while the trace is ended. */
static void on_machine_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	struct thread *thread = current(cpu);

	if (!stopped())
		put_access(thread, info, address, (uintptr_t)data, true);
}

/* An access of an instruction that ends its block by a jump, with the number of accesses that it has. QEMU before 8.0
 * goes on to call this afterwards, for what it accesses in functions of its own: see separate_from_window(). Signals are
 * among it, whose frames QEMU writes between two blocks. */
static void on_access_of_jump(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	struct thread *thread = current(cpu);
	uint64_t id = (uintptr_t)data >> 2, now = thread->before + (id - thread->block);

	if (id - thread->block >= thread->block_count)
		return;
	if (thread->jump != now) {
		thread->jump = now;
		thread->jump_accesses = 0;
	}
	if (thread->jump_accesses++ < ((uintptr_t)data & 3) && !(whole_machine ? stopped() : thread->is_stopped))
		put_access(thread, info, address, id, true);
}

static void on_sampled(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	struct thread *thread = current(cpu);

	if (--thread->countdown)
		return;
	thread->countdown = distance(thread);
	if (!stopped())
		put_access(thread, info, address, (uintptr_t)data, false);
}

static void on_atomic(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	struct thread *thread = current(cpu);

	if (stopped())
		return;
	put_point(thread, POINT_ATOMIC, thread->before + ((uintptr_t)data - thread->block));
	put_access(thread, info, address, (uintptr_t)data, true);
}

enum { CODE_ROOM = 16 };

/* The bytes of an instruction; returns how many they are. */
static size_t insn_code(const struct qemu_plugin_insn *insn, uint8_t code[CODE_ROOM])
{
	size_t size = qemu_plugin_insn_size(insn);

	if (size > CODE_ROOM)
		size = CODE_ROOM;
	if (interface >= 3) {
		size_t (*copy)(const struct qemu_plugin_insn *, void *, size_t) = (void *)qemu_plugin_insn_data;

		copy(insn, code, size);
	} else {
		const void *(*data)(const struct qemu_plugin_insn *) = (void *)qemu_plugin_insn_data;

		memcpy(code, data(insn), size);
	}
	return size;
}

/* An access that is not written down. */
static void on_nothing(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	(void)cpu, (void)info, (void)address, (void)data;
}

/* QEMU before 8.0 forgets to reset what it calls for the accesses of an instruction that ends its block by a jump
 * through a register or onto another page. Until another instruction sets it, it is called for whatever accesses
 * memory in a function of QEMU, as atomic instructions do: those outside of the window were accesses of its last
 * `ret`, and after QEMU had freed its blocks it fell over them. So each of those has something of its own to call. */
static void separate_from_window(struct qemu_plugin_tb *tb, size_t count)
{
	size_t at;

	/* a plugin cannot ask for more than the interface, which is another one from 9.0 on */
	if (interface >= 2)
		return;
	for (at = 0; at < count; at++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, at);
		uint8_t code[CODE_ROOM];

		if (accesses_in_function(machine, code, insn_code(insn, code)))
			qemu_plugin_register_vcpu_mem_cb(insn, on_nothing, CALLBACK_WITHOUT_REGISTERS,
							 MEMORY_READ_OR_WRITE, NULL);
	}
}

/* Has a block outside of the window counted, if it has to be. */
static void count_other(struct qemu_plugin_tb *tb, size_t count)
{
	struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, count - 1);
	uint64_t start = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0));
	uint8_t code[CODE_ROOM];
	size_t size = insn_code(last, code);
	int64_t instructions = flow_block(machine, start, count, qemu_plugin_insn_vaddr(last), code, size);

	if (instructions)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, on_other_block, CALLBACK_WITHOUT_REGISTERS,
						     (void *)(intptr_t)instructions);
}

static void on_translated(qemu_plugin_id_t plugin, struct qemu_plugin_tb *tb)
{
	size_t count = qemu_plugin_tb_n_insns(tb), at;
	uint64_t first;

	on_memory on_one = every != 1 ? on_sampled : whole_machine ? on_machine_access : on_access;

	(void)plugin;
	if (!count)
		return;
	pthread_mutex_lock(&table_lock);
	if (!whole_machine)
		mappings_look(tb);
	/* a function's blocks lie in it as a whole: jumps end them */
	first = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0));
	if (windowed && window_excludes(first)) {
		/* a whole machine has no files, and so nothing in a window */
		if (every == 1 && !whole_machine && window_waits(first))
			qemu_plugin_register_vcpu_tb_exec_cb(tb, on_wait, CALLBACK_WITHOUT_REGISTERS, NULL);
		else if (every == 1 && !whole_machine)
			count_other(tb, count);
		separate_from_window(tb, count);
		pthread_mutex_unlock(&table_lock);
		return;
	}
	first = atomic_fetch_add(&shared->instructions, count);
	for (at = 0; at < count; at++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, at);
		uint8_t code[CODE_ROOM];
		size_t size = insn_code(insn, code);
		bool atomic = is_atomic(machine, code, size);

		unsigned int accesses = at + 1 == count && every == 1 ? accesses_of_jump(machine, code, size) : ACCESSES_UNKNOWN;

		table_add(first + at, qemu_plugin_insn_vaddr(insn), qemu_plugin_insn_size(insn), atomic);
		if (accesses != ACCESSES_UNKNOWN) {
			if (accesses)
				qemu_plugin_register_vcpu_mem_cb(insn, on_access_of_jump, CALLBACK_WITHOUT_REGISTERS,
								 MEMORY_READ_OR_WRITE,
								 (void *)(uintptr_t)((first + at) << 2 | accesses));
			continue;
		}
		/* A sample of accesses cannot be replayed, and needs no order. Of a window not all atomic instructions
		 * are there to be ordered: to number them, all threads would write to one word. */
		qemu_plugin_register_vcpu_mem_cb(insn, atomic && every == 1 && !windowed ? on_atomic : on_one,
						 CALLBACK_WITHOUT_REGISTERS, MEMORY_READ_OR_WRITE,
						 (void *)(uintptr_t)(first + at));
	}
	pthread_mutex_unlock(&table_lock);
	/* the count of instructions is for replay */
	if (every == 1)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, CALLBACK_WITHOUT_REGISTERS,
						     (void *)(uintptr_t)(first << 10 | (count & 0x3ff)));
}

static void on_call(qemu_plugin_id_t plugin, unsigned int cpu, int64_t number, uint64_t first, uint64_t second,
		    uint64_t third, uint64_t fourth, uint64_t fifth, uint64_t sixth, uint64_t seventh, uint64_t eighth)
{
	struct thread *thread = current(cpu);
	enum call call = call_of(machine, number);

	(void)plugin, (void)fifth, (void)sixth, (void)seventh, (void)eighth;
	switch (call) {
	case CALL_FUTEX:
		thread->futex = futex_call(first, second, atomic_load(&shared->points));
		if (!thread->futex.waits)
			futex_wakes(&thread->futex, put_point(thread, POINT_WAKE, now_of(thread)));
		break;
	case CALL_CLONE:
		put_point(thread, POINT_CLONE, now_of(thread));
		break;
	case CALL_EXIT:
		thread_end();
		break;
	case CALL_EXECUTE:
		block_flush(thread);
		mappings_execution(executes_by_name_at_second(machine, number) ? second : first);
		break;
	case CALL_MAP: case CALL_PROTECT: case CALL_REMAP:
		thread->maps_file = maps_file(call, third, fourth);
		break;
	default:
		break;
	}
}

static void on_return(qemu_plugin_id_t plugin, unsigned int cpu, int64_t number, int64_t result)
{
	(void)plugin, (void)result;
	switch (call_of(machine, number)) {
	case CALL_FUTEX: {
		struct thread *thread = current(cpu);
		uint64_t woken_by = futex_woken_by(&thread->futex);

		if (thread->futex.waits && woken_by != UINT64_MAX)
			put_point_at(thread, POINT_WAITED, woken_by + 1, now_of(thread));
		else if (thread->futex.waits)
			put_point(thread, POINT_WAITED, now_of(thread));
		break;
	}
	case CALL_MAP: case CALL_PROTECT: case CALL_REMAP:
		if (current(cpu)->maps_file)
			mappings_change();
		break;
	case CALL_EXECUTE: {
		/* it comes back where there is no such program */
		uint8_t block[BLOCK_HEAD + 4];

		put_u32(block + BLOCK_HEAD, getpid());
		file_append("BACK", block, sizeof block);
		break;
	}
	default:
		break;
	}
}

static void on_end(qemu_plugin_id_t plugin, void *data)
{
	uint8_t block[BLOCK_HEAD + 24], *at = block + BLOCK_HEAD;
	uint64_t instructions = 0, recorded = 0;
	struct thread *thread;

	(void)plugin, (void)data;
	/* a machine's CPUs may still run */
	if (whole_machine)
		atomic_fetch_or(&shared->stopped, FILE_ENDS);
	pthread_mutex_lock(&threads_lock);
	for (thread = threads; thread; thread = thread->next) {
		block_flush(thread);
		name_write(thread);
		instructions += now_of(thread);
		recorded += thread->recorded;
	}
	instructions += ended_instructions;
	recorded += ended_recorded;
	pthread_mutex_unlock(&threads_lock);
	at = put_u32(at, getpid());
	at = put_u32(at, atomic_load(&shared->stopped) & ~FILE_ENDS);
	at = put_u64(at, instructions);
	at = put_u64(at, recorded);
	file_append("DONE", block, at - block);
}

/* --- a process that is forked --- */

static void before_fork(void)
{
	pthread_mutex_lock(&threads_lock);
	pthread_mutex_lock(&table_lock);
	/* the parent's translations are the child's too */
	table_flush();
}

static void after_fork(void)
{
	pthread_mutex_unlock(&table_lock);
	pthread_mutex_unlock(&threads_lock);
}

/* Of the threads only this one is there, and what it had to write the parent writes. */
static void in_child(void)
{
	threads = own;
	ended_instructions = ended_recorded = 0;
	after_fork();
	if (own) {
		own->next = NULL;
		own->pid = getpid();
		own->tid = gettid();
		own->recorded = 0;
		own->before = own->block_count = own->now = 0;
		own->jump = UINT64_MAX;
		mappings_forget();
		own->spins = false;
		passed = 0;
		block_start(own);
		put_point(own, POINT_START, 0);
	}
}

/* --- the start --- */

static bool number_of(const char *text, uint64_t *number)
{
	char *end;

	*number = strtoull(text, &end, 10);
	return *text && !*end && *number;
}

/* QEMU from 9 on has this function, and takes version 2. */
__attribute__((constructor)) static void choose_version(void)
{
	if (dlsym(RTLD_DEFAULT, "qemu_plugin_num_vcpus"))
		qemu_plugin_version = 2;
}

static void header_write(const char *target)
{
	uint8_t block[BLOCK_HEAD + 64 + 256], *at = block + BLOCK_HEAD;
	size_t length = strnlen(target, 255);

	at = put_u32(at, whole_machine | windowed << 1);
	at = put_u32(at, interface);
	at = put_u64(at, every);
	at = put_u32(at, getpid());
	at = put_u64(at, clock_now());
	at = put_u16(at, length);
	memcpy(at, target, length);
	file_append("TLT1", block, at + length - block);
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct host *host, int argc, char **argv)
{
	const char *out = NULL;
	uint64_t limit = UINT64_MAX;
	int at;

	for (at = 0; at < argc; at++) {
		if (!strncmp(argv[at], "out=", 4))
			out = argv[at] + 4;
		else if (!strncmp(argv[at], "every=", 6) && number_of(argv[at] + 6, &every))
			continue;
		else if (!strncmp(argv[at], "limit=", 6) && number_of(argv[at] + 6, &limit))
			continue;
		else if (!strncmp(argv[at], "window=", 7)) {
			windowed = true;
			if (!window_read(argv[at] + 7)) {
				fprintf(stderr, "tallyline: the plugin cannot read the window %s\n", argv[at] + 7);
				return 1;
			}
		} else if (!strncmp(argv[at], "start=", 6)) {
			if (!start_read(argv[at] + 6)) {
				fprintf(stderr, "tallyline: the plugin cannot read %s\n", argv[at] + 6);
				return 1;
			}
		} else {
			fprintf(stderr, "tallyline: the plugin does not know %s\n", argv[at]);
			return 1;
		}
	}
	if (!out || !file_open(out, limit)) {
		fprintf(stderr, "tallyline: the plugin cannot write %s\n", out ? out : "its file: no out=FILE");
		return 1;
	}
	machine = machine_named(host->target_name);
	whole_machine = host->system_emulation;
	interface = host->version.current;
	table_flush();
	header_write(host->target_name);
	mappings_of_emulator();
	pthread_atfork(before_fork, after_fork, in_child);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
	if (!whole_machine) {
		qemu_plugin_register_vcpu_syscall_cb(id, on_call);
		qemu_plugin_register_vcpu_syscall_ret_cb(id, on_return);
	}
	qemu_plugin_register_atexit_cb(id, on_end, NULL);
	return 0;
}
