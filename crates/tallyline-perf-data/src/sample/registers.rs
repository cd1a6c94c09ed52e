//! Registers of a sample, and their numbers on each architecture.

use crate::Result;
use crate::bytes::{Cursor, Words};

/// The register values that a sample recorded (`PERF_SAMPLE_REGS_USER` or `PERF_SAMPLE_REGS_INTR`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers<'a> {
    /// 1 for a 32-bit program, 2 for a 64-bit one.
    pub(crate) abi: u64,
    mask: u64,
    values: Words<'a>,
}

impl<'a> Registers<'a> {
    /// Decodes the registers of a sample, those whose bits are set in `mask`; `None` if the record says that there
    /// are none, as for the user registers of a kernel thread.
    pub(crate) fn decode(at: &mut Cursor<'a>, mask: u64) -> Result<Option<Self>> {
        let abi = at.u64("ABI of registers")?;
        if abi == 0 {
            return Ok(None);
        }
        let values = at.words(mask.count_ones().into(), "registers")?;
        Ok(Some(Self { abi, mask, values }))
    }

    /// Returns a mask of the recorded registers: bit *n* is the register with the kernel's number *n*.
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// Returns the value of the register with the kernel's number (see [`x86_64`] and [`aarch64`]); `None` if it
    /// was not recorded.
    pub fn get(&self, number: u32) -> Option<u64> {
        let bit = 1_u64.checked_shl(number)?;
        if self.mask & bit == 0 {
            return None;
        }
        self.values.get((self.mask & (bit - 1)).count_ones() as usize)
    }

    /// Returns an iterator over the recorded registers, as pairs of the kernel's register number and the value.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + use<'_, 'a> {
        (0..64).filter_map(|number| Some((number, self.get(number)?)))
    }
}

/// Numbers of registers on x86, `enum perf_event_x86_regs`.
pub mod x86_64 {
    /// Names as perf prints them; the index is the number. Segments beyond are not sampled.
    pub const NAMES: [&str; 24] = [
        "AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP", "IP", "FLAGS", "CS", "SS", "DS", "ES", "FS", "GS",
        "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15",
    ];
    /// The number of the stack pointer (`rsp`).
    pub const SP: u32 = 7;
    /// The number of the instruction pointer (`rip`).
    pub const IP: u32 = 8;
    /// A mask of the registers that the kernel can sample of a 64-bit program: not DS, ES, FS, GS.
    pub const ALL: u64 = 0xff_0fff;
}

/// Numbers of registers on aarch64, `enum perf_event_arm_regs`.
pub mod aarch64 {
    /// Names as perf prints them; the index is the number.
    pub const NAMES: [&str; 33] = [
        "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
        "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29",
        "lr", "sp", "pc",
    ];
    /// The number of the link register: it has the return address at a function's first instruction.
    pub const LINK: u32 = 30;
    /// The number of the stack pointer (`sp`).
    pub const SP: u32 = 31;
    /// The number of the program counter (`pc`).
    pub const PC: u32 = 32;
    /// A mask of all registers: `x0` to `x29`, link register, stack pointer and program counter.
    pub const ALL: u64 = (1 << 33) - 1;
}
