//! One of everything that counts, updated in turns whose sums are known.

use statctr::{
    Average, Counter, CounterArray, Event, FloatGauge, Gauge, Group, GroupArray, Histogram, Item, ItemSpec,
    Max, Min, Pool, Result, Schema, SharedCounter, TrackedGroupArray,
};

/// Declares [`AnyEvent`], with a variant for each number of items that tests use.
macro_rules! any_event {
    ($($variant:ident($items:literal)),+) => {
        /// An event whose number of items is chosen when a test runs.
        #[derive(Clone, Copy)]
        enum AnyEvent {
            $($variant(Event<$items>)),+
        }

        impl AnyEvent {
            /// Returns the first event of a schema, which has so many items.
            fn first_of(schema: &Schema, items: usize) -> AnyEvent {
                match items {
                    $($items => AnyEvent::$variant(schema.event(0).expect("an event")),)+
                    _ => panic!("no test has an event of {items} items"),
                }
            }

            /// Adds 1 to the first item, 2 to the second and so on, by one commit.
            #[inline]
            fn commit(self, group: &Group) {
                match self {
                    $(AnyEvent::$variant(event) => group.commit(event, from_one())),+
                }
            }
        }
    };
}

any_event!(One(1), Two(2), Three(3), Four(4), Five(5), Eight(8));

/// Returns the numbers from 1 to N.
fn from_one<const N: usize>() -> [u64; N] {
    std::array::from_fn(|index| index as u64 + 1)
}

/// A group with one event of `N` items, and an item beside it.
pub(crate) struct Line {
    pub(crate) group: Group,
    event: AnyEvent,
    pub(crate) items: Vec<Item>,
    width: usize,
}

/// Returns a schema of `width` items that are its only event, and `others` that are in none.
pub(crate) fn schema(width: usize, others: usize) -> Schema {
    let items = (0..width + others).map(|index| ItemSpec::new(format!("item_{index}")));
    let members: Vec<usize> = (0..width).collect();
    Schema::new(items, &[&members]).expect("schema")
}

/// Returns a schema of `N` items that are one event, and `others` that are in none, with that event.
pub(crate) fn schema_with_event<const N: usize>(others: usize) -> (Schema, Event<N>) {
    let schema = schema(N, others);
    let event = schema.event(0).expect("an event");
    (schema, event)
}

impl Line {
    pub(crate) fn new(pool: &Pool, width: usize) -> Line {
        Line::try_new(pool, width).expect("group")
    }

    fn try_new(pool: &Pool, width: usize) -> Result<Line> {
        let schema = schema(width, 1);
        let event = AnyEvent::first_of(&schema, width);
        let items = schema.items().collect();
        Ok(Line { group: Group::new_in(pool, &schema)?, event, items, width })
    }

    /// Adds 1 to N + 1 to the items, in two steps.
    pub(crate) fn turn(&self) {
        self.commit();
        self.group.add(self.items[self.width], self.width as u64 + 1);
    }

    /// Adds 1 to N to the items of the event, by one commit.
    #[inline]
    pub(crate) fn commit(&self) {
        self.event.commit(&self.group);
    }

    pub(crate) fn check(&self, turns: u64, context: &str) {
        for (index, value) in self.group.read().into_iter().enumerate() {
            assert_eq!(value, turns * (index as u64 + 1), "{context}: event of {}, item {index}", self.width);
        }
    }
}

/// One of everything.
pub(crate) struct Kit {
    pub(crate) counter: Counter,
    pub(crate) neighbours: [Counter; 2],
    pub(crate) shared: SharedCounter,
    pub(crate) array: CounterArray,
    pub(crate) lines: Vec<Line>,
    pub(crate) rows: GroupArray,
    pub(crate) tracked: TrackedGroupArray,
    pub(crate) gauge: Gauge,
    pub(crate) float_gauge: FloatGauge,
    pub(crate) histogram: Histogram,
    pub(crate) max: Max,
    pub(crate) min: Min,
    pub(crate) average: Average,
    rows_event: Event<4>,
}

