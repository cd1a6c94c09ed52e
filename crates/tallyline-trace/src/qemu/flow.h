/* Instructions outside of the window, counted in few of their blocks. */
#ifndef TALLYLINE_FLOW_H
#define TALLYLINE_FLOW_H

#include "machine.h"

#include <stddef.h>
#include <stdint.h>

/* Notes a block that is translated, by its first address, its count of instructions and its last instruction. Returns
 * what an execution of the block adds to the count of instructions; 0 where it need not be counted. */
int64_t flow_block(enum machine machine, uint64_t start, size_t count, uint64_t last, const uint8_t *code, size_t size);

#endif
