/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/**
 * The descriptor of a section, label 3: it goes from label 4 to label 5, and is aborted to label 6.
 * The files of the processors include this one.
 *
 * A linker that drops unused functions (--gc-sections) must drop their descriptors with them, and
 * nothing else may keep a function. So each descriptor lies in a section of its own that is linked
 * to the code around it (`o`, SHF_LINK_ORDER: it stays and goes with the section of the symbol that
 * is named last), and in the function's COMDAT group if it has one (`?`). In one section for the
 * whole file all functions that count would stay because one of them does.
 *
 * Assemblers know this since binutils 2.35 and LLVM 11; before 2.36 GNU ld refuses programs that
 * have other descriptors, too (librseq's), which are in sections without this. For those, define
 * STATCTR_NO_LINK_ORDER. GNU `ld -r` makes one section of them again: what it wrote works, and keeps
 * unused functions.
 */
#ifndef STATCTR_DESCRIPTOR_H
#define STATCTR_DESCRIPTOR_H

#ifdef STATCTR_NO_LINK_ORDER
#define STATCTR_DESCRIPTORS_ ".pushsection __rseq_cs, \"aw?\"\n\t"
#else
/* Numeric labels are no symbols to an assembler here; `%=` is a number of this asm alone. */
#define STATCTR_DESCRIPTORS_      \
    ".Lstatctr_section_%=:\n\t"   \
    ".pushsection __rseq_cs, \"awo?\", @progbits, .Lstatctr_section_%=\n\t"
#endif

#define STATCTR_DESCRIPTOR_        \
    STATCTR_DESCRIPTORS_           \
    ".balign 32\n"                 \
    "3:\t.long 0, 0\n\t"           \
    ".quad 4f, 5f - 4f, 6f\n\t"    \
    ".popsection\n\t"

#endif /* STATCTR_DESCRIPTOR_H */
