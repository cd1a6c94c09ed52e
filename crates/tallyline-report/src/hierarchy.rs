//! Rows as a tree: a level for each key.

use super::aggregate::Row;
use super::counts::Counts;

/// A row of a hierarchical report: one value of a level's sort key, with totals of its samples, and the rows of the
/// next level below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub(crate) value: u64,
    pub(crate) counts: Counts,
    pub(crate) events: Vec<Counts>,
    pub(crate) children: Vec<Node>,
}

impl Node {
    /// Returns this report row's value of the sort key of its level (such as a thread's id);
    /// [`Key::text`](crate::keys::Key::text) formats it.
    pub fn value(&self) -> u64 {
        self.value
    }

    /// Returns the totals (number, period, weight) of this row's samples, over all sampled events of the table.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the totals (number, period, weight) of this row's samples for each sampled event.
    pub fn events(&self) -> &[Counts] {
        &self.events
    }

    /// Returns the rows nested below this row of a hierarchical report, one for each value of the next sort key,
    /// largest first.
    pub fn children(&self) -> &[Node] {
        &self.children
    }
}

/// Converts the rows of a flat table into a tree with one level for each sort key. A parent's totals (number, period,
/// weight of samples) are the sums of its children's.
pub fn hierarchy(rows: &[Row]) -> Vec<Node> {
    let mut roots = Vec::new();
    for row in rows {
        insert(&mut roots, row);
    }
    sort(&mut roots);
    roots
}

fn insert(level: &mut Vec<Node>, row: &Row) {
    let mut level = level;
    for value in &row.values {
        // rows come in order of size, so what is looked for is mostly among the first
        let position = level.iter().position(|node| node.value == *value).unwrap_or_else(|| {
            let events = vec![Counts::default(); row.events.len()];
            level.push(Node { value: *value, counts: Counts::default(), events, children: Vec::new() });
            level.len() - 1
        });
        let node = &mut level[position];
        node.counts.add(row.counts);
        node.events.iter_mut().zip(&row.events).for_each(|(sum, counts)| sum.add(*counts));
        level = &mut node.children;
    }
}

fn sort(level: &mut [Node]) {
    level.sort_by(|a, b| {
        let size = |node: &Node| (node.counts.total, node.counts.samples);
        size(b).cmp(&size(a)).then(a.value.cmp(&b.value))
    });
    level.iter_mut().for_each(|node| sort(&mut node.children));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[u64], samples: u64) -> Row {
        let counts = Counts { samples, period: samples * 10, total: samples * 10 };
        Row { values: values.into(), counts, events: [counts].into() }
    }

    #[test]
    fn parents_are_the_sums_of_their_children_and_each_level_is_sorted() {
        let tree = hierarchy(&[row(&[1, 7], 5), row(&[2, 7], 4), row(&[2, 8], 3), row(&[1, 9], 1)]);
        let first: Vec<_> = tree.iter().map(|node| (node.value, node.counts.samples)).collect();
        assert_eq!(first, [(2, 7), (1, 6)]);
        for node in &tree {
            let children: u64 = node.children.iter().map(|child| child.counts.period).sum();
            assert_eq!(children, node.counts.period);
            assert!(node.children.is_sorted_by_key(|child| std::cmp::Reverse(child.counts.total)));
        }
    }
}
