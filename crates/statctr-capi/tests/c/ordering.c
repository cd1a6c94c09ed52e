/*
 * An update keeps its place among the program's atomics and locks: who sees a flag that was set
 * after an update, or holds a lock that was given up after it, reads the update too. (The inline
 * updates are no compiler barriers with GCC; this is what they rely on instead.)
 */
#include "check.h"

enum { ROUNDS = 100000 };

static statctr_t by_flag, by_lock, by_fence;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long flag, fenced, locked;

static void *writer(void *unused)
{
    (void)unused;
    for (unsigned long i = 1; i <= ROUNDS; i++) {
        statctr_inc(&by_flag);
        __atomic_store_n(&flag, i, __ATOMIC_RELEASE);
        statctr_inc(&by_fence);
#ifdef __SANITIZE_THREAD__ /* GCC's knows no fences */
        __atomic_store_n(&fenced, i, __ATOMIC_RELEASE);
#else
        __atomic_thread_fence(__ATOMIC_RELEASE);
        __atomic_store_n(&fenced, i, __ATOMIC_RELAXED);
#endif
        if (i % 16 == 0) {
            pthread_mutex_lock(&lock);
            statctr_add(&by_lock, 16);
            locked += 16;
            pthread_mutex_unlock(&lock);
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    unsigned long seen = 0;
    CHECK_OK(statctr_init(&by_flag, 0));
    CHECK_OK(statctr_init(&by_lock, 0));
    CHECK_OK(statctr_init(&by_fence, 0));
    CHECK_EQ(pthread_create(&thread, NULL, writer, NULL), 0);
    while (seen < ROUNDS) {
        seen = __atomic_load_n(&flag, __ATOMIC_ACQUIRE);
        CHECK(statctr_read(&by_flag) >= seen);
        const unsigned long fence = __atomic_load_n(&fenced, __ATOMIC_ACQUIRE);
        CHECK(statctr_read(&by_fence) >= fence);
        pthread_mutex_lock(&lock);
        CHECK_EQ(statctr_read(&by_lock), locked);
        pthread_mutex_unlock(&lock);
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);

    /* a handle that is made and used in one function is not read before it is made */
    for (unsigned long i = 0; i < 100; i++) {
        statctr_t local;
        CHECK_OK(statctr_init(&local, i));
        CHECK_OK(statctr_inc(&local));
        CHECK_EQ(statctr_read(&local), i + 1);
        CHECK_OK(statctr_cleanup(&local));
    }
    return 0;
}
