//! Schemas of groups: items, their names, and the events that they form.

use crate::error::{Error, Result};
use crate::memory::CHUNK_WORDS;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A unit of measurement of values, such as bytes, for exporters of metrics.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unit(Cow<'static, str>);

impl Unit {
    /// No unit of measurement, for plain counts of events.
    pub const NONE: Unit = Unit(Cow::Borrowed(""));
    /// The unit of measurement "bytes", for statistics that count bytes.
    pub const BYTES: Unit = Unit(Cow::Borrowed("bytes"));
    /// The unit of measurement "packets", for statistics that count packets.
    pub const PACKETS: Unit = Unit(Cow::Borrowed("packets"));
    /// The unit of measurement "operations", for statistics that count operations.
    pub const OPERATIONS: Unit = Unit(Cow::Borrowed("operations"));
    /// The unit of measurement "nanoseconds", for statistics that sum up durations.
    pub const NANOSECONDS: Unit = Unit(Cow::Borrowed("nanoseconds"));
    /// The unit of measurement "seconds", for statistics that sum up durations.
    pub const SECONDS: Unit = Unit(Cow::Borrowed("seconds"));

    /// Creates a unit of measurement from its plural name, such as `bytes`.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Unit {
        Unit(name.into())
    }

    /// Returns the plural name of the unit of measurement; empty for no unit.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The declaration of one item (64-bit statistic) of a group: name, unit of measurement and help text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemSpec {
    name: Cow<'static, str>,
    unit: Unit,
    help: Cow<'static, str>,
}

impl ItemSpec {
    /// Creates the declaration of a group's item (64-bit statistic) with this name, which for a [registry](crate::Registry)
    /// has to consist of letters, digits, `_` and `:`. Items with an empty name are not exported.
    pub fn new(name: impl Into<Cow<'static, str>>) -> ItemSpec {
        ItemSpec { name: name.into(), unit: Unit::NONE, help: Cow::Borrowed("") }
    }

    /// Sets the unit of measurement of the item (64-bit statistic), for exporters.
    #[must_use]
    pub fn unit(mut self, unit: Unit) -> ItemSpec {
        self.unit = unit;
        self
    }

    /// Sets the help text of the item (64-bit statistic), for exporters.
    #[must_use]
    pub fn help(mut self, help: impl Into<Cow<'static, str>>) -> ItemSpec {
        self.help = help.into();
        self
    }

    /// Returns the name of the item (64-bit statistic).
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name of the unit of measurement of the item (64-bit statistic).
    #[must_use]
    pub fn unit_name(&self) -> &str {
        self.unit.name()
    }

    /// Returns the help text of the item (64-bit statistic).
    #[must_use]
    pub fn help_text(&self) -> &str {
        &self.help
    }
}

/// An item (64-bit statistic) of a group: its index in the order of declaration, and the word (slot) of the group's
/// memory that it is in.
///
/// For groups of its own schema. In one of another it stands for what that has in the same word: another item, none, so
/// that updates are lost, or in an array an item of a later group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Item {
    index: u16,
    slot: u16,
}

impl Item {
    /// Creates an item (64-bit statistic of a group) from its index and slot (word); for code that the macro `group!`
    /// generates.
    #[doc(hidden)]
    #[must_use]
    pub const fn at(index: usize, slot: u16) -> Item {
        Item { index: index as u16, slot }
    }

    /// Returns the index of the item (64-bit statistic) in the order of declaration, which is its position in the
    /// values of a read.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// Returns the index of the 64-bit word in the group's memory that the item is in.
    #[must_use]
    #[inline]
    pub const fn slot(self) -> usize {
        self.slot as usize
    }
}

/// A set of `N` items of a group that are updated together by one commit (a single store where counters are updated by
/// rseq), such as packets and bytes. For groups of its own schema, as an [`Item`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Event<const N: usize> {
    slot: u16,
}

impl<const N: usize> Event<N> {
    /// Creates an event (`N` statistics updated together) whose first item is in this slot (word of the group); for
    /// code that the macro `group!` generates.
    #[doc(hidden)]
    #[must_use]
    pub const fn at(slot: u16) -> Event<N> {
        Event { slot }
    }

    /// Returns the slot (word of the group) of the first item of the event, whose items are updated together; the other
    /// items are in the next slots.
    #[must_use]
    #[inline]
    pub const fn slot(self) -> usize {
        self.slot as usize
    }
}

/// Slot of the first item and number of items of an event.
#[derive(Debug, Clone, Copy)]
struct EventExtent {
    slot: u16,
    items: usize,
}

impl EventExtent {
    /// Returns the bytes of the one store that commits the event.
    const fn width(self) -> usize {
        self.items.next_power_of_two() * 8
    }
}

