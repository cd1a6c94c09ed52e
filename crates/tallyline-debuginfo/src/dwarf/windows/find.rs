//! The first pass over windows: which types are in them that were in none before.

use super::super::found::FoundDie;
use super::super::imports::has_partial_units;
use super::super::near::Near;
use super::super::outlines::{Outlines, UnitClasses};
use super::super::scan::{self, KnownKeys, PriorScan, Scanned};
use super::super::split;
use super::super::units::Units;
use super::reload::Program;
use super::{End, Inputs};
use crate::Request;
use crate::error::Result;
use rustc_hash::{FxHashMap, FxHashSet};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender};

/// A window, and what was found in it.
pub(super) struct Window {
    pub(super) bytes: Vec<u8>,
    /// The offset of its start in the section.
    pub(super) start: usize,
    pub(super) found: Vec<FoundDie>,
    pub(super) classes: UnitClasses,
}

/// The next window, or the end.
pub(super) enum NextWindow {
    Window(Window),
    /// The end of the windows: the rest of the file cannot be read in this way.
    Ends(End),
}

/// Finds types in windows, one after the other.
pub(super) struct Finder<'r> {
    request: &'r Request,
    inputs: Inputs<'r>,
    // the names of compilers, by which it is found out whether equal strings are one string
    producers: FxHashMap<Vec<u8>, usize>,
    // how large classes are that units may only declare, if that is of interest
    outlines: Option<Outlines>,
    // where they are defined, if that is
    program: Option<Program>,
    // what was found so far
    seen: KnownKeys,
    // the nearest names so far, if they are collected
    near: Option<Near>,
}

/// The results of the first pass over all windows.
#[derive(Default)]
pub(super) struct FirstPass {
    /// The sizes of classes.
    pub(super) outlines: Outlines,
    /// The definitions of classes, and the units.
    pub(super) program: Program,
    /// The nearest names, if they were collected.
    pub(super) near: Option<Near>,
}

impl<'r> Finder<'r> {
    pub(super) fn new(
        request: &'r Request,
        inputs: Inputs<'r>,
        outlined: bool,
        is_read_again: bool,
    ) -> Finder<'r> {
        let outlines = outlined.then(Outlines::default);
        let program = is_read_again.then(Program::default);
        Finder {
            request,
            inputs,
            producers: FxHashMap::default(),
            outlines,
            program,
            seen: KnownKeys::default(),
            near: inputs.near.cloned(),
        }
    }

    /// Sends what is found in each window until there are no more, nobody takes them, or all that is
    /// wanted is found. Returns the results of all of them.
    pub(super) fn run(
        mut self,
        windows: Receiver<io::Result<Vec<u8>>>,
        send: &SyncSender<Result<NextWindow>>,
    ) -> FirstPass {
        let mut start: usize = 0;
        for bytes in windows {
            let next = bytes.map_err(Into::into).and_then(|bytes| self.window(bytes, start));
            let goes_on = match &next {
                Ok(NextWindow::Window(window)) => {
                    start = start.saturating_add(window.bytes.len());
                    !self.request.wanted.is_complete(self.seen.len())
                }
                Ok(NextWindow::Ends(_)) | Err(_) => false,
            };
            if send.send(next).is_err() || !goes_on {
                break;
            }
        }
        let Finder { outlines, program, near, .. } = self;
        FirstPass { outlines: outlines.unwrap_or_default(), program: program.unwrap_or_default(), near }
    }

    fn window(&mut self, bytes: Vec<u8>, start: usize) -> Result<NextWindow> {
        let units = self.inputs.units(&bytes, start)?;
        // the units that import partial ones come behind them
        if units.has_type_units() || has_partial_units(&units) || !split::skeletons(&units)?.is_empty() {
            return Ok(NextWindow::Ends(End::From(start)));
        }
        let found = self.find(&units);
        if units.refers_outside() {
            return Ok(NextWindow::Ends(End::From(start)));
        }
        let found = found.map_err(|error| units.localized(error))?;
        let Some((found, classes)) = found else { return Ok(NextWindow::Ends(End::NotMerged)) };
        drop(units);
        Ok(NextWindow::Window(Window { bytes, start, found, classes }))
    }

    /// Finds types in units; returns none if equal strings turn out to have several copies.
    fn find(&mut self, units: &Units<'_>) -> Result<Option<(Vec<FoundDie>, UnitClasses)>> {
        let definitions = self.program.as_ref().map(|program| &program.definitions);
        let presence = self.inputs.presence;
        let (outlines, near) = (self.outlines.as_ref(), self.near.as_ref());
        let before = PriorScan { known: &self.seen, outlines, definitions, presence, near };
        let Scanned { mut found, classes, defined, producers, near } =
            scan::scan(units, self.request, before)?;
        if self.inputs.merged && !self.are_merged(units, producers) {
            return Ok(None);
        }
        found.retain(|found| self.seen.insert(found.key));
        self.outlines.iter_mut().for_each(|outlines| outlines.add(&classes));
        if let Some(program) = &mut self.program {
            program.units.extend(units.spans());
            program.definitions.add(defined);
        }
        if let (Some(all), Some(near)) = (&mut self.near, near) {
            all.append(near);
        }
        Ok(Some((found, classes)))
    }

    /// Returns `true` if each compiler name, which units repeat, is one string of the section.
    fn are_merged(&mut self, units: &Units<'_>, producers: FxHashSet<usize>) -> bool {
        producers.into_iter().all(|offset| {
            let name = units.string_at(offset).unwrap_or_default();
            *self.producers.entry(name.to_vec()).or_insert(offset) == offset
        })
    }
}
