//! Reading a file a window of units at a time: what takes memory is two windows and the names, not
//! all of the file.
//!
//! That goes where entries only refer to others of their own unit or of units nearby. Where it turns
//! out that they do not, or that types are in other files, the rest is read as a whole.

use super::load::Classes;
use super::outlines::Outlines;
use super::sections::{Reading, Sections};
use super::source::Source;
use super::units::Units;
use super::{load_found, scan, split};
use crate::elf::{File, Naming, Part};
use crate::error::Result;
use crate::model::Types;
use crate::{INFLATED_LIMIT, Request, Wanted};
use gimli::SectionId;
use object::ReadRef;
use rustc_hash::FxHashSet;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// How many bytes of units are looked at at once: of the first window, as what is sought by name is
/// mostly found early, and of the last.
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

/// How far reading came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
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
    windows: Windows,
    each: &mut dyn FnMut(Types) -> ControlFlow<()>,
) -> Result<Outcome> {
    let as_a_whole = Ok(Outcome::From(0));
    // how many units define a type is known at the end only
    if naming == Naming::Split || request.positions || file.alternate()?.is_some() {
        return as_a_whole;
    }
    let types = file.parts(SectionId::DebugTypes, naming)?;
    let infos = file.parts(SectionId::DebugInfo, naming)?;
    let ([], [info]) = (&types[..], &infos[..]) else { return as_a_whole };
    if info.size() <= windows.first as u64 {
        return as_a_whole;
    }
    let reading = Reading { without_units: true, ..Reading::default() };
    // how often it is read does not count
    if info.stream(&reading.budget)?.is_none() {
        return as_a_whole;
    }
    let sections = Sections::load(file, naming, &reading)?;
    let reader = Reader {
        request,
        info,
        sections: &sections,
        windows,
        little_endian: file.is_little_endian(),
        outlines: None,
        seen: FxHashSet::default(),
    };
    reader.read(&mut |mut part| {
        part.target = file.target();
        each(part)
    })
}

/// Reads windows, one after the other.
struct Reader<'r, 'a> {
    request: &'r Request,
    info: &'r Part<'a>,
    sections: &'r Sections<'r>,
    windows: Windows,
    little_endian: bool,
    // how large classes are that units only declare; none before one is met
    outlines: Option<Outlines>,
    // what was found so far
    seen: FxHashSet<(u64, u64)>,
}

impl Reader<'_, '_> {
    fn read(mut self, each: &mut dyn FnMut(Types) -> ControlFlow<()>) -> Result<Outcome> {
        let mut read = 0;
        let (info, windows, little_endian) = (self.info, self.windows, self.little_endian);
        let ended = over_windows(info, windows, little_endian, &mut |bytes, start| {
            read = start;
            let Some(parts) = self.window(bytes, start)? else { return Ok(ControlFlow::Break(false)) };
            if parts.into_iter().any(|part| each(part).is_break()) {
                return Ok(ControlFlow::Break(true));
            }
            let is_complete = self.request.wanted.is_complete(self.seen.len());
            Ok(if is_complete { ControlFlow::Break(true) } else { ControlFlow::Continue(()) })
        })?;
        Ok(if ended == Some(false) { Outcome::From(read) } else { Outcome::Done })
    }

    /// The types of a window; none if it has to do with what lies outside.
    fn window(&mut self, bytes: &[u8], start: usize) -> Result<Option<Vec<Types>>> {
        let units = Units::index(Source::window(self.sections, bytes, start), self.little_endian)?;
        if units.has_type_units() || !split::skeletons(&units)?.is_empty() {
            return Ok(None);
        }
        self.types(&units).map_err(|error| units.localized(error))
    }

    fn types(&mut self, units: &Units<'_>) -> Result<Option<Vec<Types>>> {
        let mut found = scan::scan(units, self.request)?;
        found.retain(|found| self.seen.insert(found.key));
        let mut parts = load_found(units, self.request, &found, self.classes());
        if units.has_undefined()
            && self.request.sizes_only
            && self.outlines.is_none()
            && !units.refers_outside()
        {
            self.outlines = Some(self.find_outlines()?);
            units.forget_undefined();
            parts = load_found(units, self.request, &found, self.classes());
        }
        if units.refers_outside() || units.has_undefined() {
            return Ok(None);
        }
        parts.map(Some)
    }

