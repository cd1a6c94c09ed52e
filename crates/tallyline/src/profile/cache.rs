//! Tables of types and decoded functions that reports keep between runs, a file of each for each build of a program.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;
use tallyline_inference::cache::{EXTENSIONS, Store, files_of_build};

/// The environment's word: `off`, or the folder to use.
const VARIABLE: &str = "TALLYLINE_CACHE";

/// The most bytes that all files may take together; those that were used last stay.
const LIMIT: u64 = 512 << 20;

/// The folder that was set, or `off`.
static FOLDER: OnceLock<OsString> = OnceLock::new();

/// Sets, for the whole process, the folder in which type tables and decoded functions of profiled programs are cached,
/// or turns caching off for `off`. Only the first call counts.
pub(crate) fn set_cache_folder(folder: &str) {
    let _ = FOLDER.set(folder.into());
}

/// The folder in which type tables and decoded functions of profiled programs are cached between runs, by build-id.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    // which build of this program makes the tables: an analysis that is better has others
    maker: String,
}

impl Cache {
    /// Returns the user's cache folder; `None` if caching is off or there is no suitable folder.
    pub(crate) fn of_user(is_off: bool) -> Option<Cache> {
        let variable = || std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
        let named = FOLDER.get().cloned().or_else(variable);
        if is_off || named.as_deref().is_some_and(|value| value == "off") {
            return None;
        }
        let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let base = || base.or_else(|| std::env::home_dir().map(|home| home.join(".cache")));
        let folder = named.map(PathBuf::from).or_else(|| Some(base()?.join("tallyline")))?;
        Some(Cache { folder, maker: maker()? })
    }

    /// Returns the path of the cache folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the two cache files (type tables, decoded functions) of the program with a build-id; `None` without
    /// a build-id.
    pub(crate) fn of_build(&self, build_id: Option<&[u8]>) -> Option<[CacheFile; 2]> {
        let id = build_id.filter(|id| !id.is_empty())?;
        let name: String = hexadecimal(id);
        let stamp = [self.maker.as_bytes(), b" ", name.as_bytes()].concat();
        Some(files_of_build(id).map(|file| CacheFile {
            path: self.folder.join(file),
            folder: self.folder.clone(),
            stamp: stamp.clone(),
        }))
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Identifies this build of the program by its version, size and time.
fn maker() -> Option<String> {
    let own = fs::metadata(std::env::current_exe().ok()?).ok()?;
    let time = own.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(format!("{} {} {}", env!("CARGO_PKG_VERSION"), own.len(), time.as_nanos()))
}

/// The path of a cache file, which need not exist, for the type tables or the decoded functions of one program (by its
/// build-id), with the stamp that valid contents begin with.
#[derive(Debug)]
pub(crate) struct CacheFile {
    folder: PathBuf,
    path: PathBuf,
    stamp: Vec<u8>,
}

impl Store for CacheFile {
    fn open(&self) -> Option<File> {
        // a pipe of that name would never open
        if !fs::symlink_metadata(&self.path).is_ok_and(|metadata| metadata.is_file()) {
            return None;
        }
        let file = File::open(&self.path).ok()?;
        // what was used last goes last; where that cannot be noted it is used anyway
        let _ = file.set_modified(SystemTime::now());
        Some(file)
    }

    fn keep(&self, bytes: &[u8]) {
        // without it the next report takes longer, and that is all
        if bytes.len() as u64 <= LIMIT && self.write(bytes).is_ok() {
            trim(&self.folder, &self.path, LIMIT);
        }
    }

    fn stamp(&self) -> &[u8] {
        &self.stamp
    }
}

impl CacheFile {
    /// Writes beside the file and moves that into its place: who reads sees one or the other.
    fn write(&self, bytes: &[u8]) -> std::io::Result<()> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // what is profiled is nobody else's business
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let extension = self.path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let beside = self.path.with_extension(format!("{extension}-{}-{number}", std::process::id()));
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        let written = file.write_all(bytes).and_then(|()| fs::rename(&beside, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written
    }
}

/// Removes those files that were not used for the longest time until all fit, and what writers that were
/// killed have left; one file stays.
fn trim(folder: &Path, keep: &Path, limit: u64) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .filter_map(Result::ok)
        .filter(|entry| is_ours(&entry.path()))
        .filter_map(|entry| {
            let metadata = entry.metadata().ok().filter(|metadata| metadata.is_file())?;
            Some((metadata.modified().ok()?, metadata.len(), entry.path()))
        })
        .collect();
    files.sort();
    let mut all: u64 = files.iter().map(|(_, size, _)| size).sum();
    for (_, size, path) in &files {
        if all <= limit {
            return;
        }
        if path != keep && fs::remove_file(path).is_ok() {
            all -= size;
        }
    }
}

/// Returns `true` if a file belongs to the cache, complete or not: the folder may hold other files.
fn is_ours(path: &Path) -> bool {
    let is_id = |stem: &str| stem.len() >= 2 && stem.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_kind = |kind: &str| {
        let of = |extension: &&str| {
            kind.strip_prefix(*extension).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        EXTENSIONS.iter().any(of)
    };
    path.file_stem().and_then(|stem| stem.to_str()).is_some_and(is_id)
        && path.extension().and_then(|kind| kind.to_str()).is_some_and(is_kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tallyline-cache-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn what_was_not_used_for_the_longest_time_goes_first() {
        let folder = folder("trim");
        let cache = Cache { folder: folder.clone(), maker: "test".into() };
        let kept: Vec<CacheFile> = (0..4_u8)
            .map(|number| {
                let [types, code] = cache.of_build(Some(&[number, 7])).expect("an id");
                if number % 2 == 0 { types } else { code }
            })
            .collect();
        for (number, kept) in kept.iter().enumerate() {
            kept.keep(&[0; 100]);
            let age = Duration::from_secs(1000 - number as u64);
            let file = File::options().write(true).open(&kept.path).expect("written");
            file.set_modified(SystemTime::now() - age).expect("own file");
        }
        fs::write(folder.join("notes.txt"), [0; 1000]).expect("writable");
        fs::write(folder.join("other.types"), [0; 1000]).expect("writable");
        fs::write(folder.join("0107.codes"), [0; 1000]).expect("writable");
        assert!(kept[0].open().is_some(), "used again");
        trim(&folder, &kept[3].path, 200);
        let there: Vec<bool> = kept.iter().map(|kept| kept.path.exists()).collect();
        assert_eq!(there, [true, false, false, true]);
        assert!(folder.join("notes.txt").exists() && folder.join("other.types").exists(), "not ours");
        assert!(folder.join("0107.codes").exists(), "not ours");
        fs::remove_dir_all(&folder).expect("removable");
    }

    #[test]
    fn a_file_takes_the_place_of_the_one_before_and_nothing_is_left_beside_it() {
        let folder = folder("place");
        let cache = Cache { folder: folder.clone(), maker: "test".into() };
        let [kept, code] = cache.of_build(Some(&[0xab, 0xcd])).expect("an id");
        assert!(kept.open().is_none());
        kept.keep(b"first");
        kept.keep(b"second");
        assert_eq!(std::io::read_to_string(kept.open().expect("kept")).expect("readable"), "second");
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
        assert!(kept.path.ends_with("abcd.types") && code.path.ends_with("abcd.code"));
        fs::remove_dir_all(&folder).expect("removable");
    }

    #[test]
    fn programs_without_a_build_id_are_not_kept() {
        let cache = Cache { folder: folder("none"), maker: "test".into() };
        assert!(cache.of_build(None).is_none() && cache.of_build(Some(&[])).is_none());
    }
}
