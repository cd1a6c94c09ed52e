use super::*;
use std::collections::{HashMap, HashSet};

const LINE: u64 = 64;

/// Returns a machine whose cores have caches of 64 lines in 4 ways.
fn machine(cores: u16) -> Machine {
    Machine::new(Geometry::new(cores, LINE as u32, 64 * LINE, 4).expect("a machine"))
}

fn run(cores: u16, accesses: impl IntoIterator<Item = (u16, u64, u8, bool)>) -> CoherenceSummary {
    let mut machine = machine(cores);
    for (core, address, size, store) in accesses {
        machine.access(core, address, size, store, u32::from(core)).expect("few lines");
    }
    machine.finish()
}

#[test]
fn lines_of_ones_own_miss_once() {
    let summary = run(2, (0..1000).map(|at| (at % 2, u64::from(at % 2) * LINE, 8, true)));
    assert_eq!((summary.total.hits, summary.total.misses(), summary.total.lines.cold), (998, 2, 2));
    assert_eq!(summary.total.lines.invalidations, 0);
}

#[test]
fn a_word_that_two_cores_write_by_turns_misses_always_and_truly() {
    let writes = 1000;
    let summary = run(2, (0..writes).map(|at| (at % 2, 0x1000, 8, true)));
    let lines = summary.total.lines;
    assert_eq!((lines.cold, lines.true_sharing, lines.false_sharing), (2, u64::from(writes) - 2, 0));
    assert_eq!(lines.invalidations, u64::from(writes) - 1);
    assert_eq!(lines.hitm, u64::from(writes) - 1);
    assert_eq!(summary.total.hits, 0);
}

#[test]
fn two_words_of_a_line_that_two_cores_write_miss_always_and_falsely() {
    let summary = run(2, (0..1000).map(|at| (at % 2, 0x1000 + u64::from(at % 2) * 8, 8, true)));
    let lines = summary.total.lines;
    assert_eq!((lines.cold, lines.true_sharing, lines.false_sharing), (2, 0, 998));
    let of = |core: u32| summary.conflicts.iter().find(|(conflict, _)| conflict.victim == core);
    let (conflict, count) = of(1).expect("core 1 lost the line");
    assert_eq!((conflict.victim_offset, conflict.culprit, conflict.culprit_offset), (8, 0, 0));
    assert!(!conflict.is_true);
    assert_eq!(*count, 499);
}

#[test]
fn what_all_only_read_is_fetched_once_by_each() {
    let summary = run(16, (0..16_000).map(|at| (at % 16, 0x1000, 8, false)));
    assert_eq!((summary.total.misses(), summary.total.hits), (16, 16_000 - 16));
    assert_eq!(summary.total.lines.cold, 16);
    assert_eq!((summary.total.lines.invalidations, summary.total.upgrades), (0, 0));
}

#[test]
fn more_lines_than_the_cache_has_miss_always_and_as_many_as_it_has_only_once() {
    let rounds = 10;
    let walk = |lines: u64| (0..rounds).flat_map(move |_| (0..lines).map(|line| (0, line * LINE, 8, false)));
    let summary = run(1, walk(64));
    assert_eq!((summary.total.lines.cold, summary.total.lines.replaced), (64, 0));
    assert_eq!(summary.total.hits, 64 * (rounds - 1));
    let summary = run(1, walk(128));
    assert_eq!((summary.total.lines.cold, summary.total.lines.replaced), (128, 128 * (rounds - 1)));
    assert_eq!(summary.total.hits, 0);
}

#[test]
fn five_lines_of_one_set_of_four_miss_always() {
    let sets = 16;
    let summary = run(1, (0..50).map(|at| (0, at % 5 * sets * LINE, 8, true)));
    assert_eq!((summary.total.lines.cold, summary.total.lines.replaced, summary.total.hits), (5, 45, 0));
    assert_eq!(summary.total.writebacks, 46, "every replaced line was modified; four are still there");
}

#[test]
fn a_write_to_what_another_reads_is_a_hit_that_takes_it_away() {
    let summary =
        run(2, [(0, 0, 8, false), (1, 0, 8, false), (0, 8, 8, true), (1, 0, 8, false), (1, 8, 8, false)]);
    let total = summary.total;
    assert_eq!((total.hits, total.upgrades, total.lines.invalidations), (2, 1, 1));
    assert_eq!((total.lines.cold, total.lines.false_sharing, total.lines.true_sharing), (2, 1, 0));
    assert_eq!(total.writebacks, 1, "the reader gets it, and memory does");
}

#[test]
fn a_first_read_has_the_line_alone_and_writes_it_without_asking() {
    let summary = run(2, [(0, 0, 8, false), (0, 0, 8, true)]);
    assert_eq!((summary.total.hits, summary.total.upgrades), (1, 0));
}

