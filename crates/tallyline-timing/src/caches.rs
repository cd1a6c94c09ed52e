//! The memory side: levels of caches, lines that are under way, a TLB, a stride prefetcher.

use super::calendar::{BusSchedule, CYCLE, MissBuffers, Time};
use super::processor::Processor;
use rustc_hash::FxHashSet;
use tallyline_trace::coherence::Geometry;
use tallyline_trace::coherence::cache::Cache;

/// Lines that are remembered as under way.
const UNDER_WAY: usize = 1 << 12;

/// Instructions whose strides are followed.
const STRIDES: usize = 1 << 10;

/// Accesses with the same stride in a row before lines are fetched ahead.
const CONFIDENT: u8 = 2;

/// Steps of several lines that are fetched ahead.
const STEPS: i64 = 8;

/// Cycles that the second TLB takes.
const SECOND_TLB: Time = 7 * CYCLE;

/// The lines of page tables, apart from those of the program.
const TABLES: u64 = 1 << 58;

/// Lines of the tables from a guest's addresses to the host's, which no program can have.
const NESTED_TABLES: u64 = 1 << 57;

/// Pages of which is remembered that they were touched; the later ones count as touched before.
const PAGES_LIMIT: usize = 1 << 24;

/// Bytes of a page table's entry.
const ENTRY: u64 = 8;

/// The level that answered an access: 0 is the closest cache, the number of levels is memory.
pub(super) type LevelIndex = u8;

/// The outcome of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AccessResult {
    /// The time of the data.
    pub(super) at: Time,
    /// The level that had it; of a line that was under way already the first.
    pub(super) source: LevelIndex,
    /// True if the page was in neither TLB.
    pub(super) walked: bool,
}

/// An entry of the stride prefetcher: an instruction's last address and its stride.
#[derive(Clone, Copy, Debug, Default)]
struct StrideEntry {
    instruction: u32,
    last: u64,
    step: i64,
    seen: u8,
}

/// The private caches of one core.
#[derive(Clone, Debug)]
struct PrivateCaches {
    levels: Vec<Cache>,
    tlb: [Cache; 2],
    strides: Vec<StrideEntry>,
    // lines of the first level that are on their way: number and time
    under_way: Vec<(u64, Time)>,
    // misses of the first level
    misses: MissBuffers,
    // the lines that the last level and memory send it
    last_level: BusSchedule,
    memory: BusSchedule,
}

/// Caches of all cores.
#[derive(Clone, Debug)]
pub(super) struct Caches {
    processor: Processor,
    geometries: Vec<Geometry>,
    tlb: [Geometry; 2],
    cores: Vec<PrivateCaches>,
    shared: Cache,
    // pages that the program has touched
    pages: FxHashSet<u64>,
    // a store takes the line from the other cores
    coherent: bool,
}

impl Caches {
    pub(super) fn new(processor: &Processor, cores: u16) -> Result<Self, String> {
        let geometries = processor.geometries(cores)?;
        let tlb = |pages: u32| {
            let ways = [16, 12, 8].into_iter().find(|ways| pages.is_multiple_of(*ways)).unwrap_or(1);
            Geometry::with_any_sets(cores, 64, u64::from(pages) * 64, ways)
        };
        let tlb = [tlb(processor.tlb_entries[0])?, tlb(processor.tlb_entries[1])?];
        let private = PrivateCaches {
            levels: vec![Cache::default(); geometries.len() - 1],
            tlb: [Cache::default(), Cache::default()],
            strides: vec![StrideEntry::default(); STRIDES],
            under_way: vec![(u64::MAX, 0); UNDER_WAY],
            misses: MissBuffers::new(processor.miss_buffers),
            last_level: BusSchedule::new(Time::from(processor.last_level_interval) * CYCLE),
            memory: BusSchedule::new(Time::from(processor.memory_interval) * CYCLE),
        };
        Ok(Self {
            processor: processor.clone(),
            geometries,
            tlb,
            cores: vec![private; usize::from(cores)],
            shared: Cache::default(),
            pages: FxHashSet::default(),
            coherent: true,
        })
    }

