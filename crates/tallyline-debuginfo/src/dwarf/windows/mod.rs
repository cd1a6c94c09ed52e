//! The reader of a file in windows of units: memory holds a few windows and the names, not the file.
//!
//! DIEs must refer to DIEs of their own unit or of units nearby. From the first window on in which they do not, or
//! where types are in other files, the rest of the file is read as a whole.

mod cut;
mod find;
mod reload;

use self::cut::{WindowStream, cut};
use self::find::{Finder, FirstPass, NextWindow, Window};
use self::reload::{Section, UnitReloader};
use super::found::FoundDie;
use super::load::{Classes, Loaded};
use super::near::Near;
use super::outlines::{DeferredTypes, UnitClasses};
use super::presence::{Names, Presence};
use super::sections::{Reading, Sections};
use super::source::UnitSections;
use super::strings::{StringUse, Strings};
use super::units::Units;
use super::{Parts, load_found};
use crate::elf::{File, Naming};
use crate::error::Result;
use crate::model::{Origin, Types};
use crate::{Request, Wanted};
use gimli::SectionId;
use object::ReadRef;
use rayon::prelude::*;
use rustc_hash::FxHashSet;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

/// The sizes of windows: of the first one, as what is sought by name is mostly found early, and of the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    pub(super) first: usize,
    pub(super) most: usize,
}

impl Default for Windows {
    fn default() -> Windows {
        // what is fuzzed is small
        match cfg!(fuzzing) {
            true => Windows { first: 64, most: 256 },
            false => Windows { first: 1 << 20, most: 4 << 20 },
        }
    }
}

impl Windows {
    /// Returns smaller windows for a section that is small itself.
    fn for_section(self, size: u64) -> Windows {
        let share = usize::try_from(size / 32).unwrap_or(usize::MAX);
        Windows { most: self.most.min(share.max(self.first)), ..self }
    }
}

/// The result of reading in windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowsResult {
    /// To the end, or to where no more was wanted.
    Done,
    /// From this offset on the file has to be read as a whole.
    From(usize),
}

/// Reads the wanted types, and hands them on as they come, in the order of the file.
pub(super) fn read<'a, R: ReadRef<'a>>(
    file: &File<'a, R>,
    naming: Naming,
    request: &Request,
    sizes: Windows,
    each: &mut dyn FnMut(Types) -> ControlFlow<()>,
) -> Result<WindowsResult> {
    let as_a_whole = Ok(WindowsResult::From(0));
    // how many units define a type is known at the end only
    if naming == Naming::Split || request.positions || file.alternate()?.is_some() {
        return as_a_whole;
    }
    let types = file.parts(SectionId::DebugTypes, naming)?;
    let infos = file.parts(SectionId::DebugInfo, naming)?;
    let ([], [info]) = (&types[..], &infos[..]) else { return as_a_whole };
    if info.size() <= sizes.first as u64 {
        return as_a_whole;
    }
    let strings = file.parts(SectionId::DebugStr, naming)?;
    let reading = Reading { in_windows: true, ..Reading::default() };
    // how often it is read does not count
    if info.stream(&reading.budget)?.is_none() || strings.len() > 1 {
        return as_a_whole;
    }
    let little_endian = file.is_little_endian();
    let sizes = sizes.for_section(info.size());
    let section = Section::new(info);
    let section = can_read_again(request).then_some(&section);
    thread::scope(|scope| {
        // the first windows are read beside the other sections
        let mut cut = cut(scope, info, section, sizes, little_endian)?;
        let is_merged = file.merges(SectionId::DebugStr, naming);
        // names are told apart by where they are, and written once
        let few = is_merged && request.sizes_only && matches!(request.wanted, Wanted::Records);
        let used = if few { StringUse::Few } else { StringUse::Many };
        let mut names = Names::new(&request.wanted);
        let strings = Strings::load(strings.first(), used, names.as_mut(), &reading.budget)?;
        let Some(strings) = strings else { return as_a_whole };
        let sections = Sections::load(file, naming, &reading)?;
        let mut merged = is_merged && strings.end();
        let near = match &request.wanted {
            Wanted::Named(wanted) if section.is_some() && wanted.len() == 1 => {
                Some(Near::new(&wanted[0], names.as_ref().is_some_and(Names::are_absent)))
            }
            _ => None,
        };
        while let Some(windows) = cut {
            let presence = names.as_ref().and_then(|names| names.presence(little_endian, merged));
            let presence = presence.as_ref();
            let near = near.as_ref();
            let inputs =
                Inputs { sections: &sections, strings: &strings, presence, near, little_endian, merged };
            let with_lines = || {
                let reading = Reading { in_windows: true, positions: true, ..Reading::default() };
                Sections::load(file, naming, &reading)
            };
            let read = read_windows(windows, section, request, inputs, &with_lines, &mut |mut part| {
                part.target = file.target();
                each(part)
            })?;
            match read {
                End::Done => return Ok(WindowsResult::Done),
                End::From(start) => return Ok(WindowsResult::From(start)),
                // what was handed on is handed on again: whoever takes it knows it
                End::NotMerged => merged = false,
            }
            cut = self::cut(scope, info, section, sizes, little_endian)?;
        }
        as_a_whole
    })
}

