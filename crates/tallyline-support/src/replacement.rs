//! A file that takes another's place when it is complete.

use std::fs::{self, File, Metadata};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Symbolic links that are followed before it is an error, as the kernel has it.
const LINKS: usize = 40;

/// A writer that replaces a file atomically: it writes to a temporary file in the same folder, which
/// [`finish`](Replacement::finish) renames to the destination. Until then, and after a failure, the old file stays.
///
/// Pipes, devices, and files in folders in which no temporary file can be created, are written to directly.
pub struct Replacement {
    path: PathBuf,
    file: File,
    /// The name beside, until the file has its own.
    part: Option<PathBuf>,
    /// `true` if output is appended to the present content: to open files of this process.
    appends: bool,
}

impl Replacement {
    /// Checks that the file at `path` can be written, without changing it. Returns an open writer for destinations that
    /// are written directly, such as pipes, whose readers take a close for the end; `None` for all others.
    pub fn check(path: &Path) -> io::Result<Option<Replacement>> {
        let made = Replacement::create(path)?;
        Ok(if made.part.is_none() { Some(made) } else { None })
    }

    /// Creates a writer that will replace the file at `path`: a temporary file in the same folder, with the owner and
    /// mode of the old file. A destination that cannot be replaced, such as a pipe, is opened itself.
    pub fn create(path: &Path) -> io::Result<Replacement> {
        let target = Target::of(path)?;
        let path = target.path;
        if target.is_special {
            let file = File::options().append(true).open(&path)?;
            return Ok(Replacement { path, file, part: None, appends: true });
        }
        let old = fs::metadata(&path).ok();
        // what may not be written to is not replaced either
        let in_place = old.as_ref().map(|_| File::options().write(true).open(&path)).transpose()?;
        let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_string_lossy();
        // a name has at most 255 bytes
        let short: String = name.chars().take(50).collect();
        let part = path.with_file_name(format!(".{short}.{}.part", std::process::id()));
        let _ = fs::remove_file(&part);
        let file = match (File::create_new(&part), in_place) {
            (Ok(file), _) => file,
            // the folder may not be written to, the file may
            (Err(_), Some(file)) => return Ok(Replacement { path, file, part: None, appends: false }),
            (Err(error), None) => return Err(error),
        };
        if let Some(old) = old {
            keep_access(&file, &old);
        }
        Ok(Replacement { path, file, part: Some(part), appends: false })
    }

    /// Returns the absolute path of the file to be replaced, with symbolic links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Completes the replacement of a file: syncs the temporary file to disk and renames it to its destination. A file
    /// that was overwritten in place is cut off at the end of what was written.
    pub fn finish(mut self) -> io::Result<()> {
        if self.part.is_none() && self.file.metadata()?.is_file() && !self.appends {
            let end = self.file.stream_position()?;
            self.file.set_len(end)?;
        }
        if let Some(part) = &self.part {
            // some file systems find out here that there is no room
            self.file.sync_all()?;
            fs::rename(part, &self.path)?;
            self.part = None;
        }
        Ok(())
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Replacement {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // there is nobody to complain to
            let _ = fs::remove_file(part);
        }
    }
}

/// The file that a path means, behind symbolic links, also where it is not there yet.
struct Target {
    path: PathBuf,
    /// Nothing can take its place: a pipe, a device, a folder, an open file of this process.
    is_special: bool,
}

impl Target {
    fn of(path: &Path) -> io::Result<Target> {
        let mut path = std::path::absolute(path)?;
        for _ in 0..LINKS {
            // links to open files say what they are, and not where
            if path.starts_with("/proc") || path.starts_with("/dev/fd") {
                return Ok(Target { path, is_special: true });
            }
            match fs::read_link(&path) {
                Ok(to) => path = path.parent().map_or_else(|| to.clone(), |folder| folder.join(&to)),
                Err(_) => {
                    let is_special = fs::metadata(&path).is_ok_and(|file| !file.is_file());
                    return Ok(Target { path, is_special });
                }
            }
        }
        Err(io::Error::other("too many levels of symbolic links"))
    }
}

/// Gives a new file the owner and the mode of the old one, as far as this user may.
fn keep_access(file: &File, old: &Metadata) {
    let Ok(new) = file.metadata() else { return };
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        let _ = std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid()));
    }
    // behind the owner, whose change takes bits away
    let _ = file.set_permissions(PermissionsExt::from_mode(old.permissions().mode() & 0o7777));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tallyline-replace-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("folder");
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn replace(path: &Path, text: &str) -> io::Result<()> {
        let mut file = Replacement::create(path)?;
        file.write_all(text.as_bytes())?;
        file.finish()
    }

    #[test]
    fn what_was_there_stays_until_the_new_file_is_complete() {
        let folder = folder("stays");
        let path = folder.join("result");
        fs::write(&path, "old").expect("written");
        let mut file = Replacement::create(&path).expect("created");
        file.write_all(b"half").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("there"), "old");
        drop(file);
        assert_eq!(
            (fs::read_to_string(&path).expect("there"), names(&folder)),
            ("old".into(), vec!["result".into()])
        );
        replace(&path, "new").expect("replaced");
        assert_eq!(
            (fs::read_to_string(&path).expect("there"), names(&folder)),
            ("new".into(), vec!["result".into()])
        );
        assert!(Replacement::check(&folder.join("other")).expect("may be written").is_none());
        assert_eq!(names(&folder), ["result"], "asking leaves nothing behind");
        fs::remove_dir_all(&folder).expect("clean");
    }

    #[test]
    fn the_mode_is_kept_and_a_new_file_has_the_usual_one() {
        let folder = folder("mode");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o7777;
        let (old, new, usual) = (folder.join("old"), folder.join("new"), folder.join("usual"));
        fs::write(&old, "old").expect("written");
        fs::write(&usual, "").expect("written");
        fs::set_permissions(&old, PermissionsExt::from_mode(0o640)).expect("set");
        replace(&old, "x").expect("replaced");
        replace(&new, "x").expect("written");
        assert_eq!((mode(&old), mode(&new)), (0o640, mode(&usual)));
        fs::remove_dir_all(&folder).expect("clean");
    }

    #[test]
    fn links_stay_links_and_lead_to_the_new_file() {
        let folder = folder("links");
        let (link, file) = (folder.join("link"), folder.join("file"));
        symlink("file", &link).expect("linked");
        // it leads nowhere yet
        replace(&link, "one").expect("written");
        replace(&link, "two").expect("written");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read_to_string(&file).expect("there"), "two");
        let ring = folder.join("ring");
        symlink("ring", &ring).expect("linked");
        assert!(Replacement::create(&ring).is_err());
        fs::remove_dir_all(&folder).expect("clean");
    }

    #[test]
    fn devices_are_written_to_and_folders_refuse() {
        replace(Path::new("/dev/null"), "x").expect("written");
        assert!(!fs::metadata("/dev/null").expect("there").is_file());
        let full = replace(Path::new("/dev/full"), "x").expect_err("no room");
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        let folder = folder("devices");
        assert!(Replacement::check(&folder).is_err());
        assert!(Replacement::check(&folder.join("none/file")).is_err());
        let long = "n".repeat(250);
        replace(&folder.join(&long), "x").expect("written");
        assert_eq!(names(&folder), [long]);
        fs::remove_dir_all(&folder).expect("clean");
    }
}
