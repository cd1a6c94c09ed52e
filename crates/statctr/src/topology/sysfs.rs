//! The kernel's own account of its CPUs and nodes.

use super::Topology;
use crate::cpu::{CpuId, CpuSet, NodeId};
use crate::error::{Error, Result};
use std::fs;
use std::io::Read;
use std::path::Path;

/// No list of CPUs that a kernel writes is longer: a bound on what a forged tree can cost.
const LIST_LIMIT: u64 = 1 << 20;

pub(super) fn read(root: &Path) -> Result<Topology> {
    let cpu = root.join("devices/system/cpu");
    let possible = list(&cpu.join("possible"))?;
    if possible.is_empty() {
        return Err(Error::BadTopology("no CPU is possible"));
    }
    // old kernels and some sandboxes show only `possible`: then take the rest for the same
    let or_possible = |name: &str| match list(&cpu.join(name)) {
        Err(Error::TopologyUnreadable { .. }) => Ok(possible.clone()),
        other => other,
    };
    let present = or_possible("present")?;
    let online = or_possible("online")?;
    let nodes = nodes(&root.join("devices/system/node"), &cpu, &present)?;
    Ok(Topology { possible, present, online, nodes, synthetic: false })
}

fn list(path: &Path) -> Result<CpuSet> {
    let unreadable = |error: std::io::Error| Error::TopologyUnreadable {
        path: path.to_owned(),
        errno: error.raw_os_error().unwrap_or(crate::errno::EIO),
    };
    let mut text = String::new();
    let file = fs::File::open(path).map_err(unreadable)?;
    file.take(LIST_LIMIT).read_to_string(&mut text).map_err(unreadable)?;
    text.parse()
}

fn nodes(folder: &Path, cpus: &Path, present: &CpuSet) -> Result<Vec<(NodeId, CpuSet)>> {
    let possible = match list(&folder.join("possible")) {
        Ok(nodes) => nodes,
        // a kernel without NUMA has no such folder
        Err(Error::TopologyUnreadable { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut nodes = Vec::new();
    for node in possible.iter().map(CpuId::get) {
        match list(&folder.join(format!("node{node}/cpulist"))) {
            Ok(cpus) => nodes.push((NodeId::new(node), cpus)),
            // a node that is possible and not there
            Err(Error::TopologyUnreadable { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    // the lists have CPUs that are online; others that are there lead to their node
    for cpu in present.iter() {
        if !nodes.iter().any(|(_, cpus)| cpus.contains(cpu)) {
            let leads_to = |node: NodeId| cpus.join(format!("cpu{cpu}/node{}", node.get())).exists();
            if let Some((_, its_cpus)) = nodes.iter_mut().find(|(node, _)| leads_to(*node)) {
                its_cpus.insert(cpu);
            }
        }
    }
    // memory without CPUs
    nodes.retain(|(_, cpus)| !cpus.is_empty());
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str, files: &[(&str, &str)]) -> Tree {
            let root = std::env::temp_dir().join(format!("statctr-topology-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join("devices/system").join(path);
                fs::create_dir_all(path.parent().expect("parent")).expect("folder");
                fs::write(path, text).expect("file");
            }
            Tree(root)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn this_machine_is_read() {
        let topology = Topology::current().expect("/sys");
        assert!(topology.online().is_subset(topology.present()));
        assert!(topology.present().is_subset(topology.possible()));
        assert!(!topology.is_synthetic());
    }

    #[test]
    fn sparse_numbers_and_a_missing_node_0_are_read() {
        let tree = Tree::new(
            "sparse",
            &[
                ("cpu/possible", "0-1,8-9,64\n"),
                ("cpu/present", "0-1,8\n"),
                ("cpu/online", "0,8\n"),
                ("node/possible", "1,3-4\n"),
                ("node/node1/cpulist", "0-1\n"),
                ("node/node3/cpulist", "8-9,64\n"),
                ("node/node4/cpulist", "\n"),
            ],
        );
        let topology = Topology::from_sysfs(&tree.0).expect("tree");
        assert_eq!(topology.possible().to_string(), "0-1,8-9,64");
        assert_eq!(topology.present().to_string(), "0-1,8");
        assert_eq!(topology.online().to_string(), "0,8");
        assert_eq!(topology.node_of(CpuId::new(64)), Some(NodeId::new(3)));
        assert_eq!(topology.nodes().map(|(node, _)| node.get()).collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn a_cpu_that_is_offline_has_a_node_too() {
        let tree = Tree::new(
            "offline",
            &[
                ("cpu/possible", "0-5\n"),
                ("cpu/present", "0-3\n"),
                ("cpu/online", "0\n"),
                ("cpu/cpu1/node0/x", ""),
                ("cpu/cpu2/node1/x", ""),
                ("node/possible", "0-2\n"),
                ("node/node0/cpulist", "0\n"),
                ("node/node1/cpulist", "\n"),
                ("node/node2/cpulist", "\n"),
            ],
        );
        let topology = Topology::from_sysfs(&tree.0).expect("tree");
        let nodes: Vec<_> = topology.nodes().map(|(node, cpus)| (node.get(), cpus.to_string())).collect();
        assert_eq!(nodes, [(0, "0-1".to_owned()), (1, "2".to_owned())]);
        assert_eq!(topology.node_of(CpuId::new(3)), None);
    }

    #[test]
    fn a_kernel_without_numa_has_no_nodes() {
        let tree = Tree::new("flat", &[("cpu/possible", "0\n")]);
        let topology = Topology::from_sysfs(&tree.0).expect("tree");
        assert_eq!(topology.online().len(), 1);
        assert_eq!(topology.node_of(CpuId::new(0)), None);
    }

    #[test]
    fn unreadable_topologies_name_the_file() {
        let error = Topology::from_sysfs(Path::new("/nonexistent")).expect_err("no tree");
        assert!(error.to_string().contains("cpu/possible"), "{error}");
        let tree = Tree::new("bad", &[("cpu/possible", "zero\n")]);
        assert!(matches!(Topology::from_sysfs(&tree.0), Err(Error::BadCpuList { offset: 0, .. })));
        let tree = Tree::new("none", &[("cpu/possible", "\n")]);
        assert!(matches!(Topology::from_sysfs(&tree.0), Err(Error::BadTopology(_))));
    }
}
