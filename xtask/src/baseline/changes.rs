//! Texts that were changed on purpose.

use crate::config::Config;
use anyhow::{Context, Result};
use std::path::Path;

/// The file that lists them, relative to the root.
const FILE: &str = "xtask/baseline-changes.toml";

/// A text that was changed on purpose, or cases whose outputs were.
#[derive(Debug)]
pub(super) struct Change {
    /// The text of the old binary, and that of the new one; none where the whole output of the cases may differ.
    texts: Option<(String, String)>,
    /// A part of the names of the cases that it is in; all without one.
    cases: Option<String>,
    /// Its name in the list.
    pub(super) name: String,
}

/// Reads the list.
pub(super) fn read(root: &Path) -> Result<Vec<Change>> {
    parse(&Config::read(&root.join(FILE))?)
}

fn parse(config: &Config) -> Result<Vec<Change>> {
    let change = |name: &str| {
        let mut texts = config.texts(name);
        let missing = |key: &str| format!("{FILE}: [{name}] has no `{key}`");
        texts.remove("reason").with_context(|| missing("reason"))?;
        let cases = texts.remove("cases");
        let texts = match (texts.remove("old"), texts.remove("new"), &cases) {
            (None, None, Some(_)) => None,
            (old, new, _) => {
                let (old, new) = (old.with_context(|| missing("old"))?, new.with_context(|| missing("new"))?);
                anyhow::ensure!(!old.is_empty() && old != new, "{FILE}: [{name}] changes nothing");
                Some((old, new))
            }
        };
        Ok(Change { texts, cases, name: name.to_owned() })
    };
    config.sections().map(change).collect()
}

/// Returns an old output with the changes made in it, and the names of those that occur.
pub(super) fn apply<'a>(changes: &'a [Change], case: &str, output: &[u8]) -> (Vec<u8>, Vec<&'a str>) {
    let mut output = output.to_vec();
    let mut used = Vec::new();
    for change in changes {
        if change.cases.as_ref().is_some_and(|part| !case.contains(part)) {
            continue;
        }
        let Some((old, new)) = &change.texts else { continue };
        let replaced = replace(&output, old.as_bytes(), new.as_bytes());
        if replaced != output {
            used.push(change.name.as_str());
            output = replaced;
        }
    }
    (output, used)
}

/// Returns the name of the change on purpose by which the whole output of a case may differ, if there is one.
pub(super) fn may_differ<'a>(changes: &'a [Change], case: &str) -> Option<&'a str> {
    let covers = |change: &&Change| {
        change.texts.is_none() && change.cases.as_ref().is_some_and(|part| case.contains(part))
    };
    changes.iter().find(covers).map(|change| change.name.as_str())
}

fn replace(text: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with(old) {
            result.extend_from_slice(new);
            at += old.len();
        } else {
            result.push(text[at]);
            at += 1;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::{apply, may_differ, parse};
    use crate::config::Config;

    fn changes(text: &str) -> anyhow::Result<Vec<super::Change>> {
        parse(&Config::parse(text)?)
    }

    #[test]
    fn a_change_is_made_wherever_it_applies() {
        let changes =
            changes("[a]\nreason = \"r\"\nold = \"no kind\"\nnew = \"invalid\"\ncases = \"report\"\n")
                .expect("parses");
        let (text, used) = apply(&changes, "report x", b"q: no kind, no kind");
        assert_eq!((text.as_slice(), used), (b"q: invalid, invalid".as_slice(), vec!["a"]));
        assert!(apply(&changes, "layout x", b"no kind").1.is_empty());
    }

    #[test]
    fn whole_outputs_may_differ_in_the_named_cases_alone() {
        let changes = changes("[a]\nreason = \"r\"\ncases = \"skid/\"\n").expect("parses");
        assert_eq!(may_differ(&changes, "report -i skid/x"), Some("a"));
        assert_eq!(may_differ(&changes, "report -i x"), None);
        assert_eq!(apply(&changes, "report -i skid/x", b"text").0, b"text");
    }

    #[test]
    fn a_change_without_a_reason_is_an_error() {
        let error = changes("[a]\nold = \"x\"\nnew = \"y\"\n").expect_err("fails").to_string();
        assert!(error.contains("[a] has no `reason`"), "{error}");
        assert!(changes("[a]\nreason = \"r\"\nold = \"x\"\nnew = \"x\"\n").is_err());
    }

    #[test]
    fn the_projects_own_list_is_well_formed() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a parent");
        super::read(root).expect("parses");
    }
}
