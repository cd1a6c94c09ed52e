//! Copies of programs that a report could not open later: those of other mount namespaces or roots, whose containers
//! may be gone by then, and the vdso. They go by build-id into the folder where perf keeps and looks for them, too.
//!
//! A file is opened when its mapping is seen, and copied at the end if samples were in it.

use super::build_id::build_id_of;
use super::vdso::Vdso;
use crate::file::BuildId;
use rustc_hash::FxHashMap;
use std::fs::{self, File};
use std::io::{Error, Result, Seek};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// The most bytes that are copied of one recording.
const BYTES_LIMIT: u64 = 1 << 30;

/// The most files that are held open.
const FILES_LIMIT: usize = 1024;

/// The files that were kept, and those that were not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CachedFiles {
    /// The number of files that were copied.
    pub(super) files: u64,
    /// The total size in bytes of the files that were copied.
    pub(super) bytes: u64,
    /// The files that could not be copied, each with the reason, one line each.
    pub(super) failures: Vec<String>,
}

/// A process's view of the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MountView {
    namespace: PathBuf,
    root: (u64, u64),
}

impl MountView {
    /// Returns the view of a process; `None` if it has ended, or does not show it.
    fn of(pid: &str) -> Option<Self> {
        let root = fs::metadata(format!("/proc/{pid}/root/")).ok()?;
        let namespace = fs::read_link(format!("/proc/{pid}/ns/mnt")).ok()?;
        Some(Self { namespace, root: (root.dev(), root.ino()) })
    }
}

/// The code of a process that may have to be kept.
#[derive(Clone, Debug, Default)]
struct Process {
    /// `true` if its files differ from those of this process; none before the first look.
    is_elsewhere: Option<bool>,
    /// The mapped address ranges of the process, each with the index of its file in the cache.
    mapped: Vec<(Range<u64>, usize)>,
    vdso: Option<Range<u64>>,
}

/// A file that is held open.
#[derive(Debug)]
struct OpenedFile {
    /// Open, or why not.
    file: std::result::Result<File, &'static str>,
    path: PathBuf,
    build_id: Option<BuildId>,
    has_samples: bool,
}

/// The files that may have to be kept.
#[derive(Debug, Default)]
pub(super) struct BuildIdCache {
    own: Option<MountView>,
    processes: FxHashMap<i32, Process>,
    files: Vec<OpenedFile>,
    known: FxHashMap<(PathBuf, Option<BuildId>), Option<usize>>,
    vdso_has_samples: bool,
    /// The vDSO of 32-bit processes, from the first one of which it could be read.
    vdso32: Option<Vdso>,
    vdso32_has_samples: bool,
}

impl BuildIdCache {
    /// Creates a cache; it keeps nothing if it is not wanted.
    pub(super) fn new(is_wanted: bool) -> Self {
        Self { own: if is_wanted { MountView::of("self") } else { None }, ..Self::default() }
    }

    /// Takes a mapping of code into account.
    pub(super) fn map(&mut self, pid: i32, range: Range<u64>, path: &[u8], build_id: Option<BuildId>) {
        let Some(own) = &self.own else { return };
        if path == b"[vdso]" {
            if is_of_32_bits(&range) && self.vdso32.is_none() {
                self.vdso32 = Vdso::of_process(&pid.to_string(), &range);
            }
            self.processes.entry(pid).or_default().vdso = Some(range);
            return;
        }
        if !path.starts_with(b"/") || path.starts_with(b"//") {
            return;
        }
        let process = self.processes.entry(pid).or_default();
        process.mapped.retain(|(known, _)| known.end <= range.start || range.end <= known.start);
        let is_elsewhere = *process
            .is_elsewhere
            .get_or_insert_with(|| MountView::of(&pid.to_string()).is_some_and(|view| view != *own));
        if !is_elsewhere {
            return;
        }
        let path = PathBuf::from(String::from_utf8_lossy(path).into_owned());
        let key = (path, build_id);
        let index = match self.known.get(&key) {
            Some(known) => *known,
            None => {
                let found = self.hold(pid, &key.0, build_id);
                self.known.insert(key, found);
                found
            }
        };
        if let (Some(index), Some(process)) = (index, self.processes.get_mut(&pid)) {
            process.mapped.push((range, index));
        }
    }

