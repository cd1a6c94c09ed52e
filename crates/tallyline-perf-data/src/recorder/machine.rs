//! This machine as the file's header describes it.

use super::sysfs::{Pmus, cpu_list, text};
use crate::file::CacheLevel;
use crate::writer::{MachineDescription, NumaNode};
use std::fs;
use std::path::Path;

const CPUS: &str = "/sys/devices/system/cpu";
const MEMORY: &str = "/sys/devices/system/memory";

/// Describes this machine for a perf.data header from `/proc` and `/sys`; facts that these lack are left out.
pub fn describe(command_line: &[String]) -> MachineDescription {
    let read = |path: &str| text(Path::new(path)).unwrap_or_default();
    let configured = cpu_list(&read(&format!("{CPUS}/present"))).len() as u32;
    let online = cpu_list(&read(&format!("{CPUS}/online"))).len() as u32;
    let cpuinfo = read("/proc/cpuinfo");
    let info = |field: &str| {
        let line =
            cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|name| name.trim() == field));
        line.and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim().to_owned())
            .unwrap_or_default()
    };
    let vendor = info("vendor_id");
    let cpu_id = match vendor.as_str() {
        // Arm's have no other number
        "" => read(&format!("{CPUS}/cpu0/regs/identification/midr_el1")),
        vendor => format!("{vendor},{},{},{}", info("cpu family"), info("model"), info("stepping")),
    };
    MachineDescription {
        hostname: read("/proc/sys/kernel/hostname"),
        os_release: read("/proc/sys/kernel/osrelease"),
        arch: std::env::consts::ARCH.to_owned(),
        cpu_description: info("model name"),
        cpu_id,
        cpus: (configured, online),
        total_memory: kilobytes(&read("/proc/meminfo"), "MemTotal:"),
        command_line: command_line.to_vec(),
        topology: (0..configured).map(place).collect(),
        nodes: nodes(),
        memory_block: u64::from_str_radix(&read(&format!("{MEMORY}/block_size_bytes")), 16).unwrap_or(0),
        pmus: Pmus::default().all().into_iter().map(|pmu| (pmu.kind, pmu.name)).collect(),
        caches: caches(configured),
        tracing_data: Vec::new(),
    }
}

/// Returns the number behind a field of `/proc/meminfo`.
fn kilobytes(meminfo: &str, field: &str) -> u64 {
    let line = meminfo.lines().find(|line| line.contains(field));
    let value = line.and_then(|line| line.split_once(field)).map(|(_, value)| value);
    value.and_then(|value| value.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Returns the core and the socket of a CPU; those of an offline one are unknown.
fn place(cpu: u32) -> (u32, u32) {
    let number = |what: &str| {
        let value = text(Path::new(&format!("{CPUS}/cpu{cpu}/topology/{what}")));
        value.and_then(|value| value.parse().ok()).unwrap_or(0)
    };
    (number("core_id"), number("physical_package_id"))
}

/// Returns the nodes; a kernel that knows none has one of everything.
fn nodes() -> Vec<NumaNode> {
    let entries = fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
    let mut nodes: Vec<_> = entries
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
            node(number, &entry.path().join("meminfo"), text(&entry.path().join("cpulist"))?, &entry.path())
        })
        .collect();
    if nodes.is_empty() {
        let cpus = text(Path::new(&format!("{CPUS}/online"))).unwrap_or_default();
        nodes.extend(node(0, Path::new("/proc/meminfo"), cpus, Path::new(MEMORY)));
    }
    nodes.sort_by_key(|node| node.number);
    nodes
}

/// Returns a node whose blocks of memory are `memoryN` in a folder.
fn node(number: u32, meminfo: &Path, cpus: String, blocks: &Path) -> Option<NumaNode> {
    let meminfo = text(meminfo)?;
    let memory = (kilobytes(&meminfo, "MemTotal:"), kilobytes(&meminfo, "MemFree:"));
    let entries = fs::read_dir(blocks).into_iter().flatten().flatten();
    let numbers =
        entries.filter_map(|entry| entry.file_name().to_str()?.strip_prefix("memory")?.parse().ok());
    // no machine has more; a number from elsewhere must not fill the memory
    let mut blocks: Vec<u32> = numbers.filter(|number| *number < 1 << 24).collect();
    blocks.sort_unstable();
    Some(NumaNode { number, memory, cpus, blocks })
}

/// Returns the caches of all CPUs, shared ones once.
fn caches(cpus: u32) -> Vec<CacheLevel> {
    let mut caches = Vec::new();
    for cpu in 0..cpus {
        for index in 0..16 {
            let folder = format!("{CPUS}/cpu{cpu}/cache/index{index}");
            let read = |what: &str| text(&Path::new(&folder).join(what));
            let (Some(level), Some(kind)) =
                (read("level").and_then(|level| level.parse().ok()), read("type"))
            else {
                break;
            };
            let number = |what: &str| read(what).and_then(|value| value.parse().ok()).unwrap_or(0);
            let cache = CacheLevel {
                level,
                line_size: number("coherency_line_size"),
                kind,
                size: read("size").unwrap_or_default(),
                cpus: read("shared_cpu_list").unwrap_or_default(),
            };
            if !caches.contains(&cache) {
                caches.push(cache);
            }
        }
    }
    caches
}
