//! Loaded parts of a program, unchanged from the file. Those of a large program are read on demand: a report looks at
//! a few functions of a kernel.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};

/// The maximum total size of regions that are read at once; beyond it the file stays open.
pub(super) const SMALL: u64 = if cfg!(test) { 0 } else { 4 << 20 };

/// The size of the blocks in which larger regions are read.
const CHUNK: usize = if cfg!(test) { 256 } else { 1 << 16 };

/// A section of code or read-only data of an ELF file, whose bytes in memory are those in the file.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    /// The address at which it is loaded.
    pub(crate) address: u64,
    /// The size in bytes.
    pub(crate) size: u64,
    /// `true` if it is executable.
    pub(crate) code: bool,
    bytes: Bytes,
}

#[derive(Clone, Debug)]
enum Bytes {
    There(Vec<u8>),
    InFile { file: Arc<File>, offset: u64, chunks: Vec<OnceLock<Box<[u8]>>> },
}

impl Region {
    /// Creates a region whose bytes are in memory.
    pub(super) fn new(address: u64, bytes: Vec<u8>, code: bool) -> Region {
        Region { address, size: bytes.len() as u64, code, bytes: Bytes::There(bytes) }
    }

    /// Creates a region whose bytes are read from a file on demand.
    pub(super) fn in_file(address: u64, file: &Arc<File>, offset: u64, size: u64, code: bool) -> Region {
        let mut chunks = Vec::new();
        chunks.resize_with(usize::try_from(size.div_ceil(CHUNK as u64)).unwrap_or(0), OnceLock::new);
        Region { address, size, code, bytes: Bytes::InFile { file: file.clone(), offset, chunks } }
    }

    /// Returns `true` if the region contains an address.
    pub(super) fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.address) < self.size
    }

    /// Returns the bytes from a place in it on, as many or as there are; `None` if they cannot be read any
    /// more.
    pub(super) fn bytes(&self, inside: u64, most: usize) -> Option<Cow<'_, [u8]>> {
        let start = usize::try_from(inside).ok()?;
        let end = start.saturating_add(most).min(usize::try_from(self.size).ok()?);
        let Bytes::InFile { file, offset, chunks } = &self.bytes else {
            let Bytes::There(bytes) = &self.bytes else { return None };
            return bytes.get(start..end).map(Cow::Borrowed);
        };
        let chunk = |index: usize| {
            let bytes = chunks.get(index)?.get_or_init(|| {
                let first = index * CHUNK;
                let size = usize::try_from(self.size).unwrap_or(usize::MAX).saturating_sub(first).min(CHUNK);
                read_at(file, offset.saturating_add(first as u64), size).unwrap_or_default().into()
            });
            Some(&bytes[..])
        };
        if start >= end {
            return None;
        }
        let (first, last) = (start / CHUNK, (end - 1) / CHUNK);
        if first == last {
            return chunk(first)?.get(start % CHUNK..start % CHUNK + (end - start)).map(Cow::Borrowed);
        }
        let mut joined = Vec::with_capacity(end - start);
        for index in first..=last {
            let skipped = if index == first { start % CHUNK } else { 0 };
            joined.extend_from_slice(chunk(index)?.get(skipped..)?);
        }
        joined.truncate(end - start);
        (joined.len() == end - start).then_some(Cow::Owned(joined))
    }
}

/// Returns some bytes of a file.
pub(super) fn read_at(file: &File, offset: u64, size: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; size];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_a_file_are_those_at_hand() {
        // this very program
        let path = std::env::current_exe().expect("a program");
        let file = Arc::new(File::open(path).expect("the program"));
        let (offset, size) = (1000, 5 * CHUNK + 17);
        let there = read_at(&file, offset, size).expect("it is longer");
        let at_hand = Region::new(0x40_0000, there, true);
        let in_file = Region::in_file(0x40_0000, &file, offset, size as u64, true);
        assert_eq!(at_hand.size, in_file.size);
        for inside in (0..size as u64 + 20).step_by(13) {
            for most in [1, 2, 200, CHUNK, 2 * CHUNK + 1, usize::MAX] {
                let (one, other) = (at_hand.bytes(inside, most), in_file.bytes(inside, most));
                assert_eq!(one.filter(|bytes| !bytes.is_empty()), other, "{inside} {most}");
            }
        }
        assert!(in_file.contains(0x40_0000) && !in_file.contains(0x40_0000 + size as u64));
    }

    #[test]
    fn what_has_gone_from_a_file_is_not_there() {
        let path = std::env::temp_dir().join(format!("tallyline-region-{}", std::process::id()));
        std::fs::write(&path, [7; 300]).expect("writable");
        let file = Arc::new(File::open(&path).expect("written"));
        std::fs::remove_file(path).expect("own file");
        let region = Region::in_file(0, &file, 0, 3 * CHUNK as u64, true);
        assert_eq!(region.bytes(10, 2).as_deref(), Some(&[7, 7][..]));
        assert_eq!(region.bytes(290, 20), None);
        assert_eq!(region.bytes(2 * CHUNK as u64, 1), None);
    }
}