/// Returns `true` if units that need classes of others are read again, instead of the whole file: few types must
/// be wanted, and the pass must see every unit.
fn can_read_again(request: &Request) -> bool {
    matches!(request.wanted, Wanted::Named(_) | Wanted::Matching(_)) && request.units.is_everything()
}

/// The end of a reader's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Done,
    /// From this offset on the file has to be read as a whole.
    From(usize),
    /// Equal strings are not one string, although the file says so.
    NotMerged,
}

/// The inputs for reading windows.
#[derive(Clone, Copy)]
struct Inputs<'r> {
    sections: &'r Sections<'r>,
    strings: &'r Strings<'r>,
    // what is in units that may have the wanted types, if that is known
    presence: Option<&'r Presence>,
    // what names near to the sought one are collected in
    near: Option<&'r Near>,
    little_endian: bool,
    // whether equal strings are one string
    merged: bool,
}

impl<'r> Inputs<'r> {
    /// Returns the units of a window that starts at an offset of the section.
    fn units<'w>(&self, bytes: &'w [u8], start: usize) -> Result<Units<'w>>
    where
        'r: 'w,
    {
        let source = UnitSections::window(self.sections, self.strings, bytes, start);
        let mut units = Units::index(source, self.little_endian)?;
        if self.merged {
            units.set_merged();
        }
        Ok(units)
    }
}

/// Reads windows, one after the other: while the types of one are loaded, those of the next are found.
fn read_windows<'f>(
    mut cut: WindowStream<'_>,
    section: Option<&Section<'_>>,
    request: &Request,
    inputs: Inputs<'_>,
    with_lines: &dyn Fn() -> Result<Sections<'f>>,
    each: &mut dyn FnMut(Types) -> ControlFlow<()>,
) -> Result<End> {
    let Some(windows) = cut.windows.take() else { return Ok(End::From(0)) };
    let all = matches!(request.wanted, Wanted::Records) && request.units.is_everything();
    let outlined = request.sizes_only && all && !request.anonymous;
    let finder = Finder::new(request, inputs, outlined, section.is_some());
    thread::scope(|scope| {
        let (send, found) = sync_channel(0);
        let started = thread::Builder::new().spawn_scoped(scope, move || finder.run(windows, &send));
        let Ok(finding) = started else { return Ok(End::From(0)) };
        let how = if outlined { Classes::Later } else { Classes::OfTheirUnits };
        let keeps = section.is_some() && matches!(request.wanted, Wanted::Named(_));
        let (held, found_all) = (Vec::new(), Vec::new());
        let mut reader = Reader { request, inputs, section, how, keeps, held, found: found_all };
        let end = reader.read(found, &cut, each);
        let all = finding.join().unwrap_or_else(|panic| resume_unwind(panic));
        match end? {
            Some(end) => Ok(end),
            None if reader.is_ambiguous() && reader.complete_with_positions(&all, with_lines, each)? => {
                Ok(End::Done)
            }
            None => reader.complete(all, each),
        }
    })
}

/// The second pass over windows: loads the types that were found.
struct Reader<'r> {
    request: &'r Request,
    inputs: Inputs<'r>,
    // if units can be read again
    section: Option<&'r Section<'r>>,
    how: Classes<'r>,
    // whether all is withheld until it is known if a name has several types
    keeps: bool,
    // what was found, if so
    found: Vec<FoundDie>,
    // what waits for classes of other units and what comes behind it, with where their windows start
    held: Vec<(usize, Deferred)>,
}

/// Part of the answer that is withheld until the end of the file.
enum Deferred {
    /// Types, complete or lacking the sizes of classes of other units.
    Types(Vec<DeferredTypes>),
    /// Entries found in a window, to be read again with the units that define their classes.
    FoundDie(Vec<FoundDie>),
}

