/* What a virtual machine boots into when the kernel's TCP is sampled: connections by IPv4 and IPv6 that carry streams
 * in both directions, requests and answers, and streams that the application limits. They go over three links to a network
 * namespace of its own or this one: two network cards that the emulator joins, with deferred interrupts, so that
 * packets are merged, and spread to CPUs by software; a pair of virtual interfaces with two queues; and the loopback
 * interface. Its console says `workload: done` where all went well.
 *
 *   workload.megabytes=N   of each stream (default 8)
 *   workload.requests=N    of each connection (default 1000)
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 4000, BLOCK = 64 << 10, REQUEST = 100, ANSWER = 1000, RECORD = 8000, RECORDS = 400 };

/* Of the kind of work that a connection does; its first byte. */
enum kind { SEND = 's', RECEIVE = 'r', ASK = 'a', RECORDS_BY_TIME = 't' };

static char block[BLOCK];
static long megabytes = 8, requests = 1000;

static void must(long result, const char *what)
{
	if (result >= 0)
		return;
	printf("workload: %s: %s\n", what, strerror(errno));
	fflush(stdout);
	if (getpid() == 1)
		reboot(RB_POWER_OFF);
	_exit(1);
}

/* --- the machine --- */

static void load_modules(void)
{
	char name[64], path[128];
	FILE *list = fopen("/modules/list", "r");

	must(list ? 0 : -1, "/modules/list");
	while (fscanf(list, "%63s", name) == 1) {
		int file;

		snprintf(path, sizeof path, "/modules/%s", name);
		file = open(path, O_RDONLY | O_CLOEXEC);
		must(file, path);
		must(syscall(SYS_finit_module, file, "", 0), path);
		close(file);
	}
	fclose(list);
}

/* The kernel's words `workload.…=N`; others are left. */
static void read_settings(void)
{
	char line[4096] = "";
	FILE *file = fopen("/proc/cmdline", "r");
	char *found;

	if (!file || !fgets(line, sizeof line, file))
		return;
	found = strstr(line, "workload.megabytes=");
	if (found)
		megabytes = atol(found + strlen("workload.megabytes="));
	found = strstr(line, "workload.requests=");
	if (found)
		requests = atol(found + strlen("workload.requests="));
	fclose(file);
}

struct request {
	struct nlmsghdr head;
	struct ifinfomsg about;
	char attributes[512];
};

static struct rtattr *attribute_begin(struct request *request, int type)
{
	struct rtattr *attribute = (struct rtattr *)((char *)request + NLMSG_ALIGN(request->head.nlmsg_len));

	attribute->rta_type = type;
	attribute->rta_len = RTA_LENGTH(0);
	request->head.nlmsg_len = NLMSG_ALIGN(request->head.nlmsg_len) + RTA_LENGTH(0);
	return attribute;
}

static void attribute_end(struct request *request, struct rtattr *attribute)
{
	attribute->rta_len = (char *)request + request->head.nlmsg_len - (char *)attribute;
}

static void put(struct request *request, int type, const void *data, size_t size)
{
	struct rtattr *attribute = attribute_begin(request, type);

	memcpy(RTA_DATA(attribute), data, size);
	request->head.nlmsg_len += size;
	attribute_end(request, attribute);
}

static void ask_kernel(struct request *request, const char *what)
{
	int link = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	char answer[4096];
	struct nlmsghdr *head = (struct nlmsghdr *)answer;

	must(link, "netlink");
	must(send(link, request, request->head.nlmsg_len, 0), what);
	must(recv(link, answer, sizeof answer, 0), what);
	if (head->nlmsg_type == NLMSG_ERROR) {
		errno = -((struct nlmsgerr *)NLMSG_DATA(head))->error;
		must(errno ? -1 : 0, what);
	}
	close(link);
}

static int index_of(const char *interface)
{
	int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq named = { 0 };

	strncpy(named.ifr_name, interface, IFNAMSIZ - 1);
	must(ioctl(any, SIOCGIFINDEX, &named), interface);
	close(any);
	return named.ifr_ifindex;
}

static void move_to_namespace_of(const char *interface, pid_t process)
{
	struct request request = { .head = { NLMSG_LENGTH(sizeof(struct ifinfomsg)), RTM_NEWLINK,
					     NLM_F_REQUEST | NLM_F_ACK } };

	request.about.ifi_index = index_of(interface);
	put(&request, IFLA_NET_NS_PID, &process, sizeof process);
	ask_kernel(&request, "moving the interface");
}

