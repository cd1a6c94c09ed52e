//! Files that are kept between runs: an index, and blobs behind it that are read one by one.
//!
//! ```text
//! magic, 16 bytes · length of the index, checksum of the index, 4 bytes each
//! index
//! blobs
//! ```
//! The index says where blobs are, from its end on. What is damaged, cut or somebody else's is not there.

use std::fs::File;
use std::os::unix::fs::FileExt;
use tallyline_debuginfo::model::{Packer, Unpacker};

/// Bytes before the index.
const HEADER: u64 = 24;

/// The longest file that is written or read; types of a whole kernel take less.
const FILE_LIMIT: u64 = 1 << 30;

/// Persistent storage, implemented by the caller, for one cache file that type inference keeps of one program: its type
/// tables, or its decoded functions.
pub trait Store: Send + Sync {
    /// Opens the file that was stored last; `None` if there is none.
    fn open(&self) -> Option<File>;

    /// Replaces the stored file. A failure only means that there is no cache.
    fn keep(&self, bytes: &[u8]);

    /// Returns the key of the stored file: the build-id of the program and the build of this tool.
    fn stamp(&self) -> &[u8];
}

/// The position, size and checksum of one record (blob) in a cache file of type inference, after the file's index; a
/// record is an encoded type table or decoded function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blob {
    start: u64,
    size: u64,
    checksum: u32,
}

impl Blob {
    /// Serialises the record's position, size and checksum for the cache file's index.
    pub(crate) fn pack(self, out: &mut Packer) {
        out.number(self.start);
        out.number(self.size);
        out.number(self.checksum.into());
    }

    /// Reads a record's position, size and checksum from the cache file's index; `None` if it does not lie within
    /// `length` bytes.
    pub(crate) fn unpack(from: &mut Unpacker<'_>, length: u64) -> Option<Blob> {
        let blob = Blob { start: from.number()?, size: from.number()?, checksum: from.small()? };
        (blob.start.checked_add(blob.size)? <= length).then_some(blob)
    }
}

/// An open cache file of type inference whose index has been read and whose records (encoded type tables or decoded
/// functions) are read on demand.
#[derive(Debug)]
pub(crate) struct BlobFile {
    file: File,
    start: u64,
    length: u64,
}

impl BlobFile {
    /// Opens a cache file of type inference with this magic number and returns it with the bytes of its index; `None`
    /// if it is damaged or of another kind.
    pub(crate) fn open(file: File, magic: &[u8; 16]) -> Option<(BlobFile, Vec<u8>)> {
        let length = file.metadata().ok().filter(|data| data.is_file())?.len();
        let mut header = [0; HEADER as usize];
        file.read_exact_at(&mut header, 0).ok()?;
        let (own, rest) = header.split_first_chunk::<16>()?;
        let (size, checksum) = rest.split_first_chunk::<4>()?;
        let size = u64::from(u32::from_le_bytes(*size));
        let start = HEADER + size;
        if own != magic || length > FILE_LIMIT || start > length {
            return None;
        }
        let mut index = vec![0; usize::try_from(size).ok()?];
        file.read_exact_at(&mut index, HEADER).ok()?;
        let is_whole = crc32fast::hash(&index).to_le_bytes() == checksum;
        is_whole.then_some((BlobFile { file, start, length: length - start }, index))
    }

    /// Returns the number of bytes that the cache file's records (type tables or decoded functions) occupy, after the
    /// index.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Reads one record (a type table or decoded function) from the cache file; `None` if its checksum does not match.
    pub(crate) fn read(&self, blob: Blob) -> Option<Vec<u8>> {
        // it lies in the file, so there is no memory for what is only claimed to be there
        if blob.start.checked_add(blob.size)? > self.length {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(blob.size).ok()?];
        self.file.read_exact_at(&mut bytes, self.start.checked_add(blob.start)?).ok()?;
        (crc32fast::hash(&bytes) == blob.checksum).then_some(bytes)
    }
}

/// Builder of a cache file of type inference: collects its records (encoded type tables or decoded functions), then
/// puts the header and the index before them.
#[derive(Default)]
pub(crate) struct BlobWriter {
    bytes: Vec<u8>,
}

impl BlobWriter {
    /// Appends a record (a type table or decoded function) to the cache file being built and returns its position, size
    /// and checksum, for the index.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Blob {
        let start = self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        Blob { start, size: bytes.len() as u64, checksum: crc32fast::hash(bytes) }
    }

    /// Returns the complete cache file: magic number, index and records; `None` if it would be larger than 1 GiB.
    pub(crate) fn file(self, magic: &[u8; 16], index: &[u8]) -> Option<Vec<u8>> {
        let size = u32::try_from(index.len()).ok()?;
        let checksum = crc32fast::hash(index);
        let head = [&magic[..], &size.to_le_bytes(), &checksum.to_le_bytes()];
        let file = [&head.concat()[..], index, &self.bytes].concat();
        (file.len() as u64 <= FILE_LIMIT).then_some(file)
    }
}
