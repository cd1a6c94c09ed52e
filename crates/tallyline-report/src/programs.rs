//! The programs that samples are in: the caller finds and opens the files.

use std::fs::File;
use tallyline_debuginfo::Companions;
use tallyline_inference::cache::Store;
use tallyline_inference::code::Image;
use tallyline_perf_data::jit::JitMap;
use tallyline_perf_data::spaces::Dso;

/// Finds programs. Opening is asked for once for each file of a recording, in parallel.
pub trait Programs: Sync {
    /// The program of a file of the recording, or why it cannot be had, in a few words.
    fn open(&self, dso: &Dso) -> Result<Program, String>;

    /// The names of code that a process compiled for itself.
    fn jit(&self, pid: i32) -> Option<JitMap>;

    /// The kernel's symbols by the addresses that it had on the machine recorded.
    fn kernel(&self) -> Option<JitMap>;
}

/// A program, open.
pub struct Program {
    /// Its code.
    pub image: Image,
    /// The file with its debug information: the file itself or its debug file.
    pub debug: Option<Debug>,
    /// A kernel's BTF, raw, where there is no debug information.
    pub btf: Option<Vec<u8>>,
    /// The cache of its types between runs, if there is one.
    pub store: Option<Box<dyn Store>>,
}

/// A file with debug information.
pub struct Debug {
    /// The file.
    pub file: File,
    /// The files that complete its debug information.
    pub companions: Box<dyn Companions + Send + Sync>,
    /// The symbols of a debug file; the program has none then.
    pub symbols: Option<Image>,
}

impl Program {
    /// Returns whether any file tells the types of its data.
    pub(crate) fn has_types(&self) -> bool {
        self.debug.is_some() || self.btf.is_some()
    }

    /// The symbols: of the debug file, where there is one.
    pub fn symbols(&self) -> &Image {
        self.debug.as_ref().and_then(|debug| debug.symbols.as_ref()).unwrap_or(&self.image)
    }
}

/// Reads the kernel's list of symbols, `/proc/kallsyms`. Nothing where it hides the addresses.
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
