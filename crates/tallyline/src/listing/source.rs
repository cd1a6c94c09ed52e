//! Lines of source files, where these are on this machine.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use tallyline_support::output::printable;

/// The largest file that is read, in bytes.
const SIZE_LIMIT: u64 = 16 << 20;

/// The number of files that are kept; further ones have no text.
const FILES_LIMIT: usize = 256;

/// Source files that were read, by the paths that debug information has.
pub(super) struct SourceFiles<'r> {
    root: Option<&'r Path>,
    files: HashMap<String, Option<String>>,
}

impl<'r> SourceFiles<'r> {
    /// Looks for files under another root first, if there is one.
    pub(super) fn new(root: Option<&'r Path>) -> SourceFiles<'r> {
        SourceFiles { root, files: HashMap::new() }
    }

    /// Returns the text of a line, counted from 1; none where the file is not there.
    pub(super) fn line(&mut self, path: &str, line: u64) -> Option<String> {
        if !self.files.contains_key(path) {
            let text = (self.files.len() < FILES_LIMIT).then(|| self.read(path)).flatten();
            self.files.insert(path.to_owned(), text);
        }
        let text = self.files.get(path)?.as_ref()?;
        let line = text.lines().nth(usize::try_from(line.checked_sub(1)?).ok()?)?;
        Some(printable(line.trim_end().replace('\t', "    ").as_bytes()).into_owned())
    }

    fn read(&self, path: &str) -> Option<String> {
        let under = |root: &Path| root.join(path.trim_start_matches('/'));
        let paths: [Option<PathBuf>; 2] = [self.root.map(under), Some(path.into())];
        paths.into_iter().flatten().find_map(|path| {
            // a path of debug information may be a pipe's here, which would never open
            let size = path.metadata().ok().filter(|metadata| metadata.is_file())?.len();
            let mut bytes = Vec::new();
            let file = File::open(path).ok().filter(|_| size <= SIZE_LIMIT)?;
            file.take(SIZE_LIMIT).read_to_end(&mut bytes).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one_and_what_is_no_file_has_none() {
        let path = std::env::temp_dir().join(format!("tallyline-source-{}.c", std::process::id()));
        std::fs::write(&path, "first\n\tsecond\x1b[0m\n").expect("written");
        let name = path.to_str().expect("a plain path");
        let mut files = SourceFiles::new(None);
        assert_eq!(files.line(name, 1).as_deref(), Some("first"));
        assert_eq!(files.line(name, 2).as_deref(), Some("    second\u{fffd}[0m"));
        assert_eq!((files.line(name, 0), files.line(name, 3)), (None, None));
        assert_eq!(files.line("/dev/zero", 1), None);
        std::fs::remove_file(&path).expect("removed");
    }
}
