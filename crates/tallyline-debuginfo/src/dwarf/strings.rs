//! The strings of a file that is read in windows, without those that nobody asks for here: the names that
//! linkers know functions and variables by. They are up to two thirds of the strings of C++, and a
//! third of Rust's. Where few are asked for, only those are read.

use super::presence::Names;
use crate::INFLATED_LIMIT;
use crate::elf::{Part, join};
use crate::error::Result;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;
use std::io::Read;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

/// The prefixes of C++'s and Rust's linkage names, for which only linkers ask. Any other name with such a
/// prefix is found, too.
const LINKAGE: [&[u8]; 5] = [b"_ZN", b"_ZS", b"_ZT", b"_RN", b"_RI"];

/// The number of bytes that are searched at a time.
const PIECE: usize = 256 << 10;

/// A section of strings.
pub(super) struct Strings<'a> {
    kept: Vec<u8>,
    // what was kept, by its offset in the section
    runs: Vec<Run>,
    size: usize,
    part: Option<&'a Part<'a>>,
    // of few: those that were asked for
    asked: Option<RequestedStrings<'a>>,
    // all of it, once something is asked for that was not kept
    whole: OnceLock<Vec<u8>>,
}

/// The number of a section's strings that will be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StringUse {
    Many,
    /// Names of records, each once or a few times.
    Few,
}

/// Strings that are read from the file when they are asked for, and stay.
struct RequestedStrings<'a> {
    part: &'a Part<'a>,
    // by a hash of their offsets, in the first free slot from there on; each table is twice as large as
    // the one before, and is there once that has no slot for a string
    tables: [OnceLock<Box<[Slot]>>; TABLES],
    // of the first table
    slots: usize,
}

/// The four bytes of a string's offset, and the string with its end.
type Slot = OnceLock<Box<[u8]>>;

/// The number of bytes of the section for which the first table has one slot.
const BYTES_A_SLOT: usize = 512;

/// The maximum number of tables of slots.
const TABLES: usize = 3;

/// The number of bytes that are read for a string: nearly all are shorter, and more reads take longer than
/// more bytes.
const MOSTLY: usize = 1 << 10;

/// Strings longer than this are looked for in all of the section.
const LONG: usize = 1 << 20;

/// The number of slots that are probed for one string.
const PROBES: usize = 16;

impl<'a> RequestedStrings<'a> {
    /// Creates the table, after reading the section once to warm the page cache: sequential reads are cheap, random ones
    /// are not.
    fn new(part: &'a Part<'a>, size: usize) -> Result<RequestedStrings<'a>> {
        let mut piece = vec![0; PIECE];
        let mut offset = 0;
        while offset < size {
            offset += part.read_at(offset as u64, &mut piece)?.max(1);
        }
        let slots = (size / BYTES_A_SLOT).max(PROBES).next_power_of_two();
        Ok(RequestedStrings { part, tables: Default::default(), slots })
    }

    fn table(&self, number: usize) -> &[Slot] {
        let slots = self.slots << number;
        self.tables[number].get_or_init(|| (0..slots).map(|_| OnceLock::new()).collect())
    }

    /// Returns the string at an offset and its end; `None` if it cannot be read, or there is no slot left for
    /// it.
    fn get(&self, offset: usize) -> Option<&[u8]> {
        let key = u32::try_from(offset).ok()?;
        // the high bits are the mixed ones
        let first = (FxBuildHasher.hash_one(key) >> 32) as usize;
        for number in 0..TABLES {
            let table = self.table(number);
            for probe in 0..PROBES {
                let slot = &table[first.wrapping_add(probe) & (table.len() - 1)];
                let taken = match slot.get() {
                    Some(taken) => taken,
                    None => {
                        let string = self.read(key)?;
                        slot.get_or_init(|| string)
                    }
                };
                if let Some(string) = taken.strip_prefix(&key.to_ne_bytes()) {
                    return Some(string);
                }
            }
        }
        None
    }

    /// Returns a slot's copy of the string at an offset.
    fn read(&self, key: u32) -> Option<Box<[u8]>> {
        let with_key = |string: &[u8]| [&key.to_ne_bytes(), string].concat().into_boxed_slice();
        let mut near = [0; MOSTLY];
        let read = self.part.read_at(key.into(), &mut near).ok()?;
        if let Some(end) = memchr::memchr(0, &near[..read]) {
            return Some(with_key(&near[..=end]));
        }
        let mut bytes = vec![0; 4 * MOSTLY];
        loop {
            let read = self.part.read_at(key.into(), &mut bytes).ok()?;
            if let Some(end) = memchr::memchr(0, &bytes[..read]) {
                return Some(with_key(&bytes[..=end]));
            }
            if read < bytes.len() || read >= LONG {
                return None;
            }
            bytes.resize(bytes.len() * 2, 0);
        }
    }
}

