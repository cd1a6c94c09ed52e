//! Sort keys of the data: variable, file, line, physical address.

use super::{Key, Needs, level, page_size};
use crate::index::{DataId, key_value};
use tallyline_perf_data::spaces::DsoId;

/// The cache line, by its address.
pub(super) const LINE: Key = Key {
    name: "dcacheline",
    aliases: &[],
    title: "Data Cacheline",
    needs: Needs::NONE,
    value: |profile, group| group.address & !u64::from(profile.info().line_size - 1),
    text: |_, value, _| format!("{value:#018x}"),
};

/// The variable with an offset, or the address.
pub(super) const SYMBOL: Key = Key {
    name: "symbol_daddr",
    aliases: &[],
    title: "Data Symbol",
    needs: Needs::DATA,
    value: |_, group| key_value(group.data.map(DataId::position)),
    text: |profile, value, _| {
        let id = DataId::from_position(value as usize);
        let Some((id, place)) = id.and_then(|id| Some((id, profile.samples.data.place(id)?))) else {
            return "(no address)".to_owned();
        };
        match profile.samples.data.symbol(id).and_then(|index| profile.symbol(index)) {
            Some(symbol) if symbol.is_known => format!(
                "[{}] {}+{:#x}",
                level(place.mode),
                profile.text(symbol.name),
                profile.samples.data.linked(id).wrapping_sub(symbol.start)
            ),
            _ => format!("[{}] {:#018x}", level(place.mode), profile.samples.data.recorded(id)),
        }
    },
};

pub(super) const DSO: Key = Key {
    name: "dso_daddr",
    aliases: &[],
    title: "Data Object",
    needs: Needs::NONE,
    value: |profile, group| {
        let place = group.data.and_then(|id| profile.samples.data.place(id));
        key_value(place.and_then(|place| place.dso).map(DsoId::position))
    },
    text: |profile, value, _| profile.dso_name(DsoId::from_position(value as usize)).to_owned(),
};

pub(super) const PHYSICAL: Key = Key {
    name: "phys_daddr",
    aliases: &[],
    title: "Data Physical Address",
    needs: Needs::NONE,
    // below the bits of an address, whose it is
    value: |_, group| group.physical_address << 1 | u64::from(group.address >> 63 != 0),
    text: |_, value, _| format!("[{}] {:#018x}", if value & 1 != 0 { 'k' } else { '.' }, value >> 1),
};

pub(super) const PAGE_SIZE: Key = Key {
    name: "data_page_size",
    aliases: &[],
    title: "Data Page Size",
    needs: Needs::NONE,
    value: |_, group| group.data_page_size,
    text: |_, value, _| page_size(value),
};
