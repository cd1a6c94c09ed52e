//! The modelled processor: this machine's caches, or those of the command line.

use clap::{Args, ValueEnum};
use std::fs;
use std::path::Path;
use tallyline_timing::{Level, Processor};

/// Command-line options of `replay --cost` that describe the modelled processor.
#[derive(Debug, Args)]
#[command(next_help_heading = "Model of costs")]
pub(crate) struct ProcessorArgs {
    /// Predict the cost of accesses, by type and field, on a model of caches and out-of-order cores
    ///
    /// This is a model, not a measurement: several levels of least-recently-used caches, a TLB, a stride
    /// prefetcher, branch prediction, and a window of instructions that execute when their operands are available.
    /// An access costs the time for which nothing retires: dependent misses cost their whole latency, independent
    /// ones within the window together as much as one. For x86-64 programs only.
    #[arg(long, conflicts_with_all = ["cache", "ways", "lines"])]
    pub(super) cost: bool,

    /// Levels of caches: size, ways and cycles of each, such as 48K:12:4,1M:16:14 [default: this machine's sizes]
    #[arg(long, value_name = "SIZE:WAYS:CYCLES", requires = "cost", value_delimiter = ',', value_parser = level)]
    level: Vec<Level>,

    /// Cycles that a load from memory takes
    #[arg(long, value_name = "CYCLES", requires = "cost", default_value_t = Processor::default().memory_latency)]
    memory: u32,

    /// The core whose width, buffers and TLB are modelled
    #[arg(long, value_name = "CORE", requires = "cost", value_enum, default_value_t = Core::Zen5)]
    core: Core,

    /// Cycles of a page-table walk, in addition to the reads of its last level
    #[arg(long, value_name = "CYCLES", requires = "cost", default_value_t = Processor::default().page_walk_latency)]
    page_walk: u32,

    /// Walk nested page tables, as in a virtual machine
    #[arg(long, requires = "cost")]
    nested_paging: bool,

    /// Predict indirect calls and jumps by their last target alone, as some virtual machines do
    #[arg(long, requires = "cost")]
    last_target: bool,

    /// Instructions in the reorder buffer, beyond which misses do not overlap [default: the core's]
    #[arg(long, value_name = "N", requires = "cost")]
    window: Option<u32>,

    /// Lines that the prefetcher runs ahead of a stride; 0 for no prefetcher
    #[arg(long, value_name = "LINES", requires = "cost", default_value_t = Processor::default().prefetch_distance)]
    prefetch: u32,

    /// The size of a page in bytes, a number with K, M or G
    #[arg(long, value_name = "SIZE", requires = "cost", default_value = "4K", value_parser = tallyline_support::parse_size)]
    page: u64,
}

/// A core by its vendor's documentation.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Core {
    /// AMD family 25, models up to 0x5f but 0x10 to 0x1f
    Zen3,
    /// AMD family 25, models 0x10 to 0x1f and from 0x60
    Zen4,
    /// AMD family 26
    Zen5,
}

impl ProcessorArgs {
    /// Returns the simulated processor that the options describe, with cache lines of `line` bytes.
    pub(super) fn processor(&self, line: u32) -> Processor {
        let mut processor = match self.core {
            Core::Zen3 => Processor::zen_3(),
            Core::Zen4 => Processor::zen_4(),
            Core::Zen5 => Processor::default(),
        };
        let levels = match self.level.is_empty() {
            true => of_machine(Path::new("/sys/devices/system/cpu/cpu0/cache"), &processor.levels),
            false => Some(self.level.clone()),
        };
        processor.line_size = line;
        processor.levels = levels.unwrap_or(processor.levels);
        processor.memory_latency = self.memory;
        processor.reorder_buffer = self.window.unwrap_or(processor.reorder_buffer);
        processor.page_walk_latency = self.page_walk;
        processor.nested_paging = self.nested_paging;
        processor.indirect_by_history = !self.last_target;
        processor.prefetch_distance = self.prefetch;
        processor.page_size = u32::try_from(self.page).unwrap_or(u32::MAX);
        processor
    }
}

/// Hardware threads that share a last level of AMD's families 25 and 26: eight cores of two.
const THREADS_OF_LAST_LEVEL: u64 = 16;

/// Returns simulation parameters for this machine's processor: its real caches with cache lines of `line` bytes,
/// and the most similar known core.
pub(crate) fn of_host(line: u32) -> Processor {
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    of_cpuinfo(
        &about,
        of_machine(Path::new("/sys/devices/system/cpu/cpu0/cache"), &Processor::default().levels),
        line,
    )
}

