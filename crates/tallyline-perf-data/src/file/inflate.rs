//! Compressed records: all of a file are one zstd stream that is never ended.

use super::stream::RawRecord;
use crate::INFLATED_LIMIT;
use crate::abi::record as kind;
use crate::{Error, Result};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::Read;

/// An empty last block, which ends a frame; and room for a checksum.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// The largest ratio of inflated to compressed records; perf's are below 100. With this a small file cannot take
/// much memory.
const RATIO_LIMIT: u64 = 1000;

/// The number of bytes that are inflated between two checks of the limit.
const STEP: usize = 1 << 20;

pub(super) fn is_compressed(kind: u32) -> bool {
    matches!(kind, kind::COMPRESSED | kind::COMPRESSED2)
}

/// Returns the compressed bytes of a record; the newer kind says how many of them are not padding.
pub(super) fn payload<'a>(raw: &RawRecord<'a>) -> Result<&'a [u8]> {
    let mut body = raw.body;
    if raw.kind == kind::COMPRESSED {
        return Ok(body.rest());
    }
    let size = body.u64("size of compressed records")?;
    body.take(size, "compressed records")
}

/// Inflates the pieces as one stream, as far as that goes, and says what ended it early. `offset` is where the
/// records are, for messages.
pub(super) fn inflate(pieces: &[&[u8]], offset: u64) -> (Vec<u8>, Option<Error>) {
    let mut inflated = Vec::new();
    let result = inflate_into(&mut inflated, pieces, offset);
    (inflated, result.err())
}

fn inflate_into(inflated: &mut Vec<u8>, pieces: &[&[u8]], offset: u64) -> Result<()> {
    let mut source = CompressedChunks { pieces, current: &[], last: &LAST_BLOCK };
    source.skip_empty();
    let compressed: usize = pieces.iter().map(|piece| piece.len()).sum();
    let limit = INFLATED_LIMIT.min((compressed as u64).saturating_mul(RATIO_LIMIT));
    let damaged =
        |error: &dyn std::fmt::Display| Error::damaged(offset, format!("compressed records: {error}"));
    while !source.current.is_empty() {
        let mut decoder = FrameDecoder::new();
        decoder.reset(&mut source).map_err(|error| damaged(&error))?;
        while !decoder.is_finished() {
            decoder
                .decode_blocks(&mut source, BlockDecodingStrategy::UptoBytes(STEP))
                .map_err(|error| damaged(&error))?;
            decoder.collect_to_writer(&mut *inflated).map_err(|error| damaged(&error))?;
            if inflated.len() as u64 > limit {
                return Err(Error::Limit { what: "bytes of inflated records", limit });
            }
        }
        decoder.collect_to_writer(&mut *inflated).map_err(|error| damaged(&error))?;
        source.skip_empty();
    }
    Ok(())
}

/// Chunks one after the other, then the block that ends the frame.
struct CompressedChunks<'a> {
    pieces: &'a [&'a [u8]],
    current: &'a [u8],
    last: &'a [u8],
}

impl CompressedChunks<'_> {
    fn skip_empty(&mut self) {
        while let [piece, rest @ ..] = self.pieces
            && self.current.is_empty()
        {
            self.current = piece;
            self.pieces = rest;
        }
    }
}

impl Read for CompressedChunks<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.skip_empty();
        if self.current.is_empty() {
            return self.last.read(buffer);
        }
        self.current.read(buffer)
    }
}
