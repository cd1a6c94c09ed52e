//! The end of all sections on a CPU, for drains, or on all, for incremental folds: `membarrier(2)`.

use crate::errno::{ENOSYS, EPERM};
use crate::sys::membarrier;

const PRIVATE_EXPEDITED_RSEQ: i32 = 1 << 7;
const REGISTER_PRIVATE_EXPEDITED_RSEQ: i32 = 1 << 8;
const FLAG_CPU: u32 = 1;

/// Aborts the rseq critical section that a thread of this process may be in on `cpu` (`membarrier`). When it returns,
/// sections there see what this thread stored before, and this thread sees what they stored. Succeeds for a CPU that
/// does not exist.
///
/// # Errors
/// The system's error number: kernels before 5.10 and some sandboxes refuse.
///
/// Source: Linux `kernel/sched/membarrier.c`.
pub(crate) fn end_sections_on(cpu: usize) -> Result<(), i32> {
    if super::is_refused!(Membarrier) {
        return Err(ENOSYS);
    }
    if super::offset().is_none() || crate::sys::cpu_bound().is_none_or(|bound| cpu >= bound) {
        // no sections, or none there
        return Ok(());
    }
    fence(FLAG_CPU, cpu)
}

/// Aborts the rseq critical sections that threads of this process may be in on any CPU, as [`end_sections_on`] does on
/// one. CPUs that run none of its threads are not interrupted.
///
/// # Errors
/// The system's error number: kernels before 5.10 and some sandboxes refuse.
pub(crate) fn end_sections() -> Result<(), i32> {
    if super::is_refused!(Membarrier) {
        return Err(ENOSYS);
    }
    if super::offset().is_none() { Ok(()) } else { fence(0, 0) }
}

fn fence(flags: u32, cpu: usize) -> Result<(), i32> {
    let fence = || membarrier(PRIVATE_EXPEDITED_RSEQ, flags, cpu);
    match fence() {
        // not registered yet, or not in this child of a fork
        Err(EPERM) => {
            membarrier(REGISTER_PRIVATE_EXPEDITED_RSEQ, 0, 0)?;
            fence()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_is_not_there_has_no_sections() {
        assert_eq!(end_sections_on(1 << 20), Ok(()));
    }

    #[test]
    fn all_sections_are_ended_where_those_of_one_cpu_are() {
        assert_eq!(end_sections().is_ok(), end_sections_on(0).is_ok());
    }
}
