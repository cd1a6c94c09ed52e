//! Sort keys of the data source: level, snoop, translation, locks. A value is those bits of the data source
//! that the text is made of.

use super::{Key, Needs};
use crate::samples::SampleGroup;
use tallyline_perf_data::sample::{DataSource, level, level_number};

/// The data source that perf assumes for samples without one: each field is "not available".
const NOT_AVAILABLE: DataSource = DataSource(1 | 1 << 5 | 1 << 19 | 1 << 24 | 1 << 26);

fn source(group: &SampleGroup) -> DataSource {
    group.source.unwrap_or(NOT_AVAILABLE)
}

fn bits(start: u32, width: u32) -> u64 {
    ((1 << width) - 1) << start
}

pub(super) const LEVEL: Key = Key {
    name: "mem",
    aliases: &[],
    title: "Memory access",
    needs: Needs::NONE,
    value: |_, group| {
        let source = source(group);
        let number = source.level_number();
        if number == 0 || number == level_number::NA {
            return source.0 & bits(5, 14);
        }
        // the number says it; of the older field only whether it was there
        let outcome = u64::from(source.level() & (level::HIT | level::MISS)) << 5;
        outcome | source.0 & (bits(33, 5) | bits(43, 3))
    },
    text: |_, value, _| DataSource(value).level_text(),
};

pub(super) const SNOOP: Key = Key {
    name: "snoop",
    aliases: &[],
    title: "Snoop",
    needs: Needs::NONE,
    value: |_, group| source(group).0 & (bits(19, 5) | bits(38, 2)),
    text: |_, value, _| DataSource(value).snoop_text(),
};

pub(super) const TLB: Key = Key {
    name: "tlb",
    aliases: &[],
    title: "TLB access",
    needs: Needs::NONE,
    value: |_, group| source(group).0 & bits(26, 7),
    text: |_, value, _| DataSource(value).tlb_text(),
};

pub(super) const LOCKED: Key = Key {
    name: "locked",
    aliases: &[],
    title: "Locked",
    needs: Needs::NONE,
    value: |_, group| source(group).0 & bits(24, 2),
    text: |_, value, _| DataSource(value).lock_text().to_owned(),
};

pub(super) const BLOCKED: Key = Key {
    name: "blocked",
    aliases: &[],
    title: "Blocked",
    needs: Needs::NONE,
    value: |_, group| source(group).0 & bits(40, 3),
    text: |_, value, _| DataSource(value).blocked_text().to_owned(),
};
