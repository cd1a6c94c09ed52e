//! Decoded functions of one program, as bytes, that are kept between runs.
//!
//! ```text
//! index: stamp · functions (place and checksum of the decoded one, code ranges)
//! blobs: decoded functions
//! ```
//! The bytes of a decoded function depend on the program and on the build of this tool alone, which the stamp names.

use crate::store::{Blob, BlobFile, BlobWriter, Store};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use tallyline_debuginfo::model::{Packer, Unpacker};

const MAGIC: [u8; 16] = *b"tallyline code\n\0";

/// The code ranges of a function, by start and end.
type Ranges = Vec<(u64, u64)>;

/// The decoded functions of one program.
pub(super) struct FunctionStore {
    store: Box<dyn Store>,
    // read on the first query
    kept: OnceLock<KeptFunctions>,
    new: Mutex<BTreeMap<Ranges, Vec<u8>>>,
}

/// The functions in the file of a store.
#[derive(Debug, Default)]
struct KeptFunctions {
    // none for an empty store
    file: Option<BlobFile>,
    functions: BTreeMap<Ranges, Blob>,
}

impl fmt::Debug for FunctionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionStore").field("kept", &self.kept).finish_non_exhaustive()
    }
}

impl FunctionStore {
    pub(super) fn new(store: Box<dyn Store>) -> FunctionStore {
        FunctionStore { store, kept: OnceLock::new(), new: Mutex::default() }
    }

    /// Returns the bytes of the function with these code ranges; `None` if it is not kept.
    pub(super) fn get(&self, ranges: &[Range<u64>]) -> Option<Vec<u8>> {
        let ranges = key(ranges);
        if let Some(new) = self.new_functions().get(&ranges) {
            return Some(new.clone());
        }
        let kept = self.kept();
        kept.file.as_ref()?.read(*kept.functions.get(&ranges)?)
    }

    /// Adds the bytes of a function, in the place of what was kept of it.
    pub(super) fn add(&self, ranges: &[Range<u64>], bytes: Vec<u8>) {
        self.new_functions().insert(key(ranges), bytes);
    }

    /// Writes all functions to the store, if there are new ones.
    pub(super) fn keep(&self) {
        let new = std::mem::take(&mut *self.new_functions());
        if !new.is_empty()
            && let Some(file) = self.kept().with(self.store.stamp(), &new)
        {
            self.store.keep(&file);
        }
    }

    fn new_functions(&self) -> MutexGuard<'_, BTreeMap<Ranges, Vec<u8>>> {
        // whole entries are put in, so a thread that panicked left none half done
        self.new.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> &KeptFunctions {
        self.kept.get_or_init(|| {
            let read = || {
                let (file, index) = BlobFile::open(self.store.open()?, &MAGIC)?;
                let kept = KeptFunctions::parse(&index, self.store.stamp(), file.length())?;
                Some(KeptFunctions { file: Some(file), ..kept })
            };
            read().unwrap_or_default()
        })
    }
}

/// Parses an index, whatever its stamp.
pub(super) fn read_index(index: &[u8]) -> bool {
    let stamp = Unpacker::new(index).bytes().unwrap_or_default();
    KeptFunctions::parse(index, stamp, u64::MAX).is_some()
}

fn key(ranges: &[Range<u64>]) -> Ranges {
    ranges.iter().map(|range| (range.start, range.end)).collect()
}

impl KeptFunctions {
    /// Reads an index; its blobs lie in so many bytes.
    fn parse(index: &[u8], stamp: &[u8], length: u64) -> Option<KeptFunctions> {
        let from = &mut Unpacker::new(index);
        if from.bytes()? != stamp {
            return None;
        }
        let functions = from.table(|from| {
            let blob = Blob::unpack(from, length)?;
            let ranges = from.table(|from| {
                let (start, size) = (from.number()?, from.number()?);
                Some((start, start.checked_add(size)?))
            })?;
            Some((ranges, blob))
        })?;
        let kept = KeptFunctions { file: None, functions: functions.into_iter().collect() };
        from.is_empty().then_some(kept)
    }

