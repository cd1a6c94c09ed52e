//! The smallest size that some order of the items gives.
//!
//! Fences cut the items into regions. Placing is monotone (an item that may start earlier ends no
//! later), so each region is solved for the smallest end, one after the other. In a region, items
//! that leave the same remainder are alike, so what counts is how many of each *class* were placed:
//! dynamic programming over those counts is exact, and small because most members are of few
//! classes. Before that an order is built greedily; often it is as small as the members' sum, and
//! nothing has to be searched.

use super::item::{Body, Item};

/// The most states of the exact search of one region: 20 members no two of which are alike.
const STATES: usize = 1 << super::EXACT_MEMBERS;
/// The most states of all regions of one type.
const ALL_STATES: usize = 4 * STATES;

/// The most items times classes that are looked at for a greedy order.
const GREEDY_STEPS: usize = 1 << 25;

/// An order of items, and whether none is smaller.
#[derive(Debug)]
pub(super) struct Smallest {
    /// Items by index, in order.
    pub(super) order: Vec<usize>,
    /// The first bit behind the last.
    pub(super) end: u64,
    /// `true` if the size is proven to be minimal.
    pub(super) exact: bool,
}

/// Finds the order that ends first.
pub(super) fn smallest(items: &[Item], align: u64) -> Smallest {
    let period = items.iter().map(|item| item.body.period()).max().unwrap_or(8).max(align * 8);
    let mut all = Smallest { order: Vec::with_capacity(items.len()), end: 0, exact: true };
    let mut start = 0;
    let mut budget = ALL_STATES;
    while start < items.len() {
        let stop = (start..items.len()).find(|index| items[*index].fence).unwrap_or(items.len());
        let region = Region::new(items, start..stop, period);
        // a fence behind it that aligns may take up what is lost
        let next = items.get(stop).map(|item| &item.body);
        let (order, end, exact) = region.solve(all.end, next, align * 8, &mut budget);
        all.order.extend(order);
        all.end = end;
        all.exact &= exact;
        if let Some(fence) = items.get(stop) {
            all.order.push(stop);
            all.end = fence.body.end(all.end);
        }
        start = stop + 1;
    }
    all
}

/// Items that are alike: of the same alignment, and of sizes that leave the same remainder.
struct Class<'a> {
    items: Vec<usize>,
    body: &'a Body,
}

struct Region<'a> {
    items: &'a [Item],
    classes: Vec<Class<'a>>,
    period: u64,
}