    /// Opens a file of another root; none if a report finds it by its path anyway.
    fn hold(&mut self, pid: i32, path: &Path, build_id: Option<BuildId>) -> Option<usize> {
        // a name may be a pipe's, which must not be waited for
        let open = |path: &Path| {
            let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
            let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
            (file.metadata().ok()?.is_file() && build_id_of(&file) == build_id).then_some(file)
        };
        let file = match build_id {
            None => Err("it has no build-id"),
            Some(_) if open(path).is_some() => return None,
            Some(_) if self.files.len() >= FILES_LIMIT => Err("too many files"),
            Some(_) => open(Path::new(&format!("/proc/{pid}/root{}", path.display())))
                .ok_or("its process had ended, or the file is another one now"),
        };
        self.files.push(OpenedFile { file, path: path.to_owned(), build_id, has_samples: false });
        Some(self.files.len() - 1)
    }

    /// Gives a child the view of its parent, and drops that of an older process with its number.
    pub(super) fn fork(&mut self, pid: i32, parent: i32) {
        if pid == parent {
            return;
        }
        match self.processes.get(&parent).cloned() {
            Some(process) => self.processes.insert(pid, process),
            None => self.processes.remove(&pid),
        };
    }

    /// Drops the view of a process that became another program.
    pub(super) fn forget(&mut self, pid: i32) {
        self.processes.remove(&pid);
    }

    /// Takes a sample of a program into account.
    #[inline]
    pub(super) fn sample(&mut self, pid: i32, address: u64) {
        let Some(process) = self.processes.get(&pid) else { return };
        if let Some(vdso) = process.vdso.as_ref().filter(|range| range.contains(&address)) {
            let has_samples =
                if is_of_32_bits(vdso) { &mut self.vdso32_has_samples } else { &mut self.vdso_has_samples };
            *has_samples = true;
        }
        if let Some((_, index)) = process.mapped.iter().find(|(range, _)| range.contains(&address)) {
            self.files[*index].has_samples = true;
        }
    }

    /// Returns the build-id of the vDSO of 32-bit processes; `None` if there was none with samples, or it could not be
    /// read.
    pub(super) fn vdso32(&self) -> Option<BuildId> {
        self.vdso32.as_ref().filter(|_| self.vdso32_has_samples).map(Vdso::build_id)
    }

    /// Copies what has samples into perf's folder of builds.
    pub(super) fn keep(self, folder: &Path) -> CachedFiles {
        let mut kept = CachedFiles::default();
        let own = self.vdso_has_samples.then(Vdso::own).flatten();
        let other = self.vdso32.filter(|_| self.vdso32_has_samples);
        for (name, vdso) in [("[vdso]", own), ("[vdso32]", other)] {
            let Some(vdso) = vdso else { continue };
            let write = |mut to: &File| std::io::Write::write_all(&mut to, &vdso.bytes);
            if let Err(error) = store(folder, Path::new(name), &vdso.build_id, "vdso", write) {
                kept.failures.push(format!("{name}: {error}"));
            }
        }
        for held in self.files.into_iter().filter(|held| held.has_samples) {
            let len =
                held.file.as_ref().ok().and_then(|file| file.metadata().ok()).map_or(0, |found| found.len());
            let copied = match (held.file, held.build_id) {
                (Ok(_), _) if kept.bytes.saturating_add(len) > BYTES_LIMIT => {
                    Err(Error::other(format!("more than {} MB of one recording", BYTES_LIMIT >> 20)))
                }
                (Ok(file), Some(build_id)) => store(folder, &held.path, &build_id, "elf", |mut to| {
                    // its build-id was read; a file that grows meanwhile is cut
                    (&file).rewind()?;
                    std::io::copy(&mut std::io::Read::take(file, len), &mut to).map(drop)
                }),
                (Ok(_), None) => Ok(false),
                (Err(why), _) => Err(Error::other(why)),
            };
            match copied {
                Ok(true) => (kept.files, kept.bytes) = (kept.files + 1, kept.bytes + len),
                Ok(false) => {}
                Err(error) => kept.failures.push(format!("{}: {error}", held.path.display())),
            }
        }
        kept
    }
}

/// Returns `true` if a vDSO's addresses have 32 bits, as those of 32-bit processes.
fn is_of_32_bits(range: &Range<u64>) -> bool {
    range.end <= 1 << 32
}

