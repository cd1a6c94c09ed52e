//! The machine's own limit: how fast the bytes of all units can be read and added up, with vectors
//! of the same width as the library's, and nothing else done.
//!
//! One stream reads unit after unit; four streams read four units side by side, which keeps more
//! loads on the way where the memory is far.

/// The bytes that one iteration of a memory scan reads in the benchmark `fold`; a scanned range must be a multiple
/// of it.
pub(crate) const TURN_BYTES: usize = 256;

/// Sums the 64-bit words of the `bytes` bytes at each address in `units`, one address after the other, with vectors
/// of `width` bytes: the bandwidth that one read stream reaches.
///
/// # Safety
/// At each address `bytes` bytes can be read, `bytes` is a multiple of [`TURN_BYTES`], the
/// addresses are aligned to 64 bytes, and the processor has vectors of `width` bytes.
pub(crate) unsafe fn one_stream(units: &[usize], bytes: usize, width: usize) -> u64 {
    // SAFETY: passed on.
    units.iter().fold(0u64, |sum, &unit| sum.wrapping_add(unsafe { imp::scan_1(unit, bytes, width) }))
}

/// Sums the 64-bit words of the `bytes` bytes at each address in `units` as [`one_stream`] does, but reads at four
/// addresses side by side.
///
/// # Safety
/// The conditions of [`one_stream`] hold.
pub(crate) unsafe fn four_streams(units: &[usize], bytes: usize, width: usize) -> u64 {
    let (fours, rest) = units.as_chunks::<4>();
    let mut sum = 0u64;
    for four in fours {
        // SAFETY: passed on.
        sum = sum.wrapping_add(unsafe { imp::scan_4(four, bytes, width) });
    }
    // SAFETY: passed on.
    sum.wrapping_add(unsafe { one_stream(rest, bytes, width) })
}

#[cfg(target_arch = "x86_64")]
mod imp {
    use std::arch::asm;

    /// The loops for one register width: `$add` is the vector addition, written with the
    /// accumulator once or twice as the instruction set wants it.
    macro_rules! scans {
        ($one:ident, $four:ident, $width:literal, $zero:literal, $add:literal, $store:literal, $end:literal,
         [$a:literal $b:literal $c:literal $d:literal], [$za:literal $zb:literal $zc:literal $zd:literal],
         [$aa:literal $bb:literal $cc:literal $dd:literal], [$ca:tt $cb:tt $cc_:tt $cd:tt]) => {
            unsafe fn $one(unit: usize, bytes: usize) -> u64 {
                let mut lanes = [0u64; 32];
                // SAFETY: reads `bytes` bytes from `unit`, as the caller allows, and writes the
                // four accumulators to `lanes`, which has room for four of 64 bytes.
                unsafe {
                    asm!(
                        concat!($zero, " ", $za), concat!($zero, " ", $zb), concat!($zero, " ", $zc), concat!($zero, " ", $zd),
                        ".p2align 6",
                        "2:",
                        concat!($add, " ", $aa, ", [{at}]"),
                        concat!($add, " ", $bb, ", [{at} + ", $width, "]"),
                        concat!($add, " ", $cc, ", [{at} + 2*", $width, "]"),
                        concat!($add, " ", $dd, ", [{at} + 3*", $width, "]"),
                        concat!("add {at}, 4*", $width),
                        "cmp {at}, {end}",
                        "jb 2b",
                        concat!($store, " [{lanes}], ", $a),
                        concat!($store, " [{lanes} + 64], ", $b),
                        concat!($store, " [{lanes} + 128], ", $c),
                        concat!($store, " [{lanes} + 192], ", $d),
                        $end,
                        at = inout(reg) unit => _,
                        end = in(reg) unit + bytes,
                        lanes = in(reg) lanes.as_mut_ptr(),
                        out($ca) _, out($cb) _, out($cc_) _, out($cd) _,
                        options(nostack)
                    );
                }
                lanes.iter().fold(0, |sum, lane| sum.wrapping_add(*lane))
            }

            unsafe fn $four(units: &[usize; 4], bytes: usize) -> u64 {
                let mut lanes = [0u64; 32];
                // SAFETY: as above, for four units at once.
                unsafe {
                    asm!(
                        concat!($zero, " ", $za), concat!($zero, " ", $zb), concat!($zero, " ", $zc), concat!($zero, " ", $zd),
                        ".p2align 6",
                        "2:",
                        concat!($add, " ", $aa, ", [{u0} + {at}]"),
                        concat!($add, " ", $bb, ", [{u1} + {at}]"),
                        concat!($add, " ", $cc, ", [{u2} + {at}]"),
                        concat!($add, " ", $dd, ", [{u3} + {at}]"),
                        concat!($add, " ", $aa, ", [{u0} + {at} + ", $width, "]"),
                        concat!($add, " ", $bb, ", [{u1} + {at} + ", $width, "]"),
                        concat!($add, " ", $cc, ", [{u2} + {at} + ", $width, "]"),
                        concat!($add, " ", $dd, ", [{u3} + {at} + ", $width, "]"),
                        concat!("add {at}, 2*", $width),
                        "cmp {at}, {bytes}",
                        "jb 2b",
                        concat!($store, " [{lanes}], ", $a),
                        concat!($store, " [{lanes} + 64], ", $b),
                        concat!($store, " [{lanes} + 128], ", $c),
                        concat!($store, " [{lanes} + 192], ", $d),
                        $end,
                        at = inout(reg) 0usize => _,
                        bytes = in(reg) bytes,
                        u0 = in(reg) units[0],
                        u1 = in(reg) units[1],
                        u2 = in(reg) units[2],
                        u3 = in(reg) units[3],
                        lanes = in(reg) lanes.as_mut_ptr(),
                        out($ca) _, out($cb) _, out($cc_) _, out($cd) _,
                        options(nostack)
                    );
                }
                lanes.iter().fold(0, |sum, lane| sum.wrapping_add(*lane))
            }
        };
    }