/// Strings that follow each other in the section.
#[derive(Clone, Copy)]
struct Run {
    offset: u32,
    /// The offset of the strings in the kept bytes; they end at the offset of the next run.
    kept: u32,
}

impl<'a> Strings<'a> {
    /// Reads a section, and looks for names in it; none if it cannot be read a piece at a time. `budget`
    /// is what may be inflated.
    pub(super) fn load(
        part: Option<&'a Part<'a>>,
        used: StringUse,
        mut names: Option<&mut Names>,
        budget: &AtomicU64,
    ) -> Result<Option<Strings<'a>>> {
        let whole = OnceLock::new();
        let mut strings = Strings { kept: Vec::new(), runs: Vec::new(), size: 0, part, asked: None, whole };
        let Some(part) = part else { return Ok(Some(strings)) };
        let Ok(size) = u32::try_from(part.size()) else { return Ok(None) };
        if used == StringUse::Few && part.is_in_place() {
            strings.size = size as usize;
            strings.asked = Some(RequestedStrings::new(part, strings.size)?);
            return Ok(Some(strings));
        }
        let Some(mut stream) = part.stream(budget)? else { return Ok(None) };
        let mut rest = Vec::with_capacity(2 * PIECE);
        loop {
            let before = rest.len();
            (&mut stream).take(PIECE as u64).read_to_end(&mut rest)?;
            let is_end = rest.len() == before;
            let whole = memchr::memrchr(0, &rest[before..]).map(|end| before + end + 1);
            // what is not ended at the end of the section is no string
            let whole = if is_end { rest.len() } else { whole.unwrap_or(0) };
            if let Some(names) = &mut names {
                names.look(&rest[..whole], strings.size);
            }
            strings.add(&rest[..whole]);
            rest.drain(..whole);
            if is_end {
                strings.kept.shrink_to_fit();
                strings.runs.shrink_to_fit();
                return Ok(Some(strings));
            }
        }
    }

    /// Adds the strings that come next.
    fn add(&mut self, bytes: &[u8]) {
        let mut start = 0;
        let mut was_kept = false;
        while start < bytes.len() {
            let end = memchr::memchr(0, &bytes[start..]).map_or(bytes.len(), |end| start + end + 1);
            let is_kept = !LINKAGE.iter().any(|linkage| bytes[start..end].starts_with(linkage));
            if is_kept {
                if !was_kept {
                    let (offset, kept) = (self.size + start, self.kept.len());
                    self.runs.push(Run { offset: offset as u32, kept: kept as u32 });
                }
                self.kept.extend_from_slice(&bytes[start..end]);
            }
            was_kept = is_kept;
            start = end;
        }
        self.size += bytes.len();
    }

    /// Returns the size of the section in bytes.
    pub(super) fn len(&self) -> usize {
        self.size
    }

    /// Returns `true` if the section ends with the end of a string.
    pub(super) fn end(&self) -> bool {
        self.size.checked_sub(1).is_some_and(|last| self.get(last).is_some())
    }

    /// Returns the string at an offset; `None` beyond the end, or if it is not ended.
    pub(super) fn get(&self, offset: usize) -> Option<&[u8]> {
        if let Some(string) = self.asked.as_ref().and_then(|asked| asked.get(offset)) {
            return until_end(string);
        }
        let next = self.runs.partition_point(|run| run.offset as usize <= offset);
        let end = self.runs.get(next).map_or(self.kept.len(), |next| next.kept as usize);
        let place = next.checked_sub(1).map(|run| {
            let Run { offset: start, kept } = self.runs[run];
            kept as usize + (offset - start as usize)
        });
        match place.and_then(|place| self.kept.get(place..end)).filter(|rest| !rest.is_empty()) {
            Some(rest) => until_end(rest),
            None if offset < self.size => until_end(self.whole().get(offset..)?),
            None => None,
        }
    }

    /// Returns all of the section; nothing if it cannot be read again.
    fn whole(&self) -> &[u8] {
        self.whole.get_or_init(|| {
            // the budget was looked at before
            let budget = AtomicU64::new(INFLATED_LIMIT);
            let part = self.part.map(std::slice::from_ref).unwrap_or_default();
            join(part, &budget).map(|bytes| bytes.into_owned()).unwrap_or_default()
        })
    }
}

