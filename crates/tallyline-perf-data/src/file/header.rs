//! The file header: the positions of a file's sections.

use super::event::Events;
use super::features::Feature;
use crate::attr::Attr;
use crate::bytes::{ByteOrder, Cursor};
use crate::{Error, Result};
use std::ops::Range;

/// The size in bytes of the header of a seekable perf.data file: magic number, header size, event entry size, three
/// sections (attributes, data, event types), and a bit set of features.
pub(crate) const FILE_HEADER: u64 = 104;

/// The size in bytes of the header of a perf.data stream, as `perf record -o -` writes it: magic number and size.
pub(crate) const STREAM_HEADER: u64 = 16;

/// More events than any recording has.
const MAX_EVENTS: u64 = 1 << 20;

/// The bytes of a file, but perhaps for its records.
#[derive(Clone, Copy)]
pub(super) struct OuterBytes<'b> {
    /// The first bytes of the file, up to the records or to the end of the file.
    pub(super) head: &'b [u8],
    /// The last bytes of the file, from the offset `tail_start` on.
    pub(super) tail: &'b [u8],
    pub(super) tail_start: usize,
}

impl<'b> OuterBytes<'b> {
    /// Returns all of them.
    pub(super) fn whole(bytes: &'b [u8]) -> OuterBytes<'b> {
        OuterBytes { head: bytes, tail: &[], tail_start: bytes.len() }
    }

    /// Returns the length of the file.
    fn len(&self) -> usize {
        self.tail_start + self.tail.len()
    }

    /// Returns those in a range of the file.
    pub(super) fn get(&self, range: &Range<usize>) -> Result<&'b [u8]> {
        let bytes = match range.start.checked_sub(self.tail_start) {
            Some(start) if range.end > self.head.len() => {
                self.tail.get(start..).and_then(|rest| rest.get(..range.len()))
            }
            _ => self.head.get(range.clone()),
        };
        bytes.ok_or_else(|| Error::damaged(range.start as u64, "a section that reaches into the records"))
    }
}

#[derive(Debug)]
pub(super) struct Header {
    pub(super) order: ByteOrder,
    pub(super) is_stream: bool,
    /// The range of the records.
    pub(super) data: Range<usize>,
    attrs: Range<usize>,
    pub(super) features: Vec<(Feature, Range<usize>)>,
    pub(super) warnings: Vec<String>,
}

impl Header {
    pub(super) fn parse(bytes: OuterBytes<'_>) -> Result<Self> {
        if bytes.len() == 0 {
            return Err(Error::Empty);
        }
        let order = byte_order(bytes.head).ok_or(Error::NotPerfData)?;
        let mut at = Cursor::new(bytes.head, order, 0);
        at.take(8, "magic number")?;
        match at.u64("size of the header")? {
            STREAM_HEADER => Ok(Self {
                order,
                is_stream: true,
                data: STREAM_HEADER as usize..bytes.len(),
                attrs: 0..0,
                features: Vec::new(),
                warnings: Vec::new(),
            }),
            FILE_HEADER => Self::sections(bytes, at),
            size => {
                Err(Error::damaged(8, format!("a header of {size} bytes; perf writes 104, or 16 to a pipe")))
            }
        }
    }

    fn sections(bytes: OuterBytes<'_>, mut at: Cursor<'_>) -> Result<Self> {
        let mut warnings = Vec::new();
        at.u64("size of an event's entry")?;
        let attrs = section(&mut at, bytes, "events")?;
        let (offset, size) = (at.u64("start of the records")?, at.u64("size of the records")?);
        section(&mut at, bytes, "names of events").ok();
        let bitmap = at.take(32, "feature bits")?;

        let end = bytes.len() as u64;
        if offset > end {
            return Err(Error::damaged(
                40,
                format!("records start at {offset:#x}, the file ends at {end:#x}"),
            ));
        }
        let data_end = match offset.checked_add(size) {
            _ if size == 0 && offset < end => {
                warnings.push(
                    "the recording was not finished: its header does not say how long it is".to_owned(),
                );
                end
            }
            Some(data_end) if data_end <= end => data_end,
            _ => {
                warnings.push(format!(
                    "the recording ends early: {size} bytes of records, {} are there",
                    end - offset
                ));
                end
            }
        };
        let mut header = Self {
            order: at.order(),
            is_stream: false,
            data: offset as usize..data_end as usize,
            attrs,
            features: Vec::new(),
            warnings,
        };
        if header.warnings.is_empty() {
            header.find_features(bytes, bitmap);
        }
        Ok(header)
    }

