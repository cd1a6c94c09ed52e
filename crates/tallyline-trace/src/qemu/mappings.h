/* Which files are mapped where in the emulated program. */
#ifndef TALLYLINE_MAPPINGS_H
#define TALLYLINE_MAPPINGS_H

#include <stdint.h>

/* Remembers what is mapped before the program is loaded: QEMU itself and its libraries. */
void mappings_of_emulator(void);

/* Writes those mappings of the program that were not written yet. `base` is what QEMU adds to the
 * program's addresses to get its own. */
void mappings_write(uint64_t base);

#endif
