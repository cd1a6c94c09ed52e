//! Ranges of code that may overlap, and which of them hold an address.

use std::ops::Range;

/// The most ranges around one address that are told.
const FOUND_LIMIT: usize = 64;

/// A set of address ranges, which may overlap, each with an owner `T` such as a function, searchable by address.
#[derive(Clone, Debug, Default)]
pub struct Ranges<T> {
    all: Vec<(Range<u64>, T)>,
    // a tree over the ranges: the last end in each half, in the halves of that, and so on
    ends: Vec<u64>,
}

impl<T: Copy + Ord> Ranges<T> {
    /// Creates a searchable set from address ranges and their owners.
    pub fn new(mut all: Vec<(Range<u64>, T)>) -> Ranges<T> {
        all.sort_unstable_by_key(|(range, of)| (range.start, range.end, *of));
        let leaves = all.len().next_power_of_two();
        let mut ends = vec![0; 2 * leaves];
        for (index, (range, _)) in all.iter().enumerate() {
            ends[leaves + index] = range.end;
        }
        for node in (1..leaves).rev() {
            ends[node] = ends[2 * node].max(ends[2 * node + 1]);
        }
        Ranges { all, ends }
    }

    /// Returns the owners of all ranges that contain an address, each once, the owner of the narrowest range first.
    pub fn at(&self, address: u64) -> Vec<T> {
        let before = self.all.partition_point(|(range, _)| range.start <= address);
        let mut found: Vec<(u64, T)> = Vec::new();
        let mut open = vec![1_usize];
        let leaves = self.ends.len() / 2;
        while let Some(node) = open.pop() {
            if self.ends.get(node).is_none_or(|end| *end <= address) || found.len() >= FOUND_LIMIT {
                continue;
            }
            if let Some(index) = node.checked_sub(leaves) {
                let (range, of) = &self.all[index];
                found.push((range.end - range.start, *of));
                continue;
            }
            // the last first: where there are too many, those that start near count
            for child in [2 * node, 2 * node + 1] {
                if first_leaf(child, leaves) - leaves < before {
                    open.push(child);
                }
            }
        }
        found.sort_unstable();
        let mut of: Vec<T> = Vec::with_capacity(found.len());
        for (_, one) in found {
            if !of.contains(&one) {
                of.push(one);
            }
        }
        of
    }
}

/// Returns the leftmost leaf below a node.
fn first_leaf(mut node: usize, leaves: usize) -> usize {
    while node < leaves {
        node *= 2;
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ranges_that_hold_an_address_are_found_the_narrowest_first() {
        let ranges = Ranges::new(vec![
            (0x1000..0x9000, 7),
            (0x2000..0x2010, 3),
            (0x2000..0x2010, 1),
            (0x2008..0x3000, 5),
        ]);
        assert_eq!(ranges.at(0x2004), [1, 3, 7]);
        assert_eq!(ranges.at(0x2008), [1, 3, 5, 7]);
        assert_eq!(ranges.at(0x8fff), [7]);
        assert!(ranges.at(0x9000).is_empty() && ranges.at(0xfff).is_empty());
        assert!(Ranges::<u32>::new(Vec::new()).at(1).is_empty());
    }

    #[test]
    fn a_range_around_many_others_is_found_behind_all_of_them() {
        let small = (1..100_000_u64).map(|number| (number * 16..number * 16 + 8, number as u32));
        let ranges = Ranges::new(small.chain([(8..1 << 40, 0)]).collect());
        assert_eq!(ranges.at(99_999 * 16 + 9), [0]);
        assert_eq!(ranges.at(99_999 * 16 + 7), [99_999, 0]);
        for number in 1..99_999 {
            assert_eq!(ranges.at(number * 16 + 4), [number as u32, 0]);
        }
    }
}
