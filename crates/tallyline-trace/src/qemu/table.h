/* Translated instructions that are not in the file yet. Callers hold one lock. */
#ifndef TALLYLINE_TABLE_H
#define TALLYLINE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Appends what is there to the file, and starts an empty table; at first it only starts one. */
void table_flush(void);

/* Adds an instruction by its number, address and size, and whether it is atomic. */
void table_add(uint64_t id, uint64_t pc, size_t size, bool atomic);

#endif
