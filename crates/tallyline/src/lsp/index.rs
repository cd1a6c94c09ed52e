//! Indices of files: their types by the words of sources, kept on the disk between runs.
//!
//! A file of an index: the magic, the length of its stamp and the stamp, the number of entries, for each the hash of its
//! word, where it is and how long, in the order of the hashes, then the entries as JSON. One entry is read at a time.

use super::entry::{Entry, word};
use crate::layout::job::{Ask, Job};
use crate::layout::source;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tallyline_debuginfo::model::Types;
use tallyline_debuginfo::{Request, Wanted};

const MAGIC: &[u8; 8] = b"TLINDEX1";

/// The bytes of an entry of the directory.
const DIRECTORY_ENTRY: usize = 20;

/// The most bytes of all entries, and of all files of indices together.
const LIMIT: usize = 256 << 20;
const FOLDER_LIMIT: u64 = 512 << 20;

/// The most entries of one word: templates have thousands.
const SAME: usize = 64;

/// The entries of a file.
#[derive(Debug)]
pub(super) struct Index {
    directory: Vec<u8>,
    entries: Entries,
}

#[derive(Debug)]
enum Entries {
    /// In a file, from this offset on.
    File(File, u64),
    Memory(Vec<u8>),
}

/// Identifies a file's contents: its path, size and time, and this program's index of it.
pub(super) fn stamp(file: &Path) -> Option<String> {
    let metadata = file.metadata().ok()?;
    let time = metadata.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let path = file.canonicalize().ok()?;
    Some(format!("{} {} {} {}", env!("CARGO_PKG_VERSION"), metadata.len(), time.as_nanos(), path.display()))
}

/// Returns the request for whatever a hover may show.
fn request(wanted: Wanted) -> Request {
    Request { wanted, inner: true, exact: true, positions: true, ..Request::default() }
}

/// Reads the types of some words with everything that a proposal needs, without an index.
pub(super) fn types<'w>(file: &Path, words: impl IntoIterator<Item = &'w str>) -> Result<Types> {
    source::read(file, &request(Wanted::named(words)), None)
}

/// Returns the entries of a word among types that were read.
pub(super) fn entries(types: &Types, wanted: &str) -> Vec<Entry> {
    let found = types.listed().iter().filter_map(|id| Entry::of(types, *id));
    let mut entries: Vec<Entry> = found.filter(|entry| entry.word() == wanted).take(SAME).collect();
    entries.dedup();
    entries
}

impl Index {
    /// Opens an index that was kept, if it is of this stamp.
    pub(super) fn open(path: &Path, stamp: &str) -> Option<Index> {
        let mut file = File::open(path).ok()?;
        let length = file.metadata().ok()?.len();
        let mut head = [0; 16];
        file.read_exact(&mut head).ok()?;
        let stamp_length = u64::from_le_bytes(head[8..].try_into().ok()?);
        if &head[..8] != MAGIC || stamp_length != stamp.len() as u64 {
            return None;
        }
        let mut own = vec![0; stamp.len() + 8];
        file.read_exact(&mut own).ok()?;
        let (own, count) = own.split_at(stamp.len());
        let count = usize::try_from(u64::from_le_bytes(count.try_into().ok()?)).ok()?;
        let size = count.checked_mul(DIRECTORY_ENTRY)?;
        if own != stamp.as_bytes() || size as u64 > length {
            return None;
        }
        let mut directory = vec![0; size];
        file.read_exact(&mut directory).ok()?;
        let start = (head.len() + stamp.len() + 8 + size) as u64;
        Some(Index { directory, entries: Entries::File(file, start) })
    }

