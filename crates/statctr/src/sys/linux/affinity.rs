//! CPUs as the scheduler's system calls report them: no file can be mounted over these.

use crate::cpu::{CpuId, CpuSet};
use crate::sys::{OnceBox, run_on_helper_thread};

/// Room for the masks of any kernel: 65 536 CPUs.
type Mask = [u64; 1024];

/// Returns the size of the kernel's mask in bytes, and the mask of a thread (0: the calling one).
fn mask_of(thread: i32) -> Option<(usize, Box<Mask>)> {
    let mut mask = Box::new([0; 1024]);
    // SAFETY: the kernel writes at most the given number of bytes into the mask, which is aligned
    // as its words are.
    let bytes =
        unsafe { libc::syscall(libc::SYS_sched_getaffinity, thread, size_of::<Mask>(), mask.as_mut_ptr()) };
    usize::try_from(bytes).ok().filter(|&bytes| bytes > 0).map(|bytes| (bytes, mask))
}

/// Returns one more than the largest CPU number that this kernel can store into an rseq area; `None` if it does not
/// say.
///
/// This bounds an index that the sections do not check, so it must come from the kernel and not
/// from a file that a container may have replaced: `sched_getaffinity` copies out the kernel's
/// whole mask, which has a bit for every possible CPU.
pub(crate) fn cpu_bound() -> Option<usize> {
    static BOUND: OnceBox<Option<usize>> = OnceBox::new();
    *BOUND.get_or_make(|| mask_of(0).map(|(bytes, _)| bytes * 8))
}

/// Returns one more than the largest CPU number that this kernel can store into an rseq area ([`cpu_bound`]) if that is
/// at most 8192, else `None`; does not allocate. Async-signal-safe, but for `errno`.
pub(crate) fn small_cpu_bound() -> Option<usize> {
    let mut mask = [0u64; 128];
    // SAFETY: as in `mask_of`.
    let bytes =
        unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&mask), mask.as_mut_ptr()) };
    usize::try_from(bytes).ok().filter(|&bytes| bytes > 0).map(|bytes| bytes * 8)
}

/// Returns the CPUs that a thread may run on (`sched_getaffinity`), given by its id, 0 for the calling one; `None` if
/// the kernel refuses.
pub(crate) fn affinity(thread: i32) -> Option<CpuSet> {
    let (_, mask) = mask_of(thread)?;
    let bits = |(index, word): (usize, &u64)| {
        let word = *word;
        (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| CpuId::new(index as u32 * 64 + bit))
    };
    Some(mask.iter().enumerate().flat_map(bits).collect())
}

/// Returns the CPUs of the process's cpuset, which may be more than its threads' masks. Found by a short-lived thread
/// that requests all CPUs, so that no other thread is moved; `None` if no thread can be started or a sandbox refuses.
pub(crate) fn allowed_by_cpuset() -> Option<CpuSet> {
    run_on_helper_thread(|| {
        let all: Box<Mask> = Box::new([u64::MAX; 1024]);
        // SAFETY: the kernel reads the mask, and changes where this thread may run.
        let asked = unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of::<Mask>(), all.as_ptr()) };
        if asked == 0 { affinity(0) } else { None }
    })?
}

/// Restricts the calling thread to one CPU (`sched_setaffinity`); returns `false` if the kernel or a sandbox refuses.
pub(crate) fn pin_to(cpu: CpuId) -> bool {
    let mut mask: Box<Mask> = Box::new([0; 1024]);
    let Some(word) = mask.get_mut(cpu.index() / 64) else { return false };
    *word |= 1 << (cpu.index() % 64);
    // SAFETY: as in `allowed_by_cpuset`.
    unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of::<Mask>(), mask.as_ptr()) == 0 }
}

/// Returns the CPU that the calling thread runs on (`getcpu`), which may be outdated at once; `None` if the kernel does
/// not say. Async-signal-safe.
pub(crate) fn cpu_now() -> Option<usize> {
    // SAFETY: has no arguments.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Gives the calling thread the ordinary scheduling policy (`SCHED_OTHER`), as it may have inherited a real-time one;
/// returns `false` if the kernel refuses.
pub(crate) fn share_cpu() -> bool {
    // the kernel's `sched_param` is its priority alone; musl's has more in it
    let parameters: libc::c_int = 0;
    // SAFETY: the kernel reads the parameters; concerns the calling thread only.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_OTHER, &raw const parameters) };
    result == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpuset_has_the_cpus_of_every_mask() {
        let mine = affinity(0).expect("a mask");
        assert!(!mine.is_empty());
        assert_eq!(small_cpu_bound(), cpu_bound());
        assert!(mine.last().is_some_and(|cpu| cpu.index() < cpu_bound().expect("a bound")));
        let all = allowed_by_cpuset().expect("a thread");
        assert!(mine.is_subset(&all), "{mine} {all}");
    }

    #[test]
    fn a_pinned_thread_does_not_hide_the_cpuset() {
        let all = allowed_by_cpuset().expect("a thread");
        let one = all.last().expect("a CPU");
        let seen = run_on_helper_thread(move || (pin_to(one), affinity(0), allowed_by_cpuset()));
        let (pinned, mine, cpuset) = seen.expect("a thread");
        assert!(pinned);
        assert_eq!(mine.map(|cpus| cpus.to_string()), Some(one.to_string()));
        assert_eq!(cpuset, Some(all));
    }
}
