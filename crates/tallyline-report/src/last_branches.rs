//! The last branches in front of samples, by their branch stacks.
//!
//! The newest entry of a sample's branch stack says which of several predecessors led to its instruction: the branch
//! that was taken to it, or, if that went to an instruction in front, the one that falls through.

use super::index::PlaceId;
use rustc_hash::FxHashMap;
use tallyline_perf_data::Attr;
use tallyline_perf_data::abi::{branch, sample as bit};
use tallyline_perf_data::sample::Sample;

/// The most bytes in front of a sample that a branch whose target control fell through from is looked for in.
const FALL_THROUGH_LIMIT: u64 = 4096;

/// The bit that addresses of kernels have.
const KERNEL: u64 = 1 << 63;

/// The most recent branch before a sample, from its branch stack, in relation to the sampled address: a branch to
/// it, or to an instruction shortly before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum LastBranch {
    /// A branch to the sampled instruction, from an address so far away.
    ToSample(i64),
    /// A branch to an instruction so many bytes in front.
    InFront(u64),
}

impl LastBranch {
    /// Returns the most recent branch before a sample. `None` without a branch stack, if the stack is filtered to
    /// some kinds of branches, or if the branch does not lead to the sample, as after an interrupt.
    pub(crate) fn of(sample: &Sample<'_>, attr: &Attr) -> Option<LastBranch> {
        let has_all = attr.sample_type & bit::BRANCH_STACK != 0 && attr.branch_sample_type & branch::ANY != 0;
        let newest = sample.branches.filter(|_| has_all)?.get(0)?;
        LastBranch::relative(sample.ip?, newest.from(), newest.to())
    }

    /// Describes a branch from address `from` to address `to` in relation to a sample at `ip`: to the sampled
    /// instruction, or to one shortly before it; `None` if it does not lead there.
    pub(crate) fn relative(ip: u64, from: u64, to: u64) -> Option<LastBranch> {
        // an interrupt came back to it, which says nothing of the instruction in front
        if (from ^ ip) & KERNEL != 0 {
            return None;
        }
        match ip.checked_sub(to)? {
            0 => Some(LastBranch::ToSample(from.wrapping_sub(ip) as i64)),
            bytes @ ..=FALL_THROUGH_LIMIT => Some(LastBranch::InFront(bytes)),
            _ => None,
        }
    }
}

/// The number of samples by code place (file and offset of code) and most recent branch.
pub(crate) type LastBranchCounts = FxHashMap<(PlaceId, LastBranch), u64>;

/// The last branches of a recording's samples, while those are placed.
#[derive(Debug, Default)]
pub(super) struct LastBranches {
    // by sample in the order of the file; those behind the end have none
    list: Vec<Option<LastBranch>>,
    counts: LastBranchCounts,
}

impl LastBranches {
    /// Notes the last branch of a sample by its index.
    pub(super) fn push(&mut self, sample: usize, last: LastBranch) {
        self.list.resize(sample, None);
        self.list.push(Some(last));
    }

    /// Counts a sample at its place.
    pub(super) fn count(&mut self, sample: u32, place: PlaceId) {
        if let Some(last) = self.list.get(sample as usize).copied().flatten() {
            *self.counts.entry((place, last)).or_default() += 1;
        }
    }

    /// Returns the counts of all samples that were placed.
    pub(super) fn finish(self) -> LastBranchCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_branch_says_where_control_came_from() {
        assert_eq!(LastBranch::relative(0x1100, 0x1180, 0x1100), Some(LastBranch::ToSample(0x80)));
        assert_eq!(LastBranch::relative(0x1100, 0x10f8, 0x1100), Some(LastBranch::ToSample(-8)));
        assert_eq!(LastBranch::relative(0x1100, 0x9000, 0x10f0), Some(LastBranch::InFront(0x10)));
    }

    #[test]
    fn a_branch_that_went_elsewhere_says_nothing() {
        // behind the sample, far in front of it, from the kernel
        for (from, to) in [(0x1000, 0x1101), (0x1000, 0x40), (KERNEL | 1, 0x1100)] {
            assert_eq!(LastBranch::relative(0x1100, from, to), None, "{from:x} {to:x}");
        }
    }
}
