//! Sort keys of the data: variable, file, line, physical address.

use super::{Key, Needs, level, page_size};
use crate::index::{DataId, NONE};

/// The cache line, by its address.
pub(super) const LINE: Key = Key {
    name: "dcacheline",
    aliases: &[],
    title: "Data Cacheline",
    needs: Needs::NONE,
    value: |profile, point| point.address & !u64::from(profile.line_size - 1),
    text: |_, value, _| format!("{value:#018x}"),
};

/// The variable with an offset, or the address.
pub(super) const SYMBOL: Key = Key {
    name: "symbol_daddr",
    aliases: &[],
    title: "Data Symbol",
    needs: Needs::DATA,
    value: |_, point| point.data.map_or(u64::from(NONE), |id| id.position() as u64),
    text: |profile, value, _| {
        let id = DataId::from_position(value as usize);
        let Some((id, place)) = id.and_then(|id| Some((id, profile.data.place(id)?))) else {
            return "(no address)".to_owned();
        };
        match profile.data.symbol(id).and_then(|index| profile.symbol(index)) {
            Some(symbol) if symbol.is_known => format!(
                "[{}] {}+{:#x}",
                level(place.mode),
                profile.text(symbol.name),
                profile.data.linked(id).wrapping_sub(symbol.start)
            ),
            _ => format!("[{}] {:#018x}", level(place.mode), profile.data.recorded(id)),
        }
    },
};

pub(super) const DSO: Key = Key {
    name: "dso_daddr",
    aliases: &[],
    title: "Data Object",
    needs: Needs::NONE,
    value: |profile, point| {
        point.data.and_then(|id| profile.data.place(id)).map_or(NONE, |place| place.dso).into()
    },
    text: |profile, value, _| profile.dso_name(value as u32).to_owned(),
};

pub(super) const PHYSICAL: Key = Key {
    name: "phys_daddr",
    aliases: &[],
    title: "Data Physical Address",
    needs: Needs::NONE,
    // below the bits of an address, whose it is
    value: |_, point| point.physical_address << 1 | u64::from(point.address >> 63 != 0),
    text: |_, value, _| format!("[{}] {:#018x}", if value & 1 != 0 { 'k' } else { '.' }, value >> 1),
};

pub(super) const PAGE_SIZE: Key = Key {
    name: "data_page_size",
    aliases: &[],
    title: "Data Page Size",
    needs: Needs::NONE,
    value: |_, point| point.data_page_size,
    text: |_, value, _| page_size(value),
};