fn until_end(bytes: &[u8]) -> Option<&[u8]> {
    Some(&bytes[..memchr::memchr(0, bytes)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::Input;

    /// Strings of many kinds, and where each is.
    fn section() -> (Vec<u8>, Vec<(usize, String)>) {
        let names = ["int", "_ZN1a1bE", "", "long int", "_RNvC1a1b", "_ZTV1a", "x", "_ZN1a1cE"];
        let mut section = Vec::new();
        let mut offsets = Vec::new();
        for round in 0..50_000 {
            for name in names {
                offsets.push((section.len(), format!("{name}{round}")));
                section.extend_from_slice(offsets[offsets.len() - 1].1.as_bytes());
                section.push(0);
            }
        }
        let long = "long ".repeat(100_000);
        offsets.push((section.len(), long.clone()));
        section.extend_from_slice(long.as_bytes());
        section.extend_from_slice(b"\0not ended");
        (section, offsets)
    }

    fn check(strings: &Strings<'_>, section: &[u8], offsets: &[(usize, String)]) {
        for (offset, name) in offsets {
            assert_eq!(strings.get(*offset), Some(name.as_bytes()), "{offset}");
            // strings may end with others
            assert_eq!(strings.get(offset + name.len()), Some(&b""[..]));
            assert_eq!(strings.get(offset + name.len() - 1), Some(&name.as_bytes()[name.len() - 1..]));
        }
        assert_eq!(strings.len(), section.len());
        assert!(!strings.end());
        for beyond in [section.len() - 9, section.len() - 1, section.len(), usize::MAX] {
            assert_eq!(strings.get(beyond), None, "{beyond}");
        }
    }

    #[test]
    fn every_string_is_found_whether_it_was_kept_or_not() {
        let (section, offsets) = section();
        let part = Part::plain(Input::Bytes(&section), section.len() as u64);
        let strings =
            Strings::load(Some(&part), StringUse::Many, None, &AtomicU64::new(0)).expect("readable");
        let strings = strings.expect("plain");
        assert!(strings.kept.len() < section.len() * 2 / 3);
        check(&strings, &section, &offsets);
    }

    #[test]
    fn every_string_is_found_where_few_were_expected_and_only_those_are_read_if_it_is_few() {
        let (section, offsets) = section();
        let path = std::env::temp_dir().join(format!("tallyline-strings-{}", std::process::id()));
        std::fs::write(&path, &section).expect("written");
        let file = std::fs::File::open(&path).expect("a file");
        std::fs::remove_file(&path).expect("removed");
        let part = Part::plain(Input::File(&file), section.len() as u64);
        let strings = Strings::load(Some(&part), StringUse::Few, None, &AtomicU64::new(0)).expect("readable");
        let strings = strings.expect("plain");
        for (offset, name) in offsets.iter().step_by(97) {
            assert_eq!(strings.get(*offset), Some(name.as_bytes()), "{offset}");
        }
        assert!(strings.whole.get().is_none());
        check(&strings, &section, &offsets);
    }
}
