//! Orders of members by the groups of a `net_cachelines` table: what a path uses lies together, on as few lines as it
//! takes.
//!
//! The first member stays, then come members that no path uses up to the next line, if that saves one, then the groups,
//! then the rest in its order. No member of a group lies on two lines if it fits on one. The sequence of the groups is
//! the one of all that takes the fewest lines, then splits the fewest groups that would fit on one, then has the fewest
//! lines with both what is only read and what is written.

use super::item::{self, Body, Item};
use super::proposal::{self, Grouping, Proposal};
use super::{Refusal, ReorganizeOptions, Reorganizer};
use crate::check::{Table, TableEntry};
use crate::explain::replay;
use crate::query::{Field, fields};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tallyline_debuginfo::model::{Member, RecordId, Types};

/// A hole in front of a member of a group that is no longer worth a search for a filler.
const SMALL_HOLE: u64 = 8 * 8;

/// The items of a group, by their indices.
struct ItemGroup {
    name: String,
    is_written: bool,
    items: Vec<usize>,
}

/// Items in a sequence, and the cost of it.
#[derive(Clone, Debug, Default)]
struct Arrangement {
    order: Vec<usize>,
    /// The ranges of `order` that are groups.
    groups: Vec<(usize, Range<usize>)>,
    /// Lines of the groups, groups that are split without need, lines that are both read and written.
    cost: (u64, u64, u64),
}

impl Reorganizer<'_> {
    /// Proposes an order of a struct's members in which the fields that a path of the code (transmit, receive) uses, by
    /// a table such as the kernel's `net_cachelines`, lie together as cache-line groups; the struct may stay as large
    /// as it is, or grow.
    ///
    /// # Errors
    /// The struct must not be reordered (the [`Refusal`] says why), or no member of a group may move.
    pub fn propose_grouped(&self, id: RecordId, table: &Table) -> Result<Proposal, Refusal> {
        let types = self.types();
        let record = types.record(id);
        let members = types.members(record);
        // an empty struct is no mark of a place: with another configuration it has members
        let is_empty = |member: &&Member| {
            let inner = types.as_record(types.strip(member.ty));
            member.size == 0 && inner.is_some_and(|(_, inner)| types.members(inner).is_empty())
        };
        let empty = members.iter().filter(is_empty).map(|member| types.name(member.name).to_vec());
        let unpin = self.options().unpin.iter().cloned().chain(empty).collect();
        let options = ReorganizeOptions { pin_last: false, unpin, ..self.options().clone() };
        if let Some(refusal) = self.refuse(id, record, &options) {
            return Err(refusal);
        }
        let shape = self.abi.shape(id);
        let replayed =
            replay(&self.abi, id, shape.packing, shape.guessed).map_err(|_| Refusal::Unexplained(None))?;
        let items = item::items(types, members, &replayed, &options);
        // nothing moves past what stays, but for the first
        let first = usize::from(items.first().is_some_and(|item| item.fence));
        let open = first..(first..items.len()).find(|at| items[*at].fence).unwrap_or(items.len());
        let named = fields(types, record);
        let (groups, used, unplaced) = groups(types, table, &named, &items, members, &open);
        if groups.is_empty() {
            return Err(Refusal::Unexplained(unplaced.first().cloned()));
        }
        let line = options.cacheline.max(1) * 8;
        let manners = [(true, false), (true, true), (false, false), (false, true)];
        let best = sequences(groups.len())
            .into_iter()
            .flat_map(|sequence| manners.map(|manner| (sequence.clone(), manner)))
            .map(|(sequence, (fills, whole))| arrange(&items, &groups, &sequence, &open, line, fills, whole))
            .min_by_key(|arrangement| arrangement.cost)
            .unwrap_or_default();
        let proven = proposal::Proven { size: false, moves: false };
        let lay_out = |order: &[usize]| {
            proposal::lay_out(types, id, &items, order, replayed.align, proven, self)
                .ok_or(Refusal::Unexplained(None))
        };
        let mut order = best.order.clone();
        let mut proposal = lay_out(&order)?;
        if proposal.new.size > record.size {
            // the rest by alignment has no holes
            let start = best.groups.last().map_or(0, |(_, range)| range.end);
            let end = order.len() - (items.len() - open.end);
            let align = |at: &usize| std::cmp::Reverse(alignment(&items[*at]));
            order[start..end].sort_by_key(align);
            let smaller = lay_out(&order)?;
            if smaller.new.size < proposal.new.size {
                proposal = smaller;
            }
        }
        let counts: Vec<usize> = proposal.arranged.iter().map(|at| items[*at].count).collect();
        let first_of = |at: usize| counts[..at].iter().sum::<usize>();
        let members_of = |range: &Range<usize>| first_of(range.start)..first_of(range.end);
        let planned = best.groups.iter();
        let planned =
            planned.map(|(group, range)| (groups[*group].name.clone(), members_of(range))).collect();
        let lines = lines(&used, &proposal, members, line);
        proposal.grouping = Grouping { groups: planned, lines, unplaced };
        Ok(proposal)
    }
}

