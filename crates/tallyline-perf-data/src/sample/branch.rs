//! The stack of last branches.

use crate::Result;
use crate::bytes::{ByteOrder, Cursor, Words};

/// The last branches taken before a sample (LBR, `PERF_SAMPLE_BRANCH_STACK`), most recent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchStack<'a> {
    /// The position of the latest entry in the hardware's ring, if the kernel knew it.
    pub(crate) hardware_index: Option<u64>,
    /// The recorded branches, three words for each.
    entries: Words<'a>,
    counters: Option<Words<'a>>,
}

/// A taken branch in a sample's branch stack: source, target, and the hardware's flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The address of the branch instruction.
    pub(crate) from: u64,
    /// The address of the branch's target.
    pub(crate) to: u64,
    /// `true` if the branch was mispredicted. If `predicted` is `false`, too, it is not known.
    pub(crate) mispredicted: bool,
    /// `true` if the branch was predicted correctly.
    pub(crate) predicted: bool,
    /// `true` if the branch was in a hardware transaction.
    pub(crate) in_transaction: bool,
    /// `true` if the branch was the abort of a hardware transaction.
    pub(crate) abort: bool,
    /// The number of cycles since the branch before; 0 if not known.
    pub(crate) cycles: u16,
    /// The kind of branch (`PERF_BR_*`): conditional, call, return and so on.
    pub(crate) kind: u8,
    /// The outcome of the branch's speculation (`PERF_BR_SPEC_*`).
    pub(crate) speculation: u8,
    /// The kind of branch (`PERF_BR_NEW_*`) where `kind` is `PERF_BR_EXTEND_ABI`.
    pub(crate) new_kind: u8,
    /// The privilege level after the branch (`PERF_BR_PRIV_*`).
    pub(crate) privilege: u8,
    /// Occurrences of events since the branch before, with `PERF_SAMPLE_BRANCH_COUNTERS`.
    pub(crate) counters: Option<u64>,
}

impl Branch {
    /// Returns the address of the branch instruction.
    #[inline]
    pub fn from(&self) -> u64 {
        self.from
    }

    /// Returns the address of the branch's target.
    #[inline]
    pub fn to(&self) -> u64 {
        self.to
    }

    /// Returns `true` if the CPU mispredicted the branch. If [`predicted`](Self::predicted) is `false` too, it is
    /// not known.
    #[inline]
    pub fn mispredicted(&self) -> bool {
        self.mispredicted
    }

    /// Returns `true` if the CPU predicted the branch correctly.
    #[inline]
    pub fn predicted(&self) -> bool {
        self.predicted
    }

    /// Returns `true` if the branch was in a hardware transaction.
    #[inline]
    pub fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    /// Returns `true` if the branch was the abort of a hardware transaction.
    #[inline]
    pub fn abort(&self) -> bool {
        self.abort
    }

    /// Returns the number of cycles since the previous recorded branch; 0 if not known.
    #[inline]
    pub fn cycles(&self) -> u16 {
        self.cycles
    }

    /// Returns the kind of branch (conditional, call, return, …) as the kernel's `PERF_BR_*` number.
    #[inline]
    pub fn kind(&self) -> u8 {
        self.kind
    }
}

impl<'a> BranchStack<'a> {
    pub(crate) fn decode(at: &mut Cursor<'a>, has_index: bool, has_counters: bool) -> Result<Self> {
        let count = at.u64("number of branches")?;
        let hardware_index = has_index.then(|| at.u64("index of branches")).transpose()?;
        let words = count.checked_mul(3).ok_or_else(|| at.error(format!("{count} branches")))?;
        Ok(Self {
            // all ones: the kernel does not know
            hardware_index: hardware_index.filter(|index| *index != u64::MAX),
            entries: at.words(words, "branches")?,
            counters: has_counters.then(|| at.words(count, "counters of branches")).transpose()?,
        })
    }

    /// Returns the number of branches in the sample's branch stack.
    pub fn len(&self) -> usize {
        self.entries.len() / 3
    }

    /// Returns `true` if the sample's branch stack has no branches.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the branch at an index, 0 being the most recent; `None` past the end.
    pub fn get(&self, index: usize) -> Option<Branch> {
        let start = index.checked_mul(3)?;
        let (from, to, flags) =
            (self.entries.get(start)?, self.entries.get(start + 1)?, self.entries.get(start + 2)?);
        let field = Fields { flags, order: self.entries.order() };
        Some(Branch {
            from,
            to,
            mispredicted: field.get(0, 1) != 0,
            predicted: field.get(1, 1) != 0,
            in_transaction: field.get(2, 1) != 0,
            abort: field.get(3, 1) != 0,
            cycles: field.get(4, 16) as u16,
            kind: field.get(20, 4) as u8,
            speculation: field.get(24, 2) as u8,
            new_kind: field.get(26, 4) as u8,
            privilege: field.get(30, 3) as u8,
            counters: self.counters.and_then(|counters| counters.get(index)),
        })
    }

    /// Returns an iterator over the recorded branches, most recent first.
    pub fn iter(&self) -> impl Iterator<Item = Branch> + use<'_, 'a> {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

/// A word of bit fields: a little-endian machine fills it from the bottom, the other from the top.
struct Fields {
    flags: u64,
    order: ByteOrder,
}

impl Fields {
    fn get(&self, start: u32, width: u32) -> u64 {
        let shift = match self.order {
            ByteOrder::Little => start,
            ByteOrder::Big => 64 - start - width,
        };
        self.flags >> shift & ((1 << width) - 1)
    }
}
