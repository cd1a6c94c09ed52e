/* What a virtual machine boots into when its kernel is sampled: files, pipes, sockets, processes, memory, in
 * rounds; then the machine is switched off. Its console says `workload: done` where all went well.
 *
 *   workload.rounds=N    so many rounds (default 3), on the kernel's command line
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

static int must(int result, const char *what)
{
	if (result < 0) {
		printf("workload: %s: %s\n", what, strerror(errno));
		failures++;
	}
	return result;
}

static char block[16384];

/* --- files --- */

static void read_all(const char *path)
{
	int file = open(path, O_RDONLY | O_NONBLOCK);

	if (file < 0)
		return;
	while (read(file, block, sizeof block) > 0)
		;
	close(file);
}

static void read_folder(const char *path, int depth)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	char name[512];
	struct stat about;

	if (!folder)
		return;
	while ((entry = readdir(folder))) {
		/* kallsyms, kmsg, kpageflags: megabytes of text, or never an end */
		if (entry->d_name[0] == '.' || (entry->d_name[0] == 'k' && !strcmp(path, "/proc")))
			continue;
		snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
		if (lstat(name, &about) == 0 && S_ISDIR(about.st_mode) && depth > 0)
			read_folder(name, depth - 1);
		else if (S_ISREG(about.st_mode) && about.st_size < 1 << 20 && (about.st_mode & 0444) && depth > 0)
			read_all(name);
	}
	closedir(folder);
}

static void files(const char *root)
{
	char name[256], other[256];
	struct stat about;

	for (int at = 0; at < 60; at++) {
		snprintf(name, sizeof name, "%s/folder%d", root, at % 6);
		mkdir(name, 0755);
		snprintf(name, sizeof name, "%s/folder%d/file%d", root, at % 6, at);
		int file = must(open(name, O_RDWR | O_CREAT, 0644), "create");

		for (int part = 0; part < 6; part++)
			must(write(file, block, sizeof block / (1 + part % 3)), "write");
		must(fsync(file), "fsync");
		must(pread(file, block, 4096, 4096), "pread");
		must(ftruncate(file, 10000), "ftruncate");
		void *mapped = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

		if (mapped != MAP_FAILED) {
			memset(mapped, at, 8192);
			munmap(mapped, 8192);
		}
		must(fstat(file, &about), "fstat");
		close(file);
		snprintf(other, sizeof other, "%s/folder%d/other%d", root, at % 6, at);
		must(rename(name, other), "rename");
		must(link(other, name), "link");
		must(unlink(other), "unlink");
		must(access(name, R_OK), "access");
	}
	read_folder(root, 2);
	for (int at = 0; at < 60; at++) {
		snprintf(name, sizeof name, "%s/folder%d/file%d", root, at % 6, at);
		must(unlink(name), "unlink");
	}
}

/* --- pipes and sockets --- */

static void echo_through(int in, int out, int bytes, int times)
{
	if (fork() == 0) {
		ssize_t got;

		close(out);
		while ((got = read(in, block, sizeof block)) > 0)
			;
		_exit(got < 0);
	}
	close(in);
	for (int at = 0; at < times; at++)
		must(write(out, block, bytes), "write to a pipe");
	close(out);
	must(wait(NULL), "wait");
}

static void pipes(void)
{
	int ends[2];

	must(pipe(ends), "pipe");
	echo_through(ends[0], ends[1], 4096, 200);
	must(pipe(ends), "pipe");
	echo_through(ends[0], ends[1], 7, 300);
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
	echo_through(ends[0], ends[1], 2000, 200);
}

static void tcp(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof at;
	int listener = must(socket(AF_INET, SOCK_STREAM, 0), "socket"), one = 1;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	must(bind(listener, (struct sockaddr *)&at, sizeof at), "bind");
	must(getsockname(listener, (struct sockaddr *)&at, &length), "getsockname");
	must(listen(listener, 8), "listen");
	if (fork() == 0) {
		for (int connection = 0; connection < 12; connection++) {
			int to = socket(AF_INET, SOCK_STREAM, 0);

			if (connect(to, (struct sockaddr *)&at, sizeof at) < 0)
				_exit(1);
			for (int part = 0; part < 15; part++)
				if (write(to, block, 100 + part * 700) < 0 || read(to, block, sizeof block) <= 0)
					_exit(1);
			close(to);
		}
		_exit(0);
	}
	int queue = must(epoll_create1(0), "epoll_create1");
	struct epoll_event event = { .events = EPOLLIN, .data.fd = listener };
	int closed = 0, status;

	must(epoll_ctl(queue, EPOLL_CTL_ADD, listener, &event), "epoll_ctl");
	while (closed < 12) {
		struct epoll_event ready[8];
		int count = must(epoll_wait(queue, ready, 8, 5000), "epoll_wait");

		if (count <= 0)
			break;
		for (int which = 0; which < count; which++) {
			int of = ready[which].data.fd;

			if (of == listener) {
				event.data.fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
				must(epoll_ctl(queue, EPOLL_CTL_ADD, event.data.fd, &event), "epoll_ctl");
				continue;
			}
			ssize_t got = read(of, block, sizeof block);

			if (got > 0)
				must(write(of, block, got), "write to a socket");
			else if (got == 0)
				closed++, close(of);
		}
	}
	close(queue);
	close(listener);
	wait(&status);
	must(closed == 12 ? 0 : -1, "all connections");
}

