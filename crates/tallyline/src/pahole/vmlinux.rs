//! `--running_kernel_vmlinux`: the file that the running kernel was made as, by its build id.

use std::fs::File;
use std::path::{Path, PathBuf};

/// The notes of the running kernel, its build ID among them.
const NOTES: &str = "/sys/kernel/notes";

/// The type of a note with a build id, of the owner `GNU`.
const BUILD_ID: u32 = 3;

/// Returns the first file of the running kernel's build, in pahole's order.
pub(super) fn running() -> Option<PathBuf> {
    let build_id = build_id(&std::fs::read(NOTES).ok()?)?.to_vec();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    candidates(release.trim(), &build_id).into_iter().find(|path| is_of(path, &build_id))
}

fn candidates(release: &str, build_id: &[u8]) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = vec!["vmlinux".into(), "/boot/vmlinux".into()];
    paths.extend(
        [
            format!("/boot/vmlinux-{release}"),
            format!("/usr/lib/debug/boot/vmlinux-{release}"),
            format!("/lib/modules/{release}/build/vmlinux"),
            format!("/usr/lib/debug/lib/modules/{release}/vmlinux"),
            format!("/usr/lib/debug/boot/vmlinux-{release}.debug"),
        ]
        .map(PathBuf::from),
    );
    if let Some(home) = std::env::var_os("HOME") {
        let id: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        paths.push(Path::new(&home).join(".cache/debuginfod_client").join(id).join("debuginfo"));
    }
    paths
}

fn is_of(path: &Path, build_id: &[u8]) -> bool {
    // it could be a pipe, which would never open
    path.is_file()
        && File::open(path).is_ok_and(|file| {
            tallyline_debuginfo::build_id(&file).is_ok_and(|own| own.as_deref() == Some(build_id))
        })
}

/// Returns the build id in a sequence of ELF notes of this machine.
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    fn take<'n>(notes: &mut &'n [u8], length: usize) -> Option<&'n [u8]> {
        let (taken, rest) = notes.split_at_checked(length)?;
        *notes = rest;
        Some(taken)
    }
    let number = |notes: &mut &[u8]| Some(u32::from_ne_bytes(take(notes, 4)?.try_into().ok()?));
    loop {
        let (name, size, kind) = (number(&mut notes)?, number(&mut notes)?, number(&mut notes)?);
        let (name, size) = (usize::try_from(name).ok()?, usize::try_from(size).ok()?);
        let owner = take(&mut notes, name.checked_next_multiple_of(4)?)?;
        let padded = size.checked_next_multiple_of(4)?;
        // the last one may end without what fills its word
        let padded = padded.min(notes.len());
        let content = take(&mut notes, padded)?.get(..size)?;
        if kind == BUILD_ID && owner.starts_with(b"GNU\0") {
            return Some(content);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(owner: &[u8], kind: u32, content: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        for number in [owner.len() as u32, content.len() as u32, kind] {
            note.extend(number.to_ne_bytes());
        }
        for part in [owner, content] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn the_build_id_is_found_behind_other_notes() {
        let notes = [note(b"Linux\0", 257, &[1]), note(b"Xen\0", 3, &[9; 8]), note(b"GNU\0", 3, b"identity")]
            .concat();
        assert_eq!(build_id(&notes), Some(&b"identity"[..]));
        for length in 0..notes.len() {
            assert_eq!(build_id(&notes[..length]), None, "cut at {length}");
        }
        assert_eq!(build_id(&note(b"GNU\0", 3, &[7; 5])[..12 + 4 + 5]), Some(&[7; 5][..]));
        assert_eq!(build_id(&[0xff; 40]), None);
    }
}