/// Gives each item of a group its slot: the items of an event lie side by side, at a multiple of
/// their number rounded up to a power of two, widest events first; the others fill the holes in
/// the order of declaration. Without events slots are indices.
///
/// # Errors
/// Why it cannot be: an event of no or more than eight items, an unknown item, or an item in two
/// events.
const fn assign_slots(events: &[&[usize]], slots: &mut [u16]) -> std::result::Result<usize, &'static str> {
    const NOWHERE: u16 = u16::MAX;
    if slots.len() > 8192 {
        return Err("more than 8192 items");
    }
    let mut index = 0;
    while index < slots.len() {
        slots[index] = NOWHERE;
        index += 1;
    }
    let mut next = 0;
    let mut width = CHUNK_WORDS;
    while width >= 1 {
        let mut event = 0;
        while event < events.len() {
            let items = events[event];
            if items.is_empty() || items.len() > CHUNK_WORDS {
                return Err("an event has one to eight items");
            }
            if items.len().next_power_of_two() == width {
                let mut place = 0;
                while place < items.len() {
                    if items[place] >= slots.len() {
                        return Err("an event names an item that is not there");
                    }
                    if slots[items[place]] != NOWHERE {
                        return Err("an item is in two events, or twice in one");
                    }
                    slots[items[place]] = (next + place) as u16;
                    place += 1;
                }
                next += width;
            }
            event += 1;
        }
        width /= 2;
    }
    fill(slots, next)
}

/// Puts items without a slot into the first slots that nobody has.
const fn fill(slots: &mut [u16], extent: usize) -> std::result::Result<usize, &'static str> {
    let mut free = 0;
    let mut end = extent;
    let mut index = 0;
    while index < slots.len() {
        if slots[index] == u16::MAX {
            while is_taken(slots, free) {
                free += 1;
            }
            slots[index] = free as u16;
        }
        if slots[index] as usize >= end {
            end = slots[index] as usize + 1;
        }
        index += 1;
    }
    Ok(end)
}

const fn is_taken(slots: &[u16], slot: usize) -> bool {
    let mut index = 0;
    while index < slots.len() {
        if slots[index] as usize == slot {
            return true;
        }
        index += 1;
    }
    false
}

/// Computes the slots (words) of `N` items (64-bit statistics) at compile time, so that the items of each event
/// (updated together) are adjacent and aligned; for code that the macro `group!` generates.
#[doc(hidden)]
#[must_use]
pub const fn slots_of<const N: usize>(events: &[&[usize]]) -> [u16; N] {
    let mut slots = [0; N];
    match assign_slots(events, &mut slots) {
        Ok(_) => slots,
        Err(_) => {
            panic!("an event of this group has no items, more than eight, or one that another event has")
        }
    }
}

/// The layout of a kind of group: its items (64-bit statistics), its events (items updated together), and the slot
/// (word) of each item. Cheap to clone.
///
/// ```
/// use statctr::{Group, ItemSpec, Schema, Unit};
///
/// let schema = Schema::new(
///     [
///         ItemSpec::new("errors"),
///         ItemSpec::new("packets").unit(Unit::PACKETS),
///         ItemSpec::new("bytes").unit(Unit::BYTES),
///     ],
///     &[&[1, 2]],
/// )?;
/// let packet = schema.event::<2>(0).expect("an event of two items");
/// let group = Group::new(&schema)?;
/// group.commit(packet, [1, 1500]);
/// assert_eq!(group.read(), [0, 1, 1500]);
/// # Ok::<(), statctr::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Schema(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    items: Vec<ItemSpec>,
    slots: Vec<u16>,
    events: Vec<EventExtent>,
    /// Slots that the group takes: items, and holes between events.
    extent: usize,
    /// Bytes of the widest event; 8 where there is none.
    widest: usize,
    in_order: bool,
}

impl Schema {
    /// Creates a schema of these items (64-bit statistics). Each element of `events` lists the indices of items to be
    /// updated together by one commit (a single store); [`event`](Self::event) returns the events.
    ///
    /// # Errors
    /// [`Error::BadSchema`] where there are no items or more than 8192, where an event has no items
    /// or more than eight, names one that is not there, or shares one with another event.
    pub fn new(items: impl IntoIterator<Item = ItemSpec>, events: &[&[usize]]) -> Result<Schema> {
        let items: Vec<ItemSpec> = items.into_iter().collect();
        if items.is_empty() {
            return Err(Error::BadSchema("a group has at least one item".into()));
        }
        let mut slots = vec![0; items.len()];
        let extent = assign_slots(events, &mut slots).map_err(|why| Error::BadSchema(why.into()))?;
        let event = |items: &&[usize]| EventExtent { slot: slots[items[0]], items: items.len() };
        let events: Vec<EventExtent> = events.iter().map(event).collect();
        let widest = events.iter().map(|event| event.width()).max().unwrap_or(8);
        let in_order = slots.iter().enumerate().all(|(index, &slot)| index == slot as usize);
        Ok(Schema(Arc::new(Inner { items, slots, events, extent, widest, in_order })))
    }

