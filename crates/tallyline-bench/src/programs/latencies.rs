//! The latencies of this machine's caches and memory, in cycles, and what of the last level is to be had.
//!
//! A chase through lines in random order within blocks of pages that the TLB holds; a cycle is a quarter of a
//! multiplication and an exclusive or, each of which waits for the last.

use anyhow::{Result, anyhow};
use std::fs;
use std::hint::black_box;
use std::time::Instant;

/// Bytes of a line.
const LINE: usize = 64;

/// Lines whose order is random among themselves.
const BLOCK: usize = 64 * 4096 / LINE;

/// Steps between two looks at the clock: so few that most are not interrupted, whatever else runs.
const STEPS: usize = 2000;

/// Looks at the clock, of which the median counts.
const ROUNDS: usize = 201;

/// Measured latencies, and the size of each level.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Latencies {
    /// The size in bytes, the ways and the latency in cycles of each cache level.
    levels: Vec<(u64, u32, u32)>,
    /// The latency of memory in cycles.
    pub(super) memory: u32,
    /// Cycles of a walk of the page tables beside the reads of their last level.
    walk: u32,
    /// `true` in a virtual machine.
    is_nested: bool,
    /// `true` if indirect calls are predicted by their last target alone.
    by_last_target: bool,
    core: Option<&'static str>,
}

impl Latencies {
    /// Returns the options of `replay --cost`.
    pub(super) fn options(&self) -> Vec<String> {
        let numbers = [("--memory", self.memory), ("--page-walk", self.walk)];
        let mut options = vec!["--level".to_owned(), self.levels()];
        options.extend(numbers.iter().flat_map(|(name, number)| [(*name).to_owned(), number.to_string()]));
        options.extend(self.is_nested.then(|| "--nested-paging".to_owned()));
        options.extend(self.by_last_target.then(|| "--last-target".to_owned()));
        options.extend(self.core.into_iter().flat_map(|core| ["--core".to_owned(), core.to_owned()]));
        options
    }

    /// Returns the levels as `replay --cost --level` takes them.
    pub(super) fn levels(&self) -> String {
        let level = |(size, ways, cycles): &(u64, u32, u32)| format!("{}K:{ways}:{cycles}", size >> 10);
        self.levels.iter().map(level).collect::<Vec<_>>().join(",")
    }
}

/// Measures.
///
/// # Errors
/// If the machine does not say what caches it has.
pub(super) fn measure() -> Result<Latencies> {
    let cycle = cycle();
    let caches = caches().ok_or_else(|| anyhow!("this machine does not say what caches it has"))?;
    let cycles = |bytes| {
        let Latency { hit, median } = chase(bytes);
        Latency { hit: hit / cycle, median: median / cycle }
    };
    let mut found = from(&caches, cycles);
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    found.is_nested = about.contains(" hypervisor");
    found.core = core(&about);
    found.by_last_target = is_by_last_target();
    // each walk reads the last level of the tables, which the second level of the caches has, and a guest's also the
    // host's
    let reads = if found.is_nested { 2.0 } else { 1.0 };
    let read = found.levels.get(1).map_or(0.0, |(.., latency)| f64::from(*latency));
    let walk = (walk() / cycle - reads * read - SECOND_TLB).max(0.0);
    found.walk = walk.round() as u32;
    Ok(found)
}

/// Returns `true` if an interpreter's dispatch is mispredicted although its program repeats: that takes more than
/// halfway from the time of the same operations in order to their time in random order. It is a jump, as in
/// interpreters: on Zen 4 in a virtual machine calls by pointers whose targets alternate are mispredicted, and jumps
/// are not.
fn is_by_last_target() -> bool {
    const PROGRAM: [u8; 16] = [0, 1, 4, 2, 7, 5, 3, 0, 6, 2, 1, 7, 4, 3, 5, 6];
    const OPERATIONS: usize = 4096;
    let time = |operation: &dyn Fn(usize) -> u8| {
        let operations: Vec<u8> = (0..OPERATIONS).map(operation).collect();
        let run = |_| {
            let start = Instant::now();
            black_box(interpret(&operations, black_box(7)));
            start.elapsed().as_nanos() as f64
        };
        median((0..ROUNDS).map(run).collect())
    };
    let mut random: Vec<usize> = (0..OPERATIONS).collect();
    shuffle(&mut random, &mut 88_172_645_463_325_252);
    let in_order = time(&|at| (at * 8 / OPERATIONS) as u8);
    let repeated = time(&|at| PROGRAM[at % PROGRAM.len()]);
    let at_random = time(&|at| PROGRAM[random[at] % PROGRAM.len()]);
    repeated > (in_order + at_random) / 2.0
}

