//! Packages that the workspace depends on: permissive licences, one version of each, known sources.
//!
//! The rules of deny.toml, for machines without cargo-deny: building that takes longer than any step of the gate.

use crate::config::Config;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

/// Checks what `cargo metadata --all-features --format-version 1` says, read from standard input.
pub(crate) fn run(root: &Path) -> Result<()> {
    let allowed =
        Config::read(&root.join("deny.toml"))?.lists("licenses").remove("allow").unwrap_or_default();
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("standard input")?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata: not a JSON document")?;
    let packages = metadata["packages"].as_array().context("cargo metadata: no packages")?;
    let wrong = check(packages, &allowed.into_iter().collect());
    wrong.iter().for_each(|line| println!("{line}"));
    anyhow::ensure!(wrong.is_empty(), "{} dependencies break the rules of deny.toml", wrong.len());
    println!("{} packages: licences, versions and sources are as they should be", packages.len());
    Ok(())
}

/// Returns a line for everything that breaks the rules.
fn check(packages: &[Value], allowed: &BTreeSet<String>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut sources = BTreeSet::new();
    for package in packages {
        let text = |key: &str| package[key].as_str();
        let (name, version) = (text("name").unwrap_or_default(), text("version").unwrap_or_default());
        versions.entry(name).or_default().push(version);
        let licence = text("license").unwrap_or_default();
        match is_allowed(licence, allowed) {
            Some(true) => {}
            Some(false) => wrong.push(format!("{name} {version}: licence {licence}")),
            None => wrong.push(format!("{name} {version}: licence `{licence}` cannot be read")),
        }
        match text("source") {
            Some(source) => {
                sources.insert(source);
                if !source.starts_with("registry+") {
                    wrong.push(format!("{name} {version}: from {source}"));
                }
            }
            None => {
                let dependencies = package["dependencies"].as_array().into_iter().flatten();
                let any = dependencies.filter(|one| one["req"] == "*" && one["source"].is_string());
                wrong.extend(any.map(|one| format!("{name} {version}: any version of {}", one["name"])));
            }
        }
    }
    if sources.len() > 1 {
        let sources: Vec<&str> = sources.into_iter().collect();
        wrong.push(format!("more than one source: {}", sources.join(", ")));
    }
    let several = versions.iter().filter(|(_, versions)| versions.len() > 1);
    wrong.extend(several.map(|(name, versions)| format!("{name}: versions {}", versions.join(", "))));
    wrong
}

/// Returns true if a licence expression allows what the list does: of `A OR B` one has to be in it, of `A AND B` both;
/// an exception (`WITH`) takes no rights away. Returns none where the expression cannot be read.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words: Vec<&str> = spaced.split_whitespace().rev().collect();
    let result = alternatives(&mut words, allowed)?;
    words.is_empty().then_some(result)
}

/// Reads `A OR B …` from the end of the words.
fn alternatives(words: &mut Vec<&str>, allowed: &BTreeSet<String>) -> Option<bool> {
    let mut result = conjunction(words, allowed)?;
    while words.last() == Some(&"OR") {
        words.pop();
        result |= conjunction(words, allowed)?;
    }
    Some(result)
}

/// Reads `A AND B …`.
fn conjunction(words: &mut Vec<&str>, allowed: &BTreeSet<String>) -> Option<bool> {
    let mut result = licence(words, allowed)?;
    while words.last() == Some(&"AND") {
        words.pop();
        result &= licence(words, allowed)?;
    }
    Some(result)
}

/// Reads a name, with an exception or without, or an expression in parentheses.
fn licence(words: &mut Vec<&str>, allowed: &BTreeSet<String>) -> Option<bool> {
    match words.pop()? {
        "(" => {
            let result = alternatives(words, allowed)?;
            (words.pop()? == ")").then_some(result)
        }
        ")" | "AND" | "OR" | "WITH" => None,
        name => {
            if words.last() == Some(&"WITH") {
                words.pop();
                words.pop()?;
            }
            Some(allowed.contains(name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{check, is_allowed};
    use serde_json::json;
    use std::collections::BTreeSet;

    fn allowed() -> BTreeSet<String> {
        ["MIT", "Apache-2.0"].map(str::to_owned).into()
    }

    #[test]
    fn one_of_several_licences_is_enough_and_both_of_two() {
        for (expression, expected) in [
            ("MIT", Some(true)),
            ("GPL-3.0 OR MIT", Some(true)),
            ("GPL-3.0/MIT", Some(true)),
            ("GPL-3.0 AND MIT", Some(false)),
            ("(MIT OR GPL-3.0) AND Apache-2.0", Some(true)),
            ("Apache-2.0 WITH LLVM-exception", Some(true)),
            ("GPL-3.0 WITH Classpath-exception OR GPL-2.0", Some(false)),
            ("(MIT", None),
            ("MIT MIT", None),
            ("MIT OR", None),
            ("", None),
        ] {
            assert_eq!(is_allowed(expression, &allowed()), expected, "{expression}");
        }
    }

    #[test]
    fn each_rule_has_its_line() {
        let registry = "registry+https://example.org";
        let packages = [
            json!({"name": "own", "version": "1.0.0", "license": "MIT", "source": null, "dependencies": [
                {"name": "a", "req": "*", "source": registry}, {"name": "b", "req": "*", "source": null}]}),
            json!({"name": "a", "version": "1.0.0", "license": "GPL-3.0", "source": registry}),
            json!({"name": "a", "version": "2.0.0", "license": "MIT", "source": "git+https://example.org"}),
            json!({"name": "c", "version": "1.0.0", "license": null, "source": registry}),
        ];
        let expected = [
            "own 1.0.0: any version of \"a\"",
            "a 1.0.0: licence GPL-3.0",
            "a 2.0.0: from git+https://example.org",
            "c 1.0.0: licence `` cannot be read",
            "more than one source: git+https://example.org, registry+https://example.org",
            "a: versions 1.0.0, 2.0.0",
        ];
        assert_eq!(check(&packages, &allowed()), expected);
        assert!(check(&packages[..0], &allowed()).is_empty());
    }
}
