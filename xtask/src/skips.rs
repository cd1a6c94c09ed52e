//! Tests that skipped themselves, by the output of `cargo test … -- --show-output`.
//!
//! A test that needs something which is not there prints a line with `skipped: …` and passes. Where
//! everything is to be there, as in the gate, that is a failure, but for the reasons in `xtask/skips.toml`.

use crate::config::Config;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// The file of reasons that are allowed, relative to the root.
const FILE: &str = "xtask/skips.toml";

/// A test that skipped itself, or a part of itself.
#[derive(Debug, PartialEq, Eq)]
struct Skip<'a> {
    /// The program that has the test.
    program: &'a str,
    /// The test; empty where the output is not one test's.
    test: &'a str,
    /// The line that says so.
    line: &'a str,
}

/// Lists the skips in a log and fails if there are others than those allowed, unless `only_list`.
pub(crate) fn run(root: &Path, log: &Path, only_list: bool) -> Result<()> {
    let allowed = Config::read(&root.join(FILE))?.texts("allowed");
    let text = std::fs::read(log).with_context(|| format!("{}: cannot read", log.display()))?;
    let text = String::from_utf8_lossy(&text);
    let mut wrong = 0;
    for skip in skips(&text) {
        let reason = reason(&allowed, &skip);
        wrong += usize::from(reason.is_none());
        println!(
            "{} {}: {}; {}",
            skip.program,
            skip.test,
            skip.line,
            reason.unwrap_or("not allowed in the gate")
        );
    }
    anyhow::ensure!(
        only_list || wrong == 0,
        "{wrong} tests skipped themselves: install what they need (ci/install), or add the reason to {FILE}"
    );
    Ok(())
}

/// Returns why a skip is allowed.
fn reason<'a>(allowed: &'a BTreeMap<String, String>, skip: &Skip<'_>) -> Option<&'a str> {
    allowed.iter().find(|(part, _)| skip.line.contains(part.as_str())).map(|(_, reason)| reason.as_str())
}

fn skips(log: &str) -> Vec<Skip<'_>> {
    let (mut program, mut test) = ("", "");
    let mut found = Vec::new();
    for line in log.lines() {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("Running ").or_else(|| line.strip_prefix("Doc-tests ")) {
            program = rest.split(" (").next().unwrap_or(rest);
            test = "";
        } else if let Some(name) =
            line.strip_prefix("---- ").and_then(|rest| rest.split(" stdout ----").next())
        {
            test = name;
        } else if line.starts_with("test ") || line == "successes:" || line == "failures:" {
            test = "";
        } else if line.starts_with("skipped")
            || line.contains(": skipped: ")
            || line.contains(": skipped in part: ")
        {
            found.push(Skip { program, test, line });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Skip, reason, skips};
    use std::collections::BTreeMap;

    const LOG: &str = "\
     Running tests/types.rs (target/debug/deps/types-1)

running 2 tests
test kinds_that_are_skipped ... ok
test needs_a_compiler ... ok

successes:

---- needs_a_compiler stdout ----
skipped: no gcc


successes:
    kinds_that_are_skipped
    needs_a_compiler

test result: ok. 2 passed
     Running tests/lazy.rs (target/debug/deps/lazy-1)
---- per_id stdout ----
per concurrency id: skipped: no such id
the 3 records skipped are counted
";

    #[test]
    fn skips_are_lines_that_say_so_with_their_test() {
        let expected = [
            Skip { program: "tests/types.rs", test: "needs_a_compiler", line: "skipped: no gcc" },
            Skip {
                program: "tests/lazy.rs",
                test: "per_id",
                line: "per concurrency id: skipped: no such id",
            },
        ];
        assert_eq!(skips(LOG), expected);
    }

    #[test]
    fn a_part_of_the_line_allows_it() {
        let allowed = BTreeMap::from([("no such id".to_owned(), "the kernel has none".to_owned())]);
        let skips = skips(LOG);
        assert_eq!(reason(&allowed, &skips[0]), None);
        assert_eq!(reason(&allowed, &skips[1]), Some("the kernel has none"));
    }

    #[test]
    fn the_projects_own_list_is_well_formed() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a parent");
        let allowed = crate::config::Config::read(&root.join(super::FILE)).expect("parses").texts("allowed");
        assert!(!allowed.is_empty());
        assert!(allowed.iter().all(|(part, reason)| part.len() > 5 && !reason.is_empty()), "{allowed:?}");
    }
}
