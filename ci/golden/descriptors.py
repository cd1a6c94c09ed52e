#!/usr/bin/env python3
"""Descriptors of the sections in an object file, by the functions that arm them.

  ci/golden/descriptors.py OBJECT FUNCTION

Prints one line for each section of the function, in the order of the code: the address of the
instruction's operand that leads to the descriptor, the section's start, and its end (the
instruction after the commit), in hexadecimal. Fails where the bytes before an abort address are not
the signature, where that address lies in its section, or where a descriptor is not in a section that
is linked to the function's code (SHF_LINK_ORDER).
"""
import struct, sys
from pathlib import Path

SIGNATURES = {62: 0x53053053, 183: 0xD428BC00}
LINK_ORDER = 0x80
# the addend of a displacement counts from its own place on x86-64
BIAS = {62: 4, 183: 0}
# what leads to a descriptor: R_X86_64_PC32; R_AARCH64_ADR_PREL_PG_HI21
LEADS = {62: {2}, 183: {275}}


class Object:
    """An ELF file of 64 bits that is not linked yet."""

    def __init__(self, path):
        self.data = Path(path).read_bytes()
        self.machine, = struct.unpack_from("<H", self.data, 18)
        start, = struct.unpack_from("<Q", self.data, 40)
        count, names = struct.unpack_from("<HH", self.data, 60)
        if count == 0:
            # more than fit
            count, = struct.unpack_from("<Q", self.data, start + 32)
        if names == 0xFFFF:
            names, = struct.unpack_from("<I", self.data, start + 40)
        fields = ("name", "type", "flags", "address", "offset", "size", "link", "info", "align", "entry")
        self.sections = [dict(zip(fields, struct.unpack_from("<IIQQQQIIQQ", self.data, start + 64 * index)))
                         for index in range(count)]
        for section in self.sections:
            section["name"] = self.text(names, section["name"])
        table = next(section for section in self.sections if section["type"] == 2)
        self.symbols = []
        for offset in range(table["offset"], table["offset"] + table["size"], 24):
            name, info, _, index, value, size = struct.unpack_from("<IBBHQQ", self.data, offset)
            self.symbols.append((self.text(table["link"], name), info & 15, index, value, size))
        self.relocations = {}
        for section in self.sections:
            if section["type"] == 4:
                entries = self.bytes(section)
                self.relocations[section["info"]] = [struct.unpack_from("<QIIq", entries, offset)
                                                     for offset in range(0, len(entries), 24)]

    def bytes(self, section):
        return self.data[section["offset"]:section["offset"] + section["size"]]

    def text(self, table, offset):
        start = self.sections[table]["offset"] + offset if isinstance(table, int) else offset
        return self.data[start:self.data.index(b"\0", start)].decode()

    def target(self, relocation):
        """Where a relocation leads: the number of a section, and an offset there."""
        _, _, symbol, addend = relocation
        _, _, index, value, _ = self.symbols[symbol]
        return index, value + addend

    def descriptors(self, function):
        """(operand, start, end) of each section that a function arms."""
        home, first, size = next((index, value, size) for name, kind, index, value, size in self.symbols
                                 if name == function and kind == 2)
        found = []
        for relocation in sorted(self.relocations.get(home, [])):
            if not first <= relocation[0] < first + size or relocation[1] not in LEADS[self.machine]:
                continue
            index, offset = self.target(relocation)
            if index >= len(self.sections) or self.sections[index]["name"] != "__rseq_cs":
                continue
            found.append((relocation[0], *self.read(function, home, index, offset + BIAS[self.machine])))
        return found

    def read(self, function, home, index, offset):
        section = self.sections[index]
        if not section["flags"] & LINK_ORDER or section["link"] != home:
            raise ValueError(f"{function}: its descriptor is not linked to its code")
        fields = {relocation[0]: self.target(relocation) for relocation in self.relocations[index]}
        (code, start), (elsewhere, abort) = fields[offset + 8], fields[offset + 24]
        length, = struct.unpack_from("<Q", self.bytes(section), offset + 16)
        signature, = struct.unpack_from("<I", self.bytes(self.sections[elsewhere]), abort - 4)
        if signature != SIGNATURES[self.machine]:
            raise ValueError(f"{function}: no signature before the abort address {abort:#x}")
        if code != home or (elsewhere == code and start <= abort < start + length):
            raise ValueError(f"{function}: the abort address {abort:#x} lies in its section")
        return start, start + length


if __name__ == "__main__":
    for operand, start, end in Object(sys.argv[1]).descriptors(sys.argv[2]):
        print(f"{operand:x} {start:x} {end:x}")