#[test]
fn what_was_written_while_the_line_was_away_decides_what_kind_of_sharing_it_is() {
    // core 0 loses the line to a write of byte 8, then core 1 also writes byte 0
    let first = [(0, 0, 1, false), (1, 8, 1, true), (1, 0, 1, true), (0, 0, 1, false)];
    assert_eq!(run(2, first).total.lines.true_sharing, 1);
    // the same by a third core
    let third = [(0, 0, 1, false), (1, 8, 1, true), (2, 0, 1, true), (0, 0, 1, false)];
    let lines = run(3, third).total.lines;
    assert_eq!((lines.true_sharing, lines.cold), (1, 3));
    // only other bytes
    let other = [(0, 0, 1, false), (1, 8, 1, true), (2, 9, 1, true), (0, 0, 1, false)];
    assert_eq!(run(3, other).total.lines.false_sharing, 1);
}

#[test]
fn an_access_across_lines_is_one_to_each() {
    let summary = run(1, [(0, LINE - 4, 8, true), (0, LINE, 4, false), (0, u64::MAX, 8, false)]);
    assert_eq!((summary.total.accesses, summary.total.lines.cold, summary.total.hits), (4, 3, 1));
}

/// A generator of numbers, the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The protocol in a few lines, for caches that never replace.
#[derive(Default)]
struct Plain {
    holders: HashMap<u64, HashSet<u16>>,
    modified: HashMap<u64, u16>,
    ever: HashSet<(u64, u16)>,
    hits: u64,
    cold: u64,
    sharing: u64,
    invalidations: u64,
}

impl Plain {
    fn access(&mut self, core: u16, line: u64, store: bool) {
        let holders = self.holders.entry(line).or_default();
        if holders.contains(&core) {
            self.hits += 1;
        } else if self.ever.insert((line, core)) {
            self.cold += 1;
        } else {
            self.sharing += 1;
        }
        if store {
            self.invalidations += holders.iter().filter(|holder| **holder != core).count() as u64;
            holders.clear();
            self.modified.insert(line, core);
        } else if self.modified.get(&line) != Some(&core) {
            self.modified.remove(&line);
        }
        holders.insert(core);
    }
}

#[test]
fn random_accesses_count_as_in_the_plain_protocol() {
    let mut numbers = Numbers(1);
    let (mut machine, mut plain) = (machine(5), Plain::default());
    for _ in 0..100_000 {
        let (core, line) = (numbers.below(5) as u16, numbers.below(60));
        let (offset, store) = (numbers.below(57), numbers.below(3) == 0);
        machine.access(core, line * LINE + offset, 8, store, 0).expect("few lines");
        plain.access(core, line, store);
    }
    let total = machine.finish().total;
    assert_eq!(
        (
            total.hits,
            total.lines.cold,
            total.lines.sharing_misses(),
            total.lines.invalidations,
            total.lines.replaced
        ),
        (plain.hits, plain.cold, plain.sharing, plain.invalidations, 0)
    );
    assert!(total.lines.true_sharing > 0 && total.lines.false_sharing > 0);
}

#[test]
fn a_line_has_one_owner_and_nothing_is_lost_in_the_counts() {
    let mut numbers = Numbers(2);
    let mut machine = machine(7);
    for step in 0..60_000_u64 {
        let (core, instruction) = (numbers.below(7) as u16, numbers.below(20) as u32);
        let address = numbers.below(300 * LINE);
        machine
            .access(core, address, 1 << numbers.below(5), numbers.below(2) == 0, instruction)
            .expect("few");
        if step % 1000 == 0 {
            one_owner(&machine);
        }
    }
    let summary = machine.finish();
    let total = summary.total;
    assert_eq!(total.accesses, total.hits + total.misses());
    assert_eq!(total.accesses, total.lines.reads + total.lines.writes);
    let sum = |counts: &mut dyn Iterator<Item = LineCounts>| {
        counts.fold((0, 0, 0), |(reads, misses, gone), line| {
            (
                reads + line.reads,
                misses + line.cold + line.replaced + line.sharing_misses(),
                gone + line.invalidations,
            )
        })
    };
    let expected = (total.lines.reads, total.misses(), total.lines.invalidations);
    assert_eq!(sum(&mut summary.lines.iter().map(|(_, counts)| *counts)), expected);
    assert_eq!(sum(&mut summary.instructions.iter().map(|place| place.lines)), expected);
    let hits: u64 = summary.instructions.iter().map(|place| place.hits).sum();
    assert_eq!(hits, total.hits);
    let conflicts: u64 = summary.conflicts.iter().map(|(_, count)| count).sum();
    assert_eq!(conflicts + summary.other_conflicts, total.lines.sharing_misses());
    assert!(total.lines.replaced > 0 && total.lines.sharing_misses() > 0);
}

fn one_owner(machine: &Machine) {
    let mut holders: HashMap<u64, (usize, usize)> = HashMap::new();
    for way in machine.caches.iter().flat_map(|cache| cache.lines()) {
        let (all, owners) = holders.entry(way.line).or_default();
        *all += 1;
        *owners += usize::from(matches!(way.state, State::Modified | State::Exclusive));
    }
    for (line, (all, owners)) in holders {
        assert!(owners == 0 || (owners, all) == (1, 1), "line {line}: {owners} owners of {all} copies");
    }
}
