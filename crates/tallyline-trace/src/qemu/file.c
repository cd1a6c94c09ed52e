#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

struct shared *shared;

static char *file_path;
static uint64_t file_limit;
static int file = -1;

/* The emulated program shares our descriptors, and may count on low numbers and close all of them. */
static int out_of_the_way(int low)
{
	struct rlimit limit;
	int high = -1;

	if (low < 0)
		return low;
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur > 64 && limit.rlim_cur <= 1 << 20)
		high = fcntl(low, F_DUPFD_CLOEXEC, (int)limit.rlim_cur - 32);
	if (high < 0)
		return low;
	close(low);
	return high;
}

static int open_again(void)
{
	return out_of_the_way(open(file_path, O_WRONLY | O_APPEND | O_CLOEXEC));
}

bool file_open(const char *path, uint64_t limit)
{
	/* the emulated program may change its directory */
	file_path = realpath(path, NULL);
	file_limit = limit;
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!file_path || shared == MAP_FAILED)
		return false;
	file = open_again();
	return file >= 0;
}

static void broken(void)
{
	if (!(atomic_fetch_or(&shared->stopped, FILE_BROKEN) & FILE_BROKEN))
		fprintf(stderr, "tallyline: cannot write %s: %s; the trace ends here\n", file_path,
			strerror(errno));
}

/* Who appends is alone: a block is one write, and what a write leaves of it (a full disk, a pipe) is
 * the end of the trace. */
static void append(const uint8_t *from, size_t size)
{
	ssize_t written = write(file, from, size);

	if (written < 0 && errno == EBADF) {
		file = open_again();
		written = write(file, from, size);
	}
	while (written < 0 && errno == EINTR)
		written = write(file, from, size);
	if (written != (ssize_t)size) {
		if (written >= 0)
			errno = ENOSPC;
		broken();
	}
}

void file_append(const char kind[4], uint8_t *block, size_t size)
{
	if (atomic_load_explicit(&shared->stopped, memory_order_relaxed) & FILE_BROKEN)
		return;
	memcpy(block, kind, 4);
	put_u32(block + 4, size - BLOCK_HEAD);
	append(block, size);
	if (atomic_fetch_add(&shared->bytes, size) + size >= file_limit)
		atomic_fetch_or(&shared->stopped, FILE_FULL);
}
