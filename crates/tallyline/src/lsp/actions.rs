//! The code action that puts a struct's members into the smallest order.

use super::declarations::{Declaration, Declarator};
use super::document::{Document, Language};
use std::ops::Range;
use tallyline_debuginfo::model::{TypeId, Types};
use tallyline_layout::reorganize::{Reorganization, ReorganizeOptions, Reorganizer};
use tallyline_source::{self as source, Change};

/// A new order of members in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reordering {
    pub(super) title: String,
    /// The bytes to replace, and the text to put there; the reason where the text is not as it was compiled, or not
    /// simple enough.
    pub(super) edit: Result<(Range<usize>, String), String>,
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
    let is_cpp = types.record(proposal.record()).language.is_cpp();
    let language = match document.language {
        Language::C if is_cpp => Some(source::Language::Cpp),
        Language::C => Some(source::Language::C),
        Language::Rust => Some(source::Language::Rust),
        Language::Go => None,
    };
    Some(Reordering { title, edit: edited(document, declaration, language, &order) })
}

/// Moves whole declarations, with their comments, so that the members come in this order. `language` is that of the
/// crate of source edits, which does not know Go.
fn edited(
    document: &Document,
    declaration: &Declaration,
    language: Option<source::Language>,
    order: &[String],
) -> Result<(Range<usize>, String), String> {
    let text = document.text();
    let body = &text[declaration.body.clone()];
    if document.language == Language::C && body.lines().any(|line| line.trim_start().starts_with('#')) {
        return Err("the preprocessor decides which members there are".into());
    }
    if ["public:", "private:", "protected:"].iter().any(|label| body.contains(label)) {
        return Err("members would change their access".into());
    }
    let mut places: Vec<(Vec<usize>, &Declarator)> = Vec::new();
    for member in &declaration.members {
        let at: Option<Vec<usize>> =
            member.names.iter().map(|(name, _)| order.iter().position(|known| known == name)).collect();
        match at {
            Some(at) if !at.is_empty() => places.push((at, member)),
            _ => return Err("the source has something that is no member of what was compiled".into()),
        }
    }
    let in_text: Vec<usize> = places.iter().flat_map(|(at, _)| at.iter().copied()).collect();
    let mut known = in_text.clone();
    known.sort_unstable();
    if known != (0..order.len()).collect::<Vec<_>>() {
        return Err("the source does not have the members that were compiled".into());
    }
    if in_text.is_sorted() {
        return Err("the source has its members in this order already".into());
    }
    if places.iter().any(|(at, _)| at.windows(2).any(|pair| pair[1] != pair[0] + 1)) {
        return Err("members that are declared together would have to part".into());
    }
    match language {
        Some(language) => moved(document, declaration, language, &in_text),
        None => in_go(text, places),
    }
}

/// Returns the edit as a patch has it. `places` are those of the members in the new order, in the order of the text.
fn moved(
    document: &Document,
    declaration: &Declaration,
    language: source::Language,
    places: &[usize],
) -> Result<(Range<usize>, String), String> {
    let line = |offset: usize| u32::try_from(document.line_of(offset) + 1).unwrap_or(u32::MAX);
    let members = declaration.members.iter().flat_map(|member| &member.names);
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|member| places[*member]);
    // the line of the brace: the name may be behind the body
    let change = Change::new(language, line(declaration.body.start), &declaration.name)
        .with_order(members.map(|(name, at)| (name, line(*at))), order);
    let edit = source::edit(document.text().as_bytes(), &change).map_err(|refusal| refusal.to_string())?;
    let (range, body) = (edit.range().clone(), &declaration.body);
    match String::from_utf8(edit.text().to_vec()) {
        Ok(new) if body.start <= range.start && range.end <= body.end => Ok((range, new)),
        _ => Err("the source has another declaration on this line".into()),
    }
}

/// Puts declarators of Go, which are whole lines, into their new order.
fn in_go(text: &str, mut places: Vec<(Vec<usize>, &Declarator)>) -> Result<(Range<usize>, String), String> {
    let (Some((_, first)), Some((_, last))) = (places.first(), places.last()) else {
        return Err("it has no members".into());
    };
    let whole = first.bytes.start..last.bytes.end;
    places.sort_by_key(|(at, _)| at.first().copied());
    let mut new = String::new();
    for (_, member) in &places {
        let part = &text[member.bytes.clone()];
        if !part.ends_with('\n') {
            return Err("a member does not end with its line".into());
        }
        new.push_str(part);
    }
    Ok((whole, new))
}

