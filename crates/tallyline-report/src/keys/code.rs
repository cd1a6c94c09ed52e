//! Sort keys of the code: file, function, source line, address.

use super::{Key, Needs, level, page_size};
use crate::index::{PlaceId, SymbolId, key_value};
use crate::names::NameId;
use crate::profile::{Profile, Symbol};
use tallyline_perf_data::spaces::DsoId;

pub(super) const DSO: Key = Key {
    name: "dso",
    aliases: &[],
    title: "Shared Object",
    needs: Needs::NONE,
    value: |profile, group| key_value(profile.place(group.charged).dso.map(DsoId::position)),
    text: |profile, value, _| profile.dso_name(DsoId::from_position(value as usize)).to_owned(),
};

pub(super) const SYMBOL: Key = Key {
    name: "sym",
    aliases: &["symbol"],
    title: "Symbol",
    needs: Needs::SYMBOLS,
    value: |profile, group| key_value(profile.at(group.charged).symbol.map(SymbolId::position)),
    text: |profile, value, _| symbol(profile, value).map_or_else(String::new, |s| name(profile, s)),
};

/// Function and offset in it.
pub(super) const SYMBOL_OFFSET: Key = Key {
    name: "symoff",
    aliases: &[],
    title: "Symbol Offset",
    needs: Needs::SYMBOLS,
    value: |_, group| key_value(Some(group.charged.position())),
    text: |profile, value, _| {
        let Some(place) = PlaceId::from_position(value as usize) else { return String::new() };
        match profile.function(place) {
            Some(symbol) if symbol.is_known => {
                format!(
                    "{}+{:#x}",
                    name(profile, symbol),
                    profile.at(place).address.wrapping_sub(symbol.start)
                )
            }
            Some(symbol) => name(profile, symbol),
            None => String::new(),
        }
    },
};

pub(super) const SOURCE_FILE: Key = Key {
    name: "srcfile",
    aliases: &[],
    title: "Source File",
    needs: Needs::LINES,
    value: |profile, group| profile.at(group.charged).source_file.0.into(),
    text: |profile, value, _| profile.text(NameId(value as u32)).to_owned(),
};

pub(super) const SOURCE_LINE: Key = Key {
    name: "srcline",
    aliases: &[],
    title: "Source:Line",
    needs: Needs::LINES,
    value: |profile, group| profile.at(group.charged).source_line.0.into(),
    text: |profile, value, _| profile.text(NameId(value as u32)).to_owned(),
};

/// The function that called, by the call chain. perf has it as a tree only.
pub(super) const CALLER: Key = Key {
    name: "caller",
    aliases: &[],
    title: "Caller",
    needs: Needs::CALLERS,
    value: |profile, group| {
        let symbol = group.caller.and_then(|place| profile.at(place).symbol);
        key_value(symbol.map(SymbolId::position))
    },
    text: |profile, value, _| {
        symbol(profile, value).map_or_else(|| NO_CHAIN.to_owned(), |s| name(profile, s))
    },
};

/// The text for a caller that neither a call chain nor a copy of the stack tells.
const NO_CHAIN: &str = "(no call chain)";

/// The address as recorded.
pub(super) const ADDRESS: Key = Key {
    name: "addr",
    aliases: &[],
    title: "Address",
    needs: Needs::NONE,
    value: |_, group| group.ip,
    text: |_, value, _| format!("{value:#x}"),
};

pub(super) const PAGE_SIZE: Key = Key {
    name: "code_page_size",
    aliases: &[],
    title: "Code Page Size",
    needs: Needs::NONE,
    value: |_, group| group.code_page_size,
    text: |_, value, _| page_size(value),
};

fn symbol(profile: &Profile, value: u64) -> Option<&Symbol> {
    profile.symbol(SymbolId::from_position(value as usize)?)
}

fn name(profile: &Profile, symbol: &Symbol) -> String {
    format!("[{}] {}", level(symbol.mode), profile.text(symbol.name))
}
