//! The second reading of a few units: those that define wanted types, and those that define the classes
//! that the former only declare.

use super::super::definitions::Definitions;
use super::super::found::FoundDie;
use super::super::load::{Classes, Loaded};
use super::super::offset::GlobalDieOffset;
use super::super::source::UnitSections;
use super::super::units::Units;
use super::super::{Parts, load_found};
use super::Inputs;
use crate::Request;
use crate::elf::{Checkpoints, Part};
use crate::error::Result;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most times that units are added for the classes that the units before them declare.
const ROUNDS: usize = 40;

/// The number of bytes that may always be read again.
const FEW: usize = 16 << 20;

/// The start and the bytes of units.
type UnitBytes = Vec<(usize, Vec<u8>)>;

/// The section of units, of which parts may be read again.
pub(super) struct Section<'a> {
    info: &'a Part<'a>,
    checkpoints: Checkpoints,
}

impl<'a> Section<'a> {
    pub(super) fn new(info: &'a Part<'a>) -> Section<'a> {
        Section { info, checkpoints: Checkpoints::default() }
    }

    /// Opens the bytes from an offset on, leaving checkpoints; none where only the whole can be read.
    pub(super) fn stream_from(&self, offset: usize) -> Result<Option<Box<dyn Read + Send + '_>>> {
        self.info.stream_from(offset as u64, &self.checkpoints)
    }

    /// Returns `true` if the section is compressed.
    pub(super) fn is_compressed(&self) -> bool {
        self.info.is_compressed()
    }

    /// Returns the offset from which reading reaches `offset` soonest.
    fn start_for(&self, offset: usize) -> usize {
        match self.is_compressed() {
            true => usize::try_from(self.checkpoints.nearest(offset as u64)).unwrap_or(offset),
            false => offset,
        }
    }

    /// Reads units, given in order; none where that fails, or takes more bytes than `left`.
    fn read(&self, units: &[(usize, usize)], left: &AtomicUsize) -> Result<Option<UnitBytes>> {
        let mut all = Vec::with_capacity(units.len());
        let mut last = None;
        for &(start, size) in units {
            let from = self.start_for(start);
            let (position, mut stream) = match last.take() {
                Some((position, stream)) if (from..=start).contains(&position) => (position, stream),
                _ => match self.stream_from(from)? {
                    Some(stream) => (from, stream),
                    None => return Ok(None),
                },
            };
            let before = start - position;
            let takes = before.saturating_add(size);
            let spend = |left: usize| left.checked_sub(takes);
            if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).is_err() {
                return Ok(None);
            }
            let mut bytes = Vec::new();
            // units were seen to be there
            bytes.reserve_exact(size);
            io::copy(&mut (&mut stream).take(before as u64), &mut io::sink())?;
            (&mut stream).take(size as u64).read_to_end(&mut bytes)?;
            if bytes.len() != size {
                return Ok(None);
            }
            all.push((start, bytes));
            last = Some((start + size, stream));
        }
        Ok(Some(all))
    }
}

/// The results of the pass over all units.
#[derive(Default)]
pub(super) struct Program {
    pub(super) definitions: Definitions,
    /// The start and the size of each unit, in the order of the file.
    pub(super) units: Vec<(usize, usize)>,
}

impl Program {
    /// Returns the unit that a place is in.
    fn unit_of(&self, place: GlobalDieOffset) -> Option<(usize, usize)> {
        let next = self.units.partition_point(|(start, _)| *start <= place.0);
        let unit = self.units[next.checked_sub(1)?];
        (place.0 - unit.0 < unit.1).then_some(unit)
    }
}

/// Units that were read again.
pub(super) struct UnitReloader<'r> {
    section: &'r Section<'r>,
    inputs: Inputs<'r>,
    program: &'r Program,
    // by where they start
    units: BTreeMap<usize, Vec<u8>>,
    // how many bytes more may be kept: beyond that the whole is not much more
    left: usize,
    // and how many may be inflated for that
    inflated: AtomicUsize,
}

impl<'r> UnitReloader<'r> {
    pub(super) fn new(
        section: &'r Section<'r>,
        inputs: Inputs<'r>,
        program: &'r Program,
    ) -> UnitReloader<'r> {
        let size = usize::try_from(section.info.size()).unwrap_or(usize::MAX);
        let (left, inflated) = ((size / 2).max(FEW), AtomicUsize::new(size.saturating_mul(2).max(FEW)));
        UnitReloader { section, inputs, program, units: BTreeMap::new(), left, inflated }
    }

    /// Loads found types, with the classes that other units define; none where that takes too much.
    pub(super) fn load(
        &mut self,
        request: &Request,
        mut found: Vec<FoundDie>,
    ) -> Result<Option<Vec<Loaded>>> {
        let mut wanted: BTreeSet<GlobalDieOffset> = found.iter().map(|found| found.place).collect();
        for _ in 0..ROUNDS {
            if !self.read(&wanted)? {
                return Ok(None);
            }
            let Inputs { sections, strings, little_endian, merged, .. } = self.inputs;
            let windows = self
                .units
                .iter()
                .map(|(start, bytes)| UnitSections::window(sections, strings, bytes, *start));
            let Some(mut units) = Units::choice(windows, little_endian)? else { return Ok(None) };
            if merged {
                units.set_merged();
            }
            for found in &mut found {
                let Some(unit) = units.index_of(found.place) else { return Ok(None) };
                found.unit = unit;
            }
            let classes = Classes::Defined(&self.program.definitions);
            let loaded = load_found(&units, request, &found, Parts::OfUnits, classes)
                .map_err(|error| units.localized(error));
            wanted = units.missing();
            if wanted.is_empty() {
                return loaded.map(Some);
            }
        }
        Ok(None)
    }

    /// Reads the units of places; false where that cannot be done, or is too much.
    fn read(&mut self, places: &BTreeSet<GlobalDieOffset>) -> Result<bool> {
        let mut units = BTreeMap::new();
        for place in places {
            // beyond every unit: who reads all says what is wrong
            let Some((start, size)) = self.program.unit_of(*place) else { return Ok(false) };
            if !self.units.contains_key(&start) {
                units.insert(start, size);
            }
        }
        for size in units.values() {
            let Some(left) = self.left.checked_sub(*size) else { return Ok(false) };
            self.left = left;
        }
        let units: Vec<(usize, usize)> = units.into_iter().collect();
        let share = units.len().div_ceil(rayon::current_num_threads()).max(1);
        let read = units.par_chunks(share).map(|units| self.section.read(units, &self.inflated));
        let read: Result<Option<Vec<_>>> = read.collect();
        let Some(read) = read? else { return Ok(false) };
        self.units.extend(read.into_iter().flatten());
        Ok(true)
    }
}