/* Makes a pair of interfaces, each with two queues in each direction. */
static void make_pair(const char *one, const char *other)
{
	struct request request = { .head = { NLMSG_LENGTH(sizeof(struct ifinfomsg)), RTM_NEWLINK,
					     NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL } };
	uint32_t queues = 2;
	struct rtattr *info, *data, *peer;

	put(&request, IFLA_IFNAME, one, strlen(one) + 1);
	put(&request, IFLA_NUM_TX_QUEUES, &queues, sizeof queues);
	put(&request, IFLA_NUM_RX_QUEUES, &queues, sizeof queues);
	info = attribute_begin(&request, IFLA_LINKINFO);
	put(&request, IFLA_INFO_KIND, "veth", 4);
	data = attribute_begin(&request, IFLA_INFO_DATA);
	peer = attribute_begin(&request, VETH_INFO_PEER);
	/* the peer's own head, without flags */
	memset((char *)&request + request.head.nlmsg_len, 0, sizeof(struct ifinfomsg));
	request.head.nlmsg_len += sizeof(struct ifinfomsg);
	put(&request, IFLA_IFNAME, other, strlen(other) + 1);
	put(&request, IFLA_NUM_TX_QUEUES, &queues, sizeof queues);
	put(&request, IFLA_NUM_RX_QUEUES, &queues, sizeof queues);
	attribute_end(&request, peer);
	attribute_end(&request, data);
	attribute_end(&request, info);
	ask_kernel(&request, "making a pair of interfaces");
}

static void set(const char *path, const char *value)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);

	must(file, path);
	must(write(file, value, strlen(value)), path);
	close(file);
}

/* Defers interrupts, so that packets are merged before they go up, and spreads packets to all CPUs. */
static void tune(const char *interface)
{
	char path[128];

	snprintf(path, sizeof path, "/sys/class/net/%s/gro_flush_timeout", interface);
	set(path, "200000");
	snprintf(path, sizeof path, "/sys/class/net/%s/napi_defer_hard_irqs", interface);
	set(path, "2");
	snprintf(path, sizeof path, "/sys/class/net/%s/queues/rx-0/rps_cpus", interface);
	set(path, "3");
}

/* Sets addresses by which the host is 10.9.LINK.HOST and fd09:LINK::HOST, and lets the interface run. */
static void configure(const char *interface, int link, int host)
{
	struct ifreq request = { 0 };
	struct {
		struct in6_addr address;
		uint32_t prefix;
		int index;
	} request6 = { 0 };
	struct sockaddr_in *address = (struct sockaddr_in *)&request.ifr_addr;
	int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), any6 = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char text[64], path[128];

	must(any, "socket");
	must(any6, "socket");
	/* addresses need not be tried first: there is no one else */
	snprintf(path, sizeof path, "/proc/sys/net/ipv6/conf/%s/accept_dad", interface);
	set(path, "0");
	strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
	address->sin_family = AF_INET;
	snprintf(text, sizeof text, "10.9.%d.%d", link, host);
	inet_pton(AF_INET, text, &address->sin_addr);
	must(ioctl(any, SIOCSIFADDR, &request), "address");
	inet_pton(AF_INET, "255.255.255.0", &address->sin_addr);
	must(ioctl(any, SIOCSIFNETMASK, &request), "mask");
	must(ioctl(any, SIOCGIFFLAGS, &request), "flags");
	request.ifr_flags |= IFF_UP | IFF_RUNNING;
	must(ioctl(any, SIOCSIFFLAGS, &request), "up");
	must(ioctl(any, SIOCGIFINDEX, &request), "index");
	snprintf(text, sizeof text, "fd09:%d::%d", link, host);
	inet_pton(AF_INET6, text, &request6.address);
	request6.prefix = 64;
	request6.index = request.ifr_ifindex;
	must(ioctl(any6, SIOCSIFADDR, &request6), "IPv6 address");
	close(any);
	close(any6);
}

/* --- the connections --- */

static void read_whole(int from, size_t size)
{
	while (size) {
		ssize_t got = read(from, block, size < sizeof block ? size : sizeof block);

		if (!got) {
			errno = EPIPE;
			got = -1;
		}
		must(got, "read");
		size -= got;
	}
}

static void write_whole(int to, size_t size)
{
	while (size) {
		ssize_t done = write(to, block, size < sizeof block ? size : sizeof block);

		must(done, "write");
		size -= done;
	}
}

static void rest(long microseconds)
{
	struct timespec time = { 0, microseconds * 1000 };

	nanosleep(&time, NULL);
}

