//! Random access to compressed sections: checkpoints between blocks of deflate, from which inflating goes
//! on without what comes before, as in zlib's `zran`.

use super::deflate;
use super::input::{Input, Pieces};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};
use zlib_rs::{Inflate, InflateFlush, Status};

/// The least number of bytes between two checkpoints, each of which takes [`WINDOW`] bytes.
const SPACING: u64 = if cfg!(any(test, fuzzing)) { 4 << 10 } else { 1 << 20 };

/// The most checkpoints of a section.
const MOST: u64 = 128;

/// The number of bytes that a block may refer back to.
const WINDOW: usize = 32 << 10;

/// The number of bytes that are inflated at a time.
const PIECE: usize = 256 << 10;

/// The number of bytes by which a checkpoint's bit is recognized.
const PROBE: usize = 64;

/// Decompressor states saved at offsets of a compressed ELF section, so that reading can resume there (as zlib's `zran`
/// does).
#[derive(Default)]
pub(crate) struct Checkpoints(Mutex<BTreeMap<u64, Arc<Checkpoint>>>);

/// The end of a block.
struct Checkpoint {
    /// The number of compressed bytes before it. The last of them may hold the start of the next block: at
    /// which bit is not told by the inflater, and found by [`next`](Self::next).
    taken: u64,
    /// The inflated bytes before it, to which the next blocks refer.
    window: Vec<u8>,
    /// The first inflated bytes behind it.
    next: Vec<u8>,
}

impl Checkpoints {
    /// Returns the offset of the last checkpoint (saved decompressor state) at or before an offset of the inflated ELF
    /// section; 0 if there is none.
    pub(crate) fn nearest(&self, offset: u64) -> u64 {
        self.before(offset).map_or(0, |(start, _)| start)
    }

    /// Returns the nearest checkpoint before an offset, and its own offset.
    fn before(&self, offset: u64) -> Option<(u64, Arc<Checkpoint>)> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.range(..=offset).next_back().map(|(start, checkpoint)| (*start, Arc::clone(checkpoint)))
    }

    /// Keeps a checkpoint unless there is one nearby.
    fn keep(&self, offset: u64, spacing: u64, checkpoint: Checkpoint) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let near = offset.saturating_sub(spacing / 2)..offset.saturating_add(spacing / 2);
        if known.range(near).next().is_none() {
            known.insert(offset, Arc::new(checkpoint));
        }
    }
}

/// The position and the sizes of a compressed section.
#[derive(Clone, Copy)]
pub(super) struct Range<'c> {
    pub(super) input: Input<'c>,
    /// The offset of the compressed bytes.
    pub(super) start: u64,
    pub(super) compressed: u64,
    pub(super) inflated: u64,
}

/// A compressed section from an offset on.
pub(super) struct Inflated<'c> {
    pieces: io::Chain<io::Cursor<Vec<u8>>, BufReader<Pieces<'c>>>,
    inflate: Inflate,
    /// The compressed bytes before the first piece; the prefix of a checkpoint is not counted.
    before: u64,
    prefix: u64,
    /// Inflated bytes: those that were read, as far as blocks refer back to them, and those to be read.
    buffer: Box<[u8]>,
    read: usize,
    end: usize,
    is_finished: bool,
    /// The offset behind the buffer.
    offset: u64,
    /// The offset behind which the next checkpoint is left.
    next: u64,
    /// A checkpoint without the bytes behind it, and where in the buffer these start.
    pending: Option<(u64, Checkpoint, usize)>,
    spacing: u64,
    checkpoints: &'c Checkpoints,
}

impl<'c> Inflated<'c> {
    /// Inflates a part of a file, from an offset in the result on.
    pub(super) fn new(
        range: Range<'c>,
        offset: u64,
        checkpoints: &'c Checkpoints,
    ) -> crate::Result<Inflated<'c>> {
        let resumed = match checkpoints.before(offset) {
            Some((from, checkpoint)) => Inflated::resume(range, from, &checkpoint, checkpoints)?,
            None => None,
        };
        let mut inflated = match resumed {
            Some(inflated) => inflated,
            None => Inflated::start(range, checkpoints)?,
        };
        let before = offset - inflated.position();
        if io::copy(&mut (&mut inflated).take(before), &mut io::sink())? != before {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(inflated)
    }