    /// Returns the number of items (64-bit statistics) in a group of this schema.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // there is always one
    pub fn len(&self) -> usize {
        self.0.items.len()
    }

    /// Returns the declarations (name, unit of measurement, help text) of the items (64-bit statistics) that a group of
    /// this schema has.
    #[must_use]
    pub fn specs(&self) -> &[ItemSpec] {
        &self.0.items
    }

    /// Returns the item (64-bit statistic of a group) with this index in the order of declaration; `None` if there is
    /// none.
    #[must_use]
    pub fn item(&self, index: usize) -> Option<Item> {
        self.0.slots.get(index).map(|&slot| Item { index: index as u16, slot })
    }

    /// Returns an iterator over the items (64-bit statistics of a group) in the order of declaration.
    pub fn items(&self) -> impl Iterator<Item = Item> + '_ {
        (0..self.len()).filter_map(|index| self.item(index))
    }

    /// Returns the event (items of a group, 64-bit statistics, that are updated together) with this index in the order
    /// given to [`new`](Self::new); `None` if there is none or it does not have `N` items.
    #[must_use]
    pub fn event<const N: usize>(&self, index: usize) -> Option<Event<N>> {
        self.0.events.get(index).filter(|event| event.items == N).map(|event| Event { slot: event.slot })
    }

    /// Returns the number of cache lines (chunks) that a group of this schema takes for each CPU.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.0.extent.div_ceil(CHUNK_WORDS)
    }

    pub(crate) fn widest_event(&self) -> usize {
        self.0.widest
    }

    /// Copies `sums`, the values of a group's words (slots) from `first` on, to `values`, each to the position of the
    /// item (64-bit statistic) in that slot, in the order of declaration.
    pub(crate) fn scatter(&self, first: usize, sums: &[u64], values: &mut [u64]) {
        if self.0.in_order {
            if let Some(values) = values.get_mut(first..) {
                let count = values.len().min(sums.len());
                values[..count].copy_from_slice(&sums[..count]);
            }
            return;
        }
        for (value, &slot) in values.iter_mut().zip(&self.0.slots) {
            if let Some(sum) = (slot as usize).checked_sub(first).and_then(|offset| sums.get(offset)) {
                *value = *sum;
            }
        }
    }

    /// Returns `true` if both are clones of one schema (items and events of a group); equal contents alone do not
    /// count.
    #[must_use]
    pub fn is_same(&self, other: &Schema) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(items: usize, events: &[&[usize]]) -> std::result::Result<(Vec<u16>, usize), &'static str> {
        let mut slots = vec![0; items];
        assign_slots(events, &mut slots).map(|extent| (slots, extent))
    }

    #[test]
    fn without_events_slots_are_indices() {
        assert_eq!(placed(36, &[]), Ok(((0..36).collect(), 36)));
    }

    #[test]
    fn events_are_aligned_to_their_store_and_others_fill_the_holes() {
        // an event of three leaves a hole of one, which item 0 takes
        assert_eq!(placed(6, &[&[4, 5], &[1, 2, 3]]), Ok((vec![3, 0, 1, 2, 4, 5], 6)));
    }

    #[test]
    fn no_event_crosses_a_line_and_no_slot_is_given_twice() {
        let events: &[&[usize]] = &[&[0, 1], &[2, 3, 4], &[5, 6, 7, 8, 9], &[10, 11, 12, 13], &[14]];
        let (slots, extent) = placed(40, events).expect("placed");
        for event in events {
            let width = event.len().next_power_of_two();
            assert_eq!(slots[event[0]] as usize % width, 0);
            assert!(
                event
                    .iter()
                    .enumerate()
                    .all(|(place, &item)| slots[item] as usize == slots[event[0]] as usize + place)
            );
        }
        let mut seen = vec![false; extent];
        slots.iter().for_each(|&slot| assert!(!std::mem::replace(&mut seen[slot as usize], true)));
    }

    #[test]
    fn schemas_that_cannot_be_are_refused() {
        for events in
            [&[&[][..]][..], &[&[0, 1, 2, 3, 4, 5, 6, 7, 8]], &[&[99]], &[&[0, 1], &[1, 2]], &[&[3, 3]]]
        {
            let items = (0..20).map(|index| ItemSpec::new(format!("i{index}")));
            assert!(matches!(Schema::new(items, events), Err(Error::BadSchema(_))), "{events:?}");
        }
        assert!(Schema::new([], &[]).is_err());
    }
}
