//! Synthetic topologies: to measure the cost of counting on 1024 CPUs from a desk with two.

use super::Topology;
use crate::cpu::{CpuSet, NodeId};
use crate::error::{Error, Result};

/// A builder of the [`Topology`] of a made-up machine, for tests and measurements; see [`Topology::synthetic`].
///
/// By default all possible CPUs are present and online, and no CPU belongs to a NUMA node.
#[derive(Debug, Clone)]
#[must_use]
pub struct SyntheticTopology {
    possible: CpuSet,
    present: Option<CpuSet>,
    online: Option<CpuSet>,
    nodes: Vec<(NodeId, CpuSet)>,
}

impl SyntheticTopology {
    pub(super) fn new(possible: CpuSet) -> Self {
        SyntheticTopology { possible, present: None, online: None, nodes: Vec::new() }
    }

    /// Sets the present (plugged in) CPUs of the made-up machine; by default all possible ones.
    pub fn present(mut self, cpus: CpuSet) -> Self {
        self.present = Some(cpus);
        self
    }

    /// Sets the online CPUs of the made-up machine; by default all present ones.
    pub fn online(mut self, cpus: CpuSet) -> Self {
        self.online = Some(cpus);
        self
    }

    /// Adds a NUMA node with its CPUs to the made-up machine.
    pub fn node(mut self, node: NodeId, cpus: CpuSet) -> Self {
        self.nodes.push((node, cpus));
        self
    }

    /// Builds the synthetic [`Topology`]; an error if its CPUs or nodes contradict each other.
    ///
    /// # Errors
    /// [`Error::BadTopology`] where no CPU is possible, where a CPU is present but not possible or
    /// online but not present, or where two nodes share a CPU or a number.
    pub fn build(mut self) -> Result<Topology> {
        let present = self.present.unwrap_or_else(|| self.possible.clone());
        let online = self.online.unwrap_or_else(|| present.clone());
        if self.possible.is_empty() {
            return Err(Error::BadTopology("no CPU is possible"));
        }
        if !present.is_subset(&self.possible) {
            return Err(Error::BadTopology("a CPU is present but not possible"));
        }
        if !online.is_subset(&present) {
            return Err(Error::BadTopology("a CPU is online but not present"));
        }
        self.nodes.sort_by_key(|(node, _)| *node);
        for (index, (node, cpus)) in self.nodes.iter().enumerate() {
            for (other, theirs) in &self.nodes[index + 1..] {
                if node == other {
                    return Err(Error::BadTopology("a node is given twice"));
                }
                if cpus.iter().any(|cpu| theirs.contains(cpu)) {
                    return Err(Error::BadTopology("a CPU is on two nodes"));
                }
            }
        }
        Ok(Topology { possible: self.possible, present, online, nodes: self.nodes, synthetic: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::CpuId;

    fn set(list: &str) -> CpuSet {
        list.parse().expect("list")
    }

    #[test]
    fn contradictions_are_refused() {
        let bad = [
            Topology::synthetic(0).build(),
            Topology::synthetic(4).present(set("0-4")).build(),
            Topology::synthetic(4).present(set("0-1")).online(set("2")).build(),
            Topology::synthetic(4).node(NodeId::new(0), set("0-1")).node(NodeId::new(1), set("1-2")).build(),
            Topology::synthetic(4).node(NodeId::new(1), set("0")).node(NodeId::new(1), set("1")).build(),
        ];
        for topology in bad {
            assert!(matches!(topology, Err(Error::BadTopology(_))), "{topology:?}");
        }
    }

    #[test]
    fn sparse_machines_without_node_0_can_be_made() {
        let topology = Topology::synthetic_sparse(set("3,70,1000"))
            .node(NodeId::new(7), set("70"))
            .build()
            .expect("topology");
        assert_eq!(topology.possible().last(), Some(CpuId::new(1000)));
        assert_eq!(topology.online().len(), 3);
        assert_eq!(topology.node_of(CpuId::new(70)), Some(NodeId::new(7)));
        assert_eq!(topology.node_of(CpuId::new(3)), None);
        assert!(topology.is_synthetic());
    }
}