    /// Leaves lines in the caches of cores that others take them from: who owns them is known elsewhere, by time and not
    /// by the order of the calls.
    pub(super) fn leave_to_owners(&mut self) {
        self.coherent = false;
    }

    /// Asks for an address at a time. Loads and stores bring the line alike.
    pub(super) fn access(
        &mut self,
        core: usize,
        instruction: u32,
        address: u64,
        store: bool,
        now: Time,
    ) -> AccessResult {
        let (start, walked) = self.translate(core, address, now);
        let line = address / u64::from(self.processor.line_size);
        let (at, source) = self.line(core, line, start);
        if store && self.coherent && self.cores.len() > 1 {
            self.take_from_others(core, line);
        }
        if self.processor.prefetch_distance > 0 {
            self.prefetch(core, instruction, address, start);
        }
        AccessResult { at, source, walked }
    }

    /// Returns when the address is translated, and whether page tables were read for it.
    fn translate(&mut self, core: usize, address: u64, now: Time) -> (Time, bool) {
        let page = address / u64::from(self.processor.page_size);
        let private = &mut self.cores[core];
        if private.tlb[0].touch(self.tlb[0], page) {
            return (now, false);
        }
        private.tlb[0].fill(self.tlb[0], page);
        if private.tlb[1].touch(self.tlb[1], page) {
            return (now + SECOND_TLB, false);
        }
        private.tlb[1].fill(self.tlb[1], page);
        if self.processor.zeroed_pages_cached && self.pages.len() < PAGES_LIMIT && self.pages.insert(page) {
            self.clear(core, page);
        }
        // the upper levels of the table are in the processor
        let entry = page.wrapping_mul(ENTRY) / u64::from(self.processor.line_size);
        let walk = Time::from(self.processor.page_walk_latency) * CYCLE;
        let (mut at, _) = self.line(core, TABLES + entry, now + SECOND_TLB + walk);
        if self.processor.nested_paging {
            // pages that a guest gets one after the other are mostly neighbours in its memory, too
            (at, _) = self.line(core, NESTED_TABLES + entry, at);
        }
        (at, true)
    }

    /// Brings the lines of a page to the level behind the first: the kernel clears a page when it is touched for
    /// the first time, and no miss comes from it. On Zen 5 by Linux 6.18 a load from a fresh page takes 13 cycles
    /// of the time stamp counter, from the same pages later 357.
    fn clear(&mut self, core: usize, page: u64) {
        let lines = u64::from(self.processor.page_size / self.processor.line_size);
        for line in page.saturating_mul(lines)..page.saturating_add(1).saturating_mul(lines) {
            self.find(core, line, 1);
        }
    }

    /// Brings a line to a core's first level; when it is there, and where it was.
    fn line(&mut self, core: usize, line: u64, now: Time) -> (Time, LevelIndex) {
        let slot = line as usize % UNDER_WAY;
        let source = self.find(core, line, 0);
        let latency = self.latency(source);
        let private = &mut self.cores[core];
        let (number, arrives) = private.under_way[slot];
        let arrives = if number == line { arrives } else { 0 };
        if source == 0 {
            // it may still be on its way
            return ((now + latency.unwrap_or(CYCLE)).max(arrives), 0);
        }
        // as many misses at once as the core has buffers
        let now = private.misses.free_from(now);
        let at = match latency {
            Some(latency) => (self.leaves(core, source, now) + latency).max(arrives),
            None => self.fetch_from_memory(core, now),
        };
        let private = &mut self.cores[core];
        private.under_way[slot] = (line, at);
        private.misses.take(now, at);
        (at, source as LevelIndex)
    }

    /// Returns the level that has a line, the number of levels for memory, and puts it into all closer ones from
    /// `first` on.
    fn find(&mut self, core: usize, line: u64, first: usize) -> usize {
        let private = &mut self.cores[core];
        let last = self.geometries.len() - 1;
        let mut source = last + 1;
        let physical = physical(line, u64::from(self.processor.page_size / self.processor.line_size));
        let number = |level| if level == 0 { line } else { physical };
        for (level, cache) in private.levels.iter_mut().enumerate() {
            if cache.touch(self.geometries[level], number(level)) {
                source = level;
                break;
            }
        }
        if source > last {
            if self.shared.touch(self.geometries[last], number(last)) {
                source = last;
            } else {
                self.shared.fill(self.geometries[last], number(last));
            }
        }
        for (level, cache) in private.levels.iter_mut().enumerate().take(source).skip(first) {
            cache.fill(self.geometries[level], number(level));
        }
        source
    }

