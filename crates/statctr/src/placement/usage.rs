//! The memory of a pool, by the kernel's account.

#[cfg(all(target_os = "linux", not(feature = "portable")))]
use crate::error::Error;
use crate::error::Result;
use crate::memory::{Arena, statics_in_use};
use std::ops::Range;
#[cfg(all(target_os = "linux", not(feature = "portable")))]
use std::{
    fs::File,
    io::{BufRead, BufReader},
};

/// The bytes of address space and of resident memory that a pool of counters occupies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// Reservations made so far.
    pub reservations: usize,
    /// Bytes of address space. Costs nothing but page tables where it is not touched.
    pub reserved: usize,
    /// Bytes of memory that are there now; on systems other than Linux all that is reserved.
    pub resident: usize,
    /// Slots that counters and groups have now, holes of groups included.
    pub slots: usize,
}

pub(super) fn measure(arena: &Arena) -> Result<Memory> {
    let usage = arena.usage();
    let resident = resident(&arena.addresses())?;
    Ok(Memory { reservations: usage.reservations, reserved: usage.reserved, resident, slots: usage.words })
}

/// Measures the address space and resident memory of all static counters (`static`s of the program) of the process.
pub(crate) fn measure_statics() -> Result<Memory> {
    let usage = statics_in_use();
    Ok(Memory {
        reservations: usage.blocks,
        reserved: usage.addresses.iter().map(ExactSizeIterator::len).sum(),
        resident: if usage.blocks == 0 { 0 } else { resident(&usage.addresses)? },
        slots: usage.slots,
    })
}

/// Returns the number of bytes in these address ranges: all of it counts as resident where the system does not say how
/// much is.
#[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
pub(crate) fn resident(ours: &[Range<usize>]) -> Result<usize> {
    Ok(ours.iter().map(ExactSizeIterator::len).sum())
}

/// Returns the number of bytes that are resident, by `/proc/self/smaps`, in mappings that begin in one of these address
/// ranges.
#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub(crate) fn resident(ours: &[Range<usize>]) -> Result<usize> {
    let failed = |error: std::io::Error| Error::System {
        operation: "reading /proc/self/smaps",
        errno: error.raw_os_error().unwrap_or(crate::errno::EIO),
    };
    let mut resident = 0;
    let mut inside = false;
    for line in BufReader::new(File::open("/proc/self/smaps").map_err(failed)?).lines() {
        let line = line.map_err(failed)?;
        if let Some(start) = range_start(&line) {
            inside = ours.iter().any(|range| range.contains(&start));
        } else if let Some(rest) = line.strip_prefix("Rss:").filter(|_| inside) {
            let kilobytes: usize = rest.trim().trim_end_matches(" kB").trim().parse().unwrap_or(0);
            resident += kilobytes * 1024;
        }
    }
    Ok(resident)
}

/// Returns the start of the range where the line is the first of a mapping.
#[cfg(all(target_os = "linux", not(feature = "portable")))]
fn range_start(line: &str) -> Option<usize> {
    let (start, rest) = line.split_once('-')?;
    rest.split_once(' ').and_then(|(end, _)| usize::from_str_radix(end, 16).ok())?;
    usize::from_str_radix(start, 16).ok()
}
