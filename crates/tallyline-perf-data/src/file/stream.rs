//! Records as they follow each other: a header of 8 bytes, and a body.

use crate::abi::record as kind;
use crate::bytes::{ByteOrder, Cursor};
use crate::{Error, Result};
use std::ops::Range;

/// A record whose body was not looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawRecord<'a> {
    /// The record's offset in the file, or in the inflated records.
    pub(super) offset: u64,
    pub(super) is_inflated: bool,
    pub(super) kind: u32,
    pub(super) misc: u16,
    pub(super) body: Cursor<'a>,
}

/// Marks the position of an inflated record; no file is so long.
pub(super) const INFLATED: u64 = 1 << 63;

impl RawRecord<'_> {
    /// Returns the position as one number.
    pub(super) fn position(&self) -> u64 {
        self.offset | if self.is_inflated { INFLATED } else { 0 }
    }

    /// Returns the record's end, without the trace behind it.
    pub(super) fn end(&self) -> u64 {
        self.position() + 8 + self.body.rest().len() as u64
    }
}

/// An iterator that ends at the first error.
pub(super) struct RawRecords<'a> {
    at: Cursor<'a>,
    /// `true` if the last record must be whole: not where the file was cut.
    is_whole: bool,
    is_inflated: bool,
    failed: bool,
    /// The number of bytes of records behind those that are here.
    behind: u64,
}

impl<'a> RawRecords<'a> {
    pub(super) fn new(at: Cursor<'a>, is_whole: bool) -> Self {
        Self { at, is_whole, is_inflated: false, failed: false, behind: 0 }
    }

    /// Marks the records as inflated: offsets count from their start.
    pub(super) fn inflated(self) -> Self {
        Self { is_inflated: true, ..self }
    }

    /// Allows for further bytes in the file: traces need not be here as a whole, only records.
    pub(super) fn with_more(self, behind: u64) -> Self {
        Self { behind, ..self }
    }

    /// Returns `true` if the trace or tracing data behind the next record reaches beyond the end of the file.
    pub(super) fn is_beyond(&self) -> bool {
        let mut at = self.at;
        let header = (at.u32(""), at.u16(""), at.u16(""));
        let (Ok(kind), _, Ok(size)) = header else { return false };
        let order = at.order();
        let body = at.take(u64::from(size).saturating_sub(8), "");
        let left = (at.rest().len() as u64).saturating_add(self.behind);
        body.is_ok_and(|body| extra(kind, Cursor::new(body, order, 0)).is_ok_and(|extra| extra > left))
    }

    /// Returns the offset in the file of the first byte that was not read yet.
    pub(super) fn end(&self) -> usize {
        usize::try_from(self.at.offset()).unwrap_or(usize::MAX)
    }

    /// Reads the single record at a position.
    pub(super) fn at(at: Cursor<'a>, is_inflated: bool) -> Result<RawRecord<'a>> {
        Self { at, is_whole: true, is_inflated, failed: false, behind: 0 }.read()
    }

    #[inline]
    fn read(&mut self) -> Result<RawRecord<'a>> {
        let mut at = self.at;
        let offset = at.offset();
        const HEADER: &str = "header of a record";
        let order = at.order();
        let (kind, misc, size) = match *at.rest() {
            // one check for all
            [a, b, c, d, e, f, g, h, ..] => {
                at.take(8, HEADER)?;
                (order.u32([a, b, c, d]), order.u16([e, f]), order.u16([g, h]))
            }
            _ => (at.u32(HEADER)?, at.u16(HEADER)?, at.u16(HEADER)?),
        };
        let Some(len) = u64::from(size).checked_sub(8) else {
            return Err(Error::damaged(offset, format!("a record of {size} bytes: its header alone has 8")));
        };
        let body_offset = at.offset();
        let body = at.take(len, "a record")?;
        let extra = extra(kind, Cursor::new(body, order, body_offset))?;
        match extra.checked_sub(at.rest().len() as u64) {
            Some(missing) if missing <= self.behind => at = Cursor::new(&[], order, at.offset() + extra),
            _ => drop(at.take(extra, "the data of a trace")?),
        }
        self.at = at;
        Ok(RawRecord {
            offset,
            is_inflated: self.is_inflated,
            kind,
            misc,
            body: Cursor::new(body, order, body_offset),
        })
    }
}

/// The number of plausible records in a row that are taken for records.
const CONVINCING: usize = 8;

/// The kernel's and perf's types of records, with room for some more.
const KINDS: [Range<u32>; 2] = [kind::MMAP..32, kind::USER_TYPES..96];

/// Returns where records go on behind a damaged one: where as many as convince follow each other, or go to the end.
pub(super) fn next_records(bytes: &[u8], damaged: usize, order: ByteOrder) -> Option<usize> {
    (damaged + 8..bytes.len()).step_by(8).find(|start| are_convincing(&bytes[*start..], order))
}

fn are_convincing(bytes: &[u8], order: ByteOrder) -> bool {
    let mut at = Cursor::new(bytes, order, 0);
    for count in 0..CONVINCING {
        if at.is_empty() {
            return count > 1;
        }
        let header = (at.u32(""), at.u16(""), at.u16(""));
        let (Ok(kind), Ok(_), Ok(size)) = header else { return false };
        let is_known = KINDS.iter().any(|kinds| kinds.contains(&kind));
        if !is_known || size < 8 || size % 8 != 0 {
            return false;
        }
        let Ok(body) = at.take(u64::from(size) - 8, "") else { return false };
        let follows = extra(kind, Cursor::new(body, order, 0)).and_then(|extra| at.take(extra, ""));
        if follows.is_err() {
            return false;
        }
    }
    true
}

/// Returns the number of bytes that follow a record and are not counted in its size.
#[inline]
fn extra(kind: u32, mut body: Cursor<'_>) -> Result<u64> {
    Ok(match kind {
        kind::AUXTRACE => body.u64("size of a trace")?,
        kind::HEADER_TRACING_DATA => u64::from(body.u32("size of tracing data")?).next_multiple_of(8),
        _ => 0,
    })
}

impl<'a> Iterator for RawRecords<'a> {
    type Item = Result<RawRecord<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.at.is_empty() {
            return None;
        }
        let result = self.read();
        self.failed = result.is_err();
        match result {
            // the rest of a record that was cut off
            Err(_) if !self.is_whole && self.is_cut() => None,
            result => Some(result),
        }
    }
}

impl RawRecords<'_> {
    /// Returns `true` if the rest is the start of a record and not garbage.
    fn is_cut(&self) -> bool {
        let mut at = self.at;
        let header = (at.u32(""), at.u16(""), at.u16(""));
        match header {
            (Ok(_), Ok(_), Ok(size)) => size >= 8,
            _ => true,
        }
    }
}