/// Returns the parameters of the processor that a text in the form of `/proc/cpuinfo` describes.
///
/// A virtual machine sees the size of a whole last level, but has some of the hardware threads that share it: on a Zen 3
/// with 32 MB, a guest of two CPUs gets a load from 2 MB after 49 cycles of the time stamp counter, from 4 MB after 140
/// and from 8 MB after 302, from 32 MB after 396.
fn of_cpuinfo(about: &str, levels: Option<Vec<Level>>, line: u32) -> Processor {
    let number = |name: &str| -> Option<u32> {
        let line =
            about.lines().find(|line| line.split(':').next().is_some_and(|word| word.trim() == name))?;
        line.split(':').nth(1)?.trim().parse().ok()
    };
    let mut processor = match (number("cpu family"), number("model")) {
        (Some(25), Some(0x10..=0x1f | 0x60..)) => Processor::zen_4(),
        (Some(25), _) => Processor::zen_3(),
        (Some(26), _) => Processor::default(),
        _ => Processor::unmeasured(),
    };
    let levels = levels.unwrap_or(processor.levels.clone());
    let cpus = about.lines().filter(|line| line.starts_with("processor")).count() as u64;
    let is_guest = about
        .lines()
        .filter(|line| line.starts_with("flags"))
        .any(|line| line.split_whitespace().any(|flag| flag == "hypervisor"));
    let is_known = matches!(number("cpu family"), Some(25 | 26));
    let share = match levels.last() {
        Some(last) if is_guest && is_known && (1..THREADS_OF_LAST_LEVEL).contains(&cpus) => {
            last.size / THREADS_OF_LAST_LEVEL * cpus
        }
        _ => u64::MAX,
    };
    (processor.line_size, processor.levels, processor.last_level_share) = (line, levels, share);
    processor
}

/// Parses a cache level of the form `SIZE:WAYS:CYCLES`.
fn level(text: &str) -> Result<Level, String> {
    let expected = || format!("invalid level `{text}` (expected SIZE:WAYS:CYCLES, as 48K:12:4)");
    let mut parts = text.split(':');
    let (Some(size), Some(ways), Some(latency), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(expected());
    };
    Ok(Level {
        size: tallyline_support::parse_size(size).map_err(|_| expected())?,
        ways: ways.parse().map_err(|_| expected())?,
        latency: latency.parse().map_err(|_| expected())?,
    })
}

/// Reads the sizes and ways of a machine's data caches from sysfs; latencies are those of `stated`. None where the
/// machine does not say.
fn of_machine(folder: &Path, stated: &[Level]) -> Option<Vec<Level>> {
    let mut found: Vec<(u32, Level)> = Vec::new();
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let read = |name| Some(fs::read_to_string(entry.path().join(name)).ok()?.trim().to_owned());
        let Some(number) = read("level").and_then(|level| level.parse::<u32>().ok()) else { continue };
        if read("type")? == "Instruction" {
            continue;
        }
        let size = tallyline_support::parse_size(&read("size")?).ok()?;
        let ways = read("ways_of_associativity")?.parse().ok()?;
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        let latency = stated.get(index)?.latency;
        found.push((number, Level { size, ways, latency }));
    }
    found.sort_by_key(|(number, _)| *number);
    found.dedup_by_key(|(number, _)| *number);
    (found.len() > 1).then(|| found.into_iter().map(|(_, level)| level).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_size_ways_and_cycles() {
        assert_eq!(level("48K:12:4"), Ok(Level { size: 48 << 10, ways: 12, latency: 4 }));
        for bad in ["", "48K", "48K:12", "48K:12:4:1", "x:1:1", "1K:-1:1"] {
            assert!(level(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_guest_has_a_share_of_the_last_level() {
        let share = |family: u32, cpus: usize, flags: &str| {
            let cpu = format!("processor\t: 0\ncpu family\t: {family}\nmodel\t: 1\nflags\t: fpu {flags}\n\n");
            of_cpuinfo(&cpu.repeat(cpus), None, 64).last_level_share
        };
        assert_eq!(share(25, 2, "hypervisor"), 4 << 20);
        assert_eq!(share(25, 32, "hypervisor"), u64::MAX, "it has whole ones");
        assert_eq!(share(25, 2, "sse"), u64::MAX, "nobody else is there");
        assert_eq!(share(6, 2, "hypervisor"), u64::MAX, "how many share it is not known");
    }

    #[test]
    fn only_a_processor_of_family_26_is_taken_for_zen_5() {
        let of = |family: u32| of_cpuinfo(&format!("cpu family\t: {family}\nmodel\t: 2\n"), None, 64);
        assert_eq!([26, 25, 6].map(of), [Processor::default(), Processor::zen_3(), Processor::unmeasured()]);
        assert_ne!(Processor::default(), Processor::unmeasured());
    }

    #[test]
    fn levels_come_from_sysfs_in_their_order() {
        let folder = std::env::temp_dir().join(format!("tallyline-caches-{}", std::process::id()));
        let caches = [("index3", "3", "Unified", "105M", "15"), ("index0", "1", "Data", "48K", "12")];
        let others = [("index1", "1", "Instruction", "32K", "8"), ("index2", "2", "Unified", "2048K", "16")];
        for (name, level, kind, size, ways) in caches.into_iter().chain(others) {
            let index = folder.join(name);
            fs::create_dir_all(&index).expect("a folder");
            let write = |name, text| fs::write(index.join(name), text).expect("a file");
            write("level", level);
            write("type", kind);
            write("size", size);
            write("ways_of_associativity", ways);
        }
        let found = of_machine(&folder, &Processor::default().levels).expect("three levels");
        let sizes: Vec<_> = found.iter().map(|level| (level.size, level.ways, level.latency)).collect();
        assert_eq!(sizes, [(48 << 10, 12, 4), (2 << 20, 16, 14), (105 << 20, 15, 50)]);
        fs::remove_dir_all(&folder).expect("the folder is ours");
        assert_eq!(of_machine(&folder, &Processor::default().levels), None);
    }
}
