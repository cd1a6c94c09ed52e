//! Topologies: the possible, present and online CPUs of a machine, and the node of each.
//!
//! A [`Topology`] is a snapshot. It decides where memory is laid out and which CPUs get a unit of
//! their own; **no count depends on it being right**: a CPU that is not in it counts in the
//! fallback cell.

mod synthetic;
mod sysfs;
mod uniprocessor_evidence;

pub use crate::cpu::{CpuId, CpuSet, NodeId};
pub use synthetic::SyntheticTopology;
pub(crate) use uniprocessor_evidence::evidence_of_second_cpu;

use crate::error::Result;
use std::path::Path;

const SYSFS: &str = "/sys";

/// The CPUs and NUMA nodes of a machine, real or synthetic, at one moment.
///
/// ```
/// use statctr::topology::{CpuId, CpuSet, NodeId, Topology};
///
/// // 192 possible CPUs of which 32 are here, on two nodes, neither of them node 0.
/// let topology = Topology::synthetic(192)
///     .present("0-31".parse()?)
///     .node(NodeId::new(1), "0-95".parse()?)
///     .node(NodeId::new(2), "96-191".parse()?)
///     .build()?;
/// assert_eq!(topology.possible().len(), 192);
/// assert_eq!(topology.present().to_string(), "0-31");
/// assert_eq!(topology.node_of(CpuId::new(100)), Some(NodeId::new(2)));
/// # Ok::<(), statctr::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    possible: CpuSet,
    present: CpuSet,
    online: CpuSet,
    nodes: Vec<(NodeId, CpuSet)>,
    synthetic: bool,
}

impl Topology {
    /// Reads this machine's topology from `/sys`. CPUs on which the kernel lets this process run are included, whatever
    /// the files say.
    ///
    /// Where the files are missing or not what the kernel writes, every number that the kernel's
    /// own CPU mask has room for (`sched_getaffinity(2)`) counts as possible, the CPUs that the
    /// process may use as present and online, and no CPU has a node.
    ///
    /// # Errors
    /// None at present.
    pub fn current() -> Result<Self> {
        Ok(Self::of_kernel(Path::new(SYSFS)))
    }

    /// Reads the topology of the running kernel, with the tree under `root` for `/sys`.
    fn of_kernel(root: &Path) -> Self {
        let mut topology = sysfs::read(root).unwrap_or_else(|_| {
            let all = 0..crate::sys::cpu_bound().unwrap_or(1) as u32;
            Topology {
                possible: all.map(CpuId::new).collect(),
                present: CpuSet::new(),
                online: CpuSet::new(),
                nodes: Vec::new(),
                synthetic: false,
            }
        });
        topology.add_allowed();
        topology
    }

    /// Adds the CPUs that the calling thread and the process's first one may run on.
    fn add_allowed(&mut self) {
        let process = i32::try_from(std::process::id()).unwrap_or(0);
        let masks = [0, process].into_iter().filter_map(crate::sys::affinity);
        for cpu in masks.flat_map(|cpus| cpus.iter().collect::<Vec<_>>()) {
            [&mut self.possible, &mut self.present, &mut self.online]
                .into_iter()
                .for_each(|cpus| cpus.insert(cpu));
        }
    }

    /// Returns the online CPUs as listed in `/sys`; `None` if it has no such list.
    pub(crate) fn online_by_files() -> Option<CpuSet> {
        let mut topology = sysfs::read(Path::new(SYSFS)).ok()?;
        topology.add_allowed();
        Some(topology.online)
    }

    /// Reads a topology from a copy of sysfs at `root`, which stands for `/sys`.
    ///
    /// Reads `devices/system/cpu/{possible,present,online}` and `devices/system/node/`; without the
    /// latter (a kernel without NUMA) no CPU has a node.
    ///
    /// # Errors
    /// [`Error::TopologyUnreadable`](crate::Error::TopologyUnreadable) where a file is missing,
    /// [`Error::BadCpuList`](crate::Error::BadCpuList) where it is not what the kernel writes.
    pub fn from_sysfs(root: &Path) -> Result<Self> {
        sysfs::read(root)
    }

    /// Returns a builder of a synthetic machine's topology with CPUs 0 to `possible` − 1; see [`SyntheticTopology`].
    pub fn synthetic(possible: u32) -> SyntheticTopology {
        SyntheticTopology::new((0..possible).map(CpuId::new).collect())
    }

    /// Returns a builder of a synthetic machine's topology with these possible CPUs, whose numbers may have gaps.
    pub fn synthetic_sparse(possible: CpuSet) -> SyntheticTopology {
        SyntheticTopology::new(possible)
    }

    /// Returns the possible CPUs: all that this machine can ever have, plugged in or not.
    #[must_use]
    pub fn possible(&self) -> &CpuSet {
        &self.possible
    }

    /// Returns the present CPUs: those that are plugged in.
    #[must_use]
    pub fn present(&self) -> &CpuSet {
        &self.present
    }

    /// Returns the CPUs that were online (used by the scheduler) when this topology was read.
    #[must_use]
    pub fn online(&self) -> &CpuSet {
        &self.online
    }

    /// Returns the NUMA node of a CPU; `None` if the machine has no nodes or does not say.
    #[must_use]
    pub fn node_of(&self, cpu: CpuId) -> Option<NodeId> {
        self.nodes.iter().find(|(_, cpus)| cpus.contains(cpu)).map(|(node, _)| *node)
    }

    /// Returns the NUMA nodes that have CPUs, each with its CPUs, by node number.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &CpuSet)> {
        self.nodes.iter().map(|(node, cpus)| (*node, cpus))
    }

    /// Returns `true` if the topology was made up by a [`SyntheticTopology`], not read from a machine.
    #[must_use]
    pub fn is_synthetic(&self) -> bool {
        self.synthetic
    }
}
