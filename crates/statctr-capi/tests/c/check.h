/* What the test programs share: checks that say where they failed, and threads that move. */
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <statctr.h>

#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

#define CHECK_EQ(left, right)                                                                             \
    do {                                                                                                  \
        const int64_t left_ = (int64_t)(left), right_ = (int64_t)(right);                                 \
        if (left_ != right_) {                                                                            \
            fprintf(stderr, "%s:%d: %s is %" PRId64 ", not %" PRId64 " (%s)\n", __FILE__, __LINE__, #left, \
                    left_, right_, #right);                                                               \
            exit(1);                                                                                      \
        }                                                                                                 \
    } while (0)

#define CHECK_OK(call)                                                                          \
    do {                                                                                        \
        const int error_ = (call);                                                              \
        if (error_ != 0) {                                                                      \
            fprintf(stderr, "%s:%d: %s: %s (%d)\n", __FILE__, __LINE__, #call, statctr_strerror(error_), \
                    error_);                                                                    \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)

#ifndef NO_COPY
/*
 * Where STATCTR_TEST_REGISTRATION is set, that is who registered the threads. Asked at the end: a first question at the
 * start would do what the first update has to do.
 */
__attribute__((destructor)) static void check_registration_(void)
{
    static const char *const names[] = { "None", "Libc", "Own", "Adopted" }; /* by enum statctr_registration_value */
    const char *expected_name = getenv("STATCTR_TEST_REGISTRATION");
    if (expected_name == NULL)
        return;
    const char *name = names[statctr_registration()];
    if (strcmp(expected_name, name) != 0) {
        fprintf(stderr, "registration: %s, not %s\n", name, expected_name);
        _exit(1);
    }
}
#endif

/* Moves the calling thread from CPU to CPU: to the turn-th, as far as the machine and the sandbox let it. */
static inline void move_to(unsigned turn)
{
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(turn % (unsigned)(count > 0 ? count : 1), &one);
    (void)sched_setaffinity(0, sizeof(one), &one);
}

/* Runs `count` threads of `body`, each with its number, and waits for them. */
static inline void run_threads(unsigned count, void *(*body)(void *))
{
    pthread_t threads[64];
    CHECK(count <= 64);
    for (unsigned i = 0; i < count; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, body, (void *)(uintptr_t)i), 0);
    for (unsigned i = 0; i < count; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

/* ---- threads that are moved by somebody else -------------------------------------------------- */

static pid_t pushed_ids_[2];
static unsigned long pushed_batches_[2];
static int pushed_enough_;
static void (*pushed_batch_)(void);

static inline void *pushed_thread_(void *number)
{
    const uintptr_t me = (uintptr_t)number;
    __atomic_store_n(&pushed_ids_[me], (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    while (!__atomic_load_n(&pushed_enough_, __ATOMIC_RELAXED)) {
        pushed_batch_();
        pushed_batches_[me]++;
    }
    return NULL;
}

static inline double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/*
 * Runs `batch` again and again on two threads that a third one swaps between two CPUs all the time,
 * at whatever instruction they are: an update that was not made safe would go to the word of a CPU
 * on which the other thread is counting. (Threads that move themselves are never inside an update
 * when they do.) For a second, or STATCTR_TEST_SECONDS. How many batches there were.
 */
static inline unsigned long run_pushed(void (*batch)(void))
{
    const char *setting = getenv("STATCTR_TEST_SECONDS");
    const double seconds = setting != NULL ? atof(setting) : 1;
    pthread_t threads[2];
    pushed_batch_ = batch;
    for (uintptr_t i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, pushed_thread_, (void *)i), 0);
    const double end = seconds_now() + seconds;
    for (unsigned turn = 0; seconds_now() < end; turn++) {
        for (unsigned i = 0; i < 2; i++) {
            const pid_t id = __atomic_load_n(&pushed_ids_[i], __ATOMIC_ACQUIRE);
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET((turn + i) % 2, &one);
            if (id != 0)
                (void)sched_setaffinity(id, sizeof(one), &one); /* with one CPU there is nothing to push */
        }
    }
    __atomic_store_n(&pushed_enough_, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    return pushed_batches_[0] + pushed_batches_[1];
}

#endif