    /// Follows an instruction's stride, and fetches lines ahead of it.
    fn prefetch(&mut self, core: usize, instruction: u32, address: u64, now: Time) {
        let stride = &mut self.cores[core].strides[instruction as usize % STRIDES];
        let step = address.wrapping_sub(stride.last) as i64;
        if stride.instruction != instruction {
            *stride = StrideEntry { instruction, last: address, ..StrideEntry::default() };
            return;
        }
        let length = i64::from(self.processor.line_size);
        let is_same = step == stride.step && step != 0;
        stride.seen = if is_same { stride.seen.saturating_add(1) } else { 0 };
        (stride.last, stride.step) = (address, step);
        if stride.seen < CONFIDENT || step.unsigned_abs() > u64::from(self.processor.page_size) {
            return;
        }
        // lines, not elements: a walk over lists on Zen 5 takes 9 cycles a node of 64 bytes, 11 of 80 and 13 of
        // 96, as fast as lines come, but 50 to 60 of 128 to 1024
        let ahead = i64::from(self.processor.prefetch_distance);
        let is_stream = step.abs() < 2 * length;
        let (first, last) = match is_stream {
            // as many lines as one step goes
            true => (ahead - (step.abs() - 1) / length, ahead),
            false => (1, ahead.min(STEPS)),
        };
        for count in first..=last {
            let distance = if is_stream { step.signum() * length * count } else { step * count };
            let target = address.wrapping_add_signed(distance);
            let line = target / u64::from(self.processor.line_size);
            if self.is_close(core, line) {
                continue;
            }
            self.fetch_ahead(core, line, now);
        }
    }

    /// Brings a line to the level behind the first, in buffers of that level's own.
    fn fetch_ahead(&mut self, core: usize, line: u64, now: Time) {
        let source = self.find(core, line, 1);
        if source < 2 {
            return;
        }
        let at = match self.latency(source) {
            Some(latency) => self.leaves(core, source, now) + latency,
            None => self.fetch_from_memory(core, now),
        };
        self.cores[core].under_way[line as usize % UNDER_WAY] = (line, at);
    }

    /// Returns the latency of a level; none of memory.
    fn latency(&self, source: usize) -> Option<Time> {
        self.processor.levels.get(source).map(|level| Time::from(level.latency) * CYCLE)
    }

    /// Returns when a level has a line to send: the last one sends a core one after the other.
    fn leaves(&mut self, core: usize, source: usize, now: Time) -> Time {
        match source > 0 && source + 1 == self.geometries.len() {
            true => self.cores[core].last_level.take(now),
            false => now,
        }
    }

    /// Returns when a line from memory arrives.
    fn fetch_from_memory(&mut self, core: usize, now: Time) -> Time {
        let start = self.cores[core].memory.take(now);
        start + Time::from(self.processor.memory_latency) * CYCLE
    }

    fn is_close(&mut self, core: usize, line: u64) -> bool {
        match self.cores[core].levels.first_mut() {
            Some(cache) => cache.contains(self.geometries[0], line),
            None => self.shared.contains(self.geometries[0], line),
        }
    }

    /// Takes a line that a core writes from the others.
    fn take_from_others(&mut self, core: usize, line: u64) {
        let others = self.cores.iter_mut().enumerate().filter(|(other, _)| *other != core);
        for (_, private) in others {
            let physical = physical(line, u64::from(self.processor.page_size / self.processor.line_size));
            for (level, cache) in private.levels.iter_mut().enumerate() {
                cache.invalidate(self.geometries[level], if level == 0 { line } else { physical });
            }
        }
    }
}