impl<'a> Region<'a> {
    fn new(items: &'a [Item], range: std::ops::Range<usize>, period: u64) -> Region<'a> {
        let mut classes: Vec<Class<'a>> = Vec::new();
        let mut known = rustc_hash::FxHashMap::default();
        for index in range {
            let body = &items[index].body;
            let class = *known.entry(alike(body, period)).or_insert_with(|| {
                classes.push(Class { items: Vec::new(), body });
                classes.len() - 1
            });
            classes[class].items.push(index);
        }
        Region { items, classes, period }
    }

    /// Returns the order from a position on, its end, and whether no other order ends earlier, as far as the
    /// items behind it show.
    fn solve(
        &self,
        start: u64,
        next: Option<&Body>,
        align: u64,
        budget: &mut usize,
    ) -> (Vec<usize>, u64, bool) {
        let shown = |end: u64| match next {
            Some(next) => next.end(end),
            None => end.next_multiple_of(align.max(8)),
        };
        let least: u64 = self.classes.iter().flat_map(|class| &class.items).map(|i| self.least(*i)).sum();
        let (greedy, end) = self.greedy(start);
        if shown(end) == shown(start + least) {
            return (greedy, end, true);
        }
        match self.exact(start, budget) {
            Some((order, end)) => (order, end, true),
            None => (greedy, end, false),
        }
    }

    fn least(&self, item: usize) -> u64 {
        self.items[item].body.least()
    }

    /// Takes the item of the largest alignment that fits without a hole; if none fits, the one with
    /// the smallest hole.
    fn greedy(&self, start: u64) -> (Vec<usize>, u64) {
        let total = self.classes.iter().map(|class| class.items.len()).sum();
        let mut taken = vec![0; self.classes.len()];
        let (mut order, mut position) = (Vec::with_capacity(total), start);
        if total.saturating_mul(self.classes.len()) > GREEDY_STEPS {
            return self.by_alignment(start);
        }
        while order.len() < total {
            let lost = |class: &Class<'_>| class.body.end(position) - position - class.body.least();
            let left = self.classes.iter().enumerate().filter(|(at, class)| taken[*at] < class.items.len());
            let best = left.min_by_key(|(at, class)| {
                (lost(class), std::cmp::Reverse(class.body.period()), class.items[taken[*at]])
            });
            let Some((at, class)) = best else { break };
            let item = class.items[taken[at]];
            taken[at] += 1;
            position = self.items[item].body.end(position);
            order.push(item);
        }
        (order, position)
    }

    /// Returns the largest alignments first: for what is too much to choose from at every step.
    fn by_alignment(&self, start: u64) -> (Vec<usize>, u64) {
        let mut order: Vec<usize> = self.classes.iter().flat_map(|class| class.items.clone()).collect();
        order.sort_by_key(|item| (std::cmp::Reverse(self.items[*item].body.period()), *item));
        let end = order.iter().fold(start, |position, item| self.items[*item].body.end(position));
        (order, end)
    }

    /// Returns the order with the least loss, over every choice of how many items of each class were placed.
    fn exact(&self, start: u64, budget: &mut usize) -> Option<(Vec<usize>, u64)> {
        const NOWHERE: u64 = u64::MAX;
        let mut strides = Vec::with_capacity(self.classes.len());
        let mut states = 1_usize;
        for class in &self.classes {
            strides.push(states);
            states = states.checked_mul(class.items.len() + 1).filter(|states| *states <= STATES)?;
        }
        *budget = budget.checked_sub(states)?;
        let mut lost = vec![NOWHERE; states];
        let mut last = vec![0_u16; states];
        lost[0] = 0;
        // how many of each class a state has
        let mut counts = vec![0_usize; self.classes.len()];
        for state in 0..states {
            // sizes by what they leave: all that is asked for is where in a period one is
            let placed =
                self.classes.iter().zip(&counts).fold(0_u64, |sum, (class, count)| {
                    sum + *count as u64 * (class.body.least() % self.period)
                });
            let position = (start + placed + lost[state]) % self.period;
            for (at, class) in self.classes.iter().enumerate() {
                if counts[at] == class.items.len() {
                    continue;
                }
                let next = state + strides[at];
                let more = class.body.end(position) - position - class.body.least();
                if lost[state] + more < lost[next] {
                    lost[next] = lost[state] + more;
                    last[next] = u16::try_from(at).ok()?;
                }
            }
            for (count, class) in counts.iter_mut().zip(&self.classes) {
                *count = if *count == class.items.len() { 0 } else { *count + 1 };
                if *count != 0 {
                    break;
                }
            }
        }
        let mut order = Vec::new();
        let mut state = states - 1;
        while state != 0 {
            let at = usize::from(last[state]);
            let count = state / strides[at] % (self.classes[at].items.len() + 1);
            order.push(self.classes[at].items[count - 1]);
            state -= strides[at];
        }
        order.reverse();
        let end = order.iter().fold(start, |position, item| self.items[*item].body.end(position));
        Some((order, end))
    }
}

/// Returns the properties that interchangeable items share.
pub(super) fn alike(body: &Body, period: u64) -> Body {
    match body {
        Body::Bytes { size, align } => Body::Bytes { size: size % period.max(1), align: *align },
        run => run.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(size: u64, align: u64) -> Item {
        Item { first: 0, count: 1, body: Body::Bytes { size: size * 8, align: align * 8 }, fence: false }
    }

    fn fence(size: u64, align: u64) -> Item {
        Item { fence: true, ..item(size, align) }
    }

    #[test]
    fn what_fits_goes_where_the_alignment_leaves_room() {
        let items = [fence(4, 4), item(8, 8), item(1, 1), item(8, 8), item(2, 2), item(1, 1)];
        let found = smallest(&items, 8);
        assert_eq!((found.end, found.exact), (24 * 8, true));
        assert_eq!(found.order[0], 0);
    }

    #[test]
    fn nothing_moves_past_a_fence() {
        let items = [item(4, 4), fence(0, 1), item(8, 8), fence(0, 1), item(4, 4)];
        let found = smallest(&items, 8);
        assert_eq!(found.order, [0, 1, 2, 3, 4]);
        assert_eq!((found.end, found.exact), (20 * 8, true));
    }

    #[test]
    fn a_subset_that_fills_a_gap_is_found() {
        // at 3, five bytes to the next 8: 3 and 2, and not the first that fit
        let items = [fence(3, 1), item(8, 8), item(3, 1), item(4, 1), item(2, 1), item(12, 8)];
        let found = smallest(&items, 8);
        assert!(found.exact);
        assert_eq!(found.end.next_multiple_of(64), 32 * 8);
    }

    #[test]
    fn many_regions_share_one_budget() {
        let sizes = (0..10_000).map(|n| n % 23 * 3 + 1);
        let items: Vec<_> =
            sizes.map(|n| Item { fence: n % 23 == 0, ..item(n, if n % 2 == 0 { 32 } else { 1 }) }).collect();
        let found = smallest(&items, 32);
        assert_eq!(found.order.len(), items.len());
        assert!(!found.exact, "and says so");
    }

    #[test]
    fn many_members_of_many_classes_end_in_time() {
        let items: Vec<_> = (0..100_000).map(|n| item(n % 97 + 1, 1 << (n % 4))).collect();
        let found = smallest(&items, 8);
        assert_eq!(found.order.len(), items.len());
    }
}