    fn classes(&self) -> Classes<'_> {
        self.outlines.as_ref().map_or(Classes::OfTheirUnits, Classes::Outlined)
    }

    /// Reads all of the file for how large its classes are.
    fn find_outlines(&self) -> Result<Outlines> {
        let mut outlines = Outlines::default();
        over_windows(self.info, self.windows, self.little_endian, &mut |bytes, start| {
            let units = Units::index(Source::window(self.sections, bytes, start), self.little_endian)?;
            outlines.add(&units).map_err(|error| units.localized(error))?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(outlines)
    }
}

/// What is done with a window's bytes, and where they start.
type EachWindow<'e> = dyn FnMut(&[u8], usize) -> Result<ControlFlow<bool>> + 'e;

/// Goes over the windows of a section until `each` breaks; what it breaks with.
fn over_windows(
    info: &Part<'_>,
    windows: Windows,
    little_endian: bool,
    each: &mut EachWindow<'_>,
) -> Result<Option<bool>> {
    // the budget was looked at before
    let stream = info.stream(&AtomicU64::new(INFLATED_LIMIT))?;
    let Some(stream) = stream else { return Ok(Some(false)) };
    thread::scope(|scope| {
        let (send, cut) = sync_channel(0);
        let cutter = Cutter { stream, windows, little_endian };
        if thread::Builder::new().spawn_scoped(scope, move || cutter.run(&send)).is_err() {
            return Ok(Some(false));
        }
        let mut start: usize = 0;
        for window in cut {
            let window = window?;
            if let ControlFlow::Break(how) = each(&window, start)? {
                return Ok(Some(how));
            }
            start = start.saturating_add(window.len());
        }
        Ok(None)
    })
}

/// Cuts the section of units into windows, between units.
struct Cutter<'a> {
    stream: Box<dyn Read + Send + 'a>,
    windows: Windows,
    little_endian: bool,
}

impl Cutter<'_> {
    /// Sends the windows until there are no more, or nobody takes them.
    fn run(mut self, send: &SyncSender<io::Result<Vec<u8>>>) {
        let mut size = self.windows.first;
        let mut rest = Vec::new();
        loop {
            let window = match self.next(&mut rest, size) {
                Ok(window) if window.is_empty() => return,
                window => window,
            };
            let failed = window.is_err();
            if send.send(window).is_err() || failed {
                return;
            }
            size = size.saturating_mul(2).min(self.windows.most);
        }
    }

    /// The next window: what was left of the one before, and what follows. What is damaged at its
    /// end is found by who reads the units.
    fn next(&mut self, rest: &mut Vec<u8>, size: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(size.max(rest.len()));
        bytes.append(rest);
        let mut wanted = size;
        loop {
            let more = wanted.saturating_sub(bytes.len());
            let read = (&mut self.stream).take(more as u64).read_to_end(&mut bytes)?;
            if read < more {
                return Ok(bytes);
            }
            match whole_units(&bytes, self.little_endian) {
                // a unit that is longer than a window
                (0, needed) => wanted = needed.max(bytes.len().saturating_add(1)),
                (end, _) => {
                    rest.extend_from_slice(&bytes[end..]);
                    bytes.truncate(end);
                    return Ok(bytes);
                }
            }
        }
    }
}

/// Where the last whole unit ends, and where the one after it would.
fn whole_units(bytes: &[u8], little_endian: bool) -> (usize, usize) {
    let mut end = 0;
    loop {
        let Some(next) = unit_length(&bytes[end..], little_endian).and_then(|length| end.checked_add(length))
        else {
            return (end, end);
        };
        if next > bytes.len() {
            return (end, next);
        }
        end = next;
    }
}

/// How long the unit at the start of some bytes is, its length included.
fn unit_length(bytes: &[u8], little_endian: bool) -> Option<usize> {
    let start: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    let short = if little_endian { u32::from_le_bytes(start) } else { u32::from_be_bytes(start) };
    if short != u32::MAX {
        return usize::try_from(short).ok()?.checked_add(4);
    }
    let start: [u8; 8] = bytes.get(4..12)?.try_into().ok()?;
    let long = if little_endian { u64::from_le_bytes(start) } else { u64::from_be_bytes(start) };
    usize::try_from(long).ok()?.checked_add(12)
}