/// Runs operations one after the other, by a jump through a table.
#[inline(never)]
fn interpret(operations: &[u8], mut value: u64) -> u64 {
    for operation in operations {
        value = match operation & 7 {
            0 => value.wrapping_add(3),
            1 => value ^ value >> 7,
            2 => value.rotate_left(7),
            3 => value.wrapping_sub(value << 3),
            4 => value.wrapping_mul(7),
            5 => !value,
            6 => value.swap_bytes(),
            _ => value.reverse_bits(),
        };
    }
    value
}

/// Cycles that the second TLB takes in the model.
const SECOND_TLB: f64 = 7.0;

/// Pages of the chase that misses the TLB: more than the second one holds, and few enough that their tables are in
/// the second level of the caches.
const PAGES: usize = 8192;

/// Returns the nanoseconds that a load takes longer where its page is in no TLB: a line of each of so many pages
/// against as many lines one behind the other.
fn walk() -> f64 {
    let words = LINE / size_of::<usize>();
    let mut memory = vec![0_usize; PAGES * 4096 / size_of::<usize>()];
    let mut order: Vec<usize> = (0..PAGES).collect();
    shuffle(&mut order, &mut 88_172_645_463_325_252);
    let lines = 4096 / LINE;
    // a line of its own set in each page
    let spread = |index: usize| (index * lines + index % lines) * words;
    let mut time = |place: &dyn Fn(usize) -> usize| {
        for (at, index) in order.iter().enumerate() {
            memory[place(*index)] = place(order[(at + 1) % PAGES]);
        }
        follow(&memory, place(order[0]), PAGES).median
    };
    let far = time(&spread);
    far - time(&|index| index * words)
}

/// Returns the name that `replay --cost` has for this machine's core.
fn core(about: &str) -> Option<&'static str> {
    let value = |name: &str| {
        let line = about.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        line.split(':').nth(1).map(str::trim)
    };
    let (family, model): (u32, u32) = (value("cpu family")?.parse().ok()?, value("model")?.parse().ok()?);
    match (value("vendor_id")?, family, model) {
        ("AuthenticAMD", 25, 0..=0x0f | 0x20..=0x5f) => Some("zen3"),
        ("AuthenticAMD", 25, _) => Some("zen4"),
        ("AuthenticAMD", 26, _) => Some("zen5"),
        _ => None,
    }
}

/// The latency of the loads of a chase.
#[derive(Clone, Copy, Debug)]
struct Latency {
    /// The shortest tenth of the spans: those in which nothing else takes lines away.
    hit: f64,
    median: f64,
}

/// Puts together what chases through some bytes took.
fn from(caches: &[(u64, u32)], mut cycles: impl FnMut(u64) -> Latency) -> Latencies {
    let largest = caches.last().map_or(0, |(size, _)| *size);
    let memory = cycles((largest * 2).max(128 << 20)).median;
    let mut levels = Vec::with_capacity(caches.len());
    let mut inner = 0;
    for (index, (size, ways)) in caches.iter().enumerate() {
        let is_last = index > 0 && index + 1 == caches.len();
        // the median of a last level that others share has misses in it
        let latency = cycles(if is_last { inner * 3 / 2 } else { size / 2 }.max(inner + inner / 2)).hit;
        // and only a part of it may be left, as in virtual machines; a chase keeps its lines better than a program
        // that is slower to come back to them, so this is rounded down
        let mut left = *size;
        if is_last {
            let limit = (latency * memory).sqrt();
            while left > inner * 2 && cycles(left * 3 / 4).median > limit {
                left /= 2;
            }
        }
        levels.push((left, *ways, latency.round().max(1.0) as u32));
        inner = *size;
    }
    // noise must not turn the order around
    let mut least = 1;
    for (.., latency) in &mut levels {
        *latency = (*latency).max(least);
        least = *latency;
    }
    Latencies {
        levels,
        memory: (memory.round() as u32).max(least),
        walk: 0,
        is_nested: false,
        by_last_target: false,
        core: None,
    }
}

