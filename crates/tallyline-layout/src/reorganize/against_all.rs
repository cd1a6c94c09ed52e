//! Tests: what the searches find, against every order there is.

use super::item::{Body, Item};
use super::moves::{fewest, kept};
use super::smallest::smallest;
use crate::explain::Bits;

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn item(&mut self) -> Item {
        let fence = self.below(9) == 0;
        let align = 8 << self.below(4);
        let body = match self.below(8) {
            0 => Body::Run((0..=self.below(2)).map(|_| self.bits()).collect()),
            // asked for: the size is no multiple
            1 => Body::Bytes { size: 8 * (1 + self.below(6)), align: align.max(32) },
            2 if fence => Body::Bytes { size: 0, align: 8 },
            _ => Body::Bytes { size: align * (1 + self.below(3)), align },
        };
        Item { first: 0, count: 1, body, fence }
    }

    fn bits(&mut self) -> Bits {
        let unit = 8 << self.below(4);
        let packed = self.below(8) == 0;
        let align = if packed { 1 } else { unit };
        Bits { width: 1 + self.below(unit), unit, align, asked: 1, packed, named: true }
    }
}

/// Calls with every order in which nothing passes a fence.
fn every_order(items: &[Item], each: &mut dyn FnMut(&[usize])) {
    fn extend(items: &[Item], order: &mut Vec<usize>, used: &mut [bool], each: &mut dyn FnMut(&[usize])) {
        if order.len() == items.len() {
            return each(order);
        }
        let at = order.len();
        // the fence's own place, or what lies between the fences around this place
        let region = (0..=at).rev().find(|index| items[*index].fence).map_or(0, |index| index + 1);
        let end = (at..items.len()).find(|index| items[*index].fence).unwrap_or(items.len());
        let choices = if items[at].fence { at..at + 1 } else { region..end };
        for index in choices {
            if !used[index] {
                used[index] = true;
                order.push(index);
                extend(items, order, used, each);
                order.pop();
                used[index] = false;
            }
        }
    }
    extend(items, &mut Vec::new(), &mut vec![false; items.len()], each);
}

fn size(items: &[Item], order: &[usize], align: u64) -> u64 {
    let end = order.iter().fold(0, |position, index| items[*index].body.end(position));
    end.div_ceil(8).next_multiple_of(align)
}

#[test]
fn no_order_is_smaller_and_none_as_small_has_fewer_moves() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..if cfg!(debug_assertions) { 150 } else { 4_000 } {
        let items: Vec<Item> = (0..2 + random.below(6)).map(|_| random.item()).collect();
        let align = items.iter().map(|item| item.body.period() / 8).max().unwrap_or(1);
        let mut least = u64::MAX;
        every_order(&items, &mut |order| least = least.min(size(&items, order, align)));
        let mut moves = usize::MAX;
        every_order(&items, &mut |order| {
            if size(&items, order, align) == least {
                moves = moves.min(kept(order).iter().filter(|kept| !**kept).count());
            }
        });

        let found = smallest(&items, align);
        assert!(found.exact, "{round}: {items:?}");
        assert_eq!(size(&items, &found.order, align), least, "{round}: {items:?}");
        assert_eq!(found.end.div_ceil(8).next_multiple_of(align), least, "{round}");
        let few = fewest(&items, least * 8).unwrap_or_else(|| panic!("{round}: none of {items:?}"));
        assert!(few.exact, "{round}: {items:?}");
        assert_eq!(size(&items, &few.order, align), least, "{round}: {items:?}");
        let needed = kept(&few.order).iter().filter(|kept| !**kept).count();
        assert_eq!(needed, moves, "{round}: {:?} of {items:?}", few.order);
        let mut all = few.order.clone();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..items.len()), "{round}");
    }
}
