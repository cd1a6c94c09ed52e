//! No stripe belongs to a thread, as no instruction adds to memory that a signal could not split, or nobody tells of the
//! ends of threads.

pub(crate) const OWNED_PER_CPU: usize = 1;
pub(crate) const OWNED_STRIPES: usize = 0;

#[inline(always)]
pub(crate) unsafe fn owned_stripe(_offset: isize) -> Option<usize> {
    None
}

pub(crate) fn claim_owned_stripe(_offset: isize) -> Option<usize> {
    None
}

pub(crate) fn prepare_owned_stripes(_cpus: usize) -> (usize, isize) {
    (0, 0)
}
