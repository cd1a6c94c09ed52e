//! Links of the book and of the pages at the project's root: their files and headings exist, and no page is missing
//! from the book's table of contents.

use super::page::Page;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// The table of contents, in the book's folder.
pub(super) const SUMMARY: &str = "SUMMARY.md";

/// A link on a page.
#[derive(Debug, PartialEq, Eq)]
struct Link<'a> {
    line: usize,
    /// The target as written: a path, a heading behind `#`, or both.
    target: &'a str,
}

/// Returns the pages of the table of contents in their order, relative to the book's folder.
pub(super) fn pages(book: &Path) -> Result<Vec<PathBuf>> {
    let path = book.join(SUMMARY);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let page = Page::parse(&text).with_context(|| path.display().to_string())?;
    let links = links(&page);
    Ok(links.iter().map(|link| link.target).filter(|target| !target.is_empty()).map(PathBuf::from).collect())
}

/// Returns what is wrong with links and with the table of contents.
pub(super) fn problems(root: &Path, book: &Path) -> Result<Vec<String>> {
    let in_book = pages(book)?;
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in [root, book] {
        let mut found = markdown_in(folder, folder == book)?;
        files.append(&mut found);
    }
    let mut headings: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    let mut texts = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let page = Page::parse(&text).with_context(|| file.display().to_string())?;
        headings.insert(plain(file), anchors(&page));
        texts.push((file, page, includes(&text)));
    }
    let listed: BTreeSet<PathBuf> = in_book.iter().map(|page| plain(&book.join(page))).collect();
    let mut problems = Vec::new();
    for (file, page, included) in &texts {
        let name = file.strip_prefix(root).unwrap_or(file).display().to_string();
        let folder = file.parent().unwrap_or(root);
        let is_in_book = file.starts_with(book);
        if is_in_book && !file.ends_with(SUMMARY) && !listed.contains(&plain(file)) {
            problems.push(format!("{name}: not in {SUMMARY}"));
        }
        for link in links(page) {
            let (path, heading) = link.target.split_once('#').unwrap_or((link.target, ""));
            let target = if path.is_empty() { plain(file) } else { plain(&folder.join(path)) };
            let problem = if !target.exists() {
                Some("there is no such file")
            } else if is_in_book && !target.starts_with(plain(book)) {
                Some("it leads out of the book, where readers of the book have no file")
            } else if !heading.is_empty()
                && headings.get(&target).is_some_and(|known| !known.contains(heading))
            {
                Some("there is no such heading")
            } else {
                None
            };
            problems
                .extend(problem.map(|why| format!("{name}:{}: link to {}: {why}", link.line, link.target)));
        }
        for (line, path) in included {
            if !folder.join(path).is_file() {
                problems.push(format!("{name}:{line}: include of {path}: there is no such file"));
            }
        }
    }
    Ok(problems)
}

/// Returns the pages in a folder, and in those below it if `deep`.
fn markdown_in(folder: &Path, deep: bool) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() && deep {
            files.append(&mut markdown_in(&path, deep)?);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Returns a path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Returns the links of a page that stay in the project.
fn links(page: &Page) -> Vec<Link<'_>> {
    let mut links = Vec::new();
    for (line, text) in page.prose() {
        let mut code = false;
        let mut start = 0;
        for (at, letter) in text.char_indices() {
            if letter == '`' {
                code = !code;
            }
            if code || at < start || !text[at..].starts_with("](") {
                continue;
            }
            let rest = &text[at + 2..];
            let Some(end) = rest.find(')') else { continue };
            start = at + 2 + end;
            let target = rest[..end].split_whitespace().next().unwrap_or_default();
            if !target.contains("://") && !target.starts_with("mailto:") {
                links.push(Link { line, target });
            }
        }
    }
    links
}

/// Returns the files that a page includes, with their lines.
fn includes(text: &str) -> Vec<(usize, String)> {
    let mut includes = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if let Some((_, rest)) = line.split_once("{{#include ") {
            let path = rest.split("}}").next().unwrap_or_default().trim();
            includes.push((number + 1, path.split(':').next().unwrap_or(path).to_owned()));
        }
    }
    includes
}

/// Returns the anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(page: &Page) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in page.prose() {
        let level = line.len() - line.trim_start_matches('#').len();
        if level == 0 || !line[level..].starts_with(' ') {
            continue;
        }
        let anchor: String = line[level..]
            .trim()
            .chars()
            .filter_map(|letter| match letter {
                ' ' => Some('-'),
                '-' | '_' => Some(letter),
                _ => letter.is_alphanumeric().then(|| letter.to_lowercase().next().unwrap_or(letter)),
            })
            .collect();
        let number = (1..).find(|number| !anchors.contains(&numbered(&anchor, *number))).unwrap_or(1);
        anchors.insert(numbered(&anchor, number));
    }
    anchors
}

/// Returns the anchor of the heading that is the `number`th with its text.
fn numbered(anchor: &str, number: usize) -> String {
    if number == 1 { anchor.to_owned() } else { format!("{anchor}-{}", number - 1) }
}

#[cfg(test)]
mod tests {
    use super::{Link, anchors, includes, links, pages, plain, problems};
    use crate::book::page::Page;
    use std::path::Path;

    #[test]
    fn links_in_prose_are_found_and_those_in_code_or_elsewhere_are_not() {
        let page = Page::parse("[a](b.md#c) `[x](y)` [d](https://e) ![f](g.svg \"t\")\n```\n[h](i)\n```\n");
        let page = page.expect("parses");
        assert_eq!(links(&page), [Link { line: 1, target: "b.md#c" }, Link { line: 1, target: "g.svg" }]);
    }

    #[test]
    fn headings_have_githubs_anchors() {
        let page =
            Page::parse("# Why `type` differs, or: not\n## Twice\n## Twice\n#hashtag\n").expect("parses");
        let found = anchors(&page);
        assert_eq!(found.iter().collect::<Vec<_>>(), ["twice", "twice-1", "why-type-differs-or-not"]);
    }

    #[test]
    fn includes_are_found_without_their_ranges() {
        assert_eq!(includes("a\n{{#include ../b.txt:1:3}}\n"), [(2, "../b.txt".to_owned())]);
        assert_eq!(plain(Path::new("a/./b/../c")), Path::new("a/c"));
    }

    #[test]
    fn what_leads_nowhere_is_named_with_its_line() {
        let root = std::env::temp_dir().join(format!("xtask-book-links-{}", std::process::id()));
        let book = root.join("docs");
        std::fs::create_dir_all(&book).expect("made");
        for (path, text) in [
            ("README.md", "[one](docs/one.md#title) [gone](docs/gone.md)\n"),
            ("docs/SUMMARY.md", "- [One](one.md)\n"),
            ("docs/one.md", "# Title\n[out](../README.md) [x](#y)\n{{#include z.txt}}\n"),
            ("docs/two.md", "not listed\n"),
        ] {
            std::fs::write(root.join(path), text).expect("written");
        }
        let found = problems(&root, &book).expect("read");
        let listed = pages(&book).expect("read");
        std::fs::remove_dir_all(&root).expect("removed");
        assert_eq!(listed, [Path::new("one.md")]);
        let expected = [
            "README.md:1: link to docs/gone.md: there is no such file",
            "docs/one.md:2: link to ../README.md: it leads out of the book, where readers of the book have no file",
            "docs/one.md:2: link to #y: there is no such heading",
            "docs/one.md:3: include of z.txt: there is no such file",
            "docs/two.md: not in SUMMARY.md",
        ];
        assert_eq!(found, expected);
    }
}