    /// Returns the bytes of a file with what is kept and what is new; `None` where there would be too many.
    fn with(&self, stamp: &[u8], new: &BTreeMap<Ranges, Vec<u8>>) -> Option<Vec<u8>> {
        let mut blobs = BlobWriter::default();
        let mut functions: Vec<(&Ranges, Blob)> = Vec::with_capacity(self.functions.len() + new.len());
        for (ranges, blob) in self.functions.iter().filter(|(ranges, _)| !new.contains_key(*ranges)) {
            // one that is damaged is decoded again when it is asked for
            if let Some(bytes) = self.file.as_ref().and_then(|file| file.read(*blob)) {
                functions.push((ranges, blobs.add(&bytes)));
            }
        }
        functions.extend(new.iter().map(|(ranges, bytes)| (ranges, blobs.add(bytes))));
        let mut index = Packer::default();
        index.bytes(stamp);
        index.number(functions.len() as u64);
        for (ranges, blob) in functions {
            blob.pack(&mut index);
            index.number(ranges.len() as u64);
            for (start, end) in ranges {
                index.number(*start);
                index.number(end.saturating_sub(*start));
            }
        }
        blobs.file(&MAGIC, &index.into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Seek, Write};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A store in memory, which counts what is kept.
    #[derive(Default)]
    struct Memory {
        bytes: Mutex<Option<Vec<u8>>>,
        times: AtomicU32,
        stamp: &'static str,
    }

    impl Store for Arc<Memory> {
        fn open(&self) -> Option<File> {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let bytes = self.bytes.lock().expect("one thread").clone()?;
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("tallyline-code-{}-{number}", std::process::id()));
            let mut file =
                File::options().read(true).write(true).create_new(true).open(&path).expect("a place");
            std::fs::remove_file(&path).expect("own file");
            file.write_all(&bytes).and_then(|()| file.rewind()).expect("writable");
            Some(file)
        }

        fn keep(&self, bytes: &[u8]) {
            *self.bytes.lock().expect("one thread") = Some(bytes.to_vec());
            self.times.fetch_add(1, Ordering::Relaxed);
        }

        fn stamp(&self) -> &[u8] {
            self.stamp.as_bytes()
        }
    }

    fn store(memory: &Arc<Memory>) -> FunctionStore {
        FunctionStore::new(Box::new(Arc::clone(memory)))
    }

    const ONE: &[Range<u64>] = std::slice::from_ref(&(0x1000..0x1100));
    // the second part lies in front
    const TWO: &[Range<u64>] = &[0x1000..0x1100, 0x800..0x810];

    #[test]
    fn functions_are_kept_by_all_of_their_ranges() {
        let memory = Arc::new(Memory { stamp: "test", ..Memory::default() });
        let first = store(&memory);
        assert_eq!(first.get(ONE), None);
        first.keep();
        assert_eq!(memory.times.load(Ordering::Relaxed), 0, "nothing is new");
        first.add(ONE, vec![1]);
        assert_eq!(first.get(ONE), Some(vec![1]));
        first.keep();
        let second = store(&memory);
        assert_eq!((second.get(ONE), second.get(TWO)), (Some(vec![1]), None));
        second.add(TWO, vec![2; 300]);
        second.keep();
        let third = store(&memory);
        assert_eq!((third.get(ONE), third.get(TWO)), (Some(vec![1]), Some(vec![2; 300])));
        third.keep();
        assert_eq!(memory.times.load(Ordering::Relaxed), 2, "kept when something is new, and only then");
    }

    #[test]
    fn a_damaged_file_has_nothing_of_what_is_damaged_and_a_foreign_one_nothing() {
        let memory = Arc::new(Memory { stamp: "test", ..Memory::default() });
        let first = store(&memory);
        first.add(ONE, vec![1; 40]);
        first.add(TWO, vec![2; 40]);
        first.keep();
        let bytes = memory.bytes.lock().expect("one thread").clone().expect("kept");
        let opened = |bytes: &[u8], stamp: &'static str| {
            let memory = Memory { bytes: Mutex::new(Some(bytes.to_vec())), stamp, ..Memory::default() };
            let store = store(&Arc::new(memory));
            (store.get(ONE), store.get(TWO))
        };
        let (one, two) = (Some(vec![1; 40]), Some(vec![2; 40]));
        assert_eq!(opened(&bytes, "test"), (one.clone(), two.clone()));
        assert_eq!(opened(&bytes, "another build"), (None, None));
        for end in 0..bytes.len() {
            let (found, other) = opened(&bytes[..end], "test");
            assert!(found.is_none() || found == one, "{end}");
            assert!(other.is_none() || other == two, "{end}");
            assert!(found.is_none() || other.is_none(), "{end}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x41;
            let found = opened(&damaged, "test");
            assert!(found.0.is_none() || found.1.is_none(), "{at}");
        }
    }
}
