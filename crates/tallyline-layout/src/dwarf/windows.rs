//! Reading a file a window of units at a time: what takes memory is two windows and the names, not
//! all of the file.
//!
//! That goes where entries only refer to others of their own unit or of units nearby. Where it turns
//! out that they do not, or that types are in other files, the rest is read as a whole.

use super::load::{Classes, Loaded};
use super::outlines::{Held, Outlines, Seen};
use super::scan::{Before, Known, Scanned};
use super::sections::{Reading, Sections};
use super::source::Source;
use super::strings::{Strings, Use};
use super::units::Units;
use super::{load_found, scan, split};
use crate::elf::{File, Naming, Part};
use crate::error::Result;
use crate::model::Types;
use crate::{INFLATED_LIMIT, Request, Wanted};
use gimli::SectionId;
use object::ReadRef;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, ScopedJoinHandle};

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

impl Windows {
    /// The same, with less at once of a section that is small itself.
    fn for_section(self, size: u64) -> Windows {
        let share = usize::try_from(size / 32).unwrap_or(usize::MAX);
        Windows { most: self.most.min(share.max(self.first)), ..self }
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
    sizes: Windows,
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
    thread::scope(|scope| {
        // the first windows are read beside the other sections
        let mut cut = cut(scope, info, sizes, little_endian)?;
        let is_merged = file.merges(SectionId::DebugStr, naming);
        // names are told apart by where they are, and written once
        let few = is_merged && request.sizes_only && matches!(request.wanted, Wanted::Records);
        let used = if few { Use::Few } else { Use::Many };
        let Some(strings) = Strings::load(strings.first(), used, &reading.budget)? else { return as_a_whole };
        let sections = Sections::load(file, naming, &reading)?;
        let mut merged = is_merged && strings.end();
        while let Some(windows) = cut {
            let reader = Reader::new(request, &sections, &strings, little_endian, merged);
            let read = reader.read(windows, &mut |mut part| {
                part.target = file.target();
                each(part)
            })?;
            match read {
                End::Done => return Ok(Outcome::Done),
                End::From(start) => return Ok(Outcome::From(start)),
                // what was handed on is handed on again: whoever takes it knows it
                End::NotMerged => merged = false,
            }
            cut = self::cut(scope, info, sizes, little_endian)?;
        }
        as_a_whole
    })
}

/// How far a reader came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Done,
    /// From this offset on the file has to be read as a whole.
    From(usize),
    /// Equal strings are not one string, although the file says so.
    NotMerged,
}

/// Reads windows, one after the other.
struct Reader<'r> {
    request: &'r Request,
    sections: &'r Sections<'r>,
    strings: &'r Strings<'r>,
    little_endian: bool,
    // whether equal strings are one string, and those by which that is found out
    merged: bool,
    producers: FxHashMap<Vec<u8>, usize>,
    // how large classes are that units may only declare, if that is of interest
    outlines: Option<Outlines>,
    // what waits for such classes and what comes behind it, with where their windows start
    held: Vec<(usize, Vec<Held>)>,
    // what was found so far
    seen: Known,
}