/// Lengths of the events of a kit.
pub(crate) const WIDTHS: [usize; 6] = [1, 2, 3, 4, 5, 8];
const INITIAL: u64 = 1 << 40;
const ROWS: usize = 3;

impl Kit {
    pub(crate) fn new(pool: &Pool) -> Kit {
        Kit::try_new(pool).expect("kit")
    }

    /// Creates a kit, as [`new`](Self::new) does; an error where there is no memory for it.
    pub(crate) fn try_new(pool: &Pool) -> Result<Kit> {
        let (schema, rows_event) = schema_with_event(7);
        Ok(Kit {
            neighbours: [Counter::new_in(pool, 0)?, Counter::new_in(pool, u64::MAX)?],
            counter: Counter::new_in(pool, INITIAL)?,
            shared: SharedCounter::from(Counter::new_in(pool, 3)?),
            array: CounterArray::new_in(pool, 20, 5)?,
            lines: WIDTHS.into_iter().map(|width| Line::try_new(pool, width)).collect::<Result<_>>()?,
            rows: GroupArray::new_in(pool, ROWS, &schema)?,
            tracked: TrackedGroupArray::new_in(pool, ROWS, &schema)?,
            gauge: Gauge::new_in(pool, -5)?,
            float_gauge: FloatGauge::new_in(pool, -0.5)?,
            histogram: Histogram::new_in(pool, 1000, 0.1)?,
            max: Max::new_in(pool)?,
            min: Min::new_in(pool)?,
            average: Average::new_in(pool)?,
            rows_event,
        })
    }

    /// Updates everything some times. Async-signal-safe.
    #[inline]
    pub(crate) fn turn(&self) {
        self.counter.inc();
        self.counter.add(1000);
        self.neighbours[0].sub(3);
        self.counter.dec();
        self.neighbours[1].inc();
        self.counter.sub(900);
        self.shared.inc();
        self.shared.add(50);
        self.shared.dec();
        self.shared.sub(8);
        if let (Some(first), Some(last)) = (self.array.get(0), self.array.get(19)) {
            first.inc();
            last.add(7);
            last.dec();
        }
        self.lines.iter().for_each(Line::turn);
        if let Some(row) = self.rows.get(ROWS - 1) {
            row.commit(self.rows_event, [1, 10, 100, 1000]);
        }
        if let (Some(first), Some(last)) = (self.tracked.get(0), self.tracked.get(ROWS - 1)) {
            last.commit(self.rows_event, [1, 10, 100, 1000]);
            first.add(Item::at(10, 10), 3);
        }
        self.gauge.add(-7);
        self.gauge.inc();
        self.float_gauge.add(2.25);
        self.float_gauge.dec();
        self.histogram.observe(3);
        self.histogram.observe(700);
        self.histogram.observe(5000);
        for value in [700, 5000, 3] {
            self.max.observe(value);
            self.min.observe(value);
            self.average.observe(value);
        }
    }

    /// Returns every value that there is.
    pub(crate) fn values(&self) -> Vec<u64> {
        let mut values = vec![self.counter.read(), self.neighbours[0].read(), self.neighbours[1].read()];
        values.extend(self.array.iter().map(|counter| counter.read()));
        values.extend(self.lines.iter().flat_map(|line| line.group.read()));
        let mut rows = [0; ROWS * 11];
        self.rows.fold_into(&mut rows).expect("room");
        values.extend(rows);
        self.tracked.fold_into(&mut rows).expect("room");
        values.extend(rows);
        values.push(self.gauge.read().cast_unsigned());
        values.push((self.float_gauge.read() * 4.0) as i64 as u64);
        values.push(self.shared.read());
        let seen = self.histogram.snapshot();
        values.extend([seen.count(), seen.sum(), seen.count_up_to(3), seen.count_up_to(1000)]);
        let seen = self.average.read();
        values.extend([seen.count(), seen.sum()]);
        values
    }

