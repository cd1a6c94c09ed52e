//! The file that tables of one program are kept in: an index, and a part for each unit.
//!
//! ```text
//! magic, 16 bytes · length of the index, checksum of the index, 4 bytes each
//! index: stamp · units (number, place and checksum of its part, ranges of its functions)
//!        · addresses without a function · the variables' part, and the addresses asked for
//! parts
//! ```
//! The index says where parts are from the end of the index on. Only parts that are wanted are read. What
//! is damaged, cut or somebody else's is not there: the tables are made anew.

use super::super::table::Part;
use super::{Store, part};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use tallyline_debuginfo::model::{Packer, Unpacker};

const MAGIC: [u8; 16] = *b"tallyline types\n";

/// Bytes before the index.
const HEADER: u64 = 24;

/// The longest file that is written or read; types of a whole kernel take less.
const FILE_LIMIT: u64 = 1 << 30;

/// The location of a blob behind the index, with its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Blob {
    start: u64,
    size: u64,
    checksum: u32,
}

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
    file: Option<File>,
    parts_start: u64,
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
        store.open().and_then(|file| CachedTables::read(file, store.stamp())).unwrap_or_default()
    }

    fn read(file: File, stamp: &[u8]) -> Option<CachedTables> {
        let length = file.metadata().ok().filter(|data| data.is_file())?.len();
        let mut header = [0; HEADER as usize];
        file.read_exact_at(&mut header, 0).ok()?;
        let (magic, rest) = header.split_first_chunk::<16>()?;
        let (size, checksum) = rest.split_first_chunk::<4>()?;
        let size = u64::from(u32::from_le_bytes(*size));
        let parts_start = HEADER + size;
        if *magic != MAGIC || length > FILE_LIMIT || parts_start > length {
            return None;
        }
        let mut index = vec![0; usize::try_from(size).ok()?];
        file.read_exact_at(&mut index, HEADER).ok()?;
        if crc32fast::hash(&index).to_le_bytes() != checksum {
            return None;
        }
        let mut kept = CachedTables::parse(&index, stamp, length - parts_start)?;
        (kept.file, kept.parts_start) = (Some(file), parts_start);
        Some(kept)
    }

    /// Reads an index; its blobs lie in so many bytes.
    pub(super) fn parse(index: &[u8], stamp: &[u8], length: u64) -> Option<CachedTables> {
        let from = &mut Unpacker::new(index);
        if from.bytes()? != stamp {
            return None;
        }
        let blob = |from: &mut Unpacker<'_>| {
            let blob = Blob { start: from.number()?, size: from.number()?, checksum: from.small()? };
            (blob.start.checked_add(blob.size)? <= length).then_some(blob)
        };
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
        // it lies in the file, so there is no memory for what is only claimed to be there
        let mut bytes = vec![0; usize::try_from(blob.size).ok()?];
        let start = self.parts_start.checked_add(blob.start)?;
        self.file.as_ref()?.read_exact_at(&mut bytes, start).ok()?;
        (crc32fast::hash(&bytes) == blob.checksum).then_some(bytes)
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
        let size = u32::try_from(index.len()).ok()?;
        let checksum = crc32fast::hash(&index);
        let head = [&MAGIC[..], &size.to_le_bytes(), &checksum.to_le_bytes()];
        let file = [&head.concat()[..], &index, &blobs.bytes].concat();
        (file.len() as u64 <= FILE_LIMIT).then_some(file)
    }
}

/// The blobs behind the index, as they are written.
#[derive(Default)]
struct BlobWriter {
    bytes: Vec<u8>,
}

impl BlobWriter {
    fn add(&mut self, bytes: &[u8]) -> Blob {
        let start = self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        Blob { start, size: bytes.len() as u64, checksum: crc32fast::hash(bytes) }
    }
}

fn index(
    stamp: &[u8],
    units: &BTreeMap<usize, CachedUnit>,
    outside: &[u64],
    data: Option<&CachedVariables>,
) -> Vec<u8> {
    let mut out = Packer::default();
    let blob = |out: &mut Packer, blob: Blob| {
        out.number(blob.start);
        out.number(blob.size);
        out.number(blob.checksum.into());
    };
    out.bytes(stamp);
    out.number(units.len() as u64);
    for (number, unit) in units {
        out.number(*number as u64);
        blob(&mut out, unit.blob);
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
        blob(&mut out, data.blob);
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
