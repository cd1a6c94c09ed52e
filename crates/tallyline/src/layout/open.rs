//! Opening the file that types are read from: every command does it here.
//!
//! What cannot hold types is refused before it is read, in a line that says what it is. A pipe is
//! copied to a file without a name, as readers go to and fro.

use anyhow::{Context, Result, anyhow, bail};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, FileType};
use std::io::{self, Read, Seek};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tallyline_debuginfo::{Error, is_readable};

/// The most bytes that are taken from a pipe: what a file may inflate to.
const PIPE_LIMIT: u64 = tallyline_debuginfo::INFLATED_LIMIT;

/// The length of the prefix that identifies a file's format.
const START: u64 = 512;

/// Pipes that were copied, as there is nothing in them a second time.
static COPIED: Mutex<Option<HashMap<PathBuf, File>>> = Mutex::new(None);

/// Opens a file with type information (ELF or BTF), or standard input for `-`.
pub(crate) fn open(path: &Path) -> Result<File> {
    let mut file = open_any(path)?;
    let mut start = Vec::new();
    (&mut file).take(START).read_to_end(&mut start).with_context(|| cannot(path))?;
    file.rewind().with_context(|| cannot(path))?;
    if !is_readable(&start) {
        return Err(anyhow!(Error::UnknownFormat).context(format!("{} {}", path.display(), kind(&start))));
    }
    if is_core(&start) {
        return Err(anyhow!(Error::NoSuchFormat("types")).context(format!("{} {CORE}", path.display())));
    }
    Ok(file)
}

/// Returns a phrase such as "is a script" for a file that cannot have type information; `None` if it may have some
/// or cannot be read.
pub(crate) fn describe(path: &Path) -> Option<String> {
    let metadata = path.metadata().ok()?;
    if !metadata.is_file() {
        return Some(special(metadata.file_type()).to_string());
    }
    let mut start = Vec::new();
    File::open(path).ok()?.take(START).read_to_end(&mut start).ok()?;
    let what = if is_core(&start) { CORE } else { kind(&start) };
    (!is_readable(&start) || is_core(&start)).then(|| what.to_string())
}

fn open_any(path: &Path) -> Result<File> {
    let is_input = path == Path::new("-");
    let path = if is_input { Path::new("/dev/stdin") } else { path };
    let file_type = path.metadata().with_context(|| cannot(path))?.file_type();
    if file_type.is_file() {
        return File::open(path).with_context(|| cannot(path));
    }
    if !file_type.is_fifo() && !file_type.is_socket() {
        let what = special(file_type);
        match is_input {
            true => bail!("standard input {what}: name a file, or pipe one in"),
            false => bail!("{} {what}: name a file with type information", path.display()),
        }
    }
    copied(path)
}

fn cannot(path: &Path) -> String {
    format!("cannot read {}", path.display())
}

/// Returns a pipe's bytes as a file.
fn copied(path: &Path) -> Result<File> {
    // nobody panics while holding it
    let mut copied = COPIED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let copies = copied.get_or_insert_default();
    if !copies.contains_key(path) {
        let from: Box<dyn Read> = match path == Path::new("/dev/stdin") {
            // also a socket, which has no name to open
            true => Box::new(io::stdin()),
            false => Box::new(File::open(path).with_context(|| cannot(path))?),
        };
        let mut to = unnamed().context("cannot make a temporary file for what comes from a pipe")?;
        let taken = io::copy(&mut from.take(PIPE_LIMIT + 1), &mut to).with_context(|| cannot(path))?;
        if taken > PIPE_LIMIT {
            bail!("{}: more than {} GiB come from this pipe", path.display(), PIPE_LIMIT >> 30);
        }
        copies.insert(path.to_path_buf(), to);
    }
    let Some(file) = copies.get(path) else { bail!("{}", cannot(path)) };
    // opened anew, it has a position of its own
    let again = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).or_else(|_| file.try_clone());
    let mut again = again.with_context(|| cannot(path))?;
    again.rewind().with_context(|| cannot(path))?;
    Ok(again)
}

/// Returns a file that goes when it is closed.
fn unnamed() -> io::Result<File> {
    let folder = std::env::temp_dir();
    let mut number = 0;
    loop {
        let name = folder.join(format!("tallyline-{}-{number}", std::process::id()));
        match File::options().read(true).write(true).create_new(true).mode(0o600).open(&name) {
            Ok(file) => {
                fs::remove_file(&name)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 100 => number += 1,
            Err(error) => return Err(error),
        }
    }
}

fn special(file_type: FileType) -> &'static str {
    match file_type {
        of if of.is_dir() => "is a directory",
        of if of.is_char_device() => "is a character device",
        of if of.is_block_device() => "is a block device",
        of if of.is_socket() => "is a socket",
        of if of.is_fifo() => "is a pipe",
        _ => "is no regular file",
    }
}

