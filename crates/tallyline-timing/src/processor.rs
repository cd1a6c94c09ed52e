//! The modelled processor.

use tallyline_trace::coherence::Geometry;

/// The most levels of caches.
pub(super) const LEVELS_LIMIT: usize = 4;

/// One level of a simulated processor's caches: size in bytes, associativity, latency in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The size of the level in bytes.
    pub size: u64,
    /// The number of lines in a set.
    pub ways: u32,
    /// Cycles from a load's address to its data.
    pub latency: u32,
}

/// The parameters of a simulated processor: its caches, TLBs and memory, and the buffers and widths of one
/// out-of-order core. Times are in cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processor {
    /// Bytes of a cache line.
    pub line_size: u32,
    /// Caches, the closest first; the last is shared by all cores.
    pub levels: Vec<Level>,
    /// Bytes of the last level that are left for the program where other users of that cache are busy.
    pub last_level_share: u64,
    /// Cycles between two lines from the last level to a core.
    pub(crate) last_level_interval: u32,
    /// Cycles from a load's address to its data in memory.
    pub memory_latency: u32,
    /// Cycles between two lines from memory.
    pub memory_interval: u32,
    /// Instructions that enter the window, and retire, in a cycle.
    pub width: u32,
    /// Instructions of the reorder buffer.
    pub reorder_buffer: u32,
    /// Results in integer registers of instructions that have not retired, where lines pass between cores; 0 for any
    /// number.
    pub(crate) integer_registers: u32,
    /// Stores that wait for their lines after they retired.
    pub store_buffer: u32,
    /// Misses of the first level that are under way at once.
    pub miss_buffers: u32,
    /// Cycles from a mispredicted branch's result to the next instruction in the window.
    pub(crate) misprediction_penalty: u32,
    /// Cycles of an atomic update of a line that the core owns, one behind the other.
    pub(crate) atomic_update: u32,
    /// Cycles from the arrival of a line that another core took before a load from it retired to the fetch of what follows
    /// the load; 0 on a core that fetches it while the line is under way.
    pub(crate) restart_after_line: u32,
    /// Cycles from a store's data to its way into the cache. Chains through one word that are shorter do not go on while
    /// another core has the word's line; 0 on a core on which they do.
    pub(crate) commit_delay: u32,
    /// `true` if indirect branches are predicted by the history of branches, and not by their last target alone.
    pub indirect_by_history: bool,
    /// Bytes of a page.
    pub page_size: u32,
    /// Pages in the first and in the second TLB.
    pub tlb_entries: [u32; 2],
    /// Cycles of a walk of the page tables beside the reads of their last level.
    pub page_walk_latency: u32,
    /// `true` in a virtual machine: a walk also reads the tables from the guest's addresses to the host's.
    pub nested_paging: bool,
    /// Lines that a stride is prefetched ahead; 0 without a prefetcher.
    pub prefetch_distance: u32,
    /// `true` if the kernel has just cleared a page that is touched for the first time, so that its lines are close.
    pub(crate) zeroed_pages_cached: bool,
}

impl Default for Processor {
    /// Creates a core of AMD's family 26 (Zen 5) by its documentation; its caches as a server has them. Of its 240 integer
    /// registers 48 are taken to hold what has retired. Measured are an atomic update, and two cores that work on words
    /// of their own on one line: chains of 7 to 25 cycles through the word take 2 to 9 times as long as apart, those of
    /// 28 to 73 cycles 5 cycles more; an addition with a chain beside it costs 15 cycles if a line takes 90 to the other
    /// core, and 165 to 190 if it takes 525.
    fn default() -> Self {
        Self {
            line_size: 64,
            levels: vec![
                Level { size: 48 << 10, ways: 12, latency: 4 },
                Level { size: 1 << 20, ways: 16, latency: 14 },
                Level { size: 32 << 20, ways: 16, latency: 50 },
            ],
            last_level_share: u64::MAX,
            last_level_interval: 0,
            memory_latency: 450,
            memory_interval: 8,
            width: 8,
            reorder_buffer: 448,
            integer_registers: 192,
            store_buffer: 104,
            miss_buffers: 24,
            misprediction_penalty: 15,
            atomic_update: 20,
            restart_after_line: 20,
            commit_delay: 30,
            indirect_by_history: true,
            page_size: 4096,
            tlb_entries: [96, 4096],
            page_walk_latency: 0,
            nested_paging: false,
            prefetch_distance: 32,
            zeroed_pages_cached: true,
        }
    }
}

impl Processor {
    /// Returns the cycles that a mispredicted jump costs.
    pub fn misprediction_penalty(&self) -> u32 {
        self.misprediction_penalty
    }

    /// Returns the parameters for simulating a processor on which nothing was measured: those of [`Processor::default`]
    /// without what Zen 5 does when another core takes a line, and with Zen 4's cycles of an atomic update.
    pub fn unmeasured() -> Processor {
        Processor {
            integer_registers: 0,
            atomic_update: 7,
            restart_after_line: 0,
            commit_delay: 0,
            ..Processor::default()
        }
    }

