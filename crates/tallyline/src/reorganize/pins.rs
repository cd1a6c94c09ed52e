//! The names of members in `--pin` and `--unpin`.

use anyhow::{Result, bail};
use std::collections::BTreeSet;
use tallyline_debuginfo::lookup::did_you_mean;
use tallyline_debuginfo::model::{Record, TypeId, Types};

/// The words of `--unpin` that stand for members by their position.
pub(super) const ENDS: [&str; 3] = ["first", "last", "ends"];

/// The members that the command line keeps in place, or allows to move.
#[derive(Clone, Copy)]
pub(super) struct Pins<'a> {
    pub(super) pin: &'a [String],
    pub(super) unpin: &'a [String],
}

impl Pins<'_> {
    /// Checks that each name is one of a member of at least one of the types. A misspelt pin would let the member move.
    ///
    /// # Errors
    /// A name that no member has.
    pub(super) fn check(&self, types: &Types, ids: &[TypeId]) -> Result<()> {
        let records = ids.iter().filter_map(|id| types.as_record(types.strip(*id)));
        self.check_records(types, &records.map(|(_, record)| record).collect::<Vec<_>>())
    }

    /// Checks the names as [`check`](Self::check) does, for records.
    ///
    /// # Errors
    /// A name that no member has.
    pub(super) fn check_records(&self, types: &Types, records: &[&Record]) -> Result<()> {
        let pins = self.pin.iter().map(|name| ("--pin", name));
        let unpins = self.unpin.iter().filter(|name| !ENDS.contains(&name.as_str()));
        let asked: Vec<_> = pins.chain(unpins.map(|name| ("--unpin", name))).collect();
        if asked.is_empty() || records.is_empty() {
            return Ok(());
        }
        let members = records.iter().flat_map(|record| types.members(record));
        let known: BTreeSet<&[u8]> = members.map(|member| types.name(member.name)).collect();
        for (option, name) in asked {
            if name.is_empty() || !known.contains(name.as_bytes()) {
                let owner = match records {
                    [record] => String::from_utf8_lossy(types.name(record.name)),
                    _ => format!("any of the {} types", records.len()).into(),
                };
                let own = known.iter().filter_map(|name| std::str::from_utf8(name).ok());
                let ends = ENDS.into_iter().filter(|_| option == "--unpin");
                let near = did_you_mean(name, own.chain(ends));
                bail!("{option} {name}: no member of that name in {owner}{near}");
            }
        }
        Ok(())
    }
}