    /// Reads all types of a file.
    pub(super) fn build(file: &Path) -> Result<Index> {
        let mut found: Vec<(u64, u64, u32)> = Vec::new();
        let mut blobs = Vec::new();
        let mut add = |types: &Types| -> Result<()> {
            for id in types.listed() {
                let Some(entry) = Entry::of(types, *id) else { continue };
                let start = blobs.len();
                serde_json::to_writer(&mut blobs, &entry)?;
                found.push((hash(entry.word()), start as u64, u32::try_from(blobs.len() - start)?));
                if blobs.len() > LIMIT {
                    bail!("{}: too many types for an index", file.display());
                }
            }
            Ok(())
        };
        let job =
            Job { files: vec![file.to_path_buf()], ask: Ask::Types(Default::default()), ..Job::default() };
        let request = request(Wanted::Records);
        if source::has_parts(file, &job.formats, None) {
            let mut added = Ok(());
            source::read_parts(file, &request, &mut |types| {
                added = add(&types);
                if added.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            added?;
        } else {
            add(&source::read(file, &request, None)?)?;
        }
        found.sort_unstable();
        let mut directory = Vec::with_capacity(found.len() * DIRECTORY_ENTRY);
        for (hash, start, length) in found {
            directory.extend_from_slice(&hash.to_le_bytes());
            directory.extend_from_slice(&start.to_le_bytes());
            directory.extend_from_slice(&length.to_le_bytes());
        }
        Ok(Index { directory, entries: Entries::Memory(blobs) })
    }

    /// Keeps an index that was just built.
    pub(super) fn keep(&self, path: &Path, stamp: &str) -> Result<()> {
        let Entries::Memory(blobs) = &self.entries else { return Ok(()) };
        let folder = path.parent().context("an index has no folder")?;
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        make_room(folder, (blobs.len() + self.directory.len()) as u64);
        // another server may write the same one
        let part = path.with_extension(format!("part{}", std::process::id()));
        let write = || -> std::io::Result<()> {
            let mut out = BufWriter::new(File::create(&part)?);
            out.write_all(MAGIC)?;
            out.write_all(&(stamp.len() as u64).to_le_bytes())?;
            out.write_all(stamp.as_bytes())?;
            out.write_all(&((self.directory.len() / DIRECTORY_ENTRY) as u64).to_le_bytes())?;
            out.write_all(&self.directory)?;
            out.write_all(blobs)?;
            out.flush()?;
            fs::rename(&part, path)
        };
        write()
            .inspect_err(|_| drop(fs::remove_file(&part)))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Returns the entries of a word.
    pub(super) fn find(&self, wanted: &str) -> Vec<Entry> {
        let sought = hash(wanted);
        let count = self.directory.len() / DIRECTORY_ENTRY;
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.at(middle) {
                Some((hash, ..)) if hash < sought => low = middle + 1,
                _ => high = middle,
            }
        }
        let same = (low..count).map_while(|index| self.at(index)).take_while(|(hash, ..)| *hash == sought);
        let mut entries: Vec<Entry> = Vec::new();
        for (_, start, length) in same.take(SAME) {
            let Some(entry) = self.read(start, length) else { continue };
            if word(&entry.name) == wanted && !entries.contains(&entry) {
                entries.push(entry);
            }
        }
        entries
    }

    fn at(&self, index: usize) -> Option<(u64, u64, u32)> {
        let bytes = self.directory.get(index * DIRECTORY_ENTRY..)?;
        let hash = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
        let start = u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?);
        Some((hash, start, u32::from_le_bytes(bytes.get(16..20)?.try_into().ok()?)))
    }

    fn read(&self, start: u64, length: u32) -> Option<Entry> {
        match &self.entries {
            Entries::Memory(blobs) => {
                let start = usize::try_from(start).ok()?;
                serde_json::from_slice(blobs.get(start..start.checked_add(length as usize)?)?).ok()
            }
            Entries::File(file, base) => {
                let end = base.checked_add(start)?.checked_add(length.into())?;
                if end > file.metadata().ok()?.len() {
                    return None;
                }
                let mut bytes = vec![0; length as usize];
                file.read_exact_at(&mut bytes, base.checked_add(start)?).ok()?;
                serde_json::from_slice(&bytes).ok()
            }
        }
    }
}

/// Returns the name of a file's index in the folder of them.
pub(super) fn path_in(folder: &Path, file: &Path) -> PathBuf {
    let path = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    folder.join(format!("{:016x}.index", hash(&path.to_string_lossy())))
}

/// Removes indices, those written first, until there is room for one more.
fn make_room(folder: &Path, needed: u64) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let known = |entry: fs::DirEntry| {
        let metadata = entry.metadata().ok()?;
        Some((metadata.modified().ok()?, metadata.len(), entry.path()))
    };
    let mut files: Vec<_> = entries.flatten().filter_map(known).collect();
    files.sort();
    let mut total: u64 = files.iter().map(|(_, length, _)| length).sum();
    for (_, length, path) in files {
        if total.saturating_add(needed) <= FOLDER_LIMIT {
            break;
        }
        total -= length;
        let _ = fs::remove_file(path);
    }
}

/// FNV-1a: the same on every machine and in every version.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (PathBuf, String, PathBuf) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/layout/holes.o");
        let stamp = stamp(&file).expect("there");
        // no folder of cargo's is known to the program's own tests
        let folder = std::env::temp_dir().join(format!("tallyline-index-{}", std::process::id()));
        (file, stamp, folder)
    }

    #[test]
    fn what_is_kept_answers_as_what_was_built() {
        let (file, stamp, folder) = sample();
        let built = Index::build(&file).expect("built");
        let path = path_in(&folder, &file);
        built.keep(&path, &stamp).expect("written");
        let kept = Index::open(&path, &stamp).expect("kept");
        let entries = built.find("aligned_member");
        assert_eq!(entries.len(), 1);
        assert_eq!(kept.find("aligned_member"), entries);
        let types = types(&file, ["aligned_member"]).expect("read");
        assert_eq!(super::entries(&types, "aligned_member"), entries);
        assert!(kept.find("none").is_empty());
        assert!(Index::open(&path, "another").is_none());
        // damaged ones answer nothing, or less
        let whole = fs::read(&path).expect("there");
        for end in (0..whole.len()).step_by(97) {
            fs::write(&path, &whole[..end]).expect("written");
            if let Some(index) = Index::open(&path, &stamp) {
                index.find("aligned_member");
            }
        }
        fs::remove_dir_all(folder).expect("removed");
    }
}
