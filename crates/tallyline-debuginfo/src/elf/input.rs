//! The sources of a file's bytes.

use crate::error::{Error, Result};
use rayon::prelude::*;
use std::borrow::Cow;
use std::fs;
use std::io::{self, BufReader};

/// The number of bytes that one thread reads at a time.
const PIECE: usize = 4 << 20;

/// The source from which an ELF file's bytes are read: a byte slice, or an open file.
#[derive(Clone, Copy)]
pub(crate) enum Input<'a> {
    /// All bytes of the file, in memory.
    Bytes(&'a [u8]),
    /// An open file, read as needed at explicit offsets, whatever its position.
    File(&'a fs::File),
}

impl<'a> Input<'a> {
    /// Reads `size` bytes of the file at `offset` into memory, in parallel; borrows them if they are in memory. An
    /// error if the file ends before.
    pub(crate) fn take(self, offset: u64, size: u64) -> Result<Cow<'a, [u8]>> {
        let end = offset.checked_add(size).ok_or_else(beyond)?;
        match self {
            Input::Bytes(bytes) => {
                let (start, end) = (usize::try_from(offset), usize::try_from(end));
                let range = start.ok().zip(end.ok()).and_then(|(start, end)| bytes.get(start..end));
                Ok(Cow::Borrowed(range.ok_or_else(beyond)?))
            }
            Input::File(file) => {
                // no memory for what a header only claims to be there
                if end > length(file)? {
                    return Err(beyond());
                }
                let mut bytes = vec![0; usize::try_from(size).map_err(|_| beyond())?];
                bytes
                    .par_chunks_mut(PIECE)
                    .enumerate()
                    .try_for_each(|(index, piece)| read_at(file, piece, offset + (index * PIECE) as u64))?;
                Ok(Cow::Owned(bytes))
            }
        }
    }
}

impl<'a> Input<'a> {
    /// Reads bytes of the file at `offset` until the buffer `into` is full. An error if the file ends before.
    pub(crate) fn fill(self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        match self {
            Input::Bytes(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let there = bytes.get(start..).and_then(|rest| rest.get(..into.len()));
                into.copy_from_slice(there.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
            Input::File(file) => read_at(file, into, offset),
        }
    }

    /// Returns a buffered reader of `size` bytes of the file from `offset` on. An error if the file ends before.
    pub(crate) fn pieces(self, offset: u64, size: u64) -> Result<BufReader<Pieces<'a>>> {
        let end = offset.checked_add(size).ok_or_else(beyond)?;
        let length = match self {
            Input::Bytes(bytes) => bytes.len() as u64,
            Input::File(file) => length(file)?,
        };
        if end > length {
            return Err(beyond());
        }
        Ok(BufReader::with_capacity(1 << 16, Pieces { input: self, offset, end }))
    }
}

/// Sequential reader of a byte range of an ELF file.
pub(crate) struct Pieces<'a> {
    input: Input<'a>,
    offset: u64,
    end: u64,
}

impl io::Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX);
        let size = into.len().min(left);
        self.input.fill(self.offset, &mut into[..size])?;
        self.offset += size as u64;
        Ok(size)
    }
}

fn beyond() -> Error {
    Error::Io(io::Error::new(io::ErrorKind::UnexpectedEof, "a section lies beyond the end of the file"))
}

fn length(mut file: &fs::File) -> io::Result<u64> {
    match file.metadata()?.len() {
        // devices have no length of their own
        0 => io::Seek::seek(&mut file, io::SeekFrom::End(0)),
        length => Ok(length),
    }
}

#[cfg(unix)]
fn read_at(file: &fs::File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_at(file: &fs::File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                bytes = &mut bytes[read..];
                offset += read as u64;
            }
        }
    }
    Ok(())
}
