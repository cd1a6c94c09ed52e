//! Lines that are newer than the record, to tell the places that made a number go up.

use anyhow::{Context, Result};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

/// The lines of files that were added or changed.
#[derive(Debug, Default)]
pub(super) struct Added {
    files: HashMap<String, Vec<Range<usize>>>,
}

impl Added {
    /// Finds the lines that were added since a file was last committed, those of new files included.
    pub(super) fn since(root: &Path, file: &str) -> Result<Added> {
        let base = git(root, &["log", "-1", "--format=%H", "--", file])?;
        anyhow::ensure!(!base.trim().is_empty(), "{file}: not committed");
        let mut added =
            Added::parse(&git(root, &["diff", "-U0", "--no-color", "--no-ext-diff", base.trim()])?);
        for new in git(root, &["ls-files", "--others", "--exclude-standard"])?.lines() {
            added.files.entry(new.to_owned()).or_default().push(0..usize::MAX);
        }
        Ok(added)
    }

    fn parse(diff: &str) -> Added {
        let mut added = Added::default();
        let mut file = "";
        for line in diff.lines() {
            if let Some(name) = line.strip_prefix("+++ b/") {
                file = name;
            } else if let Some(header) = line.strip_prefix("@@ -")
                && let Some((_, new)) = header.split_once(" +")
                && let Some((range, _)) = new.split_once(" @@")
            {
                let (start, count) = range.split_once(',').unwrap_or((range, "1"));
                if let (Ok(start), Ok(count)) = (start.parse::<usize>(), count.parse::<usize>()) {
                    added.files.entry(file.to_owned()).or_default().push(start..start + count);
                }
            }
        }
        added
    }

    /// Returns true for a place, `file:line: text`, on such a line.
    pub(super) fn has(&self, place: &str) -> bool {
        let mut parts = place.trim().splitn(3, ':');
        let (Some(file), Some(line)) =
            (parts.next(), parts.next().and_then(|line| line.parse::<usize>().ok()))
        else {
            return false;
        };
        self.files.get(file).is_some_and(|ranges| ranges.iter().any(|range| range.contains(&line)))
    }
}

fn git(root: &Path, words: &[&str]) -> Result<String> {
    let output = Command::new("git").args(words).current_dir(root).output().context("cannot run git")?;
    anyhow::ensure!(
        output.status.success(),
        "git {}: {}",
        words[0],
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::Added;

    #[test]
    fn places_on_added_lines_are_told_from_others() {
        let added = Added::parse(
            "--- a/x.rs\n+++ b/x.rs\n@@ -3,0 +4,2 @@ fn f\n+a\n+b\n@@ -9 +11 @@\n-c\n+d\n@@ -20,2 +22,0 @@\n-e\n-f\n",
        );
        for place in ["x.rs:4: a", "    x.rs:5: b", "x.rs:11"] {
            assert!(added.has(place), "{place}");
        }
        for place in ["x.rs:3: a", "x.rs:6: b", "x.rs:22: e", "y.rs:4: a", "no place"] {
            assert!(!added.has(place), "{place}");
        }
    }
}
