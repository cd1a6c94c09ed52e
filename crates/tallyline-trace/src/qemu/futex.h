/* Futex calls of this process, and which of them woke whom: a thread that was woken may run only long after, so it
 * waits for the call at its address, and not for all that other threads did until then. */
#ifndef TALLYLINE_FUTEX_H
#define TALLYLINE_FUTEX_H

#include <stdbool.h>
#include <stdint.h>

/* A thread's futex call that is under way. */
struct futex_call {
	bool waits;
	/* whether it lets those that wait wait at another address */
	bool requeues;
	uint64_t address;
	/* how many points there were before it */
	uint64_t from;
};

/* Describes a futex call by its address and operation, and how many points there are. */
struct futex_call futex_call(uint64_t address, uint64_t operation, uint64_t points);

/* Notes that a call wakes, by the number of its point. */
void futex_wakes(const struct futex_call *call, uint64_t point);

/* Returns the point of the last call that woke at the address of one that waited, since it began; UINT64_MAX if there is
 * none: something else woke it, as the end of a thread, another process or the end of its time. */
uint64_t futex_woken_by(const struct futex_call *call);

#endif
