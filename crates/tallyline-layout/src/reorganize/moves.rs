//! The fewest moves that make a record no larger than a given size.
//!
//! A move takes an item out and puts it in elsewhere; what is not moved keeps its order. The search
//! walks over the items in their old order and at each either keeps it, takes it out, or first puts
//! in one of a class that was taken out or is going to be. A state is where the walk is and how many
//! of each class are out; of the ways to one state only the one that is least far along counts
//! (placing is monotone). States are kept by the number of moves, fewest first, so the first that
//! arrives has the fewest.

use super::item::{Body, Item};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The limit on states of one number of moves, over all items; above that, of each item those
/// that are least far along. Of more moves than a few fewer are kept, so that they are reached.
const LAYER: usize = 12_000;
const DEEP_LAYER: usize = 3_000;
const DEEP: usize = 4;
/// Fewer than this are not kept of an item, however many items there are.
const LEAST: usize = 16;
/// The most states in all.
const STATES: usize = 200_000;
/// The most items that are searched; of more the fewest moves are not looked for.
const ITEMS: usize = 1_000;

/// An order, and whether none of this size has fewer moves.
#[derive(Debug)]
pub(super) struct Fewest {
    /// Items by index, in order.
    pub(super) order: Vec<usize>,
    /// `true` if no order has fewer moves.
    pub(super) exact: bool,
}

/// The number of items of each class that are out (positive), or were put in early (negative).
type Out = Vec<(u32, i32)>;

/// The progress, then most out first, so that every path into a state is known when its turn comes.
type Key = (usize, Reverse<u32>, Out);

#[derive(Clone, Copy, Debug)]
enum Step {
    Start,
    Keep,
    Take,
    Put(u32),
}

struct SearchNode {
    // behind what was placed, in bits
    position: u64,
    step: Step,
    from: Option<(u32, Key)>,
}

type Layer = BTreeMap<Key, SearchNode>;

struct Search<'a> {
    items: &'a [Item],
    /// The class of each item.
    classes: Vec<u32>,
    /// The items of each class, in order.
    members: Vec<Vec<usize>>,
    /// The minimum size of the items from each index on.
    rest: Vec<u64>,
    least: Vec<u64>,
    limit: u64,
    layers: Vec<Layer>,
    /// `true` if no state was dropped.
    exact: bool,
}

/// Finds an order that ends by `limit` (in bits) with the fewest moves. None if the search is too
/// large for that.
pub(super) fn fewest(items: &[Item], limit: u64) -> Option<Fewest> {
    if items.len() > ITEMS {
        return None;
    }
    let mut search = Search::new(items, limit);
    let mut seen = 0;
    let mut next = Layer::new();
    next.insert((0, Reverse(0), Out::new()), SearchNode { position: 0, step: Step::Start, from: None });
    while !next.is_empty() && seen < STATES {
        let (layer, more, end) = search.layer(next);
        seen += layer.len();
        search.layers.push(layer);
        if let Some(end) = end {
            return Some(Fewest { order: search.order(end), exact: search.exact });
        }
        next = more;
    }
    None
}

impl<'a> Search<'a> {
    fn new(items: &'a [Item], limit: u64) -> Search<'a> {
        let mut known: FxHashMap<(usize, Body), u32> = FxHashMap::default();
        let mut members: Vec<Vec<usize>> = Vec::new();
        let mut region = 0;
        let mut classes = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            // a fence is of a class of its own, and nothing moves past it
            region += usize::from(item.fence);
            let class = *known.entry((region, item.body.clone())).or_insert_with(|| {
                members.push(Vec::new());
                members.len() as u32 - 1
            });
            if item.fence {
                region += 1;
            }
            members[class as usize].push(index);
            classes.push(class);
        }
        let least: Vec<u64> = items.iter().map(|item| item.body.least()).collect();
        let mut rest = vec![0; items.len() + 1];
        for index in (0..items.len()).rev() {
            rest[index] = rest[index + 1] + least[index];
        }
        Search { items, classes, members, rest, least, limit, layers: Vec::new(), exact: true }
    }

