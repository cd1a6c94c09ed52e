/* What the C sides share. */

#ifndef TALLYLINE_SIDES_H
#define TALLYLINE_SIDES_H

#include <stdalign.h>
#include <stdint.h>

#include "place.h"
#include "statctr.h"

/* The bytes of a packet: `PACKET_LENGTH` of mod.rs. */
#define PACKET_LENGTH 100

struct tallyline_counter {
	alignas(128) statctr_t statctr;
};

/* Updates a counter n times. */
typedef void (*tallyline_loop)(struct tallyline_counter *, uint64_t n);

extern const tallyline_loop tallyline_c_inc[TALLYLINE_PLACEMENTS];
extern const tallyline_loop tallyline_c_static_inc[TALLYLINE_PLACEMENTS];
extern const tallyline_loop tallyline_c_add[TALLYLINE_PLACEMENTS];
extern const tallyline_loop tallyline_c_inc_think[TALLYLINE_PLACEMENTS];
extern const tallyline_loop tallyline_c_call_inc[TALLYLINE_PLACEMENTS];

struct tallyline_counter *tallyline_counter_new(void);
uint64_t tallyline_counter_read(struct tallyline_counter *);
uint64_t tallyline_static_read(struct tallyline_counter *);
void tallyline_counter_free(struct tallyline_counter *);

void tallyline_call_inc(statctr_t *);

#endif