/// Stores a file in perf's layout, `PATH/ID/NAME` with a link from `.build-id/xx/…`. Says whether it was not there.
fn store(
    folder: &Path,
    path: &Path,
    build_id: &BuildId,
    name: &str,
    write: impl FnOnce(&File) -> Result<()>,
) -> Result<bool> {
    let id = build_id.to_string();
    let Some((first, rest)) = id.split_at_checked(2) else { return Ok(false) };
    let link = folder.join(".build-id").join(first).join(rest);
    if link.join(name).exists() {
        return Ok(false);
    }
    // a path of another root leads nowhere else
    let path: PathBuf =
        path.components().filter(|component| matches!(component, Component::Normal(_))).collect();
    let place = folder.join(&path).join(&id);
    fs::create_dir_all(&place)?;
    let temporary = place.join(format!(".{name}.{}", std::process::id()));
    let _ = fs::remove_file(&temporary);
    let written = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|file| write(&file))
        .and_then(|()| fs::rename(&temporary, place.join(name)));
    if let Err(error) = written {
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    if let Some(parent) = link.parent() {
        fs::create_dir_all(parent)?;
    }
    match std::os::unix::fs::symlink(Path::new("../..").join(&path).join(&id), &link) {
        // of another path with the same build
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && !link.exists() => {
            fs::remove_file(&link)?;
            std::os::unix::fs::symlink(Path::new("../..").join(&path).join(&id), &link)?;
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            fs::copy(place.join(name), link.join(name))?;
        }
        other => other?,
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_stored_by_build_id_as_perf_looks_for_them() {
        let folder = std::env::temp_dir().join(format!("tallyline-keep-{}", std::process::id()));
        let id = BuildId::new(&[0xab; 20]).expect("not empty");
        let write = |mut file: &File| std::io::Write::write_all(&mut file, b"ELF");
        let stored = store(&folder, Path::new("/opt/../bin/server"), &id, "elf", write);
        assert!(stored.expect("writable"), "it was not there");
        let found = folder.join(".build-id/ab").join("ab".repeat(19)).join("elf");
        assert_eq!(fs::read(&found).expect("through the link"), b"ELF");
        assert!(folder.join("opt/bin/server").join("ab".repeat(20)).join("elf").exists());
        let again = store(&folder, Path::new("/other"), &id, "elf", |_| Err(Error::other("not called")));
        assert!(!again.expect("it is there"));
        let failed =
            store(&folder, Path::new("/full"), &BuildId::new(&[1; 20]).expect("an id"), "elf", |_| {
                Err(Error::from_raw_os_error(libc::ENOSPC))
            });
        assert!(failed.is_err());
        let left = fs::read_dir(folder.join("full").join("01".repeat(20))).expect("a folder").count();
        fs::remove_dir_all(&folder).expect("own folder");
        assert_eq!(left, 0, "what was begun is gone");
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let mut keeper = BuildIdCache::default();
        let process = Process { is_elsewhere: Some(true), mapped: vec![(0..0x1000, 0)], vdso: None };
        keeper.processes.insert(7, process);
        keeper.fork(8, 7);
        assert!(keeper.processes.contains_key(&8));
        // a thread is no process
        keeper.fork(8, 8);
        assert!(keeper.processes.contains_key(&8));
        keeper.fork(8, 9);
        assert!(!keeper.processes.contains_key(&8));
    }

    #[test]
    fn only_files_with_samples_are_kept() {
        let folder = std::env::temp_dir().join(format!("tallyline-hits-{}", std::process::id()));
        let program = std::env::current_exe().expect("this program");
        let held = |byte| OpenedFile {
            file: if byte < 4 { Ok(File::open(&program).expect("readable")) } else { Err("it had ended") },
            path: format!("/bin/{byte}").into(),
            build_id: BuildId::new(&[byte; 20]),
            has_samples: false,
        };
        // as it is where its build-id was read
        let held = |byte| {
            let held = held(byte);
            held.file.as_ref().map(|mut file| file.seek(std::io::SeekFrom::End(-1)).expect("a file")).ok();
            held
        };
        let mut keeper = BuildIdCache { files: (1..6).map(held).collect(), ..BuildIdCache::default() };
        let mapped = vec![(0x1000..0x2000, 0), (0x2000..0x3000, 1), (0x3000..0x4000, 2), (0x4000..0x5000, 3)];
        keeper.processes.insert(7, Process { is_elsewhere: Some(true), mapped, vdso: None });
        keeper.fork(8, 7);
        keeper.forget(7);
        keeper.sample(7, 0x3000);
        keeper.sample(8, 0x1fff);
        keeper.sample(8, 0x2000);
        keeper.sample(8, 0x4000);
        let kept = keeper.keep(&folder);
        assert_eq!((kept.files, kept.failures.as_slice()), (2, &["/bin/4: it had ended".to_owned()][..]));
        let there =
            |byte: &str| folder.join(".build-id").join(byte).join(byte.repeat(19)).join("elf").exists();
        let found = [there("01"), there("02"), there("03")];
        let copy = fs::metadata(folder.join(".build-id/01").join("01".repeat(19)).join("elf"));
        assert_eq!(copy.expect("kept").len(), fs::metadata(&program).expect("this program").len());
        fs::remove_dir_all(&folder).expect("own folder");
        assert_eq!(found, [true, true, false]);
    }
}