    /// Follows every way of one number of moves to its end: the layer, the next one, and the end
    /// if one arrives.
    fn layer(&mut self, mut open: Layer) -> (Layer, Layer, Option<Key>) {
        let number = self.layers.len() as u32;
        let (mut done, mut next) = (Layer::new(), Layer::new());
        let mut pruned = None;
        while let Some((key, way)) = open.pop_first() {
            if pruned != Some(key.0) {
                pruned = Some(key.0);
                self.exact &= !self.prune(&mut open, key.0);
            }
            if self.known_better(&key, way.position) {
                continue;
            }
            let (index, _, out) = &key;
            if *index == self.items.len() && out.is_empty() {
                done.insert(key.clone(), way);
                return (done, next, Some(key));
            }
            let position = way.position;
            self.expand(*index, out, position, &mut |cost, key_of, position, step| {
                let to = if cost { &mut next } else { &mut open };
                offer(to, key_of, SearchNode { position, step, from: Some((number, key.clone())) });
            });
            done.insert(key, way);
        }
        (done, next, None)
    }

    /// Drops what is too much of an item's states, of which those are first; whether anything was.
    fn prune(&self, open: &mut Layer, index: usize) -> bool {
        let layer = if self.layers.len() < DEEP { LAYER } else { DEEP_LAYER };
        let keep = (layer / (self.items.len() + 1)).max(LEAST);
        let here = open.iter().take_while(|(key, _)| key.0 == index);
        // how far along with what is out, as if it was put in here
        let mut places: Vec<(u64, Key)> = here
            .map(|(key, way)| (with_out(way.position, &key.2, |class| self.size(class)), key.clone()))
            .collect();
        if places.len() <= keep {
            return false;
        }
        places.select_nth_unstable_by_key(keep, |(place, _)| *place);
        for (_, key) in &places[keep..] {
            open.remove(key);
        }
        true
    }

    /// Returns the minimum size of an item of a class.
    fn size(&self, class: u32) -> u64 {
        self.least[self.members[class as usize][0]]
    }

    fn known_better(&self, key: &Key, position: u64) -> bool {
        self.layers.iter().any(|layer| layer.get(key).is_some_and(|way| way.position <= position))
    }

    /// Offers every step from a state, with `true` if it costs a move, the next state, and the position in that.
    fn expand(&self, index: usize, out: &Out, position: u64, offer: &mut dyn FnMut(bool, Key, u64, Step)) {
        let next = self.items.get(index).filter(|item| !item.fence || out.is_empty());
        if let Some(end) = next.map(|item| item.body.end(position))
            && self.fits(end, index + 1, out)
        {
            offer(false, key(index + 1, out.clone()), end, Step::Keep);
        }
        if self.items.get(index).is_none_or(|item| item.fence) {
            // what is out has to be in again before it
            for (class, count) in out.iter().filter(|(_, count)| *count > 0) {
                self.put(index, out, *class, *count, position, offer);
            }
            return;
        }
        let class = self.classes[index];
        let count = count_of(out, class);
        offer(count >= 0, key(index + 1, changed(out, class, 1)), position, Step::Take);
        for class in self.candidates(index, out) {
            self.put(index, out, class, count_of(out, class), position, offer);
        }
    }

    fn put(
        &self,
        index: usize,
        out: &Out,
        class: u32,
        count: i32,
        position: u64,
        offer: &mut dyn FnMut(bool, Key, u64, Step),
    ) {
        let body = &self.items[self.members[class as usize][0]].body;
        let out = changed(out, class, -1);
        let end = body.end(position);
        if self.fits(end, index, &out) {
            offer(count <= 0, key(index, out), end, Step::Put(class));
        }
    }

    /// Classes that can be put in before an item: those that are out, and those of which there are
    /// more to come, up to the next fence, than were put in already.
    fn candidates(&self, index: usize, out: &Out) -> Vec<u32> {
        let mut classes: Vec<u32> =
            out.iter().filter(|(_, count)| *count > 0).map(|(class, _)| *class).collect();
        let mut to_come: Vec<(u32, i32)> = Vec::new();
        for at in index..self.items.len() {
            if self.items[at].fence {
                break;
            }
            match to_come.iter_mut().find(|(class, _)| *class == self.classes[at]) {
                Some((_, count)) => *count += 1,
                None => to_come.push((self.classes[at], 1)),
            }
        }
        for (class, count) in to_come {
            if count + count_of(out, class) > 0 && !classes.contains(&class) {
                classes.push(class);
            }
        }
        classes
    }

    /// Returns `true` if the items from `index` on and those that are out can still fit.
    fn fits(&self, position: u64, index: usize, out: &Out) -> bool {
        let end = position.saturating_add(self.rest[index]);
        with_out(end, out, |class| self.size(class)) <= self.limit
    }