/// Sorts the items that may move into the groups of the table; returns the fields of these, and the names that the
/// groups lack.
fn groups(
    types: &Types,
    table: &Table,
    named: &[Field],
    items: &[Item],
    members: &[Member],
    open: &Range<usize>,
) -> (Vec<ItemGroup>, Vec<(usize, Field)>, Vec<String>) {
    let (mut unplaced, mut used) = (Vec::new(), Vec::new());
    let mut uses: BTreeMap<usize, TableEntry> = BTreeMap::new();
    for entry in table.uses() {
        let field = named.iter().find(|field| types.name(field.name()) == entry.name().as_bytes());
        let member = field.and_then(|field| {
            members.iter().position(|member| {
                let bits = member.bitfield.map_or(member.size * 8, |bits| u64::from(bits.size));
                (member.bit_offset..member.bit_offset + bits).contains(&field.bit_offset())
            })
        });
        let item = member.and_then(|member| {
            open.clone().find(|at| (items[*at].first..items[*at].first + items[*at].count).contains(&member))
        });
        match (field, member, item) {
            (Some(field), Some(member), Some(item)) => {
                used.push((member, *field));
                uses.entry(item)
                    .and_modify(|known| *known = known.joined(entry))
                    .or_insert_with(|| entry.clone());
            }
            _ => unplaced.push(entry.name().to_owned()),
        }
    }
    let mut groups: BTreeMap<(bool, &'static str), Vec<usize>> = BTreeMap::new();
    for (item, entry) in &uses {
        groups.entry((entry.is_written(), entry.path().unwrap_or_default())).or_default().push(*item);
    }
    let groups = groups.into_iter().map(|((is_written, path), mut members)| {
        // of one size in the order of the declaration: what stands in one conditional stays together
        members.sort_by_key(|at| {
            std::cmp::Reverse((alignment(&items[*at]), items[*at].body.least().div_ceil(8)))
        });
        let access = if is_written { "write" } else { "read" };
        ItemGroup { name: format!("{}_{access}_{path}", table.name()), is_written, items: members }
    });
    (groups.collect(), used, unplaced)
}

fn alignment(item: &Item) -> u64 {
    match &item.body {
        Body::Bytes { align, .. } => *align,
        Body::Run(_) => item.body.period(),
    }
}

/// Returns all sequences of so many things; of more than six only the one as they are.
fn sequences(count: usize) -> Vec<Vec<usize>> {
    if count > 6 {
        return vec![(0..count).collect()];
    }
    (0..count).fold(vec![Vec::new()], |known, next| {
        known
            .into_iter()
            .flat_map(|sequence: Vec<usize>| {
                (0..=sequence.len()).map(move |at| {
                    let mut longer = sequence.clone();
                    longer.insert(at, next);
                    longer
                })
            })
            .collect()
    })
}

/// The placement of items one behind the other.
struct Placement<'i> {
    items: &'i [Item],
    line: u64,
    /// Behind what is placed, in bits.
    position: u64,
    order: Vec<usize>,
    /// Items of no group that are not placed, in their order.
    rest: Vec<usize>,
}

