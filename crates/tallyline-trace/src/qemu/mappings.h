/* Which files are mapped where in the emulated program. */
#ifndef TALLYLINE_MAPPINGS_H
#define TALLYLINE_MAPPINGS_H

#include "qemu.h"

#include <stdint.h>

/* Remembers what is mapped before the program is loaded: QEMU itself and its libraries. */
void mappings_of_emulator(void);

/* Notes that the program may have mapped a file, or made a part of one code. */
void mappings_change(void);

/* Has all mappings of the program written once more: those of a forked process are its own. */
void mappings_forget(void);

/* Writes those mappings of the program that were not written yet, where there may be some; `tb` is a block of it that
 * is translated. */
void mappings_look(struct qemu_plugin_tb *tb);

/* Writes the name, by its address, of the program that the process is about to become; or of none, as it could not be
 * started. It then runs without us. */
void mappings_execution(uint64_t name);

#endif
