//! Evidence of a second CPU, from every source that can be asked.
//!
//! No source is believed when it says "one": a container replaces files, a launcher pins threads, a
//! cpuset hides CPUs. One that says "two" is enough. Not asked: `sysconf(_SC_NPROCESSORS_CONF)`,
//! which glibc takes from the files below, and the auxiliary vector, which has no number of CPUs.

use super::Topology;
use crate::cpu::{CpuId, CpuSet};
use crate::{rseq, sys};
use std::fs;
use std::io::Read;

/// No file that is read here is longer up to the place that matters.
const LIMIT: u64 = 1 << 20;
/// Threads whose masks are looked at.
const THREADS: usize = 4096;

/// Looks for evidence that the machine has more than one CPU; returns the first source (file, affinity or cpuset) that
/// shows it, with the number of CPUs known by then. `None` if there is none. A synthetic topology is believed.
pub(crate) fn evidence_of_second_cpu(topology: &Topology) -> Option<(&'static str, usize)> {
    type Source<'a> = (&'static str, &'a dyn Fn() -> Option<CpuSet>);
    let files: [Source<'_>; 2] = [
        ("the topology's possible CPUs", &|| Some(topology.possible().clone())),
        ("the topology's present CPUs", &|| Some(topology.present().clone())),
    ];
    let kernel: [Source<'_>; 6] = [
        ("/proc/softirqs", &|| softirqs(&read("/proc/softirqs")?)),
        ("/proc/stat", &|| stat(&read("/proc/stat")?)),
        ("the affinity of a thread of this process", &threads),
        ("the affinity of process 1", &|| sys::affinity(1)),
        ("the CPU that this thread runs on", &current),
        ("the process's cpuset", &sys::allowed_by_cpuset),
    ];
    let asked = if topology.is_synthetic() { &[][..] } else { &kernel[..] };
    let mut known = CpuSet::new();
    files.iter().chain(asked).find_map(|(source, cpus)| {
        cpus().unwrap_or_default().iter().for_each(|cpu| known.insert(cpu));
        (known.len() > 1).then_some((*source, known.len()))
    })
}

fn read(path: &str) -> Option<String> {
    let mut text = Vec::new();
    fs::File::open(path).ok()?.take(LIMIT).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

fn numbered<'a>(words: impl Iterator<Item = &'a str>, prefix: &str) -> CpuSet {
    words.filter_map(|word| word.strip_prefix(prefix)?.parse().ok()).map(CpuId::new).collect()
}

/// Parses a column per possible CPU, headed by its name.
fn softirqs(text: &str) -> Option<CpuSet> {
    Some(numbered(text.lines().next()?.split_whitespace(), "CPU"))
}

/// Parses a line per CPU that is online, after one for all of them.
fn stat(text: &str) -> Option<CpuSet> {
    Some(numbered(text.lines().filter_map(|line| line.split(' ').next()), "cpu"))
}

/// Returns the CPUs that any thread of this process may run on.
fn threads() -> Option<CpuSet> {
    let listed = fs::read_dir("/proc/self/task").into_iter().flatten().flatten().take(THREADS);
    let numbers = listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Some([0].into_iter().chain(numbers).filter_map(sys::affinity).flat_map(cpus_of).collect())
}

fn cpus_of(cpus: CpuSet) -> Vec<CpuId> {
    cpus.iter().collect()
}

fn current() -> Option<CpuSet> {
    rseq::current_cpu().map(|cpu| [CpuId::new(cpu)].into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_lines_of_the_kernel_are_cpus() {
        let text = "                    CPU0       CPU2      \n          HI:          0          1\n";
        assert_eq!(softirqs(text).map(|cpus| cpus.to_string()).as_deref(), Some("0,2"));
        let text = "cpu  5 0 1\ncpu0 2 0 1\ncpu12 3 0 0\nintr 9\ncpufreq 1\n";
        assert_eq!(stat(text).map(|cpus| cpus.to_string()).as_deref(), Some("0,12"));
        assert_eq!(softirqs("").map(|cpus| cpus.len()), None);
        assert_eq!(stat("nothing here").map(|cpus| cpus.len()), Some(0));
    }

    #[test]
    fn one_source_with_two_cpus_is_enough() {
        let two = Topology::synthetic(2).build().expect("topology");
        assert_eq!(evidence_of_second_cpu(&two), Some(("the topology's possible CPUs", 2)));
        let one = Topology::synthetic(1).build().expect("topology");
        assert_eq!(evidence_of_second_cpu(&one), None);
    }

    #[test]
    #[cfg(all(target_os = "linux", not(feature = "portable")))]
    fn a_real_machine_with_several_cpus_is_known_by_each_source_that_is_there() {
        let real = Topology::current().expect("a topology");
        if real.possible().len() == 1 {
            println!("skipped: one CPU is possible here");
            return;
        }
        let read = |path| read(path).expect("a file of /proc");
        assert_eq!(softirqs(&read("/proc/softirqs")).as_ref(), Some(real.possible()));
        assert!(stat(&read("/proc/stat")).is_some_and(|cpus| cpus.is_subset(real.online())));
        assert!(threads().is_some_and(|cpus| !cpus.is_empty()));
    }
}