/// The description of a core file.
const CORE: &str = "is a core file: name the program that wrote it";

/// Returns `true` if an ELF file is a process's or a kernel's memory (`ET_CORE`).
fn is_core(start: &[u8]) -> bool {
    const ET_CORE: [u8; 2] = [4, 0];
    let Some(&[low, high]) = start.get(16..18) else { return false };
    let is_big_endian = start.get(5) == Some(&2);
    start.starts_with(b"\x7fELF")
        && if is_big_endian { [high, low] == ET_CORE } else { [low, high] == ET_CORE }
}

/// Names the format of a file without types, by its first bytes.
fn kind(start: &[u8]) -> &'static str {
    const MAGICS: [(&[u8], &str); 21] = [
        (b"!<arch>\n", "is an archive: extract its members (ar x) and name one"),
        (b"!<thin>\n", "is a thin archive: name one of its members"),
        (b"\xca\xfe\xba\xbe", "is a Mach-O file for several machines, or a Java class"),
        (b"\xfe\xed\xfa\xce", "is a Mach-O file (macOS)"),
        (b"\xfe\xed\xfa\xcf", "is a Mach-O file (macOS)"),
        (b"\xce\xfa\xed\xfe", "is a Mach-O file (macOS)"),
        (b"\xcf\xfa\xed\xfe", "is a Mach-O file (macOS)"),
        (b"MZ", "is a PE file (Windows)"),
        (b"\x64\x86", "is a COFF object (Windows)"),
        (b"#!", "is a script"),
        (b"\x1f\x8b", "is compressed: unpack it (gunzip)"),
        (b"\xfd7zXZ\0", "is compressed: unpack it (unxz)"),
        (b"\x28\xb5\x2f\xfd", "is compressed: unpack it (unzstd)"),
        (b"BZh", "is compressed: unpack it (bunzip2)"),
        (b"PK\x03\x04", "is a ZIP archive: unpack it"),
        (b"\0asm", "is a WebAssembly module"),
        (b"BC\xc0\xde", "is LLVM bitcode: name the object file"),
        (b"PERFILE2", "is a recording: tallyline report reads it"),
        (b"2ELIFREP", "is a recording: tallyline report reads it"),
        (b"Microsoft C/C++ MSF", "is a PDB file (Windows)"),
        (b"\x7fE", "is a damaged ELF file"),
    ];
    if start.is_empty() {
        return "is empty";
    }
    if let Some((_, what)) = MAGICS.iter().find(|(magic, _)| start.starts_with(magic)) {
        return what;
    }
    // a character may be cut at the end
    let text =
        std::str::from_utf8(start).map_or_else(|error| error.valid_up_to() + 4 > start.len(), |_| true);
    let is_plain = |byte: &u8| !byte.is_ascii_control() || byte.is_ascii_whitespace();
    if text && start.iter().all(is_plain) { "is text" } else { "is no file with types" }
}

/// The extensions of files with types, and of others that are taken for one.
const EXTENSIONS: [&str; 26] = [
    "o", "ko", "so", "a", "debug", "dwo", "dwp", "btf", "elf", "bin", "out", "exe", "dll", "obj", "lib",
    "dylib", "pdb", "gz", "xz", "zst", "deb", "rpm", "data", "c", "txt", "toml",
];

/// Returns `true` if a command-line argument can only be a file's name, not a type's, as by a slash in it.
pub(crate) fn looks_like_a_file(name: impl AsRef<OsStr>) -> bool {
    let name = &*name.as_ref().to_string_lossy();
    let extension = Path::new(name).extension().and_then(OsStr::to_str);
    name == "-"
        || name.contains('/')
        || name.contains(".so.")
        || extension.is_some_and(|extension| EXTENSIONS.contains(&extension) && !name.contains("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_from_types_by_their_names() {
        for name in ["-", "./a", "a.o", "libc.so.6", "x.exe", "vmlinux.btf"] {
            assert!(looks_like_a_file(name), "{name}");
        }
        for name in ["a", "main.All", "std::vector<int>", "a::b.o", "io.Reader", "struct x"] {
            assert!(!looks_like_a_file(name), "{name}");
        }
    }

    #[test]
    fn what_holds_no_types_is_named_by_its_first_bytes() {
        assert_eq!(kind(b""), "is empty");
        assert_eq!(kind(b"MZ\x90"), "is a PE file (Windows)");
        assert_eq!(kind(b"hello\n"), "is text");
        assert_eq!(kind("é".repeat(300).as_bytes().get(..511).expect("long")), "is text");
        assert_eq!(kind(&[1, 2, 3]), "is no file with types");
        assert_eq!(kind(b"\x7fEL"), "is a damaged ELF file");
    }
}