/// Returns nanoseconds of a cycle.
fn cycle() -> f64 {
    const CHAIN: u64 = 20_000;
    const CYCLES: f64 = 4.0;
    let run = |_| {
        let (start, mut value) = (Instant::now(), black_box(1_u64));
        for step in 0..CHAIN {
            value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ step;
        }
        black_box(value);
        start.elapsed().as_nanos() as f64 / (CHAIN as f64 * CYCLES)
    };
    median((0..ROUNDS).map(run).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(1.0)
}

/// Returns the nanoseconds of a load from so many bytes.
fn chase(bytes: u64) -> Latency {
    let lines = (usize::try_from(bytes).unwrap_or(usize::MAX) / LINE).max(2);
    let words = LINE / size_of::<usize>();
    let mut memory = vec![0_usize; lines * words];
    let mut order: Vec<usize> = (0..lines).collect();
    let mut state = 88_172_645_463_325_252_u64;
    for block in order.chunks_mut(BLOCK) {
        shuffle(block, &mut state);
    }
    for (at, line) in order.iter().enumerate() {
        memory[line * words] = order[(at + 1) % lines] * words;
    }
    follow(&memory, 0, lines)
}

/// Puts a list in random order (xorshift).
fn shuffle(list: &mut [usize], state: &mut u64) {
    for last in (1..list.len()).rev() {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        list.swap(last, (*state % (last as u64 + 1)) as usize);
    }
}

/// Times the steps of a chase whose places hold the next one each.
fn follow(memory: &[usize], start: usize, lines: usize) -> Latency {
    let mut at = start;
    let mut walk = |steps: usize| {
        let start = Instant::now();
        for _ in 0..steps {
            at = memory[at];
        }
        black_box(at);
        start.elapsed().as_nanos() as f64 / steps as f64
    };
    // whatever fits is there behind this
    walk(lines);
    let mut spans: Vec<f64> = (0..ROUNDS).map(|_| walk(STEPS)).collect();
    spans.sort_by(f64::total_cmp);
    Latency { hit: spans[ROUNDS / 10], median: spans[ROUNDS / 2] }
}

/// Sizes and ways of the data caches, the closest first.
fn caches() -> Option<Vec<(u64, u32)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?.flatten() {
        let read = |name: &str| fs::read_to_string(entry.path().join(name)).ok();
        let Some(level) = read("level").and_then(|level| level.trim().parse::<u32>().ok()) else { continue };
        if read("type")?.trim() != "Instruction" {
            let size = tallyline_support::parse_size(read("size")?.trim()).ok()?;
            found.push((level, (size, read("ways_of_associativity")?.trim().parse().ok()?)));
        }
    }
    found.sort_unstable();
    (!found.is_empty()).then(|| found.into_iter().map(|(_, cache)| cache).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a machine of which only 2 MB of the last level are left.
    fn cycles(bytes: u64) -> Latency {
        exact(match bytes {
            ..=49_152 => 4.0,
            49_153..=1_048_576 => 14.0,
            1_048_577..=2_500_000 => 50.0,
            _ => 450.0,
        })
    }

    fn exact(cycles: f64) -> Latency {
        Latency { hit: cycles, median: cycles }
    }

    #[test]
    fn a_last_level_that_others_use_is_smaller() {
        let caches = [(48 << 10, 12), (1 << 20, 16), (32 << 20, 16)];
        let found = from(&caches, cycles);
        assert_eq!(found.levels(), "48K:12:4,1024K:16:14,2048K:16:50");
        assert_eq!(found.memory, 450);
        let all =
            from(&caches, |bytes| if bytes > 40 << 20 { exact(450.0) } else { cycles(bytes.min(2_000_000)) });
        assert_eq!(all.levels(), "48K:12:4,1024K:16:14,32768K:16:50");
    }

    #[test]
    fn misses_that_others_cause_are_no_part_of_a_level_s_latency() {
        let caches = [(48 << 10, 12), (1 << 20, 16), (32 << 20, 16)];
        let with_misses = |bytes| match cycles(bytes) {
            Latency { hit: 50.0, .. } => Latency { hit: 50.0, median: 97.0 },
            other => other,
        };
        assert_eq!(from(&caches, with_misses).levels(), "48K:12:4,1024K:16:14,2048K:16:50");
    }

    #[test]
    fn cores_are_known_by_family_and_model() {
        let about = |vendor: &str, family: u32, model: u32| {
            format!("processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n")
        };
        let amd = |family, model| core(&about("AuthenticAMD", family, model));
        for (model, name) in
            [(1, "zen3"), (0x21, "zen3"), (0x50, "zen3"), (0x11, "zen4"), (0x61, "zen4"), (0xa0, "zen4")]
        {
            assert_eq!(amd(25, model), Some(name), "{model:#x}");
        }
        assert_eq!((amd(26, 2), amd(23, 49)), (Some("zen5"), None));
        assert_eq!((core(&about("GenuineIntel", 6, 207)), core("")), (None, None));
    }

    #[test]
    fn noise_keeps_the_levels_in_order() {
        let found =
            from(&[(48 << 10, 12), (1 << 20, 16)], |bytes| exact(if bytes < 50_000 { 20.0 } else { 10.0 }));
        assert_eq!((found.levels().as_str(), found.memory), ("48K:12:20,1024K:16:20", 20));
    }
}