/* One side of a connection: who answers has the other part. */
static void work(int connection, enum kind kind, int answers)
{
	long at;

	switch (kind) {
	case SEND:
	case RECEIVE:
		if ((kind == SEND) != answers)
			write_whole(connection, megabytes << 20);
		else
			read_whole(connection, megabytes << 20);
		break;
	case ASK:
		for (at = 0; at < requests; at++) {
			if (!answers)
				write_whole(connection, REQUEST);
			read_whole(connection, answers ? REQUEST : ANSWER);
			if (answers)
				write_whole(connection, ANSWER);
		}
		break;
	case RECORDS_BY_TIME:
		for (at = 0; at < RECORDS; at++) {
			if (answers) {
				read_whole(connection, RECORD);
				continue;
			}
			write_whole(connection, RECORD);
			rest(2000);
		}
		break;
	}
	/* both have all before either ends */
	if (answers)
		write_whole(connection, 1);
	else
		read_whole(connection, 1);
}

static void serve(void)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(PORT) };
	int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(listener, "socket");
	must(bind(listener, (struct sockaddr *)&any, sizeof any), "bind");
	must(listen(listener, 64), "listen");
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		pid_t child;
		char kind;

		must(connection, "accept");
		child = fork();
		must(child, "fork");
		if (!child) {
			must(read(connection, &kind, 1) == 1 ? 0 : -1, "kind");
			work(connection, kind, 1);
			_exit(0);
		}
		close(connection);
	}
}

static pid_t start(int link, int host, int family, enum kind kind)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(PORT) };
	char first = kind, text[64];
	int connection, tries;
	pid_t child = fork();

	must(child, "fork");
	if (child)
		return child;
	snprintf(text, sizeof text, "10.9.%d.%d", link, host);
	inet_pton(AF_INET, text, &v4.sin_addr);
	snprintf(text, sizeof text, "fd09:%d::%d", link, host);
	inet_pton(AF_INET6, text, &v6.sin6_addr);
	for (tries = 0;; tries++) {
		int result;

		connection = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		must(connection, "socket");
		result = family == AF_INET ? connect(connection, (struct sockaddr *)&v4, sizeof v4) :
					     connect(connection, (struct sockaddr *)&v6, sizeof v6);
		if (!result)
			break;
		must(tries < 50 ? 0 : -1, "connect");
		close(connection);
		rest(100000);
	}
	must(write(connection, &first, 1), "kind");
	work(connection, kind, 0);
	_exit(0);
}

static int all_did(pid_t *children, int count)
{
	int at, well = 1;

	for (at = 0; at < count; at++) {
		int status;

		must(waitpid(children[at], &status, 0), "wait");
		well = well && WIFEXITED(status) && !WEXITSTATUS(status);
	}
	return well;
}

int main(void)
{
	static const enum kind kinds[] = { SEND, RECEIVE, ASK, RECORDS_BY_TIME };
	/* links and the hosts at their other ends; the third one's is this one */
	static const int ends[][2] = { { 1, 2 }, { 2, 2 }, { 3, 1 } };
	pid_t server, local, children[24];
	int ready[2], moved[2], count = 0, well;
	size_t at, end;
	char byte = 0;

	must(mount("none", "/proc", "proc", 0, NULL), "/proc");
	must(mount("none", "/sys", "sysfs", 0, NULL), "/sys");
	read_settings();
	load_modules();
	make_pair("pair0", "pair1");
	tune("eth0");
	tune("eth1");
	must(pipe(ready), "pipe");
	must(pipe(moved), "pipe");
	server = fork();
	must(server, "fork");
	if (!server) {
		must(unshare(CLONE_NEWNET), "namespace");
		must(write(ready[1], &byte, 1), "pipe");
		must(read(moved[0], &byte, 1), "pipe");
		configure("eth1", 1, 2);
		configure("pair1", 2, 2);
		serve();
	}
	must(read(ready[0], &byte, 1), "pipe");
	move_to_namespace_of("eth1", server);
	move_to_namespace_of("pair1", server);
	must(write(moved[1], &byte, 1), "pipe");
	configure("eth0", 1, 1);
	configure("pair0", 2, 1);
	configure("lo", 3, 1);
	local = fork();
	must(local, "fork");
	if (!local)
		serve();
	printf("workload: starts\n");
	fflush(stdout);
	for (end = 0; end < sizeof ends / sizeof *ends; end++)
		for (at = 0; at < sizeof kinds / sizeof *kinds; at++) {
			children[count++] = start(ends[end][0], ends[end][1], AF_INET, kinds[at]);
			children[count++] = start(ends[end][0], ends[end][1], AF_INET6, kinds[at]);
		}
	well = all_did(children, count);
	if (well)
		printf("workload: done\n");
	fflush(stdout);
	kill(server, SIGKILL);
	kill(local, SIGKILL);
	sync();
	reboot(RB_POWER_OFF);
}
