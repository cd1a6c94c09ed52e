//! Items, which move as one: a member, or a run of bitfields.

use super::ReorganizeOptions;
use crate::explain::Bits;
use crate::explain::{Replay, ReplayedMember};
use crate::groups::is_marker;
use crate::query::ends_flexibly;
use tallyline_debuginfo::model::{Member, MemberKind, Types};

/// The contents of an item, which decide its position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Body {
    /// A member of whole bytes.
    Bytes {
        /// The size of the member in bits.
        size: u64,
        /// The alignment of the member in bits.
        align: u64,
    },
    /// Bitfields, which begin where the item before them ends.
    Run(Vec<Bits>),
}

impl Body {
    /// Returns the first bit behind it, when everything before `position` is taken.
    pub(super) fn end(&self, position: u64) -> u64 {
        match self {
            Body::Bytes { size, align } => position.next_multiple_of((*align).max(8)) + size,
            Body::Run(run) => run.iter().fold(position, |position, bits| bits.end(position)),
        }
    }

    /// Returns the bits that it takes wherever it is.
    pub(super) fn least(&self) -> u64 {
        match self {
            Body::Bytes { size, .. } => *size,
            Body::Run(run) => run.iter().map(|bits| bits.width).sum(),
        }
    }

    /// Returns the number of bits after which positions are equivalent for this item.
    pub(super) fn period(&self) -> u64 {
        match self {
            Body::Bytes { align, .. } => (*align).max(8),
            Body::Run(run) => {
                run.iter().map(|bits| bits.unit.max(bits.align).max(bits.asked)).max().unwrap_or(8).max(8)
            }
        }
    }
}

/// Consecutive members that move as one.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// The index, among the record's members, of the first member of the item.
    pub(super) first: usize,
    /// The number of members in the item, static ones included.
    pub(super) count: usize,
    /// The contents of the item, which decide its position.
    pub(super) body: Body,
    /// `true` if the item stays in position, and nothing moves past it.
    pub(super) fence: bool,
}

/// Cuts a record's members into items.
pub(super) fn items(
    types: &Types,
    members: &[Member],
    replay: &Replay,
    options: &ReorganizeOptions,
) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    // static members go with the one behind them
    let mut waiting = 0;
    for (index, placed) in replay.members.iter().enumerate() {
        let behind = || replay.behind.iter().filter(move |(at, _)| *at == index).map(|(_, bits)| *bits);
        match placed {
            ReplayedMember::Nowhere => waiting += 1,
            ReplayedMember::Bytes { size, align } => {
                let body = Body::Bytes { size: size * 8, align: align * 8 };
                let fence = stays(types, &members[index], *size, options);
                items.push(Item { first: index - waiting, count: waiting + 1, body, fence });
                waiting = 0;
            }
            ReplayedMember::Bits { before, field } => {
                let bits = before.iter().copied().chain([*field]).chain(behind());
                let fence = options.pinned(types.name(members[index].name)).unwrap_or(false);
                match items.last_mut() {
                    Some(Item { count, body: Body::Run(run), fence: stays, .. }) if waiting == 0 => {
                        run.extend(bits);
                        *count += 1;
                        *stays |= fence;
                    }
                    _ => {
                        let body = Body::Run(bits.collect());
                        items.push(Item { first: index - waiting, count: waiting + 1, body, fence });
                    }
                }
                waiting = 0;
            }
        }
    }
    if let Some(last) = items.last_mut() {
        last.count += waiting;
    }
    pin_ends(types, members, &mut items, options);
    items
}

/// Returns `true` if a member stays in position, by its kind or by an option.
fn stays(types: &Types, member: &Member, size: u64, options: &ReorganizeOptions) -> bool {
    let name = types.name(member.name);
    if member.kind == MemberKind::Base || member.artificial || is_marker(name) {
        return true;
    }
    // members of no size mark a place, or separate what is on both sides
    options.pinned(name).unwrap_or(size == 0 || holds_flexible(types, member))
}

/// Returns `true` if a member's type ends with a flexible array: it can only be the last.
fn holds_flexible(types: &Types, member: &Member) -> bool {
    types.as_record(types.strip(member.ty)).is_some_and(|(_, record)| ends_flexibly(types, record))
}

/// Pins the first member, which casts to and from other structs rely on, and the last, which is often longer
/// than declared.
fn pin_ends(types: &Types, members: &[Member], items: &mut [Item], options: &ReorganizeOptions) {
    let freed = |item: &Item| {
        members[item.first..item.first + item.count]
            .iter()
            .any(|member| options.pinned(types.name(member.name)) == Some(false))
    };
    if let Some(first) = items.first_mut() {
        first.fence |= options.pin_first && !freed(first);
    }
    if let Some(last) = items.last_mut() {
        last.fence |= options.pin_last && !freed(last);
    }
}