impl<'r> Reader<'r> {
    fn new(
        request: &'r Request,
        sections: &'r Sections<'r>,
        strings: &'r Strings<'r>,
        little_endian: bool,
        merged: bool,
    ) -> Reader<'r> {
        let all = matches!(request.wanted, Wanted::Records) && request.units.is_everything();
        let outlined = request.sizes_only && all && !request.anonymous;
        Reader {
            request,
            sections,
            strings,
            little_endian,
            merged,
            producers: FxHashMap::default(),
            outlines: outlined.then(Outlines::default),
            held: Vec::new(),
            seen: Known::default(),
        }
    }

    fn read(mut self, cut: Cut<'_>, each: &mut dyn FnMut(Types) -> ControlFlow<()>) -> Result<End> {
        let mut start: usize = 0;
        for window in cut.windows.iter().flatten() {
            let window = window?;
            match self.window(&window, start)? {
                Window::Types(parts) => {
                    if parts.into_iter().any(|part| each(part).is_break()) {
                        return Ok(End::Done);
                    }
                }
                Window::Ends(End::From(start)) => {
                    return Ok(End::From(self.held.first().map_or(start, |(first, _)| *first)));
                }
                Window::Ends(end) => return Ok(end),
            }
            if self.request.wanted.is_complete(self.seen.len()) {
                return Ok(End::Done);
            }
            start = start.saturating_add(window.len());
            // nobody needs it where all windows are there
            let _ = cut.spent.send(window);
        }
        self.complete(each)
    }

    /// Completes what had to wait for the end of the file.
    fn complete(self, each: &mut dyn FnMut(Types) -> ControlFlow<()>) -> Result<End> {
        let outlines = self.outlines.unwrap_or_default();
        for (start, held) in self.held {
            let parts = held.into_par_iter().map(|held| held.complete(&outlines));
            let Some(parts) = parts.collect::<Result<Option<Vec<_>>>>()? else {
                return Ok(End::From(start));
            };
            if parts.into_iter().any(|part| each(part).is_break()) {
                break;
            }
        }
        Ok(End::Done)
    }

    fn window(&mut self, bytes: &[u8], start: usize) -> Result<Window> {
        let mut units =
            Units::index(Source::window(self.sections, self.strings, bytes, start), self.little_endian)?;
        if units.has_type_units() || !split::skeletons(&units)?.is_empty() {
            return Ok(Window::Ends(End::From(start)));
        }
        if self.merged {
            units.set_merged();
        }
        self.types(&units, start).map_err(|error| units.localized(error))
    }

    fn types(&mut self, units: &Units<'_>, start: usize) -> Result<Window> {
        let before = Before { known: &self.seen, outlines: self.outlines.as_ref() };
        let Scanned { mut found, classes, producers } = scan::scan(units, self.request, before)?;
        if self.merged && !self.are_merged(units, producers) {
            return Ok(Window::Ends(End::NotMerged));
        }
        found.retain(|found| self.seen.insert(found.key));
        let how = if self.outlines.is_some() { Classes::Later } else { Classes::OfTheirUnits };
        let parts = load_found(units, self.request, &found, how);
        if units.refers_outside() || units.has_undefined() {
            return Ok(Window::Ends(End::From(start)));
        }
        Ok(Window::Types(self.hold(parts?, classes, start)))
    }

    /// Keeps what cannot be completed yet, and what comes behind that; the rest can be handed on.
    fn hold(&mut self, parts: Vec<Loaded>, classes: Seen, start: usize) -> Vec<Types> {
        if self.held.is_empty() && parts.iter().all(|part| part.wanted.is_empty()) {
            self.outlines.iter_mut().for_each(|outlines| outlines.add(&classes));
            return parts.into_iter().map(|part| part.types).collect();
        }
        let held = parts.into_iter().map(|part| Held::new(part, &classes, self.little_endian));
        self.held.push((start, held.collect()));
        self.outlines.iter_mut().for_each(|outlines| outlines.add(&classes));
        Vec::new()
    }

    /// Whether the names of compilers, which units repeat, are one string each.
    fn are_merged(&mut self, units: &Units<'_>, producers: FxHashSet<usize>) -> bool {
        producers.into_iter().all(|offset| {
            let name = units.string_at(offset).unwrap_or_default();
            *self.producers.entry(name.to_vec()).or_insert(offset) == offset
        })
    }
}

/// What became of a window.
enum Window {
    /// Its types, as far as they are complete.
    Types(Vec<Types>),
    /// It cannot be read so.
    Ends(End),
}

/// Windows of a section, in order. Their memory goes back to be used again.
struct Cut<'s> {
    // until the end
    windows: Option<Receiver<io::Result<Vec<u8>>>>,
    spent: Sender<Vec<u8>>,
    cutter: Option<ScopedJoinHandle<'s, ()>>,
}

impl Drop for Cut<'_> {
    /// Waits for the thread: a scope does so only for what it runs, not for what it leaves behind.
    fn drop(&mut self) {
        // without a taker it ends
        self.windows = None;
        if let Some(cutter) = self.cutter.take() {
            let _ = cutter.join();
        }
    }
}

/// How many windows may wait for their turn. To inflate takes longer than to look, so what is compressed
/// is best never waited for; the more there is of it the less it matters.
fn ahead(info: &Part<'_>) -> usize {
    let size = usize::try_from(info.size()).unwrap_or(usize::MAX);
    match info.is_compressed() {
        true => (size >> 24).min(4),
        false => usize::from(size >> 26 != 0),
    }
}

/// Starts to cut a section into windows; none if that cannot be done.
fn cut<'s>(
    scope: &'s thread::Scope<'s, '_>,
    info: &'s Part<'_>,
    sizes: Windows,
    little_endian: bool,
) -> Result<Option<Cut<'s>>> {
    // the budget was looked at before
    let Some(stream) = info.stream(&AtomicU64::new(INFLATED_LIMIT))? else { return Ok(None) };
    let (send, windows) = sync_channel(ahead(info));
    let (spent, again) = channel();
    let cutter = Cutter { stream, sizes, little_endian, again };
    let started = thread::Builder::new().spawn_scoped(scope, move || cutter.run(&send));
    Ok(started.ok().map(|cutter| Cut { windows: Some(windows), spent, cutter: Some(cutter) }))
}

/// Cuts the section of units into windows, between units.
struct Cutter<'a> {
    stream: Box<dyn Read + Send + 'a>,
    sizes: Windows,
    little_endian: bool,
    // windows that were looked at
    again: Receiver<Vec<u8>>,
}

