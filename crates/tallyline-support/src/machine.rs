//! The machine that the figures are from: without it a figure means nothing.

use crate::cpus;
use serde::Serialize;
use std::fmt;
use std::fs;

/// A description of the machine (CPU, kernel, memory) and of this program's build, for reports of benchmarks.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// The processor's name, as the system gives it.
    pub cpu: String,
    /// The processor's vendor, family, model and stepping; the value of `MIDR_EL1` on aarch64.
    pub cpu_id: String,
    /// The processor architecture that this program was built for.
    pub architecture: &'static str,
    /// The number of CPUs that this process may run on.
    pub cpus: usize,
    /// The kernel's list of possible CPUs.
    pub possible: String,
    /// The release of the running kernel.
    pub kernel: String,
    /// `true` if the kernel runs on a hypervisor, where the system tells.
    pub virtual_machine: Option<bool>,
    /// The size of the first CPU's level-1 data cache in bytes, as reported; a virtual machine may report more than
    /// its share.
    pub l1d_bytes: Option<u64>,
    /// The size of the first CPU's level-2 cache in bytes, as reported.
    pub l2_bytes: Option<u64>,
    /// The size of the first CPU's last-level cache in bytes, as reported.
    pub llc_bytes: Option<u64>,
    /// Main memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// The mode of updating counters here.
    pub mode: String,
    /// The widest vector that the library uses here, in bytes.
    pub vector_bytes: usize,
    /// The build's profile: `dist` for published figures, `release` and others, `debug` for figures that
    /// mean nothing.
    pub build: &'static str,
    /// The C compiler of the C sides, or why there is none.
    pub c_compiler: String,
    /// The load average of the minute before the measurement.
    pub load: Option<f64>,
    /// The version of the statctr library.
    pub statctr: &'static str,
}

impl Machine {
    /// Describes this machine (from `/proc` and `/sys`) and the build of this program, for benchmark reports.
    /// `c_compiler` names the compiler of the program's C code, or says why there is none. Unknown properties are left
    /// out or "unknown".
    pub fn describe(c_compiler: &str) -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line =
                cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        Machine {
            cpu: field("model name").unwrap_or_else(|| "unknown".into()),
            cpu_id: match field("vendor_id") {
                Some(vendor) => {
                    let numbers =
                        ["cpu family", "model", "stepping"].map(|name| field(name).unwrap_or_default());
                    format!("{vendor}-{}", numbers.join("-"))
                }
                None => line_of("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1")
                    .unwrap_or_else(|| "unknown".into()),
            },
            architecture: std::env::consts::ARCH,
            cpus: cpus::allowed_cpus().map_or(0, |cpus| cpus.len()),
            possible: line_of("/sys/devices/system/cpu/possible").unwrap_or_else(|| "unknown".into()),
            kernel: line_of("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".into()),
            virtual_machine: field("flags").map(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            l1d_bytes: cache_bytes(1),
            l2_bytes: cache_bytes(2),
            llc_bytes: last_level_cache_bytes(),
            memory_bytes: memory("MemTotal"),
            mode: statctr::thread_mode().to_string(),
            vector_bytes: statctr::VectorWidth::detect().bytes(),
            build: profile(env!("OUT_DIR")),
            c_compiler: c_compiler.into(),
            load: line_of("/proc/loadavg").and_then(|line| line.split(' ').next()?.parse().ok()),
            statctr: env!("CARGO_PKG_VERSION"),
        }
    }
}

impl Machine {
    /// Returns the processor's name with its vendor, family, model and stepping in parentheses.
    pub fn model(&self) -> String {
        format!("{} ({})", self.cpu, self.cpu_id)
    }
}

/// Returns the profile that a build script's folder is of: `…/PROFILE/build/PACKAGE-HASH/out`.
fn profile(folder: &str) -> &str {
    folder.rsplit('/').nth(3).unwrap_or("unknown")
}

/// Returns the memory in bytes that the kernel estimates can be allocated without swapping (`MemAvailable`); `None` if
/// `/proc/meminfo` does not say.
pub fn memory_available() -> Option<u64> {
    memory("MemAvailable")
}

/// Returns the size in bytes of CPU 0's last-level cache, as sysfs reports it; `None` if it reports no cache of level 2
/// or higher.
pub fn last_level_cache_bytes() -> Option<u64> {
    (2..=4).rev().find_map(cache_bytes)
}

fn memory(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Returns the size in bytes of CPU 0's data or unified cache of a level (1 to 4), as sysfs reports it; `None` if there
/// is none.
pub fn cache_bytes(level: u32) -> Option<u64> {
    (0..8).find_map(|index| {
        let file = |name: &str| line_of(&format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}"));
        if file("level")?.parse() != Ok(level) || file("type")? == "Instruction" {
            return None;
        }
        let size = file("size")?;
        let digits = size.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
        let number: u64 = digits.parse().ok()?;
        number.checked_mul(match &size[digits.len()..] {
            "K" => 1 << 10,
            "M" => 1 << 20,
            _ => return None,
        })
    })
}

fn line_of(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.lines().next()?.trim().to_owned())
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = |bytes: Option<u64>| match bytes {
            Some(bytes) if bytes < 1 << 20 => format!("{} KiB", bytes >> 10),
            Some(bytes) if bytes < 10 << 30 => format!("{} MiB", bytes >> 20),
            Some(bytes) => format!("{} GiB", bytes >> 30),
            None => "?".into(),
        };
        writeln!(
            f,
            "{}, {} CPUs to run on (possible: {}){}",
            self.model(),
            self.cpus,
            self.possible,
            match self.virtual_machine {
                Some(true) => ", virtual machine",
                _ => "",
            }
        )?;
        writeln!(
            f,
            "caches {} + {} + {} as reported, memory {}; {} Linux {}, load {}",
            mebibytes(self.l1d_bytes),
            mebibytes(self.l2_bytes),
            mebibytes(self.llc_bytes),
            mebibytes(self.memory_bytes),
            self.architecture,
            self.kernel,
            self.load.map_or("?".into(), |load| load.to_string()),
        )?;
        write!(
            f,
            "statctr {} ({} build): updates by {}, vectors of {} bytes; C sides: {}",
            self.statctr, self.build, self.mode, self.vector_bytes, self.c_compiler
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_is_told_by_the_folder_of_the_build() {
        assert_eq!(profile("/home/me/target/dist/build/tallyline-0123456789abcdef/out"), "dist");
        assert_eq!(profile("out"), "unknown");
        assert_eq!(profile(env!("OUT_DIR")) == "debug", cfg!(debug_assertions));
    }

    #[test]
    fn this_machine_can_be_described() {
        let machine = Machine::describe("none");
        assert!(machine.cpus > 0);
        assert!(machine.memory_bytes.is_some());
        assert!(!machine.to_string().contains("unknown"), "{machine}");
    }
}
