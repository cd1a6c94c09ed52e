//! Edits in place that can be undone: a journal with the old bytes is on the disk before the first file changes.
//!
//! The journal is one file, `.tallyline-undo` in the project's root: a line of JSON for each edited file, with its path
//! in the project, the checksum of its new text, its permissions, and its old bytes as text or, where they are no UTF-8,
//! in hexadecimal digits. It is written beside, flushed and renamed; so is each file. After a crash the undo finds each
//! file either as it was or as it was edited.

use super::project::FileEdit;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

const JOURNAL: &str = ".tallyline-undo";

/// Writes edited files into a project, with a journal from which [`undo`] can restore them. Writes nothing if a
/// file has changed since it was read, or if the journal still has earlier edits.
pub(crate) fn apply(root: &Path, edits: &[FileEdit]) -> Result<()> {
    let journal = root.join(JOURNAL);
    if journal.exists() {
        bail!(
            "{} is there: earlier edits are undone with --undo, or accepted by removing it",
            journal.display()
        );
    }
    let mut lines = Vec::new();
    for edit in edits {
        let now =
            std::fs::read(&edit.path).with_context(|| format!("cannot read {}", edit.path.display()))?;
        if *now != *edit.old {
            bail!("{} changed while it was edited: nothing is written", edit.path.display());
        }
        let path = edit
            .path
            .strip_prefix(root)
            .with_context(|| format!("{} is outside of the project", edit.path.display()))?;
        let path = path.to_str().with_context(|| format!("{} is no UTF-8", edit.path.display()))?;
        let mode = mode(&edit.path)?;
        let mut line = json!({ "path": path, "new": crc32fast::hash(&edit.new), "length": edit.new.len(), "mode": mode });
        match std::str::from_utf8(&edit.old) {
            Ok(text) => line["text"] = text.into(),
            Err(_) => {
                line["hex"] = edit.old.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
            }
        }
        serde_json::to_writer(&mut lines, &line)?;
        lines.push(b'\n');
    }
    replace(&journal, &lines, 0o600)?;
    for edit in edits {
        replace(&edit.path, &edit.new, mode(&edit.path)?)
            .context("not all files are edited: --undo puts back those that are")?;
    }
    Ok(())
}

/// Restores the original contents of all files in a project's journal of edits, removes the journal, and returns the
/// files' paths. Fails, with no file restored, if one of them was changed after its edit.
pub(crate) fn undo(root: &Path) -> Result<Vec<PathBuf>> {
    let journal = root.join(JOURNAL);
    let text = std::fs::read_to_string(&journal)
        .with_context(|| format!("cannot read {}: nothing to undo", journal.display()))?;
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let entry = Entry::parse(line, root);
        entries.push(entry.with_context(|| format!("{}: line {}: damaged", journal.display(), index + 1))?);
    }
    for entry in &entries {
        let now =
            std::fs::read(&entry.path).with_context(|| format!("cannot read {}", entry.path.display()))?;
        let is_edited = now.len() as u64 == entry.length && crc32fast::hash(&now) == entry.new;
        if !is_edited && now != entry.old {
            bail!("{} was changed since it was edited: nothing is undone", entry.path.display());
        }
    }
    for entry in &entries {
        replace(&entry.path, &entry.old, entry.mode)?;
    }
    std::fs::remove_file(&journal).with_context(|| format!("cannot remove {}", journal.display()))?;
    Ok(entries.into_iter().map(|entry| entry.path).collect())
}

/// Returns `true` if a project has a journal of edits that can be undone.
pub(crate) fn is_edited(root: &Path) -> bool {
    root.join(JOURNAL).is_file()
}

struct Entry {
    path: PathBuf,
    new: u32,
    length: u64,
    mode: u32,
    old: Vec<u8>,
}

