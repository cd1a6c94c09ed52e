//! The build-ids that linkers write into files, by the file's path.

use super::features::{Feature, Features};
use crate::Result;
use crate::abi::misc;
use crate::bytes::{ByteOrder, Cursor, until_nul};
use std::collections::HashMap;
use std::fmt;

/// A GNU build-id of up to 20 bytes: the identifier that a linker gives a program or library.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct BuildId {
    bytes: [u8; 20],
    len: u8,
}

impl BuildId {
    /// Creates a build-id of the first 20 bytes of `id`, which is all that the kernel and perf keep; `None` if `id` is
    /// empty or all of them are 0.
    pub fn new(id: &[u8]) -> Option<Self> {
        let len = id.len().min(20);
        let mut bytes = [0; 20];
        bytes[..len].copy_from_slice(&id[..len]);
        // all zeroes: the kernel found none
        bytes.iter().any(|byte| *byte != 0).then_some(Self { bytes, len: len as u8 })
    }

    /// Returns the build-id's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

/// The table of build-ids in a perf.data file, by the path of the program or library; `[kernel.kallsyms]` and `[vdso]`
/// are paths in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct BuildIds {
    by_path: HashMap<Vec<u8>, BuildId>,
}

impl BuildIds {
    /// Returns the build-id that the perf.data file records for the program or library at a path; `None` if there is
    /// none.
    pub(crate) fn get(&self, path: &[u8]) -> Option<BuildId> {
        self.by_path.get(path).copied()
    }

    /// Returns the path and build-id of each program or library in the perf.data file's table, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], BuildId)> {
        self.by_path.iter().map(|(path, id)| (path.as_slice(), *id))
    }

    /// Adds the body of a `HEADER_BUILD_ID` record, or of an entry of the file's table, which is the same.
    pub(super) fn add_record(&mut self, header_misc: u16, mut body: Cursor<'_>) -> Result<()> {
        body.u32("process of a build-id")?;
        self.add(header_misc, body)
    }

    fn add(&mut self, header_misc: u16, mut body: Cursor<'_>) -> Result<()> {
        let id = body.take(24, "build-id")?;
        let len = if header_misc & misc::BUILD_ID_SIZE != 0 { usize::from(id[20]).min(20) } else { 20 };
        let path = until_nul(body.rest());
        if let Some(id) = BuildId::new(&id[..len]) {
            self.by_path.insert(path.to_vec(), id);
        }
        Ok(())
    }

    /// Adds the file's table. Damage there is a warning: the profile is useful without.
    pub(super) fn add_table(&mut self, features: &Features, order: ByteOrder, warnings: &mut Vec<String>) {
        for (bytes, offset) in features.sections(Feature::BUILD_ID) {
            // the very first tables had no process in their entries, which shows in the kernel's name
            let has_process = !bytes.get(36..).is_some_and(|name| name.starts_with(b"nel.kallsyms]"));
            let mut at = Cursor::new(bytes, order, offset);
            while !at.is_empty() {
                if let Err(error) = self.add_entry(&mut at, has_process) {
                    warnings.push(error.to_string());
                    break;
                }
            }
        }
    }

    fn add_entry(&mut self, at: &mut Cursor<'_>, has_process: bool) -> Result<()> {
        let place = *at;
        at.u32("header of a build-id")?;
        let misc = at.u16("header of a build-id")?;
        let size = at.u16("header of a build-id")?;
        let Some(len) = u64::from(size).checked_sub(8) else {
            return Err(place.error(format!("an entry of {size} bytes in the table of build-ids")));
        };
        let offset = at.offset();
        let body = Cursor::new(at.take(len, "a build-id")?, at.order(), offset);
        if has_process { self.add_record(misc, body) } else { self.add(misc, body) }
    }
}
