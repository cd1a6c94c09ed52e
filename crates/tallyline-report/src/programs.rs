//! The programs that samples are in: the caller finds and opens the files.

use std::fs::File;
use tallyline_debuginfo::Companions;
use tallyline_inference::cache::Store;
use tallyline_inference::code::Image;
use tallyline_perf_data::jit::JitMap;
use tallyline_perf_data::spaces::Dso;

/// Finder and opener of a recording's programs, which the caller implements; each file is opened once, in
/// parallel.
pub trait Programs: Sync {
    /// Returns the program of a file of the recording, or why it cannot be had, in a few words.
    fn open(&self, dso: &Dso) -> Result<Program, String>;

    /// Returns the names of code that a process compiled for itself.
    fn jit(&self, pid: i32) -> Option<JitMap>;

    /// Returns the kernel's symbols by the addresses that it had on the machine recorded.
    fn kernel(&self) -> Option<JitMap>;
}

/// An open program of a recording: code, debug information and symbols.
pub struct Program {
    pub(crate) image: Image,
    pub(crate) debug: Option<Debug>,
    pub(crate) btf: Option<Vec<u8>>,
    pub(crate) store: Option<Box<dyn Store>>,
}

impl Program {
    /// Creates an open program from its code, its debug information, and its BTF.
    pub fn new(image: Image, debug: Option<Debug>, btf: Option<Vec<u8>>) -> Program {
        Program { image, debug, btf, store: None }
    }

    /// Sets the caches that the program's operand types and its decoded functions are taken from and stored in.
    #[must_use]
    pub fn with_stores(mut self, types: Box<dyn Store>, functions: Box<dyn Store>) -> Program {
        self.store = Some(types);
        self.image.set_function_store(functions);
        self
    }

    /// Returns the program's code, data and symbols.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Returns the file with the program's debug information: the program itself or its separate debug file.
    pub fn debug(&self) -> Option<&Debug> {
        self.debug.as_ref()
    }

    /// Returns a kernel's BTF as raw bytes, where there is no other debug information.
    pub fn btf(&self) -> Option<&[u8]> {
        self.btf.as_deref()
    }

    /// Returns the cache of the program's operand types between runs, if there is one.
    pub fn store(&self) -> Option<&dyn Store> {
        self.store.as_deref()
    }
}

/// An open file with a program's debug information.
pub struct Debug {
    pub(crate) file: File,
    pub(crate) companions: Box<dyn Companions + Send + Sync>,
    pub(crate) symbols: Option<Image>,
}

impl Debug {
    /// Creates the debug information of a program from an open file; the symbols are those of a separate
    /// debug file.
    pub fn new(file: File, companions: Box<dyn Companions + Send + Sync>, symbols: Option<Image>) -> Debug {
        Debug { file, companions, symbols }
    }

    /// Returns the open file with the debug information.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the finder of the further files (split units, alternate files) that complete the debug
    /// information.
    pub fn companions(&self) -> &(dyn Companions + Send + Sync) {
        &*self.companions
    }

    /// Returns the symbols of a separate debug file; the program has none then.
    pub fn symbols(&self) -> Option<&Image> {
        self.symbols.as_ref()
    }
}

impl Program {
    /// Returns `true` if the program has debug information or BTF, from which types can be had.
    pub(crate) fn has_types(&self) -> bool {
        self.debug.is_some() || self.btf.is_some()
    }

    /// Returns the program's functions and variables: those of the separate debug file, where there is one.
    pub fn symbols(&self) -> &Image {
        self.debug.as_ref().and_then(|debug| debug.symbols.as_ref()).unwrap_or(&self.image)
    }
}

/// Reads the running kernel's list of symbols, `/proc/kallsyms`; empty if it hides the addresses.
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
