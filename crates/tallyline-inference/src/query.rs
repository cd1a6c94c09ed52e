//! Queries that arrive while a recording is read: the first samples are analysed while the rest is decoded.

use super::evidence;
use super::globals::Globals;
use super::table::Part;
use super::unit_part;
use crate::code::Image;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use tallyline_debuginfo::DebugInfo;

/// Addresses of a program, as linked, to infer types for: of instructions with memory operands, and of data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressQuery {
    /// Addresses of instructions whose memory operands are queried.
    pub code: Vec<u64>,
    /// Addresses of data whose variables are queried.
    pub data: Vec<u64>,
}

impl AddressQuery {
    /// Returns `true` if the query has no addresses to infer types for.
    pub fn is_empty(&self) -> bool {
        self.code.is_empty() && self.data.is_empty()
    }

    /// Appends the addresses of another batch.
    pub(super) fn add(&mut self, other: &AddressQuery) {
        self.code.extend(&other.code);
        self.data.extend(&other.data);
    }

    /// Sorts and deduplicates the addresses.
    pub(super) fn sort(&mut self) {
        for addresses in [&mut self.code, &mut self.data] {
            addresses.sort_unstable();
            addresses.dedup();
        }
    }
}

/// The results of the analysis: tables of units, and addresses outside of all units.
pub(super) type AnalysedParts = (Vec<Part>, Vec<u64>);

/// The units that have been analysed so far.
struct Units<'s, 'u, 'a> {
    image: &'s Image,
    info: &'s DebugInfo<'u, 'a>,
    globals: &'s Globals<'s>,
    // with the addresses queried in each
    by_unit: BTreeMap<usize, (BTreeSet<u64>, Part)>,
    outside: BTreeSet<u64>,
}

impl Units<'_, '_, '_> {
    /// Analyses the functions of addresses that have not been analysed. A unit of which more is wanted is
    /// analysed anew as a whole: its types are numbered as if all had been asked for at once.
    fn analyse(&mut self, addresses: &[u64], also: &(impl Fn(usize) -> Vec<u64> + Sync)) {
        let mut wanted: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        for address in addresses {
            match self.globals.unit_at(*address) {
                Some(unit) if !self.is_known(unit, *address) => {
                    wanted.entry(unit).or_default().insert(*address);
                }
                Some(_) => {}
                None => _ = self.outside.insert(*address),
            }
        }
        for (unit, addresses) in &mut wanted {
            match self.by_unit.remove(unit) {
                Some((before, _)) => addresses.extend(before),
                None => addresses.extend(also(*unit)),
            }
        }
        let (image, info, globals) = (self.image, self.info, self.globals);
        let analysed = wanted.into_par_iter().map(|(unit, addresses)| {
            let part = unit_part(image, info, globals, unit, Some(addresses.iter().copied().collect()));
            (unit, (addresses, part))
        });
        self.by_unit.par_extend(analysed);
    }

    fn is_known(&self, unit: usize, address: u64) -> bool {
        let Some((asked, part)) = self.by_unit.get(&unit) else { return false };
        let has = |range: &std::ops::Range<u64>| range.contains(&address);
        asked.contains(&address) || part.functions.iter().any(|function| function.ranges.iter().any(has))
    }
}

/// Analyses what is asked for as it comes, with it what units have there that are opened anyway.
pub(super) fn analyse(
    image: &Image,
    info: &DebugInfo<'_, '_>,
    asked: &mut dyn Iterator<Item = AddressQuery>,
    also: impl Fn(usize) -> Vec<u64> + Sync,
) -> AnalysedParts {
    let globals = Globals::new(info);
    let mut units =
        Units { image, info, globals: &globals, by_unit: BTreeMap::new(), outside: BTreeSet::new() };
    let mut data = AddressQuery::default();
    for batch in asked {
        units.analyse(&batch.code, &also);
        data.data.extend(batch.data);
    }
    data.sort();
    let Units { by_unit, outside, .. } = units;
    let mut parts: Vec<Part> = by_unit.into_values().map(|(_, part)| part).collect();
    parts.extend(evidence::variables(info, &globals, &data.data));
    (parts, outside.into_iter().collect())
}