    /// Inflates from the start.
    fn start(range: Range<'c>, checkpoints: &'c Checkpoints) -> crate::Result<Inflated<'c>> {
        Inflated::open(range, Inflate::new(true, 15), 0, Vec::new(), checkpoints)
    }

    /// Goes on from a checkpoint; none if no bit of its byte is the start of a block with the bytes that
    /// were seen there.
    fn resume(
        range: Range<'c>,
        offset: u64,
        checkpoint: &Checkpoint,
        checkpoints: &'c Checkpoints,
    ) -> crate::Result<Option<Inflated<'c>>> {
        let mut shared = [0];
        let taken = checkpoint.taken.min(range.compressed);
        if let Some(last) = taken.checked_sub(1) {
            range.input.fill(range.start.saturating_add(last), &mut shared)?;
        }
        for bits in 0..8 {
            let mut inflate = Inflate::new(false, 15);
            if inflate.set_dictionary(&checkpoint.window).is_err() {
                return Ok(None);
            }
            let prefix = deflate::prefix(bits, shared[0]);
            let mut inflated = Inflated::open(range, inflate, taken, prefix, checkpoints)?;
            inflated.buffer[..checkpoint.window.len()].copy_from_slice(&checkpoint.window);
            inflated.read = checkpoint.window.len();
            inflated.end = inflated.read;
            inflated.offset = offset;
            inflated.next = offset.saturating_add(inflated.spacing);
            let mut is_whole = Ok(true);
            while inflated.unread().len() < checkpoint.next.len() && matches!(is_whole, Ok(true)) {
                is_whole = inflated.fill().map(|()| !inflated.is_finished);
            }
            if inflated.unread().starts_with(&checkpoint.next) {
                return Ok(Some(inflated));
            }
        }
        Ok(None)
    }

    /// Opens the compressed bytes behind the first `taken`.
    fn open(
        range: Range<'c>,
        inflate: Inflate,
        taken: u64,
        prefix: Vec<u8>,
        checkpoints: &'c Checkpoints,
    ) -> crate::Result<Inflated<'c>> {
        let left = range.compressed.saturating_sub(taken);
        let pieces = range.input.pieces(range.start.saturating_add(taken), left)?;
        let spacing = (range.inflated / MOST).max(SPACING);
        Ok(Inflated {
            inflate,
            before: taken,
            prefix: prefix.len() as u64,
            pieces: io::Cursor::new(prefix).chain(pieces),
            buffer: vec![0; WINDOW + PIECE].into_boxed_slice(),
            read: 0,
            end: 0,
            is_finished: false,
            offset: 0,
            next: spacing,
            pending: None,
            spacing,
            checkpoints,
        })
    }

    /// Returns the bytes that were inflated and not read.
    fn unread(&self) -> &[u8] {
        &self.buffer[self.read..self.end]
    }

    /// Returns the offset of the next byte to be read.
    fn position(&self) -> u64 {
        self.offset - self.unread().len() as u64
    }

    /// Inflates more bytes, unless there are none.
    fn fill(&mut self) -> io::Result<()> {
        self.drop_read();
        let piece = self.pieces.fill_buf()?;
        let is_end = piece.is_empty();
        // to stop between two blocks takes a checkpoint that is due
        let is_due = self.offset >= self.next && self.pending.is_none();
        let flush = if is_due { InflateFlush::Block } else { InflateFlush::NoFlush };
        let (taken, written) = (self.inflate.total_in(), self.inflate.total_out());
        let result = self.inflate.decompress(piece, &mut self.buffer[self.end..], flush);
        let taken = (self.inflate.total_in() - taken) as usize;
        let written = (self.inflate.total_out() - written) as usize;
        self.end += written;
        self.offset += written as u64;
        // it stops short of both ends only between blocks
        let is_between = taken < piece.len() && self.end < self.buffer.len();
        self.pieces.consume(taken);
        match result {
            Ok(Status::StreamEnd) => self.is_finished = true,
            Ok(_) if is_due && is_between => self.begin_checkpoint(),
            Ok(_) if is_end && written == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, "damaged compressed data")),
        }
        self.complete_checkpoint();
        Ok(())
    }

    /// Drops bytes that were read and that no block can refer to.
    fn drop_read(&mut self) {
        let old = self.end.saturating_sub(WINDOW).min(self.read);
        // to move a few bytes for each piece costs more than it frees
        if self.end >= WINDOW + PIECE / 2 {
            self.buffer.copy_within(old..self.end, 0);
            self.read -= old;
            self.end -= old;
            if let Some((.., start)) = &mut self.pending {
                *start = start.saturating_sub(old);
            }
        }
    }

    /// Starts a checkpoint behind the last inflated byte.
    fn begin_checkpoint(&mut self) {
        let window = self.buffer[self.end.saturating_sub(WINDOW)..self.end].to_vec();
        let taken = (self.before + self.inflate.total_in()).saturating_sub(self.prefix);
        let checkpoint = Checkpoint { taken, window, next: Vec::new() };
        self.pending = Some((self.offset, checkpoint, self.end));
        self.next = self.offset.saturating_add(self.spacing);
    }

    /// Keeps the checkpoint that was started once enough bytes behind it are known.
    fn complete_checkpoint(&mut self) {
        let is_known = |(.., start): &mut (u64, Checkpoint, usize)| self.end - *start >= PROBE;
        if let Some((offset, mut checkpoint, start)) = self.pending.take_if(is_known) {
            checkpoint.next = self.buffer[start..][..PROBE].to_vec();
            self.checkpoints.keep(offset, self.spacing, checkpoint);
        }
    }
}

