/* The functions of which accesses are written down. */
#ifndef TALLYLINE_WINDOW_H
#define TALLYLINE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the functions from a file: a line for each, with its offset in the program's file and its length in
 * hexadecimal digits, and the file's path; whether that succeeded. */
bool window_read(const char *path);

/* Notes that a part of a file is mapped at an address of the program. */
void window_mapped(const char *path, uint64_t address, uint64_t length, uint64_t offset);

/* Whether there is a window, and an address is not in it. */
bool window_excludes(uint64_t address);

#endif