impl Cutter<'_> {
    /// Sends the windows until there are no more, or nobody takes them.
    fn run(mut self, send: &SyncSender<io::Result<Vec<u8>>>) {
        let mut size = self.sizes.first;
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
            size = size.saturating_mul(2).min(self.sizes.most);
        }
    }

    /// The next window: what was left of the one before, and what follows. What is damaged at its
    /// end is found by who reads the units.
    fn next(&mut self, rest: &mut Vec<u8>, size: usize) -> io::Result<Vec<u8>> {
        let mut bytes = self.again.try_recv().unwrap_or_default();
        bytes.clear();
        bytes.reserve_exact(size.max(rest.len()));
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

    /// What a linker does with equal strings.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Strings {
        Merged,
        /// Nothing, although the section says so.
        Repeated,
    }

    /// A program of two units, of which the first only declares what it holds and extends.
    fn two_units(strings: Strings) -> Option<Vec<u8>> {
        const CLASSES: &str = "struct Key { virtual void key(); long a; char tail; };
            struct Empty { virtual void v(); };
            struct Mid : Key { virtual void mid(); short c; };
            struct Outer { struct In { virtual void in(); int n; }; };
            struct Derived : Mid { char d; int e; };
            struct Holder { char first; Mid held; char last; };
            struct OfInner : Outer::In { char c; };";
        let name = format!("tallyline-windows-{}-{strings:?}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("writable");
        let first = "Derived *d = new Derived; Holder *h = new Holder; OfInner *o = new OfInner;";
        let second = "void Key::key() {} void Mid::mid() {} void Outer::In::in() {} void Empty::v() {}";
        let run = |arguments: &[&str]| {
            let mut command = std::process::Command::new("g++");
            let output = command.args(["-g", "-w", "-fPIC"]).args(arguments).current_dir(&folder).output();
            output.is_ok_and(|output| output.status.success())
        };
        let compile = |name: &str, text: &str| {
            std::fs::write(folder.join("unit.cpp"), format!("{CLASSES}\n{text}\n")).expect("writable");
            if !run(&["-S", "-o", name, "unit.cpp"]) {
                return false;
            }
            let text = std::fs::read_to_string(folder.join(name)).expect("made");
            let merged = ".debug_str,\"MS\",@progbits,1";
            assert!(text.contains(merged));
            let text = match strings {
                Strings::Merged => text,
                Strings::Repeated => text.replace(merged, ".debug_str,\"\",@progbits"),
            };
            std::fs::write(folder.join(name), text).is_ok()
        };
        let made = compile("first.s", first)
            && compile("second.s", second)
            && run(&["-shared", "-o", "both.so", "first.s", "second.s"]);
        let bytes = made.then(|| std::fs::read(folder.join("both.so")).expect("made"));
        std::fs::remove_dir_all(&folder).expect("removable");
        bytes.map(|bytes| if strings == Strings::Repeated { say_merged(bytes) } else { bytes })
    }

    /// Says of `.debug_str` that equal strings are one.
    fn say_merged(mut bytes: Vec<u8>) -> Vec<u8> {
        use object::read::elf::FileHeader;
        let header = object::elf::FileHeader64::<object::LittleEndian>::parse(&bytes[..]).expect("ELF");
        let endian = object::LittleEndian;
        let sections = header.sections(endian, &bytes[..]).expect("sections");
        let (index, _) = sections.section_by_name(endian, b".debug_str").expect("strings");
        let at = header.e_shoff.get(endian) as usize + index.0 * size_of_header(header, endian) + 8;
        let flags = object::elf::SHF_MERGE.0 | object::elf::SHF_STRINGS.0;
        bytes[at..at + 8].copy_from_slice(&flags.to_le_bytes());
        bytes
    }

    fn size_of_header(
        header: &object::elf::FileHeader64<object::LittleEndian>,
        endian: object::LittleEndian,
    ) -> usize {
        header.e_shentsize.get(endian).into()
    }

    #[test]
    fn sizes_are_those_of_classes_that_later_windows_define() {
        sizes_of_two_units(Strings::Merged);
    }

    #[test]
    fn sizes_are_the_same_where_equal_strings_are_not_one() {
        sizes_of_two_units(Strings::Repeated);
    }

    fn sizes_of_two_units(strings: Strings) {
        let Some(bytes) = two_units(strings) else {
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
        for first in [1, 8, 12, 200] {
            let (send, windows) = sync_channel(100);
            let (spent, again) = channel();
            spent.send(vec![9; 30]).expect("open");
            let (stream, sizes) = (Box::new(&all[..]), Windows { first, most: 40 });
            Cutter { stream, sizes, little_endian: true, again }.run(&send);
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
