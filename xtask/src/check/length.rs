//! Files that are too long to read at once.

use super::{Measure, Tree};
use crate::source;
use anyhow::{Context, Result};

/// The most lines of a file.
const MAX_LINES: usize = 800;

pub(super) fn measure(tree: &Tree<'_>) -> Result<Measure> {
    let mut places = Vec::new();
    for file in source::files(tree.root, &["*.rs", "*.c", "*.h", "*.hpp", "*.py", "ci/*", ".ci/*"])? {
        let bytes = std::fs::read(tree.root.join(&file)).with_context(|| file.display().to_string())?;
        let expected = file.starts_with("ci/golden/expected");
        let lines = count(&bytes);
        if lines > MAX_LINES && !expected {
            places.push(format!("{}:{}: the file has {lines} lines", file.display(), MAX_LINES + 1));
        }
    }
    Ok(Measure {
        name: "long-files",
        title: "files of more than 800 lines",
        count: places.len(),
        places,
        note: None,
    })
}

fn count(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == b'\n').count()
        + usize::from(bytes.last().is_some_and(|&last| last != b'\n'))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_last_line_without_an_end_counts() {
        assert_eq!([super::count(b""), super::count(b"a\n"), super::count(b"a\nb")], [0, 1, 2]);
    }
}
