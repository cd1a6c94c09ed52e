/*
 * A library with an rseq area, to be preloaded. It behaves as tcmalloc does: an area and a number of
 * registrations that all can see, registered by the thread's first use. With HIDDEN nobody sees the
 * area, and the first thread is registered before the program starts.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
#define SIGNATURE 0x53053053
#else
#define SIGNATURE 0xd428bc00
#endif

struct area {
    uint32_t cpu_id_start;
    int32_t cpu_id;
    uint64_t section;
    uint32_t rest[4];
} __attribute__((aligned(32)));

#ifdef HIDDEN
#define SHOWN static
#else
#define SHOWN
#endif

#define TLS __thread __attribute__((tls_model("initial-exec")))

SHOWN TLS volatile struct area __rseq_abi = { .cpu_id = -1 };
SHOWN TLS volatile uint32_t __rseq_refcount;

/* Registers the calling thread: 0, or an error number. */
int area_register(void)
{
    if (__rseq_refcount++ > 0)
        return 0;
    if (syscall(SYS_rseq, &__rseq_abi, sizeof __rseq_abi, 0, SIGNATURE) == 0)
        return 0;
    __rseq_refcount--;
    return errno;
}

/* The calling thread's CPU number as this library sees it. */
int area_cpu(void)
{
    return __rseq_abi.cpu_id;
}

#ifdef HIDDEN
__attribute__((constructor)) static void begin(void)
{
    area_register();
}
#endif
