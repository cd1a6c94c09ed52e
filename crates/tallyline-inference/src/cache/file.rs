//! The file that tables of one program are kept in: an index, and a part for each unit.
//!
//! ```text
//! index: stamp · units (number, place and checksum of its part, ranges of its functions)
//!        · addresses without a function · the variables' part, and the addresses asked for
//! blobs: parts
//! ```
//! Only parts that are wanted are read. What is damaged, cut or somebody else's is not there: the tables are made
//! anew.

use super::super::table::Part;
use super::part;
use crate::store::{Blob, BlobFile, BlobWriter, Store};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::ops::Range;
use tallyline_debuginfo::model::{Packer, Unpacker};

const MAGIC: [u8; 16] = *b"tallyline types\n";

/// The cached functions of one unit.
#[derive(Clone, Debug)]
struct CachedUnit {
    blob: Blob,
    functions: Vec<Vec<Range<u64>>>,
}

/// The cached answers to queries of variables.
#[derive(Clone, Debug)]
struct CachedVariables {
    blob: Blob,
    asked: Vec<u64>,
}

/// The cache of one program.
#[derive(Debug, Default)]
pub(super) struct CachedTables {
    // none for an empty cache
    file: Option<BlobFile>,
    units: BTreeMap<usize, CachedUnit>,
    // sorted by start: unit, and index of the function in it
    ranges: Vec<(Range<u64>, usize, usize)>,
    // sorted
    outside: Vec<u64>,
    data: Option<CachedVariables>,
}

impl CachedTables {
    /// Opens the file of a store; an empty cache unless it was written with the stamp of the store.
    pub(super) fn open(store: &dyn Store) -> CachedTables {
        let read = || {
            let (file, index) = BlobFile::open(store.open()?, &MAGIC)?;
            let kept = CachedTables::parse(&index, store.stamp(), file.length())?;
            Some(CachedTables { file: Some(file), ..kept })
        };
        read().unwrap_or_default()
    }

    /// Reads an index; its blobs lie in so many bytes.
    pub(super) fn parse(index: &[u8], stamp: &[u8], length: u64) -> Option<CachedTables> {
        let from = &mut Unpacker::new(index);
        if from.bytes()? != stamp {
            return None;
        }
        let blob = |from: &mut Unpacker<'_>| Blob::unpack(from, length);
        let mut kept = CachedTables::default();
        for (number, unit) in from.table(|from| {
            let (number, blob) = (from.small::<usize>()?, blob(from)?);
            let functions = from.table(|from| {
                from.table(|from| {
                    let (start, size) = (from.number()?, from.number()?);
                    Some(start..start.checked_add(size)?)
                })
            })?;
            Some((number, CachedUnit { blob, functions }))
        })? {
            kept.units.insert(number, unit);
        }
        kept.outside = unpack_addresses(from)?;
        kept.data = match from.flag()? {
            true => Some(CachedVariables { blob: blob(from)?, asked: unpack_addresses(from)? }),
            false => None,
        };
        for (number, unit) in &kept.units {
            for (index, ranges) in unit.functions.iter().enumerate() {
                kept.ranges.extend(ranges.iter().map(|range| (range.clone(), *number, index)));
            }
        }
        kept.ranges.sort_unstable_by_key(|(range, ..)| range.start);
        from.is_empty().then_some(kept)
    }

    /// Returns the unit and the function in it that an address is in.
    fn function_at(&self, address: u64) -> Option<(usize, usize)> {
        let before = self.ranges.partition_point(|(range, ..)| range.start <= address).checked_sub(1)?;
        let (range, unit, function) = &self.ranges[before];
        range.contains(&address).then_some((*unit, *function))
    }

    fn is_outside(&self, address: u64) -> bool {
        self.outside.binary_search(&address).is_ok()
    }

    /// Returns the addresses that the cache has no answer for.
    pub(super) fn missing(&self, addresses: &[u64]) -> Vec<u64> {
        let is_there = |address: &u64| self.function_at(*address).is_some() || self.is_outside(*address);
        addresses.iter().copied().filter(|address| !is_there(address)).collect()
    }

    /// Returns true if the cache has answers for all of these addresses of data.
    pub(super) fn has_data(&self, addresses: &[u64]) -> bool {
        let asked = self.data.as_ref().map_or(&[][..], |data| &data.asked);
        addresses.iter().all(|address| asked.binary_search(address).is_ok())
    }

    /// Returns the entry addresses of the cached functions of a unit.
    pub(super) fn entries(&self, unit: usize) -> impl Iterator<Item = u64> {
        let functions = self.units.get(&unit).map_or(&[][..], |unit| &unit.functions);
        functions.iter().filter_map(|ranges| Some(ranges.first()?.start))
    }