    /// Reads the table of features behind the records: an offset and a size for each bit.
    fn find_features(&mut self, bytes: OuterBytes<'_>, bitmap: &[u8]) {
        let start = self.data.end;
        let table = bytes.get(&(start..bytes.len())).unwrap_or_default();
        let mut at = Cursor::new(table, self.order, start as u64);
        for number in feature_numbers(bitmap, self.order) {
            let place = at.offset();
            match section(&mut at, bytes, "a feature") {
                Ok(range) => self.features.push((Feature(number), range)),
                Err(error) if at.offset() == place => {
                    self.warnings.push(error.to_string());
                    return;
                }
                Err(error) => self.warnings.push(error.to_string()),
            }
        }
    }

    /// Reads each entry: the attributes, then the position of the ids.
    pub(super) fn read_attrs(&self, bytes: OuterBytes<'_>, events: &mut Events) -> Result<()> {
        let mut at = Cursor::new(bytes.get(&self.attrs)?, self.order, self.attrs.start as u64);
        let mut count = 0;
        while !at.is_empty() {
            let attr = Attr::read(&mut at)?;
            let range = section(&mut at, bytes, "ids of an event")?;
            let len = range.len() as u64 / 8;
            let ids = Cursor::new(bytes.get(&range)?, self.order, range.start as u64)
                .words(len, "ids of an event")?;
            events.add(attr, ids);
            count += 1;
            if count > MAX_EVENTS {
                return Err(Error::Limit { what: "events of a recording", limit: MAX_EVENTS });
            }
        }
        Ok(())
    }
}

fn byte_order(bytes: &[u8]) -> Option<ByteOrder> {
    match bytes.first_chunk::<8>()? {
        b"PERFILE2" => Some(ByteOrder::Little),
        b"2ELIFREP" => Some(ByteOrder::Big),
        _ => None,
    }
}

/// Returns the range of the records that a file's first bytes give; none for a file without sections.
pub(super) fn data_range(first: &[u8]) -> Option<Range<u64>> {
    let mut at = Cursor::new(first, byte_order(first)?, 0);
    let words = at.words(7, "header").ok()?;
    let (size, start, len) = (words.get(1)?, words.get(5)?, words.get(6)?);
    (size == FILE_HEADER).then_some(start..start.checked_add(len)?)
}

/// Reads an offset and a size, which must be within the file.
fn section(at: &mut Cursor<'_>, bytes: OuterBytes<'_>, what: &str) -> Result<Range<usize>> {
    let place = at.offset();
    let (offset, size) = (at.u64(what)?, at.u64(what)?);
    let end = offset.checked_add(size).filter(|end| *end <= bytes.len() as u64);
    match end {
        Some(end) => Ok(offset as usize..end as usize),
        None if size == 0 => Ok(0..0),
        None => Err(Error::damaged(
            place,
            format!("{what}: {size} bytes at {offset:#x} are not in the file of {:#x} bytes", bytes.len()),
        )),
    }
}

/// Returns the bits are an array of the recording machine's `unsigned long`: 64 bits, or on an old big-endian
/// one 32. Every recording has the host's name, bit 3; without it the other reading is tried, as perf does.
fn feature_numbers(bitmap: &[u8], order: ByteOrder) -> Vec<u64> {
    const HOSTNAME: u64 = 3;
    let longs: Vec<u64> = bitmap
        .as_chunks::<8>()
        .0
        .iter()
        .enumerate()
        .flat_map(|(index, word)| bits(order.u64(*word), index as u64 * 64))
        .collect();
    if order == ByteOrder::Little || longs.contains(&HOSTNAME) {
        return longs;
    }
    let halves: Vec<u64> = bitmap
        .as_chunks::<4>()
        .0
        .iter()
        .enumerate()
        .flat_map(|(index, word)| bits(order.u32(*word).into(), index as u64 * 32))
        .collect();
    if halves.contains(&HOSTNAME) { halves } else { longs }
}

fn bits(word: u64, first: u64) -> impl Iterator<Item = u64> {
    (0..64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| first + bit)
}
