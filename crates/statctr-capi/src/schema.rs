//! Kinds of groups: a C description made into a schema, once for each kind.
//!
//! In C an item's enumerator is its slot. The schema is built so that its slots come out as the
//! same numbers: the whole extent is cut into events as wide as the widest of the kind, in order.
//! Slots that an event skipped are items without a name.
//!
//! Groups of one kind share one schema, so that they can be folded together. The schemas are in a
//! list that only grows and is walked without a lock, so a fork at any moment leaves it whole; it
//! is as long as a process has kinds of groups.

#![allow(unsafe_code)] // descriptions come from C, and the list's nodes live for ever

use statctr::{ItemSpec, Schema, Unit};
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::atomic::{AtomicPtr, Ordering};

/// An entry of a C group's description: an item (statistic; `width` 0) with name, unit, help text and slot (its word in
/// the group), or an event (items updated together) with its number of slots and the first of them:
/// `statctr_item_desc_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct StatctrItemDesc {
    /// The name of the item; not read for an event.
    pub name: *const c_char,
    /// The unit of the item; not read for an event.
    pub unit: *const c_char,
    /// The help text of the item; not read for an event.
    pub help: *const c_char,
    /// The item's slot, or that of the event's first item.
    pub slot: u32,
    /// 0 for an item, else how many slots the event has.
    pub width: u32,
}

/// A C description of a kind of group, the list of its items (64-bit statistics) and events (items updated together):
/// `statctr_group_desc_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct StatctrGroupDesc {
    /// The descriptions of the items and events.
    pub items: *const StatctrItemDesc,
    /// The number of entries in `items`: items and events.
    pub count: u32,
    /// The number of slots of a group.
    pub slots: u32,
}

const _: () = assert!(size_of::<StatctrItemDesc>() == 3 * size_of::<usize>() + 8);
const _: () = assert!(size_of::<StatctrGroupDesc>() == size_of::<usize>() + 8);

/// More than any schema has, to refuse nonsense before it is read.
const MAX_SLOTS: u32 = 1 << 16;

/// The name, unit of measurement and help text of one item (64-bit statistic) of a C group as C strings; empty for an
/// unused slot.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct ItemTexts {
    pub(crate) name: CString,
    pub(crate) unit: CString,
    pub(crate) help: CString,
}

/// The schema of a kind of group of C counters: its items (64-bit statistics) and events (items updated together), made
/// from a C description and kept for the life of the process; equal descriptions share one.
pub(crate) struct InternedSchema {
    pub(crate) schema: Schema,
    pub(crate) texts: Vec<ItemTexts>,
    widest: usize,
    next: *const InternedSchema,
}

static KINDS: AtomicPtr<InternedSchema> = AtomicPtr::new(std::ptr::null_mut());

/// Returns the kinds known so far, from `newest` on.
fn known(newest: *const InternedSchema) -> impl Iterator<Item = &'static InternedSchema> {
    // SAFETY: nodes are leaked when they are linked, and not changed from then on.
    let follow = |kind: *const InternedSchema| unsafe { kind.as_ref() };
    std::iter::successors(follow(newest), move |kind| follow(kind.next))
}

/// Returns the interned schema (items and events of a kind of group of C counters, with their texts as C strings) that
/// a group's `Schema` belongs to; `None` if the group was not made from C.
pub(crate) fn interned_schema_of(schema: &Schema) -> Option<&'static InternedSchema> {
    known(KINDS.load(Ordering::Acquire)).find(|kind| kind.schema.is_same(schema))
}

/// Returns the interned schema (items and events) for a C description of a kind of group of counters, which is created
/// unless an equal one exists. An error is a positive `errno`.
///
/// # Safety
/// `desc` is NULL or leads to a description whose pointers lead to what their types say.
pub(crate) unsafe fn intern(desc: *const StatctrGroupDesc) -> Result<&'static InternedSchema, c_int> {
    // SAFETY: passed on.
    let (texts, widest) = unsafe { parse(desc)? };
    let mut newest = KINDS.load(Ordering::Acquire);
    if let Some(kind) = known(newest).find(|kind| kind.widest == widest && kind.texts == texts) {
        return Ok(kind);
    }
    let schema = schema(&texts, widest)?;
    let mut kind = Box::new(InternedSchema { schema, texts, widest, next: newest });
    loop {
        kind.next = newest;
        let node = Box::into_raw(kind);
        match KINDS.compare_exchange(newest, node, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: linked just now, and never freed.
            Ok(_) => return Ok(unsafe { &*node }),
            // SAFETY: not linked, so still ours alone.
            Err(now) => (kind, newest) = (unsafe { Box::from_raw(node) }, now),
        }
        if let Some(same) = known(newest).find(|other| other.widest == widest && other.texts == kind.texts) {
            return Ok(same);
        }
    }
}