    /// Returns the order that leads to a state.
    fn order(&self, end: Key) -> Vec<usize> {
        let mut steps = Vec::new();
        let mut at = Some((self.layers.len() as u32 - 1, end));
        while let Some((layer, key)) = at {
            let Some(way) = self.layers[layer as usize].get(&key) else { break };
            steps.push((key.0, way.step));
            at = way.from.clone();
        }
        steps.reverse();
        // which items were taken out, of each class in order: the first out is the first in
        let mut taken: Vec<std::collections::VecDeque<usize>> = vec![Default::default(); self.members.len()];
        for (index, step) in &steps {
            if let Step::Take = step {
                taken[self.classes[index - 1] as usize].push_back(index - 1);
            }
        }
        let mut order = Vec::with_capacity(self.items.len());
        for (index, step) in steps {
            match step {
                Step::Keep => order.push(index - 1),
                Step::Put(class) => order.extend(taken[class as usize].pop_front()),
                Step::Take | Step::Start => {}
            }
        }
        order
    }
}

fn key(index: usize, out: Out) -> Key {
    let moved = out.iter().map(|(_, count)| count.unsigned_abs()).sum();
    (index, Reverse(moved), out)
}

/// Returns a place, moved by what is out and what was put in early.
fn with_out(place: u64, out: &Out, size: impl Fn(u32) -> u64) -> u64 {
    out.iter().fold(place, |place, (class, count)| {
        place.saturating_add_signed(i64::from(*count).saturating_mul(size(*class) as i64))
    })
}

fn count_of(out: &Out, class: u32) -> i32 {
    out.iter().find(|(known, _)| *known == class).map_or(0, |(_, count)| *count)
}

fn changed(out: &Out, class: u32, by: i32) -> Out {
    let mut out = out.clone();
    match out.binary_search_by_key(&class, |(known, _)| *known) {
        Ok(at) if out[at].1 + by == 0 => {
            out.remove(at);
        }
        Ok(at) => out[at].1 += by,
        Err(at) => out.insert(at, (class, by)),
    }
    out
}

/// Keeps a way if it is the first to its state, or less far along than the one known.
fn offer(layer: &mut Layer, key: Key, way: SearchNode) {
    match layer.entry(key) {
        std::collections::btree_map::Entry::Vacant(entry) => {
            entry.insert(way);
        }
        std::collections::btree_map::Entry::Occupied(mut entry) => {
            if way.position < entry.get().position {
                entry.insert(way);
            }
        }
    }
}

/// Marks the longest run of items that keep their order; the others are the moves that lead from the old
/// order to the new one.
pub(super) fn kept(order: &[usize]) -> Vec<bool> {
    // the longest increasing subsequence, by the last element of the shortest ends
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; order.len()];
    for at in 0..order.len() {
        let place = ends.partition_point(|end| order[*end] < order[at]);
        before[at] = place.checked_sub(1).map(|place| ends[place]);
        if place == ends.len() {
            ends.push(at);
        } else {
            ends[place] = at;
        }
    }
    let mut kept = vec![false; order.len()];
    let mut at = ends.last().copied();
    while let Some(position) = at {
        kept[order[position]] = true;
        at = before[position];
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(size: u64, align: u64) -> Item {
        Item { first: 0, count: 1, body: Body::Bytes { size: size * 8, align: align * 8 }, fence: false }
    }

    fn moved(order: &[usize]) -> usize {
        kept(order).iter().filter(|kept| !**kept).count()
    }

    #[test]
    fn one_move_is_found_where_one_is_enough() {
        // c l c l c l: the last c into the first hole, and one more
        let items = [item(1, 1), item(8, 8), item(1, 1), item(8, 8)];
        let found = fewest(&items, 24 * 8).expect("small");
        assert!(found.exact);
        assert_eq!(moved(&found.order), 1, "{:?}", found.order);
        let found = fewest(&items, 32 * 8).expect("small");
        assert_eq!(found.order, [0, 1, 2, 3]);
    }

    #[test]
    fn what_does_not_fit_is_not_found() {
        assert!(fewest(&[item(1, 1), item(8, 8)], 8 * 8).is_none());
    }

    #[test]
    fn nothing_is_carried_past_a_fence() {
        let fence = Item { fence: true, ..item(0, 1) };
        let items = [item(4, 4), fence.clone(), item(8, 8), fence, item(4, 4)];
        assert!(fewest(&items, 16 * 8).is_none());
        assert_eq!(fewest(&items, 24 * 8).expect("as it is").order, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn what_keeps_its_order_is_the_longest_run() {
        assert_eq!(kept(&[0, 3, 1, 2]), [true, true, true, false]);
        assert_eq!(moved(&[4, 0, 1, 2, 3]), 1);
    }
}
