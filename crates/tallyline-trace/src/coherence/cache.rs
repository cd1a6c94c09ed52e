//! One core's cache: sets of ways, the least recently used one replaced.

use super::Geometry;

/// The MESI state of a cache line in a simulated core's cache: modified, exclusive, shared or invalid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing: it is not there.
    #[default]
    Invalid,
    /// Read it, as others may.
    Shared,
    /// Read it, and write it without asking: nobody else has it.
    Exclusive,
    /// Read and write it: memory is out of date.
    Modified,
}

/// One slot of a set-associative simulated cache: the line in it, the line's state and its use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way {
    /// The number of the line: its address divided by its size.
    pub(crate) line: u64,
    /// The bytes that the core wrote since it last took the line for itself, one bit a byte.
    pub(crate) written: u64,
    /// The time of the line's last use.
    used: u64,
    /// The number of reads since the line was inserted.
    pub(crate) reads: u64,
    /// The number of writes since the line was inserted.
    pub(crate) writes: u64,
    /// The line's index in the directory.
    pub(crate) index: u32,
    /// The MESI state of the line in the core's cache.
    pub(crate) state: State,
}

/// The simulated set-associative cache of one core, with least-recently-used replacement. It allocates its memory
/// on the first insertion.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    ways: Vec<Way>,
    clock: u64,
}

/// Returns the places of a set.
fn set_of(geometry: Geometry, line: u64) -> std::ops::Range<usize> {
    let ways = geometry.ways() as usize;
    let start = (line % u64::from(geometry.sets())) as usize * ways;
    start..start + ways
}

impl Cache {
    /// Returns the slot of the simulated cache that holds cache line number `line`, and marks it as the most recently
    /// used; `None` on a miss.
    #[inline]
    pub(crate) fn find(&mut self, geometry: Geometry, line: u64) -> Option<&mut Way> {
        self.clock += 1;
        let clock = self.clock;
        let way = self.peek(geometry, line)?;
        way.used = clock;
        Some(way)
    }

    /// Returns the slot of the simulated cache that holds cache line number `line` without counting as a use; `None` on
    /// a miss.
    #[inline]
    pub(crate) fn peek(&mut self, geometry: Geometry, line: u64) -> Option<&mut Way> {
        let set = self.ways.get_mut(set_of(geometry, line))?;
        set.iter_mut().find(|way| way.line == line && way.state != State::Invalid)
    }

    /// Inserts cache line number `line` into the simulated cache, in the given state and in the place of the least
    /// recently used line of its set; returns the evicted line, `None` if a slot was free. `index` is the line's index
    /// in the machine's directory, its table of all lines.
    pub(crate) fn insert(&mut self, geometry: Geometry, line: u64, index: u32, state: State) -> Option<Way> {
        if self.ways.is_empty() {
            self.ways.resize(geometry.sets() as usize * geometry.ways() as usize, Way::default());
        }
        self.clock += 1;
        let way = Way { line, index, state, used: self.clock, ..Way::default() };
        let set = &mut self.ways[set_of(geometry, line)];
        let place = set.iter_mut().min_by_key(|way| (way.state != State::Invalid, way.used))?;
        let evicted = std::mem::replace(place, way);
        (evicted.state != State::Invalid).then_some(evicted)
    }

    /// Returns `true` if cache line number `line` is in the simulated cache, and marks it as the most recently
    /// used.
    #[inline]
    pub fn touch(&mut self, geometry: Geometry, line: u64) -> bool {
        self.find(geometry, line).is_some()
    }

    /// Returns `true` if cache line number `line` is in the simulated cache; does not count as a use.
    #[inline]
    pub fn contains(&mut self, geometry: Geometry, line: u64) -> bool {
        self.peek(geometry, line).is_some()
    }

    /// Inserts cache line number `line` into the simulated cache, in the place of the least recently used line of
    /// its set.
    #[inline]
    pub fn fill(&mut self, geometry: Geometry, line: u64) {
        self.insert(geometry, line, 0, State::Exclusive);
    }

    /// Removes cache line number `line` from the simulated cache, if it is there.
    #[inline]
    pub fn invalidate(&mut self, geometry: Geometry, line: u64) {
        if let Some(way) = self.peek(geometry, line) {
            way.state = State::Invalid;
        }
    }

    /// Returns the occupied slots of the simulated cache, one for each line in it.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &Way> {
        self.ways.iter().filter(|way| way.state != State::Invalid)
    }
}
