//! The least that a restartable sequence can be, written by hand in librseq's shape
//! (`rseq_load_add_store__ptr` on per-CPU memory of a pool with a stride of 64 KiB): the CPU number
//! is read outside the section and compared inside, the address is a shift and an addition.
//!
//! It has what helps it: the area's offset in a register, the address in one register and the
//! addend as an immediate, so that a processor that renames memory can do so.

use super::Available;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) use x86_64::{add, inc, registered_area};

/// Returns an error with the reason why the benchmark loop `rseq-minimal/inc`, an increment of a per-CPU word in a
/// minimal restartable sequence, cannot be measured: it is written for x86-64 Linux only.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub(crate) fn inc(_cpus: usize, _think: bool) -> Available {
    Err("written for x86-64 Linux only".into())
}

/// Returns an error with the reason why the benchmark loop `rseq-minimal/add`, an addition to a per-CPU word in a
/// minimal restartable sequence, cannot be measured: it is written for x86-64 Linux only.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub(crate) fn add(_cpus: usize) -> Available {
    Err("written for x86-64 Linux only".into())
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod x86_64 {
    use super::Available;
    use crate::sides::PACKET_LENGTH;
    use crate::sides::looped::{Looped, Step, opaque_constant};
    use crate::sides::os::BenchMemory;
    use statctr::Mode;
    use std::arch::asm;
    use std::sync::atomic::Ordering;

    /// librseq's: `RSEQ_MEMPOOL_STRIDE`, 1 << 16.
    const SHIFT: usize = 16;

    /// A counter: its word in the first CPU's memory, and where the threads' rseq areas are.
    pub(crate) struct Words {
        base: usize,
        area: isize,
        cpus: usize,
        memory: BenchMemory,
    }

    impl Words {
        fn new(cpus: usize) -> Result<Self, String> {
            let area = registered_area()?;
            let memory = BenchMemory::new(cpus.max(1) << SHIFT).map_err(|error| error.to_string())?;
            Ok(Words { base: memory.address(), area, cpus, memory })
        }

        fn total(&self) -> u64 {
            let word = |cpu: usize| self.memory.word(cpu << SHIFT).load(Ordering::Relaxed);
            (0..self.cpus).map(word).fold(0, u64::wrapping_add)
        }
    }

    /// Returns the offset of the rseq areas from the thread pointer, or why the calling thread has none of glibc's.
    pub(crate) fn registered_area() -> Result<isize, String> {
        rseq_offset().filter(|_| statctr::thread_mode() == Mode::Rseq).ok_or_else(|| {
            "no restartable sequences here: glibc before 2.35 (RHEL 9: 2.34-37), or they are turned off"
                .into()
        })
    }

    /// Returns the offset of glibc's rseq area from the thread pointer; `None` if glibc registered none.
    fn rseq_offset() -> Option<isize> {
        // SAFETY: looks two names up; glibc exports both as constants of these types since 2.35 (RHEL 9: 2.34-37).
        unsafe {
            let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast::<u32>();
            let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>();
            (!size.is_null() && !offset.is_null() && *size != 0).then(|| *offset)
        }
    }

    /// The section; `$commit` is its last instruction. Left at `$left`, it has done nothing.
    macro_rules! section {
        ($words:ident, $commit:literal, $left:block $(, $operand:ident = $value:expr)?) => {
            // SAFETY: `area` is glibc's offset, and the thread is registered, as the caller saw:
            // so the CPU numbers are those of possible CPUs, and each has its 64 KiB in `memory`.
            // Between labels 21 and 22 there is one store, the last instruction.
            unsafe {
                asm!(
                    ".pushsection __rseq_cs, \"aw?\"",
                    ".balign 32",
                    "20: .long 0, 0",
                    ".quad 21f, 22f - 21f, 23f",
                    ".popsection",
                    "mov {cpu:e}, dword ptr fs:[{area}]",
                    "mov {word}, {cpu}",
                    "shl {word}, {shift}",
                    "add {word}, {base}",
                    "lea {section}, [rip + 20b]",
                    "mov qword ptr fs:[{area} + 8], {section}",
                    "21:",
                    "cmp {cpu:e}, dword ptr fs:[{area} + 4]",
                    "jnz {left}",
                    $commit,
                    "22:",
                    ".pushsection .text.unlikely, \"ax?\"",
                    ".byte 0x0f, 0xb9, 0x3d",
                    ".long 0x53053053",
                    "23: jmp {left}",
                    ".popsection",
                    cpu = out(reg) _,
                    word = out(reg) _,
                    section = out(reg) _,
                    area = in(reg) $words.area,
                    base = in(reg) $words.base,
                    shift = const SHIFT,
                    $($operand = in(reg) $value,)?
                    left = label $left,
                    options(nostack)
                );
            }
        };
    }

    struct Inc;

    impl Step for Inc {
        type State = Words;

        #[inline(always)]
        fn step(words: &Words, _turn: u64) {
            section!(words, "add qword ptr [{word}], 1", { inc_again(words) });
        }
    }

    #[cold]
    #[inline(never)]
    fn inc_again(words: &Words) {
        Inc::step(words, 0);
    }

    struct Add;

    impl Step for Add {
        type State = Words;

        #[inline(always)]
        fn step(words: &Words, _turn: u64) {
            let value = opaque_constant(PACKET_LENGTH);
            section!(words, "add qword ptr [{word}], {value}", { add_again(words) }, value = value);
        }
    }

    #[cold]
    #[inline(never)]
    fn add_again(words: &Words) {
        Add::step(words, 0);
    }

    /// Returns the benchmark loop `rseq-minimal/inc`: an increment of a per-CPU word in a minimal restartable sequence.
    pub(crate) fn inc(cpus: usize, think: bool) -> Available {
        Ok(Looped::<Inc>::with_shared_state(Words::new(cpus)?, Words::total).thinking(think).boxed())
    }

    /// Returns the benchmark loop `rseq-minimal/add`: an addition to a per-CPU word in a minimal restartable sequence.
    pub(crate) fn add(cpus: usize) -> Available {
        let side = Looped::<Add>::with_shared_state(Words::new(cpus)?, Words::total);
        Ok(side.counting(PACKET_LENGTH).boxed())
    }
}
