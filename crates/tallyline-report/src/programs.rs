//! The programs that samples are in: the caller finds and opens the files.

use std::fs::File;
use tallyline_debuginfo::Companions;
use tallyline_inference::cache::Store;
use tallyline_inference::code::Image;
use tallyline_perf_data::jit::JitMap;
use tallyline_perf_data::spaces::Dso;

/// Access to the programs of a recording, implemented by the caller, who finds and opens the files. Each is asked
/// for once, from several threads.
pub trait Programs: Sync {
    /// Returns the program of a file of the recording, or why it cannot be had, in a few words.
    fn open(&self, dso: &Dso) -> Result<Program, String>;

    /// Returns the names of code that a process compiled for itself.
    fn jit(&self, pid: i32) -> Option<JitMap>;

    /// Returns the kernel's symbols by the addresses that it had on the machine recorded.
    fn kernel(&self) -> Option<JitMap>;
}

/// An opened program or library of a recording: its code, its debug information and its symbols.
pub struct Program {
    pub(crate) image: Image,
    pub(crate) debug: Option<Debug>,
    pub(crate) btf: Option<Vec<u8>>,
    pub(crate) store: Option<Box<dyn Store>>,
}

impl Program {
    /// Bundles a program's code with its debug information, or with raw BTF in place of it.
    pub fn new(image: Image, debug: Option<Debug>, btf: Option<Vec<u8>>) -> Program {
        Program { image, debug, btf, store: None }
    }

    /// Sets the program's persistent caches: of inferred types, and of decoded functions.
    #[must_use]
    pub fn with_stores(mut self, types: Box<dyn Store>, functions: Box<dyn Store>) -> Program {
        self.store = Some(types);
        self.image.set_function_store(functions);
        self
    }

    /// Returns the program's code, read-only data and symbols.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Returns the program's debug information, in its own file or a separate one; `None` without any.
    pub fn debug(&self) -> Option<&Debug> {
        self.debug.as_ref()
    }

    /// Returns the raw BTF that types are read from in place of DWARF, as for a kernel; `None` without it.
    pub fn btf(&self) -> Option<&[u8]> {
        self.btf.as_deref()
    }

    /// Returns the cache of the program's inferred types; `None` without one.
    pub fn store(&self) -> Option<&dyn Store> {
        self.store.as_deref()
    }
}

/// An open file with a program's debug information (DWARF): the program itself, or its separate debug file.
pub struct Debug {
    pub(crate) file: File,
    pub(crate) companions: Box<dyn Companions + Send + Sync>,
    pub(crate) symbols: Option<Image>,
}

impl Debug {
    /// Bundles an open file of debug information with the finder of further files that it refers to. `symbols` are
    /// those of a separate debug file.
    pub fn new(file: File, companions: Box<dyn Companions + Send + Sync>, symbols: Option<Image>) -> Debug {
        Debug { file, companions, symbols }
    }

    /// Returns the open file with the debug information.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the finder of companion files that the debug information refers to (`.dwo`, `.dwp`, dwz's alternate
    /// file).
    pub fn companions(&self) -> &(dyn Companions + Send + Sync) {
        &*self.companions
    }

    /// Returns the symbols of the separate debug file; `None` if the debug information is in the program itself.
    pub fn symbols(&self) -> Option<&Image> {
        self.symbols.as_ref()
    }
}

impl Program {
    /// Returns `true` if the program has debug information or BTF, and code that is decoded, so that types can be
    /// inferred.
    pub(crate) fn has_types(&self) -> bool {
        (self.debug.is_some() || self.btf.is_some()) && self.image.undecoded().is_none()
    }

    /// Returns the image whose symbols name the program's functions and variables: the separate debug file's, else
    /// its own.
    pub fn symbols(&self) -> &Image {
        self.debug.as_ref().and_then(|debug| debug.symbols.as_ref()).unwrap_or(&self.image)
    }
}

/// Parses the text of `/proc/kallsyms` into a map of the kernel's symbols by address; `None` if it has no addresses, as
/// for unprivileged readers.
pub fn kallsyms(text: &[u8]) -> Option<JitMap> {
    let mut symbols = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        let Some(line) = std::str::from_utf8(line).ok() else { continue };
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let Ok(address) = u64::from_str_radix(address, 16) else { continue };
        if address != 0 && matches!(kind, "t" | "T" | "w" | "W" | "d" | "D" | "b" | "B" | "r" | "R") {
            symbols.push((address, name.to_owned()));
        }
    }
    (!symbols.is_empty()).then(|| JitMap::of_starts(symbols))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_is_read_unless_it_hides_addresses() {
        let map =
            kallsyms(b"ffff0000 T start\nffff0010 t next\nffff0100 D data\nnonsense\n").expect("addresses");
        assert_eq!(map.find(0xffff_000f), Some(("start", 0xf)));
        assert_eq!(map.find(0xffff_0018), Some(("next", 8)));
        assert_eq!(map.find(0xfffe_ffff), None);
        assert!(kallsyms(b"0000000000000000 T start\n").is_none());
    }
}
