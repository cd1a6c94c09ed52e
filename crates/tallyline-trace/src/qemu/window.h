/* The functions of which accesses are written down. */
#ifndef TALLYLINE_WINDOW_H
#define TALLYLINE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the functions from a file: a line for each, with its offset in the program's file and its length in
 * hexadecimal digits, and the file's path. A line that begins with "wait" has a loop in which a thread only waits for
 * another, in or outside of the functions. Whether that succeeded. */
bool window_read(const char *path);

/* Notes that a part of a file is mapped at an address of the program. */
void window_mapped(const char *path, uint64_t address, uint64_t length, uint64_t offset);

/* Whether there is a window, and an address is not in it: in none of the functions, or in a loop that waits. */
bool window_excludes(uint64_t address);

/* Whether an address is in a loop that waits: neither its accesses are written down nor its instructions counted. How
 * long it waits under QEMU says nothing of the program. */
bool window_waits(uint64_t address);

#endif
