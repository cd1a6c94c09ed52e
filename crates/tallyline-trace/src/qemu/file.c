#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct shared *shared;

static char *file_path;
static uint64_t file_limit;
static int file = -1;
/* device and number of the file */
static struct stat identity;

/* The emulated program shares our descriptors, and may count on low numbers and close all of them. A number beyond the
 * kernel's first table of descriptors would have that replaced, for which all of the emulator's threads are waited:
 * 8 ms, a fifth of the time in which a small program runs under the emulator (Linux 6.18). */
static int out_of_the_way(int low)
{
	enum { LAST_OF_FIRST_TABLE = 63 };
	int high = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, LAST_OF_FIRST_TABLE);

	if (high < 0)
		return low;
	close(low);
	return high;
}

static bool is_ours(int descriptor)
{
	struct stat found;

	return !fstat(descriptor, &found) && found.st_dev == identity.st_dev && found.st_ino == identity.st_ino;
}

static bool open_again(void)
{
	file = out_of_the_way(open(file_path, O_WRONLY | O_APPEND | O_CLOEXEC));
	return file >= 0;
}

bool file_open(const char *path, uint64_t limit)
{
	/* the emulated program may change its directory */
	file_path = realpath(path, NULL);
	file_limit = limit;
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!file_path || shared == MAP_FAILED)
		return false;
	return open_again() && !fstat(file, &identity);
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
	const struct timespec at_once = { 0 };
	sigset_t too_large, before;
	ssize_t written;

	/* the program may have closed it, and have another file by its number now */
	if (!is_ours(file)) {
		errno = ESTALE;
		if (!open_again() || !is_ours(file)) {
			broken();
			return;
		}
	}
	/* the limit on the size of its files is one for the program, which must not die of the trace */
	sigemptyset(&too_large);
	sigaddset(&too_large, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &too_large, &before);
	written = write(file, from, size);
	while (written < 0 && errno == EINTR)
		written = write(file, from, size);
	if (written < 0 && errno == EFBIG) {
		sigtimedwait(&too_large, NULL, &at_once);
		errno = EFBIG;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
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
