//! Branch prediction: tables by the history of jumps, the longest history that is sure of itself first.

/// Bits of a table's index.
const BITS: u32 = 13;

/// Jumps of history that each table uses.
const LENGTHS: [u32; 4] = [0, 6, 18, 48];

/// A number by which bits are spread.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// An entry of a prediction table: the tag of its branch, a counter of confidence, and the branch's last target.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    tag: u16,
    // below 0: not taken
    counter: i8,
    target: u64,
}

/// Predicts branches of one thread.
#[derive(Clone, Debug)]
pub(super) struct Predictor {
    tables: Vec<Vec<Entry>>,
    history: u64,
    // else indirect branches go where they went last
    by_history: bool,
}

impl Predictor {
    /// Starts without any history. Indirect branches are predicted by it, or by their last target alone.
    pub(super) fn new(by_history: bool) -> Self {
        Self { tables: vec![vec![Entry::default(); 1 << BITS]; LENGTHS.len()], history: 0, by_history }
    }

    /// Learns where a branch went; true if it was predicted. Where there are two ways it is `taken` that counts, else
    /// the target.
    pub(super) fn update(&mut self, address: u64, taken: bool, target: u64, is_conditional: bool) -> bool {
        let places = LENGTHS.map(|length| self.place(address, length));
        let tables = if is_conditional || self.by_history { LENGTHS.len() } else { 1 };
        let found = (0..tables).rev().find(|table| self.entry(*table, places).is_some());
        let is_right = |entry: &Entry| match is_conditional {
            true => (entry.counter >= 0) == taken,
            false => entry.target == target,
        };
        // what was never seen is not taken
        let predicted = match found.and_then(|table| self.entry(table, places)) {
            Some(entry) => is_right(entry),
            None => is_conditional && !taken,
        };
        if let Some(table) = found {
            let entry = &mut self.tables[table][places[table].0];
            if is_conditional {
                entry.counter = (entry.counter + if taken { 1 } else { -1 }).clamp(-4, 3);
            } else if entry.target == target {
                entry.counter = (entry.counter + 1).min(3);
            } else if entry.counter > 0 && self.by_history {
                entry.counter -= 1;
            } else {
                entry.target = target;
            }
        }
        if !predicted {
            // a longer history may tell
            let next = found.map_or(0, |table| table + 1);
            if next < tables {
                let counter = if taken || !is_conditional { 0 } else { -1 };
                self.tables[next][places[next].0] = Entry { tag: places[next].1, counter, target };
            }
        }
        self.history = self.history << 1 | u64::from(taken);
        if !is_conditional {
            self.history = self.history << 2 ^ target.wrapping_mul(MIX) >> 59;
        }
        predicted
    }

    fn entry(&self, table: usize, places: [(usize, u16); LENGTHS.len()]) -> Option<&Entry> {
        let (index, tag) = places[table];
        self.tables[table].get(index).filter(|entry| entry.tag == tag)
    }

    /// Returns the index in a table, and the tag.
    fn place(&self, address: u64, length: u32) -> (usize, u16) {
        let history = self.history & ((1 << length) - 1);
        let mixed = (address ^ history.wrapping_mul(MIX).rotate_left(29)).wrapping_mul(MIX);
        let index = (mixed >> (64 - BITS)) as usize;
        // 0 is nobody's
        (index, (mixed >> 20) as u16 | 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(taken: impl Fn(u64) -> bool) -> usize {
        let mut predictor = Predictor::new(true);
        (0..10_000).filter(|count| !predictor.update(0x1000, taken(*count), 0x2000, true)).count()
    }

    #[test]
    fn regular_branches_are_learnt() {
        assert!(wrong(|_| true) < 10);
        assert!(wrong(|count| count % 2 == 0) < 50);
        assert!(wrong(|count| count % 7 == 0) < 200);
    }

    #[test]
    fn random_branches_are_not() {
        let state = std::cell::Cell::new(1_u64);
        let wrong = wrong(|_| {
            let next =
                state.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.set(next);
            next >> 63 == 1
        });
        assert!((3000..7000).contains(&wrong), "{wrong}");
    }

    #[test]
    fn a_last_target_alone_does_not_predict_alternating_jumps() {
        let right = |run: usize| {
            let mut predictor = Predictor::new(false);
            let target = |count: usize| if (count / run).is_multiple_of(2) { 0x2000 } else { 0x3000 };
            (0..10_000).filter(|count| predictor.update(0x1000, true, target(*count), false)).count()
        };
        assert_eq!((right(1), right(100)), (0, 9900));
    }

    #[test]
    fn computed_jumps_are_learnt_by_what_came_before() {
        let mut predictor = Predictor::new(true);
        let targets = [0x2000, 0x3000, 0x2000, 0x5000];
        let right =
            (0..10_000).filter(|count| predictor.update(0x1000, true, targets[count % 4], false)).count();
        assert!(right > 9000, "{right}");
    }
}
