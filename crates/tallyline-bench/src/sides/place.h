/* Loops at eight places of two cache lines, as looped.rs has them: eight copies, 16 bytes apart. */

#ifndef TALLYLINE_PLACE_H
#define TALLYLINE_PLACE_H

#define TALLYLINE_PLACEMENTS 8

#if defined(__x86_64__)
#define PLACE(skip) __asm__ volatile(".p2align 7\n\t.rept " #skip "\n\tnop\n\t.endr")
#else
#define PLACE(skip) __asm__ volatile(".p2align 7\n\t.rept " #skip " / 4\n\tnop\n\t.endr")
#endif

#endif
