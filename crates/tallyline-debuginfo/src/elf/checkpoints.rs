//! Random access to compressed sections: copies of the inflater's state, one every megabyte, from which
//! inflating goes on without what comes before.

use super::input::{Input, Pieces};
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::{Mutex, PoisonError};

/// The least number of bytes between two states; a state takes 43 KiB.
const SPACING: u64 = if cfg!(any(test, fuzzing)) { 4 << 10 } else { 1 << 20 };

/// The most states of a section.
const MOST: u64 = 256;

/// States of the inflater of one section, by the offset that they go on from.
#[derive(Default)]
pub(crate) struct Checkpoints(Mutex<BTreeMap<u64, Checkpoint>>);

/// A state of the inflater.
#[derive(Clone)]
struct Checkpoint {
    state: Box<InflateState>,
    /// The number of compressed bytes that it has taken.
    taken: u64,
}

impl Checkpoints {
    /// Returns the offset of the nearest state before an offset.
    pub(crate) fn nearest(&self, offset: u64) -> u64 {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.range(..=offset).next_back().map_or(0, |(start, _)| *start)
    }

    /// Returns the nearest state before an offset, and its own offset.
    fn before(&self, offset: u64) -> (u64, Checkpoint) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.range(..=offset).next_back() {
            Some((start, checkpoint)) => (*start, checkpoint.clone()),
            None => (0, Checkpoint { state: InflateState::new_boxed(DataFormat::Zlib), taken: 0 }),
        }
    }

    /// Keeps a state unless there is one nearby.
    fn keep(&self, offset: u64, spacing: u64, checkpoint: &Checkpoint) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let near = offset.saturating_sub(spacing / 2)..offset.saturating_add(spacing / 2);
        if known.range(near).next().is_none() {
            known.insert(offset, checkpoint.clone());
        }
    }
}

/// A compressed section from an offset on.
pub(super) struct Inflated<'c> {
    pieces: BufReader<Pieces<'c>>,
    at: Checkpoint,
    offset: u64,
    // where the next state is kept
    next: u64,
    spacing: u64,
    checkpoints: &'c Checkpoints,
}

impl<'c> Inflated<'c> {
    /// Inflates a part of a file, from an offset in the result on, which has `size` bytes in all.
    pub(super) fn new(
        input: Input<'c>,
        (start, compressed): (u64, u64),
        size: u64,
        offset: u64,
        checkpoints: &'c Checkpoints,
    ) -> crate::Result<Inflated<'c>> {
        let (from, at) = checkpoints.before(offset);
        let taken = at.taken.min(compressed);
        let pieces = input.pieces(start.saturating_add(taken), compressed - taken)?;
        let spacing = (size / MOST).max(SPACING);
        let next = from.saturating_add(spacing);
        let mut inflated = Inflated { pieces, at, offset: from, next, spacing, checkpoints };
        let before = offset - from;
        if io::copy(&mut (&mut inflated).take(before), &mut io::sink())? != before {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(inflated)
    }
}

impl Read for Inflated<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            let piece = self.pieces.fill_buf()?;
            let is_end = piece.is_empty();
            let result = inflate(&mut self.at.state, piece, into, MZFlush::None);
            self.pieces.consume(result.bytes_consumed);
            self.at.taken += result.bytes_consumed as u64;
            self.offset += result.bytes_written as u64;
            if result.bytes_written != 0 {
                if self.offset >= self.next {
                    self.checkpoints.keep(self.offset, self.spacing, &self.at);
                    self.next = self.offset.saturating_add(self.spacing);
                }
                return Ok(result.bytes_written);
            }
            match result.status {
                Ok(MZStatus::StreamEnd) => return Ok(0),
                Ok(_) | Err(MZError::Buf) if is_end => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) if result.bytes_consumed != 0 => {}
                _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "damaged compressed data")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::io::Write;

    /// Compresses text in several blocks; returns both.
    fn section() -> (Vec<u8>, Vec<u8>) {
        let mut number = 1_u32;
        let mut plain = Vec::new();
        while plain.len() < 300_000 {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            plain.extend_from_slice(format!("entry {} ", number >> 24).as_bytes());
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&plain).expect("in memory");
        (encoder.finish().expect("in memory"), plain)
    }

    fn from<'c>(
        compressed: &'c [u8],
        size: usize,
        offset: usize,
        kept: &'c Checkpoints,
    ) -> crate::Result<Inflated<'c>> {
        let range = (0, compressed.len() as u64);
        Inflated::new(Input::Bytes(compressed), range, size as u64, offset as u64, kept)
    }

    #[test]
    fn any_offset_gives_what_is_there_whatever_was_read_before() {
        let (compressed, plain) = section();
        let kept = Checkpoints::default();
        for offset in [250_000, 0, 3, 4096, 123_456, 299_000, plain.len()] {
            let mut rest = Vec::new();
            let mut reader = from(&compressed, plain.len(), offset, &kept).expect("inside");
            reader.read_to_end(&mut rest).expect("whole");
            assert!(rest == plain[offset..], "{offset}");
        }
        let known = kept.0.lock().expect("not poisoned");
        assert!((20..=MOST as usize).contains(&known.len()), "{}", known.len());
        // what is nearby is gone on from
        drop(known);
        let (start, checkpoint) = kept.before(200_000);
        assert!(start > 190_000 && checkpoint.taken > 1000, "{start}");
    }

    #[test]
    fn cut_and_damaged_data_are_errors_and_end() {
        let (compressed, plain) = section();
        for cut in [0, 1, 2, 100, compressed.len() / 2, compressed.len() - 1] {
            let kept = Checkpoints::default();
            let mut rest = Vec::new();
            let mut reader = from(&compressed[..cut], plain.len(), 0, &kept).expect("its start");
            assert!(reader.read_to_end(&mut rest).is_err(), "{cut}");
            assert!(plain.starts_with(&rest));
        }
        let kept = Checkpoints::default();
        assert!(from(&compressed, plain.len(), plain.len() + 1, &kept).is_err(), "behind the end");
        let mut damaged = compressed;
        let middle = damaged.len() / 2;
        damaged[middle..].fill(0xff);
        let mut reader = from(&damaged, plain.len(), 0, &kept).expect("its start");
        assert!(reader.read_to_end(&mut Vec::new()).is_err());
    }
}
