#include "futex.h"
#include <stdatomic.h>

/* Addresses of one place take it from each other: who finds no call is behind all points, as if there was none. */
enum { PLACES = 1 << 10, POINT_BITS = 44 };

/* A tag of the address and the point's number in one word, which needs no lock: any thread may fork. */
static _Atomic uint64_t places[PLACES];

static uint64_t mix(uint64_t address)
{
	return address * 0x9e3779b97f4a7c15;
}

static _Atomic uint64_t *place_of(uint64_t mixed)
{
	return &places[mixed >> 32 & (PLACES - 1)];
}

struct futex_call futex_call(uint64_t address, uint64_t operation, uint64_t points)
{
	struct futex_call call = {.address = address, .from = points};

	switch (operation & 0x7f) {
	case 0: case 6: case 9: case 11: case 13: /* WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2 */
		call.waits = true;
		break;
	case 3: case 4: case 12: /* REQUEUE, CMP_REQUEUE, CMP_REQUEUE_PI */
		call.requeues = true;
		break;
	}
	return call;
}

void futex_wakes(const struct futex_call *call, uint64_t point)
{
	uint64_t mixed = mix(call->address), numbers = (1ull << POINT_BITS) - 1;

	atomic_store(place_of(mixed), call->requeues ? 0 : (mixed & ~numbers) | (point & numbers));
}

uint64_t futex_woken_by(const struct futex_call *call)
{
	uint64_t mixed = mix(call->address), found = atomic_load(place_of(mixed));
	uint64_t point = found & ((1ull << POINT_BITS) - 1);

	return (found ^ mixed) >> POINT_BITS == 0 && point >= call->from ? point : UINT64_MAX;
}