impl Read for Inflated<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        while self.unread().is_empty() && !self.is_finished {
            self.fill()?;
        }
        let size = into.len().min(self.unread().len());
        into[..size].copy_from_slice(&self.unread()[..size]);
        self.read += size;
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::io::Write;

    /// Returns text, noise that is stored as it is, and text again.
    fn plain() -> Vec<u8> {
        let mut number = 1_u32;
        let mut plain = Vec::new();
        while plain.len() < 600_000 {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match plain.len() {
                200_000..350_000 => plain.push((number >> 24) as u8),
                _ => plain.extend_from_slice(format!("entry {} ", number >> 24).as_bytes()),
            }
        }
        plain
    }

    /// Compresses bytes in blocks of about `size`; in one go without a size.
    fn compressed(plain: &[u8], size: usize) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        for piece in plain.chunks(size) {
            encoder.write_all(piece).expect("in memory");
        }
        encoder.finish().expect("in memory")
    }

    fn from<'c>(
        compressed: &'c [u8],
        size: usize,
        offset: usize,
        kept: &'c Checkpoints,
    ) -> crate::Result<Inflated<'c>> {
        let input = Input::Bytes(compressed);
        let range = Range { input, start: 0, compressed: compressed.len() as u64, inflated: size as u64 };
        Inflated::new(range, offset as u64, kept)
    }

    #[test]
    fn any_offset_gives_what_is_there_whatever_was_read_before() {
        let plain = plain();
        let compressed = compressed(&plain, 1 << 20);
        let kept = Checkpoints::default();
        for offset in [550_000, 0, 3, 4096, 123_456, 599_000, 260_000, plain.len()] {
            let mut rest = Vec::new();
            let mut reader = from(&compressed, plain.len(), offset, &kept).expect("inside");
            reader.read_to_end(&mut rest).expect("whole");
            assert!(rest == plain[offset..], "{offset}");
        }
        let known = kept.0.lock().expect("not poisoned").len();
        assert!((3..=MOST as usize).contains(&known), "{known}");
    }

    #[test]
    fn every_checkpoint_is_gone_on_from() {
        let plain = plain();
        let compressed = compressed(&plain, 1 << 20);
        let kept = Checkpoints::default();
        let mut reader = from(&compressed, plain.len(), 0, &kept).expect("its start");
        io::copy(&mut reader, &mut io::sink()).expect("whole");
        let known: Vec<_> = kept.0.lock().expect("not poisoned").clone().into_iter().collect();
        let input = Input::Bytes(&compressed);
        let (size, inflated) = (compressed.len() as u64, plain.len() as u64);
        let range = Range { input, start: 0, compressed: size, inflated };
        let mut last = 0;
        for (offset, checkpoint) in known {
            assert!(checkpoint.taken > last, "{offset}");
            last = checkpoint.taken;
            let resumed = Inflated::resume(range, offset, &checkpoint, &kept).expect("readable");
            let mut rest = Vec::new();
            resumed.expect("a block starts here").read_to_end(&mut rest).expect("whole");
            assert!(rest == plain[offset as usize..], "{offset}");
        }
        assert!(last > size / 2);
    }

    #[test]
    fn a_checkpoint_that_does_not_fit_is_not_gone_on_from() {
        let plain = plain();
        let compressed = compressed(&plain, 1 << 20);
        let kept = Checkpoints::default();
        let (window, next) = (vec![0; WINDOW], vec![1; PROBE]);
        kept.keep(50_000, 1, Checkpoint { taken: 9_000, window, next });
        let mut rest = Vec::new();
        let mut reader = from(&compressed, plain.len(), 60_000, &kept).expect("from the start");
        reader.read_to_end(&mut rest).expect("whole");
        assert!(rest == plain[60_000..]);
    }

    #[test]
    fn cut_and_damaged_data_are_errors_and_end() {
        let plain = plain();
        let compressed = compressed(&plain, 1 << 20);
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
