//! Sort keys of the code: file, function, source line, address.

use super::{Key, Needs, level, page_size};
use crate::names::NameId;
use crate::profile::{NONE, Profile, Symbol};

pub(super) const DSO: Key = Key {
    name: "dso",
    aliases: &[],
    title: "Shared Object",
    needs: Needs::NONE,
    value: |profile, point| profile.places.get(point.charged as usize).map_or(NONE, |place| place.dso).into(),
    text: |profile, value, _| profile.dso_name(value as u32).to_owned(),
};

pub(super) const SYMBOL: Key = Key {
    name: "sym",
    aliases: &["symbol"],
    title: "Symbol",
    needs: Needs::SYMBOLS,
    value: |profile, point| profile.at(point.charged).symbol.into(),
    text: |profile, value, _| profile.symbol(value as u32).map_or_else(String::new, |s| name(profile, s)),
};

/// Function and offset in it.
pub(super) const SYMBOL_OFFSET: Key = Key {
    name: "symoff",
    aliases: &[],
    title: "Symbol Offset",
    needs: Needs::SYMBOLS,
    value: |_, point| point.charged.into(),
    text: |profile, value, _| {
        let at = profile.at(value as u32);
        match profile.symbol(at.symbol) {
            Some(symbol) if symbol.is_known => {
                format!("{}+{:#x}", name(profile, symbol), at.address.wrapping_sub(symbol.start))
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
    value: |profile, point| profile.at(point.charged).source_file.0.into(),
    text: |profile, value, _| profile.text(NameId(value as u32)).to_owned(),
};

pub(super) const SOURCE_LINE: Key = Key {
    name: "srcline",
    aliases: &[],
    title: "Source:Line",
    needs: Needs::LINES,
    value: |profile, point| profile.at(point.charged).source_line.0.into(),
    text: |profile, value, _| profile.text(NameId(value as u32)).to_owned(),
};

/// The function that called, by the call chain. perf has it as a tree only.
pub(super) const CALLER: Key = Key {
    name: "caller",
    aliases: &[],
    title: "Caller",
    needs: Needs::CALLERS,
    value: |profile, point| match point.caller {
        NONE => u64::from(NONE),
        place => profile.at(place).symbol.into(),
    },
    text: |profile, value, _| {
        profile.symbol(value as u32).map_or_else(|| NO_CHAIN.to_owned(), |s| name(profile, s))
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
    value: |_, point| point.ip,
    text: |_, value, _| format!("{value:#x}"),
};

pub(super) const PAGE_SIZE: Key = Key {
    name: "code_page_size",
    aliases: &[],
    title: "Code Page Size",
    needs: Needs::NONE,
    value: |_, point| point.code_page_size,
    text: |_, value, _| page_size(value),
};

fn name(profile: &Profile, symbol: &Symbol) -> String {
    format!("[{}] {}", level(symbol.mode), profile.text(symbol.name))
}