    scans!(one_64, four_64, "64", "vpxorq", "vpaddq", "vmovdqu64", "",
        ["zmm16" "zmm17" "zmm18" "zmm19"],
        ["zmm16, zmm16, zmm16" "zmm17, zmm17, zmm17" "zmm18, zmm18, zmm18" "zmm19, zmm19, zmm19"],
        ["zmm16, zmm16" "zmm17, zmm17" "zmm18, zmm18" "zmm19, zmm19"],
        ["xmm16" "xmm17" "xmm18" "xmm19"]);
    scans!(one_32, four_32, "32", "vpxor", "vpaddq", "vmovdqu", "vzeroupper",
        ["ymm0" "ymm1" "ymm2" "ymm3"],
        ["ymm0, ymm0, ymm0" "ymm1, ymm1, ymm1" "ymm2, ymm2, ymm2" "ymm3, ymm3, ymm3"],
        ["ymm0, ymm0" "ymm1, ymm1" "ymm2, ymm2" "ymm3, ymm3"],
        ["xmm0" "xmm1" "xmm2" "xmm3"]);
    scans!(one_16, four_16, "16", "pxor", "paddq", "movdqu", "",
        ["xmm0" "xmm1" "xmm2" "xmm3"],
        ["xmm0, xmm0" "xmm1, xmm1" "xmm2, xmm2" "xmm3, xmm3"],
        ["xmm0" "xmm1" "xmm2" "xmm3"],
        ["xmm0" "xmm1" "xmm2" "xmm3"]);

    pub(super) unsafe fn scan_1(unit: usize, bytes: usize, width: usize) -> u64 {
        // SAFETY: passed on.
        unsafe {
            match width {
                64 => one_64(unit, bytes),
                32 => one_32(unit, bytes),
                _ => one_16(unit, bytes),
            }
        }
    }

    pub(super) unsafe fn scan_4(units: &[usize; 4], bytes: usize, width: usize) -> u64 {
        // SAFETY: passed on.
        unsafe {
            match width {
                64 => four_64(units, bytes),
                32 => four_32(units, bytes),
                _ => four_16(units, bytes),
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod imp {
    use std::sync::atomic::{AtomicU64, Ordering};

    pub(super) unsafe fn scan_1(unit: usize, bytes: usize, _width: usize) -> u64 {
        let word = |offset: usize| {
            // SAFETY: inside the unit, as the caller says; aligned.
            unsafe { &*((unit + offset) as *const AtomicU64) }.load(Ordering::Relaxed)
        };
        (0..bytes / 8).fold(0, |sum, index| sum.wrapping_add(word(index * 8)))
    }

    pub(super) unsafe fn scan_4(units: &[usize; 4], bytes: usize, width: usize) -> u64 {
        // SAFETY: passed on.
        units.iter().fold(0, |sum, &unit| sum.wrapping_add(unsafe { scan_1(unit, bytes, width) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_widths_and_both_ways_see_every_word() {
        #[repr(align(64))]
        struct Unit([u64; 96]);
        let units: Vec<Unit> =
            (0..7).map(|unit| Unit(std::array::from_fn(|word| unit * 1000 + word as u64))).collect();
        let addresses: Vec<usize> = units.iter().map(|unit| unit.0.as_ptr() as usize).collect();
        let due: u64 = units.iter().flat_map(|unit| unit.0).sum();
        let width = statctr::VectorWidth::detect().bytes();
        for width in [16, 32, 64].into_iter().filter(|&narrower| narrower <= width) {
            // SAFETY: 768 bytes each, aligned, no wider than this machine's vectors.
            let (one, four) =
                unsafe { (one_stream(&addresses, 768, width), four_streams(&addresses, 768, width)) };
            assert_eq!((one, four), (due, due), "{width} bytes");
        }
    }
}