    /// Returns the parts that have functions at these addresses, but for those of units that are at hand; and
    /// the addresses without a function. `None` where it turns out to be damaged.
    pub(super) fn parts(&self, addresses: &[u64], at_hand: &[Part]) -> Option<(Vec<Part>, Vec<u64>)> {
        let mut wanted: BTreeMap<usize, FxHashSet<usize>> = BTreeMap::new();
        let mut outside = Vec::new();
        for address in addresses {
            match self.function_at(*address) {
                Some((unit, function)) => _ = wanted.entry(unit).or_default().insert(function),
                None if self.is_outside(*address) => outside.push(*address),
                None => {}
            }
        }
        at_hand.iter().for_each(|part| _ = wanted.remove(&part.unit));
        let parts = wanted.iter().map(|(number, functions)| {
            let unit = self.units.get(number)?;
            let bytes = self.bytes(unit.blob)?;
            part::unpack(*number, &bytes, &unit.functions, |index| functions.contains(&index))
        });
        Some((parts.collect::<Option<Vec<Part>>>()?, outside))
    }

    /// Returns the part with variables.
    pub(super) fn variables(&self) -> Option<Part> {
        let data = self.data.as_ref()?;
        part::unpack(Part::VARIABLES, &self.bytes(data.blob)?, &[], |_| false)
    }

    fn bytes(&self, blob: Blob) -> Option<Vec<u8>> {
        self.file.as_ref()?.read(blob)
    }

    /// Returns the bytes of a file with what is kept and what was found; parts take the place of older ones
    /// of their units. `None` where there would be too many.
    pub(super) fn with(
        &self,
        stamp: &[u8],
        parts: &[Part],
        outside: &[u64],
        data: &[u64],
    ) -> Option<Vec<u8>> {
        let mut blobs = BlobWriter::default();
        let mut units: BTreeMap<usize, CachedUnit> = BTreeMap::new();
        let found = |number: usize| parts.iter().find(|part| part.unit == number);
        for (number, unit) in self.units.iter().filter(|(number, _)| found(**number).is_none()) {
            let blob = blobs.add(&self.bytes(unit.blob)?);
            units.insert(*number, CachedUnit { blob, functions: unit.functions.clone() });
        }
        for part in parts.iter().filter(|part| part.unit != Part::VARIABLES) {
            let blob = blobs.add(&part::pack(part));
            let functions = part.functions.iter().map(|function| function.ranges.clone()).collect();
            units.insert(part.unit, CachedUnit { blob, functions });
        }
        let data = match (found(Part::VARIABLES), &self.data) {
            (Some(part), _) => {
                Some(CachedVariables { blob: blobs.add(&part::pack(part)), asked: data.to_vec() })
            }
            (None, Some(kept)) => {
                Some(CachedVariables { blob: blobs.add(&self.bytes(kept.blob)?), asked: kept.asked.clone() })
            }
            (None, None) => None,
        };
        let mut outside: Vec<u64> = self.outside.iter().chain(outside).copied().collect();
        outside.extend(parts.iter().flat_map(|part| &part.outside));
        outside.sort_unstable();
        outside.dedup();
        let index = index(stamp, &units, &outside, data.as_ref());
        blobs.file(&MAGIC, &index)
    }
}

fn index(
    stamp: &[u8],
    units: &BTreeMap<usize, CachedUnit>,
    outside: &[u64],
    data: Option<&CachedVariables>,
) -> Vec<u8> {
    let mut out = Packer::default();
    out.bytes(stamp);
    out.number(units.len() as u64);
    for (number, unit) in units {
        out.number(*number as u64);
        unit.blob.pack(&mut out);
        out.number(unit.functions.len() as u64);
        for ranges in &unit.functions {
            out.number(ranges.len() as u64);
            for range in ranges {
                out.number(range.start);
                out.number(range.end.saturating_sub(range.start));
            }
        }
    }
    pack_addresses(&mut out, outside);
    out.flag(data.is_some());
    if let Some(data) = data {
        data.blob.pack(&mut out);
        pack_addresses(&mut out, &data.asked);
    }
    out.into_bytes()
}

/// Writes sorted addresses as differences.
fn pack_addresses(out: &mut Packer, addresses: &[u64]) {
    out.number(addresses.len() as u64);
    let mut before = 0;
    for address in addresses {
        out.number(address.saturating_sub(before));
        before = *address;
    }
}

fn unpack_addresses(from: &mut Unpacker<'_>) -> Option<Vec<u64>> {
    let mut before = 0_u64;
    from.table(|from| {
        before = before.checked_add(from.number()?)?;
        Some(before)
    })
}
