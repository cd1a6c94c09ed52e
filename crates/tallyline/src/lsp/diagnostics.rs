//! Diagnostics: the findings of a policy in a text.

use super::declarations::Declaration;
use super::document::Document;
use super::entry::word;
use crate::layout::source;
use crate::path_map::{Paths, PrefixMap};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::{Component, Path, PathBuf};
use tallyline_debuginfo::Request;
use tallyline_layout::check::{Finding, Level, Policy, allow_in_parts, check};

/// A finding about a type that is declared in some file.
#[derive(Debug, Clone)]
pub(super) struct Found {
    ty: String,
    member: Option<String>,
    line: u32,
    is_warning: bool,
    rule: &'static str,
    message: String,
}

/// Holds the types of some files against a policy, and returns the findings about those that a source declares.
pub(super) fn find(
    policy: &Path,
    files: &[PathBuf],
    source: &Path,
    maps: &[PrefixMap],
) -> Result<Vec<Found>> {
    let name = policy.display().to_string();
    let text = std::fs::read_to_string(policy).with_context(|| format!("cannot read {name}"))?;
    let policy = Policy::parse(&text).with_context(|| name)?;
    let paths = Paths::new(maps);
    let mut found: Vec<Found> = Vec::new();
    for file in files {
        let mut parts = Vec::new();
        for part in policy.parts() {
            let request = Request {
                wanted: part.wanted(),
                cacheline: part.cacheline(),
                positions: true,
                exact: true,
                ..Request::default()
            };
            let types = self::source::read(file, &request, None)?;
            parts.push((check(&types, &part), types));
        }
        allow_in_parts(
            &policy,
            &mut parts.iter_mut().map(|(report, _)| &mut report.findings).collect::<Vec<_>>(),
        );
        for (report, types) in &parts {
            for finding in report.findings.iter().filter(|finding| finding.allowed().is_none()) {
                let at = finding.declared_at();
                let declared = String::from_utf8_lossy(types.name(at.file));
                if !at.file.is_some() || !is_same(&paths.shown(&declared), source) {
                    continue;
                }
                let one = Found::new(finding, at.line);
                if !found.iter().any(|known| known.is_like(&one)) {
                    found.push(one);
                }
            }
        }
    }
    Ok(found)
}

impl Found {
    fn new(finding: &Finding, line: u32) -> Found {
        let reason = finding.reason().map_or_else(String::new, |reason| format!(" ({reason})"));
        Found {
            ty: finding.ty().to_owned(),
            member: finding.member().map(str::to_owned),
            line,
            is_warning: finding.level() == Level::Warn,
            rule: finding.rule(),
            message: format!("{}: {}{reason}", finding.ty(), finding.message),
        }
    }

    fn is_like(&self, other: &Found) -> bool {
        (self.rule, &self.ty, &self.member, self.line) == (other.rule, &other.ty, &other.member, other.line)
    }

    /// Returns the diagnostic at the type or the member as the text has it now.
    pub(super) fn diagnostic(&self, document: &Document, declarations: &[Declaration]) -> Value {
        let declaration = declarations.iter().find(|declaration| declaration.name == word(&self.ty));
        let member = self.member.as_deref().and_then(|member| {
            let names = declaration?.members.iter().flat_map(|member| &member.names);
            names.into_iter().find(|(name, _)| name == member).map(|(name, at)| *at..*at + name.len())
        });
        let line = (self.line.max(1) - 1) as usize;
        let range = match member.or_else(|| declaration.map(|declaration| declaration.at.clone())) {
            Some(bytes) => document.range(&bytes),
            None => json!({"start": {"line": line, "character": 0}, "end": document.end_of_line(line)}),
        };
        json!({
            "range": range,
            "severity": if self.is_warning { 2 } else { 1 },
            "source": "tallyline",
            "code": self.rule,
            "message": self.message,
        })
    }
}

/// Returns `true` if a path in debug information is that of a source file. A relative one may be in any folder, or start
/// beside it (`../src/a.c`, as Meson compiles it).
pub(super) fn is_same(declared: &str, source: &Path) -> bool {
    let declared = Path::new(declared);
    match (declared.canonicalize(), source.canonicalize()) {
        (Ok(declared), Ok(source)) => declared == source,
        _ => {
            let inner: PathBuf =
                declared.components().skip_while(|part| *part == Component::ParentDir).collect();
            inner.is_relative() && !inner.as_os_str().is_empty() && source.ends_with(inner)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_are_those_of_the_sources_that_end_with_them() {
        let source = Path::new("/nowhere/src/a.c");
        for declared in ["a.c", "src/a.c", "../src/a.c", "../../src/a.c", "/nowhere/src/a.c"] {
            assert_eq!(is_same(declared, source), !declared.starts_with('/'), "{declared}");
        }
        for declared in ["", "..", "b.c", "../a/a.c", "/src/a.c"] {
            assert!(!is_same(declared, source), "{declared}");
        }
    }
}
