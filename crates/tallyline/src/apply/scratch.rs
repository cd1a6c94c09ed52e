//! A copy of a project's tree in which edited files stand in the place of the others.

use super::project::FileEdit;
use crate::interrupt;
use anyhow::{Context, Result, bail};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most files that a copy has.
const FILES: usize = 500_000;

/// A temporary copy of a project (its folders, with links to its files), in which edits are compiled; removed when
/// dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// The folder that holds the copy.
    folder: PathBuf,
    root: PathBuf,
}

impl Scratch {
    /// Copies the project whose root folder is `root` into a new temporary folder: real folders, symbolic links to the
    /// project's files.
    pub(crate) fn new(root: &Path) -> Result<Scratch> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("tallyline-tree-{}-{number}", std::process::id()));
        // before there is something to leave behind
        interrupt::listen()?;
        // it must not be there already: it could be another's
        let made = std::fs::DirBuilder::new().mode(0o700).create(&folder);
        made.with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let scratch = Scratch { folder, root: root.to_path_buf() };
        scratch.fill()?;
        Ok(scratch)
    }

    fn fill(&self) -> Result<()> {
        let mut count = 0;
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            let to = self.path(&folder);
            std::fs::create_dir_all(&to).with_context(|| format!("cannot make {}", to.display()))?;
            let entries =
                std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
            for entry in entries.flatten() {
                let kind =
                    entry.file_type().with_context(|| format!("cannot read {}", entry.path().display()))?;
                let path = entry.path();
                count += 1;
                if count > FILES {
                    bail!(
                        "{} has more than {FILES} files: name a smaller folder with --root",
                        self.root.display()
                    );
                }
                if kind.is_dir() {
                    let is_cargo_target = entry.file_name() == "target" && path.join("CACHEDIR.TAG").exists();
                    if entry.file_name() != ".git" && !is_cargo_target {
                        folders.push(path);
                    }
                    continue;
                }
                let to = self.path(&path);
                // a link within the tree leads to the copy, one that leads outside stays what it is
                let target = match std::fs::read_link(&path) {
                    Ok(target) if target.is_relative() => target,
                    Ok(target) if target.starts_with(&self.root) => self.path(&target),
                    Ok(target) => target,
                    Err(_) => path,
                };
                symlink(&target, &to).with_context(|| format!("cannot link {}", to.display()))?;
            }
        }
        Ok(())
    }

    /// Returns the path in the temporary copy of a project that corresponds to a path in the project itself; a path
    /// outside of the project is returned unchanged.
    pub(crate) fn path(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.root) {
            Ok(rest) => self.folder.join("tree").join(rest),
            Err(_) => path.to_path_buf(),
        }
    }

    /// Returns the temporary folder that holds the copy of a project and, beside the copy, files that compilers write.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns an argument of a compiler call with the project's root folder replaced by that of the project's
    /// temporary copy.
    pub(crate) fn word(&self, word: &str) -> String {
        let (root, copy) =
            (self.root.to_string_lossy(), self.path(&self.root).to_string_lossy().into_owned());
        let mut out = String::with_capacity(word.len());
        let mut rest = word;
        while let Some(at) = rest.find(root.as_ref()) {
            let behind = &rest[at + root.len()..];
            out.push_str(&rest[..at]);
            let is_whole =
                behind.chars().next().is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.')));
            out.push_str(if is_whole { &copy } else { root.as_ref() });
            rest = behind;
        }
        out + rest
    }

    /// Puts edited source files into the temporary copy of a project: replaces the links to the project's files by the
    /// new texts.
    pub(crate) fn put(&self, edits: &[FileEdit]) -> Result<()> {
        edits.iter().try_for_each(|edit| self.put_text(&edit.path, &edit.new))
    }

    /// Replaces the link to one of the project's files, in the project's temporary copy, by a file with this text.
    pub(crate) fn put_text(&self, path: &Path, text: &[u8]) -> Result<()> {
        let to = self.path(path);
        if to == path {
            bail!("{} is outside of {}", path.display(), self.root.display());
        }
        // never through the link
        let _ = std::fs::remove_file(&to);
        std::fs::write(&to, text).with_context(|| format!("cannot write {}", to.display()))
    }

    /// Reverts one file in the temporary copy of a project: replaces its edited text by a link to the project's own
    /// file.
    pub(crate) fn restore(&self, path: &Path) -> Result<()> {
        let to = self.path(path);
        if to == path {
            return Ok(());
        }
        let _ = std::fs::remove_file(&to);
        symlink(path, &to).with_context(|| format!("cannot link {}", to.display()))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
