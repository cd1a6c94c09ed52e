//! The build-ids of files and of the kernel's notes.

use crate::file::BuildId;
use object::Object;
use std::fs::File;
use std::path::Path;

/// A note's type, `NT_GNU_BUILD_ID`.
const NOTE_BUILD_ID: u32 = 3;

/// Reads the build-id of the ELF file at a path; `None` if it cannot be read or has none.
pub fn build_id_of_file(path: &Path) -> Option<BuildId> {
    let file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|found| found.is_file()))?;
    build_id_of(&file)
}

/// Returns the build-id in an open file.
pub(super) fn build_id_of(file: &File) -> Option<BuildId> {
    let cache = object::ReadCache::new(file);
    let object = object::File::parse(&cache).ok()?;
    BuildId::new(object.build_id().ok()??)
}

/// Notes as the kernel shows them: lengths of name and content, type, both padded to 4 bytes.
pub(super) fn build_id_of_notes(mut notes: &[u8]) -> Option<BuildId> {
    loop {
        let (header, rest) = notes.split_at_checked(12)?;
        let word = |index: usize| header[index..].first_chunk().copied().map(u32::from_ne_bytes);
        let (name_len, content_len, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let (name, rest) = rest.split_at_checked(name_len.checked_next_multiple_of(4)?)?;
        let content = rest.get(..content_len)?;
        if kind == NOTE_BUILD_ID && name.starts_with(b"GNU\0") {
            return BuildId::new(content);
        }
        notes = rest.get(content_len.checked_next_multiple_of(4)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_is_found_among_notes() {
        let note = |kind: u32, name: &[u8], content: &[u8]| {
            let mut bytes = Vec::new();
            bytes.extend((name.len() as u32).to_ne_bytes());
            bytes.extend((content.len() as u32).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(name);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes.extend(content);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let notes = [note(6, b"Xen\0", b"odd"), note(3, b"GNU\0", &[0xcd; 20])].concat();
        assert_eq!(build_id_of_notes(&notes), BuildId::new(&[0xcd; 20]));
        assert_eq!(build_id_of_notes(&notes[..20]), None);
        assert_eq!(build_id_of_notes(&note(u32::MAX, &[], &[])), None);
    }
}
