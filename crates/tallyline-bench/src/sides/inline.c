/* The C side: the update that statctr.h inlines, in loops placed as the Rust sides' loops are
 * (see looped.rs): eight copies, 16 bytes apart, never unrolled. */

#include "sides.h"

#include <errno.h>
#include <stdlib.h>

/* What happens between two updates, with and without thinking: see `think` in looped.rs. */
#define IDLE ((void)0)
#if defined(__x86_64__)
#define THINK                                                                                      \
	do {                                                                                       \
		uint64_t value = 3;                                                                \
		__asm__ volatile(".rept 16\n\timulq %0, %0\n\t.endr" : "+r"(value) : : "cc");      \
	} while (0)
#else
#define THINK                                                                                      \
	do {                                                                                       \
		uint64_t value = 3;                                                                \
		for (int turn = 0; turn < 16; turn++) {                                            \
			value *= value;                                                            \
			__asm__ volatile("" : "+r"(value));                                        \
		}                                                                                  \
	} while (0)
#endif

/* The handle is a local copy, as statctr.h advises for loops that do little else. */
#define LOOP(name, skip, update, pause)                                                            \
	static void name##_##skip(struct tallyline_counter *counter, uint64_t n)                   \
	{                                                                                          \
		statctr_t hot = counter->statctr;                                                  \
		PLACE(skip);                                                                       \
		for (uint64_t turn = 0; turn < n; turn++) {                                        \
			update(&hot);                                                              \
			pause;                                                                     \
		}                                                                                  \
	}

#define LOOPS(name, update, pause)                                                                 \
	LOOP(name, 0, update, pause)                                                               \
	LOOP(name, 16, update, pause)                                                               \
	LOOP(name, 32, update, pause)                                                              \
	LOOP(name, 48, update, pause)                                                              \
	LOOP(name, 64, update, pause)                                                              \
	LOOP(name, 80, update, pause)                                                              \
	LOOP(name, 96, update, pause)                                                              \
	LOOP(name, 112, update, pause)                                                              \
	const tallyline_loop tallyline_##name[TALLYLINE_PLACEMENTS] = {                            \
		name##_0,  name##_16,  name##_32, name##_48,                                        \
		name##_64, name##_80, name##_96, name##_112,                                        \
	};

/* A static is updated where it is: a copy would not have its words. */
STATCTR_DEFINE(tallyline_c_static);
#define STATIC_INC(hot) ((void)(hot), statctr_static_inc(&tallyline_c_static))

/* A number that the compiler does not know: see `opaque_constant` in looped.rs. */
#define ADD(hot)                                                                                   \
	do {                                                                                       \
		uint64_t length = PACKET_LENGTH;                                                   \
		__asm__("" : "+r"(length));                                                        \
		statctr_add(hot, length);                                                          \
	} while (0)

LOOPS(c_static_inc, STATIC_INC, IDLE)
LOOPS(c_add, ADD, IDLE)
LOOPS(c_inc, statctr_inc, IDLE)
LOOPS(c_inc_think, statctr_inc, THINK)
LOOPS(c_call_inc, tallyline_call_inc, IDLE)

uint64_t tallyline_static_read(struct tallyline_counter *counter)
{
	(void)counter;
	return statctr_static_read(&tallyline_c_static);
}

/* A counter of its own on its own cache line, or NULL and errno. */
struct tallyline_counter *tallyline_counter_new(void)
{
	struct tallyline_counter *counter = aligned_alloc(_Alignof(struct tallyline_counter),
							  sizeof(struct tallyline_counter));
	if (counter == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	int status = statctr_init(&counter->statctr, 0);
	if (status != 0) {
		free(counter);
		errno = -status;
		return NULL;
	}
	return counter;
}

uint64_t tallyline_counter_read(struct tallyline_counter *counter)
{
	return statctr_read(&counter->statctr);
}

void tallyline_counter_free(struct tallyline_counter *counter)
{
	statctr_cleanup(&counter->statctr);
	free(counter);
}