    /// Returns the parameters of an AMD Zen 3 (family 25) core from its documentation, with the caches of
    /// [`Processor::default`]. The interval of the last level is measured in cycles of the time stamp counter, which are
    /// longer than the core's: of objects at random in 2 MB each further line takes 5 to 7, in 256 KB 1.5.
    pub fn zen_3() -> Processor {
        Processor {
            last_level_interval: 7,
            width: 6,
            reorder_buffer: 256,
            store_buffer: 64,
            misprediction_penalty: 13,
            tlb_entries: [64, 2048],
            ..Processor::unmeasured()
        }
    }

    /// Returns the parameters of an AMD Zen 4 (family 25) core from its documentation, with the caches of
    /// [`Processor::default`].
    pub fn zen_4() -> Processor {
        Processor {
            last_level_interval: 0,
            reorder_buffer: 320,
            tlb_entries: [72, 3072],
            ..Processor::zen_3()
        }
    }

    /// Returns a copy of this simulated processor's parameters for one hardware thread of a core whose other thread is
    /// busy, as are the other users of the last-level cache: half of the reorder buffer, of the integer registers and
    /// of the store buffer, and the program's share of the cache.
    pub fn beside_busy_thread(&self) -> Processor {
        let mut levels = self.levels.clone();
        if let Some(last) = levels.last_mut() {
            // one set at least
            let least = u64::from(last.ways) * u64::from(self.line_size);
            last.size = last.size.min(self.last_level_share.max(least));
        }
        Processor {
            levels,
            reorder_buffer: (self.reorder_buffer / 2).max(1),
            integer_registers: self.integer_registers / 2,
            store_buffer: (self.store_buffer / 2).max(1),
            ..self.clone()
        }
    }

    /// Returns the number of multiplications that wait for their operands at most. Zen 3 and 4 have a scheduler of 24
    /// places for each integer unit, and one unit that multiplies; Zen 5 has one of 88 for all. Beside a busy thread it
    /// is a part of that, as of the reorder buffer.
    pub(super) fn multiplier_queue(&self) -> u32 {
        let part = if self.width < 8 { self.reorder_buffer * 3 / 32 } else { self.reorder_buffer / 5 };
        part.max(1)
    }

    /// Checks it, and returns the geometry of each level's caches for so many cores.
    ///
    /// # Errors
    /// A sentence that names the parameter that cannot be simulated.
    pub(super) fn geometries(&self, cores: u16) -> Result<Vec<Geometry>, String> {
        if self.levels.is_empty() || self.levels.len() > LEVELS_LIMIT {
            return Err(format!(
                "{} levels of caches: from 1 to {LEVELS_LIMIT} are modelled",
                self.levels.len()
            ));
        }
        if !self.page_size.is_power_of_two() || self.page_size < self.line_size {
            return Err(format!(
                "pages of {} bytes: expected a power of two, at least a cache line",
                self.page_size
            ));
        }
        let cycles = self.levels.iter().map(|level| level.latency).chain([self.memory_latency]);
        if !cycles.clone().is_sorted() || cycles.clone().any(|cycles| cycles == 0 || cycles > 100_000) {
            return Err("latencies: expected 1 to 100000 cycles, rising from level to level".into());
        }
        if self.page_walk_latency > 100_000 {
            return Err("page walk: expected at most 100000 cycles".into());
        }
        let limits = [self.width, self.reorder_buffer, self.store_buffer, self.miss_buffers];
        if limits.iter().any(|limit| !(1..=65_536).contains(limit)) || self.prefetch_distance > 64 {
            return Err(
                "width, window, stores and misses: expected 1 to 65536; lines ahead: at most 64".into()
            );
        }
        let last = self.levels.len() - 1;
        let geometry = |(index, level): (usize, &Level)| {
            let cores = if index == last && last > 0 { 1 } else { cores };
            Geometry::with_any_sets(cores, self.line_size, level.size, level.ways)
        };
        self.levels.iter().enumerate().map(geometry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_may_have_any_number_of_sets() {
        let level = Level { size: 105 << 20, ways: 15, latency: 70 };
        let processor = Processor { levels: vec![level], ..Processor::default() };
        let all = processor.geometries(1).expect("a cache of 105 MB in 15 ways");
        assert_eq!(all[0].size(), 105 << 20);
    }

    #[test]
    fn beside_busy_threads_the_last_level_is_a_share_of_it() {
        let size = |share| {
            let processor = Processor { last_level_share: share, ..Processor::default() };
            processor
                .beside_busy_thread()
                .geometries(2)
                .expect("a processor")
                .last()
                .copied()
                .map(Geometry::size)
        };
        assert_eq!([u64::MAX, 4 << 20, 0].map(size), [Some(32 << 20), Some(4 << 20), Some(16 * 64)]);
    }

    #[test]
    fn processors_that_cannot_be_are_refused() {
        let good = Processor::default();
        assert!(good.geometries(4).is_ok());
        for bad in [
            Processor { levels: Vec::new(), ..good.clone() },
            Processor { levels: vec![good.levels[0]; 5], ..good.clone() },
            Processor { memory_latency: 10, ..good.clone() },
            Processor { page_size: 3000, ..good.clone() },
            Processor { reorder_buffer: 0, ..good.clone() },
            Processor { levels: vec![Level { size: 100, ways: 3, latency: 4 }], ..good.clone() },
        ] {
            assert!(bad.geometries(1).is_err(), "{bad:?}");
        }
    }
}