impl Wanted {
    /// Whether so many types are all that there can be.
    pub(super) fn is_complete(&self, found: usize) -> bool {
        match self {
            Wanted::Records | Wanted::Enumerator(_) => false,
            Wanted::Named(names) => found >= names.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::Input;
    use crate::query::{Met, size_of, summary};

    /// What is listed, in order: names, sizes and holes.
    fn lines(parts: &[Types]) -> Vec<String> {
        let mut met = Met::default();
        let mut lines = Vec::new();
        for types in parts {
            for id in types.listed() {
                let Some((_, record)) = types.as_record(*id) else { continue };
                if met.is_new(types, record) {
                    let name = String::from_utf8_lossy(&types.qualified_name(*id)).into_owned();
                    lines.push(format!("{name} {} {:?}", size_of(types, *id), summary(types, record)));
                }
            }
        }
        lines
    }

    /// This test's own program, as it has many units.
    fn program() -> Option<Vec<u8>> {
        let bytes = std::fs::read(std::env::current_exe().expect("known")).expect("readable");
        let file = File::parse(&bytes[..], Input::Bytes(&bytes)).expect("ELF");
        if file.naming() != Some(Naming::Plain) {
            eprintln!("skipped: this test is built without debug information");
            return None;
        }
        Some(bytes)
    }

    #[test]
    fn windows_of_any_size_have_the_same_types_as_the_whole() {
        let Some(bytes) = program() else { return };
        let file = File::parse(&bytes[..], Input::Bytes(&bytes)).expect("ELF");
        let request = Request::default();
        let whole =
            super::super::read_whole(&file, Naming::Plain, &request, &crate::Alone, 0).expect("readable");
        let whole = lines(&[whole]);
        for windows in [Windows { first: 100, most: 1 << 16 }, Windows { first: 1 << 18, most: 1 << 20 }] {
            let mut parts = Vec::new();
            let outcome = read(&file, Naming::Plain, &request, windows, &mut |part| {
                parts.push(part);
                ControlFlow::Continue(())
            });
            if let Outcome::From(start) = outcome.expect("readable") {
                assert_ne!(start, 0, "the first window is enough for itself");
                let rest = super::super::read_whole(&file, Naming::Plain, &request, &crate::Alone, start);
                parts.push(rest.expect("readable"));
            }
            assert!(lines(&parts) == whole, "{windows:?}");
        }
    }

    /// A program of two units, of which the first only declares what it holds and extends.
    fn two_units() -> Option<Vec<u8>> {
        const CLASSES: &str = "struct Key { virtual void key(); long a; char tail; };
            struct Empty { virtual void v(); };
            struct Mid : Key { virtual void mid(); short c; };
            struct Outer { struct In { virtual void in(); int n; }; };
            struct Derived : Mid { char d; int e; };
            struct Holder { char first; Mid held; char last; };
            struct OfInner : Outer::In { char c; };";
        let folder = std::env::temp_dir().join(format!("tallyline-windows-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("writable");
        let first = "Derived *d = new Derived; Holder *h = new Holder; OfInner *o = new OfInner;";
        let second = "void Key::key() {} void Mid::mid() {} void Outer::In::in() {} void Empty::v() {}";
        let mut command = std::process::Command::new("g++");
        command.args(["-g", "-w", "-shared", "-fPIC", "-o"]).arg(folder.join("both.so"));
        for (name, text) in [("first.cpp", first), ("second.cpp", second)] {
            std::fs::write(folder.join(name), format!("{CLASSES}\n{text}\n")).expect("writable");
            command.arg(folder.join(name));
        }
        let made = command.output().is_ok_and(|output| output.status.success());
        let bytes = made.then(|| std::fs::read(folder.join("both.so")).expect("made"));
        std::fs::remove_dir_all(folder).expect("removable");
        bytes
    }

    #[test]
    fn sizes_are_those_of_classes_that_later_windows_define() {
        let Some(bytes) = two_units() else {
            eprintln!("skipped: no g++");
            return;
        };
        let file = File::parse(&bytes[..], Input::Bytes(&bytes)).expect("ELF");
        let request = Request { sizes_only: true, ..Request::default() };
        let whole =
            super::super::read_whole(&file, Naming::Plain, &request, &crate::Alone, 0).expect("readable");
        let mut parts = Vec::new();
        let outcome = read(&file, Naming::Plain, &request, Windows { first: 64, most: 256 }, &mut |part| {
            parts.push(part);
            ControlFlow::Continue(())
        });
        assert_eq!(outcome.expect("readable"), Outcome::Done);
        assert!(parts.len() > 1, "the units are windows of their own");
        let lines = lines(&parts);
        assert_eq!(lines, self::lines(&[whole]));
        assert!(lines.iter().any(|line| line.starts_with("Holder 40 Summary { holes: 1,")), "{lines:?}");
    }

    #[test]
    fn what_is_sought_by_name_ends_where_it_is_found() {
        let Some(bytes) = program() else { return };
        let file = File::parse(&bytes[..], Input::Bytes(&bytes)).expect("ELF");
        let wanted = Wanted::named(["Windows"]);
        let request = Request { wanted, ..Request::default() };
        let mut parts = Vec::new();
        let windows = Windows { first: 100, most: 1 << 16 };
        let outcome = read(&file, Naming::Plain, &request, windows, &mut |part| {
            parts.push(part);
            ControlFlow::Continue(())
        });
        if outcome.expect("readable") == Outcome::Done {
            let found = lines(&parts);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains("::Windows 16 "), "{found:?}");
        }
    }

    #[test]
    fn units_are_cut_where_they_end() {
        let unit = |length: u32, size: usize| [&length.to_le_bytes()[..], &vec![7; size]].concat();
        let all = [unit(3, 3), unit(100, 100), unit(1, 1), unit(50, 20)].concat();
        let cutter = |first| Cutter {
            stream: Box::new(&all[..]),
            windows: Windows { first, most: 40 },
            little_endian: true,
        };
        for first in [1, 8, 12, 200] {
            let (send, windows) = sync_channel(100);
            cutter(first).run(&send);
            drop(send);
            let windows: Vec<Vec<u8>> = windows.into_iter().map(|window| window.expect("read")).collect();
            assert_eq!(windows.concat(), all);
            for window in &windows[..windows.len() - 1] {
                assert_eq!(whole_units(window, true).0, window.len(), "{first}");
            }
        }
        // the last one is damaged: that is for others to find
        assert_eq!(whole_units(&all, true), (7 + 104 + 5, 7 + 104 + 5 + 54));
        assert_eq!(unit_length(&[0xff; 12], true), None, "longer than any memory");
    }
}
