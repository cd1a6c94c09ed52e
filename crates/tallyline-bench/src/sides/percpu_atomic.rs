//! An atomic word for each CPU, each on a cache line of its own, added to by a locked instruction in the word of
//! the CPU that the thread's rseq area names: the counters of servers that were rewritten for many CPUs, such as
//! ClickHouse's since its pull request 105056.
//!
//! It has what helps it: the area's offset in a register, the CPU's number by one load and without a call, lines
//! that are aligned, and no second path where the thread is not registered.

use super::Available;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) use x86_64::inc;

/// Returns an error with the reason why the benchmark loop `percpu-atomic/inc`, an atomic increment of the current
/// CPU's word, cannot be measured: it is written for x86-64 Linux only.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub(crate) fn inc(_cpus: usize, _think: bool) -> Available {
    Err("written for x86-64 Linux only".into())
}

/// A 64-bit word alone on a cache line: the part of one counter of `percpu-atomic` that a CPU has.
#[repr(align(64))]
#[derive(Default)]
pub(crate) struct Line(std::sync::atomic::AtomicU64);

/// The bytes that one counter of `percpu-atomic` (an atomic word in a cache line for each CPU) takes for each
/// possible CPU.
pub(crate) const BYTES_PER_CPU: usize = size_of::<Line>();

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod x86_64 {
    use super::{Available, Line};
    use crate::sides::looped::{Looped, Step};
    use crate::sides::rseq_minimal::registered_area;
    use std::arch::asm;
    use std::sync::atomic::Ordering;

    /// A counter, and where the threads' rseq areas are.
    pub(crate) struct Lines {
        area: isize,
        lines: Box<[Line]>,
    }

    impl Lines {
        /// Returns the number of the thread's CPU, as the kernel keeps it; a large number where there is none.
        #[inline(always)]
        fn cpu(&self) -> usize {
            let cpu: u32;
            // SAFETY: `area` is glibc's offset, so the word is the `cpu_id` of the calling thread's area.
            // Volatile: the kernel writes it.
            unsafe {
                asm!(
                    "mov {cpu:e}, dword ptr fs:[{area} + 4]",
                    cpu = out(reg) cpu,
                    area = in(reg) self.area,
                    options(nostack, preserves_flags, readonly)
                );
            }
            cpu as usize
        }

        fn total(&self) -> u64 {
            self.lines.iter().fold(0, |sum: u64, line| sum.wrapping_add(line.0.load(Ordering::Relaxed)))
        }
    }

    struct Inc;

    impl Step for Inc {
        type State = Lines;

        #[inline(always)]
        fn step(lines: &Lines, _turn: u64) {
            if let Some(line) = lines.lines.get(lines.cpu()) {
                line.0.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Returns the side `percpu-atomic/inc` of a benchmark: an atomic increment of the word of the CPU that the
    /// thread's rseq area names, with a line for each of `cpus` CPU numbers.
    pub(crate) fn inc(cpus: usize, think: bool) -> Available {
        let lines = Lines { area: registered_area()?, lines: (0..cpus).map(|_| Line::default()).collect() };
        Ok(Looped::<Inc>::with_shared_state(lines, Lines::total).thinking(think).boxed())
    }
}
