/* The C side of lazy objects, compiled for AVX2, for which statctr.h inlines their update. */

#include "place.h"
#include "statctr.h"

/* As in lazy.rs. */
#define LEN 256
#define PACKET_LENGTH 100

typedef void (*tallyline_lazy_loop)(const statctr_lazy_t *, uint64_t n);
extern const tallyline_lazy_loop tallyline_c_lazy_update[TALLYLINE_PLACEMENTS];

#define LOOP(skip)                                                                                 \
	static void update_##skip(const statctr_lazy_t *flows, uint64_t n)                         \
	{                                                                                          \
		PLACE(skip);                                                                       \
		for (uint64_t turn = 0; turn < n; turn++) {                                        \
			uint64_t length = PACKET_LENGTH;                                           \
			__asm__ volatile("" : "+r"(length));                                       \
			statctr_lazy_update(&flows[(turn * 0x9e3779b9 >> 8) % LEN], 1, length,     \
					    turn, 1);                                              \
		}                                                                                  \
	}

LOOP(0) LOOP(16) LOOP(32) LOOP(48) LOOP(64) LOOP(80) LOOP(96) LOOP(112)

const tallyline_lazy_loop tallyline_c_lazy_update[TALLYLINE_PLACEMENTS] = {
	update_0,  update_16, update_32, update_48, update_64, update_80, update_96, update_112,
};