impl Placement<'_> {
    fn place(&mut self, item: usize) {
        self.position = self.items[item].body.end(self.position);
        self.order.push(item);
    }

    /// Returns the first bit that an item would have next.
    fn start(&self, item: usize) -> u64 {
        let body = &self.items[item].body;
        match body {
            Body::Bytes { size, .. } => body.end(self.position) - size,
            Body::Run(_) => self.position,
        }
    }

    /// Returns `true` if an item, placed next, lies on one line, or starts one if it is larger than a line, and leaves
    /// fewer than `hole` bits unused before it (none for 0).
    fn fits(&self, item: usize, hole: u64) -> bool {
        let (start, end) = (self.start(item), self.items[item].body.end(self.position));
        let is_whole = start / self.line == end.saturating_sub(1) / self.line;
        let is_large = self.items[item].body.least() > self.line && start.is_multiple_of(self.line);
        (is_whole || is_large) && start - self.position < hole.max(1)
    }

    /// Fills with items of no group up to the end of the line, as far as they fit without holes.
    fn fill_line(&mut self) {
        self.fill(self.position.next_multiple_of(self.line));
    }

    /// Fills with items of no group up to a position, the largest first, as far as they fit without holes.
    fn fill(&mut self, end: u64) {
        while self.position < end && self.position.is_multiple_of(8) {
            let left = end - self.position;
            let fitting = (0..self.rest.len()).filter(|at| {
                let item = self.rest[*at];
                self.items[item].body.least() <= left && self.fits(item, 1)
            });
            let Some(at) =
                fitting.max_by_key(|at| (self.items[self.rest[*at]].body.least(), std::cmp::Reverse(*at)))
            else {
                return;
            };
            let item = self.rest.remove(at);
            self.place(item);
        }
    }
}

/// Places the groups in a sequence. With `fills` they begin on a line; with `whole` a group that fits on a line begins
/// one rather than lie on two.
fn arrange(
    items: &[Item],
    groups: &[ItemGroup],
    sequence: &[usize],
    open: &Range<usize>,
    line: u64,
    fills: bool,
    whole: bool,
) -> Arrangement {
    let grouped: BTreeSet<usize> = groups.iter().flat_map(|group| group.items.iter().copied()).collect();
    let rest = open.clone().filter(|at| !grouped.contains(at)).collect();
    let mut placement = Placement { items, line, position: 0, order: Vec::new(), rest };
    (0..open.start).for_each(|item| placement.place(item));
    if fills {
        placement.fill_line();
    }
    let mut found = Arrangement::default();
    let mut kinds: BTreeMap<u64, (bool, bool)> = BTreeMap::new();
    for group in sequence {
        let ItemGroup { items: members, is_written, .. } = &groups[*group];
        let size: u64 = members.iter().map(|at| items[*at].body.least()).sum();
        let is_small = size <= line;
        if whole && is_small && placement.position % line + size > line {
            placement.fill_line();
        }
        let first = placement.order.len();
        let mut waiting = members.clone();
        let mut lines = BTreeSet::new();
        while !waiting.is_empty() {
            let at = match waiting.iter().position(|item| placement.fits(*item, SMALL_HOLE)) {
                Some(at) => at,
                None => {
                    placement.fill_line();
                    waiting.iter().position(|item| placement.fits(*item, SMALL_HOLE)).unwrap_or(0)
                }
            };
            let item = waiting.remove(at);
            let start = placement.start(item);
            placement.fill(start);
            placement.place(item);
            for number in start / line..=placement.position.saturating_sub(1) / line {
                lines.insert(number);
                let kind = kinds.entry(number).or_default();
                *(if *is_written { &mut kind.1 } else { &mut kind.0 }) = true;
            }
        }
        found.cost.1 += u64::from(is_small && lines.len() > 1);
        found.groups.push((*group, first..placement.order.len()));
    }
    found.cost.0 = kinds.len() as u64;
    found.cost.2 = kinds.values().filter(|(read, written)| *read && *written).count() as u64;
    let Placement { mut order, rest, .. } = placement;
    order.extend(rest);
    order.extend(open.end..items.len());
    found.order = order;
    found
}

/// Returns the numbers of lines that fields take today and as proposed.
fn lines(used: &[(usize, Field)], proposal: &Proposal, members: &[Member], line: u64) -> (u64, u64) {
    let lines_of = |offset: u64, field: &Field| {
        let end = offset.saturating_add(field.bits()).max(offset + 1) - 1;
        offset / line..=end / line
    };
    let today: BTreeSet<u64> =
        used.iter().flat_map(|(_, field)| lines_of(field.bit_offset(), field)).collect();
    let then: BTreeSet<u64> = used
        .iter()
        .flat_map(|(member, field)| {
            let at = proposal.order.iter().position(|known| known == member).unwrap_or_default();
            let inside = field.bit_offset() - members[*member].bit_offset;
            lines_of(proposal.members[at].bit_offset + inside, field)
        })
        .collect();
    (today.len() as u64, then.len() as u64)
}
