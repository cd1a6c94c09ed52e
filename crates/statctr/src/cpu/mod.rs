//! Numbers of CPUs and NUMA nodes, and sets of CPUs.

mod set;

pub use set::CpuSet;

use std::fmt;

/// The kernel's number of a CPU. The numbers of a machine's CPUs may have gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuId(u32);

impl CpuId {
    /// The largest accepted CPU number: far above any kernel's `NR_CPUS` (8192 on x86-64 in Linux 6.18), and small
    /// enough that a hostile file cannot make masks large.
    pub const MAX: CpuId = CpuId(65_535);

    /// Returns the id of the CPU with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        CpuId(number)
    }

    /// Returns the CPU's number as the kernel counts CPUs.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns the CPU's number as a `usize`, to index arrays.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The kernel's number of a NUMA node. Numbers may have gaps, and node 0 may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

impl NodeId {
    /// Returns the id of the NUMA node with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        NodeId(number)
    }

    /// Returns the NUMA node's number as the kernel counts nodes.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