#[cfg(test)]
mod tests {
    use super::super::declarations;
    use super::*;

    fn edited(language: Language, text: &str, order: &[&str]) -> Result<String, String> {
        let document = Document::new(language, text.to_owned());
        let declaration = declarations::find(language, text).remove(0);
        let order: Vec<String> = order.iter().map(|name| (*name).to_owned()).collect();
        let of_source = match language {
            Language::C => Some(source::Language::C),
            Language::Rust => Some(source::Language::Rust),
            Language::Go => None,
        };
        let (range, new) = super::edited(&document, &declaration, of_source, &order)?;
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
        let without_comma = text.replace("c: u8,", "c: u8");
        assert_eq!(edited(Language::Rust, &without_comma, &["a", "c", "b"]).expect("simple"), expected);
        let text = "type A struct {\n\tX bool\n\tY int64\n\tZ bool\n}\n";
        let expected = "type A struct {\n\tX bool\n\tZ bool\n\tY int64\n}\n";
        assert_eq!(edited(Language::Go, text, &["X", "Z", "Y"]).expect("simple"), expected);
    }

    #[test]
    fn comments_of_several_lines_move_whole() {
        let text = "struct a {\n\tchar a;\n\tlong b; /* multi\n\t          line */\n\tchar c;\n};\n";
        let expected = "struct a {\n\tchar a;\n\tchar c;\n\tlong b; /* multi\n\t          line */\n};\n";
        assert_eq!(edited(Language::C, text, &["a", "c", "b"]).expect("simple"), expected);
        let text = "struct a {\n\tchar a;\n\tlong b; // foo \\\n bar\n\tchar c;\n};\n";
        let expected = "struct a {\n\tchar a;\n\tchar c;\n\tlong b; // foo \\\n bar\n};\n";
        assert_eq!(edited(Language::C, text, &["a", "c", "b"]).expect("simple"), expected);
        let text = "#[repr(C)]\nstruct A {\n    a: u8,\n    b: u64, /* x\n       y */\n    c: u8,\n}\n";
        let expected = "#[repr(C)]\nstruct A {\n    a: u8,\n    c: u8,\n    b: u64, /* x\n       y */\n}\n";
        assert_eq!(edited(Language::Rust, text, &["a", "c", "b"]).expect("simple"), expected);
        let text = "type A struct {\n\tX bool\n\tY int64 /* x\n\t y */\n\tZ bool\n}\n";
        let expected = "type A struct {\n\tX bool\n\tZ bool\n\tY int64 /* x\n\t y */\n}\n";
        assert_eq!(edited(Language::Go, text, &["X", "Z", "Y"]).expect("simple"), expected);
    }

    #[test]
    fn no_member_gets_behind_a_line_comment() {
        for text in [
            "struct a {\n\tchar a; long b; // b\n\tchar c; long d; char e;\n};\n",
            "struct a { char a; long b; // b\n char c; long d; char e; // e\n};",
        ] {
            let new = edited(Language::C, text, &["a", "c", "e", "b", "d"]).expect("simple");
            let code = new.lines().map(|line| line.split("//").next().unwrap_or_default());
            assert_eq!(code.flat_map(|line| line.matches(';')).count(), 6, "{new}");
            assert_eq!(new.matches("// b").count(), 1, "{new}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_word() {
        let text = "\u{feff}struct a { char a; long b; char c; };\n";
        let expected = "\u{feff}struct a { char a; char c; long b; };\n";
        assert_eq!(edited(Language::C, text, &["a", "c", "b"]).expect("simple"), expected);
    }

    #[test]
    fn comments_above_members_of_go_move_with_them() {
        let text = "type A struct { // first\n\tX bool\n\n\t// about Y\n\tY int64\n\tZ bool\n}\n";
        let expected = "type A struct { // first\n\tX bool\n\tZ bool\n\n\t// about Y\n\tY int64\n}\n";
        assert_eq!(edited(Language::Go, text, &["X", "Z", "Y"]).expect("simple"), expected);
    }
}
