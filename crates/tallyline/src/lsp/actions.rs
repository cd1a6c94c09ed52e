//! The code action that puts a struct's members into the smallest order.

use super::declarations::{Declaration, Declarator};
use super::document::{Document, Language};
use std::ops::Range;
use tallyline_debuginfo::model::{TypeId, Types};
use tallyline_layout::reorganize::{Reorganization, ReorganizeOptions, Reorganizer};

/// A new order of members in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reordering {
    pub(super) title: String,
    /// The bytes to replace, and the text to put there; the reason where the text is not as it was compiled, or not
    /// simple enough.
    pub(super) edit: Result<(Range<usize>, String), &'static str>,
}

/// Proposes a new order of a declared type; none if it cannot be smaller.
pub(super) fn reorder(
    document: &Document,
    declaration: &Declaration,
    types: &Types,
    id: TypeId,
    cacheline: u64,
) -> Option<Reordering> {
    let reorganizer =
        Reorganizer::new(types, ReorganizeOptions { cacheline, ..ReorganizeOptions::default() });
    let Reorganization::Smaller(proposal) = reorganizer.propose(id) else { return None };
    let (before, after) = (proposal.current().size(), proposal.proposed().size());
    let inferred = if proposal.inferred() { ", as inferred" } else { "" };
    let title = format!("Reorder members of {}: {before} -> {after} bytes{inferred}", declaration.name);
    let order: Vec<String> = proposal
        .members()
        .iter()
        .map(|member| String::from_utf8_lossy(types.name(member.name)).into_owned())
        .collect();
    Some(Reordering { title, edit: edited(document, declaration, &order) })
}

/// Moves whole declarators, with their comments, so that the members come in this order.
fn edited(
    document: &Document,
    declaration: &Declaration,
    order: &[String],
) -> Result<(Range<usize>, String), &'static str> {
    let text = document.text();
    let body = &text[declaration.body.clone()];
    if document.language == Language::C && body.lines().any(|line| line.trim_start().starts_with('#')) {
        return Err("the preprocessor decides which members there are");
    }
    if ["public:", "private:", "protected:"].iter().any(|label| body.contains(label)) {
        return Err("members would change their access");
    }
    let mut places: Vec<(Vec<usize>, &Declarator)> = Vec::new();
    for member in &declaration.members {
        let at: Option<Vec<usize>> =
            member.names.iter().map(|(name, _)| order.iter().position(|known| known == name)).collect();
        match at {
            Some(at) if !at.is_empty() => places.push((at, member)),
            _ => return Err("the source has something that is no member of what was compiled"),
        }
    }
    let mut known: Vec<usize> = places.iter().flat_map(|(at, _)| at.iter().copied()).collect();
    known.sort_unstable();
    if known != (0..order.len()).collect::<Vec<_>>() {
        return Err("the source does not have the members that were compiled");
    }
    if places.iter().any(|(at, _)| at.windows(2).any(|pair| pair[1] != pair[0] + 1)) {
        return Err("members that are declared together would have to part");
    }
    let (Some((_, first)), Some((_, last))) = (places.first(), places.last()) else {
        return Err("it has no members");
    };
    let whole = first.bytes.start..last.bytes.end;
    places.sort_by_key(|(at, _)| at.first().copied());
    let mut new = String::new();
    for (_, member) in &places {
        let part = &text[member.bytes.clone()];
        let is_ended = match document.language {
            Language::C => true,
            Language::Rust => part.contains(','),
            Language::Go => part.ends_with('\n'),
        };
        if !is_ended {
            return Err("the last member has no end of its own");
        }
        new.push_str(part);
    }
    Ok((whole, new))
}

#[cfg(test)]
mod tests {
    use super::super::declarations;
    use super::*;

    fn edited(language: Language, text: &str, order: &[&str]) -> Result<String, &'static str> {
        let document = Document::new(language, text.to_owned());
        let declaration = declarations::find(language, text).remove(0);
        let order: Vec<String> = order.iter().map(|name| (*name).to_owned()).collect();
        let (range, new) = super::edited(&document, &declaration, &order)?;
        Ok([&text[..range.start], &new, &text[range.end..]].concat())
    }

    #[test]
    fn members_move_with_their_comments() {
        let text = "struct a {\n\t/* one */\n\tchar a; // first\n\tlong b, c;\n\tchar d;\n};\n";
        let expected = "struct a {\n\t/* one */\n\tchar a; // first\n\tchar d;\n\tlong b, c;\n};\n";
        assert_eq!(edited(Language::C, text, &["a", "d", "b", "c"]).expect("simple"), expected);
        assert!(edited(Language::C, text, &["a", "b", "d", "c"]).is_err());
        assert!(edited(Language::C, text, &["a", "b", "c"]).is_err());
        assert!(edited(Language::C, text, &["a", "b", "c", "d", "e"]).is_err());
        let with = text.replace("\tchar d;", "#if X\n\tchar d;\n#endif");
        assert!(edited(Language::C, &with, &["a", "d", "b", "c"]).is_err());
    }

    #[test]
    fn other_languages_end_their_members_otherwise() {
        let text = "#[repr(C)]\nstruct A {\n    a: u8,\n    b: u64, // x\n    c: u8,\n}\n";
        let expected = "#[repr(C)]\nstruct A {\n    a: u8,\n    c: u8,\n    b: u64, // x\n}\n";
        assert_eq!(edited(Language::Rust, text, &["a", "c", "b"]).expect("simple"), expected);
        assert!(edited(Language::Rust, &text.replace("c: u8,", "c: u8"), &["a", "c", "b"]).is_err());
        let text = "type A struct {\n\tX bool\n\tY int64\n\tZ bool\n}\n";
        let expected = "type A struct {\n\tX bool\n\tZ bool\n\tY int64\n}\n";
        assert_eq!(edited(Language::Go, text, &["X", "Z", "Y"]).expect("simple"), expected);
    }
}
