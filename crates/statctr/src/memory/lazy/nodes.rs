//! The memory regions of NUMA nodes, by CPU: [`Nodes`].

use crate::cpu::{CpuId, NodeId};
use crate::topology::Topology;

/// A map from CPUs to NUMA nodes' memory regions, from which lazy objects and their instances (CPUs' copies of four
/// counters) are allocated.
#[derive(Debug)]
pub(crate) struct Nodes {
    /// By CPU number: the index of its node in `nodes`.
    by_cpu: Box<[u16]>,
    /// By node number: its index in `nodes`, that of the last place for numbers of none.
    by_number: Box<[u16]>,
    /// The nodes; none in the last place, for CPUs of no known node.
    nodes: Box<[Option<NodeId>]>,
}

impl Nodes {
    pub(crate) fn new(topology: &Topology, cpus: usize) -> Nodes {
        let nodes: Vec<_> = topology.nodes().map(|(node, _)| Some(node)).collect();
        let place = |cpu| {
            let node = topology.node_of(CpuId::new(cpu as u32));
            nodes.iter().position(|known| known.is_some() && *known == node).unwrap_or(nodes.len()) as u16
        };
        let by_cpu = (0..cpus).map(place).collect();
        let unknown = nodes.len() as u16;
        let numbers = nodes.iter().flatten().map(|node| node.get() as usize + 1).max().unwrap_or(0);
        let mut by_number = vec![unknown; numbers].into_boxed_slice();
        for (index, node) in nodes.iter().enumerate() {
            if let Some(place) = node.and_then(|node| by_number.get_mut(node.get() as usize)) {
                *place = index as u16;
            }
        }
        // memory policies are for machines with several nodes
        let one = nodes.len() <= 1;
        let nodes = nodes.into_iter().map(|node| node.filter(|_| !one)).chain([None]).collect();
        Nodes { by_cpu, by_number, nodes }
    }

    /// Returns the index of the memory region, for the NUMA node that a CPU is on, from which lazy objects (groups of
    /// four statistics) and CPUs' copies of them are allocated.
    #[inline]
    pub(crate) fn index_of(&self, cpu: usize) -> usize {
        self.by_cpu.get(cpu).map_or(self.nodes.len() - 1, |&place| place.into())
    }

    /// Returns the number of CPUs that take cells from the memory region of this index, and one for those that nobody
    /// expected.
    pub(super) fn cpus_at(&self, index: usize) -> usize {
        self.by_cpu.iter().filter(|&&place| usize::from(place) == index).count() + 1
    }

    /// Returns the index of the memory region for the NUMA node of this number.
    #[inline]
    pub(crate) fn index_of_node(&self, number: u32) -> usize {
        self.by_number.get(number as usize).map_or(self.nodes.len() - 1, |&place| place.into())
    }

    /// Returns the NUMA node whose memory the region of this index has; `None` where there is no choice.
    pub(super) fn node(&self, index: usize) -> Option<NodeId> {
        self.nodes[index]
    }

    /// Returns the number of memory regions from which lazy objects (groups of four statistics) are allocated: one per
    /// NUMA node, and one for CPUs of no known node.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }
}