impl Entry {
    fn parse(line: &str, root: &Path) -> Option<Entry> {
        let value: Value = serde_json::from_str(line).ok()?;
        let number = |key: &str| value.get(key)?.as_u64();
        let path = Path::new(value.get("path")?.as_str()?);
        // a journal names files of its own project alone
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            return None;
        }
        let old = match (value.get("text"), value.get("hex")) {
            (Some(text), None) => text.as_str()?.as_bytes().to_vec(),
            (None, Some(hex)) => {
                let digits = hex.as_str()?.as_bytes();
                let pairs =
                    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
                pairs.collect::<Option<Vec<u8>>>()?
            }
            _ => return None,
        };
        Some(Entry {
            path: root.join(path),
            new: u32::try_from(number("new")?).ok()?,
            length: number("length")?,
            mode: u32::try_from(number("mode")?).ok()?,
            old,
        })
    }
}

fn mode(path: &Path) -> Result<u32> {
    let about = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(about.permissions().mode() & 0o7777)
}

/// Replaces a file at once: the new text is on the disk before it has the name.
fn replace(path: &Path, text: &[u8], mode: u32) -> Result<()> {
    let name = path.file_name().with_context(|| format!("{} is no file", path.display()))?.to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.tallyline-{}", std::process::id()));
    let write = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
        file.write_all(text)?;
        // what the mask of the process took away
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        file.sync_all()?;
        std::fs::rename(&beside, path)?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    write()
        .inspect_err(|_| drop(std::fs::remove_file(&beside)))
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(name: &str) -> (PathBuf, Vec<FileEdit>) {
        let root = std::env::temp_dir().join(format!("tallyline-undo-{name}-{}", std::process::id()));
        std::fs::create_dir_all(root.join("src")).expect("a folder");
        let texts: [(&str, &[u8], u32); 2] =
            [("a.h", b"struct a;\r\n", 0o640), ("src/b.h", b"\xff\x00b", 0o755)];
        let edits = texts.map(|(path, text, mode)| {
            let path = root.join(path);
            std::fs::write(&path, text).expect("written");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
            FileEdit { path, old: text.into(), new: [text, b"new"].concat() }
        });
        (root, edits.to_vec())
    }

    #[test]
    fn every_byte_and_permission_is_restored() {
        let (root, edits) = project("bytes");
        apply(&root, &edits).expect("applied");
        assert!(edits.iter().all(|edit| std::fs::read(&edit.path).expect("read") == edit.new));
        assert!(apply(&root, &edits).is_err(), "not twice");
        assert_eq!(undo(&root).expect("undone").len(), 2);
        assert!(edits.iter().all(|edit| *std::fs::read(&edit.path).expect("read") == *edit.old));
        assert_eq!(
            (mode(&edits[0].path).expect("mode"), mode(&edits[1].path).expect("mode")),
            (0o640, 0o755)
        );
        assert!(undo(&root).is_err(), "nothing left");
        std::fs::remove_dir_all(root).expect("removed");
    }

    #[test]
    fn a_crash_between_two_files_can_be_undone_and_later_changes_are_kept() {
        let (root, edits) = project("crash");
        apply(&root, &edits).expect("applied");
        // as if the second had not been written
        std::fs::write(&edits[1].path, &*edits[1].old).expect("written");
        std::fs::write(&edits[0].path, "by hand").expect("written");
        assert!(undo(&root).expect_err("changed").to_string().contains("a.h was changed"));
        std::fs::write(&edits[0].path, &edits[0].new).expect("written");
        undo(&root).expect("undone");
        assert!(edits.iter().all(|edit| *std::fs::read(&edit.path).expect("read") == *edit.old));
        std::fs::remove_dir_all(root).expect("removed");
    }

    #[test]
    fn a_journal_names_no_files_outside_of_its_project() {
        assert!(
            Entry::parse(r#"{"path":"../x","new":1,"length":1,"mode":420,"text":""}"#, Path::new("/p"))
                .is_none()
        );
        assert!(
            Entry::parse(r#"{"path":"x","new":1,"length":1,"mode":420,"hex":"0g"}"#, Path::new("/p"))
                .is_none()
        );
        assert!(
            Entry::parse(r#"{"path":"x","new":1,"length":1,"mode":420,"hex":"0a"}"#, Path::new("/p"))
                .is_some()
        );
    }
}
