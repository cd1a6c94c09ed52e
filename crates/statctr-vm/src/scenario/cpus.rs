//! CPUs that can be taken away, and what the kernel counts about sections.

use statctr::topology::Topology;
use std::fs;
use std::path::PathBuf;

/// Returns the CPUs of this machine that are there now.
pub(super) fn online() -> Vec<u32> {
    let cpus = Topology::current().map(|topology| topology.online().clone()).unwrap_or_default();
    cpus.iter().map(|cpu| cpu.get()).collect()
}

/// A CPU that can be taken away. It comes back when this is dropped.
pub(super) struct CpuSwitch {
    pub(super) cpu: u32,
    file: PathBuf,
}

impl CpuSwitch {
    /// Returns all present CPUs with a switch. Not CPU 0: most machines keep it.
    pub(super) fn all() -> Vec<CpuSwitch> {
        let cpus = Topology::current().map(|topology| topology.present().clone()).unwrap_or_default();
        let switches = cpus.iter().filter(|cpu| cpu.get() != 0).map(|cpu| CpuSwitch {
            cpu: cpu.get(),
            file: PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/online")),
        });
        // whether one may write there is known when one has written what is there already
        switches
            .filter(|switch| {
                fs::read(&switch.file).is_ok_and(|state| fs::write(&switch.file, state.trim_ascii()).is_ok())
            })
            .collect()
    }

    /// Switches the CPU; `false` where the kernel refuses.
    pub(super) fn set(&self, online: bool) -> bool {
        fs::write(&self.file, if online { "1" } else { "0" }).is_ok()
    }
}

impl Drop for CpuSwitch {
    fn drop(&mut self) {
        self.set(true);
    }
}

/// The kernel's own count of aborted sections, in all processes.
pub(super) struct Aborts;

const TRACING: &str = "/sys/kernel/tracing";

impl Aborts {
    /// Starts to count; `None` where the kernel does not let us.
    pub(super) fn count() -> Option<Aborts> {
        fs::write(format!("{TRACING}/trace"), "").ok()?;
        fs::write(format!("{TRACING}/events/rseq/rseq_ip_fixup/enable"), "1").ok()?;
        Some(Aborts)
    }

    /// Returns the number of switches since, for a report.
    pub(super) fn text(aborts: Option<Aborts>) -> String {
        aborts.map_or("an unknown number of".to_owned(), |aborts| aborts.so_far().to_string())
    }

    fn so_far(&self) -> u64 {
        let per_cpu = fs::read_dir(format!("{TRACING}/per_cpu")).into_iter().flatten().flatten();
        let of = |text: &str, name: &str| -> u64 {
            text.lines()
                .filter_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse::<u64>().ok())
                .sum()
        };
        per_cpu
            .filter_map(|cpu| fs::read_to_string(cpu.path().join("stats")).ok())
            .map(|text| of(&text, "entries") + of(&text, "overrun"))
            .sum()
    }
}

impl Drop for Aborts {
    fn drop(&mut self) {
        let _ = fs::write(format!("{TRACING}/events/rseq/rseq_ip_fixup/enable"), "0");
    }
}

/// Numbers that look random, always the same.
pub(super) struct Rng(pub(super) u64);

impl Rng {
    /// Returns the next number below `bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }
}