    /// Returns `true` if the values are those of `before` and so many turns.
    pub(crate) fn has_grown(&self, before: &[u64], turns: u64) -> bool {
        let mut step = vec![100, 0u64.wrapping_sub(3), 1];
        step.extend((0..20).map(|index| [1, 6, 0][[0, 19].iter().position(|at| *at == index).unwrap_or(2)]));
        step.extend(WIDTHS.iter().flat_map(|width| 1..=*width as u64 + 1));
        step.extend((0..ROWS * 11).map(|index| match index.checked_sub((ROWS - 1) * 11) {
            Some(item @ 0..4) => 10u64.pow(item as u32),
            _ => 0,
        }));
        step.extend((0..ROWS * 11).map(|index| match index.checked_sub((ROWS - 1) * 11) {
            Some(item @ 0..4) => 10u64.pow(item as u32),
            _ => {
                if index == 10 {
                    3
                } else {
                    0
                }
            }
        }));
        step.extend([0u64.wrapping_sub(6), 5, 42, 3, 5703, 1, 2, 3, 5703]);
        let now = self.values();
        now.len() == before.len()
            && now
                .iter()
                .zip(before)
                .zip(&step)
                .all(|((now, before), step)| now.wrapping_sub(*before) == step.wrapping_mul(turns))
    }

    /// Makes every counter `value`.
    pub(crate) fn set(&self, value: u64) {
        self.counter.set(value);
        self.array.iter().for_each(|counter| counter.set(value));
        for line in &self.lines {
            line.items.iter().for_each(|item| line.group.set(*item, value));
        }
    }

    /// Checks everything after so many turns in all.
    pub(crate) fn check(&self, turns: u64, context: &str) {
        assert_eq!(self.counter.read(), INITIAL + 100 * turns, "{context}: counter");
        assert_eq!(self.neighbours[0].read(), 0u64.wrapping_sub(3 * turns), "{context}: neighbour");
        assert_eq!(self.neighbours[1].read(), u64::MAX.wrapping_add(turns), "{context}: neighbour");
        let mut values = [0; 20];
        self.array.fold_into(&mut values).expect("room");
        for (index, value) in values.into_iter().enumerate() {
            let expected = match index {
                0 => 5 + turns,
                19 => 5 + 6 * turns,
                _ => 5,
            };
            assert_eq!(value, expected, "{context}: array, {index}");
            assert_eq!(
                self.array.get(index).map(|counter| counter.read()),
                Some(expected),
                "{context}: array"
            );
        }
        self.lines.iter().for_each(|line| line.check(turns, context));
        let mut values = [0; ROWS * 11];
        self.rows.fold_into(&mut values).expect("room");
        let mut expected = [0; ROWS * 11];
        expected[(ROWS - 1) * 11..][..4].copy_from_slice(&[turns, 10 * turns, 100 * turns, 1000 * turns]);
        assert_eq!(values, expected, "{context}: rows");
        expected[10] = 3 * turns;
        self.tracked.fold_into(&mut values).expect("room");
        assert_eq!(values, expected, "{context}: tracked rows");
        let mut folds = self.tracked.incremental_fold().expect("nobody else folds");
        for fold in 0..3 {
            assert_eq!(folds.fold(), expected, "{context}: tracked rows, fold {fold}");
        }
        drop(folds);
        assert_eq!(self.gauge.read(), -5 - 6 * turns as i64, "{context}: gauge");
        assert_eq!(self.shared.read(), 3 + 42 * turns, "{context}: shared counter");
        assert_eq!(self.float_gauge.read(), -0.5 + 1.25 * turns as f64, "{context}: float gauge");
        let seen = self.histogram.snapshot();
        assert_eq!((seen.count(), seen.sum()), (3 * turns, 5703 * turns), "{context}: histogram");
        let buckets: Vec<u64> = seen.buckets().map(|(.., count)| count).collect();
        assert_eq!(buckets, vec![turns; if turns > 0 { 3 } else { 0 }], "{context}: histogram");
        let extremes = if turns > 0 { (3, 5000) } else { (Min::IDENTITY, Max::IDENTITY) };
        assert_eq!((self.min.read(), self.max.read()), extremes, "{context}: extremes");
        let seen = self.average.read();
        assert_eq!((seen.count(), seen.sum()), (3 * turns, 5703 * turns), "{context}: average");
    }
}
