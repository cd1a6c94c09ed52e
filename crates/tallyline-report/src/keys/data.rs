//! Sort keys of the data: variable, file, line, physical address.

use super::{Key, Needs, level, page_size};
use crate::profile::NONE;

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
    value: |_, point| point.data_place.into(),
    text: |profile, value, _| {
        let Some(place) = profile.data_places.get(value as usize) else { return "(no address)".to_owned() };
        let index = profile.data_symbols.get(value as usize).copied().unwrap_or(NONE);
        match profile.symbol(index) {
            Some(symbol) if symbol.is_known => format!(
                "[{}] {}+{:#x}",
                level(place.mode),
                profile.text(symbol.name),
                profile.data_addresses[value as usize].wrapping_sub(symbol.start)
            ),
            _ => format!("[{}] {:#018x}", level(place.mode), profile.data_raw[value as usize]),
        }
    },
};

pub(super) const DSO: Key = Key {
    name: "dso_daddr",
    aliases: &[],
    title: "Data Object",
    needs: Needs::NONE,
    value: |profile, point| {
        profile.data_places.get(point.data_place as usize).map_or(NONE, |place| place.dso).into()
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