/// Returns the texts of each slot, and the width of the widest event in slots.
unsafe fn parse(desc: *const StatctrGroupDesc) -> Result<(Vec<ItemTexts>, usize), c_int> {
    // SAFETY: NULL or a description, by the caller's promise.
    let desc = unsafe { desc.as_ref() }.ok_or(libc::EINVAL)?;
    if desc.items.is_null() || desc.slots == 0 || desc.slots > MAX_SLOTS || desc.count > MAX_SLOTS {
        return Err(if desc.slots > MAX_SLOTS { libc::E2BIG } else { libc::EINVAL });
    }
    // SAFETY: not NULL, so it leads to `count` descriptions by the caller's promise.
    let descs = unsafe { std::slice::from_raw_parts(desc.items, desc.count as usize) };
    let mut texts = vec![ItemTexts::default(); desc.slots as usize];
    let mut widest = 1;
    for desc in descs {
        let slot = desc.slot as usize;
        if desc.width == 0 {
            let place = texts.get_mut(slot).ok_or(libc::EINVAL)?;
            // SAFETY: passed on.
            let own = unsafe {
                ItemTexts { name: text(desc.name)?, unit: text(desc.unit)?, help: text(desc.help)? }
            };
            if own.name.is_empty() || !place.name.is_empty() {
                return Err(libc::EINVAL);
            }
            *place = own;
        } else if matches!(desc.width, 2 | 4 | 8)
            && slot.is_multiple_of(desc.width as usize)
            && slot < texts.len()
        {
            widest = widest.max(desc.width as usize);
        } else {
            return Err(libc::EINVAL);
        }
    }
    Ok((texts, widest))
}

/// Returns a copy of a C string; NULL is an empty one.
unsafe fn text(text: *const c_char) -> Result<CString, c_int> {
    if text.is_null() {
        return Ok(CString::default());
    }
    // SAFETY: not NULL, so it leads to a string by the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| libc::EINVAL)?; // names go to exporters, as UTF-8
    Ok(text.to_owned())
}

fn schema(texts: &[ItemTexts], widest: usize) -> Result<Schema, c_int> {
    let string = |text: &CString| text.to_string_lossy().into_owned();
    let items = texts.iter().map(|texts| {
        ItemSpec::new(string(&texts.name)).unit(Unit::new(string(&texts.unit))).help(string(&texts.help))
    });
    let slots: Vec<usize> = (0..texts.len()).collect();
    // a rest that is shorter than an event comes after them all by itself
    let events: Vec<&[usize]> = if widest > 1 { slots.chunks_exact(widest).collect() } else { Vec::new() };
    let schema = Schema::new(items, &events)
        .map_err(|error| if texts.len() > 8192 { libc::E2BIG } else { crate::guard::errno(&error) })?;
    let as_numbered = schema.items().enumerate().all(|(index, item)| item.slot() == index);
    as_numbered.then_some(schema).ok_or(libc::ENOTRECOVERABLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(name: &'static CStr, slot: u32) -> StatctrItemDesc {
        StatctrItemDesc { name: name.as_ptr(), unit: c"bytes".as_ptr(), help: c"".as_ptr(), slot, width: 0 }
    }

    fn event(slot: u32, width: u32) -> StatctrItemDesc {
        StatctrItemDesc { width, ..item(c"event", slot) }
    }

    fn interned(items: &[StatctrItemDesc], slots: u32) -> Result<&'static InternedSchema, c_int> {
        let desc = StatctrGroupDesc { items: items.as_ptr(), count: items.len() as u32, slots };
        // SAFETY: a description made here.
        unsafe { intern(&desc) }
    }

    #[test]
    fn slots_are_the_enumerators_whatever_the_events() {
        for (width, slots) in [(2, 5), (4, 4), (4, 7), (8, 8), (8, 36), (8, 9), (2, 2)] {
            let kind =
                interned(&[event(0, width), item(c"a", 0), item(c"z", slots - 1)], slots).expect("a kind");
            assert_eq!(kind.schema.len(), slots as usize);
            assert!(kind.schema.items().enumerate().all(|(index, item)| item.slot() == index));
        }
    }

    #[test]
    fn one_kind_has_one_schema() {
        let items = [item(c"one", 0), item(c"two", 1)];
        let first = interned(&items, 2).expect("a kind");
        assert!(first.schema.is_same(&interned(&items, 2).expect("the same").schema));
        assert!(interned_schema_of(&first.schema).is_some());
        let other = interned(&[event(0, 2), items[0], items[1]], 2).expect("another");
        assert!(!first.schema.is_same(&other.schema), "with an event it is another kind");
        assert_eq!(first.texts[1].name.as_c_str(), c"two");
    }

    #[test]
    fn contradictions_are_refused() {
        assert_eq!(interned(&[item(c"a", 0)], 0).err(), Some(libc::EINVAL));
        assert_eq!(interned(&[item(c"a", 1)], 1).err(), Some(libc::EINVAL));
        assert_eq!(interned(&[item(c"", 0)], 1).err(), Some(libc::EINVAL));
        assert_eq!(interned(&[item(c"a", 0), item(c"b", 0)], 1).err(), Some(libc::EINVAL));
        assert_eq!(interned(&[event(1, 2), item(c"a", 1)], 3).err(), Some(libc::EINVAL));
        assert_eq!(interned(&[event(0, 3), item(c"a", 0)], 3).err(), Some(libc::EINVAL));
        assert_eq!(interned(&[item(c"a", 0)], 9000).err(), Some(libc::E2BIG));
        assert_eq!(interned(&[item(c"a", 0)], u32::MAX).err(), Some(libc::E2BIG));
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { intern(std::ptr::null()) }.err(), Some(libc::EINVAL));
    }
}