/// Returns the number of a line in the memory of the machine, of which the kernel gives the program pages in no order:
/// the sets of the caches behind the first are chosen by that. Some then get more pages than they have ways, so that
/// less data fits than their size says.
fn physical(line: u64, lines_of_page: u64) -> u64 {
    // of a described machine, lines may be longer than pages
    let lines_of_page = lines_of_page.max(1);
    let (page, within) = (line / lines_of_page, line % lines_of_page);
    // of pages that a process can have hardly two come to one
    let mixed = (page ^ (page >> 7)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)) & ((u64::MAX / lines_of_page) >> 1);
    mixed * lines_of_page + within
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;

    #[test]
    fn pages_have_memory_of_their_own() {
        let lines = 0..64 * 4096;
        let all: FxHashSet<u64> = lines.clone().map(|line| physical(line, 64)).collect();
        assert_eq!(all.len(), lines.count());
        assert_eq!(physical(5 * 64 + 9, 64), physical(5 * 64, 64) + 9, "a page is in one piece");
        assert_eq!(physical(7, 0), physical(7, 1), "lines longer than pages");
    }

    fn caches(cores: u16, prefetch: u32) -> Caches {
        let level = |size, latency| Level { size, ways: 4, latency };
        let levels = vec![level(4 << 10, 4), level(64 << 10, 14), level(1 << 20, 50)];
        Caches::new(
            &Processor {
                levels,
                memory_latency: 400,
                prefetch_distance: prefetch,
                zeroed_pages_cached: false,
                ..Processor::default()
            },
            cores,
        )
        .expect("a processor")
    }

    fn cycles(answer: AccessResult, from: Time) -> u64 {
        (answer.at - from) / CYCLE
    }

    #[test]
    fn a_line_is_where_its_set_has_room() {
        let mut caches = caches(1, 0);
        let mut now = 0;
        let mut ask = |address| {
            now += 10_000 * CYCLE;
            let answer = caches.access(0, 0, address, false, now);
            (answer.source, cycles(answer, now))
        };
        assert_eq!(ask(0).0, 3, "memory");
        assert_eq!(ask(8), (0, 4), "the line is there");
        // 1 KB apart: one set of the first level, which has four ways
        (1..=4).for_each(|count| {
            ask(count * 1024);
        });
        assert_eq!(ask(0), (1, 14), "only the second level has it");
    }

    #[test]
    fn misses_of_one_line_end_together() {
        let mut caches = caches(1, 0);
        caches.access(0, 0, 0x20_0000, false, 0);
        let now = 1000 * CYCLE;
        let first = caches.access(0, 0, 0x20_0000 + 128, false, now);
        let second = caches.access(0, 1, 0x20_0000 + 136, false, now + CYCLE);
        assert_eq!((first.source, second.source), (3, 0));
        assert_eq!(first.at, second.at);
    }

    #[test]
    fn a_stride_is_fetched_ahead() {
        let run = |prefetch| {
            let mut caches = caches(1, prefetch);
            let ask = |count: u64| {
                let now = count * 1000 * CYCLE;
                caches.access(0, 0, count * 64, false, now).source
            };
            (0..1000).map(ask).filter(|source| *source > 1).count()
        };
        assert_eq!(run(0), 1000);
        assert!(run(8) < 20, "{}", run(8));
    }

    #[test]
    fn elements_of_a_line_and_a_half_are_fetched_as_lines_and_larger_ones_by_steps() {
        let late = |step: u64| {
            let mut caches = caches(1, 32);
            let mut now = 0;
            // one that waits for the last one, as in a list
            let walk = |count: u64| {
                let answer = caches.access(0, 0, 0x10_0000 + count * step, false, now);
                let took = cycles(answer, now);
                now = answer.at;
                took
            };
            (0..1000).map(walk).sum::<u64>() / 1000
        };
        assert!((4..35).contains(&late(80)), "{}", late(80));
        assert!((40..90).contains(&late(256)), "{}", late(256));
    }

    #[test]
    fn a_write_takes_the_line_from_other_cores() {
        let mut caches = caches(2, 0);
        caches.access(0, 0, 0, false, 0);
        caches.access(1, 0, 0, true, 10_000 * CYCLE);
        assert_eq!(caches.access(0, 0, 0, false, 20_000 * CYCLE).source, 2, "the shared level has it");
        assert_eq!(caches.access(1, 0, 0, false, 30_000 * CYCLE).source, 0);
    }

    #[test]
    fn a_miss_in_the_future_does_not_delay_an_earlier_one() {
        let mut caches = caches(1, 0);
        // the program's order is not that of time: a miss that depends on another one comes first
        let first = caches.access(0, 0, 0x20_0000, false, 0);
        let dependent = caches.access(0, 1, 0x30_0000, false, first.at);
        let now = 10 * CYCLE;
        let independent = caches.access(0, 2, 0x20_0100, false, now);
        assert!(dependent.at >= first.at + 400 * CYCLE);
        assert_eq!(independent.source, 3);
        assert!(cycles(independent, now) < 420, "{}", cycles(independent, now));
    }

    #[test]
    fn misses_beyond_the_buffers_wait() {
        let mut caches = caches(1, 0);
        let limit = caches.processor.miss_buffers as u64;
        // one page, so that nothing is translated in between
        caches.access(0, 0, 0, false, 0);
        let now = 10_000 * CYCLE;
        let last = |count: u64, caches: &mut Caches| caches.access(0, 0, (1 + count) * 64, false, now).at;
        let inside = (0..limit).map(|count| last(count, &mut caches)).max().expect("misses");
        assert!(last(limit, &mut caches) >= inside.min(now + 800 * CYCLE));
    }

    #[test]
    fn lines_of_the_last_level_come_one_after_the_other() {
        let last = |interval| {
            let mut caches = caches(1, 0);
            caches.processor.miss_buffers = 64;
            caches.cores[0].misses = MissBuffers::new(64);
            caches.cores[0].last_level = BusSchedule::new(interval * CYCLE);
            // 32 lines of one page, which memory sent before and the first two levels have no room for
            let line = |count: u64| 0x10_0000 + count * 64;
            (0..32).for_each(|count| {
                caches.access(0, 0, line(count), false, 0);
            });
            (0..2048).for_each(|count| {
                caches.access(0, 0, 0x20_0000 + count * 64, false, 0);
            });
            caches.access(0, 0, line(0), false, 500_000 * CYCLE);
            let now = 1_000_000 * CYCLE;
            let asked = (1..32).map(|count| caches.access(0, 0, line(count), false, now));
            asked.map(|answer| (answer.source, cycles(answer, now))).max()
        };
        assert_eq!(last(0), Some((2, 50)));
        assert!(
            last(7).is_some_and(|(source, took)| source == 2 && (50 + 7 * 29..50 + 7 * 32).contains(&took))
        );
    }

    #[test]
    fn a_page_that_was_just_cleared_is_close() {
        let mut caches = caches(1, 0);
        caches.processor.zeroed_pages_cached = true;
        let source = |caches: &mut Caches, address| caches.access(0, 0, address, false, 0).source;
        assert_eq!(source(&mut caches, 0x5000), 1);
        assert_eq!(source(&mut caches, 0x5fc0), 1, "the whole page");
        (0..1024).for_each(|page| {
            source(&mut caches, 0x100_0000 + page * 4096);
        });
        assert_eq!(source(&mut caches, 0x5000), 3, "and later it is not");
    }

    #[test]
    fn a_nested_walk_reads_two_tables_and_a_slow_one_takes_its_time() {
        let time = |change: &dyn Fn(&mut Processor)| {
            let mut caches = caches(1, 0);
            change(&mut caches.processor);
            caches.access(0, 0, 0x7000, false, 0).at
        };
        let plain = time(&|_| {});
        let memory = Time::from(caches(1, 0).processor.memory_latency) * CYCLE;
        assert_eq!(time(&|processor| processor.page_walk_latency = 50), plain + 50 * CYCLE);
        assert_eq!(time(&|processor| processor.nested_paging = true), plain + memory);
    }

    #[test]
    fn a_page_that_no_tlb_has_is_looked_up() {
        let mut caches = caches(1, 0);
        assert!(caches.access(0, 0, 0, false, 0).walked);
        assert!(!caches.access(0, 0, 64, false, 0).walked);
        assert!(caches.access(0, 0, 4096, false, 0).walked);
    }
}