static void udp(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof at;
	int receiver = socket(AF_INET, SOCK_DGRAM, 0), sender = socket(AF_INET, SOCK_DGRAM, 0);

	must(bind(receiver, (struct sockaddr *)&at, sizeof at), "bind");
	must(getsockname(receiver, (struct sockaddr *)&at, &length), "getsockname");
	for (int part = 0; part < 150; part++) {
		must(sendto(sender, block, 64 + part * 8, 0, (struct sockaddr *)&at, sizeof at), "sendto");
		must(recv(receiver, block, sizeof block, 0), "recv");
	}
	close(receiver);
	close(sender);
}

/* --- processes, threads, signals, time --- */

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
	caught += number != 0;
}

static void *wait_at(void *barrier)
{
	for (int at = 0; at < 30; at++)
		pthread_barrier_wait(barrier);
	return NULL;
}

static void processes(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	pthread_barrier_t barrier;
	pthread_t threads[3];
	int status;

	for (int at = 0; at < 25; at++) {
		pid_t child = must(fork(), "fork");

		if (child == 0) {
			if (at % 2)
				execl("/init", "init", "--exit", NULL);
			_exit(0);
		}
		must(waitpid(child, &status, 0), "waitpid");
		must(status == 0 ? 0 : -1, "status");
	}
	sigaction(SIGUSR1, &action, NULL);
	for (int at = 0; at < 100; at++)
		kill(getpid(), SIGUSR1);
	must(caught ? 0 : -1, "signals");
	pthread_barrier_init(&barrier, NULL, 3);
	for (int at = 0; at < 3; at++)
		must(-pthread_create(&threads[at], NULL, wait_at, &barrier), "pthread_create");
	for (int at = 0; at < 3; at++)
		pthread_join(threads[at], NULL);
	for (int at = 0; at < 20; at++) {
		usleep(100);
		poll(NULL, 0, 1);
		sched_yield();
		setpriority(0, 0, at % 3);
	}
}

/* --- memory --- */

static void memory(void)
{
	const size_t size = 1 << 20;

	for (int at = 0; at < 6; at++) {
		char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		must(pages == MAP_FAILED ? -1 : 0, "mmap");
		for (size_t page = 0; page < size; page += 4096)
			pages[page] = at;
		must(mprotect(pages + size / 4, size / 4, PROT_READ), "mprotect");
		must(madvise(pages, size / 8, MADV_DONTNEED), "madvise");
		if (fork() == 0) {
			for (size_t page = 0; page < size / 4; page += 4096)
				pages[page] = at;
			_exit(0);
		}
		wait(NULL);
		pages = mremap(pages + size / 2, size / 2, size, MREMAP_MAYMOVE);
		must(pages == MAP_FAILED ? -1 : 0, "mremap");
		munmap(pages, size);
	}
}

static int rounds(void)
{
	char words[4096] = "";
	int file = open("/proc/cmdline", O_RDONLY);
	const char *found;

	if (file >= 0 && read(file, words, sizeof words - 1) < 0)
		return 3;
	close(file);
	found = strstr(words, "workload.rounds=");
	return found ? atoi(found + 16) : 3;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--exit"))
		return 0;
	mkdir("/proc", 0755), mkdir("/sys", 0755), mkdir("/tmp", 0755);
	must(mount("proc", "/proc", "proc", 0, NULL), "mount proc");
	must(mount("sysfs", "/sys", "sysfs", 0, NULL), "mount sysfs");
	must(mount("tmpfs", "/tmp", "tmpfs", 0, NULL), "mount tmpfs");
	/* the loopback device is down when a machine starts */
	struct { char name[16]; short flags; char rest[22]; } loopback = { "lo", 0x1 /* up */ | 0x40 /* running */, "" };
	int control = socket(AF_INET, SOCK_DGRAM, 0);

	must(ioctl(control, 0x8914 /* SIOCSIFFLAGS */, &loopback), "lo up");
	close(control);
	for (int count = rounds(); count > 0; count--) {
		files("/tmp");
		read_folder("/proc", 1);
		read_folder("/sys/kernel", 2);
		pipes();
		tcp();
		udp();
		processes();
		memory();
	}
	puts(failures ? "workload: failed" : "workload: done");
	sync();
	reboot(RB_POWER_OFF);
	return 1;
}