impl Reader<'_> {
    /// Reads windows to the last one, or to where it ends before.
    fn read(
        &mut self,
        windows: Receiver<Result<NextWindow>>,
        cut: &WindowStream<'_>,
        each: &mut dyn FnMut(Types) -> ControlFlow<()>,
    ) -> Result<Option<End>> {
        for next in windows {
            let end = match next? {
                NextWindow::Ends(end) => Some(end),
                NextWindow::Window(mut window) => match self.types(&mut window)? {
                    Some(parts) => {
                        cut.give_back(window.bytes);
                        if parts.into_iter().any(|part| each(part).is_break()) {
                            return Ok(Some(End::Done));
                        }
                        None
                    }
                    None => Some(End::From(window.start)),
                },
            };
            match end {
                None => {}
                Some(End::From(start)) => {
                    return Ok(Some(End::From(self.held.first().map_or(start, |(first, _)| *first))));
                }
                end => return Ok(end),
            }
        }
        Ok(None)
    }

    /// Reads the types of a window, as far as they are complete; `None` if the window cannot be read by
    /// itself.
    fn types(&mut self, window: &mut Window) -> Result<Option<Vec<Types>>> {
        if self.keeps {
            self.found.extend(window.found.iter().cloned());
        }
        let units = self.inputs.units(&window.bytes, window.start)?;
        // what is packed is inferred from the other types of the unit, if more than sizes is shown
        let parts = if self.request.shallow { Parts::Even } else { Parts::OfUnits };
        let parts = load_found(&units, self.request, &window.found, parts, self.how);
        if units.refers_outside() || units.has_undefined() {
            if self.section.is_none() {
                return Ok(None);
            }
            let found = std::mem::take(&mut window.found);
            self.held.push((window.start, Deferred::FoundDie(found)));
            return Ok(Some(Vec::new()));
        }
        let parts = parts.map_err(|error| units.localized(error))?;
        Ok(Some(self.hold(parts, &window.classes, window.start)))
    }

    /// Keeps what cannot be completed yet, and what comes behind that; the rest can be handed on.
    fn hold(&mut self, parts: Vec<Loaded>, classes: &UnitClasses, start: usize) -> Vec<Types> {
        if !self.keeps && self.held.is_empty() && parts.iter().all(|part| part.wanted.is_empty()) {
            return parts.into_iter().map(|part| part.types).collect();
        }
        let held = parts.into_iter().map(|part| DeferredTypes::new(part, classes, self.inputs.little_endian));
        self.held.push((start, Deferred::Types(held.collect())));
        Vec::new()
    }

    /// Returns `true` if several of the found types have the same name.
    fn is_ambiguous(&self) -> bool {
        let mut names = FxHashSet::default();
        !self.found.iter().all(|found| names.insert(found.name))
    }

    /// Hands on all types that were found, read again with their positions; false where that takes too much.
    fn complete_with_positions<'f>(
        &self,
        all: &FirstPass,
        with_lines: &dyn Fn() -> Result<Sections<'f>>,
        each: &mut dyn FnMut(Types) -> ControlFlow<()>,
    ) -> Result<bool> {
        let Some(section) = self.section else { return Ok(false) };
        let sections = with_lines()?;
        let inputs = Inputs { sections: &sections, ..self.inputs };
        let request = Request { positions: true, ..self.request.clone() };
        let mut again = UnitReloader::new(section, inputs, &all.program);
        let Some(parts) = again.load(&request, self.found.clone())? else { return Ok(false) };
        let _ = parts.into_iter().try_for_each(|part| each(part.types));
        Ok(true)
    }

    /// Completes what had to wait for the end of the file.
    fn complete(self, all: FirstPass, each: &mut dyn FnMut(Types) -> ControlFlow<()>) -> Result<End> {
        if self.keeps
            && self.found.is_empty()
            && let Some(nearest) = all.near.and_then(Near::into_names)
        {
            let mut none = Types::new(Origin::Dwarf, 8);
            none.nearest = Some(nearest);
            let _ = each(none);
            return Ok(End::Done);
        }
        let mut again = self.section.map(|section| UnitReloader::new(section, self.inputs, &all.program));
        for (start, held) in self.held {
            let parts: Option<Vec<Types>> = match (held, &mut again) {
                (Deferred::Types(held), _) => {
                    let parts = held.into_par_iter().map(|held| held.complete(&all.outlines));
                    parts.collect::<Result<_>>()?
                }
                (Deferred::FoundDie(found), Some(again)) => {
                    let loaded = again.load(self.request, found)?;
                    loaded.map(|parts| parts.into_iter().map(|part| part.types).collect())
                }
                (Deferred::FoundDie(_), None) => None,
            };
            let Some(parts) = parts else { return Ok(End::From(start)) };
            if parts.into_iter().any(|part| each(part).is_break()) {
                break;
            }
        }
        Ok(End::Done)
    }
}

impl Wanted {
    /// Returns `true` if `found` types are all that there can be.
    pub(super) fn is_complete(&self, found: usize) -> bool {
        match self {
            Wanted::Records | Wanted::Matching(_) | Wanted::Enumerator(_) | Wanted::Named(_) => false,
            Wanted::First(names) => found >= names.len(),
        }
    }
}

#[cfg(test)]
mod tests;
